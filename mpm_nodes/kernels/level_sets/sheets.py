"""How thin a level set is where it is a sheet: a wall, a card or a bowl, but no rod and no ball."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.level_sets.level_set import LEAF, LeafLevelSet

__all__ = ["Sheet", "SheetPoints", "mean_of_cubes", "sheet_points", "steepest_axis", "thin_sheet"]

MOST_POINTS = 4096
"""Points of the surface that are looked at, spread evenly."""
AT_RIM = 0.75
"""Points nearer to the end of a sheet lie at its rim [thicknesses]: it may be round."""
ON_BORDER = 1e-6
"""Points nearer than this to the border of two cubes lie in the inner one [cubes]: rounding does not decide."""
ALIKE = 1.0 - 1e-4 * np.arange(3)
"""Factors of the axes, so that rounding does not decide which of two is the longer."""
STEP = 0.25
"""Length of a step through the body [voxels]."""


class Sheet(NamedTuple):
    """A level set as a sheet.

    Attributes:
        share: Share of the surface that belongs to a sheet thinner than was asked for.
        thickness: Median thickness of that sheet [m]; infinity without one.
    """

    share: float
    thickness: float


class SheetPoints(NamedTuple):
    """Points in the middle of sheets, in the frame of the body.

    Attributes:
        middles: Shape (n, 3) [m].
        normals: Unit normals out of the face that each was found from, shape (n, 3).
        halves: Half the thickness there, shape (n,) [m].
    """

    middles: np.ndarray
    normals: np.ndarray
    halves: np.ndarray


def thin_sheet(level_set: LeafLevelSet, reach: float) -> Sheet:
    """Return how much of a level set is a sheet thinner than `reach` [m], and how thin.

    A ray goes in from a point of the surface and out at the other side. The place is a sheet where the body goes on by as much
    sideways of the middle of the ray, in at least three of four directions: at a rim it ends in one, of a rod there are two.
    """
    points = _surface(level_set)
    points = points[:: max(1, len(points) // MOST_POINTS)]
    points, normals, lengths = _rays(level_set, points, reach)
    sheet = _goes_on(level_set, (points, normals, lengths), 1.0) >= 3
    if not sheet.any():
        return Sheet(0.0, np.inf)
    return Sheet(float(sheet.sum() / len(points)), float(np.median(lengths[sheet])) * level_set.voxel_size)


def sheet_points(level_set: LeafLevelSet, reach: float, spacing: float) -> SheetPoints:
    """Return points of the sheets of a level set that are thinner than `reach` [m], spread about `spacing` [m] apart.

    None lies at a rim, where faces turn.
    """
    rays = _rays(level_set, _surface(level_set, spacing / level_set.voxel_size), reach)
    sheet = (_goes_on(level_set, rays, 1.0) >= 3) & (_goes_on(level_set, rays, AT_RIM) == 4)
    points, normals, lengths = (array[sheet] for array in rays)
    linear = level_set.to_index
    middles = points - 0.5 * lengths[:, None] * normals
    ways = normals @ linear[:, :3]
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    middles = np.linalg.solve(linear[:, :3], (middles - linear[:, 3]).T).T
    return SheetPoints(middles, ways, 0.5 * lengths * level_set.voxel_size)


def _rays(level_set: LeafLevelSet, points: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return points of a surface, the normals there and the lengths of the rays in, infinite where longer than `reach` [m]."""
    points, normals = _normals(level_set, points)
    return points, normals, _through(level_set, points, normals, reach / level_set.voxel_size)


def _goes_on(level_set: LeafLevelSet, rays: tuple[np.ndarray, np.ndarray, np.ndarray], far: float) -> np.ndarray:
    """Return in how many of four directions the body goes on sideways of the middle of each ray, by `far` times its length."""
    points, normals, lengths = rays
    thin = np.isfinite(lengths)
    middle = points[thin] - 0.5 * lengths[thin, None] * normals[thin]
    ways = [sign * far * lengths[thin, None] * way for way in _across(normals[thin]) for sign in (-1.0, 1.0)]
    found = np.zeros(len(points), np.int64)
    found[thin] = np.sum([_phi(level_set, middle + way) < 0.0 for way in ways], axis=0)
    return found


def _surface(level_set: LeafLevelSet, spacing: float = 0.0) -> np.ndarray:
    """Return points of the surface in voxels: all, or the mean of those in a cube of this edge that face the same way."""
    values = level_set.values
    leaves = np.empty((len(values), 3), np.int64)
    where = np.argwhere(level_set.table >= 0)
    leaves[level_set.table[tuple(where.T)]] = LEAF * (where + level_set.low)
    core, found, ways = values[:, :LEAF, :LEAF, :LEAF], [], []
    for axis in range(3):
        following = np.take(values, range(1, LEAF + 1), axis=axis + 1)[:, :LEAF, :LEAF, :LEAF]
        crossed = np.argwhere((core < 0.0) != (following < 0.0))
        low, high = core[tuple(crossed.T)].astype(float), following[tuple(crossed.T)].astype(float)
        points = (leaves[crossed[:, 0]] + crossed[:, 1:]).astype(float)
        points[:, axis] += low / (low - high)
        found.append(points)
        ways.append(2 * axis + (low < 0.0))
    every = np.concatenate(found)
    return mean_of_cubes(every, spacing, np.concatenate(ways), (every,))[0] if spacing else every


def mean_of_cubes(points: np.ndarray, edge: float, kinds: np.ndarray, values: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Return the means of values over the points of one kind that lie in one cube.

    The cubes lie evenly about the middle of all points, and means hang on no order: a mirrored body has the mirrored ones.

    Args:
        points: Shape (n, 3).
        edge: Edge of the cubes.
        kinds: Shape (n,), int64.
        values: Arrays of n rows each.
    """
    if not len(points):
        return tuple(values)
    way = (points - 0.5 * (points.min(axis=0) + points.max(axis=0))) / edge
    cubes = np.sign(way) * np.floor(np.abs(way) + 0.5 - ON_BORDER)
    _, first, inverse = np.unique(np.column_stack([cubes.astype(np.int64), kinds]), axis=0, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))[inverse.ravel()]
    counts = np.bincount(order)
    means = []
    for value in values:
        total = np.zeros((len(counts), *value.shape[1:]))
        np.add.at(total, order, value)
        means.append((total.T / counts).T)
    return tuple(means)


def steepest_axis(normals: np.ndarray) -> np.ndarray:
    """Return the axis along which each normal is longest; of axes that are alike but for rounding the first."""
    return (np.abs(normals) * ALIKE).argmax(axis=1)


def _normals(level_set: LeafLevelSet, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return those points that have one, and their outward normals, in voxels.

    They are looked up outside, as far from the surface as the band allows: in a sheet of two voxels the other face is near.
    """
    out = min(1.5, level_set.band / level_set.voxel_size - 1.5)
    normals = np.zeros_like(points)
    for _ in range(2):
        slopes = np.stack(
            [
                _phi(level_set, points + out * normals + step) - _phi(level_set, points + out * normals - step)
                for step in 0.5 * np.eye(3)
            ],
            axis=-1,
        )
        lengths = np.linalg.norm(slopes, axis=1)
        points, normals = points[lengths > 0.0], slopes[lengths > 0.0] / lengths[lengths > 0.0, None]
    return points, normals


def _through(level_set: LeafLevelSet, points: np.ndarray, normals: np.ndarray, reach: float) -> np.ndarray:
    """Return the length of each ray through the body [voxels], infinity where it is longer than `reach`."""
    lengths = np.full(len(points), np.inf)
    going, before = np.arange(len(points)), np.zeros(len(points))
    for n in range(1, int(reach / STEP) + 2):
        phi = _phi(level_set, points[going] - n * STEP * normals[going])
        out = (phi >= 0.0) & (before < 0.0)
        lengths[going[out]] = STEP * (n - 1 + before[out] / (before[out] - phi[out]))
        kept = ~out & ~((phi >= 0.0) & (n * STEP > 1.0))  # whoever is not inside after a voxel never comes in
        going, before = going[kept], np.minimum(phi[kept], 0.0)
        if not len(going):
            break
    lengths[lengths > reach] = np.inf
    return lengths


def _across(normals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two unit vectors at right angles to each normal and to each other."""
    least = np.eye(3)[np.argmin(np.abs(normals) + 1.0 - ALIKE, axis=1)]
    first = np.cross(normals, least)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    return first, np.cross(normals, first)


def _phi(level_set: LeafLevelSet, points: npt.NDArray[np.floating]) -> np.ndarray:
    """Return the signed distance at points in voxels [m], trilinear; away from the leaves its sign alone."""
    phi = np.full(len(points), level_set.band)
    _sample(points, np.asarray(level_set.low, np.int64), level_set.table, level_set.coarse, level_set.values, phi)
    return phi


@compiled(fastmath=False)
def _sample(points, low, table, coarse, values, phi):
    """Write the distance at points; `phi` holds the band, which is what stays outside of the table."""
    parallel_for(_sample_at, points.shape[0], (points, low, table, coarse, values, phi))


@part
def _sample_at(p, points, low, table, coarse, values, phi):
    x, y, z = points[p, 0], points[p, 1], points[p, 2]
    i, j, k = int(np.floor(x)), int(np.floor(y)), int(np.floor(z))
    a, b, c = i // LEAF - low[0], j // LEAF - low[1], k // LEAF - low[2]
    if not (0 <= a < table.shape[0] and 0 <= b < table.shape[1] and 0 <= c < table.shape[2]):
        return
    leaf = table[a, b, c]
    if leaf < 0:
        phi[p] = -phi[p] if coarse[a, b, c] < 0.0 else phi[p]
        return
    x, y, z, i, j, k = x - i, y - j, z - k, i % LEAF, j % LEAF, k % LEAF
    total = 0.0
    for corner in range(8):
        u, v, w = corner >> 2, (corner >> 1) & 1, corner & 1
        weight = (x if u else 1.0 - x) * (y if v else 1.0 - y) * (z if w else 1.0 - z)
        total += weight * values[leaf, i + u, j + v, k + w]
    phi[p] = total
