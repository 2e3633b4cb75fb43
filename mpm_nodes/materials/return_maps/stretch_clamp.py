"""A clamp on the principal stretches, and hardening by packing, for any elastic law (Stomakhin 2013; B18 section 8; S14 5.1).

| symbol | meaning | unit |
|---|---|---|
| F | elastic deformation gradient | - |
| Jp | determinant of the plastic part (state) | - |
| th_c, th_s | largest elastic compression and stretch | - |
| xi | hardening: stiffnesses of the unpacked material, times exp(min(xi (1 - Jp), 20)) in every stress | - |

The return map keeps det F * Jp. With `preserve_volume` F takes the plastic volume over (F <- Jp^(1/3) F, Jp <- 1),
after which singular values may leave the clamp: intended (S14 section 5.1).
"""

from __future__ import annotations

from typing import Any

from mpm_nodes.kernels.algebra import mat3, rotations
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.arithmetic import any_lane, both, const, either, maximum, minimum, negate, select
from mpm_nodes.kernels.lanes.exponentials import exp
from mpm_nodes.materials.values import Coefficients, Mask, Matrix, PrincipalStress, State, Value, Vector

STATE = ("plastic_volume_ratio",)
COEFFICIENTS = ("lowest", "highest", "hardening", "preserve_volume")


def coefficients(params: Any) -> tuple[float, ...]:
    """Return (1 - th_c, 1 + th_s, xi, 1 where the volume is preserved)."""
    return (
        1.0 - params.critical_compression,
        1.0 + params.critical_stretch,
        params.hardening,
        float(params.preserve_volume),
    )


@inline
def stiffening(own: State, coeffs: Coefficients) -> Value:
    """Return the factor of the elastic stiffness at this packing."""
    Jp = own[0]
    return exp(minimum(const(Jp, 20.0), coeffs[2] * (const(Jp, 1.0) - Jp)))


@inline
def plastic_volume(own: State) -> Value:
    """Return Jp: the volume change of flow."""
    return own[0]


@inline
def _yields(F: Matrix, low: Value, high: Value) -> Mask:
    """Return where a singular value of F lies outside [low, high]: a definiteness test instead of an SVD."""
    C = mat3.gram(F)
    within = both(
        mat3.is_positive(mat3.add_diagonal(C, -low * low)),
        mat3.is_positive(mat3.add_diagonal(mat3.scale(C, const(low, -1.0)), high * high)),
    )
    return negate(both(within, mat3.det(F) > const(low, 0.0)))


@inline
def _clamped(s: Vector, Jp: Value, low: Value, high: Value) -> tuple[Value, Value, Value, Value]:
    """Return the clamped stretches and Jp that takes the difference; the bounds come first, where a NaN passes."""
    x, y, z = (minimum(high, maximum(low, s[0])), minimum(high, maximum(low, s[1])), minimum(high, maximum(low, s[2])))
    # a product below zero is an inverted particle or rounding of a crushed one: Jp stays positive
    return x, y, z, Jp * maximum(const(Jp, 1e-6), (s[0] / x) * (s[1] / y) * (s[2] / z))


@inline
def _clamp(F: Matrix, Jp: Value, low: Value, high: Value) -> tuple[Matrix, Value]:
    """Return F with clamped singular values, and Jp that takes the difference."""
    U, s, V = rotations.svd(F)
    x, y, z, Jp = _clamped(s, Jp, low, high)
    # only the change is added: directions inside the clamp keep their bits
    a, b, c = x - s[0], y - s[1], z - s[2]
    change = (U[0] * a, U[1] * b, U[2] * c, U[3] * a, U[4] * b, U[5] * c, U[6] * a, U[7] * b, U[8] * c)
    return mat3.add(F, mat3.matmul_nt(change, V)), Jp


@inline
def project_deformation(F: Matrix, own: State, moduli: Coefficients, coeffs: Coefficients, dt: Value) -> tuple[Matrix, State]:
    """Return F with singular values clamped to [1 - th_c, 1 + th_s], the difference moved into Jp.

    Particles within the clamp keep F and Jp to the bit, and cost no SVD when their whole group is.
    """
    Jp = own[0]
    one = const(Jp, 1.0)
    keep = coeffs[3] > const(Jp, 0.5)
    moves = either(_yields(F, coeffs[0], coeffs[1]), both(keep, Jp != one))
    if any_lane(moves):
        G, ratio = _clamp(F, Jp, coeffs[0], coeffs[1])
        G = mat3.scale(G, select(keep, mat3.cube_root(ratio), one))
        F, Jp = mat3.choose(moves, G, F), select(moves, select(keep, one, ratio), Jp)
    return F, (Jp,)


@inline
def project_stretches(
    s: Vector, own: State, stress_of: PrincipalStress, moduli: Coefficients, coeffs: Coefficients, dt: Value
) -> tuple[Vector, State]:
    """Return the clamped principal stretches, and Jp that takes the difference or none of it."""
    x, y, z, ratio = _clamped(s, own[0], coeffs[0], coeffs[1])
    one = const(ratio, 1.0)
    keep = coeffs[3] > const(ratio, 0.5)
    grow = select(keep, mat3.cube_root(ratio), one)
    return (grow * x, grow * y, grow * z), (select(keep, one, ratio),)


@inline
def yield_function(s: Vector, own: State, stress_of: PrincipalStress, moduli: Coefficients, coeffs: Coefficients) -> Value:
    """Return how far a stretch lies outside of the clamp, negative inside."""
    far = maximum(maximum(s[0], s[1]), s[2]) - coeffs[1]
    return maximum(far, coeffs[0] - minimum(minimum(s[0], s[1]), s[2]))
