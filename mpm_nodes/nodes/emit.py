"""Sources of matter: boxes, balls, meshes and level sets filled with particles, streams of them, and their union."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mpm_nodes.data import (
    A,
    Degrees,
    Frames,
    GraphSettings,
    InputError,
    Many,
    Material,
    Metres,
    MetresPerSecond,
    MpmNodesError,
    Orientation,
    Particles,
    RadiansPerSecond,
    Range,
    Unitless,
    Vec3,
    concatenate,
)
from mpm_nodes.graph.declare.declarations import Preflight
from mpm_nodes.graph.declare.decorators import ContentsContext, PreflightContext, found_by, node
from mpm_nodes.graph.time.keys import NotKeyable
from mpm_nodes.graph.values.kept import NOTHING_KEPT, Kept
from mpm_nodes.nodes.bodies import body_of, marks
from mpm_nodes.nodes.crowding import crowding
from mpm_nodes.nodes.rotations import TURNS, UNTURNED, turn_matrix
from mpm_nodes.nodes.rotations import orientation as quaternion_of
from mpm_nodes.nodes.seeding import Lattice, Seed, Seeding, SeedLayout, fill_region, seeding_estimate, seeds_before
from mpm_nodes.nodes.start_inside import coarse_places

if TYPE_CHECKING:
    from mpm_nodes.kernels.level_sets.regions import Region

_Size = Range(min=0.0, exclusive_min=True, soft_max=10.0)
_Fraction = Range(min=0.0, max=1.0)
_STILL = (0.0, 0.0, 0.0)


# ---------------------------------------------------------------- preflight
SEEDED = frozenset(("position", "velocity", "mass", "volume", "id", "material"))
"""Columns that every emitter gives."""


def _estimate_of(where: str, region_of: Callable[[PreflightContext], Region]) -> Preflight:
    def estimate(told: PreflightContext) -> dict[str, Any]:
        region = region_of(told)
        columns = SEEDED | ({"stiffness_scale"} if told.knobs.get("stiffness_variation") else set())
        places = (functools.cache(lambda: coarse_places(region, told.knobs, told.settings)),)
        seeds = seeds_before(where, region, told.knobs, told.settings)
        facts = {"bodies": body_of(region, told), "places": places, "seeds": seeds, "columns": columns}
        return {**seeding_estimate(region, told.knobs, told.settings), **facts}

    return estimate


def _box_of(told: PreflightContext) -> Region:
    from mpm_nodes.kernels.level_sets.regions import box_region

    return box_region(told.knobs["size"])


def _ball_of(told: PreflightContext) -> Region:
    from mpm_nodes.kernels.level_sets.regions import sphere_region

    return sphere_region(told.knobs["radius"])


def _level_set_of(told: PreflightContext) -> Region:
    return _level_set_region(told.kept, told.knobs["path"], told.knobs["grid"], told.knobs["scale"])


def _mesh_of(told: PreflightContext) -> Region:
    knobs = told.knobs
    options = _MeshOptions(knobs["prim"], knobs["frame"], knobs["thickness"])
    return _mesh_region(told.kept, knobs["path"], options, told.settings)[0]


def _contents(told: ContentsContext) -> str:
    """Say what counts of a stage at a frame: its meshes where they are read, and where they were when the shot began."""
    from mpm_nodes.nodes.collider_files import open_meshes, shot_codes

    meshes = open_meshes(told.kept, told.path, told.knobs["prim"])
    codes = shot_codes(told.settings, meshes.stage)
    frames = [
        told.knobs["frame"],
        *([float(told.settings.start)] if told.knobs["lattice"] is Lattice.BODY or told.knobs["deform"] else []),
    ]
    return str(meshes.digest([codes.code(frame) for frame in frames]))


def _merged(told: PreflightContext) -> dict[str, Any]:
    facts = {fact: told.distinct("sources", fact) for fact in ("bodies", "places")}
    adds = ("body",) if told.knobs["bodies"] else ()
    return {"particles": told.total("sources", "particles"), **facts, **marks(told, "sources", adds=adds)}


# ---------------------------------------------------------------- nodes


@node(category="Emit", label="Box Emitter", version=1, preflight=_estimate_of("emit_box", _box_of), alternatives=TURNS)
def emit_box(
    settings: GraphSettings,
    material: Material,
    *,
    size: A[Vec3, Metres, _Size] = (1.0, 1.0, 1.0),
    centre: A[Vec3, Metres] = (0.0, 1.0, 0.0),
    rotation: A[Vec3, Degrees] = (0.0, 0.0, 0.0),
    orientation: Orientation = UNTURNED,
    velocity: A[Vec3, MetresPerSecond] = (0.0, 0.0, 0.0),
    angular_velocity: A[Vec3, RadiansPerSecond] = (0.0, 0.0, 0.0),
    seeding: Seeding = Seeding.LATTICE,
    jitter: A[float, Unitless, _Fraction] = 0.0,
    stiffness_variation: A[float, Unitless, _Fraction] = 0.0,
    seed: Seed = 0,
) -> Particles:
    """Fill a box with particles, eight a cell.

    Args:
        material: Material of the particles.
        size: Edge lengths.
        centre: Centre of the box.
        rotation: Turns about x, then y, then z.
        orientation: Turns by a quaternion (w, x, y, z), in place of the angles.
        velocity: Initial velocity of the centre.
        angular_velocity: Initial spin about the centre.
        seeding: Lattice (8 per cell, stretched to fill the box evenly) or Poisson disc (least distance 0.42 cells).
        jitter: Random shift of lattice points, as a fraction of their spacing.
        stiffness_variation: Half width of a random factor on the stiffness of each particle; 0 makes all equal.
        seed: Seed of the random choices.
    """
    from mpm_nodes.kernels.level_sets.regions import box_region

    placement = SeedLayout(centre, rotation, velocity, angular_velocity, seeding, jitter, stiffness_variation, seed, orientation)
    return fill_region("emit_box", box_region(size), placement, settings, material)


@node(category="Emit", label="Sphere Emitter", version=1, preflight=_estimate_of("emit_sphere", _ball_of))
def emit_sphere(
    settings: GraphSettings,
    material: Material,
    *,
    radius: A[float, Metres, _Size] = 0.5,
    centre: A[Vec3, Metres] = (0.0, 1.0, 0.0),
    velocity: A[Vec3, MetresPerSecond] = (0.0, 0.0, 0.0),
    angular_velocity: A[Vec3, RadiansPerSecond] = (0.0, 0.0, 0.0),
    seeding: Seeding = Seeding.LATTICE,
    lattice: Lattice = Lattice.WORLD,
    jitter: A[float, Unitless, _Fraction] = 0.0,
    stiffness_variation: A[float, Unitless, _Fraction] = 0.0,
    seed: Seed = 0,
) -> Particles:
    """Fill a ball with particles, eight a cell.

    Args:
        material: Material of the particles.
        radius: Radius of the ball.
        centre: Centre of the ball.
        velocity: Initial velocity of the centre.
        angular_velocity: Initial spin about the centre.
        seeding: Lattice (8 per cell, aligned with the grid) or Poisson disc (least distance 0.42 cells).
        lattice: World: the grid's lattice, cut where the body is. Body: the body's own, which moves and turns with it: for
            what moves and pours out streams.
        jitter: Random shift of lattice points, as a fraction of their spacing.
        stiffness_variation: Half width of a random factor on the stiffness of each particle; 0 makes all equal.
        seed: Seed of the random choices.
    """
    from mpm_nodes.kernels.level_sets.regions import sphere_region

    placement = SeedLayout(centre, _STILL, velocity, angular_velocity, seeding, jitter, stiffness_variation, seed, lattice=lattice)
    return fill_region("emit_sphere", sphere_region(radius), placement, settings, material)


@node(
    category="Emit",
    label="Level Set Emitter",
    version=1,
    preflight=_estimate_of("emit_level_set", _level_set_of),
    alternatives=TURNS,
)
def emit_level_set(
    settings: GraphSettings,
    material: Material,
    kept: Kept = NOTHING_KEPT,
    *,
    path: Path,
    grid: str = "",
    scale: A[float, Unitless, _Size] = 1.0,
    rotation: A[Vec3, Degrees] = (0.0, 0.0, 0.0),
    orientation: Orientation = UNTURNED,
    translation: A[Vec3, Metres] = (0.0, 0.0, 0.0),
    velocity: A[Vec3, MetresPerSecond] = (0.0, 0.0, 0.0),
    angular_velocity: A[Vec3, RadiansPerSecond] = (0.0, 0.0, 0.0),
    seeding: Seeding = Seeding.LATTICE,
    lattice: Lattice = Lattice.WORLD,
    jitter: A[float, Unitless, _Fraction] = 0.0,
    stiffness_variation: A[float, Unitless, _Fraction] = 0.0,
    seed: Seed = 0,
) -> Particles:
    """Fill the inside of a level set from a .vdb file with particles, eight a cell.

    Args:
        material: Material of the particles.
        path: The .vdb file.
        grid: Name of the level set; may stay empty when the file holds only one.
        scale: Factor on all lengths, about the origin.
        rotation: Turns about x, then y, then z, about the origin, after scaling.
        orientation: Turns by a quaternion (w, x, y, z), in place of the angles.
        translation: Shift after scaling and turning.
        velocity: Initial velocity.
        angular_velocity: Initial spin about the middle of the particles.
        seeding: Lattice (8 per cell, aligned with the grid) or Poisson disc (least distance 0.42 cells).
        lattice: World: the grid's lattice, cut where the body is. Body: the body's own, which moves and turns with it: for
            what moves and pours out streams.
        jitter: Random shift of lattice points, as a fraction of their spacing.
        stiffness_variation: Half width of a random factor on the stiffness of each particle; 0 makes all equal.
        seed: Seed of the random choices.
    """
    placement = SeedLayout(
        translation, rotation, velocity, angular_velocity, seeding, jitter, stiffness_variation, seed, orientation, lattice
    )
    region = _level_set_region(kept, path, grid, scale)
    return fill_region("emit_level_set", region, placement, settings, material)


@found_by("model", "object", "geometry", "fill")
@node(
    category="Emit",
    label="Mesh Emitter",
    version=1,
    preflight=_estimate_of("emit_mesh", _mesh_of),
    alternatives=TURNS,
    contents={"path": _contents},
)
def emit_mesh(
    settings: GraphSettings,
    material: Material,
    kept: Kept = NOTHING_KEPT,
    *,
    path: Path,
    prim: str = "",
    frame: A[float, Frames] = 1.0,
    thickness: A[float, Metres, Range(min=0.0, soft_max=1.0)] = 0.0,
    rotation: A[Vec3, Degrees] = (0.0, 0.0, 0.0),
    orientation: Orientation = UNTURNED,
    translation: A[Vec3, Metres] = (0.0, 0.0, 0.0),
    velocity: A[Vec3, MetresPerSecond] = (0.0, 0.0, 0.0),
    angular_velocity: A[Vec3, RadiansPerSecond] = (0.0, 0.0, 0.0),
    seeding: Seeding = Seeding.LATTICE,
    lattice: Lattice = Lattice.WORLD,
    jitter: A[float, Unitless, _Fraction] = 0.0,
    stiffness_variation: A[float, Unitless, _Fraction] = 0.0,
    seed: Seed = 0,
    deform: A[bool, NotKeyable("particles are kept from the first frame on, or not")] = False,
) -> Particles:
    """Fill the inside of a mesh from a USD file with particles, eight a cell.

    Small holes are closed, turned and overlapping parts still give the right inside (winding numbers), with a warning.
    Skeletons and blend shapes deform meshes, and those whose file says Catmull-Clark or Loop are subdivided.

    Args:
        material: Material of the particles.
        path: USD file.
        prim: Path or name of a mesh, or of a prim above meshes; empty for the whole stage.
        frame: Frame at which the mesh is read, in frames of the shot.
        thickness: 0 fills the inside; above 0 fills all within half of it around the surface, for sheets.
        rotation: Turns about x, then y, then z, about the origin.
        orientation: Turns by a quaternion (w, x, y, z), in place of the angles.
        translation: Shift after turning.
        velocity: Initial velocity.
        angular_velocity: Initial spin about the middle of the particles.
        seeding: Lattice (8 per cell, aligned with the grid) or Poisson disc (least distance 0.42 cells).
        lattice: World: the grid's lattice, cut where the body is. Body: the body's own, which moves and turns with it, by these
            knobs or in the file from the first frame of the shot to `frame`: for what moves and pours out streams. A mesh that
            changes its shape is cut again at each frame.
        jitter: Random shift of lattice points, as a fraction of their spacing.
        stiffness_variation: Half width of a random factor on the stiffness of each particle; 0 makes all equal.
        seed: Seed of the random choices.
        deform: Keep the particles of the first frame of the shot in their order, and let them go along with the vertices near them
            as the mesh deforms: for streams out of it whose `deforms` is on. A mesh whose faces change is filled again.
    """
    placement = SeedLayout(
        translation, rotation, velocity, angular_velocity, seeding, jitter, stiffness_variation, seed, orientation, lattice
    )
    if deform and frame != settings.start:
        from mpm_nodes.nodes.mesh_deformation import deformation_of

        moved = deformation_of(kept, placement, (path, prim), frame, settings)
        if moved is not None:
            first, _ = _mesh_region(kept, path, _MeshOptions(prim, settings.start, thickness), settings)
            filled = fill_region("emit_mesh", first, placement, settings, material)
            return dataclasses.replace(filled, attributes={**filled.attributes, "position": moved(filled["position"])})
    if lattice is Lattice.BODY and frame != settings.start:
        placement, frame = _carried(kept, placement, (path, prim), frame, settings)
    region, findings = _mesh_region(kept, path, _MeshOptions(prim, frame, thickness), settings)
    if findings:
        warnings.warn(f"emit_mesh: {path.name}: the mesh has {findings}", stacklevel=2)
    return fill_region("emit_mesh", region, placement, settings, material)


@node(category="Emit", label="Merge Particles", version=1, preflight=_merged)
def merge_particles(sources: Many[Particles], *, bodies: bool = False) -> Particles:
    """Join particles of several sources: ids are renumbered, materials kept apart.

    Args:
        sources: What to join.
        bodies: Make every source a body of its own: where the substeps have `collide_bodies`, bodies touch without sharing
            velocities. Sources that hold several bodies keep them.
    """
    if not sources:
        raise MpmNodesError("merge_particles.sources: nothing is wired in; wire one or more emitters")
    overlap = crowding(sources, 2.0 * min(source.spacing for source in sources))
    if overlap:
        warnings.warn(f"merge_particles: {overlap}", stacklevel=2)
    return concatenate(_numbered(sources) if bodies else sources)


def _numbered(sources: Sequence[Particles]) -> list[Particles]:
    """Give the bodies of every source numbers that no other source has."""
    parts, following = [], 0
    for source in sources:
        body = source["body"] if "body" in source else np.zeros(len(source), np.int32)
        least = body.min() if len(source) else 0
        numbered = {**source.attributes, "body": (body - least + following).astype(np.int32)}
        parts.append(dataclasses.replace(source, attributes=numbered))
        following += int(np.ptp(body)) + 1 if len(source) else 0
    return parts


# ---------------------------------------------------------------- regions from files
def _stamp(path: Path) -> tuple[int, int]:
    """Return what changes when the file does, so that a region can be kept between preflight and cook."""
    try:
        facts = path.stat()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); give the path of a file that exists") from error
    return facts.st_mtime_ns, facts.st_size


def _level_set_region(kept: Kept, path: Path, grid: str, scale: float) -> Region:
    key = ("level set region", path, *_stamp(path), grid, scale)
    return kept.get(key, lambda: _read_level_set_region(path, grid, scale))


def _read_level_set_region(path: Path, grid: str, scale: float) -> Region:
    from mpm_nodes.kernels.level_sets.regions import level_set_region
    from usd_io.volumes import read_volumes

    found = read_volumes(path, [grid] if grid else None)
    solids = {name: info for name, info in found.items() if info.kind == "level_set"}
    if not grid and len(solids) != 1:
        raise InputError(
            f"{path}: holds {len(solids)} level sets ({', '.join(sorted(found)) or 'no grids'}); name the one to fill with `grid`"
        )
    info = found[grid] if grid else next(iter(solids.values()))
    if not info.uniform:
        raise InputError(
            f"{path}: level set '{info.level_set.name}' is stretched unevenly by its transform, so its values "
            "are not distances; resample it to cubic voxels"
        )
    return level_set_region(info.level_set, info.transform, scale)


class _MeshOptions(NamedTuple):
    """Which meshes of a stage, when, and how finely they become a region: lengths in metres."""

    prim: str
    frame: float
    thickness: float


def _mesh_region(kept: Kept, path: Path, options: _MeshOptions, settings: GraphSettings) -> tuple[Region, str]:
    """Return the region inside the meshes, and what was imperfect about them in words."""
    from mpm_nodes.nodes.collider_files import open_meshes, shot_codes

    stamped, voxel_size = _stamp(path), 0.25 * settings.cell_size
    meshes = open_meshes(kept, path, options.prim)
    code = shot_codes(settings, meshes.stage).code(options.frame)
    key = ("mesh region", path, *stamped, options.prim, code, options.thickness, voxel_size)
    return kept.get(key, lambda: _read_mesh_region(meshes, code, options.thickness, voxel_size))


def _carried(
    kept: Kept, placement: SeedLayout, file: tuple[Path, str], frame: float, settings: GraphSettings
) -> tuple[SeedLayout, float]:
    """Return a layout and its mesh's frame: those of the first frame, moved on, where the file moves the mesh as a rigid body."""
    from mpm_nodes.nodes.collider_files import open_meshes, shot_codes

    meshes = open_meshes(kept, *file)
    codes = shot_codes(settings, meshes.stage)
    way = meshes.way(codes.code(settings.start), codes.code(frame))
    if way is None:
        return placement, frame
    turn, shift = way
    own = turn_matrix(placement.rotation, placement.orientation)
    x, y, z = map(float, own @ shift + np.asarray(placement.centre))
    moved = dataclasses.replace(placement, centre=(x, y, z), rotation=_STILL, orientation=quaternion_of(own @ turn))
    return moved, settings.start


def _read_mesh_region(meshes: Any, code: float, thickness: float, voxel_size: float) -> tuple[Region, str]:
    from mpm_nodes.kernels.level_sets.mesh_level_set import mesh_level_set
    from mpm_nodes.kernels.level_sets.mesh_repair import solid_mesh, triangulate
    from mpm_nodes.kernels.level_sets.regions import solid_region

    topology = meshes.topology(code)
    points, (triangles, _) = meshes.points(code), triangulate(topology.counts, topology.indices)
    if thickness > 0.0:
        return solid_region(mesh_level_set(points, triangles, voxel_size, thickness, name=meshes.name)), ""
    solid = solid_mesh(points, triangles, meshes.name)
    body = mesh_level_set(solid.extended(points), solid.triangles, voxel_size, name=meshes.name)
    return solid_region(body), solid.findings()
