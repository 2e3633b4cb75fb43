"""Contacts of grid nodes and particles with bodies and walls, where they are: on the device.

The host finds from block tables alone which blocks lie near which body or wall, and what they see of it
(`kernels.collisions.pairs`). Where neither bodies nor blocks have moved, that is there already. Nodes and particles stay on the
device.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from mpm_nodes.kernels.collisions import pairs
from mpm_nodes.kernels.collisions.response import SWEEPS
from mpm_nodes.kernels.collisions.rules import DELETE
from mpm_nodes.kernels.composition.fragments import Ahead
from mpm_nodes.kernels.cuda.loop import THREADS, cuda_source, header
from mpm_nodes.kernels.level_sets.level_set import ADHESION, KEY_LATTICES, OWN_SPEED, POSE, Bodies, WallPlanes
from mpm_nodes.solver.device.residency import Device, Residency

__all__ = ["ALONE", "ELSEWHERE", "DeviceContacts", "SummedContacts", "ahead_of", "kernels", "on_host_because"]

ELSEWHERE = "bodies that move by themselves, plates that keep their sides apart and painted friction, in the blocks near them"
"""Where contacts are found on the CPU, as reports tell it; `on_host_because` decides."""
TABLES = ("table", "coarse", "values", "speeds", "coarse speeds")
"""What `Bodies` holds of level sets, from `table` on."""
MIDDLE_OF_NODES, MIDDLE_OF_PARTICLES = 1.5, 3.5
"""Place of the middle of a block from its first node [cells]."""
REACH_STEP = 0.25
"""What particles drift by is rounded up to a multiple of this [cells]: pairs that are there already do for some substeps."""


class SummedContacts(NamedTuple):
    """What the contacts of the grid gave to bodies, summed where they are near each other.

    Attributes:
        level: Which body, shape (n,).
        place: The point that moments are about, shape (n, 3) [m].
        given: Impulses on it, shape (n, 3) [N s].
        moment: Their moments, shape (n, 3) [N m s].
    """

    level: np.ndarray
    place: np.ndarray
    given: np.ndarray
    moment: np.ndarray


class PathLosses(NamedTuple):
    """Particles that lost momentum on their paths.

    Attributes:
        particle: Their places, ascending, shape (n,).
        block: Their blocks, shape (n,).
        place: Where they then are, from the middle of the block, shape (n, 3) [cells].
        change: How much of their velocity they lost, shape (n, 3) [m/s].
    """

    particle: np.ndarray
    block: np.ndarray
    place: np.ndarray
    change: np.ndarray


def on_host_because(colliders: Any) -> str:
    """Return why contacts with these bodies are found on the CPU, "" where they are found on the device."""
    lattices = colliders.bodies().integer[:, KEY_LATTICES : KEY_LATTICES + 4]
    if colliders.rigid is not None:
        return "bodies move by themselves"
    if len(colliders.plates):
        return "plates keep their two sides apart"
    if colliders.painted:
        return "friction or adhesion varies over a body"
    return "" if (lattices[:, :2] == lattices[:, 2:]).all() else "a body passes a key of its shape in this substep"


ALONE = "bodies and walls that move, stick, delete, are told their forces or meet matter on the CPU"
"""For which contacts substeps run one at a time, as reports tell it; `ahead_of` decides."""


def ahead_of(colliders: Any, step: Any) -> Ahead:
    """Return what contacts need in the next substeps."""
    if colliders.idle:
        return Ahead()
    because = on_host_because(colliders)
    for holds, text in (
        (len(colliders.plates), "plates keep their two sides apart"),
        (colliders.fastest > 0.0, "bodies or walls move"),
        (colliders.sticks, "matter sticks to bodies"),
        (colliders.walls.deletes, "a wall deletes particles"),
        (step.contact_forces, "forces on bodies are told"),
    ):
        because = because or (text if holds else "")
    return Ahead(because, launches=True)


@functools.cache
def kernels(name: str) -> str:
    """Return the source of the kernels of grid nodes, of paths or of volumes."""
    if name == "volumes":
        return header() + cuda_source("volumes.cuh")
    return pairs.definitions() + cuda_source("substep.cuh") + cuda_source("shapes.cuh") + cuda_source(f"{name}.cuh")


class _KeptBuffers:
    """Buffers by name, as large as was ever asked for."""

    def __init__(self, device: Device) -> None:
        self.device, self._held = device, dict[str, tuple[int, Any]]()

    def of(self, name: str, nbytes: int, *, zero: bool = False) -> Any:
        """Return a buffer of at least so many bytes; one that is new holds zeros where that is asked for."""
        held, buffer = self._held.get(name, (0, None))
        if buffer is None or held < nbytes:
            self._held.pop(name, None)
            held = nbytes * 5 // 4
            buffer = self.device.allocate(held)
            self._held[name] = held, buffer
            if zero:
                self.device.clear(buffer, held)
        return buffer

    def filled(self, name: str, array: np.ndarray) -> Any:
        """Return a buffer that holds an array."""
        buffer = self.of(name, array.nbytes)
        if array.nbytes:
            self.device.upload(buffer, np.ascontiguousarray(array))
        return buffer


class _GridPairs(NamedTuple):
    """The pairs of grid blocks that are on the device.

    Attributes:
        number: How many there are.
        levels: Bodies and walls that have any, and how many, in order.
        block, which: Block of each, and its body or wall.
    """

    number: int
    levels: tuple[tuple[int, int], ...]
    block: np.ndarray
    which: np.ndarray


class DeviceContacts:
    """What contacts keep on the device from substep to substep."""

    def __init__(self) -> None:
        self._room: _KeptBuffers | None = None
        self._lattices: tuple[Any, ...] = ()
        self._known: dict[str, tuple[Any, ...]] = {}
        self._grid = _GridPairs(0, (), np.zeros(0, np.int64), np.zeros(0, np.int64))
        self._blocks = self._giving = 0

    def _begin(self, residency: Residency, bodies: Bodies) -> _KeptBuffers:
        """Return room on the device, with the level sets of the bodies there."""
        if self._room is None or self._room.device is not residency.device:
            self._room, self._lattices, self._known = _KeptBuffers(residency.device), (), {}
        lattices = bodies[4:]
        if not self._lattices or not all(a is b for a, b in zip(lattices, self._lattices, strict=True)):
            self._lattices = lattices
            for name, array in zip(TABLES, lattices, strict=True):
                self._room.filled(name, array)
                residency.moved[0] += array.nbytes
        return self._room

    def _same(self, name: str, held: tuple[Any, ...], compared: tuple[Any, ...]) -> bool:
        """Return whether objects are the same and values are equal to those of the last time."""
        before = self._known.get(name)
        if before is not None and all(a is b for a, b in zip(before[0], held, strict=True)):
            if all(np.array_equal(a, b) for a, b in zip(before[1], compared, strict=True)):
                return True
        self._known[name] = held, tuple(np.copy(each) for each in compared)
        return False

    # ---------------------------------------------------------------- grid nodes
    def collide_grid(
        self, grid: Any, around: np.ndarray, shift: np.ndarray, dt: float, shapes: tuple[WallPlanes, Bodies], tells: bool
    ) -> SummedContacts:
        """Apply bodies and walls to the grid's velocities.

        Args:
            grid: The grid (`solver.grid.GridStore`).
            around: Which of its blocks lie around each.
            shift: Its origin in the frame of the bodies, shape (3,) [m].
            dt: The substep [s].
            shapes: Walls and bodies, posed.
            tells: Whether what bodies are given is told.
        """
        residency, room = grid.residency, self._begin(grid.residency, shapes[1])
        self._list_grid(grid, around, shift, dt, shapes, room)
        found, device = self._grid, residency.device
        places = 64 * found.number
        if not found.number:
            return _told(found, np.zeros((0, 6)), grid)
        text = kernels("contacts")
        momentum = residency.on_device(grid.kept("momentum"))
        velocity = residency.on_device(grid.kept("velocity"), write=True)
        integers, reals = room.of("grid integers", 0), room.of("grid reals", 0)
        images, before = room.of("images", 4 * places), room.of("before", 4 * places)
        contacts, head = room.of("contacts", 64 * places), room.of("head", 256 * grid.count, zero=True)

        substep = residency.substep(dt)

        def launch(name: str, count: int, *arguments: Any) -> None:
            device.launch(device.kernel(text, name), -(-count // THREADS), [*arguments, np.int32(count)])

        volume = self._volumes(grid, room) if (shapes[1].real[:, ADHESION] > 0.0).any() else room.of("volume", 0)
        launch(
            "list_contacts", places, substep, integers, reals, *self._tables(room), momentum, volume, np.float32(grid.least_mass),
            np.int32(grid.spline), np.float32(grid.h), images, contacts,
        )  # fmt: skip
        launch("leave_pinched_images", places, substep, integers, room.of("first", 0), images, contacts)
        given = room.of("given", 16 * places if tells else 0)
        if tells:
            device.clear(given, 16 * places)
        sweeps = min(len(found.levels), SWEEPS)
        marks = room.of("marks", 256 * grid.count if sweeps > 1 else 0)
        if sweeps > 1:
            device.clear(marks, 256 * grid.count)
            launch("mark_met", places, integers, images, marks)
        meeting = (images, contacts, head, before, momentum, velocity, marks)
        for sweep in range(sweeps):
            for level, count in found.levels:
                listed = room.of(f"level {level}", 0)
                launch("link_contacts", 64 * count, substep, listed, images, head, before)
                given_too = (np.int32(sweep), *([given] if tells else []))
                launch("meet_and_tell" if tells else "meet_contacts", 64 * count, substep, listed, integers, *meeting, *given_too)
        sums = np.zeros((2 * found.number if tells else 0, 6), np.float32)
        if tells:
            summed = room.of("sums", sums.nbytes)
            launch("sum_given", places, images, contacts, given, summed)
            device.download(summed, sums)
            residency.moved[1] += sums.nbytes
        return _told(found, sums.reshape(-1, 2, 6).sum(axis=1, dtype=float), grid)

    def _volumes(self, grid: Any, room: _KeptBuffers) -> Any:
        """Return the volumes of the matter of nodes near bodies, with those of others that particles there share."""
        particles, residency, nbytes = grid.particles, grid.residency, 256 * grid.count
        volume = room.of("volume", nbytes)
        residency.device.clear(volume, nbytes)
        arguments = [room.of(name, 0) for name in ("giving", "start", "tiles")]
        arguments += [residency.on_device(particles.kept("position")), np.int32(particles.stride), np.int32(particles.shift)]
        arguments += [np.float32(1.0 / particles.unit), residency.on_device(particles.kept("volume")), volume]
        name = "add_volumes_cubic" if grid.spline == 4 else "add_volumes_quadratic"
        residency.device.launch(residency.device.kernel(kernels("volumes"), name), self._giving, arguments)
        return volume

    def _tables(self, room: _KeptBuffers) -> list[Any]:
        return [room.of(name, 0) for name in TABLES]

    def _list_grid(
        self, grid: Any, around: np.ndarray, shift: np.ndarray, dt: float, shapes: tuple[WallPlanes, Bodies], room: _KeptBuffers
    ) -> None:
        """Find the pairs of grid blocks, unless they are those of the substep before."""
        walls, bodies = shapes
        held, compared = (grid.packed, bodies.lattice_integer), (walls.box, walls.rules, bodies.integer, bodies.real)
        if self._same("grid", held, (*compared, dt if _moves(bodies) else 0.0)):
            return
        marks = np.zeros((grid.count, len(bodies.real) + 6), np.uint8)
        pairs.mark_grid_blocks(grid.coord, (grid.h, shift), walls, bodies, marks)
        block, which = map(np.ascontiguousarray, np.nonzero(marks))
        integers, reals = _written((block, which), (grid.coord, MIDDLE_OF_NODES, 1), (grid.h, shift, dt), shapes)
        integers[:, pairs.AROUND : pairs.AROUND + 27] = around[block]
        first = np.searchsorted(block, np.arange(grid.count + 1)).astype(np.int32)
        room.filled("grid integers", integers)
        room.filled("grid reals", reals)
        room.filled("first", first)
        levels = []
        for level in np.unique(which):
            listed = np.flatnonzero(which == level).astype(np.int32)
            room.filled(f"level {level}", listed)
            levels.append((int(level), len(listed)))
        grid.residency.moved[0] += integers.nbytes + reals.nbytes + first.nbytes + 4 * len(block)
        self._grid = _GridPairs(len(block), tuple(levels), block, which)
        if (bodies.real[:, ADHESION] > 0.0).any():
            self._list_giving(grid, np.unique(around[block]), room)

    def _list_giving(self, grid: Any, asked: np.ndarray, room: _KeptBuffers) -> None:
        """Find the blocks of particles that give to some blocks of the grid."""
        marks = np.zeros(grid.count + 1, bool)
        marks[asked] = True
        marks[-1] = False  # -1 stands for none
        tiles = grid.particle_tiles()
        giving = np.flatnonzero(marks[tiles].any(axis=1)).astype(np.int32)
        tables = {"giving": giving, "start": grid.particles.block_start.astype(np.int32), "tiles": tiles}
        for name, table in tables.items():
            room.filled(name, table)
            grid.residency.moved[0] += table.nbytes
        self._giving = len(giving)

    # ---------------------------------------------------------------- paths of particles
    def collide_particles(
        self, particles: Any, shift: np.ndarray, reach: float, dt: float, shapes: tuple[WallPlanes, Bodies], tells: bool
    ) -> tuple[np.ndarray, PathLosses]:
        """Apply bodies and walls to the particles' paths.

        Args:
            particles: The particles (`solver.state.ParticleStore`).
            shift: Their origin in the frame of the bodies, shape (3,) [m].
            reach: Farthest that one lies from its block, and moves [cells].
            dt: The substep [s].
            shapes: Walls and bodies, posed.
            tells: Whether the particles are told that lost anything.

        Returns:
            Whether each particle lies beyond a deleting wall, bool, empty where none does; and, with `tells`, what was lost.
        """
        walls, bodies = shapes
        residency, room = particles.residency, self._begin(particles.residency, bodies)
        self._list_particles(particles, shift, reach, dt, shapes, room)
        if not self._blocks:
            return np.zeros(0, bool), _lost(np.zeros((0, 12), np.float32))
        device, deletes = residency.device, bool((walls.rules[:6] == DELETE).any())
        doomed = room.of("doomed", particles.count if deletes else 0)
        counts = room.of("counts", 8)
        device.clear(counts, 8)
        if deletes:
            device.clear(doomed, particles.count)
        offset, velocity = (residency.on_device(particles.kept(name), write=True) for name in ("position", "velocity"))
        arguments = [residency.substep(dt)]
        arguments += [room.of(f"path {name}", 0) for name in ("blocks", "sides", "rules", "integers", "reals")]
        arguments += [*self._tables(room), room.of("path start", 0), offset, velocity, np.int32(particles.stride)]
        arguments += [np.float32(each) for each in (particles.unit, 1.0 / particles.unit, particles.h)]
        arguments += [doomed, counts]
        name = "collide_paths"
        if tells:
            name = "collide_and_tell"
            arguments.append(room.of("lost", 48 * particles.count))
        device.launch(device.kernel(kernels("paths"), name), self._blocks, arguments)
        found = np.zeros(2, np.int32)
        if deletes or tells:
            device.download(counts, found)
        gone = np.zeros(particles.count if found[0] else 0, np.uint8)
        if len(gone):
            device.download(doomed, gone)
        lost = np.zeros((found[1], 12), np.float32)
        if len(lost):
            device.download(arguments[-1], lost)
        residency.moved[1] += gone.nbytes + lost.nbytes
        return gone.astype(bool), _lost(lost)

    def _list_particles(
        self, particles: Any, shift: np.ndarray, reach: float, dt: float, shapes: tuple[WallPlanes, Bodies], room: _KeptBuffers
    ) -> None:
        """Find the pairs of blocks of particles, unless they are those of the substep before."""
        walls, bodies = shapes
        reach = np.ceil(reach / REACH_STEP) * REACH_STEP
        compared = (walls.box, walls.rules, bodies.integer, bodies.real, reach, dt if _moves(bodies) else 0.0)
        if self._same("particles", (particles.block_coord, particles.block_start, bodies.lattice_integer), compared):
            return
        coord, motion = particles.block_coord, (particles.h, shift, dt)
        marks, sides = np.zeros((len(coord), len(bodies.real) + 1), np.uint8), np.zeros((len(coord), 6))
        pairs.mark_particle_blocks(coord, motion, reach, walls, bodies, marks, sides)
        near = np.flatnonzero(marks.any(axis=1))
        place, which = map(np.ascontiguousarray, np.nonzero(marks[near, :-1]))
        integers, reals = _written((near[place], which), (coord, MIDDLE_OF_PARTICLES, 0), motion, shapes)
        first = np.searchsorted(place, np.arange(len(near) + 1))
        blocks = np.stack([near, first[:-1], first[1:]], axis=1).astype(np.int32)
        tables = {
            "blocks": blocks,
            "sides": sides[near].astype(np.float32),
            "rules": walls.rules.astype(np.float32),
            "integers": integers,
            "reals": reals,
        }
        for name, table in tables.items():
            room.filled(f"path {name}", table)
        room.filled("path start", particles.block_start.astype(np.int32))
        particles.residency.moved[0] += sum(table.nbytes for table in tables.values()) + 4 * len(particles.block_start)
        self._blocks = len(near)


def _moves(bodies: Bodies) -> bool:
    """Return whether any body moves, or its surface does: then what blocks see of it hangs on the length of the substep."""
    start = POSE + 12
    return bool((bodies.real[:, POSE:start] != bodies.real[:, start : start + 12]).any() or bodies.real[:, OWN_SPEED].any())


def _written(
    which: tuple[np.ndarray, np.ndarray],
    blocks: tuple[np.ndarray, float, int],
    motion: tuple[float, np.ndarray, float],
    shapes: tuple[WallPlanes, Bodies],
) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of pairs: of blocks and bodies or walls `which`, and of `blocks` coordinates, middle and first pose."""
    count = len(which[0])
    integers, reals = np.zeros((count, pairs.PAIR_INTEGERS), np.int32), np.zeros((count, pairs.PAIR_REALS), np.float32)
    if count:
        pairs.write_pairs(which, blocks, motion, *shapes, (integers, reals))
    return integers, reals


def _lost(rows: np.ndarray) -> PathLosses:
    """Return what the kernel told, shape (n, 12), in the order of the particles."""
    particle, block = rows[:, [0, 4]].copy().view(np.int32).astype(np.int64).T
    order = np.argsort(particle)
    values = rows[order].astype(np.float64)
    return PathLosses(particle[order], block[order], values[:, 1:4], values[:, 5:8] - values[:, 8:11])


def _told(found: _GridPairs, sums: np.ndarray, grid: Any) -> SummedContacts:
    """Return what bodies were given, from the sums of pairs in kg m/s and cells."""
    place = grid.origin + grid.h * (4.0 * grid.coord[found.block[: len(sums)]] + MIDDLE_OF_NODES)
    return SummedContacts(found.which[: len(sums)], place, sums[:, :3], grid.h * sums[:, 3:])
