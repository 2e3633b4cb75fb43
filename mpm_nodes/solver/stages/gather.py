"""Grid to particles: velocity, affine velocity and velocity gradient."""

from __future__ import annotations

from mpm_nodes.data import A, Grid, Kernel, Particles, Range, Reads, Stage, Transfer, Unitless, Writes
from mpm_nodes.graph.declare import stage
from mpm_nodes.kernels import flip
from mpm_nodes.kernels import gather as kernels

_INVERSE_INERTIA = {Kernel.QUADRATIC: 4.0, Kernel.CUBIC: 3.0}
"""h^2 / D of the B-splines: D = h^2/4 or h^2/3 (Jiang 2015)."""


@stage(label="Gather")
def gather(
    particles: A[Particles, Reads("position", "velocity"), Writes("velocity", "affine", "velocity_gradient")],
    grid: A[Grid, Reads("mass", "momentum", "velocity")],
    *,
    transfer: Transfer = Transfer.APIC,
    kernel: Kernel = Kernel.QUADRATIC,
    flip_fraction: A[float, Unitless, Range(min=0.0, max=1.0)] = 0.95,
) -> Stage["particles", "grid"]:
    """Interpolate grid velocities back: v_p, C_p = D^-1 sum w v_i (x_i - x_p)^T and L_p = sum v_i (grad w)^T.

    Args:
        particles: Particles to update.
        grid: Grid with the updated velocities (and, for FLIP, the momentum before the update).
        transfer: APIC takes the grid velocity; FLIP adds the grid's change to the particle's own velocity.
        kernel: B-spline of the weights.
        flip_fraction: Share of FLIP in the blend with PIC (0 is pure PIC); used with FLIP only.
    """
    geometry, tables = particles.geometry(), grid.gather_tables()
    keep = 0.0
    if transfer is Transfer.FLIP:
        keep = 1.0
        getattr(flip, f"keep_flip_{kernel.value}")(
            *geometry, particles.array("velocity"), flip_fraction, *tables, grid.array("momentum"))
    getattr(kernels, f"gather_{kernel.value}")(
        *geometry, particles.array("velocity"), particles.array("affine"), particles.array("velocity_gradient"), keep,
        _INVERSE_INERTIA[kernel] / grid.h, 1.0 / grid.h, *tables, grid.array("velocity"))
