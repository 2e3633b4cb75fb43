"""Particles to grid (P2G): one scatter for values with a weight, their affine parts and fluxes, on any of the shifted grids.

| symbol | meaning | unit | source |
|---|---|---|---|
| w, s, t, k, D | stencil weight, its slope, highest difference, its factor, sum w d^2 | | `weights` |
| C | APIC affine velocity | 1/s | Jiang 2015 |
| tau, V0 | Kirchhoff stress, undeformed volume | Pa, m^3 | f = - sum V0 tau grad w |
| G | what a particle gives with weight w: here momentum and mass | kg m/s, kg | |
| U_a | what it gives with the slope along axis a: m D h C_a - V0 tau_a / h | kg m/s or N | |
| K_a | what it gives with the highest difference along axis a: k_a m D h C_a | kg m/s | |
| node | four values: three components and the weight that they were multiplied by | | |

The affine part m C d w is slope and highest difference as well (`weights`), so one sum serves all:

    row (i, j) of nodes = w_i w_j H + (s_i U_x + t_i K_x) w_j + w_i (s_j U_y + t_j K_y),   H = w_z G + s_z U_z + t_z K_z

One z-row of four nodes is one sixteen-lane value, so the 3^3 stencil is nine lanes (fourth node weightless) and the 4^3 stencil
sixteen. A block is scattered into a private tile; where there are registers enough, its rows stay in them while consecutive
particles share a cell. Tiles are added to the grid in eight colours of blocks, without atomics: sums do not depend on the number of
threads.
"""

from __future__ import annotations

from numba import get_thread_id

from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.lanes.arithmetic import broadcast, const, fma
from mpm_nodes.kernels.lanes.memory import bare, element, load, load_quarter, prefetch
from mpm_nodes.kernels.lanes.records import store_records
from mpm_nodes.kernels.lanes.types import WIDTH, whole_registers
from mpm_nodes.kernels.transfers.field_rows import by_row, load_slopes, load_values, prefetch_values
from mpm_nodes.kernels.transfers.fields import bare_given, bare_or_none, whole_rows
from mpm_nodes.kernels.transfers.places import BlockWork, bare_placement, of_points
from mpm_nodes.kernels.transfers.rows import (
    add,
    add_into,
    flush,
    no_rows,
    only_weights,
    plain_add,
    plain_add_into,
    plain_profile,
    profile,
    with_weights,
)
from mpm_nodes.kernels.transfers.tiles import RECORDS, SCRATCH, TILE, add_tile, clear_tile
from mpm_nodes.kernels.transfers.tuples import each_of, for_each
from mpm_nodes.kernels.transfers.weights import (
    FRACTION,
    XS,
    XW,
    YS,
    YW,
    by_width,
    excess,
    fractions,
    splat_rows,
    store_fraction,
    store_rows,
    weights,
    z_weights,
)
from mpm_nodes.kernels.transfers.weights import slopes as slopes_of

__all__ = ["scatter_arrays", "scatter_fields", "scatter_run"]

KEEPS_ROWS = whole_registers()
"""Whether rows stay in registers between particles; where a row takes two registers of sixteen, most of them would spill."""


@inline
def _inertia3(stencil, x):
    return const(x, 1.0 / 4.0)


@inline
def _inertia4(stencil, x):
    return const(x, 1.0 / 3.0)


_inertia = by_width(_inertia3, _inertia4)
"""Return D in cells^2."""


# ---------------------------------------------------------------- records of sixteen particles
@inline
def _before(values, last):
    """Return three values and, in the place of the weight, a last one."""
    return values[0], values[1], values[2], last


@inline
def _no_flux(rows, axis, flux, p, scale, zero):
    return zero


@inline
def _some_flux(rows, axis, flux, p, scale, zero):
    return scale * load(flux.array, rows[axis] * flux.stride + flux.shift + p)


_flux_row = by_row(_no_flux, _some_flux)


@inline
def _flux_along(rows, axis, flux, p, scale, zero):
    return (
        _flux_row(rows[0], axis, flux, p, scale, zero),
        _flux_row(rows[1], axis, flux, p, scale, zero),
        _flux_row(rows[2], axis, flux, p, scale, zero),
        zero,
    )


@inline
def _symmetric_flux(rows, flux, p, scale, zero):
    at, stride = flux.shift + p, flux.stride
    xx, xy = scale * load(flux.array, at), scale * load(flux.array, stride + at)
    xz, yy = scale * load(flux.array, 2 * stride + at), scale * load(flux.array, 3 * stride + at)
    yz, zz = scale * load(flux.array, 4 * stride + at), scale * load(flux.array, 5 * stride + at)
    return (xx, xy, xz, zero), (xy, yy, yz, zero), (xz, yz, zz, zero)


@inline
def _general_flux(rows, flux, p, scale, zero):
    return (
        _flux_along(rows, 0, flux, p, scale, zero),
        _flux_along(rows, 1, flux, p, scale, zero),
        _flux_along(rows, 2, flux, p, scale, zero),
    )


_flux_columns = by_row(_symmetric_flux, _general_flux)
"""Return what the flux gives along x, y and z: four lanes each."""


@inline
def _scaled(scale, v):
    return scale * v[0], scale * v[1], scale * v[2], v[3]


@inline
def _plus(a, b):
    return a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3]


@inline
def _particle_records(stencil, place, weight, values, slopes, flux, group):
    """Store [G | U_x | U_y | U_z] and, with slopes, [K_x | K_y | K_z]; what is None is left out of the sums."""
    p, (fx, fy, fz), scratch, at = group
    stride = place.stride
    zero = const(fx, 0.0)
    none = (zero, zero, zero, zero)
    g, ux, uy, uz = none, none, none, none
    if weight is not None:
        m = load(weight, p)
        g = _before(load_values(values, stride, p, m, zero), m)
        if slopes is not None:
            scale = m * (_inertia(stencil, m) * broadcast(m, place.cell_size))
            ux = _before(load_slopes(slopes, 0, stride, p, scale, zero), zero)
            uy = _before(load_slopes(slopes, 1, stride, p, scale, zero), zero)
            uz = _before(load_slopes(slopes, 2, stride, p, scale, zero), zero)
            kx, ky = _scaled(excess(stencil, fx), ux), _scaled(excess(stencil, fy), uy)
            kz = _scaled(excess(stencil, fz), uz)
            store_records(scratch, at + WIDTH * WIDTH, (*kx, *ky, *kz, *none))
    if flux is not None:
        v = load(flux.volume, p)
        scale = v * broadcast(v, flux.scale)
        x, y, z = _flux_columns(flux.rows, flux, p, scale, zero)
        ux, uy, uz = _plus(ux, x), _plus(uy, y), _plus(uz, z)
    store_records(scratch, at, (*g, *ux, *uy, *uz))


@inline
def _prefetch_all(weight, values, slopes, flux, offset, stride, p):
    for row in range(3):
        prefetch(offset, row * stride + p)
    if weight is not None:
        prefetch_values(values, 1, stride, p)
        prefetch(weight, p)
    if slopes is not None:
        prefetch_values(slopes, 3, stride, p)
    if flux is not None:
        prefetch(flux.volume, p)


# ---------------------------------------------------------------- one block
@part
def scatter_fields(stencil, place, weight, values, slopes, flux, work):
    """Scatter the particles of a `BlockWork` into a cleared tile: the fields of a `Given`, but its origin and its grid array."""
    scratch, at, base, base_at, end = work.scratch, work.at, work.base, work.base_at, work.end
    offset, stride = place.offset, place.stride
    zero = const(load(scratch, at), 0.0)
    clear_tile(scratch, at, zero)
    scratch_weights, records = at + TILE, at + RECORDS
    here = at
    rows = no_rows(stencil, zero)
    for p in range(work.begin, end, WIDTH):
        fx, fy, fz = fractions(stencil, place, p, base, base_at)
        _prefetch_all(weight, values, slopes, flux, offset, stride, p + work.ahead)
        store_rows(weights(stencil, fx), scratch, scratch_weights + XW)
        store_rows(weights(stencil, fy), scratch, scratch_weights + YW)
        if slopes is not None or flux is not None:
            store_rows(slopes_of(stencil, fx), scratch, scratch_weights + XS)
            store_rows(slopes_of(stencil, fy), scratch, scratch_weights + YS)
        store_fraction(scratch, scratch_weights + FRACTION, fz)
        _particle_records(stencil, place, weight, values, slopes, flux, (p, (fx, fy, fz), scratch, records))
        for lane in range(min(WIDTH, end - p)):
            cell = at + element(base, base_at + lane)
            if KEEPS_ROWS and cell != here:
                flush(rows, scratch, here)
                rows = no_rows(stencil, zero)
                here = cell
            w, r = scratch_weights + lane, records + WIDTH * lane
            x, y = splat_rows(stencil, scratch, w + XW), splat_rows(stencil, scratch, w + YW)
            wz, sz, tz = z_weights(stencil, splat_rows((0, 0, 0), scratch, w + FRACTION))
            if slopes is None and flux is None:
                profile_x = only_weights(x, wz * load_quarter(scratch, r))
                if KEEPS_ROWS:
                    rows = plain_add(rows, y, profile_x)
                else:
                    plain_add_into(y, scratch, cell, profile_x)
            else:
                h = sz * load_quarter(scratch, r + 12)
                if weight is not None:
                    h = fma(wz, load_quarter(scratch, r), h)
                ux, uy = wz * load_quarter(scratch, r + 4), wz * load_quarter(scratch, r + 8)
                sx, sy = splat_rows(stencil, scratch, w + XS), splat_rows(stencil, scratch, w + YS)
                if slopes is None:
                    along_x, along_y = with_weights(x, h, plain_profile(sx, ux)), plain_profile(sy, uy)
                else:
                    k = r + WIDTH * WIDTH
                    h = fma(tz, load_quarter(scratch, k + 8), h)
                    kx, ky = wz * load_quarter(scratch, k), wz * load_quarter(scratch, k + 4)
                    along_x, along_y = with_weights(x, h, profile(sx, ux, kx)), profile(sy, uy, ky)
                if KEEPS_ROWS:
                    rows = add(rows, y, along_x, x, along_y)
                else:
                    add_into(y, scratch, cell, along_x, x, along_y)
    if KEEPS_ROWS:
        flush(rows, scratch, here)


@inline
def scatter_run(stencil, place, velocity, affine, mass, flux, work):
    """Scatter momentum, force or both of the particles of one block to the nodes of a cleared tile.

    `mass` and `velocity` None leave momentum out, `affine` None its affine part, `flux` None the force.
    """
    scatter_fields(stencil, place, bare_or_none(mass), whole_rows(velocity), whole_rows(affine), flux, work)


# ---------------------------------------------------------------- all blocks
@inline
def _scatter_one(given, block):
    (stencil, place, work, tile_slot, q) = block
    scatter_fields(stencil, of_points(place, given.half), given.weight, given.values, given.slopes, given.flux, work)
    add_tile(work.scratch, work.at, given.grid, tile_slot, q)


@part
def _scatter_block(k, first, stencil, place, fields, tables):
    r, thread = tables.colour_range[first + k], get_thread_id()
    begin, end, q = tables.runs[r, 0], tables.runs[r, 1], tables.runs[r, 2]
    work = BlockWork(begin, end, 0, bare(tables.scratch), thread * SCRATCH, bare(tables.base), 64 * thread)
    for_each(_scatter_one, fields, (stencil, bare_placement(place), work, tables.tile_slot, q))


@compiled(fastmath=False)
def scatter_arrays(stencil, place, fields, tables):
    """Add what every particle gives to the grid arrays of `fields`, in one pass over the particles.

    Args:
        stencil: Tuple of as many zeros as the B-spline has nodes along an axis.
        place: `Placement` of the particles.
        fields: Tuple of `Given`, one for each grid array.
        tables: `ScatterTables` of the blocks.
    """
    bared = each_of(bare_given, fields)
    for colour in range(8):
        first = tables.colour_start[colour]
        parallel_for(_scatter_block, tables.colour_shares[colour], (first, stencil, place, bared, tables))
