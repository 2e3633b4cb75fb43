"""Heat of particles to cells, volume and conductivity to the faces between them, in one pass with one stencil.

| symbol | meaning | unit | source |
|---|---|---|---|
| w, d | weight of the quadratic spline along one axis, distance of the point from the particle in cells | -, - | Steffen 2008 |
| m c, V, K | heat capacity, undeformed volume and conductivity of a particle | J/K, m^3, W/(m K) | |
| T, C | its temperature and the gradient of that | K, K/m | C21 section 4.2 |
| q | its heating by sources | K/s | |

    cells   (sum w m c (T + C . h d), sum w V, sum w m c q, sum w m c)
    faces   (sum w V K, 0, 0, sum w V)

Where all particles of a block conduct alike, sum w V K is K sum w V, and only the latter is summed.

`transfers.scatter` would take one stencil for the cells and one for the faces of each axis, and move four values a point where two
are wanted. Here each value has a tile of its own (`transfers.face_tiles`), and what all have in common is found once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import get_thread_id

from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.lanes.arithmetic import any_lane, both, broadcast, const, fma
from mpm_nodes.kernels.lanes.memory import (
    bare,
    element,
    lane_index,
    load,
    load_by_quarter,
    load_quarter,
    load_splat,
    shuffle_by,
    store,
)
from mpm_nodes.kernels.lanes.records import store_records
from mpm_nodes.kernels.lanes.types import WIDTH
from mpm_nodes.kernels.transfers.face_stencils import (
    QUADRATIC,
    among_centres,
    fraction,
    in_window,
    is_behind,
    splats,
    store_bases,
    store_three,
)
from mpm_nodes.kernels.transfers.face_tiles import FACE_TILE, IN_X, clear_tile, fold_slice
from mpm_nodes.kernels.transfers.fields import bare_or_none
from mpm_nodes.kernels.transfers.places import BlockWork, bare_placement
from mpm_nodes.kernels.transfers.weights import weights

__all__ = ["HEAT_SCRATCH", "ParticleHeat", "rasterize_heat"]

_HEAT, _CAPACITY, _VOLUME, _SOURCE, _FACES, _CONDUCTIONS = (n * FACE_TILE for n in (0, 1, 2, 9, 3, 6))
"""Tiles of the cells, and those of the faces along x, y and z: volume, and volume times conductivity."""
_TILES = 10
_ALONG_Y = _TILES * FACE_TILE
"""Records of the weights along y, and behind them along z: w and w d of centres, w of nodes, four points each."""
_ALONG_Z = _ALONG_Y + WIDTH * WIDTH
_ROWS = _ALONG_Z + WIDTH * WIDTH
"""Rows of sixteen particles: weights along x, times what is given, three points each; and heat, with the slopes along y and z."""
_W, _WD, _OF_CAPACITY, _OF_VOLUME, _OF_SOURCE, _VOLUME_NODES, _CONDUCTION, _CONDUCTION_NODES, _VALUES = (
    3 * WIDTH * n for n in range(9)
)
HEAT_SCRATCH = _ROWS + _VALUES + 3 * WIDTH
"""Values of the scratch of a thread."""


class ParticleHeat(NamedTuple):
    """What particles give, a row each.

    Attributes:
        capacity, volume, conductivity: m c, V and K.
        temperature: T.
    """

    capacity: np.ndarray
    volume: np.ndarray
    conductivity: np.ndarray
    temperature: np.ndarray


# ---------------------------------------------------------------- weights
@inline
def _distances(f):
    """Return how far the three centres lie behind a particle [cells]."""
    half = const(f, 0.5)
    return -(half + f), half - f, (half - f) + const(f, 1.0)


@inline
def _times(a, w):
    return a * w[0], a * w[1], a * w[2]


@inline
def _moments(w, d):
    return w[0] * d[0], w[1] * d[1], w[2] * d[2]


@inline
def _store_along(scratch, at, place, node, centre):
    """Store the records of the weights along y or z."""
    f = fraction(place, centre)
    zero, behind = const(f, 0.0), is_behind(place, node, centre)
    w, n = weights(QUADRATIC, f), weights(QUADRATIC, fraction(place, node))
    cw, cd = in_window(behind, w, zero), in_window(behind, _moments(w, _distances(f)), zero)
    store_records(scratch, at, (*cw, *cd, zero, n[0], n[1], n[2], zero, zero, zero, zero))


@inline
def _store_group(given, gradient, heating, place, p, work):
    """Store what particles p .. p+15 give along x, and their weights along y and z."""
    nodes, centres = among_centres(place, p)
    scratch, at = work.scratch, work.at
    store_bases(place, nodes, centres, work.base, work.base_at)
    f = fraction(place, centres[0])
    w, n = weights(QUADRATIC, f), weights(QUADRATIC, fraction(place, nodes[0]))
    m, v = load(given.capacity, p), load(given.volume, p)
    k = v * load(given.conductivity, p)
    rows = at + _ROWS
    store_three(scratch, rows + _W, w)
    store_three(scratch, rows + _OF_CAPACITY, _times(m, w))
    store_three(scratch, rows + _OF_VOLUME, _times(v, w))
    store_three(scratch, rows + _VOLUME_NODES, _times(v, n))
    store_three(scratch, rows + _CONDUCTION, _times(k, w))
    store_three(scratch, rows + _CONDUCTION_NODES, _times(k, n))
    store(scratch, rows + _VALUES, m * load(given.temperature, p))
    if gradient is not None:
        scale = m * broadcast(m, place.cell_size)
        slope = scale * load(gradient, p)
        store_three(scratch, rows + _WD, _times(slope, _moments(w, _distances(f))))
        store(scratch, rows + _VALUES + WIDTH, scale * load(gradient, place.stride + p))
        store(scratch, rows + _VALUES + 2 * WIDTH, scale * load(gradient, 2 * place.stride + p))
    if heating is not None:
        store_three(scratch, rows + _OF_SOURCE, _times(m * load(heating, p), w))
    _store_along(scratch, at + _ALONG_Y, place, nodes[1], centres[1])
    _store_along(scratch, at + _ALONG_Z, place, nodes[2], centres[2])


# ---------------------------------------------------------------- one block
@inline
def _add(scratch, tile, rows, plane):
    """Add three values times a slice's weights to a tile."""
    a = splats(scratch, rows)
    store(scratch, tile, fma(a[0], plane, load(scratch, tile)))
    tile += 1 << IN_X
    store(scratch, tile, fma(a[1], plane, load(scratch, tile)))
    tile += 1 << IN_X
    store(scratch, tile, fma(a[2], plane, load(scratch, tile)))


@inline
def _add_two(scratch, tile, rows, plane, more, flat):
    """Add three values times a slice's weights, and three more times what else varies along y and z."""
    a, b = splats(scratch, rows), splats(scratch, more)
    store(scratch, tile, fma(b[0], flat, fma(a[0], plane, load(scratch, tile))))
    tile += 1 << IN_X
    store(scratch, tile, fma(b[1], flat, fma(a[1], plane, load(scratch, tile))))
    tile += 1 << IN_X
    store(scratch, tile, fma(b[2], flat, fma(a[2], plane, load(scratch, tile))))


@inline
def _scatter_one(gradient, heating, even, scratch, at, lane, centre, node):
    y, z = at + _ALONG_Y + WIDTH * lane, at + _ALONG_Z + WIDTH * lane
    rows = at + _ROWS + lane
    wy, wz = load_by_quarter(scratch, y), load_quarter(scratch, z)
    plane = wy * wz
    _add(scratch, centre + _CAPACITY, rows + _OF_CAPACITY, plane)
    _add(scratch, centre + _VOLUME, rows + _OF_VOLUME, plane)
    if heating is not None:
        _add(scratch, centre + _SOURCE, rows + _OF_SOURCE, plane)
    heat = load_splat(scratch, rows + _VALUES)
    if gradient is None:
        _add(scratch, centre + _HEAT, rows + _W, plane * heat)
    else:
        along_y, along_z = load_splat(scratch, rows + _VALUES + WIDTH), load_splat(scratch, rows + _VALUES + 2 * WIDTH)
        flat = wz * fma(load_by_quarter(scratch, y + 4), along_y, wy * heat)
        flat = fma(load_quarter(scratch, z + 4), wy * along_z, flat)
        _add_two(scratch, centre + _HEAT, rows + _WD, plane, rows + _W, flat)
    across_y, across_z = load_by_quarter(scratch, y + 8) * wz, wy * load_quarter(scratch, z + 8)
    _add(scratch, node + _FACES, rows + _VOLUME_NODES, plane)
    _add(scratch, centre + _FACES + FACE_TILE, rows + _OF_VOLUME, across_y)
    _add(scratch, centre + _FACES + 2 * FACE_TILE, rows + _OF_VOLUME, across_z)
    if not even:
        _add(scratch, node + _CONDUCTIONS, rows + _CONDUCTION_NODES, plane)
        _add(scratch, centre + _CONDUCTIONS + FACE_TILE, rows + _CONDUCTION, across_y)
        _add(scratch, centre + _CONDUCTIONS + 2 * FACE_TILE, rows + _CONDUCTION, across_z)


# ---------------------------------------------------------------- into the grid
def _line(y):
    """Return what picks four points of two slices: the first in places 0 and 1 of a quarter, the second in 2 and 3."""
    return shuffle_by([place for k in range(4) for place in (4 * y + k, 4 * y + k, WIDTH + 4 * y + k, WIDTH + 4 * y + k)])


_LINE_0, _LINE_1, _LINE_2, _LINE_3 = (_line(y) for y in range(4))
_OUTER = shuffle_by([place for k in range(0, WIDTH, 4) for place in (k, WIDTH, WIDTH, k + 3)])
"""Quarters with their first and last value, and with none between; the second argument is zero."""
_MERGED = shuffle_by([place for k in range(0, WIDTH, 4) for place in (k, k + 3, WIDTH + k, WIDTH + k + 3)])


@inline
def _add_points(grid, g, found, zero):
    if any_lane(found != zero):
        store(grid, g, load(grid, g) + found)


@inline
def _add_faces(scratch, at, even, conductivity, grid, tile_slot, q, zero):
    for corner in range(8):
        block = 256 * tile_slot[q, corner]
        for i in range(4):
            volume = fold_slice(scratch, at, corner, i, zero)
            if any_lane(volume != zero):
                conduction = volume * conductivity
                if not even:
                    conduction = fold_slice(scratch, at + 3 * FACE_TILE, corner, i, zero)
                g = block + 64 * i
                _add_points(grid, g, _OUTER(_LINE_0(conduction, volume), zero), zero)
                _add_points(grid, g + 16, _OUTER(_LINE_1(conduction, volume), zero), zero)
                _add_points(grid, g + 32, _OUTER(_LINE_2(conduction, volume), zero), zero)
                _add_points(grid, g + 48, _OUTER(_LINE_3(conduction, volume), zero), zero)


@inline
def _add_cells(heating, scratch, at, grid, tile_slot, q, zero):
    for corner in range(8):
        block = 256 * tile_slot[q, corner]
        for i in range(4):
            capacity = fold_slice(scratch, at + _CAPACITY, corner, i, zero)
            if any_lane(capacity != zero):
                heat, volume = fold_slice(scratch, at + _HEAT, corner, i, zero), fold_slice(scratch, at + _VOLUME, corner, i, zero)
                source = zero
                if heating is not None:
                    source = fold_slice(scratch, at + _SOURCE, corner, i, zero)
                g = block + 64 * i
                _add_points(grid, g, _MERGED(_LINE_0(heat, volume), _LINE_0(source, capacity)), zero)
                _add_points(grid, g + 16, _MERGED(_LINE_1(heat, volume), _LINE_1(source, capacity)), zero)
                _add_points(grid, g + 32, _MERGED(_LINE_2(heat, volume), _LINE_2(source, capacity)), zero)
                _add_points(grid, g + 48, _MERGED(_LINE_3(heat, volume), _LINE_3(source, capacity)), zero)


@inline
def _is_even(conductivity, begin, end):
    """Return whether all particles conduct as the first does."""
    found = True
    for p in range(begin, end, WIDTH):
        k = load(conductivity, p)
        inside = lane_index(k) < broadcast(k, end - p)
        found = found and not any_lane(both(inside, k != load_splat(conductivity, begin)))
    return found


@part
def _scatter_block(k, first, place, given, gradient, heating, grids, tables):
    r, thread = tables.colour_range[first + k], get_thread_id()
    begin, end, q = tables.runs[r, 0], tables.runs[r, 1], tables.runs[r, 2]
    work = BlockWork(begin, end, 0, bare(tables.scratch), thread * HEAT_SCRATCH, bare(tables.base), 64 * thread)
    scratch, at, base, base_at = work.scratch, work.at, work.base, work.base_at
    where = bare_placement(place)
    zero = const(load(scratch, at), 0.0)
    even = _is_even(given.conductivity, begin, end)
    for tile in range(_TILES - 1):
        if tile < 6 or not even:
            clear_tile(scratch, at + tile * FACE_TILE, zero)
    if heating is not None:
        clear_tile(scratch, at + _SOURCE, zero)
    for p in range(begin, end, WIDTH):
        _store_group(given, gradient, heating, where, p, work)
        for lane in range(min(WIDTH, end - p)):
            centre, node = at + element(base, base_at + lane), at + element(base, base_at + WIDTH + lane)
            _scatter_one(gradient, heating, even, scratch, at, lane, centre, node)
    _add_cells(heating, scratch, at, bare(grids[0]), tables.tile_slot, q, zero)
    conductivity = load_splat(given.conductivity, begin)
    _add_faces(scratch, at + _FACES, even, conductivity, bare(grids[1]), tables.tile_slot, q, zero)
    _add_faces(scratch, at + _FACES + FACE_TILE, even, conductivity, bare(grids[2]), tables.tile_slot, q, zero)
    _add_faces(scratch, at + _FACES + 2 * FACE_TILE, even, conductivity, bare(grids[3]), tables.tile_slot, q, zero)


@compiled(fastmath=False)
def rasterize_heat(place, given, gradient, heating, grids, tables):
    """Add what every particle gives to the cells and to the faces of each axis.

    Args:
        place: `Placement` of the particles.
        given: `ParticleHeat`.
        gradient: Three rows of C, or None where it has no part.
        heating: q, or None where nothing makes heat.
        grids: Arrays of four values a point: of the cells, and of the faces along x, y and z.
        tables: `ScatterTables` of the blocks; their scratch has `HEAT_SCRATCH` values for each thread.
    """
    rows = ParticleHeat(bare(given.capacity), bare(given.volume), bare(given.conductivity), bare(given.temperature))
    slopes, made = bare_or_none(gradient), bare_or_none(heating)
    for colour in range(8):
        first = tables.colour_start[colour]
        parallel_for(_scatter_block, tables.colour_shares[colour], (first, place, rows, slopes, made, grids, tables))
