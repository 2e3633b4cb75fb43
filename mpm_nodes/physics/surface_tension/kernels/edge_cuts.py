"""Where the surface of the union of spheres cuts the grid's edges, and how far from there it is to where the matter ends.

| symbol | meaning |
|---|---|
| r | half a grid cell h: the unit of every length here |
| f | share of space that is matter: sum_p V0_p N((x - x_p) / h) / h^3, N the quadratic B-spline; 1/2 where matter ends |
| d | how far a vertex is drawn in along grad f, at most R - h/4: that far spheres stand over the matter of a fresh lattice |

Forces on the union's own surface, 0.6 h outside the matter, pull the outermost particles in against a pressure that acts further
inside, and no J tells: drops shrink. Each vertex is moved once, for all the cells around its edge: the mesh stays closed.
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.cells.bins import Bins, Places
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.lend import lend
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.physics.surface_tension.kernels.around import AROUND, list_around, room
from mpm_nodes.physics.surface_tension.kernels.union import NODES, node_of

__all__ = ["FAR", "NO_MIRRORS", "cut_edges", "shares_at"]

FAR = 1e12
"""Planes beyond this stand for none [r]: loops are compiled without infinities."""
NO_MIRRORS = np.array([[2.0 * FAR, 2.0 * FAR, 0.0]] * 3)
"""Of a scene that no plane cuts."""
ONE = 2.0**40
"""Sums are whole numbers of this part: they hang on no order of the particles."""
REFINEMENTS = 1
"""Steps of regula falsi: f is almost linear over d."""


def cut_edges(
    bins: Bins,
    places: Places,
    level_set: tuple[np.ndarray, np.ndarray],
    volume: np.ndarray,
    depth: float,
    mirrors: np.ndarray,
    drift: int,
    again: tuple[np.ndarray, np.ndarray] | None = None,
) -> np.ndarray:
    """Return the vertices of the mesh, by the node and axis of the edge that each lies on.

    Args:
        bins: Particles by cells of edge r.
        places: Blocks with particles and their neighbours.
        level_set: Signs and phi, from `union.union_of_spheres`.
        volume: V0 of each particle over h^3, in the order of the particle arrays.
        depth: Most that a vertex is drawn in [r]; 0 leaves all on the union's surface.
        mirrors: For each axis the low and the high plane behind which the scene goes on as its mirror image [r], beyond `FAR` where
            there is none, and 1 where the scene is the same everywhere along the axis, else 0, shape (3, 3).
        drift: How many cells of edge r a particle may lie outside its block.
        again: What is returned, with the vertices of the places that are known, and the others, int64; None where nothing is known.

    Returns:
        From the low corner of the place [r], shape (places, 64, 3, 3): node, axis, coordinate; void on edges that are not cut.
    """
    cuts, todo = again or (np.empty((len(places.slot), NODES, 3, 3)), np.arange(len(places.slot)))
    _cut(todo, bins, (places.near, places.slot, places.coord, *level_set), volume, (depth, mirrors, drift), cuts)
    return cuts


@inline
def _spline(d):
    """Return N and its derivative by d at any distance d [r], without a branch."""
    u = 0.5 * d
    v = max(1.5 - abs(u), 0.0)
    inner = abs(u) < 0.5
    return 0.75 - u * u if inner else 0.5 * v * v, -u if inner else -0.5 * np.copysign(v, u)


@part
def _list_matter(bins, tables, e, at, reach, volume, limits, lists):
    """List the particles within `reach` of a point along each axis, and their images behind planes.

    Returns:
        How many; their coordinates; and the whole number that each one's volume is.
    """
    (x, y, z, own, index), (planes, drift) = lists, limits
    low, high = (at[0] - reach, at[1] - reach, at[2] - reach), (at[0] + reach, at[1] + reach, at[2] + reach)
    first = int(np.floor(low[0])), int(np.floor(low[1])), int(np.floor(low[2]))
    last = int(np.floor(high[0])), int(np.floor(high[1])), int(np.floor(high[2]))
    count = list_around(bins, tables, e, (first, last, drift), (low, high), (x, y, z, own, index))
    images = 1
    for a in range(3):
        for side in range(2):
            images *= 2 if abs(at[a] - planes[2 * a + side]) < reach else 1
    if count * images > len(index):
        x, y, z, own, index = room(2 * count * images)
        count = list_around(bins, tables, e, (first, last, drift), (low, high), (x, y, z, own, index))
    for c in range(count):
        own[c] = ONE * volume[index[c]]
    places = x, y, z
    for a in range(3):
        originals = count
        for side in range(2):
            plane = planes[2 * a + side]
            if abs(at[a] - plane) < reach:
                for c in range(originals):
                    image = 2.0 * plane - places[a][c]
                    if abs(at[a] - image) < reach:
                        x[count], y[count], z[count], own[count] = x[c], y[c], z[c], own[c]
                        places[a][count] = image
                        count += 1
    return count, (x, y, z, own)


@part
def _share(count, matter, at):
    """Return f at a point, of matter that is listed."""
    (x, y, z, own), f = matter, np.int64(0)
    for c in range(count):
        f += np.int64(own[c] * _spline(at[0] - x[c])[0] * _spline(at[1] - y[c])[0] * _spline(at[2] - z[c])[0])
    return f / ONE


@part
def _slopes(count, matter, at):
    """Return f and its gradient [1/r] at a point, of matter that is listed."""
    (x, y, z, own), f, gx, gy, gz = matter, np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for c in range(count):
        (wx, sx), (wy, sy), (wz, sz) = _spline(at[0] - x[c]), _spline(at[1] - y[c]), _spline(at[2] - z[c])
        f += np.int64(own[c] * wx * wy * wz)
        gx += np.int64(own[c] * sx * wy * wz)
        gy += np.int64(own[c] * wx * sy * wz)
        gz += np.int64(own[c] * wx * wy * sz)
    return f / ONE, gx / ONE, gy / ONE, gz / ONE


@part
def _drawn(count, matter, at, depth, level):
    """Return where a vertex comes to lie: as far along grad f as f is 1/2, within depth; never along a level axis."""
    x, y, z = at
    f, gx, gy, gz = _slopes(count, matter, at)
    gx = 0.0 if level[0] > 0.0 else gx
    gy = 0.0 if level[1] > 0.0 else gy
    gz = 0.0 if level[2] > 0.0 else gz
    size = np.sqrt(gx * gx + gy * gy + gz * gz)
    if f >= 0.5 or not size > 1e-6:
        return x, y, z
    nx, ny, nz = gx / size, gy / size, gz / size
    low, below, high = 0.0, f - 0.5, depth
    above = _share(count, matter, (x + nx * high, y + ny * high, z + nz * high)) - 0.5
    if above > 0.0:
        for _ in range(REFINEMENTS):
            d = low - below * (high - low) / (above - below)
            here = _share(count, matter, (x + nx * d, y + ny * d, z + nz * d)) - 0.5
            if here > 0.0:
                high, above = d, here
            else:
                low, below = d, here
        high = low - below * (high - low) / (above - below)
    return x + nx * high, y + ny * high, z + nz * high


@inline
def _planes_of(mirrors, coord, e):
    """Return the planes from the low corner of place e [r]."""
    low_x, low_y, low_z = 8.0 * coord[e, 0] + 3.0, 8.0 * coord[e, 1] + 3.0, 8.0 * coord[e, 2] + 3.0
    return (
        mirrors[0, 0] - low_x,
        mirrors[0, 1] - low_x,
        mirrors[1, 0] - low_y,
        mirrors[1, 1] - low_y,
        mirrors[2, 0] - low_z,
        mirrors[2, 1] - low_z,
    )


@part
def _cut_at(t, todo, bins, field, volume, wanted, cuts):
    e = todo[t]
    near, slot, coord, inside, phi = field
    depth, mirrors, drift = wanted
    planes, level = _planes_of(mirrors, coord, e), (mirrors[0, 2], mirrors[1, 2], mirrors[2, 2])
    lists = room(AROUND)
    for node in range(NODES):
        i, j, k = node >> 4, (node >> 2) & 3, node & 3
        for axis in range(3):
            place, other = node_of(near, e, i + (axis == 0), j + (axis == 1), k + (axis == 2))
            if (inside[place, other] if place >= 0 else 0) == inside[e, node]:
                continue
            first = np.float64(phi[e, node])
            t = 2.0 * first / (first - np.float64(phi[place, other]))
            x, y, z = 2.0 * i + 1.0, 2.0 * j + 1.0, 2.0 * k + 1.0
            at = (x + t if axis == 0 else x, y + t if axis == 1 else y, z + t if axis == 2 else z)
            if depth > 0.0:
                count, matter = _list_matter(bins, (near, slot), e, at, 3.0 + depth, volume, (planes, drift), lists)
                at = _drawn(count, matter, at, depth, level)
            cuts[e, node, axis, 0], cuts[e, node, axis, 1], cuts[e, node, axis, 2] = at


@compiled
def _cut(todo, bins, field, volume, wanted, cuts):
    """Write the vertices; `wanted` is the depth, the mirrors, and how far a particle may lie outside its block."""
    parallel_for(_cut_at, todo.shape[0], (todo, lend(bins), field, volume, wanted, cuts))


# ---------------------------------------------------------------- what is at samples
def shares_at(
    bins: Bins, places: Places, start: np.ndarray, position: np.ndarray, volume: np.ndarray, mirrors: np.ndarray, drift: int
) -> np.ndarray:
    """Return f at points, shape (n,).

    Args:
        bins: The matter, by cells of edge r.
        places: Blocks with particles and their neighbours.
        start: Points of place e are start[e] : start[e + 1], shape (places + 1,), int64.
        position: From the low corner of their place [r], shape (n, 3).
        volume: V0 of each particle over h^3, in the order of the particle arrays.
        mirrors: As in `cut_edges`.
        drift: How many cells of edge r a particle may lie outside its block.
    """
    found = np.empty(len(position))
    _shares(bins, (places.near, places.slot, places.coord), (start, position), volume, mirrors, drift, found)
    return found


@part
def _shares_at(e, bins, field, points, volume, mirrors, drift, found):
    near, slot, coord = field
    start, position = points
    planes, lists = _planes_of(mirrors, coord, e), room(AROUND)
    for n in range(start[e], start[e + 1]):
        at = (position[n, 0], position[n, 1], position[n, 2])
        count, matter = _list_matter(bins, (near, slot), e, at, 3.0, volume, (planes, drift), lists)
        found[n] = _share(count, matter, at)


@compiled
def _shares(bins, field, points, volume, mirrors, drift, found):
    parallel_for(_shares_at, points[0].shape[0] - 1, (lend(bins), field, points, volume, mirrors, drift, found))
