"""Signed distance to the surface of the matter, negative inside (Y15 algorithm 2), in units of r.

Every particle is a sphere of radius r = half a grid cell. Nodes lie a distance r apart; each block of particles and each of its
neighbours holds 8^3 of them, from its low corner on.

| symbol | meaning |
|---|---|
| d(q) | least distance of node q to a centre, minus 1; its sign tells inside (d < 0) from outside |
| C | zero crossing of d on an edge between neighbouring nodes, by linear interpolation |
| distance(q) | sign of d(q) times the distance to the nearest C, at most 4 |

A sphere that holds a node strictly inside has its centre in one of the eight cells at the node: the signs cost eight distances a
particle. The value of d outside is needed next to the surface only.
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.cells.bins import Bins, Places, in_block
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.lend import lend
from mpm_nodes.kernels.compile.parallel import parallel_for

NODES = 512
"""Nodes that a block holds."""
CORNERS = 729
"""Corners of a block's cells: 9^3, those on its high faces included."""
REACH = np.float32(4.0)
"""Distances are known this far from the surface."""


def interior_distance(bins: Bins, places: Places) -> np.ndarray:
    """Return the signed distance of every node of every place [r], shape (places, 512), float32; -4 deep inside, 4 far outside."""
    slots, count = len(bins.near), len(places.slot)
    corners = np.empty((slots, CORNERS), np.float32)
    _reach_corners(bins, corners)
    nearest = np.empty((count, NODES), np.float32)
    _nearest_centres(places.near, places.slot, corners, nearest)
    _measure_outside(bins, places.near, places.slot, nearest)
    start = np.zeros(count + 1, np.int64)
    _count_crossings(places.near, nearest, start)
    np.cumsum(start, out=start)
    crossings = np.empty((int(start[-1]), 3), np.float32)
    _list_crossings(places.near, nearest, start, crossings)
    distance = np.empty((count, NODES), np.float32)
    _spread(places.near, nearest, start, crossings, distance)
    return distance


@part
def _reach_corners_at(b, bins, corners):
    start, xs, ys, zs = bins.start, bins.x, bins.y, bins.z
    mine = corners[b]
    mine[:] = 4.0
    for c in range(512):
        i, j, k = c >> 6, (c >> 3) & 7, c & 7
        for row in range(start[512 * b + c], start[512 * b + c + 1]):
            x, y, z = xs[row] - i, ys[row] - j, zs[row] - k
            for corner in range(8):
                di, dj, dk = corner >> 2, (corner >> 1) & 1, corner & 1
                node = (i + di) * 81 + (j + dj) * 9 + k + dk
                dx, dy, dz = x - di, y - dj, z - dk
                mine[node] = min(mine[node], np.float32(dx * dx + dy * dy + dz * dz))


@compiled
def _reach_corners(bins, corners):
    """Write the least squared distance of each corner to the particles of the block's own cells that touch it; at most 4."""
    parallel_for(_reach_corners_at, corners.shape[0], (lend(bins), corners))


@part
def _nearest_centres_at(e, near, slot, corners, nearest):
    mine = nearest[e]
    mine[:] = 4.0
    for corner in range(8):
        a, b, c = corner >> 2, (corner >> 1) & 1, corner & 1
        place = near[e, (1 - a) * 9 + (1 - b) * 3 + 1 - c]
        q = slot[place] if place >= 0 else -1
        if q < 0:
            continue
        for i in range(1 if a else 8):
            for j in range(1 if b else 8):
                for k in range(1 if c else 8):
                    node = i * 64 + j * 8 + k
                    mine[node] = min(mine[node], corners[q, (i + 8 * a) * 81 + (j + 8 * b) * 9 + k + 8 * c])


@compiled
def _nearest_centres(near, slot, corners, nearest):
    """Combine the corners of up to eight blocks at each node."""
    parallel_for(_nearest_centres_at, nearest.shape[0], (near, slot, corners, nearest))


@inline
def _value(near, nearest, e, i, j, k):
    """Return what `nearest` holds for node (i, j, k) of place e, -8 .. 15 each; 4 where there is no such place."""
    n, node = in_block(i, j, k)
    place = near[e, n]
    return nearest[place, node] if place >= 0 else np.float32(4.0)


@part
def _measure_outside_at(e, bins, near, slot, nearest):
    one = np.float32(1.0)
    for node in range(512):
        i, j, k = node >> 6, (node >> 3) & 7, node & 7
        if nearest[e, node] < one:
            continue
        if not (
            _value(near, nearest, e, i - 1, j, k) < one
            or _value(near, nearest, e, i + 1, j, k) < one
            or _value(near, nearest, e, i, j - 1, k) < one
            or _value(near, nearest, e, i, j + 1, k) < one
            or _value(near, nearest, e, i, j, k - 1) < one
            or _value(near, nearest, e, i, j, k + 1) < one
        ):
            continue
        nearest[e, node] = _nearest_around(bins, near, slot, e, i, j, k)


@compiled
def _measure_outside(bins, near, slot, nearest):
    """Find the nearest centre of nodes outside that have a neighbour inside: it lies in the 4^3 cells around.

    Blocks run side by side although they read each other's nodes: what is outside stays outside, and nothing else is asked.
    """
    parallel_for(_measure_outside_at, nearest.shape[0], (lend(bins), near, slot, nearest))


@inline
def _nearest_around(bins, near, slot, e, i, j, k):
    start, xs, ys, zs = bins.start, bins.x, bins.y, bins.z
    least = np.float32(4.0)
    for ci in range(i - 2, i + 2):
        for cj in range(j - 2, j + 2):
            for ck in range(k - 2, k + 2):
                n, cell = in_block(ci, cj, ck)
                place = near[e, n]
                q = slot[place] if place >= 0 else -1
                if q >= 0:
                    x, y, z = i - (ci & ~7), j - (cj & ~7), k - (ck & ~7)
                    for row in range(start[512 * q + cell], start[512 * q + cell + 1]):
                        dx, dy, dz = xs[row] - x, ys[row] - y, zs[row] - z
                        least = min(least, np.float32(dx * dx + dy * dy + dz * dz))
    return least


@inline
def _crossing(near, nearest, e, node, axis):
    """Return where along the edge from a node to the next one along `axis` the sign changes, as a fraction; -1: nowhere."""
    one = np.float32(1.0)
    i, j, k = node >> 6, (node >> 3) & 7, node & 7
    here = nearest[e, node]
    there = _value(near, nearest, e, i + (axis == 0), j + (axis == 1), k + (axis == 2))
    if (here < one) == (there < one):
        return np.float32(-1.0)
    a, b = np.sqrt(here) - one, np.sqrt(there) - one
    return a / (a - b)


@part
def _count_crossings_at(e, near, nearest, start):
    found = 0
    for node in range(512):
        for axis in range(3):
            found += _crossing(near, nearest, e, node, axis) >= 0
    start[e + 1] = found


@compiled
def _count_crossings(near, nearest, start):
    parallel_for(_count_crossings_at, nearest.shape[0], (near, nearest, start))


@part
def _list_crossings_at(e, near, nearest, start, crossings):
    at = start[e]
    if at < start[e + 1]:
        for node in range(512):
            for axis in range(3):
                t = _crossing(near, nearest, e, node, axis)
                if t >= 0:
                    crossings[at, 0] = (node >> 6) + (t if axis == 0 else np.float32(0.0))
                    crossings[at, 1] = ((node >> 3) & 7) + (t if axis == 1 else np.float32(0.0))
                    crossings[at, 2] = (node & 7) + (t if axis == 2 else np.float32(0.0))
                    at += 1


@compiled
def _list_crossings(near, nearest, start, crossings):
    parallel_for(_list_crossings_at, nearest.shape[0], (near, nearest, start, crossings))


@part
def _spread_at(e, near, nearest, start, crossings, distance):
    mine = distance[e]
    mine[:] = REACH * REACH
    for n in range(27):
        place = near[e, n]
        if place >= 0:
            for c in range(start[place], start[place + 1]):
                _lower(
                    mine,
                    crossings[c, 0] + 8 * (n // 9 - 1),
                    crossings[c, 1] + 8 * (n // 3 % 3 - 1),
                    crossings[c, 2] + 8 * (n % 3 - 1),
                )
    for node in range(512):
        away = np.sqrt(mine[node])
        mine[node] = -away if nearest[e, node] < 1 else away


@compiled
def _spread(near, nearest, start, crossings, distance):
    """Write each node's distance to the nearest crossing within reach, with its sign."""
    parallel_for(_spread_at, nearest.shape[0], (near, nearest, start, crossings, distance))


@inline
def _lower(mine, x, y, z):
    """Lower the squared distances of a block's nodes to that of a crossing."""
    low_i, high_i = max(0, int(np.ceil(x - REACH))), min(7, int(np.floor(x + REACH)))
    low_j, high_j = max(0, int(np.ceil(y - REACH))), min(7, int(np.floor(y + REACH)))
    low_k, high_k = max(0, int(np.ceil(z - REACH))), min(7, int(np.floor(z + REACH)))
    if low_k > high_k:
        return
    for i in range(low_i, high_i + 1):
        for j in range(low_j, high_j + 1):
            flat = (i - x) * (i - x) + (j - y) * (j - y)
            row = 64 * i + 8 * j
            for k in range(8):
                mine[row + k] = min(mine[row + k], np.float32(flat + (k - z) * (k - z)))
