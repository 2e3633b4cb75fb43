"""What materials say of heat and no stage of the substeps reads, and what stages of heat read and materials do not say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mpm_nodes.data import Material, MpmNodesError
from mpm_nodes.physics.contract import StagesOfPlan
from mpm_nodes.physics.heat.materials import checked_thermal

__all__ = ["CURE", "carry_heat", "refuse_ambient", "refuse_heat_source", "require_of_material", "unread"]

CURE = "take the preset explicit_heat, melting or surface_tension_heat"


def carry_heat(plans: Sequence[StagesOfPlan]) -> bool:
    """Return whether any of these substeps carries heat."""
    return any("heat_capacity" in plan.fields_needed["particles"] for plan in plans)


def require_of_material(material: Material, plans: Sequence[StagesOfPlan]) -> None:
    """Refuse matter without thermal parameters where the substeps carry heat.

    Raises:
        MpmNodesError: It has none, or some are out of range.
    """
    if carry_heat(plans):
        checked_thermal(material)


def refuse_heat_source(plans: Sequence[StagesOfPlan]) -> None:
    """Refuse heat that is made inside matter where the stages of some substeps do not ask for it.

    Args:
        plans: The substeps that the solve may take.

    Raises:
        MpmNodesError: Some do not.
    """
    if not all("heat_source" in plan.fields_needed["particles"] for plan in plans):
        raise MpmNodesError(
            f"the matter has a heat_source, and these substeps carry no heat; {CURE}, or leave the set_attribute of it out"
        )


def refuse_ambient(plans: Sequence[StagesOfPlan]) -> None:
    """Refuse air and heat in places where the stages of some substeps carry no heat.

    Raises:
        MpmNodesError: Some do not.
    """
    if not all("heat_capacity" in plan.fields_needed["particles"] for plan in plans):
        raise MpmNodesError(
            f"solve.ambient: air or a heat field is wired, and these substeps carry no heat; {CURE}, or take the wire out"
        )


def unread(materials: Sequence[Material], plans: Sequence[StagesOfPlan], tempered: bool) -> Iterator[str]:
    """Yield which thermal parameters, and temperatures of colliders, have no effect in these substeps."""
    changes_phase = any(("particles", "phase") in part.writes for plan in plans for part in plan.parts)
    for material in materials:
        if material.thermal is None:
            continue
        named = material.label or material.law
        if not carry_heat(plans):
            yield (
                f"material {named} has thermal parameters, and these substeps carry no heat: it neither conducts nor "
                f"melts; {CURE}, or leave material_thermal out"
            )
        elif material.thermal.freezing_temperature is not None and not changes_phase:
            yield (
                f"material {named} has a freezing temperature, and no stage of these substeps changes its phase: it "
                "neither melts nor freezes; wire update_phase last, or set material_thermal.freezing_temperature to 0"
            )
    if tempered and not carry_heat(plans):
        yield f"a collider has a temperature or a flux of heat, and these substeps carry no heat; {CURE}, or leave it out"
