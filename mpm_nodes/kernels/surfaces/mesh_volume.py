"""Moves the points of a mesh along its normals until it encloses the volume of its particles.

| symbol | meaning                                                                            | unit |
|--------|------------------------------------------------------------------------------------|------|
| A      | area of a point: a third of that of its triangles, along its normal / dx^2          | -    |
| s      | volume swept by a point so far / dx^3: d (A before + A now) / 2                     | -    |
| e      | what lacks in a cell: volume of its particles / dx^3 - volume inside before - swept | -    |
| G      | Gaussian of width `spread`                                                         | -    |
| d      | displacement of a point / dx, the sum of (G * e) / (G * A)                          | -    |
| t      | (G * volume inside) / (G * A): half the thickness of a sheet, half the radius of a thread | -    |
| T      | way from a point straight inward until the level set ends                          | -    |

A grid shows no sheet, thread or drop thinner than a voxel or two, and its mesh cuts corners. Points are bound to no grid: a sheet
that the grid shows as thick as it can is drawn in to the thickness that its particles have, as one piece. Points go inward by at
most a share of t and of T / 2, so that the two sides of a sheet stay apart. What then is left of the whole volume is spread over
all points.
No source has it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.level_sets.regions import find_leaf, pack_key, sample_from
from mpm_nodes.kernels.surfaces.neighbourhoods import blur, deposit_points, read_points, stencils_at
from mpm_nodes.kernels.surfaces.splat import _floor

STEPS = 3
"""Displacements, one after the other."""
INWARD = 0.85
"""Longest way inward, as a share of t and of T / 2: a sheet keeps at least 0.15 of its thickness."""
_FAR_IN, _THICK, _PACE = 0.25, 4.0, 0.25
"""Way inward from which on T is asked for, how far it is looked for, and in which steps [voxels]."""
_LEAST_AREA = np.float32(0.05)
_CHUNK = 1024
_CLOSINGS = 4
"""Most steps that spread what is left over all points."""
_EXACT = 1e-12
"""Share of the whole volume that may be left: what double precision holds in sums over a million triangles."""


class Balance(NamedTuple):
    """What is known of volumes on cells of two voxels.

    Attributes:
        filled: Volume of the particles / dx^3, shape (leaves, 4, 4, 4).
        inside: Voxels inside the level set, the same.
        distances: Of the level set that was meshed [m], shape (leaves, 8, 8, 8), float32; negative inside.
        neighbours: From `surfaces.filter.leaf_neighbours`.
        keys: Of the leaves, rising.
        wanted: Rows of the leaves that the surface reaches.
        voxel_size: dx [m].
    """

    filled: np.ndarray
    inside: np.ndarray
    distances: np.ndarray
    neighbours: np.ndarray
    keys: np.ndarray
    wanted: np.ndarray
    voxel_size: float


def match_mesh(points: np.ndarray, corners: np.ndarray, balance: Balance, whole: float, spread: float, most: float) -> np.ndarray:
    """Return points of a closed mesh that encloses the particles' volumes, shape (n, 3), float64.

    Args:
        points: [m], shape (n, 3).
        corners: Of triangles, counter-clockwise seen from outside, shape (m, 3).
        balance: Volumes of particles, and inside the level set that was meshed.
        whole: Volume that the mesh should enclose [m^3].
        spread: Width of the neighbourhoods [m].
        most: Longest displacement outward [m]; all points may go twice as far where matter is packed so that this is too short.
    """
    dx = balance.voxel_size
    places, width, most = points / dx, spread / dx, most / dx
    areas, begin = _vector_areas(places, corners)
    sizes = np.linalg.norm(areas, axis=1)
    normals = areas / np.maximum(sizes, 1e-30)[:, None]
    whole_area = max(float(sizes.sum()), 1e-30)
    at = stencils_at(places, balance.keys)
    area = deposit_points(sizes, at)
    # the mesh cuts corners that voxels have: a share of its area
    inside = balance.inside - np.float32((float(balance.inside.sum(dtype=np.float64)) - begin) / whole_area) * area
    held, over = read_points(_near(balance, width, inside, area), at).T
    asked = read_points(blur(balance.filled[None], balance.neighbours, width, balance.wanted, splines=True), at)[:, 0]
    over = np.maximum(over, _LEAST_AREA)
    least = -INWARD * np.maximum(held, 0.0) / over
    moved, lacking = np.zeros(len(places)), asked - held
    for step in range(STEPS):
        moved = np.clip(moved + lacking / over, least, most)
        if step < STEPS - 1:
            outward, volume = _vector_areas(places + moved[:, None] * normals, corners)
            swept = 0.5 * moved * (sizes + np.maximum(np.einsum("ij,ij->i", outward, normals), 0.0))
            swept += (volume - begin - swept.sum()) * sizes / whole_area
            lacking = asked - read_points(_near(balance, width, inside + deposit_points(swept, at)), at)[:, 0]
    deep = np.flatnonzero(moved < -_FAR_IN)
    least[deep] = np.maximum(least[deep], -0.5 * INWARD * _thickness(places[deep], normals[deep], balance.keys, balance.distances))
    least = _of_neighbours(least, corners)
    moved = np.maximum(moved, least)
    for farthest in (most, 2.0 * most):
        moved = _closed(moved, places, normals, corners, (whole / dx**3, least, farthest))
    return points + dx * moved[:, None] * normals


def _near(balance: Balance, width: float, *fields: np.ndarray) -> np.ndarray:
    return blur(np.stack(fields), balance.neighbours, width, balance.wanted)


def _closed(
    moved: np.ndarray, places: np.ndarray, normals: np.ndarray, corners: np.ndarray, aim: tuple[float, np.ndarray, float]
) -> np.ndarray:
    """Return displacements with what lacks in all spread evenly over the points that may still move."""
    whole, least, most = aim
    for _ in range(_CLOSINGS):
        outward, volume = _vector_areas(places + moved[:, None] * normals, corners)
        if abs(whole - volume) <= _EXACT * whole:
            break
        share = np.einsum("ij,ij->i", outward, normals)
        free = moved > least if volume > whole else moved < most
        step = (whole - volume) / max(float(share[free].sum()), 1e-30) if free.any() else 0.0
        moved = np.clip(moved + np.clip(step, -0.25 * most, 0.25 * most) * free, least, most)
    return moved


@part
def _thickness_run(chunk, places, normals, keys, distances, found):
    leaf, row = pack_key(0, 0, 0), find_leaf(keys, 0, 0, 0)
    for n in range(chunk * _CHUNK, min((chunk + 1) * _CHUNK, len(places))):
        way = 2.0 * _PACE
        while way < _THICK:
            x, y, z = (places[n, 0] - way * normals[n, 0], places[n, 1] - way * normals[n, 1], places[n, 2] - way * normals[n, 2])
            i, j, k = _floor(x), _floor(y), _floor(z)
            if pack_key(i >> 3, j >> 3, k >> 3) != leaf:
                leaf, row = pack_key(i >> 3, j >> 3, k >> 3), find_leaf(keys, i, j, k)
            if sample_from(row, keys, distances, np.float32(1.0), x, y, z) >= 0.0:
                break
            way += _PACE
        found[n] = way


@compiled
def _thickness(places, normals, keys, distances):
    """Return T, shape (n,), in voxels."""
    found = np.empty(len(places))
    parallel_for(_thickness_run, (len(places) + _CHUNK - 1) // _CHUNK, (places, normals, keys, distances, found))
    return found


@compiled
def _of_neighbours(values, corners):
    """Return the greatest of the values of each point and of those that it shares a triangle with."""
    found = values.copy()
    for t in range(len(corners)):
        most = max(values[corners[t, 0]], max(values[corners[t, 1]], values[corners[t, 2]]))
        for corner in range(3):
            found[corners[t, corner]] = max(found[corners[t, corner]], most)
    return found


@compiled
def _vector_areas(points, corners):
    """Return a third of the vector areas of each point's triangles, shape (n, 3), and the volume that is enclosed."""
    areas, total = np.zeros((len(points), 3)), 0.0
    x0, y0, z0 = (points[0, 0], points[0, 1], points[0, 2]) if len(points) else (0.0, 0.0, 0.0)
    for t in range(len(corners)):
        a, b, c = corners[t, 0], corners[t, 1], corners[t, 2]
        ax, ay, az = points[a, 0] - x0, points[a, 1] - y0, points[a, 2] - z0
        bx, by, bz = points[b, 0] - x0, points[b, 1] - y0, points[b, 2] - z0
        cx, cy, cz = points[c, 0] - x0, points[c, 1] - y0, points[c, 2] - z0
        ux, uy, uz, vx, vy, vz = bx - ax, by - ay, bz - az, cx - ax, cy - ay, cz - az
        nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
        total += (ax * nx + ay * ny + az * nz) / 6.0
        for corner in range(3):
            p = corners[t, corner]
            areas[p, 0] += nx / 6.0
            areas[p, 1] += ny / 6.0
            areas[p, 2] += nz / 6.0
    return areas, total
