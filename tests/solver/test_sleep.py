"""Sleep: matter at rest is passive by blocks, and wakes for whatever comes."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from solver_scenes import JELLY, cube, shot

from mpm_nodes.data import MpmNodesError, concatenate
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.graph.plan.preflight import estimate, warnings_of
from mpm_nodes.nodes.fields import FieldShape, field_shape
from mpm_nodes.nodes.forces import force_acceleration, sleep
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.sleep import near
from mpm_nodes.solver.surroundings import activate, push
from mpm_nodes.verification.passive import CLOCK, advance_frames

CELL = 0.1


def still(cells: int = 10, **more) -> SubstepSolver:
    """Return a block in free space, at rest, that has fallen asleep by frame 4."""
    run = SubstepSolver(cube(JELLY, cells=cells), cell_size=CELL, gravity=(0.0, 0.0, 0.0), origin=(0, 0, 0), clock=CLOCK, **more)
    activate(run, sleep(motion=0.01, window=0.05))
    advance_frames(run, range(1, 5))
    assert run.passive.store.count == 8 * cells**3 and not run.particles.count
    return run


def test_what_does_not_move_sleeps_and_stays():
    """All of it; the places that are seen are those from before, and the same arrays from frame to frame."""
    run = still()
    before = run.snapshot(["velocity"])
    advance_frames(run, range(5, 8))
    after = run.snapshot(["velocity"])
    np.testing.assert_array_equal(before["position"], after["position"])
    assert after["velocity"] is before["velocity"] or np.shares_memory(after["velocity"], before["velocity"])
    assert not after["velocity"].any()


def test_another_gravity_wakes_it_before_it_acts():
    """In the very frame in which a key lets it fall; from rest it has g t at its end."""
    run = still()
    begin = CLOCK.over(6).begin
    run.gravity = lambda time: (0.0, -9.81 if time >= begin else 0.0, 0.0)
    advance_frames(run, (5,))
    assert run.particles.count
    advance_frames(run, (6,))
    assert not run.passive.store.count
    np.testing.assert_allclose(run.snapshot(["velocity"])["velocity"][:, 1], -9.81 / 24.0, rtol=1e-4)


def test_a_force_wakes_what_it_pushes():
    """A force with a mask: the rest sleeps on."""
    run = still(cells=24)
    end = field_shape(shape=FieldShape.HALF_SPACE, centre=(0.4, 0.0, 0.0), rotation=(0.0, 0.0, -90.0))
    push(run, [force_acceleration(mask=end, acceleration=(0.0, 2.0, 0.0))])
    advance_frames(run, (5,))
    assert run.particles.count and run.passive.store.count > run.particles.count
    assert run.particles.unpack("position")[:, 0].max() < 1.0


def test_a_body_that_comes_wakes_what_is_near():
    """A ball that comes down on one end of a bar: what is near wakes before it is there, the other end sleeps on."""
    graph = Graph(cell_size=CELL, start=1, end=14)
    matter = graph.add("material_neo_hookean", "matter", youngs_modulus=5e3)
    bar = graph.add("emit_box", "bar", material=matter, size=(4.8, 0.4, 0.4))
    way = {"keys": [[1, [-2.2, 5.0, 0], "step"], [8, [-2.2, 5.0, 0], "linear"], [14, [-2.2, 0.5, 0], "linear"]]}
    ball = graph.add("collide_sphere", "ball", radius=0.2, centre=way)
    rest = graph.add("sleep", "rest", window=0.08)
    graph.add("solve", "sim", sources=[bar], colliders=[ball], active=rest, gravity=(0, 0, 0))
    cook, passive = Evaluator(graph), {}
    for frame in range(1, 15):
        cook.value("sim.particles", frame)
        passive[frame] = cook._states["sim"].value.solver.passive.store.count
    whole = len(cook.value("sim.particles", 14)["position"])
    assert passive[9] == whole and 0.5 * whole < passive[14] < whole


def two_balls(rigid: bool) -> Graph:
    """Return a bed that falls asleep, and two balls over it, of which the first comes down, keyed or by its weight."""
    graph = Graph(cell_size=CELL, start=1, end=14)
    matter = graph.add("material_neo_hookean", "matter", youngs_modulus=1e6)
    bed = graph.add("emit_box", "bed", material=matter, size=(0.8, 0.4, 0.8), centre=(0, 0.2, 0))
    ground = graph.add("collide_plane", "ground")
    way = (0, 1.2, 0) if rigid else {"keys": [[1, [0, 1.2, 0], "step"], [7, [0, 1.2, 0], "linear"], [14, [0, 0.5, 0], "linear"]]}
    first = graph.add("collide_sphere", "first", radius=0.2, centre=way)
    ball = graph.add("rigid_body", "ball", collider=first) if rigid else first
    still_one = graph.add("collide_sphere", "second", radius=0.2, centre=(9, 9, 9))
    rest = graph.add("sleep", "rest", window=0.08, motion=0.3)
    graph.add("solve", "sim", sources=[bed], colliders=[ground, ball, still_one], active=rest)
    return graph


@pytest.mark.parametrize("rigid", [False, pytest.param(True, marks=pytest.mark.phenomena("rigid_bodies"))])
def test_bodies_of_one_name_wake_each_by_itself(tmp_path, rigid):
    """Two balls, the second of which stands still: the first wakes what it comes to; a cook goes on to the same bits."""
    count, cook = asleep_at(two_balls(rigid), 6)
    assert count
    cook.value("sim.particles", 12)
    assert not cook._states["sim"].value.solver.passive.store.count
    whole = cook.value("sim.particles", 14)["position"]
    for at in (6, 8):
        execute(two_balls(rigid), out=tmp_path / str(at), frames=(1, at))
        result = execute(two_balls(rigid), out=tmp_path / str(at), resume=True)
        np.testing.assert_array_equal(result.outputs["sim"]["particles"]["position"], whole)


def test_matter_that_comes_wakes_what_it_meets():
    """A cube that flies at another: both have the momentum of the one, as if none had slept."""
    first, second = cube(JELLY, cells=6), cube(JELLY, low=(0.0, 3.0, 0.0), cells=6, velocity=(0.0, -6.0, 0.0))

    def momentum(sleeps: bool) -> tuple[np.ndarray, list[int]]:
        run = SubstepSolver(
            concatenate([first, second]), cell_size=CELL, gravity=(0.0, 0.0, 0.0), origin=(0, 0, 0), clock=CLOCK, dtype=np.float64
        )
        if sleeps:
            activate(run, sleep(motion=0.01, window=0.05))
        counts = []
        for frame in range(1, 15):
            advance_frames(run, (frame,))
            counts.append(run.passive.store.count)
        found = run.snapshot(["velocity", "mass"])
        return (found["mass"][:, None] * found["velocity"]).sum(axis=0), counts

    (slept, counts), (never, _) = momentum(True), momentum(False)
    assert max(counts) == len(first["position"]) and counts[-1] == 0
    np.testing.assert_allclose(slept, never, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("step", [False, True])
def test_a_wall_that_comes_wakes_what_is_near(step):
    """A floor that rises through the cube, or steps into it: it is carried up as without sleep."""
    way = {"keys": [[1, [-9, -3, -9], "step"], [8, [-9, -3, -9], "step" if step else "linear"], [12, [-9, 0.0, -9], "step"]]}
    graph = shot(14, gravity=(0, 0, 0), size=0.8, wall_y_low="separate", wall_low=way)
    never = Evaluator(graph).value("sim.particles", 14)["position"][:, 1].min()
    graph.nodes["sim"].connect("active", graph.add("sleep", "rest", window=0.08))
    cook = Evaluator(graph)
    cook.value("sim.particles", 7)
    assert cook._states["sim"].value.solver.passive.store.count
    assert never > -0.1 and abs(cook.value("sim.particles", 14)["position"][:, 1].min() - never) < 0.02


def standing(**more) -> Graph:
    """Return a stiff column that falls asleep on a plate, which leaps away at frame 9 where `leaps`."""
    graph = Graph(cell_size=CELL, start=1, end=14)
    matter = graph.add("material_neo_hookean", "matter", youngs_modulus=1e6)
    column = graph.add("emit_box", "column", material=matter, size=(0.4, 1.6, 0.4), centre=(0, 0.8, 0))
    way = {"keys": [[1, [0, -0.2, 0], "step"], [9, [30, -0.2, 0], "step"]]} if more.pop("leaps", False) else (0, -0.2, 0)
    plate = graph.add("collide_box", "plate", size=(2, 0.4, 2), centre=way)
    drains = [graph.add("drain", "hole", field=more.pop("hole")(graph))] if "hole" in more else []
    rest = graph.add("sleep", "rest", window=0.08, motion=0.3)
    graph.add("solve", "sim", sources=[column], colliders=[plate], drains=drains, active=rest)
    return graph


def asleep_at(graph: Graph, frame: int) -> tuple[int, Evaluator]:
    """Return how many particles sleep after a frame."""
    cook = Evaluator(graph)
    cook.value("sim.particles", frame)
    return cook._states["sim"].value.solver.passive.store.count, cook


def test_what_loses_the_body_under_it_wakes(tmp_path):
    """A plate whose key steps has no speed, and is gone: the column falls; a cook goes on to the same bits."""
    count, cook = asleep_at(standing(leaps=True), 8)
    high = cook.value("sim.particles", 8)["position"][:, 1].mean()
    assert count and high - cook.value("sim.particles", 14)["position"][:, 1].mean() > 0.1
    for at in (8, 9, 10):
        execute(standing(leaps=True), out=tmp_path / str(at), frames=(1, at))
        result = execute(standing(leaps=True), out=tmp_path / str(at), resume=True)
        found = result.outputs["sim"]["particles"]["position"]
        np.testing.assert_array_equal(found, cook.value("sim.particles", 14)["position"])
    assert asleep_at(standing(), 14)[0]  # and one that stays wakes nothing


def test_a_drain_that_opens_wakes_what_it_takes_and_what_stands_on_that():
    """It takes the foot of the column, and the rest falls into it."""

    def hole(graph: Graph):
        way = {"keys": [[1, [0, -50, 0], "step"], [9, [0, 0, 0], "step"]]}
        return graph.add("field_shape", "where", shape="box", size=(2, 0.9, 2), centre=way)

    count, cook = asleep_at(standing(hole=hole), 8)
    whole = len(cook.value("sim.particles", 8)["position"])
    at_once, later = (len(cook.value("sim.particles", frame)["position"]) for frame in (10, 14))
    assert count == whole and 0.6 * whole < at_once < 0.8 * whole and later < at_once


def test_near_counts_blocks_to_all_sides():
    """As counting all pairs does, whatever the reach."""
    rng = np.random.default_rng(3)
    blocks, asked = rng.integers(-20, 20, (30, 3)), rng.integers(-12, 12, (200, 3))
    reach = rng.integers(1, 9, 30)
    apart = np.abs(blocks[:, None] - asked).max(axis=2)
    np.testing.assert_array_equal(near(blocks, reach, asked), (apart <= reach[:, None]).any(axis=0))
    assert not near(blocks[:0], reach[:0], asked).any() and near(blocks, reach, asked[:0]).shape == (0,)
    assert near(np.array([[10**6, 0, 0]]), np.array([2 * 10**6]), asked).all()


def sleeping(end: int = 8, **solve) -> Graph:
    """Return a shot of a cube that sleeps until gravity comes."""
    gravity = {"keys": [[1, [0, 0, 0], "step"], [6, [0, -9.81, 0], "step"]]}
    graph = shot(end, gravity=gravity, size=0.8, **solve)
    graph.nodes["sim"].connect("active", graph.add("sleep", "rest", window=0.08))
    return graph


@pytest.mark.parametrize("at", [4, 6])
def test_a_cook_goes_on_to_the_same_bits(tmp_path, at):
    """From a checkpoint in which matter sleeps, and one after it woke; and with another number of threads."""
    whole = Evaluator(sleeping()).value("sim.particles", 8)
    execute(sleeping(), out=tmp_path, frames=(1, at))
    execute(sleeping(), out=tmp_path, resume=True)
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    other = Evaluator(sleeping()).value("sim.particles", 8)
    numba.set_num_threads(threads)
    np.testing.assert_array_equal(whole["position"], other["position"])


@pytest.mark.phenomena("heat")
def test_what_cannot_sleep_is_told_before_the_cook():
    """Heat goes on in matter at rest; updates do not wake it; fields of motion are positive."""
    graph = sleeping(substeps="explicit_heat")
    with pytest.raises(MpmNodesError, match="matter does not sleep in substeps with heat"):
        estimate(plan_graph(graph), 1)
    graph = sleeping()
    graph.nodes["sim"].connect("updates", [graph.add("update_attribute", "softer", attribute="stiffness_scale")])
    said = [text for _, text in warnings_of(estimate(plan_graph(graph), 1))]
    assert any("does not wake it" in text for text in said)
