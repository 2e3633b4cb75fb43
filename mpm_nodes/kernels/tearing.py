"""Tearing and recovery of one particle (Y15 section 7), on values of any kind (see `mat3`), and their loops over particles.

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

import numpy as np

from mpm_nodes.kernels import mat3, rotations
from mpm_nodes.kernels.differences import exp_less_one
from mpm_nodes.kernels.eigen import eigen, largest_eigenvalue, rough_eigen
from mpm_nodes.kernels.exponentials import log
from mpm_nodes.kernels.jit import inline, kernel, part
from mpm_nodes.kernels.lane_memory import load, prefetch, store, store_first
from mpm_nodes.kernels.lane_types import WIDTH
from mpm_nodes.kernels.lanes import absolute, any_lane, both, broadcast, const, either, maximum, minimum, sqrt
from mpm_nodes.kernels.parallel import parallel_for


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
    D = mat3.add((const(x, 0.0), -z, y, z, const(x, 0.0), -x, -y, x, const(x, 0.0)),
                 mat3.add_diagonal(mat3.scale(mat3.outer((x, y, z), (x, y, z)), k), -(k * sine2)))
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
        T = mat3.similarity(U, exp_less_one(exponent * (x - mean)), exp_less_one(exponent * (y - mean)),
                            exp_less_one(exponent * (z - mean)))
        F = mat3.choose(moves, mat3.add(F, mat3.matmul(F, T)), F)
    return moves, F


# ---------------------------------------------------------------- loops that need no law
@inline
def load_matrix(rows, stride, i):
    """Load nine rows of sixteen particles."""
    return (load(rows, i), load(rows, stride + i), load(rows, 2 * stride + i), load(rows, 3 * stride + i),
            load(rows, 4 * stride + i), load(rows, 5 * stride + i), load(rows, 6 * stride + i), load(rows, 7 * stride + i),
            load(rows, 8 * stride + i))


@inline
def store_matrix(rows, stride, i, M, count):
    """Store nine rows of the first `count` of sixteen particles, of all where there are more."""
    if count >= WIDTH:
        store(rows, i, M[0])
        store(rows, stride + i, M[1])
        store(rows, 2 * stride + i, M[2])
        store(rows, 3 * stride + i, M[3])
        store(rows, 4 * stride + i, M[4])
        store(rows, 5 * stride + i, M[5])
        store(rows, 6 * stride + i, M[6])
        store(rows, 7 * stride + i, M[7])
        store(rows, 8 * stride + i, M[8])
    else:
        store_first(rows, i, M[0], count)
        store_first(rows, stride + i, M[1], count)
        store_first(rows, 2 * stride + i, M[2], count)
        store_first(rows, 3 * stride + i, M[3], count)
        store_first(rows, 4 * stride + i, M[4], count)
        store_first(rows, 5 * stride + i, M[5], count)
        store_first(rows, 6 * stride + i, M[6], count)
        store_first(rows, 7 * stride + i, M[7], count)
        store_first(rows, 8 * stride + i, M[8], count)


@inline
def limit_stress_run(stress, stress_stride, stress_shift, weak, start, end):
    """Take the tension out of the stress of weak particles start .. end-1, row r of particle p at r * stride + shift + p."""
    for i in range(start, end, WIDTH):
        flag = load(weak, i)
        torn = flag != const(flag, 0)
        if any_lane(torn):
            at = stress_shift + i
            p = (load(stress, at), load(stress, stress_stride + at), load(stress, 2 * stress_stride + at),
                 load(stress, 3 * stress_stride + at), load(stress, 4 * stress_stride + at), load(stress, 5 * stress_stride + at))
            T = mat3.unpack(p)
            new = mat3.pack(mat3.choose(torn, without_tension(T), T))
            store_first(stress, at, new[0], end - i)
            store_first(stress, stress_stride + at, new[1], end - i)
            store_first(stress, 2 * stress_stride + at, new[2], end - i)
            store_first(stress, 3 * stress_stride + at, new[3], end - i)
            store_first(stress, 4 * stress_stride + at, new[4], end - i)
            store_first(stress, 5 * stress_stride + at, new[5], end - i)


@part
def _limit_stress_at(k, stress, stride, weak, ranges):
    limit_stress_run(stress, stride, np.int64(0), weak, ranges[k, 0], ranges[k, 1])


@kernel(fastmath=False)
def limit_stress(stress, stride, weak, ranges):
    """Take the tension out of the stress of weak particles."""
    parallel_for(_limit_stress_at, ranges.shape[0], (stress, stride, weak, ranges))


@inline
def total_deformation_run(total, velocity_gradient, L_stride, L_shift, stride, start, end, ahead, dt):
    """Advance the total deformation of particles start .. end-1: F <- R(dt L) F."""
    for i in range(start, end, WIDTH):
        for row in range(9):
            prefetch(total, row * stride + i + ahead)
        F = load_matrix(total, stride, i)
        A = mat3.scale(load_matrix(velocity_gradient, L_stride, L_shift + i), broadcast(F[0], dt))
        store_matrix(total, stride, i, mat3.advance_deformation(F, A), end - i)


@part
def _update_total_deformation_at(k, total, velocity_gradient, stride, ranges, dt):
    total_deformation_run(total, velocity_gradient, stride, np.int64(0), stride, ranges[k, 0], ranges[k, 1], np.int64(0), dt)


@kernel(fastmath=False)
def update_total_deformation(total, velocity_gradient, stride, ranges, dt):
    """Advance the total deformation of all particles."""
    parallel_for(_update_total_deformation_at, ranges.shape[0], (total, velocity_gradient, stride, ranges, dt))
