"""Position update, the last stage of a substep."""

from __future__ import annotations

import numpy as np

from mpm_nodes.data import A, Particles, Reads, Stage, StepContext, Writes
from mpm_nodes.graph.declare import stage
from mpm_nodes.kernels import motion
from mpm_nodes.solver.divergence import diverged


@stage(label="Move Particles")
def move_particles(
    particles: A[Particles, Reads("position", "velocity"), Writes("position")],
    step: StepContext,
) -> Stage["particles"]:
    """Move particles by x += dt v.

    Args:
        particles: Particles to move.

    Raises:
        SimulationDiverged: A particle would move more than a cell in one substep, or its velocity is not finite.
    """
    if not particles.count:
        return
    largest = np.empty((particles.block_count, 3))
    motion.move_particles(particles.offset, particles.stride, particles.unit, particles.array("velocity"),
                          step.dt / particles.h, particles.ranges, largest)
    moved(particles, step, largest)


def moved(particles: Particles, step: StepContext, largest: np.ndarray) -> None:
    """Note the drift, or refuse what moved too far; `largest` comes from `motion.move_run`."""
    particles.drift = float(largest[:, 0].max())
    if not largest[:, 1].max() <= 1.0:
        raise diverged(particles, step)
