"""A mesh that its file moves takes along the particles that are laid out in it; one that changes its shape is filled again."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.data import GraphSettings, Material
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.values.kept import Kept
from mpm_nodes.graph.values.store import MemoryStore
from mpm_nodes.nodes import emit
from mpm_nodes.nodes.mesh_deformation import bound, carried
from mpm_nodes.nodes.rotations import rotation_matrix
from mpm_nodes.nodes.seeding import Lattice, Seeding
from usd_io.collider_meshes import StageMeshes
from usd_io.stage_reader import read_points

SETTINGS = GraphSettings(cell_size=0.05, start=1, end=5)
HONEY = Material("liquid", {}, 1400.0, "honey")
CORNERS = 0.11 * np.array([(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)]) * (3.0, 1.0, 1.0)
FACES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))


def way(frame):
    """Return the turn and the shift [m] of a frame: none at the first one."""
    return rotation_matrix((0.0, 20.0 * (frame - 1), 7.0 * (frame - 1))), np.array((0.037 * (frame - 1), 0.0, -0.011 * (frame - 1)))


def written(path, kind):
    """Write a bar over five frames: moved by its points, or by its transform; bent by its points."""
    Gf, Usd, UsdGeom = (pytest.importorskip(f"pxr.{name}") for name in ("Gf", "Usd", "UsdGeom"))
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    mesh = UsdGeom.Mesh.Define(stage, "/bar")
    mesh.CreateFaceVertexCountsAttr([4] * 6)
    mesh.CreateFaceVertexIndicesAttr([corner for face in FACES for corner in face])
    points, op = mesh.CreatePointsAttr(), mesh.AddTransformOp() if kind == "transform" else None
    place = np.array((0.4, 0.013, 0.021))
    for frame in range(1, 6):
        turn, shift = way(frame)
        if op is not None:
            matrix = np.eye(4)
            matrix[:3, :3], matrix[3, :3] = turn.T, shift
            op.Set(Gf.Matrix4d(*map(float, matrix.ravel())), frame)
            continue
        bent = CORNERS * (1.0, 1.0 + 0.1 * (frame - 1), 1.0) if kind == "bent" else CORNERS
        points.Set(((bent + place) @ turn.T + shift).astype(np.float32).tolist(), frame)
    if op is not None:
        points.Set((CORNERS + place).astype(np.float32).tolist())
    stage.Save()
    return path


def filled(path, frame, **knobs):
    """Return where the particles are at a frame."""
    return emit.emit_mesh(SETTINGS, HONEY, path=path, frame=float(frame), **{"lattice": Lattice.BODY, **knobs})["position"]


@pytest.mark.parametrize("seeds", list(Seeding))
@pytest.mark.parametrize("kind", ["points", "transform"])
def test_particles_go_where_the_file_takes_the_mesh(tmp_path, kind, seeds):
    """At every frame each is where the bar's motion takes it from frame 1 (1 um); the lattice of the world stays where it is."""
    path = written(tmp_path / "bar.usda", kind)
    first = filled(path, 1, seeding=seeds)
    assert len(first) > 500
    for frame in range(2, 6):
        turn, shift = way(frame)
        np.testing.assert_allclose(filled(path, frame, seeding=seeds), first @ turn.T + shift, atol=1e-6)
    cut = filled(path, 3, lattice=Lattice.WORLD)
    steps = cut / 0.025 - 0.5
    assert np.abs(steps - np.rint(steps)).max() < 1e-6, "the world's lattice stays that of the grid"


def test_knobs_move_what_the_file_moves(tmp_path):
    """Turn and shift of the node come after those of the file, and one level set is kept for all frames."""
    path, kept = written(tmp_path / "bar.usda", "points"), Kept(MemoryStore(1 << 28))
    knobs = {"rotation": (0.0, 0.0, 30.0), "translation": (0.0, 1.0, 0.0), "kept": kept}
    first = filled(path, 1, kept=kept)
    turn, shift = way(4)
    expected = (first @ turn.T + shift) @ rotation_matrix((0.0, 0.0, 30.0)).T + (0.0, 1.0, 0.0)
    np.testing.assert_allclose(filled(path, 4, **knobs), expected, atol=1e-6)


def test_what_changes_its_shape_is_filled_where_it_is(tmp_path):
    """A bar that grows by 10 % a frame has no rigid motion: it is filled to a spacing (2.5 cm) from its sides at each frame."""
    path = written(tmp_path / "bar.usda", "bent")
    meshes = StageMeshes(path)
    assert meshes.way(1, 4) is None
    turn, shift = way(4)
    own = (filled(path, 4) - shift) @ turn - (0.4, 0.013, 0.021)
    sides = np.abs(CORNERS).max(axis=0) * (1.0, 1.3, 1.0)
    assert np.all(np.abs(own) <= sides + 1e-4) and np.all(own.max(axis=0) > sides - 0.025)


@pytest.mark.parametrize("kind", ["points", "bent"])
def test_particles_go_along_as_a_mesh_deforms(tmp_path, kind):
    """Of a rigid motion to the bit of rounding; of a bar that grows by 10 % a frame to 2 % of its growth; knobs come after."""
    path = written(tmp_path / "bar.usda", kind)
    knobs = {"deform": True, "rotation": (0.0, 0.0, 30.0), "translation": (0.0, 1.0, 0.0)}
    first, again = filled(path, 1), filled(path, 4, **knobs)
    turn, shift = way(4)
    place = np.array((0.4, 0.013, 0.021))
    begin_turn, begin_shift = way(1)
    own = (first - begin_shift) @ begin_turn - place
    grown = own * (1.0, 1.3 if kind == "bent" else 1.0, 1.0)
    exact = ((grown + place) @ turn.T + shift) @ rotation_matrix((0.0, 0.0, 30.0)).T + (0.0, 1.0, 0.0)
    np.testing.assert_allclose(again, exact, atol=0.02 * 0.3 * 0.11 if kind == "bent" else 1e-6)


def test_seeds_of_a_sheet_stay_on_it():
    """A flat sheet that is rolled onto a cylinder takes what lies above and below it along: to a tenth of a spacing."""
    x, z = (each.ravel() for each in np.meshgrid(np.linspace(-1.0, 1.0, 81), np.linspace(-0.5, 0.5, 41)))
    flat = np.column_stack([x, 0.0 * x, z])
    random, radius = np.random.default_rng(1), 0.8
    seeds = random.uniform((-0.9, -0.03, -0.45), (0.9, 0.03, 0.45), (500, 3))

    def rolled(points):
        out = radius + points[:, 1]
        return np.column_stack([out * np.sin(points[:, 0] / radius), out * np.cos(points[:, 0] / radius), points[:, 2]])

    found = carried(bound(seeds, flat), rolled(flat))
    assert np.linalg.norm(found - rolled(seeds), axis=1).max() < 0.1 * 0.025
    upright, many = seeds[:, [0, 2, 1]], np.repeat(flat[:, [0, 2, 1]], 2, axis=0)  # more vertices than are looked at
    thinned = carried(bound(upright, many), many)
    np.testing.assert_allclose(thinned, upright, atol=1e-9)


def test_a_mesh_with_other_faces_is_filled_again(tmp_path):
    """A fourth frame with fewer faces has no particles of the first one's."""
    Usd, UsdGeom = (pytest.importorskip(f"pxr.{name}") for name in ("Usd", "UsdGeom"))
    path = written(tmp_path / "bar.usda", "bent")
    stage = Usd.Stage.Open(str(path))
    mesh = UsdGeom.Mesh(stage.GetPrimAtPath("/bar"))
    mesh.GetFaceVertexIndicesAttr().Set([corner for face in FACES for corner in face], 1)
    mesh.GetFaceVertexIndicesAttr().Set([corner for face in FACES[::-1] for corner in face], 4)
    stage.Save()
    np.testing.assert_array_equal(filled(path, 4, deform=True), filled(path, 4))
    assert len(filled(path, 2, deform=True)) == len(filled(path, 1))


def test_the_skin_of_a_mesh_that_bends_streams_all_around(tmp_path):
    """Between frames, along the normals, with the velocity of the mesh; a cook that is resumed gives the same bits."""
    path = written(tmp_path / "bar.usda", "bent")
    graph = Graph(cell_size=0.05, fps=24.0, start=1, end=4)
    keys = {"keys": [[1, 1.0, "linear"], [5, 5.0, "linear"]]}
    skin = graph.add(
        "emit_mesh", "skin", material=graph.add("material_liquid", "m"), path=str(path), thickness=0.03, deform=True, frame=keys
    )
    distance = graph.add("field_collider", "distance", collider=graph.add("collide_usd", "body", path=str(path)), output="distance")
    stream = graph.add("emit_stream", "stream", template=skin, surface=distance, velocity=(0.0, 2.0, 0.0), deforms=True)
    graph.add("solve", "sim", emitters=[stream], gravity=(0.0, 0.0, 0.0))
    graph.add("write_cache", "cache", particles=graph["sim"], attributes=["velocity", "id"])
    whole = execute(graph, out=tmp_path / "whole")
    execute(graph, frames=(1, 2), out=tmp_path / "parts")
    parts = execute(graph, out=tmp_path / "parts", resume=True)
    found = [read_points(each.revision_folder / "cache.usda", 4) for each in (whole, parts)]
    for name in ("position", "velocity", "id"):
        np.testing.assert_array_equal(found[0][name], found[1][name])
    turn, shift = way(4)
    own = (found[0]["position"] - shift) @ turn - (0.4, 0.013, 0.021)
    assert not whole.warnings and len(own) > 2000
    assert (own.max(axis=0) > (0.42, 0.24, 0.21)).all() and (own.min(axis=0) < (-0.42, -0.24, -0.21)).all()
