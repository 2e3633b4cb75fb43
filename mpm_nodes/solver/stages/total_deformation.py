"""The total deformation, elastic and plastic: its update, and the recovery that makes it forget plastic flow."""

from __future__ import annotations

import math

import numpy as np

from mpm_nodes.data import LAW_STATE, A, Particles, Range, Reads, Stage, StepContext, Writes
from mpm_nodes.graph.declare import stage
from mpm_nodes.kernels import tearing as kernels
from mpm_nodes.solver.state import BoundLaw

ROUNDING = 8.0
"""Units in the last place of tr C_P below which |dev C_P| is rounding: a product of three matrices."""


@stage(label="Update Total Deformation")
def update_total_deformation(
    particles: A[Particles, Reads("velocity_gradient", "total_deformation"), Writes("total_deformation")],
    step: StepContext,
) -> Stage["particles"]:
    """Advance the total deformation gradient, guarded against inversion like the laws' own: F <- (I + dt L) F (Y15 eq. 12).

    Args:
        particles: Particles to advance.
    """
    kernels.update_total_deformation(particles.array("total_deformation"), particles.array("velocity_gradient"), particles.stride,
                                     particles.ranges, step.dt)


@stage(label="Recover Plasticity")
def recover_plasticity(
    particles: A[Particles, Reads("total_deformation", LAW_STATE), Writes("total_deformation")],
    step: StepContext,
    *,
    interval: A[int, Range(min=1, soft_max=100)] = 1,
) -> Stage["particles"]:
    """Let plastic distortion be forgotten in its material's recovery time t_p (Y15 section 7.3, Algorithm 14).

    F <- F U diag(S^((a - 1) / 2)) U^T with C_P = U diag(S) U^T and a = exp(-dt / t_p): the eigenvalues of C_P become S^a, volume
    and stress stay. Materials that never recover, or have no elastic strain (liquids), are left alone.

    Args:
        particles: Particles that recover.
        interval: Substeps that recover at once, counted from the start of the frame; the frame's last one ends an interval. The
            result is that of every substep as long as dt is constant and matter does not flow, and the eigenvalues, a third of a
            foam's substep, are found less often.
    """
    for law, segments in particles.runs():
        exponent, rest = recovery(law, particles, step, interval)
        if law.kernels.recover_plasticity is not None and exponent != 0.0:
            law.kernels.recover_plasticity(*law.state(particles), particles.array("total_deformation"), particles.stride, segments,
                                           exponent, rest)


def recovery(law: BoundLaw, particles: Particles, step: StepContext, interval: int) -> tuple[float, float]:
    """Return the exponent (e^(-t/t_p) - 1) / 2, 0 where nothing recovers in this substep, and what counts as rest."""
    waiting = step.substep % interval + 1
    ends = waiting == interval or step.dt >= step.time_left * (1.0 - 1e-9)
    time = waiting * step.dt if ends else 0.0
    return 0.5 * math.expm1(-time / law.recovery_time), ROUNDING * float(np.finfo(particles.dtype).eps)
