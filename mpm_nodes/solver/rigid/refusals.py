"""Which solves take no rigid bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mpm_nodes.data import MpmNodesError

if TYPE_CHECKING:
    from mpm_nodes.graph.plan.substeps import SubstepPlan

__all__ = ["refuse_rigid_bodies"]


def refuse_rigid_bodies(plans: Sequence[SubstepPlan], several_ranks: bool) -> None:
    """Refuse rigid bodies where nothing tells them what matter does to them.

    Args:
        plans: The substeps that the solve may take.
        several_ranks: Whether ranks share the solve.

    Raises:
        MpmNodesError: Some do not meet them by `collide_grid` or `minimise_energy` alone, or ranks share them.
    """
    if several_ranks:
        raise MpmNodesError("rigid_body: matter of several ranks moves no bodies; solve on one rank")
    for plan in plans:
        meeting = [part.declaration.id for part in plan.parts if part.declaration.joins]
        if meeting not in (["collide_grid"], ["minimise_energy"]):
            raise MpmNodesError(
                "rigid_body: these substeps do not move bodies; take explicit_apic, implicit_apic or another preset whose contacts "
                "are those of collide_grid or minimise_energy"
            )
