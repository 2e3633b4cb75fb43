"""Moves a surface along its normals until it encloses, region by region, the volume that its particles have.

| symbol | meaning                                                                     | unit |
|--------|-----------------------------------------------------------------------------|------|
| phi    | signed distance, negative inside                                            | m    |
| dx     | voxel size                                                                  | m    |
| e      | lacking share of a voxel: volume of its particles / dx^3 - share inside phi | -    |
| a      | area of the surface in a voxel / dx^2: 1 - |phi| / dx, not below 0          | -    |
| G      | Gaussian of width `spread`                                                  | -    |
| d      | displacement of the surface / dx: (G * e) / (G * a)                         | -    |

Where matter has flowed, its outermost particles line up on its boundary: as many of them lie within a quarter of a cell as half a
cell of matter has. A surface at half a spacing from them all then holds less than they do (a dollop of foam: 15 % less), and how
much depends on how they lie. Their volumes tell where it has to be. This is the conservation of volume written for the
neighbourhood of each point; where no surface is near, nothing moves. No source has it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.level_sets.regions import pack_key
from mpm_nodes.kernels.surfaces.filter import LEAF
from mpm_nodes.kernels.surfaces.splat import SortedParticles, _floor, _lower_bound, binned

STEPS = 2
"""Displacements, one after the other: the first misses what curvature adds."""
MOST = 1.0
"""Longest displacement in all, outward or inward, in units of the particle spacing."""
_LEAST_AREA = np.float32(0.02)
_WIDEST = 2.6
"""Widest Gaussian of one pass, in voxels: the leaves beside a leaf hold three of its widths."""


@dataclass(frozen=True)
class NarrowBand:
    """A distance on leaves around its zero set.

    Attributes:
        values: phi [m], shape (leaves, 8, 8, 8), float32, clamped to +-band.
        neighbours: From `surfaces.filter.leaf_neighbours`.
        origins: First voxels of the leaves, shape (leaves, 3), int32.
        voxel_size: dx [m].
        band: Half width of the narrow band [m].
    """

    values: np.ndarray
    neighbours: np.ndarray
    origins: np.ndarray
    voxel_size: float
    band: float


def match_volume(
    surface: NarrowBand, bins: SortedParticles, volumes: np.ndarray, spread: float, most: float, offset: float = 0.0
) -> np.ndarray:
    """Return distances whose zero set encloses the particles' volumes, measured over neighbourhoods of `spread`.

    Args:
        surface: The distance to begin with.
        bins: The particles.
        volumes: In the input order of the particles [m^3], shape (n,).
        spread: Width of the Gaussian [m].
        most: Longest displacement in all [m].
        offset: The surface that holds the volume is phi = -offset [m].

    Returns:
        Shape (leaves, 8, 8, 8), float32; a distance near the surface, as far as the displacement varies slowly.
    """
    values, neighbours, voxel_size, band = surface.values, surface.neighbours, surface.voxel_size, surface.band
    near = (np.abs(values) < band).any(axis=(1, 2, 3))
    reached = near[neighbours] & (neighbours >= 0)
    rows = np.flatnonzero(reached.any(axis=1))
    place = np.full(len(values) + 1, -1, np.int32)
    place[rows] = np.arange(len(rows), dtype=np.int32)
    beside = place[neighbours[rows]]
    start = np.ascontiguousarray(values[rows])
    amounts = np.ascontiguousarray((volumes / voxel_size**3).astype(np.float32)[bins.order])
    filled = _deposit_linear(binned(bins), amounts, surface.origins[rows], voxel_size)
    weights, passes = _gaussian(max(spread / voxel_size, 0.8))
    limit, shift = np.float32(most / voxel_size), np.float32(offset / voxel_size)
    moved = np.zeros_like(start)
    everywhere, wanted = np.arange(len(rows)), np.flatnonzero(near[rows])
    for _ in range(STEPS):
        fields = _lacking(start, moved, filled, np.float32(1.0 / voxel_size), shift)
        for left in range(passes, 0, -1):
            fields = _blur(fields, beside, weights, wanted if left == 1 else everywhere)
        moved = np.clip(moved + fields[0] / np.maximum(fields[1], _LEAST_AREA), -limit, limit)
    result = values.copy()
    result[rows] = np.where(np.abs(start) < band, start - moved * np.float32(voxel_size), start)
    return result


def _gaussian(width: float) -> tuple[np.ndarray, int]:
    """Return weights (odd number, sum 1) of one pass and the number of passes that make a Gaussian of `width` voxels."""
    passes = math.ceil((width / _WIDEST) ** 2)
    each = width / math.sqrt(passes)
    reach = min(math.ceil(2.0 * each), LEAF)
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / each) ** 2)
    return (weights / weights.sum()).astype(np.float32), passes


@part
def _lacking_at(leaf, phi, moved, filled, per_voxel, shift, fields):
    zero, half, one = np.float32(0.0), np.float32(0.5), np.float32(1.0)
    for i in range(LEAF):
        for j in range(LEAF):
            for k in range(LEAF):
                t = phi[leaf, i, j, k] * per_voxel + shift - moved[leaf, i, j, k]
                fields[0, leaf, i, j, k] = filled[leaf, i, j, k] - min(max(half - t, zero), one)
                fields[1, leaf, i, j, k] = max(one - abs(t), zero)


@compiled
def _lacking(phi, moved, filled, per_voxel, shift):
    """Return e and a of each voxel, shape (2, leaves, 8, 8, 8)."""
    fields = np.empty((2, *phi.shape), np.float32)
    parallel_for(_lacking_at, len(phi), (phi, moved, filled, per_voxel, shift, fields))
    return fields


@part
def _blur_at(place, fields, neighbours, weights, wanted, wide, result):
    leaf = wanted[place]
    # flat, so that all but the last convolution run over long rows
    block = np.empty(wide * wide * wide, np.float32)
    across = np.empty(LEAF * wide * wide, np.float32)
    along = np.empty(LEAF * LEAF * wide, np.float32)
    for field in range(len(fields)):
        _load(fields[field], neighbours, leaf, len(weights) // 2, wide, block)
        _mix_rows(block, weights, across, wide * wide)
        for i in range(LEAF):
            _mix_rows(
                across[i * wide * wide : (i + 1) * wide * wide], weights, along[i * LEAF * wide : (i + 1) * LEAF * wide], wide
            )
        for i in range(LEAF):
            for j in range(LEAF):
                row = along[(i * LEAF + j) * wide : (i * LEAF + j + 1) * wide]
                for k in range(LEAF):
                    total = np.float32(0.0)
                    for n in range(len(weights)):
                        total += weights[n] * row[k + n]
                    result[field, leaf, i, j, k] = total


@compiled
def _blur(fields, neighbours, weights, wanted):
    """Convolve fields, shape (m, leaves, 8, 8, 8), with the weights along each axis on wanted leaves; missing leaves are zero."""
    result = np.zeros(fields.shape, np.float32)
    wide = LEAF + len(weights) - 1
    parallel_for(_blur_at, len(wanted), (fields, neighbours, weights, wanted, wide, result))
    return result


@inline
def _mix_rows(source, weights, target, stride):
    """Write the weighted sums of the values of `source` that lie 0, 1, 2, ... strides after each place of `target`."""
    # slices, because an index that could be negative keeps the loops from running on vectors
    for k in range(len(target)):
        target[k] = weights[0] * source[k]
    for n in range(1, len(weights)):
        weight, later = weights[n], source[n * stride :]
        for k in range(len(target)):
            target[k] += weight * later[k]


@inline
def _load(field, neighbours, leaf, reach, wide, block):
    """Copy a leaf and `reach` voxels around it into `block`, flat."""
    for number in range(27):
        row = neighbours[leaf, number]
        x, y, z = LEAF * (number // 9 - 1) + reach, LEAF * ((number // 3) % 3 - 1) + reach, LEAF * (number % 3 - 1) + reach
        for i in range(max(x, 0), min(x + LEAF, wide)):
            for j in range(max(y, 0), min(y + LEAF, wide)):
                place = (i * wide + j) * wide
                for k in range(max(z, 0), min(z + LEAF, wide)):
                    block[place + k] = np.float32(0.0) if row < 0 else field[row, i - x, j - y, k - z]


@part
def _deposit_linear_at(leaf, bins, amounts, origins, dx, scale, result):
    keys, positions, inverse = bins
    x0, y0, z0 = origins[leaf, 0] * dx, origins[leaf, 1] * dx, origins[leaf, 2] * dx
    far = LEAF * dx
    k_low, k_high = _floor((z0 - dx) * inverse), _floor((z0 + far) * inverse)
    for bi in range(_floor((x0 - dx) * inverse), _floor((x0 + far) * inverse) + 1):
        for bj in range(_floor((y0 - dx) * inverse), _floor((y0 + far) * inverse) + 1):
            last = pack_key(bi, bj, k_high)
            p = _lower_bound(keys, pack_key(bi, bj, k_low))
            while p < len(keys) and keys[p] <= last:
                x, y, z = (positions[p, 0] - x0) * scale, (positions[p, 1] - y0) * scale, (positions[p, 2] - z0) * scale
                i, j, k = _floor(x), _floor(y), _floor(z)
                if -1 <= i < LEAF and -1 <= j < LEAF and -1 <= k < LEAF:
                    _add_linear(result[leaf], i, j, k, np.float32(x - i), np.float32(y - j), np.float32(z - k), amounts[p])
                p += 1


@compiled
def _deposit_linear(bins, amounts, origins, dx):
    """Share amounts out to the eight voxels around each particle, shape (leaves, 8, 8, 8); the sum stays the same."""
    result = np.zeros((len(origins), LEAF, LEAF, LEAF), np.float32)
    scale = 1.0 / dx
    parallel_for(_deposit_linear_at, len(origins), (bins, amounts, origins, dx, scale, result))
    return result


@inline
def _add_linear(voxels, i, j, k, x, y, z, amount):
    """Add one amount to those of the eight voxels around it that lie in the leaf."""
    one = np.float32(1.0)
    for a in range(max(i, 0), min(i + 2, LEAF)):
        wide = amount * (x if a > i else one - x)
        for b in range(max(j, 0), min(j + 2, LEAF)):
            deep = wide * (y if b > j else one - y)
            for c in range(max(k, 0), min(k + 2, LEAF)):
                voxels[a, b, c] += deep * (z if c > k else one - z)
