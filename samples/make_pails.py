"""Make pails.usda: two pails that stand upside down, the sand in them, and how they are lifted.

python samples/make_pails.py              (needs usd-core: pip install "mpm-nodes[usd]")
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from pxr import Gf, Usd, UsdGeom

MOUTH, BOTTOM, HEIGHT, THICKNESS = 0.09, 0.07, 0.13, 0.02
"""Radii inside, at the ground and at the bottom, which is above; height inside, and thickness of the wall [m]."""
PLACES = {"dry": -0.2, "wet": 0.2}
"""Where they stand along x [m]."""
LIFT = ((1.0, 0.0), (5.0, 0.0), (37.0, 0.2))
"""Frames, and how high they are lifted by then [m]: at 0.15 m/s."""
AROUND = 64
HUB = 0.0005
"""Radius of the pinhole along the axis [m]: faces there have an area."""


def turned(outline: list[tuple[float, float]]) -> tuple[np.ndarray, list[list[int]]]:
    """Return points [m], shape (n, 3), and faces, seen from outside counterclockwise, of a closed outline of radius and height.

    The outline goes counterclockwise, with the axis on its left.
    """
    turn = np.linspace(0.0, 2.0 * np.pi, AROUND, endpoint=False)
    points = [(r * np.cos(a), y, r * np.sin(a)) for r, y in outline for a in turn]
    count = len(outline)
    faces = [
        [k * AROUND + a, (k + 1) % count * AROUND + a, (k + 1) % count * AROUND + (a + 1) % AROUND, k * AROUND + (a + 1) % AROUND]
        for k in range(count)
        for a in range(AROUND)
    ]
    return np.array(points), faces


def bodies() -> dict[str, tuple[np.ndarray, list[list[int]]]]:
    """Return points and faces of a pail, and of the sand in it."""
    top = HEIGHT + THICKNESS
    pail = [
        (HUB, HEIGHT), (BOTTOM, HEIGHT), (MOUTH, 0.0), (MOUTH + THICKNESS, 0.0), (BOTTOM + THICKNESS, top), (HUB, top)
    ]  # fmt: skip
    sand = [(HUB, 0.0), (MOUTH, 0.0), (BOTTOM, HEIGHT), (HUB, HEIGHT)]
    return {"pail": turned(pail), "sand": turned(sand)}


def main(target: Path) -> None:
    """Write the stage."""
    stage = Usd.Stage.CreateNew(str(target))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    for which, x in PLACES.items():
        for name, (points, faces) in bodies().items():
            mesh = UsdGeom.Mesh.Define(stage, f"/{which}_{name}")
            place = mesh.AddTranslateOp()
            for frame, high in LIFT:
                place.Set(Gf.Vec3d(x, 0.0 if name == "sand" else high, 0.0), frame)
            mesh.CreatePointsAttr([tuple(round(float(c), 6) for c in point) for point in points])
            mesh.CreateFaceVertexCountsAttr([len(face) for face in faces])
            mesh.CreateFaceVertexIndicesAttr([k for face in faces for k in face])
            mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    stage.SetDefaultPrim(stage.GetPrimAtPath("/dry_pail"))
    stage.Save()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("pails.usda"))
