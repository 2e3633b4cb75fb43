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
* Cells narrower than `finest` are not made, nor any of level 9: the loop of Y15 does not say where it ends.
* Cells of level 4 near which `open_cells` finds everything covered are closed from the start.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.algebra.random_bits import mixed
from mpm_nodes.kernels.cells.bins import Bins, Places
from mpm_nodes.kernels.compile.jit import compiled, inline, part, thread_count
from mpm_nodes.kernels.compile.lend import lend
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.physics.foam.kernels.coverage import corner_distances, distance_at, open_cells
from mpm_nodes.physics.foam.kernels.near_spheres import ROOM, ROW, choose_near, gather_around, listed, one_holds, pad

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


class _Cells(NamedTuple):
    """Active cells of a level, and those of the next that a sweep leaves, by open block.

    Attributes:
        start: Where the active cells of each block begin, and the end of the last.
        codes: Their codes.
        children: Codes of what stays active, eight places for each active cell.
        count: How many of a block do, at 1 + its number.
    """

    start: np.ndarray
    codes: np.ndarray
    children: np.ndarray
    count: np.ndarray


class _Sweep(NamedTuple):
    """What is the same in all cells of a sweep: level of the darts' cells, radius and depth [r], seed."""

    level: int
    radius: np.float32
    depth: np.float32
    seed: np.uint64


def throw_darts(
    bins: Bins, places: Places, distance: np.ndarray, *, radius: float, depth: float, seed: int, finest: float = 1.0 / 32.0
) -> Samples:
    """Return new samples that no sphere of `radius` [r] covers, new ones included, deeper than `depth` [r] inside.

    Args:
        bins: The particles.
        places: Their blocks.
        distance: What `interior_distance` gives.
        radius: Radius of the covering spheres [r], at most 1.
        depth: Least depth of a sample [r].
        seed: Seed of this call, a 64-bit integer.
        finest: Edge of the last cells that get a dart [r], a power of two from 1/32 to 1.
    """
    radius, depth = np.float32(radius), np.float32(depth)
    opened = open_cells(bins, places, distance, radius, depth, finest)
    tree = _planted(places, distance, opened)
    parity = (tree.coord & 1) @ np.array([4, 2, 1])
    colours = [np.flatnonzero(parity == colour) for colour in range(8)]
    start = np.arange(len(tree.slot) + 1)
    codes = np.zeros(len(tree.slot), np.int32)
    lists = np.empty((thread_count(), 2, 3 * ROW), np.float32)
    for level in range(min(LEVELS, 4 + round(-math.log2(finest)))):
        cells = _Cells(start, codes, np.empty(8 * len(codes), np.int32), np.zeros(len(start), np.int64))
        sweep = _Sweep(level, radius, depth, np.uint64(seed & (2**64 - 1)))
        for blocks in colours:
            _sweep(bins, tree, cells, sweep, blocks, lists)
        ends = np.cumsum(cells.count)
        kept = np.empty(int(ends[-1]), np.int32)
        _close_up(start, cells.children, ends, kept)
        start, codes = ends, kept
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
    return _Octree(
        slot,
        of_slot,
        places.coord[places.of_slot[slot]],
        corners,
        opened[slot] == 0,
        first,
        np.zeros(len(slot), np.int64),
        *(np.empty(room, np.float32) for _ in range(3)),
        np.full((len(slot), 512), -1, np.int32),
        np.empty(room, np.int32),
    )


def _gathered(tree: _Octree) -> Samples:
    at = np.concatenate([[0], np.cumsum(tree.accepted)])
    row = np.arange(at[-1]) + np.repeat(tree.first[:-1] - at[:-1], tree.accepted)
    return Samples(np.repeat(tree.slot, tree.accepted), np.stack([tree.x[row], tree.y[row], tree.z[row]], 1))


# ---------------------------------------------------------------- random numbers and places
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
@compiled
def _sweep(bins, tree, cells, sweep, blocks, lists):
    """Sweep over the children, of the sweep's level, of the active cells of some blocks; write those that stay active."""
    parallel_for(_sweep_share, lists.shape[0], (lists, blocks, lend(bins), lend(tree), lend(cells), sweep))


@part
def _sweep_share(share, lists, blocks, bins, tree, cells, sweep):
    for n in range(share, blocks.size, lists.shape[0]):  # in turns: neighbours have much the same to do
        w = blocks[n]
        cells.count[w + 1] = _sweep_block(w, bins, tree, cells, sweep, lists[share, 0], lists[share, 1])


@inline
def _sweep_block(w, bins, tree, cells, sweep, around, near):
    """Throw a dart into every child, of the sweep's level, of a block's active cells that may receive a sample; return how many do.

    `near` lists the centres whose spheres reach into the half cell `here` (a cell of level 4), chosen from `around`, those in the
    27 cells around the cell of level 3 called `home`.
    """
    level, radius, depth, seed = sweep.level, sweep.radius, sweep.depth, sweep.seed
    closed, corners, codes, children = tree.closed[w], tree.corners[w], cells.codes, cells.children
    begin, end = cells.start[w], cells.start[w + 1]
    width, square, half = np.float32(8.0 / (1 << level)), radius * radius, np.float32(4.0 / (1 << level))
    block = mixed(
        seed
        + (np.uint64(tree.coord[w, 0]) << np.uint64(42))
        + (np.uint64(tree.coord[w, 1]) << np.uint64(21))
        + np.uint64(tree.coord[w, 2])
    )
    kept, home, size, here, count, judged, whole = 8 * begin, -1, 0, -1, 0, -1, False
    for at in range(begin, end):
        low_x, low_y, low_z = _spread_bits(codes[at] >> 2), _spread_bits(codes[at] >> 1), _spread_bits(codes[at])
        for child in range(8 if level > 0 else 1):
            code = codes[at] * 8 + child
            x, y, z = (
                width * np.float32(2 * low_x + (child >> 2)),
                width * np.float32(2 * low_y + ((child >> 1) & 1)),
                width * np.float32(2 * low_z + (child & 1)),
            )
            cell = _half_cell(x, y, z)
            if closed[cell] if level >= 4 else not _holds_open(closed, code, level):
                continue
            if level >= 3:
                if _home_of(cell) != judged:
                    judged, whole = _home_of(cell), _is_deep(corners, int(x), int(y), int(z), depth)
                if not whole and not _reaches(corners, x, y, z, width, depth):
                    continue
            if level >= 4:
                if cell != here:
                    if _home_of(cell) != home:
                        home, size = _home_of(cell), gather_around(bins, tree, w, _home_of(cell), around)
                    here, count = cell, choose_near(around, size, cell, square, near)
                if count > ROOM or one_holds(near, count, x + half, y + half, z + half, half, square):
                    continue
            children[kept] = code
            kept += 1
            x, y, z = _dart(mixed(block + (np.uint64(level) << np.uint64(32)) + np.uint64(code)), x, y, z, width)
            cell = _half_cell(x, y, z)
            if closed[cell] or (not (whole and level >= 3) and not distance_at(corners, x, y, z) < -depth):
                continue
            if cell != here:
                if _home_of(cell) != home:
                    home, size = _home_of(cell), gather_around(bins, tree, w, _home_of(cell), around)
                here, count = cell, choose_near(around, size, cell, square, near)
            if count <= ROOM and not one_holds(near, count, x, y, z, np.float32(0.0), square):
                _accept(tree, w, x, y, z)
                size, count = listed(around, size, x, y, z), listed(near, count, x, y, z)
                pad(near, count)
    return kept - 8 * begin


@inline
def _dart(key, x, y, z, width):
    """Return a random point of the cell whose low corner is (x, y, z)."""
    second = mixed(key + np.uint64(0x9E3779B97F4A7C15))
    third = mixed(second + np.uint64(0x9E3779B97F4A7C15))
    return x + _fraction(key) * width, y + _fraction(second) * width, z + _fraction(third) * width


@inline
def _accept(tree, w, x, y, z):
    """Make a point of open block w a sample."""
    row, cell = tree.first[w] + tree.accepted[w], 64 * min(int(x), 7) + 8 * min(int(y), 7) + min(int(z), 7)
    tree.accepted[w] += 1
    tree.x[row], tree.y[row], tree.z[row] = x, y, z
    tree.after[row] = tree.head[w, cell]
    tree.head[w, cell] = row


@inline
def _home_of(half_cell):
    """Return the cell of level 3 that a cell of level 4 lies in, as the bins number it."""
    return ((half_cell >> 9) << 6) + (((half_cell >> 5) & 7) << 3) + ((half_cell >> 1) & 7)


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
def _is_deep(corners, i, j, k, depth):
    """Tell whether all of a cell of level 3 lies deeper than `depth`."""
    c = 81 * i + 9 * j + k
    return (
        max(
            max(max(corners[c], corners[c + 1]), max(corners[c + 9], corners[c + 10])),
            max(max(corners[c + 81], corners[c + 82]), max(corners[c + 90], corners[c + 91])),
        )
        < -depth
    )


@inline
def _reaches(corners, x, y, z, width, depth):
    """Tell whether a corner of a cell of level 3 or more lies deeper than `depth`."""
    i, j, k = int(x), int(y), int(z)
    c = 81 * i + 9 * j + k
    for corner in range(8):
        # of the cell of level 3 that holds it: on its far faces the distance is the same seen from either side
        fx, fy, fz = x - i + width * (corner >> 2), y - j + width * ((corner >> 1) & 1), z - k + width * (corner & 1)
        low = (1 - fy) * ((1 - fz) * corners[c] + fz * corners[c + 1]) + fy * ((1 - fz) * corners[c + 9] + fz * corners[c + 10])
        high = (1 - fy) * ((1 - fz) * corners[c + 81] + fz * corners[c + 82]) + fy * (
            (1 - fz) * corners[c + 90] + fz * corners[c + 91]
        )
        if (1 - fx) * low + fx * high < -depth:
            return True
    return False


@compiled
def _close_up(start, children, ends, kept):
    """Put the children of all blocks one after the other."""
    parallel_for(_close_up_at, start.size - 1, (start, children, ends, kept))


@part
def _close_up_at(w, start, children, ends, kept):
    for n in range(ends[w + 1] - ends[w]):
        kept[ends[w] + n] = children[8 * start[w] + n]
