"""Tearing: which particles are torn, what stress they carry, and how far they may deform."""

from __future__ import annotations

import math
from typing import Any

from mpm_nodes.data import LAW_STATE, A, Range, Reads, Stage, StepContext, Unitless, Writes
from mpm_nodes.graph.declare import reads_of_materials, stage
from mpm_nodes.kernels.algebra import mat3
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.composition.fragments import Lanes
from mpm_nodes.kernels.lanes.arithmetic import const, select
from mpm_nodes.materials.values import LawModule, Mask, Matrix, State, Symmetric, Value
from mpm_nodes.physics.foam.kernels.tearing import is_torn, limited_gradient, without_tension
from mpm_nodes.solver.shared_loops import alone
from mpm_nodes.solver.state import ParticleStore


@inline
def is_weak(weak: Value) -> Mask:
    """Return where a particle is marked."""
    return weak != const(weak, 0)


@inline
def detect(law: LawModule, state: State, total_deformation: Matrix, weak: Value, tear_scale: Value, threshold: Value) -> Value:
    """Return 1 where |dev C_P| > threshold, else 0."""
    _J, b = law.left_strain(state)
    return select(is_torn(total_deformation, b, threshold * tear_scale), const(weak, 1), const(weak, 0))


def _threshold(law: Any, particles: ParticleStore, step: StepContext, *, threshold_scale: float) -> dict[str, Any]:
    threshold = math.inf if law.material.tear_threshold is None else law.material.tear_threshold
    return {"threshold": threshold_scale * threshold, "tears": math.isfinite(threshold)}


_DETECT = Lanes(detect, ("weak",), needs=("left_strain",), switch="tears", arguments=_threshold)


@reads_of_materials("tear_threshold")
@stage(label="Detect Tears", fragments=(_DETECT,))
def detect_tears(
    particles: A[ParticleStore, Reads("weak", "total_deformation", "tear_scale", LAW_STATE), Writes("weak")],
    *,
    threshold_scale: A[float, Unitless, Range(min=0.0, exclusive_min=True, soft_min=0.1, soft_max=10.0, log=True)] = 1.0,
) -> Stage["particles"]:
    """Mark as weak in every substep what was distorted plastically beyond its material's tear threshold (Y15 section 7.1).

    weak = |dev C_P| > threshold, C_P = det(F)^(-2/3) F^T b^-1 F; a particle's own `tear_scale` multiplies its
    threshold. Particles of a material that never tears, or that has no elastic strain (liquids), keep the mark that they came with:
    0, or what was painted.

    Args:
        particles: Particles to mark.
        threshold_scale: Multiplier of every material's tear threshold.
    """
    alone(detect_tears, particles, threshold_scale=threshold_scale)


@inline
def limit(stress: Symmetric, weak: Value) -> Symmetric:
    """Return the stress, without its tension where a particle is weak."""
    T = mat3.unpack(stress)
    return mat3.pack(mat3.choose(is_weak(weak), without_tension(T), T))


@stage(label="Limit Stress", fragments=(Lanes(limit, ("stress",), guard=is_weak),))
def limit_stress(
    particles: A[ParticleStore, Reads("weak", "stress"), Writes("stress")],
) -> Stage["particles"]:
    """Take the tension out of weak particles: positive eigenvalues of the stress become 0 (Y15 section 7.2, Algorithm 8).

    Compression is kept, pressure is part of the stress; stands between Compute Stress and Add Stress Forces.

    Args:
        particles: Particles with their stress.
    """
    alone(limit_stress, particles)


@inline
def limit_gradient(
    law: LawModule, state: State, velocity_gradient: Matrix, weak: Value, dt: Value, alg11_expansion: bool
) -> Matrix:
    """Return the velocity gradient, limited where a particle is weak."""
    J, b = law.left_strain(state)
    limited = limited_gradient(velocity_gradient, J, b, dt, alg11_expansion)
    return mat3.choose(is_weak(weak), limited, velocity_gradient)


@stage(
    label="Limit Deformation",
    fragments=(Lanes(limit_gradient, ("velocity_gradient",), guard=is_weak, needs=("left_strain",)),),
)
def limit_deformation(
    particles: A[ParticleStore, Reads("weak", "velocity_gradient", LAW_STATE), Writes("velocity_gradient")],
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
    alone(limit_deformation, particles, step, alg11_expansion=alg11_expansion)
