"""Rotations as knobs give them: angles about the axes, or a quaternion. Quarter turns are exact either way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mpm_nodes.data import MpmNodesError, Orientation, Vec3

UNTURNED: Orientation = (1.0, 0.0, 0.0, 0.0)
"""The quaternion of no rotation."""
TURNS = ("rotation", "orientation")
"""Knobs that turn a body; one of them may be given."""


def orientation(matrix: Any) -> Orientation:
    """Return the quaternion of a rotation matrix, as the knob `orientation` takes it.

    Args:
        matrix: R with x = R y, rows first, shape (3, 3).

    Raises:
        MpmNodesError: It scales, shears or mirrors by more than 1e-6.
    """
    from mpm_nodes.kernels.level_sets.level_set import quaternion

    rows = np.asarray(matrix, np.float64)
    if rows.shape != (3, 3) or not np.isfinite(rows).all():
        raise MpmNodesError(f"a rotation matrix has 3 rows of 3 finite numbers; this is {matrix!r}")
    if not np.allclose(rows @ rows.T, np.eye(3), rtol=0.0, atol=1e-6) or np.linalg.det(rows) < 0.0:
        raise MpmNodesError(
            f"{rows.tolist()} is not a rotation: its rows must have length 1, be perpendicular to each other and right-handed; "
            "take scale, shear and mirroring out of it"
        )
    w, x, y, z = map(float, quaternion(rows))
    return w, x, y, z


def turn_matrix(rotation: Vec3 = (0.0, 0.0, 0.0), orientation: Sequence[float] = UNTURNED) -> np.ndarray:
    """Return the rotation matrix of a body's two knobs, shape (3, 3).

    Args:
        rotation: Angles about x, then y, then z [deg].
        orientation: Quaternion (w, x, y, z) of any length but 0.

    Raises:
        MpmNodesError: Both turn, or the quaternion is 0.
    """
    if tuple(orientation) == UNTURNED:
        return rotation_matrix(rotation)
    if any(rotation):
        raise MpmNodesError(
            f"rotation {tuple(rotation)} and orientation {tuple(orientation)} are both given; "
            "give one, and leave the other at its default"
        )
    return quaternion_matrix(orientation)


def quaternion_matrix(quaternion: Sequence[float]) -> np.ndarray:
    """Return the rotation matrix of a quaternion (w, x, y, z) of any length but 0, shape (3, 3).

    Raises:
        MpmNodesError: The quaternion is 0 or not finite.
    """
    w, x, y, z = (float(part) for part in quaternion)
    # over the square of the norm, and without 1 - 2 (..): so equal parts leave exact 0 and 1, as they stand in quarter turns
    norm = w * w + x * x + y * y + z * z
    if not 0.0 < norm < np.inf:
        raise MpmNodesError(f"the quaternion {tuple(quaternion)} is not a rotation; give (1, 0, 0, 0) for none")
    rows = [
        [w * w + x * x - y * y - z * z, 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), w * w - x * x + y * y - z * z, 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), w * w - x * x - y * y + z * z],
    ]
    return np.array(rows) / norm + 0.0  # no -0


def rotation_matrix(degrees: Vec3) -> np.ndarray:
    """Return the matrix that turns about x, then y, then z by the given angles [deg]; quarter turns are exact."""
    matrix = np.eye(3)
    for axis, angle in enumerate(np.asarray(degrees, np.float64)):
        b, c = (axis + 1) % 3, (axis + 2) % 3
        sine, cosine = _sine_and_cosine(float(angle))
        turn = np.eye(3)
        turn[b, b] = turn[c, c] = cosine
        turn[c, b], turn[b, c] = sine, -sine
        matrix = turn @ matrix
    return matrix + 0.0  # no -0


def _sine_and_cosine(degrees: float) -> tuple[float, float]:
    """Return both, without what rounding pi leaves at multiples of 90 degrees: cos of 90 would be 6e-17."""
    quarters = degrees / 90.0
    if quarters == np.rint(quarters):
        return ((0.0, 1.0), (1.0, 0.0), (0.0, -1.0), (-1.0, 0.0))[int(np.rint(quarters)) % 4]
    return float(np.sin(np.radians(degrees))), float(np.cos(np.radians(degrees)))
