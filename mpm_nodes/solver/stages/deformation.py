"""Deformation update and return mapping of every law."""

from __future__ import annotations

from mpm_nodes.data import LAW_STATE, A, Particles, Reads, Stage, StepContext, Writes
from mpm_nodes.graph.declare import stage


@stage(label="Update Deformation")
def update_deformation(
    particles: A[Particles, Reads("velocity_gradient", LAW_STATE), Writes(LAW_STATE)],
    step: StepContext,
) -> Stage["particles"]:
    """Advance each law's state by dt grad v, guarded against inversion (F <- (I + dt grad v) F).

    Args:
        particles: Particles whose law state is advanced.
    """
    for law, segments in particles.runs():
        law.kernels.advance(*law.state(particles), particles.array("velocity_gradient"), particles.stride, segments,
                            law.coefficients, step.dt)


@stage(label="Apply Plasticity")
def apply_plasticity(
    particles: A[Particles, Reads("stiffness_scale", LAW_STATE), Writes(LAW_STATE)],
    step: StepContext,
) -> Stage["particles"]:
    """Return each law's trial state to its yield surface (laws without one are left alone).

    Args:
        particles: Particles whose law state is projected.
    """
    for law, segments in particles.runs():
        if law.kernels.project is not None:
            law.kernels.project(*law.state(particles), particles.optional("stiffness_scale"), particles.stride, segments,
                                law.coefficients, step.dt)
