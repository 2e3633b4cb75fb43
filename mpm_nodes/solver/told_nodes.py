"""What the nodes of a grid were told by bodies that stand still, kept from substep to substep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mpm_nodes.kernels.collisions.node_surfaces import EVERY, STORED, Told
from mpm_nodes.kernels.level_sets.level_set import KEY_LATTICES, POSE, Bodies

__all__ = ["ToldNodes"]

MOST_BYTES = 1 << 26
"""The tables may take so much memory; where they would take more, bodies that stand still are asked in every substep as others."""


class ToldNodes:
    """The tables that are kept, and what they were made for."""

    def __init__(self) -> None:
        self._grid: tuple[Any, ...] = ()
        self._shapes: list[np.ndarray] = []
        self._told = _nothing(0)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(array.nbytes for array in self._told)

    def of(self, grid: tuple[Any, ...], blocks: int, bodies: Bodies, find: Callable[[np.ndarray, np.ndarray], None]) -> Told:
        """Return what nodes were told; nothing yet where the bodies that stand still, or the grid, were others before.

        Args:
            grid: What the grid is as long as these are the same objects.
            blocks: Number of its blocks.
            bodies: The bodies as they are posed.
            find: Writes which nodes some bodies are out of reach of: the last arguments of `find_out_of_reach`.
        """
        still, end = _still(bodies), POSE + 12
        shapes = [still, bodies.integer[still], bodies.real[still, end : end + 12]]
        grid = (*grid, bodies.lattice_integer, bodies.values)
        same = len(grid) == len(self._grid) and all(a is b for a, b in zip(grid, self._grid, strict=True))
        if not (same and all(map(np.array_equal, shapes, self._shapes)) and len(self._told.column) == len(bodies.real)):
            self._grid, self._shapes, self._told = grid, shapes, _tables(still, blocks, len(bodies.real), find)
        return self._told


def _still(bodies: Bodies) -> np.ndarray:
    """Return which bodies neither move nor change their shape in this substep."""
    start, lattices = POSE + 12, bodies.integer[:, KEY_LATTICES : KEY_LATTICES + 4]
    stands = (bodies.real[:, POSE:start] == bodies.real[:, start : start + 12]).all(axis=1)
    return np.flatnonzero(stands & (lattices == lattices[:, :1]).all(axis=1))


def _tables(still: np.ndarray, blocks: int, bodies: int, find: Callable[[np.ndarray, np.ndarray], None]) -> Told:
    told = _nothing(bodies)
    room = 20 * blocks * len(still)
    if not len(still) or room > MOST_BYTES:
        return told
    out = np.empty((blocks, len(still)), np.int64)
    find(still, out)
    near = out != EVERY
    if room + 64 * STORED * 8 * int(near.sum()) > MOST_BYTES:
        return told
    told.column[still] = np.arange(len(still))
    slot = np.where(near, np.cumsum(near).reshape(near.shape) - 1, -1).astype(np.int32)
    return Told(told.column, out, np.zeros_like(out), slot, np.empty((64 * int(near.sum()), STORED)))


def _nothing(bodies: int) -> Told:
    """Return tables of which no body has a part."""
    none = np.zeros((0, 1), np.int64)
    return Told(np.full(bodies, -1, np.int64), none, none, none.astype(np.int32), np.zeros((0, STORED)))
