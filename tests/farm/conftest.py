"""What the tests of farms share: a shot that cooks in no time, and the program that cooks it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from mpm_nodes.graph.document.document import load_graph

NODES = Path(__file__).parent / "nodes"
SHOT = {
    "format": "mpm_nodes.graph",
    "version": 1,
    "settings": {"fps": 24, "start": 1, "end": 6},
    "nodes": {
        "walk": {"type": "walk"},
        "writer": {"type": "write_walk", "inputs": {"walkers": "walk"}},
    },
}


@pytest.fixture
def walking(monkeypatch, tmp_path):
    """Make the nodes of the shot known here and in children; return a function that writes its file and one that reads its log."""
    monkeypatch.setenv("MPM_NODES_PATH", str(NODES))
    monkeypatch.setenv("WALK_LOG", str(tmp_path / "walk.log"))
    monkeypatch.chdir(tmp_path)

    def shot(**knobs: object) -> Path:
        document = json.loads(json.dumps(SHOT))
        document["nodes"]["walk"]["knobs"] = knobs
        path = tmp_path / "shot.json"
        path.write_text(json.dumps(document))
        return path

    return shot


@pytest.fixture
def graph(walking):
    """The shot as a graph."""
    return load_graph(walking())


@pytest.fixture
def program(tmp_path):
    """A file that runs `mpm-nodes`."""
    path = tmp_path / "mpm-nodes"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mpm_nodes.cli "$@"\n')
    path.chmod(0o755)
    return path
