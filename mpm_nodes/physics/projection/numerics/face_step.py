"""The semi-implicit step of shear and viscosity on the faces of the staggered grid: one linear solve (S14 section 5.5.2).

| symbol | meaning | unit |
|---|---|---|
| m, v~ | mass of a face, its velocity after forces and gravity | kg, m/s |
| beta | share of the new velocities in the elastic force | - |
| K(t) v | sum V0 dT^(t grad v; t) grad w, the change of the force in a time t | N |

    m v* + dt K(beta dt) v* = m v~                                                  (S14 eq. 24; gravity enters v~ as dt g)

Elastic stresses change by beta dt grad v, viscous ones follow v* in full. What bodies hold stays as it is (S14 section 5.6). Faces
inside those that stick mirror the faces outside (`numerics.ghost_faces`): with v = E u + c the equations are those of u,
E^T (m + dt K) (E u + c) = E^T m v~. Where their surface is not level, or clamps matter, faces a little before it are held as well,
and free again in the projection: matter there does not slip, and yet comes, leaves and bears pressure where the surface is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mpm_nodes.kernels.algebra.krylov import Equations, Method, Solution, Until, krylov
from mpm_nodes.kernels.algebra.vectors import BlockVectors
from mpm_nodes.physics.projection.kernels import face_vectors
from mpm_nodes.physics.projection.kernels.solid_faces import HELD
from mpm_nodes.physics.projection.numerics.face_contacts import clinging_to, let_go
from mpm_nodes.physics.projection.numerics.ghost_faces import GhostFaces
from mpm_nodes.physics.projection.numerics.projection import solid_faces_of
from mpm_nodes.physics.projection.numerics.shape_response import ShapeResponse
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.grid import LEAST_MASS
from mpm_nodes.solver.staggered import AXES, StaggeredStore
from mpm_nodes.solver.state import ParticleStore

__all__ = ["FaceStep"]

ROUNDING = 4.0
"""Units of the float type's rounding that a tolerance is at least."""


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
        self.staggered, self.dt = staggered, dt
        self.response = ShapeResponse(particles, staggered, dt, beta)
        self.size = 64 * staggered.count
        self.vectors = BlockVectors.of_size(3 * self.size)
        self.mass, self.velocity, self.right = (self.vectors.new() for _ in range(3))
        self.sums = np.empty(staggered.count)
        self.faces = np.empty(3 * self.size, staggered.dtype)
        least = LEAST_MASS[staggered.dtype] * staggered.grid.particle_mass
        solid = solid_faces_of(staggered, colliders, dt)
        free = [staggered.array(f"velocity_{axis}")[::4][: self.size].astype(float) for axis in AXES]
        for n in range(3):
            # what leaves a separating body by itself is not held by it
            let_go(solid, n, free[n])
            speed = clinging_to(solid, n)
            clings = ~np.isnan(speed)
            solid.states[n][clings], solid.speeds[n][clings] = HELD, speed[clings]
        self.ghosts = GhostFaces(solid, staggered)
        for n, axis in enumerate(AXES):
            face_vectors.begin_faces(
                staggered.count,
                n * self.size,
                staggered.array(f"face_{axis}"),
                staggered.array(f"velocity_{axis}"),
                (solid.states[n], solid.speeds[n]),
                least,
                (self.mass, self.velocity, self.right),
            )
        masses = [staggered.array(f"face_{axis}")[3::4] for axis in AXES]
        self.ghosts.bind(masses, free, (self._axes(self.mass), self._axes(self.right)))
        self.ghosts.extend(self._axes(self.velocity))

    def _axes(self, vector: np.ndarray) -> list[np.ndarray]:
        """Return the parts of a vector that belong to the axes."""
        return list(vector[: 3 * self.size].reshape(3, self.size))

    def solve(self, tolerance: float, most: int, check: Callable[[], None] = lambda: None) -> Solution:
        """Write v* to the faces, by conjugate residuals: the second derivative may be indefinite.

        Args:
            tolerance: Residual at which to stop, over that of no velocity, both as sum |r|^2 / m; at least `ROUNDING` units of the
                grid's float type, in which the products are found.
            most: Iterations at most.
            check: Called now and then; raises to end the solve.
        """
        equations = Equations(self._product, self._precondition, self.vectors.dot, self.vectors)
        until = Until(max(tolerance, ROUNDING * float(np.finfo(self.staggered.dtype).eps)), most)
        found = krylov(equations, self.right, self.velocity, until, method=Method.RESIDUALS, guess=True, check=check)
        for n, axis in enumerate(AXES):
            face_vectors.write_faces(self.staggered.count, n * self.size, self.velocity, self.staggered.array(f"velocity_{axis}"))
        return found

    def _product(self, d: np.ndarray, q: np.ndarray) -> None:
        """Write A d."""
        count = self.staggered.count
        face_vectors.round_faces(count, d, self.faces)
        change = self.response.change(self.faces)
        self.ghosts.hand_over(self._axes(change))
        face_vectors.finish_product(count, change, self.mass, self.dt, d, q)

    def _precondition(self, r: np.ndarray, z: np.ndarray) -> tuple[float, float]:
        face_vectors.divide_by_mass(self.staggered.count, self.mass, r, z, self.sums)
        self.ghosts.extend(self._axes(z), apart=False)
        size = float(self.sums.sum())
        return size, size
