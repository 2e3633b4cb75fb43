"""The generalised Chorin projection on the cells of the staggered grid (S14 sections 5.4 and 5.7).

| symbol | meaning | unit |
|---|---|---|
| m_f, V_f, rho_f | mass of a face, its control volume, m_f / V_f | kg, m^3, kg/m^3 |
| J, J_E | volume ratio of a cell, that of its elastic strain, averaged by mass | - |
| J_P | J / J_E | - |
| k | compressibility 1 / lam of a cell, averaged by mass; 0 is incompressible | 1/Pa |
| p | pressure | Pa |

    k J_P / (J_E dt) p_c + dt sum_f (1 / rho_f) (G^T G p)_f = -(J_E - 1) / (dt J_E) - div v*     on interior cells
    v_f = v*_f - dt (1 / rho_f) (G p)_f                                                      on faces that no body holds

A cell is interior where it has mass, all six faces have, a body does not hold all of them, and no liquid is known to fill less than
half of its room; it is empty, with p = 0, where it is neither that nor inside a body. Spray gives all cells around it mass: without
divergence it would keep its distances, and hang in the air.
The sign of the divergence is that of the derivation; S14 prints the other one.

The push on a face is dt V_f (G p)_f (`face_volumes`). Faces that smooth bodies cut have the flux theta v + (1 - theta) u_b, theta
the open share of the face (`open_faces`), and V_f = theta h^3; then the solve finds the nearest velocities by mass, adds no energy,
and what it pushes adds up to what the bodies press. Cells that such bodies reach into take no volume error back: particles
integrate J by the velocities of whole faces, and holding that against the flux through open shares would feed on itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.cells.cell_matrix import before, behind
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.lend import lend_plain, plain
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.transfers.room import AIR
from mpm_nodes.physics.projection.kernels.solid_faces import FREE, HELD, LEVEL, SLIDING

__all__ = [
    "CLOSED",
    "EMPTY",
    "INTERIOR",
    "RELEASED",
    "Fields",
    "PressureSystem",
    "assemble_pressure",
    "classify",
    "correct",
    "divergences",
    "find_done",
    "lightness",
    "of_axis",
]

DT, H, LEAST_MASS, CONTROL_VOLUMES, VOLUME_SHARE = range(5)
"""Places of `Fields.numbers`."""
EMPTY, INTERIOR, CLOSED, RELEASED = 0, 1, 2, 3
"""Kinds of cells; CLOSED ones lie inside a body, and from RELEASED ones, which a body cuts, matter leaves: p = 0."""


class Fields(NamedTuple):
    """What the projection works on; arrays of the grid have four values a point.

    Attributes:
        cells: (m (J - 1), m (J_E - 1), m k, m) of the cells.
        mx, my, mz: (m v, 0, 0, m) of the faces.
        vx, vy, vz: Velocities of the faces, in the first place.
        around: Blocks before and behind along x, y and z.
        sx, sy, sz: States of the faces.
        ux, uy, uz: Velocities that bodies give to held faces [m/s]; LEVEL at faces that slide along a level surface.
        wx, wy, wz: Control volumes [m^3].
        nx, ny, nz: Masses with those of the faces that follow [kg].
        tx, ty, tz: Open shares of the faces, theta (`open_faces`); 1 where no body cuts them.
        bx, by, bz: (1 - theta) times the velocity of the body that cuts a face [m/s].
        room: Share of the cells that these bodies leave open.
        filling: What liquids take of the room in the cells, the second of four values; 0 where it is not known.
        kind: Kinds of the cells.
        numbers: dt [s], h [m], least mass [kg], whether control volumes count, share of the volume error of incompressible cells,
            at `DT` and so on.
    """

    cells: np.ndarray
    mx: np.ndarray
    my: np.ndarray
    mz: np.ndarray
    vx: np.ndarray
    vy: np.ndarray
    vz: np.ndarray
    around: np.ndarray
    sx: np.ndarray
    sy: np.ndarray
    sz: np.ndarray
    ux: np.ndarray
    uy: np.ndarray
    uz: np.ndarray
    wx: np.ndarray
    wy: np.ndarray
    wz: np.ndarray
    nx: np.ndarray
    ny: np.ndarray
    nz: np.ndarray
    tx: np.ndarray
    ty: np.ndarray
    tz: np.ndarray
    bx: np.ndarray
    by: np.ndarray
    bz: np.ndarray
    room: np.ndarray
    filling: np.ndarray
    kind: np.ndarray
    numbers: np.ndarray


class PressureSystem(NamedTuple):
    """The system of the pressure, one float64 a cell; faces carry the number of the cell behind them.

    Attributes:
        diagonal: k J_P / (J_E dt) + sum dt / (rho h^2) [1/(Pa s)]; 1 where there is nothing to solve.
        x, y, z: dt / (rho h^2) of faces between interior cells.
        right: Right side [1/s].
        own: k J_P / (J_E dt).
    """

    diagonal: np.ndarray
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    right: np.ndarray
    own: np.ndarray


@inline
def of_axis(axis, x, y, z):
    return x if axis == 0 else (y if axis == 1 else z)


@inline
def _cut_off(f, axis, face):
    """Return whether nothing of a face lies outside of the bodies that cut faces."""
    return of_axis(axis, f.tx, f.ty, f.tz)[face] == 0.0


@inline
def _shut(f, axis, face):
    return of_axis(axis, f.sx, f.sy, f.sz)[face] != FREE or _cut_off(f, axis, face)


# ---------------------------------------------------------------- classification
@part
def _classify_at(g, f):
    least = f.numbers[LEAST_MASS]
    for n in range(64):
        c = 64 * g + n
        massive, held = f.cells[4 * c + 3] > least and not 0.0 < f.filling[4 * c + 1] < AIR, True
        for axis in range(3):
            mass, high = of_axis(axis, f.mx, f.my, f.mz), behind(f.around, g, n, axis)
            shut, high_shut = _shut(f, axis, c), high < 0 or _shut(f, axis, high)
            massive = massive and (mass[4 * c + 3] > least or _cut_off(f, axis, c))
            massive = massive and high >= 0 and (mass[4 * high + 3] > least or _cut_off(f, axis, high))
            held = held and shut and high_shut
        f.kind[c] = CLOSED if held else (INTERIOR if massive else EMPTY)
        for axis in range(3):
            velocity = of_axis(axis, f.vx, f.vy, f.vz)
            if of_axis(axis, f.sx, f.sy, f.sz)[c] == HELD:
                velocity[4 * c] = of_axis(axis, f.ux, f.uy, f.uz)[c]


@part
def _release_at(g, f):
    for n in range(64):
        c = np.int64(64 * g + n)
        for axis in range(3):
            states, low = of_axis(axis, f.sx, f.sy, f.sz), before(f.around, g, n, axis)
            if states[c] >= SLIDING and of_axis(axis, f.ux, f.uy, f.uz)[c] == LEVEL:
                if f.kind[c] == INTERIOR or (low >= 0 and f.kind[low] == INTERIOR):
                    states[c] = FREE


@compiled(fastmath=False)
def classify(count, f):
    """Write the kinds of the cells, give held faces the velocity of their body, and free those that slide beside the interior.

    A level surface between two layers of faces leaves cells open whose faces along it lie inside the body. Pressure reaches these
    faces, and nothing holds them. If they followed others, their cells would be solved for velocities that they do not get: where
    matter only begins, their own are anything. On a slope they follow: what is free between its stairs interlocks with them.
    """
    parallel_for(_classify_at, count, (lend_plain(f),))
    parallel_for(_release_at, count, (lend_plain(f),))


# ---------------------------------------------------------------- the system
@inline
def lightness(f, axis, face):
    """Return dt / (rho h^2) of a face, 0 where a body holds it."""
    if _shut(f, axis, face):
        return 0.0
    mass = of_axis(axis, f.nx, f.ny, f.nz)[face]
    if mass <= f.numbers[LEAST_MASS]:
        return 0.0
    return f.numbers[DT] * of_axis(axis, f.wx, f.wy, f.wz)[face] / (mass * f.numbers[H] ** 2)


@inline
def _flux(f, axis, face):
    """Return theta v + (1 - theta) u_b of a face [m/s]."""
    theta, velocity = of_axis(axis, f.tx, f.ty, f.tz)[face], np.float64(of_axis(axis, f.vx, f.vy, f.vz)[4 * face])
    return theta * velocity + of_axis(axis, f.bx, f.by, f.bz)[face] if theta < 1.0 else velocity


@part
def _divergence(f, g, n):
    """Return div v of a cell [1/s]."""
    c, total = 64 * g + n, 0.0
    for axis in range(3):
        high = behind(f.around, g, n, axis)
        total += _flux(f, axis, high) - _flux(f, axis, c)
    return total / f.numbers[H]


@part
def _assemble_at(g, f, system):
    dt = f.numbers[DT]
    for n in range(64):
        c = np.int64(64 * g + n)
        system.x[c] = system.y[c] = system.z[c] = system.right[c] = system.own[c] = 0.0
        system.diagonal[c] = 1.0
        if f.kind[c] != INTERIOR:
            continue
        mass = np.float64(f.cells[4 * c + 3])
        ratio, elastic = 1.0 + np.float64(f.cells[4 * c]) / mass, 1.0 + np.float64(f.cells[4 * c + 1]) / mass
        compressibility = np.float64(f.cells[4 * c + 2]) / mass
        system.own[c] = total = compressibility * ratio / (elastic * elastic * dt)
        for axis in range(3):
            low, high = before(f.around, g, n, axis), behind(f.around, g, n, axis)
            shares = of_axis(axis, f.tx, f.ty, f.tz)
            lower, upper = shares[c] * lightness(f, axis, c), shares[high] * lightness(f, axis, high)
            total += lower + upper
            if low >= 0 and f.kind[low] == INTERIOR:
                of_axis(axis, system.x, system.y, system.z)[c] = lower
        system.diagonal[c] = total if total > 0.0 else 1.0
        share = 1.0 if compressibility > 0.0 else (f.numbers[VOLUME_SHARE] if f.room[c] == 1.0 else 0.0)
        system.right[c] = -share * (elastic - 1.0) / (dt * elastic) - _divergence(f, g, n)


@compiled(fastmath=False)
def assemble_pressure(count, f, system):
    """Write the system of the pressure."""
    parallel_for(_assemble_at, count, (lend_plain(f), lend_plain(system)))


# ---------------------------------------------------------------- what comes of it
@inline
def _solved(f, c):
    return f.kind[c] == INTERIOR or f.kind[c] == RELEASED


@part
def _done_at(g, f, done):
    for n in range(64):
        c = np.int64(64 * g + n)
        for axis in range(3):
            low, state = before(f.around, g, n, axis), of_axis(axis, f.sx, f.sy, f.sz)[c]
            touched = _solved(f, c) or (low >= 0 and _solved(f, low))
            done[3 * c + axis] = 1 if state == HELD or (touched and not _shut(f, axis, c)) else 0


@compiled(fastmath=False)
def find_done(count, f, done):
    """Write 1 to `done`, shape (192 count,), uint8, where a solve gives the velocity of a face or a body does, 0 elsewhere."""
    parallel_for(_done_at, count, (lend_plain(f), plain(done)))


@part
def _correct_at(g, f, pressure):
    for n in range(64):
        c = np.int64(64 * g + n)
        for axis in range(3):
            low = before(f.around, g, n, axis)
            mine, its = f.kind[c] == INTERIOR, low >= 0 and f.kind[low] == INTERIOR
            if (mine or its) and not _shut(f, axis, c):
                p = (pressure[c] if mine else 0.0) - (pressure[low] if its else 0.0)
                of_axis(axis, f.vx, f.vy, f.vz)[4 * c] -= lightness(f, axis, c) * f.numbers[H] * p


@compiled(fastmath=False)
def correct(count, f, pressure):
    """Take the pressure's push from the faces."""
    parallel_for(_correct_at, count, (lend_plain(f), plain(pressure)))


@part
def _divergences_at(g, f, result):
    for n in range(64):
        c = 64 * g + n
        result[c] = _divergence(f, g, n) if f.kind[c] == INTERIOR else 0.0


@compiled(fastmath=False)
def divergences(count, f, result):
    """Write div v of the interior cells [1/s], 0 elsewhere."""
    parallel_for(_divergences_at, count, (lend_plain(f), plain(result)))
