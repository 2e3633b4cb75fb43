"""Particles to grid (P2G): mass and momentum."""

from __future__ import annotations

from mpm_nodes.data import A, Kernel, Reads, Stage, Transfer, Writes
from mpm_nodes.graph.declare import costs, shared_among_ranks, stage
from mpm_nodes.kernels.composition.fragments import Scatter
from mpm_nodes.kernels.transfers.weights import STENCIL
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.transfers import Deposit, lines_of, rows_of, scatter


def _momentum(transfer: Transfer, kernel: Kernel) -> tuple[Scatter, ...]:
    carried = ("velocity", "affine", "mass") if transfer is Transfer.APIC else ("velocity", "mass")
    return (Scatter("momentum", carried, STENCIL[kernel.value], clears=("momentum", "force")),)


@costs(1.0)
@shared_among_ranks
@stage(label="Rasterize", fragments=_momentum)
def rasterize(
    particles: A[ParticleStore, Reads("position", "velocity", "mass"), Reads("affine", when=("transfer", Transfer.APIC))],
    grid: A[GridStore, Writes("mass", "momentum", "force")],
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
    slopes = lines_of("affine") if transfer is Transfer.APIC else None
    scatter(particles, grid, kernel, Deposit("momentum", "mass", rows_of("velocity"), slopes))
