"""What people hear while kernels are compiled: which one, how many of how many, from the first second and a half on."""

from __future__ import annotations

import io
import threading

import numba
import numba.extending
import pytest

from mpm_nodes import compiling
from mpm_nodes.graph.reports.events import ConsoleLines, JobLines
from mpm_nodes.kernels.compile import jit, kernel_cache
from mpm_nodes.kernels.compile.kernel_cache import KernelCache

LONGEST = 60.0
"""Seconds after which a test that waits for a word fails."""


@pytest.fixture
def slow():
    """A function for kernels, and calls that are made while one that calls it is compiled."""
    calls = []

    def asked():
        raise NotImplementedError

    @numba.extending.overload(asked)
    def while_compiling():
        for call in calls:
            call()
        return lambda: 1

    return asked, calls


def kernel(folder, body):
    """Return a kernel with a cache of its own."""
    dispatcher = numba.njit(body)
    dispatcher._cache = KernelCache(body, folder)
    return dispatcher


def heard(words, every=0.0):
    """Return what sets an event when it hears the first word, and the event."""
    said = threading.Event()

    def say(now):
        words.append(now)
        said.set()

    return compiling.told(say, every), said


def test_a_kernel_is_told_while_it_is_compiled(slow, tmp_path):
    """Its name, its number and what is left; then it counts, and nothing is told any more."""
    (asked, calls), words = slow, []
    block, said = heard(words)
    calls.append(lambda: said.wait(LONGEST))
    compiling.expect(3)
    try:
        with block as done:
            assert kernel(tmp_path, lambda: asked())() == 1
            assert said.is_set() and done() == 1
    finally:
        compiling.expect(None)
    assert words[0].message.startswith("compiling 1 of about 3 kernels (0 s): ") and "test_compiling" in words[0].kernel
    assert not compiling._held


def test_what_is_loaded_does_not_count(tmp_path):
    """It was compiled before."""
    with compiling.told(lambda now: None) as done:
        assert [(kernel(tmp_path, ten)(), done()) for _ in range(2)] == [(10, 1), (10, 1)]


def test_a_kernel_that_cannot_be_compiled_is_forgotten(slow, tmp_path):
    """What failed is not told for ever."""
    asked = slow[0]
    with pytest.raises(numba.TypingError):
        kernel(tmp_path, lambda: asked() + "1")()
    assert not compiling._held


def test_more_kernels_than_expected_are_told_without_a_total():
    """A number that was wrong is not held on to; those of helping processes count."""
    words = []
    block, said = heard(words)
    compiling.expect(2)
    with block:
        compiling.add(5)
        compiling.begin("x" * 100)
        assert said.wait(LONGEST)
        compiling.end()
    compiling.expect(None)
    assert words[0].message == f"compiling kernel 6 (0 s): {'x' * 37}..."


@pytest.mark.skipif(kernel_cache.fcntl is None, reason="needs file locks")
def test_waiting_for_another_process_is_told(tmp_path, monkeypatch):
    """It compiles the same kernel: that is what this one waits for."""
    other, mine, words = kernel(tmp_path, ten), kernel(tmp_path, ten), []
    assert other._cache.load_overload((), other.targetctx) is None  # from here on the other one compiles
    block, said = heard(words)
    with block:
        waiting = threading.Thread(target=mine._cache.load_overload, args=((), mine.targetctx))
        waiting.start()
        assert said.wait(LONGEST)
        for path in tuple(other._cache._locks):
            other._cache._unlock(path)
        waiting.join(LONGEST)
    assert words[0].kernel.endswith("test_compiling.ten") and not compiling._held


def ten():
    """Stand for a kernel."""
    return 10


def test_a_generated_loop_is_called_by_what_it_does(tmp_path):
    """Its module's name holds a digest that tells people nothing."""
    cache = KernelCache(ten, tmp_path)
    cache._stem = lambda: "mpm_nodes_loop_snow_compute_stress_0123456789abcdef.run"
    assert cache.label == "snow_compute_stress"


def test_every_kernel_of_the_package_is_told():
    """`compiled` and `part` keep what they compile in the cache that is told of."""
    for made in (jit.compiled(ten), jit.part(ten)):
        assert isinstance(made._cache, KernelCache)


@pytest.mark.parametrize("tty", [False, True])
def test_terminals_and_logs_show_it(tty):
    """A line of its own in a log, one that is written again on a terminal."""
    stream = io.StringIO()
    event = {"event": "compiling", "message": "compiling 2 of about 3 kernels (4 s): ten"}
    ConsoleLines(stream, tty)(event)
    assert stream.getvalue() == ("\rcompiling 2 of about 3 kernels (4 s): ten\x1b[K" if tty else f"{event['message']}\n")
    JobLines(stream)(event)
    assert stream.getvalue().endswith("openjd_status: compiling 2 of about 3 kernels (4 s): ten\n")


@pytest.mark.parametrize(
    "facts, text",
    [
        ((0, None, 2.4), "compiling kernel 1 (2 s): ten"),
        ((9, 30, 4.0), "compiling 10 of about 30 kernels (4 s): ten"),
        ((10, 30, 4.0), "compiling 11 of about 30 kernels (4 s, some 8 s left): ten"),
        ((10, 30, 4.0, True), "compiling 11 of at most 30 kernels (4 s): ten"),
    ],
)
def test_words_for_people(facts, text):
    """The pace of a few kernels, or of a total that may be too large, says nothing of what is left."""
    assert compiling.Compiling("ten", *facts).message == text
