"""Fields from pictures: thrown through space along their normal, or laid over USD meshes by their UVs."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import (
    A,
    Degrees,
    FieldGrid,
    FrameContext,
    GraphSettings,
    InputError,
    Metres,
    Orientation,
    Range,
    SpatialField,
    Unitless,
    Vec3,
)
from mpm_nodes.graph.declare.decorators import ContentsContext, PreflightContext, node
from mpm_nodes.graph.time.keys import KeysTravel, NotKeyable
from mpm_nodes.graph.values.kept import NOTHING_KEPT, Kept
from mpm_nodes.nodes.collider_files import open_meshes, stamp
from mpm_nodes.nodes.fields import constant, moved, place, scaled
from mpm_nodes.nodes.fields_of_files import MeshFrames, cubes, over_faces, primvar_contents
from mpm_nodes.nodes.rotations import TURNS, UNTURNED, turn_matrix

__all__ = ["Channel"]

_Number = A[float, Unitless, KeysTravel()]


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
SAMPLED = 0.25
"""Cells from one sample of a picture on a mesh to the next."""
MOST_PIXELS = 1024
"""Pixels a side that are kept of a picture; larger ones are averaged down, since cells are far coarser."""


def _told_of_image(told: PreflightContext) -> dict[str, Any]:
    """Preflight: a picture that cannot be read is told now."""
    made = field_image(FrameContext(told.settings.start, told.settings), told.settings, told.kept, **told.knobs)
    return {"vector": made.vector, "field": made}


def _mesh_contents(told: ContentsContext) -> str:
    return primvar_contents(told, told.knobs["uv"])


@node(
    category="Field",
    label="Field from Image",
    preflight=_told_of_image,
    alternatives=TURNS,
    contents={"mesh": _mesh_contents},
)
def field_image(
    ctx: FrameContext,
    settings: GraphSettings,
    kept: Kept = NOTHING_KEPT,
    *,
    path: Path,
    channel: Channel = Channel.GREY,
    centre: A[Vec3, Metres, KeysTravel()] = (0.0, 0.0, 0.0),
    rotation: A[Vec3, Degrees, _STILL] = (0.0, 0.0, 0.0),
    orientation: A[Orientation, _STILL] = UNTURNED,
    width: A[float, Metres, Range(min=0.0, exclusive_min=True, soft_min=1e-3, soft_max=10.0, log=True), _STILL] = 1.0,
    outside: _Number = 0.0,
    mesh: Path | None = None,
    prim: str = "",
    uv: str = "st",
    frame_offset: A[float, Unitless, _STILL] = 0.0,
    animated: bool = True,
) -> SpatialField:
    """Be what a picture shows: thrown through space along its normal, a logo, a stencil; or laid over a mesh by its UVs.

    Untouched it stands upright, its right side along x and its top along y; between pixels values are bilinear. On meshes it
    repeats beyond UVs from 0 to 1; it is averaged over cells of the solve, and reaches one and a half beyond the surface.

    Args:
        path: The picture: PNG, JPEG, TIFF or what else Pillow reads; larger ones than 1024 pixels a side are averaged down.
        channel: What of it counts; numbers are as stored, 0 to 1.
        centre: Its middle, where there is no mesh; keys move it.
        rotation: Turns about x, then y, then z: (-90, 0, 0) lays it on the ground.
        orientation: Turns by a quaternion (w, x, y, z), in place of the angles.
        width: Of the picture; its height follows.
        outside: Value beside the picture, or away from the mesh.
        mesh: A USD file with meshes that the picture lies on, which may move and change their shape.
        prim: Prim at or below which these are taken; empty takes all.
        uv: Name of their primvar of UVs, by point or by corner: (0, 0) is at the bottom left of the picture.
        frame_offset: Added to the frame number before their file is read.
        animated: Whether that is read at every frame; else at the shot's first one, for matter that streams in later too.

    Raises:
        InputError: A file cannot be read, is not a picture, or has no such UVs.
        MpmNodesError: The meshes are too large for the cells.
    """
    picture = kept.get(("picture", *stamp(path), channel), lambda: _picture(path, channel))
    if mesh is not None:
        over = MeshFrames.of(ctx, open_meshes(kept, mesh, prim), uv, frame_offset, animated)
        return _on_meshes(over, picture, uv, outside, settings.cell_size)
    height, across = picture.shape[:2]
    scale = across / width
    to_index = np.array([[scale, 0.0, 0.0, 0.5 * across - 0.5], [0.0, scale, 0.0, 0.5 * height - 0.5], [0.0, 0.0, 0.0, 0.0]])
    leaves, voxels = kept.get(("tiles", *stamp(path), channel), lambda: _tiles(picture))
    grid = FieldGrid(leaves, voxels, to_index, picture.shape[2])
    where = (moved(centre, turn_matrix(rotation, orientation)),)
    return SpatialField("GRID", where, (outside, 0.0), vector=grid.parts == 3, grid=grid)


def _on_meshes(over: MeshFrames, picture: np.ndarray, uv: str, outside: float, cell: float) -> SpatialField:
    """Return a picture as it lies on meshes; of a colour each part by itself."""
    from mpm_nodes.kernels.level_sets.mesh_repair import triangulate

    def samples(code: float) -> tuple[np.ndarray, np.ndarray]:
        topology, points, corners = over.meshes.topology(code), over.meshes.points(code), over.meshes.corner_values(uv, code, 2)
        triangles = triangulate(topology.counts, topology.indices)[0]
        u, v = corners[triangulate(topology.counts, np.arange(len(corners)))[0]].transpose(2, 0, 1)
        places, found = over_faces("field_image", points[triangles], [u, v], SAMPLED * cell)
        return places, _tiled(picture, *found)

    known = {code: samples(code) for code in dict.fromkeys(over.codes.values())}

    def part(n: int) -> SpatialField:
        def at(code: float) -> SpatialField:
            places, values = known[code]
            return SpatialField("CUBES", (place(),), grid=cubes("field_image.mesh", places, values[:, n], cell))

        return over.course(at, constant(outside))

    if picture.shape[2] == 1:
        return part(0)
    red, green, blue = (scaled(part(n), constant(tuple(np.eye(3)[n].tolist()))) for n in range(3))
    return SpatialField("ADD", (SpatialField("ADD", (red, green), vector=True), blue), vector=True)


def _tiled(picture: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return a picture at UVs, bilinear and repeated, shape (n, parts)."""
    height, across = picture.shape[:2]
    x, y = u * across - 0.5, v * height - 0.5
    column, row = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
    x, y = (x - column)[:, None], (y - row)[:, None]
    left, right, low, high = column % across, (column + 1) % across, row % height, (row + 1) % height
    below = (1.0 - x) * picture[low, left] + x * picture[low, right]
    return (1.0 - y) * below + y * ((1.0 - x) * picture[high, left] + x * picture[high, right])


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
