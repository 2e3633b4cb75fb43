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

from mpm_nodes.kernels.jit import inline, kernel, part, thread_count
from mpm_nodes.kernels.lane_memory import load, store
from mpm_nodes.kernels.lane_types import WIDTH
from mpm_nodes.kernels.lanes import absolute, any_lane, broadcast
from mpm_nodes.kernels.lend import lend
from mpm_nodes.kernels.parallel import parallel_for
from mpm_nodes.kernels.void_bins import Bins, Places, in_block
from mpm_nodes.kernels.void_coverage import corner_distances, distance_at, open_cells

LEVELS = 9
"""Levels 0 to 8: the last cells are r / 32 wide."""
MOST = 2
"""More samples than these cannot lie in a cell of edge r / 2, at least 0.7 r apart."""
ROOM, ROW = 1024, 1024 + WIDTH
"""Spheres that reach into a cell of edge r / 2, many times what a uniform filling has; where there are more, there is no gap."""


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


def throw_darts(bins: Bins, places: Places, distance: np.ndarray, *, radius: float, depth: float, seed: int,
                finest: float = 1.0 / 32.0) -> Samples:
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
        children, count = np.empty(8 * len(codes), np.int32), np.zeros(len(start), np.int64)
        for blocks in colours:
            _sweep(bins, tree, blocks, start, codes, level, radius, depth, np.uint64(seed & (2**64 - 1)), children, count,
                   lists)
        ends = np.cumsum(count)
        kept = np.empty(int(ends[-1]), np.int32)
        _close_up(start, children, ends, kept)
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
    return _Octree(slot, of_slot, places.coord[places.of_slot[slot]], corners, opened[slot] == 0, first,
                   np.zeros(len(slot), np.int64), *(np.empty(room, np.float32) for _ in range(3)),
                   np.full((len(slot), 512), -1, np.int32), np.empty(room, np.int32))


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
@kernel
def _sweep(bins, tree, blocks, start, codes, level, radius, depth, seed, children, count, lists):
    """Sweep over the children, of `level`, of the active cells of some blocks; write those that stay active."""
    parallel_for(_sweep_share, lists.shape[0],
                 (lists, blocks, lend(bins), lend(tree), start, codes, level, radius, depth, seed, children, count))


@part
def _sweep_share(share, lists, blocks, bins, tree, start, codes, level, radius, depth, seed, children, count):
    for n in range(share, blocks.size, lists.shape[0]):  # in turns: neighbours have much the same to do
        w = blocks[n]
        count[w + 1] = _sweep_block(w, bins, tree, tree.closed[w], tree.corners[w], start[w], start[w + 1], codes, level, radius,
                                    depth, seed, children, lists[share, 0], lists[share, 1])


@inline
def _sweep_block(w, bins, tree, closed, corners, begin, end, codes, level, radius, depth, seed, children, around, near):
    """Throw a dart into every child, of `level`, of a block's active cells that may receive a sample; return how many do.

    `near` lists the centres whose spheres reach into the half cell `here` (a cell of level 4), chosen from `around`, those in the
    27 cells around the cell of level 3 called `home`.
    """
    width, square, half = np.float32(8.0 / (1 << level)), radius * radius, np.float32(4.0 / (1 << level))
    block = _mixed(seed + (np.uint64(tree.coord[w, 0]) << np.uint64(42)) + (np.uint64(tree.coord[w, 1]) << np.uint64(21))
                   + np.uint64(tree.coord[w, 2]))
    kept, home, size, here, count, judged, whole = 8 * begin, -1, 0, -1, 0, -1, False
    for at in range(begin, end):
        low_x, low_y, low_z = _spread_bits(codes[at] >> 2), _spread_bits(codes[at] >> 1), _spread_bits(codes[at])
        for child in range(8 if level > 0 else 1):
            code = codes[at] * 8 + child
            x, y, z = (width * np.float32(2 * low_x + (child >> 2)), width * np.float32(2 * low_y + ((child >> 1) & 1)),
                       width * np.float32(2 * low_z + (child & 1)))
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
                        home, size = _home_of(cell), _gather_around(bins, tree, w, _home_of(cell), around)
                    here, count = cell, _choose_near(around, size, cell, square, near)
                if count > ROOM or _one_holds(near, count, x + half, y + half, z + half, half, square):
                    continue
            children[kept] = code
            kept += 1
            x, y, z = _dart(_mixed(block + (np.uint64(level) << np.uint64(32)) + np.uint64(code)), x, y, z, width)
            cell = _half_cell(x, y, z)
            if closed[cell] or (not (whole and level >= 3) and not distance_at(corners, x, y, z) < -depth):
                continue
            if cell != here:
                if _home_of(cell) != home:
                    home, size = _home_of(cell), _gather_around(bins, tree, w, _home_of(cell), around)
                here, count = cell, _choose_near(around, size, cell, square, near)
            if count <= ROOM and not _one_holds(near, count, x, y, z, np.float32(0.0), square):
                _accept(tree, w, x, y, z)
                size, count = _listed(around, size, x, y, z), _listed(near, count, x, y, z)
                _pad(near, count)
    return kept - 8 * begin


@inline
def _dart(key, x, y, z, width):
    """Return a random point of the cell whose low corner is (x, y, z)."""
    second = _mixed(key + np.uint64(0x9E3779B97F4A7C15))
    third = _mixed(second + np.uint64(0x9E3779B97F4A7C15))
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
def _choose_near(around, size, half_cell, square, near):
    """List those of the centres around whose spheres reach into a cell of level 4; return how many, or ROOM + 1."""
    if size > ROOM:
        return size
    quarter = np.float32(0.25)
    x = np.float32(0.5) * np.float32(half_cell >> 8) + quarter
    y = np.float32(0.5) * np.float32((half_cell >> 4) & 15) + quarter
    z = np.float32(0.5) * np.float32(half_cell & 15) + quarter
    count = 0
    for n in range(size):  # no branch on what is near: it could not be predicted
        px, py, pz = around[n], around[ROW + n], around[2 * ROW + n]
        near[count], near[ROW + count], near[2 * ROW + count] = px, py, pz
        count += _gap(px - x) + _gap(py - y) + _gap(pz - z) < square
    _pad(near, count)
    return count


@inline
def _gather_around(bins, tree, w, home, around):
    """List the centres, of particles and samples, in a cell of open block w and its 26 neighbours; return how many, or ROOM + 1."""
    start, slot, xs, ys, zs = bins.start, bins.near[tree.slot[w]], bins.x, bins.y, bins.z
    of_slot, accepted = tree.of_slot, tree.accepted
    i, j, k = home >> 6, (home >> 3) & 7, home & 7
    size = 0
    for a in range(i - 1, i + 2):
        for b in range(j - 1, j + 2):
            c = k - 1
            while c < k + 2:  # cells of one block follow each other along z
                end = min(k + 2, (c & ~7) + 8)
                n, cell = in_block(a, b, c)
                q = slot[n]
                if q >= 0:
                    fx, fy, fz = np.float32(a - (a & 7)), np.float32(b - (b & 7)), np.float32(c - (c & 7))
                    first, behind = start[512 * q + cell], start[512 * q + cell + end - c]
                    if size + behind - first > ROOM:
                        return ROOM + 1
                    for row in range(first, behind, WIDTH):
                        _copy_sixteen(xs, row, fx, around, size)
                        _copy_sixteen(ys, row, fy, around, ROW + size)
                        _copy_sixteen(zs, row, fz, around, 2 * ROW + size)
                        size += min(WIDTH, behind - row)
                    v = of_slot[q]
                    if v >= 0 and accepted[v] > 0:
                        size = _add_samples(tree, v, cell, cell + end - c, fx, fy, fz, around, size)
                c = end
    return size


@inline
def _add_samples(tree, v, first, end, fx, fy, fz, around, size):
    """List the samples in some cells of open block v; return how many are listed."""
    head, after, xs, ys, zs = tree.head[v], tree.after, tree.x, tree.y, tree.z
    for cell in range(first, end):
        row = head[cell]
        while row >= 0:
            size = _listed(around, size, xs[row] + fx, ys[row] + fy, zs[row] + fz)
            row = after[row]
    return size


@inline
def _copy_sixteen(source, at, shift, target, to):
    value = load(source, at)
    store(target, to, value + broadcast(value, shift))


@inline
def _gap(d):
    """Return the square of how far a point lies from a cell of level 4 along an axis, `d` from its middle."""
    out = max(abs(d) - np.float32(0.25), np.float32(0.0))
    return out * out


@inline
def _listed(around, size, x, y, z):
    """List a centre; return how many are listed, ROOM + 1 for more than there is room for."""
    if size >= ROOM:
        return ROOM + 1
    around[size], around[ROW + size], around[2 * ROW + size] = x, y, z
    return size + 1


@inline
def _pad(around, size):
    """Fill up the last sixteen of a list with what reaches nothing."""
    for n in range(min(size, ROOM), min((size + WIDTH - 1) // WIDTH * WIDTH, ROOM)):
        around[n] = np.float32(1e6)


@inline
def _one_holds(around, size, x, y, z, half, square):
    """Tell whether one of the listed spheres holds the cube around (x, y, z) whose edge is twice `half`; a point for zero."""
    like = load(around, 0)
    px, py, pz, wide, limit = (broadcast(like, x), broadcast(like, y), broadcast(like, z), broadcast(like, half),
                               broadcast(like, square))
    for n in range(0, size, WIDTH):
        dx, dy, dz = (absolute(load(around, n) - px) + wide, absolute(load(around, ROW + n) - py) + wide,
                      absolute(load(around, 2 * ROW + n) - pz) + wide)
        if any_lane(dx * dx + dy * dy + dz * dz < limit):
            return True
    return False


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
    return max(max(max(corners[c], corners[c + 1]), max(corners[c + 9], corners[c + 10])),
               max(max(corners[c + 81], corners[c + 82]), max(corners[c + 90], corners[c + 91]))) < -depth


@inline
def _reaches(corners, x, y, z, width, depth):
    """Tell whether a corner of a cell of level 3 or more lies deeper than `depth`."""
    i, j, k = int(x), int(y), int(z)
    c = 81 * i + 9 * j + k
    for corner in range(8):
        # of the cell of level 3 that holds it: on its far faces the distance is the same seen from either side
        fx, fy, fz = x - i + width * (corner >> 2), y - j + width * ((corner >> 1) & 1), z - k + width * (corner & 1)
        low = ((1 - fy) * ((1 - fz) * corners[c] + fz * corners[c + 1]) + fy * ((1 - fz) * corners[c + 9] + fz * corners[c + 10]))
        high = ((1 - fy) * ((1 - fz) * corners[c + 81] + fz * corners[c + 82])
                + fy * ((1 - fz) * corners[c + 90] + fz * corners[c + 91]))
        if (1 - fx) * low + fx * high < -depth:
            return True
    return False


@kernel
def _close_up(start, children, ends, kept):
    """Put the children of all blocks one after the other."""
    parallel_for(_close_up_at, start.size - 1, (start, children, ends, kept))


@part
def _close_up_at(w, start, children, ends, kept):
    for n in range(ends[w + 1] - ends[w]):
        kept[ends[w] + n] = children[8 * start[w] + n]
