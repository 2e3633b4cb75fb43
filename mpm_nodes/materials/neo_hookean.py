"""Neo-Hookean solid (R15 eq. 8-9) as an incremental energy.

| symbol | meaning | unit |
|---|---|---|
| F | deformation gradient at the start of the step (state) | - |
| A, G | dt grad v, I + A; the trial state is G F | - |
| b | F F^T | - |
| J | det(G F) = det G det F | - |
| Y | G^-T | - |
| mu, lam | shear modulus, first Lame parameter | Pa |

    psi = mu/2 (tr(G b G^T) - 3) - mu ln J + lam/2 (J - 1)^2
    T   = mu (G b - Y) + lam (J - 1) J Y
"""

from __future__ import annotations

from mpm_nodes.kernels.algebra import mat3
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.arithmetic import const, maximum, sqrt
from mpm_nodes.kernels.lanes.exponentials import log
from mpm_nodes.materials.parameters import NeoHookean as Params
from mpm_nodes.materials.parameters import lame
from mpm_nodes.materials.values import Coefficients, Mask, Matrix, State, Value

STRAIN = "deformation"
STATE = ("deformation",)
COEFFICIENTS = ("mu", "lam", "density")
STIFFNESS = ("mu", "lam")
VISCOSITY = None


def coefficients(params: Params, density: float) -> tuple[float, ...]:
    """Return (mu [Pa], lam [Pa], density [kg/m^3])."""
    return (*lame(params.youngs_modulus, params.poisson_ratio), density)


@inline
def _parts(state: State, A: Matrix) -> tuple[Matrix, Matrix, Matrix, Value, Value]:
    """Return G, b, cof G, det G and det F."""
    F = state[0]
    G = mat3.add_diagonal(A, const(A[0], 1.0))
    return G, mat3.gram(F), mat3.cofactor(G), mat3.det(G), mat3.det(F)


@inline
def energy(state: State, A: Matrix, coeffs: Coefficients, dt: Value) -> Value:
    """Return psi [J/m^3]; the logarithm sees J >= 1e-30."""
    mu, lam = coeffs[0], coeffs[1]
    F = mat3.matmul(mat3.add_diagonal(A, const(A[0], 1.0)), state[0])
    J = mat3.det(F)
    one, half = const(J, 1.0), const(J, 0.5)
    return (
        half * mu * (mat3.double_dot(F, F) - const(J, 3.0))
        - mu * log(maximum(const(J, 1e-30), J))
        + half * lam * (J - one) * (J - one)
    )


@inline
def stress(state: State, A: Matrix, coeffs: Coefficients, dt: Value) -> Matrix:
    """Return T = dpsi/dA [Pa]."""
    mu, lam = coeffs[0], coeffs[1]
    G, b, C, d, J_n = _parts(state, A)
    J = d * J_n
    k = lam * (J - const(J, 1.0)) * J_n - mu / _positive(d)
    return mat3.add_scaled(mat3.scale(mat3.matmul(G, b), mu), k, C)


@inline
def kirchhoff(state: State, coeffs: Coefficients) -> Matrix:
    """Return T at A = 0 [Pa]: mu (b - I) + lam (J - 1) J I."""
    mu, lam = coeffs[0], coeffs[1]
    J = mat3.det(state[0])
    return mat3.add_diagonal(mat3.scale(mat3.gram(state[0]), mu), lam * (J - const(J, 1.0)) * J - mu)


@inline
def stress_differential(state: State, A: Matrix, dA: Matrix, coeffs: Coefficients, dt: Value) -> Matrix:
    """Return the derivative of T along dA [Pa]."""
    mu, lam = coeffs[0], coeffs[1]
    G, b, C, d, J_n = _parts(state, A)
    d = _positive(d)
    J = d * J_n
    one = const(J, 1.0)
    slope = mat3.double_dot(C, dA)
    # d(k cof G) with k = lam (J - 1) J_n - mu / det G
    k = lam * (J - one) * J_n - mu / d
    dk = (lam * J_n * J_n + mu / (d * d)) * slope
    dT = mat3.add_scaled(mat3.scale(mat3.matmul(dA, b), mu), dk, C)
    return mat3.add_scaled(dT, k, mat3.cofactor_differential(G, dA))


@inline
def _positive(d: Value) -> Value:
    """Keep the determinant of an infeasible A away from zero; feasible ones pass unchanged, and so does a NaN in this order."""
    return maximum(const(d, 1e-12), d)


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

    A stretch s along the wave gives mu (s^2 + 1) + lam J (2J - 1), from dT at A = 0.
    """
    mu, lam, density = coeffs[0], coeffs[1], coeffs[2]
    J = mat3.det(state[0])
    one = const(J, 1.0)
    # the bound comes second in maximum: NaN passes there, and must
    stretch = maximum(one, mat3.row_sum_bound(mat3.gram(state[0])))
    return sqrt((mu * (stretch + one) + lam * maximum(one, J * (J + J - one))) / density)


@inline
def left_strain(state: State) -> tuple[Value, Matrix]:
    """Return J = det F and the unimodular b = J^(-2/3) F F^T."""
    return mat3.left_strain(state[0])
