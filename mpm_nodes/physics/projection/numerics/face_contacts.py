"""Contact on the faces of the staggered grid: matter may leave what separates, and rubs on it while it is pressed there.

| symbol | meaning | unit |
|---|---|---|
| v~, v_b | velocity of a face before any contact, that of the body | m/s |
| n | sign of the normal out of the body along the face's axis | - |
| p_c, p_w | pressure of the cell of matter before the face, pressure a cell behind it, inside the body | Pa |
| N | impulse of the body on the matter before a face during the substep | N s |
| mu | Coulomb coefficient of the body | - |

A held face is an equation for p_w: v_b = v~ - n dt / (rho h) (p_c - p_w). Contact is complementary, p_w >= 0 and n (v - v_b) >= 0,
one of them 0: the linear complementarity problem that Lai 2020 solves for liquids. Its matrix is an M-matrix; policy iteration
lets faces go that would pull and holds those that would sink in, until none changes. Before a face that is let go p = 0, as at any
free surface.

The impulse on what lies before a face is that of the pressure and of what was stopped there:
N = h^2 dt p_c + n sum m (v_b - v~), the sum over the face and those behind it. Faces along the surface lose up to mu N of their
momentum (Coulomb), shared among those of the cell. Pressure and friction wait for each other, and are found in turns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mpm_nodes.physics.projection.kernels.pressure import INTERIOR
from mpm_nodes.physics.projection.kernels.solid_faces import FREE, HELD, SLIDING

__all__ = ["EXTENSIONS", "FaceContacts", "SolidFaces", "beside", "clinging_to", "let_go"]

BEHIND = 2
"""Faces behind a surface that carry mass of the matter before it: as far as quadratic stencils reach."""
EXTENSIONS = 3
"""Faces beyond the interior that take a velocity from it: one beyond a free surface, and two behind the walls of a corner there,
as far as quadratic stencils of its particles reach."""
SETTLED = 1e-3
"""Change of the friction in a turn, over the largest friction, below which it is found."""


class SolidFaces(NamedTuple):
    """What bodies do to the faces of each axis: lists of three arrays of `kernels.solid_faces`.

    Attributes:
        states: Shape (64 count,), int32.
        speeds: Velocity of held faces [m/s], shape (64 count,), float64.
        contacts: Sign of the normal, friction, and the body's velocities along the next axis and the one after, shape
            (64 count, 4), float64.
        inside: How deep faces along the surface lie in sticky bodies, shape (64 count, 3), float64.
        clinging: Velocity of the sticky body to which a face before it clings [m/s], nan elsewhere, shape (64 count,), float64.
        open: What bodies that cut faces leave open (`kernels.open_faces`).
    """

    states: list[np.ndarray]
    speeds: list[np.ndarray]
    contacts: list[np.ndarray]
    inside: list[np.ndarray]
    clinging: list[np.ndarray]
    open: OpenFaces


class OpenFaces(NamedTuple):
    """What smooth bodies that cross the grid leave open.

    Attributes:
        shares: theta of the faces of each axis, three arrays of shape (64 count,).
        carried: (1 - theta) times the velocity of the body [m/s], three such.
        room: Share of the cells, shape (64 count,).
        cells: Distance of the nearest of these bodies [m], its friction, -1 where it does not separate, its velocity, shape
            (64 count, 5).
    """

    shares: list[np.ndarray]
    carried: list[np.ndarray]
    room: np.ndarray
    cells: np.ndarray

    @property
    def separating(self) -> np.ndarray:
        """Whether a body that separates cuts each cell or lies in it, shape (64 count,)."""
        return (self.room < 1.0) & (self.cells[:, 1] >= 0.0)


def beside(around: np.ndarray, places: np.ndarray, axis: int, side: np.ndarray | int) -> np.ndarray:
    """Return the places before (side 0) or behind (1) places of the grid along an axis, -1 where there are none."""
    step = 16 >> 2 * axis
    block, n = np.divmod(places, 64)
    row, move = n // step % 4, 2 * np.asarray(side) - 1
    inner = (row + move >= 0) & (row + move <= 3)
    other = around[block, 2 * axis + side].astype(np.int64)
    outer = np.where(other >= 0, 64 * other + n - 3 * move * step, -1)
    return np.where(places < 0, -1, np.where(inner, places + move * step, outer))


def let_go(solid: SolidFaces, axis: int, velocity: np.ndarray) -> None:
    """Let faces of an axis go that leave a separating body by themselves.

    Args:
        solid: What bodies hold, changed.
        axis: Axis of the faces.
        velocity: v~ of the faces [m/s], shape (64 count,).
    """
    sign = solid.contacts[axis][:, 0]
    leaves = (sign != 0.0) & (sign * (velocity - solid.speeds[axis]) > 0.0)
    solid.states[axis][leaves] = FREE


def clinging_to(solid: SolidFaces, axis: int) -> np.ndarray:
    """Return the velocity of the body to which each free face of an axis clings [m/s], nan elsewhere, shape (64 count,)."""
    return np.where(solid.states[axis] == HELD, np.nan, solid.clinging[axis])


class _Surface(NamedTuple):
    """The held faces of an axis before which there is matter, and what belongs to them.

    Attributes:
        faces: Places of the faces, shape (n,), int64.
        sign: n of each.
        friction: mu of each.
        sliding: The body's velocity along the next axis and the one after, shape (n, 2) [m/s].
        cells: The cell before each.
        column: The face and those behind it, shape (BEHIND + 1, n), -1 where there is none.
    """

    faces: np.ndarray
    sign: np.ndarray
    friction: np.ndarray
    sliding: np.ndarray
    cells: np.ndarray
    column: np.ndarray


class FaceContacts:
    """The contacts of one projection.

    Args:
        fields: `kernels.pressure.Fields` after the classification.
        solid: What bodies hold.
        free: v~ of the faces of each axis [m/s], shape (64 count,).
    """

    def __init__(self, fields: Any, solid: SolidFaces, free: list[np.ndarray]) -> None:
        self.solid, self.free, f = solid, free, fields
        self.around, self.kind = f.around, f.kind
        self.dt, self.h, self.least = (float(f.numbers[n]) for n in (0, 1, 2))
        self.mass = [f.nx, f.ny, f.nz]
        self.velocity = [v[::4][: len(f.kind)] for v in (f.vx, f.vy, f.vz)]
        self.start = [v.astype(float) for v in self.velocity]
        self.volume = [f.wx, f.wy, f.wz]
        self.surfaces = [self._surface(axis) for axis in range(3)]
        for axis in range(3):
            self._drop(axis)
        self.held = [np.ones(len(each.faces), bool) for each in self.surfaces]
        self.rubbed = [np.zeros(len(f.kind)) for _ in range(3)]

    @property
    def rubs(self) -> bool:
        """Whether some contact has friction."""
        return any((each.friction > 0.0).any() for each in self.surfaces)

    @property
    def idle(self) -> bool:
        """Whether nothing touches what separates."""
        return not any(len(each.faces) for each in self.surfaces)

    def _surface(self, axis: int) -> _Surface:
        contact = self.solid.contacts[axis]
        faces = np.flatnonzero((contact[:, 0] != 0.0) & (self.solid.states[axis] == HELD) & (self.mass[axis] > self.least))
        sign = contact[faces, 0]
        out = (sign > 0.0).astype(int)
        cells = np.where(out == 1, faces, beside(self.around, faces, axis, 0))
        mine = (cells >= 0) & (self.kind[cells] == INTERIOR)
        faces, sign, cells, out = faces[mine], sign[mine], cells[mine], out[mine]
        column = [faces]
        for _ in range(BEHIND):
            column.append(beside(self.around, column[-1], axis, 1 - out))
        return _Surface(faces, sign, contact[faces, 1], contact[faces, 2:], cells, np.array(column))

    def _drop(self, axis: int) -> None:
        """Let faces go that no pressure reaches and that leave by themselves: spray does not stick."""
        was = self.solid.states[axis].copy()
        let_go(self.solid, axis, self.free[axis])
        self.solid.states[axis][self.surfaces[axis].faces] = HELD
        gone = was != self.solid.states[axis]
        self.start[axis][gone] = self.free[axis][gone]

    # ---------------------------------------------------------------- one turn
    def begin(self) -> None:
        """Write the velocities that the next pressure solve begins with."""
        for axis in range(3):
            self.velocity[axis][:] = self.start[axis] + self.rubbed[axis]
            surface, gone = self.surfaces[axis], ~self.held[axis]
            self.velocity[axis][surface.faces[gone]] = self.free[axis][surface.faces[gone]]

    def changed(self, pressure: np.ndarray, tolerance: float) -> bool:
        """Let go of faces that would pull, hold those that sink in, after a solve; return whether any did.

        Args:
            pressure: Pressure of the cells [Pa].
            tolerance: Share of the largest pressure, or speed, that counts as none.
        """
        any_change, least = False, -tolerance * float(np.abs(pressure).max(initial=0.0))
        slow = -tolerance * max(float(np.abs(v).max(initial=0.0)) for v in self.velocity)
        for axis, surface in enumerate(self.surfaces):
            faces, held = surface.faces, self.held[axis]
            if not len(faces):
                continue
            speed = self.solid.speeds[axis][faces]
            density = self.mass[axis][faces] / self.volume[axis][faces]
            stopped = surface.sign * (speed - self.free[axis][faces])
            inside = pressure[surface.cells] + stopped * density * self.h / self.dt
            leaving = surface.sign * (self.velocity[axis][faces].astype(float) - speed)
            now = np.where(held, inside >= least, leaving < slow)
            if (now != held).any():
                self.held[axis], any_change = now, True
                self._mark(axis)
        return any_change

    def _mark(self, axis: int) -> None:
        """Write the states of the faces: what lies behind one that is let go follows it."""
        surface, held, state = self.surfaces[axis], self.held[axis], self.solid.states[axis]
        state[surface.faces] = np.where(held, HELD, FREE)
        for behind in surface.column[1:]:
            there = behind >= 0
            follows = SLIDING + 2 * axis + (surface.sign > 0.0).astype(np.int32)
            state[behind[there]] = np.where(held, HELD, follows)[there]

    def rub(self, pressure: np.ndarray) -> bool:
        """Find the friction that goes with a pressure and the velocities after it; return whether it changed.

        Args:
            pressure: Pressure of the cells [Pa].
        """
        bound, sliding = ([np.zeros(len(self.kind)) for _ in range(3)] for _ in range(2))
        for axis, surface in enumerate(self.surfaces):
            there = surface.column >= 0
            given = np.where(there, self.mass[axis][surface.column], 0.0)
            stopped = np.where(there, self.solid.speeds[axis][surface.faces] - self.free[axis][surface.column], 0.0)
            normal = self.h**2 * self.dt * pressure[surface.cells] + surface.sign * (given * stopped).sum(axis=0)
            share = np.where(self.held[axis], 0.5 * surface.friction * np.maximum(normal, 0.0), 0.0)
            for k in (1, 2):
                along = (axis + k) % 3
                for side in (0, 1):
                    faces = surface.cells if side == 0 else beside(self.around, surface.cells, along, 1)
                    np.add.at(bound[along], faces, share)
                    sliding[along][faces] = surface.sliding[:, k - 1]
        return self._slowed(bound, sliding)

    def _slowed(self, bound: list[np.ndarray], sliding: list[np.ndarray]) -> bool:
        """Take friction from faces that bear a load; all of their speed at most.

        Args:
            bound: Most impulse that friction may take from the faces of each axis [N s].
            sliding: Velocity of the body along them [m/s].
        """
        change = most = 0.0
        places = [np.flatnonzero((bound[axis] > 0.0) & (self.solid.states[axis] == FREE)) for axis in range(3)]
        bare = [v.astype(float) - body - rubbed for v, body, rubbed in zip(self.velocity, sliding, self.rubbed, strict=True)]
        for axis, faces in enumerate(places):
            own = bare[axis][faces]
            across = np.zeros(len(faces))
            low = beside(self.around, faces, axis, 0)
            for k in (1, 2):
                other = (axis + k) % 3
                four = [faces, low, beside(self.around, faces, other, 1), beside(self.around, low, other, 1)]
                four_there = [(each >= 0) & (bound[other][each] > 0.0) for each in four]
                total = sum(np.where(there, bare[other][each], 0.0) for each, there in zip(four, four_there, strict=True))
                count = sum(there.astype(float) for there in four_there)
                across += (total / np.maximum(count, 1.0)) ** 2
            speed = np.maximum(np.sqrt(own**2 + across), 1e-300)
            taken = -own * np.minimum(1.0, bound[axis][faces] / (self.mass[axis][faces] * speed))
            # by momentum: faces with hardly any mass turn with every pressure, and move nothing
            mass = self.mass[axis][faces]
            change = max(change, float(np.abs(mass * (taken - self.rubbed[axis][faces])).max(initial=0.0)))
            most = max(most, float(np.abs(mass * taken).max(initial=0.0)))
            self.rubbed[axis][:] = 0.0
            self.rubbed[axis][faces] = taken
        return change > SETTLED * most
