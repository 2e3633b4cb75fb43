"""The site: its reference covers everything that there is, every link leads somewhere, and it builds without a warning."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mpm_nodes import cli
from mpm_nodes.graph import registry as registries
from mpm_nodes.materials.library import LIBRARY

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "samples").glob("*.md")])


@pytest.fixture(scope="module")
def reference():
    """The module that writes the generated pages."""
    spec = importlib.util.spec_from_file_location("make_reference", ROOT / "docs" / "make_reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def headings(text: str) -> set[str]:
    """Return the anchors of a page as GitHub and MyST make them."""
    outside = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    titles = re.findall(r"^#+ (.*)$", outside, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def test_the_reference_covers_everything(reference):
    """Each node, knob, stage, preset, material and command has its place, with units."""
    pages = reference.pages()
    registry = registries.load(path="", entry_points=False)
    nodes, stages = registry.nodes(), registry.stages()
    assert headings(pages["reference/nodes.md"]) >= set(nodes) and headings(pages["reference/stages.md"]) >= set(stages)
    for declaration in (*nodes.values(), *stages.values()):
        page = pages["reference/nodes.md" if declaration.id in nodes else "reference/stages.md"]
        section = page.split(f" {declaration.id}\n", 1)[1].split("\n#", 1)[0]
        assert all(f"| `{knob.name}` |" in section for knob in declaration.knobs), declaration.id
    assert headings(pages["reference/presets.md"]) >= set(registry.presets)
    assert all(f"| `{name}` |" in pages["reference/materials.md"] for name in LIBRARY)
    assert all(f"## mpm-nodes {name}\n" in pages["reference/cli.md"] for name in cli.COMMANDS)
    assert "### Graph.insert\n" in pages["reference/api.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_hold(page: Path):
    """Every relative link of a page names a file that is there, and a heading in it."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M)
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", text)):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), target
        if anchor:
            assert anchor in headings(path.read_text()), target


def test_it_builds_without_a_warning(tmp_path):
    """`sphinx-build -W`, where the extra `docs` is installed: CI does it with a step of its own."""
    pytest.importorskip("sphinx")
    pytest.importorskip("myst_parser")
    pytest.importorskip("furo")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "docs", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "reference" / "stages.html").is_file()
