"""The energy of every particle's constitutive law as a term of the incremental potential."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpm_nodes.kernels.jit import most_threads
from mpm_nodes.kernels.node_blocks import UNITS
from mpm_nodes.materials.fused_loops import LOCAL_ROWS
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.state import PAD, BoundLaw, ParticleStore, aligned

__all__ = ["LawEnergy"]


class LawEnergy:
    """sum_p V0 psi_p(dt grad v) over the particles of all materials (R15 eq. 8-15, C21 eq. 14).

    Args:
        particles: Particles with the law state of the substep's start; their `velocity_gradient` takes the trial's.
        grid: Grid of the trial velocities.
        stencil: Stencil of the B-spline.
    """

    def __init__(self, particles: ParticleStore, grid: GridStore, stencil: tuple[int, ...]) -> None:
        self.particles, self.grid, self.stencil = particles, grid, stencil
        needed = most_threads() * LOCAL_ROWS * grid.local_stride + PAD
        if grid.local.size < needed:
            grid.local = aligned(needed, grid.dtype)

    def _given(self, law: BoundLaw, dt: float, *, local: bool) -> tuple[Any, ...]:
        particles, grid = self.particles, self.grid
        scratch = (grid.local, grid.local_stride) if local else ()
        return (*law.state(particles), particles.array("velocity_gradient"), particles.optional("stiffness_scale"), *scratch,
                self.stencil, *particles.geometry(), particles.array("volume"), grid.h, law.coefficients, dt)

    def evaluate(self, dt: float, velocity: np.ndarray, force: np.ndarray) -> tuple[float, int]:
        """See `EnergyTerm`."""
        energy, broken = 0.0, 0.0
        for law, segments in self.particles.runs():
            sums = np.empty((len(segments), 2))
            law.kernels.evaluate_trial(*self._given(law, dt, local=True), *self.grid.scatter_tables(law.index), velocity, force,
                                       sums)
            energy += float(sums[:, 0].sum())
            broken += float(sums[:, 1].sum())
        return energy, int(broken)

    def apply(self, dt: float, direction: np.ndarray, result: np.ndarray) -> None:
        """See `EnergyTerm`."""
        for law, _ in self.particles.runs():
            law.kernels.apply_hessian(*self._given(law, dt, local=True), *self.grid.scatter_tables(law.index), direction, result)

    def add_blocks(self, dt: float, blocks: np.ndarray) -> None:
        """See `EnergyTerm`."""
        for law, _ in self.particles.runs():
            ranges, start, colour_range, tile_slot, _, _ = self.grid.scatter_tables(law.index)
            law.kernels.add_node_blocks(*self._given(law, dt, local=False), ranges, start, colour_range, tile_slot, UNITS, blocks)
