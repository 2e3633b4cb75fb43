"""Singular values, polar decomposition and its differential of 3 x 3 matrices, on values of any kind (see `mat3`).

| symbol | meaning |
|---|---|
| F | deformation gradient, F = U diag(s) V^T = R S |
| U, V | rotations; columns u0 u1 u2, v0 v1 v2 |
| s | singular values, descending; the last one carries the sign of det F |
| R, S | rotation and symmetric stretch |
| B | F V, columns b0 b1 b2 |
"""

from __future__ import annotations

from mpm_nodes.kernels.algebra import mat3
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.arithmetic import absolute, all_lanes, both, const, copysign, maximum, select, sqrt

POLAR_STEPS = 4
"""Newton steps of `rotation` before the test of convergence; one more follows."""

JACOBI_SWEEPS = 3
"""Two-sided sweeps of `svd`; one one-sided sweep follows, which sets the final accuracy."""


@inline
def _jacobi(app, aqq, apq):
    """Return tangent, cosine and sine of the rotation that zeroes `apq`."""
    one = const(apq, 1.0)
    d = const(apq, 0.5) * (aqq - app)
    # the bound keeps 0/0 away; squares that underflow only make the angle suboptimal
    h = maximum(absolute(d) + sqrt(d * d + apq * apq), const(apq, 1e-37))
    t = copysign(one, d) * apq / h
    c = one / sqrt(t * t + one)
    return t, c, t * c


@inline
def turn(c, s, p, q):
    """Rotate the column pair (p, q)."""
    return (
        (c * p[0] - s * q[0], c * p[1] - s * q[1], c * p[2] - s * q[2]),
        (s * p[0] + c * q[0], s * p[1] + c * q[1], s * p[2] + c * q[2]),
    )


@inline
def _orthogonalise(bp, bq, vp, vq):
    """Turn two columns of B = F V until they are orthogonal (one-sided Jacobi): accurate for small columns too."""
    _t, c, s = _jacobi(mat3.dot(bp, bp), mat3.dot(bq, bq), mat3.dot(bp, bq))
    bp, bq = turn(c, s, bp, bq)
    vp, vq = turn(c, s, vp, vq)
    return bp, bq, vp, vq


@inline
def _descend(bp, bq, vp, vq):
    """Exchange two columns where the second is longer; the sign flip keeps det V = +1."""
    m = mat3.dot(bp, bp) < mat3.dot(bq, bq)
    return (
        (select(m, bq[0], bp[0]), select(m, bq[1], bp[1]), select(m, bq[2], bp[2])),
        (select(m, -bp[0], bq[0]), select(m, -bp[1], bq[1]), select(m, -bp[2], bq[2])),
        (select(m, vq[0], vp[0]), select(m, vq[1], vp[1]), select(m, vq[2], vp[2])),
        (select(m, -vp[0], vq[0]), select(m, -vp[1], vq[1]), select(m, -vp[2], vq[2])),
    )


@inline
def conjugate(app, aqq, apq, apr, aqr):
    """Return cosine, sine and the entries of the symmetric matrix after the rotation that zeroes `apq`.

    Entries below 1e-18 count as zero here: absolute accuracy is enough before the one-sided sweep.
    """
    half = const(apq, 0.5)
    d = half * (aqq - app)
    h = sqrt(d * d + apq * apq)
    u = maximum(absolute(d) + h, const(apq, 1e-18))
    k = const(apq, 1.0) / sqrt(u * u + apq * apq)
    side = copysign(const(apq, 1.0), d)
    c, s = u * k, side * apq * k
    m, h = half * (app + aqq), side * h
    return c, s, m - h, m + h, c * apr - s * aqr, s * apr + c * aqr


@inline
def _right_vectors(a, b, c, d, e, f):
    """Return the columns that nearly diagonalise [[a, b, c], [b, d, e], [c, e, f]]: fixed sweeps of cyclic Jacobi."""
    i, o = const(a, 1.0), const(a, 0.0)
    v0, v1, v2 = (i, o, o), (o, i, o), (o, o, i)
    for _sweep in range(JACOBI_SWEEPS):
        q, s, a, d, c, e = conjugate(a, d, b, c, e)
        v0, v1 = turn(q, s, v0, v1)
        q, s, a, f, b, e = conjugate(a, f, c, o, e)
        v0, v2 = turn(q, s, v0, v2)
        q, s, d, f, b, c = conjugate(d, f, e, b, o)
        v1, v2 = turn(q, s, v1, v2)
        e = o
    return v0, v1, v2


@inline
def _unit(v, fallback):
    """Return v / |v|, or the unit vector `fallback` where v vanishes (columns are of order one or noise)."""
    n2 = mat3.dot(v, v)
    ok = n2 > const(n2, 1e-30)
    k = const(n2, 1.0) / sqrt(select(ok, n2, const(n2, 1.0)))
    return (select(ok, k * v[0], fallback[0]), select(ok, k * v[1], fallback[1]), select(ok, k * v[2], fallback[2]))


@inline
def _perpendicular(n):
    """Return a unit vector orthogonal to the unit vector n, without branches (Duff et al. 2017)."""
    one = const(n[0], 1.0)
    s = copysign(one, n[2])
    a = -one / (s + n[2])
    return (one + s * n[0] * n[0] * a, s * n[0] * n[1] * a, -s * n[0])


@inline
def _without(v, n):
    """Return v minus its part along the unit vector n."""
    k = mat3.dot(v, n)
    return (v[0] - k * n[0], v[1] - k * n[1], v[2] - k * n[2])


@inline
def svd(F):
    """Return U, s, V with F = U diag(s) V^T, det U = det V = +1, s[0] >= s[1] >= |s[2]|.

    Rotation variant: a negative determinant of F shows as the sign of s[2]. Works for singular, repeated and zero F;
    |U diag(s) V^T - F| is a few units in the last place of |F|, like U^T U - I and V^T V - I. After McAdams 2011
    (Jacobi on F^T F for V), with a one-sided sweep that repairs the small singular values, and Gram-Schmidt for U.
    """
    size = maximum(
        maximum(maximum(absolute(F[0]), absolute(F[1])), maximum(absolute(F[2]), absolute(F[3]))),
        maximum(maximum(absolute(F[4]), absolute(F[5])), maximum(absolute(F[6]), absolute(F[7]))),
    )
    size = maximum(maximum(size, absolute(F[8])), const(size, 1e-30))
    M = mat3.scale(F, const(size, 1.0) / size)
    c0, c1, c2 = (M[0], M[3], M[6]), (M[1], M[4], M[7]), (M[2], M[5], M[8])
    C = mat3.gram((*c0, *c1, *c2))
    v0, v1, v2 = _right_vectors(C[0], C[1], C[2], C[4], C[5], C[8])
    b0, b1, b2 = mat3.matvec(M, v0), mat3.matvec(M, v1), mat3.matvec(M, v2)
    b0, b1, v0, v1 = _orthogonalise(b0, b1, v0, v1)
    b0, b2, v0, v2 = _orthogonalise(b0, b2, v0, v2)
    b1, b2, v1, v2 = _orthogonalise(b1, b2, v1, v2)
    b0, b1, v0, v1 = _descend(b0, b1, v0, v1)
    b0, b2, v0, v2 = _descend(b0, b2, v0, v2)
    b1, b2, v1, v2 = _descend(b1, b2, v1, v2)
    u0 = _unit(b0, (const(size, 1.0), const(size, 0.0), const(size, 0.0)))
    # twice: the first projection of a column that is rounding noise leaves noise along u0
    u1 = _unit(_without(_without(b1, u0), u0), _perpendicular(u0))
    u2 = mat3.cross(u0, u1)
    s = (size * mat3.dot(u0, b0), size * mat3.dot(u1, b1), size * mat3.dot(u2, b2))
    return (
        (u0[0], u1[0], u2[0], u0[1], u1[1], u2[1], u0[2], u1[2], u2[2]),
        s,
        (v0[0], v1[0], v2[0], v0[1], v1[1], v2[1], v0[2], v1[2], v2[2]),
    )


@inline
def rotation(F):
    """Return the rotation R of F = R S (from `svd` where det F <= 0).

    Newton's iteration X <- (X + X^-T) / 2 of fixed length (Higham 1986); where the last but one step was larger than
    1e-4 (strains beyond about 0.5) the singular vectors give R. Each lane's result depends on that lane alone.
    """
    half, one = const(F[0], 0.5), const(F[0], 1.0)
    X, Y = F, F
    for _ in range(POLAR_STEPS):
        Y = X
        C = mat3.cofactor(X)
        X = mat3.scale(mat3.add_scaled(X, one / (X[0] * C[0] + X[1] * C[1] + X[2] * C[2]), C), half)
    change = mat3.subtract(X, Y)
    good = both(mat3.double_dot(change, change) < const(one, 1e-8), mat3.det(F) > const(one, 0.0))
    # the error is squared by each step, so one more after a change below 1e-4 is exact to rounding
    C = mat3.cofactor(X)
    X = mat3.scale(mat3.add_scaled(X, one / (X[0] * C[0] + X[1] * C[1] + X[2] * C[2]), C), half)
    if not all_lanes(good):
        U, _s, V = svd(F)
        X = mat3.choose(good, X, mat3.matmul_nt(U, V))
    return X


@inline
def polar(F):
    """Return R, S with F = R S, R a rotation and S symmetric (indefinite where det F < 0)."""
    R = rotation(F)
    return R, mat3.symmetric(mat3.matmul_tn(R, F))


@inline
def polar_differential(R, S, dF):
    """Return dR along dF at F = R S: R^T dR = skew(w) with (tr(S) I - S) w = vee(R^T dF - dF^T R).

    Singular only where two singular values sum to zero; there w is bounded by a small denominator.
    """
    x, y, z = spin(S, mat3.matmul_tn(R, dF))
    o = const(x, 0.0)
    return mat3.matmul(R, (o, -z, y, z, o, -x, -y, x, o))


@inline
def spin(S, M):
    """Return w of (tr(S) I - S) w = vee(M - M^T), S symmetric: how fast F = S turns where it changes by M."""
    r = (M[7] - M[5], M[2] - M[6], M[3] - M[1])
    K = mat3.add_diagonal(mat3.scale(S, const(r[0], -1.0)), mat3.trace(S))
    size = absolute(S[0]) + absolute(S[4]) + absolute(S[8])
    d = mat3.det(K)
    d = copysign(maximum(absolute(d), const(d, 1e-12) * size * size * size + const(d, 1e-30)), d)
    w = mat3.matvec(mat3.cofactor(K), r)
    k = const(d, 1.0) / d
    return k * w[0], k * w[1], k * w[2]
