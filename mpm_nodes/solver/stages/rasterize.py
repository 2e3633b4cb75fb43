"""Particles to grid: mass and momentum."""

from __future__ import annotations

from mpm_nodes.data import A, Grid, Kernel, Particles, Reads, Stage, Transfer, Writes
from mpm_nodes.graph.declare import stage
from mpm_nodes.kernels import scatter as kernels
from mpm_nodes.kernels.weights import STENCIL


@stage(label="Rasterize")
def rasterize(
    particles: A[Particles, Reads("position", "velocity", "mass"), Reads("affine", when=("transfer", Transfer.APIC))],
    grid: A[Grid, Writes("mass", "momentum", "force")],
    *,
    transfer: Transfer = Transfer.APIC,
    kernel: Kernel = Kernel.QUADRATIC,
) -> Stage["particles", "grid"]:
    """Transfer mass and momentum of the particles to the grid, and clear the forces.

    m_i = sum w m_p; m_i v_i = sum w m_p (v_p + C_p (x_i - x_p)) with APIC (Jiang 2015), without C with FLIP.

    Args:
        particles: Particles to transfer.
        grid: Grid to fill.
        transfer: APIC carries the affine velocity; FLIP does not.
        kernel: B-spline of the weights.
    """
    grid.clear("momentum")
    grid.clear("force")
    start = (STENCIL[kernel.value], *particles.geometry(), particles.array("velocity"))
    end = (*grid.scatter_tables(), grid.array("momentum"))
    if transfer is Transfer.APIC:
        kernels.scatter_affine_momentum(*start, particles.array("affine"), particles.array("mass"), grid.h, *end)
    else:
        kernels.scatter_momentum(*start, particles.array("mass"), *end)
