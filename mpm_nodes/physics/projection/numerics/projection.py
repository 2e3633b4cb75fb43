"""The projection of face velocities: bodies in, pressure solves, velocities without (or with the allowed) divergence out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mpm_nodes.kernels.algebra.krylov import Solution
from mpm_nodes.kernels.collisions.open_share import find_open_shares
from mpm_nodes.kernels.collisions.rules import OPEN, STICKY
from mpm_nodes.kernels.level_sets.level_set import BOX, KIND, PLANE, POSE, RULE, Bodies, WallPlanes
from mpm_nodes.physics.projection.kernels import (
    face_vectors,
    face_volumes,
    open_faces,
    pressure,
    slipping,
    solid_faces,
    velocity_extrapolation,
)
from mpm_nodes.physics.projection.kernels.pressure import Fields
from mpm_nodes.physics.projection.numerics.coupling import Coupling
from mpm_nodes.physics.projection.numerics.face_contacts import EXTENSIONS, FaceContacts, OpenFaces, SolidFaces, clinging_to
from mpm_nodes.physics.projection.numerics.ghost_faces import GhostFaces
from mpm_nodes.physics.projection.numerics.pressure_solver import PressureSolver
from mpm_nodes.physics.projection.numerics.pushing_cells import PushingCells
from mpm_nodes.physics.projection.numerics.shape_response import ShapeResponse
from mpm_nodes.physics.projection.numerics.slipping import JoinedFaces
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.grid import LEAST_MASS
from mpm_nodes.solver.staggered import AXES, StaggeredStore, neighbour_blocks

__all__ = ["Projected", "ProjectionSettings", "fields_of", "free_velocity", "project_faces", "solid_faces_of"]


@dataclass(frozen=True)
class ProjectionSettings:
    """How a projection is done.

    Attributes:
        correction: Share of the volume error that incompressible matter takes back in a substep.
        control_volumes: Whether faces have the volume of matter around them; off only to show what that does.
        tolerance: Residual at which the solve stops, over that of the right side.
        most: Most iterations of one solve.
        gravity: Acceleration in the velocities [m/s^2].
        turns: Most solves in which separating contacts and their friction are found; 1 leaves all of them held and smooth.
        coupling: What may be left of the difference between the answers of shape and pressure one by one and together, over what
            both do in the substep.
        most_coupled: Most iterations of that solve.
        sparse: Whether what liquids take of the cells is known.
    """

    correction: float = 1.0
    control_volumes: bool = True
    tolerance: float = 1e-8
    most: int = 2000
    gravity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    turns: int = 1
    coupling: float = 1e-3
    most_coupled: int = 200
    sparse: bool = False


@dataclass(frozen=True)
class Projected:
    """What a projection did.

    Attributes:
        solution: How the last linear solve went.
        pressure: Pressure of the cells [Pa], shape (64 count,).
        kind: Kinds of the cells (`kernels.pressure`), shape (64 count,).
        solves: How many solves contacts took.
        settled: Whether the contacts were found in them.
        divergence: Largest |div v| of interior cells afterwards [1/s].
        pockets: Parts of the interior without a free surface.
        fields: What it worked on.
        rank: Which faces follow others, as `velocity_extrapolation.extend` left it.
        coupled: How the solve of shape and pressure together went, None where there was none.
    """

    solution: Solution
    pressure: np.ndarray
    kind: np.ndarray
    divergence: float
    pockets: int
    fields: Fields
    rank: np.ndarray
    solves: int = 1
    settled: bool = True
    coupled: Solution | None = None


def project_faces(
    staggered: StaggeredStore | JoinedFaces,
    colliders: ColliderSet,
    dt: float,
    settings: ProjectionSettings,
    check: Callable[[], None] = lambda: None,
    response: ShapeResponse | None = None,
) -> Projected:
    """Hold faces at bodies and project the velocities of the others.

    Args:
        staggered: Grid with masses, momenta, velocities, and the dilations and compressibility of the cells.
        colliders: Bodies posed at the end of the substep.
        dt: Substep [s].
        settings: How.
        check: Called now and then; raises to end the solve.
        response: Shape and viscosity of the matter, to be solved together with the pressure; None leaves them as they are.
    """
    count = staggered.count
    solid = solid_faces_of(staggered, colliders, dt)
    fields = fields_of(staggered, solid, dt, settings)
    ghosts = GhostFaces(solid, staggered)
    own = ghosts.own(fields)
    pressure.classify(count, fields)
    rank, old, offset = np.empty(192 * count, np.uint8), np.empty(192 * count), np.zeros(192 * count)
    _give_volumes(staggered, colliders, fields, settings, (rank, old, offset), (ghosts, own))
    solver = PressureSolver(staggered, fields, settings, check)
    free = [free_velocity(staggered, axis, dt, g) for axis, g in zip(AXES, settings.gravity, strict=True)]
    clinging = [clinging_to(solid, axis) for axis in range(3)]
    coupling = Coupling(solver, response, free, (rank, offset), ghosts, clinging) if response is not None else None
    solves, settled, rubbed = 1, True, [np.zeros(64 * count) for _ in AXES]
    cuts = PushingCells(fields, solid.open, settings.correction)
    if settings.turns > 1 and (any(contact[:, 0].any() for contact in solid.contacts) or not cuts.idle):
        contacts = FaceContacts(fields, solid, free)
        solves, settled = _meet(contacts, cuts, solver, settings)
        rubbed = [one + other for one, other in zip(contacts.rubbed, cuts.rubbed, strict=True)]
    else:
        solver.solve()
    found = np.empty(64 * count)
    pressure.find_done(count, fields, rank)
    if solver.slip is not None:
        pressure.divergences(count, fields, found)
        # followers take what p pushes alone: q gives liquid and solid no momentum together
        slipping.push(fields, solver.slip, -1.0)
    velocity_extrapolation.extend(count, fields, rank, old, offset, EXTENSIONS)
    if coupling is not None:
        coupling.solve(solid, rubbed, old)
        velocity_extrapolation.extend(count, fields, rank, old, offset, EXTENSIONS)
    if solver.slip is None:
        pressure.divergences(count, fields, found)
    ghosts.extend(ghosts.velocities(fields))
    if solver.joined is not None and solver.slip is not None:
        solver.joined.part(fields, solver.slip, solver.p, solver.before)
    worst = float(np.abs(found).max(initial=0.0))
    coupled = coupling.solution if coupling is not None else None
    pockets = len(solver.pockets)
    return Projected(solver.solution, solver.pressure, fields.kind, worst, pockets, fields, rank, solves, settled, coupled)


def _give_volumes(
    staggered: StaggeredStore | JoinedFaces,
    colliders: ColliderSet,
    fields: pressure.Fields,
    settings: ProjectionSettings,
    following: tuple[np.ndarray, np.ndarray, np.ndarray],
    ghosted: tuple[GhostFaces, list[np.ndarray]],
) -> None:
    """Write control volumes and masses of the faces, add those that follow to those that lead, and note what they differ by.

    Without control volumes every face is by itself, with the volume of a cell.
    """
    count, (rank, left, offset), (ghosts, own) = staggered.count, following, ghosted
    crossed = np.empty(192 * count, np.uint8)
    face_volumes.spread_volumes(count, fields, crossed)
    if not settings.control_volumes:
        return
    _cut_by_walls(staggered, colliders, fields)
    rest = np.stack([staggered.array(f"force_{axis}")[3 : 256 * count : 4] for axis in AXES], axis=1).astype(float).reshape(-1)
    ghosts.fold(fields, rest, own, crossed)
    pressure.find_done(count, fields, rank)
    if isinstance(staggered, JoinedFaces):
        staggered.weigh_followers(fields, rank)
    velocity_extrapolation.fold(count, fields, rank, rest, left, EXTENSIONS)
    velocity_extrapolation.find_offsets(count, fields, rank, offset, left, EXTENSIONS)
    face_volumes.trim_volumes(count, fields, crossed, rest)


def _cut_by_walls(staggered: StaggeredStore | JoinedFaces, colliders: ColliderSet, fields: pressure.Fields) -> None:
    """Take from control volumes what lies behind walls between nodes: they were written as if these stood on the nodes behind."""
    (box, rules), bodies = colliders.shapes()
    shift, h, count = staggered.origin - colliders.origin, staggered.h, staggered.count
    cells = (box - shift) / h
    behind = np.stack([np.floor(cells[0] + solid_faces.TOUCHING), np.ceil(cells[1] - solid_faces.TOUCHING)])
    between = (np.abs(behind - cells) > solid_faces.TOUCHING) & (rules[:6].reshape(3, 2).T < OPEN)
    if not between.any():
        return
    none = bodies._replace(integer=bodies.integer[:0], real=bodies.real[:0])
    for axis, volumes in enumerate((fields.wx, fields.wy, fields.wz)):
        faces = shift + 0.5 * h * (np.arange(3) != axis)
        shares = [np.empty(64 * count), np.empty(64 * count)]
        for corners, opened in zip((box, shift + h * behind), shares, strict=True):
            find_open_shares(staggered.blocks, h, faces, WallPlanes(corners, rules), none, opened)
        volumes *= np.divide(shares[0], shares[1], out=np.ones(64 * count), where=shares[1] > 0.0)


def _meet(contacts: FaceContacts, cuts: PushingCells, solver: PressureSolver, settings: ProjectionSettings) -> tuple[int, bool]:
    """Solve until contacts and friction fit the pressure; return how many solves there were, and whether they do."""
    for turn in range(1, settings.turns + 1):
        contacts.begin()
        cuts.begin()
        solver.solve(again=turn > 1)
        changed = contacts.changed(solver.pressure, settings.tolerance)
        if contacts.rubs:
            changed |= contacts.rub(solver.pressure)
        changed |= cuts.changed(solver.pressure, settings.tolerance)
        if not changed:
            return turn, True
    return settings.turns, False


def free_velocity(staggered: StaggeredStore | JoinedFaces, axis: str, dt: float, gravity: float) -> np.ndarray:
    """Return v + dt (f / m + g) of the faces of an axis, as if nothing held them [m/s], shape (64 count,)."""
    velocity = np.empty(256 * staggered.count)
    arrays = (staggered.array(f"face_{axis}"), staggered.array(f"force_{axis}"), velocity)
    face_vectors.advance_faces(staggered.count, *arrays, dt, gravity, staggered.grid.least_mass)
    return velocity[::4].copy()


def fields_of(
    staggered: StaggeredStore | JoinedFaces, solid: SolidFaces, dt: float, settings: ProjectionSettings
) -> pressure.Fields:
    """Return what the projection works on, with the faces that bodies hold; volumes and masses of faces are still to be written."""
    count = staggered.count
    least = LEAST_MASS[staggered.dtype] * staggered.grid.particle_mass
    volumes, correction = float(settings.control_volumes), settings.correction
    return pressure.Fields._make(
        (
            staggered.array("cell"),
            *(staggered.array(f"face_{axis}") for axis in AXES),
            *(staggered.array(f"velocity_{axis}") for axis in AXES),
            neighbour_blocks(staggered.grid),
            *solid.states,
            *solid.speeds,
            *(np.zeros(64 * count) for _ in AXES),
            *(np.zeros(64 * count) for _ in AXES),
            *solid.open.shares,
            *solid.open.carried,
            solid.open.room,
            staggered.array("pressure") if settings.sparse else np.zeros(256 * count),
            np.zeros(64 * count, np.int32),
            np.array([dt, staggered.h, least, volumes, correction]),
        )
    )


def solid_faces_of(staggered: StaggeredStore | JoinedFaces, colliders: ColliderSet, dt: float) -> SolidFaces:
    """Return what bodies and walls do to the faces.

    Args:
        staggered: The grid.
        colliders: Bodies posed at the end of the substep.
        dt: Substep [s].
    """
    count = 64 * staggered.count
    cells = np.zeros((count, 5))
    cells[:, 0], cells[:, 1] = np.inf, -1.0
    gaps = OpenFaces([np.ones(count) for _ in AXES], [np.zeros(count) for _ in AXES], np.ones(count), cells)
    solid = SolidFaces(
        [np.zeros(count, np.int32) for _ in AXES],
        [np.zeros(count) for _ in AXES],
        [np.zeros((count, 4)) for _ in AXES],
        [np.zeros((count, 3)) for _ in AXES],
        [np.full(count, np.nan) for _ in AXES],
        gaps,
    )
    if not colliders.idle:
        place = (staggered.blocks, staggered.h, staggered.origin - colliders.origin)
        walls, bodies = colliders.shapes()
        cut = _crossing(bodies)
        # what lies inside a body that clamps is part of it, and the matter before it has nothing to mirror
        clamps = np.array([each.clamp for each in colliders.colliders], bool)
        sticky = (bodies.integer[:, RULE] == STICKY) & ~clamps
        for axis, (state, speed, contact, inside, clings) in enumerate(zip(*solid[:5], strict=True)):
            faces = (state, speed, contact.reshape(-1), inside.reshape(-1), clings)
            solid_faces.find_solid_faces(axis, place, dt, walls, bodies, (cut, sticky, clamps), faces)
        if cut.any():
            for axis, shares in enumerate(zip(gaps.shares, gaps.carried, strict=True)):
                open_faces.find_open_faces(axis, place, dt, bodies, cut, shares)
            open_faces.find_open_cells(place, dt, bodies, cut, (gaps.room, cells.reshape(-1)))
    return solid


def _crossing(bodies: Bodies) -> np.ndarray:
    """Return which bodies cut faces: those that do not stick, but for planes and boxes that lie along the grid, bool."""
    turns = np.abs(bodies.real[:, POSE + 12 : POSE + 21].reshape(-1, 3, 3))
    level = turns.max(axis=1) > solid_faces.FLAT
    kind = bodies.integer[:, KIND]
    along = ((kind == PLANE) & level[:, 1]) | ((kind == BOX) & level.all(axis=1))
    return (bodies.integer[:, RULE] != STICKY) & ~along
