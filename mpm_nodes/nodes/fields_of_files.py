"""Fields from files: grids of .vdb files, and primvars over the faces of USD meshes."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from mpm_nodes.data import (
    A,
    FieldGrid,
    FrameContext,
    GraphSettings,
    InputError,
    Metres,
    MpmNodesError,
    Range,
    SpatialField,
    SurfaceField,
    Unitless,
    Vec3,
)
from mpm_nodes.graph.declare.decorators import ContentsContext, PreflightContext, node
from mpm_nodes.graph.time.keys import KeyedNumber, KeysTravel, carries_keys
from mpm_nodes.graph.values.kept import NOTHING_KEPT, Kept
from mpm_nodes.nodes.collider_files import open_meshes, shot_codes, stamp
from mpm_nodes.nodes.collider_motion import key_frames, sampled
from mpm_nodes.nodes.collider_volumes import sequence_files
from mpm_nodes.nodes.fields import constant, moved, place, scaled
from mpm_nodes.nodes.inside_meshes import carried_inward

__all__ = ["GridEdge", "Interpolation", "MeshFrames", "cubes", "over_faces", "primvar_values"]

_Number = A[float, Unitless, KeysTravel()]
_Scale = A[float, Unitless, Range(min=0.0, exclusive_min=True, soft_max=100.0), KeysTravel()]
Made = TypeVar("Made")


class Interpolation(enum.Enum):
    """What a sequence of files is between two frames.

    LINEAR: values go straight from one file's to the next one's.
    HELD: those of a file stay until the frame of the next one.
    """

    LINEAR = "linear"
    HELD = "held"


class GridEdge(enum.Enum):
    """What is where a grid ends.

    FADE: values go over to `outside` within a voxel: for velocities, densities, masks.
    EXTEND: they stay up to half a voxel beyond, and `outside` begins there: for temperatures.
    SPREAD: they are averaged over cells of the solve, and reach one and a half beyond: for what is painted on surfaces.
    """

    FADE = "fade"
    EXTEND = "extend"
    SPREAD = "spread"


# ---------------------------------------------------------------- grids
def _told_of_grid(told: PreflightContext) -> dict[str, Any]:
    """Preflight: what is wrong with the file of the first frame is told now."""
    made = field_vdb(FrameContext(told.settings.start, told.settings), told.settings, told.kept, **told.knobs)
    return {"vector": made.vector, "field": made}


def _files_contents(told: ContentsContext) -> list[Any]:
    """Say which files of a sequence are taken at a frame; without `sequence` the one file counts."""
    if not told.knobs["sequence"]:
        return [told.of_file(told.path)]
    files = sequence_files(told.frame, told.settings, told.path, told.knobs["frame_offset"])
    return [told.of_file(file) for file in files[: 1 if told.knobs["interpolation"] is Interpolation.HELD else None]]


@node(category="Field", label="Field from VDB", preflight=_told_of_grid, contents={"path": _files_contents})
def field_vdb(
    ctx: FrameContext,
    settings: GraphSettings,
    kept: Kept = NOTHING_KEPT,
    *,
    path: Path,
    grid: str = "vel",
    sequence: bool = False,
    interpolation: Interpolation = Interpolation.LINEAR,
    frame_offset: int = 0,
    edge: GridEdge = GridEdge.FADE,
    outside: _Number = 0.0,
    strength: _Number = 1.0,
    translate: A[Vec3, Metres, KeysTravel()] = (0.0, 0.0, 0.0),
    scale: _Scale = 1.0,
) -> SpatialField:
    """Be what a grid of a .vdb file says: the velocities of smoke that carries matter along, a temperature, a mask, a distance.

    Between voxels values are trilinear. Files of a sequence and keys are sampled at every substep.

    Args:
        path: The file; for a sequence any of its files (name.0001.vdb) or a pattern (name.####.vdb).
        grid: Name of a grid of numbers or of vectors.
        sequence: One file a frame.
        interpolation: What a sequence is between two frames: `linear` blends its files, `held` keeps each until the next.
        frame_offset: Added to the frame number to find the file of a sequence.
        edge: What is where the grid ends.
        outside: Value where the grid has no voxels, and where they hold its background.
        strength: Factor on the values.
        translate: Moves the grid; keys carry it along with a body, or let it sweep over the matter.
        scale: Factor on all lengths of the file, for files that are not in metres.

    Raises:
        InputError: A file cannot be read, or has no such grid.
        MpmNodesError: A grid of vectors is to be spread.
    """
    largest = max(float(key[1]) for key in scale.keys) if isinstance(scale, KeyedNumber) else scale

    def of(file: Path) -> SpatialField:
        where = (moved(translate, size=scale),)
        if edge is GridEdge.SPREAD:
            cell = settings.cell_size / largest
            cubes = kept.get(("cubes", *stamp(file), grid, cell), lambda: _cubes_of_grid(file, grid, cell))
            near = SpatialField("CUBES", where, grid=cubes)
            return SpatialField("FILLED", (near, constant(outside)))
        voxels = kept.get(("field", *stamp(file), grid), lambda: _field_grid(file, grid))
        left_out = float(edge is GridEdge.EXTEND)
        return SpatialField("GRID", where, (outside, left_out), vector=voxels.parts == 3, grid=voxels)

    found = _blended_files(ctx, path, frame_offset if sequence else None, interpolation, of)
    if len(found) == 1:
        return _times(found[0][1], strength)
    (begin, first), (end, second) = found
    if first.vector != second.vector:
        raise MpmNodesError(f"field_vdb.grid: '{grid}' holds numbers in one file of the sequence {path} and vectors in another")
    share = constant(KeyedNumber(((begin, 0.0, "linear"), (end, 1.0, "linear"))))
    return _times(SpatialField("MIX", (first, second, share), vector=first.vector), strength)


def _times(field: SpatialField, strength: float) -> SpatialField:
    return field if strength == 1.0 and not carries_keys(strength) else scaled(field, constant(strength))


def _blended_files(
    ctx: FrameContext, path: Path, offset: int | None, interpolation: Interpolation, make: Callable[[Path], Made]
) -> list[tuple[float, Made]]:
    """Return what is made of each file that a frame takes, with the frame that it belongs to: one, or two of a sequence."""
    if offset is None:
        return [(float(ctx.frame), make(path))]
    frames = [ctx.frame] if ctx.frame <= ctx.settings.start else [ctx.frame - 1, ctx.frame]
    files = dict(zip(map(float, frames), sequence_files(ctx.frame, ctx.settings, path, offset), strict=True))
    return [(frame, make(files[frame])) for frame in list(files)[: 1 if interpolation is Interpolation.HELD else None]]


def _read(path: Path, grid: str) -> Any:
    from usd_io.volumes import read_volumes

    return read_volumes(path, [grid])[grid]


def _field_grid(path: Path, grid: str) -> FieldGrid:
    from mpm_nodes.kernels.level_sets.vector_leaves import leaf_keys

    found = _read(path, grid)
    leaves, parts = found.level_set, 3 if found.kind == "vector" else 1
    keys = leaf_keys(leaves.origins)
    order = np.argsort(keys)
    voxels = np.array(leaves.values, np.float32).reshape(len(keys), 512, parts)[order]
    if found.kind != "level_set":  # there the background is a distance
        voxels[(voxels == np.float32(leaves.background)).all(axis=2)] = np.nan  # nobody wrote them
    return FieldGrid(keys[order], voxels.ravel(), np.linalg.inv(found.transform)[:3], parts)


def _cubes_of_grid(path: Path, grid: str, cell: float) -> FieldGrid:
    """Return the voxels of a grid that differ from its background as samples on cubes no smaller than they lie apart."""
    found = _read(path, grid)
    if found.kind in ("vector", "level_set"):
        raise InputError(f"{path}: grid '{grid}' is a {found.kind.replace('_', ' ')}; name a grid of numbers, or let its edge fade")
    leaves = found.level_set
    leaf, i, j, k = np.nonzero(leaves.values != np.float32(leaves.background))
    index = np.asarray(leaves.origins, float)[leaf] + np.stack([i, j, k], axis=1)
    places = index @ found.transform[:3, :3].T + found.transform[:3, 3]
    apart = float(np.linalg.norm(found.transform[:3, :3], axis=0).max())
    return cubes("field_vdb.grid", places, leaves.values[leaf, i, j, k].astype(float), max(cell, apart))


def cubes(where: str, places: np.ndarray, values: np.ndarray, edge: float) -> FieldGrid:
    """Return samples on cubes; `where` is the node and knob that messages name."""
    try:
        found = SurfaceField.of_samples(places, values, edge, 0.0)
    except MpmNodesError as error:
        raise MpmNodesError(f"{where}: {error}") from None
    to_index = np.concatenate([np.eye(3) / edge, np.zeros((3, 1))], axis=1)
    return FieldGrid(found.keys, found.values.astype(np.float32), to_index, 1)


# ---------------------------------------------------------------- primvars
def _told_of_primvar(told: PreflightContext) -> dict[str, Any]:
    """Preflight: a mesh or a primvar that cannot be used at the first frame is told now."""
    made = field_primvar(FrameContext(told.settings.start, told.settings), told.settings, told.kept, **told.knobs)
    return {"vector": False, "field": made}


def _primvar_contents(told: ContentsContext) -> str:
    return primvar_contents(told, told.knobs["primvar"])


def primvar_contents(told: ContentsContext, primvar: str) -> str:
    """Say what counts of meshes and their primvar over the interval that ends at a frame.

    Args:
        told: What the node is told; it has the knobs prim, frame_offset and animated.
        primvar: Name of the primvar.
    """
    meshes = open_meshes(told.kept, told.path, told.knobs["prim"])
    codes = shot_codes(told.settings, meshes.stage)
    frame = told.frame if told.knobs["animated"] else told.settings.start
    frames = [each + told.sample("frame_offset", each) for each in key_frames(FrameContext(frame, told.settings))]
    return str(meshes.digest([codes.code(frame) for frame in frames], primvar=primvar))


class MeshFrames(NamedTuple):
    """Meshes of a stage over the frame being cooked.

    Attributes:
        meshes: The meshes (`usd_io.collider_meshes.StageMeshes`).
        codes: Time code of each frame at which they are looked at.
        alike: Whether they and their primvar are the same at all of these.
    """

    meshes: Any
    codes: dict[float, float]
    alike: bool

    @classmethod
    def of(cls, ctx: FrameContext, meshes: Any, primvar: str, frame_offset: float, animated: bool) -> MeshFrames:
        """Return them at a frame.

        Args:
            ctx: The frame.
            meshes: The meshes.
            primvar: Name of the primvar that counts.
            frame_offset: As of the nodes.
            animated: Whether they are looked at in every frame; else at the first one.
        """
        codes = shot_codes(ctx.settings, meshes.stage)
        frames = [float(frame) for frame in key_frames(ctx)] if animated else [float(ctx.settings.start)]
        of_file = {frame: codes.code(frame + float(sampled(ctx, "frame_offset", frame_offset, frame))) for frame in frames}
        return cls(meshes, of_file, len({meshes.digest([code], primvar=primvar) for code in of_file.values()}) == 1)

    def course(self, at: Callable[[float], SpatialField], outside: SpatialField) -> SpatialField:
        """Return what is made of the meshes at each time code, straight in between, and what is where there is nothing."""
        frames = list(self.codes)
        if self.alike:
            return SpatialField("FILLED", (at(self.codes[frames[-1]]), outside))
        course = SpatialField("COURSE", tuple(at(self.codes[frame]) for frame in frames), tuple(frames))
        return SpatialField("FILLED", (course, outside))


@node(category="Field", label="Field from Primvar", preflight=_told_of_primvar, contents={"path": _primvar_contents})
def field_primvar(
    ctx: FrameContext,
    settings: GraphSettings,
    kept: Kept = NOTHING_KEPT,
    *,
    path: Path,
    prim: str = "",
    primvar: str = "mask",
    frame_offset: A[float, Unitless] = 0.0,
    animated: bool = True,
    inside: bool = False,
    outside: _Number = 0.0,
) -> SpatialField:
    """Be what a primvar has on the surface of USD meshes: a painted mask, a vertex group, temperatures; both may be animated.

    Values are averaged over cells of the solve, and reach one and a half beyond the surface; by `inside` through closed meshes.

    Args:
        path: The USD file.
        prim: Prim at or below which meshes are taken; empty takes all.
        primvar: Name of the primvar, one number a point, a corner, a face, or one for all.
        frame_offset: Added to the frame number before the stage is read.
        animated: Whether it is read at every frame; else at the shot's first one, for matter that streams in later too.
        inside: Whether places inside of the meshes have the value of the nearest one on the surface; else that is `outside`.
        outside: Value away from the meshes.

    Raises:
        InputError: The file cannot be read, or a mesh has no such primvar.
        MpmNodesError: A value is not finite, or the meshes are too large for the cells.
    """
    over, where = MeshFrames.of(ctx, open_meshes(kept, path, prim), primvar, frame_offset, animated), "field_primvar"

    def samples(code: float) -> FieldGrid:
        places, values = _values_at(where, over.meshes, primvar, code, settings)
        if inside:
            places, values = carried_inward(where, places, values, _triangles(over.meshes, code), settings.cell_size)
        return cubes(f"{where}.primvar", places, values, settings.cell_size)

    def at(code: float) -> SpatialField:
        if not inside:
            return SpatialField("CUBES", (place(),), grid=samples(code))
        key = ("inside", over.meshes.digest([code], primvar=primvar), settings.cell_size)
        return SpatialField("CUBES", (place(),), grid=kept.get(key, lambda: samples(code)))

    return over.course(at, constant(outside))


def primvar_values(
    where: str, file: tuple[Path, str, str], frame: float, settings: GraphSettings, kept: Kept
) -> tuple[np.ndarray, np.ndarray]:
    """Return places on USD meshes [m], shape (n, 3), and what a primvar has there, shape (n,).

    Args:
        where: Node that messages name.
        file: Path, prim at or below which meshes are taken, and name of the primvar.
        frame: Frame at which they are read.
        settings: Of the graph.
        kept: What the node keeps between frames.

    Raises:
        InputError: The file cannot be read, or a mesh has no such primvar.
        MpmNodesError: The meshes are too large for the cells.
    """
    path, prim, primvar = file
    meshes = open_meshes(kept, path, prim)
    return _values_at(where, meshes, primvar, shot_codes(settings, meshes.stage).code(frame), settings)


def _values_at(where: str, meshes: Any, primvar: str, code: float, settings: GraphSettings) -> tuple[np.ndarray, np.ndarray]:
    from mpm_nodes.kernels.level_sets.mesh_repair import triangulate

    points, triangles = _triangles(meshes, code)
    if meshes.by_point(primvar, code):
        values = meshes.values(primvar, code)
        places, (samples,) = over_faces(where, points[triangles], [values[triangles]], 0.5 * settings.cell_size)
        return np.concatenate([points, places]), np.concatenate([values, samples])
    corners = meshes.corner_values(primvar, code, 1)[:, 0]
    of_triangles = corners[triangulate(meshes.topology(code).counts, np.arange(len(corners)))[0]]
    places, (samples,) = over_faces(where, points[triangles], [of_triangles], 0.5 * settings.cell_size)
    return places, samples


def _triangles(meshes: Any, code: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the points of meshes [m], shape (n, 3), and their triangles, shape (m, 3)."""
    from mpm_nodes.kernels.level_sets.mesh_repair import triangulate

    topology = meshes.topology(code)
    return meshes.points(code), triangulate(topology.counts, topology.indices)[0]


def over_faces(
    where: str, corners: np.ndarray, values: Sequence[np.ndarray], spacing: float
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return places on triangles, no farther than a spacing apart, and the values there, straight between corners.

    Args:
        where: Node that messages name.
        corners: Of the triangles [m], shape (m, 3, 3).
        values: At these corners, shape (m, 3) each.
        spacing: [m].

    Raises:
        MpmNodesError: The meshes are too large for such a spacing.
    """
    longest = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1, initial=0.0)
    parts = np.maximum(np.ceil(longest / spacing), 1.0).astype(np.int64)
    if float((parts.astype(float) ** 2).sum()) > 2e8:
        raise MpmNodesError(f"{where}.path: the meshes are too large for these cells; raise settings.cell_size")
    places, samples = [np.zeros((0, 3))], [[np.zeros(0)] for _ in values]
    for n in np.unique(parts):
        chosen = parts == n
        i, j = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
        a, b = (each[i + j <= n] / n for each in (i, j))
        weights = np.stack([a, b, 1.0 - a - b], axis=1)
        places.append((weights @ corners[chosen]).reshape(-1, 3))
        for found, told in zip(samples, values, strict=True):
            found.append((told[chosen] @ weights.T).reshape(-1))
    return np.concatenate(places), [np.concatenate(each) for each in samples]
