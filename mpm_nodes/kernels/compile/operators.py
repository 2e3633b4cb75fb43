"""Types of operators' results, remembered: numba asks up to thirty templates for each operator of each function.

What is remembered is what those templates said, so results are the same. Only operators whose code does not depend on how the
caller is compiled are remembered: those with a `lower_builtin`, not those that numba compiles as functions. `==` and `!=` are not
among them: of two literals numba makes one constant.
"""

from __future__ import annotations

import operator
from types import MappingProxyType
from typing import Any, ClassVar

from numba.core import types
from numba.core.errors import NumbaError
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global

OPERATORS = tuple(
    getattr(operator, name)
    for name in (
        *("add", "sub", "mul", "truediv", "floordiv", "mod", "neg", "lshift", "rshift", "and_", "or_", "not_"),
        *("iadd", "isub", "imul", "itruediv", "lt", "le", "gt", "ge", "getitem", "setitem"),
    )
)


class Remembered(AbstractTemplate):
    """A template for one operator that answers with what others said before."""

    metadata = MappingProxyType({"target": "cpu"})  # templates for one target are asked before those for any
    known: ClassVar[dict[tuple[types.Type, ...], Signature | None]]

    def generic(self, args: tuple[types.Type, ...], kws: Any) -> Signature | None:
        """Return the signature for some types of arguments, None where the other templates are to be asked."""
        if kws:
            return None
        if args not in self.known:
            self.known[args] = None  # this template has nothing to say while the others are asked
            function = self.context.resolve_value_type(self.key)
            try:
                found = function.get_call_type(self.context, args, {})
            except NumbaError:
                return None
            if found is not None and function.get_impl_key(found) is self.key:
                self.known[args] = found
        return self.known[args]


def remember() -> None:
    """Let numba ask for what is remembered first; called once, before other templates for this processor are registered."""
    for each in (*OPERATORS, bool):
        infer_global(each, types.Function(type("RememberedOperator", (Remembered,), {"key": each, "known": {}})))
