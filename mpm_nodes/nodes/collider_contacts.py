"""Contacts that are painted: where a collider is slippery or sticky."""

from __future__ import annotations

import dataclasses
from typing import Any

from mpm_nodes.data import Collider, CollisionRule, FrameContext, SpatialField
from mpm_nodes.graph.declare.decorators import PreflightContext, found_by, node
from mpm_nodes.nodes.bodies import collider_passed_on
from mpm_nodes.nodes.through_space import at_least, refuse_misfits, through_space

__all__ = ["collider_contact"]


def _told(told: PreflightContext) -> dict[str, Any]:
    """Preflight: the body is passed on, and told to be painted."""
    refuse_misfits(told, "collider_contact.friction", "collider_contact.adhesion")
    return {**collider_passed_on(told), "painted": 1}


@found_by("glue", "sticky", "slippery", "ice", "rough")
@node(category="Collide", label="Collider Contact", preflight=_told)
def collider_contact(
    collider: Collider, ctx: FrameContext, friction: SpatialField | None = None, adhesion: SpatialField | None = None
) -> Collider:
    """Vary friction and adhesion over a collider: ice beside sand, a patch of glue. For explicit and implicit substeps.

    Fields are looked at where nodes of the grid meet it, within a cell of its surface, at every substep.

    Args:
        collider: Any collider of the rule separate, with the friction and adhesion of its own knobs.
        friction: Factor on its friction; without it 1.
        adhesion: Factor on its adhesion; without it 1.

    Raises:
        MpmNodesError: A field is one of vectors, or reads particles.
    """

    if collider.rule is not CollisionRule.SEPARATE and ctx.frame == ctx.settings.start:
        message = f"collider_contact: '{collider.name}' has the rule {collider.rule.value}, and no friction to vary"
        ctx.report("warning", where="collider", message=f"{message}; take the rule separate")

    def factor(name: str, field: SpatialField | None) -> Any:
        where = f"collider_contact.{name}"
        return None if field is None else through_space(ctx, where, at_least(ctx, where, field, 0.0))

    return dataclasses.replace(collider, friction_factor=factor("friction", friction), adhesion_factor=factor("adhesion", adhesion))
