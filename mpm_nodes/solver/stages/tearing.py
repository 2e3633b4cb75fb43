"""Tearing: which particles are torn, what stress they carry, and how far they may deform."""

from __future__ import annotations

import math

from mpm_nodes.data import LAW_STATE, A, Particles, Range, Reads, Stage, StepContext, Unitless, Writes
from mpm_nodes.graph.declare import stage
from mpm_nodes.kernels import tearing as kernels


@stage(label="Detect Tears")
def detect_tears(
    particles: A[Particles, Reads("weak", "total_deformation", LAW_STATE), Writes("weak")],
    *,
    threshold_scale: A[float, Unitless, Range(min=0.0, exclusive_min=True, soft_min=0.1, soft_max=10.0, log=True)] = 1.0,
) -> Stage["particles"]:
    """Mark as weak, anew in every substep, what was distorted plastically beyond its material's tear threshold (Y15 section 7.1).

    weak = |dev C_P| > threshold, C_P = det(F)^(-2/3) F^T b^-1 F. Particles of a material that never tears, or that has no
    elastic strain (liquids), keep the mark that they came with: 0, or what was painted.

    Args:
        particles: Particles to mark.
        threshold_scale: Multiplier of every material's tear threshold.
    """
    for law, segments in particles.runs():
        if law.kernels.detect_tears is not None and math.isfinite(law.tear_threshold):
            law.kernels.detect_tears(*law.state(particles), particles.array("total_deformation"), particles.array("weak"),
                                     particles.stride, segments, threshold_scale * law.tear_threshold)


@stage(label="Limit Stress")
def limit_stress(
    particles: A[Particles, Reads("weak", "stress"), Writes("stress")],
) -> Stage["particles"]:
    """Take the tension out of weak particles: positive eigenvalues of the stress become 0 (Y15 section 7.2, Algorithm 8).

    Compression is kept, pressure is part of the stress; stands between Compute Stress and Add Stress Forces.

    Args:
        particles: Particles with their stress.
    """
    kernels.limit_stress(particles.array("stress"), particles.stride, particles.array("weak"), particles.ranges)


@stage(label="Limit Deformation")
def limit_deformation(
    particles: A[Particles, Reads("weak", "velocity_gradient", LAW_STATE), Writes("velocity_gradient")],
    step: StepContext,
    *,
    alg11_expansion: bool = False,
) -> Stage["particles"]:
    """Keep weak particles from storing strain while they come apart (Y15 section 7.2, Algorithm 11).

    Where f = I + dt L raises the largest eigenvalue of b, f becomes det(f)^(1/3) times its rotation; where the particle is
    larger than at rest and expands, det f becomes 1. The velocity gradient becomes (f - I) / dt, so that every stage after
    this one deforms the particle by the same f; stands between Gather and Update Deformation.

    Args:
        particles: Particles whose velocity gradient is limited.
        alg11_expansion: Stop the expansion beyond rest within the step as well, as the paper's pseudocode has it (its text
            tests the volume before the step); a particle that was compressed then stops just below its rest volume.
    """
    for law, segments in particles.runs():
        if law.kernels.limit_deformation is not None:
            law.kernels.limit_deformation(*law.state(particles), particles.array("velocity_gradient"), particles.array("weak"),
                                          particles.stride, segments, step.dt, alg11_expansion)
