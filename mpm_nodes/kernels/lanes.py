"""Explicit SIMD for numba: sixteen-lane values with scalar twins, so that one source serves lanes, scalars, NumPy and CUDA.

A `Lanes` value is one LLVM vector `<16 x T>`; LLVM splits it into what the CPU has (one zmm, two ymm, four xmm). The public
functions below are ordinary Python functions that work on Python floats and NumPy arrays; numba sees their overloads for
scalars and for lanes. Rules for code shared between them: no bare literals (`const(x, 0.5)`), no branches on lane values
(`select`), fixed iteration counts.

| function | lanes | scalar twin |
|---|---|---|
| `const broadcast` | literal / run-time scalar in the type of `x` | conversion |
| `fma sqrt absolute minimum maximum copysign rint` | elementwise | same |
| `select both either negate any_lane all_lanes` | masks | bool |
| `hmax hsum` | reduce sixteen lanes | identity |

`lane_memory` moves lanes to and from arrays, `exponentials` has exp and log.

Floating-point instructions carry `contract nsz` only: a NaN stays a NaN, so that divergence can be seen.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.extending import intrinsic, overload, register_jitable

from mpm_nodes.kernels.lane_types import ELEMENT, FLAGS, MASK, NUMBA_TYPE, Lanes, call, splat, suffix, vector


# ---------------------------------------------------------------- arithmetic and comparison
def _binary(float_op: str, int_op: str | None) -> Callable:
    @intrinsic
    def operation(context, a, b):
        if not (isinstance(a, Lanes) and a == b) or (int_op is None and not a.is_float):
            raise TypingError(f"lanes of one numeric kind needed, got {a} and {b}")

        def generate(context, builder, signature, args):
            if signature.return_type.is_float:
                return getattr(builder, float_op)(*args, flags=FLAGS)
            return getattr(builder, int_op)(*args)

        return a(a, b), generate

    return operation


def _comparison(symbol: str) -> Callable:
    @intrinsic
    def operation(context, a, b):
        if not (isinstance(a, Lanes) and a == b):
            raise TypingError(f"lanes of one kind needed, got {a} and {b}")

        def generate(context, builder, signature, args):
            if a.is_float:
                return builder.fcmp_ordered(symbol, *args)
            return builder.icmp_signed(symbol, *args)

        return MASK(a, b), generate

    return operation


def _overload_operator(python_operator: Callable, operation: Callable) -> None:
    @overload(python_operator)
    def implement(a, b):
        if isinstance(a, Lanes) and isinstance(b, Lanes):
            return lambda a, b: operation(a, b)
        return None


for _operator, _operation in (
    (operator.add, _binary("fadd", "add")),
    (operator.sub, _binary("fsub", "sub")),
    (operator.mul, _binary("fmul", "mul")),
    (operator.truediv, _binary("fdiv", None)),
    *((getattr(operator, name), _comparison(symbol))
      for name, symbol in (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="), ("eq", "=="), ("ne", "!="))),
):
    _overload_operator(_operator, _operation)


@intrinsic
def _negative(context, a):
    if not (isinstance(a, Lanes) and a.is_float):
        raise TypingError(f"float lanes needed, got {a}")
    return a(a), lambda context, builder, signature, args: builder.fneg(args[0], flags=FLAGS)


@overload(operator.neg)
def _overload_neg(a):
    if isinstance(a, Lanes):
        return lambda a: _negative(a)
    return None


# ---------------------------------------------------------------- constants
@intrinsic
def broadcast_lanes(context, like, scalar):
    """Return a scalar in all lanes of the type of `like` (integers too)."""
    if not (isinstance(like, Lanes) and isinstance(scalar, types.Number | types.IntegerLiteral)):
        raise TypingError(f"lanes and a scalar needed, got {like} and {scalar}")
    element = NUMBA_TYPE[like.kind]

    def generate(context, builder, signature, args):
        return splat(builder, context.cast(builder, args[1], signature.args[1], element), like.kind)

    return like(like, scalar), generate


def broadcast(x, scalar):
    """Return `scalar` in the type of `x` (lanes, scalar or array)."""
    return np.asarray(x).dtype.type(scalar) if isinstance(x, np.ndarray | np.generic) else type(x)(scalar)


def const(x, value):
    """Return the literal `value` in the type of `x`; bare literals do not type on lanes and make float64 on CUDA."""
    return np.asarray(x).dtype.type(value) if isinstance(x, np.ndarray | np.generic) else type(x)(value)


def _overload_constant(x, value):
    if isinstance(x, Lanes):
        return lambda x, value: broadcast_lanes(x, value)
    if isinstance(x, types.Float):
        convert = np.float32 if x == types.float32 else np.float64
        return lambda x, value: convert(value)
    return None


@overload(broadcast)
def _overload_broadcast(x, scalar):
    if isinstance(x, Lanes):
        return lambda x, scalar: broadcast_lanes(x, scalar)
    if isinstance(x, types.Float):
        convert = np.float32 if x == types.float32 else np.float64
        return lambda x, scalar: convert(scalar)
    return None


@overload(const)
def _overload_const(x, value):
    return _overload_constant(x, value)


# ---------------------------------------------------------------- elementwise functions
def _unary_intrinsic(llvm_name: str) -> Callable:
    @intrinsic
    def operation(context, a):
        if not (isinstance(a, Lanes) and a.is_float):
            raise TypingError(f"float lanes needed, got {a}")
        name = f"llvm.{llvm_name}.{suffix(a.kind)}"
        return a(a), lambda context, builder, signature, args: call(builder, name, vector(a.kind), args)

    return operation


_sqrt_lanes, _absolute_lanes, _rint_lanes = (_unary_intrinsic(name) for name in ("sqrt", "fabs", "rint"))


@intrinsic
def _fma_lanes(context, a, b, c):
    if not (isinstance(a, Lanes) and a.is_float and a == b == c):
        raise TypingError(f"float lanes of one kind needed, got {a}, {b}, {c}")
    # fmuladd, never fma: without FMA hardware `llvm.fma` becomes sixteen calls into libm
    name = f"llvm.fmuladd.{suffix(a.kind)}"
    return a(a, b, c), lambda context, builder, signature, args: call(builder, name, vector(a.kind), args)


@intrinsic
def _copysign_lanes(context, a, b):
    name = f"llvm.copysign.{suffix(a.kind)}"
    return a(a, b), lambda context, builder, signature, args: call(builder, name, vector(a.kind), args)


@intrinsic
def _select_lanes(context, mask, a, b):
    if not (mask == MASK and isinstance(a, Lanes) and a == b):
        raise TypingError(f"a mask and two lanes of one kind needed, got {mask}, {a}, {b}")
    return a(mask, a, b), lambda context, builder, signature, args: builder.select(*args)


def fma(a, b, c):
    """Return a * b + c, in one rounding where the hardware has it."""
    return a * b + c


def sqrt(x):
    """Return the square root."""
    return np.sqrt(x)


def absolute(x):
    """Return |x|."""
    return abs(x)


def copysign(a, b):
    """Return |a| with the sign of b."""
    return np.copysign(a, b)


def select(mask, a, b):
    """Return a where `mask` holds, else b; both are evaluated."""
    if isinstance(mask, bool | np.bool_):
        return a if mask else b
    return np.where(mask, a, b)


def minimum(a, b):
    """Return the smaller of a and b (b where a is NaN)."""
    return select(a < b, a, b)


def maximum(a, b):
    """Return the larger of a and b (b where a is NaN)."""
    return select(a > b, a, b)


def rint(x):
    """Return x rounded to the nearest integer, ties to even, as a float."""
    return np.rint(x)


@overload(fma)
def _overload_fma(a, b, c):
    if isinstance(a, Lanes):
        return lambda a, b, c: _fma_lanes(a, b, c)
    return lambda a, b, c: a * b + c


@overload(select)
def _overload_select(mask, a, b):
    if isinstance(mask, Lanes):
        return lambda mask, a, b: _select_lanes(mask, a, b)
    return lambda mask, a, b: a if mask else b


@overload(minimum)
def _overload_minimum(a, b):
    return lambda a, b: select(a < b, a, b)


@overload(maximum)
def _overload_maximum(a, b):
    return lambda a, b: select(a > b, a, b)


def _overload_unary(function: Callable, lanes_version: Callable, scalar_version: Callable) -> None:
    @overload(function)
    def implement(x):
        if isinstance(x, Lanes):
            return lambda x: lanes_version(x)
        return lambda x: scalar_version(x)


@overload(copysign)
def _overload_copysign(a, b):
    if isinstance(a, Lanes):
        return lambda a, b: _copysign_lanes(a, b)

    def scalar(a, b):
        size = a if a >= 0 else -a
        return size if b >= 0 else -size

    return scalar


# ---------------------------------------------------------------- masks and reductions
def _mask_operation(builder_name: str) -> Callable:
    @intrinsic
    def operation(context, a, b):
        if not (a == MASK and b == MASK):
            raise TypingError(f"two masks needed, got {a} and {b}")
        return MASK(a, b), lambda context, builder, signature, args: getattr(builder, builder_name)(*args)

    return operation


_and_mask, _or_mask = _mask_operation("and_"), _mask_operation("or_")


@intrinsic
def _not_mask(context, a):
    return MASK(a), lambda context, builder, signature, args: builder.not_(args[0])


def _mask_reduction(llvm_name: str) -> Callable:
    @intrinsic
    def operation(context, a):
        name = f"llvm.vector.reduce.{llvm_name}.{suffix('b1')}"
        return types.boolean(a), lambda context, builder, signature, args: call(builder, name, ir.IntType(1), args)

    return operation


_any_mask, _all_mask = _mask_reduction("or"), _mask_reduction("and")


def _reduction(llvm_name: str, with_start: bool) -> Callable:
    @intrinsic
    def operation(context, a):
        if not (isinstance(a, Lanes) and a.is_float):
            raise TypingError(f"float lanes needed, got {a}")
        name, element = f"llvm.vector.reduce.{llvm_name}.{suffix(a.kind)}", ELEMENT[a.kind]

        def generate(context, builder, signature, args):
            operands = [ir.Constant(element, -0.0), *args] if with_start else args
            return call(builder, name, element, operands)

        return NUMBA_TYPE[a.kind](a), generate

    return operation


_max_lanes, _sum_lanes = _reduction("fmax", False), _reduction("fadd", True)


def both(a, b):
    """Return the mask "a and b"."""
    return np.logical_and(a, b)


def either(a, b):
    """Return the mask "a or b"."""
    return np.logical_or(a, b)


def negate(a):
    """Return the mask "not a"."""
    return np.logical_not(a)


def any_lane(mask):
    """Return whether any lane of the mask holds: guards a slow path that every lane may take safely."""
    return bool(np.any(mask))


def all_lanes(mask):
    """Return whether every lane of the mask holds."""
    return bool(np.all(mask))


def hmax(x):
    """Return the largest of the sixteen lanes."""
    return np.max(x)


def hsum(x):
    """Return the sum of the sixteen lanes, in order."""
    return np.sum(x)


@overload(both)
def _overload_both(a, b):
    if isinstance(a, Lanes):
        return lambda a, b: _and_mask(a, b)
    return lambda a, b: a and b


@overload(either)
def _overload_either(a, b):
    if isinstance(a, Lanes):
        return lambda a, b: _or_mask(a, b)
    return lambda a, b: a or b


for _function, _lanes_version, _scalar_version in (
    (negate, _not_mask, register_jitable(lambda a: not a)),
    (any_lane, _any_mask, register_jitable(lambda a: a)),
    (all_lanes, _all_mask, register_jitable(lambda a: a)),
    (hmax, _max_lanes, register_jitable(lambda a: a)),
    (hsum, _sum_lanes, register_jitable(lambda a: a)),
    (sqrt, _sqrt_lanes, register_jitable(lambda a: np.sqrt(a))),
    (absolute, _absolute_lanes, register_jitable(lambda a: a if a >= 0 else -a)),
    (rint, _rint_lanes, register_jitable(lambda a: np.rint(a))),
):
    _overload_unary(_function, _lanes_version, _scalar_version)
