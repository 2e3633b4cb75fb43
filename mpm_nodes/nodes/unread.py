"""What materials and bodies say and no stage of the substeps asks for, told before a cook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mpm_nodes.data import Material
from mpm_nodes.nodes.bodies import Body

if TYPE_CHECKING:
    from mpm_nodes.graph.substeps import SubstepPlan

__all__ = ["unread"]

HEAT = "take the preset explicit_heat, melting or surface_tension_heat"


def unread(bodies: Sequence[Body], substeps: Any, makes_heat: bool, tempered: bool) -> list[str]:
    """Refuse what would change the result if it were read, and return what is only left aside, as texts to warn of.

    The solve would refuse it too, after what comes before it was cooked.

    Args:
        bodies: What the emitters make.
        substeps: The solve's knob.
        makes_heat: Whether some matter makes heat.
        tempered: Whether a collider has a temperature.

    Raises:
        MpmNodesError: Matter says how incompressible it is where nothing projects, lets a solute spread where nothing carries it,
            makes heat where none is carried, or has no thermal parameters where heat is carried.
    """
    materials = {id(body.material): body.material for body in bodies}
    if not (materials or makes_heat or tempered):
        return []
    from mpm_nodes.graph.substeps import plan_substeps, resolve
    from mpm_nodes.solver.initial import refuse_unread_diffusivity, refuse_unread_heat_source, refuse_unread_modulus
    from mpm_nodes.solver.phases import checked_thermal, with_melts

    resolved = resolve(substeps)
    plans = [plan_substeps(each) for each in (resolved, *resolved.others)]
    all_matter = with_melts(tuple(materials.values()))
    for material in all_matter:
        refuse_unread_modulus(material, _named(material), plans)
        refuse_unread_diffusivity(material, _named(material), plans)
        if any(_asks(plan, "heat_capacity") for plan in plans):
            checked_thermal(material)
    if makes_heat:
        refuse_unread_heat_source(plans)
    return list(dict.fromkeys(_left_aside(tuple(materials.values()), plans, tempered)))


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


def _asks(plan: SubstepPlan, name: str) -> bool:
    return name in plan.fields_needed["particles"]


def _named(material: Material) -> str:
    return material.label or material.law
