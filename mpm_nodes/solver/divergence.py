"""Divergence: what blew up, where, why probably, and which knob to turn."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpm_nodes.data import MpmNodesError, StepContext
from mpm_nodes.solver.state import ParticleStore


class SimulationDiverged(MpmNodesError):
    """The solve blew up (exit code 4); the last good frame stays on disk."""

    exit_code = 4


def diverged(particles: ParticleStore, step: StepContext) -> SimulationDiverged:
    """Describe the fastest particle of a solve that left the stable range."""
    velocity = particles.unpack("velocity").astype(float)
    speed = np.sqrt((velocity * velocity).sum(axis=1))
    broken = ~np.isfinite(speed)
    worst = int(np.flatnonzero(broken)[0]) if broken.any() else int(np.argmax(speed))
    law = particles.laws[int(particles.unpack("material")[worst])]
    limit = step.limit
    figures: dict[str, Any] = {}
    for facts in step.report.values():
        figures |= facts
    if broken.any():
        cause = f"{int(broken.sum())} velocities are not numbers: a state of material '{law.label}' left its range"
        cure = _cures(step, "state")
    elif limit is not None and limit.cause:
        cause, cure = limit.cause.format(**{**figures, "dt_min": step.dt_min}), limit.cure
    else:
        cause = f"material '{law.label}' or a collider accelerated it within one substep"
        cure = _cures(step, "speed")
    warmth = f", of {particles.unpack('temperature')[worst]:.4g} K," if "temperature" in law.loops.law.inputs else ""
    position = ", ".join(f"{x:.4g}" for x in particles.unpack("position")[worst])
    return SimulationDiverged(
        f"frame {step.frame}, substep {step.substep}, dt {step.dt:.3g} s: particle {int(particles.unpack('id')[worst])} at "
        f"({position}) m{warmth} has speed {speed[worst]:.4g} m/s, allowed is one cell of {particles.h:.3g} m a substep; "
        f"likely cause: {cause}; cure: {cure}"
    )


def _cures(step: StepContext, against: str) -> str:
    """Return what the limits of this solve's time step advise."""
    cures = dict.fromkeys(limit.cure for limit, _ in step.limits if limit.against == against)
    return ", or ".join(cures) or "take shorter substeps"
