"""Colliders: analytic shapes, level sets from .vdb files, meshes from USD stages."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import (
    A,
    Collider,
    CollisionRule,
    Degrees,
    FrameContext,
    GraphSettings,
    Metres,
    MpmNodesError,
    Orientation,
    Pascals,
    PerResolution,
    Range,
    Unitless,
    Vec3,
)
from mpm_nodes.graph.declare.declarations import Preflight
from mpm_nodes.graph.declare.decorators import ContentsContext, PreflightContext, found_by, node
from mpm_nodes.graph.plan.preflight import UNKNOWN
from mpm_nodes.graph.time.keys import KeyedInSteps, KeysTravel, most
from mpm_nodes.graph.values.kept import NOTHING_KEPT, Kept
from mpm_nodes.nodes.collider_motion import Motion, box_mesh, knob_motion, plane_mesh, sphere_mesh
from mpm_nodes.nodes.rods import Rod
from mpm_nodes.nodes.rotations import TURNS, UNTURNED
from mpm_nodes.nodes.start_inside import solids_of

_Length = Range(min=0.0, exclusive_min=True, soft_max=10.0)
_Friction = Range(min=0.0, soft_max=1.0)
_Rule = A[CollisionRule, KeyedInSteps()]
_Clamp = A[bool, KeyedInSteps()]
_Adhesion = A[float, Pascals, Range(min=0.0, soft_max=10000.0), KeysTravel()]


def _solid(ctx: FrameContext, thickness: float) -> float:
    """Return the thickness that a body collides with [m]: what is thinner than the steps of particle paths would be jumped over."""
    from mpm_nodes.kernels.collisions.paths import STEP

    return max(thickness, 2.0 * STEP * ctx.settings.cell_size)


def _solid_of(name: str) -> Preflight:
    """Return a preflight that tells the body as it stands first, for what is inside it."""

    def tell(told: PreflightContext) -> dict[str, Any]:
        return {"solids": solids_of(globals()[name](_first(told), **told.knobs)), **_sticks(told)}

    return tell


def _first(told: PreflightContext) -> FrameContext:
    """Return the first frame of the shot."""
    return FrameContext(frame=told.settings.start, settings=told.settings, keyed=told.keyed)


CHOSEN = ("rule", "clamp")
"""Knobs that say what contact does; where one steps within a frame, the other choice begins with the next one, as bodies jump."""


def _body(ctx: FrameContext, collider: Collider) -> Collider:
    """Return a collider, if it can hold what it shall clamp or stick to; where keys choose, what does not fit the rule rests."""
    if not ctx.keyed & {*CHOSEN}:
        _refuse_loose(collider)
        return collider
    rule, clamp = collider.rule, collider.clamp
    if ctx.sample_uncut is not None:
        rule, clamp = (ctx.sample_uncut(name, ctx.frame) for name in CHOSEN)
    adhesion = collider.adhesion if rule is CollisionRule.SEPARATE else 0.0
    return dataclasses.replace(collider, rule=rule, clamp=clamp and rule is CollisionRule.STICKY, adhesion=adhesion)


def _sticks(told: PreflightContext) -> dict[str, Any]:
    """Refuse what cannot clamp or stick; tell whether matter sticks to it by a strength, and why it can be no rigid body."""
    knobs = told.knobs
    body = Collider(knobs["name"], knobs["rule"], 0.0, None, clamp=knobs["clamp"], adhesion=knobs["adhesion"])
    if not told.keyed & {*CHOSEN}:
        _refuse_loose(body)
    clamps = body.clamp or "clamp" in told.keyed
    fixed = [why for why, holds in (("clamps", clamps), ("is a plane", "shown_size" in knobs)) if holds]
    return {"sticks": int(most(body.adhesion) > 0.0), "fixed": tuple(fixed)}


def _refuse_loose(body: Collider) -> None:
    if body.clamp and body.rule is not CollisionRule.STICKY:
        raise MpmNodesError(f"collider '{body.name}': clamp holds by the rule sticky, and the rule is {body.rule.value}; set it")
    if body.rule is not CollisionRule.SEPARATE and most(body.adhesion) > 0.0:
        raise MpmNodesError(
            f"collider '{body.name}': adhesion is for the rule separate, and the rule is {body.rule.value}; change one"
        )


@node(
    category="Collide",
    label="Sphere Collider",
    version=1,
    preflight=_solid_of("collide_sphere"),
    alternatives=TURNS,
)
def collide_sphere(
    ctx: FrameContext,
    *,
    centre: A[Vec3, Metres] = (0.0, 0.0, 0.0),
    rotation: A[Vec3, Degrees] = (0.0, 0.0, 0.0),
    orientation: Orientation = UNTURNED,
    radius: A[float, Metres, _Length] = 0.5,
    rule: _Rule = CollisionRule.SEPARATE,
    friction: A[float, Unitless, _Friction] = 0.0,
    adhesion: _Adhesion = 0.0,
    clamp: _Clamp = False,
    name: str = "sphere",
) -> Collider:
    """Collide with a ball; key its centre or rotation to move it.

    Args:
        centre: Centre of the ball.
        rotation: Turns about x, then y, then z; a spinning ball drags what sticks to it.
        orientation: Turns by a quaternion (w, x, y, z), in place of the angles.
        radius: Radius; it stays the same within a frame.
        rule: What contact does to the velocity; keys that step change it, and `clamp`, from frame to frame.
        friction: Coulomb coefficient, for the rule separate.
        adhesion: Tension by which matter sticks before it lets go, for the rule separate; it adds to what friction presses by.
        clamp: With the rule sticky: hold and carry along what lies inside, as a clamped end; else it is pushed out.
        name: What messages call it.
    """
    from mpm_nodes.kernels.level_sets.level_set import SPHERE

    motion = knob_motion(ctx, {"centre": centre}, {"rotation": rotation, "orientation": orientation})
    shape = motion.shape(SPHERE, (0.5 * _solid(ctx, 2.0 * radius),))
    return _body(
        ctx,
        Collider(
            name, rule, friction, shape, motion.at_end(sphere_mesh(radius)), clamp=clamp, adhesion=adhesion, still=not ctx.keyed
        ),
    )


@node(
    category="Collide",
    label="Box Collider",
    version=1,
    preflight=_solid_of("collide_box"),
    alternatives=TURNS,
)
def collide_box(
    ctx: FrameContext,
    *,
    centre: A[Vec3, Metres] = (0.0, 0.0, 0.0),
    rotation: A[Vec3, Degrees] = (0.0, 0.0, 0.0),
    orientation: Orientation = UNTURNED,
    size: A[Vec3, Metres, _Length] = (1.0, 1.0, 1.0),
    rule: _Rule = CollisionRule.SEPARATE,
    friction: A[float, Unitless, _Friction] = 0.0,
    adhesion: _Adhesion = 0.0,
    clamp: _Clamp = False,
    name: str = "box",
) -> Collider:
    """Collide with a box, however thin; key its centre or rotation to move it.

    Args:
        centre: Centre of the box.
        rotation: Turns about x, then y, then z.
        orientation: Turns by a quaternion (w, x, y, z), in place of the angles.
        size: Edge lengths; what is thinner collides as if it were a 25th of a cell thick. Explicit substeps keep the two sides
            of a plate apart.
        rule: What contact does to the velocity; keys that step change it, and `clamp`, from frame to frame.
        friction: Coulomb coefficient, for the rule separate.
        adhesion: Tension by which matter sticks before it lets go, for the rule separate; it adds to what friction presses by.
        clamp: With the rule sticky: hold and carry along what lies inside, as a clamped end; else it is pushed out.
        name: What messages call it.
    """
    from mpm_nodes.kernels.level_sets.level_set import BOX

    motion = knob_motion(ctx, {"centre": centre}, {"rotation": rotation, "orientation": orientation})
    half = tuple(0.5 * _solid(ctx, edge) for edge in size)
    return _body(
        ctx,
        Collider(
            name,
            rule,
            friction,
            motion.shape(BOX, half),
            motion.at_end(box_mesh(size)),
            clamp=clamp,
            adhesion=adhesion,
            still=not ctx.keyed,
        ),
    )


def _rod(told: PreflightContext) -> dict[str, Any]:
    """Tell how thick it is: splines reach around thin ones."""
    thickness = 2.0 * float(told.knobs["radius"])
    rod = Rod(told.knobs["name"], thickness, thickness + float(told.knobs["length"]))
    return {"rods": (rod,), **_solid_of("collide_capsule")(told)}


@node(category="Collide", label="Capsule Collider", version=1, preflight=_rod, alternatives=TURNS)
def collide_capsule(
    ctx: FrameContext,
    *,
    centre: A[Vec3, Metres] = (0.0, 0.0, 0.0),
    rotation: A[Vec3, Degrees] = (0.0, 0.0, 0.0),
    orientation: Orientation = UNTURNED,
    radius: A[float, Metres, _Length] = 0.1,
    length: A[float, Metres, Range(min=0.0, soft_max=10.0)] = 0.5,
    rule: _Rule = CollisionRule.SEPARATE,
    friction: A[float, Unitless, _Friction] = 0.0,
    adhesion: _Adhesion = 0.0,
    clamp: _Clamp = False,
    name: str = "capsule",
) -> Collider:
    """Collide with a cylinder with round ends; key its centre or rotation to move it.

    Args:
        centre: Middle of the axis.
        rotation: Turns about x, then y, then z; before turning, the axis is y.
        orientation: Turns by a quaternion (w, x, y, z), in place of the angles.
        radius: Radius of the cylinder and of its ends.
        length: Length of the axis between the centres of the ends.
        rule: What contact does to the velocity; keys that step change it, and `clamp`, from frame to frame.
        friction: Coulomb coefficient, for the rule separate.
        adhesion: Tension by which matter sticks before it lets go, for the rule separate; it adds to what friction presses by.
        clamp: With the rule sticky: hold and carry along what lies inside, as a clamped end; else it is pushed out.
        name: What messages call it.
    """
    from mpm_nodes.kernels.level_sets.level_set import CAPSULE

    motion = knob_motion(ctx, {"centre": centre}, {"rotation": rotation, "orientation": orientation})
    shape = motion.shape(CAPSULE, (0.5 * _solid(ctx, 2.0 * radius), 0.5 * length))
    return _body(
        ctx,
        Collider(
            name,
            rule,
            friction,
            shape,
            motion.at_end(sphere_mesh(radius, 0.5 * length)),
            clamp=clamp,
            adhesion=adhesion,
            still=not ctx.keyed,
        ),
    )


@found_by("floor", "ground", "wall", "table")
@node(
    category="Collide",
    label="Plane Collider",
    version=1,
    preflight=_solid_of("collide_plane"),
    alternatives=TURNS,
)
def collide_plane(
    ctx: FrameContext,
    *,
    centre: A[Vec3, Metres] = (0.0, 0.0, 0.0),
    rotation: A[Vec3, Degrees] = (0.0, 0.0, 0.0),
    orientation: Orientation = UNTURNED,
    shown_size: A[float, Metres, _Length] = 4.0,
    rule: _Rule = CollisionRule.SEPARATE,
    friction: A[float, Unitless, _Friction] = 0.0,
    adhesion: _Adhesion = 0.0,
    clamp: _Clamp = False,
    name: str = "plane",
) -> Collider:
    """Collide with the half space below a plane; key its centre or rotation to move it.

    Args:
        centre: A point of the plane.
        rotation: Turns about x, then y, then z; before turning, the plane is horizontal, its solid side below.
        orientation: Turns by a quaternion (w, x, y, z), in place of the angles.
        shown_size: Edge of the square that shows it; it collides everywhere.
        rule: What contact does to the velocity; keys that step change it, and `clamp`, from frame to frame.
        friction: Coulomb coefficient, for the rule separate.
        adhesion: Tension by which matter sticks before it lets go, for the rule separate; it adds to what friction presses by.
        clamp: With the rule sticky: hold and carry along what lies inside, as a clamped end; else it is pushed out.
        name: What messages call it.
    """
    from mpm_nodes.kernels.level_sets.level_set import PLANE

    motion = knob_motion(ctx, {"centre": centre}, {"rotation": rotation, "orientation": orientation})
    return _body(
        ctx,
        Collider(
            name,
            rule,
            friction,
            motion.shape(PLANE),
            motion.at_end(plane_mesh(shown_size)),
            clamp=clamp,
            adhesion=adhesion,
            still=not ctx.keyed,
        ),
    )


def _carries(told: PreflightContext) -> dict[str, Any]:
    """Tell whether it may hold what flows through it, as the mouth of a stream does, what its level sets take, and where it is."""
    from mpm_nodes.nodes.collider_needs import volume_needs

    sticks = _sticks(told)
    carries = told.knobs["rule"] is CollisionRule.STICKY and bool(told.knobs["velocity_grid"])
    needs = volume_needs(told)
    solids = () if UNKNOWN in needs else solids_of(collide_vdb(_first(told), told.kept, **told.knobs))
    fixed = (*sticks["fixed"], *(("changes from file to file",) if told.knobs["sequence"] else ()))
    changing = dict.fromkeys(("pointless", "deforming"), int(told.knobs["sequence"]))
    return {**needs, **sticks, **changing, "carries": int(carries), "solids": solids, "fixed": fixed}


def _volumes(told: ContentsContext) -> list[Any]:
    """Say which files of a sequence count at a frame: those that it lies between; else the one file does."""
    from mpm_nodes.nodes.collider_volumes import sequence_files

    if not told.knobs["sequence"]:
        return [told.of_file(told.path)]
    return [told.of_file(file) for file in sequence_files(told.frame, told.settings, told.path, told.knobs["frame_offset"])]


@node(category="Collide", label="VDB Collider", version=1, preflight=_carries, alternatives=TURNS, contents={"path": _volumes})
def collide_vdb(
    ctx: FrameContext,
    kept: Kept = NOTHING_KEPT,
    *,
    path: Path,
    grid: str = "surface",
    velocity_grid: str = "vel",
    sequence: bool = False,
    frame_offset: int = 0,
    translate: A[Vec3, Metres] = (0.0, 0.0, 0.0),
    rotation: A[Vec3, Degrees] = (0.0, 0.0, 0.0),
    orientation: Orientation = UNTURNED,
    scale: A[float, Unitless, _Length] = 1.0,
    resample: bool = False,
    rule: _Rule = CollisionRule.SEPARATE,
    friction: A[float, Unitless, _Friction] = 0.0,
    adhesion: _Adhesion = 0.0,
    clamp: _Clamp = False,
    name: str = "",
) -> Collider:
    """Collide with the level set in a .vdb file, or with a numbered sequence of them.

    Args:
        path: The file; for a sequence any of its files (name.0001.vdb) or a pattern (name.####.vdb).
        grid: Name of the level set.
        velocity_grid: Name of the velocity grid [m/s]; used when the file has it, else motion is estimated.
        sequence: One file a frame; in between, the level sets are carried by their velocity and blended.
        frame_offset: Added to the frame number to find the file of a sequence.
        translate: Moves the collider, after turning.
        rotation: Turns about x, then y, then z, about the file's origin.
        orientation: Turns by a quaternion (w, x, y, z), in place of the angles.
        scale: Factor on all lengths of the file, for files that are not in metres.
        resample: Rebuild the distances of a level set whose voxels are not cubes.
        rule: What contact does to the velocity; keys that step change it, and `clamp`, from frame to frame.
        friction: Coulomb coefficient, for the rule separate.
        adhesion: Tension by which matter sticks before it lets go, for the rule separate; it adds to what friction presses by.
        clamp: With the rule sticky: hold and carry along what lies inside, as a clamped end; else it is pushed out.
        name: What messages call it; empty takes the file's name.
    """
    from mpm_nodes.kernels.level_sets.level_set import LEVEL_SET
    from mpm_nodes.nodes.collider_volumes import VdbBody, vdb_body, vdb_sequence

    def body(one: Path) -> VdbBody:
        return vdb_body(kept, one, grid, velocity_grid, scale, resample)

    bodies, times = vdb_sequence(ctx, path, body, frame_offset) if sequence else ((body(path),), np.zeros(1))
    motion = knob_motion(ctx, {"translate": translate}, {"rotation": rotation, "orientation": orientation})
    shape = motion.shape(LEVEL_SET, (), tuple(one.level_set for one in bodies), times)
    return _body(
        ctx,
        Collider(
            name or path.stem,
            rule,
            friction,
            shape,
            motion.at_end(bodies[-1].mesh),
            clamp=clamp,
            adhesion=adhesion,
            still=not (ctx.keyed or sequence),
        ),
    )


def _check_mesh(told: PreflightContext) -> dict[str, Any]:
    """Refuse a sheet that has no thickness; estimate the band of voxels around the mesh."""
    from mpm_nodes.nodes.collider_needs import mesh_needs

    sticks, needs = _sticks(told), mesh_needs(told)
    return {**sticks, **needs, "fixed": (*sticks["fixed"], *needs["fixed"])}


def _contents(told: ContentsContext) -> str:
    """Say what counts of the meshes at a frame."""
    from mpm_nodes.nodes.collider_meshes import mesh_contents

    return mesh_contents(told)


@node(category="Collide", label="USD Mesh Collider", version=2, preflight=_check_mesh, contents={"path": _contents})
def collide_usd(
    ctx: FrameContext,
    settings: GraphSettings,
    kept: Kept = NOTHING_KEPT,
    *,
    path: Path,
    prim: str = "",
    voxel_size: A[float, Metres, Range(min=0.0, soft_max=0.1), PerResolution(-1)] = 0.0,
    thickness: A[float, Metres, Range(min=0.0, soft_max=0.1)] = 0.0,
    frame_offset: A[float, Unitless] = 0.0,
    rule: _Rule = CollisionRule.SEPARATE,
    friction: A[float, Unitless, _Friction] = 0.0,
    adhesion: _Adhesion = 0.0,
    clamp: _Clamp = False,
    name: str = "",
) -> Collider:
    """Collide with the meshes of a USD stage: still, moved as a rigid body, or deforming.

    Small holes are closed and flipped or overlapping parts put right, with a warning that counts them. The stage's units and
    up axis are converted. Skeletons and blend shapes deform meshes, and those whose file says Catmull-Clark or Loop are subdivided.

    Args:
        path: The USD file.
        prim: Prim at or below which meshes are taken: its path, or its name when only one has it; empty takes all.
        voxel_size: Edge of the level set's voxels; 0 takes half a cell, a quarter where parts of the mesh are thinner; and, where
            those are thinner still, an eighth for a mesh that keeps its shape or is a thin sheet by a tenth of its area.
        thickness: 0 for closed meshes; a sheet without an inside becomes a shell of this thickness.
        frame_offset: Added to the frame number before the stage is read.
        rule: What contact does to the velocity; keys that step change it, and `clamp`, from frame to frame.
        friction: Coulomb coefficient, for the rule separate.
        adhesion: Tension by which matter sticks before it lets go, for the rule separate; it adds to what friction presses by.
        clamp: With the rule sticky: hold and carry along what lies inside, as a clamped end; else it is pushed out.
        name: What messages call it; empty takes the prim's or the file's name.
    """
    from mpm_nodes.kernels.level_sets.level_set import LEVEL_SET
    from mpm_nodes.nodes.collider_meshes import MeshOptions, usd_body

    body = usd_body(ctx, kept, path, prim, MeshOptions(voxel_size, settings.cell_size, thickness), frame_offset)
    title = name or (prim.rsplit("/", 1)[-1] if prim else path.stem)
    for warning in body.warnings:
        ctx.report("warning", message=warning, where=title)
    motion: Motion = body.motion
    shape = motion.shape(LEVEL_SET, (), body.level_sets, body.times)
    return _body(
        ctx,
        Collider(
            title,
            rule,
            friction,
            shape,
            body.mesh,
            clamp=clamp,
            adhesion=adhesion,
            still=body.still and not ctx.keyed,
            points_before=body.before,
        ),
    )
