"""Octree dart throwing: new samples where the inside of the matter is not covered (Y15 algorithm 3; Ebeida 2012).

| symbol | meaning | unit |
|---|---|---|
| r | radius of a particle's sphere, half a grid cell | unit of length |
| a | radius of the spheres that cover: alpha r, alpha = sqrt(3)/2 + 1/100 | r |
| depth | samples lie deeper inside than this | r |
| level | cells of level n are 8 / 2^n wide; level 0 is a block, level 3 the cells of the bins, level 8 the last one | - |
| code | Morton code of a cell inside its block | - |

A sweep throws one dart into every active cell of a level, in the order of their codes, blocks by the parity of their coordinates
(darts of blocks of equal parity cannot meet), and then replaces each cell by those of its children that may still receive a
sample. The random numbers are a hash of the seed, the block, the level and the code: the samples do not depend on the number of
threads. What differs from the printed algorithm, which need not end:

* The octree stands on the blocks that hold particles: no sample can lie anywhere else, since cells of an empty block have a corner
  outside.
* A cell goes where no corner is deeper than `depth`: the distance is trilinear inside the cells of level 3, so none of its points
  is. This contains the printed rule for cells away from the inside.
* Cells of level 9, narrower than r / 32, are not made.
* Cells of level 4 near which `open_cells` finds everything covered are closed from the start.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from mpm_nodes.kernels.jit import inline, kernel
from mpm_nodes.kernels.void_bins import Bins, Places, in_block
from mpm_nodes.kernels.void_coverage import corner_distances, distance_at, is_free, open_cells

LEVELS = 9
"""Levels 0 to 8: the last cells are r / 32 wide."""
MOST = 2
"""More samples than these cannot lie in a cell of edge r / 2, at least 0.7 r apart."""


class Samples(NamedTuple):
    """New samples by block, in the order in which they were accepted.

    Attributes:
        slot: Slot of each sample's block, int64.
        position: Position in that block [r], shape (n, 3), float32.
    """

    slot: np.ndarray
    position: np.ndarray


class _Octree(NamedTuple):
    """Open blocks of one call: those that may receive samples."""

    slot: np.ndarray
    of_slot: np.ndarray
    coord: np.ndarray
    corners: np.ndarray
    closed: np.ndarray
    first: np.ndarray
    accepted: np.ndarray
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    head: np.ndarray
    after: np.ndarray


def throw_darts(bins: Bins, places: Places, distance: np.ndarray, *, radius: float, depth: float, seed: int) -> Samples:
    """Return new samples that no sphere of `radius` [r] covers, new ones included, deeper than `depth` [r] inside.

    Args:
        bins: The particles.
        places: Their blocks.
        distance: What `interior_distance` gives.
        radius: Radius of the covering spheres [r], at most 1.
        depth: Least depth of a sample [r].
        seed: Seed of this call, a 64-bit integer.
    """
    radius, depth = np.float32(radius), np.float32(depth)
    opened = open_cells(bins, places, distance, radius, depth)
    tree = _planted(places, distance, opened)
    parity = (tree.coord & 1) @ np.array([4, 2, 1])
    colours = [np.flatnonzero(parity == colour) for colour in range(8)]
    start = np.arange(len(tree.slot) + 1)
    codes = np.zeros(len(tree.slot), np.int32)
    for level in range(LEVELS):
        if not len(codes):
            break
        for blocks in colours:
            _throw(bins, tree, blocks, start, codes, level, radius, depth, np.uint64(seed & (2**64 - 1)))
        if level + 1 < LEVELS:
            start, codes = _next_level(bins, tree, start, codes, level + 1, radius, depth)
    return _gathered(tree)


def _planted(places: Places, distance: np.ndarray, opened: np.ndarray) -> _Octree:
    """Return the blocks with open cells, without samples."""
    size = opened.sum(axis=1)
    slot = np.flatnonzero(size)
    of_slot = np.full(len(opened), -1, np.int32)
    of_slot[slot] = np.arange(len(slot))
    corners = np.empty((len(slot), 729), np.float32)
    corner_distances(places.near, places.of_slot, slot, distance, corners)
    first = np.concatenate([[0], np.cumsum(MOST * size[slot])]).astype(np.int64)
    room = int(first[-1])
    return _Octree(slot, of_slot, places.coord[places.of_slot[slot]], corners, opened[slot] == 0, first,
                   np.zeros(len(slot), np.int64), *(np.empty(room, np.float32) for _ in range(3)),
                   np.full((len(slot), 512), -1, np.int32), np.empty(room, np.int32))


def _next_level(bins, tree, start, codes, level, radius, depth):
    """Return the active cells of a level: start per block, codes."""
    children = np.empty(8 * len(codes), np.int32)
    count = np.zeros(len(start), np.int64)
    _split(bins, tree, start, codes, level, radius, depth, children, count)
    ends = np.cumsum(count)
    kept = np.empty(int(ends[-1]), np.int32)
    _close_up(start, children, ends, kept)
    return ends, kept


def _gathered(tree: _Octree) -> Samples:
    at = np.concatenate([[0], np.cumsum(tree.accepted)])
    row = np.arange(at[-1]) + np.repeat(tree.first[:-1] - at[:-1], tree.accepted)
    return Samples(np.repeat(tree.slot, tree.accepted), np.stack([tree.x[row], tree.y[row], tree.z[row]], 1))


# ---------------------------------------------------------------- random numbers and places
@inline
def _mixed(z):
    """Return a 64-bit integer whose bits all depend on those of z (SplitMix64's finaliser)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inline
def _fraction(key):
    """Return 21 random bits as a number in (0, 1): never on the face of a cell."""
    return (np.float32(key >> np.uint64(43)) + np.float32(0.5)) * np.float32(1.0 / 2097152.0)


@inline
def _spread_bits(code):
    """Return every third bit of a Morton code, packed: the last of the three coordinates."""
    x = code & 0x9249249
    x = (x | (x >> 2)) & 0x30C30C3
    x = (x | (x >> 4)) & 0x300F00F
    x = (x | (x >> 8)) & 0x30000FF
    return (x | (x >> 16)) & 0x3FF


# ---------------------------------------------------------------- a sweep
@kernel(parallel=True)
def _throw(bins, tree, blocks, start, codes, level, radius, depth, seed):
    """Throw a dart into every active cell of some blocks and keep those that meet the inside, uncovered."""
    for n in prange(blocks.size):
        # a function of its own: numba loses writes through a tuple's arrays in the body of a parallel loop
        _throw_into(bins, tree, blocks[n], start, codes, level, radius, depth, seed)


@inline
def _throw_into(bins, tree, w, start, codes, level, radius, depth, seed):
    width = np.float32(8.0 / (1 << level))
    square = radius * radius
    block = _mixed(seed + (np.uint64(tree.coord[w, 0]) << np.uint64(42)) + (np.uint64(tree.coord[w, 1]) << np.uint64(21))
                   + np.uint64(tree.coord[w, 2]))
    for at in range(start[w], start[w + 1]):
        code = codes[at]
        key = _mixed(block + (np.uint64(level) << np.uint64(32)) + np.uint64(code))
        x = (np.float32(_spread_bits(code >> 2)) + _fraction(key)) * width
        key = _mixed(key + np.uint64(0x9E3779B97F4A7C15))
        y = (np.float32(_spread_bits(code >> 1)) + _fraction(key)) * width
        key = _mixed(key + np.uint64(0x9E3779B97F4A7C15))
        z = (np.float32(_spread_bits(code)) + _fraction(key)) * width
        i, j, k = min(int(x), 7), min(int(y), 7), min(int(z), 7)
        if tree.closed[w, _half_cell(x, y, z)] or not distance_at(tree.corners[w], x, y, z) < -depth:
            continue
        if is_free(bins, tree.slot[w], i, j, k, x, y, z, square) and _is_free_of_new(bins, tree, w, i, j, k, x, y, z, square):
            row = tree.first[w] + tree.accepted[w]
            tree.accepted[w] += 1
            tree.x[row], tree.y[row], tree.z[row] = x, y, z
            tree.after[row] = tree.head[w, 64 * i + 8 * j + k]
            tree.head[w, 64 * i + 8 * j + k] = row


@inline
def _is_free_of_new(bins, tree, w, i, j, k, x, y, z, square):
    """Tell whether no sample accepted so far covers (x, y, z) in cell (i, j, k) of open block w."""
    for a in range(i - 1, i + 2):
        for b in range(j - 1, j + 2):
            for c in range(k - 1, k + 2):
                n, cell = in_block(a, b, c)
                slot = bins.near[tree.slot[w], n]
                v = tree.of_slot[slot] if slot >= 0 else -1
                row = tree.head[v, cell] if v >= 0 else -1
                while row >= 0:
                    dx = tree.x[row] - x + np.float32(a - (a & 7))
                    dy = tree.y[row] - y + np.float32(b - (b & 7))
                    dz = tree.z[row] - z + np.float32(c - (c & 7))
                    if dx * dx + dy * dy + dz * dz < square:
                        return False
                    row = tree.after[row]
    return True


@kernel(parallel=True)
def _split(bins, tree, start, codes, level, radius, depth, children, count):
    """Write the children, of `level`, of each active cell that may still receive a sample."""
    width = np.float32(8.0 / (1 << level))
    for w in prange(start.size - 1):
        kept = 0
        for at in range(start[w], start[w + 1]):
            for child in range(8):
                code = codes[at] * 8 + child
                x = np.float32(_spread_bits(code >> 2)) * width
                y = np.float32(_spread_bits(code >> 1)) * width
                z = np.float32(_spread_bits(code)) * width
                keep = not tree.closed[w, _half_cell(x, y, z)] if level >= 4 else _holds_open(tree.closed[w], code, level)
                if keep and level >= 3:
                    keep = (_reaches(tree.corners[w], x, y, z, width, depth)
                            and not _is_inside_one(bins, tree, w, x, y, z, width, radius))
                if keep:
                    children[8 * start[w] + kept] = code
                    kept += 1
        count[w + 1] = kept


@inline
def _half_cell(x, y, z):
    """Return the number of the cell of level 4 that holds a point."""
    two = np.float32(2.0)
    return (min(int(two * x), 15) << 8) + (min(int(two * y), 15) << 4) + min(int(two * z), 15)


@inline
def _holds_open(closed, code, level):
    """Tell whether a cell of level 3 or less contains one of level 4 that is open."""
    size = 16 >> level
    x, y, z = _spread_bits(code >> 2) * size, _spread_bits(code >> 1) * size, _spread_bits(code) * size
    for i in range(x, x + size):
        for j in range(y, y + size):
            for k in range(z, z + size):
                if not closed[(i << 8) + (j << 4) + k]:
                    return True
    return False


@inline
def _reaches(corners, x, y, z, width, depth):
    """Tell whether a corner of a cell lies deeper than `depth`."""
    i, j, k = int(x), int(y), int(z)
    for corner in range(8):
        # of the cell of level 3 that holds it: on its far faces the distance is the same seen from either side
        fx, fy, fz = x - i + width * (corner >> 2), y - j + width * ((corner >> 1) & 1), z - k + width * (corner & 1)
        c = 81 * i + 9 * j + k
        low = ((1 - fy) * ((1 - fz) * corners[c] + fz * corners[c + 1]) + fy * ((1 - fz) * corners[c + 9] + fz * corners[c + 10]))
        high = ((1 - fy) * ((1 - fz) * corners[c + 81] + fz * corners[c + 82])
                + fy * ((1 - fz) * corners[c + 90] + fz * corners[c + 91]))
        if (1 - fx) * low + fx * high < -depth:
            return True
    return False


@inline
def _is_inside_one(bins, tree, w, x, y, z, width, radius):
    """Tell whether one covering sphere, of a particle or a new sample, holds all corners of a cell of level 3 or more."""
    half = np.float32(0.5) * width
    x, y, z = x + half, y + half, z + half
    square, reach = radius * radius, radius - half
    for a in range(int(np.floor(x - reach)), int(np.floor(x + reach)) + 1):
        for b in range(int(np.floor(y - reach)), int(np.floor(y + reach)) + 1):
            for c in range(int(np.floor(z - reach)), int(np.floor(z + reach)) + 1):
                n, cell = in_block(a, b, c)
                slot = bins.near[tree.slot[w], n]
                if slot < 0:
                    continue
                px, py, pz = x - np.float32(a - (a & 7)), y - np.float32(b - (b & 7)), z - np.float32(c - (c & 7))
                for row in range(bins.start[512 * slot + cell], bins.start[512 * slot + cell + 1]):
                    dx, dy, dz = abs(bins.x[row] - px) + half, abs(bins.y[row] - py) + half, abs(bins.z[row] - pz) + half
                    if dx * dx + dy * dy + dz * dz < square:
                        return True
                v = tree.of_slot[slot]
                row = tree.head[v, cell] if v >= 0 else -1
                while row >= 0:
                    dx, dy, dz = abs(tree.x[row] - px) + half, abs(tree.y[row] - py) + half, abs(tree.z[row] - pz) + half
                    if dx * dx + dy * dy + dz * dz < square:
                        return True
                    row = tree.after[row]
    return False


@kernel
def _close_up(start, children, ends, kept):
    for w in range(start.size - 1):
        for n in range(ends[w + 1] - ends[w]):
            kept[ends[w] + n] = children[8 * start[w] + n]
