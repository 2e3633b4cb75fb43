"""The surface of blended spheres and ellipsoids around particles, as a sparse field.

| symbol | meaning                                                          | unit    |
|--------|------------------------------------------------------------------|---------|
| dx     | voxel size                                                       | m       |
| R      | reach of the averaging kernel k(s) = (1 - s^2)^3, s = |x - x_p| / R | m    |
| r      | radius of a particle's sphere                                    | m       |
| phi    | max(|x - xbar| - r, |x - nearest x_p| - l); xbar: k-weighted mean | m       |
| l      | no point further than this from every particle is inside         | m       |
| G, a   | inverse shape of a particle's ellipsoid, and its shortest half axis | 1/m, m |
| keys   | 63-bit keys of bins (edge >= R), rising along the particles       | -       |

Source of the first part of phi: Zhu & Bridson 2005, equations 2 to 6. Alone it also calls the middle of a gap
between two bodies inside, because xbar lies there as well; the second part takes that away. At the rim of a sheet, at the end of a
thread, and beside a gap in either, xbar lies far back along it: the rim stood inside of its particles, and gaps became holes. Ways
along an ellipsoid count for half there: in place of x - x_p its particle gives (1 - ALONG) (x - x_p) + ALONG a G (x - x_p), which
across is the same; no source has it. A voxel gathers its
particles in the order of the bins, so results do not depend on the number of threads. Fields are built leaf by leaf
(8^3 voxels), never in the box around everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.lanes.arithmetic import broadcast, const, fma, maximum, select, sqrt
from mpm_nodes.kernels.lanes.memory import lane_constant, load, store
from mpm_nodes.kernels.lanes.types import WIDTH
from mpm_nodes.kernels.level_sets.regions import pack_key, unpack_keys

LEAF = 8
ALONG = 2.0 / 3.0
"""Share of ways that is measured by the ellipsoid: where its axes are four to one, ways along it count for half."""
_CHUNK = 256
_PAIRS, _PAIR = LEAF * LEAF // 2, 5 * WIDTH
"""Two rows of voxels fill the lanes; of each there are five sums."""
_ROW, _COLUMN = lane_constant([lane // LEAF for lane in range(WIDTH)]), lane_constant([lane % LEAF for lane in range(WIDTH)])
"""Row and voxel of each lane."""


@dataclass(frozen=True)
class SortedParticles:
    """Particles in the order of their bins.

    Attributes:
        keys: Key of each particle's bin, rising, shape (n,), int64.
        order: Row of each sorted particle in the input, shape (n,), int64.
        positions: Sorted positions [m], shape (n, 3), float64.
        edge: Edge of a bin [m], at least the reach of every query.
    """

    keys: np.ndarray
    order: np.ndarray
    positions: np.ndarray
    edge: float

    def of(self, chosen: np.ndarray) -> SortedParticles:
        """Return those that are chosen, shape (n,), bool."""
        return SortedParticles(self.keys[chosen], self.order[chosen], self.positions[chosen], self.edge)

    def none(self) -> SortedParticles:
        """Return none of them."""
        return SortedParticles(self.keys[:0], self.order[:0], self.positions[:0], self.edge)


@dataclass(frozen=True)
class Stretched:
    """Particles whose kernels are ellipsoids: s = |inverse (x - x_p)|.

    Attributes:
        particles: In bins no smaller than the longest half axis.
        inverses: Symmetric matrices of sorted particles [1/m], shape (n, 3, 3), float32.
        shortest: Shortest half axes of the ellipsoids [m], shape (n,), float32.
        extents: Half edges of the boxes around the ellipsoids [m], shape (n, 3), float32.
    """

    particles: SortedParticles
    inverses: np.ndarray
    shortest: np.ndarray
    extents: np.ndarray

    def of(self, chosen: np.ndarray) -> Stretched:
        """Return those that are chosen, shape (n,), bool."""
        return Stretched(self.particles.of(chosen), self.inverses[chosen], self.shortest[chosen], self.extents[chosen])

    @staticmethod
    def none(edge: float) -> Stretched:
        """Return no particles at all."""
        nothing = SortedParticles(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, 3)), edge)
        return Stretched(nothing, np.zeros((0, 3, 3), np.float32), np.zeros(0, np.float32), np.zeros((0, 3), np.float32))


def bin_particles(positions: np.ndarray, edge: float) -> SortedParticles:
    """Sort positions [m], shape (n, 3), into bins of the given edge [m]."""
    positions = np.ascontiguousarray(positions, np.float64)
    keys = _bin_keys(positions, 1.0 / edge)
    order = np.argsort(keys, kind="stable")
    return SortedParticles(keys[order], order, positions[order], edge)


def leaves_near(bins: SortedParticles, reach: float, voxel_size: float) -> np.ndarray:
    """Return first voxels, shape (leaves, 3), int32, of the leaves that come within `reach` [m] of a filled bin."""
    if not len(bins.keys):
        return np.zeros((0, 3), np.int32)
    first = np.flatnonzero(np.diff(bins.keys, prepend=bins.keys[0] - 1))
    low, high = _bin_extents(bins.positions, np.append(first, len(bins.keys)))
    edge = LEAF * voxel_size
    a = np.floor((low - reach) / edge).astype(np.int64)
    b = np.floor((high + reach) / edge).astype(np.int64)
    spans = (b - a + 1).prod(axis=1)
    keys = np.unique(_span_keys(a, b, np.cumsum(spans) - spans, int(spans.sum())))
    return unpack_keys(keys) * LEAF


def blend_spheres(
    bins: SortedParticles,
    origins: np.ndarray,
    voxel_size: float,
    reach: float,
    radius: float,
    limit: float,
    far: float,
    stretched: Stretched | None = None,
) -> np.ndarray:
    """Return phi [m] of the blended spheres on leaves; `far` where no particle is within `reach`.

    Args:
        bins: Particles, in bins of edge >= reach.
        origins: Leaves, shape (leaves, 3), int32.
        voxel_size: [m].
        reach: R [m].
        radius: r [m].
        limit: l [m].
        far: Value away from particles [m].
        stretched: Particles besides, with ellipsoids for kernels.

    Returns:
        Shape (leaves, 8, 8, 8), float32.
    """
    stretched = Stretched.none(reach) if stretched is None else stretched
    ellipsoids = _Ellipsoids(binned(stretched.particles), stretched.inverses, stretched.shortest, stretched.extents)
    return _blend(binned(bins), ellipsoids, origins, voxel_size, _Sphere(reach, radius, limit, far))


class Binned(NamedTuple):
    """`SortedParticles` as kernels take them: with 1 / edge."""

    keys: np.ndarray
    positions: np.ndarray
    inverse: float


def binned(bins: SortedParticles) -> Binned:
    """Return sorted particles as kernels take them."""
    return Binned(bins.keys, bins.positions, 1.0 / bins.edge)


class _Ellipsoids(NamedTuple):
    """`Stretched` as kernels take it."""

    bins: Binned
    inverses: np.ndarray
    shortest: np.ndarray
    extents: np.ndarray


class _Sphere(NamedTuple):
    """What is blended: reach R, radius r, limit l, and the value away from particles [m]."""

    reach: float
    radius: float
    limit: float
    far: float


@inline
def _lower_bound(keys, key):
    """Return the first row whose key is not below `key`."""
    low, high = 0, len(keys)
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@inline
def _floor(x):
    return np.int64(np.floor(x))


@part
def _bin_keys_run(chunk, positions, inverse, keys):
    for p in range(chunk * _CHUNK, min((chunk + 1) * _CHUNK, len(positions))):
        keys[p] = pack_key(_floor(positions[p, 0] * inverse), _floor(positions[p, 1] * inverse), _floor(positions[p, 2] * inverse))


@compiled
def _bin_keys(positions, inverse):
    keys = np.empty(len(positions), np.int64)
    parallel_for(_bin_keys_run, (len(positions) + _CHUNK - 1) // _CHUNK, (positions, inverse, keys))
    return keys


@compiled
def _bin_extents(positions, starts):
    """Return the box around the particles of each bin."""
    count = len(starts) - 1
    low, high = np.empty((count, 3)), np.empty((count, 3))
    for b in range(count):
        for axis in range(3):
            least = most = positions[starts[b], axis]
            for p in range(starts[b] + 1, starts[b + 1]):
                least, most = min(least, positions[p, axis]), max(most, positions[p, axis])
            low[b, axis], high[b, axis] = least, most
    return low, high


@compiled
def _span_keys(low, high, starts, total):
    """Return the packed keys of every index in each box low..high."""
    keys = np.empty(total, np.int64)
    for b in range(len(low)):
        n = starts[b]
        for i in range(low[b, 0], high[b, 0] + 1):
            for j in range(low[b, 1], high[b, 1] + 1):
                for k in range(low[b, 2], high[b, 2] + 1):
                    keys[n] = pack_key(i, j, k)
                    n += 1
    return keys


@part
def _blend_at(leaf, bins, ellipsoids, origins, dx, sphere, phi):
    sums = np.zeros(_PAIRS * _PAIR, np.float32)
    _gather_leaf(bins, origins[leaf], dx, sphere[0], sums)
    if len(ellipsoids[1]) > 0:
        _gather_stretched(ellipsoids, origins[leaf], dx, sums)
    start = np.int64(leaf) * LEAF * LEAF * LEAF
    for pair in range(_PAIRS):
        store(phi, start + 2 * pair * LEAF, _blended(sums, pair, dx, sphere))


@inline
def _blended(sums, pair, dx, sphere):
    """Return phi of two rows of voxels."""
    at = pair * _PAIR
    weight = load(sums, at)
    reach, radius, limit, far = broadcast(weight, sphere[0]), broadcast(weight, sphere[1]), broadcast(weight, sphere[2]), sphere[3]
    one, least = const(weight, 1.0), const(weight, 1e-12)
    scale = one / maximum(weight, least)
    x = load(sums, at + WIDTH) * scale - broadcast(weight, np.float32(pair // (LEAF // 2)))
    y = load(sums, at + 2 * WIDTH) * scale - (broadcast(weight, np.float32(pair % (LEAF // 2) * 2)) + _ROW(weight))
    z = load(sums, at + 3 * WIDTH) * scale - _COLUMN(weight)
    nearest = reach * sqrt(maximum(one - load(sums, at + 4 * WIDTH), const(weight, 0.0)))
    distance = maximum(sqrt(x * x + y * y + z * z) * broadcast(weight, dx) - radius, nearest - limit)
    return select(weight < least, broadcast(weight, far), distance)


@compiled
def _blend(bins, ellipsoids, origins, dx, sphere):
    phi = np.empty((len(origins), LEAF, LEAF, LEAF), np.float32)
    parallel_for(_blend_at, len(origins), (bins, ellipsoids, origins, dx, sphere, phi.reshape(-1)))
    return phi


@inline
def _gather_leaf(bins, origin, dx, reach, sums):
    """Add k and k * x_p (voxels from the leaf's origin) of particles near a leaf to `sums`, and the most of 1 - s^2."""
    keys, positions, inverse = bins
    per_voxel = 1.0 / dx
    reach_voxels = reach * per_voxel
    inverse_square = np.float32(1.0 / (reach_voxels * reach_voxels))
    x0, y0, z0 = origin[0] * dx, origin[1] * dx, origin[2] * dx
    far = (LEAF - 1) * dx + reach
    k_low, k_high = _floor((z0 - reach) * inverse), _floor((z0 + far) * inverse)
    for bi in range(_floor((x0 - reach) * inverse), _floor((x0 + far) * inverse) + 1):
        for bj in range(_floor((y0 - reach) * inverse), _floor((y0 + far) * inverse) + 1):
            last = pack_key(bi, bj, k_high)
            p = _lower_bound(keys, pack_key(bi, bj, k_low))
            while p < len(keys) and keys[p] <= last:
                x, y, z = (
                    (positions[p, 0] - x0) * per_voxel,
                    (positions[p, 1] - y0) * per_voxel,
                    (positions[p, 2] - z0) * per_voxel,
                )
                _add_particle(np.float32(x), np.float32(y), np.float32(z), np.float32(reach_voxels), inverse_square, sums)
                p += 1


@inline
def _add_particle(x, y, z, reach, inverse_square, sums):
    """Add one particle at voxel coordinates (x, y, z) of the leaf to the voxels within reach."""
    if z + reach < 0.0 or z - reach > LEAF - 1:
        return
    like = load(sums, 0)
    one, none, scale = const(like, 1.0), const(like, 0.0), broadcast(like, inverse_square)
    px, py, pz = broadcast(like, x), broadcast(like, y), broadcast(like, z)
    dz = _COLUMN(like) - pz
    first, last = max(0, int(np.ceil(y - reach))) >> 1, min(LEAF - 1, int(np.floor(y + reach))) >> 1
    for i in range(max(0, int(np.ceil(x - reach))), min(LEAF - 1, int(np.floor(x + reach))) + 1):
        dx = np.float32(i) - x
        aside = broadcast(like, dx * dx)
        for pair in range(first, last + 1):
            dy = broadcast(like, np.float32(2 * pair)) + _ROW(like) - py
            left = maximum(one - (aside + dy * dy + dz * dz) * scale, none)
            _add_pair(sums, (i * (LEAF // 2) + pair) * _PAIR, left, (px, py, pz))


@inline
def _add_pair(sums, at, left, place):
    """Add what one particle gives to two rows of voxels; `left` is 1 - s^2, not below 0."""
    weight = left * left * left
    store(sums, at, load(sums, at) + weight)
    store(sums, at + WIDTH, fma(weight, place[0], load(sums, at + WIDTH)))
    store(sums, at + 2 * WIDTH, fma(weight, place[1], load(sums, at + 2 * WIDTH)))
    store(sums, at + 3 * WIDTH, fma(weight, place[2], load(sums, at + 3 * WIDTH)))
    store(sums, at + 4 * WIDTH, maximum(left, load(sums, at + 4 * WIDTH)))


@inline
def _gather_stretched(ellipsoids, origin, dx, sums):
    """Add the particles with ellipsoids near a leaf to `sums`, as `_gather_leaf` does it with spheres."""
    (keys, positions, inverse), inverses, shortest, extents = ellipsoids
    per_voxel, reach = 1.0 / dx, 1.0 / inverse
    x0, y0, z0 = origin[0] * dx, origin[1] * dx, origin[2] * dx
    far = (LEAF - 1) * dx + reach
    k_low, k_high = _floor((z0 - reach) * inverse), _floor((z0 + far) * inverse)
    for bi in range(_floor((x0 - reach) * inverse), _floor((x0 + far) * inverse) + 1):
        for bj in range(_floor((y0 - reach) * inverse), _floor((y0 + far) * inverse) + 1):
            last = pack_key(bi, bj, k_high)
            p = _lower_bound(keys, pack_key(bi, bj, k_low))
            while p < len(keys) and keys[p] <= last:
                x = np.float32((positions[p, 0] - x0) * per_voxel)
                y = np.float32((positions[p, 1] - y0) * per_voxel)
                z = np.float32((positions[p, 2] - z0) * per_voxel)
                _add_ellipsoid((x, y, z), (inverses[p], shortest[p], extents[p]), np.float32(dx), sums)
                p += 1


@inline
def _add_ellipsoid(place, ellipsoid, dx, sums):
    """Add one particle at voxel coordinates `place` of the leaf to the voxels inside its ellipsoid."""
    (x, y, z), (inverse, shortest, extent) = place, ellipsoid
    wide, deep, high = extent[0] / dx, extent[1] / dx, extent[2] / dx
    if z + high < 0.0 or z - high > LEAF - 1:
        return
    like = load(sums, 0)
    one, none, size = const(like, 1.0), const(like, 0.0), broadcast(like, dx)
    py, pz = broadcast(like, y), broadcast(like, z)
    straight, along = const(like, 1.0 - ALONG), broadcast(like, np.float32(ALONG) * shortest / dx)
    c = (_COLUMN(like) - pz) * size
    uc, vc, wc = c * broadcast(like, inverse[0, 2]), c * broadcast(like, inverse[1, 2]), c * broadcast(like, inverse[2, 2])
    ub, vb, wb = broadcast(like, inverse[0, 1]), broadcast(like, inverse[1, 1]), broadcast(like, inverse[2, 1])
    first, last = max(0, int(np.ceil(y - deep))) >> 1, min(LEAF - 1, int(np.floor(y + deep))) >> 1
    for i in range(max(0, int(np.ceil(x - wide))), min(LEAF - 1, int(np.floor(x + wide))) + 1):
        a = (np.float32(i) - x) * dx
        ua, va, wa = broadcast(like, inverse[0, 0] * a), broadcast(like, inverse[1, 0] * a), broadcast(like, inverse[2, 0] * a)
        for pair in range(first, last + 1):
            b = (broadcast(like, np.float32(2 * pair)) + _ROW(like) - py) * size
            u, v, w = fma(ub, b, ua) + uc, fma(vb, b, va) + vc, fma(wb, b, wa) + wc
            left = maximum(one - (u * u + v * v + w * w), none)
            # where the particle would be for its way to be the one that counts
            seen = (
                broadcast(like, x + np.float32(ALONG) * (np.float32(i) - x)) - along * u,
                fma(straight, py, const(like, ALONG) * (broadcast(like, np.float32(2 * pair)) + _ROW(like))) - along * v,
                fma(straight, pz, const(like, ALONG) * _COLUMN(like)) - along * w,
            )
            _add_pair(sums, (i * (LEAF // 2) + pair) * _PAIR, left, seen)
