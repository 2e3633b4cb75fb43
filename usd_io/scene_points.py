"""Point clouds that a host hands over as arrays, written as the Points of a stage."""

from __future__ import annotations

from typing import Any

import numpy as np
from pxr import Sdf, Vt

from usd_io.layers import set_sample
from usd_io.points import add_primvars

__all__ = ["add_clouds"]

VECTORS = ("position", "velocity")


def add_clouds(
    layer: Sdf.Layer, path: str, shapes: list[list[dict[str, Any]]], frames: list[int | None], arrays: dict[str, np.ndarray]
) -> None:
    """Define a Points prim that holds all clouds of a frame in the world, with a sample at each frame.

    What some of the clouds lack is 0 there.

    Args:
        layer: The layer.
        path: Prim path.
        shapes: By frame, clouds with their `matrix` (rows of 4 x 4, for column vectors) and the names of their `columns`: positions
            and velocities, three numbers a point, and others with one.
        frames: The frames; one None where nothing changes.
        arrays: Flat arrays by name.
    """
    prim = Sdf.CreatePrimInLayer(layer, path)
    prim.specifier, prim.typeName = Sdf.SpecifierDef, "Points"
    names = list(dict.fromkeys(name for clouds in shapes for cloud in clouds for name in cloud["columns"]))
    for frame, clouds in zip(frames, shapes, strict=True):
        columns = {name: _joined(name, clouds, arrays) for name in names}
        points = Vt.Vec3fArray.FromNumpy(columns.pop("position"))
        set_sample(prim, "points", Sdf.ValueTypeNames.Point3fArray, points, frame)
        for name, column in columns.items():
            if name == "velocity":
                set_sample(prim, "velocities", Sdf.ValueTypeNames.Vector3fArray, Vt.Vec3fArray.FromNumpy(column), frame)
            elif name == "radius":
                widths = Vt.FloatArray.FromNumpy(2.0 * column)
                set_sample(prim, "widths", Sdf.ValueTypeNames.FloatArray, widths, frame, "vertex")
            elif name == "id":
                ids = Vt.Int64Array.FromNumpy(column.astype(np.int64))
                set_sample(prim, "ids", Sdf.ValueTypeNames.Int64Array, ids, frame)
            else:
                add_primvars(prim, name, column, frame)


def _joined(name: str, clouds: list[dict[str, Any]], arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Return a column of all clouds in the world."""
    width = 3 if name in VECTORS else 1
    parts = [np.zeros((0, width), np.float32)]
    for cloud in clouds:
        matrix, columns = np.reshape(cloud["matrix"], (4, 4)), cloud["columns"]
        count = len(arrays[columns["position"]]) // 3
        own = arrays[columns[name]] if name in columns else np.zeros(width * count, np.float32)
        own = own.reshape(count, width)
        if name in VECTORS:
            own = own @ matrix[:3, :3].T + (matrix[:3, 3] if name == "position" else 0.0)
        elif name == "radius":
            own = own * np.cbrt(abs(np.linalg.det(matrix[:3, :3])))
        parts.append(own if own.dtype == np.int32 else own.astype(np.float32))
    joined = np.concatenate(parts if len(parts) == 1 else parts[1:])
    return np.ascontiguousarray(joined if name in VECTORS else joined[:, 0])
