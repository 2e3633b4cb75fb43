"""Surface tension that is painted on matter and in places, by numbers and fields, and what is refused."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from test_surface_tension import H, drop, run_until, solver

from mpm_nodes import Graph
from mpm_nodes.data import Ambient, FrameContext, GraphSettings, MpmNodesError, Particles, SurfaceTension
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.graph.time.keys import KeyedNumber
from mpm_nodes.nodes.attributes import set_attribute
from mpm_nodes.nodes.fields import (
    FieldOperation,
    FieldShape,
    RampForm,
    ShapeOutput,
    constant,
    field_math,
    field_ramp,
    field_shape,
    field_vector,
)
from mpm_nodes.physics.surface_tension.nodes.tension import tension_field
from mpm_nodes.physics.surface_tension.stages.surface_tension import longest_step
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.surroundings import ambient_at, surround

PLAIN = dataclasses.replace(drop().materials[0], surface_tension=SurfaceTension(2.0))
SETTINGS = GraphSettings(cell_size=H, start=1, end=9)


def sampled(run: SubstepSolver) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Run to the tension of the samples; return their places, tensions and owners."""
    run_until(run, "set_tension")
    samples = run.stores["samples"]
    return samples.unpack("position"), samples.unpack("tension"), samples.unpack("owner")


def frame(number: int = 1, told: list[str] | None = None) -> FrameContext:
    """Return the context of a frame; warnings are put on a list."""
    return FrameContext(number, SETTINGS, lambda kind, **facts: (told if told is not None else []).append(facts["message"]))


def scaled(matter: Particles, scale: float) -> Particles:
    """Return matter with a factor on its tension."""
    return set_attribute(matter, frame(), attribute="tension_scale", value=scale)


def test_matter_takes_its_factor_along():
    """Each sample has the factor of its owner, an attribute of the particles; without one none is allocated."""
    scales = np.random.default_rng(3).uniform(0.0, 1.5, 60)
    given = drop(PLAIN, tension_scale=scales)
    run = solver(given, fuse=False)
    _, tension, owner = sampled(run)
    own = run.particles.unpack("tension_scale")[owner]
    np.testing.assert_allclose(tension, 2.0 * own, rtol=1e-12)
    assert np.ptp(own) > 0.5
    run.step(1e-3)
    np.testing.assert_array_equal(run.snapshot()["tension_scale"], scales)
    even = solver(scaled(drop(PLAIN), 0.25), fuse=False)
    np.testing.assert_allclose(sampled(even)[1], 0.5, rtol=1e-12)
    assert "tension_scale" not in solver(drop(PLAIN)).particles.names


def test_paint_limits_the_substep():
    """Capillary waves run with the largest factor of matter and places: dt falls with its root."""
    strong = dataclasses.replace(PLAIN, surface_tension=SurfaceTension(1e4))
    still = {"velocity": np.zeros((60, 3)), "affine": np.zeros((60, 3, 3))}
    run = solver(drop(strong, tension_scale=np.linspace(0.0, 4.0, 60), **still))
    surround(run, (Ambient(tension=Slope(), most_tension=2.25),))
    run.step(time_left=1.0)
    assert run.step_context.limit.name == "capillary wave"
    assert run.step_context.dt == pytest.approx(longest_step(9e4, 1.0, H), rel=1e-3)


class Slope:
    """A factor that grows along x."""

    def at(self, places: np.ndarray) -> np.ndarray:
        """Return the factors at places."""
        return 1.0 + places[:, 0]


def test_a_field_stays_where_it_is():
    """Samples have the factor of their place, times that of their owner; matter that has gone on has another one."""
    run = solver(scaled(drop(PLAIN), 0.5), fuse=False)
    surround(run, (Ambient(tension=Slope(), most_tension=2.0),))
    x, tension, _ = sampled(run)
    np.testing.assert_allclose(tension, 1.0 + x[:, 0], rtol=1e-12)
    assert np.ptp(tension) > 0.1
    run = solver(drop(PLAIN), checked=True)
    surround(run, (Ambient(tension=Slope(), most_tension=2.0),))
    run.step(1e-3)


def test_matter_takes_the_factor_of_a_field():
    """Where it begins; a factor below 0 is raised to it and told."""
    given, told = drop(PLAIN), []
    x = given["position"][:, 0]
    ramp = field_ramp(direction=(1.0, 0.0, 0.0), low=0.0, high=H, from_value=-0.5, to_value=1.5)
    found = set_attribute(given, frame(1, told), ramp, attribute="tension_scale")["tension_scale"]
    np.testing.assert_allclose(found, np.clip(-0.5 + 2.0 * x / H, 0.0, 1.5), atol=1e-12)
    assert len(told) == 1 and "they get 0 at least" in told[0] and (found == 0.0).any() and (found > 1.0).any()


def test_a_field_changes_within_a_frame():
    """Its keys go straight at any moment; the substep is held to the largest factor that it can have at all."""
    painted = KeyedNumber([(1, 2.0, "linear"), (2, 4.0, "linear")])
    inside = field_shape(shape=FieldShape.BALL, radius=1.0)
    mask = tension_field(field_ramp(inside, from_value=0.5, to_value=painted), frame(2))
    for moment, factor in ((1.0, 2.0), (1.5, 3.0), (2.0, 4.0)):
        now = ambient_at([mask], moment)[0].tension
        np.testing.assert_allclose(now.at(np.array([[0.3, 0.1, 0.1], [9.0, 0.0, 0.0]])), [factor, 0.5])
    assert mask.most_tension == 4.0
    assert tension_field(constant(0.25), frame()).most_tension == 0.25


def test_what_lies_below_nothing_is_raised_to_it_and_told():
    """Once, at the first frame; a field that is nowhere above it takes the tension away."""
    told: list[str] = []
    for number in (1, 2):
        field = tension_field(field_ramp(from_value=-0.5, to_value=1.5), frame(number, told))
    assert field.tension.at(np.array([[0.0, -9.0, 0.0], [0.0, 0.5, 0.0], [0.0, 9.0, 0.0]])).tolist() == [0.0, 0.5, 1.5]
    assert field.most_tension == 1.5
    assert told == ["tension_field: values below 0 are raised to it; they may go down to -0.5"]
    none = tension_field(constant(-2.0), frame(2))
    assert none.most_tension == 0.0 and (none.tension.at(np.zeros((1, 3))) == 0.0).all()


ENDLESS = {
    "ramp": lambda: field_ramp(interpolation=RampForm.ENDLESS),
    "distance": lambda: field_shape(output=ShapeOutput.DISTANCE),
    "quotient": lambda: field_math(constant(1.0), field_shape(), operation=FieldOperation.DIVIDE),
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_a_factor_without_a_bound_is_refused(kind):
    """The substep could not be held to it; limited it is taken."""
    with pytest.raises(
        MpmNodesError, match=r"tension_field\.field: can grow without bound; limit it by field_ramp, or by field_math"
    ):
        tension_field(ENDLESS[kind](), frame())
    limited = field_math(ENDLESS[kind](), operation=FieldOperation.MINIMUM, b_value=3.0)
    assert tension_field(limited, frame(2)).most_tension == 3.0
    with pytest.raises(MpmNodesError, match=r"tension_field\.field: is a field of vectors"):
        tension_field(field_vector(), frame())


def test_a_factor_without_a_bound_is_refused_before_the_cook():
    """The preflight knows the field, through arithmetic too."""
    graph = shot("surface_tension")
    ramp = graph.add("field_ramp", "ramp", interpolation="endless")
    graph.nodes["field"].connect("field", graph.add("field_math", "twice", a=ramp, b_value=2.0))
    with pytest.raises(MpmNodesError, match=r"tension_field\.field: can grow without bound"):
        preflight.estimate(plan_graph(graph), 1)


def test_mistakes_are_told():
    """Factors below 0 or not finite, and a field where nothing has a surface: place, value, what is allowed."""
    for wrong in (math.nan, math.inf, -0.5):
        with pytest.raises(MpmNodesError, match=rf"set_attribute\.value: is {wrong:g}; tension_scale lies from 0 to inf"):
            scaled(drop(PLAIN), wrong)
        with pytest.raises(MpmNodesError, match=rf"particle tension_scale must be finite and >= 0; one is {wrong:g}"):
            solver(drop(PLAIN, tension_scale=np.append(np.ones(59), wrong)))
    run = solver(drop(PLAIN), "explicit_apic")
    with pytest.raises(MpmNodesError, match=r"solve\.ambient: a tension field is wired, and these substeps have no surface"):
        surround(run, (Ambient(tension=Slope()),))


def shot(substeps: str) -> Graph:
    """Return a graph of a drop in a field: a quarter of the tension on one side."""
    graph = Graph(cell_size=H, fps=24.0, start=1, end=2)
    matter = graph.add("material_liquid", "matter", bulk_modulus=100.0, density=1.0)
    tense = graph.add("material_surface_tension", "tense", material=matter, tension=1.0)
    ball = graph.add("emit_sphere", "ball", material=tense, radius=2 * H)
    knobs = {"direction": (1.0, 0.0, 0.0), "low": -0.1 * H, "high": 0.1 * H, "from_value": 0.25}
    field = graph.add("tension_field", "field", field=graph.add("field_ramp", "sides", **knobs))
    solved = graph.add("solve", "sim", sources=[ball], ambient=[field], substeps=substeps, gravity=(0.0, 0.0, 0.0))
    graph.add("write_cache", "cache", particles=solved["particles"])
    return graph


def test_a_graph_carries_the_field_to_the_surface(tmp_path):
    """Matter moves otherwise with the field than without it; where nothing has a surface it is refused before the cook."""
    moved = []
    for wired in (True, False):
        graph = shot("surface_tension")
        if not wired:
            graph.nodes["sim"].inputs.pop("ambient")
        execute(graph, out=tmp_path / str(wired))
        from usd_io.stage_reader import read_points

        moved.append(read_points(next((tmp_path / str(wired)).rglob("cache.usda")), 2)["position"])
    assert np.abs(moved[0] - moved[1]).max() > 1e-4 * H
    graph = shot("explicit_apic")
    with pytest.raises(MpmNodesError, match=r"sim: solve\.ambient: a tension field is wired"):
        preflight.estimate(plan_graph(graph), 1)


def test_a_tension_without_a_surface_is_told():
    """Substeps that have no surface warn of a material with a tension; those that have one do not."""
    told = {}
    for preset in ("explicit_apic", "surface_tension"):
        graph = shot(preset)
        graph.nodes["sim"].inputs.pop("ambient")
        graph.nodes.pop("field")
        told[preset] = " ".join(text for _, text in preflight.warnings_of(preflight.estimate(plan_graph(graph), 1)))
    assert "has a surface tension, and these substeps have no surface" in told["explicit_apic"]
    assert "no surface" not in told["surface_tension"]
