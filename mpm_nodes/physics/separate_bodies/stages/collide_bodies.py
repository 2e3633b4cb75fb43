"""Stage: contacts of bodies that keep velocities of their own."""

from __future__ import annotations

import numpy as np

from mpm_nodes.data import A, CollisionRule, Kernel, Pascals, Range, Reads, Stage, StepContext, Unitless, Writes
from mpm_nodes.graph.declare import needs_whole_nodes, shared_among_ranks, stage
from mpm_nodes.physics.separate_bodies.kernels import contacts as kernels
from mpm_nodes.physics.separate_bodies.kernels.half_spaces import distances
from mpm_nodes.physics.separate_bodies.numerics.meeting import cloud_of, meeting_of
from mpm_nodes.physics.separate_bodies.numerics.pairs import pair_rules, read_pairs
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.state import ParticleStore


@shared_among_ranks
@needs_whole_nodes
@stage(label="Collide Bodies")
def collide_bodies(
    particles: A[ParticleStore, Reads("position", "volume", "body")],
    grid: A[GridStore, Reads("velocity", "mass"), Writes("velocity")],
    step: StepContext,
    *,
    kernel: Kernel = Kernel.QUADRATIC,
    rule: CollisionRule = CollisionRule.SEPARATE,
    friction: A[float, Unitless, Range(min=0.0, soft_max=1.0)] = 0.3,
    pairs: str = "",
    adhesion: A[float, Pascals, Range(min=0.0, soft_max=10000.0)] = 0.0,
) -> Stage["particles", "grid"]:
    """Let bodies of particles touch, slide and part, each with velocities of its own on the grid (Bardenhagen 2000, Nairn 2013).

    With this stage in the substeps, particles with different values of `body` share no node: they do not drag each other across
    empty space and can slide on each other. Without values each material is a body; `merge_particles` with `bodies` makes each
    of its sources one. Where two bodies have mass at a node, their gap is measured from where their matter lies there; if they
    would overlap at the end of the substep, the approach is stopped by an impulse between them, with Coulomb friction. Momentum
    is kept to rounding, and kinetic energy does not grow. Stands after the forces and before the collisions with colliders.

    Args:
        particles: Particles of the bodies.
        grid: Grid with the updated velocities.
        kernel: B-spline of the transfers.
        rule: What touching bodies do: separate (with friction), slip (stay together, free of friction) or sticky (stay together).
        friction: Coulomb coefficient between bodies that may separate.
        pairs: Pairs with a rule of their own, by the numbers of their bodies, and with separate friction and adhesion [Pa] of their
            own: "0 2 sticky; 1 2 separate 0.4; 1 3 separate 0.4 500".
        adhesion: Tension by which bodies that touch hold each other before they part, for the rule separate: glue. It adds to what
            friction presses by; keys of it let go.
    """
    read_pairs(pairs)  # a mistake is told in the first substep, not when bodies meet
    if not (grid.count or grid.halo.several):
        return
    meeting = grid.derived("meeting", lambda: meeting_of(grid))
    if not meeting.anywhere:
        return
    present = np.unique(meeting.bodies)
    rules, frictions, adhesions = pair_rules(pairs, present.tolist(), rule, friction, adhesion)
    cubic, cloud = kernel is Kernel.CUBIC, cloud_of(meeting, particles, grid)
    kernels.measure_bodies(cloud, cubic, meeting.moments)
    kernels.meet_bodies(
        kernels.Pairs(meeting.groups, np.searchsorted(present, meeting.bodies), rules, frictions, adhesions),
        meeting.moments,
        distances(4 if cubic else 3),
        kernels.GridNodes(grid.array("momentum"), grid.array("velocity"), grid.least_mass),
        step.dt,
        cloud,
    )
    grid.halo.copy(grid.array("velocity"))  # each rank has met the bodies in its own slab
