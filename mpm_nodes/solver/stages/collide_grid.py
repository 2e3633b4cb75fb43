"""Stage: collisions of grid nodes with bodies and domain walls."""

from __future__ import annotations

from mpm_nodes.data import A, Reads, Stage, StepContext, Writes
from mpm_nodes.graph.declare import joins_copies, moves_rigid_bodies, shared_among_ranks, stage
from mpm_nodes.kernels.composition.fragments import Ahead, OnDevice
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.contact_forces import CONTACT_FORCES
from mpm_nodes.solver.device.contacts import ALONE, ELSEWHERE, ahead_of
from mpm_nodes.solver.forces_on_bodies import tell_forces
from mpm_nodes.solver.grid import GridStore


def _ahead(grid: GridStore, colliders: ColliderSet, step: StepContext) -> Ahead:
    return ahead_of(colliders, step)


@shared_among_ranks
@joins_copies
@moves_rigid_bodies()
@stage(label="Collide Grid", facts=(CONTACT_FORCES,), fragments=(OnDevice(ELSEWHERE, _ahead, ALONE),))
def collide_grid(
    grid: A[GridStore, Reads("velocity", "mass", "position"), Writes("velocity")],
    colliders: A[ColliderSet, Reads("level_set")],
    step: StepContext,
) -> Stage["grid"]:
    """Give nodes at a collider or wall the velocity that its rule allows, wherever the surface lies between them.

    The velocity relative to the body is linear through the surface, where it vanishes (sticky) or loses its normal part: nodes
    before and behind it are held as the mass norm asks, so that kinetic energy never grows. With the surface on a node plane
    this is the rule of Stomakhin 2013, section 8. Bodies stand where they are at the end of the substep and act in order: the
    last one wins. Their velocity is their own displacement over the substep divided by dt, so that matter stuck to a body
    follows it without drift; rigid bodies take up what it gives them at once. Adhesion pulls on matter that would leave, by the
    adhesion times the area at most.
    """
    colliders.move_rigid_bodies(step)
    if colliders.idle or not (grid.count or grid.halo.several):
        return
    colliders.pose(step.time, step.time + step.dt)
    contacts = colliders.collide_grid(grid, step.contact_forces)
    if step.contact_forces:
        tell_forces(step, colliders, grid, contacts)
    grid.halo.copy(grid.kept("velocity"))  # nodes at the rim of a halo do not see all that the rank that they belong to sees
