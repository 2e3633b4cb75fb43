"""Faces a little before sticky slopes: which cling to them, that they are as many as is right, and that matter does not slip."""

from __future__ import annotations

import math

import numpy as np
import pytest
from solver_scenes import LIQUID, cube
from test_ghost_faces import OFFSETS, SHORT, H, sloped

from mpm_nodes.data import Collider, CollisionRule, Material, WallRule, Walls
from mpm_nodes.kernels.level_sets.level_set import PLANE, PosedLevelSets
from mpm_nodes.physics.projection.kernels.solid_faces import CLINGING, FREE
from mpm_nodes.physics.projection.numerics.face_contacts import SolidFaces
from mpm_nodes.physics.projection.numerics.projection import solid_faces_of
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.scenes import block, changed, material

HEIGHT = 0.23
CELL, WIDE, HIGH = 6e-3, 6, 10


def solid_of(rule: CollisionRule, degrees: float, speed: float = 0.0, clamp: bool = False) -> tuple[SolidFaces, list[np.ndarray]]:
    """Return what a plane does to the faces in six cells of liquid, and the places of the faces [m]."""
    pose = sloped(degrees, HEIGHT)
    moves = np.array([[0.0, HEIGHT, 0.0], [speed, HEIGHT, 0.0]])
    shape = PosedLevelSets(
        PLANE, pose_times=np.array([0.0, 1.0]), rotations=np.repeat(pose.rotations, 2, axis=0), translations=moves
    )
    run = SubstepSolver(
        cube(LIQUID, cells=6),
        "incompressible",
        cell_size=H,
        walls=Walls((-1.0,) * 3, (2.0,) * 3, (WallRule.OPEN,) * 6),
        colliders=[Collider("plane", rule, 0.0, shape, clamp=clamp)],
        gravity=(0, 0, 0),
        dtype=np.float64,
        dt_max=1e-3,
        origin=(0.0, 0.0, 0.0),
    )
    run.step(1e-3)
    run.colliders.pose(0.0, SHORT)
    staggered = run.stores["staggered"]
    places = [staggered.positions(tuple(int(2 * o) for o in offset)) for offset in OFFSETS]
    return solid_faces_of(staggered, run.colliders, SHORT), places


@pytest.mark.parametrize(
    ("degrees", "clamp"), [(3.0, False), (20.0, False), (45.0, False), (70.0, False), (0.0, True), (20.0, True)]
)
def test_faces_a_little_before_a_sticky_slope_or_a_clamp_cling_to_it(degrees, clamp):
    """They have the body's velocity for shape and viscosity, and are free for the pressure; all others are told nothing."""
    solid, places = solid_of(CollisionRule.STICKY, degrees, speed=0.7, clamp=clamp)
    normal = np.array([-math.sin(math.radians(degrees)), math.cos(math.radians(degrees)), 0.0])
    for axis, x in enumerate(places):
        away = (x - [0.0, HEIGHT, 0.0]) @ normal / H
        near = (away > 1e-3) & (away < CLINGING - 1e-3)
        sure = np.abs(away - CLINGING) > 1e-3
        assert near.sum() > 20
        np.testing.assert_array_equal(~np.isnan(solid.clinging[axis][sure & (away > 1e-3)]), near[sure & (away > 1e-3)])
        np.testing.assert_allclose(solid.clinging[axis][near], 0.7 if axis == 0 else 0.0, atol=1e-6)
        assert (solid.states[axis][near] == FREE).all()


@pytest.mark.parametrize(
    ("rule", "degrees"),
    [
        (CollisionRule.STICKY, 0.0),
        (CollisionRule.STICKY, 90.0),
        (CollisionRule.SLIP, 20.0),
        (CollisionRule.SEPARATE, 20.0),
    ],
    ids=["level", "upright", "slip", "separate"],
)
def test_nothing_clings_where_it_may_slip_or_is_mirrored(rule, degrees):
    """Level surfaces mirror, and on the others matter slips."""
    solid, _ = solid_of(rule, degrees)
    assert all(np.isnan(each).all() for each in solid.clinging)


@pytest.mark.parametrize(("inside", "mean"), [(0, 0.0), (2, 0.05)], ids=["ends there", "goes on"])
def test_clinging_faces_meet_the_plate_on_average(inside, mean):
    """Quadratic splines that shear matter over a plate find it where it is, on average over where the splines lie.

    The matter ends at the plate, or goes on into it for two cells, whose splines are held.
    """
    y = (np.arange(-inside * 400, 14 * 400) + 0.5) / 400
    found = []
    for first in CLINGING + (np.arange(40) + 0.5) / 40:
        centres = first + np.arange(-4.0, 16.0)
        r = y - centres[:, None]
        slope = np.where(np.abs(r) < 0.5, -2.0 * r, np.where(np.abs(r) < 1.5, np.sign(r) * (np.abs(r) - 1.5), 0.0))
        stiffness = slope @ slope.T
        inner, outer = (centres > CLINGING) & (centres < 11.0), centres >= 11.0
        v = np.linalg.solve(stiffness[np.ix_(inner, inner)], -stiffness[np.ix_(inner, outer)] @ centres[outer])
        found.append(centres[inner][-5] - v[-5] / (v[-5] - v[-6]))
    assert max(found) > 0.4 and min(found) < -0.4
    assert abs(np.mean(found) - mean) < 0.02


def turned(degrees: float) -> np.ndarray:
    """Return the matrix of a turn about z."""
    angle = math.radians(degrees)
    return np.array([[math.cos(angle), -math.sin(angle), 0.0], [math.sin(angle), math.cos(angle), 0.0], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize("degrees", [20.0, 45.0])
def test_a_layer_on_a_slope_is_sheared_as_fast_as_its_plates(degrees):
    """A layer of six cells meets each plate within a quarter of a cell of where it is; with held faces inside alone, 1.5 behind."""
    turn, edge, rate = turned(degrees), 6 * H, 1.0
    thick = Material("liquid", {"bulk_modulus": 2e4, "viscosity": 4000.0}, 1000.0, "thick")
    start = block(thick, (0.0, 0.0, 0.0), (4 * edge, edge, 2 * H), H)
    gradient = np.zeros((len(start), 3, 3))
    gradient[:, 0, 1] = rate
    velocity = np.zeros((len(start), 3))
    velocity[:, 0] = rate * start["position"][:, 1]
    half = 0.5 * math.radians(degrees)
    over = np.array([[0.0, math.cos(half), math.sin(half), 0.0]] * 2)  # half a turn about x: the solid side is above
    moves = np.array([[0.0, edge, 0.0], [rate * edge, edge, 0.0]]) @ turn.T
    lid = PosedLevelSets(PLANE, pose_times=np.array([0.0, 1.0]), rotations=over, translations=moves)
    gradient = turn @ gradient @ turn.T
    run = SubstepSolver(
        changed(
            start,
            position=start["position"] @ turn.T,
            velocity=velocity @ turn.T,
            affine=gradient,
            velocity_gradient=gradient,
        ),
        "incompressible",
        cell_size=H,
        walls=Walls((-9.0, -9.0, 0.0), (9.0, 9.0, 2 * H), (WallRule.OPEN,) * 4 + (WallRule.SLIP,) * 2),
        colliders=[
            Collider("lid", CollisionRule.STICKY, 0.0, lid),
            Collider("floor", CollisionRule.STICKY, 0.0, sloped(degrees, 0.0)),
        ],
        gravity=(0, 0, 0),
        dtype=np.float64,
        dt_max=2e-3,
    )
    for _ in range(30):  # viscosity takes 9 ms through the layer
        run.step(2e-3)
    place = run.particles.unpack("position") @ turn
    found = (turn.T @ run.particles.unpack("velocity_gradient").reshape(-1, 3, 3) @ turn)[:, 0, 1]
    middle = (np.abs(place[:, 1] / edge - 0.5) < 0.2) & (np.abs(place[:, 0] / edge - 2.0) < 0.5)
    assert found[middle].mean() == pytest.approx(rate, rel=2 * 0.25 / 6)


@pytest.mark.parametrize("coupled", [False, True], ids=["one by one", "coupled"])
def test_a_column_stands_on_a_slope_as_on_a_level_floor(coupled):
    """A column of rubber on a sticky floor, both turned by 20 degrees and gravity with them, sinks as far to a fifth of a cell."""
    tops = []
    for degrees in (0.0, 20.0):
        turn = turned(degrees)
        rubber = material("neo_hookean", 1300.0, youngs_modulus=2e4, poisson_ratio=0.45)
        start = block(rubber, (0.0, 0.0, 0.0), (WIDE * CELL, HIGH * CELL, WIDE * CELL), CELL)
        start.attributes["position"] = start["position"] @ turn.T
        far = 40 * CELL
        run = SubstepSolver(
            start,
            {"preset": "incompressible", "set": {"coupled": coupled}},
            cell_size=CELL,
            walls=Walls((-far,) * 3, (far,) * 3, (WallRule.OPEN,) * 6),
            colliders=[Collider("floor", CollisionRule.STICKY, 0.0, sloped(degrees, 0.0))],
            gravity=tuple(turn @ [0.0, -9.81, 0.0]),
            dtype=np.float64,
            dt_max=2e-3,
        )
        lowest = np.inf
        for _ in range(20):
            run.step(2e-3)
            lowest = min(lowest, float((run.particles.unpack("position") @ turn)[:, 1].max()))
        tops.append(HIGH - 0.25 - lowest / CELL)
    assert tops[0] > 0.2
    assert abs(tops[1] - tops[0]) < 0.2
