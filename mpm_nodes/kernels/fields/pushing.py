"""Kicks: what forces do to the velocities of particles in a substep.

| symbol | meaning | unit |
|---|---|---|
| a | acceleration, a field | m/s^2 |
| u | velocity that a drag draws to, a field | m/s |
| k | rate of a drag, a field | 1/s, 1/m |
| w | v - u | m/s |
| e | area that a particle turns to the wind, of V0 / h: see `exposure` | - |

    v <- v + dt a
    v <- u + w exp(-k dt)                          drag: dw/dt = -k w, exactly
    v <- u + w / (1 + k |w| dt)                    quadratic drag: dw/dt = -k |w| w, exactly
    k <- k e V0 / (m h)                            drag of the surface, k = rho c / 2 of the air

None makes matter faster than the most speed: then v is scaled to that, or to what it was before where that is more.

One after the other, on particles, before they are brought to the grid: explicit, implicit and projected substeps then take over the
same momentum.
"""

from __future__ import annotations

import math

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.lend import plain
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.fields.exposure import open_area, thinnest
from mpm_nodes.kernels.fields.programs import fill_own, run_at

__all__ = ["ACCELERATION", "DRAG", "QUADRATIC_DRAG", "SURFACE_DRAG", "kick", "push"]

ACCELERATION, DRAG, QUADRATIC_DRAG, SURFACE_DRAG = 0, 1, 2, 3
"""Kinds of forces."""


@part
def _free_kick(force, n, velocity, registers, dt, lying):
    """Return the velocity after a force, whatever its speed."""
    x, y, z = velocity
    value = force[3 * n + 1]
    u, v, w = registers[3 * value], registers[3 * value + 1], registers[3 * value + 2]
    if force[3 * n] == ACCELERATION:
        return x + dt * u, y + dt * v, z + dt * w
    rate = registers[3 * force[3 * n + 2]]
    if rate < 0.0:  # what is not a number stays so, and is told
        rate = 0.0
    x, y, z = x - u, y - v, z - w
    if force[3 * n] == SURFACE_DRAG:
        home, place, around, samples, thick, volume, size = lying
        rate *= thick * open_area(home, place, (x, y, z), around, samples, thinnest(volume, size))
    if force[3 * n] == DRAG:
        share = math.exp(-rate * dt)
    else:
        share = 1.0 / (1.0 + rate * math.sqrt(x * x + y * y + z * z) * dt)
    return u + share * x, v + share * y, w + share * z


@part
def _kick(force, n, velocity, registers, dt, most, lying):
    """Return the velocity after a force; `velocity` is that before it."""
    x, y, z = _free_kick(force, n, velocity, registers, dt, lying)
    before = velocity[0] * velocity[0] + velocity[1] * velocity[1] + velocity[2] * velocity[2]
    after, allowed = x * x + y * y + z * z, max(most * most, before)
    if after > allowed:
        share = math.sqrt(allowed / after)
        x, y, z = share * x, share * y, share * z
    return x, y, z


@part
def _drawn(force, n, velocity, registers, size, thick, volume):
    """Return the acceleration of a drag at most; what brings it to rest within a quarter of a cell is as good as more."""
    value, rate = force[3 * n + 1], max(registers[3 * force[3 * n + 2]], 0.0)
    x, y, z = velocity[0] - registers[3 * value], velocity[1] - registers[3 * value + 1], velocity[2] - registers[3 * value + 2]
    speed = math.sqrt(x * x + y * y + z * z)
    if force[3 * n] == SURFACE_DRAG:
        rate *= thick / thinnest(volume, size)
    return min(rate * speed * (1.0 if force[3 * n] == DRAG else speed), 4.0 * speed * speed / size)


@part
def kick(forces, m, now, registers, dt, lying, given):
    """Return the velocity of a particle after all forces, and the square of the largest acceleration; add what each gave."""
    table, most, count = forces
    thick, volume, size = lying[4], lying[5], lying[6]
    u = v = w = drawn = 0.0
    for n in range(count):
        value = table[3 * n + 1]
        if table[3 * n] == ACCELERATION:
            u, v, w = u + registers[3 * value], v + registers[3 * value + 1], w + registers[3 * value + 2]
        else:
            drawn = max(drawn, _drawn(table, n, now, registers, size, thick, volume))
        then = _kick(table, n, now, registers, dt, most[n], lying)
        given[4 * n + 0] += m * (then[0] - now[0])
        given[4 * n + 1] += m * (then[1] - now[1])
        given[4 * n + 2] += m * (then[2] - now[2])
        energy = then[0] * then[0] + then[1] * then[1] + then[2] * then[2]
        given[4 * n + 3] += 0.5 * m * (energy - now[0] * now[0] - now[1] * now[1] - now[2] * now[2])
        now = then
    return now, max(u * u + v * v + w * w, drawn * drawn)


@part
def _push_at(k, cloud, matter, where, program, forces, dt, work):
    (offset, stride, cell), velocity, mass = cloud
    ranges, corners = where
    scratch, told = work
    operations, rows, uniform, numbers, grids, own = program
    count = forces[2]
    block, registers, given = ranges[k, 2], plain(scratch[k]), plain(told[k])
    volume, size, samples, around, homes = matter
    home = homes[block]
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
        lying = home, place, around, samples, thick, float(volume[p]), size
        now, largest = kick(forces, m, now, registers, dt, lying, given)
        strongest = max(strongest, largest)
        if dt > 0.0:
            velocity[p], velocity[stride + p], velocity[2 * stride + p] = now[0], now[1], now[2]
    given[4 * count] = strongest


@compiled(fastmath=False)
def push(cloud, matter, where, program, forces, dt, told):
    """Change velocities by forces.

    Args:
        cloud: Placement (fixed-point offsets from the centres of the blocks, elements from row to row, size of a unit of them
            [m]); velocities, shape (3 stride,) [m/s], updated where dt is above 0; masses, shape (stride,) [kg].
        matter: Undeformed volumes, shape (stride,) [m^3]; cell size [m]; for drag of the surface f at the samples of all places,
            the places at and around each (see `exposure.open_area`), int32, and the place of each block, int32.
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
