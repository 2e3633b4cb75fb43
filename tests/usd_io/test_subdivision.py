"""Meshes that say to be subdivision surfaces are read as the smooth surface, by every node that reads meshes."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.data import FrameContext, GraphSettings, InputError, Material
from mpm_nodes.graph.values.kept import Kept
from mpm_nodes.graph.values.store import MemoryStore
from mpm_nodes.nodes.collide import collide_usd
from mpm_nodes.nodes.emit import emit_mesh
from usd_io.collider_meshes import StageMeshes
from usd_io.subdivision import Cage, refine

Usd, UsdGeom = (pytest.importorskip(f"pxr.{name}") for name in ("Usd", "UsdGeom"))
CUBE = np.array([(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
QUADS = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
OCTAHEDRON = np.array([(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)], float)
TRIANGLES = ((0, 2, 4), (2, 1, 4), (1, 3, 4), (3, 0, 4), (2, 0, 5), (1, 2, 5), (3, 1, 5), (0, 3, 5))
GRID = np.array([(x, 0.0, z) for x in range(4) for z in range(4)], float)
SHEET = tuple((4 * i + j, 4 * i + j + 1, 4 * i + j + 5, 4 * i + j + 4) for i in range(3) for j in range(3))
TOP = ((2, 3), (3, 7), (7, 6), (6, 2))


def written(path, scheme="catmullClark", points=CUBE, faces=QUADS, creases=(), sharpness=10.0, **more):
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    mesh = UsdGeom.Mesh.Define(stage, "/cage")
    mesh.CreatePointsAttr(points.tolist())
    mesh.CreateFaceVertexCountsAttr([len(face) for face in faces])
    mesh.CreateFaceVertexIndicesAttr([corner for face in faces for corner in face])
    if scheme:
        mesh.CreateSubdivisionSchemeAttr(scheme)
    if creases:
        mesh.CreateCreaseIndicesAttr([point for crease in creases for point in crease])
        mesh.CreateCreaseLengthsAttr([len(crease) for crease in creases])
        mesh.CreateCreaseSharpnessesAttr([sharpness] * len(creases))
    for name, value in more.items():
        mesh.GetPrim().GetAttribute(name).Set(value)
    stage.Save()
    return path


def read(path):
    meshes = StageMeshes(path)
    return meshes.topology(1.0), meshes.points(1.0)


def test_a_smooth_cube_has_the_known_limit(tmp_path):
    """Corners of the limit lie at 1/2, middles of its sides at 68/81 (Halstead, Kass, DeRose 1993); 4 levels are 3e-3 off."""
    topology, points = read(written(tmp_path / "cage.usda"))
    assert len(topology.counts) == 6 * 4**4
    np.testing.assert_allclose(np.abs(points).max(axis=0), 68.0 / 81.0, atol=3e-3)
    np.testing.assert_allclose(points[:8], 0.5 * CUBE, atol=1e-3)


def test_a_smooth_octahedron_has_the_known_limit(tmp_path):
    """Points of Loop's limit for four neighbours: w v / (w + 4) with w = 3 / (8 beta)."""
    topology, points = read(written(tmp_path / "cage.usda", "loop", OCTAHEDRON, TRIANGLES))
    beta = (0.625 - 0.375**2) / 4.0
    np.testing.assert_allclose(points[:6], OCTAHEDRON * (3.0 / (8.0 * beta)) / (3.0 / (8.0 * beta) + 4.0), atol=1e-3)
    assert (topology.counts == 3).all() and len(np.unique(points.round(9), axis=0)) == len(points)


@pytest.mark.parametrize("scheme", ["none", "bilinear", ""])
def test_other_meshes_stay_polygons(tmp_path, scheme):
    """So does one that names no scheme: exporters that mean a smooth surface say so, files written by hand mean what they hold."""
    topology, points = read(written(tmp_path / "cage.usda", scheme))
    assert len(topology.counts) == 6
    np.testing.assert_array_equal(points, CUBE)


def test_creases_hold_edges_as_far_as_they_are_sharp(tmp_path):
    every = tuple((face[k], face[(k + 1) % 4]) for face in QUADS for k in range(4))
    _, sharp = read(written(tmp_path / "sharp.usda", creases=every))
    np.testing.assert_allclose(np.abs(sharp).max(axis=1), 1.0)
    np.testing.assert_allclose(sharp[:8], CUBE)
    reach = [
        np.abs(read(written(tmp_path / f"{s}.usda", creases=every, sharpness=s))[1][0]).max() for s in (0.0, 0.5, 1.0, 2.0, 3.0)
    ]
    assert (np.diff(reach) > 0.05).all() and reach[-1] < 1.0
    _, lid = read(written(tmp_path / "chain.usda", creases=((2, 3, 7, 6, 2),)))
    _, edges = read(written(tmp_path / "edges.usda", creases=TOP))
    np.testing.assert_array_equal(lid, edges)
    assert lid[:, 1].max() == 1.0 and lid[:, 1].min() > -0.9


def test_corners_and_borders(tmp_path):
    """A named corner stays; a sheet keeps its border, and its corners unless the file rounds them."""
    _, pointed = read(written(tmp_path / "point.usda", cornerIndices=[7], cornerSharpnesses=[10.0]))
    np.testing.assert_allclose(pointed.max(axis=0), 1.0)
    topology, kept = read(written(tmp_path / "kept.usda", points=GRID, faces=SHEET))
    np.testing.assert_allclose((kept.min(axis=0), kept.max(axis=0), kept[0]), ((0, 0, 0), (3, 0, 3), (0, 0, 0)), atol=1e-12)
    _, rounded = read(written(tmp_path / "round.usda", points=GRID, faces=SHEET, interpolateBoundary="edgeOnly"))
    assert rounded[0, 0] > 0.1 and rounded[:, 0].min() < 1e-12
    holes, _ = read(written(tmp_path / "hole.usda", points=GRID, faces=SHEET, holeIndices=[4]))
    assert len(holes.counts) * 9 == len(topology.counts) * 8


def test_constant_and_linear_values_stay_what_they_are():
    """Weights sum to one on any mesh, triangles and pentagons included; a flat grid's inside keeps linear values."""
    odd = ((0, 1, 2), (0, 2, 3, 4, 5), (2, 1, 6, 3))
    cage = Cage(7, np.array([3, 5, 4]), np.concatenate(odd), np.array([[0, 2]]), np.array([1.5]), np.zeros(7))
    np.testing.assert_allclose(refine(cage)(np.ones(7)), 1.0)
    flat = Cage(16, np.full(9, 4), np.concatenate(SHEET), np.zeros((0, 2), int), np.zeros(0), np.zeros(16))
    finer = refine(flat)
    np.testing.assert_allclose(finer(GRID[:, 0] + 2.0 * GRID[:, 2]), finer(GRID) @ (1.0, 0.0, 2.0))


def test_every_reader_takes_the_smooth_surface(tmp_path):
    """Matter fills what the surface encloses, and the collider's mesh is that surface."""
    path, settings = written(tmp_path / "cage.usda"), GraphSettings(cell_size=0.2, start=1, end=1)
    body = collide_usd(FrameContext(1, settings, lambda kind, **facts: None), settings, Kept(MemoryStore(1 << 30)), path=path)
    assert 0.83 < body.mesh.points[:, 1].max() < 0.85
    particles = emit_mesh(settings, Material("liquid", {}, 1000.0, "water"), path=path)
    corners = body.mesh.points[body.mesh.indices.reshape(-1, 4)]
    enclosed = sum(
        np.einsum("nk,nk->n", a, np.cross(b, c)).sum() / 6.0
        for a, b, c in ((corners[:, 0], corners[:, 1], corners[:, 2]), (corners[:, 0], corners[:, 2], corners[:, 3]))
    )
    assert len(particles) * 0.1**3 == pytest.approx(enclosed, rel=0.02)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"scheme": "loop"}, "loop, which takes triangles"),
        ({"creases": ((2, 80),)}, "creases or corners do not fit its 8 points"),
        ({"creaseIndices": [1, 2], "creaseLengths": [7], "creaseSharpnesses": [1.0]}, "creases or corners do not fit"),
        ({"cornerIndices": [1, 2], "cornerSharpnesses": [1.0]}, "creases or corners do not fit"),
    ],
)
def test_what_does_not_fit_is_told_with_the_prim(tmp_path, more, told):
    with pytest.raises(InputError, match=f"mesh /cage: .*{told}.*export"):
        read(written(tmp_path / "cage.usda", **more))
