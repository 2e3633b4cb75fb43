"""Poisson-disc sampling of a region in 3D (Bridson 2007), restarted in every connected component (B18 section 2).

| symbol | meaning                                                             | unit |
|--------|---------------------------------------------------------------------|------|
| r      | least distance of two samples                                       | m    |
| k      | candidates drawn around an active sample before it is retired       | -    |
| a      | edge of a background cell, r / sqrt(3): a cell holds one sample at most | m |

One generator, one thread: the samples depend on the region, r, k and the seed alone.
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.jit import inline, kernel
from mpm_nodes.kernels.regions import LEVEL_SET, Region, inside_region, leaf_boxes

START_TRIES = 1000
SAMPLES_PER_CUBE = 0.65
"""N r^3 / V at k = 30 (measured for a box of side 9 r; a little less for larger ones)."""
_DENSEST = 1.4143
"""N r^3 / V of the densest packing of spheres: the upper bound that sizes the arrays."""


def background_bytes(region: Region, distance: float) -> int:
    """Return an upper bound of the memory [bytes] that sampling takes: background cells, samples, active list."""
    total = 0.0
    for low, high in _boxes(region, distance):
        total += 4.0 * np.prod((high - low) * np.sqrt(3.0) / distance + 5.0)
        total += 28.0 * _DENSEST * np.prod(high - low + distance) / distance**3
    return int(min(total, 2.0**62))


def poisson_disc(region: Region, distance: float, *, tries: int = 30, seed: int = 0) -> np.ndarray:
    """Sample `region` so that no two points are closer than `distance`.

    Args:
        region: What to fill.
        distance: Least distance r [m].
        tries: Candidates k per active sample.
        seed: Seed of the generator; equal seeds give equal points.

    Returns:
        Points [m] in the region's frame, shape (n, 3), float64.
    """
    # A hair above r, so that placing the points (rotation, a centre 1 km away) cannot round a pair below r.
    r = distance * (1.0 + 1e-9)
    found = [_sample_box(region, low, high, r, tries, seed + 7919 * n)
             for n, (low, high) in enumerate(_boxes(region, distance))]
    return np.concatenate(found) if found else np.zeros((0, 3))


def _sample_box(region: Region, low: np.ndarray, high: np.ndarray, r: float, tries: int, seed: int) -> np.ndarray:
    a = r / np.sqrt(3.0)
    cells = np.ceil((high - low) / a).astype(np.int64) + 5  # two cells of margin on each side: no stencil is cut
    capacity = int(_DENSEST * np.prod(high - low + r) / r**3) + 16
    grid = np.full(int(np.prod(cells)), -1, np.int32)
    points = np.empty((capacity, 3))
    active = np.empty(capacity, np.int32)
    offsets = _neighbours(cells)
    count = _bridson(region.kind, region.numbers, region.keys, region.values, low, high, r, a, tries,
                     np.uint64(seed & (2**64 - 1)), cells, offsets, grid, points, active)
    return points[:count].copy()


def _neighbours(cells: np.ndarray) -> np.ndarray:
    """Return flat offsets of the background cells that can hold a sample within r, nearest first.

    The eight corners of the 5^3 block are at least r away and are left out.
    """
    steps = np.stack(np.meshgrid(*[np.arange(-2, 3)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    steps = steps[np.abs(steps).min(axis=1) < 2]
    steps = steps[np.argsort((steps**2).sum(axis=1), kind="stable")]
    return (steps[:, 0] * cells[1] + steps[:, 1]) * cells[2] + steps[:, 2]


def _boxes(region: Region, distance: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return disjoint boxes, further than `distance` apart, that cover the region: one per separate group of leaves."""
    if region.kind != LEVEL_SET:
        return [(region.low, region.high)]
    wet = (region.values < 0.0).any(axis=(1, 2, 3))
    to_index = np.vstack([region.numbers[:12].reshape(3, 4), [0.0, 0.0, 0.0, 1.0]])
    low, high = leaf_boxes(region.keys[wet], np.linalg.inv(to_index))
    boxes = _merge_boxes(low, high, distance)
    return [(np.maximum(a, region.low), np.minimum(b, region.high)) for a, b in boxes]


def _merge_boxes(low: np.ndarray, high: np.ndarray, gap: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """Unite boxes closer than `gap`, again and again, until all are further apart."""
    while True:
        groups = _touching_groups(low, high, gap)
        count = int(groups.max(initial=-1)) + 1
        lows, highs = np.full((count, 3), np.inf), np.full((count, 3), -np.inf)
        np.minimum.at(lows, groups, low)
        np.maximum.at(highs, groups, high)
        if count == len(low):
            order = np.lexsort(lows.T[::-1])
            return [(lows[n], highs[n]) for n in order]
        low, high = lows, highs


def _touching_groups(low: np.ndarray, high: np.ndarray, gap: float) -> np.ndarray:
    """Number groups of boxes that overlap along one axis after another when grown by `gap`.

    Splitting by intervals along x, then y, then z keeps it n log n; boxes that a finer test would part share a grid.
    """
    groups = np.zeros(len(low), np.int64)
    for axis in range(3):
        order = np.lexsort((low[:, axis], groups))
        reach = np.empty(len(low))
        start = np.ones(len(low), bool)
        last = -1
        for position, n in enumerate(order):
            fresh = groups[n] != last
            start[position] = fresh or low[n, axis] > reach[position - 1] + gap
            reach[position] = high[n, axis] if start[position] else max(reach[position - 1], high[n, axis])
            last = groups[n]
        groups[order] = np.cumsum(start) - 1
    return groups


@inline
def _random(state):
    """Return the next state and a number in [0, 1) (SplitMix64)."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    z = state
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return state, float(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@inline
def _is_free(grid, points, offsets, home, x, y, z, r2):
    """Tell whether no sample lies closer than r to (x, y, z), whose background cell is `home`."""
    for n in range(len(offsets)):
        other = grid[home + offsets[n]]
        if other >= 0:
            dx, dy, dz = x - points[other, 0], y - points[other, 1], z - points[other, 2]
            if dx * dx + dy * dy + dz * dz < r2:
                return False
    return True


@kernel(fastmath=False)
def _bridson(kind, numbers, keys, values, low, high, r, a, tries, seed, cells, offsets, grid, points, active):
    """Fill `points` and return how many there are."""
    state = np.uint64(seed)
    r2 = r * r
    inverse = 1.0 / a
    ny, nz = cells[1], cells[2]
    count, alive, starts = 0, 0, 0
    while True:
        if alive == 0:
            # First start, or a component that growth could not reach.
            if starts >= START_TRIES:
                return count
            starts += 1
            state, u = _random(state)
            state, v = _random(state)
            state, w = _random(state)
            x, y, z = low[0] + u * (high[0] - low[0]), low[1] + v * (high[1] - low[1]), low[2] + w * (high[2] - low[2])
            slot, left = -1, 1
            cx, cy, cz = x, y, z
        else:
            state, u = _random(state)
            slot = min(int(u * alive), alive - 1)
            centre = active[slot]
            cx, cy, cz = points[centre, 0], points[centre, 1], points[centre, 2]
            x, y, z = cx, cy, cz
            left = tries
        placed = False
        while left > 0 and not placed:
            left -= 1
            if slot >= 0:
                # Uniform in the shell r..2r, by rejection from its cube.
                d2 = 0.0
                while d2 < 1.0 or d2 >= 4.0:
                    state, u = _random(state)
                    state, v = _random(state)
                    state, w = _random(state)
                    u, v, w = 4.0 * u - 2.0, 4.0 * v - 2.0, 4.0 * w - 2.0
                    d2 = u * u + v * v + w * w
                x, y, z = cx + r * u, cy + r * v, cz + r * w
            if x < low[0] or y < low[1] or z < low[2] or x > high[0] or y > high[1] or z > high[2]:
                continue
            i, j, k = int((x - low[0]) * inverse) + 2, int((y - low[1]) * inverse) + 2, int((z - low[2]) * inverse) + 2
            home = (i * ny + j) * nz + k
            if not _is_free(grid, points, offsets, home, x, y, z, r2):
                continue
            if inside_region(kind, numbers, keys, values, x, y, z):
                grid[home] = count
                points[count, 0], points[count, 1], points[count, 2] = x, y, z
                active[alive] = count
                count += 1
                alive += 1
                placed = True
        if placed:
            starts = 0
        elif slot >= 0:
            alive -= 1
            active[slot] = active[alive]
