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

CHUNK = 16
"""Blocks that share a scratch."""
WIDE = 12
"""Cells along a block and the two on either side of it."""
ROOM, LIST = 16384, 64
"""Particles around a block, and around a point, that are looked at: many times what a uniform filling has."""
POINTS, MARGIN = 34, 10
"""Lattice points along a block and one on either side; room before them in a row, where no point is used."""
ROW = POINTS + 2 * MARGIN
HALF_DIAGONAL = np.float32(0.2166)
"""No point is further from the nearest one of the lattice [r]."""
CLIMB, STEPS = np.float32(0.35), 10
"""How far a climb may lead [r], and its steps."""


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
    """Return which cells of edge r may receive a sample, shape (slots, 512), uint8.

    A cell is open where one of its corners is deeper than `depth`, and a point that no sphere of `radius` holds is found in it or
    a quarter r from it: one of the lattice of 4^3 points a cell, or one that a climb reaches from a local maximum, on that
    lattice, of the distance to the nearest particle.
    """
    opened = np.zeros((len(bins.near), 512), np.uint8)
    _open_slots(bins, places.near, places.of_slot, distance, radius, depth, opened)
    return opened


@kernel(parallel=True)
def _open_slots(bins, near, of_slot, distance, radius, depth, opened):
    for chunk in prange((opened.shape[0] + CHUNK - 1) // CHUNK):
        # one scratch for many blocks; cells of other blocks may be opened too: whoever does so, writes the same value
        scratch = _scratch()
        for slot in range(CHUNK * chunk, min(CHUNK * chunk + CHUNK, opened.shape[0])):
            _open_slot(bins, near, of_slot[slot], slot, distance, radius, depth, scratch, opened)


@inline
def _scratch():
    """Return corners, squared distances of the lattice, starts and coordinates of the particles around, and a short list."""
    return (np.empty(729, np.float32), np.empty(POINTS * POINTS * ROW, np.float32), np.empty(WIDE * WIDE * (WIDE + 1), np.int32),
            np.empty((3, ROOM), np.float32), np.empty((3, LIST), np.float32))


@inline
def _open_slot(bins, near, place, slot, distance, radius, depth, scratch, opened):
    """Open the cells of one block that may receive a sample, and those of other blocks close to what is found."""
    corners, squares, start, around, some = scratch
    gather_corners(near, place, distance, corners)
    least = np.float32(0.0)
    for c in range(729):
        least = min(least, corners[c])
    if not least < -depth:
        return
    _gather_around(bins, slot, start, around)
    _measure_lattice(start, around, radius, squares)
    square, low = radius * radius, max(np.float32(0.0), radius - HALF_DIAGONAL)
    for cell in range(512):
        i, j, k = cell >> 6, (cell >> 3) & 7, cell & 7
        if not _is_deep(corners, i, j, k, depth):
            continue
        for point in range(64):
            a, b, c = 4 * i + (point >> 4), 4 * j + ((point >> 2) & 3), 4 * k + (point & 3)
            at = ((a + 1) * POINTS + b + 1) * ROW + c + MARGIN
            value = squares[at]
            if value < low * low:
                continue
            x, y, z = _lattice(a), _lattice(b), _lattice(c)
            if value > square:
                _open_around(bins, slot, x, y, z, opened)
            elif _is_highest(squares, at):
                x, y, z, value = _climb(start, around, some, x, y, z, value, radius)
                if value > square:
                    _open_around(bins, slot, x, y, z, opened)


@inline
def _lattice(n):
    return np.float32(0.25) * np.float32(n) + np.float32(0.125)


@inline
def _is_deep(corners, i, j, k, depth):
    """Tell whether a corner of a cell lies deeper than `depth`."""
    c = 81 * i + 9 * j + k
    return min(min(min(corners[c], corners[c + 1]), min(corners[c + 9], corners[c + 10])),
               min(min(corners[c + 81], corners[c + 82]), min(corners[c + 90], corners[c + 91]))) < -depth


@inline
def _open_around(bins, slot, x, y, z, opened):
    """Open the cells that hold points a quarter r around (x, y, z)."""
    quarter = np.float32(0.25)
    for i in range(int(np.floor(x - quarter)), int(np.floor(x + quarter)) + 1):
        for j in range(int(np.floor(y - quarter)), int(np.floor(y + quarter)) + 1):
            for k in range(int(np.floor(z - quarter)), int(np.floor(z + quarter)) + 1):
                n, cell = in_block(i, j, k)
                q = bins.near[slot, n]
                if q >= 0:
                    opened[q, cell] = 1


# ---------------------------------------------------------------- a block and what is around it
@inline
def _gather_around(bins, slot, start, around):
    """Copy the particles of the cells -2 .. 9 of a block, row by row along z; what does not fit is left out."""
    at = np.int32(0)
    for i in range(-2, 10):
        for j in range(-2, 10):
            row = ((i + 2) * WIDE + j + 2) * (WIDE + 1)
            for k in range(-2, 10):
                start[row + k + 2] = at
                n, cell = in_block(i, j, k)
                q = bins.near[slot, n]
                if q < 0:
                    continue
                x, y, z = np.float32(i - (i & 7)), np.float32(j - (j & 7)), np.float32(k - (k & 7))
                for p in range(bins.start[512 * q + cell], min(bins.start[512 * q + cell + 1],
                                                               bins.start[512 * q + cell] + ROOM - at)):
                    around[0, at], around[1, at], around[2, at] = bins.x[p] + x, bins.y[p] + y, bins.z[p] + z
                    at += 1
            start[row + WIDE] = at


@inline
def _measure_lattice(start, around, radius, squares):
    """Write the least squared distance of the lattice's points to a particle; beyond `radius`, more than its square."""
    squares[:] = 4.0
    four, half = np.float32(4.0), np.float32(0.5)
    for p in range(start[WIDE * WIDE * (WIDE + 1) - 1]):
        x, y, z = four * around[0, p] - half, four * around[1, p] - half, four * around[2, p] - half
        reach = four * radius
        first = int(np.floor(z - reach)) + 1
        if first < -8 or first > 33:
            continue
        for a in range(max(-1, int(np.ceil(x - reach))), min(32, int(np.floor(x + reach))) + 1):
            dx = np.float32(a) - x
            for b in range(max(-1, int(np.ceil(y - reach))), min(32, int(np.floor(y + reach))) + 1):
                dy = np.float32(b) - y
                flat = dx * dx + dy * dy
                row = ((a + 1) * POINTS + b + 1) * ROW + MARGIN + first
                mine = squares[row : row + 8]
                for c in range(8):
                    dz = np.float32(first + c) - z
                    mine[c] = min(mine[c], np.float32(0.0625) * (flat + dz * dz))


@inline
def _is_highest(squares, at):
    """Tell whether none of the 26 points around one of the lattice is further from all particles."""
    value = squares[at]
    for a in range(-1, 2):
        for b in range(-1, 2):
            row = at + (a * POINTS + b) * ROW
            if squares[row - 1] > value or squares[row] > value or squares[row + 1] > value:
                return False
    return True


# ---------------------------------------------------------------- climbing
@inline
def _climb(start, around, some, x, y, z, value, radius):
    """Follow the distance to the nearest particle uphill; return where it ends, and the squared distance there.

    Of fourteen directions the best is taken as long as it leads up, then the step shrinks.
    """
    count = _gather_near(start, around, some, x, y, z, radius + CLIMB)
    square, step = radius * radius, np.float32(0.11)
    for _ in range(STEPS):
        best, found = value, -1
        for way in range(14):
            dx, dy, dz = _way(way)
            square_there = _least_square(some, count, x + step * dx, y + step * dy, z + step * dz)
            if square_there > best:
                best, found = square_there, way
        if found < 0:
            step *= np.float32(0.5)
        else:
            dx, dy, dz = _way(found)
            x, y, z, value = x + step * dx, y + step * dy, z + step * dz, best
            if value > square:
                break
    return x, y, z, value


@inline
def _way(n):
    """Return direction n of fourteen: to the corners and to the faces of a cube."""
    if n < 8:
        return (np.float32(1.0 if n & 4 else -1.0), np.float32(1.0 if n & 2 else -1.0), np.float32(1.0 if n & 1 else -1.0))
    sign = np.float32(1.5 if n & 1 else -1.5)
    zero = np.float32(0.0)
    return (sign if n < 10 else zero, sign if 10 <= n < 12 else zero, sign if n >= 12 else zero)


@inline
def _least_square(some, count, x, y, z):
    least = np.float32(9.0)
    for p in range(count):
        dx, dy, dz = some[0, p] - x, some[1, p] - y, some[2, p] - z
        least = min(least, dx * dx + dy * dy + dz * dz)
    return least


@inline
def _gather_near(start, around, some, x, y, z, reach):
    """List the particles closer than `reach` to a point; return how many."""
    count, square = 0, reach * reach
    low, high = max(0, int(z - reach + 2)), min(WIDE, int(z + reach + 2) + 1)
    for i in range(max(0, int(x - reach + 2)), min(WIDE, int(x + reach + 2) + 1)):
        for j in range(max(0, int(y - reach + 2)), min(WIDE, int(y + reach + 2) + 1)):
            row = (i * WIDE + j) * (WIDE + 1)
            for p in range(start[row + low], start[row + high]):
                dx, dy, dz = around[0, p] - x, around[1, p] - y, around[2, p] - z
                if dx * dx + dy * dy + dz * dz < square and count < LIST:
                    some[0, count], some[1, count], some[2, count] = around[0, p], around[1, p], around[2, p]
                    count += 1
    return count
