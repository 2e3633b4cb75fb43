"""Moves a level set along its normals until it encloses, region by region, the volume that its particles have.

| symbol | meaning                                                                          | unit |
|--------|----------------------------------------------------------------------------------|------|
| phi    | signed distance, negative inside                                                 | m    |
| dx     | voxel size                                                                       | m    |
| e      | what lacks in a cell of two voxels: volume of its particles / dx^3 - voxels inside phi | -    |
| a      | area of the surface in a cell / dx^2: sum of 1 - |phi| / dx, not below 0            | -    |
| G      | Gaussian of width `spread`                                                       | -    |
| d      | displacement of the surface / dx: (G * e) / (G * a)                              | -    |

Where matter has flowed, its outermost particles line up on its boundary: as many of them lie within a quarter of a cell as half a
cell of matter has. A surface at half a spacing from them all then holds less than they do (a dollop of foam: 15 % less), and how
much depends on how they lie. Their volumes tell where it has to be. This is the conservation of volume written for the
neighbourhood of each point; where no surface is near, nothing moves. No source has it. `mesh_volume` finishes what voxels
cannot show.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.lanes.arithmetic import absolute, broadcast, const, maximum, minimum, select
from mpm_nodes.kernels.lanes.memory import load, load8, shuffle_by, store
from mpm_nodes.kernels.lanes.types import WIDTH
from mpm_nodes.kernels.surfaces.filter import LEAF
from mpm_nodes.kernels.surfaces.neighbourhoods import CELLS, blur, load_cells

STEPS = 3
"""Displacements, one after the other: the first misses what curvature adds."""
_LEAST_AREA = np.float32(0.05)
_HALO = CELLS + 2
_BLOCK = _HALO * _HALO * _HALO + LEAF - _HALO
"""Cells of a leaf and those around it; rows of them are read eight at a time."""
_SAME = shuffle_by([LEAF * (lane // LEAF) + lane % LEAF // 2 + 1 for lane in range(WIDTH)])
_NEXT = shuffle_by([LEAF * (lane // LEAF) + lane % LEAF // 2 + 2 * (lane % 2) for lane in range(WIDTH)])
"""The cell of each voxel of two rows, and the cell that is next nearest to it."""


@dataclass(frozen=True)
class NarrowBand:
    """A distance on leaves around its zero set.

    Attributes:
        values: phi [m], shape (leaves, 8, 8, 8), float32, clamped to +-band.
        neighbours: From `surfaces.filter.leaf_neighbours`.
        voxel_size: dx [m].
        band: Half width of the narrow band [m].
    """

    values: np.ndarray
    neighbours: np.ndarray
    voxel_size: float
    band: float

    def near(self) -> np.ndarray:
        """Return the rows of the leaves that the band reaches."""
        return np.flatnonzero((np.abs(self.values) < self.band).any(axis=(1, 2, 3)))


def match_volume(surface: NarrowBand, filled: np.ndarray, spread: float, most: float, offset: float = 0.0) -> np.ndarray:
    """Return distances whose zero set encloses the particles' volumes, measured over neighbourhoods of `spread`.

    Args:
        surface: The distance to begin with.
        filled: Volume of the particles in each cell / dx^3, from `neighbourhoods.deposit_particles`.
        spread: Width of the Gaussian [m].
        most: Longest displacement in all [m].
        offset: The surface that holds the volume is phi = -offset [m].

    Returns:
        Shape (leaves, 8, 8, 8), float32; a distance near the surface, as far as the displacement varies slowly.
    """
    values, dx = surface.values, surface.voxel_size
    wanted = surface.near()
    limit, width = np.float32(most / dx), spread / dx
    moved = np.zeros_like(filled)
    asked = blur(filled[None], surface.neighbours, width, wanted, splines=True)[0]
    for _ in range(STEPS):
        inside, area = blur(np.stack(contents(surface, moved, offset)), surface.neighbours, width, wanted)
        moved = np.clip(moved + (asked - inside) / np.maximum(area, _LEAST_AREA), -limit, limit)
    return _displaced(values, moved, surface.neighbours, wanted, np.float32(dx), np.float32(surface.band))


def contents(surface: NarrowBand, moved: np.ndarray | None = None, offset: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return the voxels inside each cell, and its area / dx^2, both shape (leaves, 4, 4, 4), float32.

    Args:
        surface: The distance.
        moved: How far the surface is moved outward / dx, on cells; None leaves it.
        offset: The surface is phi = -offset [m] before that.
    """
    moved = np.zeros((len(surface.values), CELLS, CELLS, CELLS), np.float32) if moved is None else moved
    scales = np.float32(1.0 / surface.voxel_size), np.float32(offset / surface.voxel_size)
    found = _contents(surface.values, moved, surface.neighbours, scales)
    return found[0], found[1]


@inline
def _mix_across(cells, rows):
    """Write, for each row of voxels of a leaf, values between the rows of cells beside it, which have one around them; all flat."""
    like = load8(cells, 0)
    near, beside = const(like, 0.75), const(like, 0.25)
    for i in range(LEAF):
        for j in range(LEAF):
            a, b, da, db = (i >> 1) + 1, (j >> 1) + 1, 2 * (i & 1) - 1, 2 * (j & 1) - 1
            this, that = (a * _HALO + b) * _HALO, ((a + da) * _HALO + b) * _HALO
            here = near * load8(cells, this) + beside * load8(cells, this + db * _HALO)
            there = near * load8(cells, that) + beside * load8(cells, that + db * _HALO)
            store(rows, (i * LEAF + j) * LEAF, near * here + beside * there)


@inline
def _between(rows, row):
    """Return the linear values at the voxels of two rows, of what `_mix_across` wrote."""
    cells = load(rows, row * LEAF)
    return const(cells, 0.75) * _SAME(cells, cells) + const(cells, 0.25) * _NEXT(cells, cells)


@part
def _contents_at(leaf, phi, moved, neighbours, scales, fields):
    per_voxel, shift = scales
    block, rows = np.empty(_BLOCK, np.float32), np.empty(LEAF * LEAF * LEAF, np.float32)
    load_cells(moved, neighbours, leaf, 1, _HALO, block)
    _mix_across(block, rows)
    sums = np.zeros((2, WIDTH), np.float32)
    like = load(rows, 0)
    none, half, one, start = const(like, 0.0), const(like, 0.5), const(like, 1.0), np.int64(leaf) * LEAF * LEAF * LEAF
    for i in range(0, LEAF, 2):
        for j in range(0, LEAF, 2):
            inside = area = none
            for row in (i * LEAF + j, (i + 1) * LEAF + j):
                t = load(phi, start + row * LEAF) * broadcast(like, per_voxel) + broadcast(like, shift) - _between(rows, row)
                inside = inside + minimum(maximum(half - t, none), one)
                area = area + maximum(one - absolute(t), none)
            store(sums[0], 0, inside)
            store(sums[1], 0, area)
            for field in range(2):
                for k in range(0, LEAF, 2):
                    this = sums[field, k] + sums[field, k + 1]
                    fields[field, leaf, i >> 1, j >> 1, k >> 1] = this + (sums[field, LEAF + k] + sums[field, LEAF + k + 1])


@compiled
def _contents(phi, moved, neighbours, scales):
    fields = np.empty((2, len(phi), CELLS, CELLS, CELLS), np.float32)
    parallel_for(_contents_at, len(phi), (phi.reshape(-1), moved, neighbours, scales, fields))
    return fields


@part
def _displaced_at(place, values, moved, neighbours, wanted, dx, band, result):
    leaf = wanted[place]
    block, rows = np.empty(_BLOCK, np.float32), np.empty(LEAF * LEAF * LEAF, np.float32)
    load_cells(moved, neighbours, leaf, 1, _HALO, block)
    _mix_across(block, rows)
    like, start = load(rows, 0), np.int64(leaf) * LEAF * LEAF * LEAF
    size, limit = broadcast(like, dx), broadcast(like, band)
    for row in range(0, LEAF * LEAF, 2):
        here = load(values, start + row * LEAF)
        store(result, start + row * LEAF, select(absolute(here) < limit, here - size * _between(rows, row), here))


@compiled
def _displaced(values, moved, neighbours, wanted, dx, band):
    result = values.copy()
    parallel_for(_displaced_at, len(wanted), (values.reshape(-1), moved, neighbours, wanted, dx, band, result.reshape(-1)))
    return result
