"""Signed distances, normals and velocities of posed bodies, seen through the grid stage's kernel."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.data import Collider, CollisionRule, WallRule, Walls
from mpm_nodes.kernels.collisions.posing import body_velocity, sample_body
from mpm_nodes.kernels.level_sets.build import leaf_level_set
from mpm_nodes.kernels.level_sets.level_set import (
    BOX,
    CAPSULE,
    LEVEL_SET,
    PLANE,
    SPHERE,
    Bodies,
    PosedLevelSets,
    quaternion,
)
from mpm_nodes.kernels.level_sets.mesh_level_set import mesh_level_set
from mpm_nodes.kernels.transfers.binning import pack_coord
from mpm_nodes.nodes.seeding import rotation_matrix
from mpm_nodes.solver.colliders import ColliderSet

CELL = 0.1


class Nodes:
    """A grid of 6^3 blocks around the origin, all nodes with mass, as the kernels see it."""

    def __init__(self, velocity=(0.0, 0.0, 0.0), blocks: int = 3) -> None:
        self.h, self.origin = CELL, np.zeros(3)
        side = np.arange(-blocks, blocks)
        self.coord = np.array([(i, j, k) for i in side for j in side for k in side], np.int32)
        self.count = len(self.coord)
        self.packed, self.least_mass = np.array([pack_coord(*coord) for coord in self.coord.tolist()]), 0.0
        self._arrays = {"velocity": np.zeros(self.count * 256, np.float32), "momentum": np.ones(self.count * 256, np.float32)}
        self._arrays["velocity"].reshape(-1, 4)[:, :3] = velocity
        node = np.stack(np.meshgrid(*(np.arange(4),) * 3, indexing="ij"), -1).reshape(1, 64, 3)
        self.position = (CELL * (4.0 * self.coord[:, None, :] + node)).reshape(-1, 3)

    def array(self, name: str) -> np.ndarray:
        return self._arrays[name]

    def slots(self) -> np.ndarray:
        return np.full(64 * self.count, -1, np.int32)

    @property
    def velocity(self) -> np.ndarray:
        return self._arrays["velocity"].reshape(-1, 4)[:, :3]


def bodies_of(colliders: ColliderSet) -> Bodies:
    return Bodies(colliders._integer, colliders._real, *colliders._lattices)


def posed(shape: PosedLevelSets, start=0.0, end=0.01, rule=CollisionRule.STICKY) -> ColliderSet:
    colliders = ColliderSet([Collider("body", rule, 0.0, shape)])
    colliders.pose(start, end)
    return colliders


def phi_of(colliders: ColliderSet, points: np.ndarray) -> np.ndarray:
    """Return phi and gradient at points of the body's frame, shape (n, 4)."""
    bodies = bodies_of(colliders)
    return np.array([sample_body(0, 1.0, *point, bodies) for point in points])


def dense_ball(radius: float, voxel: float) -> tuple[np.ndarray, np.ndarray]:
    """Return leaf origins and exact distances of a ball about (0.02, 0, 0): only leaves that touch the band."""
    reach = int(np.ceil((radius / voxel + 12) / 8))
    leaves = np.array([(i, j, k) for i in range(-reach, reach) for j in range(-reach, reach) for k in range(-reach, reach)])
    node = np.stack(np.meshgrid(*(np.arange(8),) * 3, indexing="ij"), -1)
    index = 8 * leaves[:, None, None, None, :] + node
    values = np.linalg.norm(index * voxel - (0.02, 0.0, 0.0), axis=-1) - radius
    values = np.clip(values, -3 * voxel, 3 * voxel)
    near = (np.abs(values) < 3 * voxel).any(axis=(1, 2, 3))
    return 8 * leaves[near], values[near]


@pytest.fixture(scope="module")
def ball_level_set():
    voxel = 0.03
    origins, values = dense_ball(0.8, voxel)
    to_index = np.concatenate([np.eye(3) / voxel, np.zeros((3, 1))], 1)
    return leaf_level_set(origins, values, 3 * voxel, to_index, voxel)


SHAPES = {
    "sphere": (PosedLevelSets(SPHERE, (0.5,)), lambda y: np.linalg.norm(y, axis=1) - 0.5),
    "plane": (PosedLevelSets(PLANE), lambda y: y[:, 1]),
    "capsule": (
        PosedLevelSets(CAPSULE, (0.2, 0.4)),
        lambda y: np.linalg.norm(y - np.stack([0 * y[:, 1], np.clip(y[:, 1], -0.4, 0.4), 0 * y[:, 1]], 1), axis=1) - 0.2,
    ),
    "box": (
        PosedLevelSets(BOX, (0.5, 0.3, 0.2)),
        lambda y: (
            np.linalg.norm(np.maximum(np.abs(y) - (0.5, 0.3, 0.2), 0), axis=1)
            + np.minimum((np.abs(y) - (0.5, 0.3, 0.2)).max(axis=1), 0)
        ),
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_analytic_shapes(name):
    """Analytic bodies give their exact distance, and a gradient that is its derivative."""
    shape, exact = SHAPES[name]
    points = np.random.default_rng(1).uniform(-1, 1, (300, 3))
    sampled = phi_of(posed(shape), points)
    np.testing.assert_allclose(sampled[:, 0], exact(points), atol=1e-12)
    step = 1e-6
    for axis in range(3):
        move = step * np.eye(3)[axis]
        slope = (exact(points + move) - exact(points - move)) / (2 * step)
        smooth = np.abs(slope) < 2.0
        assert np.median(np.abs(sampled[smooth, 1 + axis] - slope[smooth])) < 1e-8


def test_level_set_in_the_band(ball_level_set):
    """In the band a sampled ball is the ball to second order in the voxel size, and its gradient the unit normal."""
    points = np.random.default_rng(2).normal(size=(500, 3))
    distance = np.random.default_rng(3).uniform(0.75, 0.85, (500, 1))
    points *= distance / np.linalg.norm(points, axis=1, keepdims=True)
    sampled = phi_of(posed(PosedLevelSets(LEVEL_SET, level_sets=(ball_level_set,))), points)
    away = points - (0.02, 0.0, 0.0)
    exact = np.linalg.norm(away, axis=1)
    # trilinear interpolation is off by at most h^2/8 times the two curvatures 1/r
    np.testing.assert_allclose(sampled[:, 0], exact - 0.8, atol=0.03**2 / 4 / 0.7)
    normal = sampled[:, 1:] / np.linalg.norm(sampled[:, 1:], axis=1, keepdims=True)
    assert ((normal * away).sum(axis=1) / exact > 0.999).all()


def test_level_set_beyond_the_band(ball_level_set):
    """Deep inside phi stays negative and points the way out; far outside it is a lower bound of the distance."""
    points = np.random.default_rng(4).uniform(-3, 3, (2000, 3))
    sampled = phi_of(posed(PosedLevelSets(LEVEL_SET, level_sets=(ball_level_set,))), points)
    away = points - (0.02, 0.0, 0.0)
    exact = np.linalg.norm(away, axis=1) - 0.8
    deep, far = exact < -0.1, exact > 0.1
    assert deep.sum() > 10 and far.sum() > 1000
    assert (sampled[far, 0] <= exact[far] + 1e-9).all() and (sampled[far, 0] > 0.08).all()
    assert (np.abs(sampled[deep, 0] - exact[deep]) < 8 * 0.03).all() and (sampled[deep, 0] < 0).all()
    out = (sampled[deep, 1:] * away[deep]).sum(axis=1)
    clear = np.linalg.norm(away[deep], axis=1) > 0.3  # at the very centre no way is better than another
    assert (out[clear] > 0).all()


def test_rigid_motion_gives_rotation_velocities():
    """Nodes stuck to a moving body get V + Omega x r, to the chord of the turn within the substep."""
    omega, speed, dt = np.array([0.4, 2.0, -1.0]), np.array([0.5, -0.2, 0.1]), 1e-4
    rate = np.linalg.norm(omega)
    times = np.array([0.0, 0.1])
    half = 0.5 * rate * times
    turns = np.concatenate([np.cos(half)[:, None], np.sin(half)[:, None] * omega / rate], axis=1)
    shape = PosedLevelSets(SPHERE, (0.7,), times, turns, times[:, None] * speed)
    colliders = posed(shape, 0.05, 0.05 + dt)
    nodes = Nodes((9.0, 9.0, 9.0))
    colliders.collide_grid(nodes)
    centre = speed * (0.05 + dt)
    away = nodes.position - centre
    inside = np.linalg.norm(away, axis=1) < 0.7 - 2.01 * CELL
    assert inside.sum() > 100
    np.testing.assert_allclose(nodes.velocity[inside], speed + np.cross(omega, away[inside]), atol=3e-4)
    outside = np.linalg.norm(away, axis=1) > 0.7 + 2.5 * CELL
    assert outside.sum() > 100 and (nodes.velocity[outside] == 9.0).all()
    carried = Nodes(speed + np.cross(omega, away))
    colliders.collide_grid(carried)
    np.testing.assert_allclose(
        carried.velocity, speed + np.cross(omega, away), atol=6e-4
    )  # what moves with the body stays as it is


def test_rotated_level_set_slides_along_its_own_surface():
    """A slip body that is turned and moved changes just the velocity normal to its turned surface."""
    turn = rotation_matrix((20.0, 30.0, 40.0))
    corners = np.array([(x, y, z) for x in (-0.6, 0.6) for y in (-0.6, 0.6) for z in (-0.6, 0.6)])
    faces = np.array([(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)])
    triangles = np.concatenate([faces[:, :3], faces[:, [0, 2, 3]]])
    level_set = mesh_level_set(corners, triangles, 0.05)
    shape = PosedLevelSets(LEVEL_SET, (), np.zeros(1), quaternion(turn)[None], np.full((1, 3), 0.03), (level_set,))
    nodes = Nodes((0.0, -1.0, 0.0))
    posed(shape, rule=CollisionRule.SLIP).collide_grid(nodes)
    local = (nodes.position - 0.03) @ turn
    depth = 0.6 - np.abs(local)
    for axis in range(3):
        others = np.delete(depth, axis, axis=1).min(axis=1)
        face = (depth[:, axis] > 0.0) & (depth[:, axis] < 0.1) & (others > 0.25)
        assert face.sum() > 20
        normal = turn[:, axis]
        change = nodes.velocity[face] - (0.0, -1.0, 0.0)
        along = change @ normal
        np.testing.assert_allclose(change, along[:, None] * normal, atol=1e-4)
        assert np.abs(along).min() > 0.01


def test_thin_fast_body_between_keys_does_not_vanish():
    """A sheet two voxels thick that moves ten voxels between two keys is whole half way, with its velocity or without."""
    corners = np.array([(x, y, z) for x in (-0.5, 0.5) for y in (-0.05, 0.05) for z in (-0.5, 0.5)])
    faces = np.array([(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)])
    triangles = np.concatenate([faces[:, :3], faces[:, [0, 2, 3]]])
    lift, span = np.array([0.0, 0.5, 0.0]), 0.04
    for speeds in (np.tile(lift / span, (8, 1)), None):
        keys = tuple(mesh_level_set(corners + move, triangles, 0.05, velocities=speeds) for move in (0 * lift, lift))
        shape = PosedLevelSets(LEVEL_SET, level_sets=keys, level_set_times=np.array([0.0, span]))
        colliders = posed(shape, 0.5 * span - 1e-3, 0.5 * span)
        points = np.array([[0.1, 0.25, 0.1], [0.1, 0.35, 0.1], [0.1, 0.15, -0.1], [0.2, 0.0, 0.0]])
        sampled = phi_of(colliders, points)
        np.testing.assert_allclose(sampled[:3, 0], [-0.05, 0.05, 0.05], atol=0.02)
        assert sampled[3, 0] > 0.1
        velocity = body_velocity(0, 1e-3, *points[1], bodies_of(colliders))
        np.testing.assert_allclose(velocity, lift / span, rtol=1e-3)


def test_walls_on_the_grid():
    """Nodes on a wall get its rule; those beyond and just inside share a linear profile, those farther inside feel nothing."""
    walls = Walls(
        (-0.8, -0.4, -0.8),
        (0.8, 0.8, 0.8),
        (WallRule.OPEN, WallRule.OPEN, WallRule.SEPARATE, WallRule.SLIP, WallRule.STICKY, WallRule.DELETE),
    )
    nodes = Nodes((1.0, -2.0, 3.0))
    colliders = ColliderSet([], walls)
    colliders.pose(0.0, 0.01)
    colliders.collide_grid(nodes)
    _, y, z = nodes.position.T
    low, high, back = np.abs(y + 0.4) < 1e-9, np.abs(y - 0.8) < 1e-9, np.abs(z + 0.8) < 1e-9
    inside = (y > -0.4 + 1.5 * CELL) & (y < 0.8 - 1.5 * CELL) & (z > -0.8 + 1.5 * CELL)
    assert low.any() and high.any() and back.any() and inside.any()
    np.testing.assert_array_equal(nodes.velocity[back], 0.0)
    between = z > -0.8 + 1.5 * CELL
    np.testing.assert_array_equal(nodes.velocity[(low | high) & between] - (1.0, 0.0, 3.0), 0.0)
    np.testing.assert_array_equal(nodes.velocity[inside] - (1.0, -2.0, 3.0), 0.0)
    behind, before = np.abs(y + 0.4 + CELL) < 1e-9, np.abs(y + 0.4 - CELL) < 1e-9
    np.testing.assert_allclose(nodes.velocity[behind & between][:, 1], -nodes.velocity[before & between][:, 1], atol=1e-6)
