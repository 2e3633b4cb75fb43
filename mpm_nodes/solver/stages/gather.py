"""Grid to particles: velocity, affine velocity and velocity gradient."""

from __future__ import annotations

from typing import Any

from mpm_nodes.data import A, Kernel, Range, Reads, Stage, Transfer, Unitless, Writes
from mpm_nodes.graph.declare import stage
from mpm_nodes.kernels.composition.fragments import Gather
from mpm_nodes.kernels.transfers.weights import STENCIL
from mpm_nodes.solver import transfers
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.transfers import Take, lines_of, rows_of


def _gathered(transfer: Transfer, kernel: Kernel, **_: Any) -> tuple[Gather, ...]:
    stencil = STENCIL[kernel.value]
    if transfer is Transfer.FLIP:
        return (Gather("velocity", "velocity_gradient", "velocity", "affine", stencil, "momentum", "flip_fraction"),)
    return (Gather("velocity", "velocity_gradient", "velocity", "affine", stencil),)


@stage(label="Gather", fragments=_gathered)
def gather(
    particles: A[
        ParticleStore,
        Reads("position"),
        Reads("velocity", when=("transfer", Transfer.FLIP)),
        Writes("velocity", "affine", "velocity_gradient"),
    ],
    grid: A[GridStore, Reads("velocity"), Reads("mass", "momentum", when=("transfer", Transfer.FLIP))],
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
    before = "momentum" if transfer is Transfer.FLIP else None
    lines = lines_of("affine"), lines_of("velocity_gradient")
    transfers.gather(particles, grid, kernel, Take("velocity", rows_of("velocity"), *lines, before, flip_fraction))
    particles.stale.discard("velocity_gradient")
