"""Amounts of particles shared out to voxels by quadratic B-splines: fog, momentum, heat.

A voxel gathers its particles in the order of the bins, so results do not depend on the number of threads.
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.level_sets.regions import pack_key
from mpm_nodes.kernels.surfaces.splat import LEAF, SortedParticles, _floor, _lower_bound, binned


def deposit(bins: SortedParticles, amounts: np.ndarray, origins: np.ndarray, voxel_size: float, spread: int) -> np.ndarray:
    """Share the particles' amounts out to voxels by quadratic B-splines; the sum stays the same.

    Args:
        bins: Particles, in bins of edge >= 1.5 spread voxels.
        amounts: In the input order of the particles, shape (n, m).
        origins: Leaves, shape (leaves, 3), int32.
        voxel_size: [m].
        spread: Knot distance of the splines in voxels, a whole number: only then do they add up to one on voxels.

    Returns:
        Shape (leaves, 8, 8, 8, m), float32.
    """
    ordered = np.ascontiguousarray(np.asarray(amounts, np.float32)[bins.order])
    return _deposit(binned(bins), ordered, origins, voxel_size, spread)


@part
def _deposit_at(leaf, bins, amounts, origins, dx, spread, result):
    (keys, positions, inverse), (knots, reach, scale, far) = bins, spread
    x0, y0, z0 = origins[leaf, 0] * dx, origins[leaf, 1] * dx, origins[leaf, 2] * dx
    width, weights = amounts.shape[1], np.empty((3, LEAF), np.float32)
    k_low, k_high = _floor((z0 - reach) * inverse), _floor((z0 + far) * inverse)
    for bi in range(_floor((x0 - reach) * inverse), _floor((x0 + far) * inverse) + 1):
        for bj in range(_floor((y0 - reach) * inverse), _floor((y0 + far) * inverse) + 1):
            last = pack_key(bi, bj, k_high)
            p = _lower_bound(keys, pack_key(bi, bj, k_low))
            while p < len(keys) and keys[p] <= last:
                for n in range(LEAF):
                    weights[0, n] = _spline((x0 + n * dx - positions[p, 0]) * scale)
                    weights[1, n] = _spline((y0 + n * dx - positions[p, 1]) * scale)
                    weights[2, n] = _spline((z0 + n * dx - positions[p, 2]) * scale)
                share = np.float32(1.0 / (knots * knots * knots))
                for i in range(LEAF):
                    if weights[0, i] > 0.0:
                        for j in range(LEAF):
                            part = share * weights[0, i] * weights[1, j]
                            if part > 0.0:
                                for k in range(LEAF):
                                    for c in range(width):
                                        result[leaf, i, j, k, c] += part * weights[2, k] * amounts[p, c]
                p += 1


@compiled
def _deposit(bins, amounts, origins, dx, spread):
    result = np.zeros((len(origins), LEAF, LEAF, LEAF, amounts.shape[1]), np.float32)
    reach, scale = 1.5 * spread * dx, 1.0 / (spread * dx)
    far = (LEAF - 1) * dx + reach
    parallel_for(_deposit_at, len(origins), (bins, amounts, origins, dx, (spread, reach, scale, far), result))
    return result


@inline
def _spline(x):
    """Return the quadratic B-spline."""
    a = abs(x)
    outer = max(1.5 - a, 0.0)
    return 0.75 - a * a if a < 0.5 else 0.5 * outer * outer
