"""What is printed for people: whatever a file holds, it moves no cursor, sets no title and fills no screen."""

from __future__ import annotations

import contextlib
import os
import sys
import unicodedata
from collections.abc import Iterator
from typing import Any

__all__ = ["LONGEST_LINE", "MOST_LINES", "open_closed_streams", "plain", "plain_lines", "stream_of_results"]

LONGEST_LINE, MOST_LINES = 2000, 100
_HARMFUL = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
"""Categories of characters that terminals act on, or that cannot be printed: controls, directions of writing, half characters."""


def open_closed_streams() -> None:
    """Open standard streams that whoever started this process has closed (`>&-`), for nobody.

    What is printed would be an error else, and the next file that is opened would get the number of the stream: libraries would
    write their complaints into it.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # takes the lowest number that is free: this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", errors="backslashreplace", closefd=False))


@contextlib.contextmanager
def stream_of_results(alone: bool) -> Iterator[Any]:
    """Give the stream for what programs read, events or JSON: stdout, which nothing else writes to where it stands alone.

    What nodes and libraries print, whether by Python or by themselves, goes to stderr then.
    """
    try:
        handle = sys.stdout.fileno() if alone else -1
    except (OSError, ValueError):  # a stdout that only Python knows
        handle = -1
    if handle < 0:
        yield sys.stdout
        return
    sys.stdout.flush()
    kept = os.dup(handle)
    os.dup2(sys.stderr.fileno(), handle)
    try:
        with open(os.dup(kept), "w", encoding="utf-8") as stream:
            yield stream
    finally:
        import ctypes  # late: most commands print for people

        sys.stdout.flush()
        with contextlib.suppress(OSError, AttributeError, TypeError):  # what C code has printed and its library still holds
            ctypes.CDLL(None).fflush(None)
        os.dup2(kept, handle)
        os.close(kept)


def plain(text: str, longest: int = LONGEST_LINE) -> str:
    """Return one line with harmful characters as escapes, and the middle of a long one left out."""
    if len(text) > longest:
        text = f"{text[: longest // 2]} ... {text[-longest // 4 :]}"
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if unicodedata.category(c) not in _HARMFUL else c.encode("unicode_escape").decode("ascii") for c in text)


def plain_lines(text: str, most: int = MOST_LINES) -> list[str]:
    """Return the lines of a text as `plain` gives them, at most `most` and one that counts the others."""
    lines = text.splitlines()
    shown = [plain(line) for line in lines[:most]]
    return shown if len(lines) <= most else [*shown, f"and {len(lines) - most:,} more lines like these"]
