"""Fields handed to those who ask for numbers at places: what is around matter, and surfaces of colliders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpm_nodes.data import FrameContext, SpatialField
from mpm_nodes.nodes.fields import constant, number

if TYPE_CHECKING:
    from mpm_nodes.solver.field_programs import FieldThroughSpace

__all__ = ["at_least", "through_space"]


def through_space(ctx: FrameContext, field: SpatialField, where: str = "field") -> FieldThroughSpace:
    """Return a field of numbers as values at places, sampled at every substep.

    Args:
        ctx: The frame.
        field: The field.
        where: Node and port, for messages.

    Raises:
        MpmNodesError: It is a field of vectors.
    """
    from mpm_nodes.solver.field_programs import FieldThroughSpace

    return FieldThroughSpace(number(where, field), ctx.settings.cell_size, float(ctx.frame))


def at_least(ctx: FrameContext, where: str, field: SpatialField, least: float) -> SpatialField:
    """Return a field that is nowhere below a value, and warn at the first frame where it could be.

    Args:
        ctx: The frame.
        where: Node and port, for messages.
        field: The field.
        least: The value.

    Raises:
        MpmNodesError: It is a field of vectors.
    """
    from mpm_nodes.solver.field_bounds import bounds

    low, _ = bounds(number(where, field))
    if low >= least:
        return field
    if ctx.frame == ctx.settings.start:
        node, _, port = where.partition(".")
        message = f"{node}: values below {least:g} are raised to it; they may go down to {low:.6g}"
        ctx.report("warning", where=port, message=message)
    return SpatialField("MAXIMUM", (field, constant(least)))
