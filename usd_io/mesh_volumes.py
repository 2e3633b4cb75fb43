"""Whether the surfaces in a cache hold the volume of the particles that they wrap."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from pxr import Usd, UsdGeom

from usd_io.typed import number, numbers

__all__ = ["check_volume", "enclosed_volume"]

TOLERANCE = 0.02
"""Largest part by which the volume inside may be off."""
LEAST = 1000
"""Points of the smallest mesh that is looked at: where a stream has just begun, voxels do not show what there is of it."""


def check_volume(prim: Usd.Prim, first: int, last: int) -> Iterator[str]:
    """Yield the problem of a mesh that holds more or less than its particles; one line for the worst frame.

    Args:
        prim: Any prim; only meshes, and parents of meshes, that tell the volume which they are to hold are looked at.
        first: First frame.
        last: Last frame.
    """
    told = prim.GetAttribute("mpm:matter_volume")
    if not told:
        return
    off = {}
    parts = [each for each in (prim, *prim.GetChildren()) if each.IsA(UsdGeom.Mesh)]
    for frame in range(first, last + 1):
        points, counts, indices = _joined(parts, frame)
        wanted = number(told, frame)
        if wanted and len(points) >= LEAST:
            off[frame] = enclosed_volume(points, counts, indices) / wanted - 1.0
    worst = max(off, key=lambda frame: abs(off[frame]), default=first)
    if abs(off.get(worst, 0.0)) > TOLERANCE:
        many, less = sum(abs(part) > TOLERANCE for part in off.values()), "less" if off[worst] < 0.0 else "more"
        yield (
            f"{prim.GetPath()} frame {worst}: the surface holds {100.0 * abs(off[worst]):.1f} % {less} than its particles "
            f"(so many frames are off by {100.0 * TOLERANCE:g} %: {many})"
        )


_MESH = (("points", 3), ("faceVertexCounts", 0), ("faceVertexIndices", 0))


def _joined(parts: list[Usd.Prim], frame: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return points, counts and indices of meshes as those of one."""
    found: list[list[np.ndarray]] = [[np.zeros((0, 3))], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]]
    base = 0
    for part in parts:
        points, *topology = (numbers(part.GetAttribute(name), frame, width, whole=not width) for name, width in _MESH)
        counts, indices = topology
        if points is None or counts is None or indices is None:
            continue
        for column, values in zip(found, (np.array(points), np.array(counts), np.array(indices) + base), strict=True):
            column.append(values)
        base += len(points)
    return np.concatenate(found[0]), np.concatenate(found[1]), np.concatenate(found[2])


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
