"""Plot what a cache holds over its frames: energies, momentum, mass, volume, heat, time step and seconds, as PNG or SVG."""

from __future__ import annotations

import argparse
from pathlib import Path

from mpm_nodes.commands.cook import frame_span


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument(
        "caches",
        type=Path,
        nargs="+",
        metavar="CACHE",
        help="output root or revision folder of a cook; several are drawn over one another",
    )
    command.add_argument(
        "-o", "--out", type=Path, metavar="FILE", help=".png or .svg (default: preview/plot.png in the first cache)"
    )
    command.add_argument("--frames", type=frame_span, metavar="A-B", help="first and last frame (default: all)")
    command.add_argument(
        "--events",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="what `mpm-nodes cook --events jsonl` printed for it, for seconds by stage; once for each cache, in their order",
    )


def run(args: argparse.Namespace) -> int:
    """Read, draw, and say what was written."""
    from mpm_nodes.data import MpmNodesError
    from mpm_nodes.graph.revisions.revision import latest_revision
    from mpm_nodes.plots.cache_curves import cache_panels
    from mpm_nodes.plots.pictures import check_picture, draw_panels

    if len(args.events) > len(args.caches):
        raise MpmNodesError(f"plot: {len(args.events)} files of events for {len(args.caches)} caches; give one for each at most")
    folders = [latest_revision(cache) for cache in args.caches]
    out = args.out or folders[0] / "preview" / "plot.png"
    check_picture(out)
    events = [*args.events, *[None] * (len(folders) - len(args.events))]
    panels = [cache_panels(folder, args.frames, told) for folder, told in zip(folders, events, strict=True)]
    print(draw_panels(list(zip(names_of(folders), panels, strict=True)), out))
    return 0


def names_of(folders: list[Path]) -> list[str]:
    """Return a name for each revision folder: as much of its path as tells it from the others, at least root and revision."""
    paths = [folder.resolve().parts for folder in folders]
    for count in range(2, max(map(len, paths)) + 1):
        found = ["/".join(parts[-count:]) for parts in paths]
        if len(set(found)) == len(set(paths)):
            return found
    return [str(folder) for folder in folders]
