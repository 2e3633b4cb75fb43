"""Functions near 1 without the rounding of 1: of numbers 1 + x and matrices I + E whose x and E alone are known.

A strain of 1e-6 is six units in the last place of single precision beside 1, but has all its digits by itself.
"""

from __future__ import annotations

from mpm_nodes.kernels.algebra import mat3
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.arithmetic import absolute, any_lane, const, maximum, select
from mpm_nodes.kernels.lanes.exponentials import exp, log


@inline
def exp_less_one(x):
    """Return e^x - 1: nine terms below 0.1."""
    one = const(x, 1.0)
    series = one + x * const(x, 1.0 / 9.0)
    series = one + x * series * const(x, 1.0 / 8.0)
    series = one + x * series * const(x, 1.0 / 7.0)
    series = one + x * series * const(x, 1.0 / 6.0)
    series = one + x * series * const(x, 1.0 / 5.0)
    series = one + x * series * const(x, 1.0 / 4.0)
    series = one + x * series * const(x, 1.0 / 3.0)
    result = x * (one + x * series * const(x, 1.0 / 2.0))
    far = absolute(x) > const(x, 0.1)
    if any_lane(far):
        result = select(far, exp(x) - one, result)
    return result


@inline
def log_of_one_plus(x):
    """Return ln(1 + x), 1 + x taken as 1e-30 where it is smaller: seven terms of 2 artanh(x / (2 + x)) below 0.1."""
    one, two = const(x, 1.0), const(x, 2.0)
    far = absolute(x) > const(x, 0.1)
    near = select(far, const(x, 0.0), x)
    s = near / (two + near)
    z = s * s
    series = const(x, 1.0 / 13.0)
    series = const(x, 1.0 / 11.0) + z * series
    series = const(x, 1.0 / 9.0) + z * series
    series = const(x, 1.0 / 7.0) + z * series
    series = const(x, 1.0 / 5.0) + z * series
    series = const(x, 1.0 / 3.0) + z * series
    result = two * s * (one + z * series)
    if any_lane(far):
        result = select(far, log(maximum(const(x, 1e-30), one + x)), result)
    return result


@inline
def cube_root_of_one_plus(x):
    """Return the cube root of 1 + x, which is taken as 1e-9 where it is smaller; a NaN passes."""
    one, third = const(x, 1.0), const(x, 1.0 / 3.0)
    y = maximum(const(x, 1e-9), one + x)  # in this order a NaN passes
    c = one + x * third
    c = c - (c - y / (c * c)) * third
    far = absolute(x) > const(x, 1e-3)
    if any_lane(far):
        c = select(far, mat3.cube_root(y), c)
    return c


@inline
def unimodular(E):
    """Return det(I + E)^(-1/3) (I + E) - I."""
    d = mat3.det_excess(E)
    c = cube_root_of_one_plus(d)
    one = const(d, 1.0)
    shrink = one / c
    return mat3.add_diagonal(mat3.scale(E, shrink), (const(d, 0.0) - d) * shrink / (c * c + c + one))
