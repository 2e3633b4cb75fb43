"""Gradients of velocities on faces to particles, and forces back: one stencil for the faces of all three axes.

| symbol | meaning | unit |
|---|---|---|
| v_a | velocity along axis a, on the faces of that axis | m/s |
| L | its gradient at a particle, sum v_a (grad w)^T in line a | 1/s |
| T, V0 | what pushes faces, line a those of axis a; undeformed volume | Pa, m^3 |
| f_a | sum V0 T_a . grad w | N |
| w, s | weights of the quadratic spline and their slopes along one axis, method of Stomakhin 2013, Steffen 2008 | |

All weights are products of those of two stencils an axis (`face_stencils`), taken once for a particle. `transfers.gather` and
`transfers.scatter` move three values a point with the weights of one stencil; here they would take three for one value each.

A slice of a stencil along y and z is one sixteen-lane value (`face_tiles`): three of them are all that a face's velocity takes.
"""

from __future__ import annotations

from mpm_nodes.kernels.compile.jit import inline, part
from mpm_nodes.kernels.lanes.arithmetic import broadcast, const, fma
from mpm_nodes.kernels.lanes.memory import element, load, load_by_quarter, load_quarter, store, store_first_each
from mpm_nodes.kernels.lanes.records import load_records, quarter_sums, store_records
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
from mpm_nodes.kernels.transfers.face_tiles import (
    FACE_TILE,
    FACE_TILES,
    IN_X,
    add_face_tiles,
    clear_face_tiles,
    load_face_tiles,
)
from mpm_nodes.kernels.transfers.tiles import FACE_SCRATCH
from mpm_nodes.kernels.transfers.weights import slopes, weights

__all__ = ["gather_gradients", "scatter_forces"]

_ROWS = FACE_TILES
"""Where rows of sixteen particles begin in the scratch of a thread: weights along x, of centres and of nodes."""
_CENTRE, _NODE, _SLOPE = 0, 6 * WIDTH, 3 * WIDTH
_ALONG_Y = _ROWS + 12 * WIDTH
"""Records of the weights along y, and behind them along z: w and s of centres, w and s of nodes, four nodes each."""
_ALONG_Z = _ALONG_Y + WIDTH * WIDTH
_RECORDS = _ALONG_Z + WIDTH * WIDTH
"""Three records of sums, or the nine rows of a push."""
assert _RECORDS + 3 * WIDTH * WIDTH <= FACE_SCRATCH


# ---------------------------------------------------------------- weights
@inline
def _store_along(scratch, at, place, node, centre):
    """Store the records of the weights along y or z."""
    f, g = fraction(place, centre), fraction(place, node)
    zero = const(f, 0.0)
    behind = is_behind(place, node, centre)
    w, s = weights(QUADRATIC, g), slopes(QUADRATIC, g)
    cw, cs = in_window(behind, weights(QUADRATIC, f), zero), in_window(behind, slopes(QUADRATIC, f), zero)
    store_records(scratch, at, (*cw, *cs, zero, w[0], w[1], w[2], zero, s[0], s[1], s[2]))


@inline
def _store_across(scratch, at, f):
    store_three(scratch, at, weights(QUADRATIC, f))
    store_three(scratch, at + _SLOPE, slopes(QUADRATIC, f))


@inline
def _store_stencils(place, p, scratch, at, base, base_at):
    """Store weights of particles p .. p+15, and the tile indices where their stencils begin."""
    nodes, centres = among_centres(place, p)
    store_bases(place, nodes, centres, base, base_at)
    _store_across(scratch, at + _ROWS + _CENTRE, fraction(place, centres[0]))
    _store_across(scratch, at + _ROWS + _NODE, fraction(place, nodes[0]))
    _store_along(scratch, at + _ALONG_Y, place, nodes[1], centres[1])
    _store_along(scratch, at + _ALONG_Z, place, nodes[2], centres[2])


# ---------------------------------------------------------------- gradients
@inline
def _sum3(w, a):
    return fma(w[2], a[2], fma(w[1], a[1], w[0] * a[0]))


@inline
def _slopes_of(scratch, tile, x, y, sy, z, sz):
    """Return what adds up to the slopes of one value along x, y and z; `x` is where the weights along x begin."""
    a = load(scratch, tile), load(scratch, tile + (1 << IN_X)), load(scratch, tile + (2 << IN_X))
    v = _sum3(splats(scratch, x), a)
    return z * (y * _sum3(splats(scratch, x + _SLOPE), a)), z * (sy * v), sz * (y * v)


@inline
def _fourth_sums(u, scale):
    return (
        scale * ((u[0] + u[1]) + (u[2] + u[3])),
        scale * ((u[4] + u[5]) + (u[6] + u[7])),
        scale * ((u[8] + u[9]) + (u[10] + u[11])),
        scale * ((u[12] + u[13]) + (u[14] + u[15])),
    )


@part
def gather_gradients(place, faces, size, gradient, work, tile_slot, q):
    """Write the gradients of the velocities on faces of the particles of one block.

    Args:
        place: `Placement` of the particles, with data instead of arrays.
        faces, size: Velocities of all faces, as in `load_face_tiles`.
        gradient: `Slopes` with all rows of an attribute.
        work: The `BlockWork`; its scratch has `FACE_SCRATCH` values.
        tile_slot, q: Grid blocks of the tiles, and the block.
    """
    scratch, at, base, base_at, end = work.scratch, work.at, work.base, work.base_at, work.end
    load_face_tiles(scratch, at, faces, size, tile_slot, q)
    scale = broadcast(load(scratch, at), 1.0 / place.cell_size)
    for p in range(work.begin, end, WIDTH):
        count = min(WIDTH, end - p)
        _store_stencils(place, p, scratch, at, base, base_at)
        for lane in range(count):
            x, y, z = at + _ROWS + lane, at + _ALONG_Y + WIDTH * lane, at + _ALONG_Z + WIDTH * lane
            wy, sy = load_by_quarter(scratch, y), load_by_quarter(scratch, y + 4)
            wz, sz = load_quarter(scratch, z), load_quarter(scratch, z + 4)
            centre, node = at + element(base, base_at + lane), at + element(base, base_at + WIDTH + lane)
            xx, xy, xz = _slopes_of(scratch, node, x + _NODE, wy, sy, wz, sz)
            ny, nsy = load_by_quarter(scratch, y + 8), load_by_quarter(scratch, y + 12)
            yx, yy, yz = _slopes_of(scratch, centre + FACE_TILE, x, ny, nsy, wz, sz)
            nz, nsz = load_quarter(scratch, z + 8), load_quarter(scratch, z + 12)
            zx, zy, zz = _slopes_of(scratch, centre + 2 * FACE_TILE, x, wy, sy, nz, nsz)
            r = at + _RECORDS + WIDTH * lane
            store(scratch, r, quarter_sums(xx, xy, xz, yx))
            store(scratch, r + WIDTH * WIDTH, quarter_sums(yy, yz, zx, zy))
            store(scratch, r + 2 * WIDTH * WIDTH, quarter_sums(zz, zz, zz, zz))
        first = _fourth_sums(load_records(scratch, at + _RECORDS), scale)
        second = _fourth_sums(load_records(scratch, at + _RECORDS + WIDTH * WIDTH), scale)
        third = _fourth_sums(load_records(scratch, at + _RECORDS + 2 * WIDTH * WIDTH), scale)
        store_first_each(gradient.rows.data, gradient.shift + p, gradient.stride, (*first, *second, third[0]), count)


# ---------------------------------------------------------------- forces
@inline
def _push(scratch, tile, x, y, sy, z, sz, u):
    """Add to one tile what a particle gives: u_x s w w + u_y w s w + u_z w w s; `u` is where its three values begin."""
    ux, uy, uz = splats(scratch, u)
    steep = (y * ux) * z
    flat = fma(y * uz, sz, (sy * uy) * z)
    w, s = splats(scratch, x), splats(scratch, x + _SLOPE)
    store(scratch, tile, fma(w[0], flat, fma(s[0], steep, load(scratch, tile))))
    tile += 1 << IN_X
    store(scratch, tile, fma(w[1], flat, fma(s[1], steep, load(scratch, tile))))
    tile += 1 << IN_X
    store(scratch, tile, fma(w[2], flat, fma(s[2], steep, load(scratch, tile))))


@part
def scatter_forces(place, faces, size, stress, work, tile_slot, q):
    """Add the forces that the particles of one block give to the faces of all axes.

    Args:
        place: `Placement` of the particles, with data instead of arrays.
        faces, size: Forces on all faces, as in `load_face_tiles`.
        stress: `Slopes` with all rows of V0 T.
        work: The `BlockWork`; its scratch has `FACE_SCRATCH` values.
        tile_slot, q: Grid blocks of the tiles, and the block.
    """
    scratch, at, base, base_at, end = work.scratch, work.at, work.base, work.base_at, work.end
    clear_face_tiles(scratch, at)
    scale = broadcast(load(scratch, at), 1.0 / place.cell_size)
    for p in range(work.begin, end, WIDTH):
        _store_stencils(place, p, scratch, at, base, base_at)
        for row in range(9):
            value = load(stress.rows.data, row * stress.stride + stress.shift + p)
            store(scratch, at + _RECORDS + row * WIDTH, scale * value)
        for lane in range(min(WIDTH, end - p)):
            x, y, z = at + _ROWS + lane, at + _ALONG_Y + WIDTH * lane, at + _ALONG_Z + WIDTH * lane
            u = at + _RECORDS + lane
            wy, sy = load_by_quarter(scratch, y), load_by_quarter(scratch, y + 4)
            wz, sz = load_quarter(scratch, z), load_quarter(scratch, z + 4)
            centre, node = at + element(base, base_at + lane), at + element(base, base_at + WIDTH + lane)
            _push(scratch, node, x + _NODE, wy, sy, wz, sz, u)
            ny, nsy = load_by_quarter(scratch, y + 8), load_by_quarter(scratch, y + 12)
            _push(scratch, centre + FACE_TILE, x, ny, nsy, wz, sz, u + 3 * WIDTH)
            nz, nsz = load_quarter(scratch, z + 8), load_quarter(scratch, z + 12)
            _push(scratch, centre + 2 * FACE_TILE, x, wy, sy, nz, nsz, u + 6 * WIDTH)
    add_face_tiles(scratch, at, faces, size, tile_slot, q)
