"""Make monkey.usdc with Blender: its own monkey head, turned and bounced by keyframes, exported by its USD exporter.

    python samples/make_monkey.py            (needs the bpy wheel: pip install "mpm-nodes[vdb]")

The head is exported as Blender has it: in Z up and with open eye sockets. The file in the repository was made by this script.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import bpy

FRAMES = (1, 36)
KEYS = (
    # frame, height [m], turns about the vertical and the sideways axis [deg]
    (1, 0.0, 0.0, 0.0),
    (12, 0.0, 0.0, 0.0),
    (18, -0.12, 10.0, 12.0),
    (24, 0.10, 25.0, -10.0),
    (30, -0.03, 38.0, 4.0),
    (36, 0.0, 40.0, 0.0),
)
"""At rest while the cheese falls and lies down, then a nod, a bounce and a turn."""


def main(target: Path) -> None:
    """Build the scene and export it."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = FRAMES
    scene.render.fps = 24
    bpy.ops.mesh.primitive_monkey_add(size=1.0)
    head = bpy.context.object
    head.name = head.data.name = "Suzanne"
    for frame, height, turn, nod in KEYS:
        head.location = (0.0, 0.0, height)
        # tipped back, so that the face looks half up
        head.rotation_euler = (math.radians(-45.0 + nod), 0.0, math.radians(turn))
        head.keyframe_insert("location", frame=frame)
        head.keyframe_insert("rotation_euler", frame=frame)
    bpy.ops.wm.usd_export(
        filepath=str(target),
        selected_objects_only=True,
        export_animation=True,
        export_materials=False,
        export_uvmaps=False,
        export_normals=False,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("monkey.usdc"))
