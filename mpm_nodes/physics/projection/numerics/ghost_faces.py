"""Ghost values on faces inside sticky bodies, mirrored at level surfaces: matter that does not slip has the body's velocity there.

| symbol | meaning | unit |
|---|---|---|
| d | way from a face inside to the surface | cells |
| k | way from it to the first face outside, the leader | cells |
| a | -d / (k - d) | - |
| v_f, v_l | velocities of the face inside and of the leader | m/s |
| b_f, b_l | velocities of the body there | m/s |

    v_f - b_f = a (v_l - b_l)

The faces of a staggered grid along a surface lie half a cell before and behind it, and the splines of matter reach those behind.
Were these held at the velocity of the body, it would be met where they are, and matter that is sheared would slip. With the line
through the surface in their place they are not unknowns: what pushes them pushes the leader a times as much, and m_l + a^2 m_f is
its mass (the rows of a Galerkin method for velocities that are bound so). The pressure does not know of it: no flux passes a
surface.

Long levers feed on themselves: with a = -9 the open end of a layer on a slope began to swing. k - d is `NEAREST` at least, and
-a m_f `HEAVIEST` m_l at most, which undisturbed matter reaches at that lever. Matter that lies in the body is thereby held by it,
not mirrored.

Only faces along surfaces that lie along the grid are mirrored; to others matter clings (`kernels.solid_faces`). On
slopes velocities along the surface have parts on all axes, one of them across it. Mirrored alike they hold a layer's stress to 2 %,
but draw all matter off a ball that comes out of a bath; each mirrored by its direction, with what the other axes tell, they are not
stable.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.physics.projection.kernels.pressure import Fields
from mpm_nodes.physics.projection.kernels.solid_faces import DEPTH, FREE, HELD, OUTWARDS, SLIDING, SLOPE
from mpm_nodes.physics.projection.numerics.face_contacts import SolidFaces, beside
from mpm_nodes.physics.projection.numerics.slipping import JoinedFaces
from mpm_nodes.solver.grid import LEAST_MASS
from mpm_nodes.solver.staggered import AXES, StaggeredStore, neighbour_blocks

__all__ = ["GhostFaces"]

NEAREST = 0.25
"""Least way from a surface to the face before it [cells]: no lever is longer than -3 in the first cell."""
MOST_STEPS = 3
"""Cells between a face inside and the one that leads: stencils reach 3/2 cells deep, and more where surfaces lie off the nodes."""
LONGEST = 4
"""Faces that may follow each other in the corner of several bodies."""
HEAVIEST = 0.3
"""Largest share of a leader's mass by which what it leads is pushed the other way."""


class _Axis(NamedTuple):
    """The mirrored faces of an axis.

    Attributes:
        faces, leaders: Their places, and those of the faces that they mirror, shape (n,), int64.
        factor: a.
        apart: b_f - a b_l [m/s].
    """

    faces: np.ndarray
    leaders: np.ndarray
    factor: np.ndarray
    apart: np.ndarray


class _Links(NamedTuple):
    """Whom faces follow at first: those inside sticky bodies the first face that another body or none holds, sliding ones the next.

    Attributes:
        faces: Their places in order, shape (n,), int64.
        targets: The places of those that they follow, -1 where there is none.
        factor: Their share of its velocity.
        apart: What they have besides [m/s].
        speed: Velocity of the body [m/s]; nan at faces that slide.
    """

    faces: np.ndarray
    targets: np.ndarray
    factor: np.ndarray
    apart: np.ndarray
    speed: np.ndarray


class GhostFaces:
    """The mirrored faces of all axes.

    Args:
        solid: What bodies hold; faces that slide beside mirrored ones are held with them, and mirror what those do.
        staggered: The grid, with masses of the faces.
    """

    def __init__(self, solid: SolidFaces, staggered: StaggeredStore | JoinedFaces) -> None:
        self.axes = [self._of_axis(axis, solid, staggered) for axis in range(3)]

    @staticmethod
    def _of_axis(axis: int, solid: SolidFaces, staggered: StaggeredStore | JoinedFaces) -> _Axis:
        state, mass = solid.states[axis], staggered.array(f"face_{AXES[axis]}")[3::4]
        least = LEAST_MASS[staggered.dtype] * staggered.grid.particle_mass
        sticky = _sticky_links(axis, solid, staggered, mass, least)
        if not len(sticky.faces):
            return _Axis(*sticky[:4])
        sliding = _sliding_links(state, mass, least, neighbour_blocks(staggered.grid))
        order = np.argsort(np.concatenate((sticky.faces, sliding.faces)), kind="stable")
        faces, leaders, factor, apart, speed = (np.concatenate(pair)[order] for pair in zip(sticky, sliding, strict=True))
        for _ in range(LONGEST):
            at = np.minimum(np.searchsorted(faces, leaders), len(faces) - 1)
            follows = faces[at] == leaders
            speed = np.where(np.isnan(speed) & follows, speed[at], speed)
            apart = np.where(follows, factor * apart[at] + apart, apart)
            leaders, factor = np.where(follows, leaders[at], leaders), np.where(follows, factor * factor[at], factor)
        kept = (leaders >= 0) & (state[leaders] == FREE) & (mass[leaders] > least) & ~np.isnan(speed)
        found = _Axis(faces[kept], leaders[kept], factor[kept], apart[kept])
        state[found.faces], solid.speeds[axis][found.faces] = HELD, speed[kept]
        return found

    @property
    def idle(self) -> bool:
        """Whether there are none."""
        return not any(len(each.faces) for each in self.axes)

    @staticmethod
    def velocities(fields: Fields) -> list[np.ndarray]:
        """Return the velocities of the faces of each axis [m/s], as views."""
        return [v[::4][: len(fields.kind)] for v in (fields.vx, fields.vy, fields.vz)]

    def own(self, fields: Fields) -> list[np.ndarray]:
        """Return the velocities of the mirrored faces of each axis [m/s], before they are given that of the body."""
        return [v[each.faces].astype(float) for v, each in zip(self.velocities(fields), self.axes, strict=True)]

    def extend(self, values: list[np.ndarray], apart: bool = True) -> None:
        """Give mirrored faces their velocity.

        Args:
            values: Velocities of the faces of each axis [m/s], shape (64 count,); written.
            apart: Whether bodies move; else as if all of them were at rest.
        """
        for v, each in zip(values, self.axes, strict=True):
            v[each.faces] = each.factor * v[each.leaders].astype(float) + (each.apart if apart else 0.0)

    def hand_over(self, pushes: list[np.ndarray]) -> None:
        """Add what pushes mirrored faces to those that lead: the adjoint of `extend` with bodies at rest.

        Args:
            pushes: Impulses on the faces of each axis [N s], or any sums over mirrored faces, shape (64 count,); written.
        """
        for push, each in zip(pushes, self.axes, strict=True):
            np.add.at(push, each.leaders, each.factor * push[each.faces])

    def bind(self, masses: list[np.ndarray], free: list[np.ndarray], unknowns: tuple[list[np.ndarray], list[np.ndarray]]) -> None:
        """Add masses and momenta of mirrored faces to those that lead.

        Args:
            masses: Masses of the faces of each axis [kg], shape (64 count,).
            free: What they have as velocities by themselves [m/s].
            unknowns: Masses [kg] and momenta [N s] of the faces that are unknowns; written.
        """
        for mass, v, whole, momentum, each in zip(masses, free, *unknowns, self.axes, strict=True):
            m = mass[each.faces].astype(float)
            np.add.at(whole, each.leaders, each.factor**2 * m)
            np.add.at(momentum, each.leaders, each.factor * m * (v[each.faces] - each.apart))

    def fold(self, fields: Fields, rest: np.ndarray, own: list[np.ndarray], crossed: np.ndarray) -> None:
        """Add masses, momenta and volumes of mirrored faces to those that lead.

        Args:
            fields: With volumes and masses of single faces; written.
            rest: Volumes of the particles of the faces [m^3], shape (192 count,); written.
            own: Velocities that mirrored faces have by themselves [m/s] (`own`).
            crossed: Whether a face's spline ends in bodies that cut faces (`face_volumes`), shape (192 count,): these lead none.
        """
        if self.idle:
            return
        masses, volumes, velocities = (fields.nx, fields.ny, fields.nz), (fields.wx, fields.wy, fields.wz), self.velocities(fields)
        for axis, each in enumerate(self.axes):
            kept = crossed[3 * each.leaders + axis] == 0
            self.axes[axis] = faces, leaders, factor, _ = _Axis(*(column[kept] for column in each))
            own[axis] = own[axis][kept]
            lost = np.zeros(len(volumes[axis]))
            np.add.at(lost, leaders, factor * masses[axis][faces])
            volumes[axis][:] *= 1.0 + np.divide(lost, masses[axis], out=np.zeros_like(lost), where=lost != 0.0)
            np.add.at(rest, 3 * leaders + axis, factor * rest[3 * faces + axis])
        alone = [v.astype(float) for v in velocities]
        momenta = [mass * v for mass, v in zip(masses, alone, strict=True)]
        for v, each, its in zip(alone, self.axes, own, strict=True):
            v[each.faces] = its
        self.bind(list(masses), alone, (list(masses), momenta))
        for v, momentum, mass, each in zip(velocities, momenta, masses, self.axes, strict=True):
            v[each.leaders] = momentum[each.leaders] / mass[each.leaders]


def _sticky_links(axis: int, solid: SolidFaces, staggered: StaggeredStore | JoinedFaces, mass: np.ndarray, least: float) -> _Links:
    """Return the links of faces with mass inside sticky bodies."""
    state, inside, around = solid.states[axis], solid.inside[axis], neighbour_blocks(staggered.grid)
    faces = np.flatnonzero(state == HELD)
    faces = faces[(inside[faces, OUTWARDS] > 0.0) & (mass[faces] > least)]
    way = inside[faces, OUTWARDS]
    targets, steps, place = np.full(len(faces), -1), np.zeros(len(faces)), faces
    for step in range(1, MOST_STEPS + 1):
        place = _next(around, place, way.astype(np.int64) - 1)
        other = (state[place] != HELD) | ((inside[place, OUTWARDS] > 0.0) & (inside[place, OUTWARDS] != way))
        found = (targets < 0) & (place >= 0) & other
        targets, steps = np.where(found, place, targets), np.where(found, step, steps)
    depth, speed = inside[faces, DEPTH], solid.speeds[axis][faces]
    factor = -depth / np.maximum(steps - depth, NEAREST)
    factor = np.maximum(factor, -HEAVIEST * mass[targets].astype(float) / mass[faces])
    return _Links(faces, targets, factor, speed - factor * (speed + steps * inside[faces, SLOPE]), speed)


def _sliding_links(state: np.ndarray, mass: np.ndarray, least: float, around: np.ndarray) -> _Links:
    """Return the links of faces with mass that slide."""
    faces = np.flatnonzero(state >= SLIDING)
    faces = faces[mass[faces] > least]
    count = len(faces)
    return _Links(faces, _next(around, faces, state[faces] - SLIDING), np.ones(count), np.zeros(count), np.full(count, np.nan))


def _next(around: np.ndarray, places: np.ndarray, way: np.ndarray) -> np.ndarray:
    """Return the places beside places, each its own way: 2 axis + side."""
    for along in range(3):
        places = np.where(way >> 1 == along, beside(around, places, along, way & 1), places)
    return places
