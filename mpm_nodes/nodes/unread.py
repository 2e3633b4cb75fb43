"""What materials and bodies say and no stage of the substeps asks for, told before a cook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mpm_nodes.data import Material, MpmNodesError
from mpm_nodes.nodes.bodies import Body

if TYPE_CHECKING:
    from mpm_nodes.graph.substeps import SubstepPlan

__all__ = ["Thermics", "unread"]

HEAT = "take the preset explicit_heat, melting or surface_tension_heat"


class Thermics(NamedTuple):
    """What of heat is wired into a solve beside its matter's parameters.

    Attributes:
        made: Some matter makes heat.
        tempered: A collider has a temperature.
        ambient: Air or a heat field is there.
        airs: How many nodes say how warm the air is.
    """

    made: bool
    tempered: bool
    ambient: bool
    airs: int


def unread(bodies: Sequence[Body], substeps: Any, heat: Thermics) -> list[str]:
    """Refuse what would change the result if it were read, and return what is only left aside, as texts to warn of.

    The solve would refuse it too, after what comes before it was cooked.

    Args:
        bodies: What the emitters make.
        substeps: The solve's knob.
        heat: What of heat is wired into the solve.

    Raises:
        MpmNodesError: Matter says how incompressible it is where nothing projects, lets a solute spread where nothing carries it,
            makes heat where none is carried, or has no thermal parameters where heat is carried; or something is around it that no
            stage reads, or air twice.
    """
    materials = {id(body.material): body.material for body in bodies}
    if heat.airs > 1:
        raise MpmNodesError(f"solve.ambient: {heat.airs} nodes say how warm the air is; wire one of them, or join their grids")
    if not (materials or any(heat)):
        return []
    from mpm_nodes.graph.substeps import plan_substeps, resolve

    resolved = resolve(substeps)
    candidates = (resolved, *resolved.others)
    asked = any(stage.id == "thermal_properties" for each in candidates for stage in each.declarations.values())
    if not (asked or any(heat) or any(map(_asks_for_more, materials.values()))):
        return []
    from mpm_nodes.solver import initial
    from mpm_nodes.solver.phases import checked_thermal, with_melts
    from mpm_nodes.solver.surroundings import refuse_unread_ambient

    plans = [plan_substeps(each) for each in candidates]
    all_matter = with_melts(tuple(materials.values()))
    for material in all_matter:
        initial.refuse_unread_modulus(material, _named(material), plans)
        initial.refuse_unread_diffusivity(material, _named(material), plans)
        if any(_asks(plan, "heat_capacity") for plan in plans):
            checked_thermal(material)
    if heat.made:
        initial.refuse_unread_heat_source(plans)
    if heat.ambient:
        refuse_unread_ambient(plans)
    return list(dict.fromkeys(_left_aside(tuple(materials.values()), plans, heat.tempered)))


def _left_aside(materials: Sequence[Material], plans: Sequence[SubstepPlan], tempered: bool) -> Iterator[str]:
    """Yield what has no effect in these substeps."""
    carries_heat = any(_asks(plan, "heat_capacity") for plan in plans)
    for material in materials:
        if material.thermal is not None and not carries_heat:
            yield (
                f"material {_named(material)} has thermal parameters, and these substeps carry no heat: it neither conducts nor "
                f"melts; {HEAT}, or leave material_thermal out"
            )
    if tempered and not carries_heat:
        yield f"a collider has a temperature, and these substeps carry no heat; {HEAT}, or leave the collider's temperature out"


def _asks_for_more(material: Material) -> bool:
    """Return whether a material says what only some substeps read."""
    tension = material.surface_tension
    spreads = tension is not None and tension.solute_diffusivity > 0.0
    return material.bulk_modulus is not None or material.thermal is not None or spreads


def _asks(plan: SubstepPlan, name: str) -> bool:
    return name in plan.fields_needed["particles"]


def _named(material: Material) -> str:
    return material.label or material.law
