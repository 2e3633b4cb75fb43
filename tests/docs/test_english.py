"""Sentences that readers stumbled over stay away, from code, tooltips, messages, pages and tests.

python tests/docs/test_english.py [CHECKOUT]      counts them in this checkout, or in another one
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.hosts.spec import host_spec

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("mpm_nodes", "usd_io", "samples", "docs", "hda_specs", "benchmarks", "tests")
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


def texts(root: Path = ROOT) -> dict[str, str]:
    """Return every page and source, with line breaks and comment signs as spaces."""
    files = [
        *root.glob("*.md"),
        *(path for package in PACKAGES for path in (root / package).rglob("*") if path.suffix in (".py", ".md", ".json")),
    ]
    generated = (root / "docs/project", root / "docs/reference", root / "docs/samples")
    others = {"node_modules"}  # what npm has put beside the editor's sources
    files = [path for path in files if path.parent not in generated and path.name != Path(__file__).name]
    files = [path for path in files if others.isdisjoint(path.parts)]
    return {str(path.relative_to(root)): re.sub(r"\s+(?:# )?", " ", path.read_text(encoding="utf-8")) for path in files}


def sentences(root: Path = ROOT) -> list[tuple[str, str]]:
    """Return (file, sentence) of those that readers stumbled over, also where they are wrapped."""
    return [
        (name, sentence) for name, text in texts(root).items() for sentence in STUMBLED_OVER for _ in range(text.count(sentence))
    ]


def words(root: Path = ROOT) -> list[tuple[str, str]]:
    """Return (file, word) for each word or phrase that has a plainer one."""
    known = re.compile(rf"\b(?:{'|'.join(FOREIGN)})\b")
    return [(name, word) for name, text in texts(root).items() for word in [*known.findall(text), *NO_THING.findall(text)]]


def test_no_page_or_source_has_the_sentences():
    """None of the sentences stands anywhere."""
    assert sentences() == []


def test_pages_and_sources_are_plain():
    """Code, comments, messages and pages say again, fix, and `is not a`, too."""
    assert words() == []


def test_they_are_found_where_they_stand(tmp_path):
    """Also where they are wrapped, and in a comment."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text("Wheat that is no\ncheese is made anew. The page says when\nwhich pays.\n")
    (tmp_path / "docs" / "code.py").write_text("# mended, and has the\n# last word\n")
    assert {sentence for _, sentence in sentences(tmp_path)} == {"says when which pays", "has the last word"}
    assert sorted(word for _, word in words(tmp_path)) == ["anew", "is no cheese", "mended"]


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
    found = [(word, text) for text in helps for word in FOREIGN if re.search(rf"\b{word}\b", text)]
    assert found == [] and [text for text in helps if NO_THING.search(text)] == []


if __name__ == "__main__":
    checkout = Path(sys.argv[1]) if sys.argv[1:] else ROOT
    print(f"{len(sentences(checkout))} sentences, {len(words(checkout))} words")
