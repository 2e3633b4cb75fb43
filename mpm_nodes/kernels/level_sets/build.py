"""Turn leaves of 8^3 voxels into a `LeafLevelSet`: table, signs of the empty leaves, aprons, coarse distances."""

from __future__ import annotations

import numpy as np

from mpm_nodes.data import InputError
from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.level_sets.level_set import LEAF, PADDED, LeafLevelSet

LARGEST_TABLE = 1 << 26
"""Entries of the dense leaf table that are still allowed (0.5 GB with the coarse distances)."""


def leaf_level_set(
    origins: np.ndarray,
    values: np.ndarray,
    band: float,
    to_index: np.ndarray,
    voxel_size: float,
    velocities: np.ndarray | None = None,
    name: str = "level set",
) -> LeafLevelSet:
    """Build the sampled form of a narrow-band level set.

    Args:
        origins: Voxel index of each leaf's first voxel, shape (n, 3), multiples of 8.
        values: Signed distances [m], shape (n, 8, 8, 8).
        band: Distance that stands outside every leaf [m] (the background).
        to_index: Shape (3, 4): voxel index = to_index[:, :3] @ y + to_index[:, 3].
        voxel_size: [m].
        velocities: [m/s], shape (n, 8, 8, 8, 3), or None.
        name: What messages call it.

    Raises:
        InputError: no leaves, values that are not finite, no inside, or leaves scattered too far for the table.
    """
    values = np.ascontiguousarray(values, np.float32)
    if len(values) == 0:
        raise InputError(f"{name}: the level set is empty; a collider needs a surface")
    if not np.isfinite(values).all():
        raise InputError(f"{name}: the level set holds values that are not finite; write it again")
    if not (values < 0.0).any():
        raise InputError(f"{name}: the level set has no inside (no negative distance); it may be a fog volume or a sheet")
    leaves = np.asarray(origins, np.int64) // LEAF
    low = leaves.min(axis=0) - 1
    size = leaves.max(axis=0) + 2 - low
    if int(np.prod(size)) > LARGEST_TABLE:
        raise InputError(
            f"{name}: its leaves span {size[0]} x {size[1]} x {size[2]} leaves of 8^3 voxels, at most "
            f"{LARGEST_TABLE} in all are allowed; use a larger voxel size or split the collider"
        )
    table = np.full(tuple(size), -1, np.int32)
    table[tuple((leaves - low).T)] = np.arange(len(leaves), dtype=np.int32)
    signs = np.zeros(tuple(size), np.int8)
    _spread_signs(table, values, signs)
    speeds = np.zeros((1, LEAF, LEAF, LEAF, 3), np.float32) if velocities is None else velocities
    speeds = np.ascontiguousarray(speeds, np.float32)
    coarse, far_velocities = _coarse_distances(table, signs, values, speeds, np.float32(voxel_size), np.float32(band))
    padded = np.empty((len(leaves), PADDED, PADDED, PADDED), np.float32)
    where = np.ascontiguousarray(leaves - low)
    pad_leaves(table, where, np.where(signs < 0, -band, band).astype(np.float32), values[..., None], padded[..., None])
    padded_velocities = None
    if velocities is not None:
        padded_velocities = np.empty((len(leaves), PADDED, PADDED, PADDED, 3), np.float32)
        pad_leaves(table, where, np.zeros(tuple(size), np.float32), speeds, padded_velocities)
    return LeafLevelSet(
        to_index=np.ascontiguousarray(to_index, np.float64),
        voxel_size=float(voxel_size),
        band=float(band),
        low=low,
        table=table,
        coarse=coarse,
        values=padded,
        velocities=padded_velocities,
        coarse_velocities=None if velocities is None else far_velocities,
        centre=_centre(coarse, low, leaves, values / np.float32(voxel_size), to_index),
    )


def _centre(coarse, low, leaves, values, to_index) -> np.ndarray:
    """Return the centre of the inside in the body's frame: inside voxels of leaves and inside leaves without voxels.

    A voxel counts by the share of it that is inside (values in voxels), so that thin bodies have a sound centre too.
    """
    share = np.clip(0.5 - values, 0.0, 1.0).astype(np.float64)
    node = np.arange(LEAF)
    index = np.array(
        [(share.sum(axis=axes) * (node + LEAF * leaves[:, axis, None])).sum() for axis, axes in enumerate(((2, 3), (1, 3), (1, 2)))]
    )
    empty = coarse < 0.0
    empty[tuple((leaves - low).T)] = False
    solid = np.argwhere(empty)
    index += LEAF**3 * (LEAF * (solid + low) + 3.5).sum(axis=0)
    linear = np.asarray(to_index, np.float64)
    return np.linalg.solve(linear[:, :3], index / (share.sum() + LEAF**3 * len(solid)) - linear[:, 3])


@compiled(fastmath=False)
def _spread_signs(table, values, signs):
    """Give every empty leaf the sign that its neighbours' facing voxels have, then spread it through empty leaves."""
    n0, n1, n2 = table.shape
    queue = np.empty((n0 * n1 * n2, 3), np.int32)
    tail = 0
    for i in range(n0):
        for j in range(n1):
            for k in range(n2):
                if table[i, j, k] >= 0:
                    continue
                border = i == 0 or j == 0 or k == 0 or i == n0 - 1 or j == n1 - 1 or k == n2 - 1
                vote = 1 if border else 0
                if not border:
                    for face in range(6):
                        axis, side = face >> 1, face & 1
                        step = 2 * side - 1
                        leaf = table[i + (step if axis == 0 else 0), j + (step if axis == 1 else 0), k + (step if axis == 2 else 0)]
                        if leaf >= 0:
                            vote += _face_vote(values, leaf, axis, side)
                if vote != 0:
                    signs[i, j, k] = 1 if vote > 0 else -1
                    queue[tail, 0], queue[tail, 1], queue[tail, 2] = i, j, k
                    tail += 1
    head = 0
    while head < tail:
        i, j, k = queue[head, 0], queue[head, 1], queue[head, 2]
        head += 1
        for face in range(6):
            axis, step = face >> 1, 2 * (face & 1) - 1
            a, b, c = i + (step if axis == 0 else 0), j + (step if axis == 1 else 0), k + (step if axis == 2 else 0)
            if a < 0 or b < 0 or c < 0 or a >= n0 or b >= n1 or c >= n2:
                continue
            if table[a, b, c] < 0 and signs[a, b, c] == 0:
                signs[a, b, c] = signs[i, j, k]
                queue[tail, 0], queue[tail, 1], queue[tail, 2] = a, b, c
                tail += 1


@part
def _face_vote(values, leaf, axis, side):
    """Return positive minus negative voxels on the face of `leaf` that looks at the empty neighbour."""
    vote = 0
    at = 0 if side == 1 else LEAF - 1
    for p in range(LEAF):
        for q in range(LEAF):
            if axis == 0:
                phi = values[leaf, at, p, q]
            elif axis == 1:
                phi = values[leaf, p, at, q]
            else:
                phi = values[leaf, p, q, at]
            vote += 1 if phi >= 0.0 else -1
    return vote


@compiled(fastmath=False)
def _coarse_distances(table, signs, values, velocities, voxel, band):
    """Return signed distances at leaf centres and the velocity of the surface voxel nearest to each.

    Each leaf first takes the voxel v of its own band that minimises |phi_v| + |x_v - centre|; sweeps in the eight directions
    then hand the best voxel on to neighbours (as in the fast sweeping of closest points).
    """
    n0, n1, n2 = table.shape
    best = np.full((n0, n1, n2), np.float32(1e30))
    source = np.zeros((n0, n1, n2, 4), np.float32)
    speed = np.zeros((n0, n1, n2, 3), np.float32)
    moving = velocities.shape[0] == values.shape[0]
    for i in range(n0):
        for j in range(n1):
            for k in range(n2):
                leaf = table[i, j, k]
                if leaf < 0:
                    continue
                for voxel_index in range(LEAF * LEAF * LEAF):
                    p, q, r = voxel_index >> 6, (voxel_index >> 3) & 7, voxel_index & 7
                    size = abs(values[leaf, p, q, r])
                    if size >= band - voxel:
                        continue
                    far = np.sqrt((p - 3.5) ** 2 + (q - 3.5) ** 2 + (r - 3.5) ** 2) + size / voxel
                    if far < best[i, j, k]:
                        best[i, j, k] = far
                        source[i, j, k, 0], source[i, j, k, 1] = LEAF * i + p, LEAF * j + q
                        source[i, j, k, 2], source[i, j, k, 3] = LEAF * k + r, size / voxel
                        if moving:
                            for c in range(3):
                                speed[i, j, k, c] = velocities[leaf, p, q, r, c]
    for sweep in range(8):
        s0, s1, s2 = 1 - 2 * (sweep & 1), 1 - (sweep & 2), 1 - ((sweep & 4) >> 1)
        for a in range(n0):
            i = a if s0 > 0 else n0 - 1 - a
            for b in range(n1):
                j = b if s1 > 0 else n1 - 1 - b
                for c in range(n2):
                    k = c if s2 > 0 else n2 - 1 - c
                    _take_nearer((i, j, k), (s0, s1, s2), best, source, speed)
    signed = np.empty((n0, n1, n2), np.float32)
    for i in range(n0):
        for j in range(n1):
            for k in range(n2):
                leaf = table[i, j, k]
                inside = signs[i, j, k] < 0 if leaf < 0 else values[leaf, 3, 3, 3] + values[leaf, 4, 4, 4] < 0.0
                signed[i, j, k] = -best[i, j, k] * voxel if inside else best[i, j, k] * voxel
    return signed, speed


@part
def _take_nearer(leaf, way, best, source, speed):
    """Adopt the nearest surface voxel of the seven neighbours that a sweep comes from when it is nearer than the leaf's own."""
    (i, j, k), (s0, s1, s2) = leaf, way
    n0, n1, n2 = best.shape
    x, y, z = LEAF * i + 3.5, LEAF * j + 3.5, LEAF * k + 3.5
    for mask in range(1, 8):
        a, b, c = i - (s0 if mask & 1 else 0), j - (s1 if mask & 2 else 0), k - (s2 if mask & 4 else 0)
        if a < 0 or b < 0 or c < 0 or a >= n0 or b >= n1 or c >= n2 or best[a, b, c] > 1e29:
            continue
        e0, e1, e2 = source[a, b, c, 0] - x, source[a, b, c, 1] - y, source[a, b, c, 2] - z
        far = np.sqrt(e0 * e0 + e1 * e1 + e2 * e2) + source[a, b, c, 3]
        if far < best[i, j, k]:
            best[i, j, k] = far
            for m in range(4):
                source[i, j, k, m] = source[a, b, c, m]
            for m in range(3):
                speed[i, j, k, m] = speed[a, b, c, m]


@compiled(fastmath=False)
def pad_leaves(table, where, empty, values, padded):
    """Copy leaves to 9^3 voxels; the apron comes from the next leaves, or is `empty` (n, 1 or 3 components)."""
    for leaf in range(where.shape[0]):
        i, j, k = where[leaf, 0], where[leaf, 1], where[leaf, 2]
        for p in range(PADDED):
            a = 1 if p == LEAF else 0
            for q in range(PADDED):
                b = 1 if q == LEAF else 0
                for r in range(PADDED):
                    c = 1 if r == LEAF else 0
                    other = table[i + a, j + b, k + c]
                    for m in range(values.shape[4]):
                        if other >= 0:
                            padded[leaf, p, q, r, m] = values[other, p - LEAF * a, q - LEAF * b, r - LEAF * c, m]
                        else:
                            padded[leaf, p, q, r, m] = empty[i + a, j + b, k + c]
