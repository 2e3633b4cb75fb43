"""Periodic sides: what leaves the domain on one side comes in at the other, and splines reach across."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mpm_nodes.data import MpmNodesError, WallRule, Walls, domain_named
from mpm_nodes.graph.plan.substeps import SubstepPlan

__all__ = ["period_of", "within"]

CELLS = 8
"""Cells of which a period has a multiple: two blocks, so that neighbours differ in colour all the way around."""


def refuse_half_periodic(sides: Sequence[WallRule]) -> None:
    """Refuse a side that is periodic alone: sides are low and high along x, y and z.

    Raises:
        MpmNodesError: With both sides.
    """
    for name, low, high in zip("xyz", sides[::2], sides[1::2], strict=True):
        if WallRule.PERIODIC in (low, high) and low is not high:
            raise MpmNodesError(f"solve: wall_{name}_low is {low.value} and wall_{name}_high {high.value}; make both periodic")


def period_of(walls: Walls | None, h: float, plans: Sequence[SubstepPlan]) -> tuple[int, int, int]:
    """Return the blocks between periodic sides, 0 along an axis without.

    Args:
        walls: The domain's walls, or None.
        h: Grid spacing [m].
        plans: Substeps that may run.

    Raises:
        MpmNodesError: One of two opposite sides is periodic alone, they are not a multiple of eight cells apart, or a stage does
            not look beyond them.
    """
    if walls is None or WallRule.PERIODIC not in walls.sides:
        return (0, 0, 0)
    refuse_half_periodic(walls.sides)
    blocks = []
    for axis, name in enumerate("xyz"):
        low, high = walls.sides[2 * axis], walls.sides[2 * axis + 1]
        if WallRule.PERIODIC not in (low, high):
            blocks.append(0)
            continue
        length = walls.high[axis] - walls.low[axis]
        periods = round(length / (CELLS * h))
        if periods < 1 or abs(length / (CELLS * h) - periods) > 1e-6 * periods:
            fit = max(1, periods) * CELLS * h
            raise MpmNodesError(
                f"solve: periodic sides {length:g} m apart along {name} are not a multiple of {CELLS} cells ({CELLS * h:g} m); "
                f"put them {fit:.9g} m apart, or change the cell size"
            )
        blocks.append(2 * periods)
    for plan in plans:
        for planned in plan.stages:
            if not (planned.declaration.copies and planned.declaration.around) or any(map(_ends_at_sides, planned.domains)):
                raise MpmNodesError(
                    f"solve: stage {planned.id} does not look beyond periodic sides; take explicit_apic or implicit_apic, "
                    "or other walls"
                )
    return (blocks[0], blocks[1], blocks[2])


def _ends_at_sides(domain: str) -> bool:
    """Whether a domain finds its neighbours otherwise than the transfers of the grid do, whose tables go around."""
    return domain != "grid" and domain_named(domain).lies_on_blocks


def within(position: np.ndarray, walls: Walls | None, period: tuple[int, int, int]) -> np.ndarray:
    """Return positions [m], shape (n, 3), with those beyond periodic sides at the other."""
    if walls is None or not any(period):
        return position
    low, length = np.array(walls.low), np.array(walls.high) - np.array(walls.low)
    return np.where(np.array(period) > 0, low + np.mod(position - low, length), position)
