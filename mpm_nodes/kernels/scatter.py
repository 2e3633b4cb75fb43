"""Particles to grid: scatter of momentum and of force.

| symbol | meaning | unit | source |
|---|---|---|---|
| w, dw | stencil weight, its slope per cell | - | `weights` |
| C | APIC affine velocity | 1/s | Jiang 2015 |
| tau, V0 | Kirchhoff stress, undeformed volume | Pa, m^3 | f = - sum V0 tau grad w |
| node | four values: three components and, on the momentum grid, the mass | | |

One z-row of four nodes is one sixteen-lane value, so the 3^3 stencil is nine lanes (fourth node weightless) and the 4^3 stencil
sixteen. A block is scattered into a private tile; its rows stay in registers while consecutive particles share a cell. Tiles are
added to the grid in eight colours of blocks, without atomics: sums do not depend on the number of threads.
"""

from __future__ import annotations

from numba import get_thread_id, prange

from mpm_nodes.kernels.jit import inline, kernel
from mpm_nodes.kernels.lane_memory import load, load_quarter, load_splat, store, transpose
from mpm_nodes.kernels.lane_types import WIDTH
from mpm_nodes.kernels.lanes import broadcast, const, fma
from mpm_nodes.kernels.tiles import RECORDS, ROW, SCRATCH, SLICE, TILE, add_tile, clear_tile
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


# ---------------------------------------------------------------- records of sixteen particles
@kernel
def _momentum_records(velocity, affine, mass, stride, p, cell_size, affine_share, scratch, at):
    """Store [m v, m | m C col 0 h | m C col 1 h | m C col 2 h] of particles p .. p+15, one record a particle."""
    m = load(mass, p)
    s = m * broadcast(m, cell_size * affine_share)
    z = const(m, 0.0)
    records = transpose((
        m * load(velocity, p), m * load(velocity, stride + p), m * load(velocity, 2 * stride + p), m,
        s * load(affine, p), s * load(affine, 3 * stride + p), s * load(affine, 6 * stride + p), z,
        s * load(affine, stride + p), s * load(affine, 4 * stride + p), s * load(affine, 7 * stride + p), z,
        s * load(affine, 2 * stride + p), s * load(affine, 5 * stride + p), s * load(affine, 8 * stride + p), z,
    ))
    for k in range(WIDTH):
        store(scratch, at + WIDTH * k, records[k])


@kernel
def _force_records(stress, volume, stride, p, inverse_cell, scratch, at):
    """Store the columns of -V0 tau / h of particles p .. p+15, one record a particle."""
    v = load(volume, p)
    s = -(v * broadcast(v, inverse_cell))
    z = const(v, 0.0)
    xx, xy, xz = s * load(stress, p), s * load(stress, stride + p), s * load(stress, 2 * stride + p)
    yy, yz = s * load(stress, 3 * stride + p), s * load(stress, 4 * stride + p)
    zz = s * load(stress, 5 * stride + p)
    records = transpose((xx, xy, xz, z, xy, yy, yz, z, xz, yz, zz, z, z, z, z, z))
    for k in range(WIDTH):
        store(scratch, at + WIDTH * k, records[k])


@inline
def _accumulate(scratch, at, rows):
    store(scratch, at, load(scratch, at) + rows[0])
    store(scratch, at + ROW, load(scratch, at + ROW) + rows[1])
    store(scratch, at + 2 * ROW, load(scratch, at + 2 * ROW) + rows[2])


@inline
def _accumulate4(scratch, at, rows):
    _accumulate(scratch, at, rows)
    store(scratch, at + 3 * ROW, load(scratch, at + 3 * ROW) + rows[3])


# ---------------------------------------------------------------- lines of nodes along y
@inline
def _line(rows, y0, y1, y2, d0, d1, d2, g, h):
    """Add weight y_j times (g + d_j h) to the three rows of one x-slice."""
    return (fma(y0, fma(d0, h, g), rows[0]), fma(y1, fma(d1, h, g), rows[1]), fma(y2, fma(d2, h, g), rows[2]))


@inline
def _line4(rows, y0, y1, y2, y3, d0, d1, d2, d3, g, h):
    return (fma(y0, fma(d0, h, g), rows[0]), fma(y1, fma(d1, h, g), rows[1]), fma(y2, fma(d2, h, g), rows[2]),
            fma(y3, fma(d3, h, g), rows[3]))


@inline
def _slope_line(rows, y0, y1, y2, s0, s1, s2, g, h):
    """Add y_j g + y'_j h to the three rows of one x-slice."""
    return (fma(y0, g, fma(s0, h, rows[0])), fma(y1, g, fma(s1, h, rows[1])), fma(y2, g, fma(s2, h, rows[2])))


@inline
def _slope_line4(rows, y0, y1, y2, y3, s0, s1, s2, s3, g, h):
    return (fma(y0, g, fma(s0, h, rows[0])), fma(y1, g, fma(s1, h, rows[1])), fma(y2, g, fma(s2, h, rows[2])),
            fma(y3, g, fma(s3, h, rows[3])))


# ---------------------------------------------------------------- scatter, quadratic
@kernel
def _momentum_block_quadratic(offset, stride, shift, unit, velocity, affine, mass, cell_size, share, begin, end, scratch,
                              at, base, base_at, zero):
    clear_tile(scratch, at, zero)
    weights, records = at + TILE, at + RECORDS
    first = 3 << shift
    cell = at
    z3 = (zero, zero, zero)
    a, b, c = z3, z3, z3
    half, three_halves = const(zero, 0.5), const(zero, 1.5)
    for p in range(begin, end, WIDTH):
        quadratic_weights(offset, stride, p, first, shift, unit, scratch, weights, base, base_at)
        _momentum_records(velocity, affine, mass, stride, p, cell_size, share, scratch, records)
        for lane in range(min(WIDTH, end - p)):
            here = at + base[base_at + lane]
            if here != cell:
                _accumulate(scratch, cell, a)
                _accumulate(scratch, cell + SLICE, b)
                _accumulate(scratch, cell + 2 * SLICE, c)
                a, b, c = z3, z3, z3
                cell = here
            r, w = records + WIDTH * lane, weights + lane
            fx, fy = load_splat(scratch, w + FRACTION), load_splat(scratch, w + FRACTION + WIDTH)
            f = load_splat(scratch, w + FRACTION + 2 * WIDTH)
            wz = fma(f, fma(f, QZ2(f), QZ1(f)), QZ0(f))
            g = wz * fma(load_quarter(scratch, r + 12), QZ_OFFSET(f) - f, load_quarter(scratch, r))
            gx, h = wz * load_quarter(scratch, r + 4), wz * load_quarter(scratch, r + 8)
            y0, y1, y2 = (load_splat(scratch, w + YW), load_splat(scratch, w + YW + 16), load_splat(scratch, w + YW + 32))
            d0, d1, d2 = -(half + fy), half - fy, three_halves - fy
            x = load_splat(scratch, w + XW)
            a = _line(a, y0, y1, y2, d0, d1, d2, x * fma(-(half + fx), gx, g), x * h)
            x = load_splat(scratch, w + XW + 16)
            b = _line(b, y0, y1, y2, d0, d1, d2, x * fma(half - fx, gx, g), x * h)
            x = load_splat(scratch, w + XW + 32)
            c = _line(c, y0, y1, y2, d0, d1, d2, x * fma(three_halves - fx, gx, g), x * h)
    _accumulate(scratch, cell, a)
    _accumulate(scratch, cell + SLICE, b)
    _accumulate(scratch, cell + 2 * SLICE, c)


@kernel(parallel=True)
def scatter_momentum_quadratic(offset, stride, shift, unit, velocity, affine, mass, cell_size, share, block_start,
                               colour_start, colour_block, tile_slot, scratch, base, grid):
    """Add mass and momentum of every particle to the grid with quadratic B-splines; `share` of C is carried."""
    for colour in range(8):
        first = colour_start[colour]
        for k in prange(colour_start[colour + 1] - first):
            q, thread = colour_block[first + k], get_thread_id()
            at = thread * SCRATCH
            zero = const(load(scratch, at), 0.0)
            _momentum_block_quadratic(offset, stride, shift, unit, velocity, affine, mass, cell_size, share,
                                      block_start[q], block_start[q + 1], scratch, at, base, 64 * thread, zero)
            add_tile(scratch, at, grid, tile_slot, q)


@kernel
def _force_block_quadratic(offset, stride, shift, unit, stress, volume, inverse_cell, begin, end, scratch, at, base,
                           base_at, zero):
    clear_tile(scratch, at, zero)
    weights, records = at + TILE, at + RECORDS
    first = 3 << shift
    cell = at
    z3 = (zero, zero, zero)
    a, b, c = z3, z3, z3
    for p in range(begin, end, WIDTH):
        quadratic_weights(offset, stride, p, first, shift, unit, scratch, weights, base, base_at)
        _force_records(stress, volume, stride, p, inverse_cell, scratch, records)
        for lane in range(min(WIDTH, end - p)):
            here = at + base[base_at + lane]
            if here != cell:
                _accumulate(scratch, cell, a)
                _accumulate(scratch, cell + SLICE, b)
                _accumulate(scratch, cell + 2 * SLICE, c)
                a, b, c = z3, z3, z3
                cell = here
            r, w = records + WIDTH * lane, weights + lane
            f = load_splat(scratch, w + FRACTION + 2 * WIDTH)
            wz = fma(f, fma(f, QZ2(f), QZ1(f)), QZ0(f))
            tx, ty = wz * load_quarter(scratch, r), wz * load_quarter(scratch, r + 4)
            tz = fma(f + f, QZ2(f), QZ1(f)) * load_quarter(scratch, r + 8)
            y0, y1, y2 = (load_splat(scratch, w + YW), load_splat(scratch, w + YW + 16), load_splat(scratch, w + YW + 32))
            s0, s1, s2 = (load_splat(scratch, w + YD), load_splat(scratch, w + YD + 16), load_splat(scratch, w + YD + 32))
            x, s = load_splat(scratch, w + XW), load_splat(scratch, w + XD)
            a = _slope_line(a, y0, y1, y2, s0, s1, s2, fma(s, tx, x * tz), x * ty)
            x, s = load_splat(scratch, w + XW + 16), load_splat(scratch, w + XD + 16)
            b = _slope_line(b, y0, y1, y2, s0, s1, s2, fma(s, tx, x * tz), x * ty)
            x, s = load_splat(scratch, w + XW + 32), load_splat(scratch, w + XD + 32)
            c = _slope_line(c, y0, y1, y2, s0, s1, s2, fma(s, tx, x * tz), x * ty)
    _accumulate(scratch, cell, a)
    _accumulate(scratch, cell + SLICE, b)
    _accumulate(scratch, cell + 2 * SLICE, c)


@kernel(parallel=True)
def scatter_force_quadratic(offset, stride, shift, unit, stress, volume, inverse_cell, block_start, colour_start,
                            colour_block, tile_slot, scratch, base, grid):
    """Add - V0 tau grad w of every particle to the force grid with quadratic B-splines."""
    for colour in range(8):
        first = colour_start[colour]
        for k in prange(colour_start[colour + 1] - first):
            q, thread = colour_block[first + k], get_thread_id()
            at = thread * SCRATCH
            zero = const(load(scratch, at), 0.0)
            _force_block_quadratic(offset, stride, shift, unit, stress, volume, inverse_cell, block_start[q],
                                   block_start[q + 1], scratch, at, base, 64 * thread, zero)
            add_tile(scratch, at, grid, tile_slot, q)


# ---------------------------------------------------------------- scatter, cubic
@kernel
def _momentum_block_cubic(offset, stride, shift, unit, velocity, affine, mass, cell_size, share, begin, end, scratch, at,
                          base, base_at, zero):
    clear_tile(scratch, at, zero)
    weights, records = at + TILE, at + RECORDS
    first = 5 << (shift - 1)
    cell = at
    z4 = (zero, zero, zero, zero)
    a, b, c, d = z4, z4, z4, z4
    one, two = const(zero, 1.0), const(zero, 2.0)
    for p in range(begin, end, WIDTH):
        cubic_weights(offset, stride, p, first, shift, unit, scratch, weights, base, base_at)
        _momentum_records(velocity, affine, mass, stride, p, cell_size, share, scratch, records)
        for lane in range(min(WIDTH, end - p)):
            here = at + base[base_at + lane]
            if here != cell:
                _accumulate4(scratch, cell, a)
                _accumulate4(scratch, cell + SLICE, b)
                _accumulate4(scratch, cell + 2 * SLICE, c)
                _accumulate4(scratch, cell + 3 * SLICE, d)
                a, b, c, d = z4, z4, z4, z4
                cell = here
            r, w = records + WIDTH * lane, weights + lane
            fx, fy = load_splat(scratch, w + FRACTION), load_splat(scratch, w + FRACTION + WIDTH)
            f = load_splat(scratch, w + FRACTION + 2 * WIDTH)
            wz = fma(f, fma(f, fma(f, CZ3(f), CZ2(f)), CZ1(f)), CZ0(f))
            g = wz * fma(load_quarter(scratch, r + 12), CZ_OFFSET(f) - f, load_quarter(scratch, r))
            gx, h = wz * load_quarter(scratch, r + 4), wz * load_quarter(scratch, r + 8)
            y0, y1 = load_splat(scratch, w + YW), load_splat(scratch, w + YW + 16)
            y2, y3 = load_splat(scratch, w + YW + 32), load_splat(scratch, w + YW + 48)
            d0, d1, d2, d3 = -(one + fy), -fy, one - fy, two - fy
            x = load_splat(scratch, w + XW)
            a = _line4(a, y0, y1, y2, y3, d0, d1, d2, d3, x * fma(-(one + fx), gx, g), x * h)
            x = load_splat(scratch, w + XW + 16)
            b = _line4(b, y0, y1, y2, y3, d0, d1, d2, d3, x * fma(-fx, gx, g), x * h)
            x = load_splat(scratch, w + XW + 32)
            c = _line4(c, y0, y1, y2, y3, d0, d1, d2, d3, x * fma(one - fx, gx, g), x * h)
            x = load_splat(scratch, w + XW + 48)
            d = _line4(d, y0, y1, y2, y3, d0, d1, d2, d3, x * fma(two - fx, gx, g), x * h)
    _accumulate4(scratch, cell, a)
    _accumulate4(scratch, cell + SLICE, b)
    _accumulate4(scratch, cell + 2 * SLICE, c)
    _accumulate4(scratch, cell + 3 * SLICE, d)


@kernel(parallel=True)
def scatter_momentum_cubic(offset, stride, shift, unit, velocity, affine, mass, cell_size, share, block_start,
                           colour_start, colour_block, tile_slot, scratch, base, grid):
    """Add mass and momentum of every particle to the grid with cubic B-splines; `share` of C is carried."""
    for colour in range(8):
        first = colour_start[colour]
        for k in prange(colour_start[colour + 1] - first):
            q, thread = colour_block[first + k], get_thread_id()
            at = thread * SCRATCH
            zero = const(load(scratch, at), 0.0)
            _momentum_block_cubic(offset, stride, shift, unit, velocity, affine, mass, cell_size, share, block_start[q],
                                  block_start[q + 1], scratch, at, base, 64 * thread, zero)
            add_tile(scratch, at, grid, tile_slot, q)


@kernel
def _force_block_cubic(offset, stride, shift, unit, stress, volume, inverse_cell, begin, end, scratch, at, base, base_at,
                       zero):
    clear_tile(scratch, at, zero)
    weights, records = at + TILE, at + RECORDS
    first = 5 << (shift - 1)
    cell = at
    z4 = (zero, zero, zero, zero)
    a, b, c, d = z4, z4, z4, z4
    three, two = const(zero, 3.0), const(zero, 2.0)
    for p in range(begin, end, WIDTH):
        cubic_weights(offset, stride, p, first, shift, unit, scratch, weights, base, base_at)
        _force_records(stress, volume, stride, p, inverse_cell, scratch, records)
        for lane in range(min(WIDTH, end - p)):
            here = at + base[base_at + lane]
            if here != cell:
                _accumulate4(scratch, cell, a)
                _accumulate4(scratch, cell + SLICE, b)
                _accumulate4(scratch, cell + 2 * SLICE, c)
                _accumulate4(scratch, cell + 3 * SLICE, d)
                a, b, c, d = z4, z4, z4, z4
                cell = here
            r, w = records + WIDTH * lane, weights + lane
            f = load_splat(scratch, w + FRACTION + 2 * WIDTH)
            wz = fma(f, fma(f, fma(f, CZ3(f), CZ2(f)), CZ1(f)), CZ0(f))
            tx, ty = wz * load_quarter(scratch, r), wz * load_quarter(scratch, r + 4)
            tz = fma(f, fma(three * f, CZ3(f), two * CZ2(f)), CZ1(f)) * load_quarter(scratch, r + 8)
            y0, y1 = load_splat(scratch, w + YW), load_splat(scratch, w + YW + 16)
            y2, y3 = load_splat(scratch, w + YW + 32), load_splat(scratch, w + YW + 48)
            s0, s1 = load_splat(scratch, w + YD), load_splat(scratch, w + YD + 16)
            s2, s3 = load_splat(scratch, w + YD + 32), load_splat(scratch, w + YD + 48)
            x, s = load_splat(scratch, w + XW), load_splat(scratch, w + XD)
            a = _slope_line4(a, y0, y1, y2, y3, s0, s1, s2, s3, fma(s, tx, x * tz), x * ty)
            x, s = load_splat(scratch, w + XW + 16), load_splat(scratch, w + XD + 16)
            b = _slope_line4(b, y0, y1, y2, y3, s0, s1, s2, s3, fma(s, tx, x * tz), x * ty)
            x, s = load_splat(scratch, w + XW + 32), load_splat(scratch, w + XD + 32)
            c = _slope_line4(c, y0, y1, y2, y3, s0, s1, s2, s3, fma(s, tx, x * tz), x * ty)
            x, s = load_splat(scratch, w + XW + 48), load_splat(scratch, w + XD + 48)
            d = _slope_line4(d, y0, y1, y2, y3, s0, s1, s2, s3, fma(s, tx, x * tz), x * ty)
    _accumulate4(scratch, cell, a)
    _accumulate4(scratch, cell + SLICE, b)
    _accumulate4(scratch, cell + 2 * SLICE, c)
    _accumulate4(scratch, cell + 3 * SLICE, d)


@kernel(parallel=True)
def scatter_force_cubic(offset, stride, shift, unit, stress, volume, inverse_cell, block_start, colour_start,
                        colour_block, tile_slot, scratch, base, grid):
    """Add - V0 tau grad w of every particle to the force grid with cubic B-splines."""
    for colour in range(8):
        first = colour_start[colour]
        for k in prange(colour_start[colour + 1] - first):
            q, thread = colour_block[first + k], get_thread_id()
            at = thread * SCRATCH
            zero = const(load(scratch, at), 0.0)
            _force_block_cubic(offset, stride, shift, unit, stress, volume, inverse_cell, block_start[q],
                               block_start[q + 1], scratch, at, base, 64 * thread, zero)
            add_tile(scratch, at, grid, tile_slot, q)
