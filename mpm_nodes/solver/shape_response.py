"""How the force of shape and viscosity answers to velocities of the faces of the staggered grid (S14 eq. 24).

| symbol | meaning | unit |
|---|---|---|
| K(t) v | sum V0 dT^(t grad v; t) grad w, the change of the force in a time t | N |
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mpm_nodes.data import Kernel
from mpm_nodes.materials.implicit_fragments import INNER
from mpm_nodes.materials.isochoric import RESPONSE
from mpm_nodes.solver.bound_law import BoundLaw
from mpm_nodes.solver.loop_sections import lasting_arguments
from mpm_nodes.solver.staggered import AXES, StaggeredStore
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.transfers import Deposit, Force, Take, gather, scatter

__all__ = ["ShapeResponse"]

_TAKES = tuple(Take(f"velocity_{axis}", gradient=(("stress_change", 3 * n), None, None)) for n, axis in enumerate(AXES))
_GIVES = tuple(
    Deposit(f"change_{axis}", force=Force("stress_change", ((3 * n, 3 * n + 1, 3 * n + 2), None, None), factor=1.0))
    for n, axis in enumerate(AXES)
)
_QUADRATIC = Kernel.QUADRATIC


class ShapeResponse:
    """K(beta dt): how the force of shape and viscosity answers to velocities of the faces.

    Args:
        particles: Particles with the law state of the substep's start.
        staggered: The grid.
        dt: Substep [s].
        beta: Share of the new velocities in the elastic force.
    """

    def __init__(self, particles: ParticleStore, staggered: StaggeredStore, dt: float, beta: float) -> None:
        self.particles, self.staggered, self.term_dt = particles, staggered, beta * dt

    def change(self) -> list[np.ndarray]:
        """Return K v of the velocities that the grid holds [N], in the first place of four for each face of each axis."""
        staggered = self.staggered
        gather(self.particles, staggered, _QUADRATIC, *_TAKES)
        for law, _ in self.particles.runs():
            self._respond(law)
        staggered.clear(*(f"change_{axis}" for axis in AXES))
        scatter(self.particles, staggered, _QUADRATIC, *_GIVES)
        return [staggered.array(f"change_{axis}") for axis in AXES]

    def _respond(self, law: BoundLaw) -> None:
        """Replace the gradients of a material's particles by the change of their stress."""
        composed, particles = law.loops.composed(RESPONSE), self.particles
        key = (ShapeResponse, law.index, composed)
        laws, arguments = particles.bound.get(key, (None, {}))
        if laws is not particles.laws:
            known: dict[str, Any] = {"coefficients": law.coefficients}
            segments = particles.segments[law.index]
            arguments = lasting_arguments(composed, law, segments, (particles, self.staggered.grid), frozenset(INNER), known)
            particles.bound[key] = (particles.laws, arguments)
        arguments["dt"] = self.term_dt
        composed(arguments)
