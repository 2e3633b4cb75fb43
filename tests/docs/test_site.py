"""The site: its reference covers everything that there is, every link leads somewhere, and it builds without a warning."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mpm_nodes import cli
from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.graph.document.document import load_graph
from mpm_nodes.graph.plan.validate import validate
from mpm_nodes.hosts.schema import graph_schema
from mpm_nodes.materials.library import LIBRARY
from mpm_nodes.preview.pictures import find_root
from mpm_nodes.preview.scene import open_scene

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "samples").rglob("*.md")])


@pytest.fixture(scope="module")
def docs():
    """The folder of the pages on the path of modules, as Sphinx has it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        yield


@pytest.fixture(scope="module")
def reference(docs):
    """The module that writes the generated pages."""
    return importlib.import_module("make_reference")


@pytest.fixture(scope="module")
def pictures(docs):
    """The module that cooks the examples and draws them."""
    return importlib.import_module("make_pictures")


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
    assert headings(pages["reference/materials.md"]) >= set(LIBRARY)
    assert all(f"## mpm-nodes {name}\n" in pages["reference/cli.md"] for name in cli.COMMANDS)
    assert "### Graph.insert\n" in pages["reference/api.md"]


def test_every_node_has_an_example(reference, pictures):
    """Each node's example holds the node, is valid as it stands, is short and on the page with its picture; there are no others."""
    registry = registries.load(path="", entry_points=False)
    drawn = {path.stem for path in (pictures.PICTURES / "nodes").glob("*.jpg")}
    assert drawn <= set(pictures.examples()) == set(registry.nodes())
    assert set(pictures.LOOKS) <= set(registry.nodes())
    for name, path in pictures.examples().items():
        graph = load_graph(path)
        assert validate(graph) == [], name
        assert name in {node.type for node in graph.nodes.values()}, name
        assert graph.settings.end <= 49, name
        section = reference.pages()["reference/nodes.md"].split(f"### {name}\n", 1)[1].split("\n#", 1)[0]
        assert path.read_text() in section and (f"(../pictures/nodes/{name}.jpg)" in section) == (name in drawn), name


def test_every_material_has_a_swatch(reference, pictures):
    """Each entry of the library has a valid graph that drops, pulls and lets go of it; pictures that are drawn are on the page."""
    page = reference.pages()["reference/materials.md"]
    drawn = {path.stem for path in (pictures.PICTURES / "materials").glob("*.jpg")}
    assert drawn <= set(LIBRARY)
    for name in LIBRARY:
        assert validate(pictures.swatch(name)) == [], name
        assert (f"(../pictures/materials/{name}.jpg)" in page) == (name in drawn)


def test_pictures_are_small(pictures):
    """All pictures of the reference together stay below three megabytes."""
    assert sum(path.stat().st_size for path in pictures.PICTURES.rglob("*.jpg")) < 3e6


def test_every_stage_has_its_equations_with_a_source(reference):
    """Each stage has a formula and names a source; papers that it names are in the bibliography."""
    registry = registries.load(path="", entry_points=False)
    sections = {name: text for name, text in reference.equations().items() if name != "Equations of the stages"}
    assert set(sections) == set(registry.stages())
    known = set(re.findall(r"^\| ([A-Z]\w+(?: \d{4})?) \|", (ROOT / "docs" / "bibliography.md").read_text(), re.M))
    for name, text in sections.items():
        source = text.split("\nSource: ", 1)[1]
        cited = set(re.findall(r"\b(?:[A-Z]\d\d|[A-Z][a-z]+ (?:19|20)\d\d)\b", text))
        assert text.count("$$") >= 2 and (cited or "textbook" in source) and cited <= known, name


SOURCES = sorted(path for package in ("mpm_nodes", "usd_io", "samples", "docs", "tests") for path in (ROOT / package).rglob("*.py"))
CITED = re.compile(r"\b([A-Z][a-zé]{2,}) ((?:1[89]|20)\d\d)\b")
MONTHS = {"January", "December"}


def test_every_paper_that_is_cited_is_in_the_bibliography():
    """Names with a year, in code, pages and tests, stand in one row of the bibliography."""
    rows = [line for line in (ROOT / "docs" / "bibliography.md").read_text().splitlines() if line.startswith("| ")]
    cited = {(name, year, path.name) for path in (*SOURCES, *PAGES) for name, year in CITED.findall(path.read_text())}
    lost = {each for each in cited if each[0] not in MONTHS and not any(each[0] in row and each[1] in row for row in rows)}
    assert len(cited) > 50 and lost == set()


def test_papers_are_named_where_their_letters_first_stand():
    """S14 and the like, on each page that people read from top to bottom; the row of the bibliography has the name."""
    text = (ROOT / "docs" / "bibliography.md").read_text()
    first = {row[0]: re.findall(r"[A-Z][a-z]+", row[1])[1] for row in re.findall(r"^\| ([A-Z]\d\d) \| ([^.]+)\.", text, re.M)}
    assert set(first) == {"S14", "Y15", "R15", "B18", "C21"}
    for page in (*(ROOT / "docs").glob("*.md"), *(ROOT / "samples").glob("*.md")):
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M)
        for letters, name in first.items():
            if found := re.search(rf"\b{letters}\b", text):
                assert name in text[max(0, found.start() - 150) : found.end() + 60], (page.name, letters)


def test_nothing_that_is_not_shipped_is_cited():
    """No numbers of sheets and registers that readers do not have."""
    foreign = re.compile(r"\bmethod (?:sheet|list|V ?\d|\d+\.\d)|\(V\d+\)|\b(?:ERR|DEC)-[A-Z]\d")
    pages = [path for path in (*SOURCES, *PAGES) if path != Path(__file__)]
    assert [(path.name, found) for path in pages for found in foreign.findall(path.read_text())] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "docs" / "examples").glob("*.json")))
def test_examples_cook(name, pictures, tmp_path):
    """Each example cooks to its end, and leaves a frame of the cache for each of its own."""
    folder = pictures.cooked(pictures.examples()[name], tmp_path)
    settings = load_graph(pictures.examples()[name]).settings
    scene = open_scene(find_root(folder))
    assert (scene.first, scene.last) == (settings.start, settings.end)


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


def test_the_front_page_has_four_doors_and_six_groups():
    """A sentence and three links for each kind of reader; no group of the navigation has more than eight entries."""
    text = (ROOT / "docs" / "index.md").read_text()
    doors = re.findall(r"^\| \*\*(.+?)\*\* \| (.+) \|$", text, re.M)
    assert [reader for reader, _ in doors] == ["an artist", "a technical director", "a researcher", "a contributor"]
    assert all(len(re.findall(r"\]\(", said)) == 3 for _, said in doors)
    found = re.findall(r"^```\{toctree\}\n:caption: [^\n]+\n:hidden:\n\n(.*?)```", text, re.M | re.S)
    groups = [entries.split() for entries in found]
    assert len(groups) == text.count("{toctree}") == 6 and all(3 < len(group) <= 8 for group in groups)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built without a warning where the extra `docs` is installed: CI does it with a step of its own."""
    for name in ("sphinx", "myst_parser", "furo", "latex2mathml"):
        pytest.importorskip(name)
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "docs", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_it_builds_without_a_warning(site):
    """`sphinx-build -W`, with the pages that are generated, and formulas drawn."""
    assert "<math" in (site / "reference" / "stages.html").read_text() and "<math" in (site / "equations.html").read_text()


LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed)\b[^>]*?\bsrc(?:set)?=["']([^"']*)"""
    r"""|<link\b(?![^>]*rel=["'](?:canonical|license)["'])[^>]*?\bhref=["']([^"']*)"""
    r"""|url\(\s*["']?([^"')]*)|@import\s+["']([^"']*)"""
)
"""What a browser loads by itself; a link waits for a click."""
OUTSIDE = re.compile(r"^\s*(?:[a-z]+:)?//", re.I)


def test_the_schema_of_graphs_is_published(site):
    """As `mpm-nodes host schema` prints it, below an address that stays; its page leads there."""
    published = json.loads((site / "graph.schema.json").read_text())
    assert published == json.loads(json.dumps(graph_schema(registries.load(path="", entry_points=False))))
    assert 'href="../graph.schema.json"' in (site / "reference" / "schema.html").read_text()


def test_the_site_asks_for_nothing_outside(site):
    """No page and no style sheet loads a script, a style, a font or a picture from another machine."""
    assert OUTSIDE.match(next(filter(None, LOADED.search('<script defer src="https://cdn.example/x.js">').groups())))
    files = [path for path in site.rglob("*") if path.suffix in (".html", ".css")]
    loaded = {(path.name, each) for path in files for found in LOADED.findall(path.read_text()) for each in found if each}
    assert len(loaded) > 100 and {each for each in loaded if OUTSIDE.match(each[1])} == set()
