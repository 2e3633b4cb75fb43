"""Tuple algebra, singular values, polar decomposition, guarded step."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from mpm_nodes.kernels.algebra import mat3, rotations
from mpm_nodes.kernels.lanes.memory import load, store

RANDOM = np.random.default_rng(7)


def columns(matrices):
    """(n, 3, 3) -> the nine columns that the functions take."""
    return tuple(np.ascontiguousarray(matrices.reshape(-1, 9).T))


def matrices(values, count=None):
    """Nine columns -> (n, 3, 3) in float64."""
    rows = np.stack(np.broadcast_arrays(*values), -1)
    return np.broadcast_to(rows, (count or rows.shape[0], 9)).reshape(-1, 3, 3).astype(np.float64)


def random_rotations(count):
    q = np.linalg.qr(RANDOM.standard_normal((count, 3, 3)))[0]
    return q * np.sign(np.linalg.det(q))[:, None, None]


def with_singular_values(values):
    """Random matrices of given singular values, shape (n, 3)."""
    return random_rotations(len(values)) * np.asarray(values)[:, None, :] @ random_rotations(len(values))


def test_products_equal_numpy():
    """Products, transposes, traces and cofactors agree with NumPy to rounding."""
    a, b = RANDOM.standard_normal((2, 50, 3, 3))
    A, B = columns(a), columns(b)
    t = (0, 2, 1)
    for ours, reference in (
        (mat3.matmul(A, B), a @ b),
        (mat3.matmul_nt(A, B), a @ b.transpose(t)),
        (mat3.matmul_tn(A, B), a.transpose(t) @ b),
        (mat3.gram(A), a @ a.transpose(t)),
        (mat3.add_scaled(A, 2.0, B), a + 2 * b),
        (mat3.transpose(A), a.transpose(t)),
        (mat3.symmetric(A), (a + a.transpose(t)) / 2),
        (mat3.inverse(A), np.linalg.inv(a)),
        (mat3.cofactor(A), np.linalg.det(a)[:, None, None] * np.linalg.inv(a).transpose(t)),
        (mat3.deviator(A), a - np.trace(a, axis1=1, axis2=2)[:, None, None] / 3 * np.eye(3)),
        (mat3.similarity(A, *B[:3]), a * b[:, 0, None, :] @ a.transpose(t)),
        (mat3.outer(A[:3], B[:3]), np.einsum("ni,nj->nij", a[:, 0], b[:, 0])),
        (mat3.unpack(mat3.pack(A)), (a + a.transpose(t)) / 2),
    ):
        np.testing.assert_allclose(matrices(ours), reference, atol=1e-10 * np.abs(reference).max())
    np.testing.assert_allclose(mat3.det(A), np.linalg.det(a), rtol=1e-10)
    np.testing.assert_allclose(mat3.trace(A), np.trace(a, axis1=1, axis2=2), rtol=1e-12)
    np.testing.assert_allclose(mat3.double_dot(A, B), (a * b).sum((1, 2)), rtol=1e-10)
    np.testing.assert_allclose(mat3.dot(A[:3], B[:3]), (a[:, 0] * b[:, 0]).sum(1), rtol=1e-12)
    np.testing.assert_allclose(np.stack(mat3.cross(A[:3], B[:3]), -1), np.cross(a[:, 0], b[:, 0]), atol=1e-14)
    np.testing.assert_allclose(np.stack(mat3.matvec(A, B[:3]), -1), np.einsum("nij,nj->ni", a, b[:, 0]), atol=1e-13)


def test_cofactor_differential_is_the_derivative():
    """cof(M + Q) = cof M + d cof + cof Q: the expansion of a quadratic map is exact."""
    m, q = RANDOM.standard_normal((2, 50, 3, 3))
    M, Q = columns(m), columns(q)
    exact = matrices(mat3.cofactor(columns(m + q))) - matrices(mat3.cofactor(M)) - matrices(mat3.cofactor(Q))
    np.testing.assert_allclose(matrices(mat3.cofactor_differential(M, Q)), exact, atol=1e-13)


def test_bounds_and_definiteness():
    """The row-sum bound covers the spectral radius, exactly on diagonals; definiteness agrees with eigenvalues."""
    a = RANDOM.standard_normal((500, 3, 3))
    symmetric = a + a.transpose(0, 2, 1)
    eigenvalues = np.linalg.eigvalsh(symmetric)
    assert (mat3.row_sum_bound(columns(symmetric)) >= np.abs(eigenvalues).max(1) - 1e-12).all()
    assert mat3.row_sum_bound(mat3.diagonal(2.0, -5.0, 1.0)) == 5.0
    definite = columns(symmetric + 3 * np.eye(3))
    np.testing.assert_array_equal(mat3.is_positive(definite), (eigenvalues + 3 > 0).all(1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cube_root(dtype):
    """The cube root of 1 is 1 exactly, others are right to rounding."""
    x = np.geomspace(1e-6, 1e6, 1001).astype(dtype)
    np.testing.assert_allclose(mat3.cube_root(x), np.cbrt(x.astype(np.float64)), rtol=3 * np.finfo(dtype).eps)
    assert mat3.cube_root(dtype(1.0)) == 1.0


def svd_cases():
    count = 10_000
    random = RANDOM.standard_normal((10 * count, 3, 3))
    few = random[:count]
    tile = np.tile
    return {
        "random": random,
        "near identity": np.eye(3) + 0.02 * few,
        "identity": np.broadcast_to(np.eye(3), (4, 3, 3)),
        "two equal": with_singular_values(tile([1, 1, 1e-3], (count, 1))),
        "two equal and small": with_singular_values(tile([1, 1e-4, 1e-4], (count, 1))),
        "below sqrt(eps)": with_singular_values(tile([1, 3e-4, 1e-8], (count, 1))),
        "rank 2": with_singular_values(tile([1.0, 0.5, 0.0], (count, 1))),
        "rank 1": with_singular_values(tile([1.0, 0.0, 0.0], (count, 1))),
        "rotation": with_singular_values(np.ones((count, 3))),
        "any size": with_singular_values(10.0 ** RANDOM.uniform(-8, 0, (count, 3))),
        "inverted": -few,
        "integers": RANDOM.integers(-1, 2, (count, 3, 3)).astype(float),
        "zero": np.zeros((1, 3, 3)),
        "tiny": 1e-12 * few,
        "huge": 1e12 * few,
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", svd_cases().items(), ids=lambda case: case[0])
def test_svd_is_accurate_everywhere(case, dtype):
    """F = U s V^T with rotations U, V and the sign on the smallest value, for degenerate and inverted F too.

    Measured: 10 units in the last place of |F|; allowed 16.
    """
    F = case[1].astype(dtype)
    U, s, V = rotations.svd(columns(F))
    U, V, s = matrices(U, len(F)), matrices(V, len(F)), np.stack(s, -1).astype(np.float64)
    F = F.astype(np.float64)
    eps = 16 * np.finfo(dtype).eps
    size = np.linalg.norm(F, axis=(1, 2))
    assert (np.linalg.norm(U * s[:, None, :] @ V.transpose(0, 2, 1) - F, axis=(1, 2)) <= eps * size).all()
    for rotation in (U, V):
        np.testing.assert_allclose(rotation @ rotation.transpose(0, 2, 1) - np.eye(3), 0.0, atol=eps)
        np.testing.assert_allclose(np.linalg.det(rotation), 1.0, atol=3 * eps)
    reference = np.linalg.svd(F, compute_uv=False)
    assert (np.abs(np.abs(s) - reference).max(1) <= eps * size).all()
    assert (s[:, 0] >= s[:, 1] - eps * size).all() and (s[:, 1] >= np.abs(s[:, 2]) - eps * size).all()
    regular = np.abs(np.linalg.det(F / np.maximum(size, 1e-300)[:, None, None])) > eps
    np.testing.assert_array_equal(np.sign(s[regular, 2]), np.sign(np.linalg.det(F[regular])))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_polar_decomposition(dtype):
    """F = R S with a rotation R and a symmetric S, for mild strains (Newton) and for large and inverted ones (SVD)."""
    wild = RANDOM.standard_normal((20_000, 3, 3))
    mild = random_rotations(20_000) @ (np.eye(3) + 0.05 * RANDOM.standard_normal((20_000, 3, 3)))
    eps = 30 * np.finfo(dtype).eps
    for F in (mild.astype(dtype), wild.astype(dtype)):
        R, S = (matrices(part) for part in rotations.polar(columns(F)))
        np.testing.assert_allclose(R @ R.transpose(0, 2, 1), np.broadcast_to(np.eye(3), F.shape), atol=eps)
        np.testing.assert_allclose(np.linalg.det(R), 1.0, atol=eps)
        np.testing.assert_array_equal(S, S.transpose(0, 2, 1))
        assert (np.linalg.norm(R @ S - F, axis=(1, 2)) <= eps * np.linalg.norm(F, axis=(1, 2))).all()
        u, s, vt = np.linalg.svd(F.astype(np.float64))
        sign = np.sign(np.linalg.det(u @ vt))
        u[:, :, 2] *= sign[:, None]
        # the rotation is as well determined as the sum of the two smallest signed values is large
        firm = s[:, 1] + sign * s[:, 2] > 0.2 * s[:, 0]
        np.testing.assert_allclose(R[firm], (u @ vt)[firm], atol=20 * eps)


def test_polar_differential_is_the_derivative():
    """dR equals central differences of the rotation, for positive and inverted F whose rotation is well determined."""
    F, dF = RANDOM.standard_normal((2, 500, 3, 3))
    s = np.linalg.svd(F, compute_uv=False)
    firm = s[:, 1] + np.sign(np.linalg.det(F)) * s[:, 2] > 0.3 * s[:, 0]
    F, dF = F[firm], dF[firm]
    h = 1e-4

    def turned(x):
        return matrices(rotations.rotation(columns(F + x * dF)))

    differences = (8 * (turned(h) - turned(-h)) - turned(2 * h) + turned(-2 * h)) / (12 * h)
    dR = matrices(rotations.polar_differential(*rotations.polar(columns(F)), columns(dF)))
    np.testing.assert_allclose(dR, differences, atol=1e-7 * np.abs(dR).max())


def test_safe_step_keeps_orientation():
    """R(A) = I + A where that keeps the orientation, else det R = det(I + A / 2^k)^(2^k) > 0 with the smallest k."""
    A = RANDOM.uniform(0.0, 0.5, (20_000, 1, 1)) * RANDOM.standard_normal((20_000, 3, 3))
    R = matrices(mat3.safe_step(columns(A)))
    det = np.linalg.det(np.eye(3) + A)
    np.testing.assert_array_equal(R[det > 1e-12], (np.eye(3) + A)[det > 1e-12])
    inverted = det < -1e-12
    assert inverted.sum() > 50
    assert (np.linalg.det(R) > 0.0).all()
    expected = np.full(len(A), np.nan)
    for k in range(mat3.HALVINGS, 0, -1):
        base = np.linalg.det(np.eye(3) + A / 2**k)
        expected = np.where(base > 0, np.abs(base) ** (2**k), expected)
    np.testing.assert_allclose(np.linalg.det(R)[inverted], expected[inverted], rtol=1e-6, atol=1e-12)


def test_a_hopeless_step_is_not_taken():
    """Where eight halvings do not help, the old deformation stays; where that fails as well, a thousandth of the volume does."""
    F = np.stack([np.diag([1.2, 0.9, 1.1]), np.diag([1.0, 1.0, -1.0]), np.eye(3)])
    A = np.stack([-1e3 * np.eye(3), np.zeros((3, 3)), 0.1 * np.eye(3)])
    new = matrices(mat3.advance_deformation(columns(F), columns(A)))
    np.testing.assert_array_equal(new[0], F[0])
    np.testing.assert_allclose(new[1], 0.1 * np.eye(3), rtol=1e-12)
    np.testing.assert_array_equal(new[2], 1.1 * np.eye(3))


@numba.njit(error_model="numpy")
def _svd_of_lanes(F, S, stride):
    rows = (
        load(F, 0),
        load(F, stride),
        load(F, 2 * stride),
        load(F, 3 * stride),
        load(F, 4 * stride),
        load(F, 5 * stride),
        load(F, 6 * stride),
        load(F, 7 * stride),
        load(F, 8 * stride),
    )
    _U, s, _V = rotations.svd(rows)
    store(S, 0, s[0])
    store(S, stride, s[1])
    store(S, 2 * stride, s[2])


@numba.njit(error_model="numpy")
def _svd_of_scalars(F, S, stride):
    for i in range(16):
        rows = (
            F[i],
            F[stride + i],
            F[2 * stride + i],
            F[3 * stride + i],
            F[4 * stride + i],
            F[5 * stride + i],
            F[6 * stride + i],
            F[7 * stride + i],
            F[8 * stride + i],
        )
        _U, s, _V = rotations.svd(rows)
        S[i], S[stride + i], S[2 * stride + i] = s[0], s[1], s[2]


@pytest.mark.parametrize("compiled", [_svd_of_lanes, _svd_of_scalars], ids=["lanes", "scalars"])
def test_compiled_svd_equals_its_numpy_twin(compiled):
    """Lanes and compiled scalars give the singular values of the NumPy evaluation to a few units in the last place."""
    F = RANDOM.standard_normal((16, 3, 3)).astype(np.float32)
    F[3], F[7] = 0.0, np.eye(3)
    flat = F.reshape(16, 9).T.ravel().copy()
    S = np.zeros(48, np.float32)
    compiled(flat, S, 16)
    _U, s, _V = rotations.svd(columns(F))
    np.testing.assert_allclose(S.reshape(3, 16), np.stack(s), atol=8 * np.finfo(np.float32).eps * np.abs(F).max() * 3)
