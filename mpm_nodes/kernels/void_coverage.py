"""Which cells of edge r may receive a sample: deep enough inside, and not covered.

| symbol | meaning | unit |
|---|---|---|
| r | radius of a particle's sphere, half a grid cell | unit of length |
| radius | of the spheres that cover | r |
"""

from __future__ import annotations

import numpy as np
from numba import prange

from mpm_nodes.kernels.jit import inline, kernel
from mpm_nodes.kernels.void_bins import Bins, Places, in_block


@kernel(parallel=True)
def corner_distances(near, of_slot, slots, distance, corners):
    """Write the distances of the 9^3 corners of some slots' cells, shape (slots, 729)."""
    for w in prange(slots.size):
        gather_corners(near, of_slot[slots[w]], distance, corners[w])


@inline
def gather_corners(near, place, distance, mine):
    """Write the distances of the 9^3 corners of a place's cells: its own nodes and those on the low faces of others."""
    for i in range(9):
        for j in range(9):
            n = ((i + 8) >> 3) * 9 + ((j + 8) >> 3) * 3
            row = ((i & 7) << 6) + ((j & 7) << 3)
            inner, last = near[place, n + 1], near[place, n + 2]
            for k in range(8):
                mine[81 * i + 9 * j + k] = distance[inner, row + k]
            mine[81 * i + 9 * j + 8] = distance[last, row]


@inline
def is_free(bins, slot, i, j, k, x, y, z, square):
    """Tell whether no particle lies closer than the root of `square` to (x, y, z) in cell (i, j, k) of a slot."""
    for a in range(i - 1, i + 2):
        for b in range(j - 1, j + 2):
            for c in range(k - 1, k + 2):
                n, cell = in_block(a, b, c)
                q = bins.near[slot, n]
                if q < 0:
                    continue
                px, py, pz = x - np.float32(a - (a & 7)), y - np.float32(b - (b & 7)), z - np.float32(c - (c & 7))
                for row in range(bins.start[512 * q + cell], bins.start[512 * q + cell + 1]):
                    dx, dy, dz = bins.x[row] - px, bins.y[row] - py, bins.z[row] - pz
                    if dx * dx + dy * dy + dz * dz < square:
                        return False
    return True


def open_cells(bins: Bins, places: Places, distance: np.ndarray, radius: np.float32, depth: np.float32) -> np.ndarray:
    """Return which cells of edge r may receive a sample, shape (slots, 512), uint8."""
    opened = np.zeros((len(bins.near), 512), np.uint8)
    _open_deep(places.near, places.of_slot, distance, depth, opened)
    return opened


@kernel(parallel=True)
def _open_deep(near, of_slot, distance, depth, opened):
    """Open the cells that have a corner deeper than `depth`."""
    for q in prange(opened.shape[0]):
        corners = np.empty(729, np.float32)
        gather_corners(near, of_slot[q], distance, corners)
        for cell in range(512):
            c = 81 * (cell >> 6) + 9 * ((cell >> 3) & 7) + (cell & 7)
            least = min(min(min(corners[c], corners[c + 1]), min(corners[c + 9], corners[c + 10])),
                        min(min(corners[c + 81], corners[c + 82]), min(corners[c + 90], corners[c + 91])))
            opened[q, cell] = least < -depth
