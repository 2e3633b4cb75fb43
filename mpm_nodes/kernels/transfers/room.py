"""Density correction: room that matter finds in the cells around it, and the volume ratio of liquids that follows it.

| symbol | meaning | unit |
|---|---|---|
| f, o | what undeformed matter would fill of a cell, what bodies leave open of it | - |
| r | o / f - 1, 0 in the air and where a lattice before walls has it so | - |
| e | J - 1 of a particle | - |
| a | share of the difference that is taken over: 1 - exp(-s v) at a speed v | - |
"""

from __future__ import annotations

import math

from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.parallel import parallel_for

__all__ = ["follow_room", "write_room"]

AIR = 0.52
"""Share of what is open below which a cell lies in the air. A cell that a flat surface makes thin by 2 % has such a neighbour."""
CLOSED = 0.2
"""What bodies leave open of a cell, at most, that says nothing: splines reach less than half a cell out of them."""
HALF = 0.5
"""What they leave open at least of a cell whose f is told."""
CROWDED = 1.2
"""f / o from which on a cell is told to be crowded."""
MOST_ROOM = 0.1
"""Largest r that counts. With 1 levels of liquid came out 3 to 6 % too low, within 2 % with this: more pulls at what lies around a
gap. Sound is faster in what is thin, too: steps were a fifth shorter."""
LATTICE = math.log(81.0 / 80.0) / math.log(6.0 / 5.0)
"""Particles crowd a cell beside bodies from f = o^(1 - this) on: a wall leaves 5/6 of a cell's spline open, and a lattice of two
particles a cell and axis gives it 27/32 of a stencil, 81/80 of that; edges have two walls, and corners three."""
BEHIND = math.log(16.0 / 15.0) / math.log(6.0)
"""They leave room from f = o^(1 + this) down: it gives the cell behind a wall, 1/6 open, 5/32, 15/16 of that."""
LEAST = 1e-3
"""What bodies leave open around a particle at least that finds room: others lie inside."""


@part
def _write_room_at(g, cells, volume, opened, divided, air, told):
    most = matter = crowded = 0.0
    for n in range(64 * g, 64 * g + 64):
        o, f = opened[n], cells[4 * n + 3] / volume
        in_air = divided[n] or (o > CLOSED and f < AIR * o)
        r = 0.0 if in_air else o / max(f, 1e-3) - 1.0
        if r < 0.0 and 0.0 < o < 1.0:
            r = min(o * math.exp(-LATTICE * math.log(o)) / f - 1.0, 0.0)
        elif r > 0.0 and 0.0 < o < 1.0:
            r = max(o * math.exp(BEHIND * math.log(o)) / max(f, 1e-3) - 1.0, 0.0)
        if o >= HALF:
            most, matter = max(most, f / o), matter + f
            crowded += f if f > CROWDED * o else 0.0
        air[n] = in_air
        cells[4 * n], cells[4 * n + 1] = o * min(r, MOST_ROOM), o
    told[g, 0], told[g, 1], told[g, 2] = most, matter, crowded


@part
def _leave_surface_at(g, cells, around, air):
    for n in range(64):
        i, j, k = n >> 4, (n >> 2) & 3, n & 3
        beside = False
        for side in range(6):
            axis, step = side >> 1, 2 * (side & 1) - 1
            width = 16 >> (2 * axis)
            place = (i if axis == 0 else (j if axis == 1 else k)) + step
            block = g if 0 <= place < 4 else around[g, side]
            beside = beside or block < 0 or air[64 * max(block, 0) + n + step * width - (place - (place & 3)) * width]
        if beside:
            cells[4 * (64 * g + n)] = min(cells[4 * (64 * g + n)], 0.0)


@compiled(fastmath=False)
def write_room(cells, volume, opened, divided, around, air, told):
    """Write what cells say of the room in them: o r and o, with r = 0 in the air, and r <= 0 beside it, where splines end.

    Args:
        cells: Four values a cell, the last the sum of w V0 [m^3]; written, shape (256 n + padding,).
        volume: Of a cell [m^3].
        opened: o, shape (64 n,), float64.
        divided: Whether cells count as air whatever they hold, shape (64 n,), bool.
        around: Blocks before and behind each block along x, y and z, -1 where there is none, shape (n, 6), int32.
        air: Scratch, shape (64 n,), bool.
        told: Written of each block's cells that are half open: the largest f / o, the sum of f, and that of cells where f / o is
            above 1.2, shape (n, 3), float64.
    """
    parallel_for(_write_room_at, told.shape[0], (cells, volume, opened, divided, air, told))
    parallel_for(_leave_surface_at, told.shape[0], (cells, around, air))


@part
def _follow_room_at(k, change, room, velocity, stride, ranges, numbers):
    per_speed, least_speed, tolerance = numbers
    for p in range(ranges[k, 0], ranges[k, 1]):
        o = room[stride + p]
        if not o > LEAST:
            continue
        excess = room[p] / o - change[p]
        size = abs(excess) - tolerance
        if size > 0.0:
            u, v, w = velocity[p], velocity[stride + p], velocity[2 * stride + p]
            share = -math.expm1(-per_speed * max(math.sqrt(u * u + v * v + w * w), least_speed))
            change[p] += math.copysign(share * size, excess)


@compiled(fastmath=False)
def follow_room(change, room, velocity, stride, ranges, numbers):
    """Let e of particles relax to r, the mean over the cells around them by o.

    Args:
        change: e, shape (stride,); updated.
        room: What cells around say, as `write_room` has it, shape (2 stride,).
        velocity: Shape (3 stride,) [m/s].
        stride: Elements from row to row.
        ranges: First and last + 1 of the particles, shape (n, 3).
        numbers: s [s/m], the least v [m/s], the difference that counts as none.
    """
    parallel_for(_follow_room_at, ranges.shape[0], (change, room, velocity, stride, ranges, numbers))
