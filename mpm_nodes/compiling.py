"""Which kernel this process compiles at this moment, and how many it has compiled, told to whoever waits for them.

A compiler is one long call: nobody can ask it how far it is. So the cache of kernels says where a kernel begins and ends, and a
thread tells it on.
"""

from __future__ import annotations

import _thread
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

__all__ = ["Compiling", "add", "begin", "end", "expect", "told"]

EVERY = 1.5
"""Seconds from one word to the next, and from the first kernel to the first word."""
FIRST_PACE = 10
"""Kernels after which their pace says how long the others take."""
LONGEST_NAME = 40

_changed = threading.Condition()
_held: list[str] = []
_done = 0
_total: int | None = None


@dataclass(frozen=True)
class Compiling:
    """What is told.

    Attributes:
        kernel: Kernel that is compiled now, here, or by another process for which this one waits.
        done: Kernels that were compiled since it was asked, by this process and those that help it.
        total: Kernels that there are to compile, as far as that is known and they were not more.
        seconds: Time since the first began [s].
        at_most: Whether the total is more than there may be.
    """

    kernel: str
    done: int
    total: int | None
    seconds: float
    at_most: bool = False

    @property
    def message(self) -> str:
        """One line for people."""
        which, left = f"kernel {self.done + 1}", ""
        if self.total is not None:
            which = f"{self.done + 1} of {'at most' if self.at_most else 'about'} {self.total} kernels"
        if self.total is not None and not self.at_most and self.done >= FIRST_PACE:
            left = f", some {self.seconds * (self.total - self.done) / self.done:.0f} s left"
        return f"compiling {which} ({self.seconds:.0f} s{left}): {self.kernel}"


def begin(kernel: str) -> None:
    """Say that a kernel begins to be compiled; within one that compiles what it calls, too."""
    with _changed:
        _held.append(kernel if len(kernel) <= LONGEST_NAME else f"{kernel[: LONGEST_NAME - 3]}...")
        _changed.notify_all()


def end(count: int = 1) -> None:
    """Say that what began last is over, with so many kernels compiled: none where another process did it."""
    with _changed:
        _held.pop()
    add(count)


def add(count: int) -> None:
    """Count kernels that were compiled, here or by a process that helps."""
    global _done
    with _changed:
        _done += count


def expect(count: int | None) -> None:
    """Say how many kernels are left to compile; None: nobody knows."""
    global _total
    with _changed:
        _total = None if count is None else _done + count


@contextlib.contextmanager
def told(say: Callable[[Compiling], None], every: float | None = None) -> Iterator[Callable[[], int]]:
    """Call `say` every `every` seconds (`EVERY`) of the block in which a kernel is compiled, from a thread of its own.

    Returns:
        What gives the number of kernels that were compiled since then.
    """
    before, over, guard = _done, threading.Event(), threading.Lock()
    pause = EVERY if every is None else every

    def now(began: float) -> Compiling | None:
        with _changed:
            left = None if _total is None or _done >= _total else _total - before
            return Compiling(_held[-1], _done - before, left, time.monotonic() - began) if _held else None

    def tell() -> None:
        began = last = 0.0
        while not over.is_set():
            with _changed:
                _changed.wait_for(lambda: over.is_set() or _held)
            began = began or time.monotonic()
            last = last or began
            if not over.wait(max(0.0, last + pause - time.monotonic())) and (found := now(began)) is not None:
                last = time.monotonic()
                with guard:
                    if not over.is_set():
                        say(found)

    def run() -> None:
        with contextlib.suppress(Exception):  # whoever is told has gone, or there is no memory: what is compiled needs nobody
            tell()

    with contextlib.suppress(RuntimeError, MemoryError):  # no more threads
        _thread.start_new_thread(run, ())
    try:
        yield lambda: _done - before
    finally:
        with guard:
            over.set()
        with _changed:
            _changed.notify_all()
