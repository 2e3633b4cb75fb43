"""Generalised winding numbers of triangle soups: which points lie inside a mesh that is not perfect.

Far clusters of triangles act as dipoles, near triangles by their exact solid angle (Barill 2018, first order; the exact sum
is Jacobson 2013). The tree is a heap over triangles sorted along a Morton curve.

Symbols
    w       winding number: 1 inside, 0 outside a closed mesh wound counter-clockwise seen from outside
    N       sum of area vectors of a cluster                        m^2
    beta    a cluster acts as a dipole beyond beta radii
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.parallel import parallel_for

GROUP = 8
BETA = 2.0


@dataclass(frozen=True, eq=False)
class WindingTree:
    """Clusters of triangles.

    Attributes:
        corners: Triangle corners [m], sorted, shape (triangles, 3, 3).
        centre: Area-weighted centre of each cluster [m], shape (nodes, 3).
        radius: Radius of the ball about the centre that holds the cluster [m], shape (nodes,).
        dipole: N [m^2], shape (nodes, 3).
    """

    corners: np.ndarray
    centre: np.ndarray
    radius: np.ndarray
    dipole: np.ndarray


def winding_tree(points: np.ndarray, triangles: np.ndarray) -> WindingTree:
    """Build the clusters of a mesh: points [m], shape (n, 3); triangles, shape (m, 3)."""
    corners = np.ascontiguousarray(np.asarray(points, np.float64)[triangles])
    middle = corners.mean(axis=1)
    low, extent = middle.min(axis=0), np.ptp(middle, axis=0).max()
    cells = ((middle - low) * (1023.0 / max(float(extent), 1e-300))).astype(np.int64)
    code = np.zeros(len(cells), np.int64)
    for bit in range(10):
        for axis in range(3):
            code |= ((cells[:, axis] >> bit) & 1) << (3 * bit + axis)
    corners = np.ascontiguousarray(corners[np.argsort(code, kind="stable")])
    groups = 1 << max(int(np.ceil(np.log2(max(len(corners), 1) / GROUP))), 0)
    centre, radius, dipole = np.zeros((2 * groups - 1, 3)), np.zeros(2 * groups - 1), np.zeros((2 * groups - 1, 3))
    _cluster(corners, groups, centre, radius, dipole)
    return WindingTree(corners, centre, radius, dipole)


def winding_numbers(tree: WindingTree, points: np.ndarray) -> np.ndarray:
    """Return w at points [m], shape (n, 3); the result has shape (n,)."""
    result = np.empty(len(points))
    _evaluate(tree.corners, tree.centre, tree.radius, tree.dipole, np.ascontiguousarray(points, np.float64), result)
    return result


@compiled(fastmath=False)
def _cluster(corners, groups, centre, radius, dipole):
    """Fill the heap bottom up; group g holds triangles [g n / groups, (g + 1) n / groups)."""
    count = corners.shape[0]
    weight = np.zeros(2 * groups - 1)
    for node in range(2 * groups - 2, -1, -1):
        if node >= groups - 1:
            g = node - (groups - 1)
            first, last = g * count // groups, (g + 1) * count // groups
            for t in range(first, last):
                n0, n1, n2 = _area_vector(corners, t)
                area = np.sqrt(n0 * n0 + n1 * n1 + n2 * n2) + 1e-300
                dipole[node, 0] += n0
                dipole[node, 1] += n1
                dipole[node, 2] += n2
                weight[node] += area
                for axis in range(3):
                    centre[node, axis] += area * (corners[t, 0, axis] + corners[t, 1, axis] + corners[t, 2, axis]) / 3.0
            if weight[node] > 0.0:
                centre[node] /= weight[node]
            continue
        for child in range(2 * node + 1, 2 * node + 3):
            weight[node] += weight[child]
            dipole[node] += dipole[child]
            centre[node] += weight[child] * centre[child]
        if weight[node] > 0.0:
            centre[node] /= weight[node]
    for g in range(groups):
        for t in range(g * count // groups, (g + 1) * count // groups):
            node = g + groups - 1
            while node >= 0:
                for c in range(3):
                    far = 0.0
                    for axis in range(3):
                        far += (corners[t, c, axis] - centre[node, axis]) ** 2
                    radius[node] = max(radius[node], np.sqrt(far))
                node = (node - 1) // 2 if node > 0 else -1


@part
def _area_vector(corners, t):
    """Return the area vector of a triangle [m^2]."""
    a0, a1, a2 = corners[t, 0, 0], corners[t, 0, 1], corners[t, 0, 2]
    b0, b1, b2 = corners[t, 1, 0] - a0, corners[t, 1, 1] - a1, corners[t, 1, 2] - a2
    c0, c1, c2 = corners[t, 2, 0] - a0, corners[t, 2, 1] - a1, corners[t, 2, 2] - a2
    return 0.5 * (b1 * c2 - b2 * c1), 0.5 * (b2 * c0 - b0 * c2), 0.5 * (b0 * c1 - b1 * c0)


@part
def _evaluate_at(p, corners, centre, radius, dipole, points, result):
    result[p] = _winding(corners, centre, radius, dipole, points[p, 0], points[p, 1], points[p, 2])


@compiled(fastmath=False)
def _evaluate(corners, centre, radius, dipole, points, result):
    parallel_for(_evaluate_at, points.shape[0], (corners, centre, radius, dipole, points, result))


@part
def _winding(corners, centre, radius, dipole, x, y, z):
    """Return w at one point."""
    count, groups = corners.shape[0], (centre.shape[0] + 1) // 2
    stack = np.empty(64, np.int64)
    stack[0] = 0
    top = 1
    total = 0.0
    while top > 0:
        top -= 1
        node = stack[top]
        d0, d1, d2 = centre[node, 0] - x, centre[node, 1] - y, centre[node, 2] - z
        squared = d0 * d0 + d1 * d1 + d2 * d2
        reach = BETA * radius[node]
        if squared > reach * reach:
            total += (dipole[node, 0] * d0 + dipole[node, 1] * d1 + dipole[node, 2] * d2) / (squared * np.sqrt(squared))
        elif node >= groups - 1:
            g = node - (groups - 1)
            for t in range(g * count // groups, (g + 1) * count // groups):
                total += _solid_angle(corners, t, x, y, z)
        else:
            stack[top], stack[top + 1] = 2 * node + 1, 2 * node + 2
            top += 2
    return total / (4.0 * np.pi)


@part
def _solid_angle(corners, t, x, y, z):
    """Return the signed solid angle of a triangle seen from a point (Van Oosterom and Strackee 1983)."""
    a0, a1, a2 = corners[t, 0, 0] - x, corners[t, 0, 1] - y, corners[t, 0, 2] - z
    b0, b1, b2 = corners[t, 1, 0] - x, corners[t, 1, 1] - y, corners[t, 1, 2] - z
    c0, c1, c2 = corners[t, 2, 0] - x, corners[t, 2, 1] - y, corners[t, 2, 2] - z
    la = np.sqrt(a0 * a0 + a1 * a1 + a2 * a2)
    lb = np.sqrt(b0 * b0 + b1 * b1 + b2 * b2)
    lc = np.sqrt(c0 * c0 + c1 * c1 + c2 * c2)
    volume = a0 * (b1 * c2 - b2 * c1) + a1 * (b2 * c0 - b0 * c2) + a2 * (b0 * c1 - b1 * c0)
    below = (
        la * lb * lc + (a0 * b0 + a1 * b1 + a2 * b2) * lc + (b0 * c0 + b1 * c1 + b2 * c2) * la + (c0 * a0 + c1 * a1 + c2 * a2) * lb
    )
    return 2.0 * np.arctan2(volume, below)
