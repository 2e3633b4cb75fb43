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

from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.lanes.arithmetic import both, broadcast, const, fma, select, sqrt
from mpm_nodes.kernels.lanes.indexed import to_single
from mpm_nodes.kernels.lanes.memory import load
from mpm_nodes.kernels.lanes.types import WIDTH
from mpm_nodes.kernels.level_sets.regions import pack_key
from mpm_nodes.kernels.surfaces.runs import apart, find_runs, in_columns, no_runs, sum_of
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
_MOMENTS = 10


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

    @property
    def threadless(self) -> bool:
        """Whether all that is stretched is in sheets."""
        return len(self.sheets.inverses) == len(self.stretched.inverses)


def kernels_of(bins: SortedParticles, reach: float) -> Kernels:
    """Return which particles are in thin places, and the shapes of their kernels.

    Args:
        bins: Particles, in bins of edge `reach`.
        reach: R [m].
    """
    candidates = np.flatnonzero(_sparse(bins))
    if not len(candidates):
        return Kernels.all_round(bins, reach)
    covariances, counts = _covariances(in_columns(bins, _WIDTH * reach), candidates, _WIDTH * reach)
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
    shortest = axes.min(axis=1).astype(np.float32)[thin.order]
    stretched = Stretched(thin, np.ascontiguousarray(inverses, np.float32), shortest, np.ascontiguousarray(extents, np.float32))
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
def _covariances_run(chunk, particles, rows, width, covariances, counts):
    bounds, runs = no_runs()
    moments = np.empty(_MOMENTS, np.float32)
    for n in range(chunk * _CHUNK, min((chunk + 1) * _CHUNK, len(rows))):
        place = particles[1][rows[n]], particles[2][rows[n]], particles[3][rows[n]]
        found = find_runs(particles, place, width, bounds, runs)
        counts[n] = _moments_around(particles, place, width, (runs, found), moments)
        scale = 1.0 / moments[0]
        x, y, z = moments[1] * scale, moments[2] * scale, moments[3] * scale
        square = width * width
        covariances[n, 0, 0] = (moments[4] * scale - x * x) * square
        covariances[n, 1, 1] = (moments[5] * scale - y * y) * square
        covariances[n, 2, 2] = (moments[6] * scale - z * z) * square
        covariances[n, 0, 1] = covariances[n, 1, 0] = (moments[7] * scale - x * y) * square
        covariances[n, 0, 2] = covariances[n, 2, 0] = (moments[8] * scale - x * z) * square
        covariances[n, 1, 2] = covariances[n, 2, 1] = (moments[9] * scale - y * z) * square


@inline
def _moments_around(particles, place, width, found, moments):
    """Write the moments 1, x, y, z, xx, yy, zz, xy, xz, yz of w around a place, lengths over `width`; return how many count."""
    runs, number = found
    none = const(to_single(load(particles[1], 0)), 0.0)
    one, scale = const(none, 1.0), broadcast(none, 1.0 / width)
    count = total = sx = sy = sz = xx = yy = zz = xy = xz = yz = none
    for n in range(number):
        end = runs[n, 1]
        for row in range(runs[n, 0], end, WIDTH):
            x, y, z, there = apart(particles, row, end, place)
            x, y, z = x * scale, y * scale, z * scale
            square = x * x + y * y + z * z
            near = both(there, square < one)
            weight = select(near, one - square * sqrt(square), none)
            count = count + select(near, one, none)
            total = total + weight
            wx, wy, wz = weight * x, weight * y, weight * z
            sx, sy, sz = sx + wx, sy + wy, sz + wz
            xx, yy, zz = fma(wx, x, xx), fma(wy, y, yy), fma(wz, z, zz)
            xy, xz, yz = fma(wx, y, xy), fma(wx, z, xz), fma(wy, z, yz)
    for moment, value in enumerate((total, sx, sy, sz, xx, yy, zz, xy, xz, yz)):
        moments[moment] = sum_of(value)
    return sum_of(count)


@compiled
def _covariances(particles, rows, width):
    """Return C, shape (n, 3, 3), and the numbers of particles within `width` of those in `rows`."""
    covariances, counts = np.empty((len(rows), 3, 3)), np.zeros(len(rows))
    parallel_for(_covariances_run, (len(rows) + _CHUNK - 1) // _CHUNK, (particles, rows, width, covariances, counts))
    return covariances, counts
