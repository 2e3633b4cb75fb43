"""Explicit SIMD for numba: values of several lanes with scalar twins, so that one source serves lanes, scalars, NumPy and CUDA.

A `LaneType` value is one LLVM vector, `<16 x T>` in all but loops composed for another width (`composition.backends`). LLVM splits
it into what the CPU has (one zmm, two ymm, four xmm). The public
functions below are ordinary Python functions that work on Python floats and NumPy arrays; numba sees their overloads for
scalars, and for lanes writes the instructions where they are called: most of a large kernel's functions would otherwise be those
of single operations, each compiled, linked and inlined. Rules for code shared between them: no bare literals (`const(x, 0.5)`), no
branches on lane values (`select`), fixed iteration counts.

| function | lanes | scalar twin |
|---|---|---|
| `const broadcast` | literal / run-time scalar in the type of `x` | conversion |
| `fma sqrt absolute minimum maximum copysign rint` | elementwise | same |
| `select both either negate any_lane all_lanes` | masks | bool |
| `hmax hsum` | reduce all lanes | identity |

`lane_memory` moves lanes to and from arrays, `exponentials` has exp and log.

Floating-point instructions carry `contract nsz` only: a NaN stays a NaN, so that divergence can be seen.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import MappingProxyType

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.extending import intrinsic, lower_builtin

from mpm_nodes.kernels.compile.jit import inline, overloaded
from mpm_nodes.kernels.lanes.types import ELEMENT, FLAGS, NUMBA_TYPE, LaneType, call_intrinsic, splat, suffix, vector


# ---------------------------------------------------------------- instructions in place
def _on_lanes(function: Callable, define: Callable) -> None:
    """Let kernels call `function` with lanes as its first argument.

    Args:
        function: What is called.
        define: As an intrinsic's: from a context and the types of the arguments to a signature and what writes the instructions.
    """

    class Template(AbstractTemplate):
        key = function
        metadata = MappingProxyType({"target": "cpu"})  # before templates for any target, of which operators have dozens

        def generic(self, args, kws):
            return define(self.context, *args)[0] if args and isinstance(args[0], LaneType) and not kws else None

    def generate(context, builder, signature, args):
        return define(context, *signature.args)[1](context, builder, signature, args)

    infer_global(function, types.Function(Template))
    lower_builtin(function, LaneType, types.VarArg(types.Any))(generate)


def _need(fits: bool, what: str, *kinds: types.Type) -> None:
    if not fits:
        raise TypingError(f"{what} needed, got {', '.join(map(str, kinds))}")


# ---------------------------------------------------------------- arithmetic and comparison
def _binary(float_op: str, int_op: str | None) -> Callable:
    def define(context, a, b):
        _need(a == b and a.kind != "b1" and (a.is_float or int_op is not None), "lanes of one numeric kind", a, b)

        def generate(context, builder, signature, args):
            if signature.return_type.is_float:
                return getattr(builder, float_op)(*args, flags=FLAGS)
            return getattr(builder, int_op)(*args)

        return a(a, b), generate

    return define


def _compared(builder, symbol, kind, args):
    return builder.fcmp_ordered(symbol, *args) if kind.is_float else builder.icmp_signed(symbol, *args)


def _comparison(symbol: str) -> Callable:
    def define(context, a, b):
        _need(a == b, "lanes of one kind", a, b)
        return a.mask(a, b), lambda context, builder, signature, args: _compared(builder, symbol, a, args)

    return define


def _negative(context, a):
    _need(a.is_float, "float lanes", a)
    return a(a), lambda context, builder, signature, args: builder.fneg(args[0], flags=FLAGS)


for _operator, _definition in (
    (operator.add, _binary("fadd", "add")),
    (operator.sub, _binary("fsub", "sub")),
    (operator.mul, _binary("fmul", "mul")),
    (operator.truediv, _binary("fdiv", None)),
    (operator.neg, _negative),
    *(
        (getattr(operator, name), _comparison(symbol))
        for name, symbol in (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="), ("eq", "=="), ("ne", "!="))
    ),
):
    _on_lanes(_operator, _definition)


# ---------------------------------------------------------------- constants
def _broadcast_lanes(context, like, scalar):
    _need(isinstance(like, LaneType) and isinstance(scalar, types.Number), "lanes and a scalar", like, scalar)
    element = NUMBA_TYPE[like.kind]

    def generate(context, builder, signature, args):
        return splat(builder, context.cast(builder, args[1], signature.args[1], element), like.kind, like.width)

    return like(like, scalar), generate


@intrinsic
def broadcast_lanes(context, like, scalar):
    """Return a scalar in all lanes of the type of `like` (integers too)."""
    return _broadcast_lanes(context, like, scalar)


def broadcast(x, scalar):
    """Return `scalar` in the type of `x` (lanes, scalar or array)."""
    return np.asarray(x).dtype.type(scalar) if isinstance(x, np.ndarray | np.generic) else type(x)(scalar)


def const(x, value):
    """Return the literal `value` in the type of `x`; bare literals do not type on lanes and make float64 on CUDA."""
    return np.asarray(x).dtype.type(value) if isinstance(x, np.ndarray | np.generic) else type(x)(value)


@overloaded(broadcast)
def _overload_broadcast(x, scalar):
    if isinstance(x, types.Float):
        convert = np.float32 if x == types.float32 else np.float64
        return lambda x, scalar: convert(scalar)
    return None


@overloaded(const)
def _overload_const(x, value):
    if isinstance(x, types.Float):
        convert = np.float32 if x == types.float32 else np.float64
        return lambda x, value: convert(value)
    return None


for _function in (broadcast, const):
    _on_lanes(_function, _broadcast_lanes)


# ---------------------------------------------------------------- elementwise functions
def _unary(llvm_name: str) -> Callable:
    def define(context, a):
        _need(a.is_float, "float lanes", a)
        name = f"llvm.{llvm_name}.{suffix(a.kind, a.width)}"
        return a(a), lambda context, builder, signature, args: call_intrinsic(builder, name, vector(a.kind, a.width), args)

    return define


def _fma_lanes(context, a, b, c):
    _need(a.is_float and a == b == c, "float lanes of one kind", a, b, c)
    # fmuladd, never fma: without FMA hardware `llvm.fma` becomes a call into libm for each lane
    name = f"llvm.fmuladd.{suffix(a.kind, a.width)}"
    return a(a, b, c), lambda context, builder, signature, args: call_intrinsic(builder, name, vector(a.kind, a.width), args)


def _copysign_lanes(context, a, b):
    _need(a.is_float and a == b, "float lanes of one kind", a, b)
    name = f"llvm.copysign.{suffix(a.kind, a.width)}"
    return a(a, b), lambda context, builder, signature, args: call_intrinsic(builder, name, vector(a.kind, a.width), args)


def _select_lanes(context, mask, a, b):
    _need(isinstance(a, LaneType) and mask == a.mask and a == b, "a mask and two lanes of one kind", mask, a, b)
    return a(mask, a, b), lambda context, builder, signature, args: builder.select(*args)


def _first_by(symbol: str) -> Callable:
    """Choose a where a `symbol` b holds, else b."""

    def define(context, a, b):
        _need(a == b and a.kind != "b1", "lanes of one numeric kind", a, b)

        def generate(context, builder, signature, args):
            return builder.select(_compared(builder, symbol, a, args), *args)

        return a(a, b), generate

    return define


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


for _function, _definition in (
    (fma, _fma_lanes),
    (select, _select_lanes),
    (copysign, _copysign_lanes),
    (minimum, _first_by("<")),
    (maximum, _first_by(">")),
    (sqrt, _unary("sqrt")),
    (absolute, _unary("fabs")),
    (rint, _unary("rint")),
):
    _on_lanes(_function, _definition)


@overloaded(fma)
def _overload_fma(a, b, c):
    return None if isinstance(a, LaneType) else lambda a, b, c: a * b + c


@overloaded(select)
def _overload_select(mask, a, b):
    return None if isinstance(mask, LaneType) else lambda mask, a, b: a if mask else b


@overloaded(minimum)
def _overload_minimum(a, b):
    return None if isinstance(a, LaneType) else lambda a, b: select(a < b, a, b)


@overloaded(maximum)
def _overload_maximum(a, b):
    return None if isinstance(a, LaneType) else lambda a, b: select(a > b, a, b)


@overloaded(copysign)
def _overload_copysign(a, b):
    def scalar(a, b):
        size = a if a >= 0 else -a
        return size if b >= 0 else -size

    return None if isinstance(a, LaneType) else scalar


# ---------------------------------------------------------------- masks and reductions
def _mask_operation(builder_name: str) -> Callable:
    def define(context, a, b):
        _need(a.kind == "b1" and a == b, "two masks", a, b)
        return a(a, b), lambda context, builder, signature, args: getattr(builder, builder_name)(*args)

    return define


def _not_mask(context, a):
    _need(a.kind == "b1", "a mask", a)
    return a(a), lambda context, builder, signature, args: builder.not_(args[0])


def _mask_reduction(llvm_name: str) -> Callable:
    def define(context, a):
        _need(a.kind == "b1", "a mask", a)
        name = f"llvm.vector.reduce.{llvm_name}.{suffix('b1', a.width)}"
        return types.boolean(a), lambda context, builder, signature, args: call_intrinsic(builder, name, ir.IntType(1), args)

    return define


def _reduction(llvm_name: str, with_start: bool) -> Callable:
    def define(context, a):
        _need(a.is_float, "float lanes", a)
        name, element = f"llvm.vector.reduce.{llvm_name}.{suffix(a.kind, a.width)}", ELEMENT[a.kind]

        def generate(context, builder, signature, args):
            operands = [ir.Constant(element, -0.0), *args] if with_start else args
            return call_intrinsic(builder, name, element, operands)

        return NUMBA_TYPE[a.kind](a), generate

    return define


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
    """Return the largest of the lanes."""
    return np.max(x)


def hsum(x):
    """Return the sum of the lanes, in order."""
    return np.sum(x)


@overloaded(both)
def _overload_both(a, b):
    return None if isinstance(a, LaneType) else lambda a, b: a and b


@overloaded(either)
def _overload_either(a, b):
    return None if isinstance(a, LaneType) else lambda a, b: a or b


for _function, _definition in (
    (both, _mask_operation("and_")),
    (either, _mask_operation("or_")),
    (negate, _not_mask),
    (any_lane, _mask_reduction("or")),
    (all_lanes, _mask_reduction("and")),
    (hmax, _reduction("fmax", False)),
    (hsum, _reduction("fadd", True)),
):
    _on_lanes(_function, _definition)


def _overload_unary(function: Callable, scalar_version: Callable) -> None:
    @overloaded(function)
    def implement(x):
        return None if isinstance(x, LaneType) else lambda x: scalar_version(x)


for _function, _scalar_version in (
    (negate, inline(lambda a: not a)),
    (any_lane, inline(lambda a: a)),
    (all_lanes, inline(lambda a: a)),
    (hmax, inline(lambda a: a)),
    (hsum, inline(lambda a: a)),
    (sqrt, inline(lambda a: np.sqrt(a))),
    (absolute, inline(lambda a: a if a >= 0 else -a)),
    (rint, inline(lambda a: np.rint(a))),
):
    _overload_unary(_function, _scalar_version)
