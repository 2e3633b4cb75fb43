"""Grid velocity update and particle motion.

| symbol | meaning | unit |
|---|---|---|
| momentum node | (p_x, p_y, p_z, m) | kg m/s, kg |
| unit | fixed-point units per cell, 2^S | 1 |
"""

from __future__ import annotations

import numpy as np
from numba import prange

from mpm_nodes.kernels.jit import kernel
from mpm_nodes.kernels.lane_memory import lane_constant, load, store_first, to_float, to_int
from mpm_nodes.kernels.lane_types import WIDTH
from mpm_nodes.kernels.lanes import absolute, broadcast, const, hmax, maximum, rint, select

LANE = lane_constant(range(WIDTH))


@kernel(parallel=True)
def update_grid_velocity(momentum, force, velocity, blocks, dt, gx, gy, gz, least_mass):
    """Write v* = v + dt (f / m + g) on nodes heavier than `least_mass`, zero elsewhere (explicit update)."""
    for b in prange(blocks):
        for n in range(256 * b, 256 * b + 256, 4):
            mass = momentum[n + 3]
            if mass > least_mass:
                inverse = 1 / mass
                velocity[n] = (momentum[n] + dt * force[n]) * inverse + dt * gx
                velocity[n + 1] = (momentum[n + 1] + dt * force[n + 1]) * inverse + dt * gy
                velocity[n + 2] = (momentum[n + 2] + dt * force[n + 2]) * inverse + dt * gz
            else:
                velocity[n] = velocity[n + 1] = velocity[n + 2] = 0 * mass
            velocity[n + 3] = 0 * dt


@kernel(parallel=True, fastmath=False)
def advance_positions(offset, stride, unit, velocity, cells_per_velocity, block_start, blocks, largest):
    """Move particles by dt v and write each block's largest drift and displacement, in cells, into `largest` (blocks, 2).

    A particle that would move more than a cell stays, so that no offset can leave the tile before the caller has looked at
    `largest`; a NaN counts as infinite.
    """
    for q in prange(blocks):
        like = load(velocity, 0)
        zero, one, infinite = const(like, 0.0), const(like, 1.0), const(like, np.inf)
        scale, fixed, cells = broadcast(like, cells_per_velocity), broadcast(like, unit), broadcast(like, 1.0 / unit)
        drift = displacement = zero
        for p in range(block_start[q], block_start[q + 1], WIDTH):
            count = min(WIDTH, block_start[q + 1] - p)
            inside = LANE(like) < broadcast(like, count)
            for axis in range(3):
                row = axis * stride + p
                d = load(velocity, row) * scale
                size = absolute(d)
                finite = select(size <= one, d, zero)  # converting NaN to an integer is undefined
                o = load(offset, row) + to_int(rint(finite * fixed))
                store_first(offset, row, o, count)
                displacement = maximum(displacement, select(inside, select(size == size, size, infinite), zero))
                drift = maximum(drift, select(inside, absolute(to_float(o) * cells), zero))
        largest[q, 0] = hmax(drift)
        largest[q, 1] = hmax(displacement)
