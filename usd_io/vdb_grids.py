"""Level sets, fogs and vector fields to and from OpenVDB's grids, leaf by leaf: cost and memory follow the matter."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpm_nodes.data import InputError, LevelSet, OutputError
from usd_io.openvdb_module import find_openvdb

__all__ = ["VolumeInfo", "grid_from_level_set", "level_set_from_grid"]

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


def level_set_from_grid(grid: Any, name: str = "", largest: int = LARGEST_READ) -> LevelSet:
    """Return the leaves of an OpenVDB grid, with constant tiles that differ from the background as leaves.

    Visits only nodes that exist: the box around two far drops costs nothing.

    Raises:
        InputError: More than `largest` bytes of voxels.
    """
    vector = not isinstance(grid.background, (int, float))
    background = grid.background[0] if vector else grid.background
    trailing = (3,) if vector else ()
    leaves: list[tuple[int, ...]] = []
    tiles: list[tuple[tuple[int, ...], int, Any]] = []
    for corner, edge, value in _nodes(grid):
        if value is None:
            leaves.append(corner)
        elif value != grid.background:
            tiles.append((corner, edge, value))
    count = len(leaves) + sum((edge // LEAF) ** 3 for _, edge, _ in tiles)
    size = count * LEAF**3 * 4 * (3 if vector else 1)
    if size > largest:
        raise InputError(
            f"grid {grid.name!r}: {count} leaves would take {size / 2**30:.1f} GiB, "
            f"{largest / 2**30:.1f} GiB are allowed; give a coarser volume"
        )
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


def _nodes(grid: Any) -> Iterator[tuple[tuple[int, ...], int, Any]]:
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


def _children(corner: tuple[int, ...], edge: int, step: int, low: np.ndarray, high: np.ndarray) -> Iterator[tuple[int, ...]]:
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
