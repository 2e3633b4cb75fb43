"""What composed kernels name besides their fragments. What writes them is not among it: an edit there compiles nothing again."""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.arithmetic import const, hmax, select

LOCAL_ROWS = 16
"""Rows of the scratch of each thread: a velocity gradient and a stress."""


@inline
def seen(value, inside):
    """Return the lanes that count in a reduction: a comparison with NaN is false, and what is not a number counts as huge."""
    huge = const(value, 3e38)
    return select(inside, select(value < huge, value, huge), const(value, 0.0))


@inline
def whole(value):
    """Return the largest lane; infinity for what `seen` took as huge."""
    largest = hmax(value)
    return np.inf if largest > 2.9e38 else np.float64(largest)


@inline
def own_viscosity(coefficients, place):
    """Return the material's own viscosity [Pa s], the number behind the law's coefficients; callers may leave it out."""
    return coefficients[place] if coefficients.size > place else 0.0
