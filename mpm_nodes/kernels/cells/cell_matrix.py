"""Symmetric matrices on the cells of sparse blocks: each cell and the six beside it.

    (A p)_c = d_c p_c - sum_f k_f p_n          over the faces f of cell c, n the cell behind f

A block has 4^3 cells, number 16 i + 4 j + k; a face carries the number of the cell that lies behind it along its axis. The sixteen
cells of a plane i are lanes: those beside them along x are planes, too, and along y and z the same plane, shifted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.lend import lend_plain, plain
from mpm_nodes.kernels.compile.parallel import FEW, parallel_for
from mpm_nodes.kernels.lanes.arithmetic import const
from mpm_nodes.kernels.lanes.memory import load, shuffle_by, store
from mpm_nodes.kernels.transfers.binning import pack_coord

__all__ = ["CellMatrix", "before", "behind", "divide", "multiply", "neighbour_blocks"]


class CellMatrix(NamedTuple):
    """A matrix on the cells of n blocks, one float64 a cell.

    Attributes:
        around: Blocks before and behind along x, y and z, shape (n, 6), int32; -1 for none.
        diagonal: d, greater than 0; 1 where there is nothing to solve.
        x, y, z: k >= 0 of the faces along each axis; 0 where there is no cell before.
    """

    around: np.ndarray
    diagonal: np.ndarray
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray


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

    around: np.ndarray
    diagonal: np.ndarray
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    p: np.ndarray


@inline
def _beyond(block, cell):
    """Return a cell of a neighbouring block, or -1."""
    return np.int64(64 * block + cell) if block >= 0 else np.int64(-1)


_low_y = shuffle_by([*range(12, 16), *range(16, 28)])
_low_z = shuffle_by([3 + lane if lane % 4 == 0 else 15 + lane for lane in range(16)])
"""Of what lies beyond the block, and of a plane: what lies before each cell along y and z."""
_high_y = shuffle_by([*range(4, 16), *range(16, 20)])
_high_z = shuffle_by([13 + lane if lane % 4 == 3 else 1 + lane for lane in range(16)])
"""Of a plane, and of what lies beyond the block: what lies behind each cell along y and z."""


@inline
def neighbours_sum(product, g, i):
    """Return sum k_f p_n of the sixteen cells of plane i of block g, as lanes, from a lent `Product`."""
    c = 64 * g + 16 * i
    here = load(product.p, c)
    none = total = const(here, 0.0)
    low = c - 16 if i > 0 else _beyond(product.around[g, 0], 48)
    if low >= 0:
        total = load(product.x, c) * load(product.p, low)
    high = c + 16 if i < 3 else _beyond(product.around[g, 1], 0)
    if high >= 0:
        total = total + load(product.x, high) * load(product.p, high)
    beyond, other = none, _beyond(product.around[g, 2], 16 * i)
    if other >= 0:
        beyond = load(product.p, other)
    total = total + load(product.y, c) * _low_y(beyond, here)
    beyond, other = none, _beyond(product.around[g, 3], 16 * i)
    if other >= 0:
        beyond = load(product.y, other) * load(product.p, other)
    total = total + _high_y(load(product.y, c) * here, beyond)
    beyond, other = none, _beyond(product.around[g, 4], 16 * i)
    if other >= 0:
        beyond = load(product.p, other)
    total = total + load(product.z, c) * _low_z(beyond, here)
    beyond, other = none, _beyond(product.around[g, 5], 16 * i)
    if other >= 0:
        beyond = load(product.z, other) * load(product.p, other)
    return total + _high_z(load(product.z, c) * here, beyond)


@part
def _multiply_at(g, product, q):
    for i in range(4):
        c = 64 * g + 16 * i
        store(q, c, load(product.diagonal, c) * load(product.p, c) - neighbours_sum(product, g, i))


@compiled(fastmath=False)
def multiply(count, matrix, p, q):
    """Write A p to q."""
    product = lend_plain(Product(matrix.around, matrix.diagonal, matrix.x, matrix.y, matrix.z, p))
    parallel_for(_multiply_at, count, (product, plain(q)), FEW)


@part
def _divide_at(g, matrix, r, z):
    for c in range(64 * g, 64 * g + 64):
        z[c] = r[c] / matrix.diagonal[c]


@compiled(fastmath=False)
def divide(count, matrix, r, z):
    """Write r over the diagonal to z."""
    parallel_for(_divide_at, count, (lend_plain(matrix), plain(r), plain(z)), FEW)
