"""Shapes of colliders before they are packed: whether kernels can use them, how fast they move, how far they reach."""

from __future__ import annotations

import math

import numpy as np

from mpm_nodes.data import Collider, MpmNodesError
from mpm_nodes.kernels.level_sets.level_set import LEVEL_SET, PLANE, PosedLevelSets

__all__ = ["checked_shape", "fastest_pose", "own_speed", "time_to_travel"]


def time_to_travel(distance: float, speed: float, acceleration: float) -> float:
    """Return the longest dt with (speed + acceleration dt) dt <= `distance` [m]: a substep moves by its speed at the end."""
    root = math.sqrt(speed * speed + 4.0 * acceleration * distance)
    return 2.0 * distance / (speed + root) if root > 0 else math.inf


def checked_shape(collider: Collider) -> PosedLevelSets:
    """Return the collider's shape when kernels can use it."""
    shape = collider.shape
    if not isinstance(shape, PosedLevelSets) or (shape.kind == LEVEL_SET) != bool(shape.level_sets):
        raise MpmNodesError(
            f"collider '{collider.name}': its shape is {type(shape).__name__} without a body; make colliders with the collide nodes"
        )
    numbers = (shape.pose_times, shape.rotations, shape.translations, shape.level_set_times, np.array(shape.sizes))
    if not all(np.isfinite(part).all() for part in numbers):
        raise MpmNodesError(f"collider '{collider.name}': its motion or size holds NaN or infinity; use finite numbers")
    return shape


def own_speed(shape: PosedLevelSets) -> float:
    """Return a bound on the speed of the body's level sets in their own frame [m/s]."""
    carried = [float(np.linalg.norm(part.velocities, axis=-1).max()) for part in shape.level_sets if part.velocities is not None]
    spans = np.diff(shape.level_set_times)
    if len(carried) == len(shape.level_sets) or not len(spans) or not (spans > 0.0).all():
        return max(carried, default=0.0)
    centres = np.array([part.centre for part in shape.level_sets])
    # the surface may move against the drift as well: at most as far as the band tells, taken as the drift again
    return 2.0 * float((np.linalg.norm(np.diff(centres, axis=0), axis=1) / spans).max()) + float(
        max(part.band for part in shape.level_sets) / spans.min()
    )


def fastest_pose(shape: PosedLevelSets) -> float:
    """Return a bound on the speed of the body's pose between its keys at its surface [m/s]."""
    spans = np.diff(shape.pose_times)
    if not len(spans) or not (spans > 0.0).all():
        return 0.0
    shift = np.linalg.norm(np.diff(shape.translations, axis=0), axis=1)
    if shape.kind != PLANE:
        cosine = np.abs((shape.rotations[1:] * shape.rotations[:-1]).sum(axis=1))
        shift += 2.0 * np.arccos(np.minimum(cosine, 1.0)) * _reach(shape)
    return float((shift / spans).max())


def _reach(shape: PosedLevelSets) -> float:
    """Return how far from its own origin the body reaches [m]."""
    if shape.kind != LEVEL_SET:
        return float(np.linalg.norm(shape.sizes))
    reach = 0.0
    for part in shape.level_sets:
        corners = np.array(np.meshgrid(*([0, 1],) * 3, indexing="ij")).reshape(3, 8).T * np.array(part.table.shape)
        index = 8.0 * (corners + part.low) - part.to_index[:, 3]
        reach = max(reach, float(np.linalg.norm(np.linalg.solve(part.to_index[:, :3], index.T), axis=0).max()))
    return reach
