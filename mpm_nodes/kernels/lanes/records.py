"""Records of sixteen values a particle: four quarters of four, made from lanes over sixteen particles and turned into such.

Where sixteen lanes are one register, a transpose has all sixteen at once. Elsewhere that is 32 registers of 16, or 64 of 32, and
most of them go to the stack: there each quarter is transposed by itself, inside pieces of four lanes, and stored piece by piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from mpm_nodes.kernels.lanes.memory import ELEMENT_BYTES, checked_kind, pointer_to
from mpm_nodes.kernels.lanes.types import FLAGS, LANES, WIDTH, LaneType, indices, vector, whole_registers

__all__ = ["load_records", "quarter_sums", "store_records"]

_QUARTER = 4
_RECORDS = range(0, WIDTH, _QUARTER)


@intrinsic
def store_records(context, array, i, rows):
    """Store a tuple of sixteen lanes as sixteen records: value k of particle j goes to element `i + 16 j + k`."""
    if not (isinstance(rows, types.UniTuple) and rows.count == WIDTH and isinstance(rows.dtype, LaneType)):
        raise TypingError(f"a tuple of {WIDTH} lanes of one kind needed, got {rows}")
    kind = checked_kind(array, (rows.dtype.kind,))

    def generate(context, builder, signature, args):
        first = pointer_to(context, builder, signature, args)
        lanes = cgutils.unpack_tuple(builder, args[2], WIDTH)
        if whole_registers():
            for particle, record in enumerate(_transposed(builder, lanes, (1, 2, 4, 8))):
                _store(builder, record, first, WIDTH * particle, kind)
            return context.get_dummy_value()
        for quarter in _RECORDS:
            for k, pieces in enumerate(_transposed(builder, lanes[quarter : quarter + _QUARTER], (1, 2))):
                for begin in _RECORDS:
                    piece = builder.shuffle_vector(pieces, pieces, indices(range(begin, begin + _QUARTER)))
                    _store(builder, piece, first, WIDTH * (begin + k) + quarter, kind)
        return context.get_dummy_value()

    return types.void(array, i, rows), generate


@intrinsic
def load_records(context, array, i):
    """Return the sixteen values of sixteen records from element `i` on, each as lanes over the records."""
    kind = checked_kind(array, ("f32", "f64"))

    def generate(context, builder, signature, args):
        first = pointer_to(context, builder, signature, args)
        if whole_registers():
            records = [_load(builder, first, WIDTH * particle, kind, WIDTH) for particle in range(WIDTH)]
            return context.make_tuple(builder, signature.return_type, _transposed(builder, records, (1, 2, 4, 8)))
        found = []
        for quarter in _RECORDS:
            rows = []
            for k in range(_QUARTER):
                pieces = [_load(builder, first, WIDTH * (begin + k) + quarter, kind, _QUARTER) for begin in _RECORDS]
                halves = [builder.shuffle_vector(*pieces[at : at + 2], indices(range(8))) for at in (0, 2)]
                rows.append(builder.shuffle_vector(*halves, indices(range(WIDTH))))
            found += _transposed(builder, rows, (1, 2))
        return context.make_tuple(builder, signature.return_type, found)

    return types.UniTuple(LANES[kind], WIDTH)(array, i), generate


@intrinsic
def quarter_sums(context, a, b, c, d):
    """Add up the four quarters of each argument; quarter q of the result belongs to argument q."""

    def generate(context, builder, signature, args):
        def pair(x, y):
            even, odd = (indices([4 * q + x for q in quarters for x in range(4)]) for quarters in ((0, 2, 4, 6), (1, 3, 5, 7)))
            return builder.fadd(builder.shuffle_vector(x, y, even), builder.shuffle_vector(x, y, odd), flags=FLAGS)

        def half(x):  # the first and third quarter, the second and fourth: registers that are there
            low, high = indices(range(8)), indices(range(8, 16))
            return builder.fadd(builder.shuffle_vector(x, x, low), builder.shuffle_vector(x, x, high), flags=FLAGS)

        def pair_of_halves(x, y):
            low, high = indices([0, 1, 2, 3, 8, 9, 10, 11]), indices([4, 5, 6, 7, 12, 13, 14, 15])
            return builder.fadd(builder.shuffle_vector(x, y, low), builder.shuffle_vector(x, y, high), flags=FLAGS)

        if whole_registers():
            return pair(pair(args[0], args[1]), pair(args[2], args[3]))
        first, second, third, fourth = (half(argument) for argument in args)
        halves = pair_of_halves(first, second), pair_of_halves(third, fourth)
        return builder.shuffle_vector(*halves, indices(range(WIDTH)))

    return a(a, b, c, d), generate


def _transposed(builder: ir.IRBuilder, rows: Sequence[ir.Value], steps: Sequence[int]) -> list[ir.Value]:
    """Return the transpose of sixteen rows, or of four inside each piece of four lanes.

    In round k, off-diagonal blocks of 2^k lanes change places between rows that lie 2^k apart.
    """
    rows = list(rows)
    for step in steps:
        low = [lane if not lane & step else lane - step + WIDTH for lane in range(WIDTH)]
        high = [lane + step if not lane & step else lane + WIDTH for lane in range(WIDTH)]
        for i in range(len(rows)):
            if not i & step:
                a, b = rows[i], rows[i + step]
                rows[i] = builder.shuffle_vector(a, b, indices(low))
                rows[i + step] = builder.shuffle_vector(a, b, indices(high))
    return rows


def _load(builder: ir.IRBuilder, first: ir.Value, element: int, kind: str, width: int) -> ir.Value:
    at = builder.gep(first, [ir.Constant(ir.IntType(64), element)])
    lanes: Any = vector(kind, width)
    return builder.load(builder.bitcast(at, lanes.as_pointer()), align=ELEMENT_BYTES[kind], typ=lanes)


def _store(builder: ir.IRBuilder, value: ir.Value, first: ir.Value, element: int, kind: str) -> None:
    at = builder.gep(first, [ir.Constant(ir.IntType(64), element)])
    builder.store(value, builder.bitcast(at, value.type.as_pointer()), align=ELEMENT_BYTES[kind])
