"""The halo (ghost layer) of a rank's grid: blocks around the borders of its slab that its neighbours hold as well.

A particle block in column c gives to the grid blocks of columns c and c + 1. So the first column of a slab is given to by both
sides of its border, and the columns before and after it are held by both, for what looks at neighbouring nodes. Samples of a
surface lie up to a column beyond the particles that they belong to: where there are some, both sides give to all three of these
columns. Two numbers have one sum, whichever comes first: both ranks end up with the same bits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np

from mpm_nodes.solver.ranks.slabs import Slabs, column_of
from mpm_nodes.solver.ranks.team import Team

__all__ = ["WHOLE_GRID", "Halo", "WholeGrid", "adding_up"]


class WholeGrid:
    """What a grid that one rank holds whole shares with others: nothing; `Halo` is that of one of several.

    Attributes:
        several: Whether there are other ranks.
        own: Which blocks of the grid belong to this rank, bool, shape (count,); None: all.
    """

    several = False
    own: np.ndarray | None = None

    def open(self, array: np.ndarray, width: int = 256) -> None:
        """Forget what an array holds in blocks of others, before this rank adds to it: so that nothing is counted twice.

        Args:
            array: Flat array of the grid.
            width: Values of a block.
        """

    def sum(self, *arrays: np.ndarray, width: int = 256) -> None:
        """Add up what both sides of each border gave to the shared blocks of arrays of one type."""

    def copy(self, array: np.ndarray, width: int = 256) -> None:
        """Take the values of shared blocks from the rank that they belong to."""

    def any(self, flag: bool) -> bool:
        """Return whether a flag is set on any rank."""
        return flag

    def totals(self, values: Sequence[float]) -> np.ndarray:
        """Return the sums of the ranks' numbers, one by one."""
        return np.asarray(values)


WHOLE_GRID = WholeGrid()
"""It holds nothing, so that one does for all."""


class Halo(WholeGrid):
    """What the grid of one rank shares with those of its neighbours.

    Args:
        team: All ranks.
        slabs: Who holds what.

    Attributes:
        own: As `WholeGrid` has it; each block of the matter belongs to one rank.
        wide: Whether points up to a column beyond a slab give to the grid as its particles do.
    """

    several = True
    own: np.ndarray

    def __init__(self, team: Team, slabs: Slabs) -> None:
        self.team, self.slabs = team, slabs
        self.own, self.wide = np.zeros(0, bool), False
        self._foreign = np.zeros(0, np.int64)
        self._given: list[tuple[int, np.ndarray, np.ndarray]] = []
        self._owned: list[tuple[int, np.ndarray, np.ndarray]] = []

    @property
    def neighbours(self) -> list[tuple[int, int]]:
        """Neighbouring ranks and the first columns of the upper one at each border."""
        found = [(other, self.slabs.border(self.team.rank, other)) for other in (self.team.rank - 1, self.team.rank + 1)]
        return [(other, border) for other, border in found if border is not None]

    @property
    def given(self) -> list[np.ndarray]:
        """Places of the blocks whose sums neighbours get from this rank, border by border."""
        return [give for _, give, _ in self._given]

    def ghosts(self, packed: np.ndarray) -> np.ndarray:
        """Return the neighbours' blocks at the borders.

        Args:
            packed: Packed coordinates of the blocks that this rank's particles lie in and give to, ascending.
        """
        columns, offers = column_of(packed, self.slabs.axis), []
        for other, border in self.neighbours:
            offers.append((other, packed[self._given_to(columns, border, other > self.team.rank)]))
        taken = self.team.swap_lists(offers)
        return np.concatenate([np.zeros(0, np.int64), *taken])

    def lay_out(self, packed: np.ndarray) -> None:
        """Find the shared blocks among those of the grid, its packed coordinates."""
        columns = column_of(packed, self.slabs.axis)
        self.own = self.slabs.holders(columns) == self.team.rank
        self._foreign = np.flatnonzero(~self.own)
        self._given, self._owned = [], []
        for other, border in self.neighbours:
            below = other > self.team.rank  # this rank is the lower one
            mine, theirs = (np.flatnonzero(self._given_to(columns, border, lower)) for lower in (below, not below))
            self._given.append((other, mine, theirs))
            near = np.flatnonzero((columns >= border - 1) & (columns <= border + 1))
            own = (columns[near] < border) == below
            self._owned.append((other, near[own], near[~own]))

    def open(self, array: np.ndarray, width: int = 256) -> None:
        """See `WholeGrid`."""
        _blocks(array, width, len(self.own))[self._foreign] = 0.0

    def sum(self, *arrays: np.ndarray, width: int = 256) -> None:
        """See `WholeGrid`."""
        if not self._given or not arrays:
            return
        views = [_blocks(array, width, len(self.own)) for array in arrays]
        gives = [np.stack([view[mine] for view in views]) for _, mine, _ in self._given]
        takes = [np.empty((len(views), len(theirs), width), views[0].dtype) for _, _, theirs in self._given]
        self.team.swap((other, give, take) for (other, _, _), give, take in zip(self._given, gives, takes, strict=True))
        for (_, _, theirs), take in zip(self._given, takes, strict=True):
            for view, sums in zip(views, take, strict=True):
                view[theirs] += sums

    def copy(self, array: np.ndarray, width: int = 256) -> None:
        """See `WholeGrid`."""
        if not self._owned:
            return
        view = _blocks(array, width, len(self.own))
        gives = [view[mine] for _, mine, _ in self._owned]
        takes = [np.empty((len(theirs), width), view.dtype) for _, _, theirs in self._owned]
        self.team.swap((other, give, take) for (other, _, _), give, take in zip(self._owned, gives, takes, strict=True))
        for (_, _, theirs), take in zip(self._owned, takes, strict=True):
            view[theirs] = take

    def any(self, flag: bool) -> bool:
        """See `WholeGrid`."""
        return self.team.any(flag)

    def totals(self, values: Sequence[float]) -> np.ndarray:
        """See `WholeGrid`."""
        return self.team.totals(values)

    def _given_to(self, columns: np.ndarray, border: int, lower: bool) -> np.ndarray:
        """Return which columns of the halo at a border the points of its lower or of its upper side give to."""
        first = border - 1 if lower or self.wide else border
        last = border + 1 if self.wide or not lower else border
        return (columns >= first) & (columns <= last)


@contextlib.contextmanager
def adding_up(halo: WholeGrid, *arrays: np.ndarray) -> Iterator[None]:
    """Let the block add what this rank's points give to grid arrays; afterwards they hold what the points of all ranks gave.

    Args:
        halo: That of the grid.
        arrays: Arrays of one type.
    """
    for array in arrays:
        halo.open(array)
    yield
    halo.sum(*arrays)


def _blocks(array: np.ndarray, width: int, count: int) -> np.ndarray:
    """Return a flat array by blocks, as a view."""
    return array[: width * count].reshape(count, width)
