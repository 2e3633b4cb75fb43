"""The disk cache of kernels: one process compiles, the others wait; what cannot be read is compiled again."""

from __future__ import annotations

import gc
import threading
import time

import numba
import numba.extending
import pytest

from mpm_nodes.kernels.compile import jit, kernel_cache
from mpm_nodes.kernels.compile.kernel_cache import KernelCache


def double(x):
    return 2 * x


def compiled(folder):
    """Return `double` with a cache of its own, as a new process would have it."""
    dispatcher = numba.njit(double)
    dispatcher._cache = KernelCache(double, folder)
    return dispatcher


def counts(dispatcher):
    """Return (loaded, compiled) signatures."""
    return sum(dispatcher.stats.cache_hits.values()), sum(dispatcher.stats.cache_misses.values())


def test_each_signature_is_compiled_once_and_stored_apart(tmp_path):
    """The second dispatcher loads both signatures, each with its own type, and no lock is left behind."""
    for expected in ((0, 2), (2, 0)):
        dispatcher = compiled(tmp_path)
        assert (dispatcher(3), dispatcher(1.5)) == (6, 3.0)
        assert counts(dispatcher) == expected
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".kernel", ".kernel"]


def test_a_file_that_was_cut_off_is_compiled_anew(tmp_path):
    """Half a file is not machine code: it is replaced."""
    compiled(tmp_path)(3)
    (path,) = tmp_path.iterdir()
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    dispatcher = compiled(tmp_path)
    assert dispatcher(3) == 6
    assert counts(dispatcher) == (0, 1)
    assert counts_after_use(tmp_path) == (1, 0)


@pytest.mark.parametrize("setting", ["OPT", "SLP_VECTORIZE", "LOOP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT"])
def test_what_was_compiled_with_other_settings_is_not_taken(tmp_path, monkeypatch, setting):
    """NUMBA_OPT=0 in one process, to look for a fault, leaves nothing behind for the next one."""
    compiled(tmp_path)(3)
    monkeypatch.setattr(numba.config, setting, 0 if setting in ("OPT", "LOOP_VECTORIZE") else 1)
    for expected in ((0, 1), (1, 0)):
        dispatcher = compiled(tmp_path)
        assert dispatcher(3) == 6
        assert counts(dispatcher) == expected


def counts_after_use(folder):
    dispatcher = compiled(folder)
    dispatcher(3)
    return counts(dispatcher)


@pytest.mark.skipif(kernel_cache.fcntl is None, reason="needs file locks")
def test_who_needs_a_kernel_that_is_being_compiled_waits_and_loads_it(tmp_path):
    """While another holds the lock nobody compiles; after it has stored the kernel, it is loaded."""
    other = compiled(tmp_path)
    target = other.targetctx
    assert other._cache.load_overload((numba.int64,), target) is None  # from here on the other one compiles
    mine, found = compiled(tmp_path), []
    waiting = threading.Thread(target=lambda: found.append(mine._cache.load_overload((numba.int64,), target)))
    waiting.start()
    time.sleep(0.2)
    assert not found
    plain = numba.njit(double)
    plain(3)
    other._cache.save_overload((numba.int64,), caching(plain).overloads[(numba.int64,)])
    waiting.join(60.0)
    assert found and found[0].signature.return_type == numba.int64


def caching(dispatcher):
    """Return a dispatcher whose machine code can be stored."""
    again = numba.njit(cache=False)(dispatcher.py_func)
    again.compile((numba.int64,))
    return again


@pytest.mark.skipif(kernel_cache.fcntl is None, reason="needs file locks")
def test_a_lock_that_is_never_released_only_costs_time(tmp_path, monkeypatch):
    """After the longest wait a kernel is compiled although its lock is held."""
    monkeypatch.setattr(kernel_cache, "LONGEST_WAIT", 0.1)
    other = compiled(tmp_path)
    other._cache.load_overload((numba.int64,), other.targetctx)
    dispatcher = compiled(tmp_path)
    assert dispatcher(3) == 6


def test_a_folder_that_cannot_be_written_is_only_read(tmp_path):
    """What is there is loaded; what is not is compiled for this process, and nothing is raised."""
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    dispatcher = compiled(blocked / "below")
    assert dispatcher(3) == 6
    assert counts(dispatcher) == (0, 1)


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_rests_while_a_kernel_is_compiled(enabled):
    """It is off while types are inferred, also of callees, and as before afterwards, whether the kernel compiles or not."""
    seen = []

    def asked():
        raise NotImplementedError

    @numba.extending.overload(asked)
    def asked_while_compiling():
        seen.append(gc.isenabled())
        return lambda: 1

    was_on = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        inner = jit.compiled(lambda: asked())
        assert numba.njit(lambda: inner() + asked())() == 2 and gc.isenabled() is enabled
        with pytest.raises(numba.TypingError):
            numba.njit(lambda: asked() + "1")()
        assert gc.isenabled() is enabled and seen and not any(seen)
    finally:
        (gc.enable if was_on else gc.disable)()
