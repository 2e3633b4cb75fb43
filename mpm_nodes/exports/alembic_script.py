"""Write frames of a USD stage as Alembic: `python THIS job.json`, run with Blender's Python in its own process.

Imports nothing of this package: bpy brings its own copy of the USD libraries.
"""

import json
import sys


def main(path: str) -> None:
    """Import the stage that the job names, and write the chosen prims' objects."""
    with open(path, encoding="utf-8") as stream:
        job = json.load(stream)
    import bpy

    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.ops.wm.usd_import(
        filepath=job["stage"], set_frame_range=False, import_materials=False, import_proxy=True, import_visible_only=False
    )
    scene = bpy.context.scene
    scene.render.fps, scene.render.fps_base = job["rate"]
    names = set(job["prims"])
    wanted = [item for item in scene.objects if item.type == "MESH" and prim_of(item) in names]
    for item in scene.objects:
        item.hide_set(False)
        item.select_set(item in wanted)
    if not wanted:
        sys.exit("nothing of the cache came into Blender")
    bpy.ops.wm.alembic_export(
        filepath=job["file"], start=job["first"], end=job["last"], selected=True, flatten=True, evaluation_mode="VIEWPORT"
    )
    print(f"MPM_WRITTEN {len(wanted)}", flush=True)


def prim_of(item) -> str:
    """Return the name of the prim that became an object: Blender numbers those that are taken."""
    return item.name.split(".")[0]


main(sys.argv[-1])
