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
        MpmNodesError: Some stage meets them and does not move them, or two do on the nodes, or none does; or ranks share them.
    """
    if several_ranks:
        raise MpmNodesError("rigid_body: matter of several ranks moves no bodies; solve on one rank")
    for plan in plans:
        meeting = [part for part in plan.parts if part.declaration.joins or part.declaration.moves_bodies is not None]
        on_nodes = [part.declaration.joins for part in meeting]
        moved = all(part.declaration.moves_bodies is not None for part in meeting)
        if not meeting or not moved or (any(on_nodes) and len(meeting) > 1):
            raise MpmNodesError(
                "rigid_body: these substeps do not move bodies; take explicit_apic, implicit_apic, incompressible or another "
                "preset whose contacts are those of collide_grid, minimise_energy or project_velocity"
            )
        for part in meeting:
            stage = part.declaration.id
            on = next((knob for knob in part.declaration.moves_bodies or () if part.knobs.get(knob)), None)
            if on is not None:
                raise MpmNodesError(f"rigid_body: {stage} moves no bodies with {on}; turn {stage}.{on} off")
