"""Validation reports every problem at once, each with place, value, what is allowed and what to do."""

from __future__ import annotations

import copy
import json

import outer_nodes
import plan_stages
import pytest
from outer_nodes import Side
from plan_stages import substeps

from mpm_nodes.graph.declare.registry import Registry
from mpm_nodes.graph.document.document import Graph, load_graph
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.graph.plan.validate import check, validate
from mpm_nodes.graph.reports.problems import GraphError


@pytest.fixture(scope="module")
def registry(tmp_path_factory) -> Registry:
    path = tmp_path_factory.mktemp("presets") / "simple.json"
    path.write_text(json.dumps(substeps()))
    return Registry([f.declaration for f in (*outer_nodes.NODES, *plan_stages.STAGES)], {"simple": path})


@pytest.fixture
def graph(registry) -> Graph:
    g = Graph(registry=registry)
    cheese = g.add("stuff", "cheese", side=Side.RIGHT)
    block = g.add("box", "block", material=cheese)
    moved = g.add("move", "moved", particles=block)
    bowl = g.add("read_mesh", "bowl", file="bowl.usd")
    sim = g.add("solve", "sim", sources=[moved, cheese], obstacle=bowl)
    g.add("write", "cache", particles=sim["particles"])
    return g


def problems(graph: Graph) -> dict[str, str]:
    return {problem.place: str(problem) for problem in validate(graph)}


def test_a_sound_graph_has_no_problem(graph):
    """The graph that every test below breaks is sound."""
    assert validate(graph) == []
    check(graph)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("block.count", 0, "0 is out of range; allowed: a whole number >= 1 and <= 9; give a value >= 1 and <= 9"),
        ("block.count", 2.5, "is not a whole number"),
        ("block.count", True, "is true or false; allowed: a whole number"),
        ("block.size", [1, 2], "has 2 components; allowed: 3 numbers >= 0 [m]"),
        ("block.size", [1, 2, -3], "has a component that is out of range"),
        ("block.size", 3.0, "is a number"),
        (
            "block.size",
            {"keys": [[1, [1, 1, 1], "linear"], [5, [1, 1, -1], "linear"]]},
            "at frame 5 has a component that is out",
        ),
        ("block.size", {"keys": [[1, [1, 1, 1], "wavy"]]}, "interpolation 'wavy'; allowed: step | linear | smooth"),
        ("block.size", {"keys": [[1, {"keys": [[1, [1, 1, 1], "step"]]}, "step"]]}, "key list within a key list"),
        ("block.on", "yes", "is text; allowed: true or false"),
        ("block.on", {"keys": [[1, True, "step"]]}, "cannot be keyframed"),
        ("cheese.density", float("nan"), "is not finite"),
        ("cheese.density", float("inf"), "is not finite"),
        ("cheese.density", 0, "out of range; allowed: a number > 0"),
        ("cheese.density", "400", "is text; allowed: a number > 0"),
        ("cheese.density", None, "has no value"),
        ("cheese.density", 10**400, "is too large"),
        ("cheese.side", "lefft", "\"lefft\" is not one of the choices; allowed: left | right; choose 'left'"),
        ("cheese.side", 1, "is not one of the choices"),
        ("bowl.file", 3, "is a number; allowed: a path"),
        ("bowl.file", "a\0b", "NUL"),
        (
            "cache.folder",
            "/etc",
            "is an absolute path; allowed: a relative path below the output folder; choose the folder with --out",
        ),
        ("cache.folder", "C:\\temp", "is an absolute path"),
        ("cache.folder", "~/x", "is an absolute path"),
        ("cache.folder", "a/../../b", "climbs out of the output folder"),
        ("cache.folder", "a\\..\\b", "climbs out of the output folder"),
        ("cache.folder", "points/nul.txt", "is a device name"),
        ("cache.names", "position", "is text; allowed: a list of text"),
        ("cache.names", ["position", 3], "is a list; allowed: a list of text"),
        ("sim.substeps", 3, "is a number; allowed: a preset name"),
    ],
)
def test_a_wrong_value_is_named(graph, place, value, message):
    """Each kind of knob says what was given, what is allowed and what to do."""
    node, knob = place.split(".")
    graph.nodes[node].knobs[knob] = value
    found = problems(graph)
    assert list(found) == [place] and message in found[place] and "\n" not in found[place]


def test_optional_values_may_be_null(graph):
    """A knob typed `float | None` takes null."""
    graph.nodes["bowl"].knobs["scale"] = None
    assert validate(graph) == []


def test_a_required_knob_must_be_given(graph):
    """A knob without a default has no value until one is given."""
    del graph.nodes["bowl"].knobs["file"]
    assert "has no value; allowed: a path; give one" in problems(graph)["bowl.file"]


def test_unknown_names_give_the_nearest(graph):
    """Unknown types, knobs, ports, sources and outputs offer near names."""
    graph.nodes["cheese"].knobs["densty"] = 1
    graph.nodes["block"].connect("matter", "cheese")
    graph.nodes["block"].connect("size", "cheese")
    graph.nodes["moved"].connect("particles", "blok")
    graph.nodes["cache"].connect("particles", "sim.partikles")
    graph.nodes["bowl"].type = "reed_mesh"
    found = problems(graph)
    assert "did you mean density" in found["cheese.densty"]
    assert "is not an input port; did you mean material" in found["block.matter"]
    assert "it is a knob" in found["block.size"]
    assert "which does not exist; did you mean block" in found["moved.particles"]
    assert "did you mean particles" in found["cache.particles"]
    assert "did you mean read_mesh" in found["bowl"]
    assert len(found) == 6


def test_a_stage_is_no_node(graph):
    """A stage used as a node is told where it belongs."""
    graph.nodes["bowl"].type = "scatter"
    assert "is a stage; use it in the substeps" in problems(graph)["bowl"].replace("which is a stage", "is a stage")


def test_wrong_types_on_wires_name_what_would_fit(graph):
    """A wire of the wrong type says what it carries, what the port takes, and which outputs fit."""
    graph.nodes["moved"].connect("particles", "cheese")
    graph.nodes["cache"].connect("particles", "sim.mesh")
    found = problems(graph)
    assert "is wired from cheese.material, a Material; allowed: Particles; wire block" in found["moved.particles"]
    assert "a Mesh; allowed: Particles; wire sim.particles" in found["cache.particles"]


def test_missing_and_surplus_wires(graph):
    """A required port without a wire, and a single port with two, are named."""
    graph.nodes["block"].inputs.clear()
    graph.nodes["sim"].connect("sources", [])
    graph.nodes["cache"].connect("particles", ["sim", "moved"])
    found = problems(graph)
    assert found["block.material"] == "block.material: has no wire; wire a Material into it"
    assert "has no wire; wire a Particles | Material into it" in found["sim.sources"]
    assert "has 2 wires; allowed: one wire" in found["cache.particles"]


def test_a_wire_from_a_sink_is_named(graph):
    """A node without outputs cannot be wired from."""
    graph.nodes["moved"].connect("particles", "cache")
    assert "cache, which has no output" in problems(graph)["moved.particles"]


def test_cycles_are_named_along_the_wires(graph):
    """A cycle is spelled out, from its least name on."""
    graph.nodes["moved"].connect("particles", "sim")
    assert problems(graph)["moved"].startswith("moved: lies on a cycle: moved -> sim -> moved")


def test_a_node_on_itself_is_a_cycle(graph):
    """The shortest cycle has one node."""
    graph.nodes["moved"].connect("particles", "moved")
    assert "moved -> moved" in problems(graph)["moved"]


def test_a_bypassed_node_passes_the_port_of_the_same_name(graph):
    """Bypassing `moved` wires the block to the solve."""
    graph.nodes["moved"].bypass = True
    assert validate(graph) == []


def test_a_bypassed_node_without_such_a_port_is_named(graph):
    """A bypassed source passes nothing through; whoever needs it is named, once."""
    graph.nodes["block"].bypass = True
    found = validate(graph)
    assert [problem.place for problem in found] == ["moved.particles"]
    assert "block is bypassed" in str(found[0]) and "an input port of block called particles" in str(found[0])


def test_a_bypassed_source_is_not_there_where_others_remain():
    """Muting one of several, or what nobody must have, takes it away; a solve with nothing to move is refused by both checks."""
    from mpm_nodes import Graph as WholeGraph

    whole = WholeGraph(cell_size=0.1, start=1, end=2)
    jelly = whole.add("material_neo_hookean", "jelly")
    boxes = [whole.add("emit_box", name, material=jelly) for name in ("one", "two")]
    ground = whole.add("collide_plane", "ground")
    whole.add("solve", "fall", sources=boxes, colliders=[ground])
    for name in ("one", "ground"):
        whole.nodes[name].bypass = True
    assert validate(whole) == []
    (fall,) = (planned for planned in plan_graph(whole).nodes if planned.id == "fall")
    assert [source for source, _ in fall.inputs["sources"]] == ["two"] and not fall.inputs["colliders"]
    whole.nodes["two"].bypass = True
    found = validate(whole)
    assert [problem.place for problem in found] == ["fall"]
    assert "has no wire into sources or emitters" in str(found[0]) and "wire something into sources" in str(found[0])


def test_a_bypassed_node_that_passes_another_type_is_refused(registry):
    """What arrives through a bypassed node must fit the port at its end."""
    g = Graph(registry=registry)
    bowl = g.add("read_mesh", "bowl", file="x")
    moved = g.add("move", "moved", particles=bowl)
    g.add("write", "cache", particles=moved)
    g.nodes["moved"].bypass = True
    assert "is wired from bowl.mesh, a Mesh" in problems(g)["cache.particles"]


def test_newer_nodes_and_reversed_frames(graph):
    """A node of a newer package and a shot that ends before it begins are refused."""
    graph.nodes["cheese"].version = 4
    graph.set("settings.start", 10)
    graph.set("settings.end", 9)
    found = problems(graph)
    assert "is version 4 of stuff, this package has 3; install a newer" in found["cheese"]
    assert "lies before the first frame 10" in found["settings.end"]


def test_an_empty_graph_is_refused(registry):
    """There is nothing to cook in a graph without nodes."""
    assert problems(Graph(registry=registry)) == {"nodes": "nodes: holds no node; add nodes"}


@pytest.mark.parametrize(
    ("value", "place", "message"),
    [
        ("simpel", "sim.substeps.preset", "is not a preset; did you mean simple"),
        ("../../etc/passwd", "sim.substeps.preset", "is not a preset"),
        ({"preset": "simple", "set": {"kernle": "cubic"}}, "sim.substeps.kernle", "did you mean kernel"),
        ({"preset": "simple", "set": {"kernel": "cubik"}}, "sim.substeps.gather.kernel", "choose 'cubic'"),
        (
            {"preset": "simple", "set": {"push.by": {"keys": [[1, "x", "step"]]}}},
            "sim.substeps.push.by",
            "at frame 1 is text",
        ),
        ({"preset": "simple", "set": {"choose.cfl": 2}}, "sim.substeps.choose.cfl", "out of range"),
        ({"preset": "simple", "sets": {}}, "sim.substeps.sets", "does not stand beside a preset"),
        ({"nodes": {}}, "sim.substeps", "not a file of format mpm_nodes.substeps"),
        (substeps(push={"type": "pusch", "inputs": {"grid": "scatter"}}), "sim.substeps.push", "did you mean push"),
        (substeps(push={"type": "box"}), "sim.substeps.push", "a node, not a stage"),
        (substeps(push={"type": "push", "inputs": {}}), "sim.substeps.push.grid", "has no wire"),
        (
            substeps(push={"type": "push", "inputs": {"grid": "skatter"}}),
            "sim.substeps.push.grid",
            "did you mean scatter",
        ),
        (
            substeps(push={"type": "push", "inputs": {"grid": "choose"}}),
            "sim.substeps.push.grid",
            "choose.grid, which is not an output",
        ),
        (
            substeps(push={"type": "push", "inputs": {"grid": "scatter.particles"}}),
            "sim.substeps.push.grid",
            "carries particles",
        ),
        (
            substeps(push={"type": "push", "inputs": {"grid": "particles"}}),
            "sim.substeps.push.grid",
            "carries particles",
        ),
        (substeps(push={"type": "push", "inputs": {"grid": "bump"}}), "sim.substeps.bump", "bump -> push -> bump"),
        (substeps(push={"type": "push", "version": 2, "inputs": {"grid": "scatter"}}), "sim.substeps.push", "newer"),
        (substeps(grid={"type": "pass_grid", "inputs": {"grid": "grid"}}), "sim.substeps.grid", "reserved name"),
        (substeps() | {"parameters": {"p": ["push.bye"]}}, "sim.substeps.parameters.p", "did you mean by"),
        (substeps() | {"parameters": {"p": ["pusch.by"]}}, "sim.substeps.parameters.p", "did you mean push"),
        (substeps() | {"version": 9}, "sim.substeps.version", "newer mpm-nodes"),
        (substeps() | {"nodes": {}, "parameters": {}}, "sim.substeps.nodes", "holds no stage"),
    ],
)
def test_bad_substeps_are_named_within_their_node(graph, value, place, message):
    """Problems of a substep graph carry the place of the solve node's knob before their own."""
    graph.nodes["sim"].knobs["substeps"] = copy.deepcopy(value)
    found = problems(graph)
    assert place in found and message in found[place]


def test_good_substeps_are_accepted_in_each_form(graph):
    """A preset name, a preset with settings, and a whole document."""
    for value in (
        "simple",
        {"preset": "simple", "set": {"kernel": "cubic", "push.by": 2}},
        substeps() | {"set": {"cfl": 0.1}},
    ):
        graph.nodes["sim"].knobs["substeps"] = value
        assert validate(graph) == []


def test_all_problems_come_at_once_one_line_each(registry):
    """One error carries everything that is wrong, one line each, exit code 2."""
    raw = {
        "format": "mpm_nodes.graph",
        "version": 1,
        "nodes": {
            "a": {"type": "stuff", "version": 3, "knobs": {"density": -1, "side": "up"}},
            "b": {"type": "box", "knobs": {"count": 100}, "inputs": {"material": "c"}},
            "d": {"type": "bax"},
            "e": {"type": "write", "knobs": {"folder": "../x"}, "inputs": {"particles": "a"}},
        },
    }
    with pytest.raises(GraphError) as caught:
        check(load_graph(raw, registry=registry))
    lines = str(caught.value).splitlines()
    assert len(lines) == len(caught.value.problems) == 7 and caught.value.exit_code == 2
    assert sorted(line.split(":")[0] for line in lines) == [
        "a.density",
        "a.side",
        "b.count",
        "b.material",
        "d",
        "e.folder",
        "e.particles",
    ]


def test_long_values_are_shortened(graph):
    """A message stays readable when the value is a whole page."""
    graph.nodes["cheese"].knobs["side"] = "x" * 1000
    assert len(problems(graph)["cheese.side"]) < 200
