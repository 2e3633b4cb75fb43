"""Explicit SIMD for numba: sixteen-lane values with scalar twins, so that one source serves lanes, scalars, NumPy and CUDA.

A `Lanes` value is one LLVM vector `<16 x T>`; LLVM splits it into what the CPU has (one zmm, two ymm, four xmm). The public
functions below are ordinary Python functions that work on Python floats and NumPy arrays; numba sees their overloads for
scalars and for lanes. Rules for code shared between them: no bare literals (`const(x, 0.5)`), no branches on lane values
(`select`), fixed iteration counts.

| function | lanes | scalar twin |
|---|---|---|
| `load store store_first load_quarter load_splat` | contiguous arrays of the lanes' own dtype only | - |
| `const broadcast` | literal / run-time scalar in the type of `x` | conversion |
| `fma sqrt absolute minimum maximum copysign exp log` | elementwise | same |
| `select both either negate any_lane all_lanes` | masks | bool |
| `hmax hsum` | reduce sixteen lanes | identity |
| `rint to_int to_float shift_left shift_right bit_and` | fixed-point positions | - |
| `transpose quarter_sums lane_constant` | shuffles of the transfers | - |

Floating-point instructions carry `contract nsz` only: a NaN stays a NaN, so that divergence can be seen.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic, models, overload, register_jitable, register_model

__all__ = [
    "WIDTH", "Lanes", "absolute", "all_lanes", "any_lane", "bit_and", "both", "broadcast", "const", "copysign", "either",
    "exp", "fma", "hmax", "hsum", "lane_constant", "load", "load_quarter", "load_splat", "log", "maximum", "minimum",
    "negate", "quarter_sums", "rint", "select", "shift_left", "shift_right", "sqrt", "store", "store_first",
    "to_float", "to_int", "transpose",
]

WIDTH = 16
_FLAGS = ("contract", "nsz")
_ELEMENT = {
    "f32": ir.FloatType(), "f64": ir.DoubleType(), "i32": ir.IntType(32), "i64": ir.IntType(64), "b1": ir.IntType(1),
}
_NUMBA = {"f32": types.float32, "f64": types.float64, "i32": types.int32, "i64": types.int64}
_KIND_OF = {numba_type: kind for kind, numba_type in _NUMBA.items()}
_INT_OF = {"f32": "i32", "f64": "i64"}
_I32 = ir.IntType(32)


class Lanes(types.Type):
    """numba type of sixteen values of one kind: "f32", "f64", "i32", "i64" or "b1" (mask)."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        super().__init__(name=f"Lanes{WIDTH}_{kind}")

    @property
    def is_float(self) -> bool:
        """Whether the lanes are floating point."""
        return self.kind in _INT_OF


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        super().__init__(manager, lanes, _vector(lanes.kind))


_LANES = {kind: Lanes(kind) for kind in _ELEMENT}
_MASK = _LANES["b1"]


def _vector(kind: str, width: int = WIDTH) -> ir.VectorType:
    return ir.VectorType(_ELEMENT[kind], width)


def _indices(values: Sequence[int]) -> ir.Constant:
    return ir.Constant(ir.VectorType(_I32, len(values)), list(values))


def _splat(builder: ir.IRBuilder, scalar: ir.Value, kind: str) -> ir.Value:
    undefined = ir.Constant(_vector(kind), ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(_I32, 0))
    return builder.shuffle_vector(first, undefined, _indices([0] * WIDTH))


def _call(builder: ir.IRBuilder, name: str, result: ir.Type, args: Sequence[ir.Value]) -> ir.Value:
    signature = ir.FunctionType(result, [value.type for value in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, name), args)


def _suffix(kind: str) -> str:
    return f"v{WIDTH}{kind.replace('b1', 'i1')}"


# ---------------------------------------------------------------- arithmetic and comparison
def _binary(float_op: str, int_op: str | None) -> Callable:
    @intrinsic
    def operation(context, a, b):
        if not (isinstance(a, Lanes) and a == b) or (int_op is None and not a.is_float):
            raise TypingError(f"lanes of one numeric kind needed, got {a} and {b}")

        def generate(context, builder, signature, args):
            if signature.return_type.is_float:
                return getattr(builder, float_op)(*args, flags=_FLAGS)
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

        return _MASK(a, b), generate

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
    return a(a), lambda context, builder, signature, args: builder.fneg(args[0], flags=_FLAGS)


@overload(operator.neg)
def _overload_neg(a):
    if isinstance(a, Lanes):
        return lambda a: _negative(a)
    return None


# ---------------------------------------------------------------- constants
@intrinsic
def _broadcast_lanes(context, like, scalar):
    if not (isinstance(like, Lanes) and isinstance(scalar, types.Number | types.IntegerLiteral)):
        raise TypingError(f"lanes and a scalar needed, got {like} and {scalar}")
    element = _NUMBA[like.kind]

    def generate(context, builder, signature, args):
        return _splat(builder, context.cast(builder, args[1], signature.args[1], element), like.kind)

    return like(like, scalar), generate


def broadcast(x, scalar):
    """Return `scalar` in the type of `x` (lanes, scalar or array)."""
    return np.asarray(x).dtype.type(scalar) if isinstance(x, np.ndarray | np.generic) else type(x)(scalar)


def const(x, value):
    """Return the literal `value` in the type of `x`; bare literals do not type on lanes and make float64 on CUDA."""
    return np.asarray(x).dtype.type(value) if isinstance(x, np.ndarray | np.generic) else type(x)(value)


def _overload_constant(x, value):
    if isinstance(x, Lanes):
        return lambda x, value: _broadcast_lanes(x, value)
    if isinstance(x, types.Float):
        convert = np.float32 if x == types.float32 else np.float64
        return lambda x, value: convert(value)
    return None


@overload(broadcast)
def _overload_broadcast(x, scalar):
    if isinstance(x, Lanes):
        return lambda x, scalar: _broadcast_lanes(x, scalar)
    if isinstance(x, types.Float):
        convert = np.float32 if x == types.float32 else np.float64
        return lambda x, scalar: convert(scalar)
    return None


@overload(const)
def _overload_const(x, value):
    return _overload_constant(x, value)


def lane_constant(values: Sequence[float]) -> Callable:
    """Return a kernel function `f(x)` that gives the sixteen `values` as lanes of the type of `x`."""
    if len(values) != WIDTH:
        raise ValueError(f"lane_constant: {len(values)} values given, {WIDTH} needed")
    values = [float(value) for value in values]

    @intrinsic
    def constant(context, like):
        if not (isinstance(like, Lanes) and like.is_float):
            raise TypingError(f"float lanes needed, got {like}")
        return like(like), lambda context, builder, signature, args: ir.Constant(_vector(like.kind), values)

    return constant


# ---------------------------------------------------------------- elementwise functions
def _unary_intrinsic(llvm_name: str) -> Callable:
    @intrinsic
    def operation(context, a):
        if not (isinstance(a, Lanes) and a.is_float):
            raise TypingError(f"float lanes needed, got {a}")
        name = f"llvm.{llvm_name}.{_suffix(a.kind)}"
        return a(a), lambda context, builder, signature, args: _call(builder, name, _vector(a.kind), args)

    return operation


_sqrt_lanes, _absolute_lanes, _rint_lanes = (_unary_intrinsic(name) for name in ("sqrt", "fabs", "rint"))


@intrinsic
def _fma_lanes(context, a, b, c):
    if not (isinstance(a, Lanes) and a.is_float and a == b == c):
        raise TypingError(f"float lanes of one kind needed, got {a}, {b}, {c}")
    # fmuladd, never fma: without FMA hardware `llvm.fma` becomes sixteen calls into libm
    name = f"llvm.fmuladd.{_suffix(a.kind)}"
    return a(a, b, c), lambda context, builder, signature, args: _call(builder, name, _vector(a.kind), args)


@intrinsic
def _copysign_lanes(context, a, b):
    name = f"llvm.copysign.{_suffix(a.kind)}"
    return a(a, b), lambda context, builder, signature, args: _call(builder, name, _vector(a.kind), args)


@intrinsic
def _select_lanes(context, mask, a, b):
    if not (mask == _MASK and isinstance(a, Lanes) and a == b):
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


def exp(x):
    """Return e^x (lanes: argument clamped to the finite range, about 2 ulp)."""
    return np.exp(x)


def log(x):
    """Return the natural logarithm of a positive normal x (lanes: about 2 ulp)."""
    return np.log(x)


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
        if not (a == _MASK and b == _MASK):
            raise TypingError(f"two masks needed, got {a} and {b}")
        return _MASK(a, b), lambda context, builder, signature, args: getattr(builder, builder_name)(*args)

    return operation


_and_mask, _or_mask = _mask_operation("and_"), _mask_operation("or_")


@intrinsic
def _not_mask(context, a):
    return _MASK(a), lambda context, builder, signature, args: builder.not_(args[0])


def _mask_reduction(llvm_name: str) -> Callable:
    @intrinsic
    def operation(context, a):
        name = f"llvm.vector.reduce.{llvm_name}.{_suffix('b1')}"
        return types.boolean(a), lambda context, builder, signature, args: _call(builder, name, ir.IntType(1), args)

    return operation


_any_mask, _all_mask = _mask_reduction("or"), _mask_reduction("and")


def _reduction(llvm_name: str, with_start: bool) -> Callable:
    @intrinsic
    def operation(context, a):
        if not (isinstance(a, Lanes) and a.is_float):
            raise TypingError(f"float lanes needed, got {a}")
        name, element = f"llvm.vector.reduce.{llvm_name}.{_suffix(a.kind)}", _ELEMENT[a.kind]

        def generate(context, builder, signature, args):
            operands = [ir.Constant(element, -0.0), *args] if with_start else args
            return _call(builder, name, element, operands)

        return _NUMBA[a.kind](a), generate

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


# ---------------------------------------------------------------- integers of the fixed-point positions
@intrinsic
def to_int(context, x):
    """Truncate float lanes to integer lanes of the same width."""
    result = _LANES[_INT_OF[x.kind]]
    return result(x), lambda context, builder, signature, args: builder.fptosi(args[0], _vector(result.kind))


@intrinsic
def to_float(context, i):
    """Convert integer lanes to float lanes of the same width."""
    result = _LANES["f32" if i.kind == "i32" else "f64"]
    return result(i), lambda context, builder, signature, args: builder.sitofp(args[0], _vector(result.kind))


@intrinsic
def _bits_to_float(context, i):
    result = _LANES["f32" if i.kind == "i32" else "f64"]
    return result(i), lambda context, builder, signature, args: builder.bitcast(args[0], _vector(result.kind))


@intrinsic
def _bits_to_int(context, x):
    result = _LANES[_INT_OF[x.kind]]
    return result(x), lambda context, builder, signature, args: builder.bitcast(args[0], _vector(result.kind))


def _int_with_scalar(builder_name: str) -> Callable:
    @intrinsic
    def operation(context, i, n):
        element = _NUMBA[i.kind]

        def generate(context, builder, signature, args):
            scalar = context.cast(builder, args[1], signature.args[1], element)
            return getattr(builder, builder_name)(args[0], _splat(builder, scalar, i.kind))

        return i(i, n), generate

    return operation


shift_left, shift_right, bit_and = (_int_with_scalar(name) for name in ("shl", "ashr", "and_"))


# ---------------------------------------------------------------- memory
def _checked_kind(array: Any, kinds: Sequence[str]) -> str:
    """Refuse what a raw vector access would read or write silently wrong."""
    if not (isinstance(array, types.Array) and array.is_c_contig and array.ndim == 1 and array.mutable):
        raise TypingError(f"lanes need a mutable contiguous 1-D array, got {array}")
    kind = _KIND_OF.get(array.dtype)
    if kind not in kinds:
        raise TypingError(f"lanes cannot live in an array of {array.dtype}")
    return kind


def _pointer(context, builder, signature, args) -> ir.Value:
    array = context.make_array(signature.args[0])(context, builder, value=args[0])
    return builder.gep(array.data, [context.cast(builder, args[1], signature.args[1], types.intp)])


_ALL_KINDS = ("f32", "f64", "i32", "i64")


@intrinsic
def load(context, array, i):
    """Load sixteen elements from element `i` on."""
    kind = _checked_kind(array, _ALL_KINDS)

    def generate(context, builder, signature, args):
        pointer = builder.bitcast(_pointer(context, builder, signature, args), _vector(kind).as_pointer())
        return builder.load(pointer, align=_ELEMENT_BYTES[kind], typ=_vector(kind))

    return _LANES[kind](array, i), generate


@intrinsic
def load_quarter(context, array, i):
    """Load four elements and repeat them in the four quarters."""
    kind = _checked_kind(array, _ALL_KINDS)

    def generate(context, builder, signature, args):
        four = _vector(kind, 4)
        pointer = builder.bitcast(_pointer(context, builder, signature, args), four.as_pointer())
        value = builder.load(pointer, align=_ELEMENT_BYTES[kind], typ=four)
        return builder.shuffle_vector(value, ir.Constant(four, ir.Undefined), _indices([0, 1, 2, 3] * 4))

    return _LANES[kind](array, i), generate


@intrinsic
def load_splat(context, array, i):
    """Load one element into all lanes."""
    kind = _checked_kind(array, _ALL_KINDS)

    def generate(context, builder, signature, args):
        pointer = _pointer(context, builder, signature, args)
        return _splat(builder, builder.load(pointer, align=_ELEMENT_BYTES[kind], typ=_ELEMENT[kind]), kind)

    return _LANES[kind](array, i), generate


@intrinsic
def store(context, array, i, value):
    """Store sixteen lanes from element `i` on; the array must hold lanes of just this kind."""
    kind = _checked_kind(array, _ALL_KINDS)
    if value != _LANES[kind]:
        raise TypingError(f"cannot store {value} into an array of {array.dtype}")

    def generate(context, builder, signature, args):
        pointer = builder.bitcast(_pointer(context, builder, signature, args), _vector(kind).as_pointer())
        builder.store(args[2], pointer, align=_ELEMENT_BYTES[kind])
        return context.get_dummy_value()

    return types.void(array, i, value), generate


@intrinsic
def store_first(context, array, i, value, count):
    """Store the first `count` lanes only: the tail of a run never overwrites its neighbour."""
    kind = _checked_kind(array, _ALL_KINDS)
    if value != _LANES[kind]:
        raise TypingError(f"cannot store {value} into an array of {array.dtype}")

    def generate(context, builder, signature, args):
        pointer = builder.bitcast(_pointer(context, builder, signature, args), _vector(kind).as_pointer())
        limit = _splat(builder, context.cast(builder, args[3], signature.args[3], types.int32), "i32")
        mask = builder.icmp_signed("<", _indices(range(WIDTH)), limit)
        name = f"llvm.masked.store.{_suffix(kind)}.p0"
        _call(builder, name, ir.VoidType(), [args[2], pointer, ir.Constant(_I32, _ELEMENT_BYTES[kind]), mask])
        return context.get_dummy_value()

    return types.void(array, i, value, count), generate


_ELEMENT_BYTES = {"f32": 4, "f64": 8, "i32": 4, "i64": 8}


# ---------------------------------------------------------------- shuffles
def _transpose_vectors(builder: ir.IRBuilder, rows: list[ir.Value]) -> list[ir.Value]:
    """16 x 16 transpose: in round k, exchange the off-diagonal 2^k blocks of row pairs that lie 2^k apart."""
    for step in (1, 2, 4, 8):
        low = [lane if not lane & step else lane - step + WIDTH for lane in range(WIDTH)]
        high = [lane + step if not lane & step else lane + WIDTH for lane in range(WIDTH)]
        for i in range(WIDTH):
            if not i & step:
                a, b = rows[i], rows[i + step]
                rows[i] = builder.shuffle_vector(a, b, _indices(low))
                rows[i + step] = builder.shuffle_vector(a, b, _indices(high))
    return rows


@intrinsic
def transpose(context, rows):
    """Transpose a tuple of sixteen lanes: lane j of row i becomes lane i of row j."""
    if not (isinstance(rows, types.UniTuple) and rows.count == WIDTH and isinstance(rows.dtype, Lanes)):
        raise TypingError(f"a tuple of {WIDTH} lanes of one kind needed, got {rows}")

    def generate(context, builder, signature, args):
        result = _transpose_vectors(builder, cgutils.unpack_tuple(builder, args[0], WIDTH))
        return context.make_tuple(builder, signature.return_type, result)

    return rows(rows), generate


@intrinsic
def quarter_sums(context, a, b, c, d):
    """Add up the four quarters of each argument; quarter q of the result belongs to argument q."""

    def generate(context, builder, signature, args):
        even, odd = (_indices([4 * q + x for q in quarters for x in range(4)]) for quarters in ((0, 2, 4, 6), (1, 3, 5, 7)))

        def pair(x, y):
            return builder.fadd(builder.shuffle_vector(x, y, even), builder.shuffle_vector(x, y, odd), flags=_FLAGS)

        return pair(pair(args[0], args[1]), pair(args[2], args[3]))

    return a(a, b, c, d), generate


# ---------------------------------------------------------------- exp and log
_LOG2E, _LN2 = 1.4426950408889634, 0.6931471805599453
_LN2_HIGH32, _LN2_LOW32 = 0.693359375, -2.12194440e-4
_LN2_HIGH64, _LN2_LOW64 = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_INVERSE_FACTORIALS = (1.0, 1.0, 0.5, 1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040, 1 / 40320, 1 / 362880, 1 / 3628800,
                       1 / 39916800, 1 / 479001600, 1 / 6227020800)


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
        return p * _bits_to_float(shift_left(i + _broadcast_lanes(i, bias), mantissa))

    return register_jitable(exp_lanes)


def _make_log(kind: str) -> Callable:
    single = kind == "f32"
    terms = 5 if single else 12
    mantissa, half_root = (23, 0x3F3504F3) if single else (52, 0x3FE6A09E667F3BCD)
    coefficients = tuple(2.0 / (2 * k + 1) for k in range(terms))[::-1]

    def log_lanes(x):
        i = _bits_to_int(x)
        e = shift_right(i - _broadcast_lanes(i, half_root), mantissa)
        m = _bits_to_float(i - shift_left(e, mantissa))
        one = const(x, 1.0)
        s = (m - one) / (m + one)
        z = s * s
        p = const(x, coefficients[0])
        for k in range(1, terms):
            p = fma(p, z, const(x, coefficients[k]))
        return fma(to_float(e), const(x, _LN2), p * s)

    return register_jitable(log_lanes)


_EXP = {kind: _make_exp(kind) for kind in _INT_OF}
_LOG = {kind: _make_log(kind) for kind in _INT_OF}


@overload(exp)
def _overload_exp(x):
    if isinstance(x, Lanes):
        lanes_version = _EXP[x.kind]
        return lambda x: lanes_version(x)
    return lambda x: np.exp(x)


@overload(log)
def _overload_log(x):
    if isinstance(x, Lanes):
        lanes_version = _LOG[x.kind]
        return lambda x: lanes_version(x)
    return lambda x: np.log(x)
