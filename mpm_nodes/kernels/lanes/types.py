"""The numba type of lanes, sixteen unless a loop is composed for another width, and how it stands in LLVM."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.registry import cpu_target
from numba.extending import models, register_model

WIDTH = 16
FLAGS = ("contract", "nsz")
ELEMENT = {
    "f32": ir.FloatType(),
    "f64": ir.DoubleType(),
    "i32": ir.IntType(32),
    "i64": ir.IntType(64),
    "b1": ir.IntType(1),
}
NUMBA_TYPE = {"f32": types.float32, "f64": types.float64, "i32": types.int32, "i64": types.int64}
KIND_OF = {numba_type: kind for kind, numba_type in NUMBA_TYPE.items()}
INT_OF = {"f32": "i32", "f64": "i64"}
I32 = ir.IntType(32)


class LaneType(types.Type):
    """numba type of `width` values of one kind: "f32", "f64", "i32", "i64" or "b1" (mask)."""

    def __init__(self, kind: str, width: int = WIDTH) -> None:
        self.kind, self.width = kind, width
        super().__init__(name=f"Lanes{width}_{kind}")

    @property
    def mask(self) -> LaneType:
        """The mask of as many lanes."""
        return LaneType("b1", self.width)

    @property
    def is_float(self) -> bool:
        """Whether the lanes are floating point."""
        return self.kind in INT_OF


@register_model(LaneType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, lanes: LaneType) -> None:
        super().__init__(manager, lanes, vector(lanes.kind, lanes.width))


class Bare(types.Type):
    """numba type of an array's data without the array: in tuples it costs no counting of references."""

    def __init__(self, dtype: types.Type) -> None:
        self.dtype = dtype
        super().__init__(name=f"Bare({dtype})")


@register_model(Bare)
class _BareModel(models.PrimitiveModel):
    def __init__(self, manager: Any, bare: Bare) -> None:
        super().__init__(manager, bare, ELEMENT[KIND_OF[bare.dtype]].as_pointer())


LANES = {kind: LaneType(kind) for kind in ELEMENT}
MASK = LANES["b1"]
"""Of sixteen lanes."""


def vector(kind: str, width: int = WIDTH) -> ir.VectorType:
    """Return the LLVM type of `width` elements of a kind."""
    return ir.VectorType(ELEMENT[kind], width)


def indices(values: Sequence[int]) -> ir.Constant:
    """Return a constant vector of 32-bit integers."""
    return ir.Constant(ir.VectorType(I32, len(values)), list(values))


def splat(builder: ir.IRBuilder, scalar: ir.Value, kind: str, width: int = WIDTH) -> ir.Value:
    """Return a vector with one scalar in all lanes."""
    undefined = ir.Constant(vector(kind, width), ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(I32, 0))
    return builder.shuffle_vector(first, undefined, indices([0] * width))


def call_intrinsic(builder: ir.IRBuilder, name: str, result: ir.Type, args: Sequence[ir.Value]) -> ir.Value:
    """Call an LLVM intrinsic."""
    signature = ir.FunctionType(result, [value.type for value in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, name), args)


def suffix(kind: str, width: int = WIDTH) -> str:
    """Return how LLVM intrinsics name `width` elements of a kind."""
    return f"v{width}{kind.replace('b1', 'i1')}"


@functools.cache
def whole_registers() -> bool:
    """Return whether sixteen lanes of single precision are one register of the processor that code is made for, as with AVX-512.

    Such a processor has 32 of them, and masks. Elsewhere lanes take two registers or four, and what is kept in them soon spills.
    """
    return "zmm" in _assembly("%b = fadd <16 x float> %a, %a")


@functools.cache
def fused() -> bool:
    """Return whether the processor that code is made for multiplies and adds in one instruction, as all but SSE do."""
    fmuladd = "declare <16 x float> @llvm.fmuladd.v16f32(<16 x float>, <16 x float>, <16 x float>)"
    arguments = ", ".join(["<16 x float> %a"] * 3)
    made = _assembly(f"%b = call <16 x float> @llvm.fmuladd.v16f32({arguments})", fmuladd)
    return "vfmadd" in made or "fmla" in made


def _assembly(line: str, declared: str = "") -> str:
    """Return the machine code of a function of sixteen lanes %a whose result is %b."""
    function = f"define <16 x float> @one(<16 x float> %a) {{\n {line}\n ret <16 x float> %b\n}}\n{declared}"
    machine: Any = cpu_target.target_context.codegen()
    return machine._tm.emit_assembly(llvm.parse_assembly(function))
