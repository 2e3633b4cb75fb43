"""A function that a kernel calls, and other functions of the kernel too, is compiled once."""

from collections import Counter

import pytest
from numba.core import event

from mpm_nodes.kernels.compile.jit import inline, overloaded, part, spliced


@inline
def _squared(x):
    return x * x


@inline
def _from_inline(x):
    return _squared(x) + 1.0


@spliced
def _from_spliced(x):
    return _squared(x) + 2.0


def _chosen(x):
    raise NotImplementedError


@overloaded(_chosen)
def _compile_chosen(x):
    return lambda x: _squared(x) + 3.0


def _all_of(k, values):
    x = values[k]
    values[k] = _squared(x) + _from_inline(x) + _from_spliced(x) + _chosen(x)


class Compiled(event.Listener):
    """Counts how often functions are compiled, by their names."""

    def __init__(self):
        self.counts = Counter()

    def on_start(self, event):
        self.counts[event.data["dispatcher"].py_func.__name__] += 1

    def on_end(self, event):
        pass


@pytest.fixture
def counts():
    listener = Compiled()
    with event.install_listener("numba:compile", listener):
        yield listener.counts


def test_a_function_is_compiled_once_for_a_kernel_and_its_functions(counts):
    """numba compiles again where the options of its caller differ, as those of a part and of a function did."""
    kernel = part(_all_of)
    kernel._cache.disable()
    kernel.compile("void(int64, float32[::1])")
    assert counts["_all_of"] == 1
    assert counts["_squared"] == 1
