"""Meshes that come apart where their matter tears, with their texture coordinates and normals."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from mpm_nodes.data import FrameContext, GraphSettings, InputError, Material, MpmNodesError
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.values.kept import Kept
from mpm_nodes.graph.values.store import MemoryStore
from mpm_nodes.kernels.level_sets.mesh_repair import triangulate
from mpm_nodes.nodes.deform_mesh import deform_mesh
from mpm_nodes.nodes.emit import emit_box
from mpm_nodes.nodes.pieces import PieceState, label_pieces, next_pieces
from mpm_nodes.nodes.rotations import turn_matrix

pytest.importorskip("pxr")
SIZE = np.array([0.8, 0.2, 0.3])
SETTINGS, SNOW = GraphSettings(cell_size=0.05), Material("snow", {}, 400.0, "snow")
SIDES = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
"""Faces of a box, counter-clockwise seen from outside; corner k has its bits for x, y and z."""


def coordinates(points, side):
    """Return texture coordinates of points of a side: a map of its plane, 1.5 a metre, beside those of the other sides."""
    across = [axis for axis in range(3) if axis != side // 2]
    return 1.5 * np.stack([points[:, across[0]] + 2.0 * side, points[:, across[1]]], axis=1)


@pytest.fixture
def bar(tmp_path):
    """A file with a box of six separate maps and normals of its sides, one a corner."""
    from pxr import Sdf, Usd, UsdGeom

    path = tmp_path / "bar.usda"
    corners = np.array([[(k >> 2) & 1, (k >> 1) & 1, k & 1] for k in range(8)]) * SIZE - 0.5 * SIZE
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    mesh = UsdGeom.Mesh.Define(stage, "/bar")
    mesh.CreatePointsAttr(corners.tolist())
    mesh.CreateFaceVertexCountsAttr([4] * 6)
    mesh.CreateFaceVertexIndicesAttr(np.ravel(SIDES).tolist())
    mesh.CreateSubdivisionSchemeAttr("none")
    outward = np.repeat([((k % 2) * 2.0 - 1.0) * np.eye(3)[k // 2] for k in range(6)], 4, axis=0)
    mesh.CreateNormalsAttr(outward.tolist())
    mesh.SetNormalsInterpolation("faceVarying")
    st = np.concatenate([coordinates(corners[list(side)], k) for k, side in enumerate(SIDES)])
    made = UsdGeom.PrimvarsAPI(mesh).CreatePrimvar("st", Sdf.ValueTypeNames.TexCoord2fArray, "faceVarying")
    made.Set(st.tolist())
    stage.Save()
    return path


def matter(moved, **more):
    """Return the particles of the bar, and where a function takes them."""
    found = emit_box(SETTINGS, SNOW, size=tuple(SIZE), centre=(0.0, 0.0, 0.0))
    columns = {**found.attributes, "rest": found["position"], "position": moved(found["position"]), **more}
    return dataclasses.replace(found, attributes=columns)


def labelled(particles, previous=None):
    """Return the particles with their pieces, and the state."""
    return label_pieces(FrameContext(2, SETTINGS), particles, previous, Kept(MemoryStore(1 << 24)))


def skin(particles, path):
    """Return the mesh that rides along."""
    return deform_mesh(SETTINGS, particles, Kept(MemoryStore(1 << 24)), path=path)


def volume(points, triangles):
    """Return the signed volume."""
    a, b, c = points[triangles].transpose(1, 0, 2)
    return float(np.einsum("ij,ij->", a, np.cross(b, c))) / 6.0


def is_closed(triangles):
    """Whether each edge is walked once in both directions."""
    edges = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    there, back = (sorted(map(tuple, part.tolist())) for part in (edges, edges[:, ::-1]))
    return there == back and len(set(there)) == len(there)


def halves(x, apart=0.2):
    """Take the half at high x away along x and turn it."""
    right = x[:, 0] > 0.03 * np.sin(20.0 * x[:, 1])
    return np.where(right[:, None], x @ turn_matrix((0.0, 0.0, 20.0)).T + [apart, 0.0, 0.0], x)


def test_texture_coordinates_and_normals_go_along(bar):
    """Of the whole bar, turned: as the file has them, normals turned; points exact to the file's single precision."""
    turn = turn_matrix((30.0, 50.0, -20.0))
    mesh = skin(matter(lambda x: x @ turn.T + [1.0, 2.0, 3.0]), bar)
    rest = mesh.attributes["rest"].astype(float)
    assert mesh.points == pytest.approx(rest @ turn.T + [1.0, 2.0, 3.0], abs=1e-6)
    side = np.repeat(np.arange(6), 4)
    expected = np.concatenate([coordinates(rest[mesh.indices[side == k]], k) for k in range(6)])
    assert mesh.corners["st"] == pytest.approx(expected, abs=1e-6)
    assert mesh.normals == pytest.approx(
        np.repeat([((k % 2) * 2.0 - 1.0) * turn[:, k // 2] for k in range(6)], 4, axis=0), abs=1e-6
    )


def test_a_bar_torn_in_two_is_two_closed_meshes(bar):
    """At rest they fill the bar to 1e-6; each moves as its half; maps and normals on the outer faces are those of the sides."""
    pytest.importorskip("manifold3d")
    torn = labelled(matter(halves)).particles
    assert np.array_equal(np.unique(torn["piece"]), [0, 1]) and not torn["crumb"].any()
    mesh = skin(torn, bar)
    triangles, piece = mesh.indices.reshape(-1, 3), mesh.attributes["piece"]
    rest = mesh.attributes["rest"].astype(float)
    whole = 0.0
    for number in (0, 1):
        own = triangles[piece[triangles[:, 0]] == number]
        assert is_closed(own) and np.all(piece[own] == number)
        whole += volume(rest, own)
        left = torn["rest"][torn["piece"] == number, 0].mean() < 0.0
        moved = rest if left else rest @ turn_matrix((0.0, 0.0, 20.0)).T + [0.2, 0.0, 0.0]
        assert mesh.points[piece == number] == pytest.approx(moved[piece == number], abs=1e-6)
    assert whole == pytest.approx(SIZE.prod(), rel=1e-6)
    inner = mesh.corners["inner"].reshape(-1, 3).max(axis=1) > 0.5
    assert np.abs(rest[triangles[inner], 0]).max() < 0.08 and inner.sum() > 20
    outer = triangles[~inner]
    facing = np.cross(rest[outer[:, 1]] - rest[outer[:, 0]], rest[outer[:, 2]] - rest[outer[:, 0]])
    axis = np.abs(facing).argmax(axis=1)
    side = 2 * axis + (np.take_along_axis(facing, axis[:, None], axis=1)[:, 0] > 0.0)
    st = mesh.corners["st"].reshape(-1, 3, 2)[~inner]
    for k in range(6):
        chosen = side == k
        assert chosen.any() and st[chosen].reshape(-1, 2) == pytest.approx(coordinates(rest[outer[chosen].ravel()], k), abs=1e-6)
    normals = mesh.normals.reshape(-1, 3, 3)
    assert np.linalg.norm(normals, axis=2) == pytest.approx(1.0)
    flat = np.cross(
        mesh.points[triangles[:, 1]] - mesh.points[triangles[:, 0]], mesh.points[triangles[:, 2]] - mesh.points[triangles[:, 0]]
    )
    flat /= np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-300)
    large = np.linalg.norm(facing, axis=1) > 1e-6
    assert normals[~inner][large] == pytest.approx(np.repeat(flat[~inner][large][:, None], 3, axis=1), abs=1e-4)
    assert np.einsum("ni,nki->nk", flat[inner], normals[inner]).mean() > 0.8


def test_inner_faces_have_a_map_as_fine_as_the_mesh(bar):
    """Seen along the axis that they face: areas on the map over those in space are the mesh's own; both sides of a break fit."""
    pytest.importorskip("manifold3d")
    mesh = skin(labelled(matter(halves)).particles, bar)
    rest, st = mesh.attributes["rest"].astype(float)[mesh.indices].reshape(-1, 3, 3), mesh.corners["st"].reshape(-1, 3, 2)
    inner = mesh.corners["inner"].reshape(-1, 3).max(axis=1) > 0.5
    space = np.cross(rest[:, 1] - rest[:, 0], rest[:, 2] - rest[:, 0])
    flat = np.abs(np.linalg.det(st[:, 1:] - st[:, :1]))
    fine = 1.5**2
    assert flat[~inner].sum() / np.linalg.norm(space, axis=1)[~inner].sum() == pytest.approx(fine, rel=1e-5)
    np.testing.assert_allclose(flat[inner], fine * np.abs(space).max(axis=1)[inner], atol=1e-6 * flat.max())
    along = st[inner].reshape(-1, 2) / np.sqrt(fine)
    across = np.abs(space).argmax(axis=1)[inner].repeat(3) == 0
    np.testing.assert_allclose(along[across], rest[inner].reshape(-1, 3)[across][:, [2, 1]], atol=1e-6)
    piece = mesh.attributes["piece"][mesh.indices].reshape(-1, 3)[inner, 0].repeat(3)
    sides = [np.unique(along[piece == number].round(5), axis=0) for number in (0, 1)]
    assert across.mean() > 0.5 and np.array_equal(*sides)


def test_the_cut_is_the_same_to_the_bit(bar):
    """Made twice, from nothing."""
    pytest.importorskip("manifold3d")
    first, second = (skin(labelled(matter(halves)).particles, bar) for _ in range(2))
    assert first.points.tobytes() == second.points.tobytes() and first.indices.tobytes() == second.indices.tobytes()


def test_three_pieces_share_their_faces(bar):
    """Two cuts that meet: nothing is lost, each piece is closed."""
    pytest.importorskip("manifold3d")
    particles = matter(lambda x: x)
    rest = particles["rest"]
    piece = np.where(rest[:, 0] < 0.0, 0, np.where(rest[:, 2] < 0.0, 1, 2)).astype(np.int32)
    mesh = skin(dataclasses.replace(particles, attributes={**particles.attributes, "piece": piece}), bar)
    triangles, own = mesh.indices.reshape(-1, 3), mesh.attributes["piece"]
    parts = [triangles[own[triangles[:, 0]] == number] for number in range(3)]
    volumes = [volume(mesh.points, part) for part in parts]
    assert all(map(is_closed, parts)) and sum(volumes) == pytest.approx(SIZE.prod(), rel=1e-6)
    assert np.array(volumes) / SIZE.prod() == pytest.approx([0.5, 0.25, 0.25], abs=0.02)


def test_pieces_part_and_never_join(bar):
    """What lies together again is torn still; a lump of one particle is a crumb; the larger half keeps its number."""
    begun = labelled(matter(lambda x: x))
    assert not begun.particles["piece"].any()

    def torn_off_centre(x):
        return np.where((x[:, :1] > 0.15) | (np.arange(len(x)) == 40)[:, None], x + [0.0, 0.3, 0.0], x)

    torn = labelled(matter(torn_off_centre), begun.state)
    piece, crumb = torn.particles["piece"], torn.particles["crumb"]
    assert np.array_equal(piece == 1, torn.particles["rest"][:, 0] > 0.15) and np.array_equal(np.flatnonzero(crumb), [40])
    again = labelled(matter(lambda x: x), PieceState.from_arrays(*torn.state.to_arrays()))
    assert np.array_equal(again.particles["piece"], piece) and np.array_equal(again.particles["crumb"], crumb)


def test_components_are_those_of_a_walk():
    """Of random bonds, with the first number that each piece has."""
    random = np.random.default_rng(3)
    bonds = random.integers(0, 60, (40, 2))
    piece, crumb = next_pieces(bonds, np.ones(40, bool), (np.zeros(60, np.int32), np.zeros(60, np.uint8)), 1)
    for a, b in bonds:
        assert piece[a] == piece[b]
    neighbours = {n: {n} for n in range(60)}
    for a, b in bonds.tolist():
        joined = neighbours[a] | neighbours[b]
        for each in joined:
            neighbours[each] = joined
    assert len(np.unique(piece)) == len({tuple(sorted(each)) for each in neighbours.values()}) and not crumb.any()


def test_an_open_mesh_is_told_before_the_cook(bar, tmp_path):
    """A sheet has no inside that could be cut; so are places at rest that are not there."""
    pytest.importorskip("manifold3d")
    from pxr import Usd, UsdGeom

    stage = Usd.Stage.Open(str(bar))
    mesh = UsdGeom.Mesh(stage.GetPrimAtPath("/bar"))
    graph = shot(bar)
    mesh.GetFaceVertexCountsAttr().Set([4])
    mesh.GetFaceVertexIndicesAttr().Set(list(SIDES[0]))
    stage.Save()
    with pytest.raises((InputError, MpmNodesError), match="has no inside"):
        execute(graph, out=tmp_path / "out")
    with pytest.raises(MpmNodesError, match=r"label_pieces\.particles: have no rest places"):
        label_pieces(FrameContext(1, SETTINGS), emit_box(SETTINGS, SNOW), None)


def shot(bar, end=6):
    """Return a graph in which two halves of a bar fly apart."""
    graph = Graph(cell_size=0.05, fps=24.0, start=1, end=end)
    snow = graph.add("material_neo_hookean", "matter", youngs_modulus=1e3)
    body = graph.add("emit_box", "body", material=snow, size=SIZE.tolist(), centre=[0.0, 0.0, 0.0])
    rest = graph.add("rest_positions", "rest", particles=body)
    side = graph.add("field_ramp", "side", low=-0.001, high=0.001, direction=[1.0, 0.0, 0.0], from_value=-1.0, to_value=1.0)
    away = graph.add("field_vector", "away", vector=[3.0, 0.0, 0.0])
    both = graph.add("field_math", "both", operation="multiply", a=away, b=side)
    thrown = graph.add("set_attribute", "thrown", attribute="velocity", particles=rest, field=both)
    solve = graph.add("solve", "fly", sources=[thrown], gravity=[0.0, 0.0, 0.0])
    pieces = graph.add("label_pieces", "pieces", particles=solve)
    mesh = graph.add("deform_mesh", "skin", particles="pieces.particles", path=str(bar))
    graph.add("write_cache", "cache", mesh=mesh)
    assert pieces is not None
    return graph


def test_a_shot_tells_of_its_break_and_goes_on_from_a_checkpoint(bar, tmp_path):
    """The note says it once; the file has coordinates a corner; a resumed cook ends with the same bits."""
    pytest.importorskip("manifold3d")
    from pxr import Usd, UsdGeom

    told = []
    whole = execute(shot(bar), out=tmp_path / "whole", on_event=told.append)
    notes = [event["message"] for event in told if event["event"] == "note" and "matter breaks" in event.get("message", "")]
    counts = [(int(note.split()[2]), int(note.split()[5])) for note in notes]  # "matter breaks: 1 piece before, 2 now; ..."
    assert counts[0][0] == 1 and all(more > few for few, more in counts) and counts[0][1] in (2, 3)
    part = execute(shot(bar), out=tmp_path / "part", frames=(1, 4))
    resumed = execute(shot(bar), out=tmp_path / "part", resume=True)
    stages = [Usd.Stage.Open(str(each.revision_folder / "cache.usda")) for each in (whole, resumed)]
    meshes = [UsdGeom.Mesh(stage.GetPrimAtPath("/cache/mesh")) for stage in stages]
    points = [np.array(mesh.GetPointsAttr().Get(6)) for mesh in meshes]
    assert points[0].tobytes() == points[1].tobytes() and part.revision_folder == resumed.revision_folder
    st = UsdGeom.PrimvarsAPI(meshes[0]).GetPrimvar("st")
    assert st.GetInterpolation() == "faceVarying" and len(st.Get(6)) == len(meshes[0].GetFaceVertexIndicesAttr().Get(6))
    assert len(triangulate(np.array(meshes[0].GetFaceVertexCountsAttr().Get(1)), np.array(st.Get(1))[:, 0])[0]) == 12
