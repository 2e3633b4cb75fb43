"""The spheres that reach into a small cell, of particles and of new samples: which there are, and whether one holds a cube.

A list has the x of `ROOM` centres and room for sixteen more, then their y and z: it is read sixteen at a time.
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.cells.bins import in_block
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.arithmetic import absolute, any_lane, broadcast
from mpm_nodes.kernels.lanes.memory import load, store
from mpm_nodes.kernels.lanes.types import WIDTH

ROOM, ROW = 1024, 1024 + WIDTH
"""Spheres that reach into a cell of edge r / 2, many times what a uniform filling has; where there are more, there is no gap."""


@inline
def choose_near(around, size, half_cell, square, near):
    """List those of the centres around whose spheres reach into a cell of level 4; return how many, or ROOM + 1."""
    if size > ROOM:
        return size
    quarter = np.float32(0.25)
    x = np.float32(0.5) * np.float32(half_cell >> 8) + quarter
    y = np.float32(0.5) * np.float32((half_cell >> 4) & 15) + quarter
    z = np.float32(0.5) * np.float32(half_cell & 15) + quarter
    count = 0
    for n in range(size):  # no branch on what is near: it could not be predicted
        px, py, pz = around[n], around[ROW + n], around[2 * ROW + n]
        near[count], near[ROW + count], near[2 * ROW + count] = px, py, pz
        count += _gap(px - x) + _gap(py - y) + _gap(pz - z) < square
    pad(near, count)
    return count


@inline
def gather_around(bins, tree, w, home, around):
    """List the centres, of particles and samples, in a cell of open block w and its 26 neighbours; return how many, or ROOM + 1."""
    start, slot, xs, ys, zs = bins.start, bins.near[tree.slot[w]], bins.x, bins.y, bins.z
    of_slot, accepted = tree.of_slot, tree.accepted
    i, j, k = home >> 6, (home >> 3) & 7, home & 7
    size = 0
    for a in range(i - 1, i + 2):
        for b in range(j - 1, j + 2):
            c = k - 1
            while c < k + 2:  # cells of one block follow each other along z
                end = min(k + 2, (c & ~7) + 8)
                n, cell = in_block(a, b, c)
                q = slot[n]
                if q >= 0:
                    fx, fy, fz = np.float32(a - (a & 7)), np.float32(b - (b & 7)), np.float32(c - (c & 7))
                    first, behind = start[512 * q + cell], start[512 * q + cell + end - c]
                    if size + behind - first > ROOM:
                        return ROOM + 1
                    for row in range(first, behind, WIDTH):
                        _copy_sixteen(xs, row, fx, around, size)
                        _copy_sixteen(ys, row, fy, around, ROW + size)
                        _copy_sixteen(zs, row, fz, around, 2 * ROW + size)
                        size += min(WIDTH, behind - row)
                    v = of_slot[q]
                    if v >= 0 and accepted[v] > 0:
                        size = _add_samples(tree, v, cell, cell + end - c, (fx, fy, fz), around, size)
                c = end
    return size


@inline
def _add_samples(tree, v, first, end, shift, around, size):
    """List the samples in some cells of open block v, shifted; return how many are listed."""
    fx, fy, fz = shift
    head, after, xs, ys, zs = tree.head[v], tree.after, tree.x, tree.y, tree.z
    for cell in range(first, end):
        row = head[cell]
        while row >= 0:
            size = listed(around, size, xs[row] + fx, ys[row] + fy, zs[row] + fz)
            row = after[row]
    return size


@inline
def _copy_sixteen(source, at, shift, target, to):
    value = load(source, at)
    store(target, to, value + broadcast(value, shift))


@inline
def _gap(d):
    """Return the square of how far a point lies from a cell of level 4 along an axis, `d` from its middle."""
    out = max(abs(d) - np.float32(0.25), np.float32(0.0))
    return out * out


@inline
def listed(around, size, x, y, z):
    """List a centre; return how many are listed, ROOM + 1 for more than there is room for."""
    if size >= ROOM:
        return ROOM + 1
    around[size], around[ROW + size], around[2 * ROW + size] = x, y, z
    return size + 1


@inline
def pad(around, size):
    """Fill up the last sixteen of a list with what reaches nothing."""
    for n in range(min(size, ROOM), min((size + WIDTH - 1) // WIDTH * WIDTH, ROOM)):
        around[n] = np.float32(1e6)


@inline
def one_holds(around, size, x, y, z, half, square):
    """Tell whether one of the listed spheres holds the cube around (x, y, z) whose edge is twice `half`; a point for zero."""
    like = load(around, 0)
    px, py, pz, wide, limit = (
        broadcast(like, x),
        broadcast(like, y),
        broadcast(like, z),
        broadcast(like, half),
        broadcast(like, square),
    )
    for n in range(0, size, WIDTH):
        dx, dy, dz = (
            absolute(load(around, n) - px) + wide,
            absolute(load(around, ROW + n) - py) + wide,
            absolute(load(around, 2 * ROW + n) - pz) + wide,
        )
        if any_lane(dx * dx + dy * dy + dz * dz < limit):
            return True
    return False
