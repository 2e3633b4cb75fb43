"""The semi-implicit step of shear and viscosity on the faces of the staggered grid: one linear solve (S14 section 5.5.2).

| symbol | meaning | unit |
|---|---|---|
| m, v~ | mass of a face, its velocity after forces and gravity | kg, m/s |
| beta | share of the new velocities in the elastic force | - |
| K(t) v | sum V0 dT^(t grad v; t) grad w, the change of the force in a time t | N |

    m v* + dt K(beta dt) v* = m v~                                                  (S14 eq. 24; gravity enters v~ as dt g)

Elastic stresses change by beta dt grad v, viscous ones follow v* in full. What bodies hold stays as it is (S14 section 5.6).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mpm_nodes.data import Kernel
from mpm_nodes.kernels.algebra.krylov import Equations, Method, Solution, Until, krylov
from mpm_nodes.kernels.algebra.vectors import BlockVectors
from mpm_nodes.kernels.projection import face_vectors
from mpm_nodes.materials.implicit_fragments import INNER
from mpm_nodes.materials.isochoric import RESPONSE
from mpm_nodes.solver.bound_law import BoundLaw
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.face_contacts import let_go
from mpm_nodes.solver.grid import LEAST_MASS
from mpm_nodes.solver.loop_sections import lasting_arguments
from mpm_nodes.solver.projection import solid_faces_of
from mpm_nodes.solver.staggered import AXES, StaggeredStore
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.transfers import Deposit, Force, Take, gather, scatter

__all__ = ["FaceStep"]

_TAKES = tuple(Take(f"velocity_{axis}", gradient=(("stress_change", 3 * n), None, None)) for n, axis in enumerate(AXES))
_GIVES = tuple(
    Deposit(f"change_{axis}", force=Force("stress_change", ((3 * n, 3 * n + 1, 3 * n + 2), None, None), factor=1.0))
    for n, axis in enumerate(AXES)
)
_QUADRATIC = Kernel.QUADRATIC


class FaceStep:
    """One semi-implicit step.

    Args:
        particles: Particles with the law state of the substep's start.
        staggered: Grid with masses, and v~ as its velocities, which take the result.
        colliders: Bodies posed at the end of the substep.
        dt: Substep [s].
        beta: 1/2 damps least, 1 is linearised backward Euler; stable from 1/2 on.
    """

    def __init__(self, particles: ParticleStore, staggered: StaggeredStore, colliders: ColliderSet, dt: float, beta: float) -> None:
        self.particles, self.staggered, self.dt, self.term_dt = particles, staggered, dt, beta * dt
        self.size = 64 * staggered.count
        self.vectors = BlockVectors.of_size(3 * self.size)
        self.mass, self.velocity, self.right = (self.vectors.new() for _ in range(3))
        least = LEAST_MASS[staggered.dtype] * staggered.grid.particle_mass
        solid = solid_faces_of(staggered, colliders, dt)
        for n, axis in enumerate(AXES):
            # what leaves a separating body by itself is not held by it
            let_go(solid, n, staggered.array(f"velocity_{axis}")[::4][: self.size].astype(float))
            face_vectors.begin_faces(
                staggered.count,
                n * self.size,
                staggered.array(f"face_{axis}"),
                staggered.array(f"velocity_{axis}"),
                (solid.states[n], solid.speeds[n]),
                least,
                (self.mass, self.velocity, self.right),
            )

    def solve(self, tolerance: float, most: int, check: Callable[[], None] = lambda: None) -> Solution:
        """Write v* to the faces, by conjugate residuals: the second derivative may be indefinite.

        Args:
            tolerance: Residual at which to stop, over that of no velocity, both as sum |r|^2 / m.
            most: Iterations at most.
            check: Called now and then; raises to end the solve.
        """
        equations = Equations(self._product, self._precondition, self.vectors.dot, self.vectors)
        until = Until(tolerance, most)
        found = krylov(equations, self.right, self.velocity, until, method=Method.RESIDUALS, guess=True, check=check)
        self._write(self.velocity)
        return found

    def _write(self, x: np.ndarray) -> None:
        for n, axis in enumerate(AXES):
            face_vectors.write_faces(self.staggered.count, n * self.size, x, self.staggered.array(f"velocity_{axis}"))

    def _product(self, d: np.ndarray, q: np.ndarray) -> None:
        """Write A d."""
        staggered = self.staggered
        self._write(d)
        gather(self.particles, staggered, _QUADRATIC, *_TAKES)
        for law, _ in self.particles.runs():
            self._respond(law)
        staggered.clear(*(f"change_{axis}" for axis in AXES))
        scatter(self.particles, staggered, _QUADRATIC, *_GIVES)
        for n, axis in enumerate(AXES):
            change = staggered.array(f"change_{axis}")
            face_vectors.finish_product(staggered.count, n * self.size, change, self.mass, self.dt, d, q)

    def _respond(self, law: BoundLaw) -> None:
        """Replace the gradients of a material's particles by the change of their stress."""
        composed, particles = law.loops.composed(RESPONSE), self.particles
        key = (FaceStep, law.index, composed)
        laws, arguments = particles.bound.get(key, (None, {}))
        if laws is not particles.laws:
            known: dict[str, Any] = {"coefficients": law.coefficients}
            segments = particles.segments[law.index]
            arguments = lasting_arguments(composed, law, segments, (particles, self.staggered.grid), frozenset(INNER), known)
            particles.bound[key] = (particles.laws, arguments)
        arguments["dt"] = self.term_dt
        composed(arguments)

    def _precondition(self, r: np.ndarray, z: np.ndarray) -> tuple[float, float]:
        face_vectors.divide_by_mass(self.staggered.count, self.mass, r, z)
        size = self.vectors.dot(r, z)
        return size, size
