"""Values of files at places, over a frame: VDB grids through space, primvars over the faces of USD meshes."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from mpm_nodes.data import FrameContext, GraphSettings, InputError, MpmNodesError, SpaceField, SurfaceField, Vec3
from mpm_nodes.data.field_courses import FieldCourse
from mpm_nodes.graph.declare.decorators import ContentsContext, PreflightContext
from mpm_nodes.graph.time import keys
from mpm_nodes.graph.values.kept import Kept
from mpm_nodes.nodes.collider_files import open_meshes, shot_codes, stamp
from mpm_nodes.nodes.collider_motion import key_frames, sampled
from mpm_nodes.nodes.collider_volumes import sequence_files

__all__ = [
    "GridValues",
    "Interpolation",
    "blended_files",
    "field_of",
    "files_contents",
    "first_values",
    "grid_values",
    "held_as_before",
    "over_files",
    "over_frame",
    "over_meshes",
    "primvar_contents",
    "primvar_values",
    "volume_of",
    "voxels",
]


Made = TypeVar("Made")


class Interpolation(enum.Enum):
    """What a sequence of files is between two frames.

    LINEAR: values go straight from one file's to the next one's.
    HELD: those of a file stay until the frame of the next one.
    """

    LINEAR = "linear"
    HELD = "held"


def field_of(where: str, places: np.ndarray, values: np.ndarray, edge: float, rest: float) -> SurfaceField:
    """Return the field of samples; `where` is the node and knob that messages name."""
    try:
        return SurfaceField.of_samples(places, values, edge, rest)
    except MpmNodesError as error:
        raise MpmNodesError(f"{where}: {error}") from None


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


def first_values(told: PreflightContext) -> np.ndarray:
    """Return what a node's primvar has at the first frame that it reads, shape (n,), for preflight.

    Raises:
        InputError: The file, a mesh or the primvar cannot be used.
    """
    meshes = open_meshes(told.kept, told.knobs["path"], told.knobs["prim"])
    frame = told.knobs["frame"] if "frame" in told.knobs else told.settings.start + told.knobs["frame_offset"]
    code = shot_codes(told.settings, meshes.stage).code(frame)
    meshes.points(code)
    return np.asarray(meshes.values(told.knobs["primvar"], code))


def primvar_contents(told: ContentsContext) -> str:
    """Say what counts of meshes and their primvar: at the frame that the node names, or over the interval that ends at a frame."""
    meshes = open_meshes(told.kept, told.path, told.knobs["prim"])
    codes = shot_codes(told.settings, meshes.stage)
    if "frame" in told.knobs:
        frames = [told.knobs["frame"]]
    else:
        frames = [each + told.sample("frame_offset", each) for each in key_frames(FrameContext(told.frame, told.settings))]
    at = [codes.code(frame) for frame in frames]
    return str(meshes.digest(at, primvar=told.knobs["primvar"]))


# ---------------------------------------------------------------- over a frame
def over_frame(ctx: FrameContext, knobs: tuple[str, ...], make: Callable[[float], SpaceField]) -> SpaceField:
    """Return a field over the frame: as `make` gives it at several of its moments where one of these knobs is keyed, else once."""
    frames = key_frames(ctx) if ctx.keyed & set(knobs) else key_frames(ctx)[-1:]
    return _course([float(frame) for frame in frames], make)


def over_meshes(
    ctx: FrameContext, kept: Kept, file: tuple[Path, str, str], offset: float, make: Callable[[float], SpaceField]
) -> SpaceField:
    """Return the field of a primvar over the frame: at several of its moments where meshes or primvar change, else once.

    Args:
        ctx: The frame.
        kept: What the node keeps between frames.
        file: Path, prim, and name of the primvar.
        offset: Knob `frame_offset`.
        make: Returns the field at a frame of the file.
    """
    path, prim, primvar = file
    meshes = open_meshes(kept, path, prim)
    codes = shot_codes(ctx.settings, meshes.stage)
    frames = [float(frame) for frame in key_frames(ctx)]
    of_file = {frame: frame + float(sampled(ctx, "frame_offset", offset, frame)) for frame in frames}
    told = {meshes.digest([codes.code(of_file[frame])], primvar=primvar) for frame in frames}
    return _course(frames if len(told) > 1 else frames[-1:], lambda frame: make(of_file[frame]))


def over_files(
    ctx: FrameContext, path: Path, offset: int | None, interpolation: Interpolation, make: Callable[[Path], SpaceField]
) -> SpaceField:
    """Return the field of a file over the frame, or of the sequence that it is one of.

    Args:
        ctx: The frame.
        path: The file.
        offset: Added to the frame number to find the file of a sequence; None: it is one file.
        interpolation: What a sequence is between its files.
        make: Returns the field of a file.

    Raises:
        InputError: The name of a sequence has no number.
    """
    found = blended_files(ctx, path, offset, interpolation, make)
    return found[0][1] if len(found) == 1 else FieldCourse(*zip(*found, strict=True))


def blended_files(
    ctx: FrameContext, path: Path, offset: int | None, interpolation: Interpolation, make: Callable[[Path], Made]
) -> list[tuple[float, Made]]:
    """Return what is made of each file that a frame takes, with the frame that it belongs to: one, or two of a sequence.

    Args and errors are those of `over_files`.
    """
    if offset is None:
        return [(float(ctx.frame), make(path))]
    frames = [ctx.frame] if ctx.frame <= ctx.settings.start else [ctx.frame - 1, ctx.frame]
    files = dict(zip(map(float, frames), sequence_files(ctx.frame, ctx.settings, path, offset), strict=True))
    return [(frame, make(files[frame])) for frame in list(files)[: 1 if interpolation is Interpolation.HELD else None]]


def files_contents(told: ContentsContext) -> list[Any]:
    """Say which files of a sequence `over_files` takes at a frame; without `sequence` the one file counts."""
    if not told.knobs["sequence"]:
        return [told.of_file(told.path)]
    files = sequence_files(told.frame, told.settings, told.path, told.knobs["frame_offset"])
    return [told.of_file(file) for file in files[: 1 if told.knobs["interpolation"] is Interpolation.HELD else None]]


def held_as_before(knobs: dict[str, Any], inputs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Upgrade a node to keep the files of a sequence that version 1 took: over a whole frame that of its end."""
    if not knobs.get("sequence"):
        return knobs, inputs
    offset = knobs.get("frame_offset", 0)
    later = {"keys": [[f, n + 1, mode] for f, n, mode in offset["keys"]]} if isinstance(offset, dict) else offset + 1
    return {**knobs, "interpolation": "held", "frame_offset": later}, inputs


def _course(frames: list[float], make: Callable[[float], SpaceField]) -> SpaceField:
    fields = tuple(make(frame) for frame in frames)
    return fields[0] if len(fields) == 1 else FieldCourse(tuple(frames), fields)


def volume_of(kept: Kept, path: Path, grid: str) -> Any:
    """Return a grid of numbers of a .vdb file (`usd_io.vdb_grids.VolumeInfo`)."""
    return kept.get(("values", *stamp(path), grid), lambda: _read(path, grid))


def _read(path: Path, grid: str) -> Any:
    from usd_io.volumes import read_volumes

    found = read_volumes(path, [grid])[grid]
    if found.kind in ("vector", "level_set"):
        raise InputError(f"{path}: grid '{grid}' is a {found.kind.replace('_', ' ')}; name a grid of numbers")
    return found


@dataclass(frozen=True, eq=False)
class GridValues:
    """A grid of numbers of a .vdb file, through space and trilinear.

    Attributes:
        origins: First voxel of each leaf, shape (leaves, 3).
        values: Sum of what is known, shape (leaves, 8, 8, 8, 3): the value, whether there is one, nothing.
        to_index: From the file's metres to voxel indices, shape (4, 4).
        translate: Moves the grid [m].
        scale: Factor on all lengths of the file.
        outside: Value where the grid holds none.
        fades: Whether values fall off to `outside` over a voxel where the grid ends; else they stay up to half a voxel beyond.
        factor: On the grid's values.
        painted: Where given, values are shares of the way from `outside` to it.

    Keys travel in the numbers: `at_frame` takes them.
    """

    origins: np.ndarray
    values: np.ndarray
    to_index: np.ndarray
    translate: Vec3 = (0.0, 0.0, 0.0)
    scale: float = 1.0
    outside: float = 0.0
    fades: bool = False
    factor: float = 1.0
    painted: float | None = None

    @classmethod
    def of(cls, volume: Any, fades: bool) -> GridValues:
        """Return the values of a grid (`usd_io.vdb_grids.VolumeInfo`)."""
        leaves = volume.level_set
        # the voxels of a leaf that nobody wrote hold the background
        held = leaves.values != np.float32(leaves.background)
        known = np.stack([np.where(held, leaves.values, 0.0), held, np.zeros_like(leaves.values)], axis=-1)
        origins = np.asarray(leaves.origins, np.int64).reshape(-1, 3)
        if fades:
            # voxels outside every leaf are left out of averages: empty leaves all around count as 0
            around = np.stack(np.meshgrid(*(np.array([-8, 0, 8]),) * 3, indexing="ij"), -1).reshape(-1, 3)
            whole, place = np.unique((origins[:, None] + around).reshape(-1, 3), axis=0, return_inverse=True)
            wide = np.zeros((len(whole), *known.shape[1:]), np.float32)
            wide[place.reshape(len(origins), 27)[:, 13]] = known
            origins, known = whole, wide
        return cls(origins, known, np.linalg.inv(volume.transform), fades=fades)

    def at_frame(self, frame: float) -> GridValues:
        """Return the values at a (fractional) frame."""
        numbers = {name: keys.at(getattr(self, name), frame) for name in ("translate", "scale", "outside", "factor", "painted")}
        return replace(self, **numbers)

    def at(self, places: np.ndarray) -> np.ndarray:
        """Return the values at places [m], shape (n, 3) to (n,)."""
        from mpm_nodes.kernels.level_sets.vector_leaves import sample_vectors

        index = ((places - np.asarray(self.translate)) / self.scale) @ self.to_index[:3, :3].T + self.to_index[:3, 3]
        found, held = sample_vectors(self.origins, self.values, index)
        total, share = found[:, 0], found[:, 1]
        if self.painted is not None:
            return self.outside + (self.painted - self.outside) * total
        if self.fades:
            return self.factor * total + self.outside * (1.0 - share)
        return np.where(held & (share > 1e-3), self.factor * total / np.maximum(share, 1e-3), self.outside)


def grid_values(kept: Kept, path: Path, grid: str, fades: bool = False) -> GridValues:
    """Return a grid of numbers of a .vdb file as values through space; `fades` as in `GridValues`."""
    return kept.get(("through space", *stamp(path), grid, fades), lambda: GridValues.of(_read(path, grid), fades))


def voxels(volume: Any, scale: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Return places [m] and values of all voxels of a grid that differ from its background, and how far apart they lie [m].

    A field of cubes smaller than that would have holes.
    """
    leaves = volume.level_set
    leaf, i, j, k = np.nonzero(leaves.values != np.float32(leaves.background))
    index = np.asarray(leaves.origins, float)[leaf] + np.stack([i, j, k], axis=1)
    apart = scale * float(np.linalg.norm(volume.transform[:3, :3], axis=0).max())
    places = scale * (index @ volume.transform[:3, :3].T + volume.transform[:3, 3])
    return places, leaves.values[leaf, i, j, k].astype(float), apart


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
