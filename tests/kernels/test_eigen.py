"""Eigenvalues and eigenvectors of symmetric matrices."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from mpm_nodes.kernels.algebra import eigen
from mpm_nodes.kernels.lanes.arithmetic import const
from mpm_nodes.kernels.lanes.memory import load, store

RANDOM = np.random.default_rng(11)
COUNT = 20_000


def columns(matrices):
    """(n, 3, 3) -> the nine columns that the functions take."""
    return tuple(np.ascontiguousarray(matrices.reshape(-1, 9).T))


def rows(values):
    """Columns -> float64 rows."""
    return np.stack(np.broadcast_arrays(*values), -1).astype(float)


def turned(values):
    """Symmetric matrices of given eigenvalues, shape (n, 3), in random directions."""
    q = np.linalg.qr(RANDOM.standard_normal((len(values), 3, 3)))[0]
    return q * np.asarray(values)[:, None, :] @ q.transpose(0, 2, 1)


def cases():
    random = RANDOM.standard_normal((10 * COUNT, 3, 3))
    return {
        "random": random + random.transpose(0, 2, 1),
        "positive": random @ random.transpose(0, 2, 1),
        "near identity": np.eye(3) + 1e-3 * (random + random.transpose(0, 2, 1)),
        "identity": np.eye(3)[None],
        "diagonal": RANDOM.standard_normal((COUNT, 3))[:, :, None] * np.eye(3),
        "two equal": turned(np.tile([1.0, 1.0, 2.0], (COUNT, 1))),
        "nearly equal": turned([1.0, 1.0, 1.0] + 1e-7 * RANDOM.standard_normal((COUNT, 3))),
        "rank 1": turned(np.tile([0.0, 0.0, 3.0], (COUNT, 1))),
        "graded": turned(10.0 ** RANDOM.uniform(-6, 0, (COUNT, 3))),
        "integers": np.array(
            [
                [[a, b, c], [b, d, e], [c, e, f]]
                for a in (-1, 0, 1)
                for b in (-1, 0, 1)
                for c in (-1, 0, 1)
                for d in (-1, 0, 1)
                for e in (-1, 0, 1)
                for f in (-1, 0, 1)
            ],
            float,
        ),
        "zero": np.zeros((1, 3, 3)),
        "tiny": 1e-12 * (random[:COUNT] + random[:COUNT].transpose(0, 2, 1)),
        "huge": 1e12 * (random[:COUNT] + random[:COUNT].transpose(0, 2, 1)),
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", cases().items(), ids=lambda case: case[0])
def test_eigen_is_accurate_everywhere(case, dtype):
    """M = U diag(s) U^T with a rotation U, and s are NumPy's eigenvalues, for repeated and vanishing ones too.

    Measured: 15 units in the last place of |M|; allowed 24.
    """
    M = case[1].astype(dtype)
    U, s = eigen.eigen(columns(M))
    assert all(value.dtype == dtype for value in (*U, *s))
    U, s, exact = rows(U).reshape(-1, 3, 3), rows(s), M.astype(float)
    size, eps = np.abs(exact).max(axis=(1, 2), keepdims=True) + 1e-300, np.finfo(dtype).eps
    assert (np.abs(U * s[:, None, :] @ U.transpose(0, 2, 1) - exact) <= 24 * eps * size).all()
    assert np.abs(U.transpose(0, 2, 1) @ U - np.eye(3)).max() <= 24 * eps
    assert np.abs(np.linalg.det(U) - 1.0).max() <= 24 * eps
    assert (np.abs(np.sort(s, axis=1) - np.linalg.eigvalsh(exact)) <= 24 * eps * size[:, :, 0]).all()
    largest = np.broadcast_to(eigen.largest_eigenvalue(columns(M)), len(M))
    np.testing.assert_array_equal(largest, s.max(axis=1).astype(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-4])
def test_rough_eigen_leaves_no_more_than_its_tolerance(tolerance, dtype):
    """U^T M U is diagonal up to the tolerance times the root of its diagonal, for strains that differ a hundredfold."""
    M = turned(10.0 ** RANDOM.uniform(-1, 1, (COUNT, 3))).astype(dtype)
    U, s = eigen.rough_eigen(columns(M), dtype(tolerance))
    U, s = rows(U).reshape(-1, 3, 3), rows(s)
    left = U.transpose(0, 2, 1) @ M @ U - s[:, :, None] * np.eye(3)
    size = np.sqrt(s[:, :, None] * s[:, None, :])
    assert (np.abs(left) <= tolerance * size + 50 * np.finfo(dtype).eps * np.abs(M).max(axis=(1, 2), keepdims=True)).all()
    assert np.abs(U.transpose(0, 2, 1) @ U - np.eye(3)).max() <= 24 * np.finfo(dtype).eps


def test_only_the_upper_half_is_read():
    """What stands below the diagonal does not count."""
    M = cases()["random"][:100]
    upper = np.triu(M) + 7.0 * np.tril(np.ones((3, 3)), -1)
    for a, b in zip(eigen.eigen(columns(M))[1], eigen.eigen(columns(upper))[1], strict=True):
        np.testing.assert_array_equal(a, b)


@numba.njit(error_model="numpy")
def in_lanes(m, out):
    U, s = eigen.eigen(
        (load(m, 0), load(m, 16), load(m, 32), load(m, 48), load(m, 64), load(m, 80), load(m, 96), load(m, 112), load(m, 128))
    )
    for k in range(9):
        store(out, 16 * k, U[k])
    for k in range(3):
        store(out, 144 + 16 * k, s[k])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lanes_give_what_columns_give(dtype):
    """Sixteen lanes agree with NumPy columns to rounding, degenerate ones among them."""
    M = np.concatenate([cases()["random"][:13], np.eye(3)[None], np.zeros((1, 3, 3)), turned([[1.0, 1.0, 2.0]])]).astype(dtype)
    out = np.empty(192, dtype)
    in_lanes(np.concatenate(columns(M)), out)
    U, s = out[:144].reshape(9, 16).T.reshape(16, 3, 3).astype(float), out[144:].reshape(3, 16).T.astype(float)
    size = np.abs(M).max(axis=(1, 2)).astype(float)[:, None] + 1e-30
    assert (np.abs(np.sort(s, 1) - np.linalg.eigvalsh(M.astype(float))) <= 24 * np.finfo(dtype).eps * size).all()
    assert (np.abs(U * s[:, None, :] @ U.transpose(0, 2, 1) - M) <= 24 * np.finfo(dtype).eps * size[:, :, None]).all()


@numba.njit(error_model="numpy")
def rough_in_lanes(m, out):
    x = load(m, 0)
    U, s = eigen.rough_eigen(
        (x, load(m, 16), load(m, 32), load(m, 48), load(m, 64), load(m, 80), load(m, 96), load(m, 112), load(m, 128)),
        const(x, 1e-6),
    )
    for k in range(9):
        store(out, 16 * k, U[k])
    for k in range(3):
        store(out, 144 + 16 * k, s[k])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_lane_of_rough_eigen_changes_another(dtype):
    """A matrix has the same bits beside the identity, which needs no sweep more, and beside matrices that need every one."""
    near = RANDOM.standard_normal((16, 3, 3))
    M = np.diag([1.0, 2.0, 3.0]) + 1e-2 * (near + near.transpose(0, 2, 1))
    for first in (0, 1):
        found = []
        for others in (np.tile(np.eye(3), (8, 1, 1)), turned(10.0 ** RANDOM.uniform(-4, 4, (8, 3))), np.full((8, 3, 3), np.nan)):
            beside, out = M.copy(), np.empty(192, dtype)
            beside[first::2] = others
            rough_in_lanes(np.concatenate(columns(beside.astype(dtype))), out)
            found.append(out.reshape(12, 16)[:, 1 - first :: 2])
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(found[0], found[2])
