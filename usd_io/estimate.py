"""What a frame of a cache takes on disk, before it is written, part by part."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from mpm_nodes.data import ATTRIBUTES, OutputError

__all__ = ["EVERY_ATTRIBUTE", "frame_bytes", "refuse_far"]

EVERY_ATTRIBUTE = "*"
SQUEEZED = {"id": 2.0, "material": 0.5, "mass": 0.5, "volume": 0.5}
"""What is left of columns that differ little from particle to particle: OpenUSD compresses numbers. Widths come with the volume."""
MESH_POINT_BYTES = 12 + 12 + 12 + 3
"""Position, normal, velocity, and what is left of the four indices of the one quad that a closed surface has for each point."""
COLLIDER_POINT_BYTES = 12 + 3
"""Position, and what is left of the indices."""
UNKNOWN_BYTES = 4 + 8
"""A user's own column of doubles, which is stored as float as well."""
LAYER_BYTES, CACHE_BYTES = 7_000, 40_000
"""What a frame takes without any points, with its records; and what a cache does, with its root layers."""
VOXEL_BYTES = 2.5, 4.5
"""A voxel in 16 and in 32 bits, with its share of the tree."""
COARSEST = 0.25
"""Most that the numbers of a file may round a position, in distances of neighbouring particles."""


def frame_bytes(
    particles: int = 0,
    attributes: Collection[str] = (),
    mesh_points: int = 0,
    voxels: int = 0,
    half: bool = True,
    packed: bool = False,
) -> int:
    """Return the bytes of one frame.

    Args:
        particles: Particles in the frame.
        attributes: Their columns besides the position; "*" counts every one of the table.
        mesh_points: Points of all meshes.
        voxels: Active voxels of all grids, three for one of a vector grid.
        half: Whether voxels take 16 bits.
        packed: Whether positions take half their size.
    """
    names = set(ATTRIBUTES) if EVERY_ATTRIBUTE in attributes else set(attributes)
    each = (6 if packed else 12) + sum(_column_bytes(name) for name in names - {"position"})
    return int(LAYER_BYTES + particles * each + mesh_points * MESH_POINT_BYTES + voxels * VOXEL_BYTES[not half])


def _column_bytes(name: str) -> float:
    known = ATTRIBUTES.get(name)
    if known is None:
        return UNKNOWN_BYTES
    return SQUEEZED.get(name, 4 * known.rows)


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
