"""Cook on several ranks: start them, or be one of them."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mpm_nodes import launched
from mpm_nodes.children import launch
from mpm_nodes.data import Cancelled, InputError, MpmNodesError, OutputError
from mpm_nodes.terminal import plain_lines

__all__ = ["in_shell", "resume_command", "run"]

OURS = range(6)
"""Exit codes of commands; a launcher has others where a process was ended from outside."""
PATIENCE = 2.0
"""Seconds that a rank waits with what it has to say, so that rank 0 says first what all have met."""


def run(args: argparse.Namespace, cook: Callable[[argparse.Namespace], int]) -> int:
    """Cook as `--ranks` asks for: here, on ranks that are started, or as one of them.

    Raises:
        MpmNodesError: Ranks are asked for and cannot be had, or a launcher started several cooks that know nothing of each other.
    """
    args.team = None
    together = launched.ranks()
    if args.ranks is None:
        if together > 1:
            raise InputError(f"a launcher started this cook {together} times; add --ranks {together}, or start it once")
        return cook(args)
    if args.part == "frames" or args.checked:
        what = "--part frames has no solve to share" if args.part == "frames" else "--checked looks at one process"
        raise InputError(f"{what}; leave --ranks out")
    return _be_one(args, cook) if together else _start(args)


def resume_command(args: argparse.Namespace, out: Path) -> str:
    """Return the command that goes on with a cook where it stopped."""
    words = ["mpm-nodes", "cook", args.graph, "--out", out]
    words += [] if args.to is None else ["--to", args.to]
    words += [] if args.part == "all" else ["--part", args.part]
    words += [] if args.solved is None else ["--solved", args.solved]
    words += [] if args.ranks is None else ["--ranks", args.ranks]
    words += ["--resume"]
    words += ["--of", args.of] if args.resume and args.of else []  # cooking again from a frame makes the newest revision
    words += [] if args.frames is None else [f"--frames={args.frames[0]}-{args.frames[1]}"]
    return shlex.join(map(str, words)) + in_shell(args.overrides)


def in_shell(overrides: Sequence[str]) -> str:
    """Return the overrides of a command as a shell takes them, brackets and blanks among them."""
    return "".join(f" --set {shlex.quote(text)}" for text in overrides)


# ---------------------------------------------------------------- one of the ranks
def _be_one(args: argparse.Namespace, cook: Callable[[argparse.Namespace], int]) -> int:
    from mpm_nodes.solver.ranks.team import join_team

    args.team = team = join_team()
    try:
        if team.size != args.ranks:
            raise InputError(f"--ranks {args.ranks} was given to {team.size} processes; start as many as you say")
        if team.rank:
            args.events = "none"
        return cook(args)
    except BaseException as error:
        _end_all(team, error, args.debug)
        raise


def _end_all(team: Any, error: BaseException, debug: bool) -> None:
    """Say why this rank ends, and end the others, which would wait for it without end."""
    if team.rank:
        time.sleep(PATIENCE)
    if debug:
        traceback.print_exception(error, file=sys.stderr)
    ours = isinstance(error, MpmNodesError)
    kind = "" if isinstance(error, Cancelled) else "error: " if ours else f"defect: {type(error).__name__}: "
    if not (team.rank and isinstance(error, Cancelled)):
        for line in plain_lines(str(error)):
            print(f"mpm-nodes: {f'rank {team.rank}: ' if team.rank else ''}{kind}{line}", file=sys.stderr)
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    team.abort(error.exit_code if isinstance(error, MpmNodesError) else 1)


# ---------------------------------------------------------------- starting them
def _start(args: argparse.Namespace) -> int:
    """Start the ranks on this machine and wait for them."""
    launcher = _launcher()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    environment = {"NUMBA_NUM_THREADS": str(max(1, cores // args.ranks)), **os.environ}
    child = launch([launcher, "-n", str(args.ranks)], args.argv, env=environment)
    stopped: list[int] = []

    def stop(number: int, frame: Any) -> None:
        stopped.append(number)
        child.terminate()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        code = child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    out = args.out or Path("out") / args.graph.stem
    again = resume_command(args, out)
    if stopped:
        raise Cancelled(f"stopped; whole frames are kept. Continue with: {again}")
    if code not in OURS:
        raise OutputError(
            f"one of the {args.ranks} ranks was ended from outside, most often because its memory ran out, and the others with it; "
            f"whole frames are kept in {out}. Continue, on as many ranks as you like, with: {again}"
        )
    return code


def _launcher() -> str:
    """Return the path of mpiexec: the one beside this Python, or that of the system."""
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.is_file() else shutil.which("mpiexec")
    if found is None:
        raise MpmNodesError("ranks: there is no mpiexec; pip install 'mpm-nodes[mpi]' mpich, or install the MPI of your system")
    return found
