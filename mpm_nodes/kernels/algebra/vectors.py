"""Vectors of blocks: sums, copies and dot products, a pass over memory each, the same bits for any number of threads.

A vector is a flat float64 array of blocks of 256 values (64 nodes of four values, or 256 cells); what lies behind the last block is
not touched. A dot product is summed value by value within a block, and the blocks' sums in order.
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.parallel import FEW, parallel_for

__all__ = ["BLOCK", "BlockVectors", "combine", "copy", "dots", "scale", "step_along"]

BLOCK = 256
"""Values of a block."""


class BlockVectors:
    """The arithmetic of vectors of `count` blocks, as `krylov` needs it."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._sums = np.empty(max(count, 1))

    @classmethod
    def of_size(cls, size: int) -> BlockVectors:
        """Return the arithmetic of vectors with at least `size` values; those behind must be zero."""
        return cls(-(-size // BLOCK))

    def new(self) -> np.ndarray:
        """Return a vector of zeros."""
        return np.zeros(BLOCK * self.count)

    def clear(self, x: np.ndarray) -> None:
        """x = 0."""
        x[: BLOCK * self.count] = 0.0

    def copy(self, x: np.ndarray, result: np.ndarray) -> None:
        """Write x to `result`."""
        copy(x, result, self.count)

    def combine(self, a: float, x: np.ndarray, b: float, y: np.ndarray, result: np.ndarray) -> None:
        """Write a x + b y to `result`, which may be x or y."""
        combine(a, x, b, y, result, self.count)

    def step_along(self, a: float, p: np.ndarray, q: np.ndarray, x: np.ndarray, r: np.ndarray) -> None:
        """x += a p and r -= a q."""
        step_along(a, p, q, x, r, self.count)

    def dot(self, x: np.ndarray, y: np.ndarray) -> float:
        """Return x.y."""
        dots(x, y, self.count, self._sums)
        return float(self._sums[: self.count].sum())


@part
def _combine_at(g, a, x, b, y, result):
    for n in range(256 * g, 256 * g + 256):
        result[n] = a * x[n] + b * y[n]


@compiled(fastmath=False)
def combine(a, x, b, y, result, count):
    """Write a x + b y to `result`, which may be x or y."""
    parallel_for(_combine_at, count, (a, x, b, y, result), FEW)


@part
def _copy_at(g, x, result):
    for n in range(256 * g, 256 * g + 256):
        result[n] = x[n]


@compiled(fastmath=False)
def copy(x, result, count):
    """Write x to `result`, in its float type."""
    parallel_for(_copy_at, count, (x, result), FEW)


@part
def _scale_at(g, a, x, result):
    for n in range(256 * g, 256 * g + 256):
        result[n] = a * x[n]


@compiled(fastmath=False)
def scale(a, x, result, count):
    """Write a x to `result`."""
    parallel_for(_scale_at, count, (a, x, result), FEW)


@part
def _step_along_at(g, a, p, q, x, r):
    for n in range(256 * g, 256 * g + 256):
        x[n] += a * p[n]
        r[n] -= a * q[n]


@compiled(fastmath=False)
def step_along(a, p, q, x, r, count):
    """x += a p and r -= a q."""
    parallel_for(_step_along_at, count, (a, p, q, x, r), FEW)


@part
def _dots_at(g, x, y, sums):
    total = 0.0
    for n in range(256 * g, 256 * g + 256):
        total += x[n] * y[n]
    sums[g] = total


@compiled(fastmath=False)
def dots(x, y, count, sums):
    """Write the parts of x.y of every grid block."""
    parallel_for(_dots_at, count, (x, y, sums), FEW)
