"""Ellipsoids in place of spheres where matter is thin: flat in sheets, long in threads.

| symbol | meaning                                                                    | unit |
|--------|----------------------------------------------------------------------------|------|
| w_ij   | 1 - (|x_i - x_j| / r)^3 within r, else 0                                   | -    |
| C_i    | covariance of the x_j around their mean, weighted by w_ij                  | m^2  |
| q_k    | root of the k-th eigenvalue of C_i over that of the largest, at least 1/k_r | -    |
| a_k    | R q_k^t / (q_1 q_2 q_3)^(t/3), half axes of the kernel                     | m    |
| t      | 1 in sheets and threads, 0 in bulk and in drops, smooth in between         | -    |

Source: the anisotropic kernels of Yu and Turk 2013, with three changes. Half axes go with lengths (roots of the eigenvalues), not
with their squares, and keep the volume of the sphere. In bulk t is zero, so thick matter costs nothing and keeps its surface.
Drops, pairs and single particles stay spheres.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.level_sets.regions import pack_key
from mpm_nodes.kernels.surfaces.splat import SortedParticles, Stretched, _floor, _lower_bound, bin_particles, binned

LEAST_RATIO = 4.0
"""k_r: the longest axis over the shortest, at most (the source's value)."""
LONGEST = LEAST_RATIO ** (2.0 / 3.0)
"""Longest half axis of a kernel, over its reach R: that of a thread."""
SPARSE = 200
"""Particles in the 27 bins around a bin (edge R, 2.5 spacings) below which matter may be thin; bulk with a flat side has 250."""
THIN, THICK = 0.2, 0.4
"""Shortest over longest axis of C below which t is 1, and above which it is 0: two layers of particles, and three."""
FEW, ENOUGH = 2.0, 4.0
"""Particles within r up to which t is 0, and from which on it is 1."""
SHORT, LONG = 0.3, 0.5
"""Root of the largest eigenvalue of C, over R, up to which t is 0, and from which on it is 1: small drops, and ends of threads."""
FLAT = 0.5
"""Middle over longest axis of C above which a thin place is a sheet, and not a thread."""
_WIDTH = 2.0
"""r, in units of R."""
_CHUNK = 64


@dataclass(frozen=True)
class Kernels:
    """What is blended: particles with round kernels, and those in thin places with ellipsoids.

    Attributes:
        round: Particles with spheres.
        stretched: Particles with ellipsoids.
        drops: Those of `round` in drops, pairs, and alone.
        sheets: Those of `stretched` in sheets.
    """

    round: SortedParticles
    stretched: Stretched
    drops: SortedParticles
    sheets: Stretched

    @staticmethod
    def all_round(bins: SortedParticles, reach: float) -> Kernels:
        """Return particles that all have spheres, wherever they are."""
        return Kernels(bins, Stretched.none(reach), bins.none(), Stretched.none(reach))

    @property
    def thin(self) -> bool:
        """Whether anything could fall through a grid."""
        return len(self.drops.keys) > 0 or len(self.stretched.inverses) > 0


def kernels_of(bins: SortedParticles, reach: float) -> Kernels:
    """Return which particles are in thin places, and the shapes of their kernels.

    Args:
        bins: Particles, in bins of edge `reach`.
        reach: R [m].
    """
    candidates = np.flatnonzero(_sparse(bins))
    if not len(candidates):
        return Kernels.all_round(bins, reach)
    covariances, counts = _covariances(binned(bins), candidates, _WIDTH * reach)
    lengths, directions = np.linalg.eigh(covariances)
    lengths = np.sqrt(np.maximum(lengths, 0.0))
    longest = np.maximum(lengths[:, 2:], 1e-30)
    ratio = lengths / longest
    amount = _smooth_step((THICK - ratio[:, 0]) / (THICK - THIN)) * _smooth_step((counts - FEW) / (ENOUGH - FEW))
    amount *= _smooth_step((longest[:, 0] / reach - SHORT) / (LONG - SHORT))
    chosen = amount > 0.0
    axes = np.maximum(ratio[chosen], 1.0 / LEAST_RATIO) ** amount[chosen, None]
    axes *= reach / np.cbrt(axes.prod(axis=1))[:, None]
    directions, rows = directions[chosen], candidates[chosen]
    left = np.ones(len(bins.keys), bool)
    left[rows] = False
    thin = bin_particles(bins.positions[rows], LONGEST * reach)
    shapes = np.einsum("pik,pk,pjk->pij", directions, axes, directions)[thin.order]
    inverses = np.einsum("pik,pk,pjk->pij", directions, 1.0 / axes, directions)[thin.order]
    extents = np.sqrt((shapes**2).sum(axis=2))
    stretched = Stretched(thin, np.ascontiguousarray(inverses, np.float32), np.ascontiguousarray(extents, np.float32))
    small = ~chosen & ((counts < ENOUGH) | (longest[:, 0] < LONG * reach))
    drops = np.zeros(len(bins.keys), bool)
    drops[candidates[small]] = True
    return Kernels(bins.of(left), stretched, bins.of(drops), stretched.of((ratio[chosen, 1] > FLAT)[thin.order]))


def _smooth_step(x: np.ndarray) -> np.ndarray:
    x = np.clip(x, 0.0, 1.0)
    return x * x * (3.0 - 2.0 * x)


def _sparse(bins: SortedParticles) -> np.ndarray:
    """Return which particles have fewer than SPARSE others in the 27 bins around theirs."""
    if not len(bins.keys):
        return np.zeros(0, bool)
    first = np.flatnonzero(np.diff(bins.keys, prepend=bins.keys[0] - 1))
    around = _counts_around(binned(bins), first)
    return np.repeat(around < SPARSE, np.diff(np.append(first, len(bins.keys))))


@part
def _counts_run(chunk, bins, first, counts):
    keys, positions, inverse = bins
    for n in range(chunk * _CHUNK, min((chunk + 1) * _CHUNK, len(first))):
        p = first[n]
        i, j, k = _floor(positions[p, 0] * inverse), _floor(positions[p, 1] * inverse), _floor(positions[p, 2] * inverse)
        for a in range(i - 1, i + 2):
            for b in range(j - 1, j + 2):
                counts[n] += _lower_bound(keys, pack_key(a, b, k + 1) + 1) - _lower_bound(keys, pack_key(a, b, k - 1))


@compiled
def _counts_around(bins, first):
    """Return the particles in the 27 bins around each bin, which is told by its first particle."""
    counts = np.zeros(len(first), np.int64)
    parallel_for(_counts_run, (len(first) + _CHUNK - 1) // _CHUNK, (bins, first, counts))
    return counts


@part
def _covariances_run(chunk, bins, rows, width, covariances, counts):
    keys, positions, inverse = bins
    for n in range(chunk * _CHUNK, min((chunk + 1) * _CHUNK, len(rows))):
        x, y, z = positions[rows[n], 0], positions[rows[n], 1], positions[rows[n], 2]
        total = count = 0.0
        mx = my = mz = xx = xy = xz = yy = yz = zz = 0.0
        k_low, k_high = _floor((z - width) * inverse), _floor((z + width) * inverse)
        for bi in range(_floor((x - width) * inverse), _floor((x + width) * inverse) + 1):
            for bj in range(_floor((y - width) * inverse), _floor((y + width) * inverse) + 1):
                last = pack_key(bi, bj, k_high)
                p = _lower_bound(keys, pack_key(bi, bj, k_low))
                while p < len(keys) and keys[p] <= last:
                    dx, dy, dz = positions[p, 0] - x, positions[p, 1] - y, positions[p, 2] - z
                    share = np.sqrt(dx * dx + dy * dy + dz * dz) / width
                    if share < 1.0:
                        weight = 1.0 - share * share * share
                        count += 1.0
                        total += weight
                        wx, wy, wz = weight * dx, weight * dy, weight * dz
                        mx, my, mz = mx + wx, my + wy, mz + wz
                        xx, xy, xz = xx + wx * dx, xy + wy * dx, xz + wz * dx
                        yy, yz, zz = yy + wy * dy, yz + wz * dy, zz + wz * dz
                    p += 1
        counts[n] = count
        inverse_total = 1.0 / total
        mx, my, mz = mx * inverse_total, my * inverse_total, mz * inverse_total
        xy, xz, yz = xy * inverse_total - mx * my, xz * inverse_total - mx * mz, yz * inverse_total - my * mz
        covariances[n, 0, 0] = xx * inverse_total - mx * mx
        covariances[n, 1, 1] = yy * inverse_total - my * my
        covariances[n, 2, 2] = zz * inverse_total - mz * mz
        covariances[n, 0, 1] = covariances[n, 1, 0] = xy
        covariances[n, 0, 2] = covariances[n, 2, 0] = xz
        covariances[n, 1, 2] = covariances[n, 2, 1] = yz


@compiled
def _covariances(bins, rows, width):
    """Return C, shape (n, 3, 3), and the numbers of particles within `width` of those in `rows`."""
    covariances, counts = np.empty((len(rows), 3, 3)), np.zeros(len(rows))
    parallel_for(_covariances_run, (len(rows) + _CHUNK - 1) // _CHUNK, (bins, rows, width, covariances, counts))
    return covariances, counts
