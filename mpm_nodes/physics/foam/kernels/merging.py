"""Merging of particles that lie on top of each other (Y15 algorithm 21), and of light ones that lie close.

Lengths are in units of r, half a grid cell. Where matter is drawn out, insertion along it makes particles that share the volume of
those there were, and across it they come closer: pairs that together hold little more than a seed are one too many.
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.cells.bins import Bins, in_block
from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.lend import lend
from mpm_nodes.kernels.compile.parallel import parallel_for

CROWDED = 0.85
"""Distance below which light particles become one [r]: somewhat less than that of seeds."""


def close_pairs(bins: Bins, reach: float, volume: np.ndarray | None = None, most: float = 0.0) -> np.ndarray:
    """Return disjoint pairs of particles of one material closer than `reach` [r], and light ones closer than CROWDED.

    Each particle asks for its nearest neighbour of those; mutual choices come first, then the closer pairs, then memory order.

    Args:
        bins: The particles.
        reach: Distance below which all merge [r], at most one.
        volume: Volume at rest of the particles in the order of the bins [r^3], float32; None where only `reach` counts.
        most: Volume that a light pair may have [r^3].

    Returns:
        Pairs of places in the particle arrays, shape (n, 2), int64.
    """
    count = len(bins.index)
    partner, away = np.empty(count, np.int32), np.empty(count, np.float32)
    wide = max(reach, 0.0 if volume is None else CROWDED)
    held = np.zeros(0, np.float32) if volume is None else volume
    _nearest_neighbours(bins, (np.float32(reach), np.float32(wide), np.float32(most)), held, partner, away)
    first = np.flatnonzero(partner >= 0)
    if not len(first):
        return np.zeros((0, 2), np.int64)
    second = partner[first].astype(np.int64)
    mutual = partner[second] == first
    order = np.lexsort((second, first, away[first], ~mutual))
    taken, chosen = set(), []
    for n in order:
        a, b = int(first[n]), int(second[n])
        if a not in taken and b not in taken:
            taken |= {a, b}
            chosen.append((min(a, b), max(a, b)))
    rows = np.array(sorted(chosen), np.int64).reshape(-1, 2)
    return bins.index[rows].astype(np.int64)


@part
def _nearest_neighbours_at(q, bins, limits, volume, partner, away):
    close, reach, most = limits
    start, xs, ys, zs, material, near = bins.start, bins.x, bins.y, bins.z, bins.material, bins.near
    for cell in range(512):
        for row in range(start[512 * q + cell], start[512 * q + cell + 1]):
            x, y, z = xs[row], ys[row], zs[row]
            best, square = np.int32(-1), reach * reach
            for a in range(int(np.floor(x - reach)), int(np.floor(x + reach)) + 1):
                for b in range(int(np.floor(y - reach)), int(np.floor(y + reach)) + 1):
                    for c in range(int(np.floor(z - reach)), int(np.floor(z + reach)) + 1):
                        n, other = in_block(a, b, c)
                        slot = near[q, n]
                        if slot < 0:
                            continue
                        px, py, pz = x - np.float32(a - (a & 7)), y - np.float32(b - (b & 7)), z - np.float32(c - (c & 7))
                        for s in range(start[512 * slot + other], start[512 * slot + other + 1]):
                            dx, dy, dz = xs[s] - px, ys[s] - py, zs[s] - pz
                            d = dx * dx + dy * dy + dz * dz
                            if s != row and d < square and material[s] == material[row]:
                                if d < close * close or volume[s] + volume[row] <= most:
                                    best, square = np.int32(s), d
            partner[row], away[row] = best, square


@compiled
def _nearest_neighbours(bins, limits, volume, partner, away):
    """Write the row of each particle's nearest neighbour of its material that may merge with it; -1: none."""
    parallel_for(_nearest_neighbours_at, bins.near.shape[0], (lend(bins), limits, volume, partner, away))
