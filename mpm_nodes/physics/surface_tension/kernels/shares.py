"""Owners and their samples: what an owner shares with the points that belong to it, and what they give back.

| symbol | meaning | source |
|---|---|---|
| p, n_p | owner, and how many points belong to it | C21 section 5 |
| m, v, C | mass, velocity and affine velocity | |
| d | inertia of the transfer, D / h^2: 1/4 quadratic, 1/3 cubic | |
| a_s | place of a point less that of its owner [m] | |

    split   m_s = m_p / (n_p + 1),  v_s = v_p,  C_s = C_p
    merge   v_p = mean of v over owner and points,  C_p = mean of C_p and C_s + v_s a_s^T / (d h^2)

Sums are taken in the order of the points, in double precision: they hang on no number of threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.parallel import parallel_for

__all__ = ["PointMotion", "Points", "merge_motion", "offsets_from_owners", "points_of_owners", "share_motion"]

CHUNK = 1024


class Points(NamedTuple):
    """Where points are, in fixed-point numbers.

    Attributes:
        offset: From the centres of their blocks, rows, shape (3, n).
        block: Block of each, shape (n,).
        coord: Coordinates of the blocks, shape (blocks, 3), int32.
    """

    offset: np.ndarray
    block: np.ndarray
    coord: np.ndarray


class PointMotion(NamedTuple):
    """Rows of particles or of points: shapes (3, n) and (9, n)."""

    velocity: np.ndarray
    affine: np.ndarray


@compiled
def _count(owner, start):
    for s in range(owner.shape[0]):
        start[owner[s] + 1] += 1
    for p in range(start.shape[0] - 1):
        start[p + 1] += start[p]


@compiled
def _list(owner, at, listed):
    for s in range(owner.shape[0]):
        listed[at[owner[s]]] = s
        at[owner[s]] += 1


def points_of_owners(owner: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return where the points of each owner begin, shape (count + 1,), int64, and all points by owner, in order, int32.

    Args:
        owner: Of each point, shape (n,): 0 to count - 1.
        count: How many owners there may be.
    """
    start, listed = np.zeros(count + 1, np.int64), np.empty(len(owner), np.int32)
    _count(owner, start)
    _list(owner, start[:-1].copy(), listed)
    return start, listed


@part
def _offsets_at(c, owner, points, owners, tile, offset):
    for s in range(c * CHUNK, min((c + 1) * CHUNK, owner.shape[0])):
        p = owner[s]
        for a in range(3):
            between = np.int64(points.coord[points.block[s], a]) - np.int64(owners.coord[owners.block[p], a])
            offset[s, a] = np.int64(points.offset[a, s]) + tile * between - np.int64(owners.offset[a, p])


@compiled
def _offsets(owner, points, owners, tile, offset):
    parallel_for(_offsets_at, -(-owner.shape[0] // CHUNK), (owner, points, owners, tile, offset))


def offsets_from_owners(owner: np.ndarray, points: Points, owners: Points, tile: int) -> np.ndarray:
    """Return where points are from their owners, in fixed-point numbers, shape (n, 3), int64: exactly.

    Args:
        owner: Of each point, shape (n,).
        points: Where the points are.
        owners: Where the owners are.
        tile: Edge of a block in those numbers.
    """
    offset = np.empty((len(owner), 3), np.int64)
    _offsets(owner, points, owners, tile, offset)
    return offset


@part
def _shared_at(c, owner, start, mass, given, taken):
    (own_mass, whole, share), (velocity, affine), (its_velocity, its_affine) = mass, given, taken
    for s in range(c * CHUNK, min((c + 1) * CHUNK, owner.shape[0])):
        p = owner[s]
        whole[s] = own_mass[p]
        share[s] = np.float64(own_mass[p]) / (start[p + 1] - start[p] + 1)
        for a in range(3):
            its_velocity[a, s] = velocity[a, p]
        for a in range(9):
            its_affine[a, s] = affine[a, p]


@compiled(fastmath=False)
def share_motion(owner, start, mass, given, taken):
    """Write the mass of each point's owner, its share of that, and the owner's velocities.

    Args:
        owner: Of each point, shape (n,).
        start: Points of owner p are start[p] : start[p + 1].
        mass: Of the owners before they share, and, written, that of each point's owner and each point's own, rows [kg].
        given: `PointMotion` of the owners.
        taken: `PointMotion` of the points, written.
    """
    parallel_for(_shared_at, -(-owner.shape[0] // CHUNK), (owner, start, mass, given, taken))


@part
def _merged_at(c, groups, away, unit, given, taken):
    start, listed = groups
    velocity, affine = given
    own_velocity, own_affine = taken
    for p in range(c * CHUNK, min((c + 1) * CHUNK, start.shape[0] - 1)):
        first, last = start[p], start[p + 1]
        if first == last:
            continue
        size = np.float64(last - first + 1)
        for a in range(3):
            total = 0.0
            for n in range(first, last):
                total += np.float64(velocity[a, listed[n]])
            for b in range(3):
                turned = 0.0
                for n in range(first, last):
                    s = listed[n]
                    turned += np.float64(affine[3 * a + b, s]) + np.float64(velocity[a, s]) * (away[s, b] / unit)
                own_affine[3 * a + b, p] = (np.float64(own_affine[3 * a + b, p]) + turned) / size
            own_velocity[a, p] = (np.float64(own_velocity[a, p]) + total) / size


@compiled(fastmath=False)
def merge_motion(groups, away, unit, given, taken):
    """Give owners the mean of their own and their points' velocities, about their own places.

    Args:
        groups: As `points_of_owners` gives them.
        away: Points less their owners, in fixed-point numbers, shape (n, 3), int64.
        unit: What divides those: their unit times h times d [m].
        given: `PointMotion` of the points.
        taken: `PointMotion` of the owners, changed.
    """
    parallel_for(_merged_at, -(-(groups[0].shape[0] - 1) // CHUNK), (groups, away, unit, given, taken))
