"""Surfaces and volumes made from particles: level set and mesh, fog, velocity."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mpm_nodes.data import A, LevelSet, Mesh, Metres, MpmNodesError, Particles, Range, Unitless
from mpm_nodes.graph.declare import node

if TYPE_CHECKING:
    from mpm_nodes.kernels.surface_splat import Bins

REACH = 2.5
"""Reach of the averaging kernel, in particle spacings."""
RADIUS = 0.665
"""Sphere radius, in spacings, that puts the surface of a lattice half a spacing outside its outer layer (at REACH)."""
LIMIT = 1.25
"""No point further than this from every particle is inside, in spacings."""
HALF_WIDTH = 3.0
"""Half width of the narrow band, in voxels."""
_SKIPPED = ("position", "velocity", "id", "material")

_Voxel = A[float, Metres, Range(min=0.0, soft_max=0.1)]


class SurfaceOutputs(NamedTuple):
    """What `surface_particles` gives: the level set `surface` and its mesh."""

    surface: LevelSet
    mesh: Mesh


@node(category="Surface", label="Surface Particles", version=1)
def surface_particles(
    particles: Particles,
    *,
    voxel_size: _Voxel = 0.0,
    radius: A[float, Unitless, Range(min=0.1, max=4.0)] = 1.0,
    smoothing: A[int, Unitless, Range(min=0, max=50)] = 3,
    adaptivity: A[float, Unitless, Range(min=0.0, max=1.0)] = 0.0,
    attributes: tuple[str, ...] = (),
    largest: A[float, Unitless, Range(min=1e4, soft_max=1e9, log=True)] = 2e8,
) -> SurfaceOutputs:
    """Wrap particles in a smooth surface: blended spheres as a level set, meshed by OpenVDB.

    Args:
        particles: What to wrap.
        voxel_size: Voxel size; 0 takes the particle spacing (half a grid cell).
        radius: Scales the spheres; 1 puts the surface of undeformed matter where it was seeded.
        smoothing: Pairs of smoothing steps that keep the volume; 0 shows every particle.
        adaptivity: 0 keeps quads of a voxel, larger values join flat ones into fewer polygons.
        attributes: Particle attributes carried to the mesh points, besides the velocity.
        largest: Most voxels to store; where more would be needed the voxel size is raised until they fit.
    """
    from usd_io.volumes import mesh_level_set

    _check_attributes(particles, attributes)
    spacing = particles.spacing
    dx = voxel_size if voxel_size > 0.0 else spacing
    reach = REACH * spacing * max(radius, 1.0)
    bins = _bins(particles, reach)
    level_set = _level_set(bins, dx, reach, radius * spacing, smoothing, largest)
    mesh = mesh_level_set(level_set, adaptivity)
    return SurfaceOutputs(level_set, _dress(mesh, level_set, particles, bins, reach, attributes))


@node(category="Surface", label="Density Volume", version=1)
def density_volume(
    particles: Particles,
    *,
    voxel_size: _Voxel = 0.0,
    largest: A[float, Unitless, Range(min=1e4, soft_max=1e9, log=True)] = 2e8,
) -> LevelSet:
    """Make a fog volume `density`: the share of space that matter fills, 1 in undeformed matter.

    Args:
        particles: What to show.
        voxel_size: Voxel size; 0 takes the particle spacing (half a grid cell).
        largest: Most voxels to store; where more would be needed the voxel size is raised until they fit.
    """
    from mpm_nodes.kernels.surface_splat import splat_columns

    volume = particles["volume"] if "volume" in particles else np.full(len(particles), particles.spacing**3)
    dx = voxel_size if voxel_size > 0.0 else particles.spacing
    reach, dx, bins, origins = _sparse(particles, dx, 0.0, largest)
    _, sums = splat_columns(bins, volume[:, None], origins, dx, reach)
    # The integral of (1 - s^2)^3 over the ball is 64 pi / 315 R^3.
    density = sums[..., 0] / np.float32(64.0 * np.pi / 315.0 * reach**3)
    filled = density.any(axis=(1, 2, 3))
    return LevelSet(origins[filled], density[filled], dx, background=0.0, kind="fog", name="density")


@node(category="Surface", label="Velocity Volume", version=1)
def velocity_volume(
    particles: Particles,
    *,
    voxel_size: _Voxel = 0.0,
    margin: A[float, Unitless, Range(min=0.0, max=16.0)] = 3.0,
    name: str = "vel",
    largest: A[float, Unitless, Range(min=1e4, soft_max=1e9, log=True)] = 2e8,
) -> LevelSet:
    """Make a vector volume of the velocity [m/s] that reaches past the matter, as motion blur needs.

    Args:
        particles: What to show.
        voxel_size: Voxel size; 0 takes the particle spacing (half a grid cell).
        margin: How many voxels it reaches past the density.
        name: Grid name: vel, v, velocity, ... as the renderer wants it.
        largest: Most voxels to store; where more would be needed the voxel size is raised until they fit.
    """
    from mpm_nodes.kernels.surface_splat import splat_columns

    dx = voxel_size if voxel_size > 0.0 else particles.spacing
    reach, dx, bins, origins = _sparse(particles, dx, margin, largest)
    weights, sums = splat_columns(bins, particles["velocity"], origins, dx, reach)
    velocity = sums / np.maximum(weights, np.float32(1e-20))[..., None]
    filled = weights.any(axis=(1, 2, 3))
    return LevelSet(origins[filled], velocity[filled], dx, background=0.0, kind="vector", name=name)


def _check_attributes(particles: Particles, names: tuple[str, ...]) -> None:
    for name in names:
        if name not in particles:
            raise MpmNodesError(
                f"surface_particles.attributes: the particles have no '{name}'; "
                f"they have {', '.join(sorted(particles.attributes))}"
            )


def _bins(particles: Particles, edge: float) -> Bins:
    from mpm_nodes.kernels.surface_splat import bin_particles

    return bin_particles(particles["position"], edge)


def _leaves(bins: Bins, reach: float, dx: float, margin: float, largest: float) -> tuple[np.ndarray, float]:
    """Return leaves within `reach` [m] and `margin` [voxels] of particles, and the voxel size that fits `largest`."""
    from mpm_nodes.kernels.surface_splat import leaves_near

    while True:
        origins = leaves_near(bins, reach + margin * dx, dx)
        if 512 * len(origins) <= largest:
            return origins, dx
        dx *= 1.26


def _sparse(particles: Particles, dx: float, margin: float, largest: float) -> tuple[float, float, Bins, np.ndarray]:
    """Return kernel reach, voxel size, bins and leaves for a field averaged from particles."""
    reach = max(2.0 * particles.spacing, 1.5 * dx)
    bins = _bins(particles, reach + margin * dx)
    origins, fitted = _leaves(bins, reach, dx, margin, largest)
    if fitted != dx:
        return _sparse(particles, fitted, margin, largest)
    return reach + margin * dx, dx, bins, origins


def _level_set(bins: Bins, dx: float, reach: float, radius: float, smoothing: int, largest: float) -> LevelSet:
    from mpm_nodes.kernels.surface_filter import leaf_neighbours, redistance, smooth, sort_leaves
    from mpm_nodes.kernels.surface_splat import blend_spheres

    origins, dx = _leaves(bins, 0.0, dx, HALF_WIDTH + 1.0 + radius / dx, largest)
    band = HALF_WIDTH * dx
    values = blend_spheres(bins, origins, dx, reach, RADIUS * radius, LIMIT * radius, band)
    keys, origins, values = sort_leaves(origins, values)
    neighbours = leaf_neighbours(keys, origins)
    values = redistance(values, neighbours, dx, band)
    if smoothing:
        values = redistance(smooth(values, neighbours, band, smoothing), neighbours, dx, band)
    near = (values < band).any(axis=(1, 2, 3))
    return LevelSet(origins[near], values[near], dx, background=band, kind="level_set", name="surface")


def _dress(
    mesh: Mesh, level_set: LevelSet, particles: Particles, bins: Bins, reach: float, names: tuple[str, ...]
) -> Mesh:
    """Return the mesh with normals from the level set, and velocities and attributes averaged from the particles."""
    from mpm_nodes.kernels.regions import level_set_normals
    from mpm_nodes.kernels.surface_splat import average_at_points

    carried = ["velocity", *names] if "velocity" in particles else list(names)
    columns = [np.asarray(particles[name], np.float32).reshape(len(particles), -1) for name in carried]
    if columns and len(mesh.points):
        mixed = average_at_points(bins, np.concatenate(columns, axis=1), mesh.points, reach)
    else:
        mixed = np.zeros((len(mesh.points), sum(column.shape[1] for column in columns)), np.float32)
    parts = (
        dict(zip(carried, np.split(mixed, np.cumsum([c.shape[1] for c in columns])[:-1], axis=1), strict=True))
        if columns
        else {}
    )
    shaped = {name: part.reshape(len(part), *particles[name].shape[1:]) for name, part in parts.items()}
    return Mesh(
        mesh.points,
        mesh.counts,
        mesh.indices,
        level_set_normals(level_set, mesh.points),
        shaped.pop("velocity", None),
        shaped,
    )
