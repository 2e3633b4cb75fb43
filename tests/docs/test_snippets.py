"""No snippet of a page is forgotten: it runs in a test of its page, or is checked here as far as that goes without running it."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from mpm_nodes.cli import parser
from mpm_nodes.graph.document.document import load_graph
from mpm_nodes.graph.plan.validate import validate

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "samples").glob("*.md")])
RUN_BY_THEIR_OWN_TEST = {"docs/extending.md", "docs/transfers.md"}
"""Pages of which a test takes every block of Python as it stands."""
MARKS = ("python: tested", "stage: tested", "blender: ", "commands: tested", "substeps: tested", "graph: ", "file: ")
"""What stands before a block that a test of its page runs."""
OTHERS = {*"python3 python3.11 python3.12 python pip apt export mkdir cp ruff mypy sphinx-build openjd dask houdini".split()}
"""Programs of others; `.ci/run` runs the commands of the README."""


def blocks(kind: str) -> list[tuple[str, str, str]]:
    """Return (page, mark before it, text) of every block of a kind."""
    found = []
    for page in PAGES:
        for mark, text in re.findall(rf"^(?:<!-- ([^\n]*) -->\n)?```{kind}\n(.*?)^```", page.read_text(), re.S | re.M):
            found.append((str(page.relative_to(ROOT)), mark, text))
    return found


def unmarked(kind: str) -> list[tuple[str, str]]:
    """Return (page, text) of the blocks that no test of their page runs."""
    return [(page, text) for page, mark, text in blocks(kind) if not mark.startswith(MARKS) and page not in RUN_BY_THEIR_OWN_TEST]


def test_all_python_runs():
    """Each block of Python has a mark by which a test of its page finds it, or defines what the page's own graph uses."""
    assert [(page, text) for page, text in unmarked("python") if "import" in text or "(" not in text] == []


@pytest.mark.parametrize(("page", "text"), unmarked("bash"))
def test_commands_are_those_that_there_are(page, text):
    """Each command line of ours is one that the program understands, and the files of the package that it names are there."""
    for line in text.splitlines():
        for command in re.split(r"&&", line.split("#", 1)[0]):
            words = shlex.split(command)
            if words[:1] == ["mpiexec"]:  # a launcher in front of a command of ours
                words = words[words.index("mpm-nodes") :]
            if not words or Path(words[0]).name in OTHERS:
                continue
            assert Path(words[0]).name == "mpm-nodes", (page, command)
            told = parser().parse_args(words[1:])
            for name in filter(None, (getattr(told, "graph", None),)):
                here = str(name).startswith(("samples/", "docs/"))
                assert not here or (ROOT / name).is_file() or "NODE" in str(name) or "NAME" in str(name), (page, name)


@pytest.mark.parametrize(("page", "text"), unmarked("json"))
def test_parts_of_graphs_are_sound(page, text):
    """Nodes that are shown without their graph have types and knobs that there are, of values that these take."""
    whole = text.startswith("{")
    nodes = json.loads(text).get("nodes", {}) if whole else json.loads("{" + text + "}")
    for name, entry in nodes.items():
        alone = {**entry}
        alone.pop("inputs", None)
        graph = {"format": "mpm_nodes.graph", "version": 1, "settings": {"cell_size": 0.1}, "nodes": {name: alone}}
        problems = [str(problem) for problem in validate(load_graph(graph))]
        open_slots = ("wire", "input", "required", "has no value")
        assert all(any(slot in problem for slot in open_slots) for problem in problems), (page, problems)
