"""Time step choice by the limits of Courant, of elastic waves and of explicit viscosity."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from mpm_nodes.data import LAW_STATE, A, Fact, Facts, Limit, MpmNodesError, Range, Reads, Reduction, Stage, StepContext, Unitless
from mpm_nodes.graph.declare import shared_among_ranks, stage
from mpm_nodes.kernels.composition.fragments import Measure
from mpm_nodes.materials.law_fragments import RATES
from mpm_nodes.solver.collider_shapes import time_to_travel
from mpm_nodes.solver.colliders import LIMITS as COLLIDER_LIMITS
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.divergence import diverged
from mpm_nodes.solver.frame_progress import never_ends
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.step_lengths import even_step, strain_step, wave_step

CHOSEN = Facts(
    "substep",
    "What holds the time step.",
    (
        Fact("limit", "", Reduction.AT_SHORTEST, "What holds the time step."),
        Fact("limit_material", "", Reduction.AT_SHORTEST, "Material, or body, that it is due to."),
    ),
    per_substep=True,
)
LONGEST = Limit("dt_max")
SHORTEST = Limit(
    "dt_min", cause="dt was held at dt_min = {dt_min:.3g} s, longer than the stable step", cure="lower the dt_min of the solve"
)
FRAME_END = Limit("frame end")
TRAVEL = Limit("particle speed", cure="lower choose_time_step.cfl and elastic_cfl", against="speed")
STRAIN = Limit("strain rate")
WAVE = Limit("elastic wave", cure="lower choose_time_step.elastic_cfl or soften the material", against="state")
VISCOSITY = Limit("viscosity")
LAW = Limit("law")
LIMITS = (LONGEST, SHORTEST, FRAME_END, TRAVEL, STRAIN, WAVE, VISCOSITY, LAW, *COLLIDER_LIMITS)
"""What this stage finds itself; further ones are those that other stages offer."""


def _keep(particles: ParticleStore, found: Sequence[Mapping[str, float]]) -> None:
    """Keep |v|, |grad v| and wave speed of every material for the next substep."""
    particles.limits = [(math.sqrt(rates["speed"]), math.sqrt(rates["gradient"]), rates["wave"]) for rates in found]


@shared_among_ranks
@stage(label="Choose Time Step", sets=("dt",), facts=(CHOSEN,), limits=LIMITS, fragments=(Measure(RATES, ("speed",), _keep),))
def choose_time_step(
    particles: A[ParticleStore, Reads("velocity", "stiffness_scale", LAW_STATE), Reads("velocity_gradient", on_request=True)],
    colliders: A[ColliderSet, Reads("level_set")],
    step: StepContext,
    *,
    cfl: A[float, Unitless, Range(min=0.0, max=0.9, exclusive_min=True)] = 0.5,
    elastic_cfl: A[float, Unitless, Range(min=0.0, max=1.5, soft_max=0.6, exclusive_min=True)] = 0.5,
    strain_limit: A[float, Unitless, Range(min=0.0, max=1.0, exclusive_min=True)] = 0.5,
    implicit: bool = False,
) -> Stage["particles", "colliders"]:
    """Choose the longest stable dt and report what limits it.

    The time that remains of the frame is divided evenly, so that the last substep is never a sliver. Where steps are short, that
    of the tick is, about 1/96 s: then frames of 1/24 s take the same steps as those of 1/96 s.

    Args:
        particles: Particles whose speed, strain rate, moduli and viscosity limit dt.
        colliders: Colliders whose speed limits dt.
        cfl: Largest distance a particle may move in one substep, in cells.
        elastic_cfl: Largest distance an elastic wave may move in one substep, in cells.
        strain_limit: Largest dt |grad v|.
        implicit: Leave out the limits of elastic waves and of viscosity: an implicit update is stable beyond them.

    Raises:
        SimulationDiverged: No usable dt is left: a speed or modulus is not finite or absurd.
        MpmNodesError: Nothing limits dt.
    """
    found = [*_own_limits(particles, colliders, step, cfl, elastic_cfl, strain_limit, implicit)]
    found += [(limit, "", float(call())) for limit, call in step.limits if call is not None]
    limit, material, dt = min(found, key=lambda each: each[2])
    limit, material, dt = step.share.shortest(limit, material, dt, (*LIMITS, *(each for each, _ in step.limits)))
    dt *= step.dt_factor
    if dt < step.dt_min:  # the artist would rather see it blow up than wait: the report names dt_min then
        limit, material, dt = SHORTEST, "", step.dt_min
    step.limit = limit
    longest = min(step.time_left, step.dt_max)
    shortest = 1e-7 * longest if math.isfinite(longest) else 0.0
    if dt == math.inf:
        raise MpmNodesError("substep: nothing limits dt; give the solver a finite dt_max")
    if not dt > shortest:  # NaN, infinite speed, or a frame that would never end
        step.dt = dt
        moves = [value for each, _, value in found if each in (TRAVEL, STRAIN)]
        if dt >= 0 and all(value > shortest for value in moves):  # nothing moves too fast: it is what the artist asked for
            raise never_ends(step, limit.name, material)
        raise diverged(particles, step)
    if dt >= 1.5 * step.time_left:
        limit, material = FRAME_END, ""
    step.limit = limit
    step.tell(CHOSEN, limit=limit.name, limit_material=material)
    step.dt = even_step(dt, step.time_left, *step.tick, step.dt_min) if math.isfinite(step.time_left) else dt


def _own_limits(
    particles: ParticleStore,
    colliders: ColliderSet,
    step: StepContext,
    cfl: float,
    elastic_cfl: float,
    strain_limit: float,
    implicit: bool,
) -> Iterator[tuple[Limit, str, float]]:
    """Yield the limits of motion and matter: what it is, what it is due to, and the longest substep [s]."""
    h, gravity = step.cell_size, math.hypot(*step.gravity)
    yield LONGEST, "", step.dt_max
    yield from colliders.limits(cfl * h, gravity, particles)
    for law, speed, gradient, wave in particles.law_limits():
        yield TRAVEL, law.label, time_to_travel(cfl * h, speed, gravity)
        yield STRAIN, law.label, strain_step(gradient, strain_limit)
        if not implicit:
            # a wave runs on matter that moves: where that is the faster of the two, it is what makes the step short
            yield (WAVE if wave >= speed else TRAVEL), law.label, wave_step(wave, speed, elastic_cfl * h)
        segments = particles.segments[law.index]
        viscosity = 0.0 if implicit else law.viscosity_of(particles, segments)
        if viscosity > 0:
            yield VISCOSITY, law.label, law.viscous_step(viscosity, h)
        yield LAW, law.label, law.longest_step(particles, segments)
