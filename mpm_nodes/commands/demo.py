"""Cook the demo shot, a soft block that drapes over a collider, and make a contact sheet of it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mpm_nodes import compiling
from mpm_nodes.commands import cook, ranks
from mpm_nodes.commands.render import show_progress
from mpm_nodes.data import InputError, MpmNodesError
from mpm_nodes.packaged_samples import sample_graph

if TYPE_CHECKING:
    from mpm_nodes.preview.pictures import Picture


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    cook.add_graph_options(command)
    cook.add_cook_options(command)
    command.add_argument("--out", type=Path, default=Path("demo"), metavar="DIR", help="output root (default: demo)")
    command.add_argument("--engine", choices=("auto", "cycles", "splat"), default="splat", help="who renders the contact sheet")


def run(args: argparse.Namespace) -> int:
    """Cook, render, and say what to type next."""
    path = sample_graph(fitting_demo())
    graph = cook.load(path, args.overrides)
    resume = f"mpm-nodes demo --out {args.out} --resume" + ranks.in_shell(args.overrides)
    result = cook.cook(graph, args, args.out, resume)
    sheet = contact_sheet(result.revision_folder, args)
    again = f"mpm-nodes cook {path} --out mine --set settings.cell_size=0.05"
    cook.print_written(result, args, also=[sheet] if sheet else [], after=[again])
    return 0


def fitting_demo() -> str:
    """Return the name of the demo that this machine can cook; without OpenVDB say what is missing in it, and the cure."""
    from usd_io.openvdb_module import find_openvdb, openvdb_cure

    try:
        find_openvdb()
        return "demo"
    except InputError:
        print(
            "no OpenVDB here: the trivet comes from a USD mesh, and the cache holds points without surface and volume.\n"
            f"To have them: {openvdb_cure()}",
            file=sys.stderr,
        )
        return "demo_without_vdb"


def contact_sheet(
    folder: Path, args: argparse.Namespace, frames: Sequence[int] | None = None, picture: Picture | None = None
) -> Path | None:
    """Return the contact sheet of a cook; the cook stays good when it cannot be drawn (arguments as `render_cache`'s).

    Matter is drawn as matter; where the picture colours it by an attribute, a second, smaller row shows that.
    """
    from mpm_nodes.graph.files.folder import Folder
    from mpm_nodes.preview import picture_file, sheet
    from mpm_nodes.preview.pictures import Picture, render_cache

    picture = picture or Picture()
    try:
        progress = show_progress if args.events == "console" else None
        with compiling.told(lambda now: progress and print(now.message, file=sys.stderr)):
            made = render_cache(folder, frames, None, args.engine, picture._replace(colour_by=""), progress)
            if not picture.colour_by:
                return made.contact_sheet
            Folder(made.contact_sheet.parent).make(picture.colour_by)
            where = made.contact_sheet.parent / picture.colour_by
            width, height = sheet.opened(made.images[:1])[0].size
            small = picture._replace(size=(max(16, width // 2), max(16, height // 2)))
            coloured = render_cache(folder, made.frames, where, made.engine, small, progress).images
        drawn = sheet.contact_sheet(made.images, made.labels, made.footer, below=coloured)
        return picture_file.save(drawn, made.contact_sheet)
    except MpmNodesError as error:
        print(f"warning: no contact sheet: {error}", file=sys.stderr)
        return None
