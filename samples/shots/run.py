"""One run of a sample: cook it in one of its sizes, draw its contact sheet, measure and print its figures."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.commands import cook
from mpm_nodes.commands.demo import contact_sheet
from mpm_nodes.data import Cancelled, InputError
from mpm_nodes.preview.pictures import Picture, find_root
from mpm_nodes.preview.scene import look
from mpm_nodes_samples.shots.figures import closed_figures, common_figures, skin_figures
from mpm_nodes_samples.shots.report import print_figures, print_frames, print_stages, write_figures
from mpm_nodes_samples.shots.shot import Figure, Progress, Shot, Target
from mpm_nodes_samples.shots.sizes import graph_of

PAPER_MINUTES = 19.0
"""Time for the three frames of a paper size, compiling included; a frame that is not done by then is timed by its substeps."""


Measures = Callable[[Shot], list[Figure]]


def run(sample: Any, args: argparse.Namespace, own: Measures | None = None, known: Collection[str] = ()) -> int:
    """Cook one sample, render it, measure it, and say what to type next; 1 when a figure misses unexpectedly.

    Args:
        sample: The sample.
        args: What the command line gave.
        own: Measures what must be seen in this sample's quick size, beside what all samples have.
        known: Figures that are known to miss.
    """
    minutes = args.minutes or (PAPER_MINUTES if args.size == "paper" else math.inf)
    progress = Progress(60.0 * minutes)
    out = args.out or Path("out") / sample.name
    graph = graph_of(sample, args.size, args.overrides)
    again = f"mpm-nodes sample {sample.name} --size {args.size} --out {out}"
    again += "".join(f" --set {text}" for text in args.overrides)
    result = cooked(graph, args, out, f"{again} --resume", progress)
    wanted = () if args.size == "quick" else sample.paper.sheet
    chosen = wanted if set(wanted) <= set(result.frames) else ()
    sheet = contact_sheet(result.revision_folder, args, chosen or None, picture_of(sample))
    shot = shot_of(result, graph, progress)
    found = [replace(figure, known=figure.name in known) for figure in figures_of(shot, sample, args, own)]
    record = write_figures(result.revision_folder, sample, args, found, progress)
    print_figures(f"{sample.name} ({args.size}), {sample.source}", found)
    print_frames(progress)
    print_stages(progress)
    cook.print_written(result, args, also=[path for path in (sheet, record) if path])
    return int(any(figure.ok is False and (args.strict or not figure.known) for figure in found))


def cooked(graph: Any, args: argparse.Namespace, out: Path, resume: str, progress: Any) -> Any:
    """Return what was cooked until the end, or until the time was over.

    Raises:
        InputError: The time was over before a frame was solved.
        Cancelled: Somebody else ended the cook.
    """
    try:
        return cook.cook(graph, args, out, resume, progress)
    except Cancelled:
        if progress.cut is None:
            raise
        if len(progress.done) < 2:
            frame, substeps, seconds = progress.cut
            raise InputError(
                f"--minutes: frame {frame} was not done after {progress.limit / 60:g} min ({substeps:,} substeps in "
                f"{seconds:.0f} s); give more, or raise {graph_cell(graph)}"
            ) from None
        return progress.left_behind()


def graph_cell(graph: Any) -> str:
    """Return the setting that makes a cook coarser, with its value."""
    return f"settings.cell_size = {graph.settings.cell_size:g} m"


def picture_of(sample: Any) -> Picture:
    """Return how a sample's pictures are made, with size and camera where it has its own."""
    camera, found = sample.camera, Picture(colour_by=sample.colour_by, show=sample.show, white=sample.white)
    if camera is None:
        return found
    return found._replace(size=camera.size, camera=look(np.array(camera.eye), camera.target, camera.focal))


def shot_of(result: Any, graph: Any, progress: Any) -> Any:
    """Return the cooked sample for its figures."""
    return Shot(find_root(result.revision_folder), tuple(result.frames), graph.settings.cell_size, progress, graph)


def figures_of(shot: Any, sample: Any, args: argparse.Namespace, own: Measures | None) -> list[Any]:
    """Return the figures of the quick size, or those of the paper's that three frames show."""
    found = common_figures(shot)
    if args.size == "quick":
        return [*found, *skin_figures(shot), *closed_figures(shot), *(own(shot) if own else ())]
    paper = sample.paper
    nth = int(found[1].measured > found[0].measured)  # a stream has its particles at the end
    count = found[nth].measured
    if paper.particles:
        target = Target(round(0.95 * paper.particles), round(1.05 * paper.particles))
        found[nth] = Figure(found[nth].name, count, target, f"{paper.particles:,} within 5 %")
    if paper.minutes:
        speed, stated = paper.share * found[-1].measured, 60.0 * paper.minutes
        found[-1] = Figure("seconds for 1/30 s, solve", speed, Target(most=stated), f"a frame on {paper.machine}")
    if paper.step:
        found.append(Figure("seconds a substep, solve", found[-1].measured / found[-2].measured, Target(most=0.1 * paper.step),
                            f"a tenth of the source's on {paper.machine}"))  # fmt: skip
    return [*found, *skin_figures(shot), *closed_figures(shot)]
