"""Grid to particles: velocity, affine velocity C and velocity gradient L = sum v (grad w)^T (Jiang 2015).

A z-row of four nodes is one sixteen-lane value. While consecutive particles share a cell, the differences of its rows stay in
registers (see `weights`): per particle there remain polynomials in its position.
"""

from __future__ import annotations

from numba import get_thread_id

from mpm_nodes.kernels.jit import inline, kernel, part
from mpm_nodes.kernels.lane_memory import load, load_splat, prefetch, quarter_sums, store, store_first, transpose
from mpm_nodes.kernels.lane_types import WIDTH
from mpm_nodes.kernels.lanes import broadcast, fma
from mpm_nodes.kernels.parallel import parallel_for
from mpm_nodes.kernels.tiles import RECORDS, ROW, SCRATCH, SECOND_TILE, SLICE, TILE, load_change_tile, load_tile
from mpm_nodes.kernels.weights import (
    EXCESS,
    FRACTION,
    XW,
    YW,
    by_width,
    differences,
    excess,
    fractions,
    slope_at,
    splat_rows,
    store_fraction,
    store_rows,
    value_at,
    weights,
    z_weights,
)


# ---------------------------------------------------------------- lines of a cell
@inline
def _cell3(stencil, scratch, at):
    a = differences((load(scratch, at), load(scratch, at + SLICE), load(scratch, at + 2 * SLICE)))
    at += ROW
    b = differences((load(scratch, at), load(scratch, at + SLICE), load(scratch, at + 2 * SLICE)))
    at += ROW
    c = differences((load(scratch, at), load(scratch, at + SLICE), load(scratch, at + 2 * SLICE)))
    return differences((a[0], b[0], c[0])), differences((a[1], b[1], c[1])), differences((a[2], b[2], c[2]))


@inline
def _line4(scratch, at):
    return differences((load(scratch, at), load(scratch, at + SLICE), load(scratch, at + 2 * SLICE), load(scratch, at + 3 * SLICE)))


@inline
def _cell4(stencil, scratch, at):
    a, b, c, d = _line4(scratch, at), _line4(scratch, at + ROW), _line4(scratch, at + 2 * ROW), _line4(scratch, at + 3 * ROW)
    return (differences((a[0], b[0], c[0], d[0])), differences((a[1], b[1], c[1], d[1])),
            differences((a[2], b[2], c[2], d[2])), differences((a[3], b[3], c[3], d[3])))


cell_differences = by_width(_cell3, _cell4)
"""Return the differences of a cell's rows along x and y: entry [i][j] is the i-th along x, the j-th along y."""


@inline
def _along_y3(cell, y):
    return value_at(cell[0], y), value_at(cell[1], y), value_at(cell[2], y)


@inline
def _along_y4(cell, y):
    return value_at(cell[0], y), value_at(cell[1], y), value_at(cell[2], y), value_at(cell[3], y)


@inline
def _slope_along_y3(cell, y):
    return slope_at(cell[0], y), slope_at(cell[1], y), slope_at(cell[2], y)


@inline
def _slope_along_y4(cell, y):
    return slope_at(cell[0], y), slope_at(cell[1], y), slope_at(cell[2], y), slope_at(cell[3], y)


@inline
def _top_along_y3(cell):
    return cell[0][2], cell[1][2], cell[2][2]


@inline
def _top_along_y4(cell):
    return cell[0][3], cell[1][3], cell[2][3], cell[3][3]


_along_y = by_width(_along_y3, _along_y4)
_slope_along_y = by_width(_slope_along_y3, _slope_along_y4)
_top_along_y = by_width(_top_along_y3, _top_along_y4)


# ---------------------------------------------------------------- sums of the change, for FLIP
@inline
def _row_sum3(y, scratch, at):
    return fma(y[2], load(scratch, at + 2 * ROW), fma(y[1], load(scratch, at + ROW), y[0] * load(scratch, at)))


@inline
def _row_sum4(y, scratch, at):
    return fma(y[3], load(scratch, at + 3 * ROW), _row_sum3(y, scratch, at))


_row_sum = by_width(_row_sum3, _row_sum4)


@inline
def _plane_sum3(x, y, scratch, at):
    return fma(x[2], _row_sum(y, scratch, at + 2 * SLICE),
               fma(x[1], _row_sum(y, scratch, at + SLICE), x[0] * _row_sum(y, scratch, at)))


@inline
def _plane_sum4(x, y, scratch, at):
    return fma(x[3], _row_sum(y, scratch, at + 3 * SLICE), _plane_sum3(x, y, scratch, at))


_plane_sum = by_width(_plane_sum3, _plane_sum4)
"""Return sum w_i w_j of a cell's rows."""


# ---------------------------------------------------------------- records
@inline
def _load_records(scratch, records):
    """Return the sixteen components of sixteen records as lanes."""
    return transpose((
        load(scratch, records), load(scratch, records + 16), load(scratch, records + 32), load(scratch, records + 48),
        load(scratch, records + 64), load(scratch, records + 80), load(scratch, records + 96),
        load(scratch, records + 112), load(scratch, records + 128), load(scratch, records + 144),
        load(scratch, records + 160), load(scratch, records + 176), load(scratch, records + 192),
        load(scratch, records + 208), load(scratch, records + 224), load(scratch, records + 240),
    ))


@inline
def _store_matrix(rows, stride, p, t, first, scale, count):
    """Store columns t[first ..], t[first + 4 ..], t[first + 8 ..] as the nine rows of a matrix."""
    for axis in range(3):
        for column in range(3):
            store_first(rows, (3 * axis + column) * stride + p, scale * t[first + 4 * column + axis], count)


@kernel(fastmath=False)
def _store_gathered(scratch, records, velocity, affine, gradient, L_stride, L_shift, stride, p, count, flip, inverse_cell):
    """Turn sixteen pairs of records [v | C] and [L | change] into rows."""
    u = _load_records(scratch, records + WIDTH * WIDTH)
    scale = broadcast(u[0], inverse_cell)
    _store_matrix(gradient, L_stride, L_shift + p, u, 0, scale, count)
    if velocity is None:
        return
    t = _load_records(scratch, records)
    if flip is None:
        for axis in range(3):
            store_first(velocity, axis * stride + p, t[axis], count)
    else:
        keep = broadcast(t[0], flip)
        for axis in range(3):
            row = axis * stride + p
            store_first(velocity, row, fma(keep, load(velocity, row), u[12 + axis]), count)
    _store_matrix(affine, stride, p, t, 4, scale, count)


# ---------------------------------------------------------------- gather
@inline
def _store_position(stencil, scratch, at, fx, fy, fz):
    store_fraction(scratch, at + FRACTION, fx)
    store_fraction(scratch, at + FRACTION + 3 * WIDTH, fy)
    store_fraction(scratch, at + FRACTION + 6 * WIDTH, fz)
    store(scratch, at + EXCESS, excess(stencil, fx))
    store(scratch, at + EXCESS + WIDTH, excess(stencil, fy))
    store(scratch, at + EXCESS + 2 * WIDTH, excess(stencil, fz))


@kernel(fastmath=False)
def gather_run(stencil, offset, stride, shift, unit, velocity, affine, gradient, L_stride, L_shift, flip, inverse_cell, begin, end,
               ahead, scratch, at, base, base_at):
    """Gather for particles begin .. end-1 of the block whose tile is loaded; `flip` is None or the FLIP fraction.

    Row r of L of particle p goes to r * L_stride + L_shift + p. `velocity` None leaves all but L out.
    """
    scratch_weights, records = at + TILE, at + RECORDS
    here = -1
    cell = cell_differences(stencil, scratch, at)
    for p in range(begin, end, WIDTH):
        count = min(WIDTH, end - p)
        for row in range(3):
            prefetch(offset, row * stride + p + ahead)
        if velocity is not None:
            for row in range(3):
                prefetch(velocity, row * stride + p + ahead)
            for row in range(9):
                prefetch(affine, row * stride + p + ahead)
        fx, fy, fz = fractions(stencil, offset, stride, p, shift, unit, base, base_at)
        _store_position(stencil, scratch, scratch_weights, fx, fy, fz)
        if flip is not None:
            store_rows(weights(stencil, fx), scratch, scratch_weights + XW)
            store_rows(weights(stencil, fy), scratch, scratch_weights + YW)
        for lane in range(count):
            w, r = scratch_weights + lane, records + WIDTH * lane
            if base[base_at + lane] != here:
                here = base[base_at + lane]
                cell = cell_differences(stencil, scratch, at + here)
            x = splat_rows((0, 0, 0), scratch, w + FRACTION)
            y = splat_rows((0, 0, 0), scratch, w + FRACTION + 3 * WIDTH)
            z = splat_rows((0, 0, 0), scratch, w + FRACTION + 6 * WIDTH)
            along = _along_y(cell, y)
            v, gx = value_at(along, x), slope_at(along, x)
            gy = value_at(_slope_along_y(cell, y), x)
            wz, sz, tz = z_weights(stencil, z)
            zv = wz * v
            if velocity is not None:
                cx = fma(load_splat(scratch, w + EXCESS), along[-1], gx)
                cy = fma(load_splat(scratch, w + EXCESS + WIDTH), value_at(_top_along_y(cell), x), gy)
                ez = fma(load_splat(scratch, w + EXCESS + 2 * WIDTH), tz, sz)
                store(scratch, r, quarter_sums(zv, wz * cx, wz * cy, ez * v))
            change = zv
            if flip is not None:
                xw, yw = splat_rows(stencil, scratch, w + XW), splat_rows(stencil, scratch, w + YW)
                change = wz * _plane_sum(xw, yw, scratch, at + SECOND_TILE + here)
            store(scratch, r + WIDTH * WIDTH, quarter_sums(wz * gx, wz * gy, sz * v, change))
        _store_gathered(scratch, records, velocity, affine, gradient, L_stride, L_shift, stride, p, count, flip, inverse_cell)


@part
def _gather_at(k, stencil, offset, stride, shift, unit, velocity, affine, gradient, inverse_cell, ranges, tile_slot, scratch, base,
               grid):
    thread = get_thread_id()
    at = thread * SCRATCH
    load_tile(scratch, at, grid, tile_slot, ranges[k, 2])
    gather_run(stencil, offset, stride, shift, unit, velocity, affine, gradient, stride, 0, None, inverse_cell,
               ranges[k, 0], ranges[k, 1], 0, scratch, at, base, 64 * thread)


@kernel(fastmath=False)
def gather(stencil, offset, stride, shift, unit, velocity, affine, gradient, inverse_cell, ranges, tile_slot, scratch, base, grid):
    """Gather v = sum w v_i, C = D^-1 sum w v_i (x_i - x_p)^T and L = sum v_i (grad w)^T.

    `ranges` has a row (begin, end, block) for every run of particles of one block.
    """
    parallel_for(_gather_at, ranges.shape[0], (
        stencil, offset, stride, shift, unit, velocity, affine, gradient, inverse_cell, ranges, tile_slot, scratch, base, grid))


@part
def _gather_flip_at(k, stencil, offset, stride, shift, unit, velocity, affine, gradient, inverse_cell, ranges, tile_slot, scratch,
                    base, grid, momentum, fraction):
    thread = get_thread_id()
    at = thread * SCRATCH
    load_tile(scratch, at, grid, tile_slot, ranges[k, 2])
    load_change_tile(scratch, at + SECOND_TILE, grid, momentum, fraction, tile_slot, ranges[k, 2])
    gather_run(stencil, offset, stride, shift, unit, velocity, affine, gradient, stride, 0, fraction, inverse_cell,
               ranges[k, 0], ranges[k, 1], 0, scratch, at, base, 64 * thread)


@kernel(fastmath=False)
def gather_flip(stencil, offset, stride, shift, unit, velocity, affine, gradient, inverse_cell, ranges, tile_slot, scratch, base,
                grid, momentum, fraction):
    """As `gather`, but v_p <- a v_p + sum w (v_i - a momentum_i / m_i): a blend of FLIP (a) and PIC (1 - a)."""
    parallel_for(_gather_flip_at, ranges.shape[0], (
        stencil, offset, stride, shift, unit, velocity, affine, gradient, inverse_cell, ranges, tile_slot, scratch, base, grid,
        momentum, fraction))
