"""What is around the matter of a solver, and what it is at a moment: air, heat, tension and forces, temperatures of bodies."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from mpm_nodes.data import (
    AGE,
    ATTRIBUTES,
    BIRTH,
    ActiveMask,
    Ambient,
    AttributeUpdate,
    BodyForce,
    Collider,
    Drain,
    MpmNodesError,
    attached_column,
    attachments_of,
)
from mpm_nodes.data.ambient import air_of, at_frame
from mpm_nodes.graph.plan.substeps import SubstepPlan
from mpm_nodes.graph.time import keys
from mpm_nodes.physics import all_physics
from mpm_nodes.solver.attachments import refuse_without_columns
from mpm_nodes.solver.sleep import refuse_sleep

if TYPE_CHECKING:
    from mpm_nodes.solver.run import SubstepSolver

__all__ = [
    "activate",
    "ambient_at",
    "collider_at",
    "named",
    "push",
    "refuse_unknown_attribute",
    "refuse_unknown_attributes",
    "refuse_unread_around",
    "refuse_unread_forces",
    "surround",
]


AIR_RANKS = "ranks: force_air sees the matter of one rank only; take force_wind, or solve on one rank"
"""What a solve on several ranks with air that presses on surfaces is told."""
MASKED_RANKS = (
    "ranks: passive matter is not shared among ranks, of which each would meet only its own; take the wire out of solve.active, or "
    "solve on one rank"
)

Given = TypeVar("Given", Ambient, Collider)
Acting = TypeVar("Acting", AttributeUpdate, BodyForce)


def ambient_at(ambient: Sequence[Ambient], frame: float) -> tuple[Ambient, ...]:
    """Return what is around the matter as it is at a (fractional) frame, without keys and sequences."""
    return tuple(_settled(each, frame) for each in ambient)


def collider_at(collider: Collider, frame: float) -> Collider:
    """Return a collider with the temperatures, the conductance and the wetting that its surface has at a (fractional) frame."""
    return _settled(collider, frame)


def _settled(given: Given, frame: float) -> Given:
    """Return a value with its members at a frame."""
    members = {each.name: getattr(given, each.name) for each in dataclasses.fields(given)}
    found = {name: keys.at(at_frame(member, frame), frame) for name, member in members.items()}
    changed = {name: member for name, member in found.items() if member is not members[name]}
    return dataclasses.replace(given, **changed) if changed else given


def surround(run: SubstepSolver, ambient: Sequence[Ambient]) -> None:
    """Say what is around the matter of a solver from now on.

    Args:
        run: The solver.
        ambient: Air, at most once, heat made in places, and factors on the tension in places.

    Raises:
        MpmNodesError: The substeps carry no heat, or have no surface, or there is air twice.
    """
    refuse_unread_around({"heat" if each.tension is None else "tension" for each in ambient}, run.candidates.plans)
    air_of(tuple(ambient))
    run.step_context.ambient = tuple(ambient)


def named(acting: Sequence[Acting], names: Sequence[str]) -> tuple[Acting, ...]:
    """Return forces or updates with the names of their nodes, where these are known."""
    found = [dataclasses.replace(each, name=name) for each, name in zip(acting, names, strict=False)]
    return tuple(found or acting)


def push(run: SubstepSolver, forces: Sequence[BodyForce]) -> None:
    """Say what pushes the matter of a solver from now on.

    Args:
        run: The solver.
        forces: Forces, in the order in which they act.

    Raises:
        MpmNodesError: Some substeps have no stage for them, or air presses on matter of several ranks.
    """
    if forces:
        refuse_unread_forces(run.candidates.plans)
    if run.share.several and any(force.surface for force in forces):
        raise MpmNodesError(AIR_RANKS)
    refuse_unknown_attributes("solve.forces", forces, run.particles.names)
    refuse_without_columns(forces, run.particles.names)
    ties = [attached_column(number) for number in range(len(attachments_of(forces)))]
    read = {BIRTH if name == AGE else name for force in forces for name in force.attributes} | {
        each for tie in ties for each in tie
    }
    run.step_context.forces, run.step_context.strongest = tuple(forces), None
    run.step_context.further_reads = {"apply_forces": frozenset(read)} if read else {}


def activate(run: SubstepSolver, mask: ActiveMask | None) -> None:
    """Say which matter of a solver moves, from the next frame on.

    Args:
        run: The solver.
        mask: Which matter is active; None: all.

    Raises:
        MpmNodesError: The mask reads what particles do not have, several ranks share the matter, or it is to sleep and changes at
            rest.
    """
    if mask is not None:
        if run.share.several:
            raise MpmNodesError(MASKED_RANKS)
        refuse_unknown_attributes("solve.active", [mask], run.particles.names)
        if mask.sleep is not None:
            refuse_sleep(run.candidates.plans)
    run.active = mask


def refuse_unknown_attributes(
    where: str, readers: Iterable[AttributeUpdate | BodyForce | Drain | ActiveMask], columns: Collection[str]
) -> None:
    """Refuse forces, drains, masks or updates that read what the particles of a solve do not have.

    Args:
        where: Node and port, for messages.
        readers: Forces, drains, masks or updates.
        columns: What the particles have.

    Raises:
        MpmNodesError: They read other attributes.
    """
    for name in sorted({name for each in readers for name in each.attributes}):
        refuse_unknown_attribute(where, name, columns)


def refuse_unknown_attribute(where: str, name: str, columns: Collection[str]) -> None:
    """Refuse an attribute that fields read and the particles of a solve do not have (see `refuse_unknown_attributes`)."""
    if (BIRTH if name == AGE else name) in columns and not _passes(name):
        return
    known = [each for each in sorted(columns) if not _passes(each)]
    raise MpmNodesError(
        f"{where}: a field reads '{name}', which the particles of this solve do not have; they have {', '.join(known)}; give it to "
        "their sources, or choose another in field_attribute"
    )


def _passes(name: str) -> bool:
    """Return whether an attribute lives within a substep, so that there is nothing to read when a field is."""
    return name in ATTRIBUTES and ATTRIBUTES[name].passing


def refuse_unread_forces(plans: Sequence[SubstepPlan]) -> None:
    """Refuse forces where some substeps have no stage for them.

    Args:
        plans: The substeps that the solve may take.

    Raises:
        MpmNodesError: Some have none.
    """
    if not all(any(part.declaration.id == "apply_forces" for part in plan.parts) for plan in plans):
        raise MpmNodesError(
            "solve.forces: a force is wired, and these substeps have no stage for it; wire apply_forces behind choose_time_step, "
            "take a preset, or take the wire out"
        )


def refuse_unread_around(kinds: Iterable[str], plans: Sequence[SubstepPlan]) -> None:
    """Refuse what is around the matter where the stages of some substeps do not ask for it.

    Args:
        kinds: What there is, as `Physics.refuse_around` names it.
        plans: The substeps that the solve may take.

    Raises:
        MpmNodesError: Some do not.
    """
    for physics in all_physics():
        for kind in physics.refuse_around.keys() & set(kinds):
            physics.refuse_around[kind](plans)
