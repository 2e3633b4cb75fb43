"""Forces that are wired into a solve: what they do, tell and limit, in a cook as in a solver of one's own."""

from __future__ import annotations

import dataclasses
import math

import numba
import numpy as np
import pytest
from solver_scenes import JELLY, cube, shot

from mpm_nodes.data import BodyForce, GraphSettings, MpmNodesError, SpatialField, concatenate
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.graph.plan.preflight import estimate
from mpm_nodes.graph.reports.problems import GraphError
from mpm_nodes.graph.time.keys import KeyedNumber, KeyedVector
from mpm_nodes.nodes.emit import emit_box
from mpm_nodes.nodes.fields import FieldShape, constant, field_noise, field_shape
from mpm_nodes.nodes.forces import drain, force_acceleration, force_air, force_attraction, force_vortex, force_wind
from mpm_nodes.nodes.rotations import rotation_matrix
from mpm_nodes.solver.field_programs import field_values
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.surroundings import push
from mpm_nodes.verification.forces import AirDrag, CentralForces, FlowAlongCurve, ImpulseAndWork, NoiseOfFields
from mpm_nodes.verification.scenes import block

FREE = {"dtype": np.float64, "gravity": (0.0, 0.0, 0.0), "dt_max": 1e-3}
EVERY = (
    force_vortex(strength=30.0, inward=10.0, speed_limit=2.0),
    force_attraction(centre=(0.0, 1.0, 0.0), strength=20.0, falloff=2.0, mask=field_shape(radius=2.0, falloff=0.5)),
    force_wind(velocity=(1.0, 0.0, 0.0), drag=3.0, quadratic=True),
    force_air(velocity=(0.0, 0.0, 15.0), density=20.0),
)


def pushed(*forces: BodyForce, substeps: object = "explicit_apic", **options: object) -> SubstepSolver:
    run = SubstepSolver(cube(JELLY), substeps, **{**FREE, **options})
    push(run, forces)
    return run


@pytest.mark.parametrize("problem", [ImpulseAndWork, CentralForces, AirDrag, FlowAlongCurve, NoiseOfFields])
def test_closed_forms(problem):
    """Impulse, work, drag, oscillations, torque, noise."""
    for record in problem().records():
        assert record.passed or record.name.partition(" ")[2] in problem.misses, record


def test_air_stays_outside_of_matter():
    """On a cube of 8^3 cells with particles at random it presses with less than 1.25 of its force, where inside it would double."""
    start = block(JELLY, (0.03,) * 3, (0.83,) * 3, 0.1, jitter=1.0, seed=3)
    run = SubstepSolver(start, "explicit_apic", cell_size=0.1, origin=(0.0, 0.0, 0.0), **FREE)
    push(run, [force_air(velocity=(20.0, 0.0, 0.0), density=1.2)])
    run.step(1e-4)
    impulse = run.step_context.report["forces"]["impulse"]
    assert 1.0 < impulse[0] / (0.5 * 1.2 * 0.8**2 * 20.0**2 * 1e-4) < 1.25 and impulse[1:] == (0.0, 0.0)


@pytest.mark.parametrize("cells", [1.0, 2.0])
@pytest.mark.parametrize("off", [0.0, 0.25, 0.6, 2.3])
def test_a_layer_takes_the_force_of_its_area(cells, off):
    """Wherever a plate of 16 x 16 cells lies in cells and blocks, one cell thick or two, to a twelfth at its edges."""
    start = block(JELLY, (0.1 * off,) * 3, (0.1 * (off + cells), 0.1 * off + 1.6, 0.1 * off + 1.6), 0.1)
    run = SubstepSolver(start, "explicit_apic", cell_size=0.1, origin=(0.0, 0.0, 0.0), **FREE)
    push(run, [force_air(velocity=(20.0, 0.0, 0.0), density=1.2)])
    run.step(1e-5)
    impulse = run.step_context.report["forces"]["impulse"]
    assert impulse[0] / (0.5 * 1.2 * 1.6**2 * 20.0**2 * 1e-5) == pytest.approx(1.0, abs=1.0 / 12.0)


def test_air_presses_on_matter_of_few_particles():
    """One particle a cell, turned against the cells: to a seventh, where gaps between samples would let wind through."""
    start = emit_box(GraphSettings(cell_size=0.2), JELLY, size=(0.8, 0.8, 0.8), centre=(0.0, 0.0, 0.0), rotation=(20.0, 30.0, 40.0))
    run = SubstepSolver(start, "explicit_apic", cell_size=0.1, origin=(0.0, 0.0, 0.0), **FREE)
    push(run, [force_air(velocity=tuple(20.0 * rotation_matrix((20.0, 30.0, 40.0))[:, 0]), density=1.2)])
    run.step(1e-5)
    impulse = np.linalg.norm(run.step_context.report["forces"]["impulse"])
    assert impulse / (0.5 * 1.2 * 0.8**2 * 20.0**2 * 1e-5) == pytest.approx(1.0, abs=1.0 / 7.0)


def test_a_speed_limit_stops_what_pushes_and_slows_nothing_down():
    """Matter comes to the limit and stays there; what is faster already stays as fast."""
    run = pushed(force_acceleration(acceleration=(30.0, 0.0, 0.0), speed_limit=1.0))
    run.advance(0.1)
    assert run.particles.unpack("velocity")[:, 0].mean() == pytest.approx(1.0, rel=1e-3)
    fast = cube(JELLY)
    fast = dataclasses.replace(fast, attributes={**fast.attributes, "velocity": np.tile([0.0, 5.0, 0.0], (len(fast), 1))})
    run = SubstepSolver(fast, "explicit_apic", **FREE)
    push(run, [force_acceleration(acceleration=(0.0, 30.0, 0.0), speed_limit=1.0)])
    run.advance(0.02)
    assert run.particles.unpack("velocity")[:, 1] == pytest.approx(5.0, rel=1e-9)


def flying(*velocity: float) -> SubstepSolver:
    fast = cube(JELLY)
    moving = np.tile(np.asarray(velocity), (len(fast), 1))
    return SubstepSolver(dataclasses.replace(fast, attributes={**fast.attributes, "velocity": moving}), "explicit_apic", **FREE)


@pytest.mark.parametrize("quadratic", [False, True])
def test_a_speed_limit_stops_wind_and_leaves_drag(quadratic):
    """Wind of 10 m/s: v = 10 - 10 s(t) until 2 m/s, and no faster; 15 m/s fall to 10 + 5 s, 6 m/s against it as without a limit."""
    wind = {"velocity": (10.0, 0.0, 0.0), "drag": 0.5 if quadratic else 5.0, "quadratic": quadratic}

    def left(off: float, time: float) -> float:
        return 1.0 / (1.0 + 0.5 * off * time) if quadratic else math.exp(-5.0 * time)

    for start, time, ends in (
        (0.0, 0.02, 10.0 - 10.0 * left(10.0, 0.02)),
        (0.0, 0.2, 2.0),
        (5.0, 0.05, 5.0),
        (15.0, 0.05, 10.0 + 5.0 * left(5.0, 0.05)),
        (-6.0, 0.02, 10.0 - 16.0 * left(16.0, 0.02)),
    ):
        run = flying(start, 0.0, 0.0)
        push(run, [force_wind(speed_limit=2.0, **wind)])
        run.advance(time)
        assert run.particles.unpack("velocity")[:, 0] == pytest.approx(ends, rel=1e-6), start


def test_a_speed_limit_of_wind_takes_keys():
    """A strong wind brings matter to what keys say at the time: 1 m/s at frame 1, 2 m/s a second later."""
    limit = KeyedNumber(((1.0, 1.0, "linear"), (25.0, 2.0, "linear")))
    run = pushed(force_wind(velocity=(10.0, 0.0, 0.0), drag=200.0, speed_limit=limit))
    run.step_context.frame_at = lambda time: 1.0 + 24.0 * time
    for time in (0.25, 0.5):
        run.advance(time - run.time)
        assert run.particles.unpack("velocity")[:, 0] == pytest.approx(1.0 + time, abs=1e-3)


@pytest.mark.parametrize(("speed", "share"), [(0.3, 0.0), (-0.3, 1.0), (0.0, 1.0)])
def test_a_speed_limit_stops_air_drag(speed, share):
    """Air of 20 m/s does not push a cube that is faster than the limit; one that flies against it or rests it pushes as ever."""
    impulse = []
    for limit in (0.2, 0.0):
        run = flying(speed, 0.0, 0.0)
        push(run, [force_air(velocity=(20.0, 0.0, 0.0), density=1.2, speed_limit=limit)])
        run.step(1e-4)
        impulse.append(run.step_context.report["forces"]["impulse"][0])
    assert impulse[1] > 0.0 and impulse[0] == pytest.approx(share * impulse[1], abs=1e-12)


def test_a_mask_says_where():
    """A half space at the cube's middle: the impulse is that of the mass above it."""
    run = pushed(
        force_acceleration(acceleration=(0.0, 0.0, 7.0), mask=field_shape(shape=FieldShape.HALF_SPACE, rotation=(180.0, 0.0, 0.0)))
    )
    y = run.particles.unpack("position")[:, 1]
    expected = 7.0 * 1e-3 * run.particles.unpack("mass")[y > 0.0].sum()
    run.step(1e-3)
    assert run.step_context.report["forces"]["impulse"] == pytest.approx((0.0, 0.0, expected), rel=1e-12)


@pytest.mark.phenomena("projection")
def test_a_strong_force_shortens_the_step():
    """At rest matter moves a quarter of a cell by it at most, and the report says what held the step."""
    run = pushed(force_acceleration(acceleration=(0.0, 2e3, 0.0)), substeps="incompressible", dt_max=0.01)
    dt = run.step()
    assert dt <= math.sqrt(0.25 * run.cell_size / 2e3) and run.step_context.limit.name == "force"
    assert "weaken the force" in run.advice("force")


def test_blocks_threads_and_fusion_change_nothing():
    """The same bits on one thread and on two; fused as not, to rounding; and checked mode finds nothing."""
    found = []
    for threads, options in ((1, {}), (2, {}), (2, {"fuse": False}), (2, {"checked": True})):
        before = numba.get_num_threads()
        numba.set_num_threads(min(threads, before))
        run = pushed(*EVERY, **options)
        for _ in range(5):
            run.step(1e-3)
        numba.set_num_threads(before)
        found.append(run.particles.unpack("velocity"))
    assert np.array_equal(found[0], found[1])
    for other in found[2:]:
        assert np.abs(other - found[0]).max() < 1e-12 * np.abs(found[0]).max()


def test_keys_are_taken_in_the_middle_of_the_substep():
    """A strength that rises over a frame gives the integral of it."""
    rising = KeyedNumber(((0.0, 0.0, "linear"), (1.0, 8.0, "linear")))
    run = pushed(force_attraction(centre=(1e6, 0.0, 0.0), strength=rising))
    run.step_context.frame_at = lambda time: time / 0.02
    run.advance(0.02)
    assert run.particles.unpack("velocity")[:, 0] == pytest.approx(0.5 * 8.0 * 0.02, rel=1e-6)


def test_graphs_without_the_stage_are_refused_with_the_cure():
    """In a solver, and before a cook."""
    substeps = {"preset": "explicit_apic", "edits": [{"remove": "apply_forces"}]}
    with pytest.raises(MpmNodesError, match="wire apply_forces behind choose_time_step"):
        pushed(EVERY[0], substeps=substeps)
    graph = shot(end=2)
    graph.nodes["sim"].connect("forces", [graph.add("force_wind", "wind")])
    graph.set("sim.substeps", substeps)
    with pytest.raises((MpmNodesError, GraphError), match="wire apply_forces behind choose_time_step"):
        execute(graph, out=None)


def test_a_field_that_is_not_finite_is_named():
    """A force by its node."""
    broken = BodyForce(SpatialField("DIVIDE", (constant((1e300, 0.0, 0.0)), constant(1e-300)), vector=True), name="gale")
    with pytest.raises(MpmNodesError, match="force gale: is not finite"):
        pushed(broken).step(1e-3)


def test_a_cook_tells_what_forces_gave_and_goes_on_with_the_same_bits(tmp_path):
    """An event a frame, with an impulse and a work for each wire; a resumed cook writes the same."""
    graph = shot(end=5, size=0.2, cell_size=0.05)
    gusts = graph.add("field_noise", "gusts", kind="curl", size=0.2, evolution=3.0)
    wind = graph.add("force_wind", "wind", field=gusts, velocity=(2.0, 0.0, 0.0), drag=4.0)
    keys = [[1, [0.0, 4.0, 0.0], "linear"], [4, [0.0, 12.0, 0.0], "linear"]]
    lift = graph.add("force_acceleration", "lift", acceleration={"keys": keys})
    graph.nodes["sim"].connect("forces", [wind, lift])
    graph.add("write_cache", "cache", particles=graph["sim"])
    events = []
    execute(graph, out=tmp_path / "whole", on_event=events.append)
    told = [event for event in events if event["event"] == "forces"]
    assert len(told) == 4 and all(len(event["impulse"]) == 6 and len(event["work"]) == 2 for event in told)
    assert told[0]["impulse"][0] > 0.0 and told[2]["impulse"][4] > told[0]["impulse"][4] > 0.0
    execute(graph, out=tmp_path / "cut", frames=(1, 3))
    execute(graph, out=tmp_path / "cut", frames=(1, 5), resume=True)
    points = [[file.read_bytes() for file in sorted((tmp_path / each).rglob("cache.*.usdc"))] for each in ("whole", "cut")]
    assert len(points[0]) >= 5 and points[0] == points[1]


def test_programs_share_what_fields_share_and_have_an_end():
    """A field that two take is found once; more than 512 operations are refused in words."""
    from mpm_nodes.solver.field_programs import program_of_fields

    ball = field_shape()
    program = program_of_fields([ball, SpatialField("ADD", (ball, constant(1.0)))], 1.0)
    assert len(program.operations) == 30 and program.registers == (4, 5) and program.uniform == 1
    sum_of_many = constant(0.0)
    for _ in range(2000):
        sum_of_many = SpatialField("ADD", (sum_of_many, constant(1.0)))
    with pytest.raises(MpmNodesError, match="at most 512"):
        program_of_fields([sum_of_many], 1.0)


def test_operations_give_what_their_names_say():
    """Against NumPy, on numbers and vectors."""
    random = np.random.default_rng(0)
    places = random.normal(size=(500, 3))
    p, n = SpatialField("PLACE", vector=True), constant((0.5, -2.0, 0.25))
    v = np.array([0.5, -2.0, 0.25])
    length = np.linalg.norm(places, axis=1)
    expected = {
        "ADD": places + v,
        "SUBTRACT": places - v,
        "MULTIPLY": places * v,
        "DIVIDE": places / v,
        "MINIMUM": np.minimum(places, v),
        "MAXIMUM": np.maximum(places, v),
        "POWER": np.sign(places) * np.abs(places) ** v,
        "CROSS": np.cross(places, v),
        "DOT": np.repeat((places @ v)[:, None], 3, axis=1),
    }
    for name, values in expected.items():
        np.testing.assert_allclose(
            field_values(SpatialField(name, (p, n), vector=True), places, 1.0), values, rtol=1e-12, atol=1e-12
        )
    np.testing.assert_allclose(field_values(SpatialField("LENGTH", (p,)), places, 1.0), length, rtol=1e-14)
    np.testing.assert_allclose(
        field_values(SpatialField("NORMALIZE", (p,), vector=True), places, 1.0), places / length[:, None], rtol=1e-13
    )
    np.testing.assert_allclose(field_values(SpatialField("ABSOLUTE", (p,), vector=True), places, 1.0), abs(places))
    mixed = field_values(SpatialField("MIX", (p, n, constant(0.25)), vector=True), places, 1.0)
    np.testing.assert_allclose(mixed, places + 0.25 * (v - places), rtol=1e-12, atol=1e-14)
    assert field_values(SpatialField("DIVIDE", (constant(1.0), constant(0.0))), places[:2], 1.0) == pytest.approx([0.0, 0.0])


def test_keyed_vectors_move_what_they_place():
    """A ball whose centre has keys is where they say."""
    centre = KeyedVector(((1.0, (0.0, 0.0, 0.0), "linear"), (3.0, (2.0, 0.0, 0.0), "linear")))
    ball = field_shape(centre=centre, radius=0.5)
    places = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    assert [list(field_values(ball, places, frame)) for frame in (1.0, 2.0, 3.0)] == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


# ---------------------------------------------------------------- drains
def test_a_drain_takes_what_comes_into_it_and_tells_how_much():
    """A cube falls through a slab: its mass goes, in whole particles, and the books close."""
    run = pushed(force_acceleration(acceleration=(0.0, -9.0, 0.0)))
    slab = drain(field_shape(shape=FieldShape.BOX, centre=(0.0, -0.3, 0.0), size=(9.0, 0.2, 9.0)))
    run.step_context.drains = (drain(constant(0.0)), slab)
    mass, taken = run.particles.unpack("mass").sum(), 0.0
    while run.time < 0.28:
        run.step()
        run.step_context.frame += 1  # facts are those of a frame
        taken += run.step_context.report.get("drained", {"mass": (0.0, 0.0)})["mass"][1]
    left = run.particles.unpack("mass").sum()
    assert 0.0 < left < mass and taken + left == pytest.approx(mass, rel=1e-12)
    y = run.particles.unpack("position")[:, 1]
    assert not ((y > -0.4) & (y < -0.2)).any()


def test_a_cook_with_a_drain_resumes_to_the_same_bits(tmp_path):
    """Of a stream that ends in a sink; an event says what it took, and in several drains a particle counts once."""
    graph = shot(end=6, size=0.2, cell_size=0.05, velocity=(0.0, -6.0, 0.0))
    sink = graph.add("field_shape", "sink", centre=(0.0, 0.6, 0.0), radius=0.25)
    graph.nodes["sim"].connect("drains", [graph.add("drain", name, field=sink) for name in ("one", "two")])
    graph.add("write_cache", "cache", particles=graph["sim"])
    events = []
    execute(graph, out=tmp_path / "whole", on_event=events.append)
    told = [event for event in events if event["event"] == "drained"]
    assert sum(event["particles"][0] for event in told) > 100 and all(event["particles"][1] == 0 for event in told)
    execute(graph, out=tmp_path / "cut", frames=(1, 4))
    execute(graph, out=tmp_path / "cut", frames=(1, 6), resume=True)
    points = [[file.read_bytes() for file in sorted((tmp_path / each).rglob("cache.*.usdc"))] for each in ("whole", "cut")]
    assert len(points[0]) >= 6 and points[0] == points[1]


# ---------------------------------------------------------------- what a tester found
def blown(run: SubstepSolver) -> float:
    """Return the impulse of a wind of 10 m/s along x in 0.1 ms, over that on a square of 0.3 m."""
    push(run, [force_air(velocity=(10.0, 0.0, 0.0), density=2.0)])
    run.step(1e-4)
    return run.step_context.report["forces"]["impulse"][0] / (0.3**2 * 100.0 * 1e-4)


@pytest.mark.phenomena("separate_bodies")
def test_air_sees_matter_of_other_bodies():
    """Two cubes that touch, as bodies of their own, shield each other as one."""
    cubes = [block(JELLY, (0.3 * n, 0.0, 0.0), (0.3 * n + 0.3, 0.3, 0.3), 0.1, seed=n) for n in range(2)]
    apart = [dataclasses.replace(each, materials=(dataclasses.replace(JELLY, label=str(n)),)) for n, each in enumerate(cubes)]
    run = SubstepSolver(concatenate(apart), "separate_bodies", cell_size=0.1, origin=(0.0, 0.0, 0.0), **FREE)
    assert blown(run) == pytest.approx(1.0, rel=0.01)


def test_air_is_refused_on_several_ranks(monkeypatch):
    """Each rank knows its own matter alone: a cut would be a surface."""
    run = pushed()
    monkeypatch.setattr(type(run.share), "several", True)
    with pytest.raises(MpmNodesError, match="ranks: force_air sees the matter of one rank only"):
        push(run, [force_air()])
    graph = shot(end=2)
    graph.add("force_air", "air", velocity=(5.0, 0.0, 0.0))
    graph.nodes["sim"].connect("forces", [graph["air"]])
    assert estimate(plan_graph(graph), 1)
    with pytest.raises(MpmNodesError, match="ranks: force_air sees the matter of one rank only"):
        estimate(plan_graph(graph), 1, ranks=2)


@pytest.mark.parametrize("preset", ["explicit_apic", "implicit_apic"])
def test_a_force_that_begins_within_a_frame_shortens_the_step_before_it(preset):
    """A blast for two fifths of a frame, by keys that step within it."""
    keys = KeyedNumber(((1.0, 0.0, "step"), (3.5, -2e4, "step"), (3.9, 0.0, "step")))
    run = pushed(force_attraction(strength=keys, radius=0.3), substeps=preset, dt_max=0.01)
    run.step_context.frame_at = lambda time: 1.0 + 24.0 * time
    run.advance(0.12)
    assert np.isfinite(run.particles.unpack("velocity")).all()


DRAGS = [force_wind(velocity=(300.0, 0.0, 0.0), drag=1e4), force_air(velocity=(300.0, 0.0, 0.0), density=100.0)]


@pytest.mark.parametrize("force", DRAGS, ids=["wind", "air"])
def test_a_drag_shortens_the_step(force):
    """What is drawn along at 300 m/s moves by a third of a cell in its first step, and the report says what held it."""
    run = pushed(force, dt_max=0.01)
    before = run.snapshot()["position"]
    run.step()
    assert np.abs(run.snapshot()["position"] - before).max() < run.cell_size / 3.0
    assert run.step_context.limit.name == "force"


def test_noise_evolves_before_frame_0():
    """A shot from -40 has gusts, too."""
    noise = field_noise(GraphSettings(), size=0.5, evolution=5.0)
    places = np.random.default_rng(2).normal(size=(50, 3))
    assert np.abs(field_values(noise, places, -40.0) - field_values(noise, places, -36.0)).max() > 0.1


def test_a_drain_that_moves_takes_what_lies_in_it_at_the_end_of_the_step():
    """A half space that rises by a metre a second: nothing is left below it."""
    rising = KeyedVector(((0.0, (0.0, -0.5, 0.0), "linear"), (24.0, (0.0, 0.5, 0.0), "linear")))
    run = pushed(dt_max=0.01)
    run.step_context.frame_at = lambda time: 24.0 * time
    run.step_context.drains = (drain(field_shape(shape=FieldShape.HALF_SPACE, centre=rising)),)
    run.advance(0.62)
    assert 0 < run.particles.count < len(cube(JELLY)["position"]) and run.particles.unpack("position")[:, 1].min() > 0.12


def test_other_presets_are_no_cure_for_a_force():
    """The same limit holds there."""
    run = pushed(force_acceleration(acceleration=(1.0, 0.0, 0.0)))
    assert "solve with" not in run.advice("force", "jelly")


@pytest.mark.parametrize("preset", ["explicit_apic", "implicit_apic"])
@pytest.mark.parametrize(
    ("rows", "mean"),
    [
        ([[1, 0.0, "step"], [2.3, 3000.0, "step"], [2.42, 0.0, "step"]], 3000.0 * 0.12),
        ([[1, 0.0, "step"], [2.3, 20000.0, "step"], [2.4, 0.0, "step"]], 20000.0 * 0.1),
        ([[1, 0.0, "step"], [2.6, 1000.0, "step"], [2.78, 0.0, "step"]], 1000.0 * 0.18),
        ([[1, 0.0, "step"], [2.3, 0.0, "linear"], [2.37, 1000.0, "linear"], [2.44, 0.0, "linear"]], 1000.0 * 0.07),
    ],
)
@pytest.mark.parametrize(("fps", "time_scale"), [(24.0, 1.0), (60.0, 1.0), (24.0, 0.5)])
def test_a_pulse_gives_its_impulse_however_short(preset, rows, mean, fps, time_scale):
    """Steps and triangles within a frame, shorter than a substep without them: acceleration times time, to 1e-3."""
    graph = shot(end=4, size=0.2, cell_size=0.1, fps=fps)
    graph.set("sim.time_scale", time_scale)
    keys = [[frame, [value, 0.0, 0.0], mode] for frame, value, mode in rows]
    graph.nodes["sim"].connect("forces", [graph.add("force_acceleration", "push", acceleration={"keys": keys})])
    graph.set("sim.substeps", preset)
    graph.set("sim.gravity", [0.0, 0.0, 0.0])
    events = []
    execute(graph, on_event=events.append)
    found = Evaluator(graph).value("sim.particles", 4)
    impulse = sum(event["impulse"][0] for event in events if event["event"] == "forces")
    assert impulse == pytest.approx(float(found["mass"].sum()) * mean * time_scale / fps, rel=1e-3)


def test_masks_that_are_no_numbers_are_told():
    """A drag whose mask is NaN is refused, not left out; a drain takes nothing there, and says so."""
    far = constant(1e300)
    endless = SpatialField("MULTIPLY", (far, far))
    nothing = SpatialField("SUBTRACT", (endless, endless))
    with pytest.raises(MpmNodesError, match="is not finite where there is matter"):
        pushed(force_wind(velocity=(1.0, 0.0, 0.0), mask=nothing)).step(1e-4)
    run = pushed()
    run.step_context.drains = (drain(nothing),)
    count = run.particles.count
    with pytest.warns(UserWarning, match=r"the field of a drain.* is not a number \(NaN\) where there is matter"):
        run.step(1e-4)
    assert run.particles.count == count
