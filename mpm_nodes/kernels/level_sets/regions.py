"""Regions that can be filled with particles: boxes, spheres and level sets in their own frame.

A region is plain numbers and arrays, so that one compiled kernel serves every shape (a callback could not be cached).

| symbol | meaning                                                        | unit  |
|--------|----------------------------------------------------------------|-------|
| phi    | signed distance, negative inside (a level set: trilinear)       | m     |
| keys   | sorted 63-bit keys of the level set's leaves of 8^3 voxels      | -     |
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mpm_nodes.data import LevelSet, MpmNodesError, Vec3
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.level_sets.level_set import LeafLevelSet

BOX, SPHERE, LEVEL_SET = 0, 1, 2
LEAF = 8
_BIAS = 1 << 20
_CHUNK = 4096
_FIRST = (0, 2, LEAF + 2, LEAF + 4)
"""Where the leaves before, here and after begin in a leaf with two voxels around it."""


@dataclass(frozen=True)
class Region:
    """A solid region {x : phi(x) < 0} in its own frame.

    Attributes:
        kind: BOX, SPHERE or LEVEL_SET.
        low: Lower corner of the bounding box [m].
        high: Upper corner of the bounding box [m].
        volume: Volume [m^3]; exact for boxes and spheres, measured on the voxels for level sets.
        numbers: Half extents, radius, or the matrix to voxel indices (3 x 4) and the background, shape (16,).
        keys: Sorted leaf keys of a level set, shape (leaves,), int64.
        values: Voxels of those leaves, shape (leaves, 8, 8, 8), float32.
    """

    kind: int
    low: np.ndarray
    high: np.ndarray
    volume: float
    numbers: np.ndarray
    keys: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    values: np.ndarray = field(default_factory=lambda: np.zeros((0, LEAF, LEAF, LEAF), np.float32))

    def inside(self, points: np.ndarray) -> np.ndarray:
        """Tell which points lie inside. Points [m], shape (n, 3); returns bool, shape (n,)."""
        points = np.ascontiguousarray(points, np.float64)
        return _inside_many(self.kind, self.numbers, self.keys, self.values, points)


def box_region(size: Vec3) -> Region:
    """Return a box of edge lengths `size` [m] about the origin."""
    half = 0.5 * np.asarray(size, np.float64)
    return Region(BOX, -half, half, float(np.prod(2.0 * half)), _numbers(*half))


def sphere_region(radius: float) -> Region:
    """Return a ball of the given radius [m] about the origin."""
    half = np.full(3, float(radius))
    return Region(SPHERE, -half, half, 4.0 / 3.0 * np.pi * float(radius) ** 3, _numbers(radius))


def level_set_region(level_set: LevelSet, transform: np.ndarray | None = None, scale: float = 1.0) -> Region:
    """Return the inside of a level set.

    Args:
        level_set: Signed distances in leaves; the deep interior may be missing.
        transform: Voxel indices to the region's frame, shape (4, 4), column vectors [m]: any rotation, one scale for
            all axes. The level set's own origin and voxel size when None.
        scale: Factor on all lengths, about the frame's origin.

    Raises:
        MpmNodesError: if the grid is not a level set or has no inside.
    """
    if level_set.kind != "level_set":
        raise MpmNodesError(
            f"grid '{level_set.name}': is a {level_set.kind} grid; only a level set has an inside; choose another grid"
        )
    solid = with_interior(level_set)
    if not (solid.values < 0.0).any():
        raise MpmNodesError(
            f"grid '{level_set.name}': no voxel is negative, so nothing lies inside; "
            "check the sign of the level set or choose another grid"
        )
    if transform is None:
        transform = np.diag([solid.voxel_size] * 3 + [1.0])
        transform[:3, 3] = solid.origin
    transform = np.diag([scale, scale, scale, 1.0]) @ transform
    keys, values = sorted_leaves(solid.origins, solid.values)
    wet = (values < 0.0).any(axis=(1, 2, 3))
    low, high = leaf_boxes(keys[wet], transform)
    numbers = _numbers(*np.linalg.inv(transform)[:3].reshape(-1), solid.background)
    volume = level_set_volume(solid) / solid.voxel_size**3 * abs(np.linalg.det(transform[:3, :3]))
    return Region(LEVEL_SET, low.min(axis=0), high.max(axis=0), volume, numbers, keys, values)


def solid_region(body: LeafLevelSet) -> Region:
    """Return the inside of a level set made for sampling (of a mesh); its empty leaves know their side."""
    solid = np.argwhere((body.table < 0) & (body.coarse < 0.0))
    filled = np.argwhere(body.table >= 0)
    rows = body.table[tuple(filled.T)]
    values = np.concatenate(
        [
            body.values.reshape(-1, LEAF + 1, LEAF + 1, LEAF + 1)[rows, :LEAF, :LEAF, :LEAF],
            np.full((len(solid), LEAF, LEAF, LEAF), -body.band, np.float32),
        ]
    )
    origins = LEAF * (np.concatenate([filled, solid]) + body.low)
    transform = np.linalg.inv(np.vstack([body.to_index.reshape(3, 4), [0.0, 0.0, 0.0, 1.0]]))
    leaves = LevelSet(origins.astype(np.int32), values, body.voxel_size, background=body.band)
    return level_set_region(leaves, transform)


def leaf_boxes(keys: np.ndarray, transform: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return boxes around leaves and half a voxel more: lower and upper corners [m], shape (leaves, 3) each."""
    middle = (LEAF * unpack_keys(keys) + 0.5 * (LEAF - 1)) @ transform[:3, :3].T + transform[:3, 3]
    half = np.abs(transform[:3, :3]).sum(axis=1) * 0.5 * (LEAF + 1)
    return middle - half, middle + half


def level_set_volume(level_set: LevelSet) -> float:
    """Return the volume [m^3] inside a level set whose interior is filled: a voxel counts by clamp(1/2 - phi/dx)."""
    fractions = np.clip(0.5 - level_set.values / np.float32(level_set.voxel_size), 0.0, 1.0)
    return float(fractions.sum(dtype=np.float64)) * level_set.voxel_size**3


def sorted_leaves(origins: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return leaf keys in rising order and the leaves' voxels in the same order."""
    leaves = np.asarray(origins, np.int64) // LEAF
    keys = pack_key(leaves[:, 0], leaves[:, 1], leaves[:, 2])
    order = np.argsort(keys, kind="stable")
    return np.ascontiguousarray(keys[order]), np.ascontiguousarray(values[order], np.float32)


def with_interior(level_set: LevelSet) -> LevelSet:
    """Return the level set with its deep interior stored as leaves too (a narrow band holds the surface only).

    A gap between two leaves of one row along x is interior where the voxel that faces it is negative.
    """
    leaves = np.asarray(level_set.origins, np.int64) // LEAF
    if not len(leaves):
        return level_set
    order = np.lexsort((leaves[:, 0], leaves[:, 2], leaves[:, 1]))
    row = leaves[order]
    same = (row[1:, 1:] == row[:-1, 1:]).all(axis=1)
    gap = row[1:, 0] - row[:-1, 0] - 1
    facing = level_set.values[order[:-1], LEAF - 1].reshape(len(order) - 1, -1)
    fill = np.flatnonzero(same & (gap > 0) & (facing < 0.0).all(axis=1))
    if not len(fill):
        return level_set
    count = gap[fill]
    steps = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count) + 1
    added = np.repeat(row[fill], count, axis=0)
    added[:, 0] += steps
    deep = np.full((len(added), LEAF, LEAF, LEAF), -abs(level_set.background), np.float32)
    origins = np.concatenate([level_set.origins, (added * LEAF).astype(np.int32)])
    return LevelSet(
        origins,
        np.concatenate([level_set.values, deep]),
        level_set.voxel_size,
        level_set.origin,
        level_set.background,
        level_set.kind,
        level_set.name,
    )


def _numbers(*numbers: float) -> np.ndarray:
    padded = np.zeros(16)
    padded[: len(numbers)] = numbers
    return padded


@inline
def pack_key(i, j, k):
    """Return one int64 for three indices within +-2^20; its order is that of i, then j, then k."""
    return ((i + _BIAS) << 42) | ((j + _BIAS) << 21) | (k + _BIAS)


def unpack_keys(keys: np.ndarray) -> np.ndarray:
    """Return the index triples of packed keys, shape (n, 3), int32."""
    return (np.stack([keys >> 42, (keys >> 21) & 0x1FFFFF, keys & 0x1FFFFF], axis=1) - _BIAS).astype(np.int32)


@inline
def find_leaf(keys, i, j, k):
    """Return the row of the leaf that holds voxel (i, j, k), or -1. Keys: sorted int64."""
    key = pack_key(i >> 3, j >> 3, k >> 3)
    low, high = 0, len(keys)
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low if low < len(keys) and keys[low] == key else -1


@inline
def sample_leaves(keys, values, background, x, y, z):
    """Return the trilinear value at voxel coordinates (x, y, z) of sorted leaves."""
    leaf = find_leaf(keys, int(np.floor(x)), int(np.floor(y)), int(np.floor(z)))
    return sample_from(leaf, keys, values, background, x, y, z)


@inline
def sample_from(leaf, keys, values, background, x, y, z):
    """Return what `sample_leaves` does, where the row of the leaf that holds the first of the eight voxels is known."""
    i, j, k = int(np.floor(x)), int(np.floor(y)), int(np.floor(z))
    fx, fy, fz = x - i, y - j, z - k
    total = 0.0
    for corner in range(8):
        a, b, c = corner >> 2, (corner >> 1) & 1, corner & 1
        ci, cj, ck = i + a, j + b, k + c
        same = (ci >> 3) == (i >> 3) and (cj >> 3) == (j >> 3) and (ck >> 3) == (k >> 3)
        row = leaf if same else find_leaf(keys, ci, cj, ck)
        value = background if row < 0 else float(values[row, ci & 7, cj & 7, ck & 7])
        total += value * (fx if a else 1.0 - fx) * (fy if b else 1.0 - fy) * (fz if c else 1.0 - fz)
    return total


@inline
def inside_region(kind, numbers, keys, values, x, y, z):
    """Tell whether the point (x, y, z) [m] lies inside the region."""
    if kind == BOX:
        return abs(x) < numbers[0] and abs(y) < numbers[1] and abs(z) < numbers[2]
    if kind == SPHERE:
        return x * x + y * y + z * z < numbers[0] * numbers[0]
    u = numbers[0] * x + numbers[1] * y + numbers[2] * z + numbers[3]
    v = numbers[4] * x + numbers[5] * y + numbers[6] * z + numbers[7]
    w = numbers[8] * x + numbers[9] * y + numbers[10] * z + numbers[11]
    return sample_leaves(keys, values, numbers[12], u, v, w) < 0.0


@part
def _inside_run(chunk, kind, numbers, keys, values, points, found):
    for p in range(chunk * _CHUNK, min((chunk + 1) * _CHUNK, len(points))):
        found[p] = inside_region(kind, numbers, keys, values, points[p, 0], points[p, 1], points[p, 2])


@compiled
def _inside_many(kind, numbers, keys, values, points):
    found = np.empty(len(points), np.bool_)
    parallel_for(_inside_run, (len(points) + _CHUNK - 1) // _CHUNK, (kind, numbers, keys, values, points, found))
    return found


def level_set_normals(level_set: LevelSet, points: np.ndarray) -> np.ndarray:
    """Return unit gradients of the level set at points [m], shape (n, 3), float32: outward normals of its surface.

    Points that follow each other in one leaf, as those of a mesh do, take least time.
    """
    keys, values = sorted_leaves(level_set.origins, level_set.values)
    voxels = (np.asarray(points, np.float64) - np.asarray(level_set.origin)) / level_set.voxel_size
    return _gradients(keys, values, np.float32(level_set.background), np.ascontiguousarray(voxels))


@inline
def _load_around(keys, values, background, origin, block):
    """Copy a leaf and two voxels around it into `block`, shape (12, 12, 12)."""
    for a in range(3):
        for b in range(3):
            for c in range(3):
                row = find_leaf(keys, origin[0] + LEAF * (a - 1), origin[1] + LEAF * (b - 1), origin[2] + LEAF * (c - 1))
                for i in range(_FIRST[a], _FIRST[a + 1]):
                    for j in range(_FIRST[b], _FIRST[b + 1]):
                        for k in range(_FIRST[c], _FIRST[c + 1]):
                            block[i, j, k] = background if row < 0 else values[row, (i - 2) & 7, (j - 2) & 7, (k - 2) & 7]


@inline
def _slope(block, place, axis):
    """Return the trilinear value half a voxel after a place less that half a voxel before it along an axis."""
    di, dj, dk = int(axis == 0), int(axis == 1), int(axis == 2)
    x, y, z = place[0] - 0.5 * di, place[1] - 0.5 * dj, place[2] - 0.5 * dk
    i, j, k = int(x), int(y), int(z)
    fx, fy, fz = x - i, y - j, z - k
    total = 0.0
    for a in range(2):
        for b in range(2):
            for c in range(2):
                step = block[i + a + di, j + b + dj, k + c + dk] - block[i + a, j + b, k + c]
                total += step * (fx if a else 1.0 - fx) * (fy if b else 1.0 - fy) * (fz if c else 1.0 - fz)
    return total


@part
def _gradients_run(chunk, keys, values, background, points, normals):
    block = np.empty((LEAF + 4, LEAF + 4, LEAF + 4), np.float32)
    here = np.int64(-1)  # no leaf has this key
    for p in range(chunk * _CHUNK, min((chunk + 1) * _CHUNK, len(points))):
        i, j, k = int(np.floor(points[p, 0])) >> 3, int(np.floor(points[p, 1])) >> 3, int(np.floor(points[p, 2])) >> 3
        origin = LEAF * i, LEAF * j, LEAF * k
        if pack_key(i, j, k) != here:
            here = pack_key(i, j, k)
            _load_around(keys, values, background, origin, block)
        place = points[p, 0] - origin[0] + 2.0, points[p, 1] - origin[1] + 2.0, points[p, 2] - origin[2] + 2.0
        a, b, c = _slope(block, place, 0), _slope(block, place, 1), _slope(block, place, 2)
        scale = 1.0 / max(np.sqrt(a * a + b * b + c * c), 1e-30)
        normals[p, 0], normals[p, 1], normals[p, 2] = a * scale, b * scale, c * scale


@compiled
def _gradients(keys, values, background, points):
    normals = np.empty((len(points), 3), np.float32)
    parallel_for(_gradients_run, (len(points) + _CHUNK - 1) // _CHUNK, (keys, values, background, points, normals))
    return normals
