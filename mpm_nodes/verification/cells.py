"""Cells of a grid as boolean arrays: which hold particles, and how they grow; NumPy alone."""

from __future__ import annotations

import numpy as np


def cells_of(positions: np.ndarray, cell: float, margin: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Return each particle's cell index (n, 3), and which cells of the box around them hold a particle."""
    index = np.floor(positions / cell).astype(np.int64)
    index -= index.min(axis=0) - margin
    filled = np.zeros(index.max(axis=0) + 1 + margin, bool)
    filled[tuple(index.T)] = True
    return index, filled


def grown(cells: np.ndarray, within: np.ndarray | None = None, diagonal: bool = False) -> np.ndarray:
    """Return the cells and their neighbours through faces (or corners as well), held to `within`."""
    found = cells.copy()
    for axis in range(3):
        source = found if diagonal else cells
        more = source.copy()
        for step in (1, -1):
            moved = np.roll(source, step, axis)
            edge = [slice(None)] * 3
            edge[axis] = 0 if step == 1 else -1
            moved[tuple(edge)] = False
            more |= moved
        found = found | more
    return found if within is None else found & within
