"""Particles by small cells: the tables that resampling looks neighbours up in.

| symbol | meaning |
|---|---|
| r | radius of a particle's sphere, half a grid cell; the unit of every length here |
| block | a block of particles, 4^3 grid cells, that is 8^3 cells of edge r; coordinates start at its low corner |
| slot | number of a block among those that hold particles, as the solver lists them |
| place | number of a block among those and their 26 neighbours: where nodes may be needed |
| near | by 9 (dx + 1) + 3 (dy + 1) + dz + 1, the neighbours of a block, -1 where there is none |

Particles must be sorted by block. Nothing here depends on the extent of the domain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.lanes.types import WIDTH
from mpm_nodes.kernels.transfers.binning import list_neighbours, unpack_coord

CELLS = 512
"""Cells of edge r in a block."""


class Bins(NamedTuple):
    """Particles by cells of edge r.

    Attributes:
        start: Particles of cell c = 64 i + 8 j + k of slot b are rows start[512 b + c] : start[512 b + c + 1], int32.
        x: First coordinate in the particle's block, in r, float32 or float64; y and z likewise.
        y: Second coordinate.
        z: Third coordinate.
        index: Where each row stands in the particle arrays, int32.
        material: Material of each row, int32.
        near: Slots of the 27 neighbours of each slot, int32.
    """

    start: np.ndarray
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    index: np.ndarray
    material: np.ndarray
    near: np.ndarray


class Places(NamedTuple):
    """Blocks with particles and their neighbours.

    Attributes:
        coord: Block coordinates, shape (places, 3), int32.
        near: Places of the 27 neighbours of each place, int32.
        slot: Slot of each place, -1 where it holds no particles, int32.
        of_slot: Place of each slot, int32.
        key: Packed coordinates and bodies of the places, ascending, int64.
    """

    coord: np.ndarray
    near: np.ndarray
    slot: np.ndarray
    of_slot: np.ndarray
    key: np.ndarray


def neighbours(packed: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return where each packed block of `wanted` stands in the sorted list `packed`, -1 where it does not."""
    at = np.minimum(np.searchsorted(packed, wanted), len(packed) - 1)
    return np.where(packed[at] == wanted, at, -1).astype(np.int32)


def places_of(block_coord: np.ndarray, block_body: np.ndarray) -> Places:
    """Return the tables of the blocks with particles, shapes (slots, 3) and (slots,), which must be sorted and different."""
    around = np.empty((len(block_coord), 27), np.int64)
    list_neighbours(block_coord, block_body, around)
    packed = np.unique(around)
    coord, body = np.empty((len(packed), 3), np.int32), np.empty(len(packed), np.int32)
    unpack_coord(packed, coord, body)
    wanted = np.empty((len(packed), 27), np.int64)
    list_neighbours(coord, body, wanted)
    mine = np.ascontiguousarray(around[:, 13])
    return Places(coord, neighbours(packed, wanted), neighbours(mine, packed), neighbours(packed, mine), packed)


def bins_of(
    offset: np.ndarray,
    stride: int,
    shift: int,
    block_start: np.ndarray,
    material: np.ndarray,
    places: Places,
    dtype: npt.DTypeLike = np.float32,
    wanted: np.ndarray | None = None,
) -> Bins:
    """Sort particles into cells of edge r.

    Args:
        offset: Fixed-point offsets of `shift` bits from the block's centre, three rows.
        stride: Distance of rows.
        shift: Bits of a cell.
        block_start: Particles of block q are block_start[q] : block_start[q + 1].
        material: Material of each particle.
        places: Tables of the blocks.
        dtype: Float type of the coordinates. In single precision they move in steps of 5e-7 r, which a continuous use shows.
        wanted: Slots whose particles are looked up, a mask; all without it. Rows of others are void.
    """
    count, slots = int(block_start[-1]), len(block_start) - 1
    near = np.where(places.near >= 0, places.slot[places.near], -1).astype(np.int32)[places.of_slot]
    bins = Bins(
        np.empty(CELLS * slots + 1, np.int32),
        *(np.empty(count + WIDTH, dtype)[:count] for _ in range(3)),
        np.empty(count, np.int32),
        np.empty(count, np.int32),
        np.ascontiguousarray(near),
    )
    _fill(offset, stride, shift, block_start, material, np.ones(slots, bool) if wanted is None else wanted, bins)
    return bins


def rows_of(bins: Bins, chosen: np.ndarray) -> Bins:
    """Return the particles of the materials that a mask marks."""
    keep = chosen[bins.material]
    before = np.concatenate([[0], np.cumsum(keep)]).astype(np.int32)
    count = int(before[-1])
    columns = [np.empty(count + WIDTH, column.dtype)[:count] for column in bins[1:6]]  # whole vectors are read, past the end too
    for column, of in zip(columns, bins[1:6], strict=True):
        column[:] = of[keep]
    return Bins(before[bins.start], *columns, bins.near)


@part
def _fill_at(b, offset, stride, shift, block_start, material, wanted, bins):
    start, x, y, z, index, kind, _ = bins
    if not wanted[b]:
        start[CELLS * b] = block_start[b]  # where the last cell of the slot before ends
        return
    scale, middle = x.dtype.type(2.0 / (1 << shift)), x.dtype.type(4.0)
    first, end = block_start[b], block_start[b + 1]
    at = np.zeros(CELLS, np.int32)
    for p in range(first, end):
        at[_cell(offset, stride, shift, p)] += 1
    total = np.int32(first)
    for c in range(CELLS):
        size = at[c]
        start[CELLS * b + c] = total
        at[c] = total
        total += size
    for p in range(first, end):
        c = _cell(offset, stride, shift, p)
        row = at[c]
        at[c] = row + 1
        x[row] = x.dtype.type(offset[p]) * scale + middle
        y[row] = x.dtype.type(offset[stride + p]) * scale + middle
        z[row] = x.dtype.type(offset[2 * stride + p]) * scale + middle
        index[row], kind[row] = p, material[p]


@compiled
def _fill(offset, stride, shift, block_start, material, wanted, bins):
    bins.start[bins.start.size - 1] = block_start[block_start.size - 1]
    parallel_for(_fill_at, block_start.size - 1, (offset, stride, shift, block_start, material, wanted, bins))


@inline
def _cell(offset, stride, shift, p):
    """Return the cell of a particle; one that has drifted out of its block is put into the outermost."""
    i = min(max(4 + (offset[p] >> (shift - 1)), 0), 7)
    j = min(max(4 + (offset[stride + p] >> (shift - 1)), 0), 7)
    k = min(max(4 + (offset[2 * stride + p] >> (shift - 1)), 0), 7)
    return 64 * i + 8 * j + k


@inline
def in_block(i, j, k):
    """Return the neighbour that cell (i, j, k) lies in, -8 .. 15 each, and its number there."""
    return ((i + 8) >> 3) * 9 + ((j + 8) >> 3) * 3 + ((k + 8) >> 3), ((i & 7) << 6) + ((j & 7) << 3) + (k & 7)
