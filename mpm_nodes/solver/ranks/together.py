"""What implicit solves do with sums over the grid: by themselves on one rank, with the others on several."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mpm_nodes.kernels.algebra import vectors
from mpm_nodes.kernels.algebra.vectors import BlockVectors
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.ranks.halo import Halo

__all__ = ["Alone", "CellVectors", "Together", "together_on"]


class CellVectors(BlockVectors):
    """Vectors with a value a cell of the grid, four blocks of the grid in one block of the vector.

    Args:
        count: Number of grid blocks.
    """

    def __init__(self, count: int) -> None:
        super().__init__(-(-64 * count // vectors.BLOCK))

    def dot(self, x: np.ndarray, y: np.ndarray) -> float:
        """Return x.y."""
        return self.dots((x, y))[0]

    def dots(self, *pairs: tuple[np.ndarray, np.ndarray]) -> list[float]:
        """Return x.y of each pair; of other ranks' cells one of both is to hold nothing."""
        return [super(CellVectors, self).dot(x, y) for x, y in pairs]

    def agree(self, x: np.ndarray) -> None:
        """Let every rank have the values of its neighbours' cells that their owners have."""

    def leave(self, x: np.ndarray) -> None:
        """Forget what a vector holds in cells of others."""


class Alone:
    """One rank holds the whole grid."""

    def __init__(self, grid: GridStore) -> None:
        self.grid = grid

    def any(self, flag: bool) -> bool:
        """Return whether a flag is set anywhere."""
        return flag

    def number(self, value: float) -> float:
        """Return the sum of the ranks' numbers."""
        return value

    def total(self, sums: np.ndarray) -> np.ndarray:
        """Return the sum of the numbers of grid blocks, along the first axis."""
        return np.asarray(sums.sum(axis=0))

    def largest(self, values: np.ndarray) -> float:
        """Return the largest of the numbers, not below 0, of grid blocks."""
        return float(values.max(initial=0.0))

    def add_up(self, array: np.ndarray, width: int = 256) -> None:
        """Complete a grid array to which particles gave."""

    def agree(self, array: np.ndarray) -> None:
        """Let every rank have the values of an array that its owners have."""

    def numbers(self, values: Sequence[float]) -> list[float]:
        """Return the sums of the ranks' numbers, one by one."""
        return list(values)

    @property
    def own(self) -> slice | np.ndarray:
        """Which blocks of the grid count here."""
        return slice(None)

    def vectors(self) -> BlockVectors:
        """Return the arithmetic of grid vectors."""
        return BlockVectors(self.grid.count)

    def cells(self) -> CellVectors:
        """Return the arithmetic of vectors of cells."""
        return CellVectors(self.grid.count)


class Together(Alone):
    """Several ranks: each block counts once, and the ranks' sums are added up in their order."""

    def __init__(self, grid: GridStore, halo: Halo) -> None:
        super().__init__(grid)
        self.halo, self.team = halo, halo.team

    def any(self, flag: bool) -> bool:
        """See `Alone`."""
        return bool(self.team.any(flag))

    def number(self, value: float) -> float:
        """See `Alone`."""
        return float(self.team.totals([value])[0])

    def total(self, sums: np.ndarray) -> np.ndarray:
        """See `Alone`."""
        mine = sums[self.halo.own].sum(axis=0)
        return np.asarray(self.team.totals(np.atleast_1d(mine)).reshape(np.shape(mine)))

    def largest(self, values: np.ndarray) -> float:
        """See `Alone`."""
        return float(self.team.largest([values[self.halo.own].max(initial=0.0)])[0])

    def add_up(self, array: np.ndarray, width: int = 256) -> None:
        """See `Alone`."""
        self.halo.sum(array, width=width)

    def agree(self, array: np.ndarray) -> None:
        """See `Alone`."""
        self.halo.copy(array)

    def numbers(self, values: Sequence[float]) -> list[float]:
        """See `Alone`."""
        return [float(value) for value in self.team.totals(values)]

    @property
    def own(self) -> slice | np.ndarray:
        """See `Alone`."""
        return np.asarray(self.halo.own)

    def vectors(self) -> BlockVectors:
        """See `Alone`."""
        return _SharedVectors(self)

    def cells(self) -> CellVectors:
        """See `Alone`."""
        return _SharedCells(self)


class _SharedVectors(BlockVectors):
    """Vectors of which every rank holds a part."""

    def __init__(self, together: Together) -> None:
        super().__init__(together.grid.count)
        self._together = together

    def dot(self, x: np.ndarray, y: np.ndarray) -> float:
        """Return x.y."""
        vectors.dots(x, y, self.count, self._sums)
        return float(self._together.total(self._sums[: self.count]))


class _SharedCells(CellVectors):
    """Vectors of cells of which every rank holds a part."""

    def __init__(self, together: Together) -> None:
        super().__init__(together.grid.count)
        self._together, self._foreign = together, np.flatnonzero(~together.halo.own)

    def dots(self, *pairs: tuple[np.ndarray, np.ndarray]) -> list[float]:
        """See `CellVectors`."""
        return self._together.numbers(super().dots(*pairs))

    def agree(self, x: np.ndarray) -> None:
        """See `CellVectors`."""
        self._together.halo.copy(x, width=64)

    def leave(self, x: np.ndarray) -> None:
        """See `CellVectors`."""
        x[: 64 * self._together.grid.count].reshape(-1, 64)[self._foreign] = 0.0


def together_on(grid: GridStore) -> Alone:
    """Return what sums over a grid are made with."""
    return Together(grid, grid.halo) if isinstance(grid.halo, Halo) else Alone(grid)
