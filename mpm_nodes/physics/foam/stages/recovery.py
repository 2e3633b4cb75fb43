"""Recovery: matter forgets how it flowed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mpm_nodes.data import LAW_STATE, A, Range, Reads, Stage, StepContext, Writes
from mpm_nodes.graph.declare import reads_of_materials, stage
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.composition.fragments import Lanes
from mpm_nodes.materials.values import LawModule, Matrix, State, Value
from mpm_nodes.physics.foam.kernels.tearing import recovered
from mpm_nodes.solver.shared_loops import alone
from mpm_nodes.solver.state import ParticleStore

ROUNDING = 8.0
"""Units in the last place of tr C_P below which |dev C_P| is rounding: a product of three matrices."""


@inline
def recover(law: LawModule, state: State, total_deformation: Matrix, exponent: Value, rounding: Value) -> Matrix:
    """Return the total deformation with its plastic part raised to a power, where that is not at rest."""
    _J, b = law.left_strain(state)
    _moves, F = recovered(total_deformation, b, exponent, rounding)
    return F


def _recovery(law: Any, particles: ParticleStore, step: StepContext, *, interval: int) -> dict[str, Any]:
    """Return the exponent (e^(-t/t_p) - 1) / 2, whether anything recovers in this substep, and what counts as rounding."""
    waiting = step.substep % interval + 1
    ends = waiting == interval or step.dt >= step.time_left * (1.0 - 1e-9)
    time = waiting * step.dt if ends else 0.0
    exponent = 0.0 if law.material.recovery_time is None else 0.5 * math.expm1(-time / law.material.recovery_time)
    return {"exponent": exponent, "recovers": exponent != 0.0, "rounding": ROUNDING * float(np.finfo(particles.dtype).eps)}


_RECOVER = Lanes(recover, ("total_deformation",), needs=("left_strain",), switch="recovers", arguments=_recovery)


@reads_of_materials("recovery_time")
@stage(label="Recover Plasticity", fragments=(_RECOVER,))
def recover_plasticity(
    particles: A[ParticleStore, Reads("total_deformation", LAW_STATE), Writes("total_deformation")],
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
    alone(recover_plasticity, particles, step, interval=interval)
