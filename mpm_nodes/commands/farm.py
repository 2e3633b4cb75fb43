"""Cut a shot, or wedges of it, into tasks for a farm; run them here or on a Dask cluster."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from mpm_nodes.commands.cook import add_graph_options, cancel_on_interrupt, changed, frame_span
from mpm_nodes.commands.numbers import positive, real
from mpm_nodes.commands.render import size
from mpm_nodes.data import MpmNodesError


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("graph", type=Path, metavar="GRAPH", help="graph file (JSON), or the folder of a job")
    add_graph_options(command)
    command.add_argument("--frames", type=frame_span, metavar="A-B", help="first and last frame (default: the graph's)")
    command.add_argument(
        "--wedge",
        dest="wedges",
        action="append",
        default=[],
        metavar="NODE.KNOB=A,B,C",
        help="cook the shot once for each value, and for each combination where it is given several times",
    )
    command.add_argument(
        "--chunk",
        type=positive,
        metavar="N",
        help="solve first, then make N frames a task of everything else (default: a wedge is one task)",
    )
    command.add_argument(
        "--render",
        dest="renders",
        action="append",
        choices=("auto", "cycles", "splat"),
        default=[],
        help="render all frames as well",
    )
    command.add_argument("--size", type=size, metavar="WxH", help="pixels of the pictures")
    command.add_argument("-o", "--out", type=Path, metavar="JOB", help="folder of the job (default: farm/NAME)")
    command.add_argument("--jobs", type=positive, metavar="N", help="run the job here, N tasks at once")
    command.add_argument(
        "--memory", type=real(0.0, above=True), metavar="GB", help="memory for all tasks (default: nine tenths of what is free)"
    )
    command.add_argument(
        "--threads", type=positive, metavar="N", help="threads of each task (default: cores over tasks; all cores on a cluster)"
    )
    command.add_argument("--dask", metavar="ADDRESS", help='run the job on a Dask cluster; "local" starts one here')
    command.add_argument("--gather", action="store_true", help="only make contact sheet, table and stage of a job's wedges")


def run(args: argparse.Namespace) -> int:
    """Write a job, or take the one that is there; run it where that is asked for."""
    from mpm_nodes.farm.gather import gather
    from mpm_nodes.farm.job import load_job

    if args.dask and args.jobs:
        raise _wrong("--jobs runs the job here, and --dask on a cluster; give one of them")
    if not args.graph.is_dir():
        job = _made(args)
    else:
        given = [name for name in ("overrides", "frames", "wedges", "chunk", "renders", "size", "out") if getattr(args, name)]
        if given:
            raise _wrong(f"{args.graph}: is a job, which has its {', '.join(given)} already; give the graph to make another one")
        job = load_job(args.graph)
    if args.gather:
        found = gather(job)
        for path in (found.sheet, found.table, found.stage):
            if path is not None:
                print(path)
        return 0
    if args.jobs or args.dask:
        return _run(job, args)
    print(f"{job.folder}: {job.summary()}; README.md says how to submit them")
    print(f"next: mpm-nodes farm {args.out or job.folder} --jobs 2")
    return 0


def _wrong(message: str) -> MpmNodesError:
    error = MpmNodesError(message)
    error.exit_code = 2
    return error


def _made(args: argparse.Namespace) -> Any:
    """Write the job that was asked for."""
    from mpm_nodes.farm.job import make_job
    from mpm_nodes.farm.submit import write_submission
    from mpm_nodes.farm.values import parse_wedges
    from mpm_nodes.graph.document.document import load_graph

    graph = changed(load_graph(args.graph), args.overrides)
    out = args.out or Path("farm") / args.graph.stem
    knobs = parse_wedges(args.wedges)
    job = make_job(graph, out, knobs, args.frames, args.chunk, args.renders, args.size, args.graph.stem)
    write_submission(job)
    return job


def _run(job: Any, args: argparse.Namespace) -> int:
    from mpm_nodes.farm.local import run_here

    lines = TaskLines()
    with cancel_on_interrupt() as cancel:
        if args.dask:
            outcome = _on_dask(job, args, lines, cancel)
        else:
            memory = None if args.memory is None else int(args.memory * 1e9)
            outcome = run_here(job, args.jobs, memory, args.threads, lines, cancel)
    print(f"tasks run: {len(outcome.ran)}, finished before: {len(outcome.kept)}, in {job.folder}")
    if outcome.failed:
        print(f"{len(outcome.failed)} failed ({', '.join(outcome.failed)}), {len(outcome.skipped)} were not begun for it")
        print(f"next: read {job.folder / 'logs'}, then mpm-nodes farm {job.folder} again")
    else:
        for name in ("wedges.png", "wedges.csv", "wedges.usda"):
            if (job.folder / name).is_file():
                print(f"  {job.folder / name}")
    return int(outcome.exit_code)


def _on_dask(job: Any, args: argparse.Namespace, lines: Any, cancel: Any) -> Any:
    try:
        from distributed import Client
    except ImportError as error:
        raise MpmNodesError('--dask needs the package distributed; pip install "mpm-nodes[dask]"') from error
    from mpm_nodes.farm.cluster import run_on_dask

    try:
        if args.dask == "local":  # tasks are processes of their own, so that its worker need not be one
            cores = os.cpu_count() or 1
            client = Client(processes=False, n_workers=1, threads_per_worker=cores, dashboard_address=None)
            args.threads = args.threads or 1
        else:
            client = Client(args.dask, timeout=20)
    except (OSError, ValueError) as error:
        raise MpmNodesError(f"--dask {args.dask}: no scheduler answers there ({error}); give tcp://HOST:8786") from error
    with client:
        return run_on_dask(job, client, args.threads, lines, cancel)


class TaskLines:
    """Print what becomes of tasks, a line each."""

    def __call__(self, event: dict[str, Any]) -> None:
        """Show one event; kinds that it does not know are passed over."""
        from mpm_nodes.terminal import plain

        text = {
            "task_start": "begins",
            "task_done": f"is finished after {event.get('seconds', 0.0):.1f} s" if event.get("seconds") else "is finished",
            "task_again": f"was ended from outside ({event.get('exit_code')}); it goes on where it was",
            "task_failed": f"failed ({event.get('exit_code')}): {event.get('message')}",
            "task_skipped": "is not begun: what it needs failed",
            "warning": f"warning: {event.get('message')}",
        }.get(event["event"])
        if text is not None:
            label = f" ({event['label']})" if event["label"] else ""
            print(plain(f"[{event['done']}/{event['total']}] {event['task']}{label} {text}"), file=sys.stderr)
