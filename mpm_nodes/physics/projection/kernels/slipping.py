"""Liquids that slip on what keeps its shape: two velocities at a face, one pressure, and nothing that passes the surface.

| symbol | meaning | unit |
|---|---|---|
| i | l for liquids, s for solids | - |
| m_i, V_i, v_i | mass, undeformed volume and velocity of each at a face | kg, m^3, m/s |
| theta_i | V_i / (V_l + V_s) | - |
| t | open share of the face (`open_faces`) | - |
| n | unit normal of the surface in a cell, along grad (theta_l - theta_s), from the faces of the cell | - |
| p | pressure of a cell | Pa |
| q | pressure with which liquid and solid press each other in a cell | Pa |
| F | (c q)_f, c the components of n over the faces along their axis that hold both, two or one | Pa |
| phi | what walls and followers leave of a face's response: lightness times m over dt h t | - |

    t (theta_l v_l + theta_s v_s)                                      is the flux through a face
    v_l = v*_l - dt h^2 phi (t theta_l (p_c - p_low) + F) / m_l
    v_s = v*_s - dt h^2 phi (t theta_s (p_c - p_low) - F) / m_s
    sum_f c (v_l - v_s) = 0                                            in every interior cell that holds both

One pressure and no q would let a light ball squeeze through the water: each moves by its own density, and only their sum has no
divergence. The system of both, D M^-1 D^T of all constraints D, is symmetric and not negative. For the solve a face that holds both
is one of mass m = 1 / sum (theta_i^2 / m_i) and velocity sum theta_i v_i.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.cells.cell_matrix import before, behind
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.lend import lend_plain, plain
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.physics.projection.kernels.joined_faces import drop_at, shares_of
from mpm_nodes.physics.projection.kernels.pressure import DT, INTERIOR, H, lightness, of_axis

__all__ = ["LOOSE", "Slipping", "add_pushes", "find_forces", "find_rows", "press", "push", "right_side", "weigh_faces"]

LEVEL = 1e-3
"""Difference of theta_l - theta_s across a cell below which liquid and solid are mixed and have no surface there."""
LOOSE = 0.01
"""Share of its row that is added to the equation of q: neighbouring cells may ask for the same. With 0.005 solves take a fifth more
iterations, and a light ball of three cells begins half a percent slower."""


class Slipping(NamedTuple):
    """What cells and faces say where liquids and solids meet, 64 values for each pair of blocks at one place, float64.

    Attributes:
        places: Place of each pair among the joined blocks.
        pairs: Pair at each joined block, or -1.
        around: Pairs before and behind each pair, shape (pairs, 6); -1 for none.
        bx, by, bz: phi t (theta_l / m_l - theta_s / m_s) of the faces [1/kg]; 0 where one of both, or the pressure, does not act.
        ix, iy, iz: phi (1 / m_l + 1 / m_s) [1/kg].
        cx, cy, cz: c of the cells.
        own: Sum of a row of the equations of q, without signs [1/(Pa s)]; 1 where there is nothing to solve.
        fx, fy, fz: Scratch: F of the faces.
        ex, ey, ez: Scratch: what the faces give to the equations of q.
        numbers: dt [s], h [m].
    """

    places: np.ndarray
    pairs: np.ndarray
    around: np.ndarray
    bx: np.ndarray
    by: np.ndarray
    bz: np.ndarray
    ix: np.ndarray
    iy: np.ndarray
    iz: np.ndarray
    cx: np.ndarray
    cy: np.ndarray
    cz: np.ndarray
    own: np.ndarray
    fx: np.ndarray
    fy: np.ndarray
    fz: np.ndarray
    ex: np.ndarray
    ey: np.ndarray
    ez: np.ndarray
    numbers: np.ndarray


# ---------------------------------------------------------------- the equations of q
@part
def _weigh_at(k, axis, blocks, least, phases, f, slip):
    j, dt, h = np.int64(slip.places[k]), slip.numbers[DT], slip.numbers[H]
    weights, inverse = of_axis(axis, slip.bx, slip.by, slip.bz), of_axis(axis, slip.ix, slip.iy, slip.iz)
    for n in range(64):
        here, c = 64 * k + n, np.int64(64 * j + n)
        weights[here] = inverse[here] = 0.0
        m_l, m_s, v_l, v_s = shares_of(np.int64(blocks[j, 0]), np.int64(blocks[j, 1]), n, phases, least)
        if m_l == 0.0 or m_s == 0.0 or before(slip.around, k, n, axis) < 0:
            continue
        share, light = of_axis(axis, f.tx, f.ty, f.tz)[c], lightness(f, axis, c)
        if share > 0.0 and light > 0.0:
            phi = light * of_axis(axis, f.mx, f.my, f.mz)[4 * c + 3] / (dt * h * share)
            theta = v_l / (v_l + v_s)
            weights[here] = phi * share * (theta / m_l - (1.0 - theta) / m_s)
            inverse[here] = phi * (1.0 / m_l + 1.0 / m_s)


@compiled(fastmath=False)
def weigh_faces(axis, blocks, least, phases, f, slip):
    """Write what the faces of one axis weigh in the equations of p and q.

    Args:
        axis: Axis of the faces.
        blocks, least, phases: See `join_faces`.
        f: `pressure.Fields` of the joined faces, with masses and volumes.
        slip: Written: b and i of the axis.
    """
    parallel_for(_weigh_at, slip.places.shape[0], (axis, blocks, least, lend_plain(phases), lend_plain(f), lend_plain(slip)))


@part
def _normals_at(k, shares, f, slip):
    j = np.int64(slip.places[k])
    for n in range(64):
        row, c = np.int64(64 * k + n), np.int64(64 * j + n)
        slip.cx[row] = slip.cy[row] = slip.cz[row] = size = 0.0
        if f.kind[c] != INTERIOR:
            continue
        for axis in range(3):
            share, inverse = shares[axis], of_axis(axis, slip.ix, slip.iy, slip.iz)
            high = behind(slip.around, k, n, axis)
            slope = share[behind(f.around, j, n, axis)] - share[c]
            count = (1.0 if inverse[row] > 0.0 else 0.0) + (1.0 if high >= 0 and inverse[high] > 0.0 else 0.0)
            of_axis(axis, slip.cx, slip.cy, slip.cz)[row] = slope / count if count > 0.0 else 0.0
            size += slope * slope
        size = np.sqrt(size)
        for axis in range(3):
            along = of_axis(axis, slip.cx, slip.cy, slip.cz)
            along[row] = along[row] / size if size > LEVEL else 0.0


@part
def _bounds_at(k, slip):
    dt, h = slip.numbers[DT], slip.numbers[H]
    for n in range(64):
        row, total = np.int64(64 * k + n), 0.0
        for axis in range(3):
            inverse, along = of_axis(axis, slip.ix, slip.iy, slip.iz), of_axis(axis, slip.cx, slip.cy, slip.cz)
            low, high = before(slip.around, k, n, axis), behind(slip.around, k, n, axis)
            total += abs(along[row]) * inverse[row] * (abs(along[row]) + (abs(along[low]) if low >= 0 else 0.0))
            total += abs(along[row]) * inverse[high] * (abs(along[row]) + abs(along[high])) if high >= 0 else 0.0
        slip.own[row] = dt * h * total if total > 0.0 else 1.0


@compiled(fastmath=False)
def find_rows(shares, f, slip):
    """Write c and the sums of the rows of the equations of q.

    Args:
        shares: theta_l - theta_s of the faces of each axis, as `join_faces` writes them.
        f: See `weigh_faces`.
        slip: Written.
    """
    parallel_for(_normals_at, slip.places.shape[0], (shares, lend_plain(f), lend_plain(slip)))
    parallel_for(_bounds_at, slip.places.shape[0], (lend_plain(slip),))


@inline
def _force(slip, axis, k, n, q):
    """Return F of face n of pair k."""
    along, low = of_axis(axis, slip.cx, slip.cy, slip.cz), before(slip.around, k, n, axis)
    return along[64 * k + n] * q[64 * k + n] + (along[low] * q[low] if low >= 0 else 0.0)


@part
def _forces_at(k, f, slip, p, q):
    j = np.int64(slip.places[k])
    for axis in range(3):
        weights, inverse = of_axis(axis, slip.bx, slip.by, slip.bz), of_axis(axis, slip.ix, slip.iy, slip.iz)
        forces, given = of_axis(axis, slip.fx, slip.fy, slip.fz), of_axis(axis, slip.ex, slip.ey, slip.ez)
        for n in range(64):
            here, force = 64 * k + n, _force(slip, axis, k, n, q)
            forces[here] = force
            given[here] = weights[here] * drop_at(f, axis, j, n, p) + inverse[here] * force if inverse[here] > 0.0 else 0.0


@inline
def _sum_of(slip, k, n):
    """Return the sum of what the faces of a cell give to its equation."""
    total, row = 0.0, np.int64(64 * k + n)
    for axis in range(3):
        given, high = of_axis(axis, slip.ex, slip.ey, slip.ez), behind(slip.around, k, n, axis)
        here = given[row] + (given[high] if high >= 0 else 0.0)
        total += of_axis(axis, slip.cx, slip.cy, slip.cz)[row] * here
    return total


@part
def _equations_at(k, slip, q, result):
    dt, h = slip.numbers[DT], slip.numbers[H]
    for n in range(64):
        row = 64 * k + n
        result[row] = dt * h * _sum_of(slip, k, n) + LOOSE * slip.own[row] * q[row]


@part
def _cells_at(j, f, slip, result):
    dt, h = slip.numbers[DT], slip.numbers[H]
    for n in range(64):
        c = 64 * j + n
        if f.kind[c] != INTERIOR:
            continue
        total, pair = 0.0, np.int64(slip.pairs[j])
        for axis in range(3):
            weights, forces = of_axis(axis, slip.bx, slip.by, slip.bz), of_axis(axis, slip.fx, slip.fy, slip.fz)
            high = behind(f.around, j, n, axis)
            other = np.int64(slip.pairs[high >> 6]) if high >= 0 else np.int64(-1)
            if pair >= 0:
                total += weights[64 * pair + n] * forces[64 * pair + n]
            if other >= 0:
                total -= weights[64 * other + (high & 63)] * forces[64 * other + (high & 63)]
        result[c] += dt * h * total


@compiled(fastmath=False)
def add_pushes(count, f, slip, x, result):
    """Add to A x what q does to the cells, and write what x gives to the equations of q.

    Args:
        count: Number of joined blocks.
        f: The joined faces.
        slip: Where both meet.
        x: p of the cells and, behind them, q of the pairs.
        result: A x of the pressure alone; changed.
    """
    p, q = x[: 64 * count], x[64 * count :]
    parallel_for(_forces_at, slip.places.shape[0], (lend_plain(f), lend_plain(slip), plain(p), plain(q)))
    parallel_for(_equations_at, slip.places.shape[0], (lend_plain(slip), plain(q), plain(result[64 * count :])))
    parallel_for(_cells_at, count, (lend_plain(f), lend_plain(slip), plain(result)))


@part
def _alone_at(k, slip, q):
    for axis in range(3):
        inverse, given = of_axis(axis, slip.ix, slip.iy, slip.iz), of_axis(axis, slip.ex, slip.ey, slip.ez)
        for n in range(64):
            given[64 * k + n] = inverse[64 * k + n] * _force(slip, axis, k, n, q)


@compiled(fastmath=False)
def press(slip, q, result):
    """Write what q gives to its own equations, shape (64 pairs,)."""
    parallel_for(_alone_at, slip.places.shape[0], (lend_plain(slip), plain(q)))
    parallel_for(_equations_at, slip.places.shape[0], (lend_plain(slip), plain(q), plain(result)))


@part
def _apart_at(k, blocks, phases, slip):
    j = np.int64(slip.places[k])
    one, other = np.int64(blocks[j, 0]), np.int64(blocks[j, 1])
    for axis in range(3):
        velocity = of_axis(axis, phases[0], phases[1], phases[2])
        inverse, given = of_axis(axis, slip.ix, slip.iy, slip.iz), of_axis(axis, slip.ex, slip.ey, slip.ez)
        for n in range(64):
            apart = np.float64(velocity[4 * (64 * one + n)]) - np.float64(velocity[4 * (64 * other + n)])
            given[64 * k + n] = apart if inverse[64 * k + n] > 0.0 else 0.0


@part
def _right_at(k, slip, right):
    for n in range(64):
        right[64 * k + n] = _sum_of(slip, k, n) / slip.numbers[H]


@compiled(fastmath=False)
def right_side(blocks, velocities, slip, right):
    """Write the right side of the equations of q [1/s].

    Args:
        blocks: See `join_faces`.
        velocities: v* of liquids and solids, four values a face, for each axis.
        slip: Where both meet.
        right: Shape (64 pairs,); written.
    """
    parallel_for(_apart_at, slip.places.shape[0], (blocks, velocities, lend_plain(slip)))
    parallel_for(_right_at, slip.places.shape[0], (lend_plain(slip), plain(right)))


# ---------------------------------------------------------------- what comes of it
@part
def _push_at(k, f, slip, times):
    j, push = np.int64(slip.places[k]), times * slip.numbers[DT] * slip.numbers[H] ** 2
    for axis in range(3):
        weights, forces = of_axis(axis, slip.bx, slip.by, slip.bz), of_axis(axis, slip.fx, slip.fy, slip.fz)
        velocity, shares = of_axis(axis, f.vx, f.vy, f.vz), of_axis(axis, f.tx, f.ty, f.tz)
        for n in range(64):
            if weights[64 * k + n] != 0.0:
                c = 64 * j + n
                velocity[4 * c] -= push * weights[64 * k + n] / shares[c] * forces[64 * k + n]


@compiled(fastmath=False)
def find_forces(f, slip, p, q):
    """Write F of the faces.

    Args:
        f: The joined faces.
        slip: Where both meet.
        p: Pressure of the cells.
        q: q of the pairs.
    """
    parallel_for(_forces_at, slip.places.shape[0], (lend_plain(f), lend_plain(slip), plain(p), plain(q)))


@compiled(fastmath=False)
def push(f, slip, times):
    """Take from the joined faces what F pushes, so many times: -1 gives it back."""
    parallel_for(_push_at, slip.places.shape[0], (lend_plain(f), lend_plain(slip), np.float64(times)))
