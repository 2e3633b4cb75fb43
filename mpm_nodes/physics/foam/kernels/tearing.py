"""Tearing and recovery of one particle (Y15 section 7), on values of any kind (see `mat3`).

| symbol | meaning | unit |
|---|---|---|
| F | total deformation gradient, F = F_E F_P up to the elastic volume | - |
| b | unimodular elastic left Cauchy-Green tensor | - |
| C_P | F_P^T F_P = det(F)^(-2/3) F^T b^-1 F, of determinant 1 | - |
| L, f | velocity gradient, I + dt L | 1/s, - |
| J | elastic volume ratio | - |
| weak | 1 where the particle is torn | - |
"""

from __future__ import annotations

from mpm_nodes.kernels.algebra import mat3, rotations
from mpm_nodes.kernels.algebra.eigen import eigen, largest_eigenvalue, rough_eigen
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.arithmetic import absolute, any_lane, both, const, either, maximum, minimum, sqrt
from mpm_nodes.kernels.lanes.exponentials import log
from mpm_nodes.kernels.transfers.differences import exp_less_one


# ---------------------------------------------------------------- plastic strain
@inline
def _plastic_strain_unscaled(F, b):
    """Return C_P times det(F)^(2/3), symmetric: b has determinant 1, so that its cofactors are its inverse."""
    return mat3.symmetric(mat3.matmul_tn(F, mat3.matmul(mat3.cofactor(b), F)))


@inline
def _volume_root(F):
    """Return det(F)^(1/3); a total gradient has a positive determinant, the bound only keeps garbage out of the logarithm."""
    J = mat3.det(F)
    return mat3.cube_root(maximum(const(J, 1e-30), J))


@inline
def plastic_strain(F, b):
    """Return C_P = det(F)^(-2/3) F^T b^-1 F (Y15 section 7.1)."""
    c = _volume_root(F)
    return mat3.scale(_plastic_strain_unscaled(F, b), const(c, 1.0) / (c * c))


@inline
def is_torn(F, b, threshold):
    """Return where |dev C_P| > threshold (Y15 Algorithm 7)."""
    c = _volume_root(F)
    D = mat3.deviator(_plastic_strain_unscaled(F, b))
    limit = threshold * c * c
    return mat3.double_dot(D, D) > limit * limit


# ---------------------------------------------------------------- limits of weak particles
@inline
def without_tension(T):
    """Return the symmetric T with its positive eigenvalues set to zero (Y15 Algorithm 8); to the bit where it has none."""
    U, s = eigen(T)
    o = const(T[0], 0.0)
    limited = mat3.similarity(U, minimum(s[0], o), minimum(s[1], o), minimum(s[2], o))
    return mat3.choose(maximum(maximum(s[0], s[1]), s[2]) > o, limited, T)


@inline
def _rotation_increment(R):
    """Return R - I for a rotation by less than a right angle from its skew part alone: trace and determinant keep their bits."""
    half, one = const(R[0], 0.5), const(R[0], 1.0)
    x, y, z = half * (R[7] - R[5]), half * (R[2] - R[6]), half * (R[3] - R[1])
    sine2 = x * x + y * y + z * z
    k = one / (one + sqrt(maximum(const(one, 0.0), one - sine2)))
    D = mat3.add(
        (const(x, 0.0), -z, y, z, const(x, 0.0), -x, -y, x, const(x, 0.0)),
        mat3.add_diagonal(mat3.scale(mat3.outer((x, y, z), (x, y, z)), k), -(k * sine2)),
    )
    return mat3.choose(mat3.trace(R) > one, D, mat3.add_diagonal(R, -one))


@inline
def limited_gradient(L, J, b, dt, alg11_expansion):
    """Return the velocity gradient of a weak particle: L to the bit where neither of the two limits holds (Y15 section 7.2).

    Shear: where f raises the largest eigenvalue of b, f becomes det(f)^(1/3) times its rotation. Expansion: where then det f > 1
    and J > 1 (with `alg11_expansion` J det f > 1, as Algorithm 11 has it), f is scaled to det f = 1. An inverting f is the
    guarded step R(dt L) of `mat3`. Computed from f - I and det f - 1, so that small steps are not lost in the rounding of 1.
    """
    one, o = const(J, 1.0), const(J, 0.0)
    S = mat3.safe_increment(mat3.scale(L, dt))
    d = mat3.det_excess(S)
    c = mat3.cube_root(maximum(const(d, 1e-30), one + d))
    q = d / (c * c + c + one)
    f = mat3.add_diagonal(S, one)
    trial = mat3.scale(mat3.matmul_nt(mat3.matmul(f, b), f), one / (c * c))
    shears = largest_eigenvalue(trial) > largest_eigenvalue(b)
    volume = J * (one + d) if alg11_expansion else J
    expands = both(volume > one, d > o)
    unimodular = mat3.scale(mat3.add_diagonal(S, -q), one / (one + q))
    shape = mat3.choose(shears, _rotation_increment(rotations.rotation(f)), unimodular)
    corrected = mat3.choose(expands, shape, mat3.add_diagonal(mat3.scale(shape, one + q), q))
    return mat3.choose(either(shears, expands), mat3.scale(corrected, one / dt), L)


# ---------------------------------------------------------------- recovery
@inline
def recovered(F, b, exponent, rest):
    """Return where C_P is not at rest, and F with C_P raised to the power 1 + 2 `exponent` there (Y15 Algorithm 14).

    F U diag(S^exponent) U^T with C_P = U diag(S) U^T and exponent = (e^(-dt/t_p) - 1) / 2; det F stays, since the logarithms of
    S sum to zero. C_P is at rest where |dev C_P| <= `rest` tr C_P: what rounding leaves.
    """
    C = _plastic_strain_unscaled(F, b)
    size = mat3.trace(C)
    D = mat3.deviator(C)
    moves = mat3.double_dot(D, D) > rest * rest * size * size
    if any_lane(moves):
        # an error off the diagonal of U^T C U counts as much as the exponent lets it
        U, s = rough_eigen(C, const(rest, 0.1) * rest / maximum(absolute(exponent), const(rest, 1e-9)))
        least = const(size, 1e-12) * size
        x, y, z = log(maximum(s[0], least)), log(maximum(s[1], least)), log(maximum(s[2], least))
        mean = const(size, 1.0 / 3.0) * (x + y + z)
        T = mat3.similarity(
            U, exp_less_one(exponent * (x - mean)), exp_less_one(exponent * (y - mean)), exp_less_one(exponent * (z - mean))
        )
        F = mat3.choose(moves, mat3.add(F, mat3.matmul(F, T)), F)
    return moves, F
