"""Sources of matter: boxes, balls, meshes and level sets filled with particles, streams of them, and their union."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpm_nodes.data import (
    A,
    Degrees,
    Drop,
    Emitter,
    Frames,
    GraphSettings,
    InputError,
    Many,
    Material,
    Metres,
    MetresPerSecond,
    MpmNodesError,
    Particles,
    RadiansPerSecond,
    Range,
    Unitless,
    Vec3,
    concatenate,
)
from mpm_nodes.graph.declare import node
from mpm_nodes.nodes.seeding import Placement, Seeding, fill_region, rotation_matrix, seeding_estimate

if TYPE_CHECKING:
    from mpm_nodes.kernels.regions import Region

_Size = Range(min=0.0, exclusive_min=True, soft_max=10.0)
_Fraction = Range(min=0.0, max=1.0)
_STILL = (0.0, 0.0, 0.0)


@node(category="Emit", label="Box Emitter", version=1)
def emit_box(
    settings: GraphSettings,
    material: Material,
    *,
    size: A[Vec3, Metres, _Size] = (1.0, 1.0, 1.0),
    centre: A[Vec3, Metres] = (0.0, 1.0, 0.0),
    rotation: A[Vec3, Degrees] = (0.0, 0.0, 0.0),
    velocity: A[Vec3, MetresPerSecond] = (0.0, 0.0, 0.0),
    angular_velocity: A[Vec3, RadiansPerSecond] = (0.0, 0.0, 0.0),
    seeding: Seeding = Seeding.LATTICE,
    jitter: A[float, Unitless, _Fraction] = 0.0,
    stiffness_variation: A[float, Unitless, _Fraction] = 0.0,
    seed: int = 0,
) -> Particles:
    """Fill a box with particles, eight a cell.

    Args:
        material: Material of the particles.
        size: Edge lengths.
        centre: Centre of the box.
        rotation: Turns about x, then y, then z.
        velocity: Initial velocity of the centre.
        angular_velocity: Initial spin about the centre.
        seeding: Lattice (8 per cell, stretched to fill the box evenly) or Poisson disc (least distance 0.42 cells).
        jitter: Random shift of lattice points, as a fraction of their spacing.
        stiffness_variation: Half width of a random factor on the stiffness of each particle; 0 makes all equal.
        seed: Seed of the random choices.
    """
    from mpm_nodes.kernels.regions import box_region

    placement = Placement(centre, rotation, velocity, angular_velocity, seeding, jitter, stiffness_variation, seed)
    return fill_region("emit_box", box_region(size), placement, settings, material)


@node(category="Emit", label="Sphere Emitter", version=1)
def emit_sphere(
    settings: GraphSettings,
    material: Material,
    *,
    radius: A[float, Metres, _Size] = 0.5,
    centre: A[Vec3, Metres] = (0.0, 1.0, 0.0),
    velocity: A[Vec3, MetresPerSecond] = (0.0, 0.0, 0.0),
    angular_velocity: A[Vec3, RadiansPerSecond] = (0.0, 0.0, 0.0),
    seeding: Seeding = Seeding.LATTICE,
    jitter: A[float, Unitless, _Fraction] = 0.0,
    stiffness_variation: A[float, Unitless, _Fraction] = 0.0,
    seed: int = 0,
) -> Particles:
    """Fill a ball with particles, eight a cell.

    Args:
        material: Material of the particles.
        radius: Radius of the ball.
        centre: Centre of the ball.
        velocity: Initial velocity of the centre.
        angular_velocity: Initial spin about the centre.
        seeding: Lattice (8 per cell, aligned with the grid) or Poisson disc (least distance 0.42 cells).
        jitter: Random shift of lattice points, as a fraction of their spacing.
        stiffness_variation: Half width of a random factor on the stiffness of each particle; 0 makes all equal.
        seed: Seed of the random choices.
    """
    from mpm_nodes.kernels.regions import sphere_region

    placement = Placement(centre, _STILL, velocity, angular_velocity, seeding, jitter, stiffness_variation, seed)
    return fill_region("emit_sphere", sphere_region(radius), placement, settings, material)


@node(category="Emit", label="Level Set Emitter", version=1)
def emit_level_set(
    settings: GraphSettings,
    material: Material,
    *,
    path: Path,
    grid: str = "",
    scale: A[float, Unitless, _Size] = 1.0,
    rotation: A[Vec3, Degrees] = (0.0, 0.0, 0.0),
    translation: A[Vec3, Metres] = (0.0, 0.0, 0.0),
    velocity: A[Vec3, MetresPerSecond] = (0.0, 0.0, 0.0),
    angular_velocity: A[Vec3, RadiansPerSecond] = (0.0, 0.0, 0.0),
    seeding: Seeding = Seeding.LATTICE,
    jitter: A[float, Unitless, _Fraction] = 0.0,
    stiffness_variation: A[float, Unitless, _Fraction] = 0.0,
    seed: int = 0,
) -> Particles:
    """Fill the inside of a level set from a .vdb file with particles, eight a cell.

    Args:
        material: Material of the particles.
        path: The .vdb file.
        grid: Name of the level set; may stay empty when the file holds only one.
        scale: Factor on all lengths, about the origin.
        rotation: Turns about x, then y, then z, about the origin, after scaling.
        translation: Shift after scaling and turning.
        velocity: Initial velocity.
        angular_velocity: Initial spin about the middle of the particles.
        seeding: Lattice (8 per cell, aligned with the grid) or Poisson disc (least distance 0.42 cells).
        jitter: Random shift of lattice points, as a fraction of their spacing.
        stiffness_variation: Half width of a random factor on the stiffness of each particle; 0 makes all equal.
        seed: Seed of the random choices.
    """
    placement = Placement(translation, rotation, velocity, angular_velocity, seeding, jitter, stiffness_variation, seed)
    region = _level_set_region(path, _stamp(path), grid, scale)
    return fill_region("emit_level_set", region, placement, settings, material)


@node(category="Emit", label="Mesh Emitter", version=1)
def emit_mesh(
    settings: GraphSettings,
    material: Material,
    *,
    path: Path,
    prim: str = "",
    frame: A[float, Frames] = 1.0,
    thickness: A[float, Metres, Range(min=0.0, soft_max=1.0)] = 0.0,
    rotation: A[Vec3, Degrees] = (0.0, 0.0, 0.0),
    translation: A[Vec3, Metres] = (0.0, 0.0, 0.0),
    velocity: A[Vec3, MetresPerSecond] = (0.0, 0.0, 0.0),
    angular_velocity: A[Vec3, RadiansPerSecond] = (0.0, 0.0, 0.0),
    seeding: Seeding = Seeding.LATTICE,
    jitter: A[float, Unitless, _Fraction] = 0.0,
    stiffness_variation: A[float, Unitless, _Fraction] = 0.0,
    seed: int = 0,
) -> Particles:
    """Fill the inside of a mesh from a USD file with particles, eight a cell.

    Small holes are closed, turned and overlapping parts still give the right inside (winding numbers), with a warning.

    Args:
        material: Material of the particles.
        path: USD file.
        prim: Path or name of a mesh, or of a prim above meshes; empty for the whole stage.
        frame: Time code at which the mesh is read.
        thickness: 0 fills the inside; above 0 fills all within half of it around the surface, for sheets.
        rotation: Turns about x, then y, then z, about the origin.
        translation: Shift after turning.
        velocity: Initial velocity.
        angular_velocity: Initial spin about the middle of the particles.
        seeding: Lattice (8 per cell, aligned with the grid) or Poisson disc (least distance 0.42 cells).
        jitter: Random shift of lattice points, as a fraction of their spacing.
        stiffness_variation: Half width of a random factor on the stiffness of each particle; 0 makes all equal.
        seed: Seed of the random choices.
    """
    placement = Placement(translation, rotation, velocity, angular_velocity, seeding, jitter, stiffness_variation, seed)
    region, findings = _mesh_region(path, _stamp(path), prim, frame, thickness, 0.25 * settings.cell_size)
    if findings:
        warnings.warn(f"emit_mesh: {path.name}: the mesh has {findings}", stacklevel=2)
    return fill_region("emit_mesh", region, placement, settings, material)


@node(category="Emit", label="Stream", version=1)
def emit_stream(
    settings: GraphSettings,
    template: Particles,
    *,
    velocity: A[Vec3, MetresPerSecond] = (0.0, -1.0, 0.0),
    start_frame: A[float, Frames] = 1.0,
    duration: A[float, Frames, Range(min=0.0, soft_max=240.0)] = 0.0,
) -> Emitter:
    """Let particles stream without end out of the place that the template fills.

    Args:
        template: Particles that fill the nozzle, best with straight ends: copies follow one another without gap. Their own velocity
            is replaced by that of the stream.
        velocity: Speed and direction of the stream.
        start_frame: First frame of the stream; before the shot's start it runs from the start.
        duration: Frames that it lasts; 0 for the whole shot.
    """
    if not len(template):
        raise MpmNodesError("emit_stream.template: holds no particles; wire an emitter that makes some")
    if not any(velocity):
        raise MpmNodesError("emit_stream.velocity: is zero, so nothing would flow; give a speed and a direction")
    start = (start_frame - settings.start) / settings.fps
    end = start + duration / settings.fps if duration > 0.0 else float("inf")
    columns = dict(template.attributes)
    columns["velocity"] = np.broadcast_to(np.asarray(velocity, np.float64), (len(template), 3))
    moving = Particles(columns, template.materials, template.spacing, template.time)
    return Emitter(moving, tuple(float(component) for component in velocity), max(start, 0.0), end)


@node(category="Emit", label="Drops", version=1)
def emit_drops(
    settings: GraphSettings,
    template: Particles,
    *,
    count: A[int, Unitless, Range(min=1, max=100_000, soft_max=100)] = 10,
    start_frame: A[float, Frames] = 1.0,
    interval: A[float, Frames, Range(min=0.0, soft_max=48.0)] = 12.0,
    spread: A[Vec3, Metres, Range(min=0.0, soft_max=10.0)] = (0.0, 0.0, 0.0),
    turn: A[Vec3, Degrees, Range(min=0.0, max=360.0)] = (0.0, 0.0, 0.0),
    velocity: A[Vec3, MetresPerSecond] = (0.0, 0.0, 0.0),
    seed: int = 0,
) -> Emitter:
    """Drop whole copies of a body one after the other, each somewhere else and turned another way.

    Give them time to fall out of each other's way: a copy that appears inside another one doubles the matter there.

    Args:
        template: The body: particles that some emitter made.
        count: How many copies.
        start_frame: Frame of the first copy.
        interval: Frames from one copy to the next.
        spread: Edges of the box around the template's place within which copies are put at random; neighbours in time lie
            in different thirds of its longest edge.
        turn: Whole range of the random turns about x, then y, then z, about the middle of the body.
        velocity: Initial velocity of every copy.
        seed: Seed of places and turns.
    """
    if not len(template):
        raise MpmNodesError("emit_drops.template: holds no particles; wire an emitter that makes some")
    middle = template["position"].mean(axis=0)
    drops, shares = [], _scattered(count, spread, np.random.default_rng([seed, 2]))
    angles = np.random.default_rng([seed, 3]).uniform(-0.5, 0.5, (count, 3)) * np.asarray(turn)
    for number in range(count):
        time = (start_frame + number * interval - settings.start) / settings.fps
        rotation = rotation_matrix(tuple(angles[number]))
        offset = middle - rotation @ middle + shares[number] * np.asarray(spread)
        drops.append(Drop(float(time), tuple(map(tuple, rotation.tolist())), tuple(offset.tolist())))
    seen = tuple(drop for drop in drops if drop.time >= 0.0)
    if not seen:
        raise MpmNodesError(f"emit_drops.start_frame: all {count} copies lie before frame {settings.start}, where the shot "
                            "begins; raise start_frame, or lower settings.start")
    return Emitter(template, tuple(map(float, velocity)), drops=seen)


def _scattered(count: int, spread: Vec3, random: np.random.Generator) -> np.ndarray:
    """Return places in the unit box about 0, shape (count, 3); along the longest edge the thirds take turns."""
    shares = random.uniform(-0.5, 0.5, (count, 3))
    longest = int(np.argmax(spread))
    thirds = np.array([1, 0, 2])[np.arange(count) % 3]
    shares[:, longest] = (thirds + 0.5 + shares[:, longest]) / 3.0 - 0.5
    return shares


@node(category="Emit", label="Merge Particles", version=1)
def merge_particles(sources: Many[Particles]) -> Particles:
    """Join particles of several sources: ids are renumbered, materials kept apart.

    Args:
        sources: What to join.
    """
    if not sources:
        raise MpmNodesError("merge_particles.sources: nothing is wired in; wire one or more emitters")
    return concatenate(sources)


# ---------------------------------------------------------------- regions from files
def _stamp(path: Path) -> tuple[int, int]:
    """Return what changes when the file does, so that a region can be kept between preflight and cook."""
    try:
        facts = path.stat()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); give the path of a file that exists") from error
    return facts.st_mtime_ns, facts.st_size


@functools.lru_cache(maxsize=4)
def _level_set_region(path: Path, stamp: tuple[int, int], grid: str, scale: float) -> Region:
    from mpm_nodes.kernels.regions import level_set_region
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
            "are no distances; resample it to cubic voxels"
        )
    return level_set_region(info.level_set, info.transform, scale)


@functools.lru_cache(maxsize=4)
def _mesh_region(
    path: Path, stamp: tuple[int, int], prim: str, frame: float, thickness: float, voxel_size: float
) -> tuple[Region, str]:
    """Return the region inside the meshes, and what was imperfect about them in words."""
    from mpm_nodes.kernels.mesh_level_set import mesh_level_set
    from mpm_nodes.kernels.mesh_repair import solid_mesh, triangulate
    from mpm_nodes.kernels.regions import solid_region
    from usd_io.collider_meshes import StageMeshes

    stage = StageMeshes(path, prim)
    topology = stage.topology(frame)
    points, (triangles, _) = stage.points(frame), triangulate(topology.counts, topology.indices)
    if thickness > 0.0:
        return solid_region(mesh_level_set(points, triangles, voxel_size, thickness, name=stage.name)), ""
    solid = solid_mesh(points, triangles, stage.name)
    body = mesh_level_set(solid.extended(points), solid.triangles, voxel_size, name=stage.name)
    return solid_region(body), solid.findings()


# ---------------------------------------------------------------- preflight
Estimate = Callable[[Mapping[str, Any], GraphSettings, Mapping[str, Any]], dict[str, Any]]


def _estimate_of(region_of: Callable[[Mapping[str, Any], GraphSettings], Region]) -> Estimate:
    def estimate(knobs: Mapping[str, Any], settings: GraphSettings, inputs: Mapping[str, Any]) -> dict[str, Any]:
        return seeding_estimate(region_of(knobs, settings), knobs, settings)

    return estimate


def _box_of(knobs: Mapping[str, Any], settings: GraphSettings) -> Region:
    from mpm_nodes.kernels.regions import box_region

    return box_region(knobs["size"])


def _ball_of(knobs: Mapping[str, Any], settings: GraphSettings) -> Region:
    from mpm_nodes.kernels.regions import sphere_region

    return sphere_region(knobs["radius"])


def _level_set_of(knobs: Mapping[str, Any], settings: GraphSettings) -> Region:
    return _level_set_region(knobs["path"], _stamp(knobs["path"]), knobs["grid"], knobs["scale"])


def _mesh_of(knobs: Mapping[str, Any], settings: GraphSettings) -> Region:
    path, cell = knobs["path"], 0.25 * settings.cell_size
    return _mesh_region(path, _stamp(path), knobs["prim"], knobs["frame"], knobs["thickness"], cell)[0]


def _dropped(knobs: Mapping[str, Any], settings: GraphSettings, inputs: Mapping[str, Any]) -> dict[str, Any]:
    body = sum(int(each.get("particles", 0)) for each in inputs.get("template", ()))
    return {"particles": body * int(knobs["count"])}


def _merged(knobs: Mapping[str, Any], settings: GraphSettings, inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {"particles": sum(int(each.get("particles", 0)) for each in inputs.get("sources", ()))}


emit_box.preflight = _estimate_of(_box_of)
emit_sphere.preflight = _estimate_of(_ball_of)
emit_level_set.preflight = _estimate_of(_level_set_of)
emit_mesh.preflight = _estimate_of(_mesh_of)
emit_drops.preflight = _dropped
merge_particles.preflight = _merged
