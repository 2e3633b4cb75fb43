"""The motion of a collider over one frame: pose keys from its knobs, and the mesh that shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpm_nodes.data import FrameContext, Mesh, MpmNodesError, Vec3
from mpm_nodes.graph.time.clock import Clock
from mpm_nodes.nodes.rotations import turn_matrix

POSE_KEYS = 8
"""Intervals between pose keys within a frame: a turn of 360 degrees a frame is 45 degrees between keys."""


@dataclass(frozen=True, eq=False)
class Motion:
    """Pose keys of one frame: x = R y + t.

    Attributes:
        times: Seconds since the start frame, shape (k,).
        rotations: R, shape (k, 3, 3).
        translations: t [m], shape (k, 3).
        cut: R and t at the end of the frame where a key steps to another pose; None where the motion ends there.
    """

    times: np.ndarray
    rotations: np.ndarray
    translations: np.ndarray
    cut: tuple[np.ndarray, np.ndarray] | None = None

    def shape(self, kind: int, sizes: tuple[float, ...] = (), level_sets: tuple = (), level_set_times: Any = None) -> Any:
        """Return the posed body of that kind (`kernels.level_sets.level_set.PosedLevelSets`)."""
        from mpm_nodes.kernels.level_sets.level_set import PosedLevelSets, quaternion

        turns = np.array([quaternion(rotation) for rotation in self.rotations])
        return PosedLevelSets(kind, sizes, self.times, turns, self.translations, level_sets, level_set_times)

    def at_end(self, mesh: Mesh) -> Mesh:
        """Return a mesh given in the body's frame where it stands at the end of the frame."""
        rotation, translation = (self.rotations[-1], self.translations[-1]) if self.cut is None else self.cut
        turn = rotation.T
        normals = None if mesh.normals is None else mesh.normals @ turn
        return Mesh(mesh.points @ turn + translation, mesh.counts, mesh.indices, normals)


def key_frames(ctx: FrameContext, intervals: int = POSE_KEYS) -> np.ndarray:
    """Return the (fractional) frames of the keys of the frame being cooked; the start frame alone has no interval."""
    if ctx.frame <= ctx.settings.start:
        return np.array([float(ctx.frame)])
    return ctx.frame - 1.0 + np.arange(intervals + 1) / intervals


def key_times(ctx: FrameContext, frames: np.ndarray) -> np.ndarray:
    """Return seconds of the shot."""
    return Clock.of(ctx.settings).seconds(frames)


def sampled(ctx: FrameContext, knob: str, value: Any, frame: float) -> Any:
    """Return a knob at a fractional frame; `value` where the caller animates nothing."""
    return value if ctx.sample is None else ctx.sample(knob, frame)


def knob_motion(ctx: FrameContext, places: dict[str, Vec3], turns: dict[str, tuple[float, ...]] | None = None) -> Motion:
    """Return the motion that keyed knobs describe; where a key steps, the body lets go and is elsewhere when the frame is over.

    Args:
        ctx: The frame.
        places: The knob that places the body, with its value at this frame [m].
        turns: The knobs that turn it (`rotations.turn_matrix`), if it has any.
    """
    ((place, centre),) = places.items()
    named: dict[str, Any] = {**places, **(turns or {})}

    def pose(sample: Callable[[str, float], Any] | None, frame: float) -> tuple[np.ndarray, np.ndarray]:
        now = named if sample is None else {knob: sample(knob, frame) for knob in named}
        where = np.array(now[place], np.float64)
        if not np.isfinite(where).all():
            raise MpmNodesError(f"knob {place} is {centre}; give finite numbers [m]")
        return turn_matrix(**{knob: now[knob] for knob in turns or {}}), where

    frames = key_frames(ctx)
    poses = [pose(ctx.sample_uncut or ctx.sample, frame) for frame in frames]
    if all(_equal(each, poses[0]) for each in poses):
        frames, poses = frames[-1:], poses[-1:]
    end = pose(ctx.sample, frames[-1])
    rotations, translations = (np.array(part) for part in zip(*poses, strict=True))
    return Motion(key_times(ctx, frames), rotations, translations, None if _equal(end, poses[-1]) else end)


def _equal(one: tuple[np.ndarray, ...], other: tuple[np.ndarray, ...]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


# ---------------------------------------------------------------- meshes that show analytic shapes
def sphere_mesh(radius: float, half_length: float = 0.0, rings: int = 16) -> Mesh:
    """Return a ball, or a capsule along y whose axis has that half length [m]; counter-clockwise seen from outside."""
    polar = np.linspace(0.0, np.pi, rings + 1)
    lift = np.where(polar < 0.5 * np.pi, half_length, -half_length)
    if half_length > 0.0:  # the equator twice: once for each half
        polar, lift = np.insert(polar, rings // 2, 0.5 * np.pi), np.insert(lift, rings // 2, half_length)
    else:
        lift[:] = 0.0
    wide, rows = 2 * rings, len(polar) - 2
    turn = 2.0 * np.pi * np.arange(wide) / wide
    height = (radius * np.cos(polar) + lift)[1:-1]
    across = radius * np.sin(polar)[1:-1, None]
    ring = np.stack([across * np.cos(turn), np.repeat(height[:, None], wide, 1), -across * np.sin(turn)], axis=-1)
    end = radius + half_length
    points = np.concatenate([ring.reshape(-1, 3), [[0.0, end, 0.0], [0.0, -end, 0.0]]])
    j = np.arange(wide)
    after, last, top = (j + 1) % wide, (rows - 1) * wide, rows * wide
    start = wide * np.arange(rows - 1)[:, None]
    quads = np.stack([start + j, start + wide + j, start + wide + after, start + after], axis=-1)
    caps = [np.stack([np.full(wide, top), j, after], 1), np.stack([np.full(wide, top + 1), last + after, last + j], 1)]
    counts = np.repeat(np.array([4, 3], np.int32), (wide * (rows - 1), 2 * wide))
    axis = np.zeros_like(points)
    axis[:, 1] = np.clip(points[:, 1], -half_length, half_length)
    return Mesh(
        points, counts, np.concatenate([quads.ravel(), *(cap.ravel() for cap in caps)]).astype(np.int32), (points - axis) / radius
    )


def box_mesh(size: Vec3) -> Mesh:
    """Return a box of these edge lengths [m] about the origin, with a normal a corner, so that its faces shade flat."""
    corners = np.array([(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)]) * np.asarray(size)
    faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    outward = np.repeat(np.concatenate([(-axis, axis) for axis in np.eye(3)]), 4, axis=0)
    return Mesh(corners, np.full(6, 4, np.int32), np.array(faces, np.int32).ravel(), outward)


def plane_mesh(edge: float) -> Mesh:
    """Return a square of that edge [m] in y = 0, seen from above."""
    half = 0.5 * edge
    points = np.array([(-half, 0.0, -half), (-half, 0.0, half), (half, 0.0, half), (half, 0.0, -half)])
    return Mesh(points, np.array([4], np.int32), np.arange(4, dtype=np.int32), np.tile([0.0, 1.0, 0.0], (4, 1)))
