"""The multigrid cycle: symmetric, positive definite, few iterations, and the same bits on any number of threads."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from mpm_nodes.kernels.cells.cell_matrix import multiply
from mpm_nodes.verification.pressure_solves import SCENES, ModelSystem, model_system, solve

CELLS = 12


def preconditioned(system: ModelSystem, values: np.ndarray) -> np.ndarray:
    """Return the cycle's answer to a right side."""
    z = np.zeros_like(values)
    system.multigrid().precondition(values, z)
    return z


def noise(system: ModelSystem, seed: int) -> np.ndarray:
    """Return a random vector of the cells that are solved for."""
    vector = np.zeros_like(system.right)
    vector[: system.inside.size] = np.random.default_rng(seed).normal(size=system.inside.size) * system.inside
    return vector


@pytest.mark.parametrize("name", SCENES)
def test_the_cycle_is_symmetric_and_positive_definite(name):
    """x.M y = y.M x and x.M x > 0, also for a singular matrix."""
    system = model_system(name, CELLS)
    x, y = noise(system, 1), noise(system, 2)
    mx, my = preconditioned(system, x), preconditioned(system, y)
    assert x @ my == pytest.approx(y @ mx, rel=1e-10, abs=1e-12 * np.linalg.norm(x) * np.linalg.norm(my))
    assert x @ mx > 0.0 and y @ my > 0.0


@pytest.mark.parametrize("name", SCENES)
def test_the_residual_loses_a_decimal_every_two_iterations(name):
    """What McAdams 2010 report, on average over the solve."""
    _, found = solve(model_system(name, 2 * CELLS))
    assert found.converged and found.iterations <= 2 * 8


def test_bits_do_not_hang_on_threads():
    """One thread and all of them give the same bits."""
    system, most = model_system("splash", 2 * CELLS), numba.config.NUMBA_NUM_THREADS
    ends = []
    for threads in (1, most):
        numba.set_num_threads(threads)
        try:
            ends.append(solve(system)[0])
        finally:
            numba.set_num_threads(most)
    assert np.array_equal(*ends)


def test_cells_without_faces_are_solved_at_once():
    """Where no cell has another beside it there is nothing to coarsen, and the answer is exact."""
    system = model_system("pool", CELLS)
    lonely = system.matrix._replace(**{axis: np.zeros_like(system.matrix.x) for axis in "xyz"})
    system = ModelSystem(system.coord, lonely, None, system.right, system.inside)
    assert not system.multigrid().coarse
    found = preconditioned(system, system.right)
    product = np.zeros_like(found)
    multiply(len(system.coord), lonely, found, product)
    np.testing.assert_allclose(product, system.right, rtol=1e-14)


def test_stiff_own_terms_leave_little_to_do():
    """A diagonal far larger than the faces, as in a short step of conduction, takes two or three iterations."""
    system = model_system("foam", CELLS)
    own = 1e3 * system.inside.astype(float)
    matrix = system.matrix._replace(diagonal=system.matrix.diagonal + own)
    _, found = solve(ModelSystem(system.coord, matrix, system.own + own, system.right, system.inside))
    assert found.iterations <= 3
