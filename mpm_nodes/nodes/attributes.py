"""Values of fields given to particles: where they begin, and while a solve runs."""

from __future__ import annotations

import dataclasses
import enum
import math
from typing import Any

import numpy as np

from mpm_nodes.data import (
    ATTRIBUTES,
    BIRTH,
    UNLIMITED,
    A,
    AttributeUpdate,
    FrameContext,
    MpmNodesError,
    Particles,
    SpatialField,
    Unitless,
    attached_column,
)
from mpm_nodes.data.masses import weighed
from mpm_nodes.graph.declare.decorators import PreflightContext, found_by, node
from mpm_nodes.graph.time.keys import KeysTravel, NotKeyable
from mpm_nodes.nodes.bodies import passed_on
from mpm_nodes.nodes.derived import DERIVED, own_name
from mpm_nodes.nodes.fields import constant, number
from mpm_nodes.nodes.fields_of_particles import columns_at_birth, refuse_unknown_at_birth

_START = NotKeyable("it is what particles begin with")


class FieldCombination(enum.Enum):
    """What a field does to what is there. SET: takes its place. ADD: is added. MULTIPLY: multiplies it."""

    SET = "set"
    ADD = "add"
    MULTIPLY = "multiply"


def _passed_attribute(told: PreflightContext) -> dict[str, Any]:
    """Preflight: the matter is passed on with what the field gives; a field that does not fit is told now."""
    attribute = told.knobs["attribute"]
    _checked_name(attribute)
    for facts in told.inputs.get("field", ())[:1]:
        if "vector" in facts:
            _refuse_misfit(attribute, facts["vector"])
            followed = any(
                t.over == attribute for body in told.distinct("particles", "bodies") for t in body.material.tables.values()
            )
            if followed and facts["vector"]:
                raise MpmNodesError(f"set_attribute.field: parameters of the material follow {attribute}, which has to be a number")
    wired = bool(told.inputs.get("field"))
    if not wired:
        _refuse_misfit(attribute, False)
        _checked_value(attribute, told.knobs["value"], told.knobs["combination"])
    refuse_unknown_at_birth("set_attribute.field", told, "field")
    heated = wired or told.knobs["value"] != 0.0
    marked = {"heat_source": {"heated": heated}, "tension_scale": {"scaled": True}}
    return {**passed_on(told, attribute), **marked.get(attribute, {})}


def _limits(attribute: str) -> tuple[float, float]:
    """Return the least and the largest value of an attribute; those of users have none."""
    known = ATTRIBUTES.get(attribute)
    return known.limits if known and known.limits else UNLIMITED


def _checked_value(attribute: str, value: float, combination: FieldCombination) -> None:
    """Refuse a number that the attribute cannot have."""
    low, high = _limits(attribute)
    if not math.isfinite(value) or (combination is FieldCombination.SET and not low <= value <= high):
        raise MpmNodesError(f"set_attribute.value: is {value:g}; {attribute} lies from {low:g} to {high:g}")


def _refuse_misfit(attribute: str, vector: bool, node_name: str = "set_attribute") -> None:
    known = ATTRIBUTES.get(attribute)
    if known is not None and vector != (known.shape == (3,)):
        needed = "vectors" if known.shape == (3,) else "numbers"
        raise MpmNodesError(
            f"{node_name}.field: {attribute} needs a field of {needed}; wire one in, see field_vector and field_math"
        )


def _refuse_ties(where: str, attribute: str) -> None:
    """Refuse the columns of force_attach, whose numbers name triangles."""
    number = attribute.removeprefix("attached_").removesuffix("_place")
    if number.isdecimal() and attribute in attached_column(int(number) - 1):
        raise MpmNodesError(f"{where}.attribute: {attribute} is what force_attach finds; choose another name")


def _checked_name(attribute: str) -> None:
    _refuse_ties("set_attribute", attribute)
    settable = [name for name, field in ATTRIBUTES.items() if field.limits]
    if attribute in ATTRIBUTES and attribute not in settable:
        raise MpmNodesError(f"set_attribute.attribute: {attribute} is what the solve finds; choose of {', '.join(settable)}")
    if not attribute.isidentifier():
        raise MpmNodesError(f"set_attribute.attribute: '{attribute}' is not a name; use letters, digits and _")


@found_by("paint", "variation")
@node(category="Emit", label="Set Attribute", preflight=_passed_attribute)
def set_attribute(
    particles: Particles,
    ctx: FrameContext,
    field: SpatialField | None = None,
    *,
    attribute: A[str, _START] = "stiffness_scale",
    value: A[float, Unitless, _START] = 1.0,
    combination: FieldCombination = FieldCombination.SET,
) -> Particles:
    """Give particles a number, or the values of a field where they begin: softer here than there, hot below, fast on one side.

    Args:
        particles: Particles of an emitter, the template of a stream, or those that a solve gives, for nodes behind it.
        field: The field; a vector for velocities. Without it all get `value`.
        attribute: Its name: velocity [m/s], stiffness_scale, temperature [K], tear_scale, tension_scale, concentration, heat_source
            [W/m^3], freezing_shift [K], volume_change, or a name of yours that is carried along.
        value: The number that all get where no field is wired.
        combination: Whether it takes the place of what is there, is added, or multiplies it.

    Raises:
        MpmNodesError: The attribute is none that particles begin with, or the field does not fit or is not finite.
    """
    from mpm_nodes.solver.field_programs import field_values

    _checked_name(attribute)
    known = ATTRIBUTES.get(attribute)
    if field is None:
        _checked_value(attribute, value, combination)
        field = constant(value)
    _refuse_misfit(attribute, field.vector)
    places = np.asarray(particles["position"], float)
    values = field_values(field, places, ctx.frame, columns_at_birth(particles))
    if not (np.abs(values) <= np.finfo(np.float32).max).all():
        raise MpmNodesError(f"set_attribute.field: is not finite everywhere in the matter, for {attribute}")
    if combination is not FieldCombination.SET and attribute in particles and particles[attribute].shape != values.shape:
        raise MpmNodesError(
            f"set_attribute.field: {attribute} of the particles has another shape than the field; set it, or take its length"
        )
    if combination is not FieldCombination.SET:
        rest = known.rest_values(len(places)) if known is not None else np.zeros_like(values)
        held = np.asarray(particles.attributes.get(attribute, rest), float)
        values = held + values if combination is FieldCombination.ADD else held * values
    low, high = _limits(attribute)
    if (beyond := (values < low) | (values > high)).any():
        share = (
            f"{100.0 * beyond.mean():.3g} % of the particles would have a {attribute} from {values.min():.3g} to {values.max():.3g}"
        )
        message = f"{share}; they get {low:g} at least and {high:g} at most; limit the field by field_math"
        ctx.report("warning", where="field", message=message)
        values = np.clip(values, low, high)
    attributes = {**particles.attributes, attribute: values}
    if "mass" in attributes and "volume" in attributes and "material" in attributes:
        attributes["mass"] = weighed(attributes, particles.materials)
    return dataclasses.replace(particles, attributes=attributes)


# ---------------------------------------------------------------- while a solve runs
_LASTING = NotKeyable("it says what is changed; key the value, the field or the mask")


def _updating(told: PreflightContext) -> dict[str, Any]:
    """Preflight: the update is made, so that what does not fit is told now."""
    given: dict[str, Any] = {}
    facts: dict[str, Any] = {"gives": (told.knobs["attribute"],)}
    for port in ("field", "mask"):
        for each in told.inputs.get(port, ())[:1]:
            if "field" not in each:  # a user's field: what it is shows in the cook
                return facts
            given[port] = each["field"]
    found = update_attribute(**given, **told.knobs)
    return {**facts, "attributes": found.attributes, "vector": found.value.vector, "warnings": _beyond(found)}


def _beyond(update: AttributeUpdate) -> list[str]:
    """Return a warning of values that an attribute cannot have, where they are known to lie beyond its limits."""
    from mpm_nodes.solver.field_bounds import bounds

    low, high = bounds(update.value)
    if update.combination != FieldCombination.SET.value or not math.isfinite(low) or not math.isfinite(high):
        return []
    least, most = update.limits
    if low >= least and high <= most:
        return []
    what = f"{update.attribute} lies from {least:g} to {most:g}, and values may go from {low:.6g} to {high:.6g}"
    return [f"update_attribute: {what}; what goes beyond is brought back"]


@node(category="Solve", label="Update Attribute", preflight=_updating)
def update_attribute(
    field: SpatialField | None = None,
    mask: SpatialField | None = None,
    *,
    attribute: A[str, _LASTING] = "stiffness_scale",
    value: A[float, Unitless, KeysTravel()] = 1.0,
    combination: A[FieldCombination, _LASTING] = FieldCombination.SET,
    each_substep: A[bool, _LASTING] = False,
) -> AttributeUpdate:
    """Change an attribute of particles while the solve runs, as every frame begins: soften, heat up, weaken, paint. Wire it into
    solve.updates.

    What is added or multiplied is so once a frame. Passive matter is changed, too. What particles begin with is set by
    set_attribute.

    Args:
        field: What it becomes where the particles are then; without it `value`.
        mask: Share of the change, from 0 to 1: 0 leaves particles as they are.
        attribute: Its name: stiffness_scale, temperature [K], tear_scale, tension_scale, concentration, heat_source [W/m^3], or a
            name of yours, which particles without it begin with as 0.
        value: The number where no field is wired; key it.
        combination: Whether it takes the place of what is there, is added, or multiplies it.
        each_substep: Do it as every substep begins, for what changes within a frame.

    Raises:
        MpmNodesError: The attribute is none that may change, or the field does not fit.
    """
    where = "update_attribute"
    updatable = [name for name, known in ATTRIBUTES.items() if known.limits and not known.initial]
    if attribute in ATTRIBUTES and attribute not in updatable:
        cure = "push matter by forces" if attribute == "velocity" else f"choose of {', '.join(updatable)}"
        raise MpmNodesError(f"{where}.attribute: {attribute} is what the solve finds; {cure}")
    _refuse_ties(where, attribute)
    if own_name(attribute) != attribute:
        raise MpmNodesError(f"{where}.attribute: '{attribute}' stands for {own_name(attribute)}; use that, or another name")
    if attribute in (*DERIVED, BIRTH):
        raise MpmNodesError(f"{where}.attribute: {attribute} is what the solve finds; choose another name")
    if not attribute.isidentifier():
        raise MpmNodesError(f"{where}.attribute: '{attribute}' is not a name; use letters, digits and _")
    field = constant(value) if field is None else field
    _refuse_misfit(attribute, field.vector, where)
    mask = None if mask is None else number(f"{where}.mask", mask)
    return AttributeUpdate(attribute, field, mask, combination.value, _limits(attribute), each_substep)
