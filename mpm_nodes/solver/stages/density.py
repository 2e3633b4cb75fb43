"""Density correction: what liquids say of their volume, held to what the grid sees of it."""

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
from mpm_nodes.graph.declare import shared_among_ranks, stage
from mpm_nodes.kernels.composition.fragments import Ahead, OnDevice
from mpm_nodes.kernels.transfers.room import follow_room
from mpm_nodes.kernels.transfers.weights import reach
from mpm_nodes.solver.bound_law import BoundLaw
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.device.density import DeviceRoom
from mpm_nodes.solver.filling import fill_cells, open_shares
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.grid_arrays import CORNERS
from mpm_nodes.solver.staggered import neighbour_blocks
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.transfers import Take, gather

__all__ = ["FILLED", "follow", "follow_density", "least_speed", "leave", "liquids_of", "tell"]

FILLED = Facts(
    "density",
    "How densely liquids fill the grid.",
    (
        Fact("densest", "", Reduction.MAX, "Densest cell: what its matter takes at rest, over its room."),
        Fact("crowded", "%", Reduction.MAX, "Share of the matter in cells denser than 1.2; told from 30 % on."),
    ),
    warning="{crowded:.0f} % of the liquid is packed to more than 1.2 times its density, and its level stands too low; raise "
    "density_rate of the substeps, the bulk modulus of the liquid, or the resolution",
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


def _ahead(
    particles: ParticleStore,
    grid: GridStore,
    colliders: ColliderSet,
    step: StepContext,
    memory: SinceLook,
    *,
    rate: float,
    tolerance: float,
) -> Ahead:
    liquids = liquids_of(particles)
    if rate == 0.0 or not liquids:
        return Ahead()
    return Ahead(seconds=(WAIT * step.cell_size / _fastest_sound(liquids) - memory.seconds) * (1.0 - 1e-9))


@shared_among_ranks
@stage(
    label="Follow Density",
    facts=(FILLED,),
    fragments=(OnDevice("bodies that are kept apart and thin plates", _ahead, "the looks at how dense liquids are"),),
)
def follow_density(
    particles: A[ParticleStore, Reads("position", "velocity", "volume", LAW_STATE), Writes("room", LAW_STATE)],
    grid: A[GridStore, Writes("room")],
    colliders: A[ColliderSet, Reads("level_set")],
    step: StepContext,
    memory: SinceLook,
    *,
    rate: A[float, Unitless, Range(min=0.0, soft_max=10.0)] = 5.0,
    tolerance: A[float, Unitless, Range(min=0.0, max=0.5)] = 0.01,
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
    liquids = liquids_of(particles)
    if rate == 0.0 or not liquids or not _looks(particles, liquids, step, memory):
        leave(particles, grid, step)
        return
    colliders.pose(step.time, step.time + step.dt)
    per_speed = rate * memory.seconds / step.cell_size
    if particles.residency is None or grid.body.any() or grid.copies is not None:
        tell(step, *fill_cells(particles, grid, colliders))
        follow(particles, grid, step, (per_speed, tolerance))
    else:
        room = _on_device(particles, grid)
        tell(step, *room.fill(None if colliders.idle else open_shares(grid, colliders)))
        room.follow(liquids, (per_speed, least_speed(step), tolerance))
    memory.seconds = 0.0


def _on_device(particles: ParticleStore, grid: GridStore) -> DeviceRoom:
    key = DeviceRoom, grid.version
    if key not in particles.bound:
        particles.bound[key] = DeviceRoom(particles, grid, neighbour_blocks(grid))
    found: DeviceRoom = particles.bound[key]
    return found


def liquids_of(particles: ParticleStore) -> list[BoundLaw]:
    """Return the laws of particles that keep their volume and nothing else."""
    return [law for law in particles.laws if law.names == ("volume_change",)]


def least_speed(step: StepContext) -> float:
    """Return the speed of a fall by half a cell [m/s]."""
    return math.sqrt(float(np.linalg.norm(step.gravity)) * step.cell_size)


def leave(particles: ParticleStore, grid: GridStore, step: StepContext) -> None:
    """Clear what is told of fields where it is looked at from outside."""
    if step.keep:
        grid.clear("room")
        particles.clear("room")


def tell(step: StepContext, densest: float, crowded: float) -> None:
    """Tell how densely liquids fill the grid: the densest cell, and the share of the matter in crowded ones (`fill_cells`)."""
    step.tell(FILLED, densest=densest, crowded=100.0 * crowded if 100.0 * crowded >= TELLING else 0.0)


def follow(particles: ParticleStore, grid: GridStore, step: StepContext, numbers: tuple[float, float]) -> None:
    """Let J of liquids follow; numbers: rate over the speed [s/m], the difference that counts as none."""
    gather(particles, grid, Kernel.QUADRATIC, Take("room", (("room", 0), ("room", 1), None)))
    arrays = [particles.array(name) for name in ("volume_change", "room", "velocity")]
    for law in liquids_of(particles):
        follow_room(*arrays, particles.stride, particles.segments[law.index], (numbers[0], least_speed(step), numbers[1]))


def _fastest_sound(liquids: list[BoundLaw]) -> float:
    """Return the largest speed of sound [m/s]."""
    return max(math.sqrt(law.moduli.bulk / law.density) for law in liquids)


def _looks(particles: ParticleStore, liquids: list[BoundLaw], step: StepContext, memory: SinceLook) -> bool:
    """Return whether it is time to look at the density again, here and on all ranks."""
    memory.seconds += step.dt
    late = memory.seconds * _fastest_sound(liquids) < WAIT * step.cell_size or particles.drift > reach("quadratic", CORNERS)
    return not particles.share.any(late)
