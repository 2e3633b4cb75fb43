"""Solutes: their diffusion over the cells of the staggered grid and back, as heat does it, and what evaporates at the surface."""

from __future__ import annotations

import math

import numpy as np

from mpm_nodes.data import (
    A,
    Fact,
    Facts,
    Kernel,
    Limit,
    MetresPerSecond,
    MpmNodesError,
    Range,
    Reads,
    Reduction,
    Stage,
    StepContext,
    Unitless,
    Writes,
)
from mpm_nodes.graph.declare import shared_among_ranks, stage
from mpm_nodes.physics.heat.numerics.conduction import Surroundings, conduct
from mpm_nodes.physics.surface_tension.numerics.samples import SampleStore, open_area
from mpm_nodes.physics.surface_tension.numerics.symmetry import Mirrors, Slab
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.divergence import diverged
from mpm_nodes.solver.staggered import AXES, StaggeredStore
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.transfers import Deposit, Take, gather, scatter

SOLUTE = Facts(
    "solute",
    "The solute that the matter holds.",
    (
        Fact("content", "m^3", Reduction.LAST, "Concentration times undeformed volume, of all matter."),
        Fact("evaporated", "m^3", Reduction.SUM, "What left through the surface."),
        Fact("iterations", "", Reduction.MAX, "Most iterations of a linear solve.", 1.0),
        Fact("unsolved", "", Reduction.SUM, "Solves that ended before their tolerance."),
    ),
    warning="{unsolved} solves of the diffusion did not reach their tolerance; raise diffuse_concentration.iterations",
    warn_if="unsolved",
)
UNSOLVED = Limit("diffusion", cause="the concentration has no finite solution", cure="the concentrations of sources")

_ROW, _SLOPES = ("concentration", None, None), (("concentration_gradient", 0), None, None)
_FACES = tuple(f"{name}_{axis}" for name in ("conduction", "volume") for axis in AXES)


def _diffusivities(particles: ParticleStore) -> list[float]:
    """Return the diffusivity [m^2/s] of each material's solute."""
    tensions = (law.material.surface_tension for law in particles.laws)
    return [0.0 if tension is None else tension.solute_diffusivity for tension in tensions]


@shared_among_ranks
@stage(label="Evaporate Solute")
def evaporate_solute(
    particles: A[ParticleStore, Reads("position"), Writes("surface_area", "surface_flux")],
    samples: A[SampleStore, Reads("position", "normal", "area", "owner", "covered")],
    colliders: A[ColliderSet, Reads("level_set")],
    staggered: A[StaggeredStore, Writes("surface_area", "surface_flux")],
    step: StepContext,
    *,
    evaporation: A[float, MetresPerSecond, Range(min=0.0, soft_max=1e-3)] = 0.0,
    contact_distance: A[float, Unitless, Range(min=0.0, max=2.0)] = 0.3,
    slab: Slab = Slab.NONE,
    mirrors: Mirrors = Mirrors.NONE,
    kernel: Kernel = Kernel.QUADRATIC,
) -> Stage["particles", "samples", "staggered"]:
    """Let a solute leave through the free surface, e c of it a square metre and second: alcohol from wine.

    A Robin condition, -D dc/dn = e c, with air that holds none: e times the area of the free surface goes to the cells, where each
    sample's owner lies, and diffuse_concentration with `sampled` adds it to its system. Only the solute goes: the matter keeps its
    mass and volume.

    Args:
        particles: Owners. Only matter with a tension has samples.
        samples: Samples of the surface; those between two liquids do not count.
        colliders: Bodies and walls; nothing leaves where matter touches them.
        staggered: Grid that diffuse_concentration works on.
        evaporation: Speed e of the mass transfer; 0: nothing leaves.
        contact_distance: As in set_tension.
        slab: As in sample_surface.
        mirrors: As in sample_surface: planes of symmetry are not bodies.
        kernel: B-spline of the weights; the one of diffuse_concentration.

    Raises:
        MpmNodesError: The solute of no material has a diffusivity, so that none would come to the surface.

    Source: C21 eq. 6, for a concentration.
    """
    if evaporation > 0.0 and not any(_diffusivities(particles)):
        raise MpmNodesError(
            f"evaporate_solute.evaporation = {evaporation:g} m/s: no material has a solute that diffuses, so none comes to the "
            "surface; set material_surfactant.diffusivity, or evaporation = 0"
        )
    staggered.clear("surface_heat")
    area, flows = particles.rows("surface_area")[0], particles.rows("surface_flux")[0]
    area[:], flows[:] = 0.0, 0.0
    if evaporation == 0.0 or not (samples.count or staggered.halo.several):
        return
    own = open_area(samples, colliders, step, contact_distance, (*slab.sides, *mirrors.sides(colliders)))
    area[:] = evaporation * np.bincount(samples.rows("owner")[0], own, particles.count)
    scatter(particles, staggered, kernel, Deposit("surface_heat", "surface_area", ("surface_flux", None, None)))


@shared_among_ranks
@stage(label="Diffuse Concentration", facts=(SOLUTE,), limits=(UNSOLVED,))
def diffuse_concentration(
    particles: A[
        ParticleStore,
        Reads("position", "material", "volume", "concentration", "concentration_gradient"),
        Writes("concentration", "concentration_gradient", "conductivity"),
    ],
    staggered: A[
        StaggeredStore,
        Reads("surface_area", "surface_flux", when=("sampled", True)),
        Writes("heat", "heat_capacity", "volume", "heat_source", "temperature", *_FACES),
    ],
    colliders: A[ColliderSet, Reads("level_set")],
    step: StepContext,
    *,
    kernel: Kernel = Kernel.QUADRATIC,
    smoothing: A[float, Unitless, Range(min=0.0, soft_max=10.0)] = 1.0,
    sampled: bool = False,
    tolerance: A[float, Unitless, Range(min=1e-14, max=1e-2, log=True)] = 1e-10,
    iterations: A[int, Unitless, Range(min=1, max=100000)] = 1000,
) -> Stage["particles", "staggered"]:
    """Let the solute of each material spread: rho Dc/Dt = div(rho D grad c) by backward Euler (C21 section 3.3).

    The particles carry it along; bodies and walls let none through, free surfaces what evaporate_solute says. What matter holds,
    sum V0 c, and what has evaporated stay together to the tolerance of the solve. Nothing is done where no material has a
    diffusivity (material_surfactant).

    Args:
        particles: Particles with a concentration.
        staggered: Grid whose cells and faces are used, and lost to stages of heat that have not read them yet.
        colliders: Bodies that part the matter.
        kernel: B-spline of the weights.
        smoothing: Rate at which particles take the concentration of the cells [D / h^2], as in gather_heat.
        sampled: The solute evaporates as evaporate_solute says, which is wired before.
        tolerance: Residual at which the linear solve stops, over that of the right side.
        iterations: Iterations of the linear solve at most.

    Raises:
        SimulationDiverged: A concentration is not finite.
    """
    diffusivities = _diffusivities(particles)
    staggered.clear("heat", "temperature", *(f"conduction_{axis}" for axis in AXES))
    particles.rows("conductivity")[0] = 0.0
    if not (particles.count or staggered.halo.several) or not any(diffusivities):
        return
    material, rates = particles.rows("material")[0], particles.rows("conductivity")[0]
    for index, diffusivity in enumerate(diffusivities):
        rates[material == index] = diffusivity
    faces = [Deposit(f"conduction_{axis}", "volume", ("conductivity", None, None)) for axis in AXES]
    scatter(particles, staggered, kernel, Deposit("heat", "volume", _ROW, _SLOPES), *faces)
    colliders.pose(step.time, step.time + step.dt)
    around = Surroundings(air=0.0, to_air=float(sampled), insulated=True, sampled=sampled)
    done = conduct(staggered, colliders, step.dt, around, tolerance, iterations, step.check_cancel)
    if not math.isfinite(done.content):
        step.limit = UNSOLVED
        raise diverged(staggered.grid.particles, step)
    fraction = math.exp(-smoothing * max(diffusivities) * step.dt / step.cell_size**2)
    gather(particles, staggered, kernel, Take("temperature", _ROW, affine=_SLOPES, before="heat", flip=fraction))
    step.tell(
        SOLUTE,
        content=done.content,
        evaporated=0.0 - done.air,
        iterations=done.solution.iterations,
        unsolved=int(not done.solution.converged),
    )
