"""Make basin.usda: a round basin with an outlet, turned from a curve, and the water that fills it, each a closed mesh in metres.

python samples/make_basin.py             (needs usd-core: pip install "mpm-nodes[usd]")
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


def rounded(centre: tuple[float, float], radius: float, start: float, end: float) -> list[tuple[float, float]]:
    """Return points (radius, height) of an arc between two angles [deg]."""
    angles = np.radians(np.linspace(start, end, ARC))
    return [(centre[0] + radius * float(np.cos(a)), centre[1] + radius * float(np.sin(a))) for a in angles]


def profile() -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Return the curves (radius, height) [m] of the basin and of the water, from the axis below to the axis above."""
    foot = FLOOR + SLOPE + 0.04
    inside = [(0.0, BOTTOM), (OUTLET, BOTTOM), (OUTLET, FLOOR), *rounded((INNER - 0.04, foot), 0.04, -90.0, 0.0)]
    rim = rounded((0.5 * (INNER + OUTER), RIM), 0.5 * (OUTER - INNER), 180.0, 0.0)
    outside = [*rim, *rounded((OUTER - 0.06, 0.06), 0.06, 0.0, -90.0), (0.0, 0.0)]
    water = [*inside, (INNER, LEVEL), (0.0, LEVEL)]
    return [*outside[::-1], *rim[:1], *inside[::-1]], water


def turned(stage: Usd.Stage, path: str, curve: list[tuple[float, float]]) -> None:
    """Write the body that a curve from axis to axis gives when it is turned about y."""
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


def main(target: Path) -> None:
    """Write the stage."""
    stage = Usd.Stage.CreateNew(str(target))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    basin, water = profile()
    turned(stage, "/basin", basin)
    turned(stage, "/water", water)
    stage.SetDefaultPrim(stage.GetPrimAtPath("/basin"))
    stage.Save()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("basin.usda"))
