"""Cook a packaged sample, make its contact sheet, and print the figures that it must show."""

from __future__ import annotations

import argparse
import importlib.resources
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.commands import cook
from mpm_nodes.commands.demo import contact_sheet

STUDY_FRAMES = 21
"""A third of a second: impact, flight and second contact."""
PAPER_MINUTES = 19.0
"""Time for the three frames of a paper size, compiling included; a frame that is not done by then is timed by its substeps."""


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    from mpm_nodes.samples.index import SIZES

    command.add_argument("name", nargs="?", metavar="NAME", help="the sample; none lists them all")
    command.add_argument(
        "--size", choices=SIZES, default="quick",
        help="quick: minutes on two cores; paper: particles, grid and time step of the source, three frames of them",
    )  # fmt: skip
    command.add_argument(
        "--study", action="store_true", help="spheres: cook it at two resolutions with three seeds and print whether each "
        "rebounds; sponge_bullet: count iterations of implicit steps with each preconditioner",
    )
    command.add_argument(
        "--minutes", type=float, metavar="N", help=f"end the cook after so long (default: {PAPER_MINUTES:g} for --size paper)"
    )
    cook.add_graph_options(command)
    cook.add_cook_options(command)
    command.add_argument("--out", type=Path, metavar="DIR", help="output root (default: out/NAME)")
    command.add_argument(
        "--engine", choices=("auto", "cycles", "splat"), default="splat", help="who renders the contact sheet"
    )


def run(args: argparse.Namespace) -> int:
    """List the samples, or cook one, render it, measure it, and say what to type next."""
    from mpm_nodes.samples.index import SAMPLES, sample_named

    if args.name is None:
        for sample in SAMPLES.values():
            print(f"{sample.name:16}{sample.doc}")
        return 0
    sample = sample_named(args.name)
    if args.study:
        return study(sample, args)
    from mpm_nodes.samples.shot import Progress

    minutes = args.minutes or (PAPER_MINUTES if args.size == "paper" else math.inf)
    progress = Progress(60.0 * minutes)
    out = args.out or Path("out") / sample.name
    packaged = importlib.resources.files("mpm_nodes") / "samples" / f"{sample.name}.json"
    with importlib.resources.as_file(packaged) as path:
        graph = sized(cook.load(path, ()), sample, args.size, args.overrides)
        again = f"mpm-nodes sample {sample.name} --size {args.size} --out {out}"
        again += "".join(f" --set {text}" for text in args.overrides)
        result = cooked(graph, args, out, f"{again} --resume", progress)
    wanted = sample.sheet if args.size == "quick" else sample.paper.sheet
    chosen = wanted if set(wanted) <= set(result.frames) else ()
    sheet = contact_sheet(result.revision_folder, args, sample.show, chosen or None, **picture_of(sample))
    shot = shot_of(result, graph, progress)
    found = figures_of(shot, sample, args)
    record = write_figures(result.revision_folder, sample, args, found, progress)
    print_figures(f"{sample.name} ({args.size}), {sample.source}", found)
    print_frames(progress)
    print_stages(progress)
    cook.print_written(result, args, also=[path for path in (sheet, record) if path])
    return 0


def cooked(graph: Any, args: argparse.Namespace, out: Path, resume: str, progress: Any) -> Any:
    """Return what was cooked until the end, or until the time was over.

    Raises:
        InputError: The time was over before a frame was solved.
        Cancelled: Somebody else ended the cook.
    """
    from mpm_nodes.data import Cancelled, InputError

    try:
        return cook.cook(graph, args, out, resume, progress)
    except Cancelled:
        if progress.cut is None:
            raise
        if len(progress.done) < 2:
            frame, substeps, seconds = progress.cut
            raise InputError(f"--minutes: frame {frame} was not done after {progress.limit / 60:g} min ({substeps:,} substeps in "
                             f"{seconds:.0f} s); give more, or raise {graph_cell(graph)}") from None
        return progress.left_behind()


def graph_cell(graph: Any) -> str:
    """Return the setting that makes a cook coarser, with its value."""
    return f"settings.cell_size = {graph.settings.cell_size:g} m"


def sized(graph: Any, sample: Any, size: str, overrides: Sequence[str]) -> Any:
    """Return the graph turned into that size, then changed by the command line's overrides; all problems are raised at once.

    Raises:
        InputError: The sample has no paper size.
        GraphError: An override names or gives what the graph does not take.
    """
    from mpm_nodes.data import InputError

    if size == "paper" and sample.paper is None:
        raise InputError(f"sample '{sample.name}': its source states no numbers for it; leave --size paper out")
    if size == "paper":
        for name in sample.paper.without:
            remove(graph, name)
        overrides = (*sample.paper.overrides, *overrides)
    return cook.changed(graph, overrides)


def remove(graph: Any, name: str) -> None:
    """Take a node out of a graph, and its wires."""
    del graph.nodes[name]
    for entry in graph.nodes.values():
        for port, wires in list(entry.inputs.items()):
            kept = [wire for wire in wires if wire.partition(".")[0] != name]
            if kept:
                entry.inputs[port] = kept
            else:
                del entry.inputs[port]


def picture_of(sample: Any) -> dict[str, Any]:
    """Return size and camera of a sample's pictures, where it has its own."""
    from mpm_nodes.preview_scene import look

    camera = sample.camera
    return {} if camera is None else {"size": camera.size, "view": look(np.array(camera.eye), camera.target, camera.focal)}


def shot_of(result: Any, graph: Any, progress: Any) -> Any:
    """Return the cooked sample for its figures."""
    from mpm_nodes.preview import find_root
    from mpm_nodes.samples.shot import Shot

    return Shot(find_root(result.revision_folder), tuple(result.frames), graph.settings.cell_size, progress)


def figures_of(shot: Any, sample: Any, args: argparse.Namespace) -> list[Any]:
    """Return the figures of the quick size, or those of the paper's that three frames show."""
    from mpm_nodes.samples.figures import common_figures
    from mpm_nodes.samples.shot import Figure

    found = common_figures(shot)
    if args.size == "quick":
        return [*found, *sample.figures(shot)]
    paper = sample.paper
    nth = int(found[1].measured > found[0].measured)  # a stream has its particles at the end
    count = found[nth].measured
    found[nth] = Figure(found[nth].name, count, f"{paper.particles:,}", abs(count / paper.particles - 1.0) < 0.05)
    speed, stated = paper.share * found[-1].measured, 60.0 * paper.minutes
    found[-1] = Figure("seconds for 1/30 s, solve", speed, f"{stated:g} s a frame on {paper.machine}", speed < stated)
    return found


# ---------------------------------------------------------------- saying it
def print_figures(title: str, found: Sequence[Any]) -> None:
    """Print the figures as a table: what, measured, what the source says or what must hold, whether it does."""
    rows = [(figure.name, number(figure.measured), figure.expected, verdict(figure)) for figure in found]
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
        print(f"frame {frame}: ended after {substeps:,} substeps and {seconds:.1f} s, the {progress.limit / 60:g} min being over; "
              f"at this pace {whole:,} take {seconds * whole / max(substeps, 1):.0f} s")


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


def number(value: float) -> str:
    """Return a number for people: whole ones in full, others with four digits."""
    if math.isfinite(value) and float(value).is_integer() and abs(value) < 1e12:
        return f"{int(value):,}"
    return f"{value:.4g}"


def verdict(figure: Any) -> str:
    """Return whether a figure holds, in a word."""
    return "" if figure.ok is None else "ok" if figure.ok else "NOT"


def write_figures(folder: Path, sample: Any, args: argparse.Namespace, found: Sequence[Any], progress: Any) -> Path:
    """Write the figures beside the contact sheet, as JSON, and return the file."""
    from dataclasses import asdict

    path = folder / "preview" / "figures.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {
        "sample": sample.name, "size": args.size, "source": sample.source, "overrides": list(args.overrides),
        "figures": [asdict(figure) for figure in found],
        "seconds_by_frame": progress.seconds, "substeps_by_frame": progress.substeps,
        "seconds_by_stage": progress.stage_seconds(),
    }  # fmt: skip
    path.write_text(json.dumps(record, indent=1, default=float) + "\n", encoding="utf-8")
    return path


# ---------------------------------------------------------------- studies
def study(sample: Any, args: argparse.Namespace) -> int:
    """Compare preconditioners, or cook the spheres at two resolutions with three seeds each and print the gap under each."""
    from mpm_nodes.data import InputError
    from mpm_nodes.samples.figures import bottoms, rebound
    from mpm_nodes.samples.shot import Figure

    if sample.name == "sponge_bullet":
        from mpm_nodes.samples.preconditioner_study import compare

        packaged = importlib.resources.files("mpm_nodes") / "samples" / f"{sample.name}.json"
        with importlib.resources.as_file(packaged) as path:
            found = compare(sized(cook.load(path, ()), sample, args.size, args.overrides))
        print_figures("sponge_bullet: what the preconditioner saves", found)
        return 0
    if sample.name != "spheres":
        raise InputError(f"--study: is for the samples 'spheres' and 'sponge_bullet', and this is '{sample.name}'; leave it out")
    found = []
    for factor in (1.0, 1.25):
        for seed in (1, 2, 3):
            cell, positions, frames = solved(sample, args, factor, seed)
            for material, name in enumerate(("viscoplastic", "oobleck")):
                gap = rebound(bottoms(positions, frames, material), cell)
                holds = gap >= 2.0 * cell if material else gap < 2.0 * cell
                wanted = f"{'' if material else 'less than '}2 h = {2e3 * cell:g}{' or more' if material else ''}"
                found.append(Figure(f"{name}, h = {1e3 * cell:g} mm, seed {seed}: gap [mm]", 1e3 * gap, wanted, holds))
                print(f"{found[-1].name} {found[-1].measured:.3g} {verdict(found[-1])}", flush=True)
    print_figures("spheres: does each leave the ground again?", found)
    return 0


def solved(sample: Any, args: argparse.Namespace, factor: float, seed: int) -> tuple[float, Any, range]:
    """Solve the spheres with other seeds and cells; return the cell size, a function (frame, material) -> positions, the frames."""
    from mpm_nodes.graph.executor import Evaluator

    packaged = importlib.resources.files("mpm_nodes") / "samples" / f"{sample.name}.json"
    with importlib.resources.as_file(packaged) as path:
        graph = sized(cook.load(path, ()), sample, args.size, args.overrides)
    cell = factor * graph.settings.cell_size
    graph.set("settings.cell_size", cell)
    for ball in ("viscoplastic_ball", "oobleck_ball"):
        graph.set(f"{ball}.seed", seed)
    evaluator, frames = Evaluator(graph), range(graph.settings.start, graph.settings.start + STUDY_FRAMES)
    kept = {frame: evaluator.value("drop.particles", frame) for frame in frames}

    def positions(frame: int, material: int) -> Any:
        return kept[frame]["position"][kept[frame]["material"] == material]

    return cell, positions, frames
