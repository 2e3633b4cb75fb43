"""Fields of colliders: the distance from any of them, and what lies inside, wherever it moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mpm_nodes.data import A, Collider, FieldGrid, FrameContext, Metres, Range, SpatialField
from mpm_nodes.graph.declare.decorators import PreflightContext, node
from mpm_nodes.graph.time.clock import Clock
from mpm_nodes.graph.time.keys import KeyedNumber, KeyedVector, KeysTravel
from mpm_nodes.nodes.bodies import refuse_rigid
from mpm_nodes.nodes.fields import ShapeOutput, constant, inside_of, moved, place

if TYPE_CHECKING:
    from mpm_nodes.kernels.level_sets.level_set import LeafLevelSet, PosedLevelSets

__all__ = ["field_collider"]


def _told(told: PreflightContext) -> dict[str, Any]:
    """Preflight: a number, which is known in the cook; a rigid body is not."""
    refuse_rigid(told, "field_collider.collider")
    return {"vector": False}


@node(category="Field", label="Field from Collider", preflight=_told)
def field_collider(
    collider: Collider,
    ctx: FrameContext,
    *,
    output: ShapeOutput = ShapeOutput.INSIDE,
    falloff: A[float, Metres, Range(min=0.0, soft_max=1.0), KeysTravel()] = 0.0,
) -> SpatialField:
    """Be 1 inside a collider and 0 outside, or the distance from its surface, wherever it moves and however it deforms.

    It makes a mask of any mesh or level set: of what is drained, pushed, or given an attribute. The collider need not be wired into
    a solve.

    Args:
        collider: Any collider.
        output: Inside or not, or the distance [m]; of meshes and level sets it is exact within a few voxels of the surface, farther
            away that from the box around them or coarse.
        falloff: Way outside over which `inside` falls off smoothly.
    """
    shape, clock = collider.shape, Clock.of(ctx.settings)
    where = _moved_along(shape, clock)
    distance = _of_level_sets(shape, where, clock) if shape.level_sets else _of_shape(shape, where)
    return distance if output is ShapeOutput.DISTANCE else inside_of(distance, falloff)


def _moved_along(shape: PosedLevelSets, clock: Clock) -> SpatialField:
    """Return the place in the axes of a body: between keys of its pose entries of its rotation go straight, as its place does."""
    from mpm_nodes.nodes.rotations import turn_matrix

    turns = [turn_matrix(orientation=tuple(map(float, each))).ravel() for each in shape.rotations]
    shifts = [(float(x), float(y), float(z)) for x, y, z in shape.translations]
    if len(turns) == 1:
        return moved(shifts[0], turns[0].reshape(3, 3))
    frames = [float(clock.frame(time)) for time in shape.pose_times]
    rows = [KeyedNumber([(f, float(turn[n]), "linear") for f, turn in zip(frames, turns, strict=True)]) for n in range(9)]
    centre = KeyedVector([(f, shift, "linear") for f, shift in zip(frames, shifts, strict=True)])
    return SpatialField("MOVED", (place(),), (*rows, centre, 1.0, 1.0, 1.0), vector=True)


def _of_shape(shape: PosedLevelSets, where: SpatialField) -> SpatialField:
    from mpm_nodes.kernels.level_sets.level_set import BOX, CAPSULE, SPHERE

    code = {SPHERE: "SPHERE", BOX: "BOX", CAPSULE: "CAPSULE"}.get(shape.kind, "PLANE")
    return SpatialField(code, (where,), tuple(float(each) for each in shape.sizes))


def _of_level_sets(shape: PosedLevelSets, where: SpatialField, clock: Clock) -> SpatialField:
    """Return the distance from one level set, or from several at their times; of two, one drifts to the other."""
    sets, frames = shape.level_sets, [float(clock.frame(time)) for time in shape.level_set_times]
    if len(sets) == 1:
        return _of_level_set(sets[0], where)
    if len(sets) > 2:
        return SpatialField("COURSE", tuple(_of_level_set(each, where) for each in sets), tuple(frames))
    way = np.asarray(sets[1].centre, float) - np.asarray(sets[0].centre, float)

    def drifting(each: LeafLevelSet, begin: np.ndarray, end: np.ndarray) -> SpatialField:
        keys = [(frame, tuple(map(float, shift)), "linear") for frame, shift in zip(frames, (begin, end), strict=True)]
        rows = tuple(np.eye(3).ravel().tolist())
        there = SpatialField("MOVED", (where,), (*rows, KeyedVector(keys), 1.0, 1.0, 1.0), vector=True)
        return _of_level_set(each, there)

    share = constant(KeyedNumber([(frames[0], 0.0, "linear"), (frames[1], 1.0, "linear")]))
    return SpatialField("MIX", (drifting(sets[0], 0.0 * way, way), drifting(sets[1], -way, 0.0 * way), share))


def _of_level_set(level_set: LeafLevelSet, where: SpatialField) -> SpatialField:
    """Return the distance from a level set; beyond its band at least that from the box around it."""
    grid, low, high = _grid(level_set)
    voxels = SpatialField("GRID", (where,), (float(level_set.band), 0.0), grid=grid)
    rows, middle = tuple(np.eye(3).ravel().tolist()), tuple((0.5 * (low + high)).tolist())
    inner = SpatialField("MOVED", (where,), (*rows, middle, 1.0, 1.0, 1.0), vector=True)
    box = SpatialField("BOX", (inner,), tuple((0.5 * (high - low)).tolist()))
    return SpatialField("MAXIMUM", (voxels, box))


def _grid(level_set: LeafLevelSet) -> tuple[FieldGrid, np.ndarray, np.ndarray]:
    """Return a level set as voxels, and the corners of the box around its inside [m], shape (3,).

    Voxels deep inside, which are in no leaf, are interpolated between the distances at the centres of leaves.
    """
    from mpm_nodes.kernels.level_sets.level_set import LEAF
    from mpm_nodes.kernels.level_sets.vector_leaves import leaf_keys

    entries = np.argwhere((level_set.table >= 0) | (level_set.coarse < 0.0))
    leaves = level_set.table[tuple(entries.T)]
    held = leaves >= 0
    voxels = np.empty((len(entries), LEAF, LEAF, LEAF), np.float32)
    voxels[held] = level_set.values[leaves[held], :LEAF, :LEAF, :LEAF]
    deep = entries[~held]
    if len(deep):
        padded = np.pad(level_set.coarse.astype(np.float32), 1, mode="edge")
        step = np.arange(3)
        around = padded[
            deep[:, 0, None, None, None] + step[:, None, None],
            deep[:, 1, None, None, None] + step[:, None],
            deep[:, 2, None, None, None] + step,
        ]
        t = (np.arange(LEAF) - 3.5) / LEAF
        share = np.stack([np.maximum(-t, 0.0), 1.0 - np.abs(t), np.maximum(t, 0.0)], axis=1).astype(np.float32)
        voxels[~held] = np.einsum("nabc,ia,jb,kc->nijk", around, share, share, share)
    first = LEAF * (entries + level_set.low)
    at, i, j, k = np.nonzero(voxels < 0.0)
    index = first[at] + np.stack([i, j, k], axis=1)
    ends = np.array([index.min(axis=0) - 1, index.max(axis=0) + 1], float)  # the surface lies up to a voxel farther out
    corners = np.stack(np.meshgrid(*ends.T, indexing="ij"), -1).reshape(-1, 3)
    back = np.linalg.inv(np.asarray(level_set.to_index, float)[:, :3])
    places = (corners - np.asarray(level_set.to_index, float)[:, 3]) @ back.T
    keys = leaf_keys(first)
    order = np.argsort(keys)
    grid = FieldGrid(keys[order], voxels[order].ravel(), np.asarray(level_set.to_index, float), 1)
    return grid, places.min(axis=0), places.max(axis=0)
