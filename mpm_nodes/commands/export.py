"""Write a cache as a file of another format: animated glTF, or Alembic."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mpm_nodes.commands.cook import frame_span
from mpm_nodes.commands.numbers import positive

FORMATS = (".glb", ".abc")


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("cache", type=Path, metavar="CACHE", help="output root or revision folder of a cook")
    command.add_argument("file", type=Path, metavar="FILE", help=".glb (glTF, for the web and games) or .abc (Alembic)")
    command.add_argument("--frames", type=frame_span, metavar="A-B", help="first and last frame (default: all)")
    command.add_argument("--every", type=positive, default=1, metavar="N", help="take every n-th frame only (.glb)")
    command.add_argument(
        "--show",
        choices=("points", "surface"),
        default="surface",
        help="what of a cache that holds both (default: surface)",
    )


def run(args: argparse.Namespace) -> int:
    """Export, and say what was written."""
    from mpm_nodes.data import InputError, MpmNodesError, OutputError
    from mpm_nodes.exports.alembic import is_alembic, scene_as_alembic
    from mpm_nodes.exports.glb import is_glb, scene_as_glb
    from mpm_nodes.graph.files.folder import refuse_foreign, replace_named
    from mpm_nodes.preview.pictures import find_root
    from mpm_nodes.preview.scene import open_scene

    ending = args.file.suffix.lower()
    if ending not in FORMATS:
        raise MpmNodesError(f"{args.file}: the ending {ending!r} is unknown; choose one of {', '.join(FORMATS)}")
    if ending == ".abc" and args.every > 1:
        raise MpmNodesError("--every: Alembic files hold every frame of their span; leave it out, or write .glb")
    if ending == ".abc" and args.show == "points":
        raise MpmNodesError("--show points: Blender writes no points into Alembic; give .glb, or read the points of the USD cache")
    ours = is_glb if ending == ".glb" else is_alembic
    refuse_foreign(args.file, ours)
    if not args.file.absolute().parent.is_dir():  # told before the work
        raise OutputError(f"{args.file}: its folder does not exist; make it, or choose another")
    scene = open_scene(find_root(args.cache))
    first, last = args.frames or (scene.first, scene.last)
    frames = list(range(max(first, scene.first), min(last, scene.last) + 1, args.every))
    if not frames:
        raise InputError(f"{args.cache}: holds frames {scene.first} to {scene.last}, none of {first} to {last}; choose others")
    if ending == ".glb":
        data = scene_as_glb(scene, frames, args.show, show_progress)
    else:
        print(f"Blender writes frames {frames[0]} to {frames[-1]}", file=sys.stderr)
        data = scene_as_alembic(scene, frames)
    replace_named(args.file, data, ours)
    print(args.file)
    return 0


def show_progress(done: int, total: int) -> None:
    """Print every 24th frame, and the last."""
    if done % 24 == 0 or done == total:
        print(f"exported {done} of {total}", file=sys.stderr)
