"""Level sets, fogs and vector grids to and from .vdb files, and level sets to meshes.

Grids are built leaf by leaf, so cost and memory follow the matter and not the box around it.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import InputError, LevelSet, Mesh, OutputError
from usd_io.openvdb_module import find_openvdb
from usd_io.vdb_file import grid_table, stamp_digest

__all__ = [
    "VolumeInfo", "grid_from_level_set", "level_set_from_grid", "mesh_level_set", "read_volumes", "write_volumes",
]

LEAF = 8
GRID_CLASSES = {"level_set": "level set", "fog": "fog volume", "vector": "unknown"}
LARGEST_READ = 4 << 30


@dataclass(frozen=True)
class VolumeInfo:
    """One grid of a .vdb file.

    Attributes:
        level_set: The voxels; `origin` and `voxel_size` describe it fully only when `uniform` and not rotated.
        transform: Shape (4, 4), float64, column vectors: world = transform @ (i, j, k, 1) [m].
        kind: "level_set", "fog", "vector", or "unknown" for a scalar grid without a class.
        uniform: Whether the transform keeps angles and scales all axes alike (rotation and mirroring allowed).
        value_type: As stored: "float", "double", "vec3s", ...
    """

    level_set: LevelSet
    transform: np.ndarray
    kind: str
    uniform: bool
    value_type: str


# ---------------------------------------------------------------- writing
def write_volumes(
    path: str | Path,
    volumes: Sequence[LevelSet],
    metadata: Mapping[str, Any] | None = None,
    half: bool = False,
) -> None:
    """Write grids into one .vdb file; equal input gives equal bytes.

    Args:
        path: File to write, replaced when it exists. The caller renames it into place.
        volumes: Grids with different names.
        metadata: File metadata: numbers, strings, booleans, 3-tuples.
        half: Store values in 16 bits.

    Raises:
        OutputError: Equal names, misshapen or non-finite values, or the file cannot be written whole.
    """
    path = Path(path)
    names = [volume.name for volume in volumes]
    if len(set(names)) < len(names) or not names:
        raise OutputError(f"{path}: grids named {names}; give at least one grid and every grid a name of its own")
    vdb = find_openvdb()
    grids = []
    for volume in volumes:
        grid = grid_from_level_set(volume)
        grid.saveFloatAsHalf = half
        grids.append(grid)
    try:
        vdb.write(str(path), grids, dict(metadata or {}))
        end = max(entry.end for entry in grid_table(path))  # the library does not always notice a full disk
        if end != os.path.getsize(path):
            raise OutputError(f"{path}: written only in part; free some disk space and resume")
        stamp_digest(path)
    except (OSError, RuntimeError, InputError) as error:
        raise OutputError(f"{path}: cannot be written ({error}); check folder, permissions and free space") from error


def grid_from_level_set(volume: LevelSet) -> Any:
    """Return an OpenVDB grid of these voxels, leaf by leaf, with name, class and transform.

    Raises:
        OutputError: Misshapen, misplaced or non-finite leaves.
    """
    vdb = find_openvdb()
    origins, values = _checked_leaves(volume)
    background = float(np.float32(volume.background))
    if volume.kind == "vector":
        grid = vdb.Vec3SGrid((background,) * 3)
        grid.vectorType = "contravariant relative"
    else:
        grid = vdb.FloatGrid(background)
    if volume.kind == "level_set":
        # Beyond the band every voxel must equal +background to be inactive; the flood fill then restores the sign.
        values = np.where(np.abs(values) >= np.float32(background), np.float32(background), values)
    if not values.flags.writeable:  # OpenVDB's bindings take no read-only array, and published values are
        values = values.copy()
    for corner, leaf in zip(origins.tolist(), values, strict=True):
        grid.copyFromArray(leaf, tuple(corner))
    if volume.kind == "level_set":
        grid.signedFloodFill()
    grid.name = volume.name
    grid.gridClass = GRID_CLASSES[volume.kind]
    grid.transform = _transform(vdb, volume.voxel_size, volume.origin)
    return grid


def _checked_leaves(volume: LevelSet) -> tuple[np.ndarray, np.ndarray]:
    """Return origins (n, 3) int64 and C-contiguous float32 leaves of a sound volume."""
    origins = np.asarray(volume.origins, np.int64).reshape(-1, 3)
    values = np.ascontiguousarray(volume.values, np.float32)
    shape = (len(origins), LEAF, LEAF, LEAF) + ((3,) if volume.kind == "vector" else ())
    where = f"volume {volume.name!r}"
    if volume.kind not in GRID_CLASSES:
        raise OutputError(f"{where}: kind {volume.kind!r}; allowed: {', '.join(GRID_CLASSES)}")
    if values.shape != shape:
        raise OutputError(f"{where}: values of shape {values.shape}; {shape} is needed: one 8^3 block for every origin")
    if (origins % LEAF).any():
        raise OutputError(f"{where}: a leaf begins off the grid of 8 voxels; give origins that are multiples of 8")
    if not (np.isfinite(values).all() and np.isfinite(volume.origin).all() and np.isfinite(volume.background)):
        raise OutputError(f"{where}: holds NaN or infinite values; find the node that made them")
    if not (volume.voxel_size > 0 and np.isfinite(volume.voxel_size)):
        raise OutputError(f"{where}: voxel size {volume.voxel_size}; give a positive one")
    if volume.kind == "level_set" and not volume.background > 0:
        raise OutputError(f"{where}: background {volume.background}; a level set needs its band's half width, positive")
    return origins, values


def _transform(vdb: Any, voxel_size: float, origin: Sequence[float]) -> Any:
    rows = [[voxel_size if i == j else 0.0 for j in range(3)] + [0.0] for i in range(3)]
    return vdb.createLinearTransform([*rows, [*(float(c) for c in origin), 1.0]])


# ---------------------------------------------------------------- meshing
def mesh_level_set(volume: LevelSet, adaptivity: float = 0.0, isovalue: float = 0.0) -> Mesh:
    """Return the surface of a level set as triangles and quads, counter-clockwise seen from outside.

    Args:
        volume: Level set in world units.
        adaptivity: 0 (quads of a voxel) to 1 (few, large polygons).
        isovalue: Distance [m] of the surface.

    Returns:
        Mesh: float64 points [m], without normals; no points for a level set without a surface.

    The mesher works in float32 world space, so the level set is meshed beside the origin and moved back in float64.
    """
    if not len(volume.origins):
        return Mesh(np.zeros((0, 3)), np.zeros(0, np.int32), np.zeros(0, np.int32))
    base = np.asarray(volume.origins, np.int64).min(axis=0)
    near = replace(volume, origins=np.asarray(volume.origins, np.int64) - base, origin=(0.0, 0.0, 0.0))
    points, triangles, quads = grid_from_level_set(near).convertToPolygons(isovalue, adaptivity)
    points = points.astype(np.float64) + (base * volume.voxel_size + np.asarray(volume.origin, np.float64))
    # OpenVDB winds its polygons inward for a right-handed reader.
    faces = (quads[:, ::-1].reshape(-1), triangles[:, ::-1].reshape(-1))
    counts = np.repeat(np.array([4, 3], np.int32), (len(quads), len(triangles)))
    return Mesh(points, counts, np.concatenate(faces).astype(np.int32))


# ---------------------------------------------------------------- reading
def read_volumes(
    path: str | Path,
    names: Sequence[str] | None = None,
    timeout: float = 60.0,
    largest: int = LARGEST_READ,
) -> dict[str, VolumeInfo]:
    """Read float and vector grids of a .vdb file of any origin, in a child process with a time limit.

    Damaged files can crash or hang the library, which must not take this process along. Constant tiles (the solid
    inside of a level set) come back as leaves, so that a point inside is seen as inside.

    Args:
        path: The file.
        names: Grids wanted; all that can be read when None.
        timeout: Seconds allowed.
        largest: Bytes of voxels allowed.

    Raises:
        InputError: Missing, damaged or too large file, a grid that is absent or of a type that is not read.
    """
    from usd_io.vdb_reader import read_in_child

    return read_in_child(Path(path), None if names is None else list(names), timeout, largest)


def level_set_from_grid(grid: Any, name: str = "", largest: int = LARGEST_READ) -> LevelSet:
    """Return the leaves of an OpenVDB grid, with constant tiles that differ from the background as leaves.

    Visits only nodes that exist: the box around two far drops costs nothing.

    Raises:
        InputError: More than `largest` bytes of voxels.
    """
    vector = not isinstance(grid.background, (int, float))
    background = grid.background[0] if vector else grid.background
    trailing = (3,) if vector else ()
    leaves: list[tuple[int, int, int]] = []
    tiles: list[tuple[tuple[int, int, int], int, Any]] = []
    for corner, edge, value in _nodes(grid):
        if value is None:
            leaves.append(corner)
        elif value != grid.background:
            tiles.append((corner, edge, value))
    count = len(leaves) + sum((edge // LEAF) ** 3 for _, edge, _ in tiles)
    size = count * LEAF**3 * 4 * (3 if vector else 1)
    if size > largest:
        raise InputError(f"grid {grid.name!r}: {count} leaves would take {size / 2**30:.1f} GiB, "
                         f"{largest / 2**30:.1f} GiB are allowed; give a coarser volume")
    origins = np.empty((count, 3), np.int32)
    values = np.empty((count, LEAF, LEAF, LEAF, *trailing), np.float32)
    for k, corner in enumerate(leaves):
        origins[k] = corner
        grid.copyToArray(values[k], corner)
    k = len(leaves)
    for corner, edge, value in tiles:
        steps = np.stack(np.meshgrid(*[np.arange(0, edge, LEAF)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
        origins[k : k + len(steps)] = np.asarray(corner) + steps
        values[k : k + len(steps)] = value
        k += len(steps)
    kind = "vector" if vector else "level_set" if str(grid.gridClass) == "level set" else "fog"
    matrix = index_to_world(grid)
    voxel_size, origin = float(np.linalg.norm(matrix[:3, 0])), tuple(matrix[:3, 3].tolist())
    return LevelSet(origins, values, voxel_size, origin, float(background), kind, name or grid.name)


def index_to_world(grid: Any) -> np.ndarray:
    """Return the grid's linear transform, shape (4, 4), column vectors [m]."""
    indices = ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))
    corners = np.array([grid.transform.indexToWorld(index) for index in indices], np.float64)
    matrix = np.eye(4)
    matrix[:3, 3] = corners[0]
    matrix[:3, :3] = (corners[1:] - corners[0]).T
    return matrix


def _nodes(grid: Any) -> Iterator[tuple[tuple[int, int, int], int, Any]]:
    """Yield (first voxel, edge, value) of every tile and leaf of the tree; value is None for leaves."""
    low, high = _bounds(grid)
    accessor = grid.getConstAccessor()
    stack = [(corner, 4096) for corner in _root_children(grid, low, high)]
    while stack:
        corner, edge = stack.pop()
        # Depth of the node that holds the value: 0 root, 1 and 2 internal (tiles of 128 and 8 voxels), 3 leaf.
        depth = accessor.getValueDepth(corner)
        if depth < 0:
            continue
        if edge == 4096 >> (0, 5, 9, 9)[depth] and depth < 3:
            yield corner, edge, accessor.getValue(corner)
        elif edge == LEAF:
            yield corner, edge, None
        else:
            step = 128 if edge == 4096 else LEAF
            stack.extend((child, step) for child in _children(corner, edge, step, low, high))


def _children(
    corner: tuple[int, ...], edge: int, step: int, low: np.ndarray, high: np.ndarray
) -> Iterator[tuple[int, ...]]:
    """Return the first voxels of the sub-cubes of a node that touch the box [low, high]."""
    ranges = []
    for c, lo, hi in zip(corner, low.tolist(), high.tolist(), strict=True):
        first = max(c, lo // step * step)
        ranges.append(range(first, min(c + edge, hi + 1), step))
    return itertools.product(*ranges)


def _bounds(grid: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the inclusive voxel box around all leaves and active tiles."""
    boxes = [np.array(grid.evalActiveVoxelBoundingBox(), np.int64)]
    if grid.leafCount():
        boxes.append(np.array(grid.evalLeafBoundingBox(), np.int64))
    boxes = [box for box in boxes if (box[0] <= box[1]).all()] or [np.array([[0, 0, 0], [-1, -1, -1]])]
    return np.min([box[0] for box in boxes], axis=0), np.max([box[1] for box in boxes], axis=0)


def _root_children(grid: Any, low: np.ndarray, high: np.ndarray) -> Iterator[tuple[int, ...]]:
    """Return the first voxels of the 4096^3 regions that may hold something."""
    regions = np.prod(high // 4096 - low // 4096 + 1, dtype=float)
    if regions <= 100_000:
        corner = tuple((low // 4096 * 4096).tolist())
        return _children(corner, int((high - corner).max()) + 1, 4096, low, high)
    # Grids spread wider than that are found by their active values, at about 1 microsecond a value.
    found = {tuple(c >> 12 for c in item.min) for item in grid.citerOnValues()}
    return iter(sorted(tuple(c << 12 for c in region) for region in found))
