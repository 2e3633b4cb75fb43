"""Remembered types of operators: what numba's own templates say, asked once."""

from __future__ import annotations

import itertools
import operator

import numba.cpython.unicode  # noqa: F401 - numba knows how to repeat text only when something has loaded it
import numpy as np
import pytest
from numba import njit
from numba.core import types
from numba.core.errors import NumbaError
from numba.core.registry import cpu_target

from mpm_nodes.kernels.compile.operators import OPERATORS, Remembered
from mpm_nodes.kernels.lanes.types import LANES

SCALARS = (types.boolean, types.int32, types.uint64, types.float32, types.IntegerLiteral(2))
HOLDERS = (types.Array(types.float32, 1, "C"), types.UniTuple(types.int64, 2))
KINDS = (*SCALARS, *HOLDERS, types.unicode_type, LANES["f32"])
INPLACE = ("iadd", "isub", "imul", "itruediv")


def without_memory(function):
    own = [each for each in function.templates if not issubclass(each, Remembered)]
    other = types.Function(tuple(own)) if len(own) > 1 else types.Function(own[0])
    assert len(own) < len(function.templates)
    return other


@pytest.mark.parametrize("called", [*OPERATORS, bool], ids=lambda each: each.__name__)
def test_it_says_what_others_say(called):
    """With and without what is remembered the types are the same, the first time and later; what is refused stays refused."""
    context = cpu_target.typing_context
    context.refresh()
    function = context.resolve_value_type(called)
    plain = without_memory(function)

    def asked(function, arguments):
        try:
            return function.get_call_type(context, arguments, {})
        except NumbaError:
            return None

    count = 1 if called in (bool, operator.neg, operator.not_) else 2
    kinds = [SCALARS if called.__name__ in INPLACE else KINDS] * count  # numba cannot be asked to add in place to all others
    if called is operator.setitem:
        kinds = [HOLDERS, (*SCALARS[1:3], types.slice2_type), SCALARS]
    for arguments in itertools.product(*kinds):
        expected = asked(plain, arguments)
        for _ in range(2):
            assert asked(function, arguments) == expected, arguments


def test_what_numba_compiles_as_a_function_is_not_remembered():
    """Its code hangs on how its caller is compiled."""
    context = cpu_target.typing_context
    context.refresh()
    function = context.resolve_value_type(operator.mul)
    texts, numbers = (types.unicode_type, types.int64), (types.int64, types.int64)
    (memory,) = (each for each in function.templates if issubclass(each, Remembered))
    for arguments in (texts, numbers):
        assert function.get_call_type(context, arguments, {}) is not None
    assert memory.known[texts] is None
    assert memory.known[numbers] == types.int64(*numbers)


def test_kernels_do_with_it_what_python_does():
    """A sum of everything: scalars, arrays, tuples."""

    @njit
    def all_at_once(a, b, values, pair):
        values[1] = a + b * values[0] - a // b
        return bool(a) and values[1] > pair[0], values[1], pair[1] % 3, -a << 2

    values = np.array([1.5, 0.0])
    assert all_at_once(7, 2, values, (3, 5)) == (True, 7 + 2 * 1.5 - 3, 2, -28)
