"""Problems of a graph: where, what was given, what is allowed, what to do; and the error that carries all of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mpm_nodes.data import MpmNodesError

LONGEST_VALUE, LONGEST_LINE = 60, 2000
MOST_LINES, MOST_KEPT = 99, 10_000
"""Problems that the text of an error names, and problems that are kept at all: those after them are counted."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a graph.

    Attributes:
        place: Node, port or knob: "sim.gravity".
        message: What is wrong.
        value: What was given.
        allowed: What is allowed, or "".
        cure: What to do.
    """

    place: str
    message: str
    value: Any = None
    allowed: str = ""
    cure: str = ""

    def __str__(self) -> str:
        given = "" if self.value is None else f" {_short(self.value)}"
        allowed = f"; allowed: {self.allowed}" if self.allowed else ""
        cure = f"; {self.cure}" if self.cure else ""
        return " ".join(_cut(f"{_cut(self.place)}:{given} {_cut(self.message)}{allowed}{cure}").split())

    def inside(self, outer: str) -> Problem:
        """Return the same problem with its place inside another one."""
        return Problem(f"{outer}.{self.place}" if self.place else outer, self.message, self.value, self.allowed, self.cure)


class Problems(list[Problem]):
    """The first `MOST_KEPT` problems that are found; a file may hold half a million mistakes.

    Attributes:
        more: How many were found after those.
    """

    def __init__(self, problems: Iterable[Problem] = ()) -> None:
        super().__init__()
        self.more = 0
        self.extend(problems)

    def append(self, problem: Problem) -> None:
        """Keep or count a problem."""
        if len(self) < MOST_KEPT:
            super().append(problem)
        else:
            self.more += 1

    def extend(self, problems: Iterable[Problem]) -> None:
        """Keep or count problems, and those that another collection has counted."""
        for problem in problems:
            self.append(problem)
        self.more += getattr(problems, "more", 0)

    def add(self, place: str, message: str, value: Any = None, allowed: str = "", cure: str | Callable[[], str] = "") -> None:
        """Keep or count a problem; what is counted only is not made, nor its cure looked for."""
        if len(self) < MOST_KEPT:
            super().append(Problem(place, message, value, allowed, cure if isinstance(cure, str) else cure()))
        else:
            self.more += 1

    def extend_inside(self, outer: str, problems: Sequence[Problem]) -> None:
        """Keep or count problems whose places lie inside another one."""
        room = max(0, MOST_KEPT - len(self))
        super().extend(problem.inside(outer) for problem in problems[:room])
        self.more += max(0, len(problems) - room) + getattr(problems, "more", 0)


class GraphError(MpmNodesError):
    """A graph that cannot be cooked; `problems` lists what is wrong (see `Problems`), `str()` gives one line each.

    Attributes:
        problems: The problems.
        more: How many were found besides those.
    """

    exit_code = 2

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems, self.more = tuple(problems), int(getattr(problems, "more", 0))
        lines = [str(problem) for problem in self.problems[:MOST_LINES]]
        left = len(self.problems) - len(lines) + self.more
        if left:
            lines.append(f"and {left:,} more problems")
        super().__init__("\n".join(lines))


def _short(value: Any) -> str:
    """Return a value as JSON, no more of it written than is shown."""
    text = ""
    try:
        for piece in json.JSONEncoder().iterencode(value):
            text += piece
            if len(text) > LONGEST_VALUE:
                break
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 4] + " ..."


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_LINE else f"{text[: LONGEST_LINE // 2]} ... {text[-LONGEST_LINE // 4 :]}"
