"""Write one HTML file that plays a cache in any browser, without a server or a network."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mpm_nodes.commands.cook import frame_span
from mpm_nodes.commands.numbers import positive, real

KINDS = ("points", "surface", "level_set", "fog")


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("cache", type=Path, metavar="CACHE", help="output root or revision folder of a cook")
    command.add_argument("--html", type=Path, required=True, metavar="FILE", help="the file; one of this command's is replaced")
    command.add_argument("--frames", type=frame_span, metavar="A-B", help="first and last frame (default: all)")
    command.add_argument("--every", type=positive, default=1, metavar="N", help="take every n-th frame only")
    command.add_argument(
        "--show",
        choices=KINDS,
        nargs="+",
        default=(),
        help="forms of the matter (default: its points, where there are any)",
    )
    command.add_argument(
        "--colour-by",
        default="",
        metavar="ATTRIBUTE",
        help="colour by an attribute (velocity), with a legend in its unit",
    )
    command.add_argument(
        "--size",
        type=real(1.0, 2000.0),
        default=25.0,
        metavar="MB",
        help="largest size of the file; points are left out, evenly, until it is kept (default: 25)",
    )


def run(args: argparse.Namespace) -> int:
    """Write the file, and say how large it became."""
    from mpm_nodes.data import InputError
    from mpm_nodes.editor.one_file import OneFile, write_one_file
    from mpm_nodes.graph.revisions.revision import latest_revision
    from mpm_nodes.preview.pictures import frames_of

    if args.html.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{args.html}: is not the name of a page; end it with .html")
    folder = latest_revision(args.cache)
    held = frames_of(folder)
    first, last = args.frames or (held.start, held.stop - 1)
    frames = [frame for frame in held if first <= frame <= last][:: args.every]
    if not frames:
        raise InputError(f"{args.cache}: holds frames {held.start} to {held.stop - 1}, none of those asked for")
    wanted = OneFile(frames, args.show, args.colour_by, args.size, f"{folder.resolve().parent.name} {folder.name}")
    done = write_one_file(folder, args.html, wanted, show_progress)
    points = f"{done.points:,} points" if done.shown == done.points else f"{done.shown:,} of {done.points:,} points"
    shown = f", {points} a frame" if done.points else ""
    print(f"{len(frames)} frames{shown}: {done.size / 1e6:.1f} MB", file=sys.stderr)
    print(done.path)
    return 0


def show_progress(done: int, total: int) -> None:
    """Print every 24th frame that is packed, and the last."""
    if done % 24 == 0 or done == total:
        print(f"packed {done} of {total}", file=sys.stderr)
