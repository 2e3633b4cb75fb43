"""What share bodies and walls leave open around each node: the integral of its spline outside of them.

| symbol | meaning | unit |
|---|---|---|
| phi | signed distance from a body, negative inside | m |
| F | integral of the quadratic B-spline of a node up to a distance | - |
| o | open share of a node, the product over all bodies and walls | - |

Walls are planes along the axes, and F is exact. Bodies are summed up by cells around the nodes, and by octants at a surface. Of an
octant of side s the share 1 / 2 + phi / s is open, at least 0 and at most 1: edges, rods and plates thinner than a cell count
by their volume.
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.collisions.rules import OPEN, signed_distance, to_body
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.lend import lend_plain
from mpm_nodes.kernels.compile.parallel import parallel_for

__all__ = ["find_open_shares", "spline_up_to"]

HALF_DIAGONAL = 0.87
"""Of a cell [cells]; that of eight cells is twice as long."""
REACH = 5.3
"""Nothing that closes a part of a block's nodes lies farther from the block's middle [cells]: 3 cells along each axis."""


@inline
def spline_up_to(s):
    """Return the integral of the quadratic B-spline up to s cells: F."""
    if s <= -1.5:
        return 0.0
    if s >= 1.5:
        return 1.0
    if s < -0.5:
        return (s + 1.5) ** 3 / 6.0
    if s > 0.5:
        return 1.0 - (1.5 - s) ** 3 / 6.0
    return 0.5 + 0.75 * s - s**3 / 3.0


@part
def _octants_of(cell, first, h, b, bodies, shares):
    """Write what a body closes of the octants of cell (i, j, k) from a place `first` on; return whether it may close anything."""
    i, j, k = cell
    x0, x1, x2 = first[0] + h * i, first[1] + h * j, first[2] + h * k
    y0, y1, y2 = to_body(b, 1, x0, x1, x2, bodies.real)
    distance = signed_distance(b, 1.0, y0, y1, y2, bodies)
    if distance >= HALF_DIAGONAL * h:
        return False
    within = distance <= -HALF_DIAGONAL * h
    for p in range(2):
        for q in range(2):
            for r in range(2):
                share = 1.0
                if not within:
                    z0, z1, z2 = x0 + h * (0.5 * p - 0.25), x1 + h * (0.5 * q - 0.25), x2 + h * (0.5 * r - 0.25)
                    y0, y1, y2 = to_body(b, 1, z0, z1, z2, bodies.real)
                    share = min(max(0.5 - 2.0 * signed_distance(b, 1.0, y0, y1, y2, bodies) / h, 0.0), 1.0)
                shares[2 * i + p, 2 * j + q, 2 * k + r] = share
    return True


@inline
def _under_spline(a, b, c, d, e, f):
    """Return the sum of six octants in a row by the integrals of a spline over them; the same from both ends."""
    return ((a + f) + 7.0 * (b + e) + 16.0 * (c + d)) / 48.0


@part
def _close(first, shares, along_z, along_yz, opened):
    """Take what is closed of the octants of 6 x 6 x 6 cells from what is open around the nodes of a block, axis after axis."""
    for s in range(12):
        for t in range(12):
            row = shares[s, t]
            for c in range(4):
                m = 2 * c
                along_z[s, t, c] = _under_spline(row[m], row[m + 1], row[m + 2], row[m + 3], row[m + 4], row[m + 5])
        for b in range(4):
            for c in range(4):
                rows, m = along_z[s], 2 * b
                along_yz[s, b, c] = _under_spline(
                    rows[m, c], rows[m + 1, c], rows[m + 2, c], rows[m + 3, c], rows[m + 4, c], rows[m + 5, c]
                )
    for n in range(64):
        m, b, c = 2 * (n >> 4), (n >> 2) & 3, n & 3
        x = along_yz
        closed = _under_spline(x[m, b, c], x[m + 1, b, c], x[m + 2, b, c], x[m + 3, b, c], x[m + 4, b, c], x[m + 5, b, c])
        opened[first + n] *= max(1.0 - closed, 0.0)


@part
def _close_near(first, node, h, b, bodies, opened):
    """Take what a body closes from what is open around a block's nodes, the first of which lies at `node`."""
    shares = np.zeros((12, 12, 12))
    before, some = (node[0] - h, node[1] - h, node[2] - h), False
    for pair in range(27):
        i, j, k = 2 * (pair // 9), 2 * (pair // 3 % 3), 2 * (pair % 3)
        x0, x1, x2 = before[0] + h * (i + 0.5), before[1] + h * (j + 0.5), before[2] + h * (k + 0.5)
        y0, y1, y2 = to_body(b, 1, x0, x1, x2, bodies.real)
        if signed_distance(b, 1.0, y0, y1, y2, bodies) >= 2.0 * HALF_DIAGONAL * h:
            continue
        for n in range(8):
            cell = (i + (n >> 2), j + ((n >> 1) & 1), k + (n & 1))
            some = _octants_of(cell, before, h, b, bodies, shares) or some
    if some:
        _close(first, shares, np.empty((12, 12, 4)), np.empty((12, 4, 4)), opened)


@part
def _open_at(g, coord, h, shift, walls, bodies, opened):
    box, wall_rules = walls
    first = 64 * g
    node = shift[0] + h * (4.0 * coord[g, 0]), shift[1] + h * (4.0 * coord[g, 1]), shift[2] + h * (4.0 * coord[g, 2])
    for n in range(first, first + 64):
        opened[n] = 1.0
    for b in range(len(bodies.real)):
        y0, y1, y2 = to_body(b, 1, node[0] + 1.5 * h, node[1] + 1.5 * h, node[2] + 1.5 * h, bodies.real)
        if signed_distance(b, 1.0, y0, y1, y2, bodies) <= REACH * h:
            _close_near(first, node, h, b, bodies, opened)
    for side in range(6):
        if wall_rules[side] >= OPEN:
            continue
        axis, sign = side >> 1, 1.0 - 2.0 * (side & 1)
        for n in range(64):
            place = (n >> 4) if axis == 0 else (((n >> 2) & 3) if axis == 1 else (n & 3))
            opened[first + n] *= spline_up_to(sign * ((node[axis] - box[side & 1, axis]) / h + place))


@compiled(fastmath=False)
def find_open_shares(coord, h, shift, walls, bodies, opened):
    """Write what share of every node bodies and walls leave open.

    Args:
        coord: Grid blocks, shape (n, 3), int32.
        h: Cell size [m].
        shift: Grid origin in the frame of the bodies, shape (3,) [m].
        walls: `WallPlanes`.
        bodies: `Bodies`.
        opened: Written: o, shape (64 n,), float64.
    """
    parallel_for(_open_at, coord.shape[0], (coord, h, shift, walls, lend_plain(bodies), opened))
