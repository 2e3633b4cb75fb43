"""What materials and bodies say and no stage of the substeps asks for, told before a cook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mpm_nodes.data import Material, MpmNodesError
from mpm_nodes.graph.time.keys import carries_keys
from mpm_nodes.nodes.bodies import Body

if TYPE_CHECKING:
    from mpm_nodes.graph.plan.substeps import SubstepPlan

__all__ = ["WiredIn", "unread"]


class _Number(NamedTuple):
    """A member of materials that stages declare to read, in words.

    Attributes:
        said: What messages call it.
        without: What matter does where nothing reads it.
        cure: How to have it read.
        node: Node that gives it.
    """

    said: str
    without: str
    cure: str
    node: str


_FOAM = "if it should, take the preset continuum_foam or wire"
_NUMBERS = {
    "tear_threshold": _Number("a tear threshold", "never tears", f"{_FOAM} detect_tears", "material_tearing"),
    "recovery_time": _Number("a recovery time", "never forgets how it flowed", f"{_FOAM} recover_plasticity", "material_tearing"),
    "viscosity": _Number("a viscosity", "flows as if it had none", "if it should not, wire compute_stress", "material_viscosity"),
}


class WiredIn(NamedTuple):
    """What of heat and tension is wired into a solve beside its matter's parameters.

    Attributes:
        columns: Columns of the matter that no substeps have to read, such as heat that it makes.
        scaled: Some matter has a factor on its tension.
        tempered: A collider has a temperature or a flux of heat.
        ambient: Air or a heat field is there.
        airs: How many nodes say how warm the air is.
        tension: A field of tension is there.
    """

    columns: frozenset[str]
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
    from mpm_nodes.graph.plan.substeps import plan_of, resolve

    resolved = resolve(substeps)
    candidates = (resolved, *resolved.others)
    stages = {stage.id for each in candidates for stage in each.declarations.values()}
    asked = "thermal_properties" in stages or ("apply_plasticity" not in stages and any(map(_flows, materials.values())))
    if not (asked or any(wired) or any(map(_asks_for_more, materials.values()))):
        return []
    from mpm_nodes.physics import all_physics, with_further
    from mpm_nodes.solver import initial
    from mpm_nodes.solver.liquid_pairs import pairs_of
    from mpm_nodes.solver.surroundings import refuse_unread_ambient, refuse_unread_tension_field

    plans = [plan_of(each) for each in candidates]
    all_matter = with_further(tuple(materials.values()))
    for material in all_matter:
        initial.refuse_unread_modulus(material, _named(material), plans)
        for physics in all_physics():
            physics.refuse_material(material, _named(material), plans)
            physics.require_of_material(material, plans)
    if whole:
        pairs_of(all_matter)
    for physics in all_physics():
        for column in wired.columns & set(physics.refuse_columns):
            physics.refuse_columns[column](plans)
    if wired.ambient:
        refuse_unread_ambient(plans)
    if wired.tension:
        refuse_unread_tension_field(plans)
    aside = [*_left_aside(all_matter, plans)]
    for physics in all_physics():
        aside += physics.unread(tuple(materials.values()), plans, wired.tempered)
    aside += [text for material in all_matter for text in _numbers_aside(material, plans)]
    if whole and all(each.surface_tension is None for each in all_matter):
        aside += _without_tension(wired)
    return list(dict.fromkeys(aside))


def _left_aside(all_matter: Sequence[Material], plans: Sequence[SubstepPlan]) -> Iterator[str]:
    """Yield which tensions have no effect in these substeps; `all_matter` is the materials with what they may become."""
    has_surface = any("tension" in plan.fields_needed.get("samples", ()) for plan in plans)
    for material in all_matter:
        if material.surface_tension is not None and not has_surface:
            yield (
                f"material {_named(material)} has a surface tension, and these substeps have no surface that it pulls at; take the "
                "preset surface_tension, auto_surface_tension or another with surfaces, or leave its tensions out"
            )


def _numbers_aside(material: Material, plans: Sequence[SubstepPlan]) -> Iterator[str]:
    """Yield what of a material's numbers has no effect in these substeps, or none with its law."""
    from mpm_nodes.materials.contract import law

    found, stages = law(material.law), [part for plan in plans for part in plan.parts]
    flows = _flows(material)
    if flows and not any("project" in each.needs for stage in stages for each in stage.declaration.fragments_for(stage.knobs)):
        yield (
            f"material {_named(material)} can flow, and these substeps have no stage that returns its state to the yield surface: "
            "it stays elastic; wire apply_plasticity behind update_deformation"
        )
    given = _given(material)
    tears = flows and found.function("left_strain") is not None
    idle = [] if tears else [name for name in given if _NUMBERS[name].node == "material_tearing"]
    if idle:
        why = "has no elastic strain" if flows else "never flows"
        yield (
            f"material {_named(material)} has {_listed(idle)}, and its law {found.id} {why}: it {_without(idle)}; "
            "take a law that flows, as herschel_bulkley does, or leave material_tearing out"
        )
    liquid = [name for name, table in material.tables.items() if table.liquid]
    if liquid and (material.thermal is None or material.thermal.freezing_temperature is None):
        yield (
            f"material {_named(material)} has a table of the liquid for {liquid[0]}, and no freezing temperature: it is never "
            "liquid; set material_thermal.freezing_temperature, or leave liquid_table out"
        )
    read = {name for stage in stages for name in stage.declaration.of_materials}
    unread = [name for name in given if name not in read and name not in idle]
    for node in dict.fromkeys(_NUMBERS[name].node for name in unread):
        names = [name for name in unread if _NUMBERS[name].node == node]
        them = "them" if names[1:] else "it"
        yield (
            f"material {_named(material)} has {_listed(names)}, and no stage of these substeps reads {them}: it "
            f"{_without(names)}; {_NUMBERS[names[0]].cure}"
        )


def _flows(material: Material) -> bool:
    """Return whether a material's law has a yield surface."""
    from mpm_nodes.materials.contract import law

    return law(material.law).function("project") is not None


def _given(material: Material) -> list[str]:
    """Return which of the numbers that stages read a material has; keys and tables may make something of 0."""
    values = {name: getattr(material, name) for name in _NUMBERS}
    return [name for name, value in values.items() if name in material.tables or carries_keys(value) or value]


def _listed(names: Sequence[str]) -> str:
    return " and ".join(_NUMBERS[name].said for name in names)


def _without(names: Sequence[str]) -> str:
    return " and ".join(_NUMBERS[name].without for name in names)


def _without_tension(wired: WiredIn) -> Iterator[str]:
    """Yield what has no effect where no material has a tension."""
    for given, what in ((wired.scaled, "matter has a factor on its tension"), (wired.tension, "a tension field is wired in")):
        if given:
            yield f"{what}, and no material has a surface tension; wire material_surface_tension, or leave it out"


def _asks_for_more(material: Material) -> bool:
    """Return whether a material says what only some substeps read."""
    members = (material.bulk_modulus, material.thermal, material.surface_tension)
    return bool(material.tables) or any(each is not None for each in members) or bool(_given(material))


def _asks(plan: SubstepPlan, name: str) -> bool:
    return name in plan.fields_needed["particles"]


def _named(material: Material) -> str:
    return material.label or material.law
