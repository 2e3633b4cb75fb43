"""Relative input paths start at the graph's folder, and only once."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpm_nodes.data import MpmNodesError
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.graph.document.document import Graph

READERS = {
    name: [knob.name for knob in declaration.knobs if knob.kind == "path"]
    for name, declaration in registries.load(path="", entry_points=False).nodes().items()
}
READERS = {name: knobs for name, knobs in READERS.items() if knobs}


def test_there_are_nodes_that_read_files():
    """The sweep below looks at something."""
    assert {"read_points", "collide_usd", "collide_vdb", "emit_mesh", "emit_level_set"} <= set(READERS)


@pytest.mark.parametrize("base", ["scenes", None])
@pytest.mark.parametrize("name", READERS)
def test_a_relative_base_is_joined_once(name, base, tmp_path, monkeypatch):
    """The message about a missing file names it below the base, which may itself be relative, and not below it twice."""
    monkeypatch.chdir(tmp_path)
    graph = Graph(base=None if base is None else Path(base))
    material = graph.add("material_neo_hookean", "matter")
    wired = {"material": material, "particles": graph.add("emit_box", "block", material=material)}
    wired["collider"], wired["template"] = graph.add("collide_plane", "ground"), wired["particles"]
    ports = {port: source for port, source in wired.items() if graph.registry.get(name).port(port)}
    node = graph.add(name, "reader", **ports, **dict.fromkeys(READERS[name], "missing.0001.usd"))
    with pytest.raises(MpmNodesError) as caught:
        Evaluator(graph).value(str(node))
    expected = str(Path(base) / "missing.0001.usd" if base else tmp_path / "missing.0001.usd")
    assert expected in str(caught.value)
    assert "scenes/scenes" not in str(caught.value)
