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

from mpm_nodes.kernels.algebra.random_bits import mixed
from mpm_nodes.kernels.compile.jit import compiled, inline
from mpm_nodes.kernels.level_sets.regions import LEAF, LEVEL_SET, Region, inside_region, leaf_boxes, unpack_keys

START_TRIES = 1000
"""Places in the region's box where growth may start again."""
LEAF_TRIES = 4
"""More of them in each leaf of a level set."""
_MARGIN = 4
"""Background cells around the box: no stencil is cut."""
SAMPLES_PER_CUBE = 0.65
"""N r^3 / V at k = 30 (measured for a box of side 9 r; a little less for larger ones)."""
_DENSEST = 1.4143
"""N r^3 / V of the densest packing of spheres: the upper bound that sizes the arrays."""


def background_bytes(region: Region, distance: float) -> int:
    """Return an upper bound of the memory [bytes] that sampling takes: background cells, samples, active list."""
    total = 0.0
    for low, high in _boxes(region, distance):
        total += 4.0 * np.prod((high - low) * np.sqrt(3.0) / distance + 2.0 * _MARGIN + 2.0)
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
    found = [_sample_box(region, low, high, r, tries, seed + 7919 * n) for n, (low, high) in enumerate(_boxes(region, distance))]
    return np.concatenate(found) if found else np.zeros((0, 3))


def _sample_box(region: Region, low: np.ndarray, high: np.ndarray, r: float, tries: int, seed: int) -> np.ndarray:
    a = r / np.sqrt(3.0)
    cells = np.ceil((high - low) / a).astype(np.int64) + 2 * _MARGIN + 1
    capacity = int(_DENSEST * np.prod(high - low + r) / r**3) + 16
    grid = np.full(int(np.prod(cells)), -1, np.int32)
    points = np.empty((capacity, 3))
    active = np.empty(capacity, np.int32)
    shape = (region.kind, region.numbers, region.keys, region.values)
    near, wide = _neighbours(cells, 2), _neighbours(cells, 4)
    starts, state = _starts(region, low, high, seed), np.uint64(seed & (2**64 - 1))
    count = _bridson(shape, starts, (low, high), (r, a, tries), state, (cells, near, wide, grid), (points, active))
    return points[:count].copy()


def _starts(region: Region, low: np.ndarray, high: np.ndarray, seed: int) -> np.ndarray:
    """Return places where growth may start: random ones in the box, or in every leaf of a level set that lies there.

    Those of a level set end with the deepest voxel of each leaf, so that a body too thin to be met by chance gets a point, too.
    """
    random = np.random.default_rng([seed & (2**64 - 1), 2])
    if region.kind != LEVEL_SET:
        return random.uniform(low, high, (START_TRIES, 3))
    corner, far = _wet_leaves(region)
    mine = ((corner < high) & (far > low)).all(axis=1)
    corner, far, deepest = corner[mine], far[mine], _deepest_voxels(region)[mine]
    leaf = np.tile(np.arange(len(corner)), -(-START_TRIES // len(corner)) + LEAF_TRIES)
    places = corner[leaf] + random.random((len(leaf), 3)) * (far - corner)[leaf]
    return np.clip(np.concatenate([places, deepest]), low, high)


def _neighbours(cells: np.ndarray, reach: int) -> np.ndarray:
    """Return flat offsets of the background cells that can hold a sample within reach / 2 times r, nearest first.

    The corners of the block are at least that far away and are left out.
    """
    steps = np.stack(np.meshgrid(*[np.arange(-reach, reach + 1)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    steps = steps[np.abs(steps).min(axis=1) < reach]
    steps = steps[np.argsort((steps**2).sum(axis=1), kind="stable")]
    return (steps[:, 0] * cells[1] + steps[:, 1]) * cells[2] + steps[:, 2]


def _boxes(region: Region, distance: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return disjoint boxes, further than `distance` apart, that cover the region: one per separate group of leaves."""
    if region.kind != LEVEL_SET:
        return [(region.low, region.high)]
    low, high = _wet_leaves(region)
    boxes = _merge_boxes(low, high, distance)
    return [(np.maximum(a, region.low), np.minimum(b, region.high)) for a, b in boxes]


def _wet_leaves(region: Region) -> tuple[np.ndarray, np.ndarray]:
    """Return boxes [m] around the leaves that hold a part of the inside."""
    return leaf_boxes(region.keys[_wet(region)], _from_index(region))


def _deepest_voxels(region: Region) -> np.ndarray:
    """Return where each of those leaves is most negative [m], shape (leaves, 3)."""
    wet, transform = _wet(region), _from_index(region)
    values = region.values[wet]
    voxel = np.stack(np.unravel_index(values.reshape(len(values), -1).argmin(axis=1), values.shape[1:]), axis=1)
    return (LEAF * unpack_keys(region.keys[wet]) + voxel) @ transform[:3, :3].T + transform[:3, 3]


def _wet(region: Region) -> np.ndarray:
    return (region.values < 0.0).any(axis=(1, 2, 3))


def _from_index(region: Region) -> np.ndarray:
    """Return the transform from voxel indices to the region's frame, shape (4, 4)."""
    return np.linalg.inv(np.vstack([region.numbers[:12].reshape(3, 4), [0.0, 0.0, 0.0, 1.0]]))


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
    return state, float(mixed(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


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


@inline
def _in_shell(state, r):
    """Return the next state and a vector of length r to 2 r, uniform in that shell (by rejection from its cube)."""
    u, v, w, square = 0.0, 0.0, 0.0, 0.0
    while square < 1.0 or square >= 4.0:
        state, u = _random(state)
        state, v = _random(state)
        state, w = _random(state)
        u, v, w = 4.0 * u - 2.0, 4.0 * v - 2.0, 4.0 * w - 2.0
        square = u * u + v * v + w * w
    return state, r * u, r * v, r * w


@inline
def _home(low, inverse, cells, x, y, z):
    """Return the flat background cell of a point in the box."""
    i, j = int((x - low[0]) * inverse) + _MARGIN, int((y - low[1]) * inverse) + _MARGIN
    return (i * cells[1] + j) * cells[2] + int((z - low[2]) * inverse) + _MARGIN


@compiled(fastmath=False)
def _bridson(shape, starts, box, lengths, state, background, filled):
    """Fill the points and return how many there are."""
    (kind, numbers, keys, values), (low, high), (r, a, tries) = shape, box, lengths
    (cells, near, wide, grid), (points, active) = background, filled
    inverse, count = 1.0 / a, 0
    for s in range(len(starts)):
        x, y, z = starts[s, 0], starts[s, 1], starts[s, 2]
        home = _home(low, inverse, cells, x, y, z)
        # Growth cannot leave a gap of 2 r unfilled: a start that far from all samples lies in a component of its own.
        if not _is_free(grid, points, wide, home, x, y, z, 4.0 * r * r):
            continue
        if not inside_region(kind, numbers, keys, values, x, y, z):
            continue
        grid[home], active[0], alive = count, count, 1
        points[count, 0], points[count, 1], points[count, 2] = x, y, z
        count += 1
        while alive > 0:
            state, u = _random(state)
            slot = min(int(u * alive), alive - 1)
            centre, left = active[slot], tries
            while left > 0:
                state, u, v, w = _in_shell(state, r)
                x, y, z = points[centre, 0] + u, points[centre, 1] + v, points[centre, 2] + w
                left -= 1
                if x < low[0] or y < low[1] or z < low[2] or x > high[0] or y > high[1] or z > high[2]:
                    continue
                home = _home(low, inverse, cells, x, y, z)
                if not _is_free(grid, points, near, home, x, y, z, r * r):
                    continue
                if inside_region(kind, numbers, keys, values, x, y, z):
                    grid[home], active[alive] = count, count
                    points[count, 0], points[count, 1], points[count, 2] = x, y, z
                    count += 1
                    alive += 1
                    left = -1
            if left == 0:
                alive -= 1
                active[slot] = active[alive]
    return count
