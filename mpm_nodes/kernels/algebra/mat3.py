"""3 x 3 matrix algebra on tuples: the arithmetic of every constitutive law.

A matrix is a tuple of nine values, row-major: (M00, M01, M02, M10, ...); a vector is a tuple of three. A value is a
Python float, a NumPy array (then the tuple holds one column per component), a numba scalar or sixteen lanes, so all
functions are pure and branch-free, except that `any_lane` guards slow paths which every lane may take safely.

| symbol | meaning |
|---|---|
| M, N | any matrix |
| F | deformation gradient |
| A | incremental displacement gradient dt grad v |
| R(A) | guarded step I + A, always of positive determinant in exact arithmetic |
"""

from __future__ import annotations

from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.arithmetic import absolute, any_lane, both, const, either, maximum, negate, select
from mpm_nodes.kernels.lanes.exponentials import exp, log

HALVINGS = 8
"""Largest number of halvings in `safe_step`."""


# ---------------------------------------------------------------- algebra
@inline
def zero(x):
    """Return the zero matrix in the type of the value `x`."""
    o = const(x, 0.0)
    return (o, o, o, o, o, o, o, o, o)


@inline
def identity(x):
    """Return the unit matrix in the type of the value `x`."""
    i, o = const(x, 1.0), const(x, 0.0)
    return (i, o, o, o, i, o, o, o, i)


@inline
def diagonal(a, b, c):
    """Return diag(a, b, c)."""
    o = const(a, 0.0)
    return (a, o, o, o, b, o, o, o, c)


@inline
def add(M, N):
    """Return M + N."""
    return (M[0] + N[0], M[1] + N[1], M[2] + N[2], M[3] + N[3], M[4] + N[4], M[5] + N[5], M[6] + N[6], M[7] + N[7], M[8] + N[8])


@inline
def subtract(M, N):
    """Return M - N."""
    return (M[0] - N[0], M[1] - N[1], M[2] - N[2], M[3] - N[3], M[4] - N[4], M[5] - N[5], M[6] - N[6], M[7] - N[7], M[8] - N[8])


@inline
def scale(M, a):
    """Return a M."""
    return (a * M[0], a * M[1], a * M[2], a * M[3], a * M[4], a * M[5], a * M[6], a * M[7], a * M[8])


@inline
def add_scaled(M, a, N):
    """Return M + a N."""
    return (
        M[0] + a * N[0],
        M[1] + a * N[1],
        M[2] + a * N[2],
        M[3] + a * N[3],
        M[4] + a * N[4],
        M[5] + a * N[5],
        M[6] + a * N[6],
        M[7] + a * N[7],
        M[8] + a * N[8],
    )


@inline
def add_diagonal(M, a):
    """Return M + a I."""
    return (M[0] + a, M[1], M[2], M[3], M[4] + a, M[5], M[6], M[7], M[8] + a)


@inline
def choose(mask, M, N):
    """Return M where `mask` holds, else N."""
    return (
        select(mask, M[0], N[0]),
        select(mask, M[1], N[1]),
        select(mask, M[2], N[2]),
        select(mask, M[3], N[3]),
        select(mask, M[4], N[4]),
        select(mask, M[5], N[5]),
        select(mask, M[6], N[6]),
        select(mask, M[7], N[7]),
        select(mask, M[8], N[8]),
    )


@inline
def transpose(M):
    """Return M^T."""
    return (M[0], M[3], M[6], M[1], M[4], M[7], M[2], M[5], M[8])


@inline
def matvec(M, v):
    """Return M v."""
    return (
        M[0] * v[0] + M[1] * v[1] + M[2] * v[2],
        M[3] * v[0] + M[4] * v[1] + M[5] * v[2],
        M[6] * v[0] + M[7] * v[1] + M[8] * v[2],
    )


@inline
def matmul(M, N):
    """Return M N."""
    return (
        M[0] * N[0] + M[1] * N[3] + M[2] * N[6],
        M[0] * N[1] + M[1] * N[4] + M[2] * N[7],
        M[0] * N[2] + M[1] * N[5] + M[2] * N[8],
        M[3] * N[0] + M[4] * N[3] + M[5] * N[6],
        M[3] * N[1] + M[4] * N[4] + M[5] * N[7],
        M[3] * N[2] + M[4] * N[5] + M[5] * N[8],
        M[6] * N[0] + M[7] * N[3] + M[8] * N[6],
        M[6] * N[1] + M[7] * N[4] + M[8] * N[7],
        M[6] * N[2] + M[7] * N[5] + M[8] * N[8],
    )


@inline
def matmul_nt(M, N):
    """Return M N^T."""
    return matmul(M, transpose(N))


@inline
def matmul_tn(M, N):
    """Return M^T N."""
    return matmul(transpose(M), N)


@inline
def gram(M):
    """Return M M^T, exactly symmetric."""
    a = M[0] * M[0] + M[1] * M[1] + M[2] * M[2]
    b = M[0] * M[3] + M[1] * M[4] + M[2] * M[5]
    c = M[0] * M[6] + M[1] * M[7] + M[2] * M[8]
    d = M[3] * M[3] + M[4] * M[4] + M[5] * M[5]
    e = M[3] * M[6] + M[4] * M[7] + M[5] * M[8]
    f = M[6] * M[6] + M[7] * M[7] + M[8] * M[8]
    return (a, b, c, b, d, e, c, e, f)


@inline
def similarity(U, a, b, c):
    """Return U diag(a, b, c) U^T, exactly symmetric."""
    W = (U[0] * a, U[1] * b, U[2] * c, U[3] * a, U[4] * b, U[5] * c, U[6] * a, U[7] * b, U[8] * c)
    xx = W[0] * U[0] + W[1] * U[1] + W[2] * U[2]
    xy = W[0] * U[3] + W[1] * U[4] + W[2] * U[5]
    xz = W[0] * U[6] + W[1] * U[7] + W[2] * U[8]
    yy = W[3] * U[3] + W[4] * U[4] + W[5] * U[5]
    yz = W[3] * U[6] + W[4] * U[7] + W[5] * U[8]
    zz = W[6] * U[6] + W[7] * U[7] + W[8] * U[8]
    return (xx, xy, xz, xy, yy, yz, xz, yz, zz)


@inline
def outer(u, v):
    """Return u v^T of two vectors."""
    return (u[0] * v[0], u[0] * v[1], u[0] * v[2], u[1] * v[0], u[1] * v[1], u[1] * v[2], u[2] * v[0], u[2] * v[1], u[2] * v[2])


@inline
def dot(u, v):
    """Return u . v of two vectors."""
    return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]


@inline
def cross(u, v):
    """Return u x v of two vectors."""
    return (u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0])


@inline
def double_dot(M, N):
    """Return M : N."""
    return (
        M[0] * N[0] + M[1] * N[1] + M[2] * N[2] + M[3] * N[3] + M[4] * N[4] + M[5] * N[5] + M[6] * N[6] + M[7] * N[7] + M[8] * N[8]
    )


@inline
def trace(M):
    """Return tr M."""
    return M[0] + M[4] + M[8]


@inline
def symmetric(M):
    """Return (M + M^T) / 2."""
    h = const(M[0], 0.5)
    b, c, e = h * (M[1] + M[3]), h * (M[2] + M[6]), h * (M[5] + M[7])
    return (M[0], b, c, b, M[4], e, c, e, M[8])


@inline
def deviator(M):
    """Return M - (tr M / 3) I."""
    return add_diagonal(M, -const(M[0], 1.0 / 3.0) * trace(M))


@inline
def cofactor(M):
    """Return cof M = det(M) M^-T by 2 x 2 minors, so that singular matrices are legal."""
    return (
        M[4] * M[8] - M[5] * M[7],
        M[5] * M[6] - M[3] * M[8],
        M[3] * M[7] - M[4] * M[6],
        M[2] * M[7] - M[1] * M[8],
        M[0] * M[8] - M[2] * M[6],
        M[1] * M[6] - M[0] * M[7],
        M[1] * M[5] - M[2] * M[4],
        M[2] * M[3] - M[0] * M[5],
        M[0] * M[4] - M[1] * M[3],
    )


@inline
def cofactor_differential(M, Q):
    """Return the derivative of cof M along Q."""
    u, v, w = (M[0], M[1], M[2]), (M[3], M[4], M[5]), (M[6], M[7], M[8])
    du, dv, dw = (Q[0], Q[1], Q[2]), (Q[3], Q[4], Q[5]), (Q[6], Q[7], Q[8])
    # the rows of cof M are the cross products of the other two rows
    a, b = cross(dv, w), cross(v, dw)
    c, d = cross(dw, u), cross(w, du)
    e, f = cross(du, v), cross(u, dv)
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2], c[0] + d[0], c[1] + d[1], c[2] + d[2], e[0] + f[0], e[1] + f[1], e[2] + f[2])


@inline
def det(M):
    """Return the determinant."""
    return M[0] * (M[4] * M[8] - M[5] * M[7]) + M[1] * (M[5] * M[6] - M[3] * M[8]) + M[2] * (M[3] * M[7] - M[4] * M[6])


@inline
def det_excess(M):
    """Return det(I + M) - 1 without the rounding of 1: tr M + the principal minors + det M."""
    minors = (M[0] * M[4] - M[1] * M[3]) + (M[0] * M[8] - M[2] * M[6]) + (M[4] * M[8] - M[5] * M[7])
    return trace(M) + minors + det(M)


@inline
def inverse(M):
    """Return M^-1 (infinite entries where M is singular)."""
    C = cofactor(M)
    return scale(transpose(C), const(M[0], 1.0) / (M[0] * C[0] + M[1] * C[1] + M[2] * C[2]))


@inline
def row_sum_bound(M):
    """Return an upper bound of the largest |eigenvalue| (Gershgorin), exact for diagonal matrices."""
    return maximum(
        maximum(absolute(M[0]) + absolute(M[1]) + absolute(M[2]), absolute(M[3]) + absolute(M[4]) + absolute(M[5])),
        absolute(M[6]) + absolute(M[7]) + absolute(M[8]),
    )


@inline
def is_positive(M):
    """Return where the symmetric M is positive definite (leading minors)."""
    o = const(M[0], 0.0)
    return both(both(M[0] > o, M[0] * M[4] - M[1] * M[3] > o), det(M) > o)


@inline
def cube_root(x):
    """Return the cube root of x > 0, to rounding."""
    y = exp(log(x) * const(x, 1.0 / 3.0))
    y2 = y * y
    return y - (y * y2 - x) / (const(x, 3.0) * y2)


@inline
def left_strain(F):
    """Return J = det F > 0 and the unimodular left Cauchy-Green tensor J^(-2/3) F F^T."""
    J = det(F)
    c = cube_root(maximum(const(J, 1e-9), J))
    return J, scale(gram(F), const(J, 1.0) / (c * c))


# ---------------------------------------------------------------- packing of symmetric matrices
@inline
def pack(M):
    """Return (xx, xy, xz, yy, yz, zz) of the symmetric part of M: the row order of the `stress` attribute."""
    h = const(M[0], 0.5)
    return (M[0], h * (M[1] + M[3]), h * (M[2] + M[6]), M[4], h * (M[5] + M[7]), M[8])


@inline
def unpack(p):
    """Return the matrix of (xx, xy, xz, yy, yz, zz)."""
    return (p[0], p[1], p[2], p[1], p[3], p[4], p[2], p[4], p[5])


# ---------------------------------------------------------------- steps of the deformation gradient
@inline
def _halved_step(A, G):
    """Return (I + A / 2^k)^(2^k) with the smallest k whose base has a positive determinant; G where k = 0."""
    o = const(A[0], 0.0)
    done = det(G) > o
    for k in range(1, HALVINGS + 1):
        A = scale(A, const(o, 0.5))
        H = add_diagonal(A, const(o, 1.0))
        good = det(H) > o
        for _ in range(k):
            H = matmul(H, H)
        G = choose(both(good, negate(done)), H, G)
        done = either(done, good)
    return G


@inline
def safe_step(A):
    """Return R(A) = I + A if det(I + A) > 0, else R(A/2) R(A/2) to depth 8 (Stomakhin 2014).

    det R > 0 in exact arithmetic; det R = det(I + A/2^k)^(2^k).
    """
    G = add_diagonal(A, const(A[0], 1.0))
    if any_lane(det(G) <= const(A[0], 0.0)):
        G = _halved_step(A, G)
    return G


@inline
def safe_increment(A):
    """Return R(A) - I, A itself to the bit where det(I + A) > 0 (see `safe_step`)."""
    G = add_diagonal(A, const(A[0], 1.0))
    inverted = det(G) <= const(A[0], 0.0)
    if any_lane(inverted):
        A = choose(inverted, add_diagonal(_halved_step(A, G), const(A[0], -1.0)), A)
    return A


LEAST_VOLUME = 0.1
"""Share of its volume below which matter is not packed any further."""


@inline
def advance_deformation(F, A):
    """Return R(A) F, or F where that is packed below a tenth of its volume, more than F, and against what F resists.

    Matter that something faster than its waves runs into piles up within a cell. The grid sees its mass there, but not its motion:
    F would fall without an end, and store energy that no motion has put in. Where the step lets |F|^2 / 2 - ln det F fall, F goes
    on: matter that is stretched one way pulls itself together, and with its F kept would do so for ever, faster and faster. Where
    no determinant is positive, 0.1 I.
    """
    F_new = matmul(safe_step(A), F)
    o = const(F[0], 0.0)
    after = det(F_new)
    small = after < const(o, LEAST_VOLUME)
    if any_lane(small):
        before = det(F)
        released = const(o, 0.5) * (double_dot(F, F) - double_dot(F_new, F_new)) * after
        goes_on = both(after > o, released > before - after)  # ln x >= 1 - 1 / x
        F_new = choose(both(both(small, after < before), negate(goes_on)), F, F_new)
        F_new = choose(both(after <= o, before <= o), scale(identity(o), const(o, 0.1)), F_new)
    return F_new
