"""Masses of particles whose density follows an attribute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mpm_nodes.data.values import Material

__all__ = ["weighed"]


def weighed(columns: Mapping[str, np.ndarray], materials: Sequence[Material]) -> np.ndarray:
    """Return the masses of particles [kg], shape (n,): their own, or where the density follows an attribute, that times volume.

    Args:
        columns: Of the particles, with `mass`, `volume` and the index `material`; where an attribute is missing they keep theirs.
        materials: Theirs.
    """
    tables = {index: material.tables["density"] for index, material in enumerate(materials) if "density" in material.tables}
    followed = {index: table for index, table in tables.items() if table.over in columns}
    if not followed:
        return columns["mass"]
    mass, volume = np.array(columns["mass"], float), np.asarray(columns["volume"], float)
    for index, table in followed.items():
        lanes = np.flatnonzero(columns["material"] == index)
        density = np.interp(columns[table.over][lanes], *np.array(table.solid).T)
        mass[lanes] = density * volume[lanes]
    return mass
