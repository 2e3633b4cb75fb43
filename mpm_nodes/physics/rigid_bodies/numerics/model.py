"""MuJoCo's model of colliders: shapes, masses, joints, and how contacts among them give way.

Balls, boxes, capsules, planes and convex meshes meet as what they are. Of other meshes the triangles meet: a rigid flex of MuJoCo,
a skin with a radius, which is half of the thickness of a sheet. With its signed distances of meshes (4.0) a bowl sank into a slab
by a third of its edge, and a convex decomposition (CoACD) would be a library more.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mpm_nodes.data import Collider, InputError, JointKind, MpmNodesError, RigidJoint
from mpm_nodes.kernels.level_sets.level_set import BOX, CAPSULE, PLANE, SPHERE
from mpm_nodes.kernels.level_sets.mesh_repair import solid_mesh, triangulate

__all__ = ["MOTORISED", "box_of", "fingerprint", "mass_unit", "model_of", "wall_name"]

SAG = 0.01
"""How deep a body sinks into another by its own weight [cells]: contacts of bodies are stiff springs."""
WEIGHT = 9.81
"""Acceleration for which that holds [m/s^2]."""
SOFT = 0.05
"""Depth over which contacts become as stiff as that [cells]."""
LEAST_DAMPED, MOST_DAMPED = 1e-3, 3.0
"""Damping ratios of contacts of bodies: the second keeps 2.4 % of the speed; one with more would need shorter steps."""
UPRIGHT = (math.sqrt(0.5), -math.sqrt(0.5), 0.0, 0.0)
"""Turn from our planes and capsules, which stand along y, to MuJoCo's, along z."""
ANALYTIC = (SPHERE, BOX, CAPSULE, PLANE)
"""Shapes that MuJoCo has."""
CONVEX = 0.99
"""Share of its hull's volume from which on a mesh is met as its hull; one with less, by its triangles."""
SKIN = 0.05
"""Radius of the edges of triangles that bodies meet [cells]."""
MOTORISED = (JointKind.HINGE, JointKind.SLIDER)
"""Joints that have a motor, if only one without strength: keys may give it some later, and the state stays the same then."""
SLIPS = 0.01
"""Share of its speed by which a motor that works as hard as it can lags behind."""


def mass_unit(colliders: Sequence[Collider], cell_size: float) -> float:
    """Return how many kg MuJoCo's unit of mass is: it takes moments of inertia below 1e-15 for none, which grains have in kg m^2.

    It is a power of two, so that nothing is rounded.

    Args:
        colliders: All of the solve.
        cell_size: Grid spacing h [m].
    """
    lightest = min(each.rigid.density for each in colliders if each.rigid is not None)
    return math.ldexp(1.0, round(math.log2(lightest * cell_size**3)))


def fingerprint(
    colliders: Sequence[Collider],
    begins: Sequence[tuple[np.ndarray, np.ndarray]],
    sides: Sequence[int],
    wall_friction: float,
    cell_size: float,
) -> bytes:
    """Return what tells apart what `model_of` makes of its arguments."""
    found = hashlib.blake2b(repr((sides, wall_friction, cell_size)).encode())
    for begin in begins:
        found.update(np.concatenate(begin).tobytes())
    for each in colliders:
        shape, mesh = each.shape, each.mesh
        found.update(repr((shape.kind, shape.sizes, each.friction, each.rigid, mesh is None)).encode())
        if mesh is not None and shape.kind not in ANALYTIC:
            for part in (_own_points(each), mesh.counts, mesh.indices):
                found.update(part.tobytes())
    return found.digest()


def model_of(
    colliders: Sequence[Collider],
    begins: Sequence[tuple[np.ndarray, np.ndarray]],
    sides: Sequence[int],
    wall_friction: float,
    cell_size: float,
) -> Any:
    """Return the compiled model. Bodies are called by their places among the colliders.

    Args:
        colliders: All of the solve; those with a `rigid` move by themselves, the others are put where they are.
        begins: Quaternion (w, x, y, z) and place [m] of each that moves by itself, as the solve begins.
        sides: Sides of the domain that hold bodies.
        wall_friction: Their friction.
        cell_size: Grid spacing h [m].

    Raises:
        MpmNodesError: A body has no mesh, or none that bounds a volume, or hangs on a body that is not there.
    """
    import mujoco

    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.option.cone, spec.option.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 10.0
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    for side in sides:
        geom = spec.worldbody.add_body(name=wall_name(side), mocap=True).add_geom(
            type=mujoco.mjtGeom.mjGEOM_PLANE, size=(1.0, 1.0, 1.0), friction=(wall_friction, 0.0, 0.0)
        )
        geom.solmix = 0.0
    made: dict[str, Any] = {}
    unit = mass_unit(colliders, cell_size)
    waiting, following = list(enumerate(colliders)), iter(begins)
    poses = {b: next(following) for b, each in waiting if each.rigid is not None}
    while waiting:
        left = [(b, each) for b, each in waiting if not _add_body(mujoco, spec, b, each, poses.get(b), made, unit)]
        if len(left) == len(waiting):
            rigid = left[0][1].rigid
            assert rigid is not None and rigid.joint is not None
            parent = rigid.joint.parent
            raise MpmNodesError(
                f"rigid_body '{rigid.name}': its joint holds on to '{parent}', which the solve does not have, or which hangs on it "
                "in turn; wire it into solve.colliders"
            )
        waiting = left
    for b, collider in enumerate(colliders):
        _add_shape(mujoco, spec, b, collider, (cell_size, unit))
    try:
        return spec.compile()
    except ValueError as error:
        said = " ".join(str(error).split())
        name = next((f" of '{each.name}'" for b, each in enumerate(colliders) if f"'{b}'" in said), "")
        raise MpmNodesError(f"rigid_body: MuJoCo makes no body of the mesh{name} ({said}); take one that bounds a volume") from None


def wall_name(side: int) -> str:
    """Return the name of the body that a side of the domain is."""
    return f"wall {side}"


def _add_body(
    mujoco: Any,
    spec: Any,
    b: int,
    collider: Collider,
    begin: tuple[np.ndarray, np.ndarray] | None,
    made: dict[str, Any],
    unit: float,
) -> bool:
    """Add the body of a collider, with its joint; its frame is the collider's own. Return whether what it hangs on was there."""
    rigid = collider.rigid
    if rigid is None or begin is None:
        spec.worldbody.add_body(name=str(b), mocap=True)
        return True
    joint = rigid.joint
    if joint is not None and joint.parent and joint.parent not in made:
        return False
    turn, place = begin
    parent, (origin, frame) = spec.worldbody, (np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))
    if joint is not None and joint.parent:
        parent, origin, frame = made[joint.parent]
    back, own, offset = np.empty(4), np.empty(4), np.empty(3)
    mujoco.mju_negQuat(back, frame)
    mujoco.mju_mulQuat(own, back, turn)
    mujoco.mju_rotVecQuat(offset, place - origin, back)
    body = parent.add_body(name=str(b), pos=offset, quat=own)
    made[rigid.name] = body, place, turn
    if joint is None:
        body.add_freejoint()
    elif joint.kind is not JointKind.FIXED:
        _add_joint(mujoco, spec, b, body, joint, (place, turn), unit)
    return True


def _add_joint(
    mujoco: Any, spec: Any, b: int, body: Any, joint: RigidJoint, pose: tuple[np.ndarray, np.ndarray], unit: float
) -> None:
    """Add a hinge, a slider or a ball joint, and its motor, whose strength counts in the unit of mass [kg]."""
    (place, turn), back, anchor, axis = pose, np.empty(4), np.empty(3), np.empty(3)
    mujoco.mju_negQuat(back, turn)
    mujoco.mju_rotVecQuat(anchor, np.array(joint.anchor) - place, back)
    mujoco.mju_rotVecQuat(axis, np.array(joint.axis, float), back)
    kinds = {
        JointKind.HINGE: mujoco.mjtJoint.mjJNT_HINGE,
        JointKind.SLIDER: mujoco.mjtJoint.mjJNT_SLIDE,
        JointKind.BALL: mujoco.mjtJoint.mjJNT_BALL,
    }
    added = body.add_joint(name=str(b), type=kinds[joint.kind], pos=anchor, axis=axis)
    if joint.limits is not None:
        added.limited, added.range = mujoco.mjtLimited.mjLIMITED_TRUE, joint.limits
    if joint.kind in MOTORISED:
        strength = joint.strength / unit
        gain = strength / (SLIPS * max(abs(joint.speed), 1e-3))
        motor = spec.add_actuator(name=str(b), target=str(b), trntype=mujoco.mjtTrn.mjTRN_JOINT)
        motor.gaintype, motor.biastype = mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtBias.mjBIAS_AFFINE
        motor.gainprm[0], motor.biasprm[2] = gain, -gain
        if strength > 0.0:
            motor.forcelimited, motor.forcerange = mujoco.mjtLimited.mjLIMITED_TRUE, (-strength, strength)


def _add_shape(mujoco: Any, spec: Any, b: int, collider: Collider, measures: tuple[float, float]) -> None:
    """Add the shape of a collider to its body; `measures` are the grid spacing [m] and the unit of mass [kg]."""
    cell_size, unit = measures
    rigid, shape = collider.rigid, collider.shape
    given: dict[str, Any] = {}
    if shape.kind == SPHERE:
        given |= {"type": mujoco.mjtGeom.mjGEOM_SPHERE, "size": (shape.sizes[0], 0.0, 0.0)}
    elif shape.kind == BOX:
        given |= {"type": mujoco.mjtGeom.mjGEOM_BOX, "size": shape.sizes}
    elif shape.kind == CAPSULE:
        given |= {"type": mujoco.mjtGeom.mjGEOM_CAPSULE, "size": (*shape.sizes, 0.0), "quat": UPRIGHT}
    elif shape.kind == PLANE:
        given |= {"type": mujoco.mjtGeom.mjGEOM_PLANE, "size": (1.0, 1.0, 1.0), "quat": UPRIGHT}
    elif collider.mesh is None and rigid is None:
        return  # there is nothing to meet
    else:
        given |= _add_mesh(mujoco, spec, b, collider, cell_size)
    body, parts = spec.body(str(b)), []
    if given:
        parts.append(body.add_geom(**given))
        if rigid is not None:
            parts[0].density = rigid.density / unit
    parts += [flex for flex in spec.flexes if flex.name == str(b)]
    for part in parts:
        part.friction = (collider.friction, 0.0, 0.0)
        part.solimp = (0.95, 0.95, SOFT * cell_size, 0.5, 2.0)
        if rigid is None:
            part.solmix = 0.0
        else:
            damping = _damping(rigid.restitution)
            part.solref = (1.0 / (damping * math.sqrt(WEIGHT / (SAG * cell_size))), damping)


def _add_mesh(mujoco: Any, spec: Any, b: int, collider: Collider, cell_size: float) -> dict[str, Any]:
    """Add the mesh of a collider in the collider's own frame: as a hull where it is convex, else as triangles that bodies meet.

    Returns what the geometry of its body takes, nothing where it needs none.
    """
    mesh = collider.mesh
    if mesh is None:
        raise MpmNodesError(f"rigid_body: collider '{collider.name}' has no mesh to weigh; take another collide node")
    points, triangles = _own_points(collider), triangulate(mesh.counts, mesh.indices)[0]
    radius, convex = SKIN * cell_size, False
    try:
        repaired = solid_mesh(points, triangles, collider.name)
        points, triangles = repaired.extended(points), repaired.triangles
        convex = _is_convex(mujoco, points, triangles)
    except InputError:
        if collider.rigid is not None:
            raise
        radius = max(radius, float(-min((part.values.min() for part in collider.shape.level_sets), default=0.0)))
    if not convex:  # a skin of triangles
        flex = spec.add_flex(name=str(b))
        flex.dim, flex.radius, flex.vertbody, flex.condim = 2, radius, [str(b)], 3
        flex.selfcollide = mujoco.mjtFlexSelf.mjFLEXSELF_NONE
        flex.vert, flex.elem = points.ravel(), triangles.ravel().astype(np.int32)
        if collider.rigid is None:
            return {}
    added = spec.add_mesh(name=str(b))
    added.uservert, added.userface = points.ravel(), triangles.ravel()
    added.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_EXACT
    meets = {} if convex else {"contype": 0, "conaffinity": 0}
    return {"type": mujoco.mjtGeom.mjGEOM_MESH, "meshname": str(b), **meets}


def _is_convex(mujoco: Any, points: np.ndarray, triangles: np.ndarray) -> bool:
    """Return whether a mesh that bounds a volume is its hull."""
    spec = mujoco.MjSpec()
    inertias = mujoco.mjtMeshInertia.mjMESH_INERTIA_EXACT, mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX
    size = float(np.ptp(points, axis=0).max())
    for n, inertia in enumerate(inertias):
        mesh = spec.add_mesh(name=str(n))
        mesh.uservert, mesh.userface, mesh.inertia = (points / size).ravel(), triangles.ravel(), inertia
        body = spec.worldbody.add_body(name=str(n))
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname=str(n))
    try:
        mass = spec.compile().body_mass
    except ValueError:  # what is wrong with it is told when it is added
        return True
    return bool(mass[1] >= CONVEX * mass[2])


def box_of(collider: Collider) -> np.ndarray | None:
    """Return corners of a box around a collider in its own frame, shape (2, 3) [m]; None of a plane, or where there is no mesh."""
    kind, sizes = collider.shape.kind, collider.shape.sizes
    if kind == SPHERE:
        half = np.full(3, sizes[0])
    elif kind == BOX:
        half = np.array(sizes)
    elif kind == CAPSULE:
        half = np.array([sizes[0], sizes[0] + sizes[1], sizes[0]])
    elif kind == PLANE or collider.mesh is None or not len(collider.mesh.points):
        return None
    else:
        points = _own_points(collider)
        return np.array([points.min(axis=0), points.max(axis=0)])
    return np.array([-half, half])


def _own_points(collider: Collider) -> np.ndarray:
    """Return the points of the mesh of a collider in its own frame, as precisely as MuJoCo holds them, shape (n, 3) [m]."""
    import mujoco

    mesh, shape, turn = collider.mesh, collider.shape, np.empty(9)
    assert mesh is not None
    mujoco.mju_quat2Mat(turn, shape.rotations[-1])
    own = (mesh.points - shape.translations[-1]) @ turn.reshape(3, 3)
    return own.astype(np.float32).astype(np.float64)


def _damping(restitution: float) -> float:
    """Return the damping ratio of a contact that keeps this share of the speed.

    A mass on a spring with a damper leaves where their force is 0, with exp(-2 d / s atan(s / d)) of its speed, s = sqrt(1 - d^2);
    beyond d = 1 with exp(-2 d / s atanh(s / d)), s = sqrt(d^2 - 1).
    """
    low, high = 0.0, MOST_DAMPED
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _kept(middle) > restitution else (low, middle)
    return max(high, LEAST_DAMPED)


def _kept(damping: float) -> float:
    """Return the share of the speed that a contact keeps (see `_damping`)."""
    root = math.sqrt(abs(1.0 - damping * damping))
    if root < 1e-6:
        return math.exp(-2.0)
    angle = math.atan2(root, damping) if damping < 1.0 else math.atanh(root / damping)
    return math.exp(-2.0 * damping / root * angle)
