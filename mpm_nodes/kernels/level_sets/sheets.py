"""How thin a level set is where it is a sheet: a wall, a card or a bowl, but no rod and no ball."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mpm_nodes.kernels.level_sets.level_set import LEAF, LeafLevelSet

__all__ = ["Sheet", "thin_sheet"]

MOST_POINTS = 4096
"""Points of the surface that are looked at, spread evenly."""
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


def thin_sheet(level_set: LeafLevelSet, reach: float) -> Sheet:
    """Return how much of a level set is a sheet thinner than `reach` [m], and how thin.

    A ray goes in from a point of the surface and out at the other side. The place is a sheet where the body goes on by as much
    sideways of the middle of the ray, in at least three of four directions: at a rim it ends in one, of a rod there are two.
    """
    points, normals = _surface(level_set)
    if not len(points):
        return Sheet(0.0, np.inf)
    lengths = _through(level_set, points, normals, reach / level_set.voxel_size)
    thin = np.isfinite(lengths)
    middle = points[thin] - 0.5 * lengths[thin, None] * normals[thin]
    first, second = _across(normals[thin])
    beside = [_phi(level_set, middle + sign * lengths[thin, None] * way) < 0.0 for way in (first, second) for sign in (-1.0, 1.0)]
    sheet = np.sum(beside, axis=0) >= 3
    if not sheet.any():
        return Sheet(0.0, np.inf)
    return Sheet(float(sheet.sum() / len(points)), float(np.median(lengths[thin][sheet])) * level_set.voxel_size)


def _surface(level_set: LeafLevelSet) -> tuple[np.ndarray, np.ndarray]:
    """Return points of the surface and outward normals, in voxels."""
    values = level_set.values
    leaves = np.empty((len(values), 3), np.int64)
    where = np.argwhere(level_set.table >= 0)
    leaves[level_set.table[tuple(where.T)]] = LEAF * (where + level_set.low)
    core, found = values[:, :LEAF, :LEAF, :LEAF], []
    for axis in range(3):
        following = np.take(values, range(1, LEAF + 1), axis=axis + 1)[:, :LEAF, :LEAF, :LEAF]
        crossed = np.argwhere((core < 0.0) != (following < 0.0))
        low, high = core[tuple(crossed.T)].astype(float), following[tuple(crossed.T)].astype(float)
        points = (leaves[crossed[:, 0]] + crossed[:, 1:]).astype(float)
        points[:, axis] += low / (low - high)
        found.append(points)
    points = np.concatenate(found)
    points = points[:: max(1, len(points) // MOST_POINTS)]
    steps = 0.5 * np.eye(3)
    slopes = np.stack([_phi(level_set, points + step) - _phi(level_set, points - step) for step in steps], axis=-1)
    lengths = np.linalg.norm(slopes, axis=1)
    return points[lengths > 0.0], slopes[lengths > 0.0] / lengths[lengths > 0.0, None]


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
    least = np.eye(3)[np.argmin(np.abs(normals), axis=1)]
    first = np.cross(normals, least)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    return first, np.cross(normals, first)


def _phi(level_set: LeafLevelSet, points: npt.NDArray[np.floating]) -> np.ndarray:
    """Return the signed distance at points in voxels [m], trilinear; away from the leaves its sign alone."""
    cell = np.floor(points).astype(np.int64)
    leaf = cell // LEAF - level_set.low
    size = np.array(level_set.table.shape)
    held = ((leaf >= 0) & (leaf < size)).all(axis=1)
    safe = tuple(np.where(held[:, None], leaf, 0).T)
    number = np.where(held, level_set.table[safe], -1)
    phi = np.where(held & (level_set.coarse[safe] < 0.0), -level_set.band, level_set.band)
    inner = number >= 0
    at, part = cell[inner] % LEAF, points[inner] - cell[inner]
    total = np.zeros(len(at))
    for corner in np.ndindex(2, 2, 2):
        weight = np.where(corner, part, 1.0 - part).prod(axis=1)
        total += weight * level_set.values[(number[inner], *(at + corner).T)]
    phi[inner] = total
    return phi
