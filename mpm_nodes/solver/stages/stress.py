"""Stress of every law, and the force that it exerts on the grid."""

from __future__ import annotations

from mpm_nodes.data import LAW_STATE, A, Grid, Kernel, Particles, Reads, Stage, StepContext, Writes
from mpm_nodes.graph.declare import stage
from mpm_nodes.kernels import scatter as kernels
from mpm_nodes.kernels.weights import STENCIL


@stage(label="Compute Stress")
def compute_stress(
    particles: A[Particles, Reads("velocity_gradient", "stiffness_scale", LAW_STATE), Writes("stress")],
    step: StepContext,
) -> Stage["particles"]:
    """Evaluate each material's law: the Kirchhoff stress, viscosity included.

    Args:
        particles: Particles whose law state is read.
    """
    particles.stale.discard("stress")
    for law, segments in particles.runs():
        law.kernels.stress(*law.state(particles), particles.array("velocity_gradient"), particles.optional("stiffness_scale"),
                           particles.array("stress"), particles.stride, segments, law.coefficients, step.dt)


@stage(label="Add Stress Forces")
def add_stress_forces(
    particles: A[Particles, Reads("position", "volume", "stress")],
    grid: A[Grid, Reads("force"), Writes("force")],
    *,
    kernel: Kernel = Kernel.QUADRATIC,
) -> Stage["particles", "grid"]:
    """Scatter f_i = - sum V0 tau grad w to the grid (Stomakhin 2013 eq. 6 in Kirchhoff form).

    Args:
        particles: Particles with their stress.
        grid: Grid whose forces are added to.
        kernel: B-spline of the weights.
    """
    kernels.scatter_force(STENCIL[kernel.value], *particles.geometry(), particles.array("stress"), particles.array("volume"),
                          grid.h, *grid.scatter_tables(), grid.array("force"))
