"""The two decorators of every kernel, and where their machine code is kept."""

from __future__ import annotations

import gc
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

# libgomp's threads spin between parallel loops: without a bound, one busy neighbour process makes a solve many times slower;
# without any spinning, small solves run at a third of their speed
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

import llvmlite
import numba
from numba.core import event
from numba.extending import overload, register_jitable

from mpm_nodes import compiling
from mpm_nodes.kernels.compile import operators
from mpm_nodes.kernels.compile.kernel_cache import KernelCache
from mpm_nodes.kernels.compile.machine_code import translate_on_demand

F = TypeVar("F", bound=Callable[..., Any])


def cache_root() -> Path:
    """Return the folder that holds the JIT caches of all versions: $MPM_NODES_CACHE or the user's cache folder."""
    chosen = os.environ.get("MPM_NODES_CACHE")
    return Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "mpm_nodes"


def compiler_digest() -> str:
    """Return a digest of the versions that decide what a source compiles to; each file's name holds one of its sources."""
    return hashlib.sha256(f"{numba.__version__} {llvmlite.__version__} {sys.version}".encode()).hexdigest()[:20]


CACHE_FOLDER = cache_root() / f"kernels-{compiler_digest()}"
# omp starts a parallel loop in about a microsecond, tbb in 5 to 70: a substep starts dozens
numba.config.THREADING_LAYER_PRIORITY = ["omp", "tbb", "workqueue"]

# without wrappers for C, which nothing calls and which every caller of a function would compile again
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": False, "no_cfunc_wrapper": True}
# numba compiles a function again for callers of other options: those that functions share with kernels are what kernels have.
# `nogil` says nothing of a function without a wrapper for Python
_SHARED: dict[str, Any] = {name: _OPTIONS[name] for name in ("nogil", "no_cfunc_wrapper")}


class _CollectorAtRest(event.Listener):
    """Keeps Python's garbage collector from running while a kernel is compiled, which takes a tenth less time without it.

    A compiler makes millions of objects that all live until it is done. numba holds a lock while it compiles: no two starts meet.
    """

    def __init__(self) -> None:
        self._depth, self._was_on = 0, False

    def on_start(self, event: Any) -> None:
        """A kernel, or one that it calls, begins to be compiled."""
        if self._depth == 0:
            self._was_on = gc.isenabled()
            gc.disable()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        """It is compiled, or cannot be."""
        self._depth -= 1
        if self._depth == 0 and self._was_on:
            gc.enable()


class _Told(event.Listener):
    """Tells which kernel is compiled: those that are kept on disk, and whatever else somebody waits for."""

    def __init__(self) -> None:
        self._told: list[bool] = []

    def on_start(self, event: Any) -> None:
        """A kernel, or one that it calls, begins to be compiled."""
        dispatcher = event.data["dispatcher"]
        kept = isinstance(dispatcher._cache, KernelCache)
        self._told.append(kept or not self._told)
        if self._told[-1]:
            compiling.begin(dispatcher._cache.label if kept else dispatcher.py_func.__qualname__)

    def on_end(self, event: Any) -> None:
        """It is compiled, or cannot be."""
        if self._told.pop():
            compiling.end()


event.register("numba:compile", _CollectorAtRest())
event.register("numba:compile", _Told())
translate_on_demand()
operators.remember()


def compiled(function: Callable | None = None, *, parallel: bool = False, fastmath: bool = True) -> Callable:
    """Compile a loop over particles or nodes. `fastmath=False` where NaN or infinity must be seen."""

    def decorate(function: Callable) -> Callable:
        return _cached(numba.njit(parallel=parallel, fastmath=fastmath, **_OPTIONS)(function))

    return decorate if function is None else decorate(function)


def part(function: Callable) -> Callable:
    """Compile a function that kernels call and Python cannot: a large one, or the body of a `parallel_for`."""
    return _cached(numba.njit(no_cpython_wrapper=True, **_OPTIONS)(function))


def _cached(dispatcher: Any) -> Any:
    dispatcher._cache = KernelCache(dispatcher.py_func, CACHE_FOLDER)
    return dispatcher


def thread_count() -> int:
    """Return how many threads parallel kernels use now."""
    return numba.get_num_threads()


def most_threads() -> int:
    """Return how many threads parallel kernels can ever use: scratch of each thread is made for so many."""
    return numba.config.NUMBA_NUM_THREADS


inline: Callable[[F], F] = register_jitable(**_SHARED)
"""Marks a pure per-particle function: compiled into kernels (CPU and CUDA), plain Python when called from Python."""

spliced: Callable[[F], F] = register_jitable(**_SHARED, inline="always")
"""As `inline`, for bodies so large that LLVM would leave them as calls: they are put into their caller before LLVM sees it."""

embedded: Callable[[F], F] = register_jitable(**_SHARED, forceinline=True)
"""As `inline`, for bodies so large that LLVM would leave them as calls: it puts them into their callers all the same."""


def overloaded(function: Callable) -> Callable[[F], F]:
    """Say what kernels compile where they call `function`: as `numba.extending.overload`, without wrappers for C."""
    return overload(function, jit_options=_SHARED)
