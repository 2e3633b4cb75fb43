"""Loops shared among threads: every index once, for any number of threads and of calls."""

from __future__ import annotations

import numba
import numpy as np
import pytest
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


def test_a_body_that_returns_something_is_refused():
    """There is nowhere for a result to go."""
    with pytest.raises(TypingError, match="returns something"):
        wrong(np.zeros(3))
