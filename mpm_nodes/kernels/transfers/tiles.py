"""Private tiles of the transfers: a block's 8^3 nodes, filled from and added to the 2^3 grid blocks under it.

A tile is followed by a thread's weights and its sixteen particles' records, all in one scratch array.
"""

from __future__ import annotations

from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.parallel import FEW, parallel_for
from mpm_nodes.kernels.lanes.arithmetic import any_lane, broadcast, const, select
from mpm_nodes.kernels.lanes.memory import load, pair_firsts, prefetch, spread_last, store
from mpm_nodes.kernels.lanes.types import WIDTH
from mpm_nodes.kernels.transfers.weights import WEIGHT_SCRATCH

TILE = 2176
"""Tile of 8^3 nodes and a pad: the weightless fourth node of the last row lies outside."""
RECORDS = TILE + WEIGHT_SCRATCH
"""Where the sixteen particles' records start in the scratch of a thread; weights lie before them."""
SECOND_TILE = RECORDS + 2 * WIDTH * WIDTH
"""A second tile, of what FLIP adds."""
FACE_SCRATCH = 7712
"""What `faces` has in the scratch of a thread instead: three tiles of its own, weights and records."""
SCRATCH = max(SECOND_TILE + TILE, FACE_SCRATCH)
SLICE, ROW = 256, 32
"""Tile strides of x and y, in values."""


@part
def clear_tile(scratch, at, zero):
    """Zero a tile and its pad."""
    for i in range(0, TILE, WIDTH):
        store(scratch, at + i, zero)


@part
def prefetch_tile(grid, tile_slot, q):
    """Ask for the cache lines of the grid blocks of particle block q."""
    for corner in range(8):
        block = tile_slot[q, corner] * 256
        for i in range(0, 256, WIDTH):
            prefetch(grid, block + i)


@part
def add_tile(scratch, at, grid, tile_slot, q):
    """Add a tile to the grid blocks of particle block q.

    Rows of zeros are passed over: nearly half of them are, while no particle has drifted out of its block.
    """
    zero = const(load(scratch, at), 0.0)
    for corner in range(8):
        block = tile_slot[q, corner] * 256
        tile = at + (corner >> 2) * 4 * SLICE + ((corner >> 1) & 1) * 4 * ROW + (corner & 1) * WIDTH
        for i in range(4):
            for j in range(4):
                row = load(scratch, tile + i * SLICE + j * ROW)
                if any_lane(row != zero):
                    g = block + i * 64 + j * 16
                    store(grid, g, load(grid, g) + row)


@part
def load_tile(scratch, at, grid, tile_slot, q):
    """Fill a tile from the grid blocks of particle block q."""
    for corner in range(8):
        block = tile_slot[q, corner] * 256
        tile = at + (corner >> 2) * 4 * SLICE + ((corner >> 1) & 1) * 4 * ROW + (corner & 1) * WIDTH
        for i in range(4):
            for j in range(4):
                store(scratch, tile + i * SLICE + j * ROW, load(grid, block + i * 64 + j * 16))


@inline
def _change(grid, momentum, fraction, g):
    """Return grid - fraction momentum / mass of the four nodes from element g on."""
    p = load(momentum, g)
    # lighter nodes are reached by cubic weights of 1e-13 an axis: the reciprocal of their mass overflows
    mass = spread_last(p)
    share = select(mass > const(p, 1e-37), broadcast(p, fraction) / mass, const(p, 0.0))
    return load(grid, g) - share * p


@part
def load_change_tile(scratch, at, grid, momentum, fraction, tile_slot, q):
    """Fill a tile with grid - fraction momentum / mass: what a blend of FLIP and PIC adds to a particle's own velocity."""
    for corner in range(8):
        block = tile_slot[q, corner] * 256
        tile = at + (corner >> 2) * 4 * SLICE + ((corner >> 1) & 1) * 4 * ROW + (corner & 1) * WIDTH
        for i in range(4):
            for j in range(4):
                g = block + i * 64 + j * 16
                store(scratch, tile + i * SLICE + j * ROW, _change(grid, momentum, fraction, g))


@part
def load_paired_tile(scratch, at, grid, momentum, fraction, tile_slot, q):
    """Fill a tile with the first value of the grid's nodes and, second, with its change as in `load_change_tile`."""
    for corner in range(8):
        block = tile_slot[q, corner] * 256
        tile = at + (corner >> 2) * 4 * SLICE + ((corner >> 1) & 1) * 4 * ROW + (corner & 1) * WIDTH
        for i in range(4):
            for j in range(4):
                g = block + i * 64 + j * 16
                store(scratch, tile + i * SLICE + j * ROW, pair_firsts(load(grid, g), _change(grid, momentum, fraction, g)))


@part
def _clear_grid_at(g, grid, blocks):
    for i in range(256 * g, 256 * g + 256):
        grid[i] = 0


@compiled(fastmath=False)
def clear_grid(grid, blocks):
    """Set the first `blocks` grid blocks to zero."""
    parallel_for(_clear_grid_at, blocks, (grid, blocks), FEW)
