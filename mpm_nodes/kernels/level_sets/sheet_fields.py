"""Sheets of level sets: which face of which thin part is in front, and how far every point near it lies from its middle.

| symbol | meaning | unit |
|---|---|---|
| m, n, t | point in the middle of a sheet, normal out of the face that it was found from, half the thickness there | m, -, m |
| face | points whose faces hang together without an edge; a sheet is what lies between two of them | |
| across | sum w (x - m) . n / sum w over the points nearest to x, w = exp((d_min^2 - d^2) / s^2), d = abs(x - m) | m |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.level_sets.build import pad_leaves
from mpm_nodes.kernels.level_sets.level_set import FAR, LEAF, PADDED, LeafLevelSet
from mpm_nodes.kernels.level_sets.sheets import SheetPoints, mean_of_cubes, sheet_points, steepest_axis

__all__ = ["KNOWN", "ThinSheet", "follow_sheets", "sheet_lattices", "thin_sheets"]

KNOWN = 4.5
"""Distance from a sheet up to which it is known [cells]: as far as nodes and particles have sides."""
SPACING = 0.35
"""Distance of the points on the surface [cells]."""
APART = 0.7
"""Distance of those that a sheet keeps [cells]."""
SMOOTH = 0.6
"""s, over which points are averaged [cells]."""
VOXEL = 0.5
"""Edge of a voxel of the sheets [cells]."""
NEIGHBOUR = 2.2
"""Points nearer than this hang together where they face the same way [their distance]."""
FEWEST = 8
"""Fewer points do not make a sheet."""
OPPOSITE = -0.9
"""Largest n . n of points on the two faces of a sheet: a blade may be a wedge."""
ASKEW = 1.01
"""Longest of two opposite rays, over the other: 8 degrees askew."""
HALF_LEAF = 3.5 * 3.0**0.5


class ThinSheet(NamedTuple):
    """One sheet.

    Attributes:
        points: In its middle; normals point to the front.
        across: The distance from its middle, positive in front, on a lattice of its own.
        half: Half its thickness on the same lattice.
    """

    points: SheetPoints
    across: LeafLevelSet
    half: LeafLevelSet


def thin_sheets(level_set: LeafLevelSet, reach: float, cell_size: float) -> tuple[ThinSheet, ...]:
    """Return the sheets of a level set that are thinner than `reach` [m], the largest first.

    A sheet lies between two faces. Where three walls meet, there are three; a face that comes round to its own back bounds none.
    """
    points = sheet_points(level_set, reach, max(SPACING * cell_size, level_set.voxel_size))
    if not len(points.middles):
        return ()
    faces = points.middles + points.halves[:, None] * points.normals
    backs = points.middles - points.halves[:, None] * points.normals
    bins = _binned(faces, NEIGHBOUR * max(SPACING * cell_size, level_set.voxel_size))
    found, opposite = np.arange(len(faces)), np.full(len(faces), -1)
    _join_faces(faces, points.normals, bins, found)
    _find_opposite(faces, backs, points.normals, bins, opposite)
    # where two faces look at each other askew, the longer ray starts where something else is near: a corner, or a round rim
    paired = (opposite >= 0) & (points.halves <= ASKEW * points.halves[opposite])
    sound = (opposite >= 0) & (points.halves[opposite] <= ASKEW * points.halves)
    points = points._replace(normals=_even(points.normals, np.where(sound, opposite, -1)))
    one, other = found[paired], found[opposite[paired]]
    low, high = np.minimum(one, other), np.maximum(one, other)
    kinds, inverse, counts = np.unique(low * len(faces) + high, return_inverse=True, return_counts=True)
    sheets = []
    for kind in np.argsort(-counts, kind="stable"):
        if kinds[kind] // len(faces) != kinds[kind] % len(faces):
            mine = inverse.ravel() == kind
            sign = np.where(one[mine] == low[mine], 1.0, -1.0)[:, None]
            middles, normals, halves = (array[paired][mine] for array in points)
            kept = _spread(SheetPoints(middles, sign * normals, halves), APART * cell_size)
            if len(kept.middles) >= FEWEST:
                sheets.append(_sheet(kept, cell_size))
    return tuple(sheets)


def _even(normals: np.ndarray, opposite: np.ndarray) -> np.ndarray:
    """Return normals midway between those of a point and of the one opposite."""
    sums = normals - np.where(opposite[:, None] >= 0, normals[opposite], 0.0)
    return sums / np.linalg.norm(sums, axis=1, keepdims=True)


def follow_sheets(sheets: Sequence[ThinSheet], before: Sequence[ThinSheet], drift: np.ndarray) -> tuple[ThinSheet, ...]:
    """Return sheets in the order of those a key earlier, and with the same fronts; what is new comes last, what is gone is empty.

    Args:
        sheets: Of the later key.
        before: Of the earlier one.
        drift: How far the body went between them, shape (3,) [m].
    """
    left, ordered = list(sheets), []
    for earlier in before:
        nearest = [_likeness(each.points, earlier.points, drift) for each in left]
        if not nearest:
            ordered.append(_empty(earlier))
            continue
        best = int(np.argmin([distance for distance, _ in nearest]))
        ordered.append(left[best] if nearest[best][1] >= 0.0 else _turned(left[best]))
        del left[best], nearest[best]
    return (*ordered, *left)


def sheet_lattices(sheets: Sequence[ThinSheet]) -> list[LeafLevelSet]:
    """Return the lattices of sheets as `sample_sheet` looks for them."""
    return [lattice for sheet in sheets for lattice in (sheet.across, sheet.half)]


def _likeness(points: SheetPoints, earlier: SheetPoints, drift: np.ndarray) -> tuple[float, float]:
    """Return the mean distance of points from the nearest of an earlier sheet [m], and how well their normals agree."""
    some = slice(None, None, max(1, len(points.middles) // 256))
    apart = np.linalg.norm(points.middles[some, None] - (earlier.middles + drift), axis=2)
    nearest = apart.argmin(axis=1)
    return float(apart.min(axis=1).mean()), float((points.normals[some] * earlier.normals[nearest]).sum())


def _turned(sheet: ThinSheet) -> ThinSheet:
    """Return a sheet with front and back exchanged."""
    values = np.where(sheet.across.values >= 0.5 * FAR, sheet.across.values, -sheet.across.values)
    return ThinSheet(sheet.points._replace(normals=-sheet.points.normals), _with_values(sheet.across, values), sheet.half)


def _empty(sheet: ThinSheet) -> ThinSheet:
    """Return a sheet that is nowhere."""
    return sheet._replace(across=_with_values(sheet.across, np.full_like(sheet.across.values, FAR)))


def _with_values(lattice: LeafLevelSet, values: np.ndarray) -> LeafLevelSet:
    """Return a lattice with other values in its leaves."""
    table, to_index = lattice.table, lattice.to_index
    return LeafLevelSet(to_index, lattice.voxel_size, FAR, lattice.low, table, lattice.coarse, values, None, None, lattice.centre)


def _spread(points: SheetPoints, apart: float) -> SheetPoints:
    """Return the means of points that lie in one cube and face the same way, with normals that point to the front."""
    axis = steepest_axis(points.normals)
    faced = np.take_along_axis(points.normals, axis[:, None], axis=1)[:, 0] > 0.0
    turned = points._replace(normals=points.normals * _front(points))
    middles, normals, halves = mean_of_cubes(points.middles, apart, 2 * axis + faced, turned)
    return SheetPoints(middles, normals / np.linalg.norm(normals, axis=1, keepdims=True), halves)


def _front(points: SheetPoints) -> float:
    """Return 1 or -1: which way a sheet's normals point to its front, so that a resumed cook finds the same front."""
    mean = points.normals.mean(axis=0)
    if np.linalg.norm(mean) > 0.1:
        return 1.0 if mean @ [1.0, 0.9, 0.8] >= 0.0 else -1.0
    outward = ((points.middles - points.middles.mean(axis=0)) * points.normals).sum()
    return 1.0 if outward >= 0.0 else -1.0


# ---------------------------------------------------------------- faces
class _Bins(NamedTuple):
    """Points by cubes of one edge: low corner [m], edge [m], order of the points by keys of their cubes, and these keys."""

    low: np.ndarray
    edge: float
    order: np.ndarray
    keys: np.ndarray


def _binned(points: np.ndarray, edge: float) -> _Bins:
    """Return points sorted into cubes."""
    low = points.min(axis=0) - edge
    i, j, k = np.floor((points - low) / edge).astype(np.int64).T
    keys = (i << 42) + (j << 21) + k
    order = np.argsort(keys, kind="stable")
    return _Bins(low, edge, order, keys[order])


@part
def _cube(bins, place, n):
    """Return the first of the sorted points in the n-th of the 27 cubes around a place, and the last + 1."""
    i = np.int64(np.floor((place[0] - bins.low[0]) / bins.edge)) + n // 9 - 1
    j = np.int64(np.floor((place[1] - bins.low[1]) / bins.edge)) + n // 3 % 3 - 1
    k = np.int64(np.floor((place[2] - bins.low[2]) / bins.edge)) + n % 3 - 1
    if i < 0 or j < 0 or k < 0:
        return 0, 0
    key = (i << 42) + (j << 21) + k
    return np.searchsorted(bins.keys, key), np.searchsorted(bins.keys, key + 1)


@compiled(fastmath=False)
def _join_faces(faces, normals, bins, found):
    """Write the first of the points that each point's face hangs together with.

    Two do that are nearer than a cube's edge, face the same way within 60 degrees, and lie beside rather than over each other.
    """
    for a in range(faces.shape[0]):
        for n in range(27):
            begin, end = _cube(bins, faces[a], n)
            for at in range(begin, end):
                b = bins.order[at]
                d0, d1, d2 = faces[b, 0] - faces[a, 0], faces[b, 1] - faces[a, 1], faces[b, 2] - faces[a, 2]
                apart = np.sqrt(d0 * d0 + d1 * d1 + d2 * d2)
                over = abs(d0 * normals[a, 0] + d1 * normals[a, 1] + d2 * normals[a, 2])
                alike = normals[a, 0] * normals[b, 0] + normals[a, 1] * normals[b, 1] + normals[a, 2] * normals[b, 2]
                if apart <= bins.edge and alike >= 0.5 and over <= 0.5 * apart:
                    one, other = _first(found, a), _first(found, b)
                    found[max(one, other)] = min(one, other)
    for a in range(faces.shape[0]):
        found[a] = _first(found, a)


@part
def _first(found, a):
    """Return the first of the points that hang together with one, and shorten the way to it."""
    while found[a] != a:
        found[a] = found[found[a]]
        a = found[a]
    return a


@compiled(fastmath=False)
def _find_opposite(faces, backs, normals, bins, opposite):
    """Write the point nearest to the other side of each point that faces the other way, -1 where there is none."""
    for a in range(faces.shape[0]):
        nearest = bins.edge
        for n in range(27):
            begin, end = _cube(bins, backs[a], n)
            for at in range(begin, end):
                b = bins.order[at]
                d0, d1, d2 = faces[b, 0] - backs[a, 0], faces[b, 1] - backs[a, 1], faces[b, 2] - backs[a, 2]
                apart = np.sqrt(d0 * d0 + d1 * d1 + d2 * d2)
                alike = normals[a, 0] * normals[b, 0] + normals[a, 1] * normals[b, 1] + normals[a, 2] * normals[b, 2]
                if apart < nearest and alike <= OPPOSITE:
                    nearest, opposite[a] = apart, b


# ---------------------------------------------------------------- lattices
def _sheet(points: SheetPoints, cell_size: float) -> ThinSheet:
    """Return a sheet with its lattices: axes along the body's, voxels of half a cell."""
    voxel = VOXEL * cell_size
    middles, known = points.middles / voxel, KNOWN / VOXEL
    step = np.linspace(-known, known, int(2.0 * known / LEAF) + 2)  # apart by less than a leaf: none is passed over
    around = np.stack(np.meshgrid(step, step, step, indexing="ij"), axis=-1).reshape(-1, 3)
    reached = np.unique(np.floor((middles[:, None] + around).reshape(-1, 3) / LEAF).astype(np.int64), axis=0)
    order, start, members = _members(reached, middles, known)
    low = reached.min(axis=0) - 1
    table = np.full(tuple(reached.max(axis=0) + 2 - low), -1, np.int32)
    table[tuple((reached - low).T)] = np.arange(len(reached), dtype=np.int32)
    values = np.empty((2, len(reached), LEAF, LEAF, LEAF), np.float32)
    scales = (known, SMOOTH / VOXEL, voxel)
    _measure(order, start, members, (middles, points.normals, points.halves), scales, values)
    to_index = np.concatenate([np.eye(3) / voxel, np.zeros((3, 1))], axis=1)
    far, where = np.full(table.shape, FAR, np.float32), np.ascontiguousarray(reached - low)
    padded = np.empty((2, len(reached), PADDED, PADDED, PADDED), np.float32)
    for given, made in zip(values, padded, strict=True):
        pad_leaves(table, where, far, given[..., None], made[..., None])
    coarse, centre = np.zeros(table.shape, np.float32), points.middles.mean(axis=0)
    across, half = (LeafLevelSet(to_index, voxel, FAR, low, table, coarse, each, None, None, centre) for each in padded)
    return ThinSheet(points, across, half)


def _members(leaves: np.ndarray, middles: np.ndarray, known: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the first voxel of each leaf, and the points near it: members[start[leaf] : start[leaf + 1]]."""
    origins, reach = LEAF * leaves, known + HALF_LEAF
    bins = _binned(middles, reach)
    counts = np.zeros(len(leaves), np.int64)
    _list_members(origins, middles, bins, reach, counts, np.zeros(len(leaves), np.int64), np.empty(0, np.int64))
    start = np.concatenate([[0], np.cumsum(counts)])
    members = np.empty(int(start[-1]), np.int64)
    _list_members(origins, middles, bins, reach, counts, start, members)
    return origins, start, members


@compiled(fastmath=False)
def _list_members(origins, middles, bins, reach, counts, start, members):
    """Count the points near each leaf, and write them where there is room."""
    centre = np.empty(3)
    for leaf in range(origins.shape[0]):
        counts[leaf] = 0
        for axis in range(3):
            centre[axis] = origins[leaf, axis] + 3.5
        for n in range(27):
            begin, end = _cube(bins, centre, n)
            for at in range(begin, end):
                p = bins.order[at]
                d0, d1, d2 = middles[p, 0] - centre[0], middles[p, 1] - centre[1], middles[p, 2] - centre[2]
                if d0 * d0 + d1 * d1 + d2 * d2 < reach * reach:
                    if members.shape[0]:
                        members[start[leaf] + counts[leaf]] = p
                    counts[leaf] += 1


@compiled(fastmath=False)
def _measure(origins, start, members, points, scales, values):
    """Write `across` and half the thickness at the voxels of every leaf [m], FAR where no point is near.

    `points` are middles [voxels], normals and halves [m]; `scales` how far a sheet is known and s [voxels], and a voxel [m].
    """
    parallel_for(_measure_leaf, origins.shape[0], (origins, start, members, points, scales, values))


@part
def _measure_leaf(leaf, origins, start, members, points, scales, values):
    (middles, normals, halves), (known, smooth, voxel) = points, scales
    for at in range(512):
        i, j, k = at >> 6, (at >> 3) & 7, at & 7
        x0, x1, x2 = 1.0 * (origins[leaf, 0] + i), 1.0 * (origins[leaf, 1] + j), 1.0 * (origins[leaf, 2] + k)
        nearest = known * known
        for m in range(start[leaf], start[leaf + 1]):
            p = members[m]
            nearest = min(nearest, (x0 - middles[p, 0]) ** 2 + (x1 - middles[p, 1]) ** 2 + (x2 - middles[p, 2]) ** 2)
        values[0, leaf, i, j, k], values[1, leaf, i, j, k] = FAR, 0.0
        if nearest >= known * known:
            continue
        total = across = half = 0.0
        for m in range(start[leaf], start[leaf + 1]):
            p = members[m]
            d0, d1, d2 = x0 - middles[p, 0], x1 - middles[p, 1], x2 - middles[p, 2]
            farther = d0 * d0 + d1 * d1 + d2 * d2 - nearest
            if farther < 9.0 * smooth * smooth:
                weight = np.exp(-farther / (smooth * smooth))
                total += weight
                across += weight * (d0 * normals[p, 0] + d1 * normals[p, 1] + d2 * normals[p, 2])
                half += weight * halves[p]
        values[0, leaf, i, j, k], values[1, leaf, i, j, k] = voxel * across / total, half / total
