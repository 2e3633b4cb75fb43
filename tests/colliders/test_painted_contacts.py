"""Friction and adhesion that fields vary over a collider, in explicit and implicit substeps, and what is refused."""

from __future__ import annotations

import pytest

from mpm_nodes import Graph
from mpm_nodes.data import MpmNodesError
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph

FRICTION, SPEED, FRAMES = 0.4, 2.0, 7


def shot(substeps: str, port: str = "friction", **plane) -> Graph:
    """Return a graph of two stiff cubes that slide side by side over a floor, which a field makes slippery where x < 0."""
    graph = Graph(cell_size=0.05, fps=48.0, start=1, end=FRAMES)
    matter = graph.add("material_neo_hookean", "matter", youngs_modulus=2e5, density=1000.0)
    cubes = [
        graph.add("emit_box", name, material=matter, size=(0.2,) * 3, centre=(x, 0.1, 0.0), velocity=(0.0, 0.0, SPEED))
        for name, x in (("left", -0.3), ("right", 0.3))
    ]
    floor = graph.add("collide_plane", "floor", rule="separate", **plane)
    half = graph.add("field_ramp", "half", direction=(1.0, 0.0, 0.0), low=-0.01, high=0.01)
    painted = graph.add("collider_contact", "painted", collider=floor, **{port: half})
    graph.add("solve", "sim", sources=cubes, colliders=[painted], substeps=substeps)
    return graph


@pytest.mark.parametrize("substeps", ["explicit_apic", "implicit_apic"])
def test_one_half_of_a_floor_is_ice(substeps):
    """Where the factor is 0 a cube keeps its speed to 1 %, where it is 1 it loses mu g t to 10 %, as on a floor of one friction."""
    found = Evaluator(shot(substeps, friction=FRICTION)).value("sim.particles", FRAMES)
    speed, left = found["velocity"][:, 2], found["position"][:, 0] < 0.0
    lost = FRICTION * 9.81 * (FRAMES - 1) / 48.0
    assert speed[left].mean() == pytest.approx(SPEED, rel=0.01)
    assert SPEED - speed[~left].mean() == pytest.approx(lost, rel=0.1)


def test_one_half_of_a_ceiling_holds():
    """Matter hangs where the factor on the adhesion is 1, and falls where it is 0."""
    graph = shot("explicit_apic", "adhesion", friction=FRICTION, adhesion=5e4, centre=(0.0, 0.2, 0.0), rotation=(180.0, 0.0, 0.0))
    for name in ("left", "right"):
        graph.set(f"{name}.velocity", (0.0, 0.0, 0.0))
    found = Evaluator(graph).value("sim.particles", FRAMES)
    height, left = found["position"][:, 1], found["position"][:, 0] < 0.0
    fallen = 0.5 * 9.81 * ((FRAMES - 1) / 48.0) ** 2
    assert 0.1 - height[left].mean() == pytest.approx(fallen, rel=0.1)
    assert abs(0.1 - height[~left].mean()) < 0.2 * fallen


@pytest.mark.phenomena("projection")
def test_the_projection_refuses_it_before_the_cook():
    """Its contacts are those of faces."""
    with pytest.raises(MpmNodesError, match=r"solve\.colliders: collider_contact varies one, and these substeps do not find it"):
        preflight.estimate(plan_graph(shot("incompressible", friction=FRICTION)), 1)
