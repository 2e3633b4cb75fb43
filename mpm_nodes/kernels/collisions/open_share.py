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

from mpm_nodes.kernels.collisions.rules import OPEN, sample, to_body
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.lend import lend_plain
from mpm_nodes.kernels.compile.parallel import parallel_for

__all__ = ["find_open_shares", "spline_up_to"]

HALF_DIAGONAL = 0.87
"""Of a cell [cells]."""
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
def _close(first, i, j, k, low, high, amount, closed):
    """Add an amount of the box from `low` to `high`, halves of cell (i, j, k), to what is closed of the nodes around it."""
    for a in range(max(i - 1, 0), min(i + 2, 4)):
        wa = spline_up_to(i - a - 0.5 + 0.5 * high[0]) - spline_up_to(i - a - 0.5 + 0.5 * low[0])
        for b in range(max(j - 1, 0), min(j + 2, 4)):
            wb = wa * (spline_up_to(j - b - 0.5 + 0.5 * high[1]) - spline_up_to(j - b - 0.5 + 0.5 * low[1]))
            for c in range(max(k - 1, 0), min(k + 2, 4)):
                wc = spline_up_to(k - c - 0.5 + 0.5 * high[2]) - spline_up_to(k - c - 0.5 + 0.5 * low[2])
                closed[first + 16 * a + 4 * b + c] += amount * wb * wc


@part
def _close_cell(first, cell, node, h, b, bodies, closed):
    """Add what a body closes of a cell (i, j, k) around a block's nodes, the first of which lies at `node`."""
    i, j, k = cell
    y0, y1, y2 = to_body(b, 1, node[0] + h * i, node[1] + h * j, node[2] + h * k, bodies.real)
    distance = sample(b, 1.0, y0, y1, y2, bodies)[0]
    if distance >= HALF_DIAGONAL * h:
        return
    if distance <= -HALF_DIAGONAL * h:
        _close(first, i, j, k, (0, 0, 0), (2, 2, 2), 1.0, closed)
        return
    for octant in range(8):
        p, q, r = octant >> 2, (octant >> 1) & 1, octant & 1
        z0, z1, z2 = node[0] + h * (i + 0.5 * p - 0.25), node[1] + h * (j + 0.5 * q - 0.25), node[2] + h * (k + 0.5 * r - 0.25)
        y0, y1, y2 = to_body(b, 1, z0, z1, z2, bodies.real)
        amount = min(max(0.5 - 2.0 * sample(b, 1.0, y0, y1, y2, bodies)[0] / h, 0.0), 1.0)
        if amount > 0.0:
            _close(first, i, j, k, (p, q, r), (p + 1, q + 1, r + 1), amount, closed)


@part
def _open_at(g, coord, h, shift, walls, bodies, closed, opened):
    box, wall_rules = walls
    first = 64 * g
    node = shift[0] + h * (4.0 * coord[g, 0]), shift[1] + h * (4.0 * coord[g, 1]), shift[2] + h * (4.0 * coord[g, 2])
    for n in range(first, first + 64):
        opened[n] = 1.0
    for b in range(len(bodies.real)):
        y0, y1, y2 = to_body(b, 1, node[0] + 1.5 * h, node[1] + 1.5 * h, node[2] + 1.5 * h, bodies.real)
        if sample(b, 1.0, y0, y1, y2, bodies)[0] > REACH * h:
            continue
        for n in range(first, first + 64):
            closed[n] = 0.0
        for c in range(216):
            _close_cell(first, (c // 36 - 1, (c // 6) % 6 - 1, c % 6 - 1), node, h, b, bodies, closed)
        for n in range(first, first + 64):
            opened[n] *= max(1.0 - closed[n], 0.0)
    for side in range(6):
        if wall_rules[side] >= OPEN:
            continue
        axis, sign = side >> 1, 1.0 - 2.0 * (side & 1)
        for n in range(64):
            place = (n >> 4) if axis == 0 else (((n >> 2) & 3) if axis == 1 else (n & 3))
            opened[first + n] *= spline_up_to(sign * ((node[axis] - box[side & 1, axis]) / h + place))


@compiled(fastmath=False)
def find_open_shares(coord, h, shift, walls, bodies, closed, opened):
    """Write what share of every node bodies and walls leave open.

    Args:
        coord: Grid blocks, shape (n, 3), int32.
        h: Cell size [m].
        shift: Grid origin in the frame of the bodies, shape (3,) [m].
        walls: `WallPlanes`.
        bodies: `Bodies`.
        closed: Scratch, shape (64 n,), float64.
        opened: Written: o, shape (64 n,), float64.
    """
    parallel_for(_open_at, coord.shape[0], (coord, h, shift, walls, lend_plain(bodies), closed, opened))
