"""Level set of the union of the particles' spheres on the nodes of the grid, where its surface cuts the grid (C21 section 4.1).

| symbol | meaning |
|---|---|
| r | half a grid cell: the unit of every length here; a block has 8^3 cells of edge r (`kernels.cells.bins`) |
| node | node (i, j, k) of a place lies at (2 i + 1, 2 j + 1, 2 k + 1) r from its low corner, number 16 i + 4 j + k |
| R | radius of the spheres [r]: just above the half diagonal of a cell, so that even a lone particle holds a node |
| phi | least distance to a particle less R [r] |

Only signs are needed away from the surface, and they end at the first particle that is near enough; distances are measured at nodes
that have a neighbour of the other sign.
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.cells.bins import Bins, Places, in_block
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.lend import lend
from mpm_nodes.kernels.compile.parallel import parallel_for

__all__ = ["NODES", "node_of", "union_of_spheres"]

NODES = 64
"""Nodes of a place."""


def union_of_spheres(
    bins: Bins,
    places: Places,
    radius: float,
    drift: int,
    again: tuple[tuple[np.ndarray, np.ndarray], np.ndarray] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return which nodes lie inside and, at the surface, phi.

    Args:
        bins: Particles by cells of edge r.
        places: Blocks with particles and their neighbours.
        radius: R [r], at most 2.
        drift: How many cells of edge r a particle may lie outside its block.
        again: What is returned, with the values of the places that are known, and the others, int64; None where nothing is known.

    Returns:
        Shape (places, 64) each: uint8, and in the float type of the bins [r]; phi is void at nodes whose six neighbours have their
        sign.
    """
    shape, real = (len(places.slot), NODES), bins.x.dtype.type
    (inside, phi), todo = again or ((np.empty(shape, np.uint8), np.zeros(shape, real)), np.arange(shape[0]))
    _find_signs(todo, bins, places.near, places.slot, real(radius * radius), 2 + drift, inside)
    _measure(todo, bins, (places.near, places.slot), inside, real(radius), drift, phi)
    return inside, phi


@inline
def node_of(near, e, i, j, k):
    """Return place and number of node (i, j, k) of place e, -4 .. 7 each; place -1 where there is none."""
    n = ((i + 4) >> 2) * 9 + ((j + 4) >> 2) * 3 + ((k + 4) >> 2)
    return near[e, n], ((i & 3) << 4) + ((j & 3) << 2) + (k & 3)


@part
def _find_signs_at(t, todo, bins, near, slot, square, reach, inside):
    e = todo[t]
    for node in range(NODES):
        at = (2 * (node >> 4) + 1, 2 * ((node >> 2) & 3) + 1, 2 * (node & 3) + 1)
        # within matter a particle lies in one of the eight cells around the node, as a rule
        found = _nearest_square(bins, near, slot, e, at, np.int64(1), square) < 0.0
        inside[e, node] = found or _nearest_square(bins, near, slot, e, at, reach, square) < 0.0


@compiled
def _find_signs(todo, bins, near, slot, square, reach, inside):
    parallel_for(_find_signs_at, todo.shape[0], (todo, lend(bins), near, slot, square, reach, inside))


@part
def _nearest_square(bins, near, slot, e, at, reach, enough):
    """Return the least squared distance of a particle in the cells up to `reach` around a place, -1 once one is below `enough`."""
    start, xs, ys, zs = bins.start, bins.x, bins.y, bins.z
    i, j, k = at
    least, k0, k1 = xs.dtype.type(1e4), max(k - reach, -8), min(k + reach, 16)
    for ci in range(max(i - reach, -8), min(i + reach, 16)):
        for cj in range(max(j - reach, -8), min(j + reach, 16)):
            for bk in range(k0 >> 3, ((k1 - 1) >> 3) + 1):
                n, first = in_block(ci, cj, max(k0, 8 * bk))
                place = near[e, n]
                q = slot[place] if place >= 0 else -1
                if q >= 0:  # cells along z follow each other
                    end = first + min(k1, 8 * bk + 8) - max(k0, 8 * bk)
                    x, y, z = i - (ci & ~7), j - (cj & ~7), k - 8 * bk
                    for row in range(start[512 * q + first], start[512 * q + end]):
                        dx, dy, dz = xs[row] - x, ys[row] - y, zs[row] - z
                        square = dx * dx + dy * dy + dz * dz
                        if square < enough:
                            return xs.dtype.type(-1.0)
                        least = min(least, xs.dtype.type(square))
    return least


@inline
def _differs(near, inside, e, i, j, k, mine):
    place, node = node_of(near, e, i, j, k)
    return (inside[place, node] if place >= 0 else 0) != mine


@part
def _measure_at(t, todo, bins, tables, inside, radius, drift, phi):
    e, (near, slot) = todo[t], tables
    for node in range(NODES):
        i, j, k = node >> 4, (node >> 2) & 3, node & 3
        mine = inside[e, node]
        if (
            _differs(near, inside, e, i - 1, j, k, mine)
            or _differs(near, inside, e, i + 1, j, k, mine)
            or _differs(near, inside, e, i, j - 1, k, mine)
            or _differs(near, inside, e, i, j + 1, k, mine)
            or _differs(near, inside, e, i, j, k - 1, mine)
            or _differs(near, inside, e, i, j, k + 1, mine)
        ):
            at = (2 * i + 1, 2 * j + 1, 2 * k + 1)
            square = _nearest_square(bins, near, slot, e, at, 2 + drift, 0.0 * radius)
            if square > 4.0:  # outside: a neighbour is inside, so a particle lies within R + 2
                square = _nearest_square(bins, near, slot, e, at, 4 + drift, 0.0 * radius)
            phi[e, node] = np.sqrt(square) - radius


@compiled
def _measure(todo, bins, tables, inside, radius, drift, phi):
    parallel_for(_measure_at, todo.shape[0], (todo, lend(bins), tables, inside, radius, drift, phi))
