"""Conjugate gradients on pressure systems: multigrid, the diagonal, incomplete Cholesky, and pyamg on the same matrix.

    python benchmarks/pressure_solvers.py                          # 32^3 and 64^3 cells, a minute
    python benchmarks/pressure_solvers.py --cells 32 256 --scenes pool --solvers multigrid

Prints iterations to a residual of 1e-8 and seconds, with what each solver sets up beforehand. Systems are those of the verification
problem `pressure_solve`. Incomplete Cholesky has no fill and runs on one thread. pyamg (pip install pyamg) sets up the multigrid of
Ruge and Stueben, and runs conjugate gradients with it. The exit code is 1 when a solver does not get there.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import numpy as np
from environments import busy_warning

from mpm_nodes.kernels.algebra.krylov import Equations, Until, krylov
from mpm_nodes.kernels.algebra.vectors import BlockVectors
from mpm_nodes.kernels.cells.cell_matrix import CellMatrix, before, behind, divide, face_of, multiply
from mpm_nodes.kernels.compile.jit import compiled, inline
from mpm_nodes.verification.pressure_solves import SCENES, ModelSystem, model_system

TOLERANCE, MOST = 1e-8, 5000
Apply = Callable[[np.ndarray, np.ndarray], None]


def main(arguments: list[str] | None = None) -> int:
    """Measure and print a table; 1 when a solver does not reach the tolerance."""
    args = arguments_of(arguments)
    if busy_warning():
        print(f"warning: {busy_warning()}", flush=True)
    print("| scene | cells | solver | set-up s | iterations | solve s |\n|---|---|---|---|---|---|")
    solved = True
    for name in args.scenes:
        for cells in args.cells:
            system = model_system(name, cells)
            for solver in args.solvers:
                if solver == "pyamg" and name == "pocket":
                    continue  # its coarse solve takes the singular matrix apart by a pseudo-inverse of its own
                setup, iterations, seconds = SOLVERS[solver](system)
                solved &= iterations < MOST
                print(f"| {name} | {cells}^3 | {solver} | {setup:.3f} | {iterations} | {seconds:.3f} |", flush=True)
    return 0 if solved else 1


def arguments_of(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the command line's arguments."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cells", type=int, nargs="+", default=[32, 64], help="cells along an edge, multiples of 4")
    parser.add_argument("--scenes", nargs="+", choices=SCENES, default=["pool", "splash"])
    parser.add_argument("--solvers", nargs="+", choices=list(SOLVERS), default=["multigrid", "jacobi", "cholesky"])
    args = parser.parse_args(arguments)
    if any(cells < 4 or cells % 4 for cells in args.cells):
        parser.error("--cells: give multiples of 4")
    return args


# ---------------------------------------------------------------- solvers: (seconds of set-up, iterations, seconds of the solve)
def by_multigrid(system: ModelSystem) -> tuple[float, int, float]:
    """The package's own cycle."""
    return own_gradients(system, lambda: system.multigrid().precondition)


def by_jacobi(system: ModelSystem) -> tuple[float, int, float]:
    """The diagonal."""
    count = len(system.coord)
    return own_gradients(system, lambda: lambda r, z: divide(count, system.matrix, r, z))


def by_cholesky(system: ModelSystem) -> tuple[float, int, float]:
    """Incomplete Cholesky without fill."""

    def prepare() -> Apply:
        pivots = np.zeros_like(system.right)
        factorise(len(system.coord), system.matrix, pivots)
        return lambda r, z: substitute(len(system.coord), system.matrix, pivots, r, z)

    return own_gradients(system, prepare)


def own_gradients(system: ModelSystem, prepare: Callable[[], Apply]) -> tuple[float, int, float]:
    """Solve by the package's conjugate gradients, after one iteration that compiles what there is to compile."""
    count, vectors = len(system.coord), BlockVectors.of_size(system.right.size)

    def run(precondition: Apply, most: int) -> int:
        equations = Equations(lambda p, q: multiply(count, system.matrix, p, q), precondition, vectors.dot, vectors)
        return krylov(equations, system.right.copy(), vectors.new(), Until(TOLERANCE, most)).iterations

    run(prepare(), 1)
    begin = time.perf_counter()
    precondition = prepare()
    ready = time.perf_counter()
    iterations = run(precondition, MOST)
    return ready - begin, iterations, time.perf_counter() - ready


def by_pyamg(system: ModelSystem) -> tuple[float, int, float]:
    """Ruge and Stueben's algebraic multigrid, pyamg's own conjugate gradients."""
    try:
        import pyamg
    except ImportError:
        sys.exit("pyamg is not installed; pip install pyamg")
    matrix, right = compressed(system)
    begin = time.perf_counter()
    levels = pyamg.ruge_stuben_solver(matrix)
    ready = time.perf_counter()
    residuals: list[float] = []
    levels.solve(right, tol=TOLERANCE, maxiter=MOST, accel="cg", residuals=residuals)
    return ready - begin, len(residuals) - 1, time.perf_counter() - ready


SOLVERS = {"multigrid": by_multigrid, "jacobi": by_jacobi, "cholesky": by_cholesky, "pyamg": by_pyamg}


def compressed(system: ModelSystem):
    """Return matrix and right side over the cells that are solved for, as scipy takes them."""
    from scipy.sparse import csr_matrix

    inside, size = np.flatnonzero(system.inside), int(system.inside.sum())
    number = np.full(system.inside.size, -1)
    number[inside] = np.arange(size)
    block, n = np.divmod(np.arange(system.inside.size), 64)
    rows, columns, values = [np.arange(size)], [np.arange(size)], [system.matrix.diagonal[inside]]
    for axis in range(3):
        step, face = 16 >> 2 * axis, face_of(system.matrix, axis)
        low = np.where(n // step & 3, 64 * block + n - step, 64 * system.matrix.around[block, 2 * axis] + n + 3 * step)
        linked = np.flatnonzero(face)
        one, other = number[linked], number[low[linked]]
        rows += [one, other]
        columns += [other, one]
        values += [-face[linked]] * 2
    matrix = csr_matrix((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), (size, size))
    return matrix, system.right[inside]


# ---------------------------------------------------------------- incomplete Cholesky
@inline
def linked(matrix: CellMatrix, g: int, n: int, axis: int, side: int) -> tuple[int, float]:
    """Return the cell on one side, and k of the face between; k is 0 where there is no cell."""
    other = behind(matrix.around, g, n, axis) if side else before(matrix.around, g, n, axis)
    if other < 0:
        return 0, 0.0
    return other, face_of(matrix, axis)[other if side else 64 * g + n]


@compiled(fastmath=False)
def factorise(count, matrix, pivots):
    """Write the pivots of (P + L) P^-1 (P + L^T), L what lies below the diagonal: cells before have lower numbers."""
    for g in range(count):
        for n in range(64):
            pivot = matrix.diagonal[64 * g + n]
            for axis in range(3):
                low, k = linked(matrix, g, n, axis, 0)
                if k > 0.0:
                    pivot -= k * k / pivots[low]
            pivots[64 * g + n] = pivot


@compiled(fastmath=False)
def substitute(count, matrix, pivots, r, z):
    """Write the factors' answer to r to z."""
    for c in range(64 * count):
        total = r[c]
        for axis in range(3):
            low, k = linked(matrix, c >> 6, c & 63, axis, 0)
            if k > 0.0:
                total += k * z[low]
        z[c] = total / pivots[c]
    for c in range(64 * count - 1, -1, -1):
        total = 0.0
        for axis in range(3):
            high, k = linked(matrix, c >> 6, c & 63, axis, 1)
            if k > 0.0:
                total += k * z[high]
        z[c] += total / pivots[c]


if __name__ == "__main__":
    sys.exit(main())
