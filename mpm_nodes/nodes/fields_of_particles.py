"""Fields that read what particles have of their own, and where they may be looked at."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from mpm_nodes.data import (
    AGE,
    ATTRIBUTES,
    BIRTH,
    A,
    ActiveMask,
    AttributeUpdate,
    BodyForce,
    Drain,
    Emitter,
    MpmNodesError,
    Particles,
    SpatialField,
    attributes_of,
)
from mpm_nodes.graph.declare.declarations import PreflightContext
from mpm_nodes.graph.declare.decorators import node
from mpm_nodes.graph.time.keys import NotKeyable
from mpm_nodes.nodes.bodies import marks
from mpm_nodes.nodes.derived import own_name
from mpm_nodes.nodes.fields import tried

__all__ = [
    "columns_at_birth",
    "everywhere",
    "own",
    "reads_age",
    "refuse_unfollowed",
    "refuse_unknown_at_birth",
    "refuse_unknown_reads",
    "with_columns_of",
]

_FIXED = NotKeyable("only what moves and scales a field takes keys")
_READING = ("forces", "drains", "active", "updates")
"""Ports of a solve whose nodes may read attributes of particles."""


def own(name: str, vector: bool = False) -> SpatialField:
    """Return the field of an attribute of particles, or of their `AGE`."""
    return SpatialField("ATTRIBUTE", vector=vector, attribute=name)


def everywhere(where: str, field: SpatialField) -> SpatialField:
    """Return a field that is looked at where there are no particles.

    Args:
        where: Node and port, for messages.
        field: The field.

    Raises:
        MpmNodesError: It reads an attribute of particles.
    """
    for name in sorted(attributes_of(field)):
        raise MpmNodesError(
            f"{where}: this field is looked at where there are no particles, and reads their '{name}' (field_attribute); wire a "
            "field of places, or take field_attribute into a force's mask, a drain or set_attribute"
        )
    return field


@node(category="Field", label="Attribute Field", preflight=tried(__name__, "field_attribute"))
def field_attribute(*, attribute: A[str, _FIXED] = "velocity", vector: A[bool, _FIXED] = False) -> SpatialField:
    """Be what each particle has of its own: its speed, its age, its temperature, how stiff or damaged it is.

    It may be wired wherever a field is looked at on particles: into forces and their masks, drains, active_mask, set_attribute and
    update_attribute. Forces see what particles have before the first force of the substep, drains what they have after it.

    Args:
        attribute: Its name: velocity [m/s], speed [m/s], age [simulated s since it came in], temperature [K], stiffness_scale, id,
            plastic_volume_ratio, weak, any other that the particles have, by its name or that of papers (T, Jp), or one of yours.
        vector: Of an attribute of yours, whether it is a vector.

    Raises:
        MpmNodesError: It is neither a number nor a vector, or lives within a substep only.
    """
    name = own_name(attribute)
    if name == "speed":
        return SpatialField("LENGTH", (own("velocity", True),))
    known = ATTRIBUTES.get(name)
    if known is not None and (known.rows not in (1, 3) or known.passing or name == "position"):
        why = "is not kept from one substep to the next" if known.passing else "is neither a number nor a vector"
        if name == "position":
            why = "is where the field is looked at: take field_ramp or field_shape"
        raise MpmNodesError(f"field_attribute.attribute: {name} {why}")
    if not name.isidentifier():
        raise MpmNodesError(f"field_attribute.attribute: '{name}' is not a name; use letters, digits and _")
    return own(name, known.rows == 3 if known is not None else vector and name != AGE)


# ---------------------------------------------------------------- where particles begin
def columns_at_birth(particles: Particles) -> dict[str, np.ndarray]:
    """Return what fields may read of particles before a solve: their columns, and their age where they remember their birth."""
    found = {"velocity": np.zeros((len(particles), 3)), **particles.attributes}
    return found if BIRTH not in found else {**found, AGE: particles.time - np.asarray(found[BIRTH], float)}


def refuse_unknown_at_birth(where: str, told: PreflightContext, port: str) -> None:
    """Refuse, before the cook, a field that reads what the particles wired into `particles` do not have.

    Raises:
        MpmNodesError: With what they have.
    """
    columns = marks(told, "particles")["columns"]
    if columns is None:
        return
    known = {"velocity", *columns, *((AGE,) if BIRTH in columns else ())}
    for name in sorted({*told.every(port, "attributes")} - known):
        raise MpmNodesError(
            f"{where}: the field reads '{name}', which the particles do not have before the solve; they have "
            f"{', '.join(sorted(known))}"
        )


# ---------------------------------------------------------------- in a solve
def with_columns_of(
    sources: Sequence[Particles],
    emitters: Sequence[Emitter],
    updates: Sequence[AttributeUpdate],
    readers: Iterable[BodyForce | Drain | ActiveMask],
) -> tuple[tuple[Particles, ...], tuple[Emitter, ...]]:
    """Return what flows into a solve with what is updated there, and the time of birth where something reads the age."""
    wanted = {BIRTH: False} if any(AGE in each.attributes for each in (*updates, *readers)) else {}
    wanted |= {each.attribute: each.value.vector for each in updates}

    def begun(particles: Particles) -> Particles:
        count = len(particles)
        missing = {
            name: ATTRIBUTES[name].rest_values(count) if name in ATTRIBUTES else np.zeros((count, 3) if vector else count)
            for name, vector in wanted.items()
            if name not in particles
        }
        return dataclasses.replace(particles, attributes={**particles.attributes, **missing}) if missing else particles

    return tuple(map(begun, sources)), tuple(dataclasses.replace(each, template=begun(each.template)) for each in emitters)


def refuse_unknown_reads(told: PreflightContext, columns: frozenset[str]) -> None:
    """Refuse, before the cook, forces, drains, masks and updates that read what the particles of a solve will not have.

    Args:
        told: What the solve is told.
        columns: What its particles will have.

    Raises:
        MpmNodesError: With the names of the solve's port and of the node.
    """
    from mpm_nodes.solver.surroundings import refuse_unknown_attribute

    for port in _READING:
        for by, facts in zip(told.names.get(port, ()), told.inputs.get(port, ()), strict=False):
            for name in sorted(facts.get("attributes", ())):
                refuse_unknown_attribute(f"solve.{port} ({by})", name, columns)


def refuse_unfollowed(told: PreflightContext) -> None:
    """Refuse, before the cook, matter without the attributes that parameters of its materials follow, and updates of what
    densities follow.

    Raises:
        MpmNodesError: With the names of the solve's port and of the node.
    """
    from mpm_nodes.physics import with_further

    updated = frozenset(told.every("updates", "gives"))
    vectors = {name for each in told.inputs.get("updates", ()) if each.get("vector", False) for name in each["gives"]}
    for port in ("sources", "emitters"):
        for by, facts in zip(told.names.get(port, ()), told.inputs.get(port, ()), strict=False):
            for material in with_further([body.material for body in facts.get("bodies", ())]):
                label = material.label or material.law
                for name, table in material.tables.items():
                    if name == "density" and table.over in updated:
                        raise MpmNodesError(
                            f"solve.updates: the density of material {label} follows '{table.over}', and matter keeps its mass; "
                            "update another attribute"
                        )
                    if table.over in vectors:
                        raise MpmNodesError(
                            f"solve.updates: {name} of material {label} follows '{table.over}', which is updated to a vector; give "
                            "it a field of numbers"
                        )
                    known = facts.get("columns") is None or table.over in (*ATTRIBUTES, *updated, *facts["columns"])
                    if not known:
                        raise MpmNodesError(
                            f"solve.{port} ({by}): {name} of material {label} follows '{table.over}', which these particles do "
                            "not have; give it to them by set_attribute"
                        )


def reads_age(told: PreflightContext) -> bool:
    """Return whether something of a solve reads the age of particles."""
    return any(AGE in told.every(port, "attributes") for port in _READING)
