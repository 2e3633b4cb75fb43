"""Kicks: what forces do to the velocities of particles in a substep.

| symbol | meaning | unit |
|---|---|---|
| a | acceleration, a field | m/s^2 |
| u | velocity that a drag draws to, a field | m/s |
| k | rate of a drag, a field | 1/s, 1/m |
| w | v - u | m/s |
| f, e | share of a cell that undeformed matter fills; windward area of a particle's cell that is open, of h^2 | - |

    v <- v + dt a                                  no faster by it than the most speed
    v <- u + w exp(-k dt)                          drag: dw/dt = -k w, exactly
    v <- u + w / (1 + k |w| dt)                    quadratic drag: dw/dt = -k |w| w, exactly
    k <- k e V0 / (m h),  e = sum |w_a| / |w| max(0, 1 - (f_1 + f_2) / f)    drag of the surface, k = rho c / 2 of the air

with f_1 and f_2 of the two cells to windward along each axis a, and f of the particle's own: what lies behind as much matter as its
cell holds is in the lee; a layer that fills part of a cell and the one behind it share h^2 between them.

One after the other, on particles, before they are brought to the grid: explicit, implicit and projected substeps then take over the
same momentum.
"""

from __future__ import annotations

import math

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.lend import plain
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.fields.programs import fill_own, run_at

__all__ = ["ACCELERATION", "DRAG", "QUADRATIC_DRAG", "SURFACE_DRAG", "fill_cells_of_blocks", "push"]

ACCELERATION, DRAG, QUADRATIC_DRAG, SURFACE_DRAG = 0, 1, 2, 3
"""Kinds of forces."""


@part
def _cell_of(at):
    """Return the cell of a block along an axis, of an offset from its centre [cells]: 0 to 3, -1 and 4 where it has drifted out."""
    return min(max(int(at + 4.0) - 2, -1), 4)


@part
def _row(block, i, j, k):
    """Return the place of a cell in the table, which holds 6^3 cells a block: those around it for what has drifted out."""
    return 216 * block + 36 * (i + 1) + 6 * (j + 1) + k + 1


@part
def _filled_at(block, i, j, k, cells, around):
    """Return f of a cell, whose place may lie up to three cells outside of the block along one axis."""
    axis = 0 if i < 0 or i > 3 else (1 if j < 0 or j > 3 else 2)
    at = i if axis == 0 else (j if axis == 1 else k)
    if at < 0 or at > 3:
        beside = around[6 * block + 2 * axis + (1 if at > 3 else 0)]
        if beside < 0:
            return cells[_row(block, i, j, k)] if -1 <= at <= 4 else 0.0
        block = beside
        i, j, k = i & 3 if axis == 0 else i, j & 3 if axis == 1 else j, k & 3 if axis == 2 else k
    i, j, k = min(max(i, 0), 3), min(max(j, 0), 3), min(max(k, 0), 3)
    total = cells[_row(block, i, j, k)]
    for axis in range(3):  # what has drifted here out of the blocks beside it
        at = i if axis == 0 else (j if axis == 1 else k)
        if at == 0 or at == 3:
            beside = around[6 * block + 2 * axis + (1 if at == 3 else 0)]
            if beside >= 0:
                out = -1 if at == 3 else 4
                total += cells[_row(beside, out if axis == 0 else i, out if axis == 1 else j, out if axis == 2 else k)]
    return total


@part
def _open_area(block, place, wind, cells, around):
    """Return e of a particle: its place is in cells from its block's centre, the wind what it moves at through the air."""
    i, j, k = _cell_of(place[0]), _cell_of(place[1]), _cell_of(place[2])
    speed = math.sqrt(wind[0] * wind[0] + wind[1] * wind[1] + wind[2] * wind[2])
    own, area = max(_filled_at(block, i, j, k, cells, around), 1e-6), 0.0
    for axis in range(3):
        along = wind[0] if axis == 0 else (wind[1] if axis == 1 else wind[2])
        a = (1 if along > 0.0 else -1) if axis == 0 else 0
        b = (1 if along > 0.0 else -1) if axis == 1 else 0
        c = (1 if along > 0.0 else -1) if axis == 2 else 0
        windward = _filled_at(block, i + a, j + b, k + c, cells, around)
        windward += _filled_at(block, i + 2 * a, j + 2 * b, k + 2 * c, cells, around)
        area += abs(along) * max(1.0 - windward / own, 0.0)
    return area / speed if speed > 0.0 else 0.0


@part
def _kick(force, n, velocity, registers, dt, most, open_cell):
    """Return the velocity after a force; `velocity` is that before it."""
    x, y, z = velocity
    value = force[3 * n + 1]
    u, v, w = registers[3 * value], registers[3 * value + 1], registers[3 * value + 2]
    if force[3 * n] == ACCELERATION:
        before = x * x + y * y + z * z
        x, y, z = x + dt * u, y + dt * v, z + dt * w
        after, allowed = x * x + y * y + z * z, max(most * most, before)
        if after > allowed:
            share = math.sqrt(allowed / after)
            x, y, z = share * x, share * y, share * z
        return x, y, z
    rate = max(registers[3 * force[3 * n + 2]], 0.0)
    x, y, z = x - u, y - v, z - w
    if force[3 * n] == SURFACE_DRAG:
        block, place, cells, around, thick = open_cell
        rate *= thick * _open_area(block, place, (x, y, z), cells, around)
    if force[3 * n] == DRAG:
        share = math.exp(-rate * dt)
    else:
        share = 1.0 / (1.0 + rate * math.sqrt(x * x + y * y + z * z) * dt)
    return u + share * x, v + share * y, w + share * z


@part
def _drawn(force, n, velocity, registers, size, thick):
    """Return the acceleration of a drag at most; what brings it to rest within a quarter of a cell is as good as more."""
    value, rate = force[3 * n + 1], max(registers[3 * force[3 * n + 2]], 0.0)
    x, y, z = velocity[0] - registers[3 * value], velocity[1] - registers[3 * value + 1], velocity[2] - registers[3 * value + 2]
    speed = math.sqrt(x * x + y * y + z * z)
    if force[3 * n] == SURFACE_DRAG:
        rate *= thick
    return min(rate * speed * (1.0 if force[3 * n] == DRAG else speed), 4.0 * speed * speed / size)


@part
def _push_at(k, cloud, matter, where, program, forces, dt, work):
    (offset, stride, cell), velocity, mass = cloud
    ranges, corners = where
    scratch, told = work
    operations, rows, uniform, numbers, grids, own = program
    table, most, count = forces
    block, registers, given = ranges[k, 2], plain(scratch[k]), plain(told[k])
    volume, size, cells, around, places = matter
    lying = places[block]
    cx, cy, cz = corners[block, 0], corners[block, 1], corners[block, 2]
    run_at(operations, (0, uniform), numbers, grids, 0.0, 0.0, 0.0, registers)
    strongest = 0.0
    for p in range(ranges[k, 0], ranges[k, 1]):
        x = cx + cell * offset[p]
        y = cy + cell * offset[stride + p]
        z = cz + cell * offset[2 * stride + p]
        if own[2] > 0:  # a call costs as much as a uniform force
            fill_own(own, p, registers)
        run_at(operations, (uniform, rows), numbers, grids, x, y, z, registers)
        m = float(mass[p])
        place = cell / size * offset[p], cell / size * offset[stride + p], cell / size * offset[2 * stride + p]
        thick = float(volume[p]) / (m * size)
        now = float(velocity[p]), float(velocity[stride + p]), float(velocity[2 * stride + p])
        u = v = w = drawn = 0.0
        for n in range(count):
            value = table[3 * n + 1]
            if table[3 * n] == ACCELERATION:
                u, v, w = u + registers[3 * value], v + registers[3 * value + 1], w + registers[3 * value + 2]
            else:
                drawn = max(drawn, _drawn(table, n, now, registers, size, thick))
            then = _kick(table, n, now, registers, dt, most[n], (lying, place, cells, around, thick))
            given[4 * n + 0] += m * (then[0] - now[0])
            given[4 * n + 1] += m * (then[1] - now[1])
            given[4 * n + 2] += m * (then[2] - now[2])
            energy = then[0] * then[0] + then[1] * then[1] + then[2] * then[2]
            given[4 * n + 3] += 0.5 * m * (energy - now[0] * now[0] - now[1] * now[1] - now[2] * now[2])
            now = then
        strongest = max(strongest, u * u + v * v + w * w, drawn * drawn)
        if dt > 0.0:
            velocity[p], velocity[stride + p], velocity[2 * stride + p] = now[0], now[1], now[2]
    given[4 * count] = strongest


@compiled(fastmath=False)
def push(cloud, matter, where, program, forces, dt, told):
    """Change velocities by forces.

    Args:
        cloud: Placement (fixed-point offsets from the centres of the blocks, elements from row to row, size of a unit of them
            [m]); velocities, shape (3 stride,) [m/s], updated where dt is above 0; masses, shape (stride,) [kg].
        matter: Undeformed volumes, shape (stride,) [m^3]; cell size [m]; for drag of the surface f as `fill_cells_of_blocks` finds
            it, summed up over the blocks of one place; the places before and behind each along x, y and z, -1 for none, shape
            (6 places,), int32; the place of each block, int32.
        where: First and last + 1 of the particles of each block, and the block, shape (n, 3); centres of the blocks [m], shape
            (blocks, 3), float64.
        program: Operations of all fields, how many of them are the same everywhere, numbers, grids and what particles have of their
            own, as `evaluate` takes them.
        forces: Of each its kind, the registers of its value and its rate, shape (3 n,), int32, and the most speed [m/s], float64.
        dt: [s]; 0 only to find the strongest.
        told: Written: of each block and force impulse [N s] and work [J], and behind the forces the square of the largest
            acceleration that all of them give together, and each drag [m^2/s^4], shape (n, 4 forces + 4), float64.
    """
    told[:] = 0.0
    (offset, stride, cell), velocity, mass = cloud
    operations, uniform, numbers, grids, own = program
    rows, most = forces
    count = operations.shape[0] // 5
    ranges = where[0]
    scratch = np.empty((ranges.shape[0], 3 * count))
    mine = plain(own[0]), plain(own[1]), own[0].shape[0], own[1].shape[0] // max(3 * own[0].shape[0], 1)
    given = (
        ((plain(offset), stride, cell), plain(velocity), plain(mass)),
        (plain(matter[0]), matter[1], plain(matter[2]), plain(matter[3]), plain(matter[4])),
        where,
        (plain(operations), count, uniform, plain(numbers), (plain(grids[0]), plain(grids[1])), mine),
        (plain(rows), plain(most), most.shape[0]),
        dt,
        (scratch, told),
    )
    parallel_for(_push_at, ranges.shape[0], given)


@part
def _fill_at(k, placement, volume, ranges, size, cells):
    offset, stride, unit = placement
    block = ranges[k, 2]
    for n in range(216 * block, 216 * block + 216):
        cells[n] = 0.0
    share = 1.0 / (size * size * size)
    for p in range(ranges[k, 0], ranges[k, 1]):
        i, j, m = _cell_of(unit * offset[p]), _cell_of(unit * offset[stride + p]), _cell_of(unit * offset[2 * stride + p])
        cells[_row(block, i, j, m)] += share * volume[p]


@compiled(fastmath=False)
def fill_cells_of_blocks(placement, volume, ranges, size, cells):
    """Find what share of each cell undeformed matter fills.

    Args:
        placement: Offsets, elements from row to row, size of a unit of offsets [cells].
        volume: Shape (stride,) [m^3].
        ranges: As `push` takes them.
        size: Of a cell [m].
        cells: Written, 6^3 a block: its own 4^3 and those around it, for what has drifted out; shape (216 blocks,), float64.
    """
    offset, stride, unit = placement
    parallel_for(_fill_at, ranges.shape[0], ((plain(offset), stride, unit), plain(volume), ranges, size, plain(cells)))
