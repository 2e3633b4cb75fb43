"""What a frame of a cache takes on disk, before it is written: upper bounds that name their parts."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from mpm_nodes.data import ATTRIBUTES, OutputError

__all__ = ["EVERY_ATTRIBUTE", "frame_bytes", "refuse_far"]

EVERY_ATTRIBUTE = "*"
POINT_BYTES = 12 + 4
"""Position and width of a particle."""
MESH_POINT_BYTES = 12 + 12 + 12 + 16
"""Position, normal, velocity, and the four indices of the one quad that a closed surface has for each point."""
UNKNOWN_BYTES = 4 + 8
"""A user's own column of doubles, which is stored as float as well."""
LAYER_BYTES = 10_000
COARSEST = 0.25
"""Most that the numbers of a file may round a position, in distances of neighbouring particles."""


def frame_bytes(
    particles: int = 0, attributes: Collection[str] = (), mesh_points: int = 0, voxels: int = 0, half: bool = True
) -> int:
    """Return the bytes of one frame.

    Args:
        particles: Particles in the frame.
        attributes: Their columns besides the position; "*" counts every one of the table.
        mesh_points: Points of all meshes.
        voxels: Active voxels of all grids, three for one of a vector grid.
        half: Whether voxels take 16 bits.
    """
    names = set(ATTRIBUTES) if EVERY_ATTRIBUTE in attributes else set(attributes)
    each = POINT_BYTES + sum(_column_bytes(name) for name in names - {"position"})
    return LAYER_BYTES + particles * each + mesh_points * MESH_POINT_BYTES + voxels * (2 if half else 4)


def _column_bytes(name: str) -> int:
    known = ATTRIBUTES.get(name)
    if known is None:
        return UNKNOWN_BYTES
    # The id is stored twice: as 64 bits for the schema, as 32 for readers that drop those.
    return 12 if name == "id" else 4 * known.rows


def refuse_far(where: str, farthest: float, spacing: float) -> None:
    """Refuse positions that files of 32-bit numbers cannot tell apart.

    Args:
        where: Who says so.
        farthest: Largest component of any position [m].
        spacing: Distance of neighbouring particles [m].

    Raises:
        OutputError: Numbers of that size are farther apart than a quarter of the spacing.
    """
    if not spacing > 0.0 or not np.isfinite(farthest):
        return
    step = float(np.spacing(np.float32(min(farthest, 3e38))))
    if step > COARSEST * spacing:
        raise OutputError(
            f"{where}: particles {spacing:.3g} m apart lie {farthest:.3g} m from the origin, where the file's 32-bit numbers are "
            f"{step:.2g} m apart; move the scene nearer to the origin"
        )
