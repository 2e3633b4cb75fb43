"""Caches on disk: write a frame as USD and VDB, and read the points of a USD file as a source."""

from __future__ import annotations

import dataclasses
import json
import shutil
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import (
    A,
    Collider,
    FrameContext,
    Frames,
    GraphSettings,
    InputError,
    LevelSet,
    Many,
    Material,
    Mesh,
    Metres,
    MpmNodesError,
    OutputError,
    Particles,
    Range,
    RigidMotion,
    Unitless,
)
from mpm_nodes.graph.declare.decorators import PreflightContext, found_by, node
from mpm_nodes.graph.declare.knobs import LONGEST_LENGTH
from mpm_nodes.graph.time.keys import NotKeyable
from mpm_nodes.materials.black_body import emitted
from mpm_nodes.materials.looks import find_look, looks_of
from mpm_nodes.nodes.bodies import Body, marks
from mpm_nodes.nodes.collider_files import point_codes
from mpm_nodes.nodes.colours import COLOUR, GLOW, shown_colours
from mpm_nodes.nodes.libraries import OPENUSD, refuse_without_openvdb
from mpm_nodes.regular_files import check_utf8


@dataclass(frozen=True)
class CacheFrame:
    """Where a written frame lies, relative to the output folder.

    Attributes:
        stage: Root stage of the cache.
        layer: USD layer of the frame.
        volumes: VDB file of the frame, "" without volumes.
        number: Number of the frame in file names, and its time code.
    """

    stage: str
    layer: str
    volumes: str
    number: int


# ---------------------------------------------------------------- writing
_ONE_FORM = NotKeyable("all frames of a cache store particles alike")
NOT_WIRED = "write_cache: nothing is wired in; wire particles, mesh, volumes or colliders"


def _estimate(told: PreflightContext) -> dict[str, Any]:
    """Return the disk space of a frame from what the wired nodes expect to make; refuse a cache of nothing."""
    from usd_io.estimate import CACHE_BYTES, COLLIDER_POINT_BYTES, frame_bytes, refuse_far

    if not any(told.inputs.get(port) for port in ("particles", "mesh", "volumes", "colliders")):
        raise OutputError(NOT_WIRED)
    if told.inputs.get("volumes"):
        refuse_without_openvdb("write_cache.volumes")

    columns = marks(told, "particles")["columns"] if told.inputs.get("particles") else None
    if columns is not None:
        _refuse_unknown(sorted(columns), told.knobs["attributes"])
    bodies = told.distinct("particles", "bodies")
    farthest = max((float(np.abs(body.place).max()) for body in bodies), default=0.0)
    refuse_far("write_cache", farthest, 0.5 * told.settings.cell_size)
    particles, mesh, voxels = told.mean("particles"), told.mean("mesh", "mesh_points"), told.mean("volumes", "voxels")
    packed = told.knobs.get("position_precision", 0.0) > 0.0
    moving = COLLIDER_POINT_BYTES * (told.total("colliders", "mesh_points") - told.total("colliders", "still_points"))
    still = COLLIDER_POINT_BYTES * told.total("colliders", "still_points")
    unmoved = ", ".join(f"'{name}'" for name in told.distinct("colliders", "rigid_bodies"))
    warnings = [f"write_cache.colliders: {unmoved} is drawn where it begins; wire a moved_body in between"] if unmoved else []
    if told.inputs.get("bodies") and not told.total("bodies", "tells_forces"):
        warnings.append("write_cache.bodies: the solve tells no forces on colliders; turn its contact_forces on")
    disk = frame_bytes(particles, told.knobs["attributes"], mesh, voxels, told.knobs["half"], packed) + moving
    return {
        "disk": disk,
        "disk_once": CACHE_BYTES + still,
        "shared": OPENUSD,
        "writes": (f"{told.knobs['name']}.usda",),
        "warnings": warnings,
    }


@found_by("export", "save", "output", "usd", "alembic")
@node(category="Cache", label="Write Cache", version=1, preflight=_estimate)
def write_cache(
    ctx: FrameContext,
    particles: Particles | None = None,
    mesh: Mesh | None = None,
    volumes: Many[LevelSet] = (),
    colliders: Many[Collider] = (),
    bodies: RigidMotion | None = None,
    *,
    name: str = "cache",
    attributes: tuple[str, ...] = ("velocity", "id", "material", "mass", "volume"),
    half: bool = True,
    point_scale: A[float, Unitless, Range(min=0.0, exclusive_min=True, soft_max=3.0)] = 1.0,
    position_precision: A[float, Unitless, Range(min=0.0, max=0.1, soft_max=0.01), _ONE_FORM] = 0.0,
    mesh_per_material: bool = False,
) -> CacheFrame:
    """Write a frame as USD and VDB files, tied together by one stage that opens after every frame.

    Args:
        particles: Particles to write as points.
        mesh: Surface to write.
        volumes: Level sets, fogs and vector grids to write into one VDB file a frame.
        colliders: Collision bodies whose meshes are drawn.
        bodies: Output of a solve with `contact_forces`: force [N] on each collider that is drawn and torque about its centre [N m],
            means over the frame, are its `userProperties:force` and `userProperties:torque`.
        name: Name of the stage, and of the folder that holds its frames.
        attributes: Particle attributes to write besides the position; "*" writes all of them.
        half: Store volumes in 16 bits, which is plenty for rendering.
        point_scale: Drawn diameter of a particle over the diameter of a ball of its volume.
        position_precision: Most that positions of particles may be off, in cells: 0.001 packs them to half their size. Other
            programs see surface and volumes of such a cache, and only nodes of mpm_nodes its particles. 0 stores all exactly.
        mesh_per_material: Writes a mesh for each material, which meet point by point, in place of one closed mesh with a subset of
            faces for each. Blender needs it: it reads subsets in one frame only, and gives all faces of others the first look.
    """
    from usd_io import require_usd

    require_usd()
    from usd_io.stage import CacheNames, FrameContent, forget_still, frame_layer, root_layers, root_so_far, still_layer, still_prims
    from usd_io.tables import flatten_as_before
    from usd_io.volumes import write_volumes

    files = ctx.files
    if files is None:
        raise OutputError("write_cache: there is no output folder; cook the graph (mpm-nodes cook GRAPH --out DIR)")
    if particles is None and mesh is None and not volumes and not colliders:
        raise OutputError(NOT_WIRED)
    particles, mesh, chosen = _shown(particles, mesh, _chosen(ctx, particles, attributes))
    names, number, fps = CacheNames(name), files.number, ctx.settings.fps
    first = _first_number(files, name)
    layer_file = _new_path(files, names.layer(number))
    made_by = provenance(files)
    before = root_so_far(names, Path(files.folder), first, number - 1, fps, made_by)
    precision = position_precision * ctx.settings.cell_size
    forces = {} if bodies is None else bodies.forces
    content = FrameContent(particles, mesh, volumes, colliders, chosen, point_scale, precision, mesh_per_material, forces)
    begins = number == first or files.manifest.get("taken", {}).get("last") == files.frame - 1
    still = still_layer(names, colliders) if begins else None
    known = still_prims(still if begins else before)
    if begins and before is not None:  # cooked again from here: what stood still may move now
        forget_still(before, known)
    layer = frame_layer(names, number, fps, content, known)
    if before is not None:
        flatten_as_before(layer, before, number)
    around = root_layers(names, layer, first, number, fps, made_by, before, known)
    export_layer(layer, layer_file)
    files.finished(layer_file)
    if still is not None:
        export_layer(still, files.path(names.still))
    if volumes:
        volume_file = _new_path(files, names.volumes(number))
        facts = {"creator": "mpm_nodes", "frame": number, "fps": float(fps)}
        write_volumes(volume_file, volumes, facts, half)
        files.finished(volume_file)
    export_layer(around.manifest, files.path(names.manifest))
    export_layer(around.set, files.path(names.set))
    export_layer(around.root, files.path(names.stage))
    return CacheFrame(names.stage, names.layer(number), names.volumes(number) if volumes else "", number)


def _first_number(files: Any, name: str) -> int:
    """Return the number of the first frame of this cook; refuse gaps, which Blender plays as empty frames."""
    frames = sorted(files.frames())
    if frames != list(range(frames[0], frames[0] + len(frames))) or frames[-1] != files.frame:
        raise OutputError(
            f"write_cache: frame {files.frame} of {name!r} would leave a gap in frames {frames[0]} to "
            f"{frames[-1]}; cook every frame in order, or into a new folder with --out"
        )
    return files.number - (len(frames) - 1)


def _chosen(ctx: FrameContext, particles: Particles | None, attributes: tuple[str, ...]) -> list[str]:
    """Return the columns to write; names that neither the table nor the particles know are refused."""
    from usd_io.estimate import EVERY_ATTRIBUTE

    if particles is None:
        return []
    held = list(particles.attributes)
    _refuse_unknown(held, attributes)
    return held if EVERY_ATTRIBUTE in attributes else [a for a in attributes if a in held]


def _refuse_unknown(held: Collection[str], attributes: tuple[str, ...]) -> None:
    """Refuse names that neither the table nor particles with some columns know."""
    from mpm_nodes.data import ATTRIBUTES
    from usd_io.estimate import EVERY_ATTRIBUTE

    unknown = [each for each in attributes if each not in ATTRIBUTES and each not in held and each != EVERY_ATTRIBUTE]
    if unknown:
        raise OutputError(
            f"write_cache.attributes: {unknown[0]!r} is not an attribute of these particles; they have "
            f'{", ".join(held)} ("*" writes all)'
        )


def _shown(particles: Particles | None, mesh: Mesh | None, chosen: list[str]) -> tuple[Particles | None, Mesh | None, list[str]]:
    """Give each of several materials a colour of its own, unless the particles bring colours, and light to looks that glow."""
    if mesh is not None and _glows(mesh.materials, mesh.attributes):
        light = emitted(np.asarray(mesh.attributes["temperature"]))
        mesh = dataclasses.replace(mesh, attributes={**mesh.attributes, GLOW: light})
    if particles is None:
        return None, mesh, chosen
    columns: dict[str, np.ndarray] = {}
    colours = shown_colours(particles)
    if colours is not None and COLOUR not in particles:
        columns[COLOUR] = colours
    if _glows(particles.materials, particles.attributes):
        columns |= {"temperature": particles["temperature"], GLOW: emitted(particles["temperature"])}
    if not columns:
        return particles, mesh, chosen
    return (
        dataclasses.replace(particles, attributes={**particles.attributes, **columns}),
        mesh,
        list(dict.fromkeys([*chosen, *columns])),
    )


def _glows(materials: tuple[Material, ...], attributes: Mapping[str, np.ndarray]) -> bool:
    """Whether matter has a look that glows, and the temperature for it."""
    return "temperature" in attributes and any(find_look(look).glows for look in looks_of(materials))


def provenance(files: Any) -> dict[str, Any]:
    """Return what made the cache, as USD metadata: graph and overrides as JSON text."""
    manifest = files.manifest
    facts: dict[str, Any] = {"frame_offset": files.number - files.frame}
    for name in ("package_version", "graph", "overrides"):
        if name in manifest:
            value = manifest[name]
            facts[name] = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return facts


def _new_path(files: Any, relative: str) -> Path:
    """Return the temporary path of a file of this frame alone; refuse two caches of one name."""
    path = files.path(relative)
    if path.exists():
        raise OutputError(
            f"write_cache.name: {relative} is already written in this frame by another node; give each "
            "write_cache a name of its own"
        )
    return path


def export_layer(layer: Any, path: Path) -> None:
    """Write a USD layer; raise `OutputError` where that fails."""
    from pxr import Tf

    try:
        check_utf8(path)
        done = layer.Export(str(path))
    except InputError as error:
        raise OutputError(f"{error}, or choose another folder with --out") from error
    except Tf.ErrorException as error:  # its text names places in OpenUSD's sources
        full = shutil.disk_usage(path.parent).free < 1 << 20
        why = "the disk is full; free some space" if full else "cannot be written; check folder, permissions and free space"
        raise OutputError(f"{path}: {why}, then continue with --resume") from error
    if not done:
        raise OutputError(f"{path}: cannot be written; check folder, permissions and free space")


# ---------------------------------------------------------------- reading
def _found(told: PreflightContext) -> dict[str, Any]:
    """Tell what the first frame of the shot brings: a box around the points of each material, and what they carry.

    Where that frame cannot be read nothing is told: the node itself says why.

    Raises:
        InputError: The file cannot be opened.
    """
    wired, knobs = told.every("material", "materials"), told.knobs
    stage = _opened(knobs["path"])
    if told.inputs.get("material") and not wired:
        return {}
    try:
        frame = told.settings.start + knobs["frame_offset"]
        found = _read(told.settings, frame, next(iter(wired), None), stage, knobs["path"], knobs["prim"], knobs["spacing"])
    except MpmNodesError:
        return {}
    half = 0.5 * found.spacing
    bodies = []
    for index in np.unique(found["material"]):
        mine = found["position"][found["material"] == index]
        low, high = mine.min(axis=0) - half, mine.max(axis=0) + half
        bodies.append(Body(found.materials[index], np.diag(high - low), 0.5 * (low + high)))
    heated = "heat_source" in found and bool(np.any(found["heat_source"]))
    return {"particles": len(found), "bodies": tuple(bodies), "heated": heated, "scaled": "tension_scale" in found}


@node(category="Cache", label="Read Points", version=2, preflight=_found)
def read_points(
    ctx: FrameContext,
    material: Material | None = None,
    *,
    path: Path,
    prim: str = "",
    frame_offset: A[int, Frames] = 0,
    spacing: A[float, Metres, Range(min=0.0, soft_max=1.0)] = 0.0,
) -> Particles:
    """Read points from a USD file as particles, in metres and Y up, with every attribute that they carry.

    Frame and file meet in seconds: frame f is time code f times the file's codes per second over the graph's fps. Frames of our
    own caches are taken by number. `retime_points` plays what has another rate.

    Velocities, ids and primvars that bear the name of a particle attribute (`v`, `F`, `stiffness`, ...) fill it; others
    are carried along. Mass and volume follow from the material and the spacing where the file has none.

    Args:
        material: Material of all points; without it, the materials stored in a cache of ours.
        path: USD file.
        prim: Path or name of the Points prim; may stay empty when the file holds only one.
        frame_offset: Added to the frame number before the file is read.
        spacing: Distance of neighbouring points; 0 takes it from the file, or from its widths.
    """
    if ctx.frame <= ctx.settings.start:
        _tell_of_another_rate(path, ctx.settings.fps)
    return _read(ctx.settings, ctx.frame + frame_offset, material, _opened(path), path, prim, spacing)


def _tell_of_another_rate(path: Path, fps: float) -> None:
    """Warn where a cache of ours has other frames per second than the shot: its velocities do not fit its frames then."""
    from usd_io import require_usd

    require_usd()
    from usd_io.stage_reader import is_ours, open_stage
    from usd_io.time_codes import per_second

    stage = open_stage(path)
    its = per_second(stage)
    if is_ours(stage) and stage.GetStartTimeCode() < stage.GetEndTimeCode() and its != fps:
        warnings.warn(
            f"read_points: {path.name} has {its:g} frames a second and the shot {fps:g}: its frames come one by one, and its "
            "velocities do not fit them; retime_points plays it at the shot's rate",
            stacklevel=3,
        )


def _opened(path: Path) -> Any:
    from usd_io import require_usd

    require_usd()
    from usd_io.stage_reader import open_stage

    return open_stage(path)


def _read(
    settings: GraphSettings, frame: int, material: Material | None, stage: Any, path: Path, prim: str, spacing: float
) -> Particles:
    """Return the particles of a stage, opened from a file, at a frame of the shot."""
    from usd_io.stage_reader import read_points as read_from_stage

    found = read_from_stage(stage, frame, prim, point_codes(settings, stage))
    materials = (material,) if material is not None else found.materials
    if not materials:
        raise InputError(f"read_points.material: {path} carries no materials of ours; wire a material into it")
    return completed(found, materials, spacing or found.spacing, path, material is not None)


def completed(found: Particles, materials: tuple[Material, ...], spacing: float, file: Path, one_material: bool) -> Particles:
    """Return particles that were read with a sound material column, volume and mass.

    Args:
        found: What the file holds.
        materials: What its materials are to be.
        spacing: Distance of neighbouring particles [m].
        file: The file, for messages.
        one_material: Whether all particles are of the first material, whatever the file says.

    Raises:
        InputError: Material numbers without a material, or no spacing.
    """
    columns, count = dict(found.attributes), len(found)
    if one_material or "material" not in columns:
        columns["material"] = np.zeros(count, np.int32)
    index = columns["material"]
    if count and not (index.min() >= 0 and index.max() < len(materials)):
        raise InputError(
            f"read_points: {file}: material numbers {index.min()} to {index.max()}, {len(materials)} are "
            "stored; wire a material into the node"
        )
    if not 0.0 < spacing <= LONGEST_LENGTH:
        told = f"tells of {spacing:g} m" if spacing else "has neither volumes nor widths that tell it"
        raise InputError(f"read_points.spacing: {file} {told}; give it in metres")
    columns.setdefault("velocity", np.zeros((count, 3), np.float32))
    if "volume" not in columns:
        columns["volume"] = np.full(count, spacing**3)
    if "mass" not in columns or one_material:
        columns["mass"] = np.array([m.density for m in materials])[columns["material"]] * columns["volume"]
    return Particles(columns, materials, spacing, found.time)
