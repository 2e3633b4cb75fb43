"""Loops shared among threads: every index once, for any number of threads and of calls."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from numba import get_thread_id
from numba.core.errors import TypingError

from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.parallel import parallel_for


@part
def _count(k, first, pair, factor, counts):
    counts[k] += first + pair[1] * factor * k


@compiled(fastmath=False)
def count_all(count, counts):
    parallel_for(_count, count, (1, (0, 2), 0.5, counts))


@part
def _who(k, threads):
    threads[k] = get_thread_id()


@compiled(fastmath=False)
def ask_by_default(count, threads):
    parallel_for(_who, count, (threads,))


@compiled(fastmath=False)
def ask_few(count, threads, few):
    parallel_for(_who, count, (threads,), few)


@part
def _returns(k, counts):
    return counts[k]


@compiled(fastmath=False)
def wrong(counts):
    parallel_for(_returns, 3, (counts,))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 1000])
@pytest.mark.parametrize("threads", [1, 2])
def test_every_index_is_called_once(count, threads):
    """Entry k holds what one call with k adds, and entries past the end nothing."""
    if threads > numba.config.NUMBA_NUM_THREADS:
        pytest.skip("needs two threads")
    before = numba.get_num_threads()
    numba.set_num_threads(threads)
    try:
        counts = np.zeros(count + 5)
        count_all(count, counts)
    finally:
        numba.set_num_threads(before)
    expected = np.where(np.arange(count + 5) < count, 1.0 + np.arange(count + 5), 0.0)
    assert (counts == expected).all()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shares", [[0, 0], [0, 7], [0, 2, 7], [0, 0, 7, 7], [0, 1, 3, 3, 6, 7], [3, 5, 7]])
def test_shares_are_called_from_their_first_index_to_their_last(shares, threads):
    """As many shares as threads, fewer or more, empty ones too: every index between the ends once, and no other."""
    if threads > numba.config.NUMBA_NUM_THREADS:
        pytest.skip("needs two threads")
    before = numba.get_num_threads()
    numba.set_num_threads(threads)
    try:
        counts = np.zeros(9)
        count_all(np.array(shares), counts)
    finally:
        numba.set_num_threads(before)
    index = np.arange(9)
    assert (counts == np.where((index >= shares[0]) & (index < shares[-1]), 1.0 + index, 0.0)).all()


def asked(count, few=None, then=0):
    """Return the threads that call each index, where both may; those of a next loop with `then` indices, if that is given."""
    before = numba.get_num_threads()
    numba.set_num_threads(2)
    try:
        calls = count if isinstance(count, int) else int(count[-1])
        threads = np.full(calls, -1, np.int64)
        ask_by_default(count, threads) if few is None else ask_few(count, threads, few)
        if then:
            threads = np.full(then, -1, np.int64)
            ask_by_default(then, threads)
    finally:
        numba.set_num_threads(before)
    return threads.tolist()


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="needs two threads")
def test_few_calls_wake_no_other_thread():
    """One call, or as many as the kernel calls few, are the caller's own; one more is shared, by shares too."""
    assert asked(1) == [0] and asked(np.array([0, 0, 1])) == [0]
    assert asked(5, few=9, then=2) == [0, 1]
    assert asked(2) == [0, 1] and asked(np.array([0, 1, 2])) == [0, 1]
    assert asked(5, few=5) == [0] * 5 and asked(np.array([0, 2, 5]), few=5) == [0] * 5
    assert asked(6, few=5) == [0] * 3 + [1] * 3 and asked(np.array([0, 2, 6]), few=5) == [0, 0, 1, 1, 1, 1]


def test_a_body_that_returns_something_is_refused():
    """There is nowhere for a result to go."""
    with pytest.raises(TypingError, match="returns something"):
        wrong(np.zeros(3))
