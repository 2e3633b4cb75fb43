"""Grid to particles (G2P): velocity, affine velocity and velocity gradient."""

from __future__ import annotations

from typing import Any

from mpm_nodes.data import A, Kernel, Range, Reads, Stage, StepContext, Transfer, Unitless, Writes
from mpm_nodes.graph.declare import costs, shared_among_ranks, stage
from mpm_nodes.kernels.composition.fragments import Gather
from mpm_nodes.kernels.transfers.weights import STENCIL
from mpm_nodes.solver import transfers
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.numerical_damping import NumericalDamping
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.transfers import Take, lines_of, rows_of

SOURCE_STEP, SOURCE_CELL = 1e-5, 1.6e-3
"""Step [s] and cell [m] of most examples of Y15 (Tables II and III), whose share of FLIP is 0.95."""


def flip_share(step: StepContext, flip_fraction: float, per_substep: bool) -> float:
    """Return the share of FLIP of a substep.

    What velocities of a cell differ by is damped as if by a viscosity of about h^2 (1 - f) / dt. The share is the power of
    `flip_fraction` that has the same viscosity whatever dt and h are.
    """
    return flip_fraction if per_substep else flip_fraction ** (step.dt / SOURCE_STEP * (SOURCE_CELL / step.cell_size) ** 2)


def _share(_law: Any, _particles: ParticleStore, step: StepContext, **knobs: Any) -> dict[str, float]:
    return {"flip_share": flip_share(step, knobs["flip_fraction"], knobs["per_substep"])}


def _gathered(transfer: Transfer, kernel: Kernel, numerical_damping: float, **_: Any) -> tuple[Gather, ...]:
    stencil, gradient = STENCIL[kernel.value], "" if numerical_damping < 1.0 else "velocity_gradient"
    if transfer is Transfer.FLIP:
        return (Gather("velocity", gradient, "velocity", "affine", stencil, "momentum", "flip_share", arguments=_share),)
    return (Gather("velocity", gradient, "velocity", "affine", stencil),)


@costs(1.0)
@shared_among_ranks
@stage(label="Gather", fragments=_gathered)
def gather(
    particles: A[
        ParticleStore,
        Reads("position"),
        Reads("velocity", when=("transfer", Transfer.FLIP)),
        Writes("velocity", "affine", "velocity_gradient"),
    ],
    grid: A[GridStore, Reads("velocity"), Reads("mass", "momentum", when=("transfer", Transfer.FLIP))],
    step: StepContext,
    *,
    transfer: Transfer = Transfer.APIC,
    kernel: Kernel = Kernel.QUADRATIC,
    flip_fraction: A[float, Unitless, Range(min=0.0, max=1.0)] = 0.95,
    per_substep: bool = True,
    numerical_damping: NumericalDamping = 1.0,
) -> Stage["particles", "grid"]:
    """Interpolate grid velocities back: v_p, C_p = D^-1 sum w v_i (x_i - x_p)^T and L_p = sum v_i (grad w)^T.

    Args:
        particles: Particles to update.
        grid: Grid with the updated velocities (and, for FLIP, the momentum before the update).
        transfer: APIC takes the grid velocity; FLIP adds the grid's change to the particle's own velocity.
        kernel: B-spline of the weights.
        flip_fraction: Share of FLIP in the blend with PIC (0 is pure PIC); used with FLIP only.
        per_substep: Take flip_fraction in every substep, however long: damping hangs on dt. Off, it is the share in steps of 1e-5 s
            on cells of 1.6 mm (Y15), and others damp alike: flip_fraction^(dt / 1e-5 s (1.6 mm / h)^2).
        numerical_damping: That of minimise_energy. Below 1 it has left L_p, of its mean velocities, and that stays.
    """
    before = "momentum" if transfer is Transfer.FLIP else None
    lines = lines_of("affine"), lines_of("velocity_gradient") if numerical_damping == 1.0 else None
    share = flip_share(step, flip_fraction, per_substep)
    transfers.gather(particles, grid, kernel, Take("velocity", rows_of("velocity"), *lines, before, share))
    particles.stale.discard("velocity_gradient")
