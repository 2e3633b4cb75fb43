"""Names of attributes: validate refuses what the cook refuses, in the same words, whichever node asks, by whatever name."""

from __future__ import annotations

import pytest

from mpm_nodes import Graph
from mpm_nodes.data import MpmNodesError
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph

ASKING = {
    "attribute_volume": {"attribute": str},
    "colour_particles": {"attribute": str},
    "export_points": {"attributes": list, "format": "ply"},
    "surface_particles": {"attributes": list},
}
"""Nodes that take names of attributes of particles."""
NAMES = ("mass", "m", "velocity", "v", "speed", "J", "age", "surface_tension", "volume_ratio", "nothing", "colour")


def said(graph: Graph, work) -> str:
    """Return what a graph is refused with, "" when it is not."""
    try:
        work(graph)
    except MpmNodesError as error:
        return str(error).partition(": ")[2].removeprefix("frame 1: ")
    return ""


@pytest.mark.parametrize("kind", ASKING)
def test_validate_refuses_what_the_cook_refuses(kind, tmp_path):
    """Columns, their names in USD and papers, computed ones, and what is not there."""
    outcomes = []
    for number, name in enumerate(NAMES):
        graph = Graph(cell_size=0.1, start=1, end=1)
        block = graph.add("emit_box", "block", material=graph.add("material_library", "stuff"), size=(0.1, 0.1, 0.1))
        knobs = {knob: name if given is str else [name] if given is list else given for knob, given in ASKING[kind].items()}
        graph.add(kind, "asking", particles=block, **knobs)
        before = said(graph, lambda each: preflight.estimate(plan_graph(each), 1))
        cooked = said(graph, lambda each, out=tmp_path / str(number): execute(each, out=out))
        outcomes.append(bool(cooked))
        assert before == cooked.removeprefix("asking, frame 1: "), (name, before, cooked)
    assert any(outcomes) and not all(outcomes)


def test_every_node_that_asks_for_attributes_is_tried():
    """By the names of knobs; two nodes take names that particles may lack, and a sampled surface needs substeps with samples."""
    from mpm_nodes.graph.declare import registry

    wired = {name: node for name, node in registry.nodes().items() if any(port.name == "particles" for port in node.ports)}
    asking = {name for name, node in wired.items() if {knob.name for knob in node.knobs} & {"attribute", "attributes"}}
    assert asking - {"write_cache", "set_attribute", "sampled_surface"} == set(ASKING)
