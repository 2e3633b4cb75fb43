"""Grid to particles: values, their affine parts C and gradients L = sum v (grad w)^T (Jiang 2015), from any of the shifted grids.

A z-row of four nodes is one sixteen-lane value. While consecutive particles share a cell, the differences of its rows stay in
registers (see `weights`): per particle there remain polynomials in its position.
"""

from __future__ import annotations

from numba import get_thread_id

from mpm_nodes.kernels.compile.jit import compiled, embedded, inline, part
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.lanes.arithmetic import broadcast, fma
from mpm_nodes.kernels.lanes.memory import (
    bare,
    element,
    load_splat,
    prefetch,
    store,
)
from mpm_nodes.kernels.lanes.records import load_records, quarter_sums
from mpm_nodes.kernels.lanes.types import WIDTH, fused, whole_registers
from mpm_nodes.kernels.transfers.field_rows import change_row, change_values, prefetch_values, store_slopes, store_values
from mpm_nodes.kernels.transfers.fields import bare_taken, slopes_of_rows, whole_rows
from mpm_nodes.kernels.transfers.places import BlockWork, bare_placement, of_points
from mpm_nodes.kernels.transfers.sums import (
    along_y,
    cell_differences,
    plane_slopes,
    plane_sum,
    plane_tops,
    slope_along_y,
    top_along_y,
)
from mpm_nodes.kernels.transfers.tiles import (
    RECORDS,
    SCRATCH,
    SECOND_TILE,
    TILE,
    load_change_tile,
    load_paired_tile,
    load_tile,
)
from mpm_nodes.kernels.transfers.tuples import each_of, for_each
from mpm_nodes.kernels.transfers.weights import (
    EXCESS,
    FRACTION,
    XS,
    XW,
    YS,
    YW,
    excess,
    fractions,
    slope_at,
    slopes,
    splat_rows,
    store_fraction,
    store_rows,
    value_at,
    weights,
    z_weights,
)

__all__ = ["gather_arrays", "gather_fields", "gather_run"]

KEEPS_CELL = whole_registers() or not fused()
"""Whether differences of a cell's rows are kept between particles. Where they would lie on the stack, sums are taken straight from
the tile; only where a product and a sum are two instructions, that costs more.
"""


# ---------------------------------------------------------------- records
@inline
def _scaled(scale, v):
    return scale * v[0], scale * v[1], scale * v[2], scale * v[3]


@embedded
def _store_gathered(values, affine, gradient, flip, paired, group):
    """Turn sixteen pairs of records [v | C] and [L | v or its change] into rows."""
    scratch, records, stride, p, count, inverse_cell = group
    u = load_records(scratch, records + WIDTH * WIDTH)
    scale = broadcast(u[0], inverse_cell)
    if gradient is not None:
        x, y, z = _scaled(scale, u[:4]), _scaled(scale, u[4:8]), _scaled(scale, u[8:12])
        store_slopes(gradient.rows, gradient.stride, gradient.shift + p, x, y, z, count)
    if values is not None:
        if flip is None:
            store_values(values, stride, p, u[12:], count)
        elif paired is not None:
            change_row(values[0], stride, p, broadcast(u[0], flip), u[13], count)
        else:
            change_values(values, stride, p, broadcast(u[0], flip), u[12:], count)
    if affine is not None:
        t = load_records(scratch, records)
        store_slopes(affine, stride, p, _scaled(scale, t[4:8]), _scaled(scale, t[8:12]), _scaled(scale, t[12:]), count)


# ---------------------------------------------------------------- one block
@inline
def _store_position(stencil, scratch, at, fx, fy, fz):
    store_fraction(scratch, at + FRACTION, fx)
    store_fraction(scratch, at + FRACTION + 3 * WIDTH, fy)
    store_fraction(scratch, at + FRACTION + 6 * WIDTH, fz)
    store(scratch, at + EXCESS, excess(stencil, fx))
    store(scratch, at + EXCESS + WIDTH, excess(stencil, fy))
    store(scratch, at + EXCESS + 2 * WIDTH, excess(stencil, fz))


@inline
def _prefetch_all(values, affine, offset, stride, p):
    for row in range(3):
        prefetch(offset, row * stride + p)
    if values is not None:
        prefetch_values(values, 1, stride, p)
    if affine is not None:
        prefetch_values(affine, 3, stride, p)


@part
def gather_fields(stencil, place, values, affine, gradient, flip, paired, work):
    """Gather for the particles of a `BlockWork` whose tile is loaded: the fields of a `Taken`, but its origin and its grid arrays.

    `flip` is None or the share of FLIP, whose change lies in the second tile. `paired` is not None where one value alone is wanted
    with its gradient: then the tile's first value is that, its second the change, and both come from one walk over the rows.
    `gradient` is None or `Slopes`.
    """
    scratch, at, base, base_at, end = work.scratch, work.at, work.base, work.base_at, work.end
    offset, stride, inverse_cell = place.offset, place.stride, 1.0 / place.cell_size
    scratch_weights, records = at + TILE, at + RECORDS
    here = -1
    if paired is None:
        if KEEPS_CELL and (gradient is not None or affine is not None):
            cell = cell_differences(stencil, scratch, at)
    for p in range(work.begin, end, WIDTH):
        count = min(WIDTH, end - p)
        _prefetch_all(values, affine, offset, stride, p + work.ahead)
        fx, fy, fz = fractions(stencil, place, p, base, base_at)
        _store_position(stencil, scratch, scratch_weights, fx, fy, fz)
        if flip is not None or (gradient is None and affine is None) or not KEEPS_CELL:
            store_rows(weights(stencil, fx), scratch, scratch_weights + XW)
            store_rows(weights(stencil, fy), scratch, scratch_weights + YW)
        if paired is not None or not KEEPS_CELL:
            store_rows(slopes(stencil, fx), scratch, scratch_weights + XS)
            store_rows(slopes(stencil, fy), scratch, scratch_weights + YS)
        for lane in range(count):
            w, r = scratch_weights + lane, records + WIDTH * lane
            z = splat_rows((0, 0, 0), scratch, w + FRACTION + 6 * WIDTH)
            wz, sz, tz = z_weights(stencil, z)
            if paired is not None:
                xw, yw = splat_rows(stencil, scratch, w + XW), splat_rows(stencil, scratch, w + YW)
                xs, ys = splat_rows(stencil, scratch, w + XS), splat_rows(stencil, scratch, w + YS)
                v, gx, gy = plane_slopes(xw, xs, yw, ys, scratch, at + element(base, base_at + lane))
                store(scratch, r + WIDTH * WIDTH, quarter_sums(wz * gx, wz * gy, sz * v, wz * v))
            elif gradient is None and affine is None:
                tile = at if flip is None else at + SECOND_TILE
                xw, yw = splat_rows(stencil, scratch, w + XW), splat_rows(stencil, scratch, w + YW)
                value = wz * plane_sum(xw, yw, scratch, tile + element(base, base_at + lane))
                store(scratch, r + WIDTH * WIDTH, quarter_sums(value, value, value, value))
            else:
                if KEEPS_CELL:
                    if element(base, base_at + lane) != here:
                        here = element(base, base_at + lane)
                        cell = cell_differences(stencil, scratch, at + here)
                    x = splat_rows((0, 0, 0), scratch, w + FRACTION)
                    y = splat_rows((0, 0, 0), scratch, w + FRACTION + 3 * WIDTH)
                    along = along_y(cell, y)
                    v, gx, tx = value_at(along, x), slope_at(along, x), along[-1]
                    gy, ty = value_at(slope_along_y(cell, y), x), value_at(top_along_y(cell), x)
                else:
                    here = element(base, base_at + lane)
                    x, y = splat_rows(stencil, scratch, w + XW), splat_rows(stencil, scratch, w + YW)
                    xs, ys = splat_rows(stencil, scratch, w + XS), splat_rows(stencil, scratch, w + YS)
                    v, gx, tx, gy, ty = plane_tops(x, xs, y, ys, scratch, at + here)
                zv = wz * v
                if affine is not None:
                    cx = fma(load_splat(scratch, w + EXCESS), tx, gx)
                    cy = fma(load_splat(scratch, w + EXCESS + WIDTH), ty, gy)
                    ez = fma(load_splat(scratch, w + EXCESS + 2 * WIDTH), tz, sz)
                    store(scratch, r, quarter_sums(zv, wz * cx, wz * cy, ez * v))
                change = zv
                if flip is not None:
                    xw, yw = splat_rows(stencil, scratch, w + XW), splat_rows(stencil, scratch, w + YW)
                    change = wz * plane_sum(xw, yw, scratch, at + SECOND_TILE + here)
                store(scratch, r + WIDTH * WIDTH, quarter_sums(wz * gx, wz * gy, sz * v, change))
        _store_gathered(values, affine, gradient, flip, paired, (scratch, records, stride, p, count, inverse_cell))


@inline
def gather_run(stencil, place, velocity, affine, gradient, flip, work):
    """Gather velocities from nodes for the particles of one block; `flip` is None or the FLIP fraction, `gradient` `Slopes`.

    `velocity` None leaves all but the gradient out.
    """
    gather_fields(stencil, place, whole_rows(velocity), whole_rows(affine), gradient, flip, None, work)


# ---------------------------------------------------------------- all blocks
@inline
def _load_tiles(before, gradient, affine, paired, taken, tile_slot, q, work):
    """Load what is gathered from into the first tile and the change for FLIP into the second, or both into the first."""
    scratch, at, grid, fraction = work.scratch, work.at, taken.grid, taken.fraction
    if paired is not None:
        load_paired_tile(scratch, at, grid, before, fraction, tile_slot, q)
    else:
        if before is None or gradient is not None or affine is not None:
            load_tile(scratch, at, grid, tile_slot, q)
        if before is not None:
            load_change_tile(scratch, at + SECOND_TILE, grid, before, fraction, tile_slot, q)


@inline
def _gather_one(taken, block):
    (stencil, place, work, tile_slot, q) = block
    _load_tiles(taken.before, taken.gradient, taken.affine, taken.paired, taken, tile_slot, q, work)
    gather_fields(
        stencil,
        of_points(place, taken.half),
        taken.values,
        taken.affine,
        slopes_of_rows(taken.gradient, place.stride),
        taken.fraction,
        taken.paired,
        work,
    )


@part
def _gather_block(k, stencil, place, fields, tables):
    thread = get_thread_id()
    begin, end, q = tables.runs[k, 0], tables.runs[k, 1], tables.runs[k, 2]
    work = BlockWork(begin, end, 0, bare(tables.scratch), thread * SCRATCH, bare(tables.base), 64 * thread)
    for_each(_gather_one, fields, (stencil, bare_placement(place), work, tables.tile_slot, q))


@compiled(fastmath=False)
def gather_arrays(stencil, place, fields, tables):
    """Take values, affine parts and gradients from the grid arrays of `fields`, in one pass over the particles.

    Args:
        stencil: Tuple of as many zeros as the B-spline has nodes along an axis.
        place: `Placement` of the particles.
        fields: Tuple of `Taken`, one for each grid array.
        tables: `GatherTables` of the blocks.
    """
    parallel_for(_gather_block, tables.shares, (stencil, place, each_of(bare_taken, fields), tables))
