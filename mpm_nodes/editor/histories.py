"""What one particle carries: all of it at a frame, or place and one value over frames, found again by its `id`."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from mpm_nodes.data import InputError
from mpm_nodes.editor.layers import Layer, OpenedCache, unit_of

__all__ = ["history", "particle"]

LONGEST = 0.25
"""Seconds of reading after which the rest is left to the next call: frames that are to be drawn wait for it."""


def particle(cache: OpenedCache, name: str, path: str, frame: int, index: int) -> dict[str, Any]:
    """Return id, place [m] and values of a point; vectors with their parts.

    Args:
        cache: Where.
        name: Its layer.
        path: Its prim.
        frame: The frame.
        index: Its place among the points.

    Raises:
        InputError: There is no such point.
    """
    layer = _layer(cache, name, path)
    points = layer.scene.points(path, frame)
    if not 0 <= index < len(points):
        raise InputError(f"{path} at frame {frame}: has {len(points)} points, and no number {index}")
    ids = layer.scene.numbers(path, "id", frame)
    values = []
    for attribute in cache.attribute_names():
        row = layer.scene.row(path, attribute, frame, index)
        if row is not None:
            values.append({"name": attribute, "unit": unit_of(attribute), "value": row})
    return {
        "frame": frame, "index": index, "id": None if ids is None or len(ids) != len(points) else int(ids[index]),
        "place": points[index].tolist(), "values": values,
    }  # fmt: skip


def history(cache: OpenedCache, name: str, path: str, ident: int, attribute: str, begin: int) -> dict[str, Any]:
    """Return where a particle is [m] and what its attribute is, in frames from `begin` on, for `LONGEST` seconds.

    `next` is the frame to go on with, None after the last one; frames without the particle are left out.
    """
    layer = _layer(cache, name, path)
    scene, end = layer.scene, time.monotonic() + LONGEST
    found: dict[str, Any] = {"frames": [], "places": [], "values": [], "unit": unit_of(attribute), "next": None}
    start = max(begin, scene.first)
    for frame in range(start, scene.last + 1):
        if frame > start and time.monotonic() > end:
            found["next"] = frame
            break
        ids = scene.numbers(path, "id", frame)
        at = np.flatnonzero(ids == ident) if ids is not None else np.zeros(0, int)
        if len(at):
            points, values = scene.points(path, frame), scene.numbers(path, attribute, frame) if attribute else None
            found["frames"].append(frame)
            found["places"].append(points[at[0]].tolist())
            column = values if values is not None and len(values) in (1, len(points)) else None
            found["values"].append(None if column is None else float(column[at[0] if len(column) > 1 else 0]))
    return found


def _layer(cache: OpenedCache, name: str, path: str) -> Layer:
    found = next((layer for layer in cache.layers if layer.name == name and path in layer.paths and layer.kind == "points"), None)
    if found is None:
        raise InputError(f"{name!r}: is not a layer of points of this cache")
    return found
