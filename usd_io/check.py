"""Check a finished cache for what USD's own validators do not see and readers crash or fall silent on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from pxr import Sdf, Tf, Usd, UsdGeom, UsdVol

from mpm_nodes import reads
from mpm_nodes.data import InputError
from usd_io.clips import clip_sets, clipped_prims, layers_of, left_behind, named_assets
from usd_io.intact import damage
from usd_io.looks import check_colour
from usd_io.mesh_volumes import check_volume
from usd_io.packing import PACKED, holds_points, sampled, unpacked
from usd_io.relink import CURE
from usd_io.speeds import check_velocities
from usd_io.stage_reader import open_stage, sample_times
from usd_io.time_codes import per_second
from usd_io.typed import code_range, numbers, whole_numbers
from usd_io.units import stage_to_si
from usd_io.vdb_file import grid_table, verify_digest

__all__ = ["check_cache"]

EXTENT_TOLERANCE = 1e-5
"""Slack of extents, as a fraction of the box: float32 rounding."""
ONE_A_POINT = ("vertex", "varying")


def check_cache(path: str | Path, report: Callable[[int], None] = lambda frame: None) -> list[str]:
    """Return every problem of a cache as one line each, none when it is sound.

    Looks for: missing or damaged files, frames without samples, sub-frame samples, array lengths, NaN, indices out of
    range, wrong extents, fields that are not in their .vdb, .vdb names that Blender cannot count up, velocities that are
    not those of the positions, colours that the bound material hides, surfaces that do not hold the volume of their particles.

    Args:
        path: Root stage.
        report: Called with each frame before it is checked.

    Raises:
        InputError: The stage itself cannot be opened.
    """
    stage = open_stage(path)
    problems = list(_check_metadata(stage))
    missing = list(_missing_clips(stage))
    if missing:
        return [*problems, *missing]
    prims = [p for p in stage.Traverse() if p.IsA(UsdGeom.PointBased) or holds_points(p) or p.IsA(UsdVol.OpenVDBAsset)]
    try:
        (first, last), rate = map(int, code_range(stage)), per_second(stage)
        stage_to_si(stage)
    except InputError as error:  # no frame can be looked at
        return [*problems, str(error)]
    left = [told for prim in prims if (told := left_behind(prim))]
    if left:
        return [*problems, *left]
    looks = (look for prim in prims for look in (_check_times(prim, first, last), check_colour(prim)))
    problems += [problem for look in looks for problem in _told(look)]
    for frame in range(first, last + 1):
        report(frame)
        reads.go_on()
        for prim in prims:
            check = _check_field if prim.IsA(UsdVol.OpenVDBAsset) else _check_geometry
            problems += [f"{prim.GetPath()} frame {frame}: {problem}" for problem in _told(check(prim, frame))]
    problems += [problem for prim in prims for problem in _told(check_velocities(prim, first, last, rate))]
    return problems + [problem for prim in stage.Traverse() for problem in _told(check_volume(prim, first, last))]


def _told(check: Iterator[str]) -> Iterator[str]:
    """Yield what a check finds; a value of another kind than it needs is a problem, and its last one."""
    try:
        yield from check
    except InputError as error:
        yield str(error)


def _check_metadata(stage: Usd.Stage) -> Iterator[str]:
    if not stage.GetDefaultPrim():
        yield "stage: no defaultPrim; references to it find nothing"
    for name in ("metersPerUnit", "upAxis", "startTimeCode", "endTimeCode", "timeCodesPerSecond"):
        if not stage.HasAuthoredMetadata(name):
            yield f"stage: {name} is not written; readers assume values of their own"


def _missing_clips(stage: Usd.Stage) -> Iterator[str]:
    """Yield what is wrong with the layers that each layer of a stage names, those of a cache that is referred to as well."""
    for layer in layers_of(stage):
        where = "" if layer == stage.GetRootLayer() else f"{layer.realPath}: "
        named = dict.fromkeys(layer.subLayerPaths, "stage: sublayer")
        for prim in clipped_prims(layer):
            for asset in [asset for facts in clip_sets(prim).values() for asset in named_assets(facts)]:
                named.setdefault(asset, f"{prim.path}: clip")
        found = [(told, asset, problem) for asset, told in named.items() if (problem := _layer_problem(layer, asset))]
        yield from (f"{where}{told} {asset} {problem}" for told, asset, problem in found)
        if found:
            yield f"stage: {CURE.format(layer.realPath)}"


def _layer_problem(layer: Sdf.Layer, asset: str) -> str:
    path = layer.ComputeAbsolutePath(asset)
    if "[" not in path and not Path(path).is_file():
        return "is missing"
    try:
        if told := damage(layer, asset):
            return f"is damaged: {told}"
        return "" if Sdf.Layer.FindOrOpen(path) else "cannot be opened"
    except Tf.ErrorException:
        return "is damaged"


def _check_times(prim: Usd.Prim, first: int, last: int) -> Iterator[str]:
    attribute = prim.GetAttribute("filePath") if prim.IsA(UsdVol.OpenVDBAsset) else sampled(prim)
    name, times = attribute.GetName(), sample_times(attribute)
    if not times:
        return
    odd = [t for t in times if t != round(t)]
    if odd:
        yield f"{prim.GetPath()}: {name} has a sample at {odd[0]:g}; readers count whole frames"
    lacking = sorted(set(range(first, last + 1)) - {round(t) for t in times})
    if lacking:
        yield f"{prim.GetPath()}: {name} has no sample at frame {lacking[0]} ({len(lacking)} such frames)"


# ---------------------------------------------------------------- points and meshes
def _check_geometry(prim: Usd.Prim, frame: int) -> Iterator[str]:
    points = unpacked(prim, "points", frame)
    unpacked(prim, "velocities", frame)
    if points is None:
        yield "has no points"
        return
    if prim.IsA(UsdGeom.Mesh):
        yield from _check_topology(prim, frame, len(points))
    for attribute in prim.GetAttributes():
        value = attribute.Get(frame) if attribute.GetTypeName().isArray else None
        if value is not None:
            yield from _check_array(attribute, np.array(value), len(points), frame)
    yield from _check_extent(prim, frame, points)


def _check_array(attribute: Usd.Attribute, array: np.ndarray, count: int, frame: int) -> Iterator[str]:
    name = attribute.GetName()
    if name == "ids":
        numbers(attribute, frame, whole=True)
    primvar = UsdGeom.Primvar(attribute)
    interpolation = primvar.GetInterpolation() if primvar else attribute.GetMetadata("interpolation")
    one_a_point = (
        interpolation in ONE_A_POINT
        or name in ("velocities", "ids")
        or (name.startswith(PACKED) and attribute.GetTypeName().isArray)
    )
    if one_a_point and not (primvar and primvar.IsIndexed()) and len(array) != count:
        yield f"{name} has {len(array)} values for {count} points"
    if primvar and primvar.IsIndexed():
        indices = np.array(primvar.GetIndices(frame))
        if one_a_point and len(indices) != count:
            yield f"{name} has {len(indices)} indices for {count} points"
        if len(indices) and not (indices.min() >= 0 and indices.max() < len(array)):
            yield f"{name} has indices from {indices.min()} to {indices.max()} for {len(array)} values"
    if array.dtype.kind == "f" and name != "extent" and not np.isfinite(array).all():
        yield f"{name} holds NaN or infinite values"


def _check_topology(prim: Usd.Prim, frame: int, count: int) -> Iterator[str]:
    names = ("faceVertexCounts", "faceVertexIndices")
    counts, indices = (whole_numbers(prim.GetAttribute(name), frame) for name in names)
    if counts.sum() != len(indices):
        yield f"face counts add up to {counts.sum()}, indices are {len(indices)}"
    if len(indices) and (indices.min() < 0 or indices.max() >= count):
        yield f"a face names point {indices.max() if indices.max() >= count else indices.min()} of {count}"


def _check_extent(prim: Usd.Prim, frame: int, points: np.ndarray) -> Iterator[str]:
    extent = numbers(prim.GetAttribute("extent"), frame, 3)
    if extent is None or len(extent) != 2:
        yield "has no extent"
        return
    if not len(points) or not np.isfinite(points).all():
        return
    low, high = np.array(extent, np.float64)
    slack = EXTENT_TOLERANCE * (1.0 + np.abs(points).max())
    if (points.min(axis=0) < low - slack).any() or (points.max(axis=0) > high + slack).any():
        yield f"points reach from {points.min(axis=0)} to {points.max(axis=0)}, the extent from {low} to {high}"


# ---------------------------------------------------------------- volumes
def _check_field(prim: Usd.Prim, frame: int) -> Iterator[str]:
    asset: Any = prim.GetAttribute("filePath").Get(frame)
    file = Path(asset.resolvedPath or asset.path) if asset else Path()
    if not file.is_file():
        yield f"volume file {asset.path if asset else ''!r} is missing"
        return
    digits = re.findall(r"\d+", file.name)
    if prim.GetAttribute("filePath").GetNumTimeSamples() and (not digits or int(digits[-1]) != frame):
        yield f"{file.name} does not end with the frame's number; Blender counts up the last digits of the name"
    grids = {entry.name for entry in grid_table(file)}
    verify_digest(file)
    field = prim.GetAttribute("fieldName").Get(frame)
    if field not in grids:
        yield f"field {field!r} is not in {file.name}, which holds {', '.join(sorted(grids))}"
