"""What materials and bodies say and no substep reads is told before a cook, also behind nodes that change a material."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpm_nodes import Graph
from mpm_nodes.data import MpmNodesError
from mpm_nodes.graph.declare.declarations import NodeDeclaration
from mpm_nodes.graph.declare.registry import nodes
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph

pytestmark = pytest.mark.phenomena("foam", "heat", "melting", "projection", "rigid_bodies", "separate_bodies", "surface_tension")

HEAT, PLAIN = "explicit_heat", "explicit_apic"


def told(graph: Graph) -> list[str]:
    """Return what is warned of before a cook."""
    return [text for _, text in preflight.warnings_of(preflight.estimate(plan_graph(graph), graph.settings.start))]


def scene(make, substeps: str, hot: bool = False, **temperature) -> Graph:
    """Return a small cube of what `make` adds to the graph, above a plate that may be hot."""
    graph = Graph(cell_size=0.02, start=1, end=2)
    body = graph.add("emit_box", "body", material=make(graph), size=(0.08, 0.08, 0.08))
    if temperature:
        body = graph.add("set_temperature", "temperature", particles=body, **temperature)
    plate = graph.add("collide_plane", "plate")
    if hot:
        plate = graph.add("collider_temperature", "hot", collider=plate, temperature=400.0)
        plate = graph.add("collider_contact_angle", "wet", collider=plate)
    graph.add("solve", "solve", sources=[body], colliders=[plate], substeps=substeps)
    return graph


def solid(graph: Graph, name: str = "solid"):
    """Add an elastic material."""
    return graph.add("material_neo_hookean", name, label=name)


def endless(graph: Graph, material, name: str = "endless"):
    """Add an infinite bulk modulus to a material."""
    return graph.add("material_bulk_modulus", name, material=material)


def thermal(graph: Graph, material=None, **knobs):
    """Add thermal parameters to a material."""
    return graph.add("material_thermal", "thermal", material=material or solid(graph), **knobs)


@pytest.mark.parametrize(
    "wrap", ["material_thermal", "material_surface_tension", "material_tearing", "material_viscosity", "material_over_temperature"]
)
def test_a_bulk_modulus_is_told_behind_every_node_that_changes_a_material(wrap):
    """An infinite lam without a projection is refused before the cook, whatever stands between it and the emitter."""
    graph = scene(lambda g: g.add(wrap, "wrap", material=endless(g, solid(g))), PLAIN)
    with pytest.raises(MpmNodesError, match=r"solve: material solid: its bulk modulus of infinity is for projections"):
        told(graph)


def test_a_bulk_modulus_of_a_melt_is_told():
    """So is one of what the matter becomes."""

    def make(graph):
        return thermal(graph, melt=endless(graph, graph.add("material_liquid", "melt", label="melt")), freezing_temperature=300.0)

    with pytest.raises(MpmNodesError, match=r"solve: material melt: its bulk modulus of infinity"):
        told(scene(make, HEAT))
    assert told(scene(make, "melting")) == []


def test_a_solute_that_spreads_is_told():
    """A diffusivity without a stage that lets it spread is refused before the cook."""

    def make(graph):
        tense = graph.add("material_surface_tension", "tense", material=graph.add("material_liquid", "water"))
        return graph.add("material_surfactant", "soap", material=tense, diffusivity=1e-6)

    with pytest.raises(MpmNodesError, match=r"solve: material .*diffusivity of 1e-06 m\^2/s"):
        told(scene(make, "surface_tension"))
    assert told(scene(make, "surface_tension_solute")) == []


def test_matter_without_thermal_parameters_is_told_where_heat_is_carried():
    """It would be refused in the first substep, after its emitter has run."""
    with pytest.raises(MpmNodesError, match=r"solve: material solid: has no thermal parameters.*material_thermal"):
        told(scene(solid, HEAT))
    assert told(scene(thermal, HEAT)) == []


def test_thermal_parameters_and_hot_bodies_without_heat_are_warned_of():
    """Both have no effect in substeps without heat: each says so once, and what the collider's node tells is passed on."""
    (text,) = told(scene(thermal, PLAIN))
    assert "material solid has thermal parameters" in text and "explicit_heat" in text
    (text,) = told(scene(solid, PLAIN, hot=True))
    assert "collider has a temperature" in text and "explicit_heat" in text
    assert told(scene(thermal, HEAT, hot=True)) == [] and told(scene(solid, PLAIN)) == []


def two_liquids(graph: Graph, other: str, named: str = "water", read: Path | None = None) -> Graph:
    """Return oil with a tension against `named`, beside a liquid of the label `other`, or the points of a file."""
    oil = graph.add("material_liquid", "oil", label="oil")
    pair = graph.add("material_interface_tension", "pair", material=oil, other=named)
    water = graph.add("material_liquid", "water", label=other)
    boxes = [graph.add("emit_box", f"box{n}", material=each, centre=(0.2 * n, 0.5, 0.0)) for n, each in enumerate((pair, water))]
    if read is not None:
        boxes[1] = graph.add(
            "set_attribute", "soap", particles=graph.add("read_points", "read", path=read), attribute="concentration"
        )
    graph.add("solve", "solve", sources=boxes, substeps="surface_tension")
    return graph


def test_a_pair_with_matter_that_is_not_there_is_told(tmp_path):
    """The label is looked for among all matter before the cook, unless some of it is not known then."""
    assert told(two_liquids(Graph(cell_size=0.02, start=1, end=2), "water")) == []
    with pytest.raises(
        MpmNodesError, match=r"solve: material oil: has a tension against 'water', and no other material.*: 'syrup'"
    ):
        told(two_liquids(Graph(cell_size=0.02, start=1, end=2), "syrup"))
    (tmp_path / "empty.usda").write_text("#usda 1.0\n")
    assert told(two_liquids(Graph(cell_size=0.02, start=1, end=2), "syrup", read=tmp_path / "empty.usda")) == []


@pytest.mark.parametrize("emitter", [None, "emit_drops", "emit_stream", "merge_particles"])
def test_a_factor_on_no_tension_is_warned_of(emitter):
    """Painted matter without a surface tension, also behind what repeats and joins it, where substeps have a surface."""

    def painted(tense: bool) -> list[str]:
        graph = Graph(cell_size=0.02, start=1, end=2)
        water = graph.add("material_liquid", "water", label="water")
        if tense:
            water = graph.add("material_surface_tension", "tense", material=water)
        box = graph.add("emit_box", "box", material=water, size=(0.08, 0.08, 0.08))
        scaled = graph.add("set_attribute", "scaled", particles=box, attribute="tension_scale", value=0.5)
        ports = {"sources": [scaled]}
        if emitter == "merge_particles":
            ports = {"sources": [graph.add(emitter, "more", sources=[scaled])]}
        elif emitter is not None:
            ports = {"emitters": [graph.add(emitter, "more", template=scaled)]}
        graph.add("solve", "solve", substeps="surface_tension", **ports)
        return [text for text in told(graph) if "tension" in text]

    (text,) = painted(tense=False)
    assert "matter has a factor on its tension, and no material has a surface tension; wire material_surface_tension" in text
    assert painted(tense=True) == []


@pytest.mark.parametrize(
    ("knobs", "says"),
    [
        ({"temperature": 300.0, "noise": 301.0}, r"set_temperature.noise: 301 K around 300 K reaches below 0 K"),
        ({"temperature": 300.0, "ramp": "x", "far_temperature": 5.0, "noise": 6.0}, r"6 K around 5 K reaches below 0 K"),
        ({"freezing_variation": 280.0}, r"280 K around the 270 K at which material solid freezes reaches down to 0 K"),
    ],
)
def test_temperatures_that_reach_below_absolute_zero_are_told(knobs, says):
    """Noise and freezing ranges that leave the scale of kelvin are refused before the cook."""
    with pytest.raises(MpmNodesError, match=says):
        told(scene(lambda g: thermal(g, freezing_temperature=270.0), HEAT, **knobs))


def test_what_stays_above_absolute_zero_passes():
    """The largest noise and variation that fit."""
    fitting = {"temperature": 300.0, "noise": 300.0, "freezing_variation": 269.0}
    assert told(scene(lambda g: thermal(g, freezing_temperature=270.0), HEAT, **fitting)) == []


@pytest.mark.parametrize(
    "declaration",
    [d for d in nodes().values() if d.outputs[0].type.__name__ == "Material" and d.port("material") is not None],
    ids=lambda d: d.id,
)
def test_every_node_that_changes_a_material_tells_of_it(declaration: NodeDeclaration):
    """One without a preflight would hide the material from the solve's checks."""
    assert declaration.preflight is not None


def test_sand_that_comes_in_lines_is_told_and_what_evens_out_is_not():
    """A stream of sand without jitter; with it, or of a liquid, nothing is said."""

    def pours(name: str, **knobs) -> list[str]:
        graph = Graph(cell_size=0.02, start=1, end=2)
        matter = graph.add("material_library", "matter", name=name)
        disc = graph.add("emit_box", "disc", material=matter, size=(0.08, 0.02, 0.08))
        graph.add("solve", "solve", emitters=[graph.add("emit_stream", "stream", template=disc, **knobs)])
        return [text for text in told(graph) if "emit_stream.jitter" in text]

    assert pours("sand") == [
        "emit_stream.jitter: 'Sand' comes in straight lines of particles, and lies in ridges where it spreads; give 1"
    ]
    assert not pours("sand", jitter=1.0) and not pours("honey")
