"""Problems of a graph: where, what was given, what is allowed, what to do; and the error that carries all of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mpm_nodes.data import MpmNodesError

LONGEST_VALUE = 60
MOST_LINES = 99
"""Problems that the text of an error names; `problems` holds all."""


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
        return " ".join(f"{self.place}:{given} {self.message}{allowed}{f'; {self.cure}' if self.cure else ''}".split())

    def inside(self, outer: str) -> Problem:
        """Return the same problem with its place inside another one."""
        return Problem(f"{outer}.{self.place}" if self.place else outer, self.message, self.value, self.allowed, self.cure)


class GraphError(MpmNodesError):
    """A graph that cannot be cooked; `problems` lists everything that is wrong, `str()` gives one line each."""

    exit_code = 2

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems[:MOST_LINES]]
        if len(self.problems) > MOST_LINES:
            lines.append(f"and {len(self.problems) - MOST_LINES:,} more problems")
        super().__init__("\n".join(lines))


def _short(value: Any) -> str:
    try:
        text = json.dumps(value)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 4] + " ..."
