"""The energy of every particle's constitutive law as a term of the incremental potential."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpm_nodes.kernels.algebra import local_hessians
from mpm_nodes.kernels.compile.jit import most_threads
from mpm_nodes.kernels.composition.source import LOCAL_ROWS
from mpm_nodes.kernels.transfers.node_blocks import UNITS
from mpm_nodes.solver.bound_law import BoundLaw
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.rows import PAD, aligned
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.terms.energy_store import EnergyTerm

__all__ = ["LawEnergy", "ViscousEnergy"]


class LawEnergy:
    """sum_p V0 psi_p(dt grad v) over the particles of all materials (R15 eq. 8-15, C21 eq. 14).

    Args:
        particles: Particles with the law state of the substep's start; their `velocity_gradient` takes the trial's.
        grid: Grid of the trial velocities.
        stencil: Stencil of the B-spline.
        project: Take the positive part of every particle's own Hessian (45 numbers a particle are kept).

    Attributes:
        viscous: Whether the materials' own viscosity is minimised as well.
    """

    def __init__(self, particles: ParticleStore, grid: GridStore, stencil: tuple[int, ...], project: bool = False) -> None:
        self.particles, self.grid, self.stencil, self.project = particles, grid, stencil, project
        self._hessians = np.empty(0, grid.dtype)
        self.viscous = False
        self._no_stiffness: np.ndarray | None = None
        needed = most_threads() * LOCAL_ROWS * grid.local_stride + PAD
        if grid.local.size < needed:
            grid.local = aligned(needed, grid.dtype)

    def _given(self, law: BoundLaw, dt: float, *, local: bool) -> tuple[Any, ...]:
        particles, grid = self.particles, self.grid
        scratch = (grid.local, grid.local_stride) if local else ()
        return (
            *law.state(particles),
            particles.array("velocity_gradient"),
            self._stiffness_scale(),
            *scratch,
            self.stencil,
            *particles.geometry(),
            particles.array("volume"),
            grid.h,
            self._coefficients(law),
            dt,
        )

    def takes_in(self, term: EnergyTerm) -> bool:
        """Take the viscosity of the same particles in: it is evaluated in the same pass, with the weights of this term."""
        joins = type(term) is ViscousEnergy and term.particles is self.particles and not self.viscous
        self.viscous = self.viscous or joins
        return joins

    def _stiffness_scale(self) -> np.ndarray:
        return self.particles.optional("stiffness_scale")

    def _coefficients(self, law: BoundLaw) -> np.ndarray:
        return law.coefficients if self.viscous else law.coefficients[: len(law.loops.law.names)]

    def evaluate(self, dt: float, velocity: np.ndarray, force: np.ndarray) -> tuple[float, int]:
        """See `EnergyTerm`."""
        energy, broken = 0.0, 0.0
        for law, segments in self.particles.runs():
            sums = np.empty((len(segments), 2))
            law.loops.evaluate_trial(*self._given(law, dt, local=True), *self.grid.scatter_tables(law.index), velocity, force, sums)
            energy += float(sums[:, 0].sum())
            broken += float(sums[:, 1].sum())
        return energy, int(broken)

    def linearise(self, dt: float) -> None:
        """See `EnergyTerm`."""
        if not self.project:
            return
        particles, needed = self.particles, local_hessians.ENTRIES * self.particles.stride + PAD
        if self._hessians.size < needed:
            self._hessians = aligned(needed, self.grid.dtype)
        for law, segments in particles.runs():
            law.loops.store_local_hessians(
                *law.state(particles),
                particles.array("velocity_gradient"),
                self._stiffness_scale(),
                particles.stride,
                segments,
                self._coefficients(law),
                dt,
                UNITS,
                self._hessians,
            )

    def apply(self, dt: float, direction: np.ndarray, result: np.ndarray) -> None:
        """See `EnergyTerm`."""
        if self.project:
            grid = self.grid
            local_hessians.apply_stored(
                self._hessians, grid.local, grid.local_stride, *self._stored(dt), *grid.scatter_tables(), direction, result
            )
            return
        for law, _ in self.particles.runs():
            law.loops.apply_hessian(*self._given(law, dt, local=True), *self.grid.scatter_tables(law.index), direction, result)

    def add_blocks(self, dt: float, blocks: np.ndarray) -> None:
        """See `EnergyTerm`."""
        if self.project:
            local_hessians.add_stored_blocks(self._hessians, *self._stored(dt), *self.grid.scatter_tables()[:4], blocks)
            return
        for law, _ in self.particles.runs():
            law.loops.add_node_blocks(*self._given(law, dt, local=False), *self.grid.scatter_tables(law.index)[:4], UNITS, blocks)

    def _stored(self, dt: float) -> tuple[Any, ...]:
        return (self.stencil, *self.particles.geometry(), self.particles.array("volume"), self.grid.h, dt)


class ViscousEnergy(LawEnergy):
    """sum_p V0 dt mu_v J eps : eps of the materials' own viscosity, by itself: the law's passes with no stiffness.

    `LawEnergy` of the same particles takes it in, and then it costs no pass of its own. Arguments as there.
    """

    def __init__(self, particles: ParticleStore, grid: GridStore, stencil: tuple[int, ...], project: bool = False) -> None:
        super().__init__(particles, grid, stencil, project)
        self.viscous = True

    def takes_in(self, term: EnergyTerm) -> bool:
        """See `EnergyStore.add`: it joins others, and takes none in."""
        return False

    def _stiffness_scale(self) -> np.ndarray:
        if self._no_stiffness is None or self._no_stiffness.size < self.particles.stride:
            self._no_stiffness = aligned(self.particles.stride + PAD, self.particles.dtype)
        return self._no_stiffness

    def _coefficients(self, law: BoundLaw) -> np.ndarray:
        coefficients = law.coefficients.copy()
        if law.loops.law.viscosity is not None:  # a viscosity that the law has itself belongs to its own energy
            coefficients[law.loops.law.viscosity] = 0.0
        return coefficients
