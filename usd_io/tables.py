"""Colours as tables: rows that many points share are stored once, and each point has the number of its row.

USD compresses integers and packs floats of few values, but never vectors: a colour takes 12 bytes a point even where all are alike.
As an indexed primvar it takes next to nothing, and readers flatten it. A colour has indices in every frame, since value clips let
an attribute come or go with a cache and not with a frame.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pxr import Sdf, Vt

from usd_io.layers import COLOUR, GLOW

__all__ = ["COLOURS", "INDICES", "flatten_as_before", "table_of"]

COLOURS = (COLOUR, GLOW)
"""Primvars that are stored as tables."""
INDICES = ":indices"
"""What USD appends to the name of a primvar for its indices."""
PROBED = 1000
"""Rows that are looked at before all are: colours that blend have no table, and sorting them would cost time."""


def table_of(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return different rows and the number of the row that each point has; all rows in their order where too few are alike.

    Args:
        rows: One row a point, shape (n, 3), float32.

    Returns:
        tuple: Rows, shape (m, 3), and indices, shape (n,), int32; `table[indices]` has the bits of `rows`.
    """
    rows = np.ascontiguousarray(rows, np.float32)
    all_of_them = rows, np.arange(len(rows), dtype=np.int32)
    if len(np.unique(_keys(rows[:: 1 + len(rows) // PROBED]))) > PROBED // 2:
        return all_of_them
    _, first, indices = np.unique(_keys(rows), return_index=True, return_inverse=True)
    table = rows[first]
    if 2 * len(table) > len(rows) or not np.array_equal(table[indices].view(np.uint32), rows.view(np.uint32)):
        return all_of_them
    return table, indices.astype(np.int32)


def _keys(rows: np.ndarray) -> np.ndarray:
    """Return one number for the bits of each row; rows that differ have different ones but for rare accidents."""
    bits = np.ascontiguousarray(rows).view(np.uint32).astype(np.uint64)
    return bits @ np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)


def flatten_as_before(layer: Sdf.Layer, before: Sdf.Layer, frame: int) -> None:
    """Store colours as one row a point where a cache began so: its frames are from a version that knew no tables.

    Args:
        layer: The frame's layer.
        before: Root stage of the frames before.
        frame: Time code of the samples.
    """
    found: list[Any] = []
    layer.Traverse(Sdf.Path.absoluteRootPath, lambda path: found.append(path) if path.IsPropertyPath() else None)
    for path in found:
        known = before.GetAttributeAtPath(path)
        indices = layer.GetAttributeAtPath(Sdf.Path(f"{path}{INDICES}"))
        if path.name.removeprefix("primvars:") not in COLOURS or not known or not indices:
            continue
        if not before.GetAttributeAtPath(indices.path):
            rows, which = (np.array(layer.QueryTimeSample(each, frame)) for each in (path, indices.path))
            layer.SetTimeSample(path, float(frame), Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(rows[which].reshape(-1, 3))))
            prim = layer.GetPrimAtPath(path.GetPrimPath())
            prim.RemoveProperty(indices)
