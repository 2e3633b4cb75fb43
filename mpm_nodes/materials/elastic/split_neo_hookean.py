"""Neo-Hookean solid with volume and shape apart, in differences from rest (Y15 eq. 1-2).

| symbol | meaning | unit |
|---|---|---|
| e | J - 1 (state) | - |
| E | b - I, b = det(F_E)^(-2/3) F_E F_E^T the unimodular elastic left Cauchy-Green tensor (state) | - |
| kap, mu | bulk and shear modulus | Pa |

Energy (kap/2) ((J^2 - 1)/2 - ln J) + (mu/2) (tr b - 3). The state holds differences from the unit, and everything is computed
from differences: the strain of a step of 1e-5 s is not lost in the rounding of 1.
"""

from __future__ import annotations

from typing import Any

from mpm_nodes.kernels.algebra import mat3
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.arithmetic import const, maximum, minimum, sqrt
from mpm_nodes.kernels.lanes.exponentials import log
from mpm_nodes.kernels.transfers.differences import cube_root_of_one_plus
from mpm_nodes.materials.values import Coefficients, Mask, Matrix, State, Value

STRAIN = "unimodular"
STATE = ("volume_change", "elastic_strain")
COEFFICIENTS = ("kap", "mu", "density")
STIFFNESS = ("kap", "mu")
VISCOSITY = None


def coefficients(params: Any, density: float) -> tuple[float, ...]:
    """Return (kap [Pa], mu [Pa], density [kg/m^3]) of a `bulk_modulus` and a `shear_modulus`."""
    return params.bulk_modulus, params.shear_modulus, density


# ---------------------------------------------------------------- the energy and its derivatives
@inline
def _parts(state: State, A: Matrix) -> tuple[Matrix, Matrix, Matrix, Value, Matrix, Value]:
    """Return G = I + A, b, cof G, det G, G b and the trace of G b G^T."""
    G = mat3.add_diagonal(A, const(A[0], 1.0))
    b = mat3.add_diagonal(mat3.unpack(state[1]), const(A[0], 1.0))
    Gb = mat3.matmul(G, b)
    return G, b, mat3.cofactor(G), mat3.det(G), Gb, mat3.double_dot(Gb, G)


@inline
def _positive(d: Value) -> Value:
    """Keep the determinant of an infeasible A away from zero; feasible ones pass unchanged."""
    return maximum(const(d, 1e-12), d)


@inline
def _shrink(j: Value) -> Value:
    """Return j^(-2/3)."""
    c = mat3.cube_root(j)
    return const(j, 1.0) / (c * c)


@inline
def energy(state: State, A: Matrix, coeffs: Coefficients, dt: Value) -> Value:
    """Return psi [J/m^3] (Y15 eq. 1)."""
    _, _, _, j, _, t = _parts(state, A)
    j = _positive(j)
    J = j * (const(j, 1.0) + state[0])
    half = const(j, 0.5)
    return half * coeffs[0] * (half * (J * J - const(J, 1.0)) - log(maximum(const(J, 1e-30), J))) + half * coeffs[1] * (
        _shrink(j) * t - const(j, 3.0)
    )


@inline
def stress(state: State, A: Matrix, coeffs: Coefficients, dt: Value) -> Matrix:
    """Return T = dpsi/dA [Pa]."""
    _, _, C, j, Gb, t = _parts(state, A)
    j = _positive(j)
    J = j * (const(j, 1.0) + state[0])
    m = coeffs[1] * _shrink(j)
    k = (const(j, 0.5) * coeffs[0] * (J * J - const(j, 1.0)) - m * t * const(j, 1.0 / 3.0)) / j
    return mat3.add_scaled(mat3.scale(Gb, m), k, C)


@inline
def kirchhoff(state: State, coeffs: Coefficients) -> Matrix:
    """Return T at A = 0 [Pa]: (kap/2) (J^2 - 1) I + mu dev b (Y15 eq. 2)."""
    e = state[0]
    p = const(e, 0.5) * coeffs[0] * e * (const(e, 2.0) + e)
    return mat3.add_diagonal(mat3.scale(mat3.deviator(mat3.unpack(state[1])), coeffs[1]), p)


@inline
def stress_differential(state: State, A: Matrix, dA: Matrix, coeffs: Coefficients, dt: Value) -> Matrix:
    """Return the derivative of T along dA [Pa]."""
    _, b, C, j, Gb, t = _parts(state, A)
    j = _positive(j)
    one, third = const(j, 1.0), const(j, 1.0 / 3.0)
    J = j * (one + state[0])
    m = coeffs[1] * _shrink(j)
    Y = mat3.scale(C, one / j)
    slope = mat3.double_dot(Y, dA)
    dY = mat3.matmul(Y, mat3.matmul_tn(dA, Y))  # its negative
    stretching = mat3.double_dot(Gb, dA)
    two_thirds = third + third
    along_b = mat3.add_scaled(mat3.scale(mat3.matmul(dA, b), m), const(j, 0.0) - m * two_thirds * slope, Gb)
    k = coeffs[0] * J * J * slope + m * two_thirds * (t * third * slope - stretching)
    k_dY = m * t * third - const(j, 0.5) * coeffs[0] * (J * J - one)
    return mat3.add_scaled(mat3.add_scaled(along_b, k, Y), k_dY, dY)


# ---------------------------------------------------------------- the step
@inline
def advance(state: State, A: Matrix, coeffs: Coefficients, dt: Value) -> State:
    """Return the elastic trial state: e + d + e d and det(f)^(-2/3) f b f^T - I with f = I + A, d = det f - 1 (Y15 eq. 13)."""
    e, E = state[0], mat3.unpack(state[1])
    S = mat3.safe_increment(A)
    d = mat3.det_excess(S)
    one = const(e, 1.0)
    e_new = e + d + e * d
    e_new = maximum(const(e, mat3.LEAST_VOLUME) - one, e_new)
    c = cube_root_of_one_plus(d)
    shrink = one / (c * c)
    g = (const(e, 0.0) - d) * shrink * (c + one) / (c * c + c + one)
    # f b f^T - I = S + S^T + S S^T + (E + S E) (I + S^T)
    M = mat3.add(E, mat3.matmul(S, E))
    grown = mat3.add(mat3.add(mat3.add(S, mat3.transpose(S)), mat3.gram(S)), mat3.add(M, mat3.matmul_nt(M, S)))
    return e_new, mat3.pack(mat3.add_diagonal(mat3.scale(grown, shrink), g))


@inline
def left_strain(state: State) -> tuple[Value, Matrix]:
    """Return J and b."""
    one = const(state[0], 1.0)
    return one + state[0], mat3.add_diagonal(mat3.unpack(state[1]), one)


@inline
def feasible(state: State, A: Matrix, coeffs: Coefficients, dt: Value) -> Mask:
    """Return where the energy is defined: det(I + A) > 0."""
    return mat3.det(mat3.add_diagonal(A, const(A[0], 1.0))) > const(A[0], 0.0)


@inline
def wave_speed(state: State, coeffs: Coefficients) -> Value:
    """Return a bound of the fastest wave [m/s] in current space: sqrt((kap + 4 mu / 3) / rho_0) at rest.

    A wave along n has kap (J^2 + 1) / 2 + mu (5 tr b / 9 - n b n / 3), from dT at A = 0.
    """
    e, E = state[0], mat3.unpack(state[1])
    one = const(e, 1.0)
    J = one + e
    # the bound comes second in maximum and minimum: NaN passes there, and must; the bound itself may lose one beside the diagonal
    lost = const(e, 0.0) * (E[1] + E[2] + E[5])
    shear = (
        const(e, 4.0 / 3.0) + const(e, 5.0 / 9.0) * mat3.trace(E) + const(e, 1.0 / 3.0) * minimum(one, lost + mat3.row_sum_bound(E))
    )
    return sqrt((coeffs[0] * maximum(one, const(e, 0.5) * (J * J + one)) + coeffs[1] * shear) / coeffs[2])
