"""Surface tension of a material: over temperature and over the concentration of a solute."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from mpm_nodes.data.errors import MpmNodesError
from mpm_nodes.data.parameter_tables import Rows

__all__ = ["SurfaceTension"]


@dataclass(frozen=True)
class SurfaceTension:
    """Surface energy density of a liquid against air, linear between two temperatures and constant beyond, or a curve.

    A solute changes it in proportion to its concentration, or along a curve: to `solute_tension` at 1. Against other liquids it has
    tensions of their own.

    Attributes:
        tension: At and below `temperature` [N/m].
        hot_tension: At and above `hot_temperature` [N/m].
        temperature: [K].
        hot_temperature: [K]; with the same value as `temperature` the tension is `tension` everywhere.
        solute_tension: Where the concentration is 1, at any temperature [N/m]; None: a solute does not change it.
        table: Rows (temperature [K], tension [N/m]), straight between and constant beyond; it takes the place of the four numbers.
        solute_table: Rows (concentration, share of the way to `solute_tension`); none: the share is the concentration.
        solute_diffusivity: With which the solute spreads in the liquid [m^2/s].
        interfaces: (label of another material, tension against it [N/m]) of each pair.
        interface_tables: (label, rows as those of `table`) of pairs whose tension follows the temperature; they stand among the
            `interfaces`, too, with the largest tension of their rows.

    Raises:
        MpmNodesError: A tension or the diffusivity is negative or not finite, the hot temperature lies below the cold one, rows do
            not ascend, a material is named twice, or a curve of a pair is of no pair or not below its largest tension.
    """

    tension: float
    hot_tension: float = 0.0
    temperature: float = 293.15
    hot_temperature: float = 293.15
    solute_tension: float | None = None
    table: Rows = ()
    solute_table: Rows = ()
    solute_diffusivity: float = 0.0
    interfaces: tuple[tuple[str, float], ...] = ()
    interface_tables: tuple[tuple[str, Rows], ...] = ()

    def __post_init__(self) -> None:
        for name in ("tension", "hot_tension", "solute_tension"):
            _check(name, getattr(self, name), "N/m")
        _check("solute_diffusivity", self.solute_diffusivity, "m^2/s")
        object.__setattr__(self, "interfaces", tuple((str(other), float(value)) for other, value in self.interfaces))
        for other, value in self.interfaces:
            _check(f"that against '{other}'", value, "N/m")
        if len({other for other, _ in self.interfaces}) < len(self.interfaces):
            raise MpmNodesError("surface tension: a material is named twice among the interfaces; give each pair once")
        if not self.temperature <= self.hot_temperature:
            raise MpmNodesError(
                f"surface tension: hot_temperature = {self.hot_temperature:g} K is below temperature = {self.temperature:g} K; "
                "exchange them, and the two tensions"
            )
        for name, said, unit in (("table", "table", "N/m"), ("solute_table", "the solute's table", "")):
            object.__setattr__(self, name, _ascending(said, getattr(self, name), unit))
        curves = tuple((str(other), _ascending(f"that against '{other}'", rows, "N/m")) for other, rows in self.interface_tables)
        object.__setattr__(self, "interface_tables", curves)
        for other, rows in curves:
            if dict(self.interfaces).get(other) != max((value for _, value in rows), default=None):
                raise MpmNodesError(
                    f"surface tension: the curve against '{other}' and its largest tension do not belong together; give that "
                    "tension among the interfaces"
                )
        if not all(0.0 <= at <= 1.0 for at, _ in self.solute_table):
            raise MpmNodesError(
                "surface tension: a concentration of the solute's table lies outside 0 to 1; give shares of the solute"
            )
        if any(share > 1.0 for _, share in self.solute_table):
            raise MpmNodesError(
                "surface tension: a share of the solute's table is above 1; give the share of the way to its tension"
            )

    @property
    def varies(self) -> bool:
        """Whether it depends on the temperature."""
        if self.table:
            return len({value for _, value in self.table}) > 1
        return self.hot_temperature > self.temperature and self.hot_tension != self.tension

    @property
    def largest(self) -> float:
        """Largest tension against air at any temperature and concentration [N/m]."""
        pure = (value for _, value in self.table) if self.table else (self.tension, self.hot_tension if self.varies else 0.0)
        return max(*pure, self.solute_tension or 0.0, 0.0)

    def at(self, temperature: np.ndarray, concentration: np.ndarray | float = 0.0) -> np.ndarray:
        """Return the tension at temperatures [K] and concentrations, which count from 0 to 1."""
        tension = np.full(np.shape(temperature), self.tension)
        if self.table:
            tension = np.interp(temperature, *_columns(self.table))
        elif self.varies:
            share = (temperature - self.temperature) / (self.hot_temperature - self.temperature)
            tension = self.tension + (self.hot_tension - self.tension) * np.clip(share, 0.0, 1.0)
        if self.solute_tension is None:
            return tension
        share = np.clip(concentration, 0.0, 1.0)
        if self.solute_table:
            share = np.interp(share, *_columns(self.solute_table))
        return tension + (self.solute_tension - tension) * share

    def to_json(self) -> dict[str, Any]:
        """Return every member as plain JSON values."""
        tables = {name: [list(row) for row in getattr(self, name)] for name in ("table", "solute_table", "interfaces")}
        curves = [[other, [list(row) for row in rows]] for other, rows in self.interface_tables]
        return {**dataclasses.asdict(self), **tables, "interface_tables": curves}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> SurfaceTension:
        """Return what `to_json` described; members that an older version did not store take their defaults."""
        return cls(**facts)


def _check(name: str, value: float | None, unit: str) -> None:
    if value is not None and not 0.0 <= value < math.inf:
        raise MpmNodesError(f"surface tension: {name} = {value:g} {unit}".rstrip() + "; give a finite value >= 0")


def _ascending(name: str, given: Rows, unit: str) -> Rows:
    """Return rows as floats.

    Raises:
        MpmNodesError: They do not ascend, or one holds a number that is negative or not finite.
    """
    rows = tuple((float(at), float(value)) for at, value in given)
    for _, value in rows:
        _check(name, value, unit)
    if not all(low < high for (low, _), (high, _) in pairwise(rows)):
        raise MpmNodesError(f"surface tension: the rows of {name} do not ascend; sort them, each place once")
    return rows


def _columns(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    first, second = np.array(rows).T
    return first, second
