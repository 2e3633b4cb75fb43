"""B-spline weights of sixteen particles at a time, from fixed-point positions.

| symbol | meaning |
|---|---|
| o | offset of a particle from the centre of its block, in cells, as an integer of unit 2^-S |
| base | index of the first node of the stencil inside the 8^3 tile of the block, per axis |
| f | position of the particle past the stencil's reference, in cells, in [0, 1) |
| w, dw | weight N and its derivative by the particle position (per cell), method of Stomakhin 2013, Steffen 2008 |

A block of 4^3 cells owns the particles with u - 3/2 in [4b, 4b+4), u the position in cells. Its tile spans nodes 4b .. 4b+7, so
that the quadratic stencil stays inside for a drift of one cell either way, the cubic one for half a cell.
"""

from __future__ import annotations

from mpm_nodes.kernels.jit import inline, kernel
from mpm_nodes.kernels.lane_memory import bit_and, lane_constant, load, shift_left, shift_right, store, to_float
from mpm_nodes.kernels.lane_types import WIDTH
from mpm_nodes.kernels.lanes import broadcast, const, fma

SHIFT32, SHIFT64 = 28, 56
DRIFT_LIMIT = {"quadratic": 3.0, "cubic": 2.5}
"""Largest |o| in cells for which the stencil stays inside the tile."""

# rows of the weight scratch, sixteen values each
XW, YW, XD, YD, FRACTION = 0, 4 * WIDTH, 8 * WIDTH, 12 * WIDTH, 16 * WIDTH
WEIGHT_SCRATCH = 19 * WIDTH


def _nodes(values):
    """Repeat one value a z-node for the four components of a node."""
    return [value for value in values for _ in range(4)]


QZ0, QZ1, QZ2 = (lane_constant(_nodes(row)) for row in ((0.5, 0.5, 0, 0), (-1, 1, 0, 0), (0.5, -1, 0.5, 0)))
QZ_OFFSET = lane_constant(_nodes((-0.5, 0.5, 1.5, 2.5)))
CZ0, CZ1, CZ2, CZ3 = (
    lane_constant(_nodes(row))
    for row in ((1 / 6, 2 / 3, 1 / 6, 0), (-0.5, 0, 0.5, 0), (0.5, -1, 0.5, 0), (-1 / 6, 0.5, -0.5, 1 / 6))
)
CZ_OFFSET = lane_constant(_nodes((-1.0, 0.0, 1.0, 2.0)))


@inline
def quadratic_axis(scratch, weight_row, slope_row, f):
    """Store the three weights and slopes of one axis."""
    half, one = const(f, 0.5), const(f, 1.0)
    g, c = one - f, f - half
    store(scratch, weight_row, half * g * g)
    store(scratch, weight_row + WIDTH, const(f, 0.75) - c * c)
    store(scratch, weight_row + 2 * WIDTH, half * f * f)
    store(scratch, slope_row, -g)
    store(scratch, slope_row + WIDTH, one - f - f)
    store(scratch, slope_row + 2 * WIDTH, f)


@inline
def cubic_axis(scratch, weight_row, slope_row, f):
    """Store the four weights and slopes of one axis."""
    half, one, two, sixth = const(f, 0.5), const(f, 1.0), const(f, 2.0), const(f, 1.0 / 6.0)
    two_thirds, three_halves = const(f, 2.0 / 3.0), const(f, 1.5)
    g = one - f
    store(scratch, weight_row, sixth * g * g * g)
    store(scratch, weight_row + WIDTH, fma(half * f * f, f - two, two_thirds))
    store(scratch, weight_row + 2 * WIDTH, fma(half * g * g, g - two, two_thirds))
    store(scratch, weight_row + 3 * WIDTH, sixth * f * f * f)
    store(scratch, slope_row, -(half * g * g))
    store(scratch, slope_row + WIDTH, f * (three_halves * f - two))
    store(scratch, slope_row + 2 * WIDTH, -(g * (three_halves * g - two)))
    store(scratch, slope_row + 3 * WIDTH, half * f * f)


@inline
def stencil(offset, stride, p, first, shift, inverse_unit, base, base_at):
    """Store the tile index of the stencil's first node of particles p .. p+15, and return their three fractions f.

    `first` is the fixed-point shift that makes the integer part the base index: 3 cells (quadratic), 2.5 (cubic).
    """
    mask = (1 << shift) - 1
    ux, uy, uz = load(offset, p), load(offset, stride + p), load(offset, 2 * stride + p)
    start = broadcast(ux, first)
    ux, uy, uz = ux + start, uy + start, uz + start
    node = shift_left(shift_right(ux, shift), 8) + shift_left(shift_right(uy, shift), 5)
    store(base, base_at, node + shift_left(shift_right(uz, shift), 2))
    fx, fy, fz = to_float(bit_and(ux, mask)), to_float(bit_and(uy, mask)), to_float(bit_and(uz, mask))
    unit = broadcast(fx, inverse_unit)
    return fx * unit, fy * unit, fz * unit


@kernel
def quadratic_weights(offset, stride, p, first, shift, inverse_unit, scratch, at, base, base_at):
    """Store everything that the quadratic transfers need of particles p .. p+15 into the scratch."""
    fx, fy, fz = stencil(offset, stride, p, first, shift, inverse_unit, base, base_at)
    quadratic_axis(scratch, at + XW, at + XD, fx)
    quadratic_axis(scratch, at + YW, at + YD, fy)
    _store_fractions(scratch, at, fx, fy, fz)


@kernel
def cubic_weights(offset, stride, p, first, shift, inverse_unit, scratch, at, base, base_at):
    """Store everything that the cubic transfers need of particles p .. p+15 into the scratch."""
    fx, fy, fz = stencil(offset, stride, p, first, shift, inverse_unit, base, base_at)
    cubic_axis(scratch, at + XW, at + XD, fx)
    cubic_axis(scratch, at + YW, at + YD, fy)
    _store_fractions(scratch, at, fx, fy, fz)


@inline
def _store_fractions(scratch, at, fx, fy, fz):
    store(scratch, at + FRACTION, fx)
    store(scratch, at + FRACTION + WIDTH, fy)
    store(scratch, at + FRACTION + 2 * WIDTH, fz)
