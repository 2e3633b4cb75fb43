"""Fields of colliders: the distance from any of them, and what lies inside, wherever it moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mpm_nodes.data import A, Collider, FieldGrid, FrameContext, Metres, Range, SpatialField
from mpm_nodes.graph.declare.decorators import PreflightContext, node
from mpm_nodes.graph.time.clock import Clock
from mpm_nodes.graph.time.keys import KeysTravel
from mpm_nodes.nodes.fields import ShapeOutput, inside_of, moved

if TYPE_CHECKING:
    from mpm_nodes.kernels.level_sets.level_set import LeafLevelSet, PosedLevelSets

__all__ = ["field_collider"]


def _told(told: PreflightContext) -> dict[str, Any]:
    """Preflight: a number, which is known in the cook."""
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

    Any mesh or level set is so a mask: for what is drained, pushed, or given an attribute. The collider need not be wired into a
    solve.

    Args:
        collider: Any collider.
        output: Inside or not, or the distance [m]; of meshes and level sets farther than a few voxels away it is coarse inside, and
            that of the end of the band outside.
        falloff: Way outside over which `inside` falls off smoothly; of meshes and level sets within their band.
    """
    shape = collider.shape
    times = np.unique([*shape.pose_times, *(shape.level_set_times if len(shape.level_sets) > 1 else ())])
    clock = Clock.of(ctx.settings)
    fields = tuple(_distance(shape, time) for time in times)
    distance = fields[-1]
    if len(fields) > 1:
        distance = SpatialField("COURSE", fields, tuple(float(clock.frame(time)) for time in times))
    return distance if output is ShapeOutput.DISTANCE else inside_of(distance, falloff)


def _distance(shape: PosedLevelSets, time: float) -> SpatialField:
    """Return the distance from a body as it is at a time of its keys."""
    from mpm_nodes.kernels.level_sets.level_set import BOX, CAPSULE, LEVEL_SET, SPHERE

    turn, shift = _pose(shape, time)
    where = (moved((float(shift[0]), float(shift[1]), float(shift[2])), turn),)
    if shape.kind == LEVEL_SET:
        times = shape.level_set_times
        first = int(np.clip(np.searchsorted(times, time, "right") - 1, 0, len(times) - 1))
        fields = [_of_level_set(each, where) for each in shape.level_sets[first : first + 2]]
        if len(fields) == 1 or time <= times[first]:
            return fields[0]
        share = (time - times[first]) / (times[first + 1] - times[first])
        return SpatialField("BETWEEN", tuple(fields), (float(share),))
    code = {SPHERE: "SPHERE", BOX: "BOX", CAPSULE: "CAPSULE"}.get(shape.kind, "PLANE")
    return SpatialField(code, where, tuple(float(each) for each in shape.sizes))


def _pose(shape: PosedLevelSets, time: float) -> tuple[np.ndarray, np.ndarray]:
    """Return rotation (3, 3) and shift (3,) of a body at a time: between keys the turn of the nearest, and a straight way."""
    from mpm_nodes.nodes.rotations import turn_matrix

    nearest = int(np.argmin(np.abs(shape.pose_times - time)))
    shift = np.array([np.interp(time, shape.pose_times, each) for each in shape.translations.T])
    w, x, y, z = map(float, shape.rotations[nearest])
    return turn_matrix(orientation=(w, x, y, z)), shift


def _of_level_set(level_set: LeafLevelSet, where: tuple[SpatialField, ...]) -> SpatialField:
    return SpatialField("GRID", where, (float(level_set.band), 0.0), grid=_grid(level_set))


def _grid(level_set: LeafLevelSet) -> FieldGrid:
    """Return a level set as voxels: its leaves, and of what lies deep inside leaves of one value."""
    from mpm_nodes.kernels.level_sets.level_set import LEAF
    from mpm_nodes.kernels.level_sets.vector_leaves import leaf_keys

    entries = np.argwhere((level_set.table >= 0) | (level_set.coarse < 0.0))
    at = tuple(entries.T)
    leaves, coarse = level_set.table[at], level_set.coarse[at]
    voxels = np.repeat(coarse.astype(np.float32)[:, None], LEAF**3, axis=1).reshape(-1, LEAF, LEAF, LEAF)
    held = leaves >= 0
    voxels[held] = level_set.values[leaves[held], :LEAF, :LEAF, :LEAF]
    keys = leaf_keys(LEAF * (entries + level_set.low))
    order = np.argsort(keys)
    return FieldGrid(keys[order], voxels[order].ravel(), np.asarray(level_set.to_index, float), 1)
