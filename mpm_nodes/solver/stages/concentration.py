"""Diffusion of a solute: the concentration goes to the cells of the staggered grid and back as heat does."""

from __future__ import annotations

import math

from mpm_nodes.data import (
    A,
    Fact,
    Facts,
    Kernel,
    Limit,
    Range,
    Reads,
    Reduction,
    Stage,
    StepContext,
    Unitless,
    Writes,
)
from mpm_nodes.graph.declare import stage
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.conduction import Surroundings, conduct
from mpm_nodes.solver.divergence import diverged
from mpm_nodes.solver.staggered import AXES, StaggeredStore
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.transfers import Deposit, Take, gather, scatter

SOLUTE = Facts(
    "solute",
    "The solute that the matter holds.",
    (
        Fact("content", "m^3", Reduction.LAST, "Concentration times undeformed volume, of all matter."),
        Fact("iterations", "", Reduction.MAX, "Most iterations of a linear solve."),
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


@stage(label="Diffuse Concentration", facts=(SOLUTE,), limits=(UNSOLVED,))
def diffuse_concentration(
    particles: A[
        ParticleStore,
        Reads("position", "material", "volume", "concentration", "concentration_gradient"),
        Writes("concentration", "concentration_gradient", "conductivity"),
    ],
    staggered: A[StaggeredStore, Writes("heat", "heat_capacity", "volume", "heat_source", "temperature", *_FACES)],
    colliders: A[ColliderSet, Reads("level_set")],
    step: StepContext,
    *,
    kernel: Kernel = Kernel.QUADRATIC,
    smoothing: A[float, Unitless, Range(min=0.0, soft_max=10.0)] = 1.0,
    tolerance: A[float, Unitless, Range(min=1e-14, max=1e-2, log=True)] = 1e-10,
    iterations: A[int, Unitless, Range(min=1, max=100000)] = 1000,
) -> Stage["particles", "staggered"]:
    """Let the solute of each material spread: rho Dc/Dt = div(rho D grad c) by backward Euler (C21 section 3.3).

    The particles carry it along; free surfaces, bodies and walls let none through. What matter holds, sum V0 c, stays to the
    tolerance of the solve. Nothing is done where no material has a diffusivity (material_surfactant).

    Args:
        particles: Particles with a concentration.
        staggered: Grid whose cells and faces are used, and lost to stages of heat that have not read them yet.
        colliders: Bodies that part the matter.
        kernel: B-spline of the weights.
        smoothing: Rate at which particles take the concentration of the cells [D / h^2], as in gather_heat.
        tolerance: Residual at which the linear solve stops, over that of the right side.
        iterations: Iterations of the linear solve at most.

    Raises:
        SimulationDiverged: A concentration is not finite.
    """
    diffusivities = _diffusivities(particles)
    staggered.clear("heat", "temperature", *(f"conduction_{axis}" for axis in AXES))
    particles.rows("conductivity")[0] = 0.0
    if not (particles.count or staggered.halo) or not any(diffusivities):
        return
    material, rates = particles.rows("material")[0], particles.rows("conductivity")[0]
    for index, diffusivity in enumerate(diffusivities):
        rates[material == index] = diffusivity
    faces = [Deposit(f"conduction_{axis}", "volume", ("conductivity", None, None)) for axis in AXES]
    scatter(particles, staggered, kernel, Deposit("heat", "volume", _ROW, _SLOPES), *faces)
    colliders.pose(step.time, step.time + step.dt)
    done = conduct(staggered, colliders, step.dt, Surroundings(insulated=True), tolerance, iterations, step.check_cancel)
    if not math.isfinite(done.content):
        step.limit = UNSOLVED
        raise diverged(staggered.grid.particles, step)
    fraction = math.exp(-smoothing * max(diffusivities) * step.dt / step.cell_size**2)
    gather(particles, staggered, kernel, Take("temperature", _ROW, affine=_SLOPES, before="heat", flip=fraction))
    step.tell(
        SOLUTE,
        content=done.content,
        iterations=done.solution.iterations,
        unsolved=int(not done.solution.converged),
    )
