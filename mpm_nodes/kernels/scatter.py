"""Particles to grid: scatter of momentum, of force, and of both at once.

| symbol | meaning | unit | source |
|---|---|---|---|
| w, s, t, k, D | stencil weight, its slope, highest difference, its factor, sum w d^2 | | `weights` |
| C | APIC affine velocity | 1/s | Jiang 2015 |
| tau, V0 | Kirchhoff stress, undeformed volume | Pa, m^3 | f = - sum V0 tau grad w |
| G | what a particle gives with weight w: momentum and mass | kg m/s, kg | |
| U_a | what it gives with the slope along axis a: m D h C_a - V0 tau_a / h | kg m/s or N | |
| K_a | what it gives with the highest difference along axis a: k_a m D h C_a | kg m/s | |
| node | four values: three components and, on the momentum grid, the mass | | |

The affine part m C d w is slope and highest difference as well (`weights`), so one sum serves all:

    row (i, j) of nodes = w_i w_j H + (s_i U_x + t_i K_x) w_j + w_i (s_j U_y + t_j K_y),   H = w_z G + s_z U_z + t_z K_z

One z-row of four nodes is one sixteen-lane value, so the 3^3 stencil is nine lanes (fourth node weightless) and the 4^3 stencil
sixteen. A block is scattered into a private tile; its rows stay in registers while consecutive particles share a cell. Tiles are
added to the grid in eight colours of blocks, without atomics: sums do not depend on the number of threads.
"""

from __future__ import annotations

from numba import get_thread_id

from mpm_nodes.kernels.jit import inline, kernel, part
from mpm_nodes.kernels.lane_memory import load, load_quarter, prefetch, store, transpose
from mpm_nodes.kernels.lane_types import WIDTH
from mpm_nodes.kernels.lanes import broadcast, const, fma
from mpm_nodes.kernels.parallel import parallel_for
from mpm_nodes.kernels.tiles import RECORDS, ROW, SCRATCH, SLICE, TILE, add_tile, clear_tile
from mpm_nodes.kernels.weights import (
    FRACTION,
    XS,
    XW,
    YS,
    YW,
    by_width,
    excess,
    fractions,
    slopes,
    splat_rows,
    store_fraction,
    store_rows,
    weights,
    z_weights,
)


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
def _store_records(scratch, at, a, b, c, d):
    """Store four quarters, each of four lanes over the particles, as one record of sixteen values a particle."""
    records = transpose((*a, *b, *c, *d))
    for k in range(WIDTH):
        store(scratch, at + WIDTH * k, records[k])


@inline
def _column(rows, stride, p, column, scale, zero):
    """Return a column of the matrices of particles p .. p+15, scaled, and a zero in the place of the mass."""
    return (scale * load(rows, column * stride + p), scale * load(rows, (3 + column) * stride + p),
            scale * load(rows, (6 + column) * stride + p), zero)


@inline
def _scaled(scale, v):
    return scale * v[0], scale * v[1], scale * v[2], v[3]


@inline
def _plus(a, b):
    return a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3]


@inline
def _stress_columns(stress, tau_stride, p, scale, zero, full):
    if full is not None:
        return (_column(stress, tau_stride, p, 0, scale, zero), _column(stress, tau_stride, p, 1, scale, zero),
                _column(stress, tau_stride, p, 2, scale, zero))
    xx, xy, xz = scale * load(stress, p), scale * load(stress, tau_stride + p), scale * load(stress, 2 * tau_stride + p)
    yy, yz = scale * load(stress, 3 * tau_stride + p), scale * load(stress, 4 * tau_stride + p)
    return (xx, xy, xz, zero), (xy, yy, yz, zero), (xz, yz, scale * load(stress, 5 * tau_stride + p), zero)


@inline
def _particle_records(stencil, velocity, affine, mass, stress, tau_stride, tau_shift, full, volume, stride, p, cell_size,
                      force_scale, fx, fy, fz, scratch, at):
    """Store [G | U_x | U_y | U_z] and, with C, [K_x | K_y | K_z]; what is None is left out of the sums."""
    zero = const(fx, 0.0)
    none = (zero, zero, zero, zero)
    g, ux, uy, uz = none, none, none, none
    if mass is not None:
        m = load(mass, p)
        g = (m * load(velocity, p), m * load(velocity, stride + p), m * load(velocity, 2 * stride + p), m)
        if affine is not None:
            scale = m * (_inertia(stencil, m) * broadcast(m, cell_size))
            ux = _column(affine, stride, p, 0, scale, zero)
            uy = _column(affine, stride, p, 1, scale, zero)
            uz = _column(affine, stride, p, 2, scale, zero)
            _store_records(scratch, at + WIDTH * WIDTH, _scaled(excess(stencil, fx), ux), _scaled(excess(stencil, fy), uy),
                           _scaled(excess(stencil, fz), uz), none)
    if stress is not None:
        v = load(volume, p)
        x, y, z = _stress_columns(stress, tau_stride, tau_shift + p, v * broadcast(v, force_scale), zero, full)
        ux, uy, uz = _plus(ux, x), _plus(uy, y), _plus(uz, z)
    _store_records(scratch, at, g, ux, uy, uz)


# ---------------------------------------------------------------- what a particle gives along one axis
@inline
def _profile3(s, u, k):
    """Return s_i u + t_i k for every node of the stencil; their sum is zero."""
    first, last = fma(s[0], u, k), fma(s[2], u, k)
    return first, -(first + last), last


@inline
def _profile4(s, u, k):
    three = const(u, 3.0) * k
    first, second, last = fma(s[0], u, -k), fma(s[1], u, three), fma(s[3], u, k)
    return first, second, -((first + second) + last), last


@inline
def _plain_profile3(s, u):
    first, last = s[0] * u, s[2] * u
    return first, -(first + last), last


@inline
def _plain_profile4(s, u):
    first, second, last = s[0] * u, s[1] * u, s[3] * u
    return first, second, -((first + second) + last), last


@inline
def _with_weights3(w, h, profile):
    return fma(w[0], h, profile[0]), fma(w[1], h, profile[1]), fma(w[2], h, profile[2])


@inline
def _with_weights4(w, h, profile):
    return fma(w[0], h, profile[0]), fma(w[1], h, profile[1]), fma(w[2], h, profile[2]), fma(w[3], h, profile[3])


@inline
def _only_weights3(w, h):
    return w[0] * h, w[1] * h, w[2] * h


@inline
def _only_weights4(w, h):
    return w[0] * h, w[1] * h, w[2] * h, w[3] * h


_profile, _plain_profile = by_width(_profile3, _profile4), by_width(_plain_profile3, _plain_profile4)
_with_weights, _only_weights = by_width(_with_weights3, _with_weights4), by_width(_only_weights3, _only_weights4)


# ---------------------------------------------------------------- rows in registers
@inline
def _line3(rows, w, p, wx, z):
    """Add w_j p + w_i z_j to the rows of one x-slice."""
    return fma(wx, z[0], fma(w[0], p, rows[0])), fma(wx, z[1], fma(w[1], p, rows[1])), fma(wx, z[2], fma(w[2], p, rows[2]))


@inline
def _line4(rows, w, p, wx, z):
    a, b, c = _line3(rows, w, p, wx, z)
    return a, b, c, fma(wx, z[3], fma(w[3], p, rows[3]))


_line = by_width(_line3, _line4)


@inline
def _plain_line3(rows, w, p):
    return fma(w[0], p, rows[0]), fma(w[1], p, rows[1]), fma(w[2], p, rows[2])


@inline
def _plain_line4(rows, w, p):
    return fma(w[0], p, rows[0]), fma(w[1], p, rows[1]), fma(w[2], p, rows[2]), fma(w[3], p, rows[3])


_plain_line = by_width(_plain_line3, _plain_line4)


@inline
def _add3(rows, w, p, wx, z):
    return _line(rows[0], w, p[0], wx[0], z), _line(rows[1], w, p[1], wx[1], z), _line(rows[2], w, p[2], wx[2], z)


@inline
def _add4(rows, w, p, wx, z):
    return (_line(rows[0], w, p[0], wx[0], z), _line(rows[1], w, p[1], wx[1], z), _line(rows[2], w, p[2], wx[2], z),
            _line(rows[3], w, p[3], wx[3], z))


@inline
def _plain_add3(rows, w, p):
    return _plain_line(rows[0], w, p[0]), _plain_line(rows[1], w, p[1]), _plain_line(rows[2], w, p[2])


@inline
def _plain_add4(rows, w, p):
    return (_plain_line(rows[0], w, p[0]), _plain_line(rows[1], w, p[1]), _plain_line(rows[2], w, p[2]),
            _plain_line(rows[3], w, p[3]))


_add, _plain_add = by_width(_add3, _add4), by_width(_plain_add3, _plain_add4)


@inline
def _no_rows3(stencil, zero):
    z = (zero, zero, zero)
    return z, z, z


@inline
def _no_rows4(stencil, zero):
    z = (zero, zero, zero, zero)
    return z, z, z, z


_no_rows = by_width(_no_rows3, _no_rows4)


@inline
def _flush_line3(rows, scratch, at):
    store(scratch, at, load(scratch, at) + rows[0])
    store(scratch, at + ROW, load(scratch, at + ROW) + rows[1])
    store(scratch, at + 2 * ROW, load(scratch, at + 2 * ROW) + rows[2])


@inline
def _flush_line4(rows, scratch, at):
    _flush_line3(rows, scratch, at)
    store(scratch, at + 3 * ROW, load(scratch, at + 3 * ROW) + rows[3])


_flush_line = by_width(_flush_line3, _flush_line4)


@inline
def _flush3(rows, scratch, at):
    """Add rows to the tile."""
    _flush_line(rows[0], scratch, at)
    _flush_line(rows[1], scratch, at + SLICE)
    _flush_line(rows[2], scratch, at + 2 * SLICE)


@inline
def _flush4(rows, scratch, at):
    _flush3(rows, scratch, at)
    _flush_line(rows[3], scratch, at + 3 * SLICE)


_flush = by_width(_flush3, _flush4)


# ---------------------------------------------------------------- scatter
@inline
def _prefetch_rows(rows, count, stride, p):
    for row in range(count):
        prefetch(rows, row * stride + p)


@kernel(fastmath=False)
def scatter_run(stencil, offset, stride, shift, unit, velocity, affine, mass, stress, tau_stride, tau_shift, volume, cell_size,
                force_scale, begin, end, ahead, scratch, at, base, base_at, full=None):
    """Scatter particles begin .. end-1 of one block into a cleared tile.

    `mass` None leaves momentum out, `affine` None its affine part, `stress` None the force. Row r of the stress of particle p is
    at r * tau_stride + tau_shift + p; it is symmetric with six rows, or has nine where `full` is not None. The rows of
    particle p + ahead are fetched into the cache on the way.
    """
    zero = const(load(scratch, at), 0.0)
    clear_tile(scratch, at, zero)
    scratch_weights, records = at + TILE, at + RECORDS
    here = at
    rows = _no_rows(stencil, zero)
    for p in range(begin, end, WIDTH):
        fx, fy, fz = fractions(stencil, offset, stride, p, shift, unit, base, base_at)
        _prefetch_rows(offset, 3, stride, p + ahead)
        if mass is not None:
            _prefetch_rows(velocity, 3, stride, p + ahead)
            _prefetch_rows(mass, 1, stride, p + ahead)
        if affine is not None:
            _prefetch_rows(affine, 9, stride, p + ahead)
        if stress is not None:
            _prefetch_rows(volume, 1, stride, p + ahead)
        store_rows(weights(stencil, fx), scratch, scratch_weights + XW)
        store_rows(weights(stencil, fy), scratch, scratch_weights + YW)
        if affine is not None or stress is not None:
            store_rows(slopes(stencil, fx), scratch, scratch_weights + XS)
            store_rows(slopes(stencil, fy), scratch, scratch_weights + YS)
        store_fraction(scratch, scratch_weights + FRACTION, fz)
        _particle_records(stencil, velocity, affine, mass, stress, tau_stride, tau_shift, full, volume, stride, p, cell_size,
                          force_scale, fx, fy, fz, scratch, records)
        for lane in range(min(WIDTH, end - p)):
            if at + base[base_at + lane] != here:
                _flush(rows, scratch, here)
                rows = _no_rows(stencil, zero)
                here = at + base[base_at + lane]
            w, r = scratch_weights + lane, records + WIDTH * lane
            x, y = splat_rows(stencil, scratch, w + XW), splat_rows(stencil, scratch, w + YW)
            wz, sz, tz = z_weights(stencil, splat_rows((0, 0, 0), scratch, w + FRACTION))
            if affine is None and stress is None:
                rows = _plain_add(rows, y, _only_weights(x, wz * load_quarter(scratch, r)))
            else:
                h = sz * load_quarter(scratch, r + 12)
                if mass is not None:
                    h = fma(wz, load_quarter(scratch, r), h)
                ux, uy = wz * load_quarter(scratch, r + 4), wz * load_quarter(scratch, r + 8)
                sx, sy = splat_rows(stencil, scratch, w + XS), splat_rows(stencil, scratch, w + YS)
                if affine is None:
                    rows = _add(rows, y, _with_weights(x, h, _plain_profile(sx, ux)), x, _plain_profile(sy, uy))
                else:
                    k = r + WIDTH * WIDTH
                    h = fma(tz, load_quarter(scratch, k + 8), h)
                    kx, ky = wz * load_quarter(scratch, k), wz * load_quarter(scratch, k + 4)
                    rows = _add(rows, y, _with_weights(x, h, _profile(sx, ux, kx)), x, _profile(sy, uy, ky))
    _flush(rows, scratch, here)


@part
def _scatter_momentum_at(k, first, stencil, offset, stride, shift, unit, velocity, mass, ranges, colour_range, tile_slot, scratch,
                         base, grid):
    r, thread = colour_range[first + k], get_thread_id()
    at = thread * SCRATCH
    scatter_run(stencil, offset, stride, shift, unit, velocity, None, mass, None, 0, 0, None, 0.0, 0.0,
                ranges[r, 0], ranges[r, 1], 0, scratch, at, base, 64 * thread)
    add_tile(scratch, at, grid, tile_slot, ranges[r, 2])


@kernel(fastmath=False)
def scatter_momentum(stencil, offset, stride, shift, unit, velocity, mass, ranges, colour_start, colour_range, tile_slot, scratch,
                     base, grid):
    """Add mass and momentum m v of every particle to the grid.

    `ranges` has a row (begin, end, block) for every block, `colour_range` lists them by colour.
    """
    for colour in range(8):
        first = colour_start[colour]
        parallel_for(_scatter_momentum_at, colour_start[colour + 1] - first, (
            first, stencil, offset, stride, shift, unit, velocity, mass, ranges, colour_range, tile_slot, scratch, base, grid))


@part
def _scatter_affine_momentum_at(k, first, stencil, offset, stride, shift, unit, velocity, affine, mass, cell_size, ranges,
                                colour_range, tile_slot, scratch, base, grid):
    r, thread = colour_range[first + k], get_thread_id()
    at = thread * SCRATCH
    scatter_run(stencil, offset, stride, shift, unit, velocity, affine, mass, None, 0, 0, None, cell_size, 0.0,
                ranges[r, 0], ranges[r, 1], 0, scratch, at, base, 64 * thread)
    add_tile(scratch, at, grid, tile_slot, ranges[r, 2])


@kernel(fastmath=False)
def scatter_affine_momentum(stencil, offset, stride, shift, unit, velocity, affine, mass, cell_size, ranges, colour_start,
                            colour_range, tile_slot, scratch, base, grid):
    """Add mass and momentum m (v + C (x_i - x_p)) of every particle to the grid."""
    for colour in range(8):
        first = colour_start[colour]
        parallel_for(_scatter_affine_momentum_at, colour_start[colour + 1] - first, (
            first, stencil, offset, stride, shift, unit, velocity, affine, mass, cell_size, ranges, colour_range, tile_slot,
            scratch, base, grid))


@part
def _scatter_force_at(k, first, stencil, offset, stride, shift, unit, stress, volume, cell_size, ranges, colour_range, tile_slot,
                      scratch, base, grid):
    r, thread = colour_range[first + k], get_thread_id()
    at = thread * SCRATCH
    scatter_run(stencil, offset, stride, shift, unit, None, None, None, stress, stride, 0, volume, cell_size,
                -1.0 / cell_size, ranges[r, 0], ranges[r, 1], 0, scratch, at, base, 64 * thread)
    add_tile(scratch, at, grid, tile_slot, ranges[r, 2])


@kernel(fastmath=False)
def scatter_force(stencil, offset, stride, shift, unit, stress, volume, cell_size, ranges, colour_start, colour_range, tile_slot,
                  scratch, base, grid):
    """Add - V0 tau grad w of every particle to the force grid."""
    for colour in range(8):
        first = colour_start[colour]
        parallel_for(_scatter_force_at, colour_start[colour + 1] - first, (
            first, stencil, offset, stride, shift, unit, stress, volume, cell_size, ranges, colour_range, tile_slot, scratch,
            base, grid))
