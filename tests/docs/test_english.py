"""Sentences that readers stumbled over stay away, from code, tooltips, messages and pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mpm_nodes.graph import registry as registries
from mpm_nodes.hosts.spec import host_spec

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("mpm_nodes", "usd_io", "samples", "docs", "hda_specs", "benchmarks")
STUMBLED_OVER = (
    "says when which pays",
    "that one kernel can do at once are run as one",
    "the one that we had a window for",
    "nobody has sat before their windows",
    "wire it behind the solve",
    "has the last word",
    "sockets of unlike colour",
    "threads would lie about without",
    "fall out of the nozzle faster than they come",
    "alone its first one",
    "draw together altogether",
)
FOREIGN = {"anew": "again", "mend": "fix", "mends": "fixes", "mended": "fixed", "mending": "fixing"}
"""Words for which there is a plainer one."""
NO_THING = re.compile(r"(?<![Tt]here )\b(?:is|are) no (?!longer\b|more\b|such\b|matter\b)[a-z]+")
"""`is no wire`, where English says `is not a wire`."""


def texts() -> dict[str, str]:
    """Return every page and source, with line breaks and comment signs as spaces."""
    files = [
        *ROOT.glob("*.md"),
        *(path for room in ROOMS for path in (ROOT / room).rglob("*") if path.suffix in (".py", ".md", ".json")),
    ]
    files = [path for path in files if path.parent not in (ROOT / "docs/project", ROOT / "docs/reference")]  # generated from these
    return {str(path.relative_to(ROOT)): re.sub(r"\s+(?:# )?", " ", path.read_text(encoding="utf-8")) for path in files}


def test_no_page_or_source_has_them():
    """None of the sentences stands anywhere, also where it is wrapped."""
    found = [(name, sentence) for name, text in texts().items() for sentence in STUMBLED_OVER if sentence in text]
    assert found == []


def test_pages_and_sources_are_plain():
    """Code, comments, messages and pages say again, fix, and `is not a`, too."""
    found = {name: [*re.findall(rf"\b(?:{'|'.join(FOREIGN)})\b", text), *NO_THING.findall(text)] for name, text in texts().items()}
    assert {name: words for name, words in found.items() if words} == {}


def told(record: object) -> list[str]:
    """Return every help text below a record of the host specification."""
    if isinstance(record, dict):
        own = [record["doc"]] if isinstance(record.get("doc"), str) else []
        return [*own, *(text for value in record.values() for text in told(value))]
    return [text for value in record for text in told(value)] if isinstance(record, list) else []


@pytest.mark.parametrize("part", ["nodes", "stages", "presets", "settings", "types", "attributes"])
def test_tooltips_are_plain(part):
    """Help of nodes, stages, knobs and ports says again, fix, and `is not a`."""
    helps = told(host_spec(registries.load(path="", entry_points=False))[part])
    words = [(word, text) for text in helps for word in FOREIGN if re.search(rf"\b{word}\b", text)]
    assert words == [] and [text for text in helps if NO_THING.search(text)] == []
