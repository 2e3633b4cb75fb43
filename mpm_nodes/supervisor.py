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
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from mpm_nodes import children, reads, search_path

__all__ = ["LIMITED", "Waited", "crashed_in", "stuck_in", "supervise", "wanted"]

PATIENCE = 1.0
"""Seconds from a stop until the child is ended hard: on a busy machine, gone in under two."""
TASKS = 1.0
"""Seconds more for a command that has to end tasks of its own."""
LOOK = 1.0
"""Seconds from one look at what the child reads to the next."""
LONGEST_READ = 1800.0
"""Seconds in which a library comes back from whatever it reads. What can be bounded by counts never gets so far."""
CANCELLED, DEFECT, LIMITED = 3, 1, 5
COMMANDS = (
    "validate", "cook", "demo", "sample", "render", "plot", "view", "export", "forces", "check", "verify", "bench", "farm", "join",
)  # fmt: skip
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
    watch = _SignalWatch(PATIENCE + TASKS * (args.command == "farm"))
    mark = reads.new_mark()
    begin = [str(mark), *argv]
    with watch.signals():
        child = watch.child = children.start("mpm_nodes.cli:work", begin, stdin=subprocess.PIPE, process_group=0, pass_fds=[mark])
        with _limited(mark, watch) as stuck, child:  # which closes its pipe, whose end would end it
            code = child.wait()
    name = reads.now_read(mark)[1]
    os.close(mark)
    if stuck:
        return _say_stuck(args, stuck[0])
    if watch.ended or (watch.asked and code < 0):
        _say_stopped(args)
        return CANCELLED
    if code < 0:
        return _say_killed(args, -code, name)
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


@contextlib.contextmanager
def _limited(mark: int, watch: _SignalWatch) -> Iterator[list[str]]:
    """End the child when it reads one thing for longer than `LONGEST_READ`; what it read is in the list then."""
    over, stuck = threading.Event(), list[str]()

    def look() -> None:
        waited = Waited()
        while not over.wait(LOOK):
            now = reads.now_read(mark)
            if waited.too_long(now):
                stuck.append(now[1])
                watch.end()
                return

    watcher = threading.Thread(target=look, name="reads", daemon=True)
    watcher.start()
    try:
        yield stuck
    finally:
        over.set()
        watcher.join()


class Waited:
    """How long one reading takes, in looks and not by a clock: while a terminal stops both processes none go by."""

    def __init__(self) -> None:
        self.last, self.looks = (0, ""), 0

    def too_long(self, now: tuple[int, str]) -> bool:
        """Take a look, at what `reads.now_read` returns; return whether it is the same reading for too long."""
        self.looks = self.looks + 1 if now == self.last and now[1] else 0
        self.last = now
        return self.looks * LOOK >= LONGEST_READ


class _SignalWatch:
    """What signals do to the child, which gets `patience` seconds to stop."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self.patience = patience
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
        signal.setitimer(signal.ITIMER_REAL, self.patience)

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


def stuck_in(name: str) -> str:
    """Return what is said of something that cannot be read to its end, with the cure."""
    return f"{name}: it did not end within {LONGEST_READ / 60.0:g} minutes to read this; export it again"


def crashed_in(name: str, signal_name: str) -> str:
    """Return what is said of something that a library crashes in, with the cure."""
    return f"{name}: a library crashed ({signal_name}) while it read this, which is damaged or nested too deeply; export it again"


def _say_stuck(args: argparse.Namespace, name: str) -> int:
    text = f"error: {args.command}: {stuck_in(name)}"
    print(f"mpm-nodes: {text}, smaller or onto a disk that answers{_goes_on(args)}", file=sys.stderr)
    return LIMITED


def _say_killed(args: argparse.Namespace, number: int, name: str = "") -> int:
    """Say that a signal ended the child while it read `name`, "" for nothing; return the exit code for it."""
    signal_name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    begin, while_reading = f"error: {args.command}:", f" while it read {name}" if name else ""
    code = LIMITED
    if signal_name == "SIGXCPU" or (number == signal.SIGKILL and _out_of_time()):
        text = f"{begin} its processor time is used up ({signal_name}; ulimit -t, or the limit of a scheduler){while_reading}; "
        text += "allow more"
    elif number == signal.SIGKILL:
        text = f"{begin} was ended by the system ({signal_name}){while_reading}, most often because memory ran out; "
        text += "export that file smaller" if name else "raise settings.cell_size"
        text += ", or allow more memory"
    elif name:
        text = f"{begin} {crashed_in(name, signal_name)}"
    elif args.command in READERS:
        text = f"{begin} a library crashed ({signal_name}) on a file that it read; export that file again"
    else:
        text = f"defect: {args.command}: a library crashed ({signal_name}); report it with the input files"
        code = DEFECT
    print(f"mpm-nodes: {text}{_goes_on(args)}", file=sys.stderr)
    return code


def _goes_on(args: argparse.Namespace) -> str:
    return ". Whole frames are kept, continue with --resume" if hasattr(args, "resume") else ""


def _out_of_time() -> bool:
    """Whether the children of this process have used up what the system lets a process have of the processor."""
    import resource

    limit, used = resource.getrlimit(resource.RLIMIT_CPU)[1], resource.getrusage(resource.RUSAGE_CHILDREN)
    return limit != resource.RLIM_INFINITY and used.ru_utime + used.ru_stime > limit - 0.5
