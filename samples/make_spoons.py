"""Make spoons.usda: two spoons that tip over their lips, and the honey that fills each of them to the rim.

python samples/make_spoons.py              (needs usd-core: pip install "mpm-nodes[usd]")
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from pxr import Gf, Usd, UsdGeom

FRONT, BACK, WIDE, DEEP = 0.0115, 0.0085, 0.0075, 0.0035
"""Of the bowl, from its deepest place: to the lip, to the handle, to either side, and down [m]."""
THICKNESS = 0.0028
HEAP, FILLED = 0.0035, 0.92
"""How high honey is heaped over the rim [m], and how far out it lies, in radii."""
HANDLE = (0.03, 0.005, 0.002)
"""Length, width and thickness [m]."""
LIPS = {"warm": (-0.012, 0.033, 0.0), "cold": (0.018, 0.033, 0.0)}
"""Where the lips are; spoons turn about them [m]."""
TIPPING = ((1.0, 0.0), (13.0, -85.0), (64.0, -85.0), (72.0, -10.0))
"""Frames, and the angle to which a spoon has come by then [deg]: it tips over, pours, and is set up again."""
AROUND, RINGS = 48, 8
HUB = 0.02
"""Radius of the pinhole in the middle, in radii: faces there have an area."""


def bowl(lift: float, rim: float = 1.0) -> np.ndarray:
    """Return points of a paraboloid from its middle to its rim, moved along its normal [m], shape (RINGS + 1, AROUND, 3)."""
    share = np.linspace(HUB, rim, RINGS + 1)[:, None]
    turn = np.linspace(0.0, 2.0 * np.pi, AROUND, endpoint=False)[None, :]
    along = np.where(np.cos(turn) > 0.0, FRONT, BACK)
    x, z = share * along * np.cos(turn), share * WIDE * np.sin(turn)
    up = np.stack([-2.0 * DEEP * x / along**2, np.ones_like(x), -2.0 * DEEP * z / WIDE**2], axis=-1)
    points = np.stack([x, DEEP * (share**2 - 1.0) + 0.0 * x, z], axis=-1)
    return points + lift * up / np.linalg.norm(up, axis=-1, keepdims=True)


def closed(upper: np.ndarray, lower: np.ndarray) -> tuple[np.ndarray, list[list[int]]]:
    """Return points [m], shape (n, 3), and faces, seen from outside counterclockwise, of what lies between two such sheets."""
    rings = np.concatenate([upper, lower[::-1]])  # from the middle out above, and back below
    count = len(rings)
    faces = [
        [k * AROUND + a, k * AROUND + (a + 1) % AROUND, (k + 1) % count * AROUND + (a + 1) % AROUND, (k + 1) % count * AROUND + a]
        for k in range(count)
        for a in range(AROUND)
    ]
    return rings.reshape(-1, 3), faces


def handle() -> tuple[np.ndarray, list[list[int]]]:
    """Return points [m] and faces of a bar that begins in the rim of the bowl, opposite to the lip."""
    length, width, thickness = HANDLE
    x, y, z = (-BACK - length, -BACK + 0.0005), (-thickness, 0.0), (-0.5 * width, 0.5 * width)
    points = np.array([(a, b, c) for a in x for b in y for c in z])
    faces = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    return points, faces


def bodies() -> dict[str, tuple[np.ndarray, list[list[int]]]]:
    """Return points and faces of the parts of a spoon, and of its honey, with the lip in the origin."""
    inside = bowl(0.0)
    under = bowl(0.0, FILLED)
    heap = under * [1.0, -HEAP / DEEP, 1.0]
    found = {"bowl": closed(inside, bowl(-THICKNESS)), "handle": handle(), "honey": closed(heap, under)}
    return {name: (points - [FRONT, 0.0, 0.0], faces) for name, (points, faces) in found.items()}


def main(target: Path) -> None:
    """Write the stage."""
    stage = Usd.Stage.CreateNew(str(target))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    for which, lip in LIPS.items():
        for name, (points, faces) in bodies().items():
            mesh = UsdGeom.Mesh.Define(stage, f"/{which}_{name}")
            mesh.AddTranslateOp().Set(Gf.Vec3d(*lip))
            turn = mesh.AddRotateZOp()
            for frame, angle in TIPPING:
                turn.Set(0.0 if name == "honey" else angle, frame)
            mesh.CreatePointsAttr([tuple(round(float(c), 6) for c in point) for point in points])
            mesh.CreateFaceVertexCountsAttr([len(face) for face in faces])
            mesh.CreateFaceVertexIndicesAttr([k for face in faces for k in face])
            mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    stage.SetDefaultPrim(stage.GetPrimAtPath("/warm_bowl"))
    stage.Save()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("spoons.usda"))
