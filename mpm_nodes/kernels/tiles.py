"""Private tiles of the transfers: a block's 8^3 nodes, filled from and added to the 2^3 grid blocks under it.

A tile is followed by a thread's weights and its sixteen particles' records, all in one scratch array.
"""

from __future__ import annotations

from numba import prange

from mpm_nodes.kernels.jit import kernel
from mpm_nodes.kernels.lane_memory import load, store
from mpm_nodes.kernels.lane_types import WIDTH
from mpm_nodes.kernels.weights import WEIGHT_SCRATCH

TILE = 2176
"""Tile of 8^3 nodes and a pad: the weightless fourth node of the last row lies outside."""
RECORDS = TILE + WEIGHT_SCRATCH
"""Where the sixteen particles' records start in the scratch of a thread; weights lie before them."""
SCRATCH = RECORDS + 2 * WIDTH * WIDTH
SLICE, ROW = 256, 32
"""Tile strides of x and y, in values."""


@kernel
def clear_tile(scratch, at, zero):
    """Zero a tile and its pad."""
    for i in range(0, TILE, WIDTH):
        store(scratch, at + i, zero)


@kernel
def add_tile(scratch, at, grid, tile_slot, q):
    """Add a tile to the grid blocks of particle block q."""
    for corner in range(8):
        block = tile_slot[q, corner] * 256
        tile = at + (corner >> 2) * 4 * SLICE + ((corner >> 1) & 1) * 4 * ROW + (corner & 1) * WIDTH
        for i in range(4):
            for j in range(4):
                g = block + i * 64 + j * 16
                store(grid, g, load(grid, g) + load(scratch, tile + i * SLICE + j * ROW))


@kernel
def load_tile(scratch, at, grid, tile_slot, q):
    """Fill a tile from the grid blocks of particle block q."""
    for corner in range(8):
        block = tile_slot[q, corner] * 256
        tile = at + (corner >> 2) * 4 * SLICE + ((corner >> 1) & 1) * 4 * ROW + (corner & 1) * WIDTH
        for i in range(4):
            for j in range(4):
                store(scratch, tile + i * SLICE + j * ROW, load(grid, block + i * 64 + j * 16))


@kernel(parallel=True)
def clear_grid(grid, blocks):
    """Set the first `blocks` grid blocks to zero."""
    for g in prange(blocks):
        for i in range(256 * g, 256 * g + 256):
            grid[i] = 0
