"""Rows of sixteen particles: the values of an attribute, loaded at once.

An attribute of n rows is a flat array, row k of particle i at [k * stride + i].
"""

from __future__ import annotations

from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.memory import load, prefetch, to_double


@inline
def load_rows3(rows, stride, i):
    """Load a vector."""
    return load(rows, i), load(rows, stride + i), load(rows, 2 * stride + i)


@inline
def load_rows6(rows, stride, i):
    """Load a symmetric matrix: xx xy xz yy yz zz."""
    return (
        load(rows, i),
        load(rows, stride + i),
        load(rows, 2 * stride + i),
        load(rows, 3 * stride + i),
        load(rows, 4 * stride + i),
        load(rows, 5 * stride + i),
    )


@inline
def load_rows9(rows, stride, i):
    """Load a matrix, row-major."""
    return (
        load(rows, i),
        load(rows, stride + i),
        load(rows, 2 * stride + i),
        load(rows, 3 * stride + i),
        load(rows, 4 * stride + i),
        load(rows, 5 * stride + i),
        load(rows, 6 * stride + i),
        load(rows, 7 * stride + i),
        load(rows, 8 * stride + i),
    )


@inline
def to_double3(v):
    """Widen a vector to double precision."""
    return to_double(v[0]), to_double(v[1]), to_double(v[2])


@inline
def to_double6(p):
    """Widen a symmetric matrix."""
    return to_double(p[0]), to_double(p[1]), to_double(p[2]), to_double(p[3]), to_double(p[4]), to_double(p[5])


@inline
def to_double9(M):
    """Widen a matrix."""
    a, b, c = to_double3(M[:3]), to_double3(M[3:6]), to_double3(M[6:])
    return a[0], a[1], a[2], b[0], b[1], b[2], c[0], c[1], c[2]


@inline
def prefetch_rows(rows, count, stride, i, ahead):
    """Ask for the cache lines of `count` rows of particle i + ahead, by addresses that the loads of particle i have too."""
    for row in range(count):
        prefetch(rows, row * stride + i + ahead)
