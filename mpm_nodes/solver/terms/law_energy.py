"""The energy of every particle's constitutive law as a term of the incremental potential."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mpm_nodes.kernels.composition.generated import ComposedLoop
from mpm_nodes.kernels.transfers import local_hessians
from mpm_nodes.kernels.transfers.node_blocks import UNITS
from mpm_nodes.materials.implicit_fragments import ADD_NODE_BLOCKS, INNER, STORE_HESSIANS, apply_hessian, evaluate_trial
from mpm_nodes.materials.over_temperature import without
from mpm_nodes.solver.bound_law import BoundLaw
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.loop_sections import lasting_arguments
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
        share: Share of the substep after which its forces act: 1 at its end.

    Attributes:
        viscous: Whether the materials' own viscosity is minimised as well.
    """

    def __init__(
        self, particles: ParticleStore, grid: GridStore, stencil: tuple[int, ...], project: bool = False, share: float = 1.0
    ) -> None:
        self.particles, self.grid, self.stencil, self.project, self.share = particles, grid, stencil, project, share
        self._hessians = np.empty(0, grid.dtype)
        self.viscous = False
        self._no_stiffness: np.ndarray | None = None

    def _run(self, law: BoundLaw, fragments: tuple[Any, ...], dt: float, **given: Any) -> dict[str, float]:
        """Run the loop of fragments over a material's particles; returns its sums by name."""
        composed, particles = law.loops.composed(fragments), self.particles
        key = (type(self), law.index, composed, self.stencil, self.viscous, self.grid, self.grid.version)
        laws, arguments = particles.bound.get(key, (None, {}))
        if laws is not particles.laws:
            arguments = self._lasting(law, fragments, composed, given)
            particles.bound[key] = (particles.laws, arguments)
        arguments.update(given, dt=dt)
        composed(arguments)
        sums: dict[str, float] = {}
        for place, name in composed.source.sums.items():
            sums.update(zip(fragments[place].sums, (float(column.sum()) for column in arguments[name].T), strict=True))
        return sums

    def _lasting(self, law: BoundLaw, fragments: Sequence[Any], composed: ComposedLoop, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a loop that stay as they are while particles stay in their order."""
        segments = self.particles.segments[law.index]
        known = {
            "stencil": self.stencil,
            f"stencil{len(self.stencil)}": self.stencil,
            "stiffness_scale": self._stiffness_scale(),
            "coefficients": self._coefficients(law),
            "units": UNITS,
            **given,
        }
        known |= {name: np.empty((len(segments), len(fragments[place].sums))) for place, name in composed.source.sums.items()}
        return lasting_arguments(composed, law, segments, (self.particles, self.grid), frozenset(INNER), known)

    def takes_in(self, term: EnergyTerm) -> bool:
        """Take the viscosity of the same particles in: it is evaluated in the same pass, with the weights of this term."""
        joins = type(term) is ViscousEnergy and term.particles is self.particles and not self.viscous
        self.viscous = self.viscous or joins
        return joins

    def _stiffness_scale(self) -> np.ndarray:
        return self.particles.optional("stiffness_scale")

    def _coefficients(self, law: BoundLaw) -> np.ndarray:
        found = law.loops.law
        return law.coefficients if self.viscous else without(law.coefficients, found, len(found.names))

    def evaluate(self, dt: float, velocity: np.ndarray, force: np.ndarray) -> tuple[float, int]:
        """See `EnergyTerm`."""
        energy, broken, mean = 0.0, 0.0, self.share < 1.0
        given = {"grid_velocity": velocity, "grid_force": force} | ({"whole_dt": dt / self.share} if mean else {})
        for law, _ in self.particles.runs():
            sums = self._run(law, evaluate_trial(self.stencil, mean), dt, **given)
            energy += sums["stored"]
            broken += sums["broken"]
        return energy, int(broken)

    def linearise(self, dt: float) -> None:
        """See `EnergyTerm`."""
        if not self.project:
            return
        particles, needed = self.particles, local_hessians.ENTRIES * self.particles.stride + PAD
        if self._hessians.size < needed:
            self._hessians = aligned(needed, self.grid.dtype)
        for law, _ in particles.runs():
            self._run(law, STORE_HESSIANS, dt, hessians=self._hessians)

    def apply(self, dt: float, direction: np.ndarray, result: np.ndarray) -> None:
        """See `EnergyTerm`."""
        if self.project:
            grid = self.grid
            local_hessians.apply_stored(
                self._stored(dt),
                local_hessians.LocalRows(grid.local, grid.local_stride),
                self.stencil,
                self.particles.geometry(),
                grid.scatter_tables(),
                direction,
                result,
            )
            return
        for law, _ in self.particles.runs():
            self._run(law, apply_hessian(self.stencil), dt, grid_direction=direction, grid_product=result)

    def add_blocks(self, dt: float, blocks: np.ndarray) -> None:
        """See `EnergyTerm`."""
        if self.project:
            local_hessians.add_stored_blocks(
                self._stored(dt), self.stencil, self.particles.geometry(), self.grid.scatter_tables(), blocks
            )
            return
        for law, _ in self.particles.runs():
            self._run(law, ADD_NODE_BLOCKS, dt, grid_blocks=blocks)

    def _stored(self, dt: float) -> local_hessians.StoredHessians:
        return local_hessians.StoredHessians(self._hessians, self.particles.array("volume"), dt)


class ViscousEnergy(LawEnergy):
    """sum_p V0 mu_v J E : E / dt of the materials' own viscosity, by itself: the law's passes with no stiffness.

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
        found = law.loops.law  # a viscosity that the law has itself belongs to its own energy
        return law.coefficients if found.viscosity is None else without(law.coefficients, found, found.viscosity)
