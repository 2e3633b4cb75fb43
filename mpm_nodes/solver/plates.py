"""Which colliders are thin: boxes and sheets of level sets through which splines reach from one side to the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mpm_nodes.data import Collider, CollisionRule
from mpm_nodes.kernels.level_sets.level_set import BOX, LeafLevelSet, PosedLevelSets
from mpm_nodes.kernels.level_sets.sheet_fields import ThinSheet, follow_sheets, thin_sheets
from mpm_nodes.kernels.level_sets.sheets import thin_sheet

__all__ = ["SHEET", "Splines", "find_sheets", "is_plate", "parts_sides"]

SHEET = 0.2
"""Share of a level set's surface that must be thin for it to be called a sheet."""


class Splines(NamedTuple):
    """How far transfers reach: the width of their widest spline [m], and the cell size [m]."""

    width: float
    cell_size: float


def is_plate(collider: Collider, reach: float) -> bool:
    """Return whether a collider is a box so thin that splines of this width [m] reach through it, and twice as wide."""
    if not isinstance(collider.shape, PosedLevelSets) or collider.shape.kind != BOX or collider.clamp or collider.rigid:
        return False
    thin, wide, _ = sorted(2.0 * size for size in collider.shape.sizes)
    return thin < reach and 2.0 * thin <= wide


def parts_sides(collider: Collider) -> bool:
    """Return whether a collider is a level set that parts what lies on its sides.

    What clamps does not, nor a rigid body, nor what stands still, sticks and carries, as a mouth does.
    """
    level_sets = collider.shape.level_sets
    carries = collider.rule is CollisionRule.STICKY and len(level_sets) == 1 and level_sets[0].velocities is not None
    return bool(level_sets) and not collider.clamp and not collider.rigid and not carries


def find_sheets(
    colliders: Sequence[Collider], splines: Splines, found: dict[int, tuple[ThinSheet, ...]]
) -> dict[int, tuple[ThinSheet, ...]]:
    """Return the sheets of the level sets of those colliders that keep their sides apart, by their `id`.

    All keys of a body have as many, in one order and with the same fronts.

    Args:
        colliders: All of a solve.
        splines: Of its transfers.
        found: Sheets that are known already, as those of the frame before.
    """
    sheets: dict[int, tuple[ThinSheet, ...]] = {}
    for collider in filter(parts_sides, colliders):
        before: LeafLevelSet | None = None
        for level_set in collider.shape.level_sets:
            if id(level_set) not in sheets:
                mine = found[id(level_set)] if id(level_set) in found else _sheets_of(level_set, splines)
                if before is not None:
                    mine = follow_sheets(mine, sheets[id(before)], level_set.centre - before.centre)
                sheets[id(level_set)] = mine
            before = level_set
        fewest = min(len(sheets[id(level_set)]) for level_set in collider.shape.level_sets)
        sheets |= {id(level_set): sheets[id(level_set)][:fewest] for level_set in collider.shape.level_sets}
    return sheets


def _sheets_of(level_set: LeafLevelSet, splines: Splines) -> tuple[ThinSheet, ...]:
    """Return the sheets of a level set, none where they are a small part of its surface."""
    if thin_sheet(level_set, splines.width).share < SHEET:
        return ()
    return thin_sheets(level_set, splines.width, splines.cell_size)
