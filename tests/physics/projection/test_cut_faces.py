"""Bodies that cross the staggered grid: what they leave open, what slides on them, and its bits."""

from __future__ import annotations

import dataclasses
import math

import numba
import numpy as np
import pytest
from solver_scenes import LIQUID, cube

from mpm_nodes.data import Collider, CollisionRule, WallRule, Walls
from mpm_nodes.kernels.level_sets.level_set import SPHERE, PosedLevelSets
from mpm_nodes.physics.projection.numerics.face_contacts import beside
from mpm_nodes.physics.projection.numerics.projection import solid_faces_of
from mpm_nodes.physics.projection.problems.face_contact import GRAVITY, on_turned_slope
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.staggered import neighbour_blocks


@pytest.mark.parametrize("rule", [CollisionRule.SLIP, CollisionRule.SEPARATE])
@pytest.mark.parametrize("degrees", [15.0, 30.0, 45.0])
def test_a_smooth_slope_does_not_drag(degrees, rule):
    """g sin a to a thousandth after 25 steps, in few iterations (a staircase of held faces left 2.8 of 4.9 m/s^2)."""
    run, angle, most = on_turned_slope(degrees, rule), math.radians(degrees), 0
    for _ in range(25):
        run.step(2e-3)
        most = max(most, run.step_context.report["projection"]["iterations"])
    x, y, _ = run.particles.unpack("velocity").mean(axis=0)
    along = (x * math.cos(angle) - y * math.sin(angle)) / run.time
    assert along == pytest.approx(GRAVITY * math.sin(angle), rel=1e-3)
    assert most <= 20


def ball(velocity: float, **knobs: float) -> SubstepSolver:
    """Return a full box of liquid without a free surface, and a ball in it that moves along x."""
    places = np.array([[0.31, 0.28, 0.33], [0.31 + velocity, 0.28, 0.33]])
    shape = PosedLevelSets(
        SPHERE, (0.2,), pose_times=np.array([0.0, 1.0]), rotations=np.array([[1.0, 0.0, 0.0, 0.0]] * 2), translations=places
    )
    start = cube(LIQUID, cells=6)
    outside = np.linalg.norm(start["position"] - places[0], axis=1) > 0.2
    start = dataclasses.replace(start, attributes={name: values[outside] for name, values in start.attributes.items()})
    walls = Walls((0.0, 0.0, 0.0), (0.6, 0.6, 0.6), (WallRule.SLIP,) * 6)
    colliders = [Collider("ball", CollisionRule.SLIP, 0.0, shape)]
    return SubstepSolver(
        start,
        {"preset": "incompressible", "set": knobs},
        cell_size=0.1,
        walls=walls,
        colliders=colliders,
        dtype=np.float64,
        dt_max=5e-3,
        origin=(0.0, 0.0, 0.0),
    )


def test_the_cuts_of_a_ball_add_up_to_nothing():
    """Shares behind less shares before, and what a moving ball carries through them, sum to 0: pockets have a solution."""
    run = ball(0.3)
    run.step(1e-3)
    staggered = run.stores["staggered"]
    gaps = solid_faces_of(staggered, run.colliders, 1e-3).open
    around = neighbour_blocks(staggered.grid)
    cells = np.flatnonzero(np.linalg.norm(staggered.positions((1, 1, 1)) - [0.31, 0.28, 0.33], axis=1) < 0.29)
    for axis in range(3):
        high = beside(around, cells, axis, 1)
        for shares in (gaps.shares[axis], gaps.carried[axis]):
            assert abs(float((shares[high] - shares[cells]).sum())) < 1e-9
        # what the faces shut is the volume of the ball, about
        shut = float((1.0 - gaps.shares[axis]).sum()) * 0.1**3
        assert shut == pytest.approx(4.0 / 3.0 * math.pi * 0.2**3, rel=0.1)


def test_liquid_flows_around_a_moving_ball_in_a_full_box():
    """The pocket gets a solution, without divergence but for the densities, and the liquid flows back past the ball.

    Densities ask for a tenth at most, five times while a fall by half a cell crosses one.
    """
    for knobs, most in (({}, 0.1 * 5.0 * math.sqrt(9.81 / 0.1)), ({"density_rate": 0.0}, 1e-3)):
        run = ball(0.3, **knobs)
        run.step(1e-3)
        told = run.step_context.report["projection"]
        assert told["pockets"] == 1 and told["unsolved"] == 0 and told["iterations"] <= 20 and told["divergence"] < most
        assert run.particles.unpack("velocity")[:, 0].min() < -0.03


def test_bits_on_a_slope_do_not_hang_on_threads():
    """One thread and two give the same bits on a slope that separates, with friction."""
    most, ends = numba.config.NUMBA_NUM_THREADS, []
    for threads in (most, 1):
        numba.set_num_threads(threads)
        try:
            run = on_turned_slope(30.0, CollisionRule.SEPARATE, 0.2, np.float32)
            for _ in range(4):
                run.step()
        finally:
            numba.set_num_threads(most)
        ends.append(run.snapshot().attributes)
    assert all(np.array_equal(ends[0][name], ends[1][name]) for name in ends[0])


def test_a_moving_ball_carries_what_it_shuts_of_a_face():
    """(1 - theta) u_b along its way, and nothing across it."""
    run = ball(0.3)
    run.step(1e-3)
    gaps = solid_faces_of(run.stores["staggered"], run.colliders, 1e-3).open
    for shares, carried, speed in zip(gaps.shares, gaps.carried, (0.3, 0.0, 0.0), strict=True):
        assert ((shares > 0.1) & (shares < 0.9)).sum() > 20
        np.testing.assert_allclose(carried, (1.0 - shares) * speed, atol=1e-6)


@pytest.mark.parametrize("belt", [0.0, 3.0])
def test_a_slope_rubs_by_the_way_that_matter_slips_on_it(belt):
    """mu cos a of the weight against the slip: down the slope too, where the slope itself runs down faster than the block."""
    angle, friction, past = math.radians(30.0), 0.2, 0.15
    run = on_turned_slope(30.0, CollisionRule.SEPARATE, friction)
    along = np.array([math.cos(angle), -math.sin(angle), 0.0])
    if belt:
        still = run.colliders.colliders[0]
        shape, start = still.shape, np.asarray(still.shape.translations)[0]
        moving = dataclasses.replace(
            shape,
            pose_times=np.array([0.0, 1.0]),
            rotations=np.repeat(np.asarray(shape.rotations), 2, axis=0),
            translations=np.array([start, start + belt * along]),
        )
        run.set_colliders([dataclasses.replace(still, shape=moving)])
    speeds = []
    for until in (past, 2.0 * past):
        run.advance(until - run.time)
        speeds.append(float(run.particles.unpack("velocity").mean(axis=0) @ along))
    sign = 1.0 if belt else -1.0
    wanted = GRAVITY * (math.sin(angle) + sign * friction * math.cos(angle))
    assert (speeds[1] - speeds[0]) / past == pytest.approx(wanted, abs=0.1 * GRAVITY * friction)
