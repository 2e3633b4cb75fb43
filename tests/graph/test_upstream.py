"""`cook --to NODE`: a node with what it needs, and a cache of what it gives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mpm_nodes import cli
from mpm_nodes.graph.document.document import Graph, load_graph
from mpm_nodes.graph.document.upstream import keep_upstream
from mpm_nodes.graph.reports.problems import GraphError

GRAPH = {
    "format": "mpm_nodes.graph",
    "version": 1,
    "settings": {"cell_size": 0.1, "end": 2},
    "nodes": {
        "jelly": {"type": "material_library", "knobs": {"name": "jelly"}},
        "ball": {"type": "emit_sphere", "knobs": {"radius": 0.2, "centre": [0, 0.3, 0]}, "inputs": {"material": "jelly"}},
        "other": {"type": "emit_sphere"},
        "ground": {"type": "collide_plane"},
        "fall": {"type": "solve", "inputs": {"sources": ["ball", "other"], "colliders": ["ground"]}},
        "writer": {"type": "write_cache", "inputs": {"particles": "fall.particles"}},
    },
}


def kept(node: str) -> Graph:
    graph = load_graph(GRAPH)
    keep_upstream(graph, node)
    return graph


@pytest.mark.parametrize(
    ("node", "nodes", "port"),
    [
        ("ball", {"jelly", "ball"}, "particles"),
        ("ground", {"ground"}, "colliders"),
        ("fall", {"jelly", "ball", "other", "ground", "fall"}, "particles"),
    ],
)
def test_what_a_node_needs_stays_and_what_it_gives_is_written(node, nodes, port):
    """A cache takes the outputs that fit; nothing else is added."""
    graph = kept(node)
    (writer,) = graph.nodes.keys() - nodes
    assert graph.nodes[writer].type == "write_cache" and nodes < graph.nodes.keys()
    assert graph.nodes[writer].inputs[port] == [f"{node}.{port}" if port == "particles" else f"{node}.collider"]


@pytest.mark.parametrize("told", [False, True])
def test_forces_are_written_where_the_solve_tells_them(told):
    """A cache warns of a solve that tells none: the user wired nothing into it."""
    graph = load_graph(GRAPH)
    graph.set("fall.contact_forces", told)
    keep_upstream(graph, "fall")
    (writer,) = (entry for entry in graph.nodes.values() if entry.type == "write_cache")
    assert ("bodies" in writer.inputs) is told


def test_a_writer_writes_for_itself():
    """Nothing is put behind it."""
    assert kept("writer").nodes.keys() == GRAPH["nodes"].keys()


@pytest.mark.parametrize(("node", "said"), [("jelly", "gives nothing that a cache holds"), ("bal", "is not a node")])
def test_what_cannot_be_looked_at_is_refused(node, said):
    """With the node's name."""
    with pytest.raises(GraphError, match=f"{node}: {said}"):
        kept(node)


def test_the_rest_may_be_unfinished(tmp_path: Path):
    """`other` has no material: the solve cannot cook, the ball can."""
    (tmp_path / "shot.json").write_text(json.dumps(GRAPH))
    words = ["cook", str(tmp_path / "shot.json"), "--events", "none"]
    assert cli.main([*words, "--out", str(tmp_path / "all")]) == 2
    assert cli.main([*words, "--out", str(tmp_path / "ball"), "--to", "ball"]) == 0
    assert (tmp_path / "ball" / "r001" / "cache.usda").is_file()
    assert cli.main([*words, "--out", str(tmp_path / "jelly"), "--to", "jelly"]) == 2
    assert not (tmp_path / "jelly").exists()
