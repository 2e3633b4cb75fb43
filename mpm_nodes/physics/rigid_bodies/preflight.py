"""Which solves take no rigid bodies, and what will surprise of those that are wired into one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from mpm_nodes.data import MpmNodesError
from mpm_nodes.physics.contract import StagesOfPlan

__all__ = ["refuse_moved_bodies", "wired"]

LEAST = 0.5
"""Thickness below which it is told [cells]: boxes of 0.8 cells float as they should, those of 0.1 cells are thrown."""


def refuse_moved_bodies(plans: Sequence[StagesOfPlan], several_ranks: bool) -> None:
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


def wired(told: Any, plans: Callable[[], Sequence[StagesOfPlan]]) -> Iterator[str]:
    """Refuse rigid bodies that a solve does not take, and yield what will surprise of the others.

    Args:
        told: What the solve's preflight is told.
        plans: Returns the substeps that it may take.

    Raises:
        MpmNodesError: See `refuse_moved_bodies`; or a joint holds on to what is not there or hangs on itself, or two have one name.
    """
    names = told.every("colliders", "rigid_bodies")
    if names:
        refuse_moved_bodies(plans(), told.ranks > 1)
    hung = dict(told.every("colliders", "hung"))
    for name, parent in hung.items():
        if parent not in names:
            raise MpmNodesError(
                f"solve.colliders: a joint holds on to the rigid body '{parent}', which is not among them; wire it in"
            )
        above = {name}
        while parent in hung and parent not in above:
            above.add(parent)
            parent = hung[parent]
        if parent in above:
            raise MpmNodesError(f"solve.colliders: the rigid body '{parent}' hangs on itself by joints; take the wire out of one")
    for name in names:
        if names.count(name) > 1:
            raise MpmNodesError(f"rigid_body.name: two bodies of a solve are called '{name}'; give each its own")
    if told.total("colliders", "rigid"):
        if told.inputs.get("active") and not told.total("active", "sleeps"):
            yield "solve.active: matter that is not active does not hold rigid bodies; let it be active where they go"
        if past := _past_bodies(told):
            yield f"solve.forces: {past} not push rigid bodies: what reads or ties particles, or presses on their surface"
    yield from _small(told.distinct("colliders", "rigid_solids"), plans, told.settings.cell_size)


def _past_bodies(told: Any) -> str:
    """Return the names of forces that push particles alone, with `does` or `do`; none: empty."""
    forces = zip(told.names.get("forces", ()), told.inputs.get("forces", ()), strict=False)
    names = [name for name, facts in forces if facts.get("past_bodies") or facts.get("attachments")]
    return f"{', '.join(names)} {'does' if len(names) == 1 else 'do'}" if names else ""


def _small(bodies: Iterable[tuple[str, Any]], plans: Callable[[], Sequence[StagesOfPlan]], cell_size: float) -> Iterator[str]:
    """Say of each ball, box or capsule that it is too thin to be moved through the faces of the grid: what pushes it is chance.

    Args:
        bodies: Names of the rigid bodies of a solve, and distances from them (`start_inside.solids_of`).
        plans: Returns the substeps.
        cell_size: [m].
    """
    thin = [(name, width) for name, solid in bodies if (width := _thickness(solid)) < LEAST * cell_size]
    if not thin:
        return
    declared = [part.declaration for plan in plans() for part in plan.parts]
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
