"""The free surface in each cell, or around each node: what the air sees of matter.

| symbol | meaning | unit | source |
|---|---|---|---|
| f, o | share of a cell that matter fills, that bodies leave open | - | `near_bodies` |
| u | f / o, 1 of a lattice behind walls (`transfers.room`); of the cell that asks, where a body leaves nothing open | - | |
| r | ramp of u: 0 up to EVEN, 1 from 1 - EVEN on | - | |
| k | principal curvatures of the level surfaces of u, convex ones positive, times h W | - | Hessian of u |
| W | standard deviation of the spline, over that of the quadratic one | - | |
| A | area of free surface, o h^3 |grad r| s(k_1) s(k_2) | m^2 | coarea formula |

s(k) = 1 + 1.1 (min(k, 3/2) - 2/5)^(3/2) from k = 2/5 on, 1 below. Differences are central. What cells have of the surface where r
is 0 or 1 goes to the fullest or emptiest beside them, so that heat comes in where the surface is. A is 0 where u is above 1 - LOOSE
in the cell and in two on every side: lattices and flows fluctuate by less.

The sum of A over a plane surface is its area exactly, also where it meets walls; there is none against a body, where matter fills
all that is open. Splines round edges, which takes 0.47 h from each metre of a right one: a cube of six cells had 0.84 of its area.
An edge turns within a cell, a ball that cells can tell from a cube within three or more, so that the curvature tells what was lost.
s is fitted, to boxes of 4 x 4 x 12, 6 x 6 x 6 and 8 x 8 x 8 cells, turned and placed at random, and balls of 3 to 6 cells radius:
1.4 % off in the mean square, 2.6 % at most. On nodes, where A is abs(sum V grad N), the factor is 1.0: 2 % and 4 %.
"""

from __future__ import annotations

import math

import numpy as np

from mpm_nodes.kernels.cells.cell_matrix import before, behind
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.lend import plain
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.transfers.room import BEHIND, HALF

__all__ = ["write_edges", "write_free_areas"]

LOOSE = 0.15
"""What a cell may hold less than all without a surface near."""
EVEN = 0.1
"""What differs less from none, and from all, counts as none and all."""
CLOSED = 0.02
"""Cells of which a body leaves less than this open have no surface."""
SHUT = -1.0
"""What stands in the place of u there."""
ROUND, SHARP = 0.4, 1.5
"""Curvatures from which on edges lose area, and make up for no more: lone particles have larger ones."""
GAIN, NODAL_GAIN = 1.1, 1.0
"""How much s grows between, where A is that of differences, and where it is abs(sum V grad N)."""


@part
def _shares_at(g, heat, opened, volume, shares):
    """Write u of the cells of a block, SHUT where a body leaves nothing open."""
    for c in range(64 * g, 64 * g + 64):
        o = opened[c]
        if o < CLOSED:
            shares[c] = SHUT
        else:
            whole = o if o > HALF else o * math.exp(BEHIND * math.log(o))
            shares[c] = np.float64(heat[4 * c + 1]) / (volume * whole)


@inline
def _share(shares, c, mine):
    """Return u of a cell; `mine` where a body leaves nothing open, 0 where there is none."""
    if c < 0:
        return 0.0
    found = shares[c]
    return mine if found < 0.0 else found


@inline
def _ramp(share):
    """Return r."""
    return min(1.0, max(0.0, (share - EVEN) / (1.0 - 2.0 * EVEN)))


@inline
def _beside(around, c, axis, side):
    """Return the cell before (side 0) or behind c along an axis, or -1."""
    if c < 0:
        return np.int64(-1)
    return behind(around, c >> 6, c & 63, axis) if side else before(around, c >> 6, c & 63, axis)


@inline
def _made_up(curvature, gain):
    """Return s."""
    return 1.0 + gain * (min(max(curvature, ROUND), SHARP) - ROUND) ** 1.5


@part
def _near_surface(around, shares, c, mine, cells):
    """Return whether a cell, or one of one or two on any side of it, holds clearly less than all."""
    least = mine
    for axis in range(3):
        for side in range(2):
            other = c
            for _ in range(cells):
                other = _beside(around, other, axis, side)
                least = min(least, _share(shares, other, mine))
    return least < 1.0 - LOOSE


@part
def _sharpness(around, shares, c, width, gain):
    """Return what the area of a cell is multiplied by for its curvatures."""
    mine = shares[c]
    g0 = g1 = g2 = h00 = h11 = h22 = h01 = h02 = h12 = 0.0
    for axis in range(3):
        low, high = _beside(around, c, axis, 0), _beside(around, c, axis, 1)
        lower, upper = _share(shares, low, mine), _share(shares, high, mine)
        first, second = 0.5 * (upper - lower), upper + lower - 2.0 * mine
        other = 1 if axis == 0 else (2 if axis == 1 else 0)  # xy, yz, zx
        mixed = 0.25 * (
            _share(shares, _beside(around, high, other, 1), mine)
            + _share(shares, _beside(around, low, other, 0), mine)
            - _share(shares, _beside(around, high, other, 0), mine)
            - _share(shares, _beside(around, low, other, 1), mine)
        )
        if axis == 0:
            g0, h00, h01 = first, second, mixed
        elif axis == 1:
            g1, h11, h12 = first, second, mixed
        else:
            g2, h22, h02 = first, second, mixed
    size = math.sqrt(g0 * g0 + g1 * g1 + g2 * g2)
    if size < 1e-6:
        return 1.0
    n0, n1, n2 = g0 / size, g1 / size, g2 / size
    a0, a1, a2 = h00 * n0 + h01 * n1 + h02 * n2, h01 * n0 + h11 * n1 + h12 * n2, h02 * n0 + h12 * n1 + h22 * n2
    along = n0 * a0 + n1 * a1 + n2 * a2
    # sum, and sum of squares, of the principal curvatures: traces of P H P and its square, P = 1 - n n^T
    total = (along - h00 - h11 - h22) / size
    squares = h00 * h00 + h11 * h11 + h22 * h22 + 2.0 * (h01 * h01 + h02 * h02 + h12 * h12)
    squares += along * along - 2.0 * (a0 * a0 + a1 * a1 + a2 * a2)
    apart = math.sqrt(max(2.0 * squares / (size * size) - total * total, 0.0))
    return _made_up(0.5 * width * (total + apart), gain) * _made_up(0.5 * width * (total - apart), gain)


@part
def _areas_at(g, around, opened, shares, numbers, areas):
    h, width = numbers
    for n in range(64):
        c, square = np.int64(64 * g + n), 0.0
        mine = shares[c]
        areas[c] = 0.0
        if mine < 0.0:
            continue
        for axis in range(3):
            low, high = before(around, g, n, axis), behind(around, g, n, axis)
            square += (_ramp(_share(shares, high, mine)) - _ramp(_share(shares, low, mine))) ** 2
        if square > 0.0 and _near_surface(around, shares, c, mine, np.int64(2)):
            areas[c] = 0.5 * h * h * opened[c] * math.sqrt(square) * _sharpness(around, shares, c, width, GAIN)


@part
def _taker(around, shares, c):
    """Return the cell that takes the area of a cell: itself, or the fullest or emptiest beside it, towards the surface."""
    mine, found = shares[c], c
    thin = mine < EVEN
    if thin or mine > 1.0 - EVEN:
        best = max(mine, 0.0)
        for axis in range(3):
            for side in range(2):
                other = _beside(around, c, axis, side)
                if other >= 0 and shares[other] > 0.0 and (shares[other] > best if thin else shares[other] < best):
                    found, best = other, shares[other]
    return found


@part
def _hand_over_at(g, around, shares, areas, result):
    """Hand the areas of cells that are nearly empty, or nearly full, to the next towards the surface."""
    for c in range(64 * g, 64 * g + 64):
        result[c] = areas[c] if areas[c] > 0.0 and _taker(around, shares, c) == c else 0.0
        for axis in range(3):
            for side in range(2):
                other = _beside(around, np.int64(c), axis, side)
                if other >= 0 and areas[other] > 0.0 and _taker(around, shares, other) == c:
                    result[c] += areas[other]


@part
def write_free_areas(count, heat, around, opened, numbers, areas):
    """Write A of all cells or nodes [m^2].

    Args:
        count: Number of grid blocks.
        heat: Four values a point, the second the volume of the matter there [m^3].
        around: Blocks before and behind along x, y and z, shape (n, 6), int32; -1 for none.
        opened: o, shape (64 count,).
        numbers: h [m], W.
        areas: Written, shape (64 count,), float64.
    """
    shares, found = np.empty(64 * count), np.empty(64 * count)
    parallel_for(_shares_at, count, (plain(heat), plain(opened), numbers[0] ** 3, plain(shares)))
    parallel_for(_areas_at, count, (around, plain(opened), plain(shares), numbers, plain(found)))
    parallel_for(_hand_over_at, count, (around, plain(shares), plain(found), plain(areas)))


@part
def _edges_at(g, around, shares, width, edges):
    for c in range(64 * g, 64 * g + 64):
        at, mine = np.int64(c), shares[c]
        edges[c] = 0.0
        if mine < 0.0:
            edges[c] = 1.0 if _near_surface(around, shares, at, 1.0, np.int64(1)) else 0.0
        elif _near_surface(around, shares, at, mine, np.int64(1)):
            edges[c] = _sharpness(around, shares, at, width, NODAL_GAIN)


@compiled(fastmath=False)
def write_edges(count, heat, around, opened, numbers, edges):
    """Write by how much the area around nodes is more than abs(sum V grad N), 0 in the middle of matter, where that is noise.

    Args:
        count: Number of grid blocks.
        heat: Four values a node, the second the volume of the matter there [m^3].
        around: Blocks before and behind along x, y and z, shape (n, 6), int32; -1 for none.
        opened: o, shape (64 count,).
        numbers: h [m], W.
        edges: Written, shape (64 count,), float64.
    """
    shares = np.empty(64 * count)
    parallel_for(_shares_at, count, (plain(heat), plain(opened), numbers[0] ** 3, plain(shares)))
    parallel_for(_edges_at, count, (around, plain(shares), numbers[1], plain(edges)))
