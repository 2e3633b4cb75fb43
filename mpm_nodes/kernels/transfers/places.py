"""What transfers are given: where particles are, which of them a thread works on and where, and the tables of their blocks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.memory import bare

__all__ = ["NODES", "BlockWork", "GatherTables", "Placement", "ScatterTables", "bare_placement", "of_points"]

NODES = (0, 0, 0)
"""Origin of the grid's nodes in half cells."""


class Placement(NamedTuple):
    """Where particles are, as fixed-point offsets from the centres of their blocks, and which points of the grid are meant.

    Attributes:
        offset: Along axis a of particle p at offset[a * stride + p], in cells of 2^shift.
        stride: Distance of rows.
        shift: Bits behind the point.
        inverse_unit: 2^-shift.
        cell_size: h [m].
        half: Origin of the points in half cells, three integers.
    """

    offset: Any
    stride: Any
    shift: Any
    inverse_unit: Any
    cell_size: Any
    half: Any = NODES


class BlockWork(NamedTuple):
    """Particles of one block, and the scratch of the thread that works on them.

    Attributes:
        begin, end: The particles begin .. end - 1.
        ahead: Rows of particle p + ahead are fetched into the cache on the way.
        scratch, at: Tile, weights and records: from element `at` on.
        base, base_at: Indices of the stencils' first nodes inside the tile.
    """

    begin: Any
    end: Any
    ahead: Any
    scratch: Any
    at: Any
    base: Any
    base_at: Any


class ScatterTables(NamedTuple):
    """Tables of a scatter.

    Attributes:
        runs: (begin, end, block) of every run of particles of one block, shape (runs, 3).
        colour_start, colour_range: First entry of each of the eight colours of blocks, and the runs by colour.
        colour_shares: Where the shares of threads begin and end among a colour's runs, shape (8, threads + 1).
        tile_slot: Grid blocks of each particle block's tile, shape (blocks, 8).
        scratch, base: Scratch of all threads.
    """

    runs: np.ndarray
    colour_start: np.ndarray
    colour_range: np.ndarray
    colour_shares: np.ndarray
    tile_slot: np.ndarray
    scratch: np.ndarray
    base: np.ndarray


class GatherTables(NamedTuple):
    """Tables of a gather; as for `ScatterTables`.

    Attributes:
        shares: Where the shares of threads begin and end among the runs, shape (threads + 1,).
    """

    runs: np.ndarray
    shares: np.ndarray
    tile_slot: np.ndarray
    scratch: np.ndarray
    base: np.ndarray


@inline
def bare_placement(place):
    """Return a `Placement` that holds data instead of an array: taking arrays out of a tuple counts references."""
    return Placement(bare(place.offset), place.stride, place.shift, place.inverse_unit, place.cell_size, place.half)


@inline
def of_points(place, half):
    """Return a `Placement` among other points of the grid."""
    return Placement(place.offset, place.stride, place.shift, place.inverse_unit, place.cell_size, half)
