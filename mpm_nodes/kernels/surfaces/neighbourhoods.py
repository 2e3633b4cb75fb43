"""Fields that vary over neighbourhoods of a few particle spacings, on cells of two voxels: 4^3 cells to a leaf.

| symbol | meaning                                                                    | unit |
|--------|----------------------------------------------------------------------------|------|
| dx     | voxel size                                                                 | m    |
| u      | place in cells, x / (2 dx) - 1/4: cell c holds voxels 2c and 2c + 1         | -    |
| G      | Gaussian, several voxels wide                                              | -    |

What a Gaussian spreads over several voxels is as smooth on cells of two, at an eighth of the cost. Amounts of points are shared out
linearly to the eight cells around a place, and values are read the same way, so nothing jumps when matter passes from cell to cell.
Particles, a spacing apart, are shared out by quadratic splines to 27: where a cell is wider than a spacing, linear shares alias
their lattice into waves of several spacings, which stand still while the matter moves. The Gaussian of those is narrower by what
splines spread more than cells that voxels fill, or edges of matter would differ. Sums are taken in the order of the bins and of the
points, so results do not depend on the number of threads.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.lanes.arithmetic import broadcast, fma
from mpm_nodes.kernels.lanes.memory import load, load_of, store
from mpm_nodes.kernels.lanes.types import WIDTH
from mpm_nodes.kernels.level_sets.regions import find_leaf, pack_key
from mpm_nodes.kernels.surfaces.splat import SortedParticles, _floor, _lower_bound, binned

CELLS = 4
"""Cells along a leaf."""
_WIDEST = 2.0
"""Widest Gaussian of one pass, in cells: the leaves beside a leaf hold two of its widths."""
_SPREAD = 1.0 / 4.0 - 1.0 / 12.0
"""Variance of a quadratic spline less that of a box, in cells squared."""
_CHUNK = 1024
_load_row = load_of(CELLS)


def deposit_particles(bins: SortedParticles, amounts: np.ndarray, origins: np.ndarray, voxel_size: float) -> np.ndarray:
    """Share amounts out to cells, shape (leaves, 4, 4, 4), float32; the sum stays the same where leaves hold all that is shared.

    Args:
        bins: Particles.
        amounts: In the input order of the particles, shape (n,).
        origins: First voxels of the leaves, shape (leaves, 3), int32.
        voxel_size: dx [m].
    """
    ordered = np.ascontiguousarray(np.asarray(amounts, np.float32)[bins.order])
    return _deposit(binned(bins), ordered, np.ascontiguousarray(origins, np.int32), voxel_size)


class Stencils(NamedTuple):
    """Where points lie among cells: the eight around each.

    Attributes:
        cells: Flat indices of cells, shape (n, 8), int64; that after the last where there is no leaf.
        shares: Linear shares, shape (n, 8), float32.
        leaves: Number of leaves.
    """

    cells: np.ndarray
    shares: np.ndarray
    leaves: int


def stencils_at(places: np.ndarray, keys: np.ndarray) -> Stencils:
    """Return where places [voxels], shape (n, 3), lie among the cells of leaves with these keys, rising."""
    return Stencils(*_stencils(np.ascontiguousarray(places, np.float64), keys), len(keys))


def deposit_points(amounts: np.ndarray, at: Stencils) -> np.ndarray:
    """Share amounts of points out to cells, shape (leaves, 4, 4, 4), float32; what lies beyond the leaves is left out."""
    sums = _deposit_points(np.ascontiguousarray(amounts, np.float64), at.cells, at.shares, at.leaves * CELLS**3)
    return sums.reshape(at.leaves, CELLS, CELLS, CELLS)


def read_points(fields: np.ndarray, at: Stencils) -> np.ndarray:
    """Return linear values of fields, shape (m, leaves, 4, 4, 4), at points: shape (n, m), float32."""
    return _read_points(np.ascontiguousarray(fields, np.float32).reshape(len(fields), -1), at.cells, at.shares)


def blur(fields: np.ndarray, neighbours: np.ndarray, width: float, wanted: np.ndarray, splines: bool = False) -> np.ndarray:
    """Return G * fields, shape (m, leaves, 4, 4, 4), on wanted leaves; missing leaves are zero.

    Args:
        fields: float32, shape (m, leaves, 4, 4, 4).
        neighbours: From `surfaces.filter.leaf_neighbours`.
        width: Of the Gaussian [voxels].
        wanted: Rows of the leaves, shape (k,); others become zero where the Gaussian takes one pass.
        splines: The fields are from `deposit_particles`: G is narrower by what that spreads.
    """
    weights, passes = gaussian(max(0.5 * width, 0.8))
    if splines:
        weights = _narrowed(weights, _SPREAD / passes)
    everywhere = np.arange(fields.shape[1])
    for left in range(passes, 0, -1):
        fields = _blur(fields, neighbours, weights, wanted if left == 1 else everywhere)
    return fields


def gaussian(width: float) -> tuple[np.ndarray, int]:
    """Return weights (odd number, sum 1) of one pass and the number of passes that make a Gaussian of `width` cells."""
    passes = math.ceil((width / _WIDEST) ** 2)
    each = width / math.sqrt(passes)
    reach = min(math.ceil(2.0 * each), CELLS)
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / each) ** 2)
    return (weights / weights.sum()).astype(np.float32), passes


def _narrowed(weights: np.ndarray, by: float) -> np.ndarray:
    """Return the weights of a Gaussian as long as this one, cut off at the same place, whose variance is smaller."""
    squares = (np.arange(len(weights)) - len(weights) // 2.0) ** 2
    aim = float(weights @ squares) - by
    nominal, narrow = aim, weights.astype(float)
    for _ in range(20):
        narrow = np.exp(-0.5 * squares / nominal)
        narrow /= narrow.sum()
        nominal += aim - float(narrow @ squares)
    return narrow.astype(np.float32)


@part
def _blur_at(place, fields, neighbours, weights, wanted, wide, result):
    leaf = wanted[place]
    # flat, so that sums run over whole lanes; those of the last rows reach beyond them
    block = np.zeros(wide * wide * wide + WIDTH, np.float32)
    across = np.zeros(CELLS * wide * wide + WIDTH, np.float32)
    along = np.empty(CELLS * CELLS * wide + WIDTH, np.float32)
    slab, row = wide * wide, CELLS * wide
    for field in range(len(fields)):
        load_cells(fields[field], neighbours, leaf, len(weights) // 2, wide, block)
        for i in range(CELLS):
            for k in range(0, slab, WIDTH):
                store(across, i * slab + k, _mixed(block, i * slab + k, slab, weights))
        for i in range(CELLS):
            for k in range(0, row, WIDTH):
                store(along, i * row + k, _mixed(across, i * slab + k, wide, weights))
        cells = result[field, leaf].reshape(-1)
        for line in range(CELLS * CELLS):
            total = _load_row(along, line * wide) * broadcast(_load_row(along, 0), weights[0])
            for n in range(1, len(weights)):
                more = _load_row(along, line * wide + n)
                total = fma(more, broadcast(more, weights[n]), total)
            store(cells, line * CELLS, total)


@inline
def _mixed(source, at, stride, weights):
    """Return the weighted sums of the values of `source` that lie 0, 1, 2, ... strides after sixteen places from `at` on."""
    first = load(source, at)
    total = first * broadcast(first, weights[0])
    for n in range(1, len(weights)):
        total = fma(load(source, at + n * stride), broadcast(first, weights[n]), total)
    return total


@compiled
def _blur(fields, neighbours, weights, wanted):
    result = np.zeros(fields.shape, np.float32)
    wide = CELLS + len(weights) - 1
    parallel_for(_blur_at, len(wanted), (fields, neighbours, weights, wanted, wide, result))
    return result


@inline
def load_cells(field, neighbours, leaf, reach, wide, block):
    """Copy the cells of a leaf and `reach` cells around it into `block`, flat."""
    cells = field.reshape(-1)
    for number in range(27):
        row = np.int64(neighbours[leaf, number])
        x, y, z = CELLS * (number // 9 - 1) + reach, CELLS * ((number // 3) % 3 - 1) + reach, CELLS * (number % 3 - 1) + reach
        for i in range(max(x, 0), min(x + CELLS, wide)):
            for j in range(max(y, 0), min(y + CELLS, wide)):
                source, target = ((row * CELLS + i - x) * CELLS + j - y) * CELLS, (i * wide + j) * wide + z
                if row < 0:
                    for k in range(max(-z, 0), min(CELLS, wide - z)):
                        block[target + k] = np.float32(0.0)
                elif 0 <= z and z + CELLS <= wide:
                    store(block, target, _load_row(cells, source))
                else:
                    for k in range(max(-z, 0), min(CELLS, wide - z)):
                        block[target + k] = cells[source + k]


@part
def _deposit_at(leaf, bins, amounts, origins, dx, result):
    keys, positions, inverse = bins
    x0, y0, z0 = origins[leaf, 0] * dx, origins[leaf, 1] * dx, origins[leaf, 2] * dx
    scale, before, far = 0.5 / dx, 2.5 * dx, (2 * CELLS + 1.5) * dx
    shares = np.empty((3, 3), np.float32)
    k_low, k_high = _floor((z0 - before) * inverse), _floor((z0 + far) * inverse)
    for bi in range(_floor((x0 - before) * inverse), _floor((x0 + far) * inverse) + 1):
        for bj in range(_floor((y0 - before) * inverse), _floor((y0 + far) * inverse) + 1):
            last = pack_key(bi, bj, k_high)
            p = _lower_bound(keys, pack_key(bi, bj, k_low))
            while p < len(keys) and keys[p] <= last:
                x = (positions[p, 0] - x0) * scale - 0.25
                y = (positions[p, 1] - y0) * scale - 0.25
                z = (positions[p, 2] - z0) * scale - 0.25
                i, j, k = _floor(x + 0.5), _floor(y + 0.5), _floor(z + 0.5)
                if -1 <= i <= CELLS and -1 <= j <= CELLS and -1 <= k <= CELLS:
                    _spline(np.float32(x - i), shares[0])
                    _spline(np.float32(y - j), shares[1])
                    _spline(np.float32(z - k), shares[2])
                    _add_shares(result[leaf], i, j, k, shares, amounts[p])
                p += 1


@compiled
def _deposit(bins, amounts, origins, dx):
    result = np.zeros((len(origins), CELLS, CELLS, CELLS), np.float32)
    parallel_for(_deposit_at, len(origins), (bins, amounts, origins, dx, result))
    return result


@inline
def _spline(x, shares):
    """Write the quadratic B-spline at the cells before, at and after the nearest one, which is x away."""
    half = np.float32(0.5)
    shares[0] = half * (half - x) * (half - x)
    shares[1] = np.float32(0.75) - x * x
    shares[2] = half * (half + x) * (half + x)


@inline
def _add_shares(cells, i, j, k, shares, amount):
    """Add one amount to those of the 27 cells around it that lie in the leaf."""
    for a in range(max(i - 1, 0), min(i + 2, CELLS)):
        wide = amount * shares[0, a - i + 1]
        for b in range(max(j - 1, 0), min(j + 2, CELLS)):
            deep = wide * shares[1, b - j + 1]
            for c in range(max(k - 1, 0), min(k + 2, CELLS)):
                cells[a, b, c] += deep * shares[2, c - k + 1]


@part
def _stencils_run(chunk, places, keys, cells, shares):
    found, row = pack_key(0, 0, 0), find_leaf(keys, 0, 0, 0)
    for n in range(chunk * _CHUNK, min((chunk + 1) * _CHUNK, len(places))):
        x, y, z = 0.5 * places[n, 0] - 0.25, 0.5 * places[n, 1] - 0.25, 0.5 * places[n, 2] - 0.25
        i, j, k = _floor(x), _floor(y), _floor(z)
        for corner in range(8):
            a, b, c = i + (corner >> 2), j + ((corner >> 1) & 1), k + (corner & 1)
            leaf = pack_key(a >> 2, b >> 2, c >> 2)
            if leaf != found:
                found, row = leaf, find_leaf(keys, 2 * a, 2 * b, 2 * c)
            inside = ((row * CELLS + (a & 3)) * CELLS + (b & 3)) * CELLS + (c & 3)
            cells[n, corner] = inside if row >= 0 else len(keys) * CELLS * CELLS * CELLS
            shares[n, corner] = (1.0 - abs(x - a)) * (1.0 - abs(y - b)) * (1.0 - abs(z - c))


@compiled
def _stencils(places, keys):
    cells, shares = np.empty((len(places), 8), np.int64), np.empty((len(places), 8), np.float32)
    parallel_for(_stencils_run, (len(places) + _CHUNK - 1) // _CHUNK, (places, keys, cells, shares))
    return cells, shares


@compiled
def _deposit_points(amounts, cells, shares, count):
    # one thread: points are few, and their sums keep their order
    sums = np.zeros(count + 1)
    for n in range(len(amounts)):
        for corner in range(8):
            sums[cells[n, corner]] += shares[n, corner] * amounts[n]
    return sums[:count].astype(np.float32)


@part
def _read_points_run(chunk, fields, cells, shares, result):
    for n in range(chunk * _CHUNK, min((chunk + 1) * _CHUNK, len(cells))):
        for corner in range(8):
            cell = cells[n, corner]
            if cell < fields.shape[1]:
                for m in range(len(fields)):
                    result[n, m] += shares[n, corner] * fields[m, cell]


@compiled
def _read_points(fields, cells, shares):
    result = np.zeros((len(cells), len(fields)), np.float32)
    parallel_for(_read_points_run, (len(cells) + _CHUNK - 1) // _CHUNK, (fields, cells, shares, result))
    return result
