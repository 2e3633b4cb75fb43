"""Grid to particles: velocity, affine velocity and velocity gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpm_nodes.data import A, Kernel, Range, Reads, Stage, StepContext, Transfer, Unitless, Writes
from mpm_nodes.graph.declare import stage
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.composition.fragments import Run
from mpm_nodes.kernels.transfers.gather import gather_run
from mpm_nodes.kernels.transfers.tiles import SECOND_TILE, load_change_tile, load_tile, prefetch_tile
from mpm_nodes.kernels.transfers.weights import STENCIL
from mpm_nodes.solver import transfers
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.transfers import Take, lines_of, rows_of


@inline
def gather_block(
    stencil: tuple[int, ...], offset: np.ndarray, stride: int, shift: int, inverse_unit: float, velocity: np.ndarray,
    affine: np.ndarray, velocity_gradient: np.ndarray, velocity_gradient_stride: int, velocity_gradient_shift: int,
    cell_size: float, start: int, end: int, ahead: int, block: int, following: int, tile_slot: np.ndarray, scratch: np.ndarray,
    at: int, base: np.ndarray, base_at: int, grid_velocity: np.ndarray
) -> None:  # fmt: skip
    """Gather for the particles of one block."""
    load_tile(scratch, at, grid_velocity, tile_slot, block)
    prefetch_tile(grid_velocity, tile_slot, following)
    gather_run(
        stencil, offset, stride, shift, inverse_unit, velocity, affine, velocity_gradient, velocity_gradient_stride,
        velocity_gradient_shift, None, 1.0 / cell_size, start, end, ahead, scratch, at, base, base_at
    )  # fmt: skip


@inline
def gather_block_with_change(
    stencil: tuple[int, ...], offset: np.ndarray, stride: int, shift: int, inverse_unit: float, velocity: np.ndarray,
    affine: np.ndarray, velocity_gradient: np.ndarray, velocity_gradient_stride: int, velocity_gradient_shift: int,
    cell_size: float, start: int, end: int, ahead: int, block: int, following: int, tile_slot: np.ndarray, scratch: np.ndarray,
    at: int, base: np.ndarray, base_at: int, grid_velocity: np.ndarray,
    grid_momentum: np.ndarray, flip_fraction: float
) -> None:  # fmt: skip
    """Gather for the particles of one block and add the grid's change to their velocities."""
    load_tile(scratch, at, grid_velocity, tile_slot, block)
    prefetch_tile(grid_velocity, tile_slot, following)
    load_change_tile(scratch, at + SECOND_TILE, grid_velocity, grid_momentum, flip_fraction, tile_slot, block)
    gather_run(
        stencil, offset, stride, shift, inverse_unit, velocity, affine, velocity_gradient, velocity_gradient_stride,
        velocity_gradient_shift, flip_fraction, 1.0 / cell_size, start, end, ahead, scratch, at, base, base_at
    )  # fmt: skip


def _given(
    law: Any, particles: ParticleStore, step: StepContext, *, transfer: Transfer, kernel: Kernel, flip_fraction: float
) -> dict[str, Any]:
    return {"stencil": STENCIL[kernel.value], "flip_fraction": flip_fraction}


_WRITES = ("velocity", "affine", "velocity_gradient")
_APIC = Run(gather_block, _WRITES, gathers=frozenset(["velocity"]), arguments=_given)
_FLIP = Run(gather_block_with_change, _WRITES, ("velocity",), gathers=frozenset(["velocity", "momentum", "mass"]), arguments=_given)


def _gathered(transfer: Transfer, **_: Any) -> tuple[Run, ...]:
    return (_FLIP if transfer is Transfer.FLIP else _APIC,)


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
