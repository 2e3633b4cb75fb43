"""Slabs of grid blocks: which rank holds which block columns along one axis."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from mpm_nodes.kernels.transfers import binning
from mpm_nodes.solver.ranks.team import Team

__all__ = ["BEYOND", "NARROWEST", "NARROWEST_AROUND", "Slabs", "column_of", "cut"]

BEYOND = 1 << 40
"""Cut of a rank that holds nothing: a column that no block lies in."""

NARROWEST = 2
"""Columns of a slab at least: blocks around a border then belong to two ranks and no third."""

NARROWEST_AROUND = 3
"""The same where points around the particles give to the grid, too: those of both sides of a border give to three columns."""


@dataclass(frozen=True)
class Slabs:
    """Which rank holds which block columns: rank r those from cuts[r - 1] to below cuts[r], the first and the last without end.

    Attributes:
        axis: 0, 1 or 2.
        cuts: First column of each rank but the first, ascending; those of ranks without a slab are `BEYOND`.
    """

    axis: int
    cuts: tuple[int, ...]

    def holders(self, columns: np.ndarray) -> np.ndarray:
        """Return the rank that holds each column, shape as given."""
        return np.searchsorted(np.array(self.cuts, np.int64), columns, side="right")

    @property
    def narrowest(self) -> int:
        """Columns of the narrowest slab that has an end on both sides."""
        return min((high - low for low, high in itertools.pairwise(self.cuts) if high < BEYOND), default=BEYOND)

    def border(self, rank: int, other: int) -> int | None:
        """Return the first column of the upper of two neighbouring ranks; None where they do not meet."""
        if not 0 <= min(rank, other) or max(rank, other) > len(self.cuts):
            return None
        column = self.cuts[min(rank, other)]
        return None if column >= BEYOND else column


def column_of(packed: np.ndarray, axis: int) -> np.ndarray:
    """Return the columns along an axis of packed block coordinates."""
    shift = binning.BODY_BITS + (2 - axis) * binning.AXIS_BITS
    return (packed >> shift & (1 << binning.AXIS_BITS) - 1) - binning.FARTHEST


def cut(team: Team, columns: np.ndarray, counts: np.ndarray, axis: int, narrowest: int = NARROWEST) -> tuple[Slabs, int]:
    """Cut all particles into slabs of about equal numbers; returns them and the particles of the fullest.

    Args:
        team: All ranks; each gives its own blocks.
        columns: Column of each of its blocks, int.
        counts: Particles of each of its blocks.
        axis: Axis of the slabs.
        narrowest: Columns of a slab at least.
    """
    none = not len(columns)
    spans = team.gathered([BEYOND if none else columns.min(), -BEYOND if none else columns.max()])
    first, last = int(spans[:, 0].min()), int(spans[:, 1].max())
    if first > last:
        return Slabs(axis, (BEYOND,) * (team.size - 1)), 0
    mine = np.bincount(np.asarray(columns, np.int64) - first, counts, last - first + 1)
    held = team.totals(mine)
    cuts = _cuts(held, team.size, narrowest)
    edges = [0, *(min(c, len(held)) for c in cuts), len(held)]
    fullest = max(int(held[low:high].sum()) for low, high in itertools.pairwise(edges))
    return Slabs(axis, tuple(BEYOND if c >= len(held) else first + c for c in cuts)), fullest


def _cuts(held: np.ndarray, ranks: int, narrowest: int) -> list[int]:
    """Return the first column of each rank but the first: the columns nearest to equal shares."""
    before = np.concatenate([[0.0], np.cumsum(held)])
    found: list[int] = []
    for rank in range(1, ranks):
        least = found[-1] + narrowest if found else 1
        nearest = int(np.argmin(np.abs(before - before[-1] * rank / ranks)))
        found.append(max(nearest, least))
    return found
