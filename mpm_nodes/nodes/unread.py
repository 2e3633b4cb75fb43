"""What materials and bodies say and no stage of the substeps asks for, told before a cook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mpm_nodes.data import Material, MpmNodesError
from mpm_nodes.graph.time.keys import carries_keys
from mpm_nodes.nodes.bodies import Body
from mpm_nodes.physics import MaterialNumber, all_physics, with_further

if TYPE_CHECKING:
    from mpm_nodes.graph.plan.substeps import SubstepPlan
    from mpm_nodes.materials.contract import Law

__all__ = ["WiredIn", "unread"]


_VISCOSITY = MaterialNumber("a viscosity", "flows as if it had none", "if it should not, wire compute_stress", "material_viscosity")


def _numbers() -> dict[str, MaterialNumber]:
    """Return the members of materials that stages declare to read, by name."""
    return {"viscosity": _VISCOSITY} | {name: each for physics in all_physics() for name, each in physics.material_numbers.items()}


class WiredIn(NamedTuple):
    """What of heat and tension is wired into a solve beside its matter's parameters.

    Attributes:
        columns: Columns of the matter that no substeps have to read, such as heat that it makes.
        scaled: Some matter has a factor on its tension.
        tempered: A collider has a temperature or a flux of heat.
        ambient: Air or a heat field is there.
        airs: How many nodes say how warm the air is.
        tension: A field of tension is there.
        forces: A force is there.
    """

    columns: frozenset[str]
    scaled: bool
    tempered: bool
    ambient: bool
    airs: int
    tension: bool
    forces: bool = False


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
    from mpm_nodes.graph.plan.substeps import plan_of, resolve

    resolved = resolve(substeps)
    candidates = (resolved, *resolved.others)
    stages = {stage.id for each in candidates for stage in each.declarations.values()}
    asked = "thermal_properties" in stages or ("apply_plasticity" not in stages and any(map(_flows, materials.values())))
    if not (asked or any(wired) or any(map(_asks_for_more, materials.values()))):
        return []
    from mpm_nodes.solver.surroundings import refuse_unread_around, refuse_unread_forces

    plans = [plan_of(each) for each in candidates]
    all_matter = with_further(tuple(materials.values()))
    for material in all_matter:
        for physics in all_physics():
            physics.refuse_material(material, _named(material), plans)
            physics.require_of_material(material, plans)
    for physics in all_physics():
        if whole:
            physics.refuse_matter(all_matter)
        for column in wired.columns & set(physics.refuse_columns):
            physics.refuse_columns[column](plans)
    refuse_unread_around([kind for kind, there in (("heat", wired.ambient), ("tension", wired.tension)) if there], plans)
    if wired.forces:
        refuse_unread_forces(plans)
    aside: list[str] = []
    for physics in all_physics():
        aside += physics.unread(tuple(materials.values()), plans, wired.tempered)
    aside += [text for material in all_matter for text in _numbers_aside(material, plans)]
    if whole and all(each.surface_tension is None for each in all_matter):
        aside += _without_tension(wired)
    return list(dict.fromkeys(aside))


def _numbers_aside(material: Material, plans: Sequence[SubstepPlan]) -> Iterator[str]:
    """Yield what of a material's numbers has no effect in these substeps, or none with its law."""
    from mpm_nodes.materials.contract import law

    found, stages = law(material.law), [part for plan in plans for part in plan.parts]
    returned = any("project" in each.needs for stage in stages for each in stage.declaration.fragments_for(stage.knobs))
    if _flows(material) and not returned:
        yield (
            f"material {_named(material)} can flow, and these substeps have no stage that returns its state to the yield surface: "
            "it stays elastic; wire apply_plasticity behind update_deformation"
        )
    given = _given(material)
    lacks = {name: _lacks(found, each) for name, each in given.items()}
    for why in dict.fromkeys(filter(None, lacks.values())):
        numbers = [given[name] for name in given if lacks[name] == why]
        yield (
            f"material {_named(material)} has {_listed(numbers)}, and its law {found.id} {why}: it {_without(numbers)}; "
            f"take {numbers[0].laws}, or leave {numbers[0].node} out"
        )
    liquid = [name for name, table in material.tables.items() if table.liquid]
    if liquid and (material.thermal is None or material.thermal.freezing_temperature is None):
        yield (
            f"material {_named(material)} has a table of the liquid for {liquid[0]}, and no freezing temperature: it is never "
            "liquid; set material_thermal.freezing_temperature, or leave liquid_table out"
        )
    read = {name for stage in stages for name in stage.declaration.of_materials}
    unread = [each for name, each in given.items() if name not in read and not lacks[name]]
    for node in dict.fromkeys(each.node for each in unread):
        numbers = [each for each in unread if each.node == node]
        them = "them" if numbers[1:] else "it"
        yield (
            f"material {_named(material)} has {_listed(numbers)}, and no stage of these substeps reads {them}: it "
            f"{_without(numbers)}; {numbers[0].cure}"
        )


def _flows(material: Material) -> bool:
    """Return whether a material's law has a yield surface."""
    from mpm_nodes.materials.contract import law

    return law(material.law).function("project") is not None


def _given(material: Material) -> dict[str, MaterialNumber]:
    """Return which of the numbers that stages read a material has, by name; keys and tables may make something of 0."""
    values = ((name, number, getattr(material, name)) for name, number in _numbers().items())
    return {name: number for name, number, value in values if name in material.tables or carries_keys(value) or value}


def _lacks(law: Law, number: MaterialNumber) -> str:
    """Return what matter of a law does for want of a function that a number needs; "" where it has them."""
    return next((why for name, why in number.functions.items() if law.function(name) is None), "")


def _listed(numbers: Sequence[MaterialNumber]) -> str:
    return " and ".join(each.said for each in numbers)


def _without(numbers: Sequence[MaterialNumber]) -> str:
    return " and ".join(each.without for each in numbers)


def _without_tension(wired: WiredIn) -> Iterator[str]:
    """Yield what has no effect where no material has a tension."""
    for given, what in ((wired.scaled, "matter has a factor on its tension"), (wired.tension, "a tension field is wired in")):
        if given:
            yield f"{what}, and no material has a surface tension; wire material_surface_tension, or leave it out"


def _asks_for_more(material: Material) -> bool:
    """Return whether a material says what only some substeps read."""
    members = (material.bulk_modulus, material.thermal, material.surface_tension)
    return bool(material.tables) or any(each is not None for each in members) or bool(_given(material))


def _named(material: Material) -> str:
    return material.label or material.law
