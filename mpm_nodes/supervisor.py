"""Run a command in a child that can be ended at any moment, so that a stop is honoured within two seconds.

A Python program learns of a signal only between two of its own instructions: while a library reads a mesh of millions of faces or
compiles a kernel, nothing in the program can act. So what the user starts only waits. It passes a stop on, gives the child
`PATIENCE` seconds to end its substep, then ends it hard: frames are transactions, whole ones stay and a half one leaves nothing
that counts. A child that a library or the system ends is reported in words.

Where processes have no groups (Windows) commands run without it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from mpm_nodes import children, search_path

__all__ = ["supervise", "wanted"]

PATIENCE = 1.0
"""Seconds from a stop until the child is ended hard: on a busy machine, gone in under two."""
CANCELLED, DEFECT, LIMITED = 3, 1, 5
COMMANDS = ("validate", "cook", "demo", "sample", "render", "check", "verify", "bench")
READERS = ("validate", "check")
"""Commands that only read: what crashes a library in them is a file."""
WARNINGS = tuple(getattr(signal, name) for name in ("SIGUSR1", "SIGUSR2") if hasattr(signal, name))
"""What schedulers of clusters send before a job's time is up."""
STOPS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)) + WARNINGS


def wanted(args: argparse.Namespace) -> bool:
    """Return whether a parsed command is run in a child: commands that take long, started as a program and not to be debugged."""
    return search_path.PROGRAM and os.name == "posix" and args.command in COMMANDS and not args.debug


def supervise(argv: Sequence[str], args: argparse.Namespace) -> int:
    """Run the command line `argv`, whose parsed form is `args`, in a child; return its exit code."""
    watch = _SignalWatch()
    with watch.signals():
        child = watch.child = children.start("mpm_nodes.cli:work", argv, stdin=subprocess.PIPE, process_group=0)
        code = child.wait()
    if watch.ended or (watch.asked and code < 0):
        _say_stopped(args)
        return CANCELLED
    if code < 0:
        return _say_killed(args.command, -code)
    meant = children.meant(code)
    if meant is None:
        text = f"error: {args.command}: a node, a stage or a library ended the program with exit code {code}"
        print(f"mpm-nodes: {text}; look for os._exit in node files, and raise an exception instead", file=sys.stderr)
        return DEFECT
    return meant


def leave_signals_to_parent() -> None:
    """Let signals that a scheduler sends to a whole job count once: where the supervisor gets them."""
    for number in WARNINGS:
        signal.signal(number, signal.SIG_IGN)


class _SignalWatch:
    """What signals do to the child."""

    def __init__(self) -> None:
        self.child: subprocess.Popen | None = None
        self.asked = self.ended = False

    @contextlib.contextmanager
    def signals(self) -> Iterator[None]:
        """Handle signals inside the block; a parent's choice to ignore one (nohup) is kept."""
        handlers = {**dict.fromkeys(STOPS, self.stop), signal.SIGALRM: self.end, signal.SIGTSTP: self.pause}
        before = {number: signal.getsignal(number) for number in handlers}
        for number, handler in handlers.items():
            if before[number] is not signal.SIG_IGN:
                signal.signal(number, handler)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            for number, handler in before.items():
                signal.signal(number, handler)

    def stop(self, number: int, frame: Any) -> None:
        """Pass the first stop on and set the clock; the second ends the child at once."""
        if self.child is None:
            raise KeyboardInterrupt
        if self.asked:
            self.end()
            return
        self.asked = True
        self._signal(signal.SIGTERM)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)

    def end(self, number: int = 0, frame: Any = None) -> None:
        """End the child and all that it has started."""
        if self.child is not None and self.child.returncode is None:
            self.ended = True
            self._signal(signal.SIGKILL, group=True)

    def pause(self, number: int, frame: Any) -> None:
        """Stop the child with its children when the terminal stops us, and go on with us."""
        self._signal(signal.SIGSTOP, group=True)
        os.kill(os.getpid(), signal.SIGSTOP)
        self._signal(signal.SIGCONT, group=True)

    def _signal(self, number: int, group: bool = False) -> None:
        if self.child is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.child.pid, number) if group else self.child.send_signal(number)


def _say_stopped(args: argparse.Namespace) -> None:
    kept = "whole frames are kept, continue with --resume" if hasattr(args, "resume") else "nothing half written counts"
    if getattr(args, "events", "") == "jsonl":
        with contextlib.suppress(OSError):
            print("\n" + json.dumps({"event": "cancelled", "time": time.time(), "message": f"stopped; {kept}"}), flush=True)
    print(f"mpm-nodes: stopped in the middle of its work; {kept}", file=sys.stderr)


def _say_killed(command: str, number: int) -> int:
    """Say that a signal ended the child; return the exit code for it."""
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    if name == "SIGXCPU" or (number == signal.SIGKILL and _out_of_time()):
        text = f"error: {command}: its processor time is used up ({name}; ulimit -t, or the limit of a scheduler); allow more"
        print(f"mpm-nodes: {text}, then continue with --resume", file=sys.stderr)
        return LIMITED
    if number == signal.SIGKILL:
        text = f"error: {command}: was ended by the system ({name}), most often because memory ran out; raise settings.cell_size"
        print(f"mpm-nodes: {text}, or allow more memory, then continue with --resume", file=sys.stderr)
        return LIMITED
    if command in READERS:
        text = f"error: {command}: a library crashed ({name}) on a file that it read; export that file again"
        print(f"mpm-nodes: {text}", file=sys.stderr)
        return LIMITED
    text = f"defect: {command}: a library crashed ({name}); whole frames are kept, continue with --resume"
    print(f"mpm-nodes: {text}, and report it with the input files", file=sys.stderr)
    return DEFECT


def _out_of_time() -> bool:
    """Whether the children of this process have used up what the system lets a process have of the processor."""
    import resource

    limit, used = resource.getrlimit(resource.RLIMIT_CPU)[1], resource.getrusage(resource.RUSAGE_CHILDREN)
    return limit != resource.RLIM_INFINITY and used.ru_utime + used.ru_stime > limit - 0.5
