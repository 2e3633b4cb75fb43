"""Where bodies are between the keys of a frame, and how fast they move there."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from mpm_nodes.data import AxesPart, BodyMotion, Moment, MovingAxes
from mpm_nodes.graph.time import keys

__all__ = ["axes_numbers", "pose_at"]


def pose_at(body: BodyMotion, frame: float) -> tuple[np.ndarray, np.ndarray]:
    """Return rotation, shape (3, 3), and translation [m] of a body at a frame: between keys it turns about one axis."""
    after = min(max(bisect_right(body.frames.tolist(), frame), 1), len(body.frames) - 1)
    if len(body.frames) == 1 or frame <= body.frames[0] or frame >= body.frames[-1]:
        end = 0 if frame <= body.frames[0] else -1
        return _matrix(body.rotations[end]), body.translations[end]
    first, last = body.frames[after - 1 : after + 1]
    share = float((frame - first) / (last - first))
    arc = [(0.0, tuple(body.rotations[after - 1]), "linear"), (1.0, tuple(body.rotations[after]), "linear")]
    way = body.translations[after] - body.translations[after - 1]
    return _matrix(np.array(keys.slerp(arc, share))), body.translations[after - 1] + share * way


def _matrix(quaternion: np.ndarray) -> np.ndarray:
    w, x, y, z = quaternion / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def axes_numbers(axes: MovingAxes, moment: Moment) -> tuple[float, ...]:
    """Return what moving axes say at a moment, as `AxesPart` lists it: 12 numbers, of a drift 3.

    Args:
        axes: The axes.
        moment: When.
    """
    rotation, place = pose_at(axes.body, moment.frame)
    if axes.part in (AxesPart.SPIN, AxesPart.DRIFT):
        spin, drift = _velocities(axes.body, moment)
        return tuple(drift.tolist()) if axes.part is AxesPart.DRIFT else (*spin.T.ravel().tolist(), *place.tolist())
    rows = rotation.T if axes.part is AxesPart.OUTWARD else rotation
    return (*rows.ravel().tolist(), *(place if axes.part is AxesPart.INWARD else np.zeros(3)).tolist())


def _velocities(body: BodyMotion, moment: Moment) -> tuple[np.ndarray, np.ndarray]:
    """Return W with the velocities W x [1/s], shape (3, 3), and that of the origin [m/s]: those of the keys around a moment."""
    frames, after = body.frames, bisect_right(body.frames.tolist(), moment.frame)
    if moment.frame == frames[-1]:  # where it ends the way there counts
        after = len(frames) - 1
    if not 0 < after < len(frames):
        return np.zeros((3, 3)), np.zeros(3)
    seconds = float(frames[after] - frames[after - 1]) * moment.frame_seconds
    turn = _matrix(body.rotations[after]) @ _matrix(body.rotations[after - 1]).T
    axis = 0.5 * np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
    sine, cosine = float(np.linalg.norm(axis)), 0.5 * (float(np.trace(turn)) - 1.0)
    x, y, z = axis * (np.arctan2(sine, cosine) / sine / seconds if sine > 1e-15 else 1.0 / seconds)
    drift = (body.translations[after] - body.translations[after - 1]) / seconds
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]]), drift
