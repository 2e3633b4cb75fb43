"""Collisions of a mirrored scene are the mirror image: neither the side of a voxel nor rounding chooses a normal or a image."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.data import Collider, CollisionRule, FrameContext, Particles
from mpm_nodes.kernels.collisions.posing import sheet_of_body
from mpm_nodes.kernels.collisions.rules import sample, signed_distance
from mpm_nodes.kernels.compile.jit import compiled
from mpm_nodes.kernels.level_sets.build import leaf_level_set
from mpm_nodes.kernels.level_sets.level_set import LEVEL_SET, PosedLevelSets
from mpm_nodes.kernels.level_sets.mesh_level_set import mesh_level_set
from mpm_nodes.kernels.level_sets.mesh_repair import triangulate
from mpm_nodes.kernels.level_sets.sheets import mean_of_cubes
from mpm_nodes.nodes.collide import collide_box, collide_capsule, collide_sphere
from mpm_nodes.nodes.collider_motion import box_mesh
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.plates import Splines
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.scenes import block, material

H = 0.1
FRAME = FrameContext(1)
SEGMENTS = 8


def cone(radius=0.6, height=0.8, tip=1.0):
    """Return points and triangles of a cone or, with its tip pushed in (-1), of a funnel, of eight segments about y."""
    angle = 2.0 * np.pi * np.arange(SEGMENTS) / SEGMENTS
    rim = np.stack([radius * np.cos(angle), np.full(SEGMENTS, -0.5 * tip * height), radius * np.sin(angle)], axis=1)
    points = np.concatenate([rim, [(0.0, 0.5 * tip * height, 0.0), (0.0, -0.5 * height - (0.0 if tip > 0.0 else 0.3), 0.0)]])
    following = [(k, (k + 1) % SEGMENTS) for k in range(SEGMENTS)]
    return points, np.array([t for k, n in following for t in ((k, SEGMENTS, n), (n, SEGMENTS + 1, k))])


def cuboid(*size):
    """Return points and triangles of a box."""
    mesh = box_mesh(size)
    return mesh.points, triangulate(mesh.counts, mesh.indices)[0]


def body(level_set) -> Collider:
    """Return a collider of a level set."""
    return Collider("body", CollisionRule.SEPARATE, 0.3, PosedLevelSets(LEVEL_SET, (), level_sets=(level_set,)), None)


def mesh(points, triangles, voxel=0.5 * H) -> Collider:
    """Return a collider of a mesh."""
    return body(mesh_level_set(points, triangles, voxel))


def volume() -> Collider:
    """Return a collider of a ball given by voxels, as a file gives it."""
    origins = 8 * np.stack(np.meshgrid(*[range(-2, 2)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    voxel = np.stack(np.meshgrid(*[range(8)] * 3, indexing="ij"), axis=-1)
    place = 0.5 * H * (origins[:, None, None, None] + voxel)
    to_index = np.concatenate([np.eye(3) / (0.5 * H), np.zeros((3, 1))], axis=1)
    values = np.clip(np.linalg.norm(place, axis=-1) - 0.4, -0.2, 0.2)
    return body(leaf_level_set(origins, values, 0.2, to_index, 0.5 * H))


SHAPES = {
    "sphere": lambda: collide_sphere(FRAME, radius=0.4),
    "box": lambda: collide_box(FRAME, size=(0.6, 0.8, 0.6)),
    "capsule": lambda: collide_capsule(FRAME, radius=0.25, length=0.3),
    "cone": lambda: mesh(*cone()),
    "funnel": lambda: mesh(*cone(tip=-1.0)),
    "cube": lambda: mesh(*cuboid(0.6, 0.6, 0.6)),
    "volume": volume,
}


@compiled(fastmath=False)
def _sample(points, bodies, found):
    for p in range(points.shape[0]):
        found[p, 0], found[p, 1], found[p, 2], found[p, 3] = sample(0, 1.0, points[p, 0], points[p, 1], points[p, 2], bodies)


@compiled(fastmath=False)
def _distances(points, bodies, found):
    for p in range(points.shape[0]):
        found[p] = signed_distance(0, 1.0, points[p, 0], points[p, 1], points[p, 2], bodies)


@compiled(fastmath=False)
def _sample_sheet(points, bodies, found):
    for p in range(points.shape[0]):
        found[p, 0], found[p, 1], found[p, 2], found[p, 3], _ = sheet_of_body(
            0, np.int64(0), np.int64(1), points[p, 0], points[p, 1], points[p, 2], bodies
        )


def nodes(offset: float) -> np.ndarray:
    """Return grid nodes around the axis, which goes through one (0), or through the middle of a cell (0.5)."""
    along = H * (np.arange(-9, 10) + offset)
    return np.stack(np.meshgrid(along, H * np.arange(-9.0, 10.0), along, indexing="ij"), axis=-1).reshape(-1, 3)


def differences(colliders: ColliderSet, offset: float, axis: int, sampler=_sample) -> np.ndarray:
    """Return distance and slopes of nodes near the surface, less those of their mirror images turned back."""
    points = nodes(offset)
    there, mirrored = np.empty((2, len(points), 4))
    sampler(points, colliders.bodies(), there)
    sampler(points * np.where(np.arange(3) == axis, -1.0, 1.0), colliders.bodies(), mirrored)
    mirrored[:, 1 + axis] *= -1.0
    near = (there[:, 0] > -1.9 * H) & (there[:, 0] < 1.4 * H)
    assert near.sum() > 200
    return (there - mirrored)[near]


def posed(collider: Collider, two_sided=None) -> ColliderSet:
    """Return a set of one collider."""
    colliders = ColliderSet([collider], two_sided=two_sided)
    colliders.pose(0.0, 1e-3)
    return colliders


@pytest.mark.parametrize("offset", [0.0, 0.5])
@pytest.mark.parametrize("shape", SHAPES)
def test_distances_and_normals_of_mirrored_nodes_are_mirrored(shape, offset):
    """To the single precision that level sets are kept in; slopes of one side of a plane of voxels differ by up to 1.8."""
    colliders = posed(SHAPES[shape]())
    for axis in (0, 2):
        assert np.abs(differences(colliders, offset, axis)).max() < 1e-6


@pytest.mark.parametrize("shape", SHAPES)
def test_the_distance_alone_has_the_same_bits(shape):
    """As with the normal: in a body and its band, beyond the band, and beyond its table."""
    points = np.concatenate([nodes(0.0), nodes(0.3), 10.0 * nodes(0.1)])
    bodies, whole, alone = posed(SHAPES[shape]()).bodies(), np.empty((len(points), 4)), np.empty(len(points))
    _sample(points, bodies, whole)
    _distances(points, bodies, alone)
    assert np.array_equal(whole[:, 0], alone)
    assert alone.min() < -0.05 < 5.0 < alone.max()


@pytest.mark.parametrize("offset", [0.0, 0.5])
def test_the_middle_of_a_mirrored_sheet_is_mirrored(offset):
    """Of a funnel: which points of its faces were kept once hung on their order, and its middle was 0.18 cells off."""
    colliders = posed(SHAPES["funnel"](), Splines(3.0 * H, H))
    assert len(colliders.plates)
    for axis in (0, 2):
        assert np.abs(differences(colliders, offset, axis, _sample_sheet)).max() < 1e-4


def test_means_over_cubes_hang_on_no_order_and_no_points_have_none():
    """Shuffled points have the same means, mirrored ones the mirrored means; an empty surface is none."""
    rng = np.random.default_rng(2)
    points, kinds = rng.uniform(-1.0, 1.0, (300, 3)), rng.integers(0, 2, 300)
    order = rng.permutation(300)

    def rows(points, kinds):
        return np.array(sorted(mean_of_cubes(points, 0.5, kinds, (points,))[0].tolist()))

    np.testing.assert_allclose(rows(points[order], kinds[order]), rows(points, kinds), atol=1e-12)
    mirrored = mean_of_cubes(points * [-1.0, 1.0, 1.0], 0.5, kinds, (points,))[0]
    np.testing.assert_allclose(np.array(sorted(mirrored.tolist())), rows(points, kinds), atol=1e-12)
    assert len(mean_of_cubes(points[:0], 0.5, kinds[:0], (points[:0],))[0]) == 0


def test_slopes_of_sheets_are_those_of_both_sides():
    """On planes of voxels the slopes of the middle of a thin round shell are the means of those on their two sides."""
    points, triangles = cone()
    shell = body(mesh_level_set(points, triangles[::2], 0.01, thickness=0.04))
    colliders = posed(shell, Splines(3.0 * H, H))
    assert len(colliders.plates)
    places = nodes(0.0)
    places = places[(np.abs(places[:, 1]) < 0.2) & (np.abs(np.linalg.norm(places[:, [0, 2]], axis=1) - 0.4) < 0.2)]
    found, sides = np.empty((len(places), 4)), np.empty((2, len(places), 4))
    _sample_sheet(places, colliders.bodies(), found)
    for axis in range(3):
        for side, way in enumerate((-1e-4, 1e-4)):
            _sample_sheet(places + way * H * (np.arange(3) == axis), colliders.bodies(), sides[side])
        np.testing.assert_allclose(found[:, 1 + axis], sides[:, :, 1 + axis].mean(axis=0), atol=2e-3)


@pytest.mark.parametrize(
    ("shape", "offset"), [("sphere", 0.0), ("box", 0.5), ("cone", 0.0), ("cone", 0.5), ("funnel", 0.0), ("funnel", 0.5)]
)
def test_matter_falls_apart_alike_on_both_sides(shape, offset):
    """A block on a point: before, sides of voxels, faces of a box that are as near, and images as heavy made 0.005 to 0.4 m/s."""
    count, edge = np.array([12, 6, 12]), 0.5 * H
    places = [edge * (np.arange(n) + 0.5 - 0.5 * n) for n in count]
    lattice = np.stack(np.meshgrid(*places, indexing="ij"), axis=-1).reshape(-1, 3) + [
        0.0,
        0.155 + (0.1 if shape == "funnel" else 0.4),
        0.0,
    ]
    jelly = block(material("neo_hookean", youngs_modulus=5e4), (0, 0, 0), (H, H, H), H)
    falling = {"position": lattice, "velocity": np.tile([0.0, -3.0, 0.0], (len(lattice), 1))}
    solver = SubstepSolver(
        Particles(falling, jelly.materials, jelly.spacing),
        cell_size=H,
        dtype=np.float64,
        colliders=[SHAPES[shape]()],
        origin=(-offset * H, 0.0, -offset * H),
    )
    solver.advance(0.08, 4e-4)
    order = np.argsort(solver.particles.unpack("id"))
    velocity = solver.particles.unpack("velocity")[order].reshape(*count, 3)
    assert np.abs(velocity[..., 0]).max() > 0.3  # it did meet the body
    for axis in (0, 2):
        mirrored = np.flip(velocity, axis) * np.where(np.arange(3) == axis, -1.0, 1.0)
        assert np.abs(velocity - mirrored).max() < 1e-6
