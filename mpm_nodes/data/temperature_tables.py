"""Tables of a number over the temperature: what a material's parameters may follow."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from mpm_nodes.data.errors import MpmNodesError

__all__ = ["MOST_ROWS", "Rows", "TemperatureTable", "table_problem", "value_at"]

Rows = tuple[tuple[float, float], ...]
"""(temperature [K], value) by increasing temperature."""
MOST_ROWS = 64
"""Rows of one table at most."""


@dataclass(frozen=True)
class TemperatureTable:
    """A number over the temperature: straight from row to row, constant before the first and behind the last.

    Attributes:
        solid: Its rows while the matter is solid.
        liquid: Its rows while it is liquid; empty: those of the solid.

    Raises:
        MpmNodesError: Rows do not make a table.
    """

    solid: Rows
    liquid: Rows = ()

    def __post_init__(self) -> None:
        for name in ("solid", "liquid") if self.liquid else ("solid",):
            rows = tuple((float(row[0]), float(row[1])) for row in getattr(self, name))
            problem = table_problem(rows)
            if problem:
                raise MpmNodesError(f"table over the temperature: {problem[0]}; {problem[1]}")
            object.__setattr__(self, name, rows)

    def rows_of(self, phase: int) -> Rows:
        """Return the rows of a phase: 0 solid, 1 liquid."""
        return self.liquid if phase and self.liquid else self.solid

    def to_json(self) -> dict[str, Any]:
        """Return the rows as plain JSON values."""
        return {"solid": [list(row) for row in self.solid], "liquid": [list(row) for row in self.liquid]}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> TemperatureTable:
        """Return what `to_json` described."""
        return cls(**{name: tuple(map(tuple, rows)) for name, rows in facts.items()})


def value_at(rows: Rows, temperature: float) -> float:
    """Return the value at a temperature [K]."""
    after = bisect_right([row[0] for row in rows], temperature)
    if after == 0 or after == len(rows):
        return rows[min(after, len(rows) - 1)][1]
    (low, a), (high, b) = rows[after - 1], rows[after]
    return (a * (high - temperature) + b * (temperature - low)) / (high - low)


def table_problem(rows: Sequence[Sequence[float]], unit: str = "K") -> tuple[str, str] | None:
    """Return what is wrong with rows of two numbers, and what to do; None where nothing is.

    Args:
        rows: (place, value) each.
        unit: Symbol of the unit of the places; "K" means temperatures, which are not negative.
    """
    place, told = ("temperature", " K") if unit == "K" else ("place", f" {unit}" if unit else "")
    if not rows:
        return "has no rows", f"give [{place}, value] at least once"
    if len(rows) > MOST_ROWS:
        return f"has {len(rows)} rows", f"give {MOST_ROWS} at most"
    for number, (at, value) in enumerate(rows, 1):
        if not (math.isfinite(at) and math.isfinite(value)):
            return f"row {number} is not finite", "give two finite numbers"
        if unit == "K" and at < 0.0:
            return f"row {number} stands at {at:g} K", "give temperatures in kelvin, from 0 on"
    for number, ((before, _), (at, _)) in enumerate(pairwise(rows), 2):
        if at <= before:
            return (
                f"row {number} at {at:g}{told} does not follow {before:g}{told}",
                f"write the rows in order of {place}, each {place} once",
            )
    return None
