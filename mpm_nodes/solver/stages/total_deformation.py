"""The total deformation, elastic and plastic."""

from __future__ import annotations

from mpm_nodes.data import A, Reads, Stage, StepContext, Writes
from mpm_nodes.graph.declare import stage
from mpm_nodes.kernels.algebra import mat3
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.composition.fragments import Lanes
from mpm_nodes.materials.values import Matrix, Value
from mpm_nodes.solver.shared_loops import alone
from mpm_nodes.solver.state import ParticleStore


@inline
def advance_total(total_deformation: Matrix, velocity_gradient: Matrix, dt: Value) -> Matrix:
    """Return R(dt L) F."""
    return mat3.advance_deformation(total_deformation, mat3.scale(velocity_gradient, dt))


@stage(label="Update Total Deformation", fragments=(Lanes(advance_total, ("total_deformation",)),))
def update_total_deformation(
    particles: A[ParticleStore, Reads("velocity_gradient", "total_deformation"), Writes("total_deformation")],
    step: StepContext,
) -> Stage["particles"]:
    """Advance the total deformation gradient, guarded against inversion like the laws' own: F <- (I + dt L) F (Y15 eq. 12).

    Args:
        particles: Particles to advance.
    """
    alone(update_total_deformation, particles, step)
