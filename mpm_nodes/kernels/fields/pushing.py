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
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.fields.programs import MOST, run_at

__all__ = ["ACCELERATION", "DRAG", "QUADRATIC_DRAG", "push", "strongest"]

ACCELERATION, DRAG, QUADRATIC_DRAG = 0, 1, 2
"""Kinds of forces."""


@part
def _kick(force, n, velocity, registers, dt, most):
    """Return the velocity after a force; `velocity` is that before it."""
    x, y, z = velocity
    value = force[n, 1]
    u, v, w = registers[value, 0], registers[value, 1], registers[value, 2]
    if force[n, 0] == ACCELERATION:
        before = x * x + y * y + z * z
        x, y, z = x + dt * u, y + dt * v, z + dt * w
        after, allowed = x * x + y * y + z * z, max(most * most, before)
        if after > allowed:
            share = math.sqrt(allowed / after)
            x, y, z = share * x, share * y, share * z
        return x, y, z
    rate = max(registers[force[n, 2], 0], 0.0)
    x, y, z = x - u, y - v, z - w
    if force[n, 0] == DRAG:
        share = math.exp(-rate * dt)
    else:
        share = 1.0 / (1.0 + rate * math.sqrt(x * x + y * y + z * z) * dt)
    return u + share * x, v + share * y, w + share * z


@part
def _push_at(k, placement, velocity, mass, ranges, corners, program, forces, dt, told):
    offset, stride, cell = placement
    operations, numbers = program
    table, most = forces
    registers = np.zeros((MOST, 3))
    count = table.shape[0]
    for p in range(ranges[k, 0], ranges[k, 1]):
        place = ranges[k, 2]
        x = corners[place, 0] + cell * offset[p]
        y = corners[place, 1] + cell * offset[stride + p]
        z = corners[place, 2] + cell * offset[2 * stride + p]
        run_at(operations, numbers, x, y, z, registers)
        m = float(mass[p])
        now = float(velocity[p]), float(velocity[stride + p]), float(velocity[2 * stride + p])
        for n in range(count):
            then = _kick(table, n, now, registers, dt, most[n])
            told[k, n, 0] += m * (then[0] - now[0])
            told[k, n, 1] += m * (then[1] - now[1])
            told[k, n, 2] += m * (then[2] - now[2])
            energy = then[0] * then[0] + then[1] * then[1] + then[2] * then[2]
            told[k, n, 3] += 0.5 * m * (energy - now[0] * now[0] - now[1] * now[1] - now[2] * now[2])
            now = then
        velocity[p], velocity[stride + p], velocity[2 * stride + p] = now[0], now[1], now[2]


@compiled(fastmath=False)
def push(placement, velocity, mass, ranges, corners, program, forces, dt, told):
    """Change velocities by forces.

    Args:
        placement: Fixed-point offsets from the centres of the blocks, elements from row to row, size of a unit of them [m].
        velocity: Shape (3 stride,) [m/s]; updated.
        mass: Shape (stride,) [kg].
        ranges: First and last + 1 of the particles of each block, and the block, shape (n, 3).
        corners: Centres of the blocks [m], shape (blocks, 3), float64.
        program: Operations and numbers of all fields, as `run_at` takes them.
        forces: Rows of (kind, register of the value, register of the rate), int32, and the most speeds [m/s], float64.
        dt: [s].
        told: Written: of each block and force impulse [N s] and work [J], shape (n, forces, 4), float64.
    """
    told[:] = 0.0
    parallel_for(_push_at, ranges.shape[0], (placement, velocity, mass, ranges, corners, program, forces, dt, told))


@part
def _strongest_at(k, placement, ranges, corners, program, forces, found):
    offset, stride, cell = placement
    operations, numbers = program
    registers = np.zeros((MOST, 3))
    most = 0.0
    for p in range(ranges[k, 0], ranges[k, 1]):
        place = ranges[k, 2]
        x = corners[place, 0] + cell * offset[p]
        y = corners[place, 1] + cell * offset[stride + p]
        z = corners[place, 2] + cell * offset[2 * stride + p]
        run_at(operations, numbers, x, y, z, registers)
        u = v = w = 0.0
        for n in range(forces.shape[0]):
            if forces[n, 0] == ACCELERATION:
                value = forces[n, 1]
                u, v, w = u + registers[value, 0], v + registers[value, 1], w + registers[value, 2]
        most = max(most, u * u + v * v + w * w)
    found[k] = most


@compiled(fastmath=False)
def strongest(placement, ranges, corners, program, forces, found):
    """Find the largest acceleration that all forces together give to a particle of each block.

    Args:
        placement, ranges, corners, program: As `push` takes them.
        forces: Rows of (kind, register of the value, register of the rate), int32.
        found: Written: its square [m^2/s^4], shape (n,), float64.
    """
    parallel_for(_strongest_at, ranges.shape[0], (placement, ranges, corners, program, forces, found))
