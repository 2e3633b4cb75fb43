"""A sample's figures in words: tables on the terminal and figures.json beside the contact sheet."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpm_nodes.graph.files.folder import Folder


def print_figures(title: str, found: Sequence[Any]) -> None:
    """Print the figures as a table: what, measured, what the source says or what must hold, whether it does."""
    rows = [(figure.name, figure.printed, figure.expected, figure.verdict) for figure in found]
    widths = [max(len(row[k]) for row in (*rows, ("figure", "measured", "must show", ""))) for k in range(3)]
    print(title)
    for row in (("figure", "measured", "must show", ""), *rows):
        print(f"  {row[0]:{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:{widths[2]}}  {row[3]}".rstrip())


def print_frames(progress: Any) -> None:
    """Print the seconds of the solve in each frame; of many frames the first, the last and the longest."""
    frames = sorted(progress.seconds)
    shown = frames if len(frames) <= 6 else sorted({frames[0], frames[-1], max(frames, key=progress.seconds.__getitem__)})
    for frame in shown:
        note = ", compiling included" if frame == frames[0] else ""
        print(f"frame {frame}: {progress.substeps.get(frame, 0):,} substeps in {progress.seconds[frame]:.1f} s{note}")
    if progress.cut is not None:
        frame, substeps, seconds = progress.cut
        whole = progress.substeps[frames[-1]] if frames else substeps
        print(
            f"frame {frame}: ended after {substeps:,} substeps and {seconds:.1f} s, the {progress.limit / 60:g} min being over; "
            f"at this pace {whole:,} take {seconds * whole / max(substeps, 1):.0f} s"
        )


def print_stages(progress: Any) -> None:
    """Print what share of the solve each stage took."""
    spent = progress.stage_seconds()
    total = sum(spent.values())
    if not total:
        return
    print(f"time by stage (--no-fuse tells fused ones apart), {total:.1f} s in {len(progress.settled())} frames")
    for name, seconds in sorted(spent.items(), key=lambda item: -item[1]):
        if seconds > 0.0005 * total:
            print(f"  {100.0 * seconds / total:5.1f} %  {name}")


def write_figures(folder: Path, sample: Any, args: argparse.Namespace, found: Sequence[Any], progress: Any) -> Path:
    """Write the figures beside the contact sheet, as JSON, and return the file."""
    path = folder / "preview" / "figures.json"
    files = Folder(folder)
    files.make("preview")
    record = {
        "sample": sample.name, "size": args.size, "source": sample.source, "overrides": list(args.overrides),
        "figures": [figure.to_json() for figure in found],
        "seconds_by_frame": progress.seconds, "substeps_by_frame": progress.substeps,
        "seconds_by_stage": progress.stage_seconds(),
    }  # fmt: skip
    files.replace("preview/figures.json", (json.dumps(record, indent=1, default=float) + "\n").encode())
    return path
