"""Joints of rigid bodies: what they hang on, and motors that turn and push them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from mpm_nodes.data import (
    A,
    Collider,
    Degrees,
    JointKind,
    Metres,
    MetresPerSecond,
    MpmNodesError,
    NewtonMetres,
    Newtons,
    RadiansPerSecond,
    Range,
    RigidJoint,
    Vec3,
)
from mpm_nodes.graph.declare.decorators import PreflightContext, found_by, node
from mpm_nodes.graph.time.keys import NotKeyable
from mpm_nodes.nodes.bodies import collider_passed_on

__all__ = ["ball_joint", "fixed_joint", "hinge_joint", "slider_joint"]

_AT_START = NotKeyable("a joint is made as the body begins")
_Place = A[Vec3, Metres, _AT_START]
_Axis = A[Vec3, _AT_START]


def _joint(id: str) -> Callable[[PreflightContext], dict[str, Any]]:
    """Return the preflight of a joint: it refuses what is not one free rigid body, and parents, limits and axes that are none."""

    def preflight(told: PreflightContext) -> dict[str, Any]:
        _refuse(id, told)
        hung = zip(told.every("collider", "rigid_bodies"), told.every("parent", "rigid_bodies"), strict=False)
        return {**collider_passed_on(told), "jointed": 1, "hung": tuple(hung)}

    return preflight


def _refuse(id: str, told: PreflightContext) -> None:
    knobs = told.knobs
    if told.total("collider", "rigid") != 1:
        raise MpmNodesError(f"{id}.collider: only rigid bodies have joints; wire a rigid_body in between")
    if told.total("collider", "jointed"):
        raise MpmNodesError(f"{id}.collider: the body has a joint already; a body hangs on one")
    if told.inputs.get("parent") and told.total("parent", "rigid") != 1:
        raise MpmNodesError(f"{id}.parent: is not a rigid body; wire one in, or take the wire out: then the joint stands still")
    if "axis" in knobs and not any(knobs["axis"]):
        raise MpmNodesError(f"{id}.axis: is 0; give it a direction")
    low, high = knobs.get("low", 0.0), knobs.get("high", 0.0)
    if low > 0.0 or high < 0.0:
        raise MpmNodesError(f"{id}: the body begins at 0, and low is {low:g}, high {high:g}; give low <= 0 <= high, or 0 for both")


def _hung(collider: Collider, parent: Collider | None, joint: RigidJoint) -> Collider:
    """Return a rigid body with a joint."""
    if collider.rigid is None:
        raise MpmNodesError(f"collider '{collider.name}': only rigid bodies have joints; wire a rigid_body in between")
    name = "" if parent is None or parent.rigid is None else parent.rigid.name
    return dataclasses.replace(collider, rigid=dataclasses.replace(collider.rigid, joint=dataclasses.replace(joint, parent=name)))


@found_by("door", "motor", "wheel")
@node(category="Collide", label="Hinge Joint", preflight=_joint("hinge_joint"))
def hinge_joint(
    collider: Collider,
    parent: Collider | None = None,
    *,
    anchor: _Place = (0.0, 0.0, 0.0),
    axis: _Axis = (0.0, 0.0, 1.0),
    low: A[float, Degrees, _AT_START] = 0.0,
    high: A[float, Degrees, _AT_START] = 0.0,
    speed: A[float, RadiansPerSecond] = 0.0,
    torque: A[float, NewtonMetres, Range(min=0.0, soft_max=100.0)] = 0.0,
) -> Collider:
    """Let a rigid body turn about an axis only: a door, a pendulum, an impeller with a motor.

    Args:
        collider: The rigid body; wire what comes out into `solve.colliders`, as its parent.
        parent: Rigid body that it holds on to; without one the axis stands still.
        anchor: A point of the axis, as the body begins.
        axis: Direction of the axis, as the body begins.
        low: How far it turns back at most, <= 0; with `high` at 0 as well it turns on and on.
        high: How far it turns at most.
        speed: That the motor keeps while its torque suffices; keys change it frame by frame.
        torque: Largest torque of the motor; 0: it has none.
    """
    limits = None if low == high == 0.0 else (math.radians(low), math.radians(high))
    return _hung(collider, parent, RigidJoint(JointKind.HINGE, "", anchor, axis, limits, speed, torque))


@node(category="Collide", label="Slider Joint", preflight=_joint("slider_joint"))
def slider_joint(
    collider: Collider,
    parent: Collider | None = None,
    *,
    axis: _Axis = (0.0, 1.0, 0.0),
    low: A[float, Metres, _AT_START] = 0.0,
    high: A[float, Metres, _AT_START] = 0.0,
    speed: A[float, MetresPerSecond] = 0.0,
    force: A[float, Newtons, Range(min=0.0, soft_max=1000.0)] = 0.0,
) -> Collider:
    """Let a rigid body move along an axis only, without turning: a piston, a press with a force, a drawer.

    Args:
        collider: The rigid body; wire what comes out into `solve.colliders`, as its parent.
        parent: Rigid body that it slides on; without one the axis stands still.
        axis: Direction of the axis, as the body begins.
        low: How far it moves back at most, <= 0; with `high` at 0 as well it moves on and on.
        high: How far it moves at most.
        speed: That the motor keeps while its force suffices; keys change it frame by frame.
        force: Largest force of the motor; 0: it has none.
    """
    limits = None if low == high == 0.0 else (low, high)
    return _hung(collider, parent, RigidJoint(JointKind.SLIDER, "", (0.0, 0.0, 0.0), axis, limits, speed, force))


@node(category="Collide", label="Ball Joint", preflight=_joint("ball_joint"))
def ball_joint(collider: Collider, parent: Collider | None = None, *, anchor: _Place = (0.0, 0.0, 0.0)) -> Collider:
    """Let a rigid body turn freely about a point: a wrecking ball, a link of a chain.

    Args:
        collider: The rigid body; wire what comes out into `solve.colliders`, as its parent.
        parent: Rigid body that it hangs on; without one the point stands still.
        anchor: The point, as the body begins.
    """
    return _hung(collider, parent, RigidJoint(JointKind.BALL, "", anchor))


@node(category="Collide", label="Fixed Joint", preflight=_joint("fixed_joint"))
def fixed_joint(collider: Collider, parent: Collider | None = None) -> Collider:
    """Fix a rigid body to another, as it begins: a hammer's head to its handle. Both together move as one.

    Args:
        collider: The rigid body; wire what comes out into `solve.colliders`, as its parent.
        parent: Rigid body that it is part of; without one it stands still, and `contact_forces` tells what pushes it.
    """
    return _hung(collider, parent, RigidJoint(JointKind.FIXED))
