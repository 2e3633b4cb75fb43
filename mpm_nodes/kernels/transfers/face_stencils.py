"""Stencils of the quadratic spline on faces and in cells: those of all of them are products of two an axis.

| symbol | meaning |
|---|---|
| centres, nodes | points in the middle of cells along an axis, and on node planes |
| f, g | position past the reference of the stencil of centres, and of that of nodes, in cells, in [0, 1) |
| window | four points along y and z, from the one before the stencil of nodes on: that of centres begins there or one behind |

Faces lie on nodes along their own axis, on centres along the others, and cells on centres along all.
"""

from __future__ import annotations

from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.arithmetic import broadcast, const, select
from mpm_nodes.kernels.lanes.memory import bit_and, load, load_splat, shift_left, shift_right, store, to_float
from mpm_nodes.kernels.lanes.types import WIDTH
from mpm_nodes.kernels.transfers.face_tiles import IN_X, IN_Y, IN_Z

__all__ = ["QUADRATIC", "among_centres", "fraction", "in_window", "is_behind", "splats", "store_bases", "store_three"]

QUADRATIC = (0, 0, 0)


@inline
def among_centres(place, p):
    """Return particles p .. p+15 among nodes, x, y and z, and among centres, as fixed-point numbers from the tile's first."""
    offset, stride, shift = place.offset, place.stride, place.shift
    x, y, z = load(offset, p), load(offset, stride + p), load(offset, 2 * stride + p)
    first, half = 3 << shift, 1 << (shift - 1)
    x, y, z = x + broadcast(x, first), y + broadcast(y, first), z + broadcast(z, first)
    return (x, y, z), (x - broadcast(x, half), y - broadcast(y, half), z - broadcast(z, half))


@inline
def store_bases(place, nodes, centres, base, base_at):
    """Store where stencils begin in a tile: in their windows along y and z; along x those of centres, and behind them of nodes."""
    shift = place.shift
    plane = shift_left(shift_right(nodes[1], shift), IN_Y) + shift_left(shift_right(nodes[2], shift), IN_Z)
    store(base, base_at, plane + shift_left(shift_right(centres[0], shift), IN_X))
    store(base, base_at + WIDTH, plane + shift_left(shift_right(nodes[0], shift), IN_X))


@inline
def fraction(place, u):
    """Return f of fixed-point positions."""
    f = to_float(bit_and(u, (1 << place.shift) - 1))
    return f * broadcast(f, place.inverse_unit)


@inline
def is_behind(place, node, centre):
    """Return where the stencil of centres begins with that of nodes, a point behind the window's first."""
    found = to_float(shift_right(node, place.shift) - shift_right(centre, place.shift))
    return found < const(found, 0.5)


@inline
def in_window(behind, w, zero):
    """Return the weights of three centres among the four of the window."""
    return select(behind, zero, w[0]), select(behind, w[0], w[1]), select(behind, w[1], w[2]), select(behind, w[2], zero)


@inline
def store_three(scratch, at, values):
    """Store three rows of sixteen particles."""
    store(scratch, at, values[0])
    store(scratch, at + WIDTH, values[1])
    store(scratch, at + 2 * WIDTH, values[2])


@inline
def splats(scratch, at):
    """Return the values of three rows for one particle, each in all lanes."""
    return load_splat(scratch, at), load_splat(scratch, at + WIDTH), load_splat(scratch, at + 2 * WIDTH)
