"""Fields from files: grids of .vdb files, primvars over the faces of USD meshes, and pictures."""

from __future__ import annotations

import enum
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from mpm_nodes.data import (
    A,
    Degrees,
    FieldGrid,
    FrameContext,
    GraphSettings,
    InputError,
    Metres,
    MpmNodesError,
    Orientation,
    Range,
    SpatialField,
    SurfaceField,
    Unitless,
    Vec3,
)
from mpm_nodes.graph.declare.decorators import ContentsContext, PreflightContext, node
from mpm_nodes.graph.time.keys import KeyedNumber, KeysTravel, NotKeyable, carries_keys
from mpm_nodes.graph.values.kept import NOTHING_KEPT, Kept
from mpm_nodes.nodes.collider_files import open_meshes, shot_codes, stamp
from mpm_nodes.nodes.collider_motion import key_frames, sampled
from mpm_nodes.nodes.collider_volumes import sequence_files
from mpm_nodes.nodes.fields import constant, moved, place, scaled
from mpm_nodes.nodes.rotations import TURNS, UNTURNED, turn_matrix

__all__ = ["GridEdge", "Interpolation", "primvar_values"]

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
    return _cubes("field_vdb.grid", places, leaves.values[leaf, i, j, k].astype(float), max(cell, apart))


def _cubes(where: str, places: np.ndarray, values: np.ndarray, edge: float) -> FieldGrid:
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
    """Say what counts of meshes and their primvar over the interval that ends at a frame."""
    meshes = open_meshes(told.kept, told.path, told.knobs["prim"])
    codes = shot_codes(told.settings, meshes.stage)
    frame = told.frame if told.knobs["animated"] else told.settings.start
    frames = [each + told.sample("frame_offset", each) for each in key_frames(FrameContext(frame, told.settings))]
    return str(meshes.digest([codes.code(frame) for frame in frames], primvar=told.knobs["primvar"]))


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
    outside: _Number = 0.0,
) -> SpatialField:
    """Be what a primvar has on the surface of USD meshes: a painted mask, a vertex group, temperatures; both may be animated.

    Values are averaged over cells of the solve, and reach one and a half beyond the surface.

    Args:
        path: The USD file.
        prim: Prim at or below which meshes are taken; empty takes all.
        primvar: Name of the primvar, one number a point, or one for all.
        frame_offset: Added to the frame number before the stage is read.
        animated: Whether it is read at every frame; else at the shot's first one, for matter that streams in later too.
        outside: Value away from the meshes.

    Raises:
        InputError: The file cannot be read, or a mesh has no such primvar.
        MpmNodesError: A value is not finite, or the meshes are too large for the cells.
    """
    meshes = open_meshes(kept, path, prim)
    codes = shot_codes(settings, meshes.stage)
    frames = [float(frame) for frame in key_frames(ctx)] if animated else [float(settings.start)]
    of_file = {frame: frame + float(sampled(ctx, "frame_offset", frame_offset, frame)) for frame in frames}
    told = {meshes.digest([codes.code(of_file[frame])], primvar=primvar) for frame in frames}

    def at(frame: float) -> SpatialField:
        places, values = primvar_values("field_primvar", (path, prim, primvar), of_file[frame], settings, kept)
        return SpatialField("CUBES", (place(),), grid=_cubes("field_primvar.primvar", places, values, settings.cell_size))

    if len(told) == 1:
        return SpatialField("FILLED", (at(frames[-1]), constant(outside)))
    course = SpatialField("COURSE", tuple(map(at, frames)), tuple(frames))
    return SpatialField("FILLED", (course, constant(outside)))


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
    from mpm_nodes.kernels.level_sets.mesh_repair import triangulate

    path, prim, primvar = file
    meshes = open_meshes(kept, path, prim)
    code = shot_codes(settings, meshes.stage).code(frame)
    topology, points, values = meshes.topology(code), meshes.points(code), meshes.values(primvar, code)
    return _over_faces(where, points, values, triangulate(topology.counts, topology.indices)[0], 0.5 * settings.cell_size)


def _over_faces(
    where: str, points: np.ndarray, values: np.ndarray, triangles: np.ndarray, spacing: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return places on triangles, no farther than a spacing apart, and the values there, straight between corners."""
    corners, told = points[triangles], values[triangles]
    longest = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1, initial=0.0)
    parts = np.maximum(np.ceil(longest / spacing), 1.0).astype(np.int64)
    if float((parts.astype(float) ** 2).sum()) > 2e8:
        raise MpmNodesError(f"{where}.path: the meshes are too large for these cells; raise settings.cell_size")
    places, samples = [points], [values]
    for n in np.unique(parts):
        chosen = parts == n
        i, j = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
        a, b = (each[i + j <= n] / n for each in (i, j))
        weights = np.stack([a, b, 1.0 - a - b], axis=1)
        places.append((weights @ corners[chosen]).reshape(-1, 3))
        samples.append((told[chosen] @ weights.T).reshape(-1))
    return np.concatenate(places), np.concatenate(samples)


# ---------------------------------------------------------------- pictures
class Channel(enum.Enum):
    """What of a picture counts, from 0 to 1 as it is stored.

    GREY: the brightness of its colour. COLOUR: red, green and blue as a vector.
    """

    GREY = "grey"
    RED = "red"
    GREEN = "green"
    BLUE = "blue"
    ALPHA = "alpha"
    COLOUR = "colour"


_STILL = NotKeyable("only the centre of a picture takes keys")
MOST_PIXELS = 1024
"""Pixels a side that are kept of a picture; larger ones are averaged down, since cells are far coarser."""


def _told_of_image(told: PreflightContext) -> dict[str, Any]:
    """Preflight: a picture that cannot be read is told now."""
    made = field_image(told.kept, **told.knobs)
    return {"vector": made.vector, "field": made}


@node(category="Field", label="Field from Image", preflight=_told_of_image, alternatives=TURNS)
def field_image(
    kept: Kept = NOTHING_KEPT,
    *,
    path: Path,
    channel: Channel = Channel.GREY,
    centre: A[Vec3, Metres, KeysTravel()] = (0.0, 0.0, 0.0),
    rotation: A[Vec3, Degrees, _STILL] = (0.0, 0.0, 0.0),
    orientation: A[Orientation, _STILL] = UNTURNED,
    width: A[float, Metres, Range(min=0.0, exclusive_min=True, soft_min=1e-3, soft_max=10.0, log=True), _STILL] = 1.0,
    outside: _Number = 0.0,
) -> SpatialField:
    """Be what a picture shows, thrown through space along its normal: a logo, a stencil, a painted mask.

    Untouched it stands upright, its right side along x and its top along y; between pixels values are bilinear.

    Args:
        path: The picture: PNG, JPEG, TIFF or what else Pillow reads; larger ones than 1024 pixels a side are averaged down.
        channel: What of it counts; numbers are as stored, 0 to 1.
        centre: Its middle; keys move it.
        rotation: Turns about x, then y, then z: (-90, 0, 0) lays it on the ground.
        orientation: Turns by a quaternion (w, x, y, z), in place of the angles.
        width: Of the picture; its height follows.
        outside: Value beside the picture.

    Raises:
        InputError: The file cannot be read, or is not a picture.
    """
    picture = kept.get(("picture", *stamp(path), channel), lambda: _picture(path, channel))
    height, across = picture.shape[:2]
    scale = across / width
    to_index = np.array([[scale, 0.0, 0.0, 0.5 * across - 0.5], [0.0, scale, 0.0, 0.5 * height - 0.5], [0.0, 0.0, 0.0, 0.0]])
    leaves, voxels = kept.get(("tiles", *stamp(path), channel), lambda: _tiles(picture))
    grid = FieldGrid(leaves, voxels, to_index, picture.shape[2])
    where = (moved(centre, turn_matrix(rotation, orientation)),)
    return SpatialField("GRID", where, (outside, 0.0), vector=grid.parts == 3, grid=grid)


def _picture(path: Path, channel: Channel) -> np.ndarray:
    """Return the pixels of a picture from 0 to 1, shape (rows from the bottom, columns, 1 or 3), float32."""
    from PIL import Image

    try:
        with Image.open(path) as opened:
            deep = {"F": 1.0}.get(opened.mode, 65535.0) if opened.mode.startswith(("I", "F")) else 0.0  # what counts as 1
            picture = opened.convert("F") if deep else opened.convert("RGBA")
    except Exception as error:  # Pillow raises many kinds for files that are broken
        raise InputError(f"{path}: cannot be read as a picture ({error}); export it again as PNG") from None
    largest = max(picture.size)
    if largest > MOST_PIXELS:
        across, high = (max(round(each * MOST_PIXELS / largest), 1) for each in picture.size)
        picture = picture.resize((across, high), Image.Resampling.BOX)
    pixels = np.asarray(picture, np.float32)[::-1]
    if deep:
        grey = np.clip(pixels / np.float32(deep), 0.0, 1.0)
        pixels = np.stack([grey, grey, grey, np.ones_like(grey)], axis=-1)
    else:
        pixels = pixels / np.float32(255.0)
    if channel is Channel.COLOUR:
        return pixels[..., :3]
    if channel is Channel.GREY:
        return (pixels[..., :3] @ np.array([0.2126, 0.7152, 0.0722], np.float32))[..., None]  # Rec. 709
    return pixels[..., [("red", "green", "blue", "alpha").index(channel.value)]]


def _tiles(picture: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a picture as leaves of a grid that is one voxel thick: their keys, and the voxels."""
    from mpm_nodes.kernels.level_sets.vector_leaves import leaf_keys

    height, across, parts = picture.shape
    rows, columns = -(-height // 8), -(-across // 8)
    whole = np.full((8 * columns, 8 * rows, parts), np.nan, np.float32)
    whole[:across, :height] = picture.transpose(1, 0, 2)
    tiles = whole.reshape(columns, 8, rows, 8, parts).transpose(0, 2, 1, 3, 4).reshape(columns * rows, 8, 8, parts)
    voxels = np.full((columns * rows, 8, 8, 8, parts), np.nan, np.float32)
    voxels[:, :, :, 0] = tiles
    first = 8 * np.stack([*np.meshgrid(np.arange(columns), np.arange(rows), indexing="ij")], -1).reshape(-1, 2)
    keys = leaf_keys(np.column_stack([first, np.zeros(len(first), np.int64)]))
    order = np.argsort(keys)
    return keys[order], voxels[order].ravel()
