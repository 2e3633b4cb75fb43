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
from mpm_nodes.kernels.surfaces.filter import LEAF
from mpm_nodes.kernels.surfaces.neighbourhoods import CELLS, blur, load_cells

STEPS = 3
"""Displacements, one after the other: the first misses what curvature adds."""
_LEAST_AREA = np.float32(0.05)
_HALO = CELLS + 2


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
def _between(block, i, j, k):
    """Return the linear value at voxel (i, j, k) of a leaf, of cells with one around them."""
    near, beside = np.float32(0.75), np.float32(0.25)
    a, b, c = (i >> 1) + 1, (j >> 1) + 1, (k >> 1) + 1
    da, db, dc = 2 * (i & 1) - 1, 2 * (j & 1) - 1, 2 * (k & 1) - 1
    low, high = (a * _HALO + b) * _HALO, (a * _HALO + b + db) * _HALO
    this = near * (near * block[low + c] + beside * block[low + c + dc])
    this += beside * (near * block[high + c] + beside * block[high + c + dc])
    low, high = ((a + da) * _HALO + b) * _HALO, ((a + da) * _HALO + b + db) * _HALO
    that = near * (near * block[low + c] + beside * block[low + c + dc])
    that += beside * (near * block[high + c] + beside * block[high + c + dc])
    return near * this + beside * that


@part
def _contents_at(leaf, phi, moved, neighbours, scales, fields):
    per_voxel, shift = scales
    zero, half, one = np.float32(0.0), np.float32(0.5), np.float32(1.0)
    block = np.empty(_HALO * _HALO * _HALO, np.float32)
    load_cells(moved, neighbours, leaf, 1, _HALO, block)
    for i in range(LEAF):
        for j in range(LEAF):
            for k in range(LEAF):
                t = phi[leaf, i, j, k] * per_voxel + shift - _between(block, i, j, k)
                fields[0, leaf, i >> 1, j >> 1, k >> 1] += min(max(half - t, zero), one)
                fields[1, leaf, i >> 1, j >> 1, k >> 1] += max(one - abs(t), zero)


@compiled
def _contents(phi, moved, neighbours, scales):
    fields = np.zeros((2, len(phi), CELLS, CELLS, CELLS), np.float32)
    parallel_for(_contents_at, len(phi), (phi, moved, neighbours, scales, fields))
    return fields


@part
def _displaced_at(place, values, moved, neighbours, wanted, dx, band, result):
    leaf = wanted[place]
    block = np.empty(_HALO * _HALO * _HALO, np.float32)
    load_cells(moved, neighbours, leaf, 1, _HALO, block)
    for i in range(LEAF):
        for j in range(LEAF):
            for k in range(LEAF):
                if abs(values[leaf, i, j, k]) < band:
                    result[leaf, i, j, k] -= dx * _between(block, i, j, k)


@compiled
def _displaced(values, moved, neighbours, wanted, dx, band):
    result = values.copy()
    parallel_for(_displaced_at, len(wanted), (values, moved, neighbours, wanted, dx, band, result))
    return result
