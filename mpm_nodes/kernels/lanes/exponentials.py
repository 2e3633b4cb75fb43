"""Exponential and logarithm in lanes, with scalar twins: no vector math library comes with numba's wheels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mpm_nodes.kernels.compile.jit import inline, overloaded
from mpm_nodes.kernels.lanes.arithmetic import broadcast_lanes, const, fma, maximum, minimum, rint, select
from mpm_nodes.kernels.lanes.memory import bits_to_float, bits_to_int, shift_left, shift_right, to_float, to_int
from mpm_nodes.kernels.lanes.types import INT_OF, LaneType

_LOG2E, _LN2 = 1.4426950408889634, 0.6931471805599453
_LN2_HIGH32, _LN2_LOW32 = 0.693359375, -2.12194440e-4
_LN2_HIGH64, _LN2_LOW64 = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_INVERSE_FACTORIALS = (
    1.0,
    1.0,
    0.5,
    1 / 6,
    1 / 24,
    1 / 120,
    1 / 720,
    1 / 5040,
    1 / 40320,
    1 / 362880,
    1 / 3628800,
    1 / 39916800,
    1 / 479001600,
    1 / 6227020800,
)


def _make_exp(kind: str) -> Callable:
    single = kind == "f32"
    degree, low, high = (7, -87.0, 88.0) if single else (13, -708.0, 709.0)
    ln2_high, ln2_low = (_LN2_HIGH32, _LN2_LOW32) if single else (_LN2_HIGH64, _LN2_LOW64)
    mantissa, bias = (23, 127) if single else (52, 1023)
    coefficients = _INVERSE_FACTORIALS[: degree + 1][::-1]

    def exp_lanes(x):
        x = minimum(const(x, high), maximum(const(x, low), x))  # in this order a NaN passes
        n = rint(x * const(x, _LOG2E))
        r = fma(n, const(x, -ln2_low), fma(n, const(x, -ln2_high), x))
        p = const(x, coefficients[0])
        for k in range(1, degree + 1):
            p = fma(p, r, const(x, coefficients[k]))
        i = to_int(n)
        return p * bits_to_float(shift_left(i + broadcast_lanes(i, bias), mantissa))

    return inline(exp_lanes)


def _make_log(kind: str) -> Callable:
    single = kind == "f32"
    terms = 5 if single else 12
    mantissa, half_root = (23, 0x3F3504F3) if single else (52, 0x3FE6A09E667F3BCD)
    coefficients = tuple(2.0 / (2 * k + 1) for k in range(terms))[::-1]

    def log_lanes(x):
        i = bits_to_int(x)
        e = shift_right(i - broadcast_lanes(i, half_root), mantissa)
        m = bits_to_float(i - shift_left(e, mantissa))
        one = const(x, 1.0)
        s = (m - one) / (m + one)
        z = s * s
        p = const(x, coefficients[0])
        for k in range(1, terms):
            p = fma(p, z, const(x, coefficients[k]))
        # the bits of a NaN are those of a large number here
        return select(x == x, fma(to_float(e), const(x, _LN2), p * s), x)

    return inline(log_lanes)


_EXP = {kind: _make_exp(kind) for kind in INT_OF}
_LOG = {kind: _make_log(kind) for kind in INT_OF}


def exp(x):
    """Return e^x (lanes: argument clamped to the finite range, about 2 ulp)."""
    return np.exp(x)


def log(x):
    """Return the natural logarithm of a positive normal x (lanes: about 2 ulp); a NaN passes."""
    return np.log(x)


@overloaded(exp)
def _overload_exp(x):
    if isinstance(x, LaneType):
        lanes_version = _EXP[x.kind]
        return lambda x: lanes_version(x)
    return lambda x: np.exp(x)


@overloaded(log)
def _overload_log(x):
    if isinstance(x, LaneType):
        lanes_version = _LOG[x.kind]
        return lambda x: lanes_version(x)
    return lambda x: np.log(x)
