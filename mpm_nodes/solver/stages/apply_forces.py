"""Stage: forces that are wired into the solve."""

from __future__ import annotations

import dataclasses
import math

from mpm_nodes.data import A, Fact, Facts, Limit, Moment, Range, Reads, Reduction, Stage, StepContext, Unitless, Writes
from mpm_nodes.graph.declare import costs, shared_among_ranks, stage
from mpm_nodes.kernels.composition.fragments import Ahead, OnDevice
from mpm_nodes.solver.attachments import Pulled, pull_attachments
from mpm_nodes.solver.forces import Delivered, push_particles, turns
from mpm_nodes.solver.state import ParticleStore

__all__ = ["apply_forces"]

PUSHED = Facts(
    "forces",
    "What forces gave to the matter in a frame, in the order of the wires.",
    (
        Fact("impulse", "N s", Reduction.SUM, "Impulse of each: three numbers one after the other."),
        Fact("work", "J", Reduction.SUM, "Work of each: by how much it changed the kinetic energy of particles."),
    ),
    by_rank=True,
)


JUST = 1e-6
"""Share of a frame by which a moment lies before or behind a key [frames]."""


def _longest_step(
    particles: A[ParticleStore, Reads("position", "velocity", "mass", "volume")], step: StepContext, *, cfl: float
) -> float:
    """Return the step in which the largest acceleration, of the substep before or to come, moves a particle by `cfl` cells [s].

    Where forces change, a substep ends at the next frame at which a key turns them: what they give in its middle is then their
    mean, exactly so where keys step or go straight.
    """
    if not step.forces or not particles.count:
        return math.inf
    ahead = min(step.time_left, step.dt_max)
    begin, end = step.moment(0.0), step.moment(ahead)
    sharp = None if step.frame_at is None else turns(step.forces, begin.frame + JUST, end.frame)
    if sharp is None:
        if step.strongest is None:
            step.strongest = _push(particles, step, begin, 0.0)[1]
        return _reach(step, cfl)
    piece = ahead
    if sharp and end.frame > begin.frame:
        piece = min(ahead * (sharp[0] - begin.frame) / (end.frame - begin.frame), ahead)
    first = dataclasses.replace(begin, frame=begin.frame + JUST)
    last = dataclasses.replace(step.moment(piece), frame=(sharp[0] if sharp else end.frame) - JUST)
    found = [_push(particles, step, moment, 0.0)[1] for moment in (first, last)]
    step.strongest = max(found)
    return min(_reach(step, cfl), piece)


def _push(particles: ParticleStore, step: StepContext, moment: Moment, dt: float) -> tuple[list[Delivered], float, list[Pulled]]:
    """Push by all forces; return what each gave, in the order of the wires, the largest acceleration, and what attachments did.

    Attachments come last: what the others push them by, they hold against in the same substep.
    """
    pressing = [force for force in step.forces if force.attachment is None]
    given, strongest = push_particles(particles, pressing, moment, dt) if pressing else ([], 0.0)
    if len(pressing) == len(step.forces):
        return given, strongest, []
    pulled = pull_attachments(particles, step, moment, dt)
    others, ties = iter(given), iter(pulled)
    every = [next(others) if force.attachment is None else next(ties).given for force in step.forces]
    return every, max(strongest, *(each.strongest for each in pulled)), pulled


def _reach(step: StepContext, cfl: float) -> float:
    """Return the step in which the largest acceleration moves what is at rest by `cfl` cells [s]."""
    return math.sqrt(cfl * step.cell_size / step.strongest) if step.strongest else math.inf


def _ahead(particles: ParticleStore, step: StepContext, *, cfl: float) -> Ahead:
    return Ahead("forces are wired") if step.forces else Ahead()


@costs(0.1)
@shared_among_ranks
@stage(
    label="Apply Forces",
    facts=(PUSHED,),
    fragments=(OnDevice("noise, voxels, ages, air on surfaces and attachments", _ahead, "wired forces"),),
    limits=(Limit("force", _longest_step, cause="a force is too strong", cure="weaken the force"),),
)
def apply_forces(
    particles: A[ParticleStore, Reads("position", "velocity", "mass", "volume"), Writes("velocity")],
    step: StepContext,
    *,
    cfl: A[float, Unitless, Range(min=0.0, exclusive_min=True, max=1.0)] = 0.25,
) -> Stage["particles"]:
    """Push particles by the forces that are wired into the solve: v <- v + dt a, and drags exactly.

    It stands behind choose_time_step, before particles are brought to the grid, so that every kind of substep takes over the same
    momentum. Without forces it does nothing.

    Args:
        particles: Particles.
        cfl: Cells that a force moves a particle at rest in a substep at most.
    """
    if not step.forces or not particles.count:
        return
    given, step.strongest, pulled = _push(particles, step, step.moment(0.5 * step.dt), step.dt)
    impulse = tuple(part for each in given for part in each.impulse)
    step.tell(PUSHED, impulse=impulse, work=tuple(each.work for each in given))
    step.pulled = tuple(pulled)
