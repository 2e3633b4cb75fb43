"""B-spline weights of sixteen particles at a time, from fixed-point positions.

| symbol | meaning |
|---|---|
| o | offset of a particle from the centre of its block, in cells, as an integer of unit 2^-S |
| base | index of the first node of the stencil inside the 8^3 tile of the block, per axis |
| f, g | position of the particle past the stencil's reference, in cells, in [0, 1), and 1 - f |
| w_i, s_i | weight N and its derivative by the particle position (per cell), method of Stomakhin 2013, Steffen 2008 |
| d_i | distance of node i from the particle, in cells |
| D | sum w_i d_i^2: 1/4 quadratic, 1/3 cubic (Jiang 2015) |
| t | highest difference over the stencil: (1, -2, 1) or (-1, 3, -3, 1) |

A stencil is a tuple of as many zeros as it has nodes along an axis: its type picks the code, so that one source serves both.

The affine moment of a spline is its slope plus a multiple of the highest difference,

    w_i d_i / D = s_i + k t_i,    k = (f - g) f g (quadratic),  -f^2 g^2 / 2 (cubic)

and weights and slopes are polynomials in f whose coefficients are fixed differences over the stencil:

    quadratic  w = a + f (b + f/2 t),            s = b + f t;            a = (n0 + n1)/2, b = n1 - n0
    cubic      w = a + f (b + f/2 (c + f/3 t)),  s = b + f (c + f/2 t);  a = (n0 + 4 n1 + n2)/6, b = (n2 - n0)/2,
                                                                         c = n0 - 2 n1 + n2

A gather takes the differences once per cell and then needs a third of the arithmetic per particle. A scatter does not: sums of
differences would leave rounding noise on nodes that hardly any particle touches, whose mass must keep its relative precision.

A block of 4^3 cells owns the particles with u - 3/2 in [4b, 4b+4), u the position in cells. Its tile spans nodes 4b .. 4b+7, so
that the quadratic stencil stays inside for a drift of one cell either way, the cubic one for half a cell. Points shifted by half a
cell along an axis lie at (i + 1/2) h: their stencils begin up to a node earlier in the same tile, and bear half a cell less of
drift towards low coordinates.
"""

from __future__ import annotations

import inspect

from mpm_nodes.kernels.compile.jit import inline, overloaded
from mpm_nodes.kernels.lanes.arithmetic import broadcast, const, fma
from mpm_nodes.kernels.lanes.memory import bit_and, lane_constant, load, load_splat, shift_left, shift_right, store, to_float
from mpm_nodes.kernels.lanes.types import WIDTH

SHIFT32, SHIFT64 = 28, 56
DRIFT_LIMIT = {"quadratic": 3.0, "cubic": 2.5}
"""Largest |o| in cells for which the stencil stays inside the tile."""


def reach(kernel: str, half: tuple[int, int, int]) -> float:
    """Return the largest |o| in cells for which stencils of points shifted by `half` half cells stay inside the tile.

    A sort leaves |o| <= 2, so cubic stencils on shifted points allow no drift at all (an offset below -2 leaves the tile).
    """
    return DRIFT_LIMIT[kernel] - 0.5 * max(half)


STENCIL = {"quadratic": (0, 0, 0), "cubic": (0, 0, 0, 0)}
"""The stencils by the name of their B-spline."""
INERTIA = {"quadratic": 0.25, "cubic": 1.0 / 3.0}
"""D / h^2 of the B-splines."""

# rows of the weight scratch, sixteen values each: weights and slopes for the scatter
XW, YW, XS, YS = 0, 4 * WIDTH, 8 * WIDTH, 12 * WIDTH
# f, f/2, f/3 of x, y and z; then, for the gather, k of x, y and z
FRACTION = 16 * WIDTH
EXCESS = FRACTION + 9 * WIDTH
WEIGHT_SCRATCH = EXCESS + 3 * WIDTH


def _nodes(values):
    """Repeat one value a z-node for the four components of a node."""
    return [value for value in values for _ in range(4)]


_QUADRATIC_A, _QUADRATIC_B, _QUADRATIC_TOP = (
    lane_constant(_nodes(row)) for row in ((0.5, 0.5, 0, 0), (-1, 1, 0, 0), (1, -2, 1, 0))
)
_CUBIC_A, _CUBIC_B, _CUBIC_C, _CUBIC_TOP = (
    lane_constant(_nodes(row)) for row in ((1 / 6, 2 / 3, 1 / 6, 0), (-0.5, 0, 0.5, 0), (1, -2, 1, 0), (-1, 3, -3, 1))
)


def by_width(three, four):
    """Return a kernel function that is `three` or `four`: by the number of entries of its first argument, a tuple."""

    def choose(*arguments):
        return (three if len(arguments[0]) == 3 else four)(*arguments)

    def typed(*arguments):
        return three if arguments[0].count == 3 else four

    choose.__signature__ = typed.__signature__ = inspect.signature(three)
    overloaded(choose)(typed)
    return choose


# ---------------------------------------------------------------- weights of the scatter, per axis
@inline
def _quadratic_weights(stencil, f):
    half, g = const(f, 0.5), const(f, 1.0) - f
    c = f - half
    return (half * g * g, const(f, 0.75) - c * c, half * f * f)


@inline
def _cubic_weights(stencil, f):
    half, two, sixth, two_thirds = const(f, 0.5), const(f, 2.0), const(f, 1.0 / 6.0), const(f, 2.0 / 3.0)
    g = const(f, 1.0) - f
    return (sixth * g * g * g, fma(half * f * f, f - two, two_thirds), fma(half * g * g, g - two, two_thirds), sixth * f * f * f)


@inline
def _quadratic_slopes(stencil, f):
    g = const(f, 1.0) - f
    return (-g, g - f, f)


@inline
def _cubic_slopes(stencil, f):
    half, two, three_halves = const(f, 0.5), const(f, 2.0), const(f, 1.5)
    g = const(f, 1.0) - f
    return (-(half * g * g), f * (three_halves * f - two), -(g * (three_halves * g - two)), half * f * f)


@inline
def _quadratic_excess(stencil, f):
    g = const(f, 1.0) - f
    return (f - g) * f * g


@inline
def _cubic_excess(stencil, f):
    fg = (const(f, 1.0) - f) * f
    return const(f, -0.5) * fg * fg


weights = by_width(_quadratic_weights, _cubic_weights)
slopes = by_width(_quadratic_slopes, _cubic_slopes)
excess = by_width(_quadratic_excess, _cubic_excess)


@inline
def _store3(values, scratch, at):
    store(scratch, at, values[0])
    store(scratch, at + WIDTH, values[1])
    store(scratch, at + 2 * WIDTH, values[2])


@inline
def _store4(values, scratch, at):
    _store3(values, scratch, at)
    store(scratch, at + 3 * WIDTH, values[3])


store_rows = by_width(_store3, _store4)


@inline
def _splat3(stencil, scratch, at):
    return load_splat(scratch, at), load_splat(scratch, at + WIDTH), load_splat(scratch, at + 2 * WIDTH)


@inline
def _splat4(stencil, scratch, at):
    return (
        load_splat(scratch, at),
        load_splat(scratch, at + WIDTH),
        load_splat(scratch, at + 2 * WIDTH),
        load_splat(scratch, at + 3 * WIDTH),
    )


splat_rows = by_width(_splat3, _splat4)
"""Read rows that `store_rows` wrote, of the one particle whose lane `at` includes, each in all lanes."""


# ---------------------------------------------------------------- fractions
@inline
def _first_quadratic(stencil, shift):
    return 3 << shift


@inline
def _first_cubic(stencil, shift):
    return 5 << (shift - 1)


first_node = by_width(_first_quadratic, _first_cubic)
"""What makes the integer part of an offset the base index: three cells, or two and a half."""


@inline
def fractions(stencil, place, p, base, base_at):
    """Store the tile index of the stencil's first node of particles p .. p+15, and return their three fractions f."""
    offset, stride, shift, half = place.offset, place.stride, place.shift, place.half
    mask, start = (1 << shift) - 1, first_node(stencil, shift)
    ux, uy, uz = load(offset, p), load(offset, stride + p), load(offset, 2 * stride + p)
    ux = ux + broadcast(ux, start - (half[0] << (shift - 1)))
    uy = uy + broadcast(uy, start - (half[1] << (shift - 1)))
    uz = uz + broadcast(uz, start - (half[2] << (shift - 1)))
    node = shift_left(shift_right(ux, shift), 8) + shift_left(shift_right(uy, shift), 5)
    store(base, base_at, node + shift_left(shift_right(uz, shift), 2))
    fx, fy, fz = to_float(bit_and(ux, mask)), to_float(bit_and(uy, mask)), to_float(bit_and(uz, mask))
    unit = broadcast(fx, place.inverse_unit)
    return fx * unit, fy * unit, fz * unit


@inline
def store_fraction(scratch, at, f):
    """Store f, f/2 and f/3 of one axis."""
    store(scratch, at, f)
    store(scratch, at + WIDTH, const(f, 0.5) * f)
    store(scratch, at + 2 * WIDTH, const(f, 1.0 / 3.0) * f)


# ---------------------------------------------------------------- lanes of a z-row: four nodes of four components
@inline
def _z_quadratic(stencil, f):
    return (
        fma(f[0], fma(f[1], _QUADRATIC_TOP(f[0]), _QUADRATIC_B(f[0])), _QUADRATIC_A(f[0])),
        fma(f[0], _QUADRATIC_TOP(f[0]), _QUADRATIC_B(f[0])),
        _QUADRATIC_TOP(f[0]),
    )


@inline
def _z_cubic(stencil, f):
    a, b, c, t = _CUBIC_A(f[0]), _CUBIC_B(f[0]), _CUBIC_C(f[0]), _CUBIC_TOP(f[0])
    return fma(f[0], fma(f[1], fma(f[2], t, c), b), a), fma(f[0], fma(f[1], t, c), b), t


z_weights = by_width(_z_quadratic, _z_cubic)
"""Return weight, slope and highest difference of the nodes of a z-row, for the fraction (f, f/2, f/3) in all lanes."""


# ---------------------------------------------------------------- differences of the gather
@inline
def _quadratic_differences(n):
    half = const(n[0], 0.5)
    b = n[1] - n[0]
    return half * (n[0] + n[1]), b, (n[2] - n[1]) - b


@inline
def _cubic_differences(n):
    half, sixth, two_thirds, three = const(n[0], 0.5), const(n[0], 1.0 / 6.0), const(n[0], 2.0 / 3.0), const(n[0], 3.0)
    return (
        fma(sixth, n[0] + n[2], two_thirds * n[1]),
        half * (n[2] - n[0]),
        (n[0] - n[1]) + (n[2] - n[1]),
        fma(three, n[1] - n[2], n[3] - n[0]),
    )


@inline
def _quadratic_value(d, f):
    return fma(f[0], fma(f[1], d[2], d[1]), d[0])


@inline
def _cubic_value(d, f):
    return fma(f[0], fma(f[1], fma(f[2], d[3], d[2]), d[1]), d[0])


@inline
def _quadratic_slope(d, f):
    return fma(f[0], d[2], d[1])


@inline
def _cubic_slope(d, f):
    return fma(f[0], fma(f[1], d[3], d[2]), d[1])


differences = by_width(_quadratic_differences, _cubic_differences)
"""Return the polynomial's coefficients of one line of nodes."""
value_at = by_width(_quadratic_value, _cubic_value)
"""Return sum w_i n_i from the differences of a line and the fraction (f, f/2, f/3)."""
slope_at = by_width(_quadratic_slope, _cubic_slope)
"""Return sum s_i n_i."""
