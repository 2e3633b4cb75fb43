"""Particles where a field is above a half, and whether it is a number everywhere."""

from __future__ import annotations

import math

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.lend import plain
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.fields.programs import fill_own, run_at

__all__ = ["mark"]


@part
def _mark_at(k, placement, ranges, corners, program, wanted, scratch, out):
    offset, stride, cell = placement
    operations, rows, uniform, numbers, grids, own = program
    marks, lacking = out
    block, registers = ranges[k, 2], plain(scratch[k])
    cx, cy, cz = corners[block, 0], corners[block, 1], corners[block, 2]
    run_at(operations, (0, uniform), numbers, grids, 0.0, 0.0, 0.0, registers)
    for p in range(ranges[k, 0], ranges[k, 1]):
        x, y, z = cx + cell * offset[p], cy + cell * offset[stride + p], cz + cell * offset[2 * stride + p]
        if own[2] > 0:
            fill_own(own, p, registers)
        run_at(operations, (uniform, rows), numbers, grids, x, y, z, registers)
        value = registers[3 * wanted]
        marks[p] = value > 0.5
        if math.isnan(value):
            lacking[k] = True


@compiled(fastmath=False)
def mark(placement, ranges, corners, program, wanted, marks, lacking):
    """Mark the particles at which a field is above 1/2.

    Args:
        placement, ranges, corners, program: As `pushing.push` takes them.
        wanted: Register of the field.
        marks: Written, shape (particles,), bool.
        lacking: Set to True where the field is not a number at a particle of a block, shape (n,), bool.
    """
    offset, stride, cell = placement
    operations, uniform, numbers, grids, own = program
    count = operations.shape[0] // 5
    scratch = np.empty((ranges.shape[0], 3 * count))
    mine = plain(own[0]), plain(own[1]), own[0].shape[0], marks.shape[0]
    given = (plain(operations), count, uniform, plain(numbers), (plain(grids[0]), plain(grids[1])), mine)
    out = plain(marks), plain(lacking)
    parallel_for(_mark_at, ranges.shape[0], ((plain(offset), stride, cell), ranges, corners, given, wanted, scratch, out))
