"""Snow: fixed corotated elasticity, a clamp on the singular values, hardening (Stomakhin 2013; B18 section 8; S14 5.1).

| symbol | meaning | unit |
|---|---|---|
| F | elastic deformation gradient (state) | - |
| Jp | determinant of the plastic part (state) | - |
| th_c, th_s | largest elastic compression and stretch | - |
| xi | hardening | - |
| mu, lam | moduli of the unpacked material, times exp(min(xi (1 - Jp), 20)) in every stress | Pa |

The return map keeps det F * Jp. With `preserve_volume` F takes the plastic volume over (F <- Jp^(1/3) F, Jp <- 1),
after which singular values may leave the clamp: intended (S14 section 5.1).
"""

from __future__ import annotations

from mpm_nodes.kernels import mat3, rotations
from mpm_nodes.kernels.exponentials import exp
from mpm_nodes.kernels.jit import inline
from mpm_nodes.kernels.lanes import any_lane, both, const, either, maximum, minimum, negate, select
from mpm_nodes.materials import fixed_corotated
from mpm_nodes.materials.parameters import Snow as Params
from mpm_nodes.materials.parameters import lame

STATE = ("deformation", "plastic_volume_ratio")
COEFFICIENTS = ("mu", "lam", "density", "lowest", "highest", "hardening", "preserve_volume")
STIFFNESS = ("mu", "lam")
VISCOSITY = None


def coefficients(params: Params, density: float) -> tuple[float, ...]:
    """Return (mu [Pa], lam [Pa], density [kg/m^3], 1 - th_c, 1 + th_s, xi, 1 where the volume is preserved)."""
    return (*lame(params.youngs_modulus, params.poisson_ratio), density, 1.0 - params.critical_compression,
            1.0 + params.critical_stretch, params.hardening, float(params.preserve_volume))


@inline
def _hardened(state, coeffs):
    """Return the coefficients of the elastic law at this packing."""
    Jp = state[1]
    factor = exp(minimum(const(Jp, 20.0), coeffs[5] * (const(Jp, 1.0) - Jp)))
    return (coeffs[0] * factor, coeffs[1] * factor, coeffs[2])


@inline
def energy(state, A, coeffs, dt):
    """Return psi [J/m^3]."""
    return fixed_corotated.energy((state[0],), A, _hardened(state, coeffs), dt)


@inline
def stress(state, A, coeffs, dt):
    """Return T = dpsi/dA [Pa]."""
    return fixed_corotated.stress((state[0],), A, _hardened(state, coeffs), dt)


@inline
def kirchhoff(state, coeffs):
    """Return T at A = 0 [Pa]."""
    return fixed_corotated.kirchhoff((state[0],), _hardened(state, coeffs))


@inline
def stress_differential(state, A, dA, coeffs, dt):
    """Return the derivative of T along dA [Pa]."""
    return fixed_corotated.stress_differential((state[0],), A, dA, _hardened(state, coeffs), dt)


@inline
def advance(state, A, coeffs, dt):
    """Return the elastic trial state after the step."""
    return (mat3.advance_deformation(state[0], A), state[1])


@inline
def _yields(F, low, high):
    """Return where a singular value of F lies outside [low, high]: a definiteness test instead of an SVD."""
    C = mat3.gram(F)
    within = both(mat3.is_positive(mat3.add_diagonal(C, -low * low)),
                  mat3.is_positive(mat3.add_diagonal(mat3.scale(C, const(low, -1.0)), high * high)))
    return negate(both(within, mat3.det(F) > const(low, 0.0)))


@inline
def _clamp(F, Jp, low, high):
    """Return F with clamped singular values, and Jp that takes the difference."""
    U, s, V = rotations.svd(F)
    x, y, z = (minimum(maximum(s[0], low), high), minimum(maximum(s[1], low), high), minimum(maximum(s[2], low), high))
    # a product below zero is an inverted particle or rounding of a crushed one: Jp stays positive
    ratio = maximum((s[0] / x) * (s[1] / y) * (s[2] / z), const(Jp, 1e-6))
    # only the change is added: directions inside the clamp keep their bits
    a, b, c = x - s[0], y - s[1], z - s[2]
    change = (U[0] * a, U[1] * b, U[2] * c, U[3] * a, U[4] * b, U[5] * c, U[6] * a, U[7] * b, U[8] * c)
    return mat3.add(F, mat3.matmul_nt(change, V)), Jp * ratio


@inline
def project(state, coeffs, dt):
    """Return the state with singular values of F clamped to [1 - th_c, 1 + th_s], the difference moved into Jp.

    Particles within the clamp keep F and Jp to the bit, and cost no SVD when their whole group is.
    """
    F, Jp = state[0], state[1]
    one = const(Jp, 1.0)
    keep = coeffs[6] > const(Jp, 0.5)
    moves = either(_yields(F, coeffs[3], coeffs[4]), both(keep, Jp != one))
    if any_lane(moves):
        G, ratio = _clamp(F, Jp, coeffs[3], coeffs[4])
        G = mat3.scale(G, select(keep, mat3.cube_root(ratio), one))
        F, Jp = mat3.choose(moves, G, F), select(moves, select(keep, one, ratio), Jp)
    return F, Jp


@inline
def feasible(state, A, coeffs, dt):
    """Return where the step keeps its orientation: det(I + A) > 0."""
    return fixed_corotated.feasible((state[0],), A, coeffs, dt)


@inline
def wave_speed(state, coeffs):
    """Return a bound of the fastest wave [m/s] in current space, with the hardened moduli."""
    return fixed_corotated.wave_speed((state[0],), _hardened(state, coeffs))


@inline
def left_strain(state):
    """Return J = det F and the unimodular b = J^(-2/3) F F^T."""
    return mat3.left_strain(state[0])


@inline
def volume_ratio(state):
    """Return det F Jp: the volume change of flow counts as well."""
    return mat3.det(state[0]) * state[1]
