"""Blocks of 4 x 4 x 4 cells, the tiles of the sparse grid: which one a position lies in, and where in it."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from mpm_nodes.data import MpmNodesError
from mpm_nodes.kernels.transfers import binning, weights

__all__ = ["SolveFrame", "grouped", "wrapped"]


class SolveFrame(Protocol):
    """Where a solve measures positions from: origin [m], cell size [m], fixed-point numbers of offsets, blocks around a period."""

    h: float
    origin: np.ndarray
    shift: int
    period: tuple[int, int, int]

    @property
    def unit(self) -> float:
        """Fixed-point units per cell."""
        ...


def wrapped(packed: np.ndarray, period: tuple[int, int, int]) -> np.ndarray:
    """Return packed coordinates with those beyond a periodic side at the other: between 0 and the period's blocks, 0 for none."""
    for axis, blocks in enumerate(period):
        if blocks:
            shift = binning.BODY_BITS + (2 - axis) * binning.AXIS_BITS
            place = (packed >> shift & (1 << binning.AXIS_BITS) - 1) - binning.FARTHEST
            packed = packed + ((place % blocks - place) << shift)
    return packed


def grouped(
    frame: SolveFrame, position: np.ndarray, bodies: np.ndarray | None
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray], np.ndarray, np.ndarray]:
    """Group positions by block: order, coordinates and bodies of the blocks, starts, fixed-point offsets in that order."""
    if not np.isfinite(position).all():
        bad = int(np.flatnonzero(~np.isfinite(position).all(axis=1))[0])
        raise MpmNodesError(f"position of particle {bad} is {position[bad]}; positions must be finite numbers [m]")
    cells = (position - frame.origin) / frame.h - 1.5
    block = np.floor(cells / 4.0)
    if len(block) and np.abs(block).max() >= binning.FARTHEST - 1:
        raise MpmNodesError(
            f"a particle lies {np.abs(cells).max() * frame.h:.3g} m from the solve's origin; at most "
            f"{4 * binning.FARTHEST * frame.h:.3g} m are allowed at a cell size of {frame.h:g} m; raise the cell size"
        )
    offset = np.rint((cells - 4.0 * block - 2.0) * frame.unit).astype(np.int32 if frame.shift == weights.SHIFT32 else np.int64)
    x, y, z = block.astype(np.int64).T
    packed = wrapped(binning.pack_coord(x, y, z, 0 if bodies is None else bodies), frame.period)
    unique, start_of = np.unique(packed, return_inverse=True)
    order = np.argsort(start_of, kind="stable")
    coord, body = np.zeros((len(unique), 3), np.int32), np.zeros(len(unique), np.int32)
    binning.unpack_coord(unique, coord, body)
    start = np.concatenate([[0], np.cumsum(np.bincount(start_of, minlength=len(unique)))]).astype(np.int64)
    return order, (coord, body), start, offset[order]
