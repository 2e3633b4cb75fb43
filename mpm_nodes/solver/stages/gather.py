"""Grid to particles: velocity, affine velocity and velocity gradient."""

from __future__ import annotations

from mpm_nodes.data import A, Grid, Kernel, Particles, Range, Reads, Stage, Transfer, Unitless, Writes
from mpm_nodes.graph.declare import stage
from mpm_nodes.kernels import gather as kernels
from mpm_nodes.kernels.weights import STENCIL


@stage(label="Gather")
def gather(
    particles: A[
        Particles, Reads("position"), Reads("velocity", when=("transfer", Transfer.FLIP)),
        Writes("velocity", "affine", "velocity_gradient"),
    ],
    grid: A[Grid, Reads("velocity"), Reads("mass", "momentum", when=("transfer", Transfer.FLIP))],
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
    rows = (particles.array(name) for name in ("velocity", "affine", "velocity_gradient"))
    given = (STENCIL[kernel.value], *particles.geometry(), *rows, 1.0 / grid.h, *grid.gather_tables(), grid.array("velocity"))
    if transfer is Transfer.FLIP:
        kernels.gather_flip(*given, grid.array("momentum"), flip_fraction)
    else:
        kernels.gather(*given)
    particles.stale.discard("velocity_gradient")
