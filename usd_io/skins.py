"""Whether the surfaces in a cache hold the volume of the particles that they wrap."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from pxr import Usd, UsdGeom

__all__ = ["check_volume", "enclosed_volume"]

TOLERANCE = 0.02
"""Largest part by which the volume inside may be off."""
LEAST = 1000
"""Points of the smallest mesh that is looked at: where a stream has just begun, voxels do not show what there is of it."""


def check_volume(prim: Usd.Prim, first: int, last: int) -> Iterator[str]:
    """Yield the problem of a mesh that holds more or less than its particles; one line for the worst frame.

    Args:
        prim: Any prim; only meshes that tell the volume which they are to hold are looked at.
        first: First frame.
        last: Last frame.
    """
    told = prim.GetAttribute("mpm:matter_volume")
    if not prim.IsA(UsdGeom.Mesh) or not told:
        return
    off = {}
    for frame in range(first, last + 1):
        points, wanted = prim.GetAttribute("points").Get(frame), told.Get(frame)
        if wanted and points is not None and len(points) >= LEAST:
            held = enclosed_volume(*(np.array(prim.GetAttribute(name).Get(frame)) for name in _MESH))
            off[frame] = held / wanted - 1.0
    worst = max(off, key=lambda frame: abs(off[frame]), default=first)
    if abs(off.get(worst, 0.0)) > TOLERANCE:
        many, less = sum(abs(part) > TOLERANCE for part in off.values()), "less" if off[worst] < 0.0 else "more"
        yield (
            f"{prim.GetPath()} frame {worst}: the surface holds {100.0 * abs(off[worst]):.1f} % {less} than its particles "
            f"(so many frames are off by {100.0 * TOLERANCE:g} %: {many})"
        )


_MESH = ("points", "faceVertexCounts", "faceVertexIndices")


def enclosed_volume(points: np.ndarray, counts: np.ndarray, indices: np.ndarray) -> float:
    """Return the volume inside a closed mesh, its faces as fans of triangles, in the cube of its unit.

    Args:
        points: Shape (n, 3).
        counts: Corners of each face, shape (faces,).
        indices: Points of the corners, shape (counts.sum(),).
    """
    if not len(points):
        return 0.0
    starts = np.cumsum(counts) - counts
    inner = np.arange(len(indices)) - np.repeat(starts, counts)
    second = np.flatnonzero((inner >= 1) & (inner < np.repeat(counts, counts) - 1))
    corners = np.asarray(points, np.float64) - np.mean(points, axis=0, dtype=np.float64)
    a, b, c = (corners[indices[which]] for which in (np.repeat(starts, counts)[second], second, second + 1))
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6.0)
