"""Machine code is made once, of what is called, and of nothing else; results do not depend on it."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.extending import overload

from mpm_nodes.kernels.compile import machine_code
from mpm_nodes.kernels.compile.jit import compiled, inline, overloaded, part
from mpm_nodes.kernels.compile.machine_code import LinkedLibrary


@inline
def _twice(x):
    return 2.0 * x


@part
def _add_twice(values, at, x):
    values[at] += _twice(x)


@compiled
def add_twice(values, x):
    for at in range(values.shape[0]):
        _add_twice(values, at, x)


def library_of(dispatcher):
    (found,) = dispatcher.overloads.values()
    return found.library


def wrapped(library):
    """Return the names of the wrappers that a library defines, for Python and for C."""
    return [f.name for f in library.get_defined_functions() if f.name.startswith(("_ZN7cpython", "cfunc."))]


def test_only_what_python_calls_is_translated(tmp_path):
    for dispatcher in (add_twice, _add_twice):
        dispatcher._cache._folder = tmp_path
    values = np.zeros(3)
    add_twice(values, 1.5)
    assert np.array_equal(values, [3.0, 3.0, 3.0])
    kernel, called = library_of(add_twice), library_of(_add_twice)
    assert isinstance(kernel, LinkedLibrary) and kernel._translated
    assert isinstance(called, LinkedLibrary) and not called._translated
    assert not called._codegen._engine.is_symbol_defined("no such function")


def test_an_address_that_is_asked_for_is_translated_then():
    @part
    def half(x):
        return 0.5 * x

    compiled_half = half.get_compile_result(numba.float64(numba.float64))
    library = compiled_half.library
    assert not library._translated
    assert library.get_pointer_to_function("nobody") == 0 and not library._translated
    assert library.get_pointer_to_function(compiled_half.fndesc.llvm_func_name) != 0 and library._translated


def test_what_overloads_compile_has_no_wrappers():
    def choose(x):
        raise NotImplementedError

    seen = []

    @overloaded(choose)
    def _choose(x):
        def implementation(x):
            return x + 1.0

        return implementation

    @numba.njit  # `compiled` would take it from the cache in a second run, without what it was linked with
    def call(x):
        return choose(x)

    assert call(1.0) == 2.0
    for library in library_of(call)._linking_libraries:
        seen.append(library.name)
        assert not wrapped(library), library.name
    assert any("implementation" in name for name in seen)


@pytest.mark.parametrize("further", [numba.njit, part], ids=["njit", "part"])
def test_functions_with_python_constants_and_errors_keep_theirs(further, capfd):
    """They reach them by the address of their environment, which is written when there is machine code to write it into."""

    @further
    def check(x):
        if x < 0.0:
            raise ValueError("below zero", x)
        print("seen", x)
        return x

    @numba.njit
    def outer(x):
        return check(x) + 1.0

    assert outer(2.0) == 3.0
    assert "seen 2.0" in capfd.readouterr().out
    with pytest.raises(ValueError, match="below zero") as raised:
        outer(-1.0)
    assert raised.value.args == ("below zero", -1.0)


def test_functions_that_call_themselves_and_functions_as_values_work():
    @numba.njit
    def factorial(n):
        return 1 if n < 2 else n * factorial(n - 1)

    @numba.njit
    def power(x, n):
        return 1.0 if n == 0 else x * power(x, n - 1)

    @numba.njit
    def apply(functions, x):
        total = 0.0
        for function in functions:
            total += function(x)
        return total

    @numba.njit(numba.float64(numba.float64))
    def square(x):
        return x * x

    @numba.njit(numba.float64(numba.float64))
    def cube(x):
        return x * x * x

    assert factorial(5) == 120 and power(2.0, 3) == 8.0
    assert apply((square, cube), 2.0) == 12.0


def test_an_overload_of_the_users_still_works():
    def shout(x):
        raise NotImplementedError

    @overload(shout)
    def _shout(x):
        return lambda x: x * 3

    @numba.njit
    def call(x):
        return shout(x)

    assert call(2) == 6


def test_a_kernel_is_loaded_with_what_it_needs(tmp_path):
    """What is stored of a part has no machine code in it; a kernel that links it is compiled from that."""
    from mpm_nodes.kernels.compile.kernel_cache import KernelCache

    def half(x):
        return 0.5 * x

    def call_half():
        """Return what a kernel gets of a part that looks in the cache, and the part."""
        called = part(half)
        called._cache = KernelCache(half, tmp_path)

        @numba.njit
        def call(x):
            return called(x)

        return call(3.0), called.stats

    result, stats = call_half()
    assert result == 1.5 and stats.cache_misses and not stats.cache_hits
    result, stats = call_half()
    assert result == 1.5 and stats.cache_hits and not stats.cache_misses


# ---------------------------------------------------------------- called by address
@compiled
def add_four_times(values, x):
    add_twice(values, x)
    add_twice(values, x)


NEW_PROCESS = """
import sys
import numpy as np
from mpm_nodes.kernels.compile import jit, machine_code
machine_code.LARGE = 1
import test_machine_code as tests
values = np.zeros(3)
tests.add_four_times(values, 1.5)
print(values.tolist(), [sum(each.stats.cache_hits.values()) for each in (tests.add_four_times, tests.add_twice, tests._add_twice)])
"""


def test_large_functions_are_called_by_their_address_from_the_disk_cache_too(tmp_path):
    """Their callers only name them. One that is stored needs them alone: its file is loaded without theirs, and they come first."""

    def said():
        options = {"cwd": Path(__file__).parent, "env": {**os.environ, "MPM_NODES_CACHE": str(tmp_path)}}
        return subprocess.run([sys.executable, "-c", NEW_PROCESS], **options, capture_output=True, text=True, check=True).stdout

    assert said().split("]") == ["[6.0, 6.0, 6.0", " [0, 0, 0", "\n"]
    assert said().split("]") == ["[6.0, 6.0, 6.0", " [1, 1, 1", "\n"]
    (stored,) = tmp_path.glob("kernels-*/*._add_twice-*")
    stored.unlink()
    assert said().split("]") == ["[6.0, 6.0, 6.0", " [1, 1, 0", "\n"]
    assert stored.exists()


def test_a_large_function_is_compiled_once(tmp_path, monkeypatch):
    """Neither its caller nor the caller's caller holds its code."""
    monkeypatch.setattr(machine_code, "LARGE", 1)
    callers = (add_four_times, add_twice, _add_twice)
    for dispatcher in callers:
        monkeypatch.setattr(dispatcher._cache, "_folder", tmp_path)
    values = np.zeros(3, np.float32)
    add_four_times(values, np.float32(1.5))
    assert np.array_equal(values, [6.0, 6.0, 6.0])
    libraries = [list(dispatcher.overloads.values())[-1].library for dispatcher in callers]
    for library, dispatcher in zip(libraries, callers, strict=True):
        own = [f.name for f in library.get_defined_functions() if f.name.startswith("_ZN17test_machine_code")]
        assert len(own) == 1 and dispatcher.__name__ in own[0]
