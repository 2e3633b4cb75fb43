"""Make basin.usda and pan.usda: closed meshes in metres, turned from curves.

A round basin with an outlet and the water that fills it; a frying pan that leans by 3 degrees, with its handle.

python samples/make_vessels.py           (needs usd-core: pip install "mpm-nodes[usd]")
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from pxr import Usd, UsdGeom

AROUND, ARC = 64, 6
"""Faces around, and in a rounding."""
INNER, OUTER, OUTLET = 0.22, 0.27, 0.045
"""Radii of the wall, inside and outside, and of the outlet [m]."""
BOTTOM, FLOOR, SLOPE, LEVEL, RIM = 0.05, 0.08, 0.01, 0.155, 0.175
"""Heights of the outlet's bottom, of the floor beside it, how much that rises to the wall, of the water, and of the rim [m]."""

PAN_INNER, PAN_WALL, PAN_RIM, LEAN = 0.085, 0.0095, 0.018, -3.0
"""Radius of the pan's floor, how thick pan and wall are, how high the rim is above the floor [m], and how far it leans [deg]."""


def rounded(centre: tuple[float, float], radius: float, start: float, end: float) -> list[tuple[float, float]]:
    """Return points (radius, height) of an arc between two angles [deg]."""
    ways = [direction(angle) for angle in np.linspace(start, end, ARC)]
    return [(centre[0] + radius * x, centre[1] + radius * y) for x, y in ways]


def profile() -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Return the curves (radius, height) [m] of the basin and of the water, from the axis below to the axis above."""
    foot = FLOOR + SLOPE + 0.04
    inside = [(0.0, BOTTOM), (OUTLET, BOTTOM), (OUTLET, FLOOR), *rounded((INNER - 0.04, foot), 0.04, -90.0, 0.0)]
    rim = rounded((0.5 * (INNER + OUTER), RIM), 0.5 * (OUTER - INNER), 180.0, 0.0)
    outside = [*rim, *rounded((OUTER - 0.06, 0.06), 0.06, 0.0, -90.0), (0.0, 0.0)]
    water = [*inside, (INNER, LEVEL), (0.0, LEVEL)]
    return [*outside[::-1], *rim[:1], *inside[::-1]], water


def pan_profile() -> list[tuple[float, float]]:
    """Return the curve (radius, height) [m] of the pan, from the axis below to the axis on its floor, which is at height 0."""
    foot, slope = 0.012, 73.0
    inside = rounded((PAN_INNER, foot), foot, -90.0, slope - 90.0)
    outside = rounded((PAN_INNER, foot), foot + PAN_WALL, -90.0, slope - 90.0)
    up = (PAN_RIM - inside[-1][1]) / float(np.sin(np.radians(slope)))
    middle = [0.5 * (a + b) + up * part for a, b, part in zip(inside[-1], outside[-1], direction(slope), strict=True)]
    rim = rounded((middle[0], middle[1]), 0.5 * PAN_WALL, slope - 90.0, slope + 90.0)
    return [(0.0, -PAN_WALL), *outside, *rim, *inside[::-1], (0.0, 0.0)]


def direction(angle: float) -> tuple[float, float]:
    """Return the unit vector (radius, height) of an angle [deg]."""
    return float(np.cos(np.radians(angle))), float(np.sin(np.radians(angle)))


def turned(stage: Usd.Stage, path: str, curve: list[tuple[float, float]]) -> UsdGeom.Mesh:
    """Write the body that a curve from axis to axis gives when it is turned about y, and return its mesh."""
    turns = np.linspace(0.0, 2.0 * np.pi, AROUND, endpoint=False)
    first, *rings, last = curve
    points = [(0.0, first[1], 0.0), *((r * np.cos(t), y, r * np.sin(t)) for r, y in rings for t in turns), (0.0, last[1], 0.0)]
    faces = []
    for k in range(AROUND):
        n = (k + 1) % AROUND
        faces.append((0, 1 + k, 1 + n))
        for ring in range(len(rings) - 1):
            low, high = 1 + ring * AROUND, 1 + (ring + 1) * AROUND
            faces.append((low + k, high + k, high + n, low + n))
        high = 1 + (len(rings) - 1) * AROUND
        faces.append((high + k, len(points) - 1, high + n))
    mesh = UsdGeom.Mesh.Define(stage, path)
    mesh.CreatePointsAttr([tuple(round(float(c), 5) for c in point) for point in points])
    mesh.CreateFaceVertexCountsAttr([len(face) for face in faces])
    mesh.CreateFaceVertexIndicesAttr([corner for face in faces for corner in face])
    mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    return mesh


def started(target: Path) -> Usd.Stage:
    """Return a new stage in metres."""
    stage = Usd.Stage.CreateNew(str(target))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    return stage


def main(folder: Path) -> None:
    """Write the stages."""
    stage = started(folder / "basin.usda")
    basin, water = profile()
    turned(stage, "/basin", basin)
    turned(stage, "/water", water)
    stage.SetDefaultPrim(stage.GetPrimAtPath("/basin"))
    stage.Save()
    stage = started(folder / "pan.usda")
    turned(stage, "/pan", pan_profile()).AddRotateZOp().Set(LEAN)
    handle = turned(stage, "/handle", [(0.0, 0.0), *rounded((0.004, 0.004), 0.006, -80.0, 0.0), (0.008, 0.06), (0.011, 0.12),
                                       *rounded((0.004, 0.145), 0.007, 0.0, 80.0), (0.0, 0.152)])  # fmt: skip
    handle.AddRotateZOp().Set(LEAN)
    handle.AddRotateYOp().Set(-65.0)  # behind the pan
    handle.AddTranslateOp().Set((-PAN_INNER - 0.019, 0.011, 0.0))
    handle.AddRotateZOp(opSuffix="away").Set(78.0)
    stage.SetDefaultPrim(stage.GetPrimAtPath("/pan"))
    stage.Save()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
