"""Position update, the last stage of a substep."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mpm_nodes.data import A, Reads, Stage, StepContext, Writes
from mpm_nodes.graph.declare import stage
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.composition.fragments import Run
from mpm_nodes.kernels.transfers.motion import move_run
from mpm_nodes.kernels.transfers.places import Placement
from mpm_nodes.solver.divergence import diverged
from mpm_nodes.solver.shared_loops import alone
from mpm_nodes.solver.state import ParticleStore


@inline
def move(placement: Placement, velocity: np.ndarray, dt: float, start: int, end: int, largest: np.ndarray, row: int) -> None:
    """Move the particles of one block."""
    move_run(placement, velocity, dt / placement.cell_size, start, end, largest, row)


def _moved(particles: ParticleStore, step: StepContext, largest: Mapping[str, float]) -> None:
    """Note the drift, or refuse what moved too far."""
    particles.drift = largest["drift"]
    if not largest["displacement"] <= 1.0:
        raise diverged(particles, step)


_MOVE = Run(move, ("position",), ("position",), ("drift", "displacement", "speed"), device="move", finish=_moved, late=True)


@stage(label="Move Particles", fragments=(_MOVE,))
def move_particles(
    particles: A[ParticleStore, Reads("position", "velocity"), Writes("position")],
    step: StepContext,
) -> Stage["particles"]:
    """Move particles by x += dt v.

    Args:
        particles: Particles to move.

    Raises:
        SimulationDiverged: A particle would move more than a cell in one substep, or its velocity is not finite.
    """
    alone(move_particles, particles, step)
