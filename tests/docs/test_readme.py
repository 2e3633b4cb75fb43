"""The README is true: its graph, its Python and its node list are those of the package."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from mpm_nodes.graph.document import load_graph
from mpm_nodes.graph.validate import validate

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text()


def test_the_graph_shown_is_the_file_and_valid():
    """The JSON in the README is docs/snowball.json, and it validates."""
    shown = re.search(r"<!-- graph: docs/snowball.json -->\n```json\n(.*?)```", TEXT, re.S).group(1)
    assert shown == (ROOT / "docs/snowball.json").read_text()
    assert validate(load_graph(ROOT / "docs/snowball.json")) == []


@pytest.mark.parametrize("code", re.findall(r"<!-- python: tested -->\n```python\n(.*?)```", TEXT, re.S))
def test_the_python_shown_runs(code):
    """Each example marked as tested runs as it stands."""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, timeout=300, capture_output=True)


def test_the_node_list_is_generated():
    """The list between the markers is what `mpm-nodes nodes --markdown` prints."""
    shown = re.search(r"<!-- nodes: begin -->\n(.*?)<!-- nodes: end -->", TEXT, re.S).group(1)
    printed = subprocess.run([sys.executable, "-m", "mpm_nodes.cli", "nodes", "--markdown"], check=True, cwd=ROOT,
                             capture_output=True, text=True).stdout
    assert shown == printed


def test_the_two_commands_can_be_read():
    """`.ci/run` finds just two command lines, the demo and the tests."""
    commands = re.findall(r"^python3 -m venv .*$", TEXT, re.M)
    assert len(commands) == 2
    assert commands[0].endswith("mpm-nodes demo") and commands[1].endswith("python -m pytest")
