"""Eigenvalues and eigenvectors of symmetric 3 x 3 matrices, on values of any kind (see `mat3`).

| symbol | meaning |
|---|---|
| M | symmetric matrix, M = U diag(s) U^T |
| U | rotation, its columns are the eigenvectors |
| s | eigenvalues, in no order |
"""

from __future__ import annotations

from mpm_nodes.kernels.algebra import mat3
from mpm_nodes.kernels.algebra.rotations import conjugate, turn
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.arithmetic import absolute, any_lane, const, either, maximum, select

SWEEPS = 4
"""Sweeps of cyclic Jacobi: each squares what is left off the diagonal, and three leave up to 1e-8 of it."""

FEWEST, MOST = 2, 5
"""Sweeps of `rough_eigen`."""


@inline
def _sweep(M, columns):
    """Return [[a, b, c], [b, d, e], [c, e, f]] after the rotations that zero b, c and e in turn, and the turned columns."""
    (a, b, c, d, e, f), (v0, v1, v2) = M, columns
    o = const(a, 0.0)
    q, s, a, d, c, e = conjugate(a, d, b, c, e)
    v0, v1 = turn(q, s, v0, v1)
    q, s, a, f, b, e = conjugate(a, f, c, o, e)
    v0, v2 = turn(q, s, v0, v2)
    q, s, d, f, b, c = conjugate(d, f, e, b, o)
    v1, v2 = turn(q, s, v1, v2)
    return (a, b, c, d, o, f), (v0, v1, v2)


@inline
def _scaled(M):
    """Return a bound of |M|, and the six entries of the upper half over it, a tuple."""
    size = mat3.row_sum_bound((M[0], M[1], M[2], M[1], M[4], M[5], M[2], M[5], M[8]))
    size = maximum(size, const(size, 1e-30))
    k = const(size, 1.0) / size
    return size, (M[0] * k, M[1] * k, M[2] * k, M[4] * k, M[5] * k, M[8] * k)


@inline
def eigen(M):
    """Return U, s with M = U diag(s) U^T: U a rotation, s three eigenvalues in no order.

    Only the upper half of M is read. Fixed sweeps of cyclic Jacobi, so no branch and no special case of repeated eigenvalues;
    |U diag(s) U^T - M| and U^T U - I are a few units in the last place (of |M|).
    """
    size, left = _scaled(M)
    i, o = const(size, 1.0), const(size, 0.0)
    columns = ((i, o, o), (o, i, o), (o, o, i))
    for _ in range(SWEEPS):
        left, columns = _sweep(left, columns)
    return _side_by_side(columns), (size * left[0], size * left[3], size * left[5])


@inline
def _side_by_side(columns):
    """Return the matrix with these columns."""
    v0, v1, v2 = columns
    return v0[0], v1[0], v2[0], v0[1], v1[1], v2[1], v0[2], v1[2], v2[2]


@inline
def _chosen(mask, a, b):
    """Return the vector a where the mask holds, else b."""
    return select(mask, a[0], b[0]), select(mask, a[1], b[1]), select(mask, a[2], b[2])


@inline
def rough_eigen(M, tolerance):
    """Return U, s as `eigen` does for a positive definite M, with fewer sweeps where that is enough.

    What is left off the diagonal of U^T M U is below `tolerance` times the root of the two eigenvalues, which is the error that
    functions of M show. Each lane's result depends on that lane alone: one that needs no further sweep keeps its bits.
    """
    size, left = _scaled(M)
    i, o = const(size, 1.0), const(size, 0.0)
    columns = ((i, o, o), (o, i, o), (o, o, i))
    for _ in range(FEWEST):
        left, columns = _sweep(left, columns)
    square = tolerance * tolerance
    for _ in range(MOST - FEWEST):
        a, b, c, d, _e, f = left
        needs = either(b * b > square * absolute(a * d), c * c > square * absolute(a * f))
        if any_lane(needs):
            (p, q, r, t, _e, u), (w0, w1, w2) = _sweep(left, columns)
            v0, v1, v2 = columns
            a, b, c, d, f = select(needs, p, a), select(needs, q, b), select(needs, r, c), select(needs, t, d), select(needs, u, f)
            left = (a, b, c, d, o, f)
            columns = (_chosen(needs, w0, v0), _chosen(needs, w1, v1), _chosen(needs, w2, v2))
    return _side_by_side(columns), (size * left[0], size * left[3], size * left[5])


@inline
def largest_eigenvalue(M):
    """Return the largest eigenvalue of the symmetric M."""
    _U, s = eigen(M)
    return maximum(maximum(s[0], s[1]), s[2])
