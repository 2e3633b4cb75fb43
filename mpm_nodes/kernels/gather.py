"""Grid to particles: gather of velocity, affine velocity C and velocity gradient L = sum v (grad w)^T (Jiang 2015)."""

from __future__ import annotations

from numba import get_thread_id, prange

from mpm_nodes.kernels.jit import kernel
from mpm_nodes.kernels.lane_memory import load, load_splat, quarter_sums, store, store_first, transpose
from mpm_nodes.kernels.lane_types import WIDTH
from mpm_nodes.kernels.lanes import broadcast, const, fma
from mpm_nodes.kernels.tiles import RECORDS, ROW, SCRATCH, SLICE, TILE, load_tile
from mpm_nodes.kernels.weights import (
    CZ0,
    CZ1,
    CZ2,
    CZ3,
    CZ_OFFSET,
    FRACTION,
    QZ0,
    QZ1,
    QZ2,
    QZ_OFFSET,
    XD,
    XW,
    YD,
    YW,
    cubic_weights,
    quadratic_weights,
)


# ---------------------------------------------------------------- gather
@kernel
def _load_records(scratch, records):
    """Return the sixteen components of sixteen records as lanes."""
    return transpose((
        load(scratch, records), load(scratch, records + 16), load(scratch, records + 32), load(scratch, records + 48),
        load(scratch, records + 64), load(scratch, records + 80), load(scratch, records + 96),
        load(scratch, records + 112), load(scratch, records + 128), load(scratch, records + 144),
        load(scratch, records + 160), load(scratch, records + 176), load(scratch, records + 192),
        load(scratch, records + 208), load(scratch, records + 224), load(scratch, records + 240),
    ))


@kernel
def _store_gathered(scratch, records, velocity, affine, gradient, stride, p, count, keep, affine_scale, inverse_cell):
    """Turn sixteen pairs of records into rows of velocity, C and L."""
    t = _load_records(scratch, records)
    s = broadcast(t[0], affine_scale)
    k = broadcast(t[0], keep)
    for axis in range(3):
        row = axis * stride + p
        store_first(velocity, row, fma(k, load(velocity, row), t[axis]), count)
    for axis in range(3):
        for column in range(3):
            store_first(affine, (3 * axis + column) * stride + p, s * t[4 + 4 * column + axis], count)
    records += WIDTH * WIDTH
    t = _load_records(scratch, records)
    s = broadcast(t[0], inverse_cell)
    for axis in range(3):
        for column in range(3):
            store_first(gradient, (3 * axis + column) * stride + p, s * t[4 * column + axis], count)


@kernel
def _gather_block_quadratic(offset, stride, shift, unit, velocity, affine, gradient, keep, affine_scale, inverse_cell,
                            begin, end, scratch, at, base, base_at):
    weights, records = at + TILE, at + RECORDS
    first = 3 << shift
    for p in range(begin, end, WIDTH):
        count = min(WIDTH, end - p)
        quadratic_weights(offset, stride, p, first, shift, unit, scratch, weights, base, base_at)
        for lane in range(count):
            o, w = at + base[base_at + lane], weights + lane
            fx, fy = load_splat(scratch, w + FRACTION), load_splat(scratch, w + FRACTION + WIDTH)
            f = load_splat(scratch, w + FRACTION + 2 * WIDTH)
            half, three_halves = const(f, 0.5), const(f, 1.5)
            x0, x1, x2 = load_splat(scratch, w + XW), load_splat(scratch, w + XW + 16), load_splat(scratch, w + XW + 32)
            s0, s1, s2 = load_splat(scratch, w + XD), load_splat(scratch, w + XD + 16), load_splat(scratch, w + XD + 32)
            e0, e1, e2 = -(x0 * (half + fx)), x1 * (half - fx), x2 * (three_halves - fx)
            v, vx, vy, gx, gy = const(f, 0.0), const(f, 0.0), const(f, 0.0), const(f, 0.0), const(f, 0.0)
            for j in range(3):
                q0, q1, q2 = load(scratch, o), load(scratch, o + SLICE), load(scratch, o + 2 * SLICE)
                y, slope = load_splat(scratch, w + YW + WIDTH * j), load_splat(scratch, w + YD + WIDTH * j)
                t = fma(x2, q2, fma(x1, q1, x0 * q0))
                yt = y * t
                v = v + yt
                vx = fma(y, fma(e2, q2, fma(e1, q1, e0 * q0)), vx)
                vy = fma(yt, const(f, j - 0.5) - fy, vy)
                gx = fma(y, fma(s2, q2, fma(s1, q1, s0 * q0)), gx)
                gy = fma(slope, t, gy)
                o += ROW
            wz, sz = fma(f, fma(f, QZ2(f), QZ1(f)), QZ0(f)), fma(f + f, QZ2(f), QZ1(f))
            zv = wz * v
            r = records + WIDTH * lane
            store(scratch, r, quarter_sums(zv, wz * vx, wz * vy, (QZ_OFFSET(f) - f) * zv))
            store(scratch, r + WIDTH * WIDTH, quarter_sums(wz * gx, wz * gy, sz * v, zv))
        _store_gathered(scratch, records, velocity, affine, gradient, stride, p, count, keep, affine_scale, inverse_cell)


@kernel(parallel=True)
def gather_quadratic(offset, stride, shift, unit, velocity, affine, gradient, keep, affine_scale, inverse_cell,
                     block_start, blocks, tile_slot, scratch, base, grid):
    """Gather v <- keep v + sum w v_i, C = affine_scale sum w v_i (x_i - x_p)^T / h and L = sum v_i (grad w)^T."""
    for q in prange(blocks):
        thread = get_thread_id()
        at = thread * SCRATCH
        load_tile(scratch, at, grid, tile_slot, q)
        _gather_block_quadratic(offset, stride, shift, unit, velocity, affine, gradient, keep, affine_scale,
                                inverse_cell, block_start[q], block_start[q + 1], scratch, at, base, 64 * thread)


@kernel
def _gather_block_cubic(offset, stride, shift, unit, velocity, affine, gradient, keep, affine_scale, inverse_cell, begin,
                        end, scratch, at, base, base_at):
    weights, records = at + TILE, at + RECORDS
    first = 5 << (shift - 1)
    for p in range(begin, end, WIDTH):
        count = min(WIDTH, end - p)
        cubic_weights(offset, stride, p, first, shift, unit, scratch, weights, base, base_at)
        for lane in range(count):
            o, w = at + base[base_at + lane], weights + lane
            fx, fy = load_splat(scratch, w + FRACTION), load_splat(scratch, w + FRACTION + WIDTH)
            f = load_splat(scratch, w + FRACTION + 2 * WIDTH)
            one, two, three = const(f, 1.0), const(f, 2.0), const(f, 3.0)
            x0, x1 = load_splat(scratch, w + XW), load_splat(scratch, w + XW + 16)
            x2, x3 = load_splat(scratch, w + XW + 32), load_splat(scratch, w + XW + 48)
            s0, s1 = load_splat(scratch, w + XD), load_splat(scratch, w + XD + 16)
            s2, s3 = load_splat(scratch, w + XD + 32), load_splat(scratch, w + XD + 48)
            e0, e1, e2, e3 = -(x0 * (one + fx)), -(x1 * fx), x2 * (one - fx), x3 * (two - fx)
            v, vx, vy, gx, gy = const(f, 0.0), const(f, 0.0), const(f, 0.0), const(f, 0.0), const(f, 0.0)
            for j in range(4):
                q0, q1 = load(scratch, o), load(scratch, o + SLICE)
                q2, q3 = load(scratch, o + 2 * SLICE), load(scratch, o + 3 * SLICE)
                y, slope = load_splat(scratch, w + YW + WIDTH * j), load_splat(scratch, w + YD + WIDTH * j)
                t = fma(x3, q3, fma(x2, q2, fma(x1, q1, x0 * q0)))
                yt = y * t
                v = v + yt
                vx = fma(y, fma(e3, q3, fma(e2, q2, fma(e1, q1, e0 * q0))), vx)
                vy = fma(yt, const(f, j - 1.0) - fy, vy)
                gx = fma(y, fma(s3, q3, fma(s2, q2, fma(s1, q1, s0 * q0))), gx)
                gy = fma(slope, t, gy)
                o += ROW
            wz = fma(f, fma(f, fma(f, CZ3(f), CZ2(f)), CZ1(f)), CZ0(f))
            sz = fma(f, fma(three * f, CZ3(f), two * CZ2(f)), CZ1(f))
            zv = wz * v
            r = records + WIDTH * lane
            store(scratch, r, quarter_sums(zv, wz * vx, wz * vy, (CZ_OFFSET(f) - f) * zv))
            store(scratch, r + WIDTH * WIDTH, quarter_sums(wz * gx, wz * gy, sz * v, zv))
        _store_gathered(scratch, records, velocity, affine, gradient, stride, p, count, keep, affine_scale, inverse_cell)


@kernel(parallel=True)
def gather_cubic(offset, stride, shift, unit, velocity, affine, gradient, keep, affine_scale, inverse_cell, block_start,
                 blocks, tile_slot, scratch, base, grid):
    """As `gather_quadratic`, with cubic B-splines."""
    for q in prange(blocks):
        thread = get_thread_id()
        at = thread * SCRATCH
        load_tile(scratch, at, grid, tile_slot, q)
        _gather_block_cubic(offset, stride, shift, unit, velocity, affine, gradient, keep, affine_scale, inverse_cell,
                            block_start[q], block_start[q + 1], scratch, at, base, 64 * thread)
