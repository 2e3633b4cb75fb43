"""Curves of other programs: a BasisCurves prim as a line with its arc length."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import InputError
from usd_io import reading_usd
from usd_io.stage_reader import open_stage
from usd_io.time_codes import per_second
from usd_io.typed import vectors, whole_numbers
from usd_io.units import stage_to_si

__all__ = ["read_curve"]

PIECES = 64
"""Straight pieces of each segment of a cubic curve: those of a quarter turn are 3e-5 of it shorter than the arc."""
BASES = {
    "bezier": np.array([[-1, 3, -3, 1], [3, -6, 3, 0], [-3, 3, 0, 0], [1, 0, 0, 0]], float),
    "bspline": np.array([[-1, 3, -3, 1], [3, -6, 3, 0], [-3, 0, 3, 0], [1, 4, 1, 0]], float) / 6.0,
    "catmullRom": np.array([[-1, 3, -3, 1], [2, -5, 4, -1], [-1, 0, 1, 0], [0, 2, 0, 0]], float) / 2.0,
}
"""Rows: what (t^3, t^2, t, 1) gives to each of four points (UsdGeom.BasisCurves)."""


def read_curve(path: Path, prim: str = "", seconds: float = 0.0) -> np.ndarray:
    """Return the first curve of a BasisCurves prim as points of a line [m], shape (n, 3), n >= 2.

    Args:
        path: A USD file.
        prim: Path or name of the prim; may stay empty where the file holds only one.
        seconds: Where it is read, in seconds of the file's time codes.

    Raises:
        InputError: There is no such curve, its basis is unknown, or it has no length.
    """
    from pxr import UsdGeom

    stage = open_stage(path)
    with reading_usd(path):
        found = [each for each in stage.Traverse() if each.IsA(UsdGeom.BasisCurves)]
        named = [each for each in found if not prim or prim in (each.GetName(), str(each.GetPath()))]
        if len(named) != 1:
            there = ", ".join(str(each.GetPath()) for each in found) or "none"
            raise InputError(f"{path}: {len(named)} curves are called '{prim}'; name one (there: {there})")
        curve = UsdGeom.BasisCurves(named[0])
        code = seconds * per_second(stage)
        points, counts = vectors(curve.GetPointsAttr(), code), whole_numbers(curve.GetCurveVertexCountsAttr(), code)
        if curve.GetTypeAttr().Get() != "linear" and curve.GetBasisAttr().Get() not in BASES:
            basis = curve.GetBasisAttr().Get()
            raise InputError(
                f"{path}: curve {curve.GetPath()} has the basis '{basis}'; export it as {', '.join(BASES)}, or as a linear curve"
            )
        line = _line(curve, points[: counts[0]] if len(counts) else points)
        full = stage_to_si(stage) @ np.array(UsdGeom.Xformable(named[0]).ComputeLocalToWorldTransform(code)).T
    line = line @ full[:3, :3].T + full[:3, 3]
    if len(line) < 2 or not np.isfinite(line).all() or not np.ptp(line, axis=0).any():
        raise InputError(f"{path}: curve {named[0].GetPath()} has no length; give it two points that are apart, a cubic one four")
    return line


def _line(curve: Any, points: np.ndarray) -> np.ndarray:
    """Return the points of a line that follows a curve: its own where it is linear."""
    closed = curve.GetWrapAttr().Get() == "periodic"
    if len(points) < 2:
        return points
    if curve.GetTypeAttr().Get() == "linear":
        return np.concatenate([points, points[:1]]) if closed else points
    basis = curve.GetBasisAttr().Get()
    step = 3 if basis == "bezier" else 1
    if curve.GetWrapAttr().Get() == "pinned" and step == 1:  # as if its end points were repeated until it begins and ends there
        before, after = 2.0 * points[:1] - points[1:2], 2.0 * points[-1:] - points[-2:-1]
        points = np.concatenate([before, points, after])
    if closed:
        points = np.concatenate([points, points[: 4 - step]])
    powers = np.linspace(0.0, 1.0, PIECES + 1)[:, None] ** [3, 2, 1, 0]
    pieces = [powers @ BASES[basis] @ points[first : first + 4] for first in range(0, len(points) - 3, step)]
    return np.concatenate([*(piece[:-1] for piece in pieces), pieces[-1][-1:]]) if pieces else points[:0]
