"""What is printed for people: whatever a file holds, it moves no cursor, sets no title and fills no screen."""

from __future__ import annotations

import unicodedata

__all__ = ["LONGEST_LINE", "MOST_LINES", "plain", "plain_lines"]

LONGEST_LINE, MOST_LINES = 2000, 100
_HARMFUL = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
"""Categories of characters that terminals act on, or that cannot be printed: controls, directions of writing, half characters."""


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
