"""Meshes made solid: winding numbers, repair, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.data import InputError
from mpm_nodes.kernels.level_sets.mesh_level_set import mesh_level_set, thin_share
from mpm_nodes.kernels.level_sets.mesh_repair import solid_mesh, triangulate, weld
from mpm_nodes.kernels.level_sets.winding import winding_numbers, winding_tree
from mpm_nodes.nodes.collider_motion import box_mesh, sphere_mesh


def ball(rings: int = 16, radius: float = 1.0, centre=(0.0, 0.0, 0.0)) -> tuple[np.ndarray, np.ndarray]:
    """Return points and triangles of a ball, wound counter-clockwise seen from outside."""
    mesh = sphere_mesh(radius, rings=rings)
    return mesh.points + np.asarray(centre), triangulate(mesh.counts, mesh.indices)[0]


def inside_voxels(level_set) -> np.ndarray:
    """Return the positions of voxels with negative distance, leaves and solid tiles alike, shape (n, 3) [m]."""
    where = np.argwhere(level_set.table >= 0)
    parts = []
    for corner in where:
        leaf = level_set.values[level_set.table[tuple(corner)], :8, :8, :8]
        parts.append(np.argwhere(leaf < 0) + 8 * (corner + level_set.low))
    return np.concatenate(parts) * level_set.voxel_size


def test_winding_number_of_a_ball():
    """Inside a closed mesh w is 1, outside 0, to the error of the dipoles."""
    points, triangles = ball(24)
    tree = winding_tree(points, triangles)
    places = np.random.default_rng(0).uniform(-1.5, 1.5, (4000, 3))
    radius = np.linalg.norm(places, axis=1)
    numbers = winding_numbers(tree, places)
    assert np.abs(numbers[radius < 0.97] - 1.0).max() < 0.05
    assert np.abs(numbers[radius > 1.02]).max() < 0.05


def test_distances_of_a_ball():
    """The distance to a finely meshed ball is that of the ball, to the mesh's own error."""
    points, triangles = ball(48)
    level_set = mesh_level_set(points, triangles, 0.05)
    for corner in np.argwhere(level_set.table >= 0)[::7]:
        leaf = level_set.values[level_set.table[tuple(corner)], :8, :8, :8]
        node = np.stack(np.meshgrid(*(np.arange(8),) * 3, indexing="ij"), -1) + 8 * (corner + level_set.low)
        exact = np.clip(np.linalg.norm(node * 0.05, axis=-1) - 1.0, -0.2, 0.2)
        np.testing.assert_allclose(leaf, exact, atol=3e-3)


def test_head_with_open_eyes_flipped_and_overlapping_parts():
    """A head with holes at the eyes, a flipped eyeball and an overlapping nose is solid just where it should be."""
    points, triangles = ball(20)
    middle = points[triangles].mean(axis=1)
    eyes = [np.array([0.45, 0.35, 0.82]), np.array([-0.45, 0.35, 0.82])]
    open_eyes = np.min([np.linalg.norm(middle - eye, axis=1) for eye in eyes], axis=0) < 0.16
    assert 4 < open_eyes.sum() < 60
    eye_points, eye_triangles = ball(8, 0.15, eyes[0] * 1.25)
    nose_points, nose_triangles = ball(10, 0.3, (0.0, 0.0, 1.0))
    every = np.concatenate([points, eye_points, nose_points])
    faces = np.concatenate(
        [triangles[~open_eyes], eye_triangles[:, ::-1] + len(points), nose_triangles + len(points) + len(eye_points)]
    )
    solid = solid_mesh(every, faces, "head")
    assert solid.flipped == len(eye_triangles)
    assert solid.open_edges > 10 and len(solid.loops) == 2
    assert "open edges around 2 holes" in solid.findings() and "flipped faces" in solid.findings()
    level_set = mesh_level_set(solid.extended(every), solid.triangles, 0.05)

    def exact(x):
        return np.min(
            [
                np.linalg.norm(x, axis=1) - 1.0,
                np.linalg.norm(x - eyes[0] * 1.25, axis=1) - 0.15,
                np.linalg.norm(x - (0, 0, 1.0), axis=1) - 0.3,
            ],
            axis=0,
        )

    inside = inside_voxels(level_set)
    assert exact(inside).max() < 0.03
    hidden = (np.linalg.norm(inside, axis=1) < 0.9) & (np.linalg.norm(inside - (0, 0, 1.0), axis=1) < 0.28)
    assert hidden.sum() > 20  # the nose inside the head is inside, and no surface is left in there:
    from mpm_nodes.data import Collider, CollisionRule
    from mpm_nodes.kernels.collisions.posing import sample_body
    from mpm_nodes.kernels.level_sets.level_set import LEVEL_SET, Bodies, PosedLevelSets
    from mpm_nodes.solver.colliders import ColliderSet

    shape = PosedLevelSets(LEVEL_SET, level_sets=(level_set,))
    colliders = ColliderSet([Collider("head", CollisionRule.SLIP, 0.0, shape)])
    colliders.pose(0.0, 1.0)
    bodies = Bodies(colliders._integer, colliders._real, *colliders._lattices)
    assert sample_body(0, 1.0, 0.0, 0.0, 0.72, bodies)[0] < -0.15  # on the buried side of the nose


def test_open_shell_in_a_socket_is_kept():
    """Half an eyeball whose opening is buried in the head is closed and kept; the same half ball in the open is a sheet."""
    head, faces = ball(16)
    eye, eye_faces = ball(16, 0.3)
    front = eye_faces[(eye[eye_faces][:, :, 1] > -0.01).all(axis=1)]
    buried = solid_mesh(np.concatenate([head, eye + (0, 0.85, 0)]), np.concatenate([faces, front + len(head)]))
    assert buried.sheets == 0 and len(buried.loops) == 1
    floating = solid_mesh(np.concatenate([head, eye + (0, 2.0, 0)]), np.concatenate([faces, front + len(head)]))
    assert floating.sheets == len(front)


def test_cavity_stays_hollow():
    """A small ball inside a large one, wound inward, is a cavity and no mistake."""
    outer, faces = ball(16)
    inner, inner_faces = ball(10, 0.5)
    points = np.concatenate([outer, inner])
    solid = solid_mesh(points, np.concatenate([faces, inner_faces[:, ::-1] + len(outer)]))
    assert solid.flipped == 0 and solid.findings() == ""
    radius = np.linalg.norm(inside_voxels(mesh_level_set(points, solid.triangles, 0.06)), axis=1)
    assert radius.min() > 0.48 and radius.max() < 1.0


def test_some_flipped_faces():
    """A few faces wound the wrong way are turned back and counted."""
    points, triangles = ball(12)
    wrong = triangles.copy()
    wrong[5:25] = wrong[5:25, ::-1]
    assert solid_mesh(points, wrong).flipped == 20
    a, b = (solid_mesh(points, faces).triangles for faces in (triangles, wrong))
    np.testing.assert_array_equal(np.sort(np.sort(a, axis=1), axis=0), np.sort(np.sort(b, axis=1), axis=0))


def test_seams_are_welded():
    """A mesh exported with its own corners for every face (as many formats do) has no open edges."""
    points, triangles = ball(10)
    loose = points[triangles].reshape(-1, 3)
    solid = solid_mesh(loose, np.arange(len(loose)).reshape(-1, 3))
    assert solid.open_edges == 0 and solid.findings() == ""


def test_sheet_is_refused_and_takes_a_thickness():
    """A sheet has no inside: refused with the cure; with a thickness it is a shell of just that."""
    points = np.array([(x, 0.0, z) for x in (-0.5, 0.0, 0.5) for z in (-0.5, 0.0, 0.5)])
    quads = np.array([(0, 1, 4, 3), (1, 2, 5, 4), (3, 4, 7, 6), (4, 5, 8, 7)])
    triangles, _ = triangulate(np.full(4, 4), quads.ravel())
    with pytest.raises(InputError, match=r"sheet.*thickness"):
        solid_mesh(points, triangles, "cloth")
    level_set = mesh_level_set(points, triangles, 0.02, thickness=0.08)
    height = inside_voxels(level_set)
    middle = (np.abs(height[:, 0]) < 0.4) & (np.abs(height[:, 2]) < 0.4)
    assert np.abs(height[middle, 1]).max() == pytest.approx(0.02, abs=1e-9)  # +-0.04 itself is the surface
    bowl, faces = ball(16)
    with pytest.raises(InputError, match="thickness"):
        solid_mesh(bowl, faces[(bowl[faces][:, :, 1] < 0.01).all(axis=1)], "half a ball")


def test_empty_and_degenerate_meshes_are_refused():
    """No faces, or faces without an area, are refused by name."""
    with pytest.raises(InputError, match="ghost: the mesh has no faces"):
        solid_mesh(np.zeros((0, 3)), np.zeros((0, 3), int), "ghost")
    with pytest.raises(InputError, match="no faces"):
        solid_mesh(np.array([(0.0, 0, 0), (1.0, 0, 0), (2.0, 0, 0)]), np.array([(0, 1, 2)]), "line")
    assert len(weld(np.eye(3), np.array([(0, 1, 2), (0, 0, 1)]))[0]) == 1


def test_parts_thinner_than_a_depth_are_noticed():
    """A plate thinner than the depth is told from the mesh by its area; edges of a box are not thin, nor what is folded flat."""
    box = box_mesh((1.0, 0.3, 1.0))
    triangles, _ = triangulate(box.counts, box.indices)
    assert thin_share(winding_tree(box.points, triangles), 0.29) == 0.0
    ball_points, ball_faces = ball(12, 0.4, (0, 1.0, 0))
    plate = box.points * (1.0, 0.04, 1.0) + (0, 0.025, 0)
    points, faces = np.concatenate([plate, ball_points]), np.concatenate([triangles, ball_faces + 8])
    share = 2.0 / (2.0 + 4.0 * np.pi * 0.4**2)
    assert thin_share(winding_tree(points, faces), 0.05) == pytest.approx(share, abs=0.03)
    points[:8, 1] = 0.0
    assert thin_share(winding_tree(points, faces), 0.05) == 0.0
