"""Fields and forces in the axes of a body: they move and turn with it."""

from __future__ import annotations

import dataclasses
from typing import Any

from mpm_nodes.data import (
    AxesPart,
    BodyForce,
    BodyMotion,
    Collider,
    FrameContext,
    MovingAxes,
    MpmNodesError,
    SpatialField,
)
from mpm_nodes.graph.declare.decorators import PreflightContext, node
from mpm_nodes.nodes.attachments import motion_of
from mpm_nodes.nodes.bodies import refuse_rigid
from mpm_nodes.nodes.fields import place, rewired
from mpm_nodes.nodes.goals import GOAL

__all__ = ["moving_field", "moving_force"]

_OF_ITS_OWN = "force_moving.force: {what} says by itself where it acts; wire it into solve.forces"


def _refuse_shapeless(told: PreflightContext, where: str) -> None:
    """Refuse, before the cook, what has no axes: a body that deforms, or that a solve moves."""
    refuse_rigid(told, where)
    if told.total("collider", "deforming"):
        raise MpmNodesError(f"{where}: changes its shape, and has no axes of its own; wire in a body that moves as a whole")


def _told_of_field(told: PreflightContext) -> dict[str, Any]:
    """Preflight: what the field is, which is where the body is in the cook."""
    _refuse_shapeless(told, "field_moving.collider")
    facts = next(iter(told.inputs.get("field", ())), {})
    return {name: facts[name] for name in ("vector", "attributes") if name in facts}


@node(category="Field", label="Moving Field", preflight=_told_of_field)
def field_moving(field: SpatialField, collider: Collider, ctx: FrameContext) -> SpatialField:
    """Be another field in the axes of a body, wherever that moves and turns: noise, a shape, a ramp, a grid that go along.

    The origin of its axes is the centre of a shape, the middle of the box around a mesh, or the origin of a .vdb file. They are
    not turned where the body is not; those of a mesh are as it stands at the first frame. Vectors turn with it. The body need not
    be wired into a solve.

    Args:
        field: The field, about the origin of the axes.
        collider: The body: any that keeps its shape.

    Raises:
        MpmNodesError: The body changes its shape.
    """
    return moving_field(field, _axes("field_moving.collider", collider, ctx))


def moving_field(field: SpatialField, body: BodyMotion) -> SpatialField:
    """Return a field in the axes of a body.

    Args:
        field: The field, about their origin.
        body: How the body moves over the frame.
    """
    inner = _moved(place(), body, AxesPart.INWARD)

    def inside(each: SpatialField) -> SpatialField | None:
        if each.operation == "PLACE":
            return inner
        return _moved(each, body, AxesPart.TURNED_IN) if each.attribute and each.vector else None

    found = rewired(field, inside)
    return _moved(found, body, AxesPart.OUTWARD) if field.vector else found


def _moved(field: SpatialField, body: BodyMotion, part: AxesPart) -> SpatialField:
    return SpatialField("MOVED", (field,), (MovingAxes(body, part), 1.0, 1.0, 1.0), vector=True)


def _axes(where: str, collider: Collider, ctx: FrameContext) -> BodyMotion:
    motion = motion_of(collider, ctx)
    if motion is None or (motion.points is not None and motion.points[0] is not motion.points[1]):
        raise MpmNodesError(
            f"{where}: '{collider.name}' changes its shape, and has no axes of its own; wire in a body that moves as a whole"
        )
    return dataclasses.replace(motion, points=None, triangles=None)


def _told_of_force(told: PreflightContext) -> dict[str, Any]:
    """Preflight: it pushes as the force does; forces that are where their particles say are refused."""
    _refuse_shapeless(told, "force_moving.collider")
    if told.total("force", "attachments"):
        raise MpmNodesError(_OF_ITS_OWN.format(what="force_attach"))
    attributes = frozenset(told.every("force", "attributes"))
    if GOAL in attributes:
        raise MpmNodesError(_OF_ITS_OWN.format(what="force_goal"))
    return {"forces": 1, "presses": told.total("force", "presses"), "attributes": attributes}


@node(category="Force", label="Moving Force", preflight=_told_of_force)
def force_moving(force: BodyForce, collider: Collider, ctx: FrameContext) -> BodyForce:
    """Let a force act in the axes of a body, with its mask and all fields that it takes: they move and turn with the body.

    Centres, axes and directions are about the origin of these axes, as field_moving says. The air of a drag goes along: where it
    is still, it moves as the body does. The body need not be wired into the solve.

    Args:
        force: Any but force_goal and force_attach, which have places of their own.
        collider: The body: any that keeps its shape.

    Raises:
        MpmNodesError: The force has places of its own, or the body changes its shape.
    """
    return moving_force(force, _axes("force_moving.collider", collider, ctx))


def moving_force(force: BodyForce, body: BodyMotion) -> BodyForce:
    """Return a force in the axes of a body.

    Args:
        force: The force, about their origin.
        body: How the body moves over the frame.

    Raises:
        MpmNodesError: The force has places of its own.
    """
    if force.attachment is not None or force.exchanges is not None:
        raise MpmNodesError(_OF_ITS_OWN.format(what="force_attach" if force.attachment else "force_goal"))
    value = moving_field(force.value, body)
    if force.rate is None:
        return dataclasses.replace(force, value=value)
    drift = SpatialField("CONSTANT", (), (MovingAxes(body, AxesPart.DRIFT),), vector=True)
    along = SpatialField("ADD", (_moved(place(), body, AxesPart.SPIN), drift), vector=True)
    still = SpatialField("ADD", (value, along), vector=True)
    return dataclasses.replace(force, value=still, rate=moving_field(force.rate, body))
