"""What to do about a name that is unknown: the nearest known ones, or where all are listed."""

from __future__ import annotations

import bisect
import contextlib
import contextvars
import difflib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

__all__ = ["few_suggestions", "nearest"]

MOST_SUGGESTIONS, MOST_COMPARED, LONGEST_COMPARED, MOST_LISTED = 100, 150, 100, 12
"""Names that are suggested for within `few_suggestions`, since comparing takes time and few are read; names compared for each, and
letters of those; names that are listed where none is near."""
_left: contextvars.ContextVar[list[int] | None] = contextvars.ContextVar("suggestions left", default=None)


@contextlib.contextmanager
def few_suggestions() -> Iterator[None]:
    """Suggest names for the first `MOST_SUGGESTIONS` mistakes inside the block only."""
    token = _left.set([MOST_SUGGESTIONS])
    try:
        yield
    finally:
        _left.reset(token)


def nearest(name: Any, known: Iterable[str] | Callable[[], Iterable[str]], listing: str = "") -> str:
    """Return a cure for an unknown name: the nearest known ones, or where all are listed, or as many as a line holds.

    Args:
        name: What was given.
        known: What there is; a function is called for it only when needed.
        listing: Command that lists all of them, for where they are too many.
    """
    left = _left.get()
    if left is not None:
        if not left[0]:
            return "give a name that is known"
        left[0] -= 1
    names, text = sorted(known() if callable(known) else known), str(name)
    place = bisect.bisect(names, text)
    # of many names, those that begin like it
    first = max(0, min(place - MOST_COMPARED // 2, len(names) - MOST_COMPARED))
    compared = [each for each in names[first : first + MOST_COMPARED] if len(each) <= LONGEST_COMPARED]
    longer = [each for each in compared if len(text) > 2 and each.startswith(text)]
    near = list(dict.fromkeys([*longer, *difflib.get_close_matches(text[:LONGEST_COMPARED], compared, n=3, cutoff=0.5)]))[:3]
    all_of_them = f"`{listing}` lists all {len(names)}" if listing and len(names) > MOST_LISTED else ""
    if near or all_of_them:
        return " ".join([*([f"did you mean {' or '.join(near)}?"] if near else []), *([all_of_them] if all_of_them else [])])
    shown = [each if len(each) <= LONGEST_COMPARED else each[:LONGEST_COMPARED] + "..." for each in names[:MOST_LISTED]]
    more = f" and {len(names) - MOST_LISTED:,} more" if len(names) > MOST_LISTED else ""
    return f"known are {', '.join(shown)}{more}" if names else "there is none to choose"
