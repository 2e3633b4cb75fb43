"""Render frames of a cache as PNGs and a contact sheet, a movie, or a page to flip through."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from mpm_nodes.commands.cook import frame_span
from mpm_nodes.commands.numbers import positive, real

DEGREES = 180.0
"""Angle of a film camera's usual shutter: open for half a frame."""


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("cache", type=Path, metavar="CACHE", help="output root or revision folder of a cook, or one of its stages")
    command.add_argument("--frames", type=frame_span, metavar="A-B", help="first and last frame (default: nine, or all of a movie)")
    command.add_argument("--every", type=positive, default=1, metavar="N", help="take every n-th frame only")
    command.add_argument("--out", type=Path, metavar="DIR", help="where the images go (default: beside the cache)")
    command.add_argument("--resume", action="store_true", help="keep the pictures of an earlier run that still hold")
    command.add_argument(
        "--engine",
        choices=("auto", "cycles", "splat"),
        default="auto",
        help="Blender's Cycles, the built-in point splat, or Cycles where Blender is there",
    )
    command.add_argument("--size", type=size, metavar="WxH", help="pixels of a picture (default: 640 wide, in the camera's shape)")
    command.add_argument("--samples", type=positive, default=16, metavar="N", help="samples a pixel of Cycles (default: 16)")
    command.add_argument(
        "--camera",
        choices=("auto", "stage", "fit", "turntable"),
        default="auto",
        help="the stage's camera, one fitted to the matter, or one that turns around it once; of a single frame, 48 pictures "
        "(default: the stage's, or a fitted one)",
    )
    command.add_argument(
        "--set",
        default="",
        metavar="SET",
        dest="set_name",
        help="what stands around it, for single pictures by Cycles: kitchen, studio, dark, snow, or a USD file of your own",
    )
    command.add_argument(
        "--motion-blur",
        type=real(0.0, 3600.0),
        nargs="?",
        const=DEGREES,
        default=0.0,
        metavar="DEGREES",
        help=f"angle of the shutter; 360 is a whole frame ({DEGREES:g} without a number; default: none)",
    )
    command.add_argument(
        "--show",
        choices=("points", "surface"),
        help="what to draw of a cache that holds both (default: the surface); points show each material in its colour",
    )
    command.add_argument(
        "--colour-by",
        default="",
        metavar="ATTRIBUTE",
        help="colour the surface, or the points where it lacks it, by an attribute (temperature, speed), with a legend in its unit",
    )
    command.add_argument(
        "--surroundings",
        type=frame_span,
        metavar="A-B",
        help="frames that floor and fitted camera stand for, where several commands render one movie (default: those rendered)",
    )
    command.add_argument(
        "--events",
        choices=("console", "openjd"),
        default="console",
        help="progress: lines, or the lines on stdout that runners of Open Job Description read",
    )
    command.add_argument(
        "--white",
        type=real(0.0),
        default=2000.0,
        metavar="CD_PER_M2",
        help="luminance that is shown as white: hot matter glows as a black body; lower it for a longer exposure, 0 turns the glow "
        "off (default: 2000, as at dusk)",
    )
    command.add_argument(
        "--beside",
        type=Path,
        action="append",
        default=[],
        metavar="CACHE2",
        help="put a second cache beside it, from the same camera; again for a third",
    )
    command.add_argument(
        "--movie", type=Path, metavar="FILE", help="play the pictures as .mp4, or as an animated .png, .webp or .gif"
    )
    command.add_argument("--flipbook", type=Path, metavar="FILE", help="write an HTML page that plays them, without a network")


def size(text: str) -> tuple[int, int]:
    """Return width and height of "640x480", 16 to 16384 pixels each.

    Raises:
        argparse.ArgumentTypeError: Something else.
    """
    found = re.fullmatch(r"(\d{1,6})x(\d{1,6})", text)
    if not found:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size; give width and height in pixels, such as 640x480")
    given = int(found[1]), int(found[2])
    if not 16 <= min(given) <= max(given) <= 16384:
        raise argparse.ArgumentTypeError(f"'{text}' is out of range; give 16 to 16384 pixels a side")
    return given


def run(args: argparse.Namespace) -> int:
    """Render and say what was written."""
    from mpm_nodes.graph.reports.events import JobLines
    from mpm_nodes.preview.beside import render_beside
    from mpm_nodes.preview.movie import check_flipbook, check_movie, write_flipbook, write_movie
    from mpm_nodes.preview.pictures import Picture, render_cache

    if args.movie:
        check_movie(args.movie)
    if args.flipbook:
        check_flipbook(args.flipbook)
    cache = shown_stage(args.cache)
    lines = JobLines(sys.stdout)

    def progress(done: int, total: int) -> None:
        if args.events == "openjd":
            lines.progress(done, total, f"rendered {done} of {total}")
        else:
            show_progress(done, total)

    motion_blur = args.motion_blur / 360.0
    picture = Picture(
        args.size, args.samples, args.colour_by, motion_blur, args.camera, args.show, args.surroundings, args.white, args.set_name
    )
    chosen = (wanted_frames(args, cache), args.out, args.engine, picture, progress, args.resume)
    if args.beside:
        result = render_beside([cache, *map(shown_stage, args.beside)], *chosen)
    else:
        result = render_cache(cache, *chosen)
    if result.message:
        print(f"rendered by {result.engine}: {result.message}", file=sys.stderr)
    if result.kept:
        print(f"{result.kept} pictures of an earlier run were kept", file=sys.stderr)
    written = [*result.images, result.contact_sheet]
    if args.movie:
        written.append(write_movie(result.images, args.movie, result.fps, show_movie_progress))
    if args.flipbook:
        written.append(write_flipbook(result.images, result.labels, args.flipbook, result.fps, str(args.cache)))
    for path in written:
        print(path)
    return 0


def shown_stage(cache: Path) -> Path:
    """Return the stage that is drawn, and say which are not: a graph with several cache nodes writes as many."""
    from mpm_nodes.graph.revisions.revision import latest_revision
    from mpm_nodes.preview.pictures import find_roots

    if cache.is_file():
        return cache
    first, *others = find_roots(latest_revision(cache))
    if others:
        print(f"{first} is drawn; give one of these to draw it: {', '.join(map(str, others))}", file=sys.stderr)
    return first


def wanted_frames(args: argparse.Namespace, cache: Path) -> list[int] | None:
    """Return the frames that were asked for: a movie takes all where none are named; None leaves the choice open.

    Of frames that the cache has only in part, those that are there are drawn; where none is, the first is returned, to be refused.
    """
    from mpm_nodes.preview.pictures import frames_of

    if args.frames is None and args.every == 1 and not (args.movie or args.flipbook):
        return None
    shared = frames_of(cache)
    for beside in args.beside:
        other = frames_of(beside)
        shared = range(max(shared.start, other.start), min(shared.stop, other.stop))
    if args.frames is None:
        return list(shared)[:: args.every] or None
    asked = range(args.frames[0], args.frames[1] + 1)[:: args.every]
    there = [frame for frame in shared if frame in asked]
    if there and len(there) < len(asked):
        held = f"the cache holds frames {shared.start} to {shared.stop - 1}"
        print(f"{held}: of the {len(asked)} asked for, the {len(there)} that are there are drawn", file=sys.stderr)
    return there or [asked[0]]


def show_progress(done: int, total: int) -> None:
    """Print how many images are rendered."""
    print(f"rendered {done} of {total}", file=sys.stderr)


def show_movie_progress(done: int, total: int) -> None:
    """Print every 24th picture of a movie, and the last."""
    if done % 24 == 0 or done == total:
        print(f"movie: {done} of {total}", file=sys.stderr)
