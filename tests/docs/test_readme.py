"""The README and its pages are true: graph, Python, stage and commands are those of the package, and it stays short."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mpm_nodes
from mpm_nodes.graph.document.document import load_graph
from mpm_nodes.graph.plan.validate import validate

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text()
CONCEPTS = (ROOT / "docs/concepts.md").read_text()
STAGE_PAGE = (ROOT / "docs/a_stage_in_a_preset.md").read_text()


def test_the_graph_shown_is_the_file_and_valid():
    """The JSON of the page is docs/snowball.json, and it validates."""
    shown = re.search(r"<!-- graph: docs/snowball.json -->\n```json\n(.*?)```", CONCEPTS, re.S).group(1)
    assert shown == (ROOT / "docs/snowball.json").read_text()
    assert validate(load_graph(ROOT / "docs/snowball.json")) == []


EXAMPLES = re.findall(r"<!-- python: tested -->\n```python\n(.*?)```", TEXT + (ROOT / "docs/python.md").read_text(), re.S)


@pytest.mark.parametrize("code", EXAMPLES)
def test_the_python_shown_runs(code):
    """Each example marked as tested runs as it stands."""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, timeout=300, capture_output=True)


def test_the_stage_shown_runs_from_a_folder_on_the_path(tmp_path):
    """The wind of the page, wired into the preset, pushes a falling ball by a t^2 / 2 (to first order in dt)."""
    (tmp_path / "wind.py").write_text(re.search(r"<!-- stage: tested -->\n```python\n(.*?)```", STAGE_PAGE, re.S).group(1))
    patch = json.loads(re.search(r'`(\{"preset": "explicit_apic", "edits".*?\})`', STAGE_PAGE, re.S).group(1))
    substeps = {**patch, "set": {"wind.push": 30.0}}
    graph = json.loads((ROOT / "docs/snowball.json").read_text())
    graph["settings"].update(cell_size=0.08, end=4)
    graph["nodes"]["fall"]["knobs"] = {"substeps": substeps}
    (tmp_path / "windy.json").write_text(json.dumps(graph))
    code = (
        "import sys; from mpm_nodes import load_graph; from mpm_nodes.graph.cook.executor import Evaluator;"
        "value = Evaluator(load_graph(sys.argv[1])).value;"
        "print(*(value('fall.particles', frame)['position'][:, 0].mean() for frame in (1, 4)))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "windy.json")]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "MPM_NODES_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    before, after = map(float, done.stdout.split())
    exact = 0.5 * 30.0 * (3 / 24) ** 2
    assert exact - 1e-3 < after - before < 1.05 * exact


def test_it_is_a_short_front_door():
    """At most 60 lines: what is longer belongs on a page."""
    assert len(TEXT.splitlines()) <= 60


def test_the_two_commands_can_be_read():
    """`.ci/run` finds just two command lines, the demo and the tests."""
    commands = re.findall(r"^python3 -m venv .*$", TEXT, re.M)
    assert len(commands) == 2
    assert commands[0].endswith("mpm-nodes demo") and commands[1].endswith("python -m pytest")


def test_the_speed_told_is_that_of_the_pages():
    """The README's rate and ratio stand in docs/cpus.md, and what samples miss beside their sources as samples/figures has it."""
    rate, ratio = re.search(r"simulates (\d+) million particle-steps a second .*?: ([\d.]+) times", TEXT, re.S).groups()
    bars, pages = (ROOT / "docs/cpus.md").read_text(), "".join(page.read_text() for page in (ROOT / "samples/figures").glob("*.md"))
    assert re.search(rf"\| neo-Hookean, quadratic: .* \| {rate} to", bars) and re.search(
        rf"\| times the best peer: .* \| {ratio},", bars
    )
    assert "| 3.7, 4.5, 0.5 | **missed** |" in bars
    for name, times in (("hot_stream", "3.7"), ("butter_on_pan", "4.5")):
        assert re.search(rf"^\| {name} .*\| {times} \| at least 5, missed \|$", pages, re.M)
    took, source = (
        float(n.replace(",", ""))
        for n in re.search(r"^\| scored_pie .*\| ([\d,]+) s \| [\d,]+ s \| ([\d,]+) s,", pages, re.M).groups()
    )
    assert round(source / took, 1) == 0.5


def test_the_pages_name_this_version():
    """Wheel, zip and citation are of the version that pyproject.toml, the package and the changelog have."""
    pages = TEXT + (ROOT / "docs/blender.md").read_text()
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.M)[1]
    named = {cited, *re.findall(r"mpm_nodes-(\d[\d.]*\d)", pages), *re.findall(r"mpm-nodes (\d[\d.]*\d) on", pages)}
    released = re.search(r"^## (\d\S*)", (ROOT / "CHANGELOG.md").read_text(), re.M)[1]
    assert named == {
        mpm_nodes.__version__,
        released,
        re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.M)[1],
    }
