"""Surface energy of a sample, its first derivative, and its second: as it is, or the positive part of it.

| symbol | meaning | unit | source |
|---|---|---|---|
| k, dA | surface energy density, area of the sample; both as the substep began | N/m, m^2 | C21 eq. 7 |
| n, t1, t2 | unit normal and tangents as the substep began, t1 x t2 = n | - | |
| A | displacement gradient of the substep, dt grad v | - | - |
| u, v, q | (I + A) t1, (I + A) t2, abs(u x v): what the area has been multiplied by | - | |
| N | u x v / q, the new normal | - | |

    e = k dA q,   P = de/dA = k dA [ (v x N) t1^T + (N x u) t2^T ],   at A = 0  P = k dA (I - n n^T)

The second derivative of q splits into a normal part, positive definite, and a tangential one with eigenvalues 1, 1, -1, -1.
Dropping the last two makes it positive semi-definite for k > 0; where a liquid wets a body, k < 0, just those two stay. The
tangential part is 2 k det of the tangential gradient, of which the sum over a flat surface is nothing but a line integral around
it: what is dropped is as large as what stays, and Newton's method without it closes in by a fixed share only.
k is frozen: differentiating its dependence on the place would cancel the flow that its gradient drives (Marangoni).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.lanes.arithmetic import const, either, select, sqrt

__all__ = [
    "CHUNK",
    "MovingSurface",
    "second_derivative",
    "stretched",
    "surface_gradient",
    "surface_hessians",
    "surface_stress",
    "tangents",
]

CHUNK = 1024
"""Samples whose energies are summed by one thread, in order."""


@inline
def _cross(a, b):
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@inline
def _dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inline
def tangents(n):
    """Return two unit vectors t1, t2 with t1 x t2 = n (Duff 2017), without a branch that could divide by nothing."""
    one = const(n[0], 1.0)
    sign = select(n[2] < const(n[0], 0.0), -one, one)
    a = -one / (sign + n[2])
    b = n[0] * n[1] * a
    return (one + sign * n[0] * n[0] * a, sign * b, -sign * n[0]), (b, sign + n[1] * n[1] * a, -n[1])


@inline
def _moved(A, t):
    return (
        t[0] + A[0] * t[0] + A[1] * t[1] + A[2] * t[2],
        t[1] + A[3] * t[0] + A[4] * t[1] + A[5] * t[2],
        t[2] + A[6] * t[0] + A[7] * t[1] + A[8] * t[2],
    )


@inline
def stretched(n, A):
    """Return u, v, N and q of a sample."""
    t1, t2 = tangents(n)
    u, v = _moved(A, t1), _moved(A, t2)
    w = _cross(u, v)
    q = sqrt(_dot(w, w))
    return u, v, (w[0] / q, w[1] / q, w[2] / q), q


@inline
def surface_gradient(n, A):
    """Return dq/dA, a 9-tuple: P over k dA."""
    t1, t2 = tangents(n)
    u, v, N, _ = stretched(n, A)
    return _on_tangents(_cross(v, N), _cross(N, u), t1, t2)


@inline
def _on_tangents(a, b, t1, t2):
    """Return a t1^T + b t2^T, a 9-tuple."""
    return (
        a[0] * t1[0] + b[0] * t2[0],
        a[0] * t1[1] + b[0] * t2[1],
        a[0] * t1[2] + b[0] * t2[2],
        a[1] * t1[0] + b[1] * t2[0],
        a[1] * t1[1] + b[1] * t2[1],
        a[1] * t1[2] + b[1] * t2[2],
        a[2] * t1[0] + b[2] * t2[0],
        a[2] * t1[1] + b[2] * t2[1],
        a[2] * t1[2] + b[2] * t2[2],
    )


@inline
def second_derivative(n, A, Q, k, whole):
    """Return k d2q/dA2 applied to Q, a 9-tuple, for k of either sign; only the positive part of it unless `whole`."""
    t1, t2 = tangents(n)
    u, v, N, q = stretched(n, A)
    half, zero = const(k, 0.5), const(k, 0.0)
    length = sqrt(_dot(u, u))
    e1 = u[0] / length, u[1] / length, u[2] / length
    e2 = _cross(N, e1)
    du = _moved_by(Q, t1)
    dv = _moved_by(Q, t2)
    up, down = select(either(k > zero, whole), k, zero), select(either(k < zero, whole), -k, zero)
    al, be = _dot(du, N), _dot(dv, N)
    s, t = up * half * (_dot(du, e1) + _dot(dv, e2)), up * half * (_dot(du, e2) - _dot(dv, e1))
    r, w = down * half * (_dot(du, e1) - _dot(dv, e2)), down * half * (_dot(du, e2) + _dot(dv, e1))
    f, g = up * (_dot(v, v) * al - _dot(u, v) * be) / q, up * (_dot(u, u) * be - _dot(u, v) * al) / q
    a = (
        f * N[0] + (s + r) * e1[0] + (t + w) * e2[0],
        f * N[1] + (s + r) * e1[1] + (t + w) * e2[1],
        f * N[2] + (s + r) * e1[2] + (t + w) * e2[2],
    )
    b = (
        g * N[0] + (w - t) * e1[0] + (s - r) * e2[0],
        g * N[1] + (w - t) * e1[1] + (s - r) * e2[1],
        g * N[2] + (w - t) * e1[2] + (s - r) * e2[2],
    )
    return _on_tangents(a, b, t1, t2)


@inline
def _moved_by(Q, t):
    return (
        Q[0] * t[0] + Q[1] * t[1] + Q[2] * t[2],
        Q[3] * t[0] + Q[4] * t[1] + Q[5] * t[2],
        Q[6] * t[0] + Q[7] * t[1] + Q[8] * t[2],
    )


# ---------------------------------------------------------------- loops over samples
class MovingSurface(NamedTuple):
    """Samples of a surface and how it moves.

    Attributes:
        normal: n, rows of `stride`.
        area: dA [m^2].
        tension: k [N/m].
        gradient: grad v [1/s], nine rows.
        stride: Distance of rows.
        dt: Substep [s].
        count: Samples.
    """

    normal: np.ndarray
    area: np.ndarray
    tension: np.ndarray
    gradient: np.ndarray
    stride: int
    dt: float
    count: int


@inline
def _loaded(rows, stride, p, dt):
    return (
        dt * np.float64(rows[p]),
        dt * np.float64(rows[stride + p]),
        dt * np.float64(rows[2 * stride + p]),
        dt * np.float64(rows[3 * stride + p]),
        dt * np.float64(rows[4 * stride + p]),
        dt * np.float64(rows[5 * stride + p]),
        dt * np.float64(rows[6 * stride + p]),
        dt * np.float64(rows[7 * stride + p]),
        dt * np.float64(rows[8 * stride + p]),
    )


@inline
def _normal(rows, stride, p):
    return np.float64(rows[p]), np.float64(rows[stride + p]), np.float64(rows[2 * stride + p])


@part
def _stress_at(c, sheet, stress, sums):
    normal, area, tension, gradient, stride, dt, count = sheet
    energy = broken = 0.0
    for p in range(c * CHUNK, min((c + 1) * CHUNK, count)):
        n, A, k = _normal(normal, stride, p), _loaded(gradient, stride, p, dt), np.float64(tension[p])
        if k == 0.0 or area[p] == 0:
            for row in range(9):
                stress[row * stride + p] = 0.0
            continue
        q = stretched(n, A)[3]
        if not q > 0.0:
            broken += 1.0
            continue
        P = surface_gradient(n, A)
        for row in range(9):
            stress[row * stride + p] = k * P[row]
        energy += k * area[p] * q
    sums[c, 0], sums[c, 1] = energy, broken


@compiled(fastmath=False)
def surface_stress(sheet, stress, sums):
    """Write P / dA of samples, and for each chunk its energy [J] and how many samples have vanished.

    Args:
        sheet: `MovingSurface`.
        stress: Written, nine rows [N/m].
        sums: Written, shape (chunks, 2).
    """
    parallel_for(_stress_at, sums.shape[0], (sheet, stress, sums))


@part
def _hessians_at(c, sheet, whole, hessians):
    normal, area, tension, gradient, stride, dt, count = sheet
    for p in range(c * CHUNK, min((c + 1) * CHUNK, count)):
        n, A, k = _normal(normal, stride, p), _loaded(gradient, stride, p, dt), np.float64(tension[p])
        for j in range(9):
            Q = (
                1.0 if j == 0 else 0.0,
                1.0 if j == 1 else 0.0,
                1.0 if j == 2 else 0.0,
                1.0 if j == 3 else 0.0,
                1.0 if j == 4 else 0.0,
                1.0 if j == 5 else 0.0,
                1.0 if j == 6 else 0.0,
                1.0 if j == 7 else 0.0,
                1.0 if j == 8 else 0.0,
            )
            M = second_derivative(n, A, Q, k, whole) if area[p] > 0 else Q
            for i in range(j, 9):
                hessians[(i * (i + 1) // 2 + j) * stride + p] = M[i] if area[p] > 0 else 0.0


@compiled(fastmath=False)
def surface_hessians(sheet, whole, hessians):
    """Write the second derivative of e / dA [N/m], rows as `algebra.local_hessians` has them.

    Args:
        sheet: `MovingSurface`.
        whole: All of it; else its positive part.
        hessians: Written, 45 rows.
    """
    parallel_for(_hessians_at, -(-sheet.count // CHUNK), (sheet, whole, hessians))
