"""What this machine can do at this moment: memory bandwidth and arithmetic, by kernels compiled like those of a solve.

    python benchmarks/calibrate.py                      # as many threads as `mpm-nodes bench` takes: two
    python benchmarks/calibrate.py --threads 1

What a speed stands beside that `mpm-nodes bench` shows: run both at the same time of a shared machine.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import prange

from mpm_nodes.bench.threads import available_threads, set_threads
from mpm_nodes.kernels.compile.jit import compiled
from mpm_nodes.kernels.lanes.arithmetic import fma
from mpm_nodes.kernels.lanes.memory import load, store
from mpm_nodes.kernels.lanes.types import WIDTH

ELEMENTS = 16 << 20
"""Of each of the triad's three arrays: 64 MB in float32, more than the caches hold."""
ROUNDS = 500_000
REPEATS = 7
APART = 16 * WIDTH
"""Distance of two threads' values: factor, summand, twelve starts of chains, the result."""


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, default=min(2, available_threads()))
    args = parser.parse_args(arguments)
    set_threads(args.threads)
    bandwidth, arithmetic = calibration(args.threads).values()
    print(f"{args.threads} threads: {bandwidth:.0f} GB/s (a = b + s c), {arithmetic:.0f} Gflop/s (fused multiply-adds)")
    return 0


def calibration(threads: int) -> dict[str, float]:
    """Return the bandwidth [GB/s] of a = b + s c, 12 bytes an element, and the rate of fused multiply-adds [Gflop/s].

    Medians of several; float32; `threads` is what numba is set to.
    """
    triad, few, many = _kernels()
    a, b, c = (np.empty(ELEMENTS, np.float32) for _ in range(3))
    for array in (a, b, c):
        array.fill(1.0)
    lanes = np.full(APART * threads, 0.5, np.float32)
    bandwidth = 12e-9 * ELEMENTS / _median(lambda: triad(a, b, c, np.float32(0.5)))
    rates = [
        2e-9 * WIDTH * chains * ROUNDS * threads / _median(functools.partial(multiply_add, lanes, threads, ROUNDS))
        for chains, multiply_add in ((6, few), (12, many))
    ]
    return {"triad_gigabytes_per_second": bandwidth, "fma_gigaflops": max(rates)}


def _median(call: Callable[[], Any]) -> float:
    """Return the median time of a call [s], after two that do not count."""
    times = []
    for _ in range(REPEATS + 2):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times[2:])


@functools.cache
def _kernels() -> tuple[Callable, Callable, Callable]:
    """Return the triad, and chains of multiply-adds that stay in registers: six fit AVX2, twelve feed two AVX-512 units."""

    @compiled(parallel=True)
    def triad(a, b, c, s):
        for i in prange(a.size):
            a[i] = b[i] + s * c[i]

    @compiled(parallel=True)
    def six_chains(lanes, threads, rounds):
        for thread in prange(threads):
            at = APART * thread
            f, s = load(lanes, at), load(lanes, at + WIDTH)
            a, b, c = load(lanes, at + 2 * WIDTH), load(lanes, at + 3 * WIDTH), load(lanes, at + 4 * WIDTH)
            d, e, g = load(lanes, at + 5 * WIDTH), load(lanes, at + 6 * WIDTH), load(lanes, at + 7 * WIDTH)
            for _ in range(rounds):
                a, b, c = fma(a, f, s), fma(b, f, s), fma(c, f, s)
                d, e, g = fma(d, f, s), fma(e, f, s), fma(g, f, s)
            store(lanes, at + 14 * WIDTH, a + b + c + d + e + g)

    @compiled(parallel=True)
    def twelve_chains(lanes, threads, rounds):
        for thread in prange(threads):
            at = APART * thread
            f, s = load(lanes, at), load(lanes, at + WIDTH)
            a0, b0, c0 = load(lanes, at + 2 * WIDTH), load(lanes, at + 3 * WIDTH), load(lanes, at + 4 * WIDTH)
            d0, e0, g0 = load(lanes, at + 5 * WIDTH), load(lanes, at + 6 * WIDTH), load(lanes, at + 7 * WIDTH)
            a1, b1, c1 = load(lanes, at + 8 * WIDTH), load(lanes, at + 9 * WIDTH), load(lanes, at + 10 * WIDTH)
            d1, e1, g1 = load(lanes, at + 11 * WIDTH), load(lanes, at + 12 * WIDTH), load(lanes, at + 13 * WIDTH)
            for _ in range(rounds):
                a0, b0, c0 = fma(a0, f, s), fma(b0, f, s), fma(c0, f, s)
                d0, e0, g0 = fma(d0, f, s), fma(e0, f, s), fma(g0, f, s)
                a1, b1, c1 = fma(a1, f, s), fma(b1, f, s), fma(c1, f, s)
                d1, e1, g1 = fma(d1, f, s), fma(e1, f, s), fma(g1, f, s)
            store(lanes, at + 14 * WIDTH, a0 + b0 + c0 + d0 + e0 + g0 + a1 + b1 + c1 + d1 + e1 + g1)

    return triad, six_chains, twelve_chains


if __name__ == "__main__":
    sys.exit(main())
