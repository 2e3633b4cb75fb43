"""Many arrays handed to a function as one pointer.

numba passes a tuple of arrays by value, sixty-odd words for nine arrays, and counts references to each of them, with atomic
instructions that threads fight over. A kernel that calls small functions often lends them its tuple instead: they see the same
attributes through a pointer into the kernel's stack frame, and count nothing, because the kernel's own arguments outlive the call.

An array that is read out of what `lend` gives is still an array: where numba cannot tell that nobody owns it, it calls its
counters, which then find nothing to count. In loops over cells these calls took most of the time. `lend_plain` gives elements
alone.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, Signature, infer_global, signature
from numba.extending import (
    infer_getattr,
    intrinsic,
    lower_builtin,
    lower_getattr_generic,
    models,
    register_model,
)

__all__ = ["lend", "lend_plain", "plain"]


class Lent(types.Type):
    """numba type of a pointer to a named tuple of arrays."""

    def __init__(self, lender: types.NamedTuple | types.NamedUniTuple) -> None:
        self.lender = lender
        super().__init__(name=f"Lent({lender})")


@register_model(Lent)
class _LentModel(models.PrimitiveModel):
    def __init__(self, manager: Any, lent: Lent) -> None:
        super().__init__(manager, lent, manager.lookup(lent.lender).get_value_type().as_pointer())


@intrinsic
def lend(context, arrays):
    """Return a pointer to a named tuple of arrays, with the same attributes; not to be returned or stored by anyone."""
    if not (
        isinstance(arrays, types.NamedTuple | types.NamedUniTuple) and all(isinstance(part, types.Array) for part in arrays.types)
    ):
        raise TypingError(f"a named tuple of arrays needed, got {arrays}")

    def generate(context, builder, signature, args):
        return cgutils.alloca_once_value(builder, unowned(context, builder, arrays, args[0]))

    return Lent(arrays)(arrays), generate


def unowned(context: Any, builder: ir.IRBuilder, kinds: types.BaseTuple, values: ir.Value) -> ir.Value:
    """Return a tuple whose arrays, those of tuples inside it too, have no reference counts."""
    for index, kind in enumerate(kinds.types):
        value = builder.extract_value(values, index)
        if isinstance(kind, types.Array):
            array = context.make_array(kind)(context, builder, value=value)
            array.meminfo = cgutils.get_null_value(array.meminfo.type)
            value = array._getvalue()
        elif isinstance(kind, types.BaseTuple):
            value = unowned(context, builder, kind, value)
        values = builder.insert_value(values, value, index)
    return values


@infer_getattr
class _LentAttributes(AttributeTemplate):
    key = Lent

    def generic_resolve(self, lent: Lent, name: str) -> types.Type | None:
        return lent.lender.types[lent.lender.fields.index(name)] if name in lent.lender.fields else None


@lower_getattr_generic(Lent)
def _load_lent(context: Any, builder: ir.IRBuilder, lent: Lent, pointer: ir.Value, name: str) -> ir.Value:
    return builder.load(cgutils.gep_inbounds(builder, pointer, 0, lent.lender.fields.index(name)))


# ---------------------------------------------------------------- elements alone
class Plain(types.Type):
    """numba type of an array's elements without the array: only single elements are read and written, from 0 on; `len` is known."""

    def __init__(self, dtype: types.Type, ndim: int, mutable: bool) -> None:
        self.dtype, self.ndim, self.mutable = dtype, ndim, mutable
        super().__init__(name=f"Plain({dtype}, {ndim}, {mutable})")

    @classmethod
    def of(cls, array: types.Type) -> Plain:
        """Return the type of an array's elements."""
        if not (isinstance(array, types.Array) and array.is_c_contig and array.ndim in (1, 2)):
            raise TypingError(f"a contiguous array of one or two dimensions needed, got {array}")
        return cls(array.dtype, array.ndim, array.mutable)


@register_model(Plain)
class _PlainModel(models.StructModel):
    def __init__(self, manager: Any, kind: Plain) -> None:
        super().__init__(manager, kind, [("data", types.CPointer(kind.dtype)), ("row", types.intp), ("length", types.intp)])


def _plain_value(context: Any, builder: ir.IRBuilder, kind: types.Array, value: ir.Value) -> ir.Value:
    array = context.make_array(kind)(context, builder, value=value)
    made = cgutils.create_struct_proxy(Plain.of(kind))(context, builder)
    made.data = builder.bitcast(array.data, made.data.type)
    made.row, made.length = builder.extract_value(array.shape, kind.ndim - 1), builder.extract_value(array.shape, 0)
    return made._getvalue()


@intrinsic
def plain(context, array):
    """Return the elements of an array that its holder keeps alive: the same indices, and no reference counts."""
    if isinstance(array, Plain):
        return array(array), lambda context, builder, signature, args: args[0]
    return Plain.of(array)(array), lambda context, builder, signature, args: _plain_value(context, builder, array, args[0])


@intrinsic
def lend_plain(context, arrays):
    """Return a pointer to the elements of a named tuple of arrays, as `lend` does to the arrays themselves."""
    if not isinstance(arrays, types.NamedTuple | types.NamedUniTuple):
        raise TypingError(f"a named tuple of arrays needed, got {arrays}")
    lender = types.NamedTuple([Plain.of(part) for part in arrays.types], arrays.instance_class)

    def generate(context, builder, signature, args):
        value = cgutils.get_null_value(context.get_value_type(lender))
        for index, part in enumerate(arrays.types):
            elements = _plain_value(context, builder, part, builder.extract_value(args[0], index))
            value = builder.insert_value(value, elements, index)
        return cgutils.alloca_once_value(builder, value)

    return Lent(lender)(arrays), generate


def _index_of(array: Plain, index: types.Type) -> types.Type | None:
    if array.ndim == 1:
        return types.intp if isinstance(index, types.Integer) else None
    pair = isinstance(index, types.BaseTuple) and len(index) == 2 and all(isinstance(each, types.Integer) for each in index)
    return types.UniTuple(types.intp, 2) if pair else None


@infer_global(len)
class _PlainLen(AbstractTemplate):
    def generic(self, args: tuple[types.Type, ...], kws: Any) -> Signature | None:
        return signature(types.intp, args[0]) if isinstance(args[0], Plain) else None


@infer_global(operator.getitem)
class _PlainGet(AbstractTemplate):
    def generic(self, args: tuple[types.Type, ...], kws: Any) -> Signature | None:
        array = args[0]
        index = _index_of(array, args[1]) if isinstance(array, Plain) else None
        return signature(array.dtype, array, index) if index is not None else None


@infer_global(operator.setitem)
class _PlainSet(AbstractTemplate):
    def generic(self, args: tuple[types.Type, ...], kws: Any) -> Signature | None:
        array = args[0]
        index = _index_of(array, args[1]) if isinstance(array, Plain) and array.mutable else None
        return signature(types.none, array, index, array.dtype) if index is not None else None


def _address(context: Any, builder: ir.IRBuilder, kind: Plain, value: ir.Value, index: ir.Value) -> ir.Value:
    array = cgutils.create_struct_proxy(kind)(context, builder, value=value)
    if kind.ndim == 2:
        row, column = cgutils.unpack_tuple(builder, index, 2)
        index = builder.add(builder.mul(row, array.row), column)
    return builder.gep(array.data, [index], inbounds=True)


@lower_builtin(len, Plain)
def _get_length(context: Any, builder: ir.IRBuilder, signature: Signature, args: list[ir.Value]) -> ir.Value:
    return cgutils.create_struct_proxy(signature.args[0])(context, builder, value=args[0]).length


@lower_builtin(operator.getitem, Plain, types.Any)
def _get_element(context: Any, builder: ir.IRBuilder, signature: Signature, args: list[ir.Value]) -> ir.Value:
    kind = signature.args[0]
    return context.unpack_value(builder, kind.dtype, _address(context, builder, kind, *args))


@lower_builtin(operator.setitem, Plain, types.Any, types.Any)
def _set_element(context: Any, builder: ir.IRBuilder, signature: Signature, args: list[ir.Value]) -> Any:
    kind = signature.args[0]
    context.pack_value(builder, kind.dtype, args[2], _address(context, builder, kind, args[0], args[1]))
    return context.get_dummy_value()
