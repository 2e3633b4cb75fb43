"""Caches as USD: what is written comes back, in equal bytes, at every frame, and resumes to the same files."""

from __future__ import annotations

import ctypes
import dataclasses
import gc
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from cache_samples import ALL, MATERIAL, manifest, particles, sphere, tetrahedron, write_frame, write_frames
from pxr import Gf, Sdf, Usd, UsdGeom

from mpm_nodes.data import (
    FrameContext,
    GraphSettings,
    InputError,
    Material,
    Mesh,
    MpmNodesError,
    OutputError,
    ParameterTable,
    Particles,
)
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.declare.decorators import PreflightContext
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.revisions.revision import Revision
from mpm_nodes.materials.library import LIBRARY, named_material
from mpm_nodes.nodes.caches import read_points, write_cache
from usd_io.bounds import read_bounds
from usd_io.points import add_points
from usd_io.stage import CacheNames, FrameContent, frame_layer, root_layers
from usd_io.stage_reader import open_stage, sample_times
from usd_io.stage_reader import read_points as read_from_stage


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    folder, _ = write_frames(tmp_path_factory.mktemp("cook"))
    return folder


def test_particles_come_back_with_every_attribute(cache):
    """Positions to float32, reals to float32, ids, doubles, flags and materials exactly; spacing and time too."""
    wanted, found = particles(150, 2), read_from_stage(cache / "shot.usda", 2)
    assert set(found.attributes) == set(wanted.attributes)
    for name, column in wanted.attributes.items():
        exact = column.dtype.kind in "ib" or name == "precise"
        assert found[name].shape == column.shape
        wanted_column = column if exact else column.astype(np.float32).astype(found[name].dtype)
        assert np.array_equal(found[name], wanted_column), name
    assert (found.materials, found.spacing, found.time) == (wanted.materials, wanted.spacing, wanted.time)


def test_stage_says_what_readers_need(cache):
    """Units, axes, range, default prim, and what made the cache."""
    stage = open_stage(cache / "shot.usda")
    assert stage.GetDefaultPrim().GetPath() == "/shot"
    assert (UsdGeom.GetStageMetersPerUnit(stage), UsdGeom.GetStageUpAxis(stage)) == (1.0, "Y")
    assert (stage.GetTimeCodesPerSecond(), stage.GetFramesPerSecond()) == (24.0, 24.0)
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode()) == (1.0, 3.0)
    facts = stage.GetRootLayer().customLayerData["mpm_nodes"]
    assert dict(facts) == {
        "package_version": "0.1.0",
        "graph": '{"nodes": {}}',
        "overrides": '["sim.gravity=0"]',
        "frame_offset": 0,
    }


def test_every_frame_has_its_own_values(cache):
    """Counts, topology and volume files change with the frame; nothing is left over from the frame before."""
    stage = open_stage(cache / "shot.usda")
    points, mesh = (stage.GetPrimAtPath(f"/shot/{name}").GetAttribute("points") for name in ("particles", "mesh"))
    assert sample_times(points) == [1.0, 2.0, 3.0]
    assert [len(points.Get(frame)) for frame in (1, 2, 3)] == [100, 150, 200]
    assert len({len(mesh.Get(frame)) for frame in (1, 2, 3)}) == 3
    field = stage.GetPrimAtPath("/shot/volume/density").GetAttribute("filePath")
    assert [Path(field.Get(frame).resolvedPath).name for frame in (1, 3)] == ["shot.0001.vdb", "shot.0003.vdb"]


def test_only_primvar_types_that_blender_reads(cache):
    """One primvar of another type makes Blender drop all later ones: doubles and int64 are plain attributes."""
    stage = open_stage(cache / "shot.usda")
    prim = stage.GetPrimAtPath("/shot/particles")
    types = {str(primvar.GetTypeName()) for primvar in UsdGeom.PrimvarsAPI(prim).GetPrimvars()}
    assert types == {"float[]", "float3[]", "int[]", "bool[]", "color3f[]"}
    assert str(prim.GetAttribute("mpm:precise").GetTypeName()) == "double[]"
    assert str(prim.GetAttribute("ids").GetTypeName()) == "int64[]"
    assert prim.GetAttribute("primvars:id").Get(1)[0] == 7


def test_widths_and_extent(cache):
    """Widths are diameters of balls of the particles' volume, and the extent holds the balls."""
    stage = open_stage(cache / "shot.usda")
    prim = stage.GetPrimAtPath("/shot/particles")
    widths, points = (np.array(prim.GetAttribute(name).Get(1)) for name in ("widths", "points"))
    assert np.allclose(np.pi / 6 * widths.astype(float) ** 3, 1e-6, rtol=1e-5)
    low, high = np.array(prim.GetAttribute("extent").Get(1))
    assert np.allclose(low, points.min(axis=0) - widths[0] / 2, atol=1e-6)
    assert np.allclose(high, points.max(axis=0) + widths[0] / 2, atol=1e-6)


def test_points_return_the_extent_of_balls_as_large_as_they_are():
    """Half a diameter of its own volume beyond each point, however wide they are drawn."""
    layer, some = Sdf.Layer.CreateAnonymous(), particles(30)
    low, high = np.array(add_points(layer, "/points", some, 1, ("velocity",), width_scale=3.0), float)
    radius = 0.5 * np.cbrt(6.0 / np.pi * some["volume"])[:, None]
    np.testing.assert_allclose(low, (some["position"] - radius).min(axis=0), rtol=1e-5)
    np.testing.assert_allclose(high, (some["position"] + radius).max(axis=0), rtol=1e-5)


def test_camera_sees_the_whole_shot(cache):
    """Every particle of every frame projects into the picture, which the shot also fills."""
    stage = open_stage(cache / "shot.usda")
    camera = UsdGeom.Camera.Get(stage, "/shot_set/camera").GetCamera(1)
    frustum = camera.frustum
    to_picture = frustum.ComputeViewMatrix() * frustum.ComputeProjectionMatrix()
    corners = []
    for frame in (1, 2, 3):
        for point in stage.GetPrimAtPath("/shot/particles").GetAttribute("points").Get(frame):
            corners.append(np.array(to_picture.Transform(Gf.Vec3d(point)))[:2])
    reach = np.abs(corners).max(axis=0)
    assert (reach < 1.0).all()
    assert reach.max() > 0.4


def test_drops_that_fly_far_do_not_make_all_else_small():
    """The box that the camera frames stays within half a side of the bulk, whatever a hundredth of the particles does."""
    near = particles(1000, 2)
    position = near["position"].copy()
    position[::100] += [0.0, 80.0, 0.0]
    boxes = []
    for columns in (near.attributes, {**near.attributes, "position": position}):
        layer = frame_layer(CacheNames("shot"), 1, 24.0, FrameContent(particles=Particles(columns, (MATERIAL,), 0.01)))
        boxes.append(read_bounds(layer))
    assert np.abs(boxes[0]).max() < 0.52
    assert np.abs(boxes[1]).max() < 1.02 and (boxes[1][0] <= boxes[0][0] + 0.05).all()


def test_two_cooks_give_equal_bytes(cache, tmp_path):
    """Every file of a cook, commit records included, is a function of its input."""
    again, _ = write_frames(tmp_path)
    first, second = files_below(cache), files_below(again)
    assert sorted(first) == sorted(second)
    assert [name for name in first if first[name] != second[name] and name != "cook.lock"] == []


def test_resumed_cook_gives_equal_bytes(cache, tmp_path):
    """A cook that is rolled back to frame 1 and goes on ends with the files of the uninterrupted one."""
    shutil.copytree(cache, tmp_path / "out" / cache.name)
    revision = Revision.resume(tmp_path / "out", manifest())
    revision.roll_back(1)
    for frame in (2, 3):
        write_frame(revision, frame)
    revision.close()
    first, second = files_below(cache), files_below(revision.folder)
    assert [name for name in first if first[name] != second.get(name) and name != "cook.lock"] == []


def test_opens_after_every_frame(tmp_path):
    """A cache that is still being cooked opens and ends at its newest frame."""
    revision = Revision.create(tmp_path, manifest())
    for frame in (1, 2):
        write_frame(revision, frame)
        stage = open_stage(revision.folder / "shot.usda")
        assert stage.GetEndTimeCode() == frame
        assert len(stage.GetPrimAtPath("/shot/particles").GetAttribute("points").Get(frame)) == 50 * (frame + 1)
    revision.close()


def test_negative_frames_are_renumbered_by_the_stored_offset(tmp_path):
    """Frames -2 to 0 become files 0 to 2 (no reader counts digits below zero), and the stage keeps the offset."""
    folder, written = write_frames(tmp_path, 3, first=-2)
    assert [frame.number for frame in written] == [0, 1, 2]
    stage = open_stage(folder / "shot.usda")
    assert sample_times(stage.GetPrimAtPath("/shot/particles").GetAttribute("points")) == [0.0, 1.0, 2.0]
    assert stage.GetRootLayer().customLayerData["mpm_nodes"]["frame_offset"] == 2


@pytest.mark.parametrize("first", [0, -5, 1, 1001])
@pytest.mark.parametrize("fps", [23.976, 24.0, 25.0, 30.0, 48.0, 60.0, 120.0])
def test_a_cache_counts_as_many_codes_a_second_as_the_shot_has_frames(tmp_path, fps, first):
    """Stage and every layer say the rate, each frame is a whole code, and lies at its second of the shot; so it is read back."""
    revision, settings = Revision.create(tmp_path, manifest(first)), GraphSettings(fps=fps, start=first, end=first + 1)
    for frame in (first, first + 1):
        write_cache(
            FrameContext(frame, settings, files=(files := revision.begin(frame))), particles(3, seed=frame + 9), name="shot"
        )
        files.commit()
    revision.close()
    stage, offset = open_stage(revision.folder / "shot.usda"), max(0, -first)
    assert (stage.GetTimeCodesPerSecond(), stage.GetFramesPerSecond()) == (fps, fps)
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode()) == (first + offset, first + 1 + offset)
    for layer in stage.GetUsedLayers():
        if not layer.anonymous:
            assert (layer.timeCodesPerSecond, layer.framesPerSecond) == (fps, fps), layer.identifier
    for frame in (first, first + 1):
        read = read_points(FrameContext(frame, settings), path=revision.folder / "shot.usda", frame_offset=offset)
        assert np.array_equal(np.sort(read["id"]), np.arange(3) + 7)
        assert np.allclose(read["position"], particles(3, seed=frame + 9)["position"], atol=1e-6)


def test_gap_is_refused_before_anything_is_written(tmp_path):
    """Frame 3 after frame 1 would play as an empty frame 2."""
    revision = Revision.create(tmp_path, manifest())
    write_frame(revision, 1)
    before = files_below(revision.folder)
    with pytest.raises(OutputError, match="gap"):
        write_frame(revision, 3)
    assert files_below(revision.folder) == before
    revision.close()


def context(revision: Revision, frame: int = 1) -> FrameContext:
    return FrameContext(frame, GraphSettings(), files=revision.begin(frame))


@pytest.mark.parametrize(
    ("inputs", "knobs", "says"),
    [
        ({"particles": particles(3)}, {"attributes": ("temprature",)}, "'temprature' is not an attribute.*velocity"),
        ({"particles": particles(3)}, {"name": "a/b"}, "cache name 'a/b'"),
        ({}, {}, "nothing is wired"),
        ({"mesh": dataclasses.replace(tetrahedron(), indices=np.full(12, 4, np.int32))}, {}, "to 4 for 4 points"),
        ({"mesh": dataclasses.replace(tetrahedron(), points=np.full((4, 3), np.nan))}, {}, "NaN"),
        ({"particles": Particles({"position": np.full((1, 3), np.inf)})}, {}, "position of particle 0"),
        ({"particles": Particles({"position": np.zeros((1, 3)), "id": np.array([2**40])})}, {}, "32 bits"),
        ({"particles": Particles({"position": np.zeros((1, 3)), "odd": np.zeros((1, 4))})}, {"attributes": ALL}, "no place"),
    ],
)
def test_bad_input_is_refused(tmp_path, inputs, knobs, says):
    """What readers would crash on, or drop silently, is refused with the reason."""
    revision = Revision.create(tmp_path, manifest())
    with pytest.raises(OutputError, match=says):
        write_cache(context(revision), **inputs, **knobs)
    assert not (revision.folder / "cache.usda").exists()
    revision.close()


def test_a_cache_that_nothing_is_wired_to_is_told_before_the_cook(tmp_path):
    """No frame of what else is in the graph is cooked for it."""
    graph = Graph(cell_size=0.1, end=2)
    graph.add("write_cache", "cache")
    with pytest.raises(MpmNodesError, match="write_cache: nothing is wired in; wire particles, mesh, volumes or colliders"):
        execute(graph, out=tmp_path)
    assert not list(tmp_path.iterdir())


def test_two_caches_of_one_name_are_refused(tmp_path):
    """A second write_cache of the same name in a frame would overwrite the first."""
    revision = Revision.create(tmp_path, manifest())
    ctx = context(revision)
    write_cache(ctx, particles(3))
    with pytest.raises(OutputError, match="already written in this frame"):
        write_cache(ctx, particles(4))
    write_cache(ctx, particles(4), name="other")
    revision.close()


def test_empty_frames_are_written(tmp_path):
    """No particles and no faces (before an emitter starts) are a frame like any other."""
    revision = Revision.create(tmp_path, manifest())
    nothing = Particles({"position": np.zeros((0, 3)), "velocity": np.zeros((0, 3))})
    hollow = Mesh(np.zeros((0, 3)), np.zeros(0, np.int32), np.zeros(0, np.int32))
    for frame, (cloud, mesh) in enumerate([(nothing, hollow), (particles(5), tetrahedron())], 1):
        ctx = context(revision, frame)
        write_cache(ctx, cloud, mesh)
        ctx.files.commit()
    stage = open_stage(revision.folder / "cache.usda")
    points = stage.GetPrimAtPath("/cache/particles").GetAttribute("points")
    assert [len(points.Get(frame)) for frame in (1, 2)] == [0, 5]
    revision.close()


def test_disk_estimate_bounds_what_is_written(tmp_path):
    """The estimate for a frame of a thousand particles is above what they take, and below twice that."""
    revision = Revision.create(tmp_path, manifest())
    ctx, names = context(revision), ("velocity", "id", "deformation")
    written = write_cache(ctx, particles(1000), attributes=names)
    ctx.files.commit()
    taken = (revision.folder / written.layer).stat().st_size
    knobs = {"name": "cache", "attributes": names, "half": True}
    expected = write_cache.declaration.preflight(PreflightContext(knobs, inputs={"particles": ({"particles": 1000},)}))["disk"]
    assert taken <= expected < 2 * taken
    revision.close()


# ---------------------------------------------------------------- reading
class Heap(ctypes.Structure):
    """What glibc says of the memory that it has given out."""

    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "a", "b", "c", "d", "e", "f", "in_use", "free", "keep")]


@pytest.mark.skipif(sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="needs glibc 2.33")
def test_frames_leave_next_to_nothing_in_memory(tmp_path):
    """OpenUSD keeps a little of every stage that was open (some 100 bytes), and nothing of each attribute of each frame."""
    heap = ctypes.CDLL(None).mallinfo2
    heap.restype = Heap

    def in_use_after(frames: int) -> int:
        names, mesh, root = CacheNames("shot"), tetrahedron(), None
        for number in range(1, frames + 1):
            content = FrameContent(particles(50), mesh, attributes=ALL)
            frame = frame_layer(names, number, 24.0, content)
            root, told, around = root_layers(names, frame, number, number, 24.0, {}, root)
            for layer, name in ((frame, "frame.usdc"), (root, "root.usda"), (told, "manifest.usda"), (around, "set.usda")):
                layer.Export(str(tmp_path / name))
        del frame, root, told, around
        gc.collect()
        return heap().in_use

    in_use_after(30)
    before = in_use_after(30)
    growth = (in_use_after(100) - before) / 100
    assert growth < 800.0, f"{growth:.0f} bytes a frame"


def foreign_points(path: Path, times: tuple[float, ...] = (1.0,), scale: float = 0.01, up: str = "Z") -> None:
    """Write points as another program would: centimetres, Z up, a moved parent, Houdini's names, matrices whole."""
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(stage, scale)
    UsdGeom.SetStageUpAxis(stage, up)
    UsdGeom.Xform.Define(stage, "/top").AddTranslateOp().Set(Gf.Vec3d(100, 0, 0))
    points = UsdGeom.Points.Define(stage, "/top/cloud")
    api = UsdGeom.PrimvarsAPI(points)
    stiffness = api.CreatePrimvar("stiffness", Sdf.ValueTypeNames.FloatArray, "vertex")
    deformation = api.CreatePrimvar("F", Sdf.ValueTypeNames.Matrix3dArray, "vertex")
    paint = api.CreatePrimvar("paint", Sdf.ValueTypeNames.FloatArray, "constant")
    for time in times:
        points.GetPointsAttr().Set([Gf.Vec3f(0, 10, 200), Gf.Vec3f(0, 0, 0)], time)
        points.GetVelocitiesAttr().Set([Gf.Vec3f(0, 100, 300)] * 2, time)
        points.GetWidthsAttr().Set([2.0, 2.0], time)
        stiffness.Set([2.0, 3.0], time)
        deformation.Set([Gf.Matrix3d(1, 2, 0, 0, 1, 0, 0, 0, 1)] * 2, time)
        paint.Set([0.5], time)
    stage.Save()


def test_foreign_points_arrive_in_metres_y_up(tmp_path):
    """Units, axes and parents are applied; Houdini's names fill our attributes; other primvars are carried."""
    foreign_points(tmp_path / "in.usda")
    found = read_points(FrameContext(1), MATERIAL, path=tmp_path / "in.usda")
    assert np.allclose(found["position"], [[1.0, 2.0, -0.1], [1.0, 0.0, 0.0]])
    assert np.allclose(found["velocity"], [[0.0, 3.0, -1.0]] * 2)
    assert np.allclose(found["stiffness_scale"], [2.0, 3.0])
    assert np.allclose(found["paint"], 0.5)
    turn = np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]])
    assert np.allclose(found["deformation"], turn @ np.array([[1, 2, 0], [0, 1, 0], [0, 0, 1]]) @ turn.T)
    assert found.spacing == pytest.approx(0.02)
    assert np.allclose(found["mass"], 400.0 * 0.02**3)
    assert found.materials == (MATERIAL,)


def test_reading_needs_a_material_and_its_own_frame(tmp_path):
    """Points without materials of ours ask for one; absent, sub-frame and skipped frames are refused."""
    path = tmp_path / "in.usda"
    foreign_points(path, (1.0, 2.0))
    with pytest.raises(InputError, match="wire a material"):
        read_points(FrameContext(1), path=path)
    with pytest.raises(InputError, match=r"no sample at frame 3, only 1 to 2; set frame_offset"):
        read_points(FrameContext(3), MATERIAL, path=path)
    assert len(read_points(FrameContext(-5), MATERIAL, path=path, frame_offset=6)) == 2
    for times, says in (((1.0, 1.5), "time code 1.5"), ((1.0, 3.0), "no sample at frame 2")):
        foreign_points(tmp_path / f"{times[1]}.usda", times)
        with pytest.raises(InputError, match=says):
            read_points(FrameContext(1), MATERIAL, path=tmp_path / f"{times[1]}.usda")


def test_own_cache_is_a_source(cache):
    """A cache of ours needs no material: points come with materials, masses and volumes as they were solved."""
    found = read_points(FrameContext(2), path=cache / "shot.usda")
    assert found.materials == (MATERIAL,)
    assert np.allclose(found["mass"], 4e-4)


@pytest.mark.parametrize("name", LIBRARY)
def test_whole_materials_come_back(tmp_path, name):
    """Every member of a material, tear threshold, recovery time, viscosity and tables too, from USD and from stored values."""
    material = named_material(name)
    column = {"position": np.zeros((1, 3)), "material": np.zeros(1, np.int32), "volume": np.ones(1), "mass": np.ones(1)}
    table = ParameterTable(((300.0, 1.0), (350.0, 2.0)), ((360.0, 0.5),))
    written = Particles(column, (material, MATERIAL, dataclasses.replace(MATERIAL, tables={"viscosity": table})), 0.01)
    revision = Revision.create(tmp_path, manifest())
    context = FrameContext(1, GraphSettings(), files=revision.begin(1))
    frame = write_cache(context, written, attributes=ALL)
    context.files.commit()
    revision.close()
    assert read_points(FrameContext(1), path=revision.folder / frame.stage).materials == written.materials
    facts, arrays = written.to_arrays()
    assert Particles.from_arrays(json.loads(json.dumps(facts)), arrays).materials == written.materials


def test_no_member_of_a_material_is_left_behind():
    """What is stored of a material is every member that it has, so that one that is added travels too."""
    members = {each.name for each in dataclasses.fields(Material)}
    assert set(MATERIAL.to_json()) == members
    assert Material.from_json({"law": "snow", "params": {}, "density": 400.0}) == Material("snow", {}, 400.0)
    for wrong in ({"law": "snow"}, {**MATERIAL.to_json(), "colour": 1}, [1, 2]):
        with pytest.raises(MpmNodesError, match="describes none"):
            Material.from_json(wrong)


def test_missing_usd_names_the_cure(monkeypatch):
    """Without usd-core the node says what to install, and is not taken for defective."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r'pip install "mpm-nodes\[usd\]"'):
        read_points(FrameContext(1), MATERIAL, path=Path("in.usda"))


def test_fields_that_share_a_name_with_a_prim_stay_apart(tmp_path):
    """Readers name objects by leaf name: a grid called `mesh` gets a prim name of its own, the grid keeps its name."""
    grid = dataclasses.replace(sphere((0, 0, 0), 0.1, 0.02), name="mesh")
    layer = frame_layer(CacheNames("a"), 1, 24.0, FrameContent(mesh=tetrahedron(), volumes=[grid]))
    assert layer.GetAttributeAtPath("/a/volume/mesh_2.fieldName").default == "mesh"


@pytest.mark.parametrize("content", [b"", b"no usd", b"PXR-USDC\x00\x08" + b"\x7f" * 200])
def test_damaged_stages_are_input_errors(tmp_path, content):
    """Damaged files give one line that names them."""
    path = tmp_path / ("bad.usdc" if content.startswith(b"PXR") else "bad.usda")
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"bad\.usd"):
        read_points(FrameContext(1), MATERIAL, path=path)


def test_user_column_that_ends_in_a_number_keeps_its_name():
    """Only whole runs name_0, name_1, ... are joined to one column; `uv_2` alone is a name."""
    from usd_io.points import particles_from_prim

    cloud = Particles({"position": np.zeros((2, 3)), "uv_2": np.ones((2, 3), np.float32)})
    layer = frame_layer(CacheNames("a"), 1, 24.0, FrameContent(particles=cloud, attributes=("uv_2",)))
    stage = Usd.Stage.Open(layer)
    found = particles_from_prim(stage.GetPrimAtPath("/a/particles"), 1)
    assert np.array_equal(found["uv_2"], cloud["uv_2"])


def test_each_of_several_materials_has_its_colour(tmp_path):
    """Particles of two materials get two colours, those of one get none, and colours of their own are kept."""
    water = dataclasses.replace(MATERIAL, label="water", density=1000.0)
    one = Particles({"position": np.zeros((3, 3)), "material": np.array([0, 1, 0], np.int32)}, (MATERIAL, water))
    own = Particles({**one.attributes, "displayColor": np.ones((3, 3), np.float32)}, (MATERIAL, water))
    alone = Particles({"position": np.zeros((3, 3)), "material": np.zeros(3, np.int32)}, (MATERIAL,))
    revision = Revision.create(tmp_path, manifest())
    context = FrameContext(1, GraphSettings(), files=revision.begin(1))
    for name, cloud in (("two", one), ("own", own), ("alone", alone)):
        write_cache(context, cloud, name=name, attributes=("material", "*") if name == "own" else ("material",))
    context.files.commit()
    revision.close()

    def colours(name):
        stage = open_stage(revision.folder / f"{name}.usda")
        primvar = UsdGeom.PrimvarsAPI(stage.GetPrimAtPath(f"/{name}/particles")).GetPrimvar("displayColor")
        return np.asarray(primvar.ComputeFlattened(1)) if primvar and primvar.HasValue() else None

    two = colours("two")
    assert np.array_equal(two[0], two[2]) and not np.array_equal(two[0], two[1])
    assert np.array_equal(colours("own"), np.ones((3, 3)))
    assert colours("alone") is None
