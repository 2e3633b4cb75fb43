"""Heat through the sampled surface: its area and what flows in, from outside and from flames that sink with the matter."""

from __future__ import annotations

import math

import numpy as np

from mpm_nodes.data import (
    A,
    Kernel,
    Metres,
    MpmNodesError,
    Range,
    Reads,
    Seconds,
    Stage,
    StepContext,
    Unitless,
    Vec3,
    WattsPerSquareMetre,
    Writes,
)
from mpm_nodes.graph.declare import shared_among_ranks, stage
from mpm_nodes.physics.surface_tension.numerics.samples import SampleStore, open_area
from mpm_nodes.physics.surface_tension.numerics.symmetry import Mirrors, Slab
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.staggered import StaggeredStore
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.transfers import Deposit, scatter


@shared_among_ranks
@stage(label="Heat Surface")
def heat_surface(
    particles: A[ParticleStore, Reads("position"), Writes("surface_area", "surface_flux")],
    samples: A[SampleStore, Reads("position", "normal", "area", "owner", "covered")],
    colliders: A[ColliderSet, Reads("level_set")],
    staggered: A[StaggeredStore, Writes("surface_area", "surface_flux")],
    step: StepContext,
    *,
    flux: A[float, WattsPerSquareMetre, Range(soft_min=0.0, soft_max=1e5)] = 0.0,
    flux_from: Vec3 = (0.0, 0.0, 0.0),
    flames: tuple[str, ...] = (),
    flame_flux: A[float, WattsPerSquareMetre, Range(min=0.0, soft_max=1e5)] = 0.0,
    flame_radius: A[float, Metres, Range(min=0.0, exclusive_min=True, soft_max=1.0)] = 0.01,
    flame_height: A[float, Metres, Range(min=0.0, soft_max=1.0)] = 0.005,
    flame_end: A[float, Seconds, Range(min=0.0)] = 1e9,
    contact_distance: A[float, Unitless, Range(min=0.0, max=2.0)] = 0.3,
    slab: Slab = Slab.NONE,
    mirrors: Mirrors = Mirrors.NONE,
    kernel: Kernel = Kernel.QUADRATIC,
) -> Stage["particles", "samples", "staggered"]:
    """Bring the area of the free surface, and the heat that flows in there, to the cells (C21 eq. 6): -h_c (T - T_a) + b.

    conduct_heat with `sampled` adds both to its system. Each sample counts where its owner lies, so that what it brings is in the
    matter. A flame stands over the highest matter near its wick and sinks as that melts:
    b = flame_flux exp(-d^2 / flame_radius^2) cos(angle) at distance d.

    Args:
        particles: Owners. Only matter with a tension has samples.
        samples: Samples of the surface; those between two liquids do not count.
        colliders: Bodies and walls; what touches them does not count (conduct_heat says what passes there).
        staggered: Grid that conduct_heat works on.
        flux: Heat that comes in everywhere, b; from one side where `flux_from` says so.
        flux_from: Where the flux comes from, as light from a far lamp: b times the cosine on what faces there, none on what
            faces away. The length of the direction does not matter; (0, 0, 0): from everywhere alike.
        flames: Where wicks stand: "x z" of each [m].
        flame_flux: Heat that comes in right at the flame.
        flame_radius: Distance over which that falls, and within which the matter around the wick is looked at.
        flame_height: Of the flame over that matter.
        flame_end: Time from which on the flames are out.
        contact_distance: As in set_tension.
        slab: As in sample_surface.
        mirrors: As in sample_surface: planes of symmetry are not bodies.
        kernel: B-spline of the weights; the one of rasterize_heat.

    Raises:
        MpmNodesError: A flame is not two numbers.
    """
    staggered.clear("surface_heat")
    area, flows = particles.rows("surface_area")[0], particles.rows("surface_flux")[0]
    area[:], flows[:] = 0.0, 0.0
    if not (samples.count or staggered.halo.several):
        return
    own = open_area(samples, colliders, step, contact_distance, (*slab.sides, *mirrors.sides(colliders)))
    given = np.full(samples.count, flux)
    if any(flux_from):
        towards = np.array(flux_from) / math.hypot(*flux_from)
        given *= np.maximum(samples.unpack("normal") @ towards, 0.0)
    if flames and flame_flux > 0.0 and step.time < flame_end:
        given += _flames(particles, samples, _wicks(flames), (flame_flux, flame_radius, flame_height))
    owner = samples.rows("owner")[0]
    total = np.bincount(owner, own, particles.count)
    area[:] = total
    flows[:] = np.bincount(owner, own * given, particles.count) / np.where(total > 0.0, total, 1.0)
    scatter(particles, staggered, kernel, Deposit("surface_heat", "surface_area", ("surface_flux", None, None)))


def _wicks(flames: tuple[str, ...]) -> list[tuple[float, float]]:
    """Return x and z of wicks [m]."""
    found = []
    for flame in flames:
        try:
            along, across = map(float, flame.split())
        except ValueError:
            raise MpmNodesError(f"heat_surface.flames: '{flame}' is not a place; give x and z in metres, as \"0.1 -0.2\"") from None
        found.append((along, across))
    return found


def _flames(
    particles: ParticleStore, samples: SampleStore, wicks: list[tuple[float, float]], flame: tuple[float, float, float]
) -> np.ndarray:
    """Return what flames bring to each sample [W/m^2]; `flame` is flux, radius and height."""
    flux, radius, height = flame
    x, at, normal = particles.unpack("position"), samples.unpack("position"), samples.unpack("normal")
    found = np.zeros(samples.count)
    for along, across in wicks:
        near = (x[:, 0] - along) ** 2 + (x[:, 2] - across) ** 2 < radius**2
        top = float(x[near, 1].max(initial=-np.inf))
        top = particles.share.largest(top)
        if top > -np.inf:
            away = np.array([along, top + height, across]) - at
            distance = np.linalg.norm(away, axis=1)
            facing = np.maximum((away * normal).sum(axis=1), 0.0) / np.maximum(distance, 1e-12)
            found += flux * facing * np.exp(-((distance / radius) ** 2))
    return found
