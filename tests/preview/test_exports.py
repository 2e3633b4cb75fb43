"""Caches as glTF and Alembic: what readers of these formats see at each frame is what the cache holds."""

import importlib.util
import json
import struct
import subprocess
import sys

import numpy as np
import pytest
from preview_samples import write_cache

from mpm_nodes import cli
from mpm_nodes.preview.pictures import find_root
from mpm_nodes.preview.scene import open_scene

KINDS = {5126: np.dtype("<f4"), 5121: np.dtype("u1"), 5123: np.dtype("<u2"), 5125: np.dtype("<u4")}
WIDE = {"SCALAR": 1, "VEC3": 3, "VEC4": 4}


class Read:
    """A GLB file read as the specification says."""

    def __init__(self, data: bytes) -> None:
        magic, version, total = struct.unpack_from("<4sII", data)
        assert (magic, version, total) == (b"glTF", 2, len(data))
        length, kind = struct.unpack_from("<I4s", data, 12)
        assert kind == b"JSON" and length % 4 == 0
        self.record = json.loads(data[20 : 20 + length])
        size, kind = struct.unpack_from("<I4s", data, 20 + length)
        assert kind == b"BIN\0" and size == self.record["buffers"][0]["byteLength"]
        self.binary = data[28 + length :]

    def array(self, number: int) -> np.ndarray:
        """Return the values of an accessor."""
        told = self.record["accessors"][number]
        view = self.record["bufferViews"][told["bufferView"]]
        assert view["byteOffset"] % 4 == 0
        kind, wide = KINDS[told["componentType"]], WIDE[told["type"]]
        return np.frombuffer(self.binary, kind, told["count"] * wide, view["byteOffset"]).reshape(-1, wide)

    def shown(self, time: float) -> dict[str, dict]:
        """Return the nodes with a mesh that have a size at a time [s], by the name of what they show."""
        scales = {n: 1.0 for n, node in enumerate(self.record["nodes"]) if "mesh" in node}
        for animation in self.record.get("animations", []):
            for channel in animation["channels"]:
                sampler = animation["samplers"][channel["sampler"]]
                assert sampler["interpolation"] == "STEP"
                times, values = self.array(sampler["input"])[:, 0], self.array(sampler["output"])[:, 0]
                scales[channel["target"]["node"]] = values[max(0, np.searchsorted(times, time, side="right") - 1)]
        nodes = [self.record["nodes"][n] for n, scale in scales.items() if scale == 1.0]
        assert set(scales.values()) <= {0.0, 1.0}
        return {node["name"].rsplit("_", 1)[0]: self.record["meshes"][node["mesh"]]["primitives"][0] for node in nodes}


@pytest.fixture
def cache(tmp_path):
    """A cache of five frames with points, a surface and a bowl."""
    write_cache(tmp_path / "out", with_surface=True)
    return tmp_path / "out"


@pytest.mark.parametrize("show", ["surface", "points"])
def test_each_frame_shows_what_the_cache_holds_then(cache, tmp_path, show):
    """Positions, colours and triangles are those of the scene, frame by frame; what stands still is written once."""
    path = tmp_path / "shot.glb"
    assert cli.main(["export", str(cache), str(path), "--show", show]) == 0
    read, scene = Read(path.read_bytes()), open_scene(find_root(cache))
    for frame in range(1, 6):
        shapes = scene.shapes(frame, show)
        drawn = read.shown((frame - 1 + 0.5) / scene.fps)
        held = {each.path.strip("/").replace("/", "_"): each for each in (*shapes.clouds, *shapes.surfaces)}
        assert drawn.keys() == held.keys()
        for name, part in drawn.items():
            places = read.array(part["attributes"]["POSITION"])
            if part["mode"] == 0:
                np.testing.assert_array_equal(places, held[name].positions.astype(np.float32))
                continue
            triangles = read.array(part["indices"])[:, 0]
            np.testing.assert_array_equal(places[triangles], held[name].points.astype(np.float32)[held[name].triangles.reshape(-1)])
            normals = read.array(part["attributes"]["NORMAL"])
            np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1.0, atol=1e-6)
    assert sum("bowl" in node["name"] for node in read.record["nodes"]) == 1


def test_arrays_say_how_far_they_reach(cache, tmp_path):
    """Positions state their limits, as the specification demands: viewers frame the shot by them."""
    cli.main(["export", str(cache), str(tmp_path / "shot.glb"), "--frames", "2-4", "--every", "2"])
    read = Read((tmp_path / "shot.glb").read_bytes())
    for mesh in read.record["meshes"]:
        number = mesh["primitives"][0]["attributes"]["POSITION"]
        values, told = read.array(number), read.record["accessors"][number]
        np.testing.assert_array_equal([values.min(axis=0), values.max(axis=0)], np.float32([told["min"], told["max"]]))
    assert sum("sim_mesh" in node["name"] for node in read.record["nodes"]) == 2


def changed(cache):
    """Return the stage of the cache, and its surface and points, to be changed."""
    from pxr import Usd, UsdGeom

    stage = Usd.Stage.Open(str(find_root(cache)))
    return stage, UsdGeom.Mesh.Get(stage, "/sim/mesh"), UsdGeom.Points.Get(stage, "/sim/points")


def test_what_changes_its_colour_or_faces_and_no_place_is_shown(cache, tmp_path):
    """Hot matter at rest that cools: each frame has its own; and the last one lasts as long as the others."""
    from pxr import Vt

    stage, mesh, _ = changed(cache)
    places = mesh.GetPointsAttr().Get(1)
    for frame in range(1, 6):
        mesh.GetPointsAttr().Set(places, frame)
        mesh.CreateDisplayColorPrimvar("constant").Set(Vt.Vec3fArray([(0.2 * min(frame, 3), 0.0, 0.0)]), frame)
        mesh.GetFaceVertexCountsAttr().Set(Vt.IntArray([3] * (8 if frame < 5 else 4)), frame)
        mesh.GetFaceVertexIndicesAttr().Set(mesh.GetFaceVertexIndicesAttr().Get(1)[: 24 if frame < 5 else 12], frame)
    stage.Save()
    assert cli.main(["export", str(cache), str(tmp_path / "shot.glb")]) == 0
    read, scene = Read((tmp_path / "shot.glb").read_bytes()), open_scene(find_root(cache))
    seen = []
    for frame in range(1, 6):
        part = read.shown((frame - 0.5) / scene.fps)["sim_mesh"]
        seen.append((int(read.array(part["attributes"]["COLOR_0"])[0, 0]), len(read.array(part["indices"])) // 3))
    assert seen == [(51, 8), (102, 8), (153, 8), (153, 8), (153, 4)]
    samplers = read.record["animations"][0]["samplers"]
    last = max(read.array(each["input"]).max() for each in samplers)
    np.testing.assert_allclose(last, 5.0 / scene.fps, rtol=1e-6)


def test_what_is_nowhere_is_left_out_and_nothing_at_all_is_told(cache, tmp_path, capsys):
    """Numbers of a file are finite, as JSON has no others; and glTF has no empty lists."""
    from pxr import UsdGeom, Vt

    stage, mesh, points = changed(cache)
    for each in (mesh, points):
        places = np.array(each.GetPointsAttr().Get(2))
        places[0] = [np.nan, np.inf, 1.0]
        each.GetPointsAttr().Set(Vt.Vec3fArray.FromNumpy(places), 2)
    stage.Save()
    for show in ("surface", "points"):
        assert cli.main(["export", str(cache), str(tmp_path / f"{show}.glb"), "--show", show]) == 0
        read = Read((tmp_path / f"{show}.glb").read_bytes())
        json.dumps(read.record, allow_nan=False)
        shown = read.shown(1.5 / open_scene(find_root(cache)).fps)["sim_mesh" if show == "surface" else "sim_points"]
        if show == "surface":
            assert len(read.array(shown["indices"])) == 12
        else:
            assert len(read.array(shown["attributes"]["POSITION"])) == 12**3 - 1
    for prim in stage.Traverse():
        if prim.IsA(UsdGeom.PointBased):
            UsdGeom.Imageable(prim).MakeInvisible()
    stage.Save()
    assert cli.main(["export", str(cache), str(tmp_path / "none.glb")]) == 5
    assert "shows nothing" in capsys.readouterr().err and not (tmp_path / "none.glb").exists()


def test_what_cannot_be_exported_is_told(cache, tmp_path, capsys):
    """An unknown ending, frames that are not there, a file of someone else: each is refused, and nothing is written."""
    foreign = tmp_path / "model.glb"
    foreign.write_bytes(b"glTF of another program")
    for arguments, code, told in (
        ([str(tmp_path / "shot.obj")], 2, ".glb, .abc"),
        ([str(tmp_path / "shot.glb"), "--frames", "7-9"], 5, "holds frames 1 to 5"),
        ([str(foreign)], 5, "model.glb"),
        ([str(tmp_path / "none" / "shot.glb")], 5, "its folder does not exist"),
        ([str(tmp_path / "shot.abc"), "--every", "2"], 2, "--every"),
        ([str(tmp_path / "shot.abc"), "--show", "points"], 2, "--show points"),
    ):
        assert cli.main(["export", str(cache), *arguments]) == code
        assert told in capsys.readouterr().err
    assert foreign.read_bytes() == b"glTF of another program"
    assert [path.name for path in tmp_path.iterdir() if path.suffix in (".glb", ".abc", ".obj")] == ["model.glb"]


READ_BACK = """
import json, sys
import bpy
bpy.ops.wm.read_factory_settings(use_empty=True)
bpy.ops.wm.alembic_import(filepath=sys.argv[-1])
scene, found = bpy.context.scene, {}
for frame in range(scene.frame_start, scene.frame_end + 1):
    scene.frame_set(frame)
    graph = bpy.context.evaluated_depsgraph_get()
    for item in scene.objects:
        if item.type == "MESH":
            mesh = item.evaluated_get(graph)
            found[f"{item.name} {frame}"] = [list(mesh.matrix_world @ v.co) for v in mesh.data.vertices]
print("READ " + json.dumps([scene.render.fps / scene.render.fps_base, found]))
"""


@pytest.mark.skipif(importlib.util.find_spec("bpy") is None, reason="Blender (bpy) is not installed")
def test_alembic_holds_the_same_meshes(cache, tmp_path):
    """Blender reads back every surface and body where it is, at every frame, and again after the file was replaced."""
    path = tmp_path / "shot.abc"
    for _ in range(2):
        assert cli.main(["export", str(cache), str(path)]) == 0
    done = subprocess.run([sys.executable, "-c", READ_BACK, str(path)], capture_output=True, text=True, timeout=300)
    line = next(line for line in done.stdout.splitlines() if line.startswith("READ "))
    rate, found = json.loads(line.removeprefix("READ "))
    scene = open_scene(find_root(cache))
    assert rate == scene.fps and len(found) == 10
    for frame in range(1, 6):
        for surface in scene.shapes(frame, "surface").surfaces:
            x, y, z = np.array(found[f"{surface.path.rsplit('/', 1)[-1]} {frame}"]).T
            np.testing.assert_allclose(np.column_stack([x, z, -y]), surface.points, atol=1e-6)
