"""Rigid bodies: colliders that matter, gravity and other bodies move."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Iterable
from typing import Any

import numpy as np

from mpm_nodes.data import (
    A,
    Collider,
    KilogramsPerCubicMetre,
    MetresPerSecond,
    MpmNodesError,
    RadiansPerSecond,
    Range,
    RigidBody,
    RigidMotion,
    Unitless,
    Vec3,
)
from mpm_nodes.graph.declare.decorators import PreflightContext, found_by, node
from mpm_nodes.graph.time.keys import NotKeyable
from mpm_nodes.nodes.bodies import collider_passed_on
from mpm_nodes.nodes.rotations import quaternion_matrix

__all__ = ["moved_body", "rigid_body"]

_AT_START = NotKeyable("a body has it as it begins")
_CONSTANT = NotKeyable("a body keeps it")


def _rigid(told: PreflightContext) -> dict[str, Any]:
    """Preflight: refuse what no body can be made of, and tell the body."""
    if importlib.util.find_spec("mujoco") is None:
        raise MpmNodesError('rigid_body: MuJoCo, which moves bodies, is not installed: pip install "mpm-nodes[bodies]"')
    if not told.knobs["name"]:
        raise MpmNodesError("rigid_body.name: is empty; give the body a name, by which joints and moved_body find it")
    if told.total("collider", "rigid"):
        raise MpmNodesError("rigid_body: its collider is a rigid body already; take one of the two out")
    for why in told.distinct("collider", "fixed"):
        raise MpmNodesError(f"rigid_body: its collider {why}; take a body with a volume that keeps its shape")
    name, solids = told.knobs["name"], told.distinct("collider", "solids")
    as_rigid = {"rigid": 1, "rigid_bodies": (name,), "rigid_solids": tuple((name, solid) for solid in solids)}
    return {**collider_passed_on(told), "still_points": 0, **as_rigid}


@found_by("dynamic", "fall", "weight")
@node(category="Collide", label="Rigid Body", preflight=_rigid)
def rigid_body(
    collider: Collider,
    *,
    name: A[str, _CONSTANT] = "body",
    density: A[float, KilogramsPerCubicMetre, Range(min=0.0, exclusive_min=True, soft_max=10000.0), _CONSTANT] = 1000.0,
    velocity: A[Vec3, MetresPerSecond, _AT_START] = (0.0, 0.0, 0.0),
    angular_velocity: A[Vec3, RadiansPerSecond, _AT_START] = (0.0, 0.0, 0.0),
    restitution: A[float, Unitless, Range(min=0.0, max=0.99), _CONSTANT] = 0.0,
) -> Collider:
    """Let a collider move by itself: it falls, floats, is pushed by matter, and pushes back.

    Wire it into `solve.colliders`; `moved_body` puts it where the solve has moved it. Matter, other bodies and colliders meet its
    surface (MuJoCo, Todorov et al. 2012); of two frictions of bodies the larger counts. Momentum of matter and bodies together
    is kept. Forces wired into the solve push it as they push matter, but those that read attributes of particles or tie them, and
    air on the surface of matter.

    Args:
        collider: Ball, box, capsule or mesh that bounds a volume; it begins where it stands as the solve begins.
        name: By which `moved_body` finds it.
        density: Of its volume, from which mass and inertia follow.
        velocity: Of its centre of mass as it begins, added to that by the keys of its collider before.
        angular_velocity: About its centre of mass as it begins, a vector along the axis, added to that by keys.
        restitution: Share of the speed with which it bounces off another body; matter has its own.
    """
    return dataclasses.replace(collider, rigid=RigidBody(name, density, velocity, angular_velocity, restitution), still=False)


def _moved(told: PreflightContext) -> dict[str, Any]:
    """Preflight: refuse what the solve does not move; what comes out moves as the solve has moved it, as if by keys."""
    names, moved = told.every("collider", "rigid_bodies"), told.every("bodies", "moves")
    if told.inputs.get("collider") and not names:
        raise MpmNodesError("moved_body.collider: is not a rigid body; wire a rigid_body in, that which goes into solve.colliders")
    for name in names:
        if name not in moved:
            raise _unmoved(f" '{name}'", moved)
    return {**collider_passed_on(told), "rigid": 0, "jointed": 0, "rigid_bodies": (), "rigid_solids": (), "hung": ()}


def _unmoved(name: str, moved: Iterable[str]) -> MpmNodesError:
    return MpmNodesError(
        f"moved_body: the solve moves no body{name}; it has {', '.join(moved) or 'none'}; wire in a rigid_body that is "
        "among its colliders"
    )


@node(category="Collide", label="Moved Body", preflight=_moved)
def moved_body(collider: Collider, bodies: RigidMotion) -> Collider:
    """Put a rigid body where a solve has moved it, for the cache.

    Args:
        collider: The rigid body.
        bodies: Where the solve has its bodies: its output `bodies`.

    Raises:
        MpmNodesError: The solve moves no body of its name, or it has none.
    """
    if collider.rigid is None or collider.rigid.name not in bodies.poses:
        name = "" if collider.rigid is None else f" '{collider.rigid.name}'"
        raise _unmoved(name, bodies.poses)
    turns, places = bodies.poses[collider.rigid.name]
    shape = dataclasses.replace(collider.shape, pose_times=np.array(bodies.times), rotations=turns, translations=places)
    mesh = collider.mesh
    if mesh is not None:
        turn = quaternion_matrix(turns[-1]) @ quaternion_matrix(collider.shape.rotations[-1]).T
        normals = None if mesh.normals is None else mesh.normals @ turn.T
        points = (mesh.points - collider.shape.translations[-1]) @ turn.T + places[-1]
        mesh = dataclasses.replace(mesh, points=points, normals=normals)
    before = None if mesh is None or collider.points_before is None else mesh.points
    return dataclasses.replace(collider, shape=shape, mesh=mesh, rigid=None, points_before=before)
