"""Cells whose pressure does not pull: those that bodies cut, which matter may leave, and those of liquid with room left in them.

| symbol | meaning | unit |
|---|---|---|
| a | h^2 times the open shares behind each cell less those before it, along each axis: cut of the surface, out of the body | m^2 |
| p | pressure of the cell | Pa |
| N | dt p a: impulse of the body on the matter | N s |
| mu | Coulomb coefficient of the body | - |

Either the body presses, p >= 0, or the matter leaves the cell, where p = 0 then and div v is at least what its volume asks for:
policy iteration as in `face_contacts`. Friction takes up to mu |N| from what moves along the surface, shared among the faces of the
cell.

Cells that the grid finds to be thin (`kernels.cell_density`) do not pull either: liquid comes together as fast as it
falls, and not across the gap to a body or a drop that leaves. Where no surface says what the pressure is, nothing says which pull.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mpm_nodes.physics.projection.kernels import pressure
from mpm_nodes.physics.projection.kernels.pressure import INTERIOR, RELEASED
from mpm_nodes.physics.projection.numerics.face_contacts import SETTLED, OpenFaces, beside
from mpm_nodes.physics.projection.numerics.pressure_solver import pockets_of

__all__ = ["PushingCells"]

MOST = 0.5
"""Share of the speed along a surface that one cell takes in a turn: a face lies in two cells."""


class PushingCells:
    """The cells that do not pull, in one projection.

    Args:
        fields: `kernels.pressure.Fields` with masses and volumes.
        gaps: What the bodies leave open.
        correction: Share of the volume error that incompressible matter takes back.
    """

    def __init__(self, fields: Any, gaps: OpenFaces, correction: float) -> None:
        self.fields, self.correction = fields, correction
        self.dt, self.h, self.least = (float(fields.numbers[n]) for n in (0, 1, 2))
        self.velocity = [v[::4][: len(fields.kind)] for v in (fields.vx, fields.vy, fields.vz)]
        self.rubbed = [np.zeros(len(fields.kind)) for _ in range(3)]
        count = 4 * len(fields.kind)
        thin = (fields.filling[1:count:4] > 0.0) & (fields.cells[1:count:4] > 0.0)
        for cells in pockets_of(len(fields.kind) // 64, fields) if thin.any() else []:
            thin[cells] = False
        self.cells = np.flatnonzero((gaps.separating | thin) & (fields.kind == INTERIOR))
        self.friction, self.body = gaps.cells[self.cells, 1], gaps.cells[self.cells, 2:]
        self.start = [v.astype(float) for v in self.velocity] if len(self.cells) else []
        self.faces, self.mass, shares = [], [], []
        for axis, (mass, share) in enumerate(zip((fields.nx, fields.ny, fields.nz), gaps.shares, strict=True)):
            both = np.array([self.cells, beside(fields.around, self.cells, axis, 1)])
            state = (fields.sx, fields.sy, fields.sz)[axis][both]
            shares.append(share[both[1]] - share[both[0]])
            self.faces.append(both)
            self.mass.append(np.where((share[both] > 0.0) & (state == 0) & (mass[both] > self.least), mass[both], 0.0))
        self.cut = self.h**2 * np.array(shares)
        self.held = np.ones(len(self.cells), bool)

    @property
    def idle(self) -> bool:
        """Whether there are none."""
        return not len(self.cells)

    def begin(self) -> None:
        """Add friction to the velocities that the next pressure solve begins with."""
        for velocity, start, rubbed in zip(self.velocity, self.start, self.rubbed, strict=False):
            faces = np.flatnonzero(rubbed)
            velocity[faces] = start[faces] + rubbed[faces]

    def changed(self, p: np.ndarray, tolerance: float) -> bool:
        """Let go of cells that would pull, hold those that fill, and find the friction; return whether any of it changed.

        Args:
            p: Pressure of the cells after a solve [Pa].
            tolerance: Share of the largest pressure, or rate, that counts as none.
        """
        if self.idle:
            return False
        f, cells = self.fields, self.cells
        # the rate at which a cell that was let go opens
        kind = f.kind[cells].copy()
        f.kind[cells] = INTERIOR
        rate = np.empty(len(f.kind))
        pressure.divergences(len(f.kind) // 64, f, rate)
        f.kind[cells] = kind
        mass = f.cells[4 * cells + 3].astype(float)
        elastic = 1.0 + f.cells[4 * cells + 1] / mass
        share = np.where(f.cells[4 * cells + 2] > 0.0, 1.0, self.correction)
        opening = rate[cells] + share * (elastic - 1.0) / (self.dt * elastic)
        speed = max(float(np.abs(v).max(initial=0.0)) for v in self.velocity)
        least = -tolerance * float(np.abs(p).max(initial=0.0))
        held = np.where(self.held, p[cells] >= least, opening < -tolerance * speed / self.h)
        any_change = bool((held != self.held).any())
        self.held = held
        f.kind[cells] = np.where(held, INTERIOR, RELEASED)
        if (self.friction > 0.0).any():
            any_change |= self._rub(np.where(held, np.maximum(p[cells], 0.0), 0.0))
        return any_change

    def _rub(self, p: np.ndarray) -> bool:
        """Find the friction that goes with the pressures of the cells and the velocities after them; return whether it changed."""
        area = np.sqrt((self.cut**2).sum(axis=0))
        normal = self.cut / np.maximum(area, 1e-12 * self.h**2)
        weight = [mass.sum(axis=0) for mass in self.mass]
        mean = []
        for axis in range(3):
            bare = self.velocity[axis][self.faces[axis]].astype(float) - self.rubbed[axis][self.faces[axis]]
            mean.append((self.mass[axis] * bare).sum(axis=0) / np.where(weight[axis] > 0.0, weight[axis], 1.0) - self.body[:, axis])
        sliding = np.array(mean)
        sliding -= normal * (normal * sliding).sum(axis=0)
        momentum = np.sqrt(((np.array(weight) * sliding) ** 2).sum(axis=0))
        kept = np.minimum(MOST, self.friction * self.dt * p * area / np.maximum(momentum, 1e-300))
        change = most = 0.0
        for axis, masses in enumerate((self.fields.nx, self.fields.ny, self.fields.nz)):
            taken = np.zeros(len(self.fields.kind))
            for faces, mass in zip(self.faces[axis], self.mass[axis], strict=True):
                np.add.at(taken, faces[mass > 0.0], -(kept * sliding[axis])[mass > 0.0])
            change = max(change, float(np.abs(masses * (taken - self.rubbed[axis])).max(initial=0.0)))
            most = max(most, float(np.abs(masses * taken).max(initial=0.0)))
            # what no longer rubs begins without it
            gone = np.flatnonzero((taken == 0.0) & (self.rubbed[axis] != 0.0))
            self.velocity[axis][gone] = self.start[axis][gone]
            self.rubbed[axis] = taken
        return change > SETTLED * most
