"""Kicks: what forces do to the velocities of particles in a substep.

| symbol | meaning | unit |
|---|---|---|
| a | acceleration, a field | m/s^2 |
| u | velocity that a drag draws to, a field | m/s |
| k | rate of a drag, a field | 1/s, 1/m |
| w | v - u | m/s |

    v <- v + dt a                                  no faster by it than the most speed
    v <- u + w exp(-k dt)                          drag: dw/dt = -k w, exactly
    v <- u + w / (1 + k |w| dt)                    quadratic drag: dw/dt = -k |w| w, exactly

One after the other, on particles, before they are brought to the grid: explicit, implicit and projected substeps then take over the
same momentum.
"""

from __future__ import annotations

import math

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.lend import plain
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.fields.programs import run_at

__all__ = ["ACCELERATION", "DRAG", "QUADRATIC_DRAG", "push"]

ACCELERATION, DRAG, QUADRATIC_DRAG = 0, 1, 2
"""Kinds of forces."""


@part
def _kick(force, n, velocity, registers, dt, most):
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
    if force[3 * n] == DRAG:
        share = math.exp(-rate * dt)
    else:
        share = 1.0 / (1.0 + rate * math.sqrt(x * x + y * y + z * z) * dt)
    return u + share * x, v + share * y, w + share * z


@part
def _push_at(k, placement, velocity, mass, ranges, corners, program, forces, dt, scratch, told):
    offset, stride, cell = placement
    operations, rows, uniform, numbers, grids = program
    table, most, count = forces
    block, registers, given = ranges[k, 2], plain(scratch[k]), plain(told[k])
    cx, cy, cz = corners[block, 0], corners[block, 1], corners[block, 2]
    run_at(operations, (0, uniform), numbers, grids, 0.0, 0.0, 0.0, registers)
    strongest = 0.0
    for p in range(ranges[k, 0], ranges[k, 1]):
        x = cx + cell * offset[p]
        y = cy + cell * offset[stride + p]
        z = cz + cell * offset[2 * stride + p]
        run_at(operations, (uniform, rows), numbers, grids, x, y, z, registers)
        m = float(mass[p])
        now = float(velocity[p]), float(velocity[stride + p]), float(velocity[2 * stride + p])
        u = v = w = 0.0
        for n in range(count):
            value = table[3 * n + 1]
            if table[3 * n] == ACCELERATION:
                u, v, w = u + registers[3 * value], v + registers[3 * value + 1], w + registers[3 * value + 2]
            then = _kick(table, n, now, registers, dt, most[n])
            given[4 * n + 0] += m * (then[0] - now[0])
            given[4 * n + 1] += m * (then[1] - now[1])
            given[4 * n + 2] += m * (then[2] - now[2])
            energy = then[0] * then[0] + then[1] * then[1] + then[2] * then[2]
            given[4 * n + 3] += 0.5 * m * (energy - now[0] * now[0] - now[1] * now[1] - now[2] * now[2])
            now = then
        strongest = max(strongest, u * u + v * v + w * w)
        if dt > 0.0:
            velocity[p], velocity[stride + p], velocity[2 * stride + p] = now[0], now[1], now[2]
    given[4 * count] = strongest


@compiled(fastmath=False)
def push(placement, velocity, mass, ranges, corners, program, forces, dt, told):
    """Change velocities by forces.

    Args:
        placement: Fixed-point offsets from the centres of the blocks, elements from row to row, size of a unit of them [m].
        velocity: Shape (3 stride,) [m/s]; updated where dt is above 0.
        mass: Shape (stride,) [kg].
        ranges: First and last + 1 of the particles of each block, and the block, shape (n, 3).
        corners: Centres of the blocks [m], shape (blocks, 3), float64.
        program: Operations of all fields, how many of them are the same everywhere, numbers and grids, as `evaluate` takes them.
        forces: Of each its kind, the registers of its value and its rate, shape (3 n,), int32, and the most speed [m/s], float64.
        dt: [s]; 0 only to find the strongest.
        told: Written: of each block and force impulse [N s] and work [J], and behind the forces the square of the largest
            acceleration that all of them give together [m^2/s^4], shape (n, 4 forces + 4), float64.
    """
    told[:] = 0.0
    offset, stride, cell = placement
    operations, uniform, numbers, grids = program
    rows, most = forces
    count = operations.shape[0] // 5
    scratch = np.empty((ranges.shape[0], 3 * count))
    given = (
        (plain(offset), stride, cell),
        plain(velocity),
        plain(mass),
        ranges,
        corners,
        (plain(operations), count, uniform, plain(numbers), (plain(grids[0]), plain(grids[1]))),
        (plain(rows), plain(most), most.shape[0]),
        dt,
        scratch,
        told,
    )
    parallel_for(_push_at, ranges.shape[0], given)
