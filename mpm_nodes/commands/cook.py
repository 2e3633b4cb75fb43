"""Cook a graph file: simulate it and write its caches."""

from __future__ import annotations

import argparse
import contextlib
import re
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mpm_nodes.commands import ranks
from mpm_nodes.commands.numbers import LARGEST, positive, real, whole
from mpm_nodes.data import Cancelled, MpmNodesError, OutputError
from mpm_nodes.terminal import stream_of_results

SOLVES = "*"
"""Stands for every solve in an override."""
DEVICES = ("cpu", "cuda", "auto")
"""Values of `solve.device`; the node itself is not loaded to read a command line."""


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("graph", type=Path, metavar="GRAPH", help="graph file (JSON)")
    add_graph_options(command)
    add_cook_options(command)
    command.add_argument("--out", type=Path, metavar="DIR", help="output root (default: out/NAME); a cook gets a folder rNNN in it")
    command.add_argument(
        "--to",
        metavar="NODE",
        help="cook this node and what it needs, and write what it gives as a cache: the rest of the graph may be unfinished",
    )
    command.add_argument(
        "--part",
        choices=("all", "solve", "frames"),
        default="all",
        help="cook the solves alone and keep what they hand on, or the other nodes from what another cook kept (default: all)",
    )
    command.add_argument("--solved", type=Path, metavar="DIR", help="with --part frames: output root of the cook with --part solve")
    command.add_argument(
        "--ranks",
        type=positive,
        metavar="N",
        help="share each solve among N processes by MPI: alone it starts them here, under mpiexec -n N or srun it joins the others",
    )


def add_graph_options(command: argparse.ArgumentParser) -> None:
    """Declare what changes a graph before it is used."""
    command.add_argument(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="NODE.KNOB=VALUE",
        help="change a knob, or settings.NAME; the value is JSON, or a bare word for text",
    )
    command.add_argument(
        "--resolution",
        dest="overrides",
        action="append",
        type=lambda text: f"settings.resolution={text}",
        metavar="X",
        help="cells along an axis for each of the graph's: 0.5 for a test at an eighth of the particles, 2 for eight times as many",
    )
    command.add_argument(
        "--device",
        dest="overrides",
        action="append",
        type=_on_device,
        metavar="{" + ",".join(DEVICES) + "}",
        help="what every solve runs on: the CPU, an NVIDIA GPU, or the GPU where there is one that can",
    )


def add_cook_options(command: argparse.ArgumentParser) -> None:
    """Declare how a cook runs."""
    command.add_argument("--frames", type=frame_span, metavar="A-B", help="first and last frame (default: the graph's)")
    command.add_argument("--resume", action="store_true", help="continue the newest cook in DIR after its last good frame")
    command.add_argument(
        "--again-from",
        type=whole(-LARGEST),
        metavar="N",
        help="cook a changed graph again from frame N on: a new revision takes the frames before it from the newest cook in DIR",
    )
    command.add_argument(
        "--of",
        default="",
        metavar="rNNN",
        help="with --resume or --again-from: this revision, not the newest; --again-from takes a whole path too",
    )
    command.add_argument("--threads", type=positive, metavar="N", help="threads of the kernels (default: all cores)")
    command.add_argument("--memory", type=real(0.0), metavar="GB", help="memory for cached values between nodes")
    command.add_argument("--cache", type=Path, metavar="DIR", help="keep values that do not change over time here, for other cooks")
    command.add_argument("--checked", action="store_true", help="run every stage twice to find declarations that lie (slow)")
    command.add_argument(
        "--no-fuse",
        dest="fuse",
        action="store_false",
        help="run the substeps stage by stage (slow); fused stages give the same numbers to rounding",
    )
    command.add_argument(
        "--max-substeps",
        type=positive,
        metavar="N",
        help="stop when a frame is expected to take more substeps (default: any number)",
    )
    command.add_argument(
        "--events",
        choices=("console", "jsonl", "openjd", "none"),
        default="console",
        help="progress: lines, JSON lines on stdout, or the lines on stdout that runners of Open Job Description read",
    )


def _on_device(text: str) -> str:
    """Return the override of a device."""
    if text not in DEVICES:
        raise argparse.ArgumentTypeError(f"{text!r} is not a device; write one of {', '.join(DEVICES)}")
    return f"{SOLVES}.device={text}"


def frame_span(text: str) -> tuple[int, int]:
    """Return (first, last) of "A-B" or "A"; frame numbers may be negative ("-5-10")."""
    match = re.fullmatch(r"(-?\d{1,9})(?:-(-?\d{1,9}))?", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a span of frames; write A-B, for instance 1-48")
    first = int(match[1])
    last = first if match[2] is None else int(match[2])
    if last < first:
        raise argparse.ArgumentTypeError(f"{text!r} runs backwards; write the first frame first")
    return first, last


def run(args: argparse.Namespace) -> int:
    """Cook, then say what was written."""
    return ranks.run(args, cook_graph)


def cook_graph(args: argparse.Namespace) -> int:
    """Cook in this process, which may be one of several ranks, then say what was written."""
    args.keep_solves = True
    out = args.out or Path("out") / args.graph.stem
    with stream_of_results(args.events in ("jsonl", "openjd")) as args.stream:
        graph = load(args.graph, args.overrides)
        if args.to is not None:
            from mpm_nodes.graph.document.upstream import keep_upstream

            keep_upstream(graph, args.to)
        result = cook(graph, args, out, ranks.resume_command(args, out))
    if args.team is None or not args.team.rank:
        with contextlib.suppress(BrokenPipeError):
            print_written(result, args)
    return 0


def load(path: Path, overrides: Sequence[str]) -> Any:
    """Return the graph of a file with the command line's overrides applied; all their problems are raised at once."""
    from mpm_nodes.graph.document.document import load_graph

    return changed(load_graph(path), overrides)


def changed(graph: Any, overrides: Sequence[str]) -> Any:
    """Apply overrides, texts "node.knob=value", to a graph and return it.

    Raises:
        GraphError: Overrides name or give what the graph does not take; it holds all problems.
    """
    from mpm_nodes.graph.document.document import apply_override
    from mpm_nodes.graph.plan.validate import validate
    from mpm_nodes.graph.reports.problems import GraphError, Problems

    problems = Problems()
    for text in _of_nodes(graph, overrides):
        try:
            apply_override(graph, text)
        except GraphError as error:
            problems.extend(error.problems)
    if problems:
        problems.extend(validate(graph))
        raise GraphError(problems)
    return graph


def _of_nodes(graph: Any, overrides: Sequence[str]) -> Iterator[str]:
    """Yield overrides, those of all solves once for each."""
    for text in overrides:
        if text.startswith(f"{SOLVES}."):
            yield from (name + text.removeprefix(SOLVES) for name, entry in graph.nodes.items() if entry.type == "solve")
        else:
            yield text


def cook(graph: Any, args: argparse.Namespace, out: Path, resume_command: str, watch: Any = None) -> Any:
    """Execute a graph with progress on the console or as JSON lines; Ctrl-C stops it after the current substep.

    `watch` is called with every event as well.
    """
    from mpm_nodes.graph.cook.executor import execute
    from mpm_nodes.graph.reports.events import ConsoleLines, JobLines, JsonLines, Thinned
    from mpm_nodes.graph.values.store import DiskStore

    console = ConsoleLines()
    stream = getattr(args, "stream", sys.stdout)
    shown = {"console": console, "jsonl": JsonLines(stream), "openjd": JobLines(stream), "none": None}[args.events]

    def sink(event: Any) -> None:
        for receiver in (shown, watch):
            if receiver is not None:
                receiver(event)

    with cancel_on_interrupt() as cancel:
        try:
            return execute(
                graph,
                frames=args.frames,
                out=out,
                resume=args.resume,
                on_event=Thinned(sink),
                cancel=cancel,
                memory_limit=None if args.memory is None else int(args.memory * 1e9),
                checked=args.checked,
                fuse=args.fuse,
                max_substeps=args.max_substeps,
                threads=args.threads,
                overrides=args.overrides,
                disk=None if args.cache is None else DiskStore(args.cache),
                part=getattr(args, "part", "all"),
                solved=getattr(args, "solved", None),
                team=getattr(args, "team", None),
                again_from=args.again_from,
                of=args.of,
                keep_solves=getattr(args, "keep_solves", False),
                keep_figures=False,
            )
        except Cancelled as error:
            error.args = (f"stopped; what was cooked is kept. Continue with: {resume_command}",)
            raise
        except OutputError:
            raise
        except MpmNodesError as error:
            if error.exit_code == 4:
                error.args = (f"{error}; the frames before it are kept in {out}",)
            raise
        finally:
            console.close()


@contextlib.contextmanager
def cancel_on_interrupt() -> Iterator[threading.Event]:
    """Give an event that Ctrl-C or a termination signal sets; a second Ctrl-C stops at once."""
    cancel = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield cancel
        return

    def stop(number: int, frame: Any) -> None:
        if cancel.is_set():
            raise KeyboardInterrupt
        cancel.set()
        print("\nstopping after this substep; press Ctrl-C again to stop at once", file=sys.stderr)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield cancel
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def print_written(result: Any, args: argparse.Namespace, also: Sequence[Path] = (), after: Sequence[str] = ()) -> None:
    """Print what a cook wrote (`also`: files made from it) and what to type next (`after`: more commands)."""
    if args.events in ("jsonl", "openjd"):
        return
    folder = result.revision_folder
    sizes = [(folder / name).stat().st_size for name in result.files]
    from mpm_nodes.graph.plan.preflight import in_words

    frames = f"{len(result.cooked)} frame{'' if len(result.cooked) == 1 else 's'}"
    print(f"cooked {frames} in {result.seconds:.1f} s; {len(sizes)} files, {in_words(sum(sizes))}, in {folder}")
    if not result.cooked:
        print("nothing was left to cook; raise the last frame with --frames or settings.end")
    for name in whole_shot_files(result.files):
        print(f"  {folder / name}")
    for path in also:
        print(f"  {path}")
    for warning in result.warnings:
        print(f"warning: {warning}")
    if result.files:
        if getattr(args, "part", "all") == "solve":
            words = ["mpm-nodes", "cook", str(args.graph), "--part", "frames", "--solved", str(folder.parent)]
            print(f"next: {shlex.join(words)}{ranks.in_shell(args.overrides)} --out ...")
        else:
            print(f"next: mpm-nodes render {folder}")
        for command in after:
            print(f"      {command}")


def whole_shot_files(files: Sequence[str]) -> list[str]:
    """Return the files that stand for the whole shot: those without a frame number."""
    return [name for name in files if not re.search(r"[._]\d{2,}\.\w+$", name)]
