"""Goals that particles exchange as a frame begins."""

from __future__ import annotations

import numpy as np

from mpm_nodes.data import StepContext
from mpm_nodes.solver.rearrangement import exchange
from mpm_nodes.solver.state import ParticleStore

__all__ = ["exchange_goals"]

SWEEPS = 2
"""Rounds of exchanges in a frame."""


def exchange_goals(particles: ParticleStore, step: StepContext) -> None:
    """Let particles exchange what forces draw them to, where that shortens their ways: in the first substep of a frame.

    Matter that is in the way of other matter has its goal then. On several ranks those of one rank exchange.

    Args:
        particles: Particles.
        step: The substep.
    """
    columns = dict.fromkeys(force.exchanges for force in step.forces if force.exchanges) if step.substep == 0 else {}
    for column, group in columns:
        places, goals = particles.unpack("position"), np.asarray(particles.unpack(column), float)
        rounds = range(SWEEPS * step.frame, SWEEPS * (step.frame + 1))
        exchange(places, goals, particles.unpack(group), particles.h, rounds)
        particles.pack(column, goals)
