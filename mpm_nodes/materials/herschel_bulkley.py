"""Herschel-Bulkley viscoplasticity on a volumetric and deviatoric neo-Hookean solid: foams, creams, pastes (Y15 section 5).

| symbol | meaning | unit |
|---|---|---|
| e | J - 1, J the determinant of the whole deformation: plastic flow keeps volume (state) | - |
| E | b - I, b = det(F_E)^(-2/3) F_E F_E^T the unimodular elastic left Cauchy-Green tensor (state) | - |
| kap, mu | bulk and shear modulus | Pa |
| s, s_Y | mu dev b, sqrt(2/3) times the yield stress in tension | Pa |
| eta, n | consistency and flow index: the flow rate is (max(0, abs(s) - s_Y) / eta)^(1/n) | Pa s^n, - |

Energy (kap/2) ((J^2 - 1)/2 - ln J) + (mu/2) (tr b - 3). The state holds differences from the unit, and everything is computed
from differences: the strain of a step of 1e-5 s is not lost in the rounding of 1.
"""

from __future__ import annotations

import math

from mpm_nodes.kernels import mat3
from mpm_nodes.kernels.differences import cube_root_of_one_plus, unimodular
from mpm_nodes.kernels.exponentials import exp, log
from mpm_nodes.kernels.jit import inline
from mpm_nodes.kernels.lanes import any_lane, const, maximum, minimum, select, sqrt
from mpm_nodes.materials.parameters import HerschelBulkley as Params

STATE = ("volume_change", "elastic_strain")
COEFFICIENTS = ("kap", "mu", "density", "s_Y", "eta", "n")
STIFFNESS = ("kap", "mu")
VISCOSITY = None

ITERATIONS = 9
"""Newton steps at most; groups of lanes that have converged stop earlier."""


def coefficients(params: Params, density: float) -> tuple[float, ...]:
    """Return (kap [Pa], mu [Pa], density [kg/m^3], s_Y [Pa], eta [Pa s^n], n)."""
    return (params.bulk_modulus, params.shear_modulus, density, math.sqrt(2.0 / 3.0) * params.yield_stress, params.consistency,
            params.flow_index)


# ---------------------------------------------------------------- the energy and its derivatives
@inline
def _parts(state, A):
    """Return G = I + A, b, cof G, det G, G b and the trace of G b G^T."""
    G = mat3.add_diagonal(A, const(A[0], 1.0))
    b = mat3.add_diagonal(mat3.unpack(state[1]), const(A[0], 1.0))
    Gb = mat3.matmul(G, b)
    return G, b, mat3.cofactor(G), mat3.det(G), Gb, mat3.double_dot(Gb, G)


@inline
def _positive(d):
    """Keep the determinant of an infeasible A away from zero; feasible ones pass unchanged."""
    return maximum(const(d, 1e-12), d)


@inline
def _shrink(j):
    """Return j^(-2/3)."""
    c = mat3.cube_root(j)
    return const(j, 1.0) / (c * c)


@inline
def energy(state, A, coeffs, dt):
    """Return psi [J/m^3] (Y15 eq. 1)."""
    _, _, _, j, _, t = _parts(state, A)
    j = _positive(j)
    J = j * (const(j, 1.0) + state[0])
    half = const(j, 0.5)
    return (half * coeffs[0] * (half * (J * J - const(J, 1.0)) - log(maximum(const(J, 1e-30), J)))
            + half * coeffs[1] * (_shrink(j) * t - const(j, 3.0)))


@inline
def stress(state, A, coeffs, dt):
    """Return T = dpsi/dA [Pa]."""
    _, _, C, j, Gb, t = _parts(state, A)
    j = _positive(j)
    J = j * (const(j, 1.0) + state[0])
    m = coeffs[1] * _shrink(j)
    k = (const(j, 0.5) * coeffs[0] * (J * J - const(j, 1.0)) - m * t * const(j, 1.0 / 3.0)) / j
    return mat3.add_scaled(mat3.scale(Gb, m), k, C)


@inline
def kirchhoff(state, coeffs):
    """Return T at A = 0 [Pa]: (kap/2) (J^2 - 1) I + mu dev b (Y15 eq. 2)."""
    e = state[0]
    p = const(e, 0.5) * coeffs[0] * e * (const(e, 2.0) + e)
    return mat3.add_diagonal(mat3.scale(mat3.deviator(mat3.unpack(state[1])), coeffs[1]), p)


@inline
def stress_differential(state, A, dA, coeffs, dt):
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
def advance(state, A, coeffs, dt):
    """Return the elastic trial state: e + d + e d and det(f)^(-2/3) f b f^T - I with f = I + A, d = det f - 1 (Y15 eq. 13)."""
    e, E = state[0], mat3.unpack(state[1])
    S = mat3.safe_increment(A)
    d = mat3.det_excess(S)
    one = const(e, 1.0)
    e_new = e + d + e * d
    e_new = select(e_new <= const(e, -1.0), const(e, 1e-3) - one, e_new)
    c = cube_root_of_one_plus(d)
    shrink = one / (c * c)
    g = (const(e, 0.0) - d) * shrink * (c + one) / (c * c + c + one)
    # f b f^T - I = S + S^T + S S^T + (E + S E) (I + S^T)
    M = mat3.add(E, mat3.matmul(S, E))
    grown = mat3.add(mat3.add(mat3.add(S, mat3.transpose(S)), mat3.gram(S)), mat3.add(M, mat3.matmul_nt(M, S)))
    return e_new, mat3.pack(mat3.add_diagonal(mat3.scale(grown, shrink), g))


@inline
def _remaining(D, two_mu_dt, eta, n):
    """Return the part z of the excess D = s_pre - s_Y that is left after dt: D z + 2 mu_t dt (D z / eta)^(1/n) = D.

    Y15 Algorithm 13 as the root of c_p w^p + c_1 w = 1 with p = max(n, 1/n) and both coefficients at most 1: increasing and
    convex, so Newton descends monotonically from w = 1, and nothing overflows.
    """
    one, o = const(D, 1.0), const(D, 0.0)
    tiny = const(D, 1e-30)
    inverse = one / n
    log_beta = (log(maximum(tiny, two_mu_dt)) + (inverse - one) * log(maximum(tiny, D)) - inverse * log(maximum(tiny, eta)))
    low = exp(minimum(o, log_beta))
    q = exp((o - n) * maximum(o, log_beta))
    thins = n < one
    p, c_p, c_1 = select(thins, inverse, n), select(thins, low, q), select(thins, q, low)
    w, power = one, one
    moved = one
    for _ in range(ITERATIONS):
        if any_lane(moved > const(D, 1e-15)):
            power = exp(p * log(w))
            step = (c_p * power + c_1 * w - one) / (c_p * p * power / w + c_1)
            # rounding at the root may step up: a w above 1 or below 0 never comes back
            fresh = minimum(one, maximum(const(D, 1e-3) * w, w - step))
            moved = w - fresh
            w = fresh
    return select(eta > o, q * select(thins, w, exp(n * log(w))), o)


@inline
def project(state, coeffs, dt):
    """Return the state after plastic flow during dt, with det b = 1 (Y15 section 5.2, Algorithm 13)."""
    E = mat3.unpack(state[1])
    mu, s_Y = coeffs[1], coeffs[3]
    spherical = mat3.trace(E) * const(mu, 1.0 / 3.0)
    deviator = mat3.add_diagonal(E, const(mu, 0.0) - spherical)
    s_pre = mu * sqrt(mat3.double_dot(deviator, deviator))
    yields = s_pre > s_Y
    if any_lane(yields):
        mu_t = mu * (const(mu, 1.0) + spherical)
        D = s_pre - s_Y
        z = _remaining(D, (mu_t + mu_t) * dt, coeffs[4], coeffs[5])
        kept = select(yields, (s_Y + D * z) / maximum(const(mu, 1e-30), s_pre), const(mu, 1.0))
        E = mat3.add_diagonal(mat3.scale(deviator, kept), spherical)
    return state[0], mat3.pack(unimodular(E))


@inline
def left_strain(state):
    """Return J and b."""
    one = const(state[0], 1.0)
    return one + state[0], mat3.add_diagonal(mat3.unpack(state[1]), one)


@inline
def feasible(state, A, coeffs, dt):
    """Return where the energy is defined: det(I + A) > 0."""
    return mat3.det(mat3.add_diagonal(A, const(A[0], 1.0))) > const(A[0], 0.0)


@inline
def wave_speed(state, coeffs):
    """Return a bound of the fastest wave [m/s] in current space: sqrt((kap + 4 mu / 3) / rho_0) at rest.

    A wave along n has kap (J^2 + 1) / 2 + mu (5 tr b / 9 - n b n / 3), from dT at A = 0.
    """
    e, E = state[0], mat3.unpack(state[1])
    one = const(e, 1.0)
    J = one + e
    # the bound comes second in maximum and minimum: NaN passes there, and must
    shear = const(e, 4.0 / 3.0) + const(e, 5.0 / 9.0) * mat3.trace(E) + const(e, 1.0 / 3.0) * minimum(one, mat3.row_sum_bound(E))
    return sqrt((coeffs[0] * maximum(one, const(e, 0.5) * (J * J + one)) + coeffs[1] * shear) / coeffs[2])
