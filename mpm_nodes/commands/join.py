"""Join cooks of spans of frames (cook --part frames) into one cache, as if one cook had made them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mpm_nodes.commands.cook import frame_span


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("parts", type=Path, nargs="+", metavar="PART", help="output root of such a cook, or a folder of several")
    command.add_argument("--frames", type=frame_span, required=True, metavar="A-B", help="first and last frame")
    command.add_argument("--out", type=Path, required=True, metavar="DIR", help="output root of the cache")
    command.add_argument(
        "--events",
        choices=("console", "openjd"),
        default="console",
        help="progress: lines, or the lines on stdout that runners of Open Job Description read",
    )


def run(args: argparse.Namespace) -> int:
    """Join, and say what was written."""
    from mpm_nodes.farm.join import join_parts
    from mpm_nodes.graph.reports.events import JobLines

    lines = JobLines(sys.stdout)

    def progress(done: int, total: int) -> None:
        if args.events == "openjd":
            lines.progress(done, total, f"joined {done} of {total} frames")

    folder = join_parts(args.parts, args.frames, args.out, progress)
    print(f"joined frames {args.frames[0]} to {args.frames[1]} into {folder}")
    return 0
