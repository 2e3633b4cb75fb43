"""The level set and the mesh of a surface: blended spheres and ellipsoids that hold the volume of their particles."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mpm_nodes.data import LevelSet, Mesh, Particles
from mpm_nodes.kernels.surfaces.spheres import HALF_WIDTH, LIMIT, RADIUS

if TYPE_CHECKING:
    from mpm_nodes.kernels.surfaces.mesh_volume import Balance
    from mpm_nodes.kernels.surfaces.splat import SortedParticles, Stretched

SPREAD = 2.0
"""Width of the neighbourhoods in which the surface holds the volume of its particles, in spacings."""
RATIOS = (0.25, 1.5)
"""Least and most that a particle's volume may have changed, as its surface sees it."""
EVENED = (0.8, 1.25)
"""Least and most that all volumes are scaled by, so that those limits do not change their sum."""
THINNEST = 0.87
"""Least half thickness of sheets, threads and drops in the level set, in voxels: half the diagonal of a voxel, so that the grid
misses none."""
STEP = 1.2
"""How far smoothing looks at a time, in spacings: particles' bumps are two to four of them long."""
FINE = 1
"""Most pairs of smoothing steps of a voxel that follow, against what steps of several voxels leave between them."""
THIN = 1.5
"""Distance from sheets and drops up to which steps of several voxels smooth nothing, in voxels; from twice it on they do."""
MOST = 1.0
"""Longest displacement of the level set, outward or inward, in spacings."""
OUTWARD = 0.5
"""Longest way outward of a point of the mesh, in spacings, after the level set has moved; twice as far where all have gone it."""


class Shape(NamedTuple):
    """How particles are wrapped.

    Attributes:
        voxel_size: [m].
        spacing: Of the particles [m].
        radius: Scales the spheres.
        smoothing: Pairs of smoothing steps, as far as a spacing.
        anisotropy: Whether thin places have ellipsoids, and are shown at all.
    """

    voxel_size: float
    spacing: float
    radius: float
    smoothing: int
    anisotropy: bool


def volumes_of(particles: Particles) -> tuple[np.ndarray, float]:
    """Return the volumes of the particles as deformed, V0 J as their laws tell, in bounds, and their sum without bounds [m^3].

    J drifts in loose spray; limits keep that in bounds. All volumes, shape (n,), are then scaled to the sum that they have without
    limits: much of a pie is pressed to less than the least of them while it hits a face.
    """
    from mpm_nodes.materials.volumes import volume_ratios

    undeformed = np.asarray(particles["volume"], float) if "volume" in particles else np.full(len(particles), particles.spacing**3)
    ratios = volume_ratios(particles)
    volumes, whole = np.clip(ratios, *RATIOS) * undeformed, float((ratios * undeformed).sum())
    return volumes * np.clip(whole / max(float(volumes.sum()), 1e-300), *EVENED), whole


def level_set_of(
    bins: SortedParticles, origins: np.ndarray, shape: Shape, volumes: np.ndarray | None, factors: np.ndarray | None = None
) -> tuple[LevelSet, Balance | None]:
    """Return the blended spheres as a distance, smoothed, and moved to where they hold `volumes` (None: left there).

    Args:
        bins: Particles; the edge is the reach of the spheres.
        origins: Leaves, shape (leaves, 3), int32, from `leaves_for`.
        shape: How they are wrapped.
        volumes: Of the particles [m^3], shape (n,), or None.
        factors: On the radius of each particle, shape (n,), or None: the surface is then moved by what they add to it.
    """
    from mpm_nodes.kernels.surfaces.anisotropy import Kernels, kernels_of
    from mpm_nodes.kernels.surfaces.filter import LEAF, leaf_neighbours, redistance, sort_leaves
    from mpm_nodes.kernels.surfaces.mesh_volume import Balance
    from mpm_nodes.kernels.surfaces.neighbourhoods import deposit_particles
    from mpm_nodes.kernels.surfaces.splat import blend_spheres
    from mpm_nodes.kernels.surfaces.volume import NarrowBand, contents, match_volume

    dx, spacing, reach = shape.voxel_size, shape.spacing, bins.edge
    sphere = shape.radius * spacing
    most = MOST * spacing if volumes is not None else 0.0
    band = HALF_WIDTH * dx
    # the distance has to be known as far as the surface may move
    wide = band if volumes is None else max(band, most + 1.5 * dx)
    wider = None if factors is None else RADIUS * sphere * (factors - 1.0)
    if wider is not None:
        wide = max(wide, band + float(np.abs(wider).max(initial=0.0)))
    kernels = kernels_of(bins, reach) if shape.anisotropy else Kernels.all_round(bins, reach)
    values = blend_spheres(kernels.round, origins, dx, reach, RADIUS * sphere, LIMIT * sphere, wide, kernels.stretched)
    keys, origins, values = sort_leaves(origins, values)
    neighbours = leaf_neighbours(keys, origins)
    values = redistance(values, neighbours, dx, wide)
    filled = None
    if volumes is not None:
        filled = deposit_particles(bins, volumes / dx**3, origins, dx)
        offset = RADIUS * (shape.radius - 1.0) * spacing
        values = match_volume(NarrowBand(values, neighbours, dx, wide), filled, SPREAD * spacing, most, offset)
    if wider is not None:
        values = redistance(values - _around(bins, wider, origins, values, shape, wide), neighbours, dx, wide)
    thin = _shown(kernels.drops, kernels.stretched, origins, shape, wide) if kernels.thin else None
    if shape.smoothing:
        step = min(max(round(STEP * shape.spacing / shape.voxel_size), 1), LEAF)
        sheets = thin
        if thin is not None and step > 1 and not kernels.threadless:  # threads take wide steps as well
            sheets = _shown(kernels.drops, kernels.sheets, origins, shape, wide)
        values = _smoothed(values, neighbours, sheets, shape, step, wide)
    values = values if thin is None else np.minimum(values, thin)
    if shape.smoothing or kernels.thin or volumes is not None:
        values = redistance(values, neighbours, dx, band)
    balance = None
    if filled is not None:
        final = NarrowBand(values, neighbours, dx, band)
        balance = Balance(filled, contents(final)[0], values, neighbours, keys, final.near(), dx)
    near = (values < band).any(axis=(1, 2, 3))
    return LevelSet(origins[near], values[near], dx, background=band, kind="level_set", name="surface"), balance


def _around(
    bins: SortedParticles, lengths: np.ndarray, origins: np.ndarray, values: np.ndarray, shape: Shape, far: float
) -> np.ndarray:
    """Return the mean of particles' lengths [m] at the voxels nearer to the surface than `far`, 0 at others; like `values`."""
    from mpm_nodes.kernels.surfaces.averages import average_at_points

    leaf, *within = np.nonzero(np.abs(values) < far)
    points = shape.voxel_size * (origins[leaf] + np.stack(within, axis=1))
    found = np.zeros_like(values)
    found[(leaf, *within)] = average_at_points(bins, lengths[:, None], points, bins.edge)[:, 0]
    return found


def _smoothed(
    values: np.ndarray, neighbours: np.ndarray, sheets: np.ndarray | None, shape: Shape, step: int, far: float
) -> np.ndarray:
    """Return the distance without the bumps of particles; steps of a spacing look through sheets and drops, and leave them out."""
    from mpm_nodes.kernels.surfaces.filter import smooth

    even = smooth(values, neighbours, far, shape.smoothing, step)
    if step == 1:
        return even
    if sheets is not None:
        even = values + np.clip((sheets / shape.voxel_size - THIN) / THIN, 0.0, 1.0) * (even - values)
    return smooth(even, neighbours, far, min(shape.smoothing, FINE))


def _shown(drops: SortedParticles, stretched: Stretched, origins: np.ndarray, shape: Shape, far: float) -> np.ndarray:
    """Return sheets, threads and drops as thin as the grid can show them: thinner they would fall through it."""
    from mpm_nodes.kernels.surfaces.anisotropy import LONGEST
    from mpm_nodes.kernels.surfaces.splat import blend_spheres

    half = THINNEST * shape.voxel_size
    # across a sheet kernels are LONGEST times as short as the reach
    limit = max(LIMIT * shape.radius * shape.spacing, 1.05 * LONGEST * half)
    return blend_spheres(drops, origins, shape.voxel_size, drops.edge, half, limit, far, stretched)


def holding(mesh: Mesh, balance: Balance, volumes: np.ndarray, shape: Shape) -> Mesh:
    """Return the mesh with its points moved until it holds the volumes [m^3], shape (n,), of the particles."""
    from mpm_nodes.kernels.level_sets.mesh_repair import triangulate
    from mpm_nodes.kernels.surfaces.mesh_volume import match_mesh

    if not len(mesh.points):
        return mesh
    corners, spacing = triangulate(mesh.counts, mesh.indices)[0], shape.spacing
    points = match_mesh(mesh.points, corners, balance, float(volumes.sum()), SPREAD * spacing, OUTWARD * spacing)
    return replace(mesh, points=points)
