"""Hencky solid: St. Venant-Kirchhoff in logarithmic strains (Klar 2016 section 6.2), for granular matter and large stretches.

| symbol | meaning | unit |
|---|---|---|
| F | elastic deformation gradient at the start of the step (state) | - |
| G, E | I + A, the trial state G F = U diag(s) V^T | - |
| l | ln s | - |
| t | principal Kirchhoff stress 2 mu l + lam tr(l) | Pa |
| mu, lam | shear modulus, first Lame parameter | Pa |

    psi = mu l.l + lam/2 tr(l)^2,   T = U diag(t / s) V^T F^T
"""

from __future__ import annotations

from typing import Any

from mpm_nodes.kernels.algebra import mat3, rotations
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.arithmetic import absolute, const, maximum, minimum, select, sqrt
from mpm_nodes.kernels.lanes.exponentials import log
from mpm_nodes.kernels.transfers.differences import log_of_one_plus
from mpm_nodes.materials.parameters import lame
from mpm_nodes.materials.values import Coefficients, Mask, Matrix, State, Value, Vector

STRAIN = "deformation"
STATE = ("deformation",)
COEFFICIENTS = ("mu", "lam", "density")
STIFFNESS = ("mu", "lam")
VISCOSITY = None


def coefficients(params: Any, density: float) -> tuple[float, ...]:
    """Return (mu [Pa], lam [Pa], density [kg/m^3]) of a `youngs_modulus` and a `poisson_ratio`."""
    return (*lame(params.youngs_modulus, params.poisson_ratio), density)


@inline
def _logs(s: Vector) -> tuple[Vector, Vector]:
    """Return the stretches, at least 1e-6 where A is infeasible, and their logarithms."""
    tiny = const(s[0], 1e-6)
    s = (maximum(tiny, s[0]), maximum(tiny, s[1]), maximum(tiny, s[2]))
    return s, (log(s[0]), log(s[1]), log(s[2]))


@inline
def _stresses(logs: Vector, coeffs: Coefficients) -> Vector:
    """Return t."""
    p, twice = coeffs[1] * (logs[0] + logs[1] + logs[2]), coeffs[0] + coeffs[0]
    return twice * logs[0] + p, twice * logs[1] + p, twice * logs[2] + p


@inline
def principal_kirchhoff(s: Vector, coeffs: Coefficients) -> Vector:
    """Return t of principal stretches [Pa]: what return maps ask for, without the decomposition of a matrix."""
    return _stresses(_logs(s)[1], coeffs)


@inline
def _scaled_columns(U: Matrix, a: Value, b: Value, c: Value) -> Matrix:
    """Return U diag(a, b, c)."""
    return (U[0] * a, U[1] * b, U[2] * c, U[3] * a, U[4] * b, U[5] * c, U[6] * a, U[7] * b, U[8] * c)


@inline
def _trial(state: State, A: Matrix) -> tuple[Matrix, Vector, Matrix]:
    """Return U, s and V of G F."""
    return rotations.svd(mat3.matmul(mat3.add_diagonal(A, const(A[0], 1.0)), state[0]))


@inline
def energy(state: State, A: Matrix, coeffs: Coefficients, dt: Value) -> Value:
    """Return psi [J/m^3]."""
    _U, s, _V = _trial(state, A)
    _s, logs = _logs(s)
    total = logs[0] + logs[1] + logs[2]
    return coeffs[0] * mat3.dot(logs, logs) + const(total, 0.5) * coeffs[1] * total * total


@inline
def stress(state: State, A: Matrix, coeffs: Coefficients, dt: Value) -> Matrix:
    """Return T = dpsi/dA [Pa]."""
    U, s, V = _trial(state, A)
    s, logs = _logs(s)
    t = _stresses(logs, coeffs)
    P = mat3.matmul_nt(_scaled_columns(U, t[0] / s[0], t[1] / s[1], t[2] / s[2]), V)
    return mat3.matmul_nt(P, state[0])


@inline
def kirchhoff(state: State, coeffs: Coefficients) -> Matrix:
    """Return T at A = 0 [Pa]: U diag(t) U^T."""
    U, s, _V = rotations.svd(state[0])
    _s, logs = _logs(s)
    t = _stresses(logs, coeffs)
    return mat3.similarity(U, t[0], t[1], t[2])


@inline
def _slopes(x: Value, y: Value, log_y: Value, p_x: Value, p_y: Value, mu: Value, p: Value) -> tuple[Value, Value]:
    """Return (P_x - P_y) / (x - y) and (P_x + P_y) / (x + y) for P = (2 mu ln s + p) / s, also where x = y."""
    one = const(x, 1.0)
    r = (x - y) / y
    near = absolute(r) < const(r, 1e-18)
    slope = select(near, one, log_of_one_plus(r) / select(near, one, r))  # y (ln x - ln y) / (x - y)
    return ((mu + mu) * (slope - log_y) - p) / (x * y), (p_x + p_y) / (x + y)


@inline
def stress_differential(state: State, A: Matrix, dA: Matrix, coeffs: Coefficients, dt: Value) -> Matrix:
    """Return the derivative of T along dA [Pa], from that of U diag(P) V^T in the principal axes."""
    mu, lam = coeffs[0], coeffs[1]
    U, s, V = _trial(state, A)
    s, logs = _logs(s)
    t = _stresses(logs, coeffs)
    p = lam * (logs[0] + logs[1] + logs[2])
    P = (t[0] / s[0], t[1] / s[1], t[2] / s[2])
    Q = mat3.matmul(mat3.matmul_tn(U, mat3.matmul(dA, state[0])), V)
    along = lam * (Q[0] / s[0] + Q[4] / s[1] + Q[8] / s[2])
    stiff = mu + mu
    a = (along + (stiff - t[0]) * Q[0] / s[0]) / s[0]
    b = (along + (stiff - t[1]) * Q[4] / s[1]) / s[1]
    c = (along + (stiff - t[2]) * Q[8] / s[2]) / s[2]
    half = const(mu, 0.5)
    m01, n01 = _slopes(s[0], s[1], logs[1], P[0], P[1], mu, p)
    m02, n02 = _slopes(s[0], s[2], logs[2], P[0], P[2], mu, p)
    m12, n12 = _slopes(s[1], s[2], logs[2], P[1], P[2], mu, p)
    d01, e01 = half * m01 * (Q[1] + Q[3]), half * n01 * (Q[1] - Q[3])
    d02, e02 = half * m02 * (Q[2] + Q[6]), half * n02 * (Q[2] - Q[6])
    d12, e12 = half * m12 * (Q[5] + Q[7]), half * n12 * (Q[5] - Q[7])
    D = (a, d01 + e01, d02 + e02, d01 - e01, b, d12 + e12, d02 - e02, d12 - e12, c)
    return mat3.matmul_nt(mat3.matmul_nt(mat3.matmul(U, D), V), state[0])


@inline
def advance(state: State, A: Matrix, coeffs: Coefficients, dt: Value) -> State:
    """Return the state after the step."""
    return (mat3.advance_deformation(state[0], A),)


@inline
def feasible(state: State, A: Matrix, coeffs: Coefficients, dt: Value) -> Mask:
    """Return where the energy is defined: det(I + A) > 0."""
    return mat3.det(mat3.add_diagonal(A, const(A[0], 1.0))) > const(A[0], 0.0)


@inline
def wave_speed(state: State, coeffs: Coefficients) -> Value:
    """Return a bound of the fastest wave [m/s] in current space: sqrt((lam + 2 mu) / rho_0) at rest.

    A wave along n has lam + 2 mu + mu sum_(i != j) (u coth(u / 2) - 2) n_i^2 n_j^2 - n t n with u = 2 (l_i - l_j), where
    u coth(u / 2) <= 2 + |u|.
    """
    _U, s, _V = rotations.svd(state[0])
    _s, logs = _logs(s)
    t = _stresses(logs, coeffs)
    o = const(s[0], 0.0)
    # the bound comes second in maximum and minimum: NaN passes there, and must
    spread = maximum(maximum(logs[0], logs[1]), logs[2]) - minimum(minimum(logs[0], logs[1]), logs[2])
    pressed = maximum(o, o - minimum(minimum(t[0], t[1]), t[2]))
    mu = coeffs[0]
    return sqrt((coeffs[1] + mu + mu + mu * const(o, 4.0 / 3.0) * spread + pressed) / coeffs[2])


@inline
def left_strain(state: State) -> tuple[Value, Matrix]:
    """Return J = det F and the unimodular b = J^(-2/3) F F^T."""
    return mat3.left_strain(state[0])
