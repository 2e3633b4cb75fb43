"""Samples of the surface of the matter: points on the triangles of marching cubes with their areas, normals and owners.

| symbol | meaning | source |
|---|---|---|
| r | half a grid cell: the unit of every length here | `union` |
| A_t, a_s | area of a triangle, area that one sample stands for | C21 section 4.1 |
| n_t | random samples of a triangle: A_t / a_s, rounded at random so that the expected number is kept, at least 1 | |
| owner | nearest particle, of equally near ones the first | C21 section 5 |

Even samples stand in the middles of the like parts that lines along its sides cut a triangle into, the fewest of at most a_s: what
they sum is exact for linear functions, so forces change as smoothly as the surface does. Random ones, the source's, keep half of
sqrt(a_s) from each other (up to ten tries each), and a triangle with one sample has it in the middle. Areas are equal and sum to
that of the triangle. The random numbers are a hash of the place in space: samples hang neither on the number of threads nor on the
order of particles, and stay where they are while the surface does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.algebra.random_bits import mixed
from mpm_nodes.kernels.cells.bins import Bins, Places
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.lend import lend
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.physics.surface_tension.kernels.around import AROUND, EVERYWHERE, list_around, room
from mpm_nodes.physics.surface_tension.kernels.cubes import COUNTS, STARTS, TRIANGLES, case_of
from mpm_nodes.physics.surface_tension.kernels.union import NODES, node_of

__all__ = ["Spread", "SurfacePoints", "Triangles", "sample_union", "triangles_of"]

TRIES = 10
MOST_PARTS = 8
"""Most parts of the side of a triangle with even samples."""
MOST_SAMPLES = MOST_PARTS**2
"""Most samples of a triangle."""
FARTHEST = 16
"""Cells of edge r beyond which no owner is looked for."""
UNKNOWN = -2
"""Owner of a sample that has none yet."""


class Spread(NamedTuple):
    """How samples lie on triangles.

    Attributes:
        area: That one stands for, about [r^2].
        even: Whether they lie evenly; at random else.
        seed: Of the random ones.
    """

    area: float
    even: bool = True
    seed: int = 0


class SurfacePoints(NamedTuple):
    """Samples of the surface, in the order of the places they lie in.

    Attributes:
        start: Samples of place e are start[e] : start[e + 1], shape (places + 1,), int64.
        position: From the low corner of their place [r], shape (n, 3).
        normal: Outward, shape (n, 3).
        area: [r^2], shape (n,).
        owner: Nearest particle, by its row in the particle arrays, shape (n,), int32.
    """

    start: np.ndarray
    position: np.ndarray
    normal: np.ndarray
    area: np.ndarray
    owner: np.ndarray


class Triangles(NamedTuple):
    """The mesh, triangle by triangle.

    Attributes:
        place: Place of each, shape (n,), int64.
        corners: From the low corner of the place [r], shape (n, 3, 3).
        edges: Node and axis of the cut edge that each corner lies on: (i, j, k, axis) from the place's first node, shape (n, 3, 4).
    """

    place: np.ndarray
    corners: np.ndarray
    edges: np.ndarray


def sample_union(
    bins: Bins,
    places: Places,
    inside: np.ndarray,
    cuts: np.ndarray,
    within: tuple[np.ndarray, np.ndarray],
    spread: Spread,
    drift: int,
    again: tuple[SurfacePoints, np.ndarray] | None = None,
) -> SurfacePoints:
    """Sample the surface.

    Args:
        bins: Particles by cells of edge r.
        places: Blocks with particles and their neighbours.
        inside: Signs at the nodes, from `union.union_of_spheres`.
        cuts: Vertices, from `edge_cuts.cut_edges`.
        within: First and last + 1 cell along each axis whose triangles count, shape (3,), int64: the rest is cut off.
        spread: How samples lie on triangles.
        drift: How many cells of edge r a particle may lie outside its block.
        again: Samples of the places that are known, and the other places, int64; None where nothing is known.
    """
    count = len(places.slot)
    known, todo = again or (None, np.arange(count))
    start = np.zeros(count + 1, np.int64) if known is None else np.concatenate([[0], np.diff(known.start)])
    key, no_rows, no_owner = np.uint64(spread.seed & (2**64 - 1)), np.empty((0, 7)), np.empty(0, np.int32)
    field = (places.near, places.slot, places.coord, inside, cuts, *within)
    wanted = (spread.area, spread.even, key, drift)
    _sample(todo, bins, field, wanted, start, no_rows, no_owner)
    np.cumsum(start, out=start)
    rows, owner = np.empty((int(start[-1]), 7)), np.empty(int(start[-1]), np.int32)
    if known is not None:
        to = np.repeat(start[:-1] - known.start[:-1], np.diff(known.start)) + np.arange(len(known.owner))
        rows[to, :3], rows[to, 3:6], rows[to, 6], owner[to] = known[1:]
    if len(rows):
        _sample(todo, bins, field, wanted, start, rows, owner)
    return SurfacePoints(start, rows[:, :3], rows[:, 3:6], rows[:, 6], owner)


def triangles_of(places: Places, inside: np.ndarray, cuts: np.ndarray) -> Triangles:
    """Return the whole mesh that samples lie on, for caches, pictures and checks.

    Args:
        places: Blocks with particles and their neighbours.
        inside: Signs at the nodes, from `union.union_of_spheres`.
        cuts: Vertices, from `edge_cuts.cut_edges`.
    """
    count = len(places.slot)
    start = np.zeros(count + 1, np.int64)
    _triangles(places.near, inside, cuts, start, np.empty((0, 3, 3)), np.empty((0, 3, 4), np.int64))
    np.cumsum(start, out=start)
    corners, edges = np.empty((int(start[-1]), 3, 3)), np.empty((int(start[-1]), 3, 4), np.int64)
    _triangles(places.near, inside, cuts, start, corners, edges)
    return Triangles(np.repeat(np.arange(count), np.diff(start)), corners, edges)


@part
def _triangles_at(e, near, inside, cuts, start, corners, edges):
    held, triangle = np.empty(8, np.int64), np.empty(9)
    writes = corners.shape[0] > 0
    at = start[e] if writes else 0
    for node in range(NODES):
        i, j, k = node >> 4, (node >> 2) & 3, node & 3
        signs_of(near, inside, e, (i, j, k), held)
        case = case_of(held)
        for t in range(COUNTS[case]):
            if writes:
                for n in range(3):
                    edge = TRIANGLES[case, t, n]
                    corner = STARTS[edge]
                    x, y, z, axis = i + (corner >> 2), j + ((corner >> 1) & 1), k + (corner & 1), edge >> 2
                    put_vertex(near, cuts, e, (x, y, z), axis, triangle, 3 * n)
                    edges[at, n, 0], edges[at, n, 1], edges[at, n, 2], edges[at, n, 3] = x, y, z, axis
                    for a in range(3):
                        corners[at, n, a] = triangle[3 * n + a]
            at += 1
    if not writes:
        start[e + 1] = at


@compiled
def _triangles(near, inside, cuts, start, corners, edges):
    """Count the triangles of each place into start[1:], or write them where there is room for them."""
    parallel_for(_triangles_at, start.shape[0] - 1, (near, inside, cuts, start, corners, edges))


# ---------------------------------------------------------------- the cells of a place
@part
def signs_of(near, inside, e, at, held):
    """Write the signs of the eight corners of the cell behind node `at`, (i, j, k): 1 inside."""
    for corner in range(8):
        place, node = node_of(near, e, at[0] + (corner >> 2), at[1] + ((corner >> 1) & 1), at[2] + (corner & 1))
        held[corner] = inside[place, node] if place >= 0 else 0


@part
def put_vertex(near, cuts, e, at, axis, triangle, first):
    """Write where the edge along `axis` behind node `at` is cut, from the low corner of place e."""
    place, node = node_of(near, e, at[0], at[1], at[2])
    for a in range(3):
        triangle[first + a] = cuts[place, node, axis, a] + 8.0 * (at[a] >> 2)


@inline
def _uniform(key):
    """Return 53 random bits as a number in (0, 1)."""
    return (np.float64(key >> np.uint64(11)) + 0.5) * (1.0 / 9007199254740992.0)


@inline
def _next(key):
    return mixed(key + np.uint64(0x9E3779B97F4A7C15))


@part
def _evenly(triangle, area, sample_area, points):
    """Write the middles of the like parts of a triangle, shape (9,); return how many."""
    parts = 1
    while parts < MOST_PARTS and area > sample_area * parts * parts:
        parts += 1
    found, third = 0, 1.0 / (3.0 * parts)
    for i in range(parts):
        for j in range(parts - i):
            for turned in range(2):
                if turned == 1 and i + j + 1 >= parts:
                    continue
                u, v = (3 * i + 1 + turned) * third, (3 * j + 1 + turned) * third
                for a in range(3):
                    points[found, a] = (1.0 - u - v) * triangle[a] + u * triangle[3 + a] + v * triangle[6 + a]
                found += 1
    return found


@part
def _points_of(triangle, area, sample_area, key, points):
    """Write the samples of a triangle, shape (9,); return how many."""
    wanted = min(max(int(np.floor(area / sample_area + _uniform(key))), 1), MOST_SAMPLES)
    if wanted == 1:
        for a in range(3):
            points[0, a] = (triangle[a] + triangle[3 + a] + triangle[6 + a]) / 3.0
        return 1
    least, found = 0.25 * sample_area, 0
    for _ in range(wanted):
        for _ in range(TRIES):
            key = _next(key)
            first = np.sqrt(_uniform(key))
            key = _next(key)
            second = _uniform(key)
            for a in range(3):
                points[found, a] = (
                    (1.0 - first) * triangle[a] + first * (1.0 - second) * triangle[3 + a] + first * second * triangle[6 + a]
                )
            free = True
            for other in range(found):
                square = 0.0
                for a in range(3):
                    square += (points[found, a] - points[other, a]) ** 2
                free = free and square >= least
            if free:
                found += 1
                break
    return found


@part
def _sample_at(t, todo, bins, field, wanted, start, rows, owner):
    e = todo[t]
    near, slot, coord, inside, cuts, low, high = field
    sample_area, even, seed, drift = wanted
    held = np.empty(8, np.int64)
    triangle, points, lists = np.empty(9), np.empty((MOST_SAMPLES, 3)), room(AROUND)
    writes = rows.shape[0] > 0
    at = start[e] if writes else 0
    for node in range(NODES):
        i, j, k = node >> 4, (node >> 2) & 3, node & 3
        signs_of(near, inside, e, (i, j, k), held)
        case = case_of(held)
        if COUNTS[case] == 0:
            continue
        x, y, z = 4 * coord[e, 0] + 2 + i, 4 * coord[e, 1] + 2 + j, 4 * coord[e, 2] + 2 + k
        if x < low[0] or y < low[1] or z < low[2] or x >= high[0] or y >= high[1] or z >= high[2]:
            continue
        key, first_row = mixed(seed ^ mixed(mixed(mixed(np.uint64(x)) + np.uint64(y)) + np.uint64(z))), at
        for t in range(COUNTS[case]):
            for n in range(3):
                edge = TRIANGLES[case, t, n]
                corner = STARTS[edge]
                first = (i + (corner >> 2), j + ((corner >> 1) & 1), k + (corner & 1))
                put_vertex(near, cuts, e, first, edge >> 2, triangle, 3 * n)
            nx, ny, nz = _area_vector(triangle)
            area = np.sqrt(nx * nx + ny * ny + nz * nz)
            key = _next(key)
            if not area > 1e-14:
                continue
            if even:
                found = _evenly(triangle, area, sample_area, points)
            else:
                found = _points_of(triangle, area, sample_area, key, points)
            if writes:
                for n in range(found):
                    rows[at + n, 0], rows[at + n, 1], rows[at + n, 2] = points[n, 0], points[n, 1], points[n, 2]
                    rows[at + n, 3], rows[at + n, 4], rows[at + n, 5] = nx / area, ny / area, nz / area
                    rows[at + n, 6] = area / found
            at += found
        if writes and at > first_row:
            _find_owners(bins, (near, slot), e, (first_row, at), drift, lists, rows, owner)
    if not writes:
        start[e + 1] = at


@inline
def _area_vector(triangle):
    """Return half the cross product of two sides."""
    ax, ay, az = triangle[3] - triangle[0], triangle[4] - triangle[1], triangle[5] - triangle[2]
    bx, by, bz = triangle[6] - triangle[0], triangle[7] - triangle[1], triangle[8] - triangle[2]
    return 0.5 * (ay * bz - az * by), 0.5 * (az * bx - ax * bz), 0.5 * (ax * by - ay * bx)


@part
def _find_owners(bins, tables, e, samples, drift, lists, rows, owner):
    """Write the nearest particle of the samples of one cell, rows samples[0] to samples[1]: -1 where there is none near.

    Particles around the cell are listed once for all of its samples.
    """
    x, y, z, square, index = lists
    first, end = samples
    low, high = np.full(3, 16, np.int64), np.full(3, -9, np.int64)
    for n in range(first, end):
        owner[n] = UNKNOWN
        for a in range(3):
            low[a], high[a] = min(low[a], int(np.floor(rows[n, a]))), max(high[a], int(np.floor(rows[n, a])))
    box = (-EVERYWHERE, -EVERYWHERE, -EVERYWHERE), (EVERYWHERE, EVERYWHERE, EVERYWHERE)
    reach, left = 1 + drift, end - first
    while left > 0:
        count = list_around(bins, tables, e, (low, high, reach), box, (x, y, z, square, index))
        if count > len(index):
            x, y, z, square, index = room(2 * count)
            count = list_around(bins, tables, e, (low, high, reach), box, (x, y, z, square, index))
        whole = reach - drift  # everything nearer than this has been looked at
        for n in range(first, end):
            if owner[n] != UNKNOWN:
                continue
            least = np.float64(1e30)
            for c in range(count):
                dx, dy, dz = x[c] - rows[n, 0], y[c] - rows[n, 1], z[c] - rows[n, 2]
                square[c] = dx * dx + dy * dy + dz * dz
                least = min(least, square[c])
            if least <= whole * whole or reach > FARTHEST:
                best = np.int32(2**31 - 1)
                for c in range(count):
                    if square[c] == least:
                        best = min(best, index[c])
                owner[n] = best if least < 1e30 else np.int32(-1)
                left -= 1
        reach += 1


@compiled
def _sample(todo, bins, field, wanted, start, rows, owner):
    """Count the samples of each place into start[1:], or write them where there is room for rows.

    `wanted` is the area of a sample, whether they lie evenly, the seed, and how far a particle may lie outside its block.
    """
    parallel_for(_sample_at, todo.shape[0], (todo, lend(bins), field, wanted, start, rows, owner))
