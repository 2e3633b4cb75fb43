"""What liquids say of their volume, held to what the grid sees of it."""

from __future__ import annotations

import numpy as np

from mpm_nodes.data import LAW_STATE, A, Range, Reads, Stage, StepContext, Unitless, Writes
from mpm_nodes.graph.declare import stage
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.density import cells_of, fillings
from mpm_nodes.solver.staggered import AXES, StaggeredStore
from mpm_nodes.solver.state import ParticleStore

__all__ = ["follow_density"]

_FACES = tuple(f"{name}_{axis}" for name in ("rest_volume", "mass", "velocity") for axis in AXES)


@stage(label="Follow Density")
def follow_density(
    particles: A[ParticleStore, Reads("position", LAW_STATE), Writes(LAW_STATE)],
    staggered: A[StaggeredStore, Reads("mass", *_FACES)],
    colliders: A[ColliderSet, Reads("level_set")],
    step: StepContext,
    *,
    share: A[float, Unitless, Range(min=0.0, max=1.0)] = 0.1,
    tolerance: A[float, Unitless, Range(min=0.0, max=0.5)] = 0.02,
) -> Stage["particles", "staggered"]:
    """Let J of liquids follow the room that the grid sees around them: J <- J + share (1 / f - J), f the filling of the cell.

    A velocity without divergence keeps a cell as full as it is, so that a gap between two bodies stays, and J, which each particle
    integrates by itself, drifts away from the density. The projection takes back J - 1 (volume_correction); with this stage before
    it, it closes gaps and spreads what is crowded. Within three cells of an empty one f is below 1 at rest, and counts as 1: what
    comes together there has closed a gap, and its J is not held against it.

    Args:
        particles: Particles; those whose law keeps `volume_change` and no shape are liquids.
        staggered: Grid with the masses and rest volumes that the particles gave.
        colliders: Bodies and walls: they fill a part of the cells beside them.
        share: Share of the difference that J takes over in a substep.
        tolerance: Difference between the filling and 1 that counts as none: random particles fill cells to a few percent.
    """
    liquids = [law.index for law, _ in particles.runs() if law.names and law.names[0] == "volume_change"]
    if not staggered.count or not liquids or share == 0.0:
        return
    colliders.pose(step.time, step.time + step.dt)
    found = fillings(staggered, colliders, step.dt)
    cells = cells_of(staggered, particles.unpack("position"))
    chosen = np.flatnonzero(np.isin(particles.rows("material")[0], liquids))
    excess = np.where(cells[chosen] >= 0, 1.0 / found.share[cells[chosen]] - 1.0, 0.0)
    excess = np.sign(excess) * np.maximum(np.abs(excess) - tolerance, 0.0)
    change = particles.rows("volume_change")
    change[0, chosen] += (share * (excess - change[0, chosen])).astype(change.dtype)
    particles.limits = None
