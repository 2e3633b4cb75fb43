"""Surfaces and volumes made from particles: level set and mesh, fog, velocity."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mpm_nodes.data import ATTRIBUTES, A, LevelSet, Mesh, Metres, MpmNodesError, Particles, PerResolution, Range, Unitless
from mpm_nodes.graph.declare.decorators import PreflightContext, found_by, node
from mpm_nodes.kernels.surfaces.spheres import HALF_WIDTH, REACH, VOXEL
from mpm_nodes.nodes.bodies import marks
from mpm_nodes.nodes.colours import COLOUR
from mpm_nodes.nodes.derived import column, known_as, own_name, refuse_unknown
from mpm_nodes.nodes.dressing import dressed, with_columns
from mpm_nodes.nodes.libraries import OPENVDB, refuse_without_openvdb
from mpm_nodes.nodes.looks import REST, SECOND_REST
from mpm_nodes.nodes.particle_surface import MOST, Shape, holding, level_set_of, volumes_of

if TYPE_CHECKING:
    from mpm_nodes.kernels.surfaces.splat import SortedParticles

_Voxel = A[float, Metres, Range(min=0.0, soft_max=0.1), PerResolution(-1)]


LIMITS = (0.1, 4.0)
"""Least and largest factor on the radius."""


class SurfaceOutputs(NamedTuple):
    """What `surface_particles` gives: the level set `surface` and its mesh."""

    surface: LevelSet
    mesh: Mesh


# ---------------------------------------------------------------- preflight
SURFACE_BYTES, FOG_BYTES, VECTOR_BYTES = 52, 20, 100
"""What a voxel of a surface, a fog and a vector volume takes while it is made, at the peak."""
MARGIN = 16
"""Voxels around matter that leaves of 8^3 fill as well, both sides together."""
BOTH_SIDES = 2
"""Mesh points over those of a cube of the same volume: matter falls, spreads and splashes."""
MESH_BYTES, SHOWN_BYTES = 120, 5
"""What a point of a mesh and a voxel of a volume take as published."""


def _edge(told: PreflightContext, default: float = 1.0) -> float:
    """Return how many voxels are along a cube that holds the particles, raised where there would be more than `largest`.

    `default` is the voxel size where the knob has none, in spacings.
    """
    spacing = 0.5 * told.settings.cell_size
    voxel = told.knobs["voxel_size"] or default * spacing
    along = told.total("particles", "particles") ** (1.0 / 3.0) * spacing / voxel + MARGIN
    return min(along, float(told.knobs["largest"]) ** (1.0 / 3.0))


def _surfaced(told: PreflightContext) -> dict[str, Any]:
    refuse_without_openvdb("surface_particles")
    refuse_unknown("surface_particles.attributes", told, *told.knobs["attributes"])
    if scale := told.knobs["radius_attribute"]:
        refuse_unknown("surface_particles.radius_attribute", told, scale)
        if not _is_number(scale):
            raise MpmNodesError(_no_factor(scale, "a vector"))
    along = _edge(told, VOXEL)
    points, mean = (int(BOTH_SIDES * 6.0 * (along - MARGIN + 2.0) ** 2 * share) for share in (1.0, _share(told) ** (2.0 / 3.0)))
    thick = int(2.0 * HALF_WIDTH)
    memory = int(SURFACE_BYTES * along**3)
    told_of = {"mesh_points": points, "voxels": thick * points, "mean_mesh_points": mean, "mean_voxels": thick * mean}
    return {"memory": memory, "values": MESH_BYTES * points + SHOWN_BYTES * thick * points, "shared": OPENVDB, **told_of}


def _share(told: PreflightContext) -> float:
    """Return the mean over the shot of the share of the particles that are there."""
    return told.mean("particles") / max(told.total("particles", "particles"), 1)


def _filled(told: PreflightContext, each: int, numbers: int) -> dict[str, Any]:
    """Return the needs of a volume of so many `numbers` a voxel, each of which takes `each` bytes while it is made."""
    voxels = int(_edge(told) ** 3)
    values = SHOWN_BYTES * numbers * voxels
    counts = {"voxels": numbers * voxels, "mean_voxels": int(numbers * voxels * _share(told))}
    return {"memory": each * voxels, "values": values, "shared": OPENVDB, **counts}


def _fogged(told: PreflightContext) -> dict[str, Any]:
    return _filled(told, FOG_BYTES, 1)


def _blown(told: PreflightContext) -> dict[str, Any]:
    return _filled(told, VECTOR_BYTES, 3)


# ---------------------------------------------------------------- nodes
@found_by("mesh", "skin", "polygonize", "remesh")
@node(category="Surface", label="Surface Particles", version=1, preflight=_surfaced)
def surface_particles(
    particles: Particles,
    *,
    voxel_size: _Voxel = 0.0,
    radius: A[float, Unitless, Range(min=LIMITS[0], max=LIMITS[1])] = 1.0,
    radius_attribute: str = "",
    smoothing: A[int, Unitless, Range(min=0, max=50)] = 3,
    keep_volume: bool = True,
    anisotropy: bool = True,
    adaptivity: A[float, Unitless, Range(min=0.0, max=1.0)] = 0.0,
    attributes: tuple[str, ...] = (),
    largest: A[float, Unitless, Range(min=1e4, soft_max=1e9, log=True)] = 2e8,
) -> SurfaceOutputs:
    """Wrap particles in a smooth surface: blended spheres as a level set, meshed by OpenVDB.

    Args:
        particles: What to wrap.
        voxel_size: Voxel size; 0 takes 0.6 of the particle spacing (of half a grid cell).
        radius: Scales the spheres; 1 puts the surface of undeformed matter where it was seeded.
        radius_attribute: Attribute that scales them as well, particle by particle: paint one by set_attribute, before the solve or
            behind it, from any field. Together they are from 0.1 to 4.
        smoothing: Pairs of smoothing steps that keep the volume; 0 shows every particle, 12 hardly any. A step looks a particle
            spacing far, sheets and drops of a particle or two take steps of a voxel.
        keep_volume: Moves the surface, at most by a particle spacing, and then the points of the mesh, outward at most by half of
            one, until it holds the volume of its particles, in each place and as a whole. Where matter is packed so densely that
            this is too short for the whole, points go outward by up to a spacing.
        anisotropy: Sheets and threads of a particle or two across take ellipsoids along them in place of spheres, so that they hold
            together where they are drawn out, and drops stay whole. The level set shows them at least 1.7 voxels thick; the mesh as
            thin as their volume makes them, where it keeps the volume.
        adaptivity: 0 keeps quads of a voxel, larger values join flat ones into fewer polygons.
        attributes: Particle attributes carried to the mesh points, besides velocity and colour, also computed ones: speed, age, J,
            Jp, surface_tension. With several materials each point has that of which most is near, and the cache a subset of faces
            a material.
        largest: Most voxels to store; where more would be needed the voxel size is raised until they fit.
    """
    from mpm_nodes.kernels.level_sets.regions import level_set_normals
    from usd_io.volumes import mesh_level_set

    particles = with_columns("surface_particles.attributes", particles, attributes)
    spacing, reach = particles.spacing, REACH * particles.spacing * max(radius, 1.0)
    factors = _factors(particles, radius, radius_attribute) if radius_attribute else None
    bins = _bins(particles, reach)
    volumes, whole = volumes_of(particles)
    wanted = voxel_size if voxel_size > 0.0 else VOXEL * spacing
    widest = radius if factors is None else radius * float(factors.max(initial=1.0))
    beyond = widest * spacing + (MOST * spacing if keep_volume else 0.0)
    origins, dx = _leaves("surface_particles", bins, beyond, wanted, HALF_WIDTH + 1.0, largest)
    shape = Shape(dx, spacing, radius, smoothing, anisotropy)
    level_set, balance = level_set_of(bins, origins, shape, volumes if keep_volume else None, factors)
    mesh = mesh_level_set(level_set, adaptivity)
    # before its points move: inside of a thin sheet the level set has no slope
    mesh = dataclasses.replace(mesh, normals=level_set_normals(level_set, mesh.points))
    if balance is not None and radius == 1.0 and factors is None:  # a wider radius asks for more than the particles' volume
        mesh = dataclasses.replace(holding(mesh, balance, volumes, shape), matter_volume=whole)
    return SurfaceOutputs(level_set, dressed(mesh, particles, bins, reach, attributes))


def _no_factor(attribute: str, what: str) -> str:
    return f"surface_particles.radius_attribute: '{attribute}' of the particles is {what}; choose a number"


def _factors(particles: Particles, radius: float, attribute: str) -> np.ndarray:
    """Return what scales the radius of each particle, shape (n,)."""
    found = np.asarray(column("surface_particles.radius_attribute", particles, attribute), float)
    if found.ndim != 1 or not np.isfinite(found).all():
        raise MpmNodesError(_no_factor(attribute, "a vector" if found.ndim != 1 else "not finite"))
    if ((radius * found < LIMITS[0]) | (radius * found > LIMITS[1])).any():
        warnings.warn(  # in the same words at every frame, so that it is told once
            f"surface_particles.radius_attribute: '{attribute}' times the radius is not from {LIMITS[0]:g} to {LIMITS[1]:g} "
            "everywhere; it is brought back to that; limit it by field_math",
            stacklevel=2,
        )
    return np.clip(radius * found, *LIMITS) / radius


@node(category="Surface", label="Density Volume", version=1, preflight=_fogged)
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
    share = particles["volume"] if "volume" in particles else np.full(len(particles), particles.spacing**3)
    origins, sums, dx = _deposited("density_volume", particles, share[:, None], voxel_size, 0.0, largest)
    density = sums[..., 0] / np.float32(dx**3)
    filled = density.any(axis=(1, 2, 3))
    return LevelSet(origins[filled], density[filled], dx, background=0.0, kind="fog", name="density")


@node(category="Surface", label="Velocity Volume", version=1, preflight=_blown)
def velocity_volume(
    particles: Particles,
    *,
    voxel_size: _Voxel = 0.0,
    margin: A[int, Unitless, Range(min=0, max=16)] = 3,
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
    from mpm_nodes.kernels.surfaces.filter import dilate, leaf_neighbours, sort_leaves

    momentum = np.concatenate([np.ones((len(particles), 1)), particles["velocity"]], axis=1)
    origins, sums, dx = _deposited("velocity_volume", particles, momentum, voxel_size, margin, largest)
    keys, origins, sums = sort_leaves(origins, sums)
    filled = sums[..., 0] > 0.0
    velocity = sums[..., 1:] / np.maximum(sums[..., :1], np.float32(1e-30))
    velocity = dilate(np.ascontiguousarray(velocity), filled, leaf_neighbours(keys, origins), margin)
    held = velocity.any(axis=(1, 2, 3, 4))
    return LevelSet(origins[held], velocity[held], dx, background=0.0, kind="vector", name=name)


def _shown(told: PreflightContext) -> dict[str, Any]:
    columns, name = marks(told, "particles")["columns"], told.knobs["attribute"]
    if columns is not None and not (known_as(columns, name) and _is_number(name)):
        raise MpmNodesError(_no_number(name, [each for each in columns if _is_number(each)]))
    return _fogged(told)


_VECTORS = (COLOUR, REST, SECOND_REST)
"""Columns that nodes add, with more than a number a particle."""


def _is_number(name: str) -> bool:
    name = own_name(name)
    return ATTRIBUTES[name].shape == () if name in ATTRIBUTES else name not in _VECTORS


def _no_number(name: str, numbers: Iterable[str]) -> str:
    return f"attribute_volume.attribute: the particles have no number '{name}'; choose one of {', '.join(sorted(numbers))}"


@node(category="Surface", label="Attribute Volume", version=1, preflight=_shown)
def attribute_volume(
    particles: Particles,
    *,
    attribute: str = "temperature",
    name: str = "",
    voxel_size: _Voxel = 0.0,
    largest: A[float, Unitless, Range(min=1e4, soft_max=1e9, log=True)] = 2e8,
) -> LevelSet:
    """Make a volume of a particle attribute, averaged by mass: `temperature` in kelvin lights a black-body shader.

    Args:
        particles: What to show.
        attribute: Attribute of one number a particle.
        name: Grid name; empty takes the attribute's.
        voxel_size: Voxel size; 0 takes the particle spacing (half a grid cell).
        largest: Most voxels to store; where more would be needed the voxel size is raised until they fit.
    """
    shown = column("attribute_volume.attribute", particles, attribute) if known_as(particles, attribute) else None
    if shown is None or shown.ndim != 1:
        raise MpmNodesError(_no_number(attribute, [key for key, held in particles.attributes.items() if held.ndim == 1]))
    weight = np.asarray(particles["mass"], float) if "mass" in particles else np.full(len(particles), particles.spacing**3)
    amounts = np.stack([weight, weight * shown], axis=1) / max(float(weight.mean()) if len(weight) else 1.0, 1e-300)
    origins, sums, dx = _deposited("attribute_volume", particles, amounts, voxel_size, 0.0, largest)
    held = sums[..., 0] > 1e-3 * float(sums[..., 0].max(initial=0.0))
    values = np.where(held, sums[..., 1] / np.where(held, sums[..., 0], 1.0), 0.0).astype(np.float32)
    filled = held.any(axis=(1, 2, 3))
    return LevelSet(origins[filled], values[filled], dx, background=0.0, kind="fog", name=name or attribute)


def _bins(particles: Particles, edge: float) -> SortedParticles:
    from mpm_nodes.kernels.surfaces.splat import bin_particles

    return bin_particles(particles["position"], edge)


def _leaves(where: str, bins: SortedParticles, reach: float, dx: float, margin: float, largest: float) -> tuple[np.ndarray, float]:
    """Return leaves within `reach` [m] and `margin` [voxels] of particles, and the voxel size that fits `largest`."""
    from mpm_nodes.kernels.surfaces.splat import leaves_near

    wanted = dx
    while True:
        origins = leaves_near(bins, reach + margin * dx, dx)
        if 512 * len(origins) <= largest:
            break
        dx *= 1.26
    if dx != wanted:
        warnings.warn(
            f"{where}: voxel size raised from {wanted:g} to {dx:.3g} m, so that at most {largest:.3g} voxels are "
            "stored; raise `largest` to keep it",
            stacklevel=3,
        )
    return origins, dx


def _deposited(
    where: str, particles: Particles, amounts: np.ndarray, voxel_size: float, margin: float, largest: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return leaves, the amounts shared out to their voxels, and the voxel size."""
    from mpm_nodes.kernels.surfaces.deposit import deposit

    wanted = voxel_size if voxel_size > 0.0 else particles.spacing
    # The leaves of the finest splines tell what fits; coarser voxels need fewer.
    bins = _bins(particles, 3.0 * max(particles.spacing, wanted))
    origins, dx = _leaves(where, bins, 3.0 * particles.spacing, wanted, margin + 1.5, largest)
    spread = max(1, math.ceil(1.5 * particles.spacing / dx))
    if 1.5 * spread * dx > bins.edge:
        bins = _bins(particles, 1.5 * spread * dx)
    return origins, deposit(bins, amounts, origins, dx, spread), dx
