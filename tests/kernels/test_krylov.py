"""Krylov methods on matrices with known answers; they see vectors, products and sums only."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest

from mpm_nodes.kernels.algebra.krylov import Equations, Method, Stop, Until, krylov
from mpm_nodes.kernels.algebra.vectors import BLOCK, BlockVectors

SIZE = 300
both = pytest.mark.parametrize("method", list(Method), ids=lambda method: method.name)


class System:
    """A matrix of blocks' size; counts what is asked of it."""

    def __init__(self, matrix: np.ndarray, inverse: np.ndarray | None = None, null: np.ndarray | None = None) -> None:
        self.size = len(matrix)
        self.vectors = BlockVectors.of_size(self.size)
        self.matrix, self.inverse, self.null, self.products = matrix, inverse, null, 0

    def padded(self, values: np.ndarray) -> np.ndarray:
        vector = self.vectors.new()
        vector[: self.size] = values.ravel()
        return vector

    def _projected(self, x: np.ndarray) -> np.ndarray:
        return x if self.null is None else x - self.null * (self.null @ x)

    def apply(self, p: np.ndarray, q: np.ndarray) -> None:
        self.products += 1
        q[: self.size] = self._projected(self.matrix @ p[: self.size])

    def precondition(self, r: np.ndarray, z: np.ndarray) -> None:
        z[: self.size] = self._projected(r[: self.size] if self.inverse is None else self.inverse * r[: self.size])

    def solve(self, b: np.ndarray, x: np.ndarray | None = None, **options):
        found = self.vectors.new() if x is None else self.padded(x)
        until = Until(options.pop("tolerance", 1e-12), options.pop("most", 1000))
        equations = Equations(self.apply, self.precondition, self.vectors.dot, self.vectors)
        outcome = krylov(equations, self.padded(b), found, until, guess=x is not None, **options)
        return found[: self.size], outcome


def matrix_of(values: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return a symmetric matrix with these eigenvalues."""
    q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values), len(values))))
    return (q * values) @ q.T


@both
def test_a_definite_system_is_solved(method):
    """A x = b with condition 1e3: the solution to the tolerance times the condition; one more residual than iterations."""
    matrix, wanted = matrix_of(np.geomspace(1.0, 1e3, SIZE)), np.random.default_rng(1).normal(size=SIZE)
    x, found = System(matrix).solve(matrix @ wanted, method=method)
    assert found.converged and len(found.residuals) == found.iterations + 1
    np.testing.assert_allclose(x, wanted, atol=1e-8)
    assert found.residuals[0] == 1.0 and found.residuals[-1] <= 1e-12


@both
@pytest.mark.parametrize("kinds", [1, 2, 5])
def test_as_many_iterations_as_there_are_eigenvalues(method, kinds):
    """k different eigenvalues take k iterations: the polynomial of the method is exact then."""
    values = np.repeat(np.geomspace(1.0, 7.0, kinds), SIZE // kinds)
    matrix = matrix_of(values)
    _, found = System(matrix).solve(np.random.default_rng(1).normal(size=len(values)), method=method, tolerance=1e-10)
    assert found.converged and found.iterations == kinds


@both
def test_the_inverse_diagonal_of_a_diagonal_matrix_takes_one_iteration(method):
    """The preconditioner is used as such."""
    values = np.geomspace(1.0, 1e6, SIZE)
    x, found = System(np.diag(values), 1.0 / values).solve(np.ones(SIZE), method=method)
    assert found.converged and found.iterations == 1
    np.testing.assert_allclose(x, 1.0 / values, rtol=1e-12)


def test_conjugate_residuals_solve_an_indefinite_system():
    """Eigenvalues of both signs: CR reaches the solution, the residual never grows; CG stops and says why."""
    values = np.concatenate([np.linspace(-3.0, -1.0, 20), np.linspace(1.0, 5.0, SIZE - 20)])
    matrix, wanted = matrix_of(values), np.random.default_rng(2).normal(size=SIZE)
    x, found = System(matrix).solve(matrix @ wanted, method=Method.RESIDUALS)
    assert found.converged
    np.testing.assert_allclose(x, wanted, atol=1e-9)
    assert all(b <= a * (1 + 1e-9) for a, b in zip(found.residuals, found.residuals[1:], strict=False))


def test_conjugate_residuals_walk_as_minres():
    """On a definite matrix every iterate has the least residual in its Krylov space (least squares over the space)."""
    matrix, b = matrix_of(np.linspace(1.0, 30.0, 60)), np.random.default_rng(3).normal(size=60)
    for steps in (1, 4, 9):
        space = np.linalg.qr(np.stack([np.linalg.matrix_power(matrix, k) @ b for k in range(steps)], 1))[0]
        least = np.linalg.norm(b - matrix @ space @ np.linalg.lstsq(matrix @ space, b, rcond=None)[0])
        x, found = System(matrix).solve(b, method=Method.RESIDUALS, most=steps)
        assert found.stop is Stop.LIMIT and found.iterations == steps
        assert np.linalg.norm(b - matrix @ x) == pytest.approx(least, rel=1e-9)
        assert found.residuals[-1] == pytest.approx(least / np.linalg.norm(b), rel=1e-9)


def test_a_direction_without_curvature_is_reported():
    """CG on a negative definite matrix stops at once and hands the preconditioned right side back."""
    b = np.random.default_rng(1).normal(size=SIZE)
    x, found = System(-np.eye(SIZE)).solve(b)
    assert found.stop is Stop.BREAKDOWN and found.iterations == 1 and not x.any()
    np.testing.assert_array_equal(found.direction[:SIZE], b)


def test_conjugate_residuals_report_their_breakdown():
    """b with b.A b = 0: CR cannot begin, and says so."""
    matrix = np.diag([1.0, -1.0])
    x, found = System(matrix).solve(np.ones(2), method=Method.RESIDUALS)
    assert found.stop is Stop.BREAKDOWN and not x.any()


@both
def test_what_is_not_finite_ends_the_solve(method):
    """A NaN in the product is a breakdown, not an endless walk."""
    system = System(np.eye(SIZE))
    system.matrix = np.full((SIZE, SIZE), np.nan)
    _, found = system.solve(np.ones(SIZE), method=method)
    assert found.stop is Stop.BREAKDOWN and found.iterations == 1


@both
def test_a_singular_consistent_system_with_its_null_space_projected(method):
    """A ring's Laplacian: the solution without mean, and rounding does not let the mean grow over 400 iterations."""
    ring = 2.0 * np.eye(SIZE) - np.roll(np.eye(SIZE), 1, 0) - np.roll(np.eye(SIZE), -1, 0)
    wanted = np.random.default_rng(5).normal(size=SIZE)
    wanted -= wanted.mean()
    null = np.full(SIZE, 1.0 / math.sqrt(SIZE))
    x, found = System(ring, np.full(SIZE, 0.5), null).solve(ring @ wanted, method=method, tolerance=1e-11)
    assert found.converged and abs(x.mean()) < 1e-12
    np.testing.assert_allclose(x, wanted, atol=1e-6)


@both
def test_a_zero_right_side_takes_no_product(method):
    """x = 0 at once."""
    system = System(matrix_of(np.geomspace(1.0, 10.0, SIZE)))
    x, found = system.solve(np.zeros(SIZE), method=method)
    assert found.converged and found.iterations == 0 and not x.any() and not system.products
    assert found.residuals == [0.0]


@both
def test_a_guess_is_begun_from(method):
    """The solution as a guess takes no iteration; a near one takes fewer than zero does."""
    matrix, wanted = matrix_of(np.geomspace(1.0, 100.0, SIZE)), np.random.default_rng(1).normal(size=SIZE)
    b = matrix @ wanted
    x, found = System(matrix).solve(b, wanted, method=method, tolerance=1e-9)
    assert found.converged and found.iterations == 0
    np.testing.assert_array_equal(x, wanted)
    cold = System(matrix).solve(b, method=method, tolerance=1e-6)[1].iterations
    x, found = System(matrix).solve(b, wanted + 1e-4, method=method, tolerance=1e-6)
    assert found.converged and 0 < found.iterations < cold
    np.testing.assert_allclose(x, wanted, atol=1e-4)


@both
def test_vectors_of_blocks(method):
    """Three components a node, coupled by 3 x 3 blocks; what lies behind the last block is not touched."""
    rng = np.random.default_rng(8)
    blocks = np.stack([matrix_of(np.array([1.0, 4.0, 9.0]), seed) for seed in range(100)])
    matrix = np.zeros((300, 300))
    for n, block in enumerate(blocks):
        matrix[3 * n : 3 * n + 3, 3 * n : 3 * n + 3] = block
    matrix += 0.01 * matrix_of(np.linspace(0.0, 1.0, 300))
    wanted = rng.normal(size=(100, 3))
    x, found = System(matrix).solve(matrix @ wanted.ravel(), method=method)
    assert found.converged
    np.testing.assert_allclose(x.reshape(100, 3), wanted, atol=1e-10)
    vectors = BlockVectors(1)
    a, b = np.ones(2 * BLOCK), np.full(2 * BLOCK, 7.0)
    vectors.copy(a, b)
    assert (b[:BLOCK] == 1.0).all() and (b[BLOCK:] == 7.0).all()


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="needs two threads")
@both
def test_one_and_two_threads_give_the_same_bits(method):
    """Sums are joined block by block, in order."""
    matrix, b, found = matrix_of(np.geomspace(1.0, 1e4, 4 * BLOCK)), np.random.default_rng(1).normal(size=4 * BLOCK), []
    for threads in (1, 2):
        numba.set_num_threads(threads)
        x, outcome = System(matrix).solve(b, method=method)
        found.append((x.tobytes(), tuple(outcome.residuals)))
    assert found[0] == found[1]


@both
def test_sums_that_come_with_products_are_taken_and_a_cancel_ends_the_solve(method):
    """`apply` and `precondition` may return their dot products; `check` is called every twenty iterations."""
    system = System(matrix_of(np.geomspace(1.0, 1e4, SIZE)))
    asked = []

    def apply(p, q):
        system.apply(p, q)
        return system.vectors.dot(p, q)

    def precondition(r, z):
        system.precondition(r, z)
        return system.vectors.dot(r, z), 4.0 * system.vectors.dot(r, r)

    def check():
        asked.append(system.products)
        if len(asked) == 2:
            raise KeyboardInterrupt

    b, x = system.padded(np.ones(SIZE)), system.vectors.new()
    unused = lambda x, y: pytest.fail("dot is not needed")  # noqa: E731
    with pytest.raises(KeyboardInterrupt):
        krylov(Equations(apply, precondition, unused, system.vectors), b, x, Until(1e-14), method=method, check=check)
    assert asked[1] - asked[0] == 20
