"""Control volumes of faces: the room that the matter around each has, which the pressure pushes.

The push on a face is dt V_f (G p)_f, so pushes add up to nothing, whatever the pressure, where all faces have one V_f: that is the
cell's volume h^3. Where a free surface cuts a face's quadratic B-spline only its mass is less. Where walls and bodies cut it the
volume is, too: V_f is the integral of the spline outside of them. Without
that, faces at walls would look light and rise. Half a stencil of particles is not its integral: a lattice of two an axis is
heavier by 1.25 % beside a wall (27/32 against 5/6), by 2.5 % where two meet, and would sink there. Incompressible matter is nowhere
denser than at rest, and other matter no denser than its J says, so V_f is at least the volume of the particles around such a face.

Faces whose spline ends in bodies that cut faces have theta h^3, theta their open share.
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.cells.cell_matrix import before
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.lend import lend_plain, plain
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.physics.projection.kernels.pressure import CLOSED, CONTROL_VOLUMES, INTERIOR, H, of_axis

__all__ = ["spread_volumes", "trim_volumes"]

REACH = 7
"""Cells along each axis that the splines of the faces of a block reach: from two before the block to one behind it."""


@inline
def _along(offset):
    """Return the integral of a face's spline over the cell at an offset along its own axis; 0 is the cell behind it."""
    return 23.0 / 48.0 if offset == -1 or offset == 0 else (1.0 / 48.0 if offset == -2 or offset == 1 else 0.0)


@inline
def _across(offset):
    return 2.0 / 3.0 if offset == 0 else 1.0 / 6.0


@part
def _cell_at(around, g, i, j, k):
    """Return the cell at places counted from the first of block g, at most a block away along each axis, or -1."""
    block = np.int64(g)
    if i < 0 or i > 3:
        block = np.int64(around[block, 0 if i < 0 else 1])
    if block >= 0 and (j < 0 or j > 3):
        block = np.int64(around[block, 2 if j < 0 else 3])
    if block >= 0 and (k < 0 or k > 3):
        block = np.int64(around[block, 4 if k < 0 else 5])
    return np.int64(64 * block + 16 * (i & 3) + 4 * (j & 3) + (k & 3)) if block >= 0 else np.int64(-1)


@inline
def _ratio_at(f, c):
    """Return how much of its undeformed volume the matter of a cell takes: J, or 1 where it is incompressible or absent."""
    mass = np.float64(f.cells[4 * c + 3])
    return 1.0 + np.float64(f.cells[4 * c]) / mass if f.kind[c] == INTERIOR and f.cells[4 * c + 2] > 0.0 else 1.0


@part
def _mark_at(g, f, marked):
    """Write whether bodies take room from a cell of a block."""
    found = False
    for c in range(64 * g, 64 * g + 64):
        found = found or f.kind[c] == CLOSED or f.room[c] < 1.0
    marked[g] = 1 if found and f.numbers[CONTROL_VOLUMES] != 0.0 else 0


@part
def _is_near(f, g, marked):
    """Return whether bodies take room from a block or one beside it."""
    for i in range(-1, 8, 4):
        for j in range(-1, 8, 4):
            for k in range(-1, 8, 4):
                other = _cell_at(f.around, g, i, j, k)
                if other >= 0 and marked[other >> 6]:
                    return True
    return False


@part
def _find_lost(f, g, lost, passed):
    """Write what bodies take of the cells from two before a block to one behind it, along each axis, and whether they cut them."""
    for i in range(REACH):
        for j in range(REACH):
            for k in range(REACH):
                other, n = _cell_at(f.around, g, i - 2, j - 2, k - 2), (REACH * i + j) * REACH + k
                lost[n], passed[n] = 0.0, 0
                if other >= 0:
                    lost[n] = 1.0 if f.kind[other] == CLOSED else 1.0 - f.room[other]
                    passed[n] = 1 if f.room[other] < 1.0 else 0


@part
def _cut_of(axis, n, lost, passed):
    """Return the share of the spline of face n that bodies take, and whether one cuts a cell of it."""
    layer = REACH * REACH
    along, one, other = (layer, REACH, 1) if axis == 0 else ((REACH, layer, 1) if axis == 1 else (1, layer, REACH))
    first = (REACH * ((n >> 4) + 2) + ((n >> 2) & 3) + 2) * REACH + (n & 3) + 2
    cut, crossed = 0.0, 0
    for a in range(-2, 2):
        for b in range(-1, 2):
            for c in range(-1, 2):
                place = first + a * along + b * one + c * other
                crossed |= passed[place]
                if lost[place] > 0.0:
                    cut += lost[place] * (_along(a) * _across(b) * _across(c))
    return cut, crossed


@part
def _volumes_at(g, f, marked, crossed):
    whole, near = f.numbers[H] ** 3, _is_near(f, g, marked)
    room = REACH**3 if near else 0
    lost, passed = np.empty(room), np.empty(room, np.uint8)
    if near:
        _find_lost(f, g, lost, passed)
    for axis in range(3):
        volumes, masses, shares = of_axis(axis, f.wx, f.wy, f.wz), of_axis(axis, f.nx, f.ny, f.nz), of_axis(axis, f.tx, f.ty, f.tz)
        alone = of_axis(axis, f.mx, f.my, f.mz)
        for n in range(64):
            here, cut = 64 * g + n, 0.0
            crossed[3 * here + axis] = 0
            if near:
                cut, crossed[3 * here + axis] = _cut_of(axis, n, lost, passed)
            volumes[here] = (1.0 - cut) * whole if cut > 0.0 else shares[here] * whole
            masses[here] = alone[4 * here + 3]


@compiled(fastmath=False)
def spread_volumes(count, f, crossed):
    """Write the control volumes and the masses of all faces, each for itself.

    Args:
        count: Number of grid blocks.
        f: The fields.
        crossed: Written, shape (192 count,), uint8: whether a face's spline ends in bodies that cut faces.
    """
    marked = np.empty(count, np.uint8)
    parallel_for(_mark_at, count, (lend_plain(f), plain(marked)))
    parallel_for(_volumes_at, count, (lend_plain(f), plain(marked), plain(crossed)))


@part
def _trim_at(g, f, crossed, rest):
    whole = f.numbers[H] ** 3
    for n in range(64):
        here = 64 * g + n
        for axis in range(3):
            volumes = of_axis(axis, f.wx, f.wy, f.wz)
            if crossed[3 * here + axis]:
                volumes[here] = whole * of_axis(axis, f.tx, f.ty, f.tz)[here]
                continue
            if volumes[here] < (1.0 - 1e-9) * whole:
                low, ratio = before(f.around, g, n, axis), _ratio_at(f, here)
                if low >= 0 and f.kind[low] == INTERIOR:
                    other_ratio = _ratio_at(f, low)
                    ratio = 0.5 * (ratio + other_ratio) if f.kind[here] == INTERIOR else other_ratio
                volumes[here] = max(volumes[here], ratio * rest[3 * here + axis])
            volumes[here] = min(volumes[here], whole)


@compiled(fastmath=False)
def trim_volumes(count, f, crossed, rest):
    """Give faces that walls cut the volume of their particles at least, none more than h^3; where bodies cut faces, theta h^3.

    With theta in the divergence as well as in the push, the solve takes the nearest velocities by mass: it adds no energy, and
    pushes add up to what bodies press.

    Args:
        count: Number of grid blocks.
        f: The fields.
        crossed: What `spread_volumes` wrote.
        rest: Volume of the particles, with what follows the faces [m^3], shape (192 count,).
    """
    parallel_for(_trim_at, count, (lend_plain(f), plain(crossed), plain(rest)))
