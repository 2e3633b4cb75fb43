"""The FLIP part of a blended transfer: what a particle keeps of its own velocity.

v_p = a (v_p + sum w (v* - v_i)) + (1 - a) sum w v*  =  a (v_p - sum w v_i) + sum w v*   (Zhu & Bridson 2005, Stomakhin 2013)

The kernels below leave a (v_p - sum w v_i) in the velocity rows; the gather then adds sum w v* with `keep` = 1.
"""

from __future__ import annotations

from numba import get_thread_id, prange

from mpm_nodes.kernels.jit import kernel
from mpm_nodes.kernels.lane_memory import load, load_splat, quarter_sums, store_first
from mpm_nodes.kernels.lane_types import WIDTH
from mpm_nodes.kernels.lanes import broadcast, fma
from mpm_nodes.kernels.tiles import RECORDS, ROW, SCRATCH, SLICE, TILE
from mpm_nodes.kernels.weights import (
    CZ0,
    CZ1,
    CZ2,
    CZ3,
    FRACTION,
    QZ0,
    QZ1,
    QZ2,
    XW,
    YW,
    cubic_weights,
    quadratic_weights,
)


@kernel
def _load_velocity_tile(scratch, at, momentum, tile_slot, q):
    """Fill the tile with momentum / mass, zero where there is no mass."""
    for corner in range(8):
        block = tile_slot[q, corner] * 256
        tile = at + (corner >> 2) * 4 * SLICE + ((corner >> 1) & 1) * 4 * ROW + (corner & 1) * WIDTH
        for i in range(4):
            for j in range(4):
                for k in range(4):
                    g, t = block + i * 64 + j * 16 + 4 * k, tile + i * SLICE + j * ROW + 4 * k
                    mass = momentum[g + 3]
                    inverse = 1 / mass if mass > 0 else 0 * mass
                    for c in range(3):
                        scratch[t + c] = momentum[g + c] * inverse
                    scratch[t + 3] = 0 * inverse


@kernel
def _keep_rest(scratch, records, velocity, stride, p, count, fraction):
    """Subtract sixteen gathered velocities (four floats a record) from the particles' own."""
    for axis in range(3):
        for lane in range(WIDTH):
            scratch[records + 64 + 16 * axis + lane] = scratch[records + 4 * lane + axis]
    a = broadcast(load(scratch, records), fraction)
    for axis in range(3):
        row = axis * stride + p
        own = load(velocity, row)
        store_first(velocity, row, a * (own - load(scratch, records + 64 + 16 * axis)), count)


@kernel(parallel=True)
def keep_flip_quadratic(offset, stride, shift, unit, velocity, fraction, block_start, blocks, tile_slot, scratch, base,
                        momentum):
    """Replace v_p by fraction (v_p - sum w v_i), quadratic B-splines."""
    for q in prange(blocks):
        thread = get_thread_id()
        at = thread * SCRATCH
        weights, records = at + TILE, at + RECORDS
        _load_velocity_tile(scratch, at, momentum, tile_slot, q)
        for p in range(block_start[q], block_start[q + 1], WIDTH):
            count = min(WIDTH, block_start[q + 1] - p)
            quadratic_weights(offset, stride, p, 3 << shift, shift, unit, scratch, weights, base, 64 * thread)
            for lane in range(count):
                o, w = at + base[64 * thread + lane], weights + lane
                f = load_splat(scratch, w + FRACTION + 2 * WIDTH)
                v = f - f
                for i in range(3):
                    x = load_splat(scratch, w + XW + WIDTH * i)
                    for j in range(3):
                        v = fma(x * load_splat(scratch, w + YW + WIDTH * j), load(scratch, o + i * SLICE + j * ROW), v)
                v = fma(f, fma(f, QZ2(f), QZ1(f)), QZ0(f)) * v
                store_first(scratch, records + 4 * lane, quarter_sums(v, v, v, v), 4)
            _keep_rest(scratch, records, velocity, stride, p, count, fraction)


@kernel(parallel=True)
def keep_flip_cubic(offset, stride, shift, unit, velocity, fraction, block_start, blocks, tile_slot, scratch, base,
                    momentum):
    """Replace v_p by fraction (v_p - sum w v_i), cubic B-splines."""
    for q in prange(blocks):
        thread = get_thread_id()
        at = thread * SCRATCH
        weights, records = at + TILE, at + RECORDS
        _load_velocity_tile(scratch, at, momentum, tile_slot, q)
        for p in range(block_start[q], block_start[q + 1], WIDTH):
            count = min(WIDTH, block_start[q + 1] - p)
            cubic_weights(offset, stride, p, 5 << (shift - 1), shift, unit, scratch, weights, base, 64 * thread)
            for lane in range(count):
                o, w = at + base[64 * thread + lane], weights + lane
                f = load_splat(scratch, w + FRACTION + 2 * WIDTH)
                v = f - f
                for i in range(4):
                    x = load_splat(scratch, w + XW + WIDTH * i)
                    for j in range(4):
                        v = fma(x * load_splat(scratch, w + YW + WIDTH * j), load(scratch, o + i * SLICE + j * ROW), v)
                v = fma(f, fma(f, fma(f, CZ3(f), CZ2(f)), CZ1(f)), CZ0(f)) * v
                store_first(scratch, records + 4 * lane, quarter_sums(v, v, v, v), 4)
            _keep_rest(scratch, records, velocity, stride, p, count, fraction)
