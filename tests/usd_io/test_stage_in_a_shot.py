"""A cache as a shot expects it: one form of the matter at a time, its set left behind by references, motion that ends."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cache_samples import MATERIAL, sphere, write_frames
from pxr import Kind, Sdf, Usd, UsdGeom, UsdLux

from mpm_nodes.data import Collider, FrameContext, GraphSettings, LevelSet, Mesh, Particles
from mpm_nodes.graph.document.document import load_graph
from mpm_nodes.nodes.collide import collide_box
from mpm_nodes.nodes.collider_motion import box_mesh, plane_mesh, sphere_mesh
from usd_io.bounds import active_box
from usd_io.stage import CacheNames, FrameContent, frame_layer, root_layers, still_layer, still_prims
from usd_io.stage_reader import open_stage


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    folder, _ = write_frames(tmp_path_factory.mktemp("cook"))
    return folder


def seen(stage: Usd.Stage, *purposes: str) -> set[str]:
    """Return the names of the gprims and volumes of the asset that are drawn for these purposes."""
    found = set()
    for prim in stage.GetPrimAtPath("/shot").GetChildren():
        shape = UsdGeom.Imageable(prim)
        if prim.GetTypeName() in ("Points", "Mesh", "Volume") and shape.ComputeVisibility() != "invisible":
            found |= {prim.GetName()} if shape.ComputePurpose() in purposes else set()
    return found


@pytest.mark.parametrize(
    ("variant", "rendered", "stands_in"),
    [
        ("surface", "mesh", "particles"),
        ("particles", "particles", ""),
        ("volume", "volume", "particles"),
        ("proxy", "particles", ""),
    ],
)
def test_each_variant_shows_one_form(cache, variant, rendered, stands_in):
    """A render sees one form of the matter and the colliders; a viewport that asks for stand-ins sees points in its place."""
    stage = open_stage(cache / "shot.usda")
    stage.SetEditTarget(stage.GetSessionLayer())
    show = stage.GetDefaultPrim().GetVariantSet("show")
    assert show.GetVariantNames() == ["particles", "proxy", "surface", "volume"]
    assert show.GetVariantSelection() == "surface"
    show.SetVariantSelection(variant)
    assert seen(stage, "default", "render") == {rendered, "collider_bowl"}
    assert seen(stage, "default", "proxy") == {stands_in or rendered, "collider_bowl"}


def test_only_what_is_there_is_a_variant(tmp_path):
    """A cache of points alone shows them; it has no surface to choose."""
    columns = {"position": np.zeros((1, 3)), "velocity": np.zeros((1, 3))}
    names = CacheNames("dots")
    layer = frame_layer(names, 1, 24.0, FrameContent(particles=Particles(columns, (MATERIAL,), 0.01)))
    layer.Export(str(tmp_path / names.layer(1)))
    for made, file in zip(root_layers(names, layer, 1, 1, 24.0), (names.stage, names.manifest, names.set), strict=True):
        made.Export(str(tmp_path / file))
    stage = open_stage(tmp_path / "dots.usda")
    assert stage.GetDefaultPrim().GetVariantSet("show").GetVariantNames() == ["particles", "proxy"]
    assert UsdGeom.Imageable(stage.GetPrimAtPath("/dots/particles")).ComputePurpose() == "default"


def test_references_leave_the_set_behind(cache, tmp_path):
    """Two references to a cache bring its matter twice, and neither suns nor cameras nor floors."""
    shot = Usd.Stage.CreateNew(str(tmp_path / "shot.usda"))
    for name in ("left", "right"):
        shot.DefinePrim(f"/{name}").GetReferences().AddReference(str(cache / "shot.usda"))
    kinds = [prim.GetTypeName() for prim in shot.Traverse()]
    assert kinds.count("Mesh") == 4 and kinds.count("Points") == 2
    assert not {"DistantLight", "DomeLight", "Camera"} & set(kinds)
    own = open_stage(cache / "shot.usda")
    assert UsdLux.DistantLight.Get(own, "/shot_set/sun") and UsdGeom.Camera.Get(own, "/shot_set/camera")


def test_the_page_takes_a_cache_into_a_shot(tmp_path, monkeypatch):
    """The lines of the page reference a cache and choose what is shown of it."""
    page = Path(__file__).parents[2] / "docs/caches_in_a_shot.md"
    (lines,) = re.findall(r"<!-- python: tested -->\n```python\n(.*?)^```", page.read_text(), re.S | re.M)
    folder, _ = write_frames(tmp_path / "cook", name="cheese")
    monkeypatch.chdir(folder)
    told: dict[str, Any] = {}
    exec(compile(lines, "page", "exec"), told)
    volume = UsdGeom.Imageable(told["stage"].GetPrimAtPath("/cheese/volume"))
    assert (volume.ComputeVisibility(), volume.ComputePurpose()) == ("inherited", "render")


def test_the_asset_says_what_it_is(cache):
    """Kind, name, place and the extents of a frame by purpose, and a camera whose shutter opens around the frame."""
    stage = open_stage(cache / "shot.usda")
    model = Usd.ModelAPI(stage.GetDefaultPrim())
    assert (model.GetKind(), model.GetAssetName()) == (Kind.Tokens.component, "shot")
    assert Path(model.GetAssetIdentifier().resolvedPath) == cache / "shot.usda"
    for frame in (1, 3):
        told = UsdGeom.ModelAPI(stage.GetDefaultPrim()).GetExtentsHint(frame)
        names = ("particles", "mesh", "volume", "collider_bowl")
        boxes = [np.array(stage.GetPrimAtPath(f"/shot/{name}").GetAttribute("extent").Get(frame)) for name in names]
        for slot, held in enumerate((boxes, boxes[:3], boxes[:3])):
            low, high = np.min([box[0] for box in held], axis=0), np.max([box[1] for box in held], axis=0)
            assert np.array_equal(told[2 * slot], low) and np.array_equal(told[2 * slot + 1], high)
    camera = UsdGeom.Camera.Get(stage, "/shot_set/camera")
    assert (camera.GetShutterOpenAttr().Get(), camera.GetShutterCloseAttr().Get()) == (-0.25, 0.25)


def test_floor_lies_under_everything(cache):
    """The floor is just below the lowest point of all frames."""
    stage = open_stage(cache / "shot.usda")
    height = stage.GetPrimAtPath("/shot_set/floor").GetAttribute("points").Get()[0][1]
    lowest = min(stage.GetPrimAtPath("/shot/particles").GetAttribute("extent").Get(frame)[0][1] for frame in (1, 2, 3))
    assert lowest - 0.01 < height < lowest


@pytest.mark.parametrize("band", [False, True], ids=["", "with a level set"])
@pytest.mark.parametrize(("sunk", "floor"), [(0.004, 0.0), (0.2, -0.2)])
def test_floor_lies_where_the_square_of_a_plane_shows_it(sunk, floor, band):
    """Matter that sinks into a plane by a part of a cell is hidden, and so is the square: a floor below it would show its edge as a
    line. Where matter lies deep below the square, it is not the floor, nor is a table above it. The band of a
    level set reaches lower than the matter, which changes nothing."""
    names, plane = CacheNames("shot"), Collider("ground", None, 0.0, None, plane_mesh(1.0), still=True)
    square = plane_mesh(0.1)
    table = Collider("table", None, 0.0, None, replace(square, points=square.points + [0.0, 0.4, 0.0]), still=True)
    cloud = Particles({"position": np.array([[0.0, 0.5, 0.0], [0.3, -sunk, 0.1], [-0.2, 0.1, 0.3]])}, spacing=1e-6)
    leaf = LevelSet(
        np.array([[0, -8, 0]], np.int32),
        np.zeros((1, 8, 8, 8), np.float32),
        0.05,
        background=0.15,
        kind="level_set",
        name="surface",
    )
    content = FrameContent(particles=cloud, volumes=[leaf] if band else [], colliders=[plane, table])
    frame = frame_layer(names, 1, 24.0, content)
    stage = Usd.Stage.Open(root_layers(names, frame, 1, 1, 24.0).set)
    height = stage.GetPrimAtPath("/shot_set/floor").GetAttribute("points").Get()[0][1]
    assert abs(height - floor) < 0.001
    assert (height > 0.0) == (floor == 0.0)


@pytest.mark.parametrize("name", ["particles", "mesh"])
def test_motion_ends_with_the_last_frame(cache, name):
    """Between frames velocities carry the points; a frame after the last one everything is held and nothing blurs."""
    stage = open_stage(cache / "shot.usda")
    prim = stage.GetPrimAtPath(f"/shot/{name}")
    points, velocities = UsdGeom.PointBased(prim), prim.GetAttribute("velocities")
    last = np.array(points.GetPointsAttr().Get(3))
    moved = np.array(points.ComputePointsAtTime(3.25, 3.0)) - last
    assert np.allclose(moved, np.array(velocities.Get(3)) * 0.25 / 24.0, atol=1e-6) and np.abs(moved).max() > 1e-3
    for after in (4.0, 4.25, 9.0):
        assert velocities.Get(after) is None
        assert np.array_equal(points.ComputePointsAtTime(after, after), last)


def test_still_colliders_are_written_once(cache):
    """A collider that never moves has a layer of its own, with one value for all times; no frame holds it."""
    stage = open_stage(cache / "shot.usda")
    points = stage.GetPrimAtPath("/shot/collider_bowl").GetAttribute("points")
    assert points.GetTimeSamples() == [] and len(points.Get()) == 4
    frames = [Sdf.Layer.FindOrOpen(str(cache / f"shot/shot.000{k}.usdc")) for k in (1, 2, 3)]
    assert [frame.GetPrimAtPath("/shot/collider_bowl") for frame in frames] == [None] * 3
    assert still_prims(Sdf.Layer.FindOrOpen(str(cache / "shot/shot.still.usdc"))) == {"/shot/collider_bowl": "collider"}
    assert still_prims(stage.GetRootLayer()) == {"/shot/collider_bowl": "collider"}


def test_moving_colliders_are_written_in_every_frame():
    """What may move is not taken for still, and what has no layer of its own is written."""
    names, mesh = CacheNames("shot"), plane_mesh(1.0)
    moving, still = (Collider("lid", None, 0.0, None, mesh, still=flag) for flag in (False, True))
    assert still_layer(names, [moving]) is None
    assert still_prims(still_layer(names, [moving, still])) == {"/shot/collider_lid_2": "floor"}
    layer = frame_layer(names, 2, 24.0, FrameContent(colliders=[moving, still]), {"/shot/collider_lid_2"})
    assert layer.GetPrimAtPath("/shot/collider_lid") is not None and layer.GetPrimAtPath("/shot/collider_lid_2") is None


def test_keys_make_a_collider_move():
    """A collider is still as long as none of its knobs has keys."""
    settings = GraphSettings()
    assert collide_box(FrameContext(1, settings)).still
    assert not collide_box(FrameContext(1, settings, keyed=frozenset({"size"}))).still


def test_plan_tells_the_keyed_knobs(tmp_path):
    """The executor tells a node which of its knobs have keys."""
    from mpm_nodes.graph.plan.plan import plan_graph

    document = {
        "format": "mpm_nodes.graph",
        "version": 1,
        "nodes": {
            "box": {"type": "collide_box", "knobs": {"centre": {"keys": [[1, [0, 0, 0], "linear"], [5, [0, 1, 0], "linear"]]}}}
        },
    }
    assert [node.keyed for node in plan_graph(load_graph(document)).nodes] == [{"centre"}]


@pytest.mark.parametrize("mesh", [box_mesh((1.0, 2.0, 0.5)), sphere_mesh(0.3), sphere_mesh(0.2, 0.4), plane_mesh(2.0)])
def test_shown_colliders_have_outward_normals(mesh: Mesh):
    """Unit normals along those of the faces: within rounding on flat ones, within their own turn on round ones."""
    a_corner = mesh.normals if len(mesh.normals) == len(mesh.indices) else mesh.normals[mesh.indices]
    corners, starts = mesh.points[mesh.indices], np.concatenate([[0], np.cumsum(mesh.counts)[:-1]])
    faces = np.cross(corners[starts + 1] - corners[starts], corners[starts + 2] - corners[starts])
    faces /= np.linalg.norm(faces, axis=1)[:, None]
    across = (a_corner * np.repeat(faces, mesh.counts, axis=0)).sum(axis=1)
    flat = len(np.unique(mesh.normals.round(9), axis=0)) <= 6
    assert np.allclose(np.linalg.norm(a_corner, axis=1), 1.0)
    assert across.min() > (1.0 - 1e-12 if flat else 0.96)


def test_extent_of_a_volume_is_that_of_its_voxels():
    """Leaves reach up to seven voxels further than what they hold."""
    ball = sphere((0.13, -0.2, 0.31), 0.2, 0.02)
    low, high = active_box(ball) * 0.02
    wanted = np.array([0.13, -0.2, 0.31])
    band = 0.2 + 0.06
    assert np.abs(low - (wanted - band)).max() <= 0.02 and np.abs(high - (wanted + band)).max() <= 0.02
