"""Functions that are only linked into others: no machine code of their own, and stored without it."""

from __future__ import annotations

import numba
import pytest

from mpm_nodes.kernels.kernel_cache import KernelCache
from mpm_nodes.kernels.linked import LinkOnly, linked_overload


def square(x):
    return x * x


def caller(folder):
    """Return a linked function with a cache of its own, as a new process would have it, and a kernel that calls it."""
    inner = numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=LinkOnly)(square)
    inner._cache = KernelCache(square, folder)
    return inner, numba.njit(lambda x: inner(x) + 1)


def test_a_linked_function_is_stored_and_loaded_without_machine_code(tmp_path):
    """The first caller compiles it, the second loads it; both compute with it, and it has no address."""
    for expected in ((0, 1), (1, 0)):
        inner, outer = caller(tmp_path)
        assert (outer(3), type(outer(3))) == (10, int)
        assert (sum(inner.stats.cache_hits.values()), sum(inner.stats.cache_misses.values())) == expected
        (compiled,) = inner.overloads.values()
        assert compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name) == 0


def plus(x, y):
    return x + y


@linked_overload(plus)
def _choose(x, y):
    if isinstance(x, numba.types.Integer):
        return lambda x, y: x + y
    return None


def test_a_linked_overload_is_chosen_by_type():
    """Kernels call what was chosen, with any names of arguments, and what was refused is a typing error."""
    kernel = numba.njit(lambda x: plus(x, y=2))
    assert kernel(3) == 5
    with pytest.raises(numba.TypingError):
        kernel(1.5)
