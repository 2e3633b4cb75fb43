"""Filters on sparse level sets in leaves of 8^3 voxels: redistancing and smoothing, leaf by leaf.

| symbol | meaning                                                        | unit |
|--------|----------------------------------------------------------------|------|
| phi    | signed distance, negative inside                               | m    |
| dx     | voxel size                                                     | m    |
| block  | the rows of a leaf and those that touch them, 10 x 10 x 8 values | m    |

Every pass reads one array and writes another, so results do not depend on the order of leaves or threads.
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.lanes.arithmetic import absolute, broadcast, const, copysign, fma, maximum, minimum, select, sqrt
from mpm_nodes.kernels.lanes.memory import lane_constant, load, load8, store
from mpm_nodes.kernels.lanes.types import WIDTH
from mpm_nodes.kernels.level_sets.regions import find_leaf, sorted_leaves, unpack_keys

LEAF = 8
_ROWS = LEAF + 2
_LANE = lane_constant(range(WIDTH))


def leaf_neighbours(keys: np.ndarray, origins: np.ndarray) -> np.ndarray:
    """Return the rows of the 27 leaves around each leaf (-1: none), shape (leaves, 27), int32. Keys: rising."""
    return _neighbours(keys, np.ascontiguousarray(origins, np.int32))


def sort_leaves(origins: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return keys, origins and values of leaves in rising order of their keys."""
    keys, ordered = sorted_leaves(origins, values)
    return keys, unpack_keys(keys) * LEAF, ordered


def redistance(values: np.ndarray, neighbours: np.ndarray, voxel_size: float, band: float) -> np.ndarray:
    """Return a signed distance with the same zero set, clamped to +-band [m].

    Voxels beside the surface keep the distance to the planes cut through their edges, so that it stays where it was;
    the others follow from the upwind eikonal equation (Zhao 2005), iterated until the band is filled.

    Args:
        values: Any function with the wanted sign [m], shape (leaves, 8, 8, 8), float32.
        neighbours: From `leaf_neighbours`.
        voxel_size: [m].
        band: Half width of the narrow band [m]; missing leaves count as +band.
    """
    start, held = _cut_distance(values, neighbours, voxel_size, band)
    steps = int(np.ceil(band / voxel_size)) + 2
    rows = _around(held.any(axis=(1, 2, 3)), neighbours) if steps <= LEAF else np.arange(len(values))
    other = start.copy()  # leaves beyond the band stay as they are
    sizes = np.float32(voxel_size), np.float32(band)
    for _ in range(steps):
        _eikonal(start.reshape(-1), held.reshape(-1), neighbours, sizes, rows, other.reshape(-1))
        start, other = other, start
    return start


def smooth(values: np.ndarray, neighbours: np.ndarray, background: float, iterations: int, step: int = 1) -> np.ndarray:
    """Return the field after pairs of smoothing and unsmoothing steps, which keep the volume (Taubin 1995).

    Args:
        values: Shape (leaves, 8, 8, 8), float32.
        neighbours: From `leaf_neighbours`.
        background: Value of missing leaves.
        iterations: Pairs of steps.
        step: Voxels from a voxel to those that it is averaged with, 1 to 8: waves of three to five steps go soonest.
    """
    varying = (values.min(axis=(1, 2, 3)) < values.max(axis=(1, 2, 3))) | (neighbours[:, 13] < 0)
    rows = _around(varying, neighbours)
    values, other = values.copy(), values.copy()  # where nothing varies nothing changes
    for _ in range(iterations):
        _relax(values, neighbours, background, 0.60, step, rows, other)
        _relax(other, neighbours, background, -0.62, step, rows, values)
    return values


def _around(chosen: np.ndarray, neighbours: np.ndarray) -> np.ndarray:
    """Return the rows of chosen leaves and of those beside them."""
    return np.flatnonzero((chosen[neighbours] & (neighbours >= 0)).any(axis=1))


def dilate(values: np.ndarray, filled: np.ndarray, neighbours: np.ndarray, steps: int) -> np.ndarray:
    """Return values with empty voxels around filled ones set to the mean of those, layer by layer.

    Args:
        values: Shape (leaves, 8, 8, 8, m), float32.
        filled: Which voxels hold a value, shape (leaves, 8, 8, 8).
        neighbours: From `leaf_neighbours`.
        steps: Layers of voxels to add.
    """
    for _ in range(steps):
        values, filled = _dilate(values, filled, neighbours)
    return values


@part
def _neighbours_of(leaf, keys, origins, rows):
    for n in range(27):
        i = origins[leaf, 0] + LEAF * (n // 9 - 1)
        j = origins[leaf, 1] + LEAF * ((n // 3) % 3 - 1)
        k = origins[leaf, 2] + LEAF * (n % 3 - 1)
        rows[leaf, n] = find_leaf(keys, np.int64(i), np.int64(j), np.int64(k))


@compiled
def _neighbours(keys, origins):
    rows = np.empty((len(origins), 27), np.int32)
    parallel_for(_neighbours_of, len(origins), (keys, origins, rows))
    return rows


@part
def _cut_distance_at(leaf, values, neighbours, dx, band, result, held):
    block = np.empty(_ROWS * _ROWS * LEAF, np.float32)
    below, above = np.empty(LEAF * LEAF, np.float32), np.empty(LEAF * LEAF, np.float32)
    _load_rows(values, neighbours, leaf, band, block, below, above)
    like = load(block, 0)
    size, beyond, none = broadcast(like, dx), broadcast(like, band), const(like, 0.0)
    for row in range(0, LEAF * LEAF, 2):
        at = ((row // LEAF + 1) * _ROWS + row % LEAF + 1) * LEAF
        here = load(block, at)
        low, high = _along(block, at, row, below, above)
        x = _cut(here, load(block, at - _ROWS * LEAF), load(block, at + _ROWS * LEAF))
        y = _cut(here, load(block, at - LEAF), load(block, at + LEAF))
        z = _cut(here, low, high)
        total = fma(x, x, fma(y, y, z * z))
        cut = total > none
        # no cut is further than a voxel, also where rounding makes a difference of nothing
        distance = select(cut, minimum(size / sqrt(total), size), beyond)
        voxel = np.int64(leaf) * LEAF * LEAF * LEAF + row * LEAF
        store(held, voxel, select(cut, distance, none))
        store(result, voxel, select(here < none, -distance, distance))


@compiled
def _cut_distance(values, neighbours, dx, band):
    """Return distances beside the surface (+-band elsewhere), and their sizes beside the surface (0 elsewhere)."""
    result = np.empty(values.shape, np.float32)
    held = np.empty(values.shape, np.float32)
    flat, band = values.reshape(-1), np.float32(band)
    parallel_for(_cut_distance_at, len(values), (flat, neighbours, np.float32(dx), band, result.reshape(-1), held.reshape(-1)))
    return result, held


@inline
def _cut(here, below, above):
    """Return 1 / t of the nearer cut of the axis, t in voxels and at least 1e-4; 0 when the sign does not change."""
    none = const(here, 0.0)
    inside = here < none
    apart = maximum(
        select((below < none) != inside, absolute(here - below), none),
        select((above < none) != inside, absolute(here - above), none),
    )
    return minimum(apart / maximum(absolute(here), const(here, 1e-30)), const(here, 1e4))


@part
def _eikonal_at(place, values, held, neighbours, sizes, rows, result):
    leaf, (dx, band) = rows[place], sizes
    block = np.empty(_ROWS * _ROWS * LEAF, np.float32)
    below, above = np.empty(LEAF * LEAF, np.float32), np.empty(LEAF * LEAF, np.float32)
    _load_rows(values, neighbours, leaf, band, block, below, above)
    like = load(block, 0)
    size, limit = broadcast(like, dx), broadcast(like, band)
    for row in range(0, LEAF * LEAF, 2):
        at = ((row // LEAF + 1) * _ROWS + row % LEAF + 1) * LEAF
        here = load(block, at)
        x = minimum(absolute(load(block, at - _ROWS * LEAF)), absolute(load(block, at + _ROWS * LEAF)))
        y = minimum(absolute(load(block, at - LEAF)), absolute(load(block, at + LEAF)))
        low, high = _along(block, at, row, below, above)
        found = _upwind(x, y, minimum(absolute(low), absolute(high)), size)
        voxel = np.int64(leaf) * LEAF * LEAF * LEAF + row * LEAF
        distance = maximum(minimum(found, minimum(absolute(here), limit)), load(held, voxel))
        store(result, voxel, copysign(distance, here))


@inline
def _load_rows(values, neighbours, leaf, background, block, below, above):
    """Copy a leaf and the rows that touch it into `block`, shape (10, 10, 8), and what touches the ends of its rows; all flat."""
    voxels = LEAF * LEAF * LEAF
    start = np.int64(leaf) * voxels
    for i in range(LEAF):
        for j in range(0, LEAF, 2):
            store(block, ((i + 1) * _ROWS + j + 1) * LEAF, load(values, start + (i * LEAF + j) * LEAF))
    for side in range(2):
        end, place = LEAF - 1 if side == 0 else 0, 0 if side == 0 else LEAF + 1
        x, y, z = neighbours[leaf, 4 + 18 * side], neighbours[leaf, 10 + 6 * side], neighbours[leaf, 12 + 2 * side]
        for a in range(LEAF):
            store(block, (place * _ROWS + a + 1) * LEAF, _row_of(values, x, end * LEAF + a, background))
            store(block, ((a + 1) * _ROWS + place) * LEAF, _row_of(values, y, a * LEAF + end, background))
        ends, beyond = below if side == 0 else above, np.int64(z) * voxels + end
        for row in range(LEAF * LEAF):
            ends[row] = background if z < 0 else values[beyond + row * LEAF]


@inline
def _row_of(values, leaf, row, background):
    """Return one row of voxels of a leaf, `background` where there is no leaf."""
    none = broadcast(load8(values, 0), background)
    return none if leaf < 0 else load8(values, (np.int64(leaf) * LEAF * LEAF + row) * LEAF)


@inline
def _along(block, at, row, below, above):
    """Return what lies before and after the voxels of two rows, along them; where a row begins and ends, another leaf may lie."""
    like = load(block, at)
    lanes = _LANE(like)
    low, high = load(block, at - 1), load(block, at + 1)
    low = select(lanes == const(like, 0), broadcast(like, below[row]), low)
    low = select(lanes == const(like, LEAF), broadcast(like, below[row + 1]), low)
    high = select(lanes == const(like, LEAF - 1), broadcast(like, above[row]), high)
    return low, select(lanes == const(like, WIDTH - 1), broadcast(like, above[row + 1]), high)


@compiled
def _eikonal(values, held, neighbours, sizes, rows, result):
    parallel_for(_eikonal_at, len(rows), (values, held, neighbours, sizes, rows, result))


@inline
def _upwind(a, b, c, dx):
    """Solve |grad phi| = 1 from the nearest values a, b, c along the axes."""
    none = const(a, 0.0)
    low, high = minimum(a, minimum(b, c)), maximum(a, maximum(b, c))
    middle = maximum(minimum(a, b), minimum(maximum(a, b), c))
    # measured from the lowest, so that single precision suffices
    apart, far, square = middle - low, high - low, dx * dx
    one = low + dx
    two = low + const(a, 0.5) * (apart + sqrt(maximum(square + square - apart * apart, none)))
    total = apart + far
    left = total * total - const(a, 3.0) * (apart * apart + far * far - square)
    three = low + const(a, 1.0 / 3.0) * (total + sqrt(maximum(left, none)))
    return select(one > middle, select(two > high, three, two), one)


@part
def _relax_at(place, values, neighbours, background, amounts, step, rows, result):
    leaf, (keep, share) = rows[place], amounts
    lines = np.empty(LEAF * LEAF * 3 * LEAF, np.float32)
    for row in range(LEAF * LEAF):
        for beside in range(3):
            store(lines, (3 * row + beside) * LEAF, _row_of(values, neighbours[leaf, 12 + beside], row, background))
    like = load8(lines, 0)
    kept, shared = broadcast(like, keep), broadcast(like, share)
    for row in range(LEAF * LEAF):
        i, j, line = row // LEAF, row % LEAF, (3 * row + 1) * LEAF
        around = _stepped(values, neighbours, leaf, (i - step, j), background)
        around = around + _stepped(values, neighbours, leaf, (i + step, j), background)
        around = around + _stepped(values, neighbours, leaf, (i, j - step), background)
        around = around + _stepped(values, neighbours, leaf, (i, j + step), background)
        around = around + load8(lines, line - step) + load8(lines, line + step)
        store(result, (np.int64(leaf) * LEAF * LEAF + row) * LEAF, kept * load8(lines, line) + shared * around)


@inline
def _stepped(values, neighbours, leaf, row, background):
    """Return row (i, j) of a leaf, or of the one before or after it: i and j are within -8 .. 15."""
    i, j = row
    return _row_of(values, neighbours[leaf, 13 + 9 * (i >> 3) + 3 * (j >> 3)], (i & 7) * LEAF + (j & 7), background)


@compiled
def _relax(values, neighbours, background, amount, step, rows, result):
    amounts = np.float32(1.0 - amount), np.float32(amount / 6.0)
    flat = values.reshape(-1)
    parallel_for(_relax_at, len(rows), (flat, neighbours, np.float32(background), amounts, step, rows, result.reshape(-1)))


@part
def _dilate_at(leaf, values, filled, neighbours, result, covered):
    for i in range(LEAF):
        for j in range(LEAF):
            for k in range(LEAF):
                if filled[leaf, i, j, k]:
                    continue
                count = 0
                for n in range(27):
                    a, b, c = i + n // 9 - 1, j + (n // 3) % 3 - 1, k + n % 3 - 1
                    row = neighbours[leaf, (((a + LEAF) >> 3) * 3 + ((b + LEAF) >> 3)) * 3 + ((c + LEAF) >> 3)]
                    if row >= 0 and filled[row, a & 7, b & 7, c & 7]:
                        count += 1
                        for m in range(values.shape[4]):
                            result[leaf, i, j, k, m] += values[row, a & 7, b & 7, c & 7, m]
                if count > 0:
                    covered[leaf, i, j, k] = True
                    for m in range(values.shape[4]):
                        result[leaf, i, j, k, m] = result[leaf, i, j, k, m] / np.float32(count)


@compiled
def _dilate(values, filled, neighbours):
    result, covered = values.copy(), filled.copy()
    parallel_for(_dilate_at, len(values), (values, filled, neighbours, result, covered))
    return result, covered
