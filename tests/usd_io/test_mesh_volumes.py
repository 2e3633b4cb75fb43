"""The check of a surface's volume against that of its particles."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Usd, UsdGeom, Vt

from mpm_nodes.data import Mesh, Particles
from mpm_nodes.nodes.surface import surface_particles
from usd_io.mesh_volumes import check_volume, enclosed_volume
from usd_io.meshes import add_mesh

SPACING = 0.05


@pytest.fixture(scope="module")
def block() -> Mesh:
    line = np.arange(10) * SPACING
    return surface_particles(Particles({"position": np.stack(np.meshgrid(*[line] * 3), -1).reshape(-1, 3)}, spacing=SPACING)).mesh


def problems(mesh: Mesh, swell: float) -> list[str]:
    """Return what the check tells of frames 1 and 2 whose second mesh is `swell` times as large."""
    stage = Usd.Stage.CreateInMemory()
    add_mesh(stage.GetRootLayer(), "/skin", mesh, 1)
    skin = UsdGeom.Mesh(stage.GetPrimAtPath("/skin"))
    skin.GetPointsAttr().Set(Vt.Vec3fArray.FromNumpy((mesh.points * swell ** (1.0 / 3.0)).astype(np.float32)), 2)
    return list(check_volume(skin.GetPrim(), 1, 2))


def test_quads_and_triangles_enclose_the_same():
    """A unit cube far from the origin, of squares and of triangles: 1 to rounding."""
    points = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)]) + 1000.0
    quads = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])
    halves = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    for faces in (quads, halves):
        counts = np.full(len(faces), faces.shape[1])
        assert enclosed_volume(points, counts, faces.reshape(-1)) == pytest.approx(1.0, rel=1e-12)


def test_surfaces_that_lost_volume_are_told(block):
    """Within 2 % nothing; beyond it the worst frame, and by how much. A surface that was not asked to hold it is not looked at."""
    assert len(block.points) > 1000 and problems(block, 1.0) == problems(block, 1.015) == []
    told = problems(block, 0.9)
    assert (
        len(told) == 1
        and "/skin frame 2: the surface holds 10.0 % less than its particles (so many frames are off by 2 %: 1)" in told[0]
    )
    assert "more than its particles" in problems(block, 1.05)[0]
    free = Mesh(block.points, block.counts, block.indices)
    assert problems(free, 0.5) == []


@pytest.mark.parametrize("knobs", [{"keep_volume": False}, {"radius": 1.3}])
def test_only_surfaces_that_keep_it_tell_a_volume(block, knobs):
    """`mpm:matter_volume` is what a surface is to hold: none where it was not asked to, or asked for more."""
    points = Particles({"position": np.zeros((1, 3))}, spacing=SPACING)
    assert block.matter_volume == pytest.approx(1000 * SPACING**3)
    assert surface_particles(points, **knobs).mesh.matter_volume is None
