"""Graphs are changed in Python as in an editor: nodes and wires come, go and move, and what is left is valid."""

from __future__ import annotations

import outer_nodes
import pytest
from fake_nodes import REGISTRY as FAKES
from fake_nodes import Cloud, calls

from mpm_nodes.data import Many
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.declare import node
from mpm_nodes.graph.declare.registry import Registry
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.graph.plan.validate import validate
from mpm_nodes.graph.reports.problems import GraphError

REGISTRY = Registry(function.declaration for function in outer_nodes.NODES)


def chain() -> Graph:
    """source -> move -> join <- other source."""
    graph = Graph(registry=FAKES, cell_size=0.5, start=1, end=2)
    one, two = graph.add("fake_source", "one", count=3), graph.add("fake_source", "two", count=2)
    graph.add("fake_join", "join", clouds=[graph.add("fake_move", "moved", cloud=one), two])
    return graph


def wires(graph: Graph) -> dict[str, dict[str, list[str]]]:
    return {name: entry.inputs for name, entry in graph.nodes.items() if entry.inputs}


def test_a_removed_node_is_passed_through():
    """Who took from it takes what went in, as when it is bypassed, and the graph gives the same."""
    graph, bypassed = chain(), chain()
    graph.remove("moved")
    bypassed.bypass("moved")
    assert wires(graph) == {"join": {"clouds": ["one", "two"]}}
    results = [execute(each).outputs["join"]["cloud"].points.tolist() for each in (graph, bypassed)]
    assert results[0] == results[1]
    bypassed.bypass("moved", on=False)
    assert plan_graph(bypassed).signature == plan_graph(chain()).signature
    graph.remove(graph["one"])
    assert wires(graph) == {"join": {"clouds": ["two"]}}


def test_an_inserted_node_takes_the_wires_of_its_place():
    """After an output, before a port, and taken out again: the plan is the one of before."""
    graph = chain()
    assert graph.insert("fake_move", "again", after="moved", by=3.0).id == "again"
    assert wires(graph)["join"] == {"clouds": ["again.cloud", "two"]} and wires(graph)["again"] == {"cloud": ["moved"]}
    assert graph.insert("fake_join", before="join.clouds").id == "fake_join_1"
    assert wires(graph)["fake_join_1"] == {"clouds": ["again.cloud", "two"]}
    assert wires(graph)["join"] == {"clouds": ["fake_join_1.cloud"]}
    assert validate(graph) == []
    for name in ("fake_join_1", "again"):
        if name == "fake_join_1":
            graph.disconnect("join.clouds")
            graph.connect("join.clouds", "again", "two")
        graph.remove(name)
    assert plan_graph(graph).signature == plan_graph(chain()).signature


def test_a_renamed_node_keeps_all_its_wires():
    """Names are names: the plan of the renamed graph is that of the old one."""
    graph = chain()
    assert str(graph.rename("one", "first")["cloud"]) == "first.cloud"
    graph.rename("join", "end")
    assert list(graph) == ["first", "two", "moved", "end"]
    assert plan_graph(graph).signature == plan_graph(chain()).signature


def test_a_replaced_node_keeps_what_both_have():
    """Ports and knobs of the same name stay; the others are those of the new type."""
    graph = chain()
    graph.replace("moved", "fake_join", scale=2.0)
    assert graph.nodes["moved"].knobs == {"scale": 2.0, "fail": ""}
    assert wires(graph) == {"join": {"clouds": ["moved", "two"]}}
    graph.connect("moved.clouds", "one")
    assert validate(graph) == []
    graph.replace("join", "fake_join", scale=3.0)
    assert wires(graph)["join"] == {"clouds": ["moved", "two"]} and graph.nodes["join"].knobs["scale"] == 3.0


def test_wires_from_an_output_that_is_gone_take_the_first_one():
    """`sim.mesh` of a solve that becomes a box of particles is not a dangling wire."""
    graph = Graph(registry=REGISTRY)
    stuff = graph.add("stuff", "stuff")
    box = graph.add("box", "box", material=stuff)
    sim = graph.add("solve", "sim", sources=[box], substeps={})
    graph.add("write", "out", particles=sim["particles"])
    graph.replace("sim", "box", material="stuff")
    assert wires(graph)["out"] == {"particles": ["sim.particles"]}
    graph.replace("sim", "solve", sources=["box"])
    graph.connect("out.particles", sim["particles"])
    assert wires(graph)["out"] == {"particles": ["sim.particles"]}


def test_ports_for_many_collect_and_single_ports_change_over():
    """connect adds to a port for many, and replaces the wire of another; disconnect takes one or all."""
    graph = chain()
    graph.connect("join.clouds", graph["one"])
    assert wires(graph)["join"]["clouds"] == ["moved", "two", "one"]
    graph.connect("moved.cloud", "two.cloud")
    assert wires(graph)["moved"]["cloud"] == ["two.cloud"]
    graph.disconnect("join.clouds", "two")
    assert wires(graph)["join"]["clouds"] == ["moved", "one"]
    graph.disconnect("join.clouds")
    assert "join" not in wires(graph)


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda g: g.remove("mved"), "mved: is not a node of this graph; did you mean moved"),
        (lambda g: g.rename("moved", "one"), "one: is taken"),
        (lambda g: g.rename("moved", "a b"), "a b: is not a name for a node"),
        (lambda g: g.connect("moved.clouds", "one"), "moved.clouds: is not an input port; did you mean cloud"),
        (lambda g: g.connect("moved.cloud", "one.clod"), "one.clod: is not an output; did you mean cloud"),
        (lambda g: g.connect("moved.cloud", "one", "two"), "moved.cloud: is given 2 wires"),
        (lambda g: g.disconnect("join.clouds", "tow"), "join.clouds: is not wired from tow; did you mean two"),
        (lambda g: g.insert("fake_mve", after="one"), "fake_mve, which is unknown; did you mean fake_move"),
        (lambda g: g.insert("fake_move"), "fake_move: has no place, or two"),
        (lambda g: g.insert("fake_move", before="join.clouds"), "fake_move: does not fit between moved, two"),
        (lambda g: g.insert("fake_source", after="one"), "fake_source: does not fit between one"),
        (lambda g: g.replace("moved", "fake_move", bye=1.0), "moved.bye: is neither a port nor a knob; did you mean by"),
        (lambda g: g.add(len, "length"), "neither an id nor a declared function"),
    ],
)
def test_what_is_not_there_is_named_and_nothing_changes(change, words):
    """Every refusal says where and how to fix it, and leaves the graph alone."""
    graph = chain()
    with pytest.raises(GraphError) as caught:
        change(graph)
    assert words in str(caught.value)
    assert graph.to_json() == chain().to_json()


def test_a_declared_function_is_a_type():
    """A node written in the same script is used without a registry of its own, and no other graph sees it."""

    @node(category="Test", label="Twice")
    def twice(clouds: Many[Cloud], *, factor: float = 2.0) -> Cloud:
        """Scale points.

        Args:
            clouds: What to scale.
            factor: How much.
        """
        return Cloud(clouds[0].points * factor)

    calls.clear()
    graph = chain()
    graph.add(twice, "twice", clouds=[graph["join"]])
    assert execute(graph).outputs["twice"]["cloud"].points.tolist() == [4.0, 4.5, 5.0, 0.0, 1.0]
    assert FAKES.find("twice") is None and chain().registry.find("twice") is None
