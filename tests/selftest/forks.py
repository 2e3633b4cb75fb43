"""Work in a fork of this process that may die, hang or be limited, while what is slow to import is there already.

Only for processes that have no threads yet: of a selftest's own, which never run a kernel themselves.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mpm_nodes.orphans import end_with_parent

__all__ = ["Ending", "HangingFork", "begin", "finish", "in_fork"]

LONGEST = 60.0
"""Seconds after which a fork counts as hanging."""


class HangingFork(Exception):
    """A fork did not end by itself."""


@dataclass(frozen=True)
class Ending:
    """How a fork ended.

    Attributes:
        signal: Number of the signal that ended it, 0 for none.
        answer: What its work returned; None where a signal came first.
        error: What its work raised, None for nothing.
        seconds: Wall-clock time.
        peak: Most memory that it held [bytes].
    """

    signal: int
    answer: Any
    error: BaseException | None
    seconds: float
    peak: int


def begin(work: Callable[[], Any]) -> tuple[int, int, float]:
    """Start work in a fork; give what is returned to `finish`."""
    parent, start = os.getpid(), time.monotonic()
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading, start
    try:
        os.close(reading)
        end_with_parent(parent)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _answer(writing, work)
    finally:
        os._exit(0)


def _answer(writing: int, work: Callable[[], Any]) -> None:
    try:
        found: tuple[Any, BaseException | None] = (work(), None)
    except BaseException as error:
        found = (None, error)
    try:
        told = pickle.dumps(found)
    except Exception:  # what cannot be carried is told in words
        told = pickle.dumps((None, RuntimeError(f"{type(found[1]).__name__}: {found[1]}")))
    with open(writing, "wb") as stream:
        stream.write(told)


def finish(child: int, reading: int, start: float, longest: float = LONGEST) -> Ending:
    """Wait for a fork.

    Raises:
        HangingFork: It goes on after `longest` seconds; it was killed.
    """
    told = b""
    while True:
        ready, _, _ = select.select([reading], [], [], max(0.0, start + longest - time.monotonic()))
        piece = os.read(reading, 1 << 20) if ready else b""
        told += piece
        if not piece:
            break
    os.close(reading)
    if not ready:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    if not ready:
        raise HangingFork(f"goes on after {longest:g} s")
    # what a fork of ours wrote, read back by the process that made it
    answer, error = pickle.loads(told) if told else (None, None)
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return Ending(number, answer, error, time.monotonic() - start, usage.ru_maxrss * 1024)


def in_fork(work: Callable[[], Any], longest: float = LONGEST) -> Ending:
    """Do work in a fork and wait for it; see `finish`."""
    return finish(*begin(work), longest)
