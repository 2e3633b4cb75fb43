"""Nodes ask bodies that stand still once, those far from a body never; what they were told before gives the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.data import Collider, CollisionRule
from mpm_nodes.kernels.collisions.node_surfaces import EVERY
from mpm_nodes.kernels.level_sets.level_set import BOX, LEVEL_SET, PosedLevelSets
from mpm_nodes.kernels.level_sets.mesh_level_set import mesh_level_set
from mpm_nodes.kernels.level_sets.mesh_repair import triangulate
from mpm_nodes.nodes.collider_motion import box_mesh
from mpm_nodes.solver import told_nodes
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.scenes import block, changed, material

H, DT = 0.05, 1e-3
JELLY = material("neo_hookean", youngs_modulus=1e5)


def slab(thickness: float, **motion) -> Collider:
    """Return a level set, its upper face at y = 0, its thickness in cells; `motion` as in `PosedLevelSets`."""
    mesh = box_mesh((16 * H, thickness * H, 12 * H))
    points = mesh.points - [0.0, 0.5 * thickness * H, 0.0]
    level_set = mesh_level_set(points, triangulate(mesh.counts, mesh.indices)[0], 0.25 * H)
    shape = PosedLevelSets(LEVEL_SET, (), level_sets=(level_set,), level_set_times=np.zeros(1), **motion)
    return Collider("slab", CollisionRule.SEPARATE, 0.3, shape)


def box(**motion) -> Collider:
    """Return a box beside the jelly."""
    motion = {"translations": np.array([[5.1 * H, 2.0 * H, 0.0]]), **motion}
    return Collider("box", CollisionRule.STICKY, 0.0, PosedLevelSets(BOX, (2 * H, 4 * H, 4 * H), **motion))


def solver(*colliders: Collider, dtype: type = np.float64) -> SubstepSolver:
    """Return a solve of a jelly cube that slides over what is below it, with twelve cells of empty grid above."""
    cube = block(JELLY, (-3 * H, 0.1 * H, -3 * H), (3 * H, 12.1 * H, 3 * H), H)
    cube = changed(cube, velocity=np.tile([0.5, -0.5, 0.2], (len(cube), 1)))
    return SubstepSolver(cube, "explicit_apic", cell_size=H, dtype=dtype, origin=(0.0, 0.0, 0.0), colliders=colliders)


def asked(told) -> int:
    """Return how many nodes asked, or were found out of reach."""
    bits = (told.out | told.known).view(np.uint8)
    return int(np.unpackbits(bits).sum())


@pytest.mark.parametrize("thickness", [6.0, 0.4])
def test_still_bodies_are_asked_once(thickness):
    """Of a solid and of a sheet that keeps its sides apart: substeps after the first ask nothing, and far blocks never do."""
    solve = solver(slab(thickness))
    assert bool(len(solve.colliders.plates)) == (thickness < 3.0)
    solve.step(DT, keep=False)
    told = solve.colliders._told._told
    first, held = asked(told), int((told.known != 0).sum())
    far = told.out[:, 0] == EVERY
    assert held > 0 and far.mean() > 0.3
    assert (told.slot[far, 0] == -1).all() and len(told.values) == 64 * (~far).sum()
    for _ in range(5):
        solve.step(DT, keep=False)
    assert solve.colliders._told._told is told
    assert first <= asked(told) < first + 0.02 * told.out.size * 64  # nodes that matter came to
    told.values[:, 0] = np.inf  # who asked again would find the slab where it is
    velocity = solve.grid.array("velocity")
    solve.step(DT, keep=False)
    before = velocity.copy()
    solve.colliders.collide_grid(solve.grid)
    np.testing.assert_array_equal(velocity, before)


@pytest.mark.parametrize(("thickness", "dtype"), [(6.0, np.float64), (0.4, np.float32)])
def test_what_is_kept_changes_no_bit(thickness, dtype, monkeypatch):
    """A slab that stands for a while, goes on and stands again, beside a box that stands: as if nothing was kept."""
    times = 8 * DT * np.array([0.0, 1.0, 2.0, 3.0])
    moves = H * np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.2, 0.1, 0.0], [0.2, 0.1, 0.0]])
    scene = slab(thickness, pose_times=times, translations=moves), box()
    ends, columns = [], []
    for most in (told_nodes.MOST_BYTES, 0):
        monkeypatch.setattr(told_nodes, "MOST_BYTES", most)
        solve = solver(*scene, dtype=dtype)
        for _ in range(24):
            solve.step(DT, keep=False)
            columns.append(tuple(solve.colliders._told._told.column))
        found = solve.snapshot(["position", "velocity"])
        ends.append((found["position"], found["velocity"]))
        assert (solve.colliders._told.nbytes > 1000) == (most > 0)
    assert columns[0] == columns[23] == (0, 1) and columns[12] == (-1, 0) and columns[30] == (-1, -1)
    np.testing.assert_array_equal(ends[0][0], ends[1][0])
    np.testing.assert_array_equal(ends[0][1], ends[1][1])
    assert np.abs(ends[0][1][:, 1]).max() > 0.0
