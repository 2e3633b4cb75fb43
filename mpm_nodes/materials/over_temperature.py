"""Materials whose parameters follow the temperature: their checks, and the tables of coefficients that kernels interpolate.

A law's coefficients are functions of its parameters: Lame's of E and nu, for one. Where a parameter runs straight from one row to
the next, they need not. So each material is brought to rows of coefficients that run straight themselves: at the rows of all its
tables, and at as many temperatures between them as keep every coefficient within `ERROR` of what the parameters there give.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import numpy as np

from mpm_nodes.data import Material
from mpm_nodes.data.temperature_tables import value_at
from mpm_nodes.kernels.composition.tables import HEAD, row_length
from mpm_nodes.materials.contract import Law, LawError, law, law_of

__all__ = ["ERROR", "TabledNumbers", "at_temperature", "can_follow", "every_row", "tabled_law", "without"]

ERROR = 1e-3
"""Largest relative error of an interpolated coefficient between the rows of a material's tables."""
MOST = 256
"""Rows of coefficients at most."""
_INSIDE = (0.25, 0.5, 0.75)
"""Where an interval's error is looked for."""


def at_temperature(material: Material, temperature: float, phase: int = 0) -> Material:
    """Return a material with the numbers that it has at a temperature [K] and in a phase, without tables."""
    values = {name: value_at(table.rows_of(phase), temperature) for name, table in material.tables.items()}
    viscosity = values.pop("viscosity", material.viscosity) if _own_viscosity(material) else material.viscosity
    return dataclasses.replace(material, params={**material.params, **values}, viscosity=viscosity, tables={})


def every_row(material: Material) -> Iterator[Material]:
    """Yield a material as it is at each row of its tables; itself where it has none."""
    if not material.tables:
        yield material
    for phase in _phases(material):
        for temperature in _breaks(material, phase):
            yield at_temperature(material, temperature, phase)


def tabled_law(material: Material) -> Law:
    """Return the law of a material, with the coefficients named that follow its temperature.

    Raises:
        LawError: The law is unknown, a parameter is not one that can follow, or a row is out of range.
    """
    found, where = law(material.law), f"material {material.label or material.law}"
    if not material.tables:
        return found
    for name, table in material.tables.items():
        if not (name in _numbers(found) or (name == "viscosity" and _own_viscosity(material))):
            raise LawError(f"{where}: '{name}' cannot follow the temperature; choose one of {', '.join(can_follow(found))}")
        melts = material.thermal is not None and material.thermal.melt is not None
        if melts and table.liquid:
            raise LawError(
                f"{where}: {name} has a table of the liquid, which is another material here; give that one a table instead"
            )
    rows = [law_of(each)[1] for each in _told_rows(material, where)]
    follows = [n for n in range(len(found.names)) if len({row[n] for row in rows}) > 1]
    if "viscosity" in material.tables and _own_viscosity(material):
        follows.append(len(found.names))
    by_phase = any(table.liquid for table in material.tables.values())
    return dataclasses.replace(found, follows=tuple(follows), by_phase=by_phase and bool(follows))


def can_follow(found: Law) -> tuple[str, ...]:
    """Return the names of the numbers of a law's materials that can follow the temperature."""
    return tuple(dict.fromkeys((*_numbers(found), "viscosity")))


def _numbers(found: Law) -> tuple[str, ...]:
    return tuple(each.name for each in dataclasses.fields(found.params) if type(each.default) is float)


def _own_viscosity(material: Material) -> bool:
    """Whether "viscosity" stands for the material's own: a law may have a parameter of that name."""
    return "viscosity" not in _numbers(law(material.law))


def _told_rows(material: Material, where: str) -> Iterator[Material]:
    """Yield what `every_row` does; say at which temperature a row is refused."""
    for phase in _phases(material):
        for temperature in _breaks(material, phase):
            each = at_temperature(material, temperature, phase)
            try:
                law_of(each)
            except LawError as error:
                told = str(error).removeprefix(f"{where}: ")
                raise LawError(f"{where}: at {temperature:g} K{' while liquid' if phase else ''}, {told}") from None
            yield each


def _phases(material: Material) -> tuple[int, ...]:
    return (0, 1) if any(table.liquid for table in material.tables.values()) else (0,)


def _breaks(material: Material, phase: int) -> list[float]:
    """Return the temperatures at which a parameter turns [K]."""
    return sorted({row[0] for table in material.tables.values() for row in table.rows_of(phase)})


# ---------------------------------------------------------------- rows of coefficients
class TabledNumbers:
    """The coefficients of a material, as kernels take them.

    Args:
        material: The material, with its numbers at one time.
        found: Its `tabled_law`.

    Attributes:
        values: Coefficients and the material's viscosity, then its rows (`kernels.composition.tables`). What follows the
            temperature stands there with its largest value.

    Raises:
        LawError: A parameter is out of range at a row, or a table is too steep.
    """

    def __init__(self, material: Material, found: Law) -> None:
        self.law = found
        if not found.follows:
            first = next(every_row(material))
            self.values = np.append(law_of(first)[1], first.viscosity)
            return
        self._rows = [self._of_phase(material, phase) for phase in _phases(material)[: 1 + found.by_phase]]
        values = np.max([row for _, rows in self._rows for row in rows], axis=0)
        ends = [self._packed(*each) for each in self._rows]
        counts = [len(rows) for rows in ends] + [0] * (2 - len(ends))
        self.values = np.concatenate([values, counts, *(rows.ravel() for rows in ends)])

    def _of_phase(self, material: Material, phase: int) -> tuple[np.ndarray, np.ndarray]:
        """Return temperatures, shape (n,), and numbers, shape (n, coefficients + 1), between which these run straight."""

        def numbers(temperature: float) -> np.ndarray:
            each = at_temperature(material, temperature, phase)
            return np.append(law_of(each)[1], each.viscosity)

        breaks = _breaks(material, phase)
        found = [(breaks[0], numbers(breaks[0]))]
        waiting = [(temperature, numbers(temperature)) for temperature in reversed(breaks[1:])]
        while waiting:
            (low, a), (high, b) = found[-1], waiting[-1]
            wrong = 0.0
            for s in _INSIDE:
                true = numbers(low + s * (high - low))
                wrong = max(wrong, float(np.max(np.abs(a + s * (b - a) - true) / np.maximum(np.abs(true), 1e-300))))
            if wrong <= ERROR:
                found.append(waiting.pop())
                continue
            if len(found) + len(waiting) >= MOST:
                where = f"material {material.label or material.law}"
                raise LawError(
                    f"{where}: between {low:g} and {high:g} K its tables are too steep to be followed within {ERROR:g}; give them "
                    "more rows there, or values of less different size"
                )
            middle = 0.5 * (low + high)
            waiting.append((middle, numbers(middle)))
        return np.array([temperature for temperature, _ in found]), np.array([row for _, row in found])

    def _packed(self, temperatures: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the rows as kernels take them, shape (rows, numbers of one)."""
        if len(temperatures) == 1:
            temperatures, rows = np.array([temperatures[0], temperatures[0] + 1.0]), np.repeat(rows, 2, axis=0)
        values = rows[:, list(self.law.follows)]
        low, high = temperatures[:-1], temperatures[1:]
        packed = np.column_stack([low, high, 1.0 / (high - low), values[:-1], values[1:]])
        assert packed.shape[1] == row_length(len(self.law.follows)) and packed.shape[1] > HEAD
        return packed

    # ------------------------------------------------------------ in NumPy
    def at(self, temperature: np.ndarray, phase: np.ndarray | None) -> np.ndarray:
        """Return coefficients and viscosity at temperatures [K] and phases, shape (coefficients + 1, n)."""
        found = np.empty((len(self.law.names) + 1, len(temperature)))
        for liquid, (temperatures, rows) in enumerate(self._rows):
            lanes = slice(None) if not liquid else np.flatnonzero(np.asarray(phase) != 0)
            for n, column in enumerate(rows.T):
                found[n, lanes] = np.interp(temperature[lanes], temperatures, column)
        return found

    def largest(self, index: int, cold: float, hot: float) -> float:
        """Return the largest value of a number, at temperatures from `cold` to `hot` [K] and in any phase."""
        values = []
        for temperatures, rows in self._rows:
            inside = (temperatures > cold) & (temperatures < hot)
            values += [*np.interp((cold, hot), temperatures, rows[:, index]), *rows[inside, index]]
        return float(max(values, default=math.nan))


def without(coefficients: np.ndarray, found: Law, index: int) -> np.ndarray:
    """Return coefficients with one of them, or the viscosity behind them, at 0 at all temperatures."""
    changed = coefficients.copy()
    changed[index] = 0.0
    if index in found.follows:
        begin, count = len(found.names) + 1, len(found.follows)
        place = HEAD + found.follows.index(index)
        rows = changed[begin + 2 :].reshape(-1, row_length(count))
        rows[:, [place, place + count]] = 0.0
    return changed
