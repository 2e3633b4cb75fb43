"""Render frames of a cache as PNGs and a contact sheet."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mpm_nodes.commands.cook import frame_span


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("cache", type=Path, metavar="CACHE", help="output root or revision folder of a cook")
    command.add_argument("--frames", type=frame_span, metavar="A-B", help="first and last frame (default: some of all)")
    command.add_argument("--out", type=Path, metavar="DIR", help="where the images go (default: beside the cache)")
    command.add_argument(
        "--engine",
        choices=("auto", "cycles", "splat"),
        default="auto",
        help="Blender's Cycles, the built-in point splat, or Cycles where Blender is there",
    )
    command.add_argument(
        "--show",
        choices=("points", "surface"),
        help="what to draw of a cache that holds both (default: the surface); points show each material in its colour",
    )
    command.add_argument(
        "--movie",
        type=Path,
        metavar="FILE",
        help="also put the frames, all of them without --frames, into a movie: FILE.webp or FILE.gif",
    )
    command.add_argument(
        "--colour-by",
        default="",
        metavar="ATTRIBUTE",
        help="colour the points by an attribute (temperature), with a legend in its unit",
    )


def run(args: argparse.Namespace) -> int:
    """Render and say what was written."""
    from mpm_nodes.graph.revision import latest_revision
    from mpm_nodes.preview.movie import check_movie, write_movie
    from mpm_nodes.preview.pictures import Picture, render_cache, span_of

    if args.movie is not None:
        check_movie(args.movie)
    folder = latest_revision(args.cache)
    first, last, fps = span_of(folder)
    if args.frames is not None:
        first, last = args.frames
    frames = None if args.frames is None and args.movie is None else list(range(first, last + 1))
    picture = Picture(colour_by=args.colour_by)
    result = render_cache(
        folder, frames=frames, out=args.out, engine=args.engine, picture=picture, show=args.show, progress=show_progress
    )
    if result.message:
        print(f"rendered by {result.engine}: {result.message}", file=sys.stderr)
    for image in result.images:
        print(image)
    print(result.contact_sheet)
    if args.movie is not None:
        print(write_movie(result.images, args.movie, fps))
    return 0


def show_progress(done: int, total: int) -> None:
    """Print how many images are rendered."""
    print(f"rendered {done} of {total}", file=sys.stderr)
