"""Stress of every law, and the force that it exerts on the grid."""

from __future__ import annotations

from mpm_nodes.data import LAW_STATE, A, Kernel, Reads, Stage, StepContext, Writes
from mpm_nodes.graph.declare import reads_of_materials, shared_among_ranks, stage
from mpm_nodes.kernels.composition.fragments import Scatter
from mpm_nodes.kernels.transfers.weights import STENCIL
from mpm_nodes.materials.law_fragments import STRESS
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.shared_loops import alone
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.transfers import Deposit, Force, scatter


@reads_of_materials("viscosity")
@stage(label="Compute Stress", fragments=STRESS)
def compute_stress(
    particles: A[ParticleStore, Reads("velocity_gradient", "stiffness_scale", LAW_STATE), Writes("stress")],
    step: StepContext,
) -> Stage["particles"]:
    """Evaluate each material's law: the Kirchhoff stress, viscosity included.

    Args:
        particles: Particles whose law state is read.
    """
    alone(compute_stress, particles, step)


def _force(kernel: Kernel) -> tuple[Scatter, ...]:
    return (Scatter("force", ("stress", "volume"), STENCIL[kernel.value]),)


@shared_among_ranks
@stage(label="Add Stress Forces", fragments=_force)
def add_stress_forces(
    particles: A[ParticleStore, Reads("position", "volume", "stress")],
    grid: A[GridStore, Reads("force"), Writes("force")],
    *,
    kernel: Kernel = Kernel.QUADRATIC,
) -> Stage["particles", "grid"]:
    """Scatter f_i = - sum V0 tau grad w to the grid (Stomakhin 2013 eq. 6 in Kirchhoff form).

    Args:
        particles: Particles with their stress.
        grid: Grid whose forces are added to.
        kernel: B-spline of the weights.
    """
    scatter(particles, grid, kernel, Deposit("force", force=Force("stress")))
