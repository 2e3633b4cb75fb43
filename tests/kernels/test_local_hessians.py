"""Local Hessians: their positive part is that of their eigenvalues, and definite ones are left alone."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from mpm_nodes.kernels.transfers.local_hessians import ENTRIES, store_positive


@numba.njit
def store(response, count, hessians):
    """Call the kernel function, which Python cannot."""
    return store_positive(response, 0, count, hessians, 16)


def stored(matrices):
    """Return what is kept of up to sixteen symmetric 9 x 9 matrices, and how many were changed."""
    response = np.zeros((81, 16), matrices.dtype)
    response[:, : len(matrices)] = matrices.reshape(-1, 81).T
    hessians = np.zeros(ENTRIES * 16 + 16, matrices.dtype)
    changed = store(response.ravel(), len(matrices), hessians)
    found = np.zeros((len(matrices), 9, 9))
    rows, columns = np.tril_indices(9)
    found[:, rows, columns] = found[:, columns, rows] = hessians[: ENTRIES * 16].reshape(ENTRIES, 16)[:, : len(matrices)].T
    return found, changed


def random_matrices(rng, eigenvalues):
    """Return symmetric matrices of random eigenvectors."""
    vectors = np.linalg.qr(rng.normal(size=(len(eigenvalues), 9, 9)))[0]
    return np.einsum("pik,pk,pjk->pij", vectors, eigenvalues, vectors)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_negative_eigenvalues_become_zero(dtype):
    """The kept matrix is the sum over eigenvalues above zero (NumPy's), to 40 roundings of the largest entry's float type."""
    rng = np.random.default_rng(3)
    matrices = random_matrices(rng, rng.normal(size=(13, 9)) * 10.0 ** rng.uniform(-3, 6, (13, 1))).astype(dtype)
    found, changed = stored(matrices)
    values, vectors = np.linalg.eigh(matrices.astype(float))
    exact = np.einsum("pik,pk,pjk->pij", vectors, np.maximum(values, 0.0), vectors)
    assert changed == 13
    assert (np.abs(found - exact).max(axis=(1, 2)) <= 40 * np.finfo(dtype).eps * np.abs(matrices).max(axis=(1, 2))).all()


def test_definite_matrices_are_kept_as_they_are():
    """A matrix with positive eigenvalues is stored bit for bit and not counted."""
    rng = np.random.default_rng(4)
    matrices = random_matrices(rng, rng.uniform(0.1, 5.0, (16, 9)))
    matrices = 0.5 * (matrices + matrices.transpose(0, 2, 1))
    found, changed = stored(matrices)
    assert changed == 0 and np.array_equal(found, matrices)


def test_special_matrices():
    """Zero stays zero, a multiple of the unit below zero becomes zero, and equal eigenvalues do no harm."""
    matrices = np.stack([np.zeros((9, 9)), -3.0 * np.eye(9), np.diag([2.0] * 4 + [-1.0] * 5)])
    found, _ = stored(matrices)
    assert np.array_equal(found, np.stack([np.zeros((9, 9)), np.zeros((9, 9)), np.diag([2.0] * 4 + [0.0] * 5)]))
