"""Blender, in its own process, sees what was written: points, mesh and volume, new at every frame."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cache_samples import manifest, particles, tetrahedron, write_frames

from mpm_nodes.data import FrameContext, GraphSettings
from mpm_nodes.graph.revisions.revision import Revision
from mpm_nodes.nodes.caches import write_cache

X_LIBRARIES = ("libX11", "libXrender", "libXfixes", "libXi", "libxkbcommon", "libSM", "libICE")
IMPORT = """
import json, os, sys
import bpy
bpy.ops.wm.read_factory_settings(use_empty=True)
bpy.ops.wm.usd_import(filepath=sys.argv[1], **json.loads(sys.argv[3]))
scene, seen = bpy.context.scene, {"range": [bpy.context.scene.frame_start, bpy.context.scene.frame_end]}
seen["kinds"] = sorted({thing.type for thing in bpy.data.objects})
for frame in (1, 2, 3):
    scene.frame_set(frame)
    graph = bpy.context.evaluated_depsgraph_get()
    for thing in bpy.data.objects:
        data = thing.evaluated_get(graph).data
        if thing.type == "POINTCLOUD":
            facts = [len(data.points), sorted(a.name for a in data.attributes)]
        elif thing.type == "MESH":
            facts = [len(data.vertices), sorted(a.name for a in data.attributes)]
        elif thing.type == "VOLUME":
            data.grids.load()
            facts = [data.grids.error_message or data.grids.frame_filepath, sorted(g.name for g in data.grids)]
        else:
            continue
        seen[f"{thing.type} {thing.name} {frame}"] = facts
with open(sys.argv[2], "w") as stream:
    json.dump(seen, stream)
os._exit(0)  # Blender can hang in its own exit
"""


@pytest.fixture(scope="module")
def blender() -> None:
    command = [sys.executable, "-c", "import bpy, os; os._exit(0)"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode and any(library in done.stderr for library in X_LIBRARIES):
        pytest.skip(f"Blender's system libraries are missing: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr


def imported(tmp_path: Path, options: dict) -> dict:
    """Return what Blender holds after it has imported a cache."""
    folder, _ = write_frames(tmp_path / "out")
    answer = tmp_path / "seen.json"
    command = [sys.executable, "-c", IMPORT, str(folder / "shot.usda"), str(answer), json.dumps(options)]
    subprocess.run(command, capture_output=True, timeout=180, check=True)
    return json.loads(answer.read_text())


def test_stock_import_shows_one_form(blender, tmp_path):
    """Without a click the surface is there, in the set that the contact sheet shows; neither points nor a volume lie over it."""
    seen = imported(tmp_path, {})
    assert seen["kinds"] == ["CAMERA", "EMPTY", "LIGHT", "MESH"]
    assert {name.split()[1] for name in seen if name.startswith("MESH")} == {"mesh", "collider_bowl", "floor"}


def test_blender_sees_points_mesh_and_volume(blender, tmp_path):
    """Counts grow, topology changes and each frame has its own .vdb, with all attributes that Blender can hold."""
    seen = imported(tmp_path, {"import_proxy": True, "import_visible_only": False})
    assert seen["range"] == [1, 3]
    wanted = {
        "position",
        "radius",
        "velocity",
        "id",
        "material",
        "mass",
        "volume",
        "F_0",
        "F_1",
        "F_2",
        "stress_0",
        "stress_1",
        "stiffness_scale",
        "precise",
        "displayColor",
        "flag",
    }
    for frame in (1, 2, 3):
        count, names = seen[f"POINTCLOUD particles {frame}"]
        assert count == 50 * (frame + 1)
        assert wanted <= set(names)
        file, grids = seen[f"VOLUME volume {frame}"]
        assert file.endswith(f"shot.000{frame}.vdb")
        assert grids == ["density", "surface", "vel"]
        assert {"velocity", "heat"} <= set(seen[f"MESH mesh {frame}"][1])
        assert seen[f"MESH collider_bowl {frame}"][0] == 4
    assert len({seen[f"MESH mesh {frame}"][0] for frame in (1, 2, 3)}) == 3


def test_blender_sees_the_frames_of_prims_alone(blender, tmp_path):
    """A shot that refers to particles, mesh and volume of a cache one by one plays each of them."""
    from pxr import Usd, UsdGeom

    folder, _ = write_frames(tmp_path / "out")
    shot = Usd.Stage.CreateNew(str(tmp_path / "shot.usda"))
    UsdGeom.SetStageMetersPerUnit(shot, 1.0)
    shot.SetStartTimeCode(1)
    shot.SetEndTimeCode(3)
    for name in ("particles", "mesh", "volume"):
        prim = shot.DefinePrim(f"/{name}")
        prim.GetReferences().AddReference(str(folder / "shot.usda"), f"/shot/{name}")
        UsdGeom.Imageable(prim).CreatePurposeAttr("render")
        UsdGeom.Imageable(prim).CreateVisibilityAttr("inherited")
    shot.Save()
    answer = tmp_path / "seen.json"
    command = [sys.executable, "-c", IMPORT, str(tmp_path / "shot.usda"), str(answer), "{}"]
    subprocess.run(command, capture_output=True, timeout=180, check=True)
    seen = json.loads(answer.read_text())
    assert [seen[f"POINTCLOUD particles {frame}"][0] for frame in (1, 2, 3)] == [100, 150, 200]
    assert len({seen[f"MESH mesh {frame}"][0] for frame in (1, 2, 3)}) == 3
    assert [Path(seen[f"VOLUME volume {frame}"][0]).name for frame in (1, 2, 3)] == [f"shot.000{frame}.vdb" for frame in (1, 2, 3)]


def test_packed_particles_do_no_harm(blender, tmp_path):
    """Blender, which crashes on Points without points, imports the surface of a packed cache, proxies and all, and no points."""
    revision = Revision.create(tmp_path / "out", manifest())
    for frame in (1, 2, 3):
        context = FrameContext(frame, GraphSettings(), files=revision.begin(frame))
        write_cache(context, particles(60 + frame), tetrahedron(), position_precision=0.001)
        context.files.commit()
    revision.close()
    answer = tmp_path / "seen.json"
    options = json.dumps({"import_proxy": True, "import_visible_only": False})
    command = [sys.executable, "-c", IMPORT, str(revision.folder / "cache.usda"), str(answer), options]
    subprocess.run(command, capture_output=True, timeout=180, check=True)
    seen = json.loads(answer.read_text())
    assert "POINTCLOUD" not in seen["kinds"] and seen["MESH mesh 3"][0] == 4


COLOURS = """
import json, os, sys
import bpy
bpy.ops.wm.read_factory_settings(use_empty=True)
bpy.ops.wm.usd_import(filepath=sys.argv[1], import_proxy=True)
seen = {}
for frame in (1, 2, 3):
    bpy.context.scene.frame_set(frame)
    graph = bpy.context.evaluated_depsgraph_get()
    for thing in bpy.data.objects:
        if thing.type in ("POINTCLOUD", "MESH") and thing.name in ("particles", "mesh"):
            colours = thing.evaluated_get(graph).data.attributes["displayColor"].data
            seen[f"{thing.name} {frame}"] = [list(each.color)[:3] for each in colours]
with open(sys.argv[2], "w") as stream:
    json.dump(seen, stream)
os._exit(0)
"""


def test_blender_sees_the_colours_of_tables(blender, tmp_path):
    """Points and skins have their colours in every frame, though files store each colour once."""
    revision = Revision.create(tmp_path / "out", manifest())
    wanted = {}
    for frame in (1, 2, 3):
        cloud, skin = particles(60 + frame), tetrahedron()
        colours = np.array([[0.9, 0.2, 0.1], [0.1, 0.5, 0.9]], np.float32)
        wanted[f"particles {frame}"] = colours[(np.arange(len(cloud)) + frame) % 2]
        wanted[f"mesh {frame}"] = colours[(np.arange(4) + frame) % 2]
        cloud = dataclasses.replace(cloud, attributes={**cloud.attributes, "displayColor": wanted[f"particles {frame}"]})
        skin = dataclasses.replace(skin, attributes={"displayColor": wanted[f"mesh {frame}"]})
        context = FrameContext(frame, GraphSettings(), files=revision.begin(frame))
        write_cache(context, cloud, skin, attributes=("displayColor",))
        context.files.commit()
    revision.close()
    answer = tmp_path / "seen.json"
    command = [sys.executable, "-c", COLOURS, str(revision.folder / "cache.usda"), str(answer)]
    subprocess.run(command, capture_output=True, timeout=180, check=True)
    seen = json.loads(answer.read_text())
    assert seen.keys() == wanted.keys()
    for name, colours in wanted.items():
        assert np.allclose(seen[name], colours, atol=0.01), name
