"""Take the pictures of Blender's window: a graph that cooks, and the dialog of Quick. Needs ImageMagick and xdotool.

In a display of 1600 by 1000 pixels, such as Xvfb's, with MPM_NODES_PYTHON set to an environment that has mpm-nodes:

    mpm-nodes host blender --out /tmp
    blender -p 0 0 1600 1000 --factory-startup --python docs/blender_window.py -- /tmp/mpm_nodes-0.2.0.zip docs
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path

import bpy

PACKAGE, TAB = "bl_ext.user_default.mpm_nodes", "MPM"
ARCHIVE, OUT = sys.argv[sys.argv.index("--") + 1 :]
QUALITY = 88
"""Of the JPEG."""


def main() -> None:
    """Take the steps one after the other, with time to draw between them, and quit."""
    steps = _steps()

    def run() -> float | None:
        try:
            return next(steps)
        except StopIteration:
            bpy.ops.wm.quit_blender()
        except Exception:
            traceback.print_exc()
            bpy.ops.wm.quit_blender()
        return None

    bpy.app.timers.register(run, first_interval=3.0)


def _steps() -> Iterator[float]:
    """Yield the seconds to wait after each step."""
    subprocess.run(["xdotool", "mousemove", "1000", "420", "key", "Escape"], check=True)  # the splash
    yield 1.0
    bpy.ops.extensions.package_install_files(filepath=ARCHIVE, repo="user_default", enable_on_install=True)
    bpy.ops.wm.save_as_mainfile(filepath=str(Path(tempfile.mkdtemp()) / "shot.blend"))
    window = bpy.context.window_manager.windows[0]
    view = _area(window, "VIEW_3D")
    _show_tab(view)
    yield 2.0
    _show_tab(view)
    yield 1.0
    with _within(window, view):
        bpy.ops.mpm_nodes.quick_dialog("INVOKE_DEFAULT", preset="honey", way="POUR")
    yield 2.0
    _take("blender_dialog.jpg", (900, 740, 500, 60))
    subprocess.run(["xdotool", "key", "Escape"], check=True)
    yield 1.0
    window.workspace = bpy.data.workspaces["Geometry Nodes"]
    yield 2.0
    editor = _area(window, "NODE_EDITOR")
    editor.ui_type = "MpmGraphTree"
    yield 1.0
    with _within(window, editor):
        bpy.ops.mpm_nodes.new_graph()
        bpy.ops.screen.screen_full_area()
    yield 2.0
    editor = _area(window, "NODE_EDITOR")
    _show_tab(editor)
    tree = bpy.data.node_groups["MPM Graph"]
    tree.k_cell_size, tree.k_end = 0.04, 24
    yield 1.0
    _show_tab(editor)
    with _within(window, editor):
        bpy.ops.node.view_all()
        bpy.ops.mpm_nodes.cook("INVOKE_DEFAULT", tree=tree.name)
    yield 20.0
    _take("blender_nodes.jpg", (1600, 860, 0, 0))
    with _within(window, editor):
        bpy.ops.mpm_nodes.cancel(tree=tree.name)


def _area(window: bpy.types.Window, kind: str) -> bpy.types.Area:
    return next(area for area in window.screen.areas if area.type == kind)


def _within(window: bpy.types.Window, area: bpy.types.Area):
    return bpy.context.temp_override(window=window, area=area, region=next(each for each in area.regions if each.type == "WINDOW"))


def _show_tab(area: bpy.types.Area) -> None:
    """Open the sidebar; once it has been drawn, a second call chooses its tab."""
    opened = area.spaces.active.show_region_ui
    area.spaces.active.show_region_ui = True
    if opened:
        next(region for region in area.regions if region.type == "UI").active_panel_category = TAB
    area.tag_redraw()


def _take(name: str, part: tuple[int, int, int, int]) -> None:
    """Write a part of the display: width, height, left, top [pixels]."""
    wide, high, left, top = part
    crop = f"{wide}x{high}+{left}+{top}"
    subprocess.run(["import", "-window", "root", "-crop", crop, "-quality", str(QUALITY), str(Path(OUT) / name)], check=True)


main()
