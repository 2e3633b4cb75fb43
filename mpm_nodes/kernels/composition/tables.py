"""Coefficients that follow the temperature or other attributes: what composed loops call to interpolate them, lane by lane.

Behind a law's n coefficients and the material's viscosity, an array of coefficients may go on with

    rows of the solid, rows of the liquid, and each row:  T_0, T_1, 1 / (T_1 - T_0), m values at T_0, m values at T_1

for the m coefficients that follow the temperature, and the same for each further attribute. Rows join; lanes beyond the first or
the last take its end. A row is chosen by comparison, so that lanes of any width, and numbers, take the same path and no lane reads
memory of its own; both weights are >= 0, so that a value lies between those of its row whatever is rounded.
"""

from __future__ import annotations

from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.arithmetic import broadcast, fma, maximum, minimum, select

__all__ = ["HEAD", "at_row", "held_between", "row_length", "row_value"]

HEAD = 3
"""Numbers of a row before its values."""


def row_length(count: int) -> int:
    """Return how many numbers a row has, for `count` coefficients."""
    return HEAD + 2 * count


@inline
def held_between(x, coefficients, first, last):
    """Return temperatures, or other values, cut at the ends of a table: rows begin at the indices `first` .. `last`."""
    return minimum(maximum(x, broadcast(x, coefficients[first])), broadcast(x, coefficients[last + 1]))


@inline
def at_row(x, coefficients, at):
    """Return which lanes a row, or one behind it, holds, and the weights of its two ends."""
    low, high = broadcast(x, coefficients[at]), broadcast(x, coefficients[at + 1])
    scale = broadcast(x, coefficients[at + 2])
    return x >= low, (high - x) * scale, (x - low) * scale


@inline
def row_value(weights, coefficients, at, other, before):
    """Return a coefficient in the lanes of a row, and `before` in the others; its ends stand at `at` and `other`."""
    inside, low, high = weights
    a, b = broadcast(before, coefficients[at]), broadcast(before, coefficients[other])
    return select(inside, fma(low, a, high * b), before)
