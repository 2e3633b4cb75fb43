"""One thread that does work beside its owner, who never waits in vain: what the thread has not begun, the owner does itself.

A pool of `concurrent.futures` waits for ever where memory runs out just as its thread begins: the thread is gone, and nobody tells.
"""

from __future__ import annotations

import _thread
import collections
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Background", "Task"]

T = TypeVar("T")


class Task(Generic[T]):
    """Work that is done once, by whoever takes it first."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._taken, self._done = threading.Lock(), threading.Lock()
        self._done.acquire()
        self._found: list[T] = []
        self._error: BaseException | None = None

    def settle(self) -> None:
        """Do the work, or wait for its end where somebody has taken it."""
        if not self._taken.acquire(blocking=False):
            with self._done:
                return
        try:
            self._found.append(self._work())
        except BaseException as error:
            self._error = error
        finally:
            self._done.release()

    def result(self) -> T:
        """Return what the work returned, or raise what it raised."""
        self.settle()
        if self._error is not None:
            raise self._error
        return self._found[0]

    def cancel(self) -> None:
        """Have it not done where nobody has begun; else wait for its end."""
        if not self._taken.acquire(blocking=False):
            with self._done:
                pass


class Background:
    """The thread; it lives while there is work. Tasks are begun in the order in which they were given."""

    def __init__(self) -> None:
        self._tasks: collections.deque[Task] = collections.deque()
        self._given: list[Task] = []
        self._guard, self._runs = threading.Lock(), False

    def start(self, work: Callable[[], T]) -> Task[T]:
        """Have work begun as soon as what was given before is done."""
        task = Task(work)
        self._given.append(task)
        with self._guard:
            self._tasks.append(task)
            begin, self._runs = not self._runs, True
        if begin:
            try:
                _thread.start_new_thread(self._run, ())
            except (RuntimeError, MemoryError):  # no more threads: the owner does it
                self._runs = False
        return task

    def _run(self) -> None:
        while True:
            with self._guard:
                if not self._tasks:
                    self._runs = False
                    return
                task = self._tasks.popleft()
            task.settle()

    def settle(self) -> None:
        """See to it that all is done that was given, in its order."""
        for task in self._given:
            task.settle()

    def rest(self) -> None:
        """Let nothing begin any more, and wait for what has begun."""
        for task in self._given:
            task.cancel()
        self._given.clear()
