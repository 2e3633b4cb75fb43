"""What matter on the faces of the staggered grid gives to the rigid bodies in it.

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
from typing import TypeVar

import numpy as np

from mpm_nodes.data import Fact, Facts, Reduction, StepContext
from mpm_nodes.physics.projection.kernels import velocity_extrapolation
from mpm_nodes.physics.projection.kernels.pressure import INTERIOR, Fields
from mpm_nodes.physics.projection.kernels.solid_faces import FREE, HALF_DIAGONAL
from mpm_nodes.physics.projection.numerics.face_contacts import EXTENSIONS, beside
from mpm_nodes.physics.projection.numerics.shape_response import ShapeResponse
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.contact_forces import impulses_on_bodies
from mpm_nodes.solver.rigid.agreement import agree
from mpm_nodes.solver.rigid.bodies import RigidBodies
from mpm_nodes.solver.staggered import AXES, StaggeredStore

__all__ = ["MET", "FacesAndBodies", "meet", "move_bodies"]

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


def meet(
    colliders: ColliderSet,
    staggered: StaggeredStore,
    step: StepContext,
    name: str,
    solve: Callable[[], Found],
    given: Callable[[FacesAndBodies, Found], np.ndarray],
) -> Found:
    """Solve a stage on the faces, until the bodies that move by themselves move as matter lets them.

    Args:
        colliders: All bodies, posed.
        staggered: The grid, with the velocities that the stage begins with.
        step: The substep.
        name: Of the stage (see `agreement.agree`).
        solve: Solves, with bodies as they are posed.
        given: Returns the impulses on the bodies, and their moments, shape (n, 6) [N s, N m s].
    """
    if colliders.rigid is None:
        return solve()
    faces, found = FacesAndBodies(colliders, staggered, step.dt), list[Found]()

    def solved(twists: np.ndarray) -> np.ndarray:
        faces.begin(twists)
        found[:] = [solve()]
        return given(faces, found[0])

    met = agree(faces.bodies, solved, step, name)
    colliders.pose(step.time, step.time + step.dt)
    step.tell(MET, solves=met.solves, unsettled=int(not met.agrees))
    return found[0]


class FacesAndBodies:
    """The rigid bodies in a stage on the faces, where they are as the substep ends.

    Args:
        colliders: Bodies, some that move by themselves, posed.
        staggered: The grid.
        dt: Substep [s].
    """

    def __init__(self, colliders: ColliderSet, staggered: StaggeredStore, dt: float) -> None:
        assert colliders.rigid is not None
        self.colliders, self.staggered, self.dt = colliders, staggered, dt
        self.bodies: RigidBodies = colliders.rigid
        self.size = 64 * staggered.count
        self.before = [v.copy() for v in self._velocities()]
        self._centres = self.bodies.world.centres()
        self._find_owners()

    def _velocities(self) -> list[np.ndarray]:
        """Return the velocities of the faces of each axis, as views."""
        return [self.staggered.array(f"velocity_{axis}")[: 4 * self.size : 4] for axis in AXES]

    def _find_owners(self) -> None:
        """Find the faces, and cells, that are nearest to rigid bodies, by axis (3 stands for the cells)."""
        grid, world = self.staggered, self.bodies.world
        middle = grid.origin + grid.h * (4.0 * grid.blocks + 2.0)
        off = self.colliders.distances_of_all(middle)
        near = (off[:, world.places] < (HALF_DIAGONAL + AWAY) * grid.h).any(axis=1).repeat(64)
        every, nearest = np.arange(self.size), off.argmin(axis=1).repeat(64)
        n = every & 63
        corner = 4 * grid.blocks[every >> 6] + np.stack([n >> 4, n >> 2 & 3, n & 3], axis=1)
        self._owned: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        for axis in range(4):
            place = grid.origin + grid.h * (corner + 0.5 * (np.arange(3) != axis))
            owner = nearest.copy()
            owner[near] = self.colliders.distances_of_all(place[near]).argmin(axis=1)
            mine = np.flatnonzero(np.isin(owner, world.places))
            body = np.searchsorted(world.places, owner[mine])
            self._owned.append((mine, body, place[mine] - world.starts[body]))

    def begin(self, twists: np.ndarray) -> None:
        """Give the faces the velocities that the stage begins with, and the bodies others."""
        self.colliders.turn_rigid_bodies(twists, self._centres)
        for velocity, before in zip(self._velocities(), self.before, strict=True):
            velocity[:] = before

    def changes(self) -> np.ndarray:
        """Return m (v - v*) of the faces [N s], shape (64 count, 3)."""
        masses = [self.staggered.array(f"face_{axis}")[3 : 4 * self.size : 4].astype(float) for axis in AXES]
        return np.stack(
            [m * (v.astype(float) - old) for m, v, old in zip(masses, self._velocities(), self.before, strict=True)], axis=1
        )

    def given(self, push: np.ndarray, pressed: np.ndarray | None = None) -> np.ndarray:
        """Return the impulses on the bodies, and their moments, shape (n, 6) [N s, N m s].

        Args:
            push: What bodies gave to faces, shape (64 count, 3) [N s].
            pressed: What they gave to cells by their pressure, shape (64 count, 3) [N s].
        """
        found = np.zeros((len(self.bodies.names_of_bodies), 6))
        for axis, (points, body, arm) in enumerate(self._owned):
            if axis < 3:
                impulses = np.zeros((len(points), 3))
                impulses[:, axis] = -push[points, axis]
            elif pressed is None:
                continue
            else:
                impulses = -pressed[points]
            found += impulses_on_bodies(body, arm, impulses, len(found))
        return found

    def given_by_pressure(self, f: Fields, pressure: np.ndarray, rank: np.ndarray) -> np.ndarray:
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
            open_volume = np.where((state == FREE) & (share > 0.0) & (mass > least), volume, 0.0) * self.dt / self.staggered.h
            low, high = (beside(f.around, every, axis, side) for side in (0, 1))
            push[:, axis] += open_volume * (p - np.where(low >= 0, p[low], 0.0))
            pressed[:, axis] = p * (np.where(high >= 0, open_volume[high], 0.0) - open_volume)
        flat = push.reshape(-1)
        velocity_extrapolation.hand_over(self.staggered.count, f, rank, flat, EXTENSIONS)
        flat[rank > 1] = 0.0
        return self.given(push, pressed)

    def given_by_shape(self, response: ShapeResponse) -> np.ndarray:
        """Return the impulses of a semi-implicit step on the bodies (see `given`).

        Args:
            response: K, which tells what matter gives to itself.
        """
        own = response.change(np.concatenate(self._velocities())).reshape(3, -1).astype(float)
        return self.given(self.changes() + self.dt * own.T)
