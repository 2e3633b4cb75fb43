"""Grid velocity update and particle motion.

| symbol | meaning | unit |
|---|---|---|
| momentum node | (p_x, p_y, p_z, m) | kg m/s, kg |
| unit | fixed-point units per cell, 2^S | 1 |
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.parallel import FEW, parallel_for
from mpm_nodes.kernels.lanes.arithmetic import absolute, both, broadcast, const, hmax, maximum, rint, select
from mpm_nodes.kernels.lanes.memory import bare, lane_constant, load, spread_last, store, store_first_each, to_float, to_int
from mpm_nodes.kernels.lanes.types import WIDTH

LANE = lane_constant(range(WIDTH))
VECTOR_X, VECTOR_Y, VECTOR_Z, NO_MASS = (
    lane_constant(4 * quarter) for quarter in ([1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [1, 1, 1, 0])
)
"""Marks of the components of a node."""


@inline
def _velocity_of(p, dt, gravity, least_mass):
    """Return p / m + dt g of four nodes, zero in the place of the mass and where there is less than `least_mass`."""
    mass = spread_last(p)
    gx, gy, gz = gravity
    g = VECTOR_X(p) * broadcast(p, gx) + VECTOR_Y(p) * broadcast(p, gy) + VECTOR_Z(p) * broadcast(p, gz)
    v = p / mass + broadcast(p, dt) * g
    zero = const(p, 0.0)
    return select(both(mass > broadcast(p, least_mass), NO_MASS(p) > zero), v, zero)


@part
def _update_grid_velocity_at(b, momentum, force, velocity, blocks, dt, gravity, least_mass):
    for n in range(256 * b, 256 * b + 256, WIDTH):
        p, f = load(momentum, n), load(force, n)
        p = p + NO_MASS(p) * (broadcast(p, dt) * f)
        store(velocity, n, _velocity_of(p, dt, gravity, least_mass))


@compiled(fastmath=False)
def update_grid_velocity(momentum, force, velocity, blocks, dt, gravity, least_mass):
    """Write v* = v + dt (f / m + g) on nodes heavier than `least_mass`, zero elsewhere (explicit update)."""
    parallel_for(_update_grid_velocity_at, blocks, (momentum, force, velocity, blocks, dt, gravity, least_mass), FEW)


@part
def _divide_by_mass_at(b, momentum, velocity, blocks, dt, gravity, least_mass):
    for n in range(256 * b, 256 * b + 256, WIDTH):
        store(velocity, n, _velocity_of(load(momentum, n), dt, gravity, least_mass))


@compiled(fastmath=False)
def divide_by_mass(momentum, velocity, blocks, dt, gravity, least_mass):
    """Write v* = p* / m + dt g where `momentum` holds p* = m v + dt f already."""
    parallel_for(_divide_by_mass_at, blocks, (momentum, velocity, blocks, dt, gravity, least_mass), FEW)


@inline
def _moved(offset, velocity, row, scale, fixed):
    """Return v, the displacement |d| [cells] and the new offset of the particles from element `row` on, along one axis."""
    v = load(velocity, row)
    d = v * scale
    size = absolute(d)
    finite = select(size <= const(v, 1.0), d, const(v, 0.0))  # converting NaN to an integer is undefined
    return v, size, load(offset, row) + to_int(rint(finite * fixed))


@inline
def _largest_of(a, b, c):
    return maximum(maximum(a, b), c)


@part
def move_run(place, velocity, cells_per_velocity, begin, end, largest, k):
    """Move particles begin .. end-1 by dt v; write drift and displacement [cells] and max |v|^2 to row k of `largest`."""
    offset, stride, unit = bare(place.offset), place.stride, 1.0 / place.inverse_unit
    like = load(velocity, 0)
    zero, infinite = const(like, 0.0), const(like, np.inf)
    scale, fixed, cells = broadcast(like, cells_per_velocity), broadcast(like, unit), broadcast(like, 1.0 / unit)
    drift = displacement = speed = zero
    for p in range(begin, end, WIDTH):
        inside = LANE(like) < broadcast(like, end - p)
        u, a, x = _moved(offset, velocity, p, scale, fixed)
        v, b, y = _moved(offset, velocity, stride + p, scale, fixed)
        w, c, z = _moved(offset, velocity, 2 * stride + p, scale, fixed)
        store_first_each(offset, p, stride, (x, y, z), end - p)
        square, total = u * u + v * v + w * w, a + b + c  # not a number where one of them is not
        displacement = maximum(displacement, select(inside, select(total == total, _largest_of(a, b, c), infinite), zero))
        farthest = _largest_of(absolute(to_float(x)), absolute(to_float(y)), absolute(to_float(z)))
        drift = maximum(drift, select(inside, farthest * cells, zero))
        speed = maximum(speed, select(inside, select(square == square, square, infinite), zero))
    largest[k, 0], largest[k, 1], largest[k, 2] = hmax(drift), hmax(displacement), hmax(speed)


@part
def _move_particles_at(k, place, velocity, cells_per_velocity, ranges, largest):
    move_run(place, velocity, cells_per_velocity, ranges[k, 0], ranges[k, 1], largest, np.int64(k))


@compiled(fastmath=False)
def move_particles(place, velocity, cells_per_velocity, ranges, largest):
    """Move particles by dt v and write what `move_run` tells of every range into `largest`, shape (ranges, 3).

    A particle that would move more than a cell stays, so that no offset can leave the tile before the caller has looked at
    `largest`; a NaN counts as infinite.
    """
    parallel_for(_move_particles_at, ranges.shape[0], (place, velocity, cells_per_velocity, ranges, largest))


@part
def _largest_speeds_at(k, velocity, stride, ranges, largest):
    speed_run(velocity, stride, ranges[k, 0], ranges[k, 1], largest, np.int64(k))


@compiled(fastmath=False)
def largest_speeds(velocity, stride, ranges, largest):
    """Write max |v|^2 of every range into `largest`, shape (ranges,); infinity where one is not a number."""
    parallel_for(_largest_speeds_at, ranges.shape[0], (velocity, stride, ranges, largest))


@part
def speed_run(velocity, stride, begin, end, largest, k):
    """Write max |v|^2 of particles begin .. end-1 to entry k of `largest`."""
    like = load(velocity, 0)
    zero, infinite = const(like, 0.0), const(like, np.inf)
    speed = zero
    for p in range(begin, end, WIDTH):
        square = zero
        for axis in range(3):
            v = load(velocity, axis * stride + p)
            square = square + v * v
        inside = LANE(like) < broadcast(like, end - p)
        speed = maximum(speed, select(inside, select(square == square, square, infinite), zero))
    largest[k] = hmax(speed)
