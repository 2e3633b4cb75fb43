"""Faces of liquids and solids that slip on each other, as one for the pressure and as two again: see `slipping`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.cells.cell_matrix import before
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.lend import lend_plain, plain
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.physics.projection.kernels.pressure import INTERIOR, H, lightness, of_axis
from mpm_nodes.physics.projection.kernels.solid_faces import FREE

__all__ = ["Phases", "drop_at", "join_faces", "part_faces", "shares_of"]


class Phases(NamedTuple):
    """One axis of the faces of liquids and solids, on their own blocks; four values a point.

    Attributes:
        face: (m v, 0, 0, m).
        force: (f, 0, 0, V).
        velocity: (v, 0, 0, 0).
    """

    face: np.ndarray
    force: np.ndarray
    velocity: np.ndarray


@inline
def shares_of(one, other, n, phases, least):
    """Return mass and volume of liquid and solid at face n of their blocks; 0 where one is not there."""
    m_l = m_s = v_l = v_s = 0.0
    if one >= 0:
        m_l, v_l = np.float64(phases.face[4 * (64 * one + n) + 3]), np.float64(phases.force[4 * (64 * one + n) + 3])
    if other >= 0:
        m_s, v_s = np.float64(phases.face[4 * (64 * other + n) + 3]), np.float64(phases.force[4 * (64 * other + n) + 3])
    if not (m_l > least and v_l > 0.0):
        m_l = v_l = 0.0
    if not (m_s > least and v_s > 0.0):
        m_s = v_s = 0.0
    return m_l, m_s, v_l, v_s


@part
def _join_at(j, blocks, least, phases, joined, shares):
    one, other = np.int64(blocks[j, 0]), np.int64(blocks[j, 1])
    for n in range(64):
        m_l, m_s, v_l, v_s = shares_of(one, other, n, phases, least)
        here = 4 * (64 * j + n)
        if m_l > 0.0 and m_s > 0.0:
            theta = v_l / (v_l + v_s)
            mass = 1.0 / (theta * theta / m_l + (1.0 - theta) * (1.0 - theta) / m_s)
            a, b = theta / m_l, (1.0 - theta) / m_s
            i, k = 4 * (64 * one + n), 4 * (64 * other + n)
            joined.face[here] = mass * (a * phases.face[i] + b * phases.face[k])
            joined.face[here + 3] = mass
            joined.force[here] = mass * (a * phases.force[i] + b * phases.force[k])
            joined.force[here + 3] = v_l + v_s
            joined.velocity[here] = theta * phases.velocity[i] + (1.0 - theta) * phases.velocity[k]
            shares[64 * j + n] = 2.0 * theta - 1.0
        else:
            block = one if m_l > 0.0 or other < 0 else (other if m_s > 0.0 or one < 0 else one)
            i = 4 * (64 * block + n)
            joined.face[here], joined.face[here + 3] = phases.face[i], phases.face[i + 3]
            joined.force[here], joined.force[here + 3] = phases.force[i], phases.force[i + 3]
            joined.velocity[here] = phases.velocity[i]
            shares[64 * j + n] = 1.0 if m_l > 0.0 else (-1.0 if m_s > 0.0 else 0.0)


@compiled(fastmath=False)
def join_faces(blocks, least, phases, joined, shares):
    """Write the faces of one axis that the pressure sees.

    Args:
        blocks: Blocks of liquids and of solids at each place, -1 for none, shape (n, 2), int32.
        least: Masses up to which a face is empty [kg].
        phases: `Phases` of both.
        joined: `Phases` of the places; written.
        shares: theta_l - theta_s, 0 where there is neither, shape (64 n,), float64; written.
    """
    parallel_for(_join_at, blocks.shape[0], (blocks, least, lend_plain(phases), lend_plain(joined), shares))


@inline
def drop_at(f, axis, j, n, p):
    """Return the pressure behind a face less that before it [Pa]; nothing presses in cells that are not interior."""
    c, low = np.int64(64 * j + n), before(f.around, j, n, axis)
    return (p[c] if f.kind[c] == INTERIOR else 0.0) - (p[low] if low >= 0 and f.kind[low] == INTERIOR else 0.0)


@part
def _part_at(j, axis, place, phases, turns, f, slip, p):
    (blocks, least), (old, start) = place, turns
    velocity, mass = of_axis(axis, f.vx, f.vy, f.vz), of_axis(axis, f.mx, f.my, f.mz)
    state, forces = of_axis(axis, f.sx, f.sy, f.sz), of_axis(axis, slip.fx, slip.fy, slip.fz)
    one, other, pair = np.int64(blocks[j, 0]), np.int64(blocks[j, 1]), np.int64(slip.pairs[j])
    for n in range(64):
        c = np.int64(64 * j + n)
        now = np.float64(velocity[4 * c])
        m_l, m_s, v_l, v_s = shares_of(one, other, n, phases, least)
        if state[c] != FREE or m_l == 0.0 or m_s == 0.0:
            if one >= 0:
                phases.velocity[4 * (64 * one + n)] = now
            if other >= 0:
                phases.velocity[4 * (64 * other + n)] = now
            continue
        m, theta, low = np.float64(mass[4 * c + 3]), v_l / (v_l + v_s), before(f.around, j, n, axis)
        if not (f.kind[c] == INTERIOR or (low >= 0 and f.kind[low] == INTERIOR)):
            phases.velocity[4 * (64 * one + n)] += now - old[c]
            phases.velocity[4 * (64 * other + n)] += now - old[c]
            continue
        light, share = lightness(f, axis, c), of_axis(axis, f.tx, f.ty, f.tz)[c]
        pushed = light * slip.numbers[H] * m * drop_at(f, axis, j, n, p)
        held = of_axis(axis, slip.ix, slip.iy, slip.iz)[64 * pair + n] > 0.0
        pressed = light * slip.numbers[H] * m / share * forces[64 * pair + n] if held else 0.0
        begun = start[c] - old[c]
        phases.velocity[4 * (64 * one + n)] += begun - (theta * pushed + pressed) / m_l
        phases.velocity[4 * (64 * other + n)] += begun - ((1.0 - theta) * pushed - pressed) / m_s


@compiled(fastmath=False)
def part_faces(axis, blocks, least, phases, turns, f, slip, p):
    """Give liquids and solids their velocities along one axis.

    Args:
        axis: Axis of the faces.
        blocks, least: See `join_faces`.
        phases: `Phases` of both; their velocities are v* and are written.
        turns: Velocities of the joined faces as they were joined, and as the last solve found them, shape (64 n,) [m/s].
        f: The joined faces, with their final velocities.
        slip: Where both meet, with F.
        p: Pressure of the cells.
    """
    both = lend_plain(phases), turns, lend_plain(f), lend_plain(slip), plain(p)
    parallel_for(_part_at, blocks.shape[0], (axis, (blocks, least), *both))
