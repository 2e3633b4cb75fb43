"""Thin rods among the colliders, said before a cook: splines reach around them, and nothing keeps their sides apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

__all__ = ["Rod", "rod_warnings"]

WIDEST = 4.0
"""Width of the widest spline of any transfer [cells]."""


class Rod(NamedTuple):
    """A collider that is longer than it is thick.

    Attributes:
        name: What messages call it.
        thickness: Across its axis [m].
        length: Along its axis, round ends included [m].
    """

    name: str
    thickness: float
    length: float


def rod_warnings(rods: Iterable[Rod], substeps: Any, cell_size: float) -> Iterator[str]:
    """Say of each rod that matter on two sides of it shares grid nodes.

    A rod does not part space as a plate does: matter flows around it, and there are no two sides to keep apart.

    Args:
        rods: Those among the colliders of a solve.
        substeps: The solve's knob.
        cell_size: [m].
    """
    thin = [rod for rod in rods if rod.thickness < WIDEST * cell_size and 2.0 * rod.thickness <= rod.length]
    if not thin:
        return
    from mpm_nodes.graph.plan.substeps import plans_of
    from mpm_nodes.solver.sides import spline_width

    width = max(map(spline_width, plans_of(substeps)))
    for rod in thin:
        if rod.thickness < width * cell_size:
            yield (
                f"collider '{rod.name}' is a rod of {rod.thickness:.3g} m, {rod.thickness / cell_size:.2g} cells: matter on two "
                f"sides of it shares grid nodes and drags across it, below {width:g} cells; take a thicker one or a smaller "
                "settings.cell_size, or a thin collide_box where it stands for a blade"
            )
