"""What materials and bodies say and no stage of the substeps asks for, told before a cook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mpm_nodes.data import Material, MpmNodesError
from mpm_nodes.nodes.bodies import Body

if TYPE_CHECKING:
    from mpm_nodes.graph.substeps import SubstepPlan

__all__ = ["WiredIn", "unread"]

HEAT = "take the preset explicit_heat, melting or surface_tension_heat"


class WiredIn(NamedTuple):
    """What of heat and tension is wired into a solve beside its matter's parameters.

    Attributes:
        made: Some matter makes heat.
        scaled: Some matter has a factor on its tension.
        tempered: A collider has a temperature.
        ambient: Air or a heat field is there.
        airs: How many nodes say how warm the air is.
        tension: A field of tension is there.
    """

    made: bool
    scaled: bool
    tempered: bool
    ambient: bool
    airs: int
    tension: bool


def unread(bodies: Sequence[Body], substeps: Any, wired: WiredIn, whole: bool) -> list[str]:
    """Refuse what would change the result if it were read, and return what is only left aside, as texts to warn of.

    The solve would refuse it too, after what comes before it was cooked.

    Args:
        bodies: What the emitters make.
        substeps: The solve's knob.
        wired: What else is wired into the solve.
        whole: Whether these are the bodies of all emitters.

    Raises:
        MpmNodesError: Matter says how incompressible it is where nothing projects, lets a solute spread where nothing carries it,
            makes heat where none is carried, has no thermal parameters where heat is carried, or has a tension against matter that
            is not there; or something is around it that no stage reads, or air twice.
    """
    materials = {id(body.material): body.material for body in bodies}
    if wired.airs > 1:
        raise MpmNodesError(f"solve.ambient: {wired.airs} nodes say how warm the air is; wire one of them, or join their grids")
    if not (materials or any(wired)):
        return []
    from mpm_nodes.graph.substeps import plan_substeps, resolve

    resolved = resolve(substeps)
    candidates = (resolved, *resolved.others)
    asked = any(stage.id == "thermal_properties" for each in candidates for stage in each.declarations.values())
    if not (asked or any(wired) or any(map(_asks_for_more, materials.values()))):
        return []
    from mpm_nodes.solver import initial
    from mpm_nodes.solver.liquid_pairs import pairs_of
    from mpm_nodes.solver.phases import checked_thermal, with_melts
    from mpm_nodes.solver.surroundings import refuse_unread_ambient, refuse_unread_tension_field

    plans = [plan_substeps(each) for each in candidates]
    all_matter = with_melts(tuple(materials.values()))
    for material in all_matter:
        initial.refuse_unread_modulus(material, _named(material), plans)
        initial.refuse_unread_diffusivity(material, _named(material), plans)
        if any(_asks(plan, "heat_capacity") for plan in plans):
            checked_thermal(material)
    if whole:
        pairs_of(all_matter)
    if wired.made:
        initial.refuse_unread_heat_source(plans)
    if wired.ambient:
        refuse_unread_ambient(plans)
    if wired.tension:
        refuse_unread_tension_field(plans)
    aside = [*_left_aside(tuple(materials.values()), plans, wired.tempered)]
    if whole and all(each.surface_tension is None for each in all_matter):
        aside += _without_tension(wired)
    return list(dict.fromkeys(aside))


def _left_aside(materials: Sequence[Material], plans: Sequence[SubstepPlan], tempered: bool) -> Iterator[str]:
    """Yield what has no effect in these substeps."""
    carries_heat = any(_asks(plan, "heat_capacity") for plan in plans)
    has_surface = any("tension" in plan.fields_needed.get("samples", ()) for plan in plans)
    for material in materials:
        if material.surface_tension is not None and not has_surface:
            yield (
                f"material {_named(material)} has a surface tension, and these substeps have no surface that it pulls at; take the "
                "preset surface_tension, auto_surface_tension or another with surfaces, or leave its tensions out"
            )
        if material.thermal is not None and not carries_heat:
            yield (
                f"material {_named(material)} has thermal parameters, and these substeps carry no heat: it neither conducts nor "
                f"melts; {HEAT}, or leave material_thermal out"
            )
    if tempered and not carries_heat:
        yield f"a collider has a temperature, and these substeps carry no heat; {HEAT}, or leave the collider's temperature out"


def _without_tension(wired: WiredIn) -> Iterator[str]:
    """Yield what has no effect where no material has a tension."""
    for given, what in ((wired.scaled, "matter has a factor on its tension"), (wired.tension, "a tension field is wired in")):
        if given:
            yield f"{what}, and no material has a surface tension; wire material_surface_tension, or leave it out"


def _asks_for_more(material: Material) -> bool:
    """Return whether a material says what only some substeps read."""
    return material.bulk_modulus is not None or material.thermal is not None or material.surface_tension is not None


def _asks(plan: SubstepPlan, name: str) -> bool:
    return name in plan.fields_needed["particles"]


def _named(material: Material) -> str:
    return material.label or material.law
