"""Lanes and memory: loads, stores, shuffles, constants by lane, and integers of the fixed-point positions.

Loads and stores refuse anything but mutable contiguous 1-D arrays of their own type: they would read or write silently wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.compile.lend import Plain
from mpm_nodes.kernels.lanes.types import (
    ELEMENT,
    I32,
    INT_OF,
    KIND_OF,
    LANES,
    NUMBA_TYPE,
    WIDTH,
    Bare,
    LaneType,
    call_intrinsic,
    indices,
    splat,
    suffix,
    vector,
    whole_registers,
)


# ---------------------------------------------------------------- integers of the fixed-point positions
@intrinsic
def to_int(context, x):
    """Truncate float lanes to integer lanes of the same width."""
    result = LaneType(INT_OF[x.kind], x.width)
    return result(x), lambda context, builder, signature, args: builder.fptosi(args[0], vector(result.kind, x.width))


@intrinsic
def to_float(context, i):
    """Convert integer lanes to float lanes of the same width."""
    result = LaneType("f32" if i.kind == "i32" else "f64", i.width)
    return result(i), lambda context, builder, signature, args: builder.sitofp(args[0], vector(result.kind, i.width))


@intrinsic
def to_double(context, x):
    """Widen float lanes to double precision."""
    result = LaneType("f64", x.width)

    def generate(context, builder, signature, args):
        return args[0] if x.kind == "f64" else builder.fpext(args[0], vector("f64", x.width))

    return result(x), generate


@intrinsic
def bits_to_float(context, i):
    """Reinterpret integer lanes as floats of the same width."""
    result = LaneType("f32" if i.kind == "i32" else "f64", i.width)
    return result(i), lambda context, builder, signature, args: builder.bitcast(args[0], vector(result.kind, i.width))


@intrinsic
def bits_to_int(context, x):
    """Reinterpret float lanes as integers of the same width."""
    result = LaneType(INT_OF[x.kind], x.width)
    return result(x), lambda context, builder, signature, args: builder.bitcast(args[0], vector(result.kind, x.width))


def _int_with_scalar(builder_name: str) -> Callable:
    @intrinsic
    def operation(context, i, n):
        element = NUMBA_TYPE[i.kind]

        def generate(context, builder, signature, args):
            scalar = context.cast(builder, args[1], signature.args[1], element)
            return getattr(builder, builder_name)(args[0], splat(builder, scalar, i.kind, i.width))

        return i(i, n), generate

    return operation


shift_left, shift_right, bit_and = (_int_with_scalar(name) for name in ("shl", "ashr", "and_"))


# ---------------------------------------------------------------- memory
def checked_kind(array: Any, kinds: Sequence[str]) -> str:
    """Return the kind of an array's elements; refuse what a raw vector access would read or write silently wrong."""
    if isinstance(array, Bare):
        return KIND_OF[array.dtype]
    if isinstance(array, Plain) and array.ndim == 1 and array.mutable and array.dtype in KIND_OF:
        return KIND_OF[array.dtype]
    if not (isinstance(array, types.Array) and array.is_c_contig and array.ndim == 1 and array.mutable):
        raise TypingError(f"lanes need a mutable contiguous 1-D array, got {array}")
    kind = KIND_OF.get(array.dtype)
    if kind not in kinds:
        raise TypingError(f"lanes cannot live in an array of {array.dtype}")
    return kind


def pointer_to(context, builder, signature, args) -> ir.Value:
    """Return the address of the element that the second argument names, of the array that is the first."""
    if isinstance(signature.args[0], Bare):
        return builder.gep(args[0], [context.cast(builder, args[1], signature.args[1], types.intp)])
    if isinstance(signature.args[0], Plain):
        data = builder.extract_value(args[0], 0)
        return builder.gep(data, [context.cast(builder, args[1], signature.args[1], types.intp)])
    array = context.make_array(signature.args[0])(context, builder, value=args[0])
    return builder.gep(array.data, [context.cast(builder, args[1], signature.args[1], types.intp)])


_I64 = ir.IntType(64)
_ALL_KINDS = ("f32", "f64", "i32", "i64")
ELEMENT_BYTES = {"f32": 4, "f64": 8, "i32": 4, "i64": 8}


@intrinsic
def bare(context, array):
    """Return the data of an array that its holder keeps alive, for tuples: taking an array out of one counts references."""
    if isinstance(array, Bare):
        return array(array), lambda context, builder, signature, args: args[0]
    kind = checked_kind(array, _ALL_KINDS)

    def generate(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, value=args[0]).data
        return builder.bitcast(data, ELEMENT[kind].as_pointer())

    return Bare(array.dtype)(array), generate


@intrinsic
def element(context, array, i):
    """Load one element, as a number; `i` is not below zero."""
    kind = checked_kind(array, _ALL_KINDS)

    def generate(context, builder, signature, args):
        return builder.load(pointer_to(context, builder, signature, args), align=ELEMENT_BYTES[kind], typ=ELEMENT[kind])

    return NUMBA_TYPE[kind](array, i), generate


def load_of(width: int) -> Callable:
    """Return a kernel function `load(array, i)` that loads `width` elements from element `i` on."""

    @intrinsic
    def load(context, array, i):
        kind = checked_kind(array, _ALL_KINDS)

        def generate(context, builder, signature, args):
            pointer = builder.bitcast(pointer_to(context, builder, signature, args), vector(kind, width).as_pointer())
            return builder.load(pointer, align=ELEMENT_BYTES[kind], typ=vector(kind, width))

        return LaneType(kind, width)(array, i), generate

    return load


load = load_of(WIDTH)
"""Load sixteen elements from element `i` on."""
load8 = load_of(8)
"""Load eight elements from element `i` on."""


def _load_four(lanes: list[int]) -> Callable:
    """Return an intrinsic that loads four elements from element `i` on, and puts number lanes[n] of them into lane n."""

    @intrinsic
    def load(context, array, i):
        kind = checked_kind(array, _ALL_KINDS)

        def generate(context, builder, signature, args):
            four = vector(kind, 4)
            pointer = builder.bitcast(pointer_to(context, builder, signature, args), four.as_pointer())
            value = builder.load(pointer, align=ELEMENT_BYTES[kind], typ=four)
            return builder.shuffle_vector(value, ir.Constant(four, ir.Undefined), indices(lanes))

        return LANES[kind](array, i), generate

    return load


load_quarter = _load_four([0, 1, 2, 3] * 4)
"""Load four elements and repeat them in the four quarters."""
load_by_quarter = _load_four([n for n in range(4) for _ in range(4)])
"""Load four elements, each into all four lanes of a quarter."""


@intrinsic
def load_splat(context, array, i):
    """Load one element into all lanes."""
    kind = checked_kind(array, _ALL_KINDS)

    def generate(context, builder, signature, args):
        pointer = pointer_to(context, builder, signature, args)
        return splat(builder, builder.load(pointer, align=ELEMENT_BYTES[kind], typ=ELEMENT[kind]), kind)

    return LANES[kind](array, i), generate


@intrinsic
def store(context, array, i, value):
    """Store lanes from element `i` on; the array must hold lanes of just this kind."""
    kind = checked_kind(array, _ALL_KINDS)
    if not (isinstance(value, LaneType) and value.kind == kind):
        raise TypingError(f"cannot store {value} into an array of {array.dtype}")

    def generate(context, builder, signature, args):
        pointer = builder.bitcast(pointer_to(context, builder, signature, args), vector(kind, value.width).as_pointer())
        builder.store(args[2], pointer, align=ELEMENT_BYTES[kind])
        return context.get_dummy_value()

    return types.void(array, i, value), generate


def _copier(module: ir.Module, kind: str, width: int) -> ir.Function:
    """Return the function that copies the first `count` lanes of each of `rows` rows: in pieces, and never put into its callers."""
    data, name = ELEMENT[kind].as_pointer(), f"mpm_nodes_copy_lanes_{kind}_{width}"
    if name in module.globals:
        return module.get_global(name)
    copier = ir.Function(module, ir.FunctionType(ir.VoidType(), [data, data, _I64, _I64, _I64]), name)
    copier.linkage = "linkonce_odr"
    for attribute in ("noinline", "nounwind", "optsize", "minsize"):
        copier.attributes.add(attribute)
    room, target, stride, rows, count = copier.args
    builder = ir.IRBuilder(copier.append_basic_block())
    at = cgutils.alloca_once_value(builder, _I64(0))
    for piece in (8, 4, 2, 1):
        with builder.if_then(builder.icmp_unsigned("!=", builder.and_(count, _I64(piece)), _I64(0))):
            done, wide = builder.load(at), vector(kind, piece).as_pointer()
            with cgutils.for_range(builder, rows) as loop:
                source = builder.gep(room, [builder.add(builder.mul(loop.index, _I64(width)), done)])
                goal = builder.gep(target, [builder.add(builder.mul(loop.index, stride), done)])
                lanes = builder.load(builder.bitcast(source, wide), align=ELEMENT_BYTES[kind], typ=vector(kind, piece))
                builder.store(lanes, builder.bitcast(goal, wide), align=ELEMENT_BYTES[kind])
            builder.store(builder.add(done, _I64(piece)), at)
    builder.ret_void()
    return copier


@intrinsic
def store_first_each(context, array, i, stride, values, count):
    """Store the first `count` lanes of each of a tuple, the k-th from element `i + k stride` on.

    The tail of a run never overwrites its neighbour. Only AVX-512 has masked stores at the price of others; they are slow with
    AVX2, and cascades of branches elsewhere. There, what is not full goes to the stack, and from there in pieces.
    """
    kind = checked_kind(array, _ALL_KINDS)
    if not (isinstance(values, types.UniTuple) and isinstance(values.dtype, LaneType) and values.dtype.kind == kind):
        raise TypingError(f"cannot store {values} into an array of {array.dtype}")
    width = values.dtype.width
    lanes = vector(kind, width)

    def generate(context, builder, signature, args):
        stride, count = (context.cast(builder, args[k], signature.args[k], types.intp) for k in (2, 4))
        stored = cgutils.unpack_tuple(builder, args[3], values.count)
        target = pointer_to(context, builder, signature, args)
        if whole_registers():
            limit = splat(builder, builder.trunc(count, I32), "i32", width)
            mask = builder.icmp_signed("<", indices(range(width)), limit)
            name = f"llvm.masked.store.{suffix(kind, width)}.p0"
            for k, value in enumerate(stored):
                pointer = builder.bitcast(builder.gep(target, [builder.mul(stride, _I64(k))]), lanes.as_pointer())
                call_intrinsic(builder, name, ir.VoidType(), [value, pointer, ir.Constant(I32, ELEMENT_BYTES[kind]), mask])
            return context.get_dummy_value()
        room = builder.bitcast(cgutils.alloca_once(builder, lanes, size=values.count), ELEMENT[kind].as_pointer())
        target = builder.bitcast(target, room.type)
        full = builder.icmp_signed(">=", count, _I64(width))
        first, step = builder.select(full, target, room), builder.select(full, stride, _I64(width))
        for k, value in enumerate(stored):
            pointer = builder.gep(first, [builder.mul(step, _I64(k))])
            builder.store(value, builder.bitcast(pointer, lanes.as_pointer()), align=ELEMENT_BYTES[kind])
        with builder.if_then(builder.not_(full), likely=False):
            builder.call(_copier(builder.module, kind, width), [room, target, stride, _I64(values.count), count])
        return context.get_dummy_value()

    return types.void(array, i, stride, values, count), generate


@inline
def store_first(array, i, value, count):
    """Store the first `count` lanes only."""
    store_first_each(array, i, 0, (value,), count)


@intrinsic
def prefetch(context, array, i):
    """Ask for the cache line of element `i`, which may lie anywhere: nothing is read."""
    if not (isinstance(array, Bare | Plain) or (isinstance(array, types.Array) and array.is_c_contig and array.ndim == 1)):
        raise TypingError(f"a contiguous 1-D array is needed, got {array}")

    def generate(context, builder, signature, args):
        pointer = pointer_to(context, builder, signature, args)
        numbers = [ir.Constant(I32, value) for value in (0, 3, 1)]  # read, into the nearest cache, data
        call_intrinsic(builder, "llvm.prefetch.p0", ir.VoidType(), [builder.bitcast(pointer, ir.IntType(8).as_pointer()), *numbers])
        return context.get_dummy_value()

    return types.void(array, i), generate


# ---------------------------------------------------------------- shuffles inside quarters
@intrinsic
def spread_last(context, x):
    """Repeat the last value of each quarter over its quarter."""

    def generate(context, builder, signature, args):
        undefined = ir.Constant(vector(x.kind), ir.Undefined)
        return builder.shuffle_vector(args[0], undefined, indices([4 * q + 3 for q in range(4) for _ in range(4)]))

    return x(x), generate


@intrinsic
def pair_firsts(context, a, b):
    """Return quarters that begin with the first value of those of `a` and, second, of `b`; behind them lies what `a` has there."""

    def generate(context, builder, signature, args):
        places = [place for q in range(0, WIDTH, 4) for place in (q, WIDTH + q, q + 2, q + 3)]
        return builder.shuffle_vector(args[0], args[1], indices(places))

    return a(a, b), generate


@intrinsic
def lane_index(context, like):
    """Return the numbers of the lanes, in the type of `like`."""
    if not (isinstance(like, LaneType) and like.is_float):
        raise TypingError(f"float lanes needed, got {like}")
    numbers = ir.Constant(vector(like.kind, like.width), [float(lane) for lane in range(like.width)])
    return like(like), lambda context, builder, signature, args: numbers


def lane_constant(values: Sequence[float]) -> Callable:
    """Return a kernel function `f(x)` that gives the sixteen `values` as lanes of the type of `x`."""
    if len(values) != WIDTH:
        raise ValueError(f"lane_constant: {len(values)} values given, {WIDTH} needed")
    values = [float(value) for value in values]

    @intrinsic
    def constant(context, like):
        if not (isinstance(like, LaneType) and like.is_float and like.width == WIDTH):
            raise TypingError(f"{WIDTH} float lanes needed, got {like}")
        return like(like), lambda context, builder, signature, args: ir.Constant(vector(like.kind), values)

    return constant


# ---------------------------------------------------------------- shuffles of two
def shuffle_by(places: Sequence[int]) -> Callable:
    """Return a kernel function `f(a, b)` that picks lanes by number: 0 to 15 are those of `a`, 16 to 31 those of `b`."""
    if len(places) != WIDTH or not all(0 <= place < 2 * WIDTH for place in places):
        raise ValueError(f"shuffle_by: {WIDTH} places from 0 to {2 * WIDTH - 1} needed, got {places}")
    chosen = [int(place) for place in places]

    @intrinsic
    def shuffle(context, a, b):
        if not (isinstance(a, LaneType) and a == b and a.width == WIDTH):
            raise TypingError(f"{WIDTH} lanes of one kind needed twice, got {a} and {b}")
        return a(a, b), lambda context, builder, signature, args: builder.shuffle_vector(args[0], args[1], indices(chosen))

    return shuffle


@intrinsic
def one_lane(context, x, n):
    """Return lane n as a number."""

    def generate(context, builder, signature, args):
        return builder.extract_element(args[0], context.cast(builder, args[1], signature.args[1], types.int32))

    return NUMBA_TYPE[x.kind](x, n), generate
