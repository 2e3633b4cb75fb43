"""A simulation that one process holds whole: what it would agree on with other ranks, without them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mpm_nodes.data.facts import Limit, Report

__all__ = ["SINGLE_RANK", "SingleRank"]


class SingleRank:
    """The only rank of a simulation; `solver.ranks.share.Share` is one of several.

    Attributes:
        several: Whether there are others.
        size: How many ranks there are.
    """

    several = False
    size = 1

    # ---------------------------------------------------------------- numbers
    def any(self, flag: bool) -> bool:
        """Return whether a flag is set on any rank."""
        return flag

    def largest(self, value: float) -> float:
        """Return the largest of the ranks' numbers."""
        return value

    def totals(self, values: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return the sums of the ranks' numbers, one by one."""
        return np.asarray(values)

    def shortest(self, limit: Limit, material: str, dt: float, known: Iterable[Limit]) -> tuple[Limit, str, float]:
        """Return the shortest of the ranks' substeps, and what holds it; of equal ones that of the lowest rank.

        Args:
            limit: What holds the substep of this rank.
            material: What that is due to.
            dt: The substep [s].
            known: All that may hold it.
        """
        return limit, material, dt

    # ---------------------------------------------------------------- particles
    def mine(self, columns: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Return those of new particles, which all ranks know, that this rank is to hold."""
        return columns

    def sort(self, particles: Any) -> None:
        """Sort the particles of all ranks; those that left a rank's part of space are handed over."""
        particles.sort()

    def whole(self) -> contextlib.AbstractContextManager[None]:
        """Hold the particles of all ranks inside the block, as every rank then does."""
        return contextlib.nullcontext()

    def count(self, particles: Any) -> int:
        """Return the number of particles of all ranks, as they were sorted last."""
        return int(particles.count)

    def mean_mass(self, particles: Any) -> float:
        """Return the mean mass of all particles [kg], 0 where there are none."""
        return float(particles.mean("mass"))

    def largest_limits(self, particles: Any) -> list[tuple[float, float, float]]:
        """Return the measured limits of dt of each material that has particles here, the largest of all ranks."""
        return list(particles.limits or [])

    def joined(self, values: np.ndarray) -> np.ndarray:
        """Return an attribute of the particles: where ranks gather them of all on the first one, else of this one."""
        return values

    # ---------------------------------------------------------------- agreement
    def meet(self) -> None:
        """Wait for the other ranks."""

    def cancel_check(self, check: Callable[[], None]) -> Callable[[], None]:
        """Return what a substep calls between two stages, where `check` raises `Cancelled` when the user has asked to stop."""
        return check

    def join_report(self, report: Report, frame: int) -> None:
        """Let what stages told of their own particles in a frame be that of all ranks."""

    def inside(self, found: Sequence[tuple[str, int, float]]) -> Sequence[tuple[str, int, float]]:
        """Return (collider, particles inside, greatest depth [m]) of all ranks for those of this one."""
        return found

    def facts(self) -> dict[str, Any]:
        """Return what a checkpoint says of how ranks share space."""
        return {}


SINGLE_RANK = SingleRank()
"""It holds nothing, so that one does for all."""
