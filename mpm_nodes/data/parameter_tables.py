"""Tables of a number over the temperature, or another attribute of particles: what a material's parameters may follow."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from mpm_nodes.data.errors import MpmNodesError

__all__ = ["MOST_ROWS", "TEMPERATURE", "ParameterTable", "Rows", "table_problem", "value_at"]

TEMPERATURE = "temperature"
"""Attribute that tables stand over where nothing else is said."""

Rows = tuple[tuple[float, float], ...]
"""(temperature [K] or other attribute, value) by increasing attribute."""
MOST_ROWS = 64
"""Rows of one table at most."""


@dataclass(frozen=True)
class ParameterTable:
    """A number over an attribute of particles: straight from row to row, constant before the first and behind the last.

    Attributes:
        solid: Its rows while the matter is solid.
        liquid: Its rows while it is liquid; empty: those of the solid. Tables over the temperature alone have them.
        over: The attribute.

    Raises:
        MpmNodesError: Rows do not make a table.
    """

    solid: Rows
    liquid: Rows = ()
    over: str = TEMPERATURE

    def __post_init__(self) -> None:
        for name in ("solid", "liquid") if self.liquid else ("solid",):
            rows = tuple((float(row[0]), float(row[1])) for row in getattr(self, name))
            problem = table_problem(rows, "K" if self.over == TEMPERATURE else "")
            if problem:
                raise MpmNodesError(f"table over {self.attribute}: {problem[0]}; {problem[1]}")
            object.__setattr__(self, name, rows)

    @property
    def attribute(self) -> str:
        """What messages call the attribute."""
        return "the temperature" if self.over == TEMPERATURE else f"'{self.over}'"

    def rows_of(self, phase: int) -> Rows:
        """Return the rows of a phase: 0 solid, 1 liquid."""
        return self.liquid if phase and self.liquid else self.solid

    def to_json(self) -> dict[str, Any]:
        """Return the rows as plain JSON values."""
        rows = {name: [list(row) for row in getattr(self, name)] for name in ("solid", "liquid")}
        return rows if self.over == TEMPERATURE else {**rows, "over": self.over}  # as they were before there were others

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> ParameterTable:
        """Return what `to_json` described."""
        rows = {name: tuple(map(tuple, facts[name])) for name in ("solid", "liquid") if name in facts}
        return cls(**rows, over=facts.get("over", TEMPERATURE))


def value_at(rows: Rows, place: float) -> float:
    """Return the value at a temperature [K] or other attribute."""
    after = bisect_right([row[0] for row in rows], place)
    if after == 0 or after == len(rows):
        return rows[min(after, len(rows) - 1)][1]
    (low, a), (high, b) = rows[after - 1], rows[after]
    return (a * (high - place) + b * (place - low)) / (high - low)


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
