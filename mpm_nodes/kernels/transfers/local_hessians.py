"""Local Hessians of particles made positive semi-definite and kept: their products, and their node-diagonal blocks.

| symbol | meaning | unit |
|---|---|---|
| M[ac, bd] | second derivative of psi by A_ac and A_bd, rows and columns 3 a + c | Pa |
| row | place of an entry of the lower triangle: i (i + 1) / 2 + j | |

Eigenvalues below zero are set to zero (Teran 2005, for any law). Most particles are positive already, which a Cholesky
factorisation tells for a fiftieth of the price of the eigenvalues; the rest take Jacobi's method.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import get_thread_id

from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.lanes.arithmetic import const
from mpm_nodes.kernels.lanes.memory import bare, load, store, store_first
from mpm_nodes.kernels.lanes.types import WIDTH
from mpm_nodes.kernels.transfers.fields import FULL, Flux, slopes_of_matrix
from mpm_nodes.kernels.transfers.gather import gather_run
from mpm_nodes.kernels.transfers.node_blocks import scatter_blocks
from mpm_nodes.kernels.transfers.places import BlockWork, bare_placement
from mpm_nodes.kernels.transfers.scatter import scatter_run
from mpm_nodes.kernels.transfers.tiles import SCRATCH, add_tile, load_tile

__all__ = ["ENTRIES", "LocalRows", "StoredHessians", "add_stored_blocks", "apply_stored", "store_positive"]

ENTRIES = 45
"""Entries of the lower triangle of a symmetric 9 x 9 matrix."""


class StoredHessians(NamedTuple):
    """Hessians that are kept.

    Attributes:
        hessians: Entry k of particle p at k * stride + p [Pa].
        volume: Undeformed volumes [m^3].
        dt: Substep [s].
    """

    hessians: Any
    volume: Any
    dt: Any


class LocalRows(NamedTuple):
    """Scratch of each thread: rows of a block's particles."""

    rows: Any
    stride: Any


SWEEPS = 12
"""Jacobi sweeps at most; off-diagonal entries shrink quadratically after the third or so."""


@part
def _is_positive(matrix, factor):
    """Return whether a symmetric 9 x 9 matrix has a Cholesky factorisation."""
    for i in range(9):
        for j in range(i + 1):
            total = matrix[9 * i + j]
            for k in range(j):
                total -= factor[9 * i + k] * factor[9 * j + k]
            if i > j:
                factor[9 * i + j] = total / factor[9 * j + j]
            elif total > 0.0:
                factor[9 * i + i] = np.sqrt(total)
            else:
                return False
    return True


@part
def _rotate(matrix, vectors, p, q):
    """Zero entry (p, q) by a Jacobi rotation."""
    apq = matrix[9 * p + q]
    theta = (matrix[10 * q] - matrix[10 * p]) / (2.0 * apq)
    t = np.copysign(1.0, theta) / (abs(theta) + np.sqrt(theta * theta + 1.0))
    c = 1.0 / np.sqrt(t * t + 1.0)
    s = t * c
    for k in range(9):
        a, b = matrix[9 * k + p], matrix[9 * k + q]
        matrix[9 * k + p], matrix[9 * k + q] = c * a - s * b, s * a + c * b
    for k in range(9):
        a, b = matrix[9 * p + k], matrix[9 * q + k]
        matrix[9 * p + k], matrix[9 * q + k] = c * a - s * b, s * a + c * b
        a, b = vectors[9 * k + p], vectors[9 * k + q]
        vectors[9 * k + p], vectors[9 * k + q] = c * a - s * b, s * a + c * b


@part
def _make_positive(matrix, vectors):
    """Replace a symmetric 9 x 9 matrix by the sum of its eigenvectors' products with eigenvalues above zero."""
    size = 0.0
    for k in range(81):
        vectors[k] = 1.0 if k % 10 == 0 else 0.0
        size = max(size, abs(matrix[k]))
    for _ in range(SWEEPS):
        off = 0.0
        for p in range(8):
            for q in range(p + 1, 9):
                if abs(matrix[9 * p + q]) > 1e-16 * size:
                    off = max(off, abs(matrix[9 * p + q]))
                    _rotate(matrix, vectors, p, q)
        if off <= 1e-14 * size:
            break
    for i in range(9):
        for j in range(i + 1):
            total = 0.0
            for k in range(9):
                total += max(matrix[10 * k], 0.0) * vectors[9 * i + k] * vectors[9 * j + k]
            vectors[81 + 9 * i + j] = total
    for i in range(9):
        for j in range(i + 1):
            matrix[9 * i + j] = matrix[9 * j + i] = vectors[81 + 9 * i + j]


@part
def store_positive(values, begin, end, hessians, stride):
    """Store the projected Hessians of particles begin .. end-1; returns how many had to be changed.

    `values` holds the nine differentials of each, row 9 e + component, one lane a particle.
    """
    work = np.empty(324)
    matrix, factor, vectors = work[:81], work[81:162], work[162:]
    changed = 0
    for p in range(begin, end):
        lane = p - begin
        for i in range(9):
            for j in range(i + 1):
                value = 0.5 * (np.float64(values[WIDTH * (9 * i + j) + lane]) + np.float64(values[WIDTH * (9 * j + i) + lane]))
                matrix[9 * i + j] = matrix[9 * j + i] = value
        if not _is_positive(matrix, factor):
            _make_positive(matrix, vectors)
            changed += 1
        for i in range(9):
            for j in range(i + 1):
                hessians[(i * (i + 1) // 2 + j) * stride + p] = matrix[9 * i + j]
    return changed


# ---------------------------------------------------------------- products
@part
def _multiply(hessians, stride, rows, row_stride, row_shift, begin, end, buffer):
    """Replace the nine rows of Q of particles begin .. end-1 by those of M Q."""
    zero = const(load(hessians, begin), 0.0)
    for p in range(begin, end, WIDTH):
        for i in range(9):
            total = zero
            for j in range(9):
                entry = i * (i + 1) // 2 + j if j <= i else j * (j + 1) // 2 + i
                total = total + load(hessians, entry * stride + p) * load(rows, j * row_stride + row_shift + p)
            store(buffer, WIDTH * i, total)
        for i in range(9):
            store_first(rows, i * row_stride + row_shift + p, load(buffer, WIDTH * i), end - p)


@part
def _apply_stored_at(k, first, stored, local, stencil, place, tables, grids):
    r, thread = tables.colour_range[first + k], get_thread_id()
    start, end, q, at = tables.runs[r, 0], tables.runs[r, 1], tables.runs[r, 2], thread * SCRATCH
    if start == end:
        return
    scratch, rows_shift = bare(tables.scratch), thread * 9 * local.stride - start
    place = bare_placement(place)
    work = BlockWork(start, end, 0, scratch, at, bare(tables.base), 64 * thread)
    load_tile(scratch, at, grids[0], tables.tile_slot, q)
    gather_run(stencil, place, None, None, slopes_of_matrix(local.rows, local.stride, rows_shift), None, work)
    buffer = np.empty(9 * WIDTH, local.rows.dtype)
    _multiply(bare(stored.hessians), place.stride, bare(local.rows), local.stride, rows_shift, start, end, buffer)
    scale = stored.dt * stored.dt / place.cell_size
    flux = Flux(bare(local.rows), local.stride, rows_shift, FULL, bare(stored.volume), scale)
    scatter_run(stencil, place, None, None, None, flux, work)
    add_tile(scratch, at, grids[1], tables.tile_slot, q)


@compiled(fastmath=False)
def apply_stored(stored, local, stencil, place, tables, direction, result):
    """Add dt^2 sum V0 (M grad d) grad w_i of all particles to `result` [kg m/s].

    Args:
        stored: `StoredHessians` of the particles.
        local: `LocalRows`, the scratch of each thread: nine rows.
        stencil, place: Spline and positions, as for `gather_arrays`.
        tables: `ScatterTables`.
        direction: d [m/s], grid array.
        result: Grid array, added to.
    """
    for colour in range(8):
        first = tables.colour_start[colour]
        shares = tables.colour_shares[colour]
        parallel_for(_apply_stored_at, shares, (first, stored, local, stencil, place, tables, (direction, result)))


@part
def _add_stored_blocks_at(k, first, stored, stencil, place, tables, blocks):
    r = tables.colour_range[first + k]
    start, end, q, stride = tables.runs[r, 0], tables.runs[r, 1], tables.runs[r, 2], place.stride
    response = np.empty(81 * WIDTH, stored.volume.dtype)
    for begin in range(start, end, WIDTH):
        last = min(begin + WIDTH, end)
        for p in range(begin, last):
            weight = stored.dt * stored.dt * stored.volume[p]
            for i in range(9):
                for j in range(9):
                    entry = i * (i + 1) // 2 + j if j <= i else j * (j + 1) // 2 + i
                    response[WIDTH * (9 * i + j) + p - begin] = weight * stored.hessians[entry * stride + p]
        scatter_blocks(stencil, place, response, begin, last, tables.tile_slot, q, blocks)


@compiled(fastmath=False)
def add_stored_blocks(stored, stencil, place, tables, blocks):
    """Add the node-diagonal blocks of stored Hessians [kg] to `blocks`; arguments as for `apply_stored`."""
    for colour in range(8):
        first = tables.colour_start[colour]
        shares = tables.colour_shares[colour]
        parallel_for(_add_stored_blocks_at, shares, (first, stored, stencil, place, tables, blocks))
