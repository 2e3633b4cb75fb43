"""The linear solve of the pressure on the cells of a staggered grid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mpm_nodes.kernels.algebra.krylov import Equations, Solution, Until, krylov
from mpm_nodes.kernels.algebra.vectors import BlockVectors
from mpm_nodes.kernels.cells.cell_matrix import CellMatrix, multiply
from mpm_nodes.kernels.cells.multigrid import CoarserBlocks, Multigrid
from mpm_nodes.physics.projection.kernels import pressure, slipping
from mpm_nodes.physics.projection.kernels.connected_components import label_pockets
from mpm_nodes.physics.projection.numerics.slipping import JoinedFaces, equations_of_both
from mpm_nodes.solver.staggered import StaggeredStore

__all__ = ["PressureSolver", "pockets_of"]


class PressureSolver:
    """The pressure of one projection, solved once or more often.

    Args:
        staggered: The grid.
        fields: What the projection works on, classified.
        settings: How.
        check: Called now and then; raises to end the solve.
    """

    solution: Solution
    before: list[np.ndarray]
    own: np.ndarray

    def __init__(
        self, staggered: StaggeredStore | JoinedFaces, fields: pressure.Fields, settings: Any, check: Callable[[], None]
    ) -> None:
        self.staggered, self.fields, self.settings, self.check = staggered, fields, settings, check
        self.count = staggered.count
        self.joined = staggered if isinstance(staggered, JoinedFaces) else None
        self.vectors = BlockVectors.of_size(64 * self.count + (0 if self.joined is None else self.joined.size))
        self.p = self.vectors.new()
        self.pockets: list[np.ndarray] = []
        grid = staggered.grid
        self.coarser: CoarserBlocks = grid.derived("coarser blocks", lambda: CoarserBlocks(staggered.blocks, grid.body))
        self.slip: slipping.Slipping | None = None

    @property
    def pressure(self) -> np.ndarray:
        """Pressure of the cells [Pa], shape (64 count,)."""
        return self.p[: 64 * self.count]

    def solve(self, again: bool = False) -> None:
        """Find the pressure, and take its push from the faces.

        Args:
            again: Begin with the pressure of the solve before.
        """
        count, fields, vectors = self.count, self.fields, self.vectors
        self.before = [v[::4][: 64 * count].astype(float) for v in (fields.vx, fields.vy, fields.vz)]
        system = pressure.PressureSystem(*(vectors.new() for _ in pressure.PressureSystem._fields))
        pressure.assemble_pressure(count, fields, system)
        self.pockets, self.own = pockets_of(count, fields), system.own
        _take_means(system.right, self.pockets)
        matrix = CellMatrix(fields.around, system.diagonal, system.x, system.y, system.z)
        cycle = Multigrid(self.coarser, matrix, system.own if system.own.any() else None)
        if self.joined is None:
            self.equations = Equations(lambda d, q: multiply(count, matrix, d, q), cycle.precondition, vectors.dot, vectors)
        else:
            self.slip = self.joined.meet(fields)
            self.joined.right_side(self.slip, system.right[64 * count :])
            self.equations = equations_of_both(vectors, matrix, cycle, fields, self.slip)
        self.solution = self._find(system.right, self.p, again)

    def push_back(self, p: np.ndarray) -> None:
        """Take from the faces what a pressure that answers to their divergence alone does, in the system of the last `solve`.

        Args:
            p: Written: this pressure [Pa], a vector.
        """
        right = self.vectors.new()
        pressure.divergences(self.count, self.fields, right)
        right *= -1.0
        _take_means(right, self.pockets)
        self._find(right, p, False)

    def _find(self, right: np.ndarray, p: np.ndarray, again: bool) -> Solution:
        until = Until(self.settings.tolerance, self.settings.most)
        found = krylov(self.equations, right, p, until, guess=again, check=self.check)
        _take_means(p, self.pockets)
        pressure.correct(self.count, self.fields, p)
        if self.slip is not None:
            slipping.find_forces(self.fields, self.slip, p, p[64 * self.count :])
            slipping.push(self.fields, self.slip, 1.0)
        return found


def pockets_of(count: int, fields: pressure.Fields) -> list[np.ndarray]:
    """Return the cells of every incompressible part of the interior without a free surface."""
    label, bits, opened = np.empty(64 * count, np.int32), np.empty(64 * count, np.uint8), np.empty(64 * count, np.uint8)
    parts = label_pockets(count, fields, bits, label, opened)
    if opened[:parts].all():
        return []
    closed = np.flatnonzero((label >= 0) & (opened[label] == 0))
    closed = closed[np.argsort(label[closed], kind="stable")]
    return np.split(closed, np.flatnonzero(np.diff(label[closed])) + 1)


def _take_means(values: np.ndarray, pockets: list[np.ndarray]) -> None:
    """Take the mean out of each pocket: its pressure is known but for a constant, and its right side must add up to nothing."""
    for cells in pockets:
        values[cells] -= values[cells].mean()
