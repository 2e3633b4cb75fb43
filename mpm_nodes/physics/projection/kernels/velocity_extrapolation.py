"""Velocity extrapolation to faces that no pressure reaches: whom they follow, and what they hand over before the solve.

Faces with mass that no pressure reaches follow those beside them (`extend`). Those inside bodies take their velocity: they move as
one, and m_f, m_f v*_f and V_f of a face that leads are sums over it and its share of those that follow (`fold`). Along a wall that
slips this makes half a stencil whole. Those beyond a free surface take the change of their velocity, and keep what they differed by
(`find_offsets`): m_f is summed, m_f v*_f stays. Were they to move as one, a body that turns would be sheared in every substep where
they are, and lose its spin. A face that weighs next to nothing beside its followers (`SLIGHT`) starts from their mean velocity and
leaves them what that takes from it. Either way no momentum is lost.
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.cells.cell_matrix import before, behind
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.lend import lend_plain, plain
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.physics.projection.kernels.pressure import LEAST_MASS, of_axis
from mpm_nodes.physics.projection.kernels.solid_faces import HELD, SLIDING

__all__ = ["extend", "find_offsets", "fold", "hand_over"]

SLIGHT = 0.01
"""Share of a face in what follows it below which it moves as they do. Where a spline ends, stress over mass is anything:
300 m/s for 1e-8 kg. With the mass of its followers that would be a blow which the pressure has to stop by throwing out spray."""


@inline
def _leads(f, axis, state, other, direction, rank, turn):
    """Return whether a follower of this state takes the velocity of a face beside it, at side `direction & 1` of an axis."""
    if other < 0 or rank[3 * other + axis] != turn:
        return False
    if state >= SLIDING:
        return state - SLIDING == direction
    return of_axis(axis, f.sx, f.sy, f.sz)[other] != HELD


@part
def _leader_at(f, g, n, direction):
    """Return the place beside n of block g, or -1."""
    return behind(f.around, g, n, direction >> 1) if direction & 1 else before(f.around, g, n, direction >> 1)


@part
def _leaders_of(f, g, n, axis, rank, turn):
    """Return how many faces of rank `turn` a face follows."""
    count, state = 0, of_axis(axis, f.sx, f.sy, f.sz)[64 * g + n]
    for direction in range(6):
        if _leads(f, axis, state, _leader_at(f, g, n, direction), direction, rank, turn):
            count += 1
    return count


@part
def _rank_at(g, f, rank, turn):
    for n in range(64):
        c = np.int64(64 * g + n)
        for axis in range(3):
            if rank[3 * c + axis] == 0 and of_axis(axis, f.mx, f.my, f.mz)[4 * c + 3] > f.numbers[LEAST_MASS]:
                if _leaders_of(f, g, n, axis, rank, turn):
                    rank[3 * c + axis] = turn + 1


@part
def _fold_at(g, f, rank, rest, left, turn):
    for n in range(64):
        c = np.int64(64 * g + n)
        for axis in range(3):
            states = of_axis(axis, f.sx, f.sy, f.sz)
            if rank[3 * c + axis] != turn:
                continue
            masses, volumes, velocity = (
                of_axis(axis, f.nx, f.ny, f.nz),
                of_axis(axis, f.wx, f.wy, f.wz),
                of_axis(axis, f.vx, f.vy, f.vz),
            )
            mass = masses[c]
            pushed = total = mass * np.float64(velocity[4 * c])
            free_mass, free_momentum = 0.0, 0.0
            for direction in range(6):
                other = _leader_at(f, g, n, direction)
                if other < 0 or rank[3 * other + axis] != turn + 1:
                    continue
                if states[other] >= SLIDING and states[other] - SLIDING != (direction ^ 1):
                    continue
                share = 1.0 / _leaders_of(f, other >> 6, other & 63, axis, rank, turn)
                mass += share * masses[other]
                momentum = share * masses[other] * np.float64(velocity[4 * other])
                total += momentum
                rest[3 * c + axis] += share * rest[3 * other + axis]
                if states[other] >= SLIDING:
                    pushed += momentum
                    volumes[c] += share * volumes[other]
                else:
                    pushed += share * masses[other] * np.float64(velocity[4 * c])
                    free_mass += share * masses[other]
                    free_momentum += momentum
            left[3 * c + axis] = 0.0
            if states[c] != HELD:
                velocity[4 * c] = pushed / mass
                if masses[c] < SLIGHT * mass:
                    velocity[4 * c] = total / mass
                    kept = free_momentum + (mass - free_mass) * total / mass
                    left[3 * c + axis] = (total - kept) / (mass - masses[c])
            masses[c] = mass


@compiled(fastmath=False)
def fold(count, f, rank, rest, left, turns):
    """Add masses and volumes of faces that no pressure reaches to those which they follow, and momenta of those inside bodies.

    Args:
        count: Number of grid blocks.
        f: The fields, with states, volumes and masses of single faces.
        rank: 1 where the projection gives a velocity (`find_done`), 0 elsewhere, shape (192 count,), uint8; written: 1 + how far
            behind a face follows.
        rest: Volumes of the particles of the faces [m^3], shape (192 count,), float64; those of followers are added.
        left: Written where faces lead: what their followers move faster by, for a slight face moves as they do [m/s],
            shape (192 count,), float64.
        turns: Faces that may follow each other.
    """
    for turn in range(1, turns + 1):
        parallel_for(_rank_at, count, (lend_plain(f), plain(rank), np.int64(turn)))
    for turn in range(turns, 0, -1):
        parallel_for(_fold_at, count, (lend_plain(f), plain(rank), plain(rest), plain(left), np.int64(turn)))


@inline
def _mean(f, g, n, axis, rank, column, turn):
    """Return the mean over the faces of rank `turn` that a face follows; `column`: values, which is the first, their distance."""
    values, first, step = column
    total, count, state = 0.0, 0, of_axis(axis, f.sx, f.sy, f.sz)[64 * g + n]
    for direction in range(6):
        other = _leader_at(f, g, n, direction)
        if _leads(f, axis, state, other, direction, rank, turn):
            total += np.float64(values[first + step * other])
            count += 1
    return total / count


@part
def _offsets_at(g, f, rank, offset, left, turn):
    for n in range(64):
        c = np.int64(64 * g + n)
        for axis in range(3):
            if rank[3 * c + axis] != turn + 1:
                continue
            found = _mean(f, g, n, axis, rank, (offset, axis, 3), turn) + _mean(f, g, n, axis, rank, (left, axis, 3), turn)
            if of_axis(axis, f.sx, f.sy, f.sz)[c] < SLIDING:
                velocity = of_axis(axis, f.vx, f.vy, f.vz)
                found += np.float64(velocity[4 * c]) - _mean(f, g, n, axis, rank, (velocity, 0, 4), turn)
            offset[3 * c + axis] = found


@compiled(fastmath=False)
def find_offsets(count, f, rank, offset, left, turns):
    """Write what followers differ by from the faces that lead, at the end of the line [m/s].

    Args:
        count: Number of grid blocks.
        f: The fields, after `fold`.
        rank: As `fold` left it.
        offset: Shape (192 count,), float64, zeros; written.
        left: As `fold` left it.
        turns: Faces that may follow each other.
    """
    for turn in range(1, turns + 1):
        parallel_for(_offsets_at, count, (lend_plain(f), plain(rank), plain(offset), plain(left), np.int64(turn)))


@part
def _hand_over_at(g, f, rank, push, turn):
    for n in range(64):
        c = np.int64(64 * g + n)
        for axis in range(3):
            states = of_axis(axis, f.sx, f.sy, f.sz)
            if rank[3 * c + axis] != turn:
                continue
            for direction in range(6):
                other = _leader_at(f, g, n, direction)
                if other < 0 or rank[3 * other + axis] != turn + 1:
                    continue
                if _leads(f, axis, states[other], c, direction ^ 1, rank, turn):
                    share = 1.0 / _leaders_of(f, other >> 6, other & 63, axis, rank, turn)
                    push[3 * c + axis] += share * push[3 * other + axis]


@compiled(fastmath=False)
def hand_over(count, f, rank, push, turns):
    """Add what pushes followers to those that they follow: the adjoint of `extend`.

    Args:
        count: Number of grid blocks.
        f: The fields.
        rank: As `extend` left it.
        push: Impulses on the faces, shape (192 count,), float64 [N s]; written.
        turns: As there.
    """
    for turn in range(turns, 0, -1):
        parallel_for(_hand_over_at, count, (lend_plain(f), plain(rank), plain(push), np.int64(turn)))


@part
def _extend_at(g, f, rank, old, offset, turn):
    for n in range(64):
        c = np.int64(64 * g + n)
        for axis in range(3):
            if rank[3 * c + axis] == turn + 1:
                led = _mean(f, g, n, axis, rank, (old, axis, 3), turn) - _mean(f, g, n, axis, rank, (offset, axis, 3), turn)
                of_axis(axis, f.vx, f.vy, f.vz)[4 * c] = led + offset[3 * c + axis]


@part
def _copy_at(g, f, old):
    for c in range(64 * g, 64 * g + 64):
        old[3 * c], old[3 * c + 1], old[3 * c + 2] = f.vx[4 * c], f.vy[4 * c], f.vz[4 * c]


@compiled(fastmath=False)
def extend(count, f, rank, old, offset, turns):
    """Carry final velocities on to faces with mass beside them: what stencils reach beyond the interior.

    Args:
        count: Number of grid blocks.
        f: The fields.
        rank: See `find_done`; written as `fold` does.
        old: Scratch, shape (192 count,), float64.
        offset: What they differ by from the faces that lead [m/s] (`find_offsets`), shape (192 count,), float64.
        turns: Faces that may follow each other.
    """
    for turn in range(1, turns + 1):
        parallel_for(_rank_at, count, (lend_plain(f), plain(rank), np.int64(turn)))
        parallel_for(_copy_at, count, (lend_plain(f), plain(old)))
        parallel_for(_extend_at, count, (lend_plain(f), plain(rank), plain(old), plain(offset), np.int64(turn)))
