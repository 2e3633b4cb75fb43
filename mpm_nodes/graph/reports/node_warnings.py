"""Catch what a node's code warns of (`warnings.warn`) in the thread that cooks it.

Python keeps filters and output of warnings for the whole process, so `warnings.catch_warnings` loses or mixes them where two
threads cook. Here one hook is put in while anybody cooks; it gives a warning to the thread that it was raised in, and to whoever
had the hook before where that thread cooks nothing. This is the one piece of state that the process has once, as Python has it.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterator
from typing import Any

__all__ = ["caught_warnings"]

_guard = threading.Lock()
_own = threading.local()
_cooking = 0
_before: Any = None
_added = False
_ALWAYS: Any = ("always", None, UserWarning, None, 0)


@contextlib.contextmanager
def caught_warnings() -> Iterator[list[str]]:
    """Give the list that the texts of this thread's `UserWarning`s go to until the end of the block."""
    caught: list[str] = []
    outer = getattr(_own, "caught", None)
    _enter()
    _own.caught = caught
    try:
        yield caught
    finally:
        _own.caught = outer
        _leave()


def _enter() -> None:
    global _cooking, _before, _added
    with _guard:
        _cooking += 1
        if _cooking == 1:
            _before = warnings.showwarning
            _added = _ALWAYS not in warnings.filters
            if _added:
                warnings.simplefilter("always", UserWarning)
            warnings.showwarning = _show


def _leave() -> None:
    global _cooking
    with _guard:
        _cooking -= 1
        if _cooking == 0:
            if warnings.showwarning is _show:
                warnings.showwarning = _before
            if _added and _ALWAYS in warnings.filters:
                warnings.filters.remove(_ALWAYS)  # type: ignore[attr-defined]
                warnings._filters_mutated()  # type: ignore[attr-defined]


def _show(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: str | None = None) -> None:
    caught = getattr(_own, "caught", None)
    if caught is not None and category is UserWarning:
        caught.append(str(message))
    else:
        _before(message, category, filename, lineno, file, line)
