"""Lanes from scattered places, lanes in single precision, and masks as bits: what culling needs beside `lane_memory`."""

from __future__ import annotations

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from mpm_nodes.kernels.compile.lend import Plain
from mpm_nodes.kernels.lanes.memory import pointer_to
from mpm_nodes.kernels.lanes.types import I32, LANES, MASK, WIDTH, LaneType, call_intrinsic, splat, suffix, vector

_I64 = ir.IntType(64)
_KIND = {types.float32: "f32", types.int32: "i32"}


@intrinsic
def gather_lanes(context, array, index):
    """Load array[index] of every lane; the array holds float32 or int32, the caller keeps the int32 lanes `index` inside it."""
    kind = _KIND.get(getattr(array, "dtype", None))
    held = isinstance(array, Plain) or (isinstance(array, types.Array) and array.is_c_contig)
    if kind is None or not (held and array.ndim == 1) or index != LANES["i32"]:
        raise TypingError(f"a contiguous 1-D array of float32 or int32 and int32 lanes needed, got {array} and {index}")

    def generate(context, builder, signature, args):
        data = pointer_to(context, builder, types.void(array, types.intp), (args[0], _I64(0)))
        first = splat(builder, builder.ptrtoint(data, _I64), "i64")
        places = builder.sext(args[1], vector("i64"))
        addresses = builder.add(first, builder.shl(places, ir.Constant(vector("i64"), [2] * WIDTH)))  # 2^2 bytes each
        pointers = builder.inttoptr(addresses, ir.VectorType(ir.IntType(8).as_pointer(), WIDTH))
        every = ir.Constant(vector("b1"), [True] * WIDTH)
        name = f"llvm.masked.gather.{suffix(kind)}.v{WIDTH}p0"
        return call_intrinsic(
            builder, name, vector(kind), [pointers, ir.Constant(I32, 4), every, ir.Constant(vector(kind), ir.Undefined)]
        )

    return LANES[kind](array, index), generate


@intrinsic
def to_single(context, x):
    """Return float lanes rounded to single precision."""
    if not (isinstance(x, LaneType) and x.is_float):
        raise TypingError(f"float lanes needed, got {x}")

    def generate(context, builder, signature, args):
        return args[0] if x.kind == "f32" else builder.fptrunc(args[0], vector("f32"))

    return LANES["f32"](x), generate


@intrinsic
def mask_bits(context, mask):
    """Return a mask as an integer: bit i is lane i."""
    if mask != MASK:
        raise TypingError(f"a mask needed, got {mask}")

    def generate(context, builder, signature, args):
        return builder.zext(builder.bitcast(args[0], ir.IntType(WIDTH)), _I64)

    return types.int64(mask), generate
