"""Materials whose parameters follow the temperature, or another attribute of particles: their checks, and the tables of
coefficients that kernels interpolate.

A law's coefficients are functions of its parameters: Lame's of E and nu, for one. Where a parameter runs straight from one row to
the next, they need not. So each material is brought to rows of coefficients that run straight themselves: at the rows of all its
tables over an attribute, and at as many places between them as keep every coefficient within `ERROR` of what the parameters there
give.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping

import numpy as np

from mpm_nodes.data import ATTRIBUTES, Field, Material
from mpm_nodes.data.parameter_tables import TEMPERATURE, value_at
from mpm_nodes.kernels.composition.tables import HEAD, row_length
from mpm_nodes.materials.contract import Follows, Law, LawError, law, law_of

__all__ = ["ERROR", "TabledNumbers", "at_places", "can_follow", "every_row", "tabled_law", "without"]

ERROR = 1e-3
"""Largest relative error of an interpolated coefficient between the rows of a material's tables."""
MOST = 256
"""Rows of coefficients at most."""
_INSIDE = (0.25, 0.5, 0.75)
"""Where an interval's error is looked for."""


def at_places(material: Material, places: Mapping[str, float], phase: int = 0) -> Material:
    """Return a material with the numbers that it has in a phase at values of attributes, without tables.

    Args:
        material: The material.
        places: Values by attribute: of the temperature [K]; of what is missing that of its first row counts.
        phase: 0 solid, 1 liquid.
    """
    values = {}
    for name, table in material.tables.items():
        rows = table.rows_of(phase)
        values[name] = value_at(rows, places.get(table.over, rows[0][0]))
    viscosity = values.pop("viscosity", material.viscosity) if _own_viscosity(material) else material.viscosity
    density = values.pop("density", material.density)
    return dataclasses.replace(material, params={**material.params, **values}, density=density, viscosity=viscosity, tables={})


def every_row(material: Material) -> Iterator[Material]:
    """Yield a material as it is at each row of its tables, along one attribute after the other; itself where it has none."""
    if not material.tables:
        yield material
    for over, phase, place in _rows(material):
        yield at_places(material, {over: place}, phase)


def tabled_law(material: Material) -> Law:
    """Return the law of a material, with the coefficients named that follow attributes of particles.

    Raises:
        LawError: The law is unknown, a parameter is not one that can follow, a row is out of range, or a coefficient would follow
            two attributes.
    """
    found, where = law(material.law), f"material {material.label or material.law}"
    if not material.tables:
        return found
    for name, table in material.tables.items():
        known = name in _numbers(found) or (name == "viscosity" and _own_viscosity(material))
        if not (known or (name == "density" and table.over != TEMPERATURE)):
            choice = can_follow(found) if table.over == TEMPERATURE else (*can_follow(found), "density")
            raise LawError(f"{where}: '{name}' cannot follow {table.attribute}; choose one of {', '.join(choice)}")
        melts = material.thermal is not None and material.thermal.melt is not None
        if melts and table.liquid:
            raise LawError(
                f"{where}: {name} has a table of the liquid, which is another material here; give that one a table instead"
            )
    for over, phase, place in _rows(material):
        _refuse_row(material, where, over, phase, place)
    follows, fields = [], dict(found.fields)
    for over in _overs(material):
        by_phase = any(table.liquid for table in material.tables.values() if table.over == over)
        if indices := _varying(material, over):
            follows.append(Follows(over, indices, by_phase))
            if over not in ATTRIBUTES:
                fields[over] = Field(over, doc="What parameters of materials follow.", houdini=over)
    for n, one in enumerate(follows):
        for other in follows[n + 1 :]:
            if both := set(one.indices) & set(other.indices):
                what = (*found.names, "viscosity")[min(both)]
                raise LawError(
                    f"{where}: {what} would follow both {one.over} and {other.over}; parameters that make one number of the law "
                    f"follow one attribute: combine the two by set_attribute"
                )
    return dataclasses.replace(found, follows=tuple(follows), fields=fields)


def _varying(material: Material, over: str) -> tuple[int, ...]:
    """Return which numbers change with an attribute, wherever the others are."""
    elsewhere = [{}, *({name: place} for name, phase, place in _rows(material) if name != over)]
    found: set[int] = set()
    for others in elsewhere:
        rows = [_numbers_of(at_places(material, {**others, over: x}, phase)) for name, phase, x in _rows(material) if name == over]
        found |= {n for n in range(len(rows[0])) if len({row[n] for row in rows}) > 1}
    return tuple(sorted(found))


def _numbers_of(material: Material) -> np.ndarray:
    """Return coefficients and the material's viscosity, shape (coefficients + 1,)."""
    return np.append(law_of(material)[1], material.viscosity)


def can_follow(found: Law) -> tuple[str, ...]:
    """Return the names of the numbers of a law's materials that can follow the temperature."""
    return tuple(dict.fromkeys((*_numbers(found), "viscosity")))


def _numbers(found: Law) -> tuple[str, ...]:
    return tuple(each.name for each in dataclasses.fields(found.params) if type(each.default) is float)


def _own_viscosity(material: Material) -> bool:
    """Whether "viscosity" stands for the material's own: a law may have a parameter of that name."""
    return "viscosity" not in _numbers(law(material.law))


def _refuse_row(material: Material, where: str, over: str, phase: int, place: float) -> None:
    """Say at which temperature, or other value, a row is refused."""
    try:
        law_of(at_places(material, {over: place}, phase))
    except LawError as error:
        told = str(error).removeprefix(f"{where}: ")
        at = f"{place:g} K" if over == TEMPERATURE else f"{over} = {place:g}"
        raise LawError(f"{where}: at {at}{' while liquid' if phase else ''}, {told}") from None


def _overs(material: Material) -> tuple[str, ...]:
    """Return the attributes that a material's parameters follow."""
    return tuple(dict.fromkeys(table.over for table in material.tables.values()))


def _rows(material: Material) -> Iterator[tuple[str, int, float]]:
    """Yield attribute, phase and place of every row of a material's tables."""
    for over in _overs(material):
        for phase in _phases(material, over):
            for place in _breaks(material, over, phase):
                yield over, phase, place


def _phases(material: Material, over: str) -> tuple[int, ...]:
    return (0, 1) if any(table.liquid for table in material.tables.values() if table.over == over) else (0,)


def _breaks(material: Material, over: str, phase: int) -> list[float]:
    """Return the temperatures [K], or other values, at which a parameter turns."""
    return sorted({row[0] for table in material.tables.values() if table.over == over for row in table.rows_of(phase)})


# ---------------------------------------------------------------- rows of coefficients
class TabledNumbers:
    """The coefficients of a material, as kernels take them.

    Args:
        material: The material, with its numbers at one time.
        found: Its `tabled_law`.

    Attributes:
        values: Coefficients and the material's viscosity, then the rows of each attribute that some follow
            (`kernels.composition.tables`). What follows one stands there with its largest value.

    Raises:
        LawError: A parameter is out of range at a row, or a table is too steep.
    """

    def __init__(self, material: Material, found: Law) -> None:
        self.law = found
        values = _numbers_of(next(every_row(material)))
        parts, self._rows = [values], list[list[tuple[np.ndarray, np.ndarray]]]()
        for each in found.follows:
            rows = [self._of_phase(material, each.over, phase) for phase in _phases(material, each.over)[: 1 + each.by_phase]]
            largest = np.max([row for _, of_phase in rows for row in of_phase], axis=0)
            indices = list(each.indices)
            values[indices] = largest[indices]
            ends = [_packed(*one, each) for one in rows]
            parts += [np.array([*map(len, ends), 0.0][:2]), *(one.ravel() for one in ends)]
            self._rows.append(rows)
        self.values = np.concatenate(parts)

    def _of_phase(self, material: Material, over: str, phase: int) -> tuple[np.ndarray, np.ndarray]:
        """Return places, shape (n,), and numbers, shape (n, coefficients + 1), between which these run straight."""

        def numbers(place: float) -> np.ndarray:
            return _numbers_of(at_places(material, {over: place}, phase))

        breaks = _breaks(material, over, phase)
        found = [(breaks[0], numbers(breaks[0]))]
        waiting = [(place, numbers(place)) for place in reversed(breaks[1:])]
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
                unit = " K" if over == TEMPERATURE else f" of {over}"
                raise LawError(
                    f"{where}: between {low:g} and {high:g}{unit} its tables are too steep to be followed within {ERROR:g}; give "
                    "them more rows there, or values of less different size"
                )
            middle = 0.5 * (low + high)
            waiting.append((middle, numbers(middle)))
        return np.array([place for place, _ in found]), np.array([row for _, row in found])

    # ------------------------------------------------------------ in NumPy
    def at(self, given: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return coefficients and viscosity, shape (coefficients + 1, n), where `law.inputs` have these values, shape (n,)."""
        count = len(next(iter(given.values())))
        found = np.repeat(self.values[: len(self.law.names) + 1, None], count, axis=1)
        for each, phases in zip(self.law.follows, self._rows, strict=True):
            for liquid, (places, rows) in enumerate(phases):
                lanes = slice(None) if not liquid else np.flatnonzero(np.asarray(given["phase"]) != 0)
                for n in each.indices:
                    found[n, lanes] = np.interp(given[each.over][lanes], places, rows[:, n])
        return found

    def largest(self, index: int, low: float, high: float) -> float:
        """Return the largest value of a number, where what it follows lies from `low` to `high`, in any phase."""
        followed, values = self.law.followed(index), list[float]()
        for places, rows in [] if followed is None else self._rows[self.law.follows.index(followed)]:
            inside = (places > low) & (places < high)
            values += [*np.interp((low, high), places, rows[:, index]), *rows[inside, index]]
        return float(max(values, default=math.nan))


def _packed(places: np.ndarray, rows: np.ndarray, follows: Follows) -> np.ndarray:
    """Return rows as kernels take them, shape (rows, numbers of one)."""
    if len(places) == 1:
        places, rows = np.array([places[0], places[0] + 1.0]), np.repeat(rows, 2, axis=0)
    values = rows[:, list(follows.indices)]
    low, high = places[:-1], places[1:]
    packed = np.column_stack([low, high, 1.0 / (high - low), values[:-1], values[1:]])
    assert packed.shape[1] == row_length(len(follows.indices)) and packed.shape[1] > HEAD
    return packed


def without(coefficients: np.ndarray, found: Law, index: int) -> np.ndarray:
    """Return coefficients with one of them, or the viscosity behind them, at 0 wherever particles are."""
    changed = coefficients.copy()
    changed[index] = 0.0
    begin = len(found.names) + 1
    for each in found.follows:
        count, step = len(each.indices), row_length(len(each.indices))
        end = begin + 2 + step * int(changed[begin] + changed[begin + 1])
        if index in each.indices:
            place = HEAD + each.indices.index(index)
            changed[begin + 2 : end].reshape(-1, step)[:, [place, place + count]] = 0.0
        begin = end
    return changed
