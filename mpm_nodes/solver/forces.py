"""Forces of a frame, as the kernel takes them at a moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mpm_nodes.data import BodyForce, Moment, MpmNodesError, attachments_of
from mpm_nodes.graph.time import keys
from mpm_nodes.kernels.cuda.trace import TraceError
from mpm_nodes.kernels.fields import exposure, pushing
from mpm_nodes.kernels.transfers.binning import pack_coord
from mpm_nodes.solver.blocks import wrapped
from mpm_nodes.solver.device.forces import DeviceForces, columns_read, push_kernel
from mpm_nodes.solver.field_programs import FieldProgram, changes, program_of_fields, rows_of
from mpm_nodes.solver.state import ParticleStore

__all__ = ["Delivered", "block_centres", "kernel_of", "placement_of", "push_obstacle", "push_particles", "turns"]


class Delivered(NamedTuple):
    """What a force gave in a substep.

    Attributes:
        impulse: [N s].
        work: Change of the kinetic energy [J].
    """

    impulse: tuple[float, float, float]
    work: float


class _Table(NamedTuple):
    """Forces at a moment: see `pushing.push`."""

    program: FieldProgram
    rows: np.ndarray
    most: np.ndarray


def push_particles(
    particles: ParticleStore, forces: Sequence[BodyForce], moment: Moment, dt: float
) -> tuple[list[Delivered], float]:
    """Change the velocities of particles by forces.

    Returns what each gave, and the largest acceleration that they or one drag give a particle [m/s^2].

    Args:
        particles: Particles.
        forces: One at least.
        moment: When their fields are taken; attributes of particles are what they are before the first force.
        dt: [s]; 0 changes nothing, and only finds the largest acceleration.

    Raises:
        MpmNodesError: What a force gives is not finite.
    """
    table, ranges = _table(forces, moment), particles.ranges
    told = _pushed_on_device(particles, table, dt)
    if told is None:
        told = np.empty((len(ranges), 4 * len(forces) + 4))
        _push_here(particles, forces, table, moment, dt, told)
    given, strongest = told[:, : 4 * len(forces)].sum(axis=0).reshape(-1, 4), told[:, 4 * len(forces)].max(initial=0.0)
    for force, row in zip(forces, given, strict=True):
        if not np.isfinite(row).all():
            raise MpmNodesError(f"force {force.name}: is not finite where there is matter; look at its fields")
    return [Delivered((float(x), float(y), float(z)), float(work)) for x, y, z, work in given], float(np.sqrt(strongest))


def _pushed_on_device(particles: ParticleStore, table: _Table, dt: float) -> np.ndarray | None:
    """Let a device push, and return what it tells, shape (1, numbers); None where there is none, or it has no kernel for forces."""
    if particles.residency is None:
        return None
    forces = particles.bound.get(DeviceForces)
    if forces is None:
        forces = particles.bound[DeviceForces] = DeviceForces(particles, block_centres(particles))
    try:
        found: np.ndarray = forces.push(table.program, table.rows.ravel(), table.most, dt)[None]
    except TraceError:
        return None  # `push_obstacle` says why
    return found


def kernel_of(forces: Sequence[BodyForce], moment: Moment) -> str:
    """Return the kernel of a device for forces at a moment.

    Raises:
        TraceError: It has none.
    """
    table = _table(forces, moment)
    return push_kernel(tuple(table.program.operations.tolist()), tuple(table.rows.ravel().tolist()), table.program.attributes)


def push_obstacle(particles: ParticleStore, forces: Sequence[BodyForce], moment: Moment) -> str:
    """Return why a device does not push by forces, "" where it does."""
    pressing = [force for force in forces if force.attachment is None]
    if len(pressing) < len(forces):
        return "springs of attachments pull on the CPU"
    try:
        columns_read(particles, _table(pressing, moment).program.attributes)
        kernel_of(pressing, moment)
    except TraceError as error:
        return str(error)
    return ""


def _push_here(
    particles: ParticleStore, forces: Sequence[BodyForce], table: _Table, moment: Moment, dt: float, told: np.ndarray
) -> None:
    """Push on the CPU."""
    ranges = particles.ranges
    surface = any(force.surface for force in forces)
    cloud = placement_of(particles), particles.array("velocity"), particles.array("mass")
    where, rows = (ranges, block_centres(particles)), (table.rows.ravel(), table.most)
    program = table.program.with_own(rows_of(particles, moment), particles.count)
    pushing.push(cloud, _matter(particles, surface), where, program, rows, dt, told)


def _matter(particles: ParticleStore, surface: bool) -> tuple[np.ndarray, float, np.ndarray, np.ndarray, np.ndarray]:
    """Return volumes, cell size, how full space is, the places around each place, and the place of each block.

    Blocks of several bodies, and of both sides of a plate, may lie at one place. Without `surface` the tables are void.
    """
    volume, blocks = particles.array("volume"), particles.block_count
    if not surface:
        return volume, particles.h, np.zeros(512), np.zeros(27, np.int32), np.zeros(blocks, np.int32)
    filled = np.empty((blocks, exposure.SPREAD**3))
    offsets = particles.offset, particles.stride, 1.0 / particles.unit
    exposure.fill_samples(offsets, volume, particles.ranges, particles.h, filled.ravel())
    coord = particles.block_coord.astype(np.int64)
    sides = np.stack(np.meshgrid(*[np.arange(-1, 2)] * 3, indexing="ij"), axis=-1).reshape(-1, 1, 3)

    def packed(places: np.ndarray) -> np.ndarray:
        return wrapped(pack_coord(*np.moveaxis(places, -1, 0)), particles.period)

    held, first, home = np.unique(packed(coord), return_index=True, return_inverse=True)
    order = np.argsort(home, kind="stable")
    starts = np.searchsorted(home[order], np.arange(len(held)))
    filled = np.add.reduceat(filled[order], starts, axis=0)
    near = packed(coord[first] + sides)  # shape (27, places)
    known, one = np.unique(near, return_index=True)
    around = np.searchsorted(known, near).T.astype(np.int32)
    wanted = packed((coord[first] + sides).reshape(-1, 3)[one] + sides)
    found = np.minimum(np.searchsorted(held, wanted), len(held) - 1)
    holding = np.where(held[found] == wanted, found, -1).T.astype(np.int32)
    samples = np.empty(exposure.OWN**3 * len(known))
    exposure.gather_samples(filled.ravel(), np.ascontiguousarray(holding).ravel(), samples)
    return volume, particles.h, samples, np.ascontiguousarray(around).ravel(), home.astype(np.int32)


def placement_of(particles: ParticleStore) -> tuple[np.ndarray, int, float]:
    """Return where particles are in their blocks, as kernels of fields take it."""
    return particles.offset, particles.stride, particles.h / particles.unit


def block_centres(particles: ParticleStore) -> np.ndarray:
    """Return the centres of the blocks [m], shape (blocks, 3)."""
    return np.asarray(particles.origin + particles.h * (4.0 * particles.block_coord + 3.5), float)


def turns(forces: Sequence[BodyForce], begin: float, end: float) -> list[float] | None:
    """Return the frames at which what forces give may turn sharply, after `begin` until `end`; None where it never changes.

    Keys turn it, and frames of a course; between them it goes on as it began.
    """
    fields = [each for force in forces for each in (force.value, force.rate) if each is not None]
    numbers: list[Any] = [force.most_speed for force in forces]
    numbers += [number for each in attachments_of(forces) for number in (each.stiffness, each.breaking_force)]
    found: list[float] = []
    seen, varies = set(map(id, fields)), False
    while fields:
        field = fields.pop()
        if field.operation == "COURSE":
            varies, found = True, [*found, *field.numbers]
        else:
            numbers += field.numbers
        fresh = [each for each in field.inputs if id(each) not in seen]
        seen.update(map(id, fresh))
        fields += fresh
    for number in numbers:
        varies = varies or changes(number)
        found += [float(key[0]) for key in number.keys] if keys.carries_keys(number) else []
    return sorted({frame for frame in found if begin < frame <= end}) if varies else None


def _table(forces: Sequence[BodyForce], moment: Moment) -> _Table:
    fields = [each for force in forces for each in (force.value, force.rate) if each is not None]
    program = program_of_fields(fields, moment, of_particles=True)
    register = dict(zip(map(id, fields), program.registers, strict=True))
    rows, most = np.zeros((len(forces), 3), np.int32), np.empty(len(forces))
    for row, force in zip(rows, forces, strict=True):
        row[1] = register[id(force.value)]
        if force.surface:
            row[0], row[2] = pushing.SURFACE_DRAG, register[id(force.rate)]
        elif force.rate is not None:
            row[0], row[2] = pushing.QUADRATIC_DRAG if force.quadratic else pushing.DRAG, register[id(force.rate)]
    most[:] = [keys.at(force.most_speed, moment.frame) or np.inf for force in forces]
    return _Table(program, rows, most)
