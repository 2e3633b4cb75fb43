"""How far a cache reaches: what its camera frames, how far down its floor lies, and what of a grid is not empty."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from pxr import Gf, Sdf, Vt

from mpm_nodes.data import LevelSet

__all__ = ["APART", "FLOOR_LOOK", "active_box", "bulk", "floor_of", "level_of", "read_bounds", "store_bounds", "widen_bounds"]

BOUNDS_LOW, BOUNDS_HIGH, FLOOR_HEIGHT = "mpm_nodes_bounds_low", "mpm_nodes_bounds_high", "mpm_nodes_floor"
PLANES, PLANE_LOOKS = "mpm_nodes_planes", "mpm_nodes_plane_looks"
FLOOR_LOOK = "floor"
"""Look of level squares that have none of their own."""
SUNK = 0.05
"""How far matter may reach below a level square that is the floor, over the radius of the shot: it sinks by parts of a cell."""
APART = 1e-3
"""Distance of the floor from the square that it hides, or from what is lowest, over the radius of the shot: no renderer shall see
them in one plane."""


def active_box(volume: LevelSet) -> np.ndarray | None:
    """Return least and greatest corner of the voxels that hold something, in voxels, shape (2, 3); None for none.

    These are the band of a level set, and what differs from the background of other grids.
    """
    band = volume.kind == "level_set"
    active = np.abs(volume.values) < volume.background if band else volume.values != volume.background
    active = active.any(axis=-1) if active.ndim == 5 else active
    ends = []
    for axis in range(3):
        leaf, voxel = np.nonzero(active.any(axis=tuple({1, 2, 3} - {axis + 1})))
        if not len(leaf):
            return None
        index = np.asarray(volume.origins, np.int64)[leaf, axis] + voxel
        ends.append((index.min() - 0.5, index.max() + 0.5))
    return np.array(ends).T


def bulk(extent: Any, points: Any) -> np.ndarray:
    """Return the part of an extent that the camera shall frame: drops that fly far off would make all else small.

    That is where all but the outermost 2 % are along each axis, and half of its longest side around.
    """
    extent, points = np.array(extent, np.float64), np.asarray(points)
    if len(points) == 0:
        return extent
    low, high = np.quantile(points[:: 1 + len(points) // 20_000], (0.02, 0.98), axis=0)
    reach = 0.5 * (high - low).max()
    return np.array([np.maximum(extent[0], low - reach), np.minimum(extent[1], high + reach)])


def store_bounds(layer: Sdf.Layer, framed: Sequence[Any], matter: Sequence[Any], bodies: Sequence[tuple[Any, str]]) -> None:
    """Keep what the camera shall frame, how far down anything reaches, and heights and looks of level squares.

    Args:
        layer: Of a frame.
        framed: Boxes, as are the next ones.
        matter: Of points, meshes and volumes.
        bodies: Of colliders, each with the look of a floor in its place.
    """
    boxes = [np.array(box, np.float64) for box in framed]
    boxes = [box for box in boxes if (box[0] <= box[1]).all()]
    facts = dict(layer.customLayerData)
    if boxes:
        low, high = np.min([box[0] for box in boxes], axis=0), np.max([box[1] for box in boxes], axis=0)
        facts |= {BOUNDS_LOW: Gf.Vec3d(*low.tolist()), BOUNDS_HIGH: Gf.Vec3d(*high.tolist())}
    lows = [float(box[0][1]) for box in (*matter, *(box for box, _ in bodies)) if box[0][1] <= box[1][1]]
    if lows:
        facts[FLOOR_HEIGHT] = min(lows)
    layer.customLayerData = facts | _planes({float(box[0][1]): look for box, look in bodies if box[0][1] == box[1][1]})


def _planes(looks: Mapping[float, str]) -> dict[str, Any]:
    """Return the facts of level squares, from their looks by their height."""
    heights = sorted(looks)
    named = {PLANE_LOOKS: Vt.StringArray([looks[height] for height in heights])} if {*looks.values()} - {FLOOR_LOOK} else {}
    return {PLANES: Vt.DoubleArray(heights), **named} if heights else {}


def _plane_looks(facts: Mapping[str, Any]) -> dict[float, str]:
    """Return the looks of level squares by their height."""
    heights = facts.get(PLANES, ())
    return dict(zip(heights, facts.get(PLANE_LOOKS, [FLOOR_LOOK] * len(heights)), strict=True))


def widen_bounds(root: Sdf.Layer, frame: Sdf.Layer) -> None:
    """Let the bounds of a root stage hold those of a frame, too."""
    facts, new = dict(root.customLayerData), frame.customLayerData
    for name, wider in ((BOUNDS_LOW, np.minimum), (BOUNDS_HIGH, np.maximum)):
        if name in new:
            corner = np.array(new[name])
            facts[name] = Gf.Vec3d(*wider(corner, np.array(facts[name]) if name in facts else corner).tolist())
    if FLOOR_HEIGHT in new:
        facts[FLOOR_HEIGHT] = min(facts.get(FLOOR_HEIGHT, new[FLOOR_HEIGHT]), new[FLOOR_HEIGHT])
    root.customLayerData = facts | _planes(_plane_looks(facts) | _plane_looks(new))


def read_bounds(layer: Sdf.Layer) -> np.ndarray | None:
    """Return the least and greatest corner of what the camera shall frame [m], shape (2, 3), None when it is empty."""
    data = layer.customLayerData
    return np.array([data[BOUNDS_LOW], data[BOUNDS_HIGH]]) if BOUNDS_LOW in data else None


def floor_of(layer: Sdf.Layer) -> tuple[float, str]:
    """Return height [m] and look of the floor: a hair above a level square into which matter sinks a little, and its look.

    From above, it hides the square, whose edge would be a line. Without a square it lies below what is lowest; where nothing is
    known, at 0.
    """
    facts, bounds = layer.customLayerData, read_bounds(layer)
    lowest = float(facts.get(FLOOR_HEIGHT, 0.0))
    looks = _plane_looks(facts)
    if bounds is None:
        return lowest, looks.get(lowest, FLOOR_LOOK)
    radius = 0.5 * float(np.linalg.norm(bounds[1] - bounds[0]))
    plane = level_of(looks, lowest, radius)
    return (lowest - APART * radius, FLOOR_LOOK) if plane is None else (plane + APART * radius, looks[plane])


def level_of(planes: Iterable[float], lowest: float, radius: float) -> float | None:
    """Return the height of the level square that is the floor: the highest into which matter sinks no more than a little.

    Args:
        planes: Heights of level squares [m].
        lowest: Where what lies lowest ends [m].
        radius: Of the shot [m].
    """
    return max((float(plane) for plane in planes if lowest > plane - SUNK * radius), default=None)
