"""What liquids say of their volume, held to what the grid sees of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mpm_nodes.data import (
    LAW_STATE,
    A,
    Fact,
    Facts,
    Kernel,
    Range,
    Reads,
    Reduction,
    Stage,
    StageMemory,
    StepContext,
    Unitless,
    Writes,
)
from mpm_nodes.graph.declare import stage
from mpm_nodes.kernels.transfers.room import follow_room
from mpm_nodes.kernels.transfers.weights import reach
from mpm_nodes.solver.bound_law import BoundLaw
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.density import cells_of, fillings
from mpm_nodes.solver.filling import fill_cells
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.grid_arrays import CORNERS
from mpm_nodes.solver.staggered import AXES, StaggeredStore
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.transfers import Take, gather

__all__ = ["follow_density", "follow_nodal_density"]

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


FILLED = Facts(
    "density",
    "How densely liquids fill the grid.",
    (
        Fact("densest", "", Reduction.MAX, "Densest cell: what its matter takes at rest, over its room."),
        Fact("crowded", "%", Reduction.MAX, "Share of the matter in cells denser than 1.2; told from 30 % on."),
    ),
    warning="{crowded:.0f} % of the liquid is packed to more than 1.2 times its density, and its level stands too low; raise "
    "follow_nodal_density.rate, the bulk modulus of the liquid, or the resolution",
    warn_if="crowded",
    by_rank=True,
)

TELLING = 30.0
"""Percent of the matter in crowded cells from which on it is told: where a stream falls into shallow liquid it is up to 20."""
WAIT = 2.0
"""Cells that sound crosses from one look at the density to the next."""


@dataclass
class SinceLook(StageMemory):
    """What the stage remembers.

    Attributes:
        seconds: Since it looked last [s].
    """

    seconds: float = 0.0


@stage(label="Follow Nodal Density", facts=(FILLED,))
def follow_nodal_density(
    particles: A[ParticleStore, Reads("position", "velocity", "volume", LAW_STATE), Writes("room", LAW_STATE)],
    grid: A[GridStore, Writes("room")],
    colliders: A[ColliderSet, Reads("level_set")],
    step: StepContext,
    memory: SinceLook,
    *,
    rate: A[float, Unitless, Range(min=0.0, soft_max=10.0)] = 5.0,
    tolerance: A[float, Unitless, Range(min=0.0, max=0.5)] = 0.02,
) -> Stage["particles", "grid"]:
    """Keep the volume of liquids that move: J relaxes to the room that the grid sees around, see `kernels.transfers.room`.

    Each particle integrates J by itself, and motion that the grid does not see packs particles, or parts them, without changing it.
    Beside the air splines end, and tell only what is crowded: J relaxes to 1 there, or to less.

    Args:
        particles: Particles; those whose law keeps their volume and nothing else are liquids.
        grid: The room in its cells is written.
        colliders: Bodies and walls: they take a part of the room around cells.
        rate: Rate of the relaxation, over that at which a particle crosses a cell, at least at the speed of a fall by half
            a cell; 0 turns it off.
        tolerance: Difference that counts as none: random particles fill cells to a few percent.
    """
    liquids = [law for law in particles.laws if law.names == ("volume_change",)]
    if rate == 0.0 or not liquids or not _looks(particles, liquids, step, memory):
        if step.keep:  # what is told of fields is true in every substep that is looked at from outside
            grid.clear("room")
            particles.rows("room")[:] = 0
        return
    colliders.pose(step.time, step.time + step.dt)
    densest, crowded = fill_cells(particles, grid, colliders)
    step.tell(FILLED, densest=densest, crowded=100.0 * crowded if 100.0 * crowded >= TELLING else 0.0)
    gather(particles, grid, Kernel.QUADRATIC, Take("room", (("room", 0), ("room", 1), None)))
    least = math.sqrt(float(np.linalg.norm(step.gravity)) * step.cell_size)
    numbers = rate * memory.seconds / step.cell_size, least, tolerance
    rows = [particles.array(name) for name in ("volume_change", "room", "velocity")]
    for law in liquids:
        follow_room(*rows, particles.stride, particles.segments[law.index], numbers)
    memory.seconds = 0.0


def _looks(particles: ParticleStore, liquids: list[BoundLaw], step: StepContext, memory: SinceLook) -> bool:
    """Return whether it is time to look at the density again, here and on all ranks."""
    memory.seconds += step.dt
    sound = max(math.sqrt(law.moduli.bulk / law.density) for law in liquids)
    late = memory.seconds * sound < WAIT * step.cell_size or particles.drift > reach("quadratic", CORNERS)
    return not (late if particles.share is None else particles.share.any(late))
