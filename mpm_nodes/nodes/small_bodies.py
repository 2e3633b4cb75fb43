"""Rigid bodies too small for the faces of a grid: what pushes them there is chance, and they fly away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

__all__ = ["small_warnings"]

LEAST = 0.5
"""Thickness below which it is told [cells]: boxes of 0.8 cells float as they should, those of 0.1 cells are thrown."""


def small_warnings(bodies: Iterable[tuple[str, Any]], substeps: Any, cell_size: float) -> Iterator[str]:
    """Say of each ball, box or capsule that it is too thin to be moved through the faces of the grid.

    Args:
        bodies: Names of the rigid bodies of a solve, and distances from them (`start_inside.solids_of`).
        substeps: The solve's knob.
        cell_size: [m].
    """
    thin = [(name, width) for name, solid in bodies if (width := _thickness(solid)) < LEAST * cell_size]
    if not thin:
        return
    from mpm_nodes.graph.plan.substeps import plans_of

    declared = [part.declaration for plan in plans_of(substeps) for part in plan.parts]
    if not any(each.moves_bodies is not None and not each.joins for each in declared):
        return  # contacts on nodes know the two sides of what is thin
    for name, width in thin:
        yield (
            f"rigid body '{name}' is {width:.3g} m thick, {width / cell_size:.2g} cells: projected substeps do not see it on the "
            f"faces of the grid, and may throw it, below {LEAST:g} cells; take a thicker one, a smaller settings.cell_size, or "
            "explicit_apic"
        )


def _thickness(solid: Any) -> float:
    """Return twice the depth of the centre of a ball, box or capsule [m]; infinite for a mesh."""
    from mpm_nodes.kernels.level_sets.level_set import PosedLevelSets

    if not (isinstance(solid, partial) and isinstance(solid.args[0], PosedLevelSets)):
        return np.inf
    return -2.0 * float(solid(solid.args[0].translations[:1])[0])
