"""Verify a cook, or a USD stage: each file against its digest, or what readers trip on; repair what can be repaired."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

MOST_LINES = 50
STAGES = (".usd", ".usda", ".usdc")


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument(
        "cache", type=Path, metavar="CACHE", help="output root (its newest revision is taken), revision folder, or USD stage"
    )
    command.add_argument(
        "--repair",
        type=Path,
        nargs="?",
        const=Path(),
        metavar="GRAPH",
        help="cook what is missing or damaged again from the graph file of the cook; of a stage, without GRAPH: "
        "find its data folder again where that was renamed",
    )
    command.add_argument(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="NODE.KNOB=VALUE",
        help="the overrides of the cook (--repair)",
    )
    command.add_argument("--json", action="store_true", help="print the faults as JSON")


def run(args: argparse.Namespace) -> int:
    """Check; 1 when something is missing or damaged and was not cooked again."""
    if args.cache.suffix in STAGES and not args.cache.is_dir():
        return check_stage(args)
    from mpm_nodes.data import InputError
    from mpm_nodes.graph.revisions.revision import latest_revision

    if args.repair == Path():
        raise InputError(f"check: --repair needs the graph file that {args.cache} was cooked from")
    folder = latest_revision(args.cache)
    frames, faults, left = examine(folder)
    if faults and args.repair is not None:
        from mpm_nodes.commands.cook import load
        from mpm_nodes.graph.cook.executor import execute

        graph = load(args.repair, args.overrides)
        result = execute(graph, frames=frames, out=folder.parent, resume=True, of=folder.name, deep=True, overrides=args.overrides)
        print(f"cooked again: {', '.join(map(str, result.cooked)) or 'nothing'}")
        frames, faults, left = examine(folder)
    if args.json:
        print(json.dumps({"frames": frames, "faults": [vars(fault) for fault in faults], "not_cooked": left}), file=args.stream)
        return 1 if faults else 0
    for fault in faults[:MOST_LINES]:
        print(f"frame {fault.frame}: {fault.name or 'its record'}: {fault.what}")
    if len(faults) > MOST_LINES:
        print(f"... and {len(faults) - MOST_LINES} more")
    print(f"{folder}: {verdict(frames, faults)}")
    if left:
        print(
            f"frames {left[0]} to {left[1]} are not cooked yet; "
            f"continue with mpm-nodes cook GRAPH --out {folder.parent} --resume --of {folder.name}"
        )
    if faults:
        print(f"next: mpm-nodes check {args.cache} --repair GRAPH")
    return 1 if faults else 0


def check_stage(args: argparse.Namespace) -> int:
    """Check a USD stage for what readers trip on; 1 when something is wrong."""
    from mpm_nodes.data import InputError
    from usd_io import reading_usd, require_usd

    require_usd()
    from usd_io.check import check_cache
    from usd_io.packing import rounding_of
    from usd_io.relink import relink
    from usd_io.stage_reader import open_stage

    if args.repair is not None:
        if args.repair != Path():
            raise InputError("check: a stage is repaired without a graph; give --repair alone, or check the folder of the cook")
        for line in relink(args.cache):
            print(line)
    with reading_usd(args.cache):
        problems = check_cache(args.cache)
        notes = list(rounding_of(open_stage(args.cache)))
    if args.json:
        print(json.dumps({"problems": problems, "notes": notes}), file=args.stream)
        return 1 if problems else 0
    for note in notes:
        print(note)
    for problem in problems[:MOST_LINES]:
        print(problem)
    if len(problems) > MOST_LINES:
        print(f"... and {len(problems) - MOST_LINES} more")
    print(f"{args.cache}: {f'{len(problems)} problems' if problems else 'nothing that readers trip on'}")
    return 1 if problems else 0


def examine(folder: Path) -> tuple[tuple[int, int] | None, list[Any], tuple[int, int] | None]:
    """Return the frames of a revision, what is wrong with them, and the frames that are not cooked yet.

    Raises:
        InputError: It is not a cook, or its manifest is damaged.
        OutputError: A cook is writing it.
    """
    from mpm_nodes.data import InputError
    from mpm_nodes.graph.cook.repair import find_faults
    from mpm_nodes.graph.cook.resume import is_whole
    from mpm_nodes.graph.files.folder import Folder
    from mpm_nodes.graph.revisions.lock import FolderLock
    from mpm_nodes.graph.revisions.records import read_manifest
    from mpm_nodes.graph.revisions.revision import Revision

    lock = FolderLock(folder)
    try:
        manifest = read_manifest(Folder(folder))
        if manifest is None or not is_whole(manifest):
            raise InputError(f"{folder}: holds no whole cook.json; cook again without --resume")
        revision = Revision(folder, manifest, lock)
        first, end = manifest["frames"]
        committed = revision.committed()
        if not committed:
            return None, [], (first, end)
        last = max(committed)
        faults = find_faults(revision, first, last, digests=range(first, last + 1))
    finally:
        lock.release()
    return (first, last), faults, (last + 1, end) if last < end else None


def verdict(frames: tuple[int, int] | None, faults: list[Any]) -> str:
    """Return what was found, in words."""
    if frames is None:
        return "no frame was ever finished"
    bad = len({fault.frame for fault in faults})
    return f"frames {frames[0]} to {frames[1]} are whole" if not bad else f"{bad} of {frames[1] - frames[0] + 1} frames are damaged"
