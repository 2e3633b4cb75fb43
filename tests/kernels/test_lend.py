"""Arrays lent as their elements alone: the same reads and writes, nothing counted, and what does not fit is refused."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numba.core import types
from numba.core.errors import TypingError

from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.lend import Lent, Plain, lend_plain, plain
from mpm_nodes.kernels.compile.parallel import parallel_for


class Lender(NamedTuple):
    """Arrays of several kinds."""

    table: Any
    values: Any
    flags: Any


@part
def _sum_at(k, lent, result):
    total = 0.0
    for column in range(3):
        values = lent.values if column < 2 else lent.flags
        total += lent.table[k, column] * values[k]
    result[k] = total


@compiled(fastmath=False)
def _sums(lent, result):
    parallel_for(_sum_at, len(result), (lend_plain(lent), plain(result)))


def _lender(count: int = 5) -> Lender:
    random = np.random.default_rng(1)
    return Lender(random.integers(0, 9, (count, 3)).astype(np.int32), random.normal(size=count), random.normal(size=count))


def test_elements_are_those_of_the_arrays():
    """Tables and rows of numbers, chosen among at run time, are read where they stand, and results written."""
    lent, result = _lender(), np.empty(5)
    _sums(lent, result)
    np.testing.assert_allclose(result, (lent.table[:, 0] + lent.table[:, 1]) * lent.values + lent.table[:, 2] * lent.flags)


@compiled(fastmath=False)
def _lengths(lent):
    elements = plain(lent.values)
    return len(lend_plain(lent).table), len(elements)


def test_the_number_of_elements_is_known():
    """Rows of a table, and numbers of a row."""
    assert _lengths(_lender(7)) == (7, 7)


def _counts(of: Any) -> bool:
    """Return whether the loop counts references; compiled here, since a kernel from the cache has no text."""
    lender = types.NamedTuple([of(numba.typeof(array)) for array in _lender()], Lender)
    signature = types.int64, Lent(lender), of(numba.typeof(np.empty(5)))
    fresh = numba.njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)(_sum_at.py_func)
    fresh.compile(signature)
    return re.search(r"NRT_(incref|decref)", fresh.inspect_asm(signature)) is not None


def test_a_loop_over_them_counts_no_references():
    """What made loops over cells slow: calls that count who owns an array."""
    assert _counts(lambda array: array) and not _counts(Plain.of)


@pytest.mark.parametrize("bad", ["strided", "read-only", "cube"])
def test_what_does_not_fit_is_refused(bad):
    """Strided arrays, those of three dimensions, and writes to what is read-only do not compile."""
    result = {"strided": np.empty(10)[::2], "read-only": np.empty(5), "cube": np.empty((2, 2, 2))}[bad]
    result.flags.writeable = bad != "read-only"
    with pytest.raises(TypingError):
        _sums(_lender(), result)
