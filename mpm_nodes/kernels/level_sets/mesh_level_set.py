"""Level sets of triangle meshes: exact distances in a narrow band, signs from winding numbers, velocities carried along.

Symbols
    d       distance to the nearest triangle                        voxels
    w       winding number at a voxel (Barill 2018)
    q       nearest point on a triangle (Ericson 2005, section 5.1.5)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.data import InputError
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.level_sets.build import LARGEST_TABLE, leaf_level_set
from mpm_nodes.kernels.level_sets.level_set import LEAF, LeafLevelSet
from mpm_nodes.kernels.level_sets.winding import WindingTree, winding_numbers, winding_tree

BAND = 4.0
"""Half width of the band [voxels]."""
HALF_LEAF = 3.5 * 3.0**0.5
MOST_FACES = 2048
"""Faces behind which thickness is looked at, spread evenly."""
DEPTHS = (0.02, 0.35, 0.68, 0.99)
"""Where it is looked at, in the depth that is asked for; what is not inside at the first of them bounds no inside."""


def mesh_level_set(
    points: np.ndarray,
    triangles: np.ndarray,
    voxel_size: float,
    thickness: float = 0.0,
    velocities: np.ndarray | None = None,
    name: str = "mesh",
) -> LeafLevelSet:
    """Return the level set of a closed mesh, or of a sheet given a thickness.

    Args:
        points: [m], shape (n, 3).
        triangles: Counter-clockwise seen from outside, shape (m, 3); overlapping parts are united.
        voxel_size: [m].
        thickness: 0 for the solid inside; above 0 the solid is everything within half of it of a triangle [m].
        velocities: Of the points [m/s], shape (n, 3), or None.
        name: What messages call it.

    Raises:
        InputError: No inside at this voxel size, coordinates that are not finite, or a mesh too large for its voxels.
    """
    points = np.asarray(points, np.float64)
    if not np.isfinite(points).all():
        raise InputError(f"{name}: points hold NaN or infinity; export the mesh again")
    corners = points[triangles]
    speeds = np.zeros((1, 3, 3)) if velocities is None else np.asarray(velocities, np.float64)[triangles]
    tree = None
    if thickness == 0.0:
        tree = winding_tree(points, triangles)
        corners, speeds = _outer_faces(corners, speeds, tree, voxel_size, velocities is not None)
    half = 0.5 * thickness / voxel_size
    origins, distance, leaf_speeds = _band_leaves(corners / voxel_size, speeds, BAND + half, name)
    signed = distance - half if tree is None else _signed(origins, distance, tree, voxel_size)
    values = np.clip(signed, -BAND, BAND).astype(np.float32) * np.float32(voxel_size)
    to_index = np.concatenate([np.eye(3) / voxel_size, np.zeros((3, 1))], axis=1)
    return leaf_level_set(
        origins, values, BAND * voxel_size, to_index, voxel_size, None if velocities is None else leaf_speeds, name
    )


def thin_share(tree: WindingTree, depth: float) -> float:
    """Return the share of the area of a solid that lies on parts thinner than `depth` [m]: behind it the inside ends before.

    Told by the mesh alone, so that edges, which voxels round off, do not count. Nor do faces that bound no inside, as where a
    crease has folded a part flat or inside out: no voxel holds those.
    """
    corners = tree.corners[:: max(1, len(tree.corners) // MOST_FACES)]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(normal, axis=1)
    middle, inward = corners.mean(axis=1), -normal / np.maximum(area, 1e-300)[:, None]
    samples = np.concatenate([middle + share * depth * inward for share in DEPTHS])
    inside = (winding_numbers(tree, samples) > 0.5).reshape(len(DEPTHS), -1)
    return float(area[inside[0] & ~inside.all(axis=0)].sum() / max(area[inside[0]].sum(), 1e-300))


def _outer_faces(corners, speeds, tree: WindingTree, voxel_size: float, moving: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the faces that bound the inside: w = 1/2 lies between their sides. Others (in overlaps) are dropped.

    A face that is only partly outside is split in four until its pieces are small.
    """
    some = corners[:: max(1, len(corners) // 2000)]
    if _bounds_inside(some, tree, voxel_size).all():
        return corners, speeds
    kept, kept_speeds = [], []
    for _ in range(9):
        bounds = _bounds_inside(corners, tree, voxel_size)
        edges = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1)
        mixed = bounds.any(axis=1) & ~bounds.all(axis=1) & (edges > 2.0 * voxel_size)
        keep = bounds.any(axis=1) & ~mixed
        kept.append(corners[keep])
        kept_speeds.append(speeds[keep] if moving else speeds[:0])
        if not mixed.any():
            break
        corners = _quartered(corners[mixed])
        speeds = _quartered(speeds[mixed]) if moving else speeds
    else:
        kept.append(corners)
        kept_speeds.append(speeds if moving else speeds[:0])
    return np.concatenate(kept), (np.concatenate(kept_speeds) if moving else np.zeros((1, 3, 3)))


def _bounds_inside(corners: np.ndarray, tree: WindingTree, voxel_size: float) -> np.ndarray:
    """Return whether the inside lies on just one side of each face, at its middle and near its corners, shape (m, 4)."""
    middle = corners.mean(axis=1, keepdims=True)
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    step = (0.02 * voxel_size * normal / np.maximum(length, 1e-300))[:, None]
    samples = np.concatenate([middle, 0.9 * corners + 0.1 * middle], axis=1)
    inside = winding_numbers(tree, np.stack([samples - step, samples + step]).reshape(-1, 3)) > 0.5
    inside = inside.reshape(2, -1, 4)
    return inside[0] != inside[1]


def _quartered(corners: np.ndarray) -> np.ndarray:
    """Split triangles, shape (m, 3, 3), at their edge middles."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    ab, bc, ca = 0.5 * (a + b), 0.5 * (b + c), 0.5 * (c + a)
    pieces = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
    return np.concatenate([np.stack(piece, axis=1) for piece in pieces])


def _band_leaves(corners, speeds, band: float, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return leaf origins, distances (n, 8, 8, 8) in voxels up to `band`, velocities, for triangles in voxel units."""
    corners = np.ascontiguousarray(corners)
    if not len(corners):
        raise InputError(f"{name}: no face bounds an inside; give the mesh a thickness above 0 m")
    low = np.floor((corners.min(axis=(0, 1)) - band) / LEAF).astype(np.int64)
    high = np.floor((corners.max(axis=(0, 1)) + band) / LEAF).astype(np.int64)
    size = high - low + 1
    if float(np.prod(size.astype(float))) > LARGEST_TABLE:
        raise InputError(
            f"{name}: {size[0]} x {size[1]} x {size[2]} leaves of 8^3 voxels would be needed, at most "
            f"{LARGEST_TABLE} in all are allowed; use a larger voxel size"
        )
    counts = np.zeros(tuple(size), np.int32)
    nothing = np.zeros(0, np.int32)
    _touch(corners, band, low, counts, np.zeros((0, 0, 0), np.int64), nothing)
    used = np.argwhere(counts > 0)
    ends = np.cumsum(counts[counts > 0])
    start = np.concatenate([[0], ends]).astype(np.int64)
    place = np.zeros(tuple(size), np.int64)
    place[counts > 0] = start[:-1]
    members = np.empty(int(start[-1]), np.int32)
    _touch(corners, band, low, counts, place, members)
    origins = (used + low) * LEAF
    distance = np.empty((len(used), LEAF, LEAF, LEAF))
    moving = len(speeds) == len(corners) and len(corners) > 0 and bool(np.any(speeds))
    carried = np.zeros((len(used) if moving else 1, LEAF, LEAF, LEAF, 3), np.float32)
    faces = _Faces(corners, np.ascontiguousarray(speeds), moving)
    _leaf_distances(faces, _Leaves(origins, start, members), band, distance, carried)
    near = distance.min(axis=(1, 2, 3)) < band
    if not moving:
        return origins[near], distance[near], np.zeros((int(near.sum()), LEAF, LEAF, LEAF, 3), np.float32)
    return origins[near], distance[near], carried[near]


@compiled(fastmath=False)
def _touch(corners, band, low, counts, place, members):
    """Count (without members) or list the triangles within reach of each leaf."""
    listing = members.shape[0] > 0
    reach = band + HALF_LEAF
    for t in range(corners.shape[0]):
        first, last = np.empty(3, np.int64), np.empty(3, np.int64)
        for axis in range(3):
            a, b, c = corners[t, 0, axis], corners[t, 1, axis], corners[t, 2, axis]
            first[axis] = int(np.floor((min(a, b, c) - band) / LEAF)) - low[axis]
            last[axis] = int(np.floor((max(a, b, c) + band) / LEAF)) - low[axis]
        for i in range(first[0], last[0] + 1):
            for j in range(first[1], last[1] + 1):
                for k in range(first[2], last[2] + 1):
                    x, y, z = LEAF * (i + low[0]) + 3.5, LEAF * (j + low[1]) + 3.5, LEAF * (k + low[2]) + 3.5
                    if _nearest(corners, t, x, y, z)[0] > reach * reach:
                        continue
                    if listing:
                        members[place[i, j, k]] = t
                        place[i, j, k] += 1
                    else:
                        counts[i, j, k] += 1


@inline
def _nearest(corners, t, x, y, z):
    """Return squared distance to triangle t and the barycentric weights of its second and third corner."""
    a0, a1, a2 = corners[t, 0, 0], corners[t, 0, 1], corners[t, 0, 2]
    b0, b1, b2 = corners[t, 1, 0] - a0, corners[t, 1, 1] - a1, corners[t, 1, 2] - a2
    c0, c1, c2 = corners[t, 2, 0] - a0, corners[t, 2, 1] - a1, corners[t, 2, 2] - a2
    p0, p1, p2 = x - a0, y - a1, z - a2
    bb, bc, cc = b0 * b0 + b1 * b1 + b2 * b2, b0 * c0 + b1 * c1 + b2 * c2, c0 * c0 + c1 * c1 + c2 * c2
    bp, cp = b0 * p0 + b1 * p1 + b2 * p2, c0 * p0 + c1 * p1 + c2 * p2
    area = bb * cc - bc * bc
    v, w = cc * bp - bc * cp, bb * cp - bc * bp
    if v >= 0.0 and w >= 0.0 and v + w <= area and area > 0.0:
        v, w = v / area, w / area
    else:
        v, w = _on_edges(bb, bc, cc, bp, cp)
    q0, q1, q2 = p0 - v * b0 - w * c0, p1 - v * b1 - w * c1, p2 - v * b2 - w * c2
    return q0 * q0 + q1 * q1 + q2 * q2, v, w


@inline
def _on_edges(bb, bc, cc, bp, cp):
    """Return the barycentric weights of the nearest point on the three edges."""
    s = min(max(bp / max(bb, 1e-300), 0.0), 1.0)
    best, v, w = s * (s * bb - 2.0 * bp), s, 0.0
    s = min(max(cp / max(cc, 1e-300), 0.0), 1.0)
    other = s * (s * cc - 2.0 * cp)
    if other < best:
        best, v, w = other, 0.0, s
    ee, ep = bb - 2.0 * bc + cc, cp - bp + bb - bc
    s = min(max(ep / max(ee, 1e-300), 0.0), 1.0)
    other = bb - 2.0 * bp + s * (s * ee - 2.0 * ep)
    if other < best:
        v, w = 1.0 - s, s
    return v, w


@part
def _find_nearest(p, corners, places, found):
    best = np.inf
    for t in range(corners.shape[0]):
        away, _, _ = _nearest(corners, t, places[p, 0], places[p, 1], places[p, 2])
        if away < best:
            best, found[p] = away, t


@compiled(fastmath=False)
def nearest_triangles(corners, places, found):
    """Find the triangle that is nearest to each place.

    Args:
        corners: Of the triangles, one at least, shape (m, 3, 3), float64.
        places: Shape (n, 3), float64.
        found: Written, shape (n,), int64.
    """
    parallel_for(_find_nearest, places.shape[0], (corners, places, found))


class _Faces(NamedTuple):
    """Triangles: corners in voxels and their velocities [m/s], shape (m, 3, 3) each; whether they move."""

    corners: np.ndarray
    speeds: np.ndarray
    moving: bool


class _Leaves(NamedTuple):
    """First voxel of each leaf, and the triangles within its reach: members[start[leaf] : start[leaf + 1]]."""

    origins: np.ndarray
    start: np.ndarray
    members: np.ndarray


@compiled(fastmath=False)
def _leaf_distances(faces, leaves, band, distance, carried):
    parallel_for(_one_leaf, leaves.origins.shape[0], (faces, leaves, band, distance, carried))


@part
def _one_leaf(leaf, faces, leaves, band, distance, carried):
    """Write the distances of one leaf and, where the body moves, the velocity at the nearest point."""
    (corners, speeds, moving), (origins, start, members) = faces, leaves
    reach = band + 1.0
    best = np.full((LEAF, LEAF, LEAF), reach * reach)
    first, last = np.empty(3, np.int64), np.empty(3, np.int64)
    for m in range(start[leaf], start[leaf + 1]):
        t = members[m]
        for axis in range(3):
            a, b, c = corners[t, 0, axis], corners[t, 1, axis], corners[t, 2, axis]
            first[axis] = max(int(np.ceil(min(a, b, c) - reach)) - origins[leaf, axis], 0)
            last[axis] = min(int(np.floor(max(a, b, c) + reach)) - origins[leaf, axis], LEAF - 1)
        n0, n1, n2 = _unit_normal(corners, t)
        for i in range(first[0], last[0] + 1):
            x = float(origins[leaf, 0] + i)
            for j in range(first[1], last[1] + 1):
                y = float(origins[leaf, 1] + j)
                for k in range(first[2], last[2] + 1):
                    z = float(origins[leaf, 2] + k)
                    plane = n0 * (x - corners[t, 0, 0]) + n1 * (y - corners[t, 0, 1]) + n2 * (z - corners[t, 0, 2])
                    if plane * plane >= best[i, j, k]:
                        continue
                    squared, v, w = _nearest(corners, t, x, y, z)
                    if squared < best[i, j, k]:
                        best[i, j, k] = squared
                        if moving:
                            for axis in range(3):
                                carried[leaf, i, j, k, axis] = (
                                    (1.0 - v - w) * speeds[t, 0, axis] + v * speeds[t, 1, axis] + w * speeds[t, 2, axis]
                                )
    for i in range(LEAF):
        for j in range(LEAF):
            for k in range(LEAF):
                distance[leaf, i, j, k] = min(np.sqrt(best[i, j, k]), band)
    if moving:
        _fill_velocities(leaf, best, reach, carried)


@part
def _fill_velocities(leaf, best, reach, carried):
    """Give voxels too far from every face the mean velocity of the leaf's others."""
    total, count = np.zeros(3), 0
    for at in range(512):
        i, j, k = at >> 6, (at >> 3) & 7, at & 7
        if best[i, j, k] < reach * reach:
            count += 1
            for axis in range(3):
                total[axis] += carried[leaf, i, j, k, axis]
    for at in range(512):
        i, j, k = at >> 6, (at >> 3) & 7, at & 7
        if best[i, j, k] >= reach * reach and count > 0:
            for axis in range(3):
                carried[leaf, i, j, k, axis] = total[axis] / count


@part
def _unit_normal(corners, t):
    a0, a1, a2 = corners[t, 0, 0], corners[t, 0, 1], corners[t, 0, 2]
    b0, b1, b2 = corners[t, 1, 0] - a0, corners[t, 1, 1] - a1, corners[t, 1, 2] - a2
    c0, c1, c2 = corners[t, 2, 0] - a0, corners[t, 2, 1] - a1, corners[t, 2, 2] - a2
    n0, n1, n2 = b1 * c2 - b2 * c1, b2 * c0 - b0 * c2, b0 * c1 - b1 * c0
    length = np.sqrt(n0 * n0 + n1 * n1 + n2 * n2)
    inverse = 1.0 / length if length > 1e-12 else 0.0
    return n0 * inverse, n1 * inverse, n2 * inverse


def _signed(origins: np.ndarray, distance: np.ndarray, tree: WindingTree, voxel_size: float) -> np.ndarray:
    """Return distances with signs. Between neighbours the sign changes only across a face, so where one of two neighbours is
    more than a voxel away from every face they agree: one winding number answers for a whole region of a leaf."""
    region = np.full(distance.shape, -1, np.int32)
    asked = np.empty((distance.size, 4), np.int64)
    count = _regions(distance, region, asked)
    asked = asked[:count]
    inside = winding_numbers(tree, (origins[asked[:, 0]] + asked[:, 1:]) * voxel_size) > 0.5
    return np.where(inside[region], -distance, distance)


@compiled(fastmath=False)
def _regions(distance, region, asked):
    """Number the regions of voxels that share a sign, leaf by leaf; list the voxel of each that is farthest from the faces."""
    stack = np.empty(512, np.int64)
    count = 0
    for leaf in range(distance.shape[0]):
        for seed in range(512):
            i, j, k = seed >> 6, (seed >> 3) & 7, seed & 7
            if region[leaf, i, j, k] >= 0:
                continue
            region[leaf, i, j, k] = count
            farthest, best = seed, distance[leaf, i, j, k]
            stack[0] = seed
            top = 1
            while top > 0:
                top -= 1
                at = stack[top]
                i, j, k = at >> 6, (at >> 3) & 7, at & 7
                d = distance[leaf, i, j, k]
                if d > best:
                    farthest, best = at, d
                for face in range(6):
                    axis, side = face >> 1, 2 * (face & 1) - 1
                    a, b, c = i + side * (axis == 0), j + side * (axis == 1), k + side * (axis == 2)
                    if not (0 <= a < 8 and 0 <= b < 8 and 0 <= c < 8) or region[leaf, a, b, c] >= 0:
                        continue
                    if d > 1.0 or distance[leaf, a, b, c] > 1.0:
                        region[leaf, a, b, c] = count
                        stack[top] = a * 64 + b * 8 + c
                        top += 1
            asked[count, 0], asked[count, 1] = leaf, farthest >> 6
            asked[count, 2], asked[count, 3] = (farthest >> 3) & 7, farthest & 7
            count += 1
    return count
