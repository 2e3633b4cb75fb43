"""Loads and stores of one particle's numbers, under the names that those of lanes have."""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.compile.jit import inline


@inline
def load(array, i):
    """Return element `i`."""
    return array[i]


@inline
def store_first(array, i, value, count):
    """Store a number; `count` is above zero."""
    array[i] = value


@inline
def to_double(x):
    """Return a number in double precision."""
    return np.float64(x)
