"""Connected components of the interior: which of them nothing says the pressure of.

Cells are joined within each block first, then block by block across their faces. Every part is known by the least of its cells, so
that the order of joining, and the number of threads, changes nothing.
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.cells.cell_matrix import before, behind
from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.lend import lend_plain, plain
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.physics.projection.kernels.pressure import INTERIOR, lightness

__all__ = ["label_pockets"]

OPEN, LINKED = 8, 1
"""Bits of a cell: its pressure is known by itself; it is linked to the cell before it along x (2: y, 4: z)."""


@part
def _root(parent, c):
    """Return the least cell known to be of the part of c; the way there is halved."""
    while parent[c] != c:
        parent[c] = parent[parent[c]]
        c = np.int64(parent[c])
    return c


@part
def _join(parent, one, other):
    one, other = _root(parent, one), _root(parent, other)
    if one < other:
        parent[other] = one
    elif other < one:
        parent[one] = other


@part
def _mark_at(g, f, bits, parent):
    for n in range(64):
        c, found = np.int64(64 * g + n), 0
        parent[c] = c
        bits[c] = 0
        if f.kind[c] != INTERIOR:
            continue
        if f.cells[4 * c + 2] > 0.0:
            found = OPEN
        for axis in range(3):
            low, high = before(f.around, g, n, axis), behind(f.around, g, n, axis)
            if lightness(f, axis, c) != 0.0:
                found |= LINKED << axis if low >= 0 and f.kind[low] == INTERIOR else OPEN
            if high >= 0 and f.kind[high] != INTERIOR and lightness(f, axis, high) != 0.0:
                found |= OPEN
        bits[c] = found
    for n in range(64):
        c = np.int64(64 * g + n)
        for axis in range(3):
            if (n >> (4 - 2 * axis)) & 3 and bits[c] & (LINKED << axis):
                _join(parent, c, c - (16 >> (2 * axis)))
    for c in range(64 * g, 64 * g + 64):
        parent[c] = parent[parent[c]]


@compiled(fastmath=False)
def label_pockets(count, f, bits, label, opened):
    """Number the connected parts of the interior; return how many there are.

    Args:
        count: Number of grid blocks.
        f: The fields.
        bits: Scratch, shape (64 count,), uint8.
        label: Written, shape (64 count,), int32: number of each interior cell's part, -1 elsewhere. Parts are in the order of
            their least cells.
        opened: Written, shape (64 count,), uint8: 1 where the pressure of a part is known: a face leads into an empty cell, or a
            cell is compressible. What lies behind the parts is not written.
    """
    fields, bits, parent = lend_plain(f), plain(bits), plain(label)
    parallel_for(_mark_at, count, (fields, bits, parent))
    for g in range(count):
        for axis in range(3):
            block, step = fields.around[g, 2 * axis], 16 >> (2 * axis)
            if block < 0:
                continue
            was_one, was_other = np.int64(-1), np.int64(-1)
            for n in range(64):
                if n & (3 * step) or not bits[64 * g + n] & (LINKED << axis):
                    continue
                one, other = np.int64(parent[64 * g + n]), np.int64(parent[64 * block + n + 3 * step])
                if one != was_one or other != was_other:
                    _join(parent, one, other)
                    was_one, was_other = one, other
    parts = 0
    for c in range(64 * count):
        # the least cell of a part comes first, and holds its number already
        if fields.kind[c] != INTERIOR:
            parent[c] = -1
            continue
        if parent[c] == c:
            parent[c] = number = parts
            opened[number] = 0
            parts += 1
        else:
            parent[c] = number = parent[parent[c]]
        if bits[c] & OPEN:
            opened[number] = 1
    return parts
