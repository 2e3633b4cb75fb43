"""Make bowl.usda: a bowl turned from a curve, a sheet without thickness, in centimetres as many tools export.

python samples/make_bowl.py              (needs usd-core: pip install "mpm-nodes[usd]")
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from pxr import Usd, UsdGeom

RADIUS, RIM, AROUND, UP = 22.0, 80.0, 40, 12
"""Radius of the sphere [cm], angle of the rim from the bottom [deg], faces around and from the bottom to the rim."""


def main(target: Path) -> None:
    """Write the stage."""
    angles = np.radians(np.linspace(0.0, RIM, UP + 1))[1:]
    turns = np.linspace(0.0, 2.0 * np.pi, AROUND, endpoint=False)
    rings = [
        (RADIUS * np.sin(a) * np.cos(t), RADIUS * (1.0 - np.cos(a)) + 2.0, RADIUS * np.sin(a) * np.sin(t))
        for a in angles
        for t in turns
    ]
    points = [(0.0, 2.0, 0.0), *rings]
    counts, indices = [], []
    for k in range(AROUND):
        n = (k + 1) % AROUND
        counts.append(3)
        indices += [0, 1 + k, 1 + n]
        for ring in range(UP - 1):
            low, high = 1 + ring * AROUND, 1 + (ring + 1) * AROUND
            counts.append(4)
            indices += [low + k, high + k, high + n, low + n]
    stage = Usd.Stage.CreateNew(str(target))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    UsdGeom.SetStageMetersPerUnit(stage, 0.01)
    mesh = UsdGeom.Mesh.Define(stage, "/bowl")
    stage.SetDefaultPrim(mesh.GetPrim())
    mesh.CreatePointsAttr([tuple(round(float(c), 3) for c in point) for point in points])
    mesh.CreateFaceVertexCountsAttr(counts)
    mesh.CreateFaceVertexIndicesAttr(indices)
    mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    mesh.CreateDoubleSidedAttr(True)
    stage.Save()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("bowl.usda"))
