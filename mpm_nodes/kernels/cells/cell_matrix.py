"""Symmetric matrices on the cells of sparse blocks: each cell and the six beside it.

    (A p)_c = d_c p_c - sum_f k_f p_n          over the faces f of cell c, n the cell behind f

A block has 4^3 cells, number 16 i + 4 j + k; a face carries the number of the cell that lies behind it along its axis.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.lend import lend_plain, plain
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.transfers.binning import pack_coord

__all__ = ["CellMatrix", "before", "behind", "divide", "multiply", "neighbour_blocks"]


class CellMatrix(NamedTuple):
    """A matrix on the cells of n blocks, one float64 a cell.

    Attributes:
        around: Blocks before and behind along x, y and z, shape (n, 6), int32; -1 for none.
        diagonal: d, greater than 0; 1 where there is nothing to solve.
        x, y, z: k >= 0 of the faces along each axis; 0 where there is no cell before.
    """

    around: Any
    diagonal: Any
    x: Any
    y: Any
    z: Any


def neighbour_blocks(coord: np.ndarray, body: np.ndarray, packed: np.ndarray) -> np.ndarray:
    """Return the blocks before and behind each block along x, y and z, shape (n, 6), int32; -1 where there is none.

    Args:
        coord: Coordinates of the blocks, shape (n, 3).
        body: Body that each is of, shape (n,).
        packed: Both packed (`binning.pack_coord`), ascending.
    """
    found = np.full((len(coord), 6), -1, np.int32)
    for column in range(6):
        shifted = coord.astype(np.int64)
        shifted[:, column >> 1] += 2 * (column & 1) - 1
        key = pack_coord(shifted[:, 0], shifted[:, 1], shifted[:, 2], body)
        place = np.minimum(np.searchsorted(packed, key), len(coord) - 1)
        found[:, column] = np.where(packed[place] == key, place, -1)
    return found


@inline
def before(around, g, n, axis):
    """Return the cell before cell n of block g along an axis, or -1."""
    shift = 4 - 2 * axis
    if (n >> shift) & 3:
        return np.int64(64 * g + n - (1 << shift))
    block = around[g, 2 * axis]
    return np.int64(64 * block + n + (3 << shift)) if block >= 0 else np.int64(-1)


@inline
def behind(around, g, n, axis):
    """Return the cell behind cell n of block g along an axis, or -1."""
    shift = 4 - 2 * axis
    if (n >> shift) & 3 < 3:
        return np.int64(64 * g + n + (1 << shift))
    block = around[g, 2 * axis + 1]
    return np.int64(64 * block + n - (3 << shift)) if block >= 0 else np.int64(-1)


@inline
def face_of(matrix, axis):
    """Return k of the faces along an axis."""
    return matrix.x if axis == 0 else (matrix.y if axis == 1 else matrix.z)


class Product(NamedTuple):
    """A matrix and the vector that it meets, to be lent together: arrays that are handed on one by one are counted at every cell.

    Attributes:
        around, diagonal, x, y, z: The matrix.
        p: The vector.
    """

    around: Any
    diagonal: Any
    x: Any
    y: Any
    z: Any
    p: Any


@inline
def _beyond(block, cell):
    """Return a cell of a neighbouring block, or -1."""
    return np.int64(64 * block + cell) if block >= 0 else np.int64(-1)


@inline
def neighbours_sum(product, g, n):
    """Return sum k_f p_n of cell n of block g, from a lent `Product`."""
    c, total = 64 * g + n, 0.0
    low = c - 16 if n >= 16 else _beyond(product.around[g, 0], n + 48)
    if low >= 0:
        total += product.x[c] * product.p[low]
    high = c + 16 if n < 48 else _beyond(product.around[g, 1], n - 48)
    if high >= 0:
        total += product.x[high] * product.p[high]
    low = c - 4 if n & 12 else _beyond(product.around[g, 2], n + 12)
    if low >= 0:
        total += product.y[c] * product.p[low]
    high = c + 4 if n & 12 != 12 else _beyond(product.around[g, 3], n - 12)
    if high >= 0:
        total += product.y[high] * product.p[high]
    low = c - 1 if n & 3 else _beyond(product.around[g, 4], n + 3)
    if low >= 0:
        total += product.z[c] * product.p[low]
    high = c + 1 if n & 3 != 3 else _beyond(product.around[g, 5], n - 3)
    if high >= 0:
        total += product.z[high] * product.p[high]
    return total


@part
def _multiply_at(g, product, q):
    for n in range(64):
        c = 64 * g + n
        q[c] = product.diagonal[c] * product.p[c] - neighbours_sum(product, g, n)


@compiled(fastmath=False)
def multiply(count, matrix, p, q):
    """Write A p to q."""
    product = lend_plain(Product(matrix.around, matrix.diagonal, matrix.x, matrix.y, matrix.z, p))
    parallel_for(_multiply_at, count, (product, plain(q)))


@part
def _divide_at(g, matrix, r, z):
    for c in range(64 * g, 64 * g + 64):
        z[c] = r[c] / matrix.diagonal[c]


@compiled(fastmath=False)
def divide(count, matrix, r, z):
    """Write r over the diagonal to z."""
    parallel_for(_divide_at, count, (lend_plain(matrix), plain(r), plain(z)))
