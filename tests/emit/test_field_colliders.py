"""Fields of colliders: distances from shapes, meshes and sequences of level sets where they are at any moment."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mpm_nodes import Graph
from mpm_nodes.data import LevelSet
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.nodes.collider_motion import box_mesh
from mpm_nodes.solver.field_programs import field_values
from usd_io.openvdb_module import find_openvdb

PLACES = np.random.default_rng(0).uniform(-1.0, 1.0, (2000, 3))
TURN = {"keys": [[1, [0.0, 0.0, 0.0], "linear"], [3, [0.0, 0.0, 40.0], "linear"]]}
SHIFT = {"keys": [[1, [0.0, 0.0, 0.0], "linear"], [3, [0.4, 0.2, 0.0], "linear"]]}


def field_of(kind: str, frame: int, output: str = "distance", falloff: float = 0.0, **knobs):
    """Return the field of a collider at a frame of a shot of four."""
    graph = Graph(cell_size=0.05, start=1, end=4)
    body = graph.add(kind, "body", **knobs)
    graph.add("field_collider", "field", collider=body, output=output, falloff=falloff)
    return Evaluator(graph).value("field", frame)


def box_distance(places: np.ndarray, half: np.ndarray) -> np.ndarray:
    """Return the distance from a box around the origin."""
    out = np.abs(places) - half
    return np.linalg.norm(np.maximum(out, 0.0), axis=1) + np.minimum(out.max(axis=1), 0.0)


def in_axes(frame: float) -> np.ndarray:
    """Return the places in the axes of what TURN and SHIFT move, at a frame."""
    share = min(max((frame - 1.0) / 2.0, 0.0), 1.0)
    angle = np.radians(40.0 * share)
    turn = np.array([[np.cos(angle), -np.sin(angle), 0.0], [np.sin(angle), np.cos(angle), 0.0], [0.0, 0.0, 1.0]])
    return (PLACES - share * np.array([0.4, 0.2, 0.0])) @ turn


@pytest.mark.parametrize("frame", [1.0, 1.3, 2.0, 2.71, 3.0])
def test_shapes_are_where_their_keys_bring_them(frame):
    """A ball and a turning box near their surfaces, to how much a turn shrinks a box between keys of its matrix: 2.4e-4 of it."""
    cooked = int(np.ceil(frame))
    ball = field_values(field_of("collide_sphere", cooked, radius=0.3, centre=SHIFT), PLACES, frame)
    away = np.linalg.norm(PLACES - min((frame - 1.0) / 2.0, 1.0) * np.array([0.4, 0.2, 0.0]), axis=1)
    near = np.abs(away - 0.3) < 0.1
    np.testing.assert_allclose(ball[near], (away - 0.3)[near], atol=1e-6)
    box = field_values(field_of("collide_box", cooked, size=(0.6, 0.4, 0.2), centre=SHIFT, rotation=TURN), PLACES, frame)
    exact = box_distance(in_axes(frame), np.array([0.3, 0.2, 0.1]))
    np.testing.assert_allclose(box[np.abs(exact) < 0.05], exact[np.abs(exact) < 0.05], atol=2e-4)


def test_planes_capsules_and_what_lies_inside():
    """1 inside, 0 outside, and smoothly between within the falloff."""
    plane = field_values(field_of("collide_plane", 1, centre=(0.0, 0.2, 0.0)), PLACES, 1.0)
    np.testing.assert_allclose(plane, PLACES[:, 1] - 0.2, atol=1e-9)
    capsule = field_values(field_of("collide_capsule", 1, radius=0.2, length=0.6), PLACES, 1.0)
    along = np.clip(PLACES[:, 1], -0.3, 0.3)
    expected = np.linalg.norm(PLACES - np.c_[0.0 * along, along, 0.0 * along], axis=1) - 0.2
    np.testing.assert_allclose(capsule, expected, atol=1e-9)
    inside = field_values(field_of("collide_capsule", 1, "inside", 0.1, radius=0.2, length=0.6), PLACES, 1.0)
    assert (inside[expected < 0.0] == 1.0).all() and (inside[expected > 0.1] == 0.0).all()
    between = inside[(expected > 0.01) & (expected < 0.09)]
    assert ((between > 0.0) & (between < 1.0)).all() and len(between) > 10


def box_stage(path: Path, moves: bool) -> Path:
    """Write a box mesh of 1.2 x 0.8 x 0.6 m, which grows by a half until frame 3 where it deforms."""
    from pxr import Usd, UsdGeom

    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    mesh, box = UsdGeom.Mesh.Define(stage, "/box"), box_mesh((1.2, 0.8, 0.6))
    points = mesh.CreatePointsAttr()
    for code, size in ((1.0, 1.0), (3.0, 1.5)) if moves else ((1.0, 1.0),):
        points.Set([tuple(map(float, size * point)) for point in box.points], code)
    mesh.CreateFaceVertexCountsAttr().Set(box.counts.tolist())
    mesh.CreateFaceVertexIndicesAttr().Set(box.indices.tolist())
    stage.GetRootLayer().Save()
    return path


@pytest.mark.parametrize(("moves", "frame"), [(False, 1.0), (True, 1.0), (True, 2.5), (True, 3.0)])
def test_meshes_are_known_to_their_middle(moves, frame, tmp_path):
    """The sign is right everywhere, deep inside too, and the distance near the surface to a quarter of a voxel."""
    path = box_stage(tmp_path / "box.usda", moves)
    found = field_values(field_of("collide_usd", int(np.ceil(frame)), path=str(path)), PLACES, frame)
    size = 1.0 + (0.25 * (frame - 1.0) if moves else 0.0)
    exact = box_distance(PLACES, size * np.array([0.6, 0.4, 0.3]))
    clear = np.abs(exact) > 0.02
    assert ((found < 0.0) == (exact < 0.0))[clear].all() and (exact < -0.15).sum() > 10
    near = np.abs(exact) < 0.04
    np.testing.assert_allclose(found[near], exact[near], atol=0.0125)


def test_a_sequence_of_level_sets_is_followed(tmp_path):
    """Balls of 0.3, 0.4 and 0.5 m, one a frame: at the middle of a frame one in between."""
    try:
        find_openvdb()
    except Exception:
        pytest.skip("OpenVDB is not installed")
    from usd_io.volumes import write_volumes

    corners = 8 * np.stack(np.meshgrid(*(np.arange(-2, 2),) * 3, indexing="ij"), -1).reshape(-1, 3).astype(np.int32)
    index = corners[:, None, None, None] + np.stack(np.meshgrid(*(np.arange(8),) * 3, indexing="ij"), -1)
    for frame, radius in ((1, 0.3), (2, 0.4), (3, 0.5)):
        values = np.clip(np.linalg.norm(0.05 * index, axis=-1) - radius, -0.15, 0.15).astype(np.float32)
        write_volumes(tmp_path / f"ball.{frame:04d}.vdb", [LevelSet(corners, values, 0.05, background=0.15)])
    knobs = {"path": str(tmp_path / "ball.0001.vdb"), "sequence": True}
    away = np.linalg.norm(PLACES, axis=1)
    for frame, radius in ((1.0, 0.3), (1.5, 0.35), (2.0, 0.4), (2.75, 0.475), (3.0, 0.5)):
        found = field_values(field_of("collide_vdb", int(np.ceil(frame)), **knobs), PLACES, frame)
        near = np.abs(away - radius) < 0.08
        np.testing.assert_allclose(found[near], (away - radius)[near], atol=6e-3)


def test_a_thin_body_is_as_thick_between_the_keys_of_its_way():
    """A plate of 2 cm that goes 20 cm a frame keeps its thickness at every moment, and a capsule that turns fast its length."""
    keys = {"keys": [[1, [0.0, 0.0, 0.0], "linear"], [3, [0.4, 0.0, 0.0], "linear"]]}
    plate = field_of("collide_box", 2, "inside", size=(0.02, 1.0, 1.0), centre=keys)
    x = np.linspace(-0.1, 0.5, 6001)
    line = np.stack([x, 0.0 * x, 0.0 * x], axis=1)
    for frame in (1.0, 1.0625, 1.3, 1.77):
        assert field_values(plate, line, frame).sum() * 1e-4 == pytest.approx(0.02, abs=2e-4)


def test_far_from_a_mesh_its_distance_goes_on(tmp_path):
    """Beyond the band it grows, deep inside it falls, and a wide falloff ends."""
    path = box_stage(tmp_path / "box.usda", False)
    far = np.array([[3.0, 0.0, 0.0], [1.5, 0.1, 0.1], [0.0, 0.0, 0.0], [0.2, 0.0, 0.0], [0.0, 0.1, 0.0]])
    found = field_values(field_of("collide_usd", 1, path=str(path)), far, 1.0)
    np.testing.assert_allclose(found[:2], [2.4, 0.9], atol=0.03)
    assert found[2] < -0.2 and found[2] < found[4] < 0.0
    soft = field_values(field_of("collide_usd", 1, "inside", 0.5, path=str(path)), far, 1.0)
    assert soft[:2].tolist() == [0.0, 0.0] and soft[2] == 1.0
