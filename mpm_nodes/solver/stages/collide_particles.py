"""Stage: collisions of particle paths with bodies and domain walls."""

from __future__ import annotations

from mpm_nodes.data import A, Reads, Stage, StepContext, Writes
from mpm_nodes.graph.declare import shared_among_ranks, stage
from mpm_nodes.kernels.composition.fragments import Ahead, Idle
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.contact_forces import CONTACT_FORCES
from mpm_nodes.solver.device.contacts import ALONE, ELSEWHERE, ahead_of
from mpm_nodes.solver.forces_on_bodies import tell_impulses
from mpm_nodes.solver.state import ParticleStore


def _idle(particles: ParticleStore, colliders: ColliderSet, step: StepContext) -> bool:
    return colliders.idle or not particles.count


def _ahead(particles: ParticleStore, colliders: ColliderSet, step: StepContext) -> Ahead:
    return ahead_of(colliders, step)


@shared_among_ranks
@stage(
    label="Collide Particles", removes=("particles",), facts=(CONTACT_FORCES,), fragments=(Idle(_idle, ELSEWHERE, _ahead, ALONE),)
)
def collide_particles(
    particles: A[ParticleStore, Reads("position", "velocity", "mass"), Writes("position", "velocity")],
    colliders: A[ColliderSet, Reads("level_set")],
    step: StepContext,
) -> Stage["particles"]:
    """Follow each particle's path through the substep and let it meet every collider and wall on its way.

    Stands after the particles' new velocities and before the position update. The path from x to x + dt v is traced
    relative to the moving bodies, so thin and fast ones do not leak; where it touches, the rule acts on v (Stomakhin 2013,
    section 8), and x is shifted so that x + dt v is where the path ends: on the outside. Beyond a deleting wall the
    particle is removed.
    """
    if _idle(particles, colliders, step):
        return
    colliders.pose(step.time, step.time + step.dt)
    lost = colliders.collide_particles(particles, step.contact_forces)
    if step.contact_forces:
        tell_impulses(step, colliders, *lost)
