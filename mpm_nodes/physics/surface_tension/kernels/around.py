"""Particles around a box of cells, listed once for all that is asked of them there."""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.cells.bins import in_block
from mpm_nodes.kernels.compile.jit import inline, part

__all__ = ["AROUND", "EVERYWHERE", "list_around", "room"]

AROUND = 512
"""Particles that there is room for at first."""
EVERYWHERE = 1e30
"""Half the edge of a box that holds all."""


@inline
def room(count):
    """Return room for so many particles: three coordinates, a number for each of one's own, and which they are."""
    return np.empty(count), np.empty(count), np.empty(count), np.empty(count), np.empty(count, np.int32)


@part
def list_around(bins, tables, e, cells, box, lists):
    """Write the particles in a box, of those in the cells up to some cells around given ones; return how many.

    Those that there is no room for are counted and not written.

    Args:
        bins: Particles by cells of edge r.
        tables: `near` and `slot` of the places.
        e: Place whose low corner coordinates and cells are counted from.
        cells: First and last cell along each axis, and how many around them.
        box: Low and high corner of the box [r], each three numbers.
        lists: Written, as `room` makes them.
    """
    (near, slot), (low, high, reach), (x, y, z, _, index) = tables, cells, lists
    (x0, y0, z0), (x1, y1, z1) = box
    count, k0, k1 = 0, max(low[2] - reach, -8), min(high[2] + reach, 15)
    for ci in range(max(low[0] - reach, -8), min(high[0] + reach + 1, 16)):
        for cj in range(max(low[1] - reach, -8), min(high[1] + reach + 1, 16)):
            for bk in range(k0 >> 3, (k1 >> 3) + 1):
                n, first = in_block(ci, cj, max(k0, 8 * bk))
                place = near[e, n]
                q = slot[place] if place >= 0 else -1
                if q >= 0:  # cells along z follow each other
                    last = first + min(k1, 8 * bk + 7) - max(k0, 8 * bk)
                    for row in range(bins.start[512 * q + first], bins.start[512 * q + last + 1]):
                        px, py, pz = bins.x[row] + (ci & ~7), bins.y[row] + (cj & ~7), bins.z[row] + 8 * bk
                        if x0 < px < x1 and y0 < py < y1 and z0 < pz < z1:
                            if count < len(index):
                                x[count], y[count], z[count], index[count] = px, py, pz, bins.index[row]
                            count += 1
    return count
