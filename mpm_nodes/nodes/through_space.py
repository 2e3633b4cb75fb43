"""Fields handed to those who ask for numbers at places: what is around matter, and surfaces of colliders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpm_nodes.data import FrameContext, SpatialField
from mpm_nodes.graph.declare.declarations import PreflightContext
from mpm_nodes.nodes.fields import constant, number
from mpm_nodes.nodes.fields_of_particles import everywhere

if TYPE_CHECKING:
    from mpm_nodes.solver.field_programs import FieldThroughSpace

__all__ = ["at_least", "refuse_misfits", "through_space"]


def through_space(ctx: FrameContext, where: str, field: SpatialField) -> FieldThroughSpace:
    """Return a field of numbers as values at places, sampled at every substep.

    Args:
        ctx: The frame.
        where: Node and port, for messages.
        field: The field.

    Raises:
        MpmNodesError: It is a field of vectors, or reads particles.
    """
    from mpm_nodes.solver.field_programs import FieldThroughSpace

    return FieldThroughSpace(everywhere(where, number(where, field)), ctx.settings.cell_size, float(ctx.frame))


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


def refuse_misfits(told: PreflightContext, *places: str) -> None:
    """Refuse, before the cook, fields of vectors, and those that read particles, at ports that need numbers at places.

    Args:
        told: What the node is told.
        places: "node.port".

    Raises:
        MpmNodesError: One is wired.
    """
    for where in places:
        for facts in told.inputs.get(where.partition(".")[2], ()):
            number(where, SpatialField("CONSTANT", vector=facts.get("vector", False)))
            if "field" in facts:
                everywhere(where, facts["field"])
