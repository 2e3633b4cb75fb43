"""Sample a sparse vector grid at scattered points."""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled

BIAS = 1 << 20


def sample_vectors(origins: np.ndarray, values: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the trilinear vectors at points, shape (n, 3), and where any voxel was there, shape (n,).

    Args:
        origins: First voxel of each leaf, shape (leaves, 3), multiples of 8.
        values: Shape (leaves, 8, 8, 8, 3).
        points: In voxel indices, shape (n, 3).

    Voxels outside every leaf are left out of the average.
    """
    keys = leaf_keys(origins)
    order = np.argsort(keys)
    vectors, held = np.zeros((len(points), 3)), np.zeros(len(points), np.bool_)
    points = np.ascontiguousarray(points, np.float64)
    if len(keys):
        _sample(keys[order], order, np.ascontiguousarray(values, np.float32), points, vectors, held)
    return vectors, held


def leaf_keys(origins: np.ndarray) -> np.ndarray:
    """Return the numbers that leaves are sorted by, int64, shape (n,), of their first voxels, shape (n, 3)."""
    leaves = np.asarray(origins, np.int64) >> 3
    return ((leaves[:, 0] + BIAS) << 42) | ((leaves[:, 1] + BIAS) << 21) | (leaves[:, 2] + BIAS)


@compiled(fastmath=False)
def _sample(keys, order, values, points, vectors, held):
    for p in range(points.shape[0]):
        i, j, k = int(np.floor(points[p, 0])), int(np.floor(points[p, 1])), int(np.floor(points[p, 2]))
        total = 0.0
        for corner in range(8):
            a, b, c = i + (corner >> 2), j + ((corner >> 1) & 1), k + (corner & 1)
            key = (((a >> 3) + BIAS) << 42) | (((b >> 3) + BIAS) << 21) | ((c >> 3) + BIAS)
            found = np.searchsorted(keys, key)
            if found == len(keys) or keys[found] != key:
                continue
            weight = (1.0 - abs(points[p, 0] - a)) * (1.0 - abs(points[p, 1] - b)) * (1.0 - abs(points[p, 2] - c))
            weight = max(weight, 1e-9)
            leaf = order[found]
            total += weight
            for axis in range(3):
                vectors[p, axis] += weight * values[leaf, a & 7, b & 7, c & 7, axis]
        if total > 0.0:
            held[p] = True
            for axis in range(3):
                vectors[p, axis] /= total
