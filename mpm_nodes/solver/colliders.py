"""The colliders of a solve as the kernels see them: packed once a frame, posed once a substep."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt

from mpm_nodes.data import COLLIDERS, Collider, CollisionRule, Limit, StepContext, Walls
from mpm_nodes.data.ambient import at_frame
from mpm_nodes.graph.time import keys
from mpm_nodes.graph.time.clock import FrameClock
from mpm_nodes.kernels.collisions import contact_rows, node_surfaces, response, sides
from mpm_nodes.kernels.collisions import grid as collision_grid
from mpm_nodes.kernels.collisions import paths as collision_paths
from mpm_nodes.kernels.collisions import rules as collision
from mpm_nodes.kernels.collisions.image_nodes import find_around
from mpm_nodes.kernels.collisions.particle_blocks import ParticleBlocks
from mpm_nodes.kernels.collisions.paths import FARTHEST_WAY
from mpm_nodes.kernels.collisions.posing import PoseKeys, ShapeKeys, pose_bodies
from mpm_nodes.kernels.level_sets.level_set import (
    ADHESION,
    BODY_INTEGERS,
    BODY_REALS,
    FRICTION,
    HAS_VELOCITY,
    KIND,
    OWN_SPEED,
    PLATE,
    PLATES,
    POSE,
    RULE,
    SHEETS,
    SIZES,
    Bodies,
    LeafLevelSet,
    PosedLevelSets,
    WallPlanes,
    pack_level_sets,
)
from mpm_nodes.kernels.level_sets.sheet_fields import ThinSheet, sheet_lattices
from mpm_nodes.materials.values import FloatType
from mpm_nodes.solver.collider_shapes import checked_shape, fastest_pose, own_speed, time_to_travel
from mpm_nodes.solver.contact_forces import centres_of, volumes_of_nodes
from mpm_nodes.solver.contact_lists import ContactLists, listed_rows, told_of
from mpm_nodes.solver.device.contacts import DeviceContacts, SummedContacts, on_host_because
from mpm_nodes.solver.device.residency import ArrayParts
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.lost_on_paths import lost_on_paths
from mpm_nodes.solver.moved_bodies import MovedBodies, two_poses
from mpm_nodes.solver.near_blocks import blocks_around, blocks_in_contact, blocks_in_reach
from mpm_nodes.solver.plates import Splines, find_sheets, is_plate
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.stores import Store
from mpm_nodes.solver.told_nodes import ToldNodes
from mpm_nodes.solver.walls import WallSet

RULES = {CollisionRule.STICKY: collision.STICKY, CollisionRule.SLIP: collision.SLIP, CollisionRule.SEPARATE: collision.SEPARATE}
SPEED = Limit("collider speed", cure="the speed of the collider", against="speed")
OWN = Limit("collider")
MASS = 3
"""Place of the mass in a node of "momentum"."""
LIMITS = (SPEED, OWN)
"""What colliders limit the time step by."""


class ColliderSet(Store):
    """All colliders and walls of one solve over one frame.

    Args:
        colliders: In the order in which they act; the last one decides.
        walls: The domain's walls, or None for an unbounded domain; a `WallSet` where they move.
        dtype: Float type of the solve (poses and distances are float64 whatever it is).
        origin: Point that kernels measure positions from [m]; the solve's origin keeps far scenes precise.
        previous: The set of the frame before: level sets that are still the same are not packed again.
        clock: The clock over the frame; None where seconds of the shot and simulated seconds are the same.
        two_sided: Splines through whose width plates keep what lies on their two sides apart; None: none does.
        rigid: The bodies that move by themselves, in a frame that has begun; None: none does.

    Attributes:
        colliders: As given.
        plates: Place of the body of each plate that keeps its sides apart, shape (n,), int64.
        walls: The walls.
        fastest: Bound on the speed of any body during this frame [m/s], for the choice of dt.
        fastest_name: Name of the body that it is the speed of; "" for a wall.
        marked: What `sides` found of a grid's nodes by these plates; None: nothing yet.
        painted: Whether friction or adhesion of any varies over it.
        sticks: Whether matter sticks to any by a strength.
        volume: Where it does, (-, -, -, volume of the matter) of the grid's nodes, flat [m^3]; the solver writes it.

    Raises:
        MpmNodesError: A collider without a usable shape.
    """

    domain = COLLIDERS
    _lattices: tuple[np.ndarray, ...]
    _centres: np.ndarray

    def __init__(
        self,
        colliders: Sequence[Collider],
        walls: Walls | WallSet | None = None,
        dtype: FloatType = np.float32,
        origin: npt.ArrayLike = (0.0, 0.0, 0.0),
        previous: ColliderSet | None = None,
        clock: FrameClock | None = None,
        two_sided: Splines | None = None,
        rigid: MovedBodies | None = None,
    ) -> None:
        self.rigid = rigid
        self._clock, self._pace = clock, 1.0 if clock is None else clock.pace
        self.colliders = tuple(colliders)
        self.dtype = np.dtype(dtype)
        self.origin = np.array(origin, np.float64)
        self.walls = walls if isinstance(walls, WallSet) else WallSet(walls, self.origin)
        shapes = [checked_shape(collider) for collider in self.colliders]
        if rigid is not None:
            shapes = [two_poses(each) if c.rigid is not None else each for c, each in zip(self.colliders, shapes, strict=True)]
        self._integer = np.zeros((len(shapes), BODY_INTEGERS), np.int64)
        self._real = np.zeros((len(shapes), BODY_REALS))
        for b, (collider, shape) in enumerate(zip(self.colliders, shapes, strict=True)):
            moving = bool(shape.level_sets) and all(part.velocities is not None for part in shape.level_sets)
            self._integer[b, [KIND, RULE, HAS_VELOCITY]] = shape.kind, RULES[collider.rule], moving
            self._real[b, [FRICTION, ADHESION]] = collider.friction, collider.adhesion
            self._real[b, SIZES : SIZES + len(shape.sizes)] = shape.sizes
            self._real[b, OWN_SPEED] = own_speed(shape) / self._pace
        self._splines = two_sided
        self._sheets: dict[int, tuple[ThinSheet, ...]] = {}
        self._pack_keys(shapes)
        self._pack_level_sets(shapes, previous)
        self._number_plates()
        speeds = [(fastest_pose(shape) + own_speed(shape)) / self._pace for shape in shapes]
        self.fastest = max([*speeds, self.walls.fastest])
        self.fastest_name = next((each.name for each, v in zip(self.colliders, speeds, strict=True) if v == self.fastest), "")
        free = [b for b, collider in enumerate(self.colliders) if not collider.clamp]
        own = [fastest_pose(shapes[b]) + own_speed(shapes[b]) for b in np.unique(self.plates)]
        self._plates_speed = max(own, default=0.0) / self._pace
        self.marked: Any = None
        self.sticks = any(keys.most(collider.adhesion) > 0.0 for collider in self.colliders)
        self.painted = any(each is not None for one in self.colliders for each in (one.friction_factor, one.adhesion_factor))
        self.volume = np.zeros(0, self.dtype)
        self._free = None if len(free) == len(shapes) else np.array(free, np.int64)
        self._times = np.zeros(2)
        self._dt = 0.0
        self._contacts: ContactLists = ContactLists() if previous is None else previous._contacts
        self._told: ToldNodes = ToldNodes() if previous is None else previous._told
        self._device: DeviceContacts = DeviceContacts() if previous is None else previous._device

    def _pack_keys(self, shapes: Sequence[PosedLevelSets]) -> None:
        nothing = [np.zeros(0)]
        self._poses = PoseKeys(
            np.cumsum([0, *(len(shape.pose_times) for shape in shapes)]),
            self._simulated(np.concatenate([shape.pose_times for shape in shapes] or nothing)),
            np.concatenate([shape.rotations for shape in shapes] or [np.zeros((0, 4))]),
            np.concatenate([shape.translations for shape in shapes] or [np.zeros((0, 3))]),
        )
        key_times = self._simulated(np.concatenate([shape.level_set_times for shape in shapes] or nothing))
        self._key_times = np.cumsum([0, *(len(shape.level_sets) for shape in shapes)]), key_times

    def _simulated(self, shot_times: np.ndarray) -> np.ndarray:
        """Return times of the shot as times of the simulation."""
        return shot_times if self._clock is None else self._clock.simulated(shot_times)

    def _pack_level_sets(self, shapes: Sequence[PosedLevelSets], previous: ColliderSet | None) -> None:
        every = [level_set for shape in shapes for level_set in shape.level_sets]
        unique: dict[int, LeafLevelSet] = {id(level_set): level_set for level_set in every}
        place = {key: k for k, key in enumerate(unique)}
        self._key_lattices = np.array([place[id(level_set)] for level_set in every], np.int64)
        self._level_sets = tuple(unique.values())  # held, so that no id is used twice
        if self._splines is not None:
            known = {} if previous is None or previous._splines != self._splines else previous._sheets
            self._sheets = find_sheets(self.colliders, self._splines, known)
        if previous is not None and previous._pace == self._pace and previous._splines == self._splines:
            if [*map(id, previous._level_sets)] == [*map(id, self._level_sets)]:
                self._lattices, self._centres = previous._lattices, previous._centres
                return
        sheets = [self.sheets_of(level_set) for level_set in self._level_sets]
        packed = [*self._level_sets, *(lattice for each in sheets for lattice in sheet_lattices(each))]
        *lattices, velocities, coarse_velocities = pack_level_sets(packed)
        first = len(self._level_sets) + np.cumsum([0, *(2 * len(each) for each in sheets)])
        lattices[0][: len(sheets), SHEETS] = [place if each else -1 for place, each in zip(first[:-1], sheets, strict=True)]
        # per second of the shot -> per simulated second
        pace = np.float32(1.0 / self._pace)
        self._lattices = (*lattices, velocities * pace, coarse_velocities * pace)
        self._centres = np.array([level_set.centre for level_set in self._level_sets]).reshape(-1, 3)

    def sheets_of(self, level_set: LeafLevelSet) -> tuple[ThinSheet, ...]:
        """Return the sheets of one of the bodies' level sets that keep their sides apart."""
        return self._sheets.get(id(level_set), ())

    def _number_plates(self) -> None:
        """Give plates their places, as many as there may be."""
        self._integer[:, PLATE], plates = -1, list[int]()
        for b, collider in enumerate(self.colliders):
            count = int(self._splines is not None and is_plate(collider, self._splines.width))
            if collider.shape.level_sets:
                count = len(self.sheets_of(collider.shape.level_sets[0]))
            count = min(count, sides.MOST_PLATES - len(plates))
            if count:
                self._integer[b, PLATE], self._integer[b, PLATES] = len(plates), count
                plates += count * [b]
        self.plates = np.array(plates, np.int64)

    def two_sided(self, splines: Splines) -> ColliderSet:
        """Return the same bodies without the walls, whose plates keep apart what splines of that width reach across."""
        return ColliderSet(self.colliders, None, self.dtype, self.origin, None, self._clock, splines)

    # ---------------------------------------------------------------- per substep
    @property
    def idle(self) -> bool:
        """Whether there is neither a body nor a wall that does anything."""
        return not self.colliders and self.walls.idle

    def shapes(self) -> tuple[WallPlanes, Bodies]:
        """Return walls and bodies as kernels take them."""
        return WallPlanes(self.walls.box, self.walls.rules), self.bodies()

    @property
    def nbytes(self) -> int:
        """Bytes of packed level sets, and of what nodes were told by bodies."""
        return sum(array.nbytes for array in self._lattices) + self._told.nbytes

    def limits(self, distance: float, gravity: float, particles: ParticleStore) -> Iterator[tuple[Limit, str, float]]:
        """Yield what limits dt: the limit, the collider's name, and the longest substep [s].

        Args:
            distance: How far a body may move in one substep [m].
            gravity: By which bodies that move by themselves may fall faster until then [m/s^2].
            particles: What they may meet: a body that has half of the way to all that it may meet for itself may go as far.
        """
        if self.fastest > 0:
            yield SPEED, self.fastest_name, distance / self.fastest
        if self.rigid is not None:
            for name, speed, clear in self.rigid.speeds(particles.box()):
                yield SPEED, name, time_to_travel(distance + 0.5 * clear, speed, gravity)
        for collider in self.colliders:
            if math.isfinite(collider.dt_max):
                yield OWN, collider.name, collider.dt_max

    def pose(self, time_start: float, time_end: float) -> None:
        """Place every body at the start and the end of a substep (simulated seconds)."""
        self._times[0], self._times[1] = time_start, time_end
        self._dt = time_end - time_start
        self.walls.pose(time_start, time_end)
        if self.sticks and self._clock is not None:
            frame = self._clock.frame_at(time_end)
            self._real[:, ADHESION] = [keys.at(collider.adhesion, frame) for collider in self.colliders]
        if self.rigid is not None:
            self._pose_rigid_bodies()
        if self.colliders:
            shapes = ShapeKeys(*self._key_times, self._key_lattices, self._centres)
            pose_bodies(self._times, self.origin, self._poses, shapes, self._integer, self._real)

    def _pose_rigid_bodies(self) -> None:
        """Take where the bodies that move by themselves were and are as their keys."""
        assert self.rigid is not None
        first = self._poses.start[:-1][self.rigid.numbers]
        for end in (0, 1):
            self._poses.times[first + end] = self.rigid.times[end]
            self._poses.rotations[first + end], self._poses.translations[first + end] = (
                self.rigid.turns[end],
                self.rigid.places[end],
            )

    def place_for_bodies(self, time: float, dt: float) -> None:
        """Show the bodies that move by themselves where all others are as a substep begins, and how they move in it."""
        assert self.rigid is not None
        self.pose(time, time + dt)
        self.rigid.place_others(self._real, dt)

    def move_rigid_bodies(self, step: StepContext) -> None:
        """Move the bodies that move by themselves through the substep as if there were no matter."""
        if self.rigid is None:
            return
        self.place_for_bodies(step.time, step.dt)
        self.rigid.begin_move(step)

    def turn_rigid_bodies(self, twists: np.ndarray, centres: np.ndarray) -> None:
        """Let the bodies that move by themselves have other velocities where they are, until all are posed.

        Kernels find the velocity of a body by how its pose changes: the first one is set so that it is v + w x r.

        Args:
            twists: Velocities (v, w), shape (n, 6) [m/s, rad/s].
            centres: What they turn about, shape (n, 3) [m].
        """
        assert self.rigid is not None
        for b, twist, centre in zip(self.rigid.numbers, twists, centres - self.origin, strict=True):
            turn, shift = self._real[b, POSE + 12 : POSE + 21].reshape(3, 3), self._real[b, POSE + 21 : POSE + 24]
            self._real[b, POSE : POSE + 9] = (turn - self._dt * np.cross(twist[3:], turn.T).T).ravel()
            self._real[b, POSE + 9 : POSE + 12] = shift - self._dt * (twist[:3] + np.cross(twist[3:], shift - centre))

    @contextmanager
    def posed_at(self, time: float) -> Iterator[None]:
        """Place every body as it is at one time [simulated s], and put it back."""
        start, end = self._times
        self.pose(time, time)
        try:
            yield
        finally:
            self.pose(start, end)

    def plate_posing(self, way: float) -> float:
        """Return the time [simulated s] for which plates stand, to half of a `way` [m], where they are at the end of the substep.

        It follows from that end alone, so that a solve that goes on from a checkpoint takes the same.
        """
        span = way / self._plates_speed if self._plates_speed > 0.0 else math.inf
        return (math.floor(self._times[1] / span) + 0.5) * span if math.isfinite(span) else 0.0

    def most_travelled(self, speed: float, dt: float) -> float:
        """Return how far matter of a largest speed [m/s] and plates may have moved towards each other in dt [s], in m."""
        return (speed + self._plates_speed) * dt

    def bodies(self) -> Bodies:
        """Return the bodies as kernels take them, as posed last."""
        return Bodies(self._integer, self._real, *self._lattices)

    def distances_at(self, places: np.ndarray) -> np.ndarray:
        """Return distances [m] of places, shape (n, 3) [m], from the bodies at the end of the substep, shape (n, bodies)."""
        found = np.empty((len(places), len(self.colliders), 4))
        collision_paths.distances_at(places - self.origin, self.bodies(), found)
        return found[..., 0]

    def distances_of_all(self, places: np.ndarray) -> np.ndarray:
        """Return what `distances_at` does, and how far walls are that hold or delete matter, shape (n, bodies + walls) [m]."""
        off = [
            np.abs(places[:, side >> 1] - self.origin[side >> 1] - self.walls.box[side & 1, side >> 1])
            for side in range(6)
            if self.walls.rules[side] != collision.OPEN
        ]
        return np.concatenate([self.distances_at(places), np.reshape(off, (len(off), len(places))).T], axis=1)

    @property
    def frame_length(self) -> float:
        """Simulated seconds of the frame, 1 s where there are no frames."""
        return 1.0 if self._clock is None else self._clock.end - self._clock.begin

    def centres(self) -> np.ndarray:
        """Return the centres of the bodies, as posed last, from `origin`, shape (bodies, 3) [m]."""
        return centres_of(self._integer, self._real, self._centres)

    def collide_grid(self, grid: GridStore, tells: bool = False) -> tuple[np.ndarray, ...] | SummedContacts:
        """Apply bodies and walls to the grid's velocities (bodies posed at the end of the substep).

        Returns what `forces_on_bodies.tell_forces` takes of the contacts; with `tells`, what they gave to the bodies, else zeros.
        """
        if grid.residency is not None and not on_host_because(self):
            return self._device.collide_grid(grid, _around(grid), grid.origin - self.origin, self._dt, self.shapes(), tells)
        contacts = self._listed(grid)
        total = int(contacts.counts.sum())
        given = np.zeros(3 * len(contacts.places) if tells or self.rigid is not None else 0)
        if not total:
            return told_of(contacts, given)
        head, tail, again = self._contacts.chains(total)
        following = self._contacts.following()
        level_start, again_start = (np.empty(len(self.colliders) + 7, np.int64) for _ in range(2))
        chains = response.Chains(head, tail, following, level_start, again, again_start)
        response.group_contacts(contacts, np.flatnonzero(contacts.counts), grid.slots(), chains)

        parts = None
        if grid.residency is not None:
            parts = grid.parts("nodes in contact", blocks_in_contact(contacts, grid.copies))
        velocity = grid.array("velocity", parts)

        def respond() -> None:
            response.respond_to_contacts(velocity, grid.kept("momentum"), contacts, chains, given)

        if self.rigid is None:
            respond()
        else:
            self.rigid.meet(grid, contacts, respond, given)
        if grid.copies is not None:
            sides.hand_out(grid.copies.places, grid.copies.master, velocity)
        return told_of(contacts, given)

    def grid_contacts(self, grid: GridStore) -> np.ndarray:
        """Return the contacts of grid nodes with bodies and walls: rows of `kernels.collisions.contact_rows`, float64."""
        if self.idle or not grid.count:
            return np.empty((0, contact_rows.COLUMNS))
        found = self._listed(grid)
        listed = listed_rows(found)
        places = found.places[listed]
        rows = found.rows[places[:, contact_rows.SURFACE_PLACE]]
        rows[:, contact_rows.NODE], rows[:, contact_rows.FELLOW] = places[:, :2].T
        rows[:, contact_rows.RATIO] = found.ratios[listed]
        return rows

    def _listed(self, grid: GridStore) -> contact_rows.ContactList:
        """Return the contacts of the grid's nodes; the masses of all that they look at are on the host then."""
        copies = _NO_COPIES if grid.copies is None else grid.copies[:3]
        if self.sticks and grid.residency is None and len(self.volume) < 256 * grid.count:  # for callers outside of the solver
            self.volume = volumes_of_nodes(grid)
        numbers = np.array([grid.least_mass]), np.array([grid.spline])
        view = contact_rows.GridView(grid.kept("momentum"), grid.coord, grid.packed, _around(grid), *numbers, self.volume, *copies)
        motion, (walls, bodies) = (grid.h, grid.origin - self.origin, self._dt), self.shapes()
        told = self._told.of(
            (grid.packed, grid.copies),
            grid.count,
            bodies,
            lambda which, out: node_surfaces.find_out_of_reach(view, motion, which, bodies, out),
        )
        near = None
        if grid.residency is not None:
            near = blocks_in_reach(view, motion, walls, bodies, told)
            around = blocks_around(view, near)
            grid.array("momentum", grid.parts("masses near bodies", around, MASS))
            if self.sticks:
                self.volume = volumes_of_nodes(grid, around)
                view = view._replace(volume=self.volume)
        found = self._contacts.filled(
            grid.packed, lambda found, blocks: collision_grid.list_contacts(found, blocks, view, motion, walls, bodies, told), near
        )
        if self.painted:
            self._paint(grid, found)
        response.leave_pinched_images(found, np.flatnonzero(found.counts), grid.slots(), self._contacts.following())
        return found

    def _paint(self, grid: GridStore, found: contact_rows.ContactList) -> None:
        """Give the contacts of bodies that vary over their surface the friction and adhesion of where their nodes are."""
        places = found.places[listed_rows(found)].astype(np.int64)
        rows = places[:, contact_rows.SURFACE_PLACE]
        body, node = found.rows[rows, contact_rows.LEVEL], places[:, contact_rows.NODE_PLACE]
        frame = -np.inf if self._clock is None else self._clock.frame_at(float(self._times.mean()))
        for b, collider in enumerate(self.colliders):
            factors = {contact_rows.FRICTION_OF: collider.friction_factor, contact_rows.PULL: collider.adhesion_factor}
            if any(each is not None for each in factors.values()):
                mine = np.flatnonzero((body == b) & (rows >= contact_rows.WALL_ROWS))
                where = grid.origin + grid.places_of(node[mine])
                for column, factor in factors.items():
                    if factor is not None:
                        found.rows[rows[mine], column] *= at_frame(factor, frame).at(where)

    def collide_particles(self, particles: ParticleStore, tells: bool = False) -> tuple[np.ndarray, ...]:
        """Apply bodies and walls to the particles' paths, but those that clamp; delete those beyond a deleting wall.

        Bodies whose friction varies rub on the grid alone. Returns, with `tells`, what particles lost: nearest, place and
        momentum of `LostOnPaths`.
        """
        doomed, free = np.zeros(particles.count if self.walls.deletes else 0, np.uint8), self._free
        walls, bodies = self.shapes()
        varied = [b for b, collider in enumerate(self.colliders) if collider.friction_factor is not None]
        if varied:
            bodies = bodies._replace(real=bodies.real.copy())
            bodies.real[varied, FRICTION] = 0.0
        if free is not None:
            bodies = bodies._replace(integer=bodies.integer[free], real=bodies.real[free])
        near, parts = np.arange(particles.block_count), None
        reach = max(particles.drift, 2.0)
        if particles.residency is not None and not on_host_because(self):
            reach = max(reach, particles.drift_limit)  # the same from sort to sort
            return self._collide_on_device(particles, reach, (walls, bodies), tells)
        if particles.residency is not None:
            marks = np.zeros(len(near), np.uint8)
            tables, shift = (particles.block_coord, particles.h), particles.origin - self.origin
            collision_paths.find_blocks_in_reach(*tables, shift, reach, self._dt, walls, bodies, marks)
            near = np.flatnonzero(marks)
            parts = particles.parts("particles near bodies", near)
        before = particles.rows("velocity", parts).copy() if tells or self.rigid is not None else None
        cloud = self.particle_blocks(particles, parts)
        collision_paths.collide_particle_paths(
            cloud, near, particles.array("velocity", parts), reach, self._dt, walls, bodies, doomed
        )
        lost: tuple[np.ndarray, ...] = ()
        if before is not None:
            found = lost_on_paths(particles, parts, before, self._dt, self.distances_of_all)
            if self.rigid is not None:
                found = self.rigid.kick(particles, parts, before, found)
            lost = found.nearest, found.place, found.momentum
        if doomed.any():
            particles.delete(doomed.astype(bool))
        return lost

    def _collide_on_device(
        self, particles: ParticleStore, reach: float, shapes: tuple[WallPlanes, Bodies], tells: bool
    ) -> tuple[np.ndarray, ...]:
        """Do what `collide_particles` does where the particles are."""
        shift = particles.origin - self.origin
        gone, lost = self._device.collide_particles(particles, shift, reach + FARTHEST_WAY, self._dt, shapes, tells)
        told: tuple[np.ndarray, ...] = ()
        if tells:
            place = particles.origin + particles.h * (4.0 * particles.block_coord[lost.block] + 3.5 + lost.place)
            mass = particles.seen("mass")[lost.particle].astype(np.float64)
            told = self.distances_of_all(place).argmin(axis=1) if len(place) else lost.particle, place, mass[:, None] * lost.change
        if gone.any():
            particles.delete(gone)
        return told

    def particle_blocks(self, particles: ParticleStore, parts: ArrayParts | None = None) -> ParticleBlocks:
        """Return the particles as kernels take them; with `parts` only these need be where they are now."""
        tables, shift = (particles.block_coord, particles.block_start), particles.origin - self.origin
        offset = particles.array("position", parts)
        return ParticleBlocks(offset, particles.stride, *tables, particles.unit, particles.h, shift)

    def report(self, particles: ParticleStore) -> list[tuple[str, int, float]]:
        """Return (name, particles inside, greatest depth [m]) of every collider at the end of the last substep posed.

        What one holds that clamps does not count.
        """
        if not self.colliders or not particles.count:
            return [(collider.name, 0, 0.0) for collider in self.colliders]
        with nullcontext() if particles.residency is None else particles.residency.reading():
            found = collision_paths.penetration(self.particle_blocks(particles), self.bodies())
        told = zip(self.colliders, found, strict=True)
        return [(each.name, 0, 0.0) if each.clamp else (each.name, int(count), float(depth)) for each, (count, depth) in told]


_NO_COPIES = (np.zeros(0, np.int64), np.zeros((0, 4), np.int64), np.zeros(0, np.int32))


def _around(grid: GridStore) -> np.ndarray:
    """Return which blocks of a grid lie around each, as `find_around` writes them."""
    copies = grid.copies is not None

    def find() -> np.ndarray:
        around = np.empty((grid.count, 27), np.int32)
        find_around(grid.packed, copies, around)
        return around

    found: np.ndarray = grid.derived(f"around, {copies}", find)
    return found
