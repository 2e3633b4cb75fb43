"""Many arrays handed to a function as one pointer.

numba passes a tuple of arrays by value, sixty-odd words for nine arrays, and counts references to each of them, with atomic
instructions that threads fight over. A kernel that calls small functions often lends them its tuple instead: they see the same
attributes through a pointer into the kernel's stack frame, and count nothing, because the kernel's own arguments outlive the call.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, models, register_model


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
        unowned = args[0]
        for index, part in enumerate(arrays.types):
            array = context.make_array(part)(context, builder, value=builder.extract_value(unowned, index))
            array.meminfo = cgutils.get_null_value(array.meminfo.type)  # whoever loads it counts no references
            unowned = builder.insert_value(unowned, array._getvalue(), index)
        return cgutils.alloca_once_value(builder, unowned)

    return Lent(arrays)(arrays), generate


@infer_getattr
class _LentAttributes(AttributeTemplate):
    key = Lent

    def generic_resolve(self, lent: Lent, name: str) -> types.Type | None:
        return lent.lender.types[lent.lender.fields.index(name)] if name in lent.lender.fields else None


@lower_getattr_generic(Lent)
def _load_lent(context: Any, builder: ir.IRBuilder, lent: Lent, pointer: ir.Value, name: str) -> ir.Value:
    return builder.load(cgutils.gep_inbounds(builder, pointer, 0, lent.lender.fields.index(name)))
