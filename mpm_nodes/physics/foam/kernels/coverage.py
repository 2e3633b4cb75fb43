"""Which cells of edge r may receive a sample: deep enough inside, and not covered.

| symbol | meaning | unit |
|---|---|---|
| r | radius of a particle's sphere, half a grid cell | unit of length |
| radius | of the spheres that cover | r |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.cells.bins import Bins, Places, in_block
from mpm_nodes.kernels.compile.jit import compiled, inline, part, thread_count
from mpm_nodes.kernels.compile.lend import lend
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.lanes.arithmetic import any_lane, broadcast, const, hmax, maximum, minimum, select
from mpm_nodes.kernels.lanes.memory import lane_constant, load, load_splat, store
from mpm_nodes.kernels.lanes.types import WIDTH

WIDE = 12
"""Cells along a block and the two on either side of it."""
ROOM, LIST = 16384, 64
"""Particles around a block, and around a point, that are looked at: many times what a uniform filling has."""
POINTS, MARGIN = 34, 10
"""Lattice points along a block and one on either side; room before them in a row, where no point is used."""
ROW = POINTS + 2 * MARGIN
"""Sixteen lanes at the end of the last row reach a little past it: the arrays are longer by so many."""
DROP = np.float32(0.15)
"""How much lower than the summit next to it a point of the lattice is taken to be at most [r].

0.217, half a diagonal of the lattice, would be certain: that is for a summit in the middle of eight points with a particle on
their diagonal. In random clouds 0.15 finds the same gaps, with a third of the climbs. The lattice passes through the corners of
the cells, where undeformed seeds put the middles of their cubes or the particles themselves.
"""
HALF = np.float32(0.5)
LEAST_SLACK = np.float32(1.0 / 64.0)
"""A gap whose middle is less outside all spheres than this is left, whatever it is asked for [r]."""
CLIMB, STEPS = np.float32(0.35), 10
"""How far a climb may lead [r], and its steps."""
WAYS = np.zeros((3, 16), np.float32)
WAYS[:, :8] = np.indices((2, 2, 2)).reshape(3, 8) * 2 - 1
WAYS[:, 8:11], WAYS[:, 11:14] = 1.5 * np.eye(3), -1.5 * np.eye(3)
"""Sixteen directions to climb: to the corners and the faces of a cube, and none."""
WAYS_X, WAYS_Y, WAYS_Z = (lane_constant(row) for row in WAYS)
LANE = lane_constant(range(WIDTH))


@compiled
def corner_distances(near, of_slot, slots, distance, corners):
    """Write the distances of the 9^3 corners of some slots' cells, shape (slots, 729)."""
    parallel_for(_corner_distances_at, slots.size, (near, of_slot, slots, distance, corners))


@part
def _corner_distances_at(w, near, of_slot, slots, distance, corners):
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


def open_cells(
    bins: Bins, places: Places, distance: np.ndarray, radius: np.float32, depth: np.float32, narrow: float = 0.0
) -> np.ndarray:
    """Return which cells of edge r / 2 may receive a sample, shape (slots, 4096), uint8; cell (i, j, k) is 256 i + 16 j + k.

    A cell is open where a point that no sphere of `radius` holds is found in it or near it, less than r / 2 from where it is
    deeper than `depth`: one of a lattice of 4^3 points in each cell of edge r, or one that a climb reaches from a local maximum,
    on that lattice, of the distance to the nearest particle. Where the climb ends less than a quarter of `narrow` [r] outside all
    spheres, the gap is narrower than about that and is left.
    """
    opened, shares = np.zeros((len(bins.near), 4096), np.uint8), thread_count()
    points = POINTS * POINTS * ROW + WIDTH
    scratch = _Scratch(
        np.empty((shares, 729), np.float32),
        *(np.empty((shares, points), np.float32) for _ in "ab"),
        np.empty((shares, WIDE * WIDE * (WIDE + 1)), np.int32),
        np.empty((shares, 3, ROOM), np.float32),
        np.zeros((shares, 3 * LIST), np.float32),
    )
    wanted = _Wanted(radius, depth, max(LEAST_SLACK, np.float32(0.25 * narrow)))
    _open_slots(bins, places.near, places.of_slot, distance, wanted, scratch, opened)
    return opened


class _Wanted(NamedTuple):
    """Where samples may go: outside of spheres of `radius` by `slack`, where it is deeper than `depth` [r]."""

    radius: np.float32
    depth: np.float32
    slack: np.float32


class _Scratch(NamedTuple):
    """What each thread needs for the block that it looks at.

    Attributes:
        corners: Distances of the corners of its cells.
        squares: Squared distances of its lattice's points to the nearest particle.
        highest: Which of these points are summits.
        start: Where the particles of each cell in and around the block start.
        around: Their coordinates.
        some: Coordinates of those near a point.
    """

    corners: np.ndarray
    squares: np.ndarray
    highest: np.ndarray
    start: np.ndarray
    around: np.ndarray
    some: np.ndarray


@compiled
def _open_slots(bins, near, of_slot, distance, wanted, scratch, opened):
    # cells of other blocks may be opened too: whoever does so, writes the same value
    parallel_for(_open_share, scratch.corners.shape[0], (lend(bins), near, of_slot, distance, wanted, lend(scratch), opened))


@part
def _open_share(share, bins, near, of_slot, distance, wanted, scratch, opened):
    corners, squares, highest = scratch.corners[share], scratch.squares[share], scratch.highest[share]
    start, around, some = scratch.start[share], scratch.around[share], scratch.some[share]
    radius, depth, slack = wanted
    for slot in range(share, opened.shape[0], scratch.corners.shape[0]):  # in turns: neighbours have much the same to do
        gather_corners(near, of_slot[slot], distance, corners)
        if _least(corners) < -depth:
            _gather_around(bins, slot, start, around)
            _measure_lattice(start, around, radius, squares)
            low = max(np.float32(0.0), radius + slack - DROP)
            _find_summits(squares, highest, low * low)
            _open_slot(bins.near[slot], wanted, corners, (squares, highest), (start, around, some), opened)


@inline
def _least(corners):
    least = np.float32(0.0)
    for c in range(729):
        least = min(least, corners[c])
    return least


@inline
def _open_slot(near, wanted, corners, lattice, listed, opened):
    """Open the cells of one block that may receive a sample, and those of other blocks close to what is found.

    `lattice` are the squares and summits of its points, `listed` the particles around as `_gather_around` lists them and room.
    """
    (radius, depth, slack), (squares, highest) = wanted, lattice
    for a in range(32):
        for b in range(32):
            for half in range(0, 32, WIDTH):
                row = ((a + 1) * POINTS + b + 1) * ROW + MARGIN
                if _any_marked(highest, row + half):
                    for c in range(half, half + WIDTH):
                        if highest[row + c] > 0 and _is_deep(corners, a >> 2, b >> 2, c >> 2, depth):
                            x, y, z = _lattice(a), _lattice(b), _lattice(c)
                            x, y, z, value = _summit(listed, x, y, z, squares[row + c], radius, slack)
                            if value > radius * radius and _depth_at(corners, x, y, z) > depth - HALF:
                                _open_around(near, x, y, z, _reach(np.sqrt(value) - radius), opened)


@inline
def _summit(listed, x, y, z, value, radius, slack):
    """Return a point of the lattice that is not covered, or where a climb from it ends; and the squared distance there, or 0."""
    start, around, some = listed
    if value > radius * radius:
        return x, y, z, value
    wanted = radius + slack
    count = _gather_near(start, around, some, x, y, z, wanted + CLIMB)
    x, y, z, value = _climb(some, count, x, y, z, value, wanted)
    return x, y, z, value if value > wanted * wanted else np.float32(0.0)


@inline
def distance_at(corners, x, y, z):
    """Interpolate the distance of a block's corners trilinearly."""
    i, j, k = min(int(x), 7), min(int(y), 7), min(int(z), 7)
    fx, fy, fz = x - np.float32(i), y - np.float32(j), z - np.float32(k)
    c = 81 * i + 9 * j + k
    gx, gy, gz = np.float32(1.0) - fx, np.float32(1.0) - fy, np.float32(1.0) - fz
    low = gy * (gz * corners[c] + fz * corners[c + 1]) + fy * (gz * corners[c + 9] + fz * corners[c + 10])
    high = gy * (gz * corners[c + 81] + fz * corners[c + 82]) + fy * (gz * corners[c + 90] + fz * corners[c + 91])
    return gx * low + fx * high


@inline
def _depth_at(corners, x, y, z):
    """Return the depth of a point in a block, or of the block's point next to it."""
    low, high = np.float32(0.0), np.float32(8.0)
    return -distance_at(corners, min(max(x, low), high), min(max(y, low), high), min(max(z, low), high))


@inline
def _lattice(n):
    return np.float32(0.25) * np.float32(n)


@inline
def _is_deep(corners, i, j, k, depth):
    """Tell whether a corner of a cell lies deeper than `depth`."""
    c = 81 * i + 9 * j + k
    return (
        min(
            min(min(corners[c], corners[c + 1]), min(corners[c + 9], corners[c + 10])),
            min(min(corners[c + 81], corners[c + 82]), min(corners[c + 90], corners[c + 91])),
        )
        < -depth
    )


@inline
def _reach(gap):
    """Return how far a gap may reach from a point of it that is `gap` away from all spheres: more than three times that."""
    return min(HALF, np.float32(0.15) + np.float32(3.0) * gap)


@inline
def _open_around(near, x, y, z, reach, opened):
    """Open the cells of edge r / 2 that hold points up to `reach` from (x, y, z) along the axes."""
    x, y, z, one = x + x, y + y, z + z, reach + reach
    for i in range(int(np.floor(x - one)), int(np.floor(x + one)) + 1):
        for j in range(int(np.floor(y - one)), int(np.floor(y + one)) + 1):
            for k in range(int(np.floor(z - one)), int(np.floor(z + one)) + 1):
                q = near[((i + 16) >> 4) * 9 + ((j + 16) >> 4) * 3 + ((k + 16) >> 4)]
                if q >= 0:
                    opened[q, ((i & 15) << 8) + ((j & 15) << 4) + (k & 15)] = 1


# ---------------------------------------------------------------- a block and what is around it
@inline
def _gather_around(bins, slot, start, around):
    """Copy the particles of the cells -2 .. 9 of a block, row by row along z; what does not fit is left out."""
    first, xs, ys, zs, near = bins.start, bins.x, bins.y, bins.z, bins.near[slot]
    at = np.int32(0)
    for i in range(-2, 10):
        for j in range(-2, 10):
            row = ((i + 2) * WIDE + j + 2) * (WIDE + 1)
            for k in range(-2, 10):
                start[row + k + 2] = at
                n, cell = in_block(i, j, k)
                q = near[n]
                if q < 0:
                    continue
                x, y, z = np.float32(i - (i & 7)), np.float32(j - (j & 7)), np.float32(k - (k & 7))
                for p in range(first[512 * q + cell], min(first[512 * q + cell + 1], first[512 * q + cell] + ROOM - at)):
                    around[0, at], around[1, at], around[2, at] = xs[p] + x, ys[p] + y, zs[p] + z
                    at += 1
            start[row + WIDE] = at


@part
def _measure_lattice(start, around, radius, squares):
    """Write the least squared distance of the lattice's points to a particle; beyond `radius`, more than its square."""
    squares[:] = 4.0
    four, reach = np.float32(4.0), np.float32(4.0) * radius
    like = load(squares, 0)
    sixteenth, lane = const(like, 0.0625), LANE(like)
    for p in range(start[WIDE * WIDE * (WIDE + 1) - 1]):
        x, y, z = four * around[0, p], four * around[1, p], four * around[2, p]
        first = int(np.floor(z - reach)) + 1
        if first < -8 or first > 33:
            continue
        dz = lane + broadcast(like, np.float32(first) - z)
        high = sixteenth * (dz * dz)
        for a in range(max(-1, int(np.ceil(x - reach))), min(32, int(np.floor(x + reach))) + 1):
            dx = np.float32(a) - x
            for b in range(max(-1, int(np.ceil(y - reach))), min(32, int(np.floor(y + reach))) + 1):
                dy = np.float32(b) - y
                row = ((a + 1) * POINTS + b + 1) * ROW + MARGIN + first
                store(squares, row, minimum(load(squares, row), high + broadcast(high, np.float32(0.0625) * (dx * dx + dy * dy))))


@part
def _find_summits(squares, highest, low):
    """Mark with 1 the points of the lattice that are as far from all particles as their 26 neighbours, and `low` at least."""
    like = load(squares, 0)
    one, zero, least = const(like, 1.0), const(like, 0.0), broadcast(like, low)
    for a in range(1, 33):
        for b in range(1, 33):
            for c in range(MARGIN, MARGIN + 32, 16):
                at = (a * POINTS + b) * ROW + c
                value = load(squares, at)
                around = least
                for i in range(-1, 2):
                    for j in range(-1, 2):
                        row = at + (i * POINTS + j) * ROW
                        ends = maximum(load(squares, row - 1), load(squares, row + 1))
                        around = maximum(around, maximum(load(squares, row), ends))
                store(highest, at, select(value >= around, one, zero))


@part
def _any_marked(highest, at):
    """Tell whether one of sixteen points is marked."""
    marks = load(highest, at)
    return any_lane(marks > const(marks, 0.0))


# ---------------------------------------------------------------- climbing
@part
def _climb(some, count, x, y, z, value, radius):
    """Follow the distance to the nearest particle uphill; return where it ends, and the squared distance there.

    Of sixteen directions the best is taken as long as it leads up, then the step shrinks. A summit lies within about two steps of
    a point that no direction leads up from: the climb ends where it cannot reach `radius` any more.
    """
    like = load(some, 0)
    ux, uy, uz, lane = WAYS_X(like), WAYS_Y(like), WAYS_Z(like), LANE(like)
    step, square = np.float32(0.07), radius * radius
    for _ in range(STEPS):
        size = broadcast(like, step)
        px, py, pz = broadcast(like, x) + size * ux, broadcast(like, y) + size * uy, broadcast(like, z) + size * uz
        squares = const(like, 9.0)
        for p in range(count):
            dx, dy, dz = load_splat(some, p) - px, load_splat(some, LIST + p) - py, load_splat(some, 2 * LIST + p) - pz
            squares = minimum(squares, dx * dx + dy * dy + dz * dz)
        best = hmax(squares)
        if best > value:
            way = int(hmax(select(squares == broadcast(like, best), lane, const(like, 0.0))))
            x, y, z = x + step * WAYS[0, way], y + step * WAYS[1, way], z + step * WAYS[2, way]
            value = best
            if value > square:
                break
        else:
            step *= np.float32(0.5)
            if np.sqrt(value) + np.float32(2.5) * step < radius:
                break
    return x, y, z, value


@inline
def _gather_near(start, around, some, x, y, z, reach):
    """List the particles closer than `reach` to a point; return how many."""
    count, square = 0, reach * reach
    low, high = max(0, int(z - reach + 2)), min(WIDE, int(z + reach + 2) + 1)
    for i in range(max(0, int(x - reach + 2)), min(WIDE, int(x + reach + 2) + 1)):
        for j in range(max(0, int(y - reach + 2)), min(WIDE, int(y + reach + 2) + 1)):
            row = (i * WIDE + j) * (WIDE + 1)
            for p in range(start[row + low], start[row + high]):
                # no branch on what is near: it could not be predicted
                px, py, pz = around[0, p], around[1, p], around[2, p]
                some[count], some[LIST + count], some[2 * LIST + count] = px, py, pz
                dx, dy, dz = px - x, py - y, pz - z
                count = min(count + (dx * dx + dy * dy + dz * dz < square), LIST - 1)
    return count
