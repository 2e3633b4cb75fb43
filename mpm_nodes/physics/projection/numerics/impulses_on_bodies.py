"""What matter on the faces of the staggered grid gives to the bodies in it.

| symbol | meaning | unit |
|---|---|---|
| m, v*, v | mass of a face alone, its velocity before the stage and after it | kg, m/s |
| V | control volume of a face that the pressure pushes, 0 of one that bodies hold | m^3 |
| p | pressure of a cell | Pa |

Matter pushes itself in pairs: p of a cell pushes the two faces of an axis by -+ dt V p / h, and stress pushes all faces of a
particle's stencil, by nothing in the sum. Where the two faces of a cell have not the same V, the body between them bears the rest,
dt (V_+ - V_-) p / h (Batty 2007); and what changes the momentum m (v - v*) of a face beside that comes of the body, too: it holds
faces, and rubs on them. Either is given to the nearest among bodies and walls, so that momentum is kept to rounding, whatever the
stage does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

from mpm_nodes.data import Fact, Facts, Reduction, StepContext
from mpm_nodes.physics.projection.kernels import velocity_extrapolation
from mpm_nodes.physics.projection.kernels.pressure import INTERIOR, Fields
from mpm_nodes.physics.projection.kernels.solid_faces import FREE, HALF_DIAGONAL
from mpm_nodes.physics.projection.numerics.face_contacts import EXTENSIONS, beside
from mpm_nodes.physics.projection.numerics.shape_response import ShapeResponse
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.contact_forces import impulses_on_bodies
from mpm_nodes.solver.forces_on_bodies import tell_impulses
from mpm_nodes.solver.staggered import AXES, StaggeredStore

__all__ = ["MET", "FacesAndBodies", "Impulses", "meet", "move_bodies"]

MET = Facts(
    "bodies_in_projection",
    "How rigid bodies and the matter in projected substeps of a frame found one velocity.",
    (
        Fact("solves", "", Reduction.MAX, "Most solves of a stage."),
        Fact("unsettled", "", Reduction.SUM, "Stages in which both did not find it."),
    ),
)

Found = TypeVar("Found")

AWAY = 4.0
"""Cells from a body from which on it holds no faces: as far as splines reach, and what follows those faces. What tolerances of
solvers leave there goes to what is nearest to a block."""


def move_bodies(colliders: ColliderSet, step: StepContext) -> None:
    """Move the bodies that move by themselves through the substep as if there were no matter, if no stage has done so."""
    if colliders.rigid is not None and not colliders.rigid.has_moved(step):
        colliders.move_rigid_bodies(step)


class Impulses(NamedTuple):
    """What colliders get of the matter.

    Attributes:
        collider: Which of them, shape (n,).
        place: Where, shape (n, 3) [m].
        impulse: Shape (n, 3) [N s].
    """

    collider: np.ndarray
    place: np.ndarray
    impulse: np.ndarray


def meet(
    colliders: ColliderSet,
    staggered: StaggeredStore,
    step: StepContext,
    name: str,
    solve: Callable[[], Found],
    given: Callable[[FacesAndBodies, Found], Impulses],
) -> Found:
    """Solve a stage on the faces, until the bodies that move by themselves move as matter lets them; tell forces if asked to.

    Args:
        colliders: All bodies, posed.
        staggered: The grid, with the velocities that the stage begins with.
        step: The substep.
        name: Of the stage (see `MovedBodies.agree`).
        solve: Solves, with bodies as they are posed.
        given: Returns what they get.
    """
    if colliders.rigid is None and not step.contact_forces:
        return solve()
    faces, found, got = FacesAndBodies(colliders, staggered, step.dt), list[Found](), list[Impulses]()

    def solved(twists: np.ndarray | None) -> np.ndarray:
        faces.begin(twists)
        found[:] = [solve()]
        got[:] = [given(faces, found[0])]
        return faces.on_rigid_bodies(got[0])

    if colliders.rigid is None:
        solved(None)
    else:
        met = colliders.rigid.agree(solved, step, name)
        colliders.pose(step.time, step.time + step.dt)
        step.tell(MET, solves=met.solves, unsettled=int(not met.agrees))
    if step.contact_forces:
        tell_impulses(step, colliders, *got[0])
    return found[0]


class FacesAndBodies:
    """The colliders in a stage on the faces, where they are as the substep ends.

    Args:
        colliders: Bodies, posed.
        staggered: The grid.
        dt: Substep [s].
    """

    def __init__(self, colliders: ColliderSet, staggered: StaggeredStore, dt: float) -> None:
        self.colliders, self.staggered, self.dt = colliders, staggered, dt
        self.size = 64 * staggered.count
        self.before = [v.copy() for v in self._velocities()]
        self._centres = np.zeros((0, 3)) if colliders.rigid is None else colliders.rigid.centres()
        self._find_owners()

    def _velocities(self) -> list[np.ndarray]:
        """Return the velocities of the faces of each axis, as views."""
        return [self.staggered.array(f"velocity_{axis}")[: 4 * self.size : 4] for axis in AXES]

    def _find_owners(self) -> None:
        """Find the faces of each axis that are nearest to colliders, and not to walls."""
        grid, count = self.staggered, len(self.colliders.colliders)
        middle = grid.origin + grid.h * (4.0 * grid.blocks + 2.0)
        off = self.colliders.distances_of_all(middle)
        near = (off[:, :count] < (HALF_DIAGONAL + AWAY) * grid.h).any(axis=1).repeat(64)
        every, nearest = np.arange(self.size), off.argmin(axis=1).repeat(64)
        n = every & 63
        corner = 4 * grid.blocks[every >> 6] + np.stack([n >> 4, n >> 2 & 3, n & 3], axis=1)
        self._owned: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        for axis in range(3):
            place = grid.origin + grid.h * (corner + 0.5 * (np.arange(3) != axis))
            owner = nearest.copy()
            owner[near] = self.colliders.distances_of_all(place[near]).argmin(axis=1)
            mine = np.flatnonzero(owner < count)
            self._owned.append((mine, owner[mine], place[mine]))

    def begin(self, twists: np.ndarray | None) -> None:
        """Give the faces the velocities that the stage begins with, and the bodies that move by themselves others."""
        if twists is not None:
            self.colliders.turn_rigid_bodies(twists, self._centres)
        for velocity, before in zip(self._velocities(), self.before, strict=True):
            velocity[:] = before

    def changes(self) -> np.ndarray:
        """Return m (v - v*) of the faces [N s], shape (64 count, 3)."""
        masses = [self.staggered.array(f"face_{axis}")[3 : 4 * self.size : 4].astype(float) for axis in AXES]
        return np.stack(
            [m * (v.astype(float) - old) for m, v, old in zip(masses, self._velocities(), self.before, strict=True)], axis=1
        )

    def on_rigid_bodies(self, given: Impulses) -> np.ndarray:
        """Return the impulses on the bodies that move by themselves, and their moments, shape (n, 6) [N s, N m s]."""
        if self.colliders.rigid is None:
            return np.zeros((0, 6))
        numbers = self.colliders.rigid.numbers
        mine = np.isin(given.collider, numbers)
        body = np.searchsorted(numbers, given.collider[mine])
        arm = given.place[mine] - self.colliders.rigid.starts[body]
        return impulses_on_bodies(body, arm, given.impulse[mine], len(numbers))

    def given(self, push: np.ndarray) -> Impulses:
        """Return what colliders get, where they give to faces what `push` says, shape (64 count, 3) [N s]."""
        each = [(level, place, -push[points, axis]) for axis, (points, level, place) in enumerate(self._owned)]
        along = np.repeat(np.eye(3), [len(impulse) for _, _, impulse in each], axis=0)
        level, place, impulse = (np.concatenate(part) for part in zip(*each, strict=True))
        return Impulses(level, place, impulse[:, None] * along)

    def given_by_pressure(self, f: Fields, pressure: np.ndarray, rank: np.ndarray) -> Impulses:
        """Return the impulses of a projection on the bodies (see `given`).

        Args:
            f: What the projection worked on.
            pressure: Of the cells [Pa].
            rank: Which faces follow others, as `velocity_extrapolation.extend` left it.
        """
        push, pressed = self.changes(), np.zeros((self.size, 3))
        p, every, least = np.where(f.kind == INTERIOR, pressure, 0.0), np.arange(self.size), f.numbers[2]
        faces = ((f.sx, f.tx, f.wx, f.nx), (f.sy, f.ty, f.wy, f.ny), (f.sz, f.tz, f.wz, f.nz))
        for axis, (state, share, volume, mass) in enumerate(faces):
            volume = np.where((state == FREE) & (share > 0.0) & (mass > least), volume, 0.0) * self.dt / self.staggered.h
            low, high = (beside(f.around, every, axis, side) for side in (0, 1))
            push[:, axis] += volume * (p - np.where(low >= 0, p[low], 0.0))
            beyond = np.where(high >= 0, volume[high], 0.0)
            # of the two faces of a cell the body is at that which it shuts more
            np.add.at(pressed[:, axis], np.where((high >= 0) & (beyond < volume), high, every), p * (beyond - volume))
        flat = push.reshape(-1)
        velocity_extrapolation.hand_over(self.staggered.count, f, rank, flat, EXTENSIONS)
        flat[rank > 1] = 0.0
        return self.given(push + pressed)

    def given_by_shape(self, response: ShapeResponse) -> Impulses:
        """Return the impulses of a semi-implicit step on the bodies (see `given`).

        Args:
            response: K, which tells what matter gives to itself.
        """
        own = response.change(np.concatenate(self._velocities())).reshape(3, -1).astype(float)
        return self.given(self.changes() + self.dt * own.T)
