"""Divergence: what blew up, where, why probably, and which knob to turn."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpm_nodes.data import MpmNodesError, StepContext


class SimulationDiverged(MpmNodesError):
    """The solve blew up (exit code 4); the last good frame stays on disk."""

    exit_code = 4


def diverged(particles: Any, step: StepContext) -> SimulationDiverged:
    """Describe the fastest particle of a solve that left the stable range."""
    velocity = particles.unpack("velocity").astype(float)
    speed = np.sqrt((velocity * velocity).sum(axis=1))
    broken = ~np.isfinite(speed)
    worst = int(np.flatnonzero(broken)[0]) if broken.any() else int(np.argmax(speed))
    law = particles.laws[int(particles.unpack("material")[worst])]
    limit = step.report.get("limit", "")
    if broken.any():
        cause = f"{int(broken.sum())} velocities are not numbers: a state of material '{law.label}' left its range"
        cure = "lower choose_time_step.elastic_cfl or soften the material"
    elif limit == "implicit solve":
        cause = f"the implicit solve did not converge even so: {step.report['implicit'].reason}"
        cure = "raise minimise_energy.newton_iterations or its tolerance, or set law_energy.project_hessians"
    elif limit == "dt_min":
        cause = f"dt was held at dt_min = {step.dt_min:.3g} s, longer than the stable step"
        cure = "lower the dt_min of the solve"
    else:
        cause = f"material '{law.label}' or a collider accelerated it within one substep"
        cure = "lower choose_time_step.cfl and elastic_cfl, or the speed of the collider"
    position = ", ".join(f"{x:.4g}" for x in particles.unpack("position")[worst])
    return SimulationDiverged(
        f"frame {step.frame}, substep {step.substep}, dt {step.dt:.3g} s: particle {int(particles.unpack('id')[worst])} at "
        f"({position}) m has speed {speed[worst]:.4g} m/s, allowed is one cell of {particles.h:.3g} m a substep; "
        f"likely cause: {cause}; cure: {cure}"
    )
