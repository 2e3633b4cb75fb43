"""Make mixer.usda: a bowl, what fills it, a quarter of it by itself, and an impeller of four pitched blades on a shaft.

python samples/make_mixer.py              (needs usd-core: pip install "mpm-nodes[usd]")
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np
from pxr import Usd, UsdGeom

Outline = tuple[tuple[float, float], ...]
Part = tuple[list[tuple[float, float, float]], list[list[int]]]

AROUND = 48
"""Faces around."""
BOWL = (
    *((0.0, -0.035), (0.105, -0.035), (0.155, -0.012), (0.193, 0.06), (0.207, 0.2)),
    *((0.17, 0.2), (0.155, 0.066), (0.125, 0.018), (0.09, 0.0), (0.0, 0.0)),
)
"""Radius and height of the bowl's outline, from the middle of its foot around its rim to the middle of its bottom [m]."""
LEVEL, COCOA = 0.115, (0.0, 0.25)
"""Height of the batter [m], and which share of the turn is brown."""
HUB, SHAFT, TOP = 0.022, 0.011, 0.32
"""Radii of hub and shaft, and height of the shaft [m]."""
BLADE, PITCH, MIDDLE = (0.085, 0.055, 0.018), 40.0, 0.06
"""Length, height and thickness of a blade [m], its pitch [degrees], height of its middle [m]."""


def turned(outline: Outline, share: tuple[float, float] = (0.0, 1.0)) -> Part:
    """Return a solid whose outline, from one end on the y axis to the other, is turned about it, over a share of the whole turn."""
    whole, (first, last) = share == (0.0, 1.0), share
    steps = round((last - first) * AROUND)
    points, rings = list[tuple[float, float, float]](), list[list[int]]()
    for radius, height in outline:
        angles = 2.0 * np.pi * (first + np.arange(steps + 1 - whole) / AROUND) if radius else np.zeros(1)
        ring = [len(points) + k for k in range(len(angles))]
        points += [(radius * np.cos(a), height, radius * np.sin(a)) for a in angles]
        rings.append(ring * (1 if radius else steps + 1) + ([ring[0]] if whole and radius else []))
    faces = []
    for low, high in itertools.pairwise(rings):
        for k in range(steps):
            faces.append(list(dict.fromkeys((low[k], high[k], high[k + 1], low[k + 1]))))
    if not whole:
        faces += [[ring[0] for ring in reversed(rings)], [ring[-1] for ring in rings]]
    return points, faces


def filling() -> Outline:
    """Return the outline of what fills the bowl."""
    inner = np.array(BOWL[5:][::-1])
    radius = float(np.interp(LEVEL, inner[:, 1], inner[:, 0]))
    return (*((float(r), float(y)) for r, y in inner if y < LEVEL), (radius, LEVEL), (0.0, LEVEL))


def blade(turn: float) -> Part:
    """Return points and faces of a blade whose root lies in the hub, turned about the shaft [degrees]."""
    pitch, about = np.radians(PITCH), np.radians(turn)
    points = []
    for x in (0.005, 0.005 + BLADE[0]):
        for y in (-0.5 * BLADE[1], 0.5 * BLADE[1]):
            for z in (-0.5 * BLADE[2], 0.5 * BLADE[2]):
                up, side = y * np.cos(pitch) - z * np.sin(pitch), y * np.sin(pitch) + z * np.cos(pitch)
                points.append((x * np.cos(about) + side * np.sin(about), MIDDLE + up, side * np.cos(about) - x * np.sin(about)))
    return points, [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]


def mesh(stage: Usd.Stage, path: str, parts: list[Part]) -> None:
    """Write parts as one mesh."""
    points, counts, indices = list[tuple[float, float, float]](), list[int](), list[int]()
    for own, faces in parts:
        counts += [len(face) for face in faces]
        indices += [len(points) + n for face in faces for n in face]
        points += [tuple(round(float(c), 5) for c in point) for point in own]
    prim = UsdGeom.Mesh.Define(stage, path)
    prim.CreatePointsAttr(points)
    prim.CreateFaceVertexCountsAttr(counts)
    prim.CreateFaceVertexIndicesAttr(indices)
    prim.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)


def main(target: Path) -> None:
    """Write the stage."""
    stage = Usd.Stage.CreateNew(str(target))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    low, high = MIDDLE - 0.03, MIDDLE + 0.03
    shaft = turned(((0.0, low), (HUB, low), (HUB, high), (SHAFT, high), (SHAFT, TOP), (0.0, TOP)))
    mesh(stage, "/bowl", [turned(BOWL)])
    mesh(stage, "/cocoa", [turned(filling(), COCOA)])
    mesh(stage, "/batter", [turned(filling(), (COCOA[1], 1.0))])
    mesh(stage, "/impeller", [shaft, *(blade(90.0 * k) for k in range(4))])
    stage.Save()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("mixer.usda"))
