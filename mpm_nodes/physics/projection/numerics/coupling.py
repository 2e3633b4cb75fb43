"""Shape, viscosity and pressure of one substep solved together, so that neither undoes what the other did.

| symbol | meaning | unit |
|---|---|---|
| m, v~ | mass of a face with what follows it, its velocity after the forces of the substep's start and gravity | kg, m/s |
| v*, v0, p0 | velocity after the semi-implicit step alone, velocity and pressure after the projection of v* | m/s, Pa |
| K | change of the force of shape and viscosity over the velocities, with dt (`numerics.shape_response`) | kg/s |
| E | velocities of all faces from those that lead (`kernels.velocity_extrapolation`, `numerics.ghost_faces`) | |
| C | k J_P / (J_E dt) of a cell | 1/(Pa s) |
| P | m w + dt V G q = m u, C q + div w = 0: the projection of u to w, with the pressure q | |

    m v + dt E^T K E v + dt V G p = E^T m v~,    C p + div v = s

One after the other, (m + dt K) v* = m v~ and the projection of v*, leave a step that is stable but rests elsewhere: where v = 0 and
forces balance, (1 + dt K / m) acts on the pressure and not on gravity, so that matter of modulus mu gives way as if it were
1 + (dt c / h)^2 / 2 times softer, c the speed of its shear waves (the splitting error of Chorin's scheme). The difference
d = v - v0, q = p - p0 has the same equations without s; with P applied to them

    d + P(dt E^T K E d / m) = P((E^T m v~ - m v* - dt E^T K E v0) / m)

whose operator is self-adjoint in the energy m d.d + dt h^3 C q.q. Conjugate residuals solve that, with one product by K and one
projection an iteration: the projected method of Gould 2001 for equations with constraints.
"""

from __future__ import annotations

import math

import numpy as np

from mpm_nodes.kernels.algebra.krylov import Equations, Method, Solution, Stop, Until, krylov
from mpm_nodes.kernels.algebra.vectors import BlockVectors
from mpm_nodes.physics.projection.kernels import velocity_extrapolation
from mpm_nodes.physics.projection.kernels.solid_faces import FREE, HELD
from mpm_nodes.physics.projection.numerics.face_contacts import EXTENSIONS, SolidFaces
from mpm_nodes.physics.projection.numerics.ghost_faces import GhostFaces
from mpm_nodes.physics.projection.numerics.pressure_solver import PressureSolver
from mpm_nodes.physics.projection.numerics.shape_response import ShapeResponse

__all__ = ["Coupling"]

FINEST = {4: 1e-6, 8: 1e-12}
"""Share of the speeds that rounding leaves, by the bytes of a float of the grid."""


class Coupling:
    """The solve of shape and pressure together, after both were solved one by one.

    Args:
        solver: The pressure, before its first solve.
        response: Shape and viscosity.
        free: v~ of the faces of each axis, each for itself [m/s], shape (64 count,).
        following: Who follows whom, as `velocity_extrapolation.fold` left it, shape (192 count,), which is kept, and read again by
            `solve`; and what they differ by (`velocity_extrapolation.find_offsets`).
        ghosts: Faces inside sticky bodies.
        clinging: Velocities of the faces that cling to sticky bodies, of each axis (`clinging_to`): K has them so, and pushes none.
    """

    solution = Solution(Stop.CONVERGED)

    def __init__(
        self,
        solver: PressureSolver,
        response: ShapeResponse,
        free: list[np.ndarray],
        following: tuple[np.ndarray, np.ndarray],
        ghosts: GhostFaces,
        clinging: list[np.ndarray],
    ) -> None:
        self.solver, self.fields, self.response = solver, solver.fields, response
        (self.rank, self.offset), self.ghosts = following, ghosts
        self.clinging = [np.flatnonzero(~np.isnan(each)) for each in clinging]
        self.carried = [each[faces] for each, faces in zip(clinging, self.clinging, strict=True)]
        self.none = np.zeros_like(self.offset)
        self.count, self.size = solver.count, 64 * solver.count
        f = self.fields
        self.dt, self.h, self.least = (float(f.numbers[n]) for n in (0, 1, 2))
        self.velocity = [v[::4][: self.size] for v in (f.vx, f.vy, f.vz)]
        alone = [m[3::4][: self.size] for m in (f.mx, f.my, f.mz)]
        self.alone, self.mass = alone, [f.nx, f.ny, f.nz]
        offsets = list(self.offset.reshape(-1, 3).T.copy())
        ghosts.extend(offsets)
        held = [np.where(np.isnan(speed), v, speed) for v, speed in zip(free, clinging, strict=True)]
        pushes = self._handed_over([m * (v - apart) for m, v, apart in zip(alone, held, offsets, strict=True)])
        self.free = [np.divide(i, m, out=np.zeros(self.size), where=m > 0.0) for i, m in zip(pushes, self.mass, strict=True)]

    def _handed_over(self, pushes: list[np.ndarray]) -> list[np.ndarray]:
        """Return E^T of impulses on the faces of each axis."""
        self.ghosts.hand_over(pushes)
        push = np.stack(pushes, axis=1).astype(float).reshape(-1)
        velocity_extrapolation.hand_over(self.count, self.fields, self.rank, push, EXTENSIONS)
        return list(push.reshape(-1, 3).T)

    def solve(self, solid: SolidFaces, rubbed: list[np.ndarray], old: np.ndarray) -> None:
        """Add d to the velocities of the faces that lead, and q to the pressure.

        Args:
            solid: What bodies hold after contacts were found.
            rubbed: What friction changed the velocities by [m/s].
            old: Scratch, shape (192 count,).
        """
        settings, f, size = self.solver.settings, self.fields, self.size
        self.old, self.vectors = old, BlockVectors.of_size(4 * size)
        rank = self.rank.reshape(-1, 3)
        states = (f.sx, f.sy, f.sz)
        self.led = [
            (m > self.least) & (states[n] != HELD) & np.where(rank[:, n] == 1, states[n] == FREE, rank[:, n] == 0)
            for n, m in enumerate(self.mass)
        ]
        self.weight = self.vectors.new()
        self.weight[: 4 * size].reshape(4, size)[:] = (
            *(np.where(led, m, 0.0) for led, m in zip(self.led, self.mass, strict=True)),
            self.dt * self.h**3 * self.solver.own[:size],
        )
        start = [v.astype(float) for v in self.velocity]
        answer = self._answer(self.offset, apart=True)
        for n, led in enumerate(self.led):
            before = self.solver.before[n] - rubbed[n]
            gone = (solid.contacts[n][:, 0] != 0.0) & (states[n] == FREE)
            push = np.where(gone, 0.0, self.free[n] - before) - answer[n]
            self.velocity[n][:] = np.where(led, push, 0.0)
        x, b, moved = self.vectors.new(), self.vectors.new(), self.vectors.new()
        self._project(b)
        self._pack(moved, [np.where(led, v - free, 0.0) for led, v, free in zip(self.led, start, self.free, strict=True)])
        speed = self.vectors.new()
        self._pack(speed, start)
        bound = settings.coupling * math.sqrt(self._dot(moved, moved))
        bound = max(bound, FINEST[self.velocity[0].itemsize] * math.sqrt(self._dot(speed, speed)))
        first = math.sqrt(self._dot(b, b))
        if first > bound:
            equations = Equations(self._product, self._same, self._dot, self.vectors)
            until = Until(bound / first, settings.most_coupled)
            self.solution = krylov(equations, b, x, until, method=Method.RESIDUALS, check=self.solver.check)
        for n, (led, v) in enumerate(zip(self.led, start, strict=True)):
            self.velocity[n][:] = v + np.where(led, x[n * size : (n + 1) * size], 0.0)
        self.solver.p[:size] += x[3 * size : 4 * size]

    # ---------------------------------------------------------------- the equations
    def _pack(self, x: np.ndarray, velocity: list[np.ndarray]) -> None:
        for n, v in enumerate(velocity):
            x[n * self.size : (n + 1) * self.size] = v

    def _answer(self, offset: np.ndarray, apart: bool) -> list[np.ndarray]:
        """Return dt E^T K (E v + offset) / m of the velocities that the grid holds; `apart`: whether bodies move."""
        velocity_extrapolation.extend(self.count, self.fields, self.rank, self.old, offset, EXTENSIONS)
        for v, faces, speed in zip(self.velocity, self.clinging, self.carried, strict=True):
            v[faces] = speed if apart else 0.0
        self.ghosts.extend(self.velocity, apart)
        changes = self.response.change(np.concatenate(self.velocity)).reshape(3, -1)
        for change, faces in zip(changes, self.clinging, strict=True):
            change[faces] = 0.0
        pushes = self._handed_over([self.dt * each.astype(float) for each in changes])
        return [np.where(led, i / np.where(led, m, 1.0), 0.0) for led, i, m in zip(self.led, pushes, self.mass, strict=True)]

    def _project(self, x: np.ndarray) -> None:
        """Write P of the velocities that the grid holds, and its pressure."""
        p = self.solver.vectors.new()
        self.solver.push_back(p)
        self._pack(x, [np.where(led, v, 0.0) for led, v in zip(self.led, self.velocity, strict=True)])
        x[3 * self.size : 4 * self.size] = p[: self.size]

    def _product(self, d: np.ndarray, q: np.ndarray) -> None:
        for n, led in enumerate(self.led):
            self.velocity[n][:] = np.where(led, d[n * self.size : (n + 1) * self.size], 0.0)
        for v, answer in zip(self.velocity, self._answer(self.none, apart=False), strict=True):
            v[:] = answer
        self._project(q)
        self.vectors.combine(1.0, d, 1.0, q, q)

    def _dot(self, x: np.ndarray, y: np.ndarray) -> float:
        return self.vectors.dot(self.weight * x, y)

    def _same(self, r: np.ndarray, z: np.ndarray) -> tuple[float, float]:
        self.vectors.copy(r, z)
        size = self._dot(r, r)
        return size, size
