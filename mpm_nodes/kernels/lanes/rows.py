"""Rows of sixteen particles: the values of an attribute, loaded and stored at once.

An attribute of n rows is a flat array, row k of particle i at [k * stride + i].
"""

from __future__ import annotations

from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.memory import load, prefetch, store, store_first, to_double
from mpm_nodes.kernels.lanes.types import WIDTH


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
def store_rows1(rows, stride, i, value, count):
    """Store a number of the first `count` of sixteen particles, of all where there are more; so do the next ones."""
    if count >= WIDTH:
        store(rows, i, value)
    else:
        store_first(rows, i, value, count)


@inline
def store_rows3(rows, stride, i, v, count):
    """Store a vector."""
    if count >= WIDTH:
        store(rows, i, v[0])
        store(rows, stride + i, v[1])
        store(rows, 2 * stride + i, v[2])
    else:
        store_first(rows, i, v[0], count)
        store_first(rows, stride + i, v[1], count)
        store_first(rows, 2 * stride + i, v[2], count)


@inline
def store_rows6(rows, stride, i, p, count):
    """Store a symmetric matrix."""
    if count >= WIDTH:
        store(rows, i, p[0])
        store(rows, stride + i, p[1])
        store(rows, 2 * stride + i, p[2])
        store(rows, 3 * stride + i, p[3])
        store(rows, 4 * stride + i, p[4])
        store(rows, 5 * stride + i, p[5])
    else:
        store_first(rows, i, p[0], count)
        store_first(rows, stride + i, p[1], count)
        store_first(rows, 2 * stride + i, p[2], count)
        store_first(rows, 3 * stride + i, p[3], count)
        store_first(rows, 4 * stride + i, p[4], count)
        store_first(rows, 5 * stride + i, p[5], count)


@inline
def store_rows9(rows, stride, i, M, count):
    """Store a matrix."""
    if count >= WIDTH:
        store(rows, i, M[0])
        store(rows, stride + i, M[1])
        store(rows, 2 * stride + i, M[2])
        store(rows, 3 * stride + i, M[3])
        store(rows, 4 * stride + i, M[4])
        store(rows, 5 * stride + i, M[5])
        store(rows, 6 * stride + i, M[6])
        store(rows, 7 * stride + i, M[7])
        store(rows, 8 * stride + i, M[8])
    else:
        store_first(rows, i, M[0], count)
        store_first(rows, stride + i, M[1], count)
        store_first(rows, 2 * stride + i, M[2], count)
        store_first(rows, 3 * stride + i, M[3], count)
        store_first(rows, 4 * stride + i, M[4], count)
        store_first(rows, 5 * stride + i, M[5], count)
        store_first(rows, 6 * stride + i, M[6], count)
        store_first(rows, 7 * stride + i, M[7], count)
        store_first(rows, 8 * stride + i, M[8], count)


@inline
def prefetch_rows(rows, count, stride, i, ahead):
    """Ask for the cache lines of `count` rows of particle i + ahead, by addresses that the loads of particle i have too."""
    for row in range(count):
        prefetch(rows, row * stride + i + ahead)
