"""Fields around a curve of a USD file: a flow along it, the distance from it, and what lies near it."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mpm_nodes.data import (
    A,
    FieldGrid,
    GraphSettings,
    Metres,
    MetresPerSecond,
    MpmNodesError,
    Range,
    SpatialField,
    Unit,
)
from mpm_nodes.graph.declare.decorators import PreflightContext, node
from mpm_nodes.graph.time.keys import KeysTravel, NotKeyable
from mpm_nodes.graph.values.kept import NOTHING_KEPT, Kept
from mpm_nodes.nodes.collider_files import stamp
from mpm_nodes.nodes.fields import constant, inside_of, place, scaled

__all__ = ["CurveOutput", "line_field"]

MOST_VOXELS = 4_000_000
"""Voxels around a curve at most: 64 MB of them."""
LEAF = 8
_STILL = NotKeyable("the curve is read once")


class CurveOutput(enum.Enum):
    """What a curve gives.

    FLOW: velocities along it, and towards it [m/s].
    INSIDE: 1 within the radius, 0 outside.
    DISTANCE: the way to it [m], the radius and falloff at most.
    """

    FLOW = "flow"
    INSIDE = "inside"
    DISTANCE = "distance"


class _Near(NamedTuple):
    """Voxels around a line: of its nearest point the distance [m], the way there [m], and the direction of the line."""

    distance: FieldGrid
    way: FieldGrid
    along: FieldGrid


def _told(told: PreflightContext) -> dict[str, Any]:
    """Preflight: a curve that cannot be used is told now."""
    made = field_curve(told.settings, told.kept, **told.knobs)
    return {"vector": made.vector, "field": made}


@node(category="Field", label="Field from Curve", preflight=_told)
def field_curve(
    settings: GraphSettings,
    kept: Kept = NOTHING_KEPT,
    *,
    path: Path,
    prim: str = "",
    output: CurveOutput = CurveOutput.FLOW,
    speed: A[float, MetresPerSecond, Range(soft_min=-10.0, soft_max=10.0), KeysTravel()] = 1.0,
    pull: A[float, Unit("1/s"), Range(soft_min=0.0, soft_max=20.0), KeysTravel()] = 2.0,
    radius: A[float, Metres, Range(min=0.0, exclusive_min=True, soft_max=2.0), _STILL] = 0.3,
    falloff: A[float, Metres, Range(min=0.0, soft_max=1.0), _STILL] = 0.0,
) -> SpatialField:
    """Be a flow along a USD curve, which force_wind draws matter along with, or the distance from it, or 1 near it.

    It is taken at voxels as wide as a cell, and is exact between them around a straight line. Beyond the ends of an open curve the
    flow goes straight on.

    Args:
        path: The USD file, with a BasisCurves prim.
        prim: Path or name of the prim; may stay empty where the file holds only one. Its first curve is taken, at the first frame.
        output: The flow, what lies near, or the distance.
        speed: Along the curve, in the order of its points; below 0 back.
        pull: Speed towards the curve for each metre of distance, below 0 away from it.
        radius: How far it reaches: there is no flow beyond the radius and the falloff.
        falloff: Way outside the radius over which `inside` falls off smoothly.

    Raises:
        InputError: The file cannot be read, or has no such curve.
        MpmNodesError: The curve reaches too far for these cells.
    """
    from usd_io import require_usd

    require_usd()
    from usd_io.curves import read_curve

    line = kept.get(("curve", *stamp(path), prim), lambda: read_curve(path, prim, settings.start / settings.fps))
    key = ("near_curve", *stamp(path), prim, radius + falloff, settings.cell_size)
    near = kept.get(key, lambda: _voxels_near(line, radius + falloff, settings.cell_size))
    return _field(near, output, speed, pull, (radius, falloff))


def line_field(
    line: np.ndarray,
    cell: float,
    output: CurveOutput,
    speed: float = 1.0,
    pull: float = 2.0,
    reach: tuple[float, float] = (0.3, 0.0),
) -> SpatialField:
    """Return what `field_curve` does of a line.

    Args:
        line: Its points [m], shape (n, 3), n >= 2.
        cell: Width of a voxel [m].
        output, speed, pull: As of `field_curve`.
        reach: Radius and falloff [m].

    Raises:
        MpmNodesError: It reaches too far for such voxels.
    """
    return _field(_voxels_near(np.asarray(line, float), sum(reach), cell), output, speed, pull, reach)


def _field(near: _Near, output: CurveOutput, speed: float, pull: float, reach: tuple[float, float]) -> SpatialField:
    def of(grid: FieldGrid, outside: float) -> SpatialField:
        return SpatialField("GRID", (place(),), (outside, 1.0), vector=grid.parts == 3, grid=grid)

    if output is CurveOutput.FLOW:
        along, across = scaled(of(near.along, 0.0), constant(speed)), scaled(of(near.way, 0.0), constant(pull))
        return SpatialField("ADD", (along, across), vector=True)
    radius, falloff = reach
    distance = SpatialField("MINIMUM", (of(near.distance, radius + falloff), constant(radius + falloff)))
    if output is CurveOutput.DISTANCE:
        return distance
    return inside_of(SpatialField("SUBTRACT", (distance, constant(radius))), falloff or 1e-6 * radius)


def _voxels_near(line: np.ndarray, reach: float, voxel: float) -> _Near:
    """Return voxels within a reach of a line [m]."""
    from mpm_nodes.kernels.level_sets.vector_leaves import leaf_keys

    wide, wanted = LEAF * voxel, reach + 2.0 * voxel
    length = float(np.linalg.norm(np.diff(line, axis=0), axis=1).sum())
    if np.pi * wanted**2 * (length + 4.0 / 3.0 * wanted) > MOST_VOXELS * voxel**3:
        raise MpmNodesError(
            f"field_curve.radius: with the falloff {reach:g} m around a curve of {length:.3g} m is too far for these cells; "
            "lower it, or raise settings.cell_size"
        )
    line = _thinned(line, 0.5 * voxel)
    around = int(np.ceil(wanted / wide))
    pieces = np.maximum(np.ceil(np.linalg.norm(np.diff(line, axis=0), axis=1) / (0.5 * wide)), 1).astype(np.int64)
    along = [np.linspace(a, b, n, endpoint=False) for a, b, n in zip(line[:-1], line[1:], pieces, strict=True)]
    passed = np.unique(np.floor(np.concatenate([*along, line[-1:]]) / wide).astype(np.int64), axis=0)
    step = np.arange(-around, around + 1)
    sides = np.stack(np.meshgrid(step, step, step, indexing="ij"), axis=-1).reshape(-1, 1, 3)
    half = 0.5 * np.sqrt(3.0) * wide
    kept, found = [], []
    inner = np.indices((LEAF,) * 3).reshape(3, -1).T * voxel
    steps = np.diff(line, axis=0)
    closed = bool(np.allclose(line[0], line[-1], rtol=0.0, atol=1e-6 * np.abs(np.ptp(line, axis=0)).max()))
    for leaf in np.unique((passed + sides).reshape(-1, 3), axis=0):
        gap = _gaps(line[:-1], steps, (leaf[None] + 0.5) * wide)[0]
        if gap.min() <= reach + voxel + half:
            kept.append(leaf)
            near = np.flatnonzero(gap <= gap.min() + 2.0 * half)
            found.append(_nearest((line, steps, closed), near, leaf * wide + inner, wanted))
    keys = leaf_keys(LEAF * np.array(kept))
    order = np.argsort(keys)
    to_index = np.concatenate([np.eye(3) / voxel, np.zeros((3, 1))], axis=1)
    distance, way, direction = (np.stack(each)[order].astype(np.float32) for each in zip(*found, strict=True))
    return _Near(*(FieldGrid(keys[order], each.ravel(), to_index, each.shape[2]) for each in (distance, way, direction)))


def _thinned(line: np.ndarray, least: float) -> np.ndarray:
    """Return a line without points that follow closer than a length, except its ends."""
    lengths = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])
    keep = np.diff(np.floor(lengths / least), prepend=-1.0) > 0.0
    keep[-1] = True
    thin = line[keep]
    apart = np.linalg.norm(np.diff(thin, axis=0), axis=1) > 1e-6 * least
    return thin[np.concatenate([[True], apart])] if apart.any() else line[[0, -1]]


def _gaps(a: np.ndarray, d: np.ndarray, spots: np.ndarray) -> np.ndarray:
    """Return how far spots are from pieces a + t d of a line [m], shape (spots, pieces)."""
    square = np.einsum("ij,ij->i", d, d)
    along = spots @ d.T - np.einsum("ij,ij->i", a, d)
    apart = np.einsum("ij,ij->i", spots, spots)[:, None] - 2.0 * spots @ a.T + np.einsum("ij,ij->i", a, a)
    t = np.clip(along / square, 0.0, 1.0)
    return np.asarray(np.sqrt(np.maximum(apart - t * (2.0 * along - t * square), 0.0)))


def _nearest(
    whole: tuple[np.ndarray, np.ndarray, bool], pieces: np.ndarray, spots: np.ndarray, reach: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distances of spots from a line, the ways there and its directions, NaN beyond the reach.

    Args:
        whole: Points of the line, the steps from each to the next, and whether it ends where it begins.
        pieces: Those that may be nearest.
        spots: Shape (n, 3) [m].
        reach: [m].
    """
    from mpm_nodes.kernels.fields.nearest_pieces import nearest_pieces

    line, steps, closed = whole
    a, d = line[pieces], steps[pieces]
    middle = spots.mean(axis=0)  # so that squares are of the size of what they tell
    ours, theirs = spots - middle, a - middle
    best, raw = np.empty(len(spots), np.int64), np.empty(len(spots))
    each = np.stack([np.einsum("ij,ij->i", first, second) for first, second in ((theirs, d), (d, d), (theirs, theirs))])
    nearest_pieces(ours @ d.T, 2.0 * ours @ theirs.T, np.einsum("ij,ij->i", ours, ours), each, best, raw)
    way = a[best] + np.clip(raw, 0.0, 1.0)[:, None] * d[best] - spots
    gap = np.linalg.norm(way, axis=1)
    direction = d[best] / np.linalg.norm(d[best], axis=1)[:, None]
    ahead, behind = pieces[best] == len(line) - 2, pieces[best] == 0
    beyond = np.zeros(len(spots), bool) if closed else ahead & (raw > 1.0) | behind & (raw < 0.0)
    way = np.where(beyond[:, None], way - np.einsum("ij,ij->i", way, direction)[:, None] * direction, way)
    far = gap > reach
    gap, way, direction = np.where(far, np.nan, gap), np.where(far[:, None], np.nan, way), np.where(far[:, None], np.nan, direction)
    return gap[:, None], way, direction
