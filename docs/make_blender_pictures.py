"""Draw what Blender's page shows, in Blender: the sheet of the quick presets, and the shot of the page's script. Needs bpy.

python docs/make_blender_pictures.py [PRESET ...]      # writes docs/blender_quick.jpg; with names those tiles of it alone
python docs/make_blender_pictures.py shot              # writes docs/blender_shot.jpg
"""

from __future__ import annotations

import math
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

from mpm_nodes.hosts.blender import build

FOLDER = Path(__file__).parent
SHEET = FOLDER / "blender_quick.jpg"
TILE = (420, 280)
ACROSS = 3
BACKGROUND = (133, 136, 142)
"""Of the sheet where there is no preset: as of its pictures."""
SHOT = FOLDER / "blender_shot.jpg"
SHOT_FRAMES = (7, 12, 18, 36)
SCRIPT = re.compile(r"<!-- blender: tested -->\n```python\n(.*?)```", re.S)
FRAME = 12
"""Frame that is drawn: the body falls for seven, and is flowing, breaking or jumping then."""
PARTICLES = 30_000
SAMPLES = 48
QUALITY = 88
"""Of the JPEG."""


def draw(names: list[str]) -> None:
    """Cook and render presets, all of them where none is named, and put them into the sheet."""
    with tempfile.TemporaryDirectory() as scratch:
        bpy = _blender(Path(scratch))
        from bl_ext.user_default.mpm_nodes import quick_presets

        presets = quick_presets.found()[0]
        rows = math.ceil(len(presets) / ACROSS)
        sheet = Image.new("RGB", (ACROSS * TILE[0], rows * TILE[1]), BACKGROUND)
        if names:
            before = Image.open(SHEET).convert("RGB")
            if before.size[0] != sheet.size[0] or before.size[1] % TILE[1]:
                raise SystemExit(f"{SHEET}: has other tiles than {TILE[0]} x {TILE[1]} pixels; draw all presets")
            sheet.paste(before)
        for place, name in enumerate(presets):
            if names and name not in names:
                continue
            picture = _picture(bpy, presets[name], Path(scratch) / name)
            sheet.paste(Image.open(picture).convert("RGB"), (place % ACROSS * TILE[0], place // ACROSS * TILE[1]))
            print(name, flush=True)
        sheet.save(SHEET, quality=QUALITY, optimize=True)


def draw_shot() -> None:
    """Run the script of docs/blender.md, and draw four frames of its shot."""
    with tempfile.TemporaryDirectory() as scratch:
        bpy = _blender(Path(scratch))
        bpy.ops.wm.read_factory_settings(use_empty=True)
        import addon_utils

        addon_utils.enable("bl_ext.user_default.mpm_nodes", default_set=True)
        bpy.ops.wm.save_as_mainfile(filepath=str(Path(scratch) / "shot.blend"))
        code = SCRIPT.search((FOLDER / "blender.md").read_text()).group(1)
        exec(compile(code[: code.rindex("scene.frame_set")], "blender.md", "exec"), {})
        scene, sheet = bpy.context.scene, None
        scene.cycles.device, scene.cycles.use_denoising = "CPU", True
        for place, frame in enumerate(SHOT_FRAMES):
            scene.frame_set(frame)
            scene.render.filepath = str(Path(scratch) / f"{frame}.png")
            bpy.ops.render.render(write_still=True)
            with Image.open(scene.render.filepath) as tile:
                wide, high = tile.size
                sheet = sheet or Image.new("RGB", (2 * wide, 2 * high))
                sheet.paste(tile.convert("RGB"), (place % 2 * wide, place // 2 * high))
            print(f"frame {frame}", flush=True)
        sheet.save(SHOT, quality=QUALITY, optimize=True)


def _blender(scratch: Path) -> Any:
    """Return bpy with the extension switched on, and with settings of its own."""
    os.environ["BLENDER_USER_RESOURCES"] = str(scratch / "user")
    os.environ.setdefault("MPM_NODES_PYTHON", sys.executable)
    (scratch / "user").mkdir()
    import bpy

    bpy.ops.extensions.package_install_files(filepath=str(build(scratch / "zip")), repo="user_default", enable_on_install=True)
    return bpy


def _picture(bpy: Any, preset: dict, folder: Path) -> Path:
    """Drop a monkey of a preset's matter beside a ball, or hang it up by an ear where the ball holds it, and render it."""
    import addon_utils
    from bl_ext.user_default.mpm_nodes import cook, quick

    bpy.ops.wm.read_factory_settings(use_empty=True)
    addon_utils.enable("bl_ext.user_default.mpm_nodes", default_set=True)
    scene = bpy.context.scene
    held = preset["nodes"]["collider"]["knobs"].get("clamp", False)
    place = (0.55, 0.0, 0.68) if held else (0.6, -0.45, 0.16)
    bpy.ops.mesh.primitive_uv_sphere_add(radius=0.16, segments=64, ring_count=32, location=place)
    bpy.ops.object.shade_smooth()
    ball = bpy.context.object
    ball.data.materials.append(_plain(bpy, "ball", (0.55, 0.56, 0.58)))
    bpy.ops.mesh.primitive_monkey_add(size=1.0, location=(0.0, 0.0, 0.55 if held else 0.82))
    monkey = bpy.context.object
    bpy.ops.mesh.primitive_plane_add(size=40.0)
    bpy.context.object.data.materials.append(_plain(bpy, "ground", (0.30, 0.31, 0.33)))
    bpy.context.view_layer.update()
    tree = quick.make(preset, monkey, [ball], scene, PARTICLES)
    tree.folder, tree.k_end = str(folder), FRAME
    cook.start(tree, scene)
    state = cook.wait(tree, 900)
    if state != "done":
        raise SystemExit(f"{tree.name}: {state}, {tree.status}")
    monkey.hide_render = True
    _light(bpy, scene)
    scene.frame_set(FRAME)
    scene.render.filepath = str(folder / "picture.png")
    bpy.ops.render.render(write_still=True)
    return folder / "picture.png"


def _plain(bpy: Any, name: str, colour: tuple[float, float, float]) -> Any:
    material = bpy.data.materials.new(name)
    material.use_nodes = True
    shader = next(node for node in material.node_tree.nodes if node.type == "BSDF_PRINCIPLED")
    shader.inputs["Base Color"].default_value, shader.inputs["Roughness"].default_value = (*colour, 1.0), 0.6
    return material


def _light(bpy: Any, scene: Any) -> None:
    """Put up a camera, a sun to its left, and a sky."""
    from mathutils import Vector

    camera = bpy.data.objects.new("view", bpy.data.cameras.new("view"))
    camera.location, camera.data.lens = (0.35, -3.3, 1.35), 66.0
    camera.rotation_euler = (Vector((0.08, 0.0, 0.24)) - camera.location).to_track_quat("-Z", "Y").to_euler()
    sun = bpy.data.objects.new("key", bpy.data.lights.new("key", "SUN"))
    sun.data.energy, sun.data.angle, sun.data.color = 2.2, math.radians(4.0), (1.0, 0.95, 0.87)
    sun.rotation_euler = (math.radians(52.0), 0.0, math.radians(-48.0))
    for each in (camera, sun):
        scene.collection.objects.link(each)
    scene.camera = camera
    world = scene.world = bpy.data.worlds.new("sky")
    world.use_nodes = True
    back = world.node_tree.nodes.get("Background") or world.node_tree.nodes.new("ShaderNodeBackground")
    back.inputs[0].default_value, back.inputs[1].default_value = (0.72, 0.8, 0.92, 1.0), 0.45
    scene.render.engine, scene.cycles.device, scene.cycles.samples = "CYCLES", "CPU", SAMPLES
    scene.cycles.use_denoising = True
    scene.view_settings.view_transform = "Standard"
    scene.render.resolution_x, scene.render.resolution_y = TILE
    scene.render.image_settings.file_format = "PNG"


if __name__ == "__main__":
    draw_shot() if sys.argv[1:] == ["shot"] else draw(sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)  # Blender can hang in its own exit
