"""How the force of shape and viscosity answers to velocities of the faces of the staggered grid (S14 eq. 24).

| symbol | meaning | unit |
|---|---|---|
| K(t) v | sum V0 dT^(t grad v; t) grad w, the change of the force in a time t | N |
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.data import Kernel, MpmNodesError
from mpm_nodes.kernels.composition.block import column_name
from mpm_nodes.kernels.composition.fragments import Fragment
from mpm_nodes.kernels.transfers.weights import reach
from mpm_nodes.materials.implicit_fragments import INNER
from mpm_nodes.physics.projection.numerics.isochoric import RESPONSE, RESPONSE_OF_STRETCH, STRETCH
from mpm_nodes.solver.bound_law import BoundLaw
from mpm_nodes.solver.loop_sections import lasting_arguments
from mpm_nodes.solver.rows import PAD, aligned
from mpm_nodes.solver.staggered import StaggeredStore
from mpm_nodes.solver.state import ParticleStore

__all__ = ["ShapeResponse"]

_REACH = reach(Kernel.QUADRATIC.value, (0, 1, 1))


class ShapeResponse:
    """K(beta dt): how the force of shape and viscosity answers to velocities of the faces.

    Args:
        particles: Particles with the law state of the substep's start.
        staggered: The grid.
        dt: Substep [s].
        beta: Share of the new velocities in the elastic force.

    Raises:
        MpmNodesError: A particle has drifted out of reach of its block's tile.
    """

    def __init__(self, particles: ParticleStore, staggered: StaggeredStore, dt: float, beta: float) -> None:
        if particles.drift > _REACH:
            raise MpmNodesError(
                f"shape on faces: a particle lies {particles.drift:.3g} cells from the centre of its block, and stencils of faces "
                f"reach {_REACH:g}; sort the particles first"
            )
        self.particles, self.grid, self.term_dt = particles, staggered.grid, beta * dt
        self._change = np.empty(192 * staggered.count, staggered.dtype)
        for law, _ in particles.runs():
            if law.loops.law.function("left_stretch") is not None:
                self._run(law, STRETCH)

    def change(self, velocity: np.ndarray) -> np.ndarray:
        """Return K v [N], until it is asked again.

        Args:
            velocity: One velocity for each face in the grid's float type, those of each axis behind those of the one before [m/s],
                shape (192 count,), as the result's.
        """
        self._change[:] = 0.0
        for law, _ in self.particles.runs():
            fragments = RESPONSE if law.loops.law.function("left_stretch") is None else RESPONSE_OF_STRETCH
            self._run(law, fragments, grid_velocity=velocity, grid_change=self._change)
        return self._change

    def _run(self, law: BoundLaw, fragments: tuple[Fragment, ...], **given: np.ndarray) -> None:
        """Run the loop of fragments over a material's particles."""
        composed, particles, grid = law.loops.composed(fragments), self.particles, self.grid
        key = (ShapeResponse, law.index, composed, grid.version)
        laws, arguments = particles.bound.get(key, (None, {}))
        if laws is not particles.laws:
            known = {"coefficients": law.coefficients, column_name("left_stretch"): self._stretches(), **given}
            segments = particles.segments[law.index]
            arguments = lasting_arguments(composed, law, segments, (particles, grid), frozenset(INNER), known)
            particles.bound[key] = (particles.laws, arguments)
        arguments.update(given, dt=self.term_dt)
        composed(arguments)

    def _stretches(self) -> np.ndarray:
        """Return the rows of V of all particles, for as long as they stay in their order."""
        particles, key = self.particles, (ShapeResponse, "left_stretch")
        if key not in particles.bound:
            particles.bound[key] = aligned(6 * particles.stride + PAD, particles.dtype)
        rows: np.ndarray = particles.bound[key]
        return rows
