"""Deformation update and return mapping of every law."""

from __future__ import annotations

from typing import Any

from mpm_nodes.data import LAW_STATE, A, Reads, Stage, StepContext, Writes
from mpm_nodes.graph.declare import stage
from mpm_nodes.materials.law_fragments import ADVANCE, ADVANCE_MINIMISED, PROJECT
from mpm_nodes.solver.shared_loops import alone
from mpm_nodes.solver.state import ParticleStore


def _advanced(minimised: bool) -> tuple[Any, ...]:
    return ADVANCE_MINIMISED if minimised else ADVANCE


@stage(label="Update Deformation", fragments=_advanced)
def update_deformation(
    particles: A[ParticleStore, Reads("velocity_gradient", LAW_STATE), Writes(LAW_STATE)],
    step: StepContext,
    *,
    minimised: bool = False,
) -> Stage["particles"]:
    """Advance each law's state by dt grad v, guarded against inversion (F <- (I + dt grad v) F).

    Args:
        particles: Particles whose law state is advanced.
        minimised: Whether minimise_energy found the velocities. The volume of liquids then follows det(I + dt grad v), as in the
            energy that was minimised, and not the linear part of that, 1 + dt div v (C21 eq. 14-16).
    """
    alone(update_deformation, particles, step, minimised=minimised)


@stage(label="Apply Plasticity", fragments=PROJECT)
def apply_plasticity(
    particles: A[ParticleStore, Reads("stiffness_scale", LAW_STATE), Writes(LAW_STATE)],
    step: StepContext,
) -> Stage["particles"]:
    """Return each law's trial state to its yield surface (laws without one are left alone).

    Args:
        particles: Particles whose law state is projected.
    """
    alone(apply_plasticity, particles, step)
