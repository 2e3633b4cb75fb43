"""Make nozzles.usda: a jar, a round nozzle, a star, and the spiral along which cream is piped.

python samples/make_nozzles.py            (needs usd-core: pip install "mpm-nodes[usd]")
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from pxr import Usd, UsdGeom, Vt

AROUND = 48
JAR = [(0.0, -0.006), (0.035, -0.006), (0.038, -0.003), (0.0385, 0.02), (0.038, 0.029), (0.0365, 0.0305)]
"""Radius and height of the outside of the jar, from the middle of its bottom up [m]; the table is at 0."""
INSIDE = [(0.0345, 0.0295), (0.034, 0.028), (0.034, -0.001), (0.0, -0.001)]
"""And of its inside, from the rim down: the bottom lies under the wall of the domain at 0."""
SPOUT = 0.0055
"""Radius of a round nozzle [m]."""
POINTS, OUTER, INNER = 6, 0.0085, 0.005
"""Of the star: its points, the radius at them and between them [m]."""
LENGTH = 0.006
"""Of both nozzles [m]."""
TURNS, WIDE, START, LOW, HIGH = 2.3, 0.018, 0.006, 0.0095, 0.026
"""Of the spiral: turns, radius as it begins, height of its exit as it begins, soon after, and as it ends [m]."""


def turned(outline: list[tuple[float, float]]) -> tuple[np.ndarray, list[int], list[int]]:
    """Return points, face counts and indices of a closed outline, turned around y; it begins and ends on the axis."""
    rings = outline[1:-1]
    turns = 2.0 * np.pi * np.arange(AROUND) / AROUND
    points = [np.array([[0.0, outline[0][1], 0.0], [0.0, outline[-1][1], 0.0]])]
    points += [np.stack([r * np.cos(turns), np.full(AROUND, y), -r * np.sin(turns)], axis=1) for r, y in rings]
    counts, indices = [], []
    for n in range(AROUND):
        after = (n + 1) % AROUND
        first, last = 2, 2 + AROUND * (len(rings) - 1)
        counts += [3, 3]
        indices += [0, first + after, first + n, 1, last + n, last + after]
        for ring in range(len(rings) - 1):
            here = 2 + AROUND * ring
            counts.append(4)
            indices += [here + n, here + after, here + AROUND + after, here + AROUND + n]
    return np.concatenate(points), counts, indices


def star() -> np.ndarray:
    """Return the outline of the star [m], shape (4 POINTS, 2): its points and grooves are flat."""
    turns = 2.0 * np.pi * (np.arange(4 * POINTS) - 0.5) / (4 * POINTS)
    radius = np.where(np.arange(4 * POINTS) % 4 < 2, OUTER, INNER)
    return np.stack([radius * np.cos(turns), -radius * np.sin(turns)], axis=1)


def prism(sections: list[tuple[float, np.ndarray]]) -> tuple[np.ndarray, list[int], list[int]]:
    """Return a mesh through sections (height, outline), from below to above, closed at both ends."""
    size = len(sections[0][1])
    points = np.concatenate([np.column_stack([s[:, 0], np.full(size, y), s[:, 1]]) for y, s in sections])
    counts, indices = [size, size], [*range(size - 1, -1, -1), *range(size * (len(sections) - 1), size * len(sections))]
    for ring in range(len(sections) - 1):
        for n in range(size):
            a, b = ring * size + n, ring * size + (n + 1) % size
            counts.append(4)
            indices += [a, b, b + size, a + size]
    return points, counts, indices


def spiral() -> np.ndarray:
    """Return the way of the nozzle's exit [m], shape (n, 3): around, closer to the middle, and up."""
    share = np.linspace(0.0, 1.0, 241)
    radius = WIDE * np.clip(1.8 * (1.0 - share), 0.0, 1.0) ** 0.9
    turn = 2.0 * np.pi * TURNS * share
    height = LOW + (HIGH - LOW) * np.clip((share - 0.25) / 0.75, 0.0, 1.0) - (LOW - START) * np.clip(1.0 - share / 0.08, 0.0, 1.0)
    return np.stack([radius * np.cos(turn), height, radius * np.sin(turn)], axis=1)


def write(stage: Usd.Stage, name: str, mesh: tuple[np.ndarray, list[int], list[int]]) -> UsdGeom.Mesh:
    """Write a mesh."""
    points, counts, indices = mesh
    prim = UsdGeom.Mesh.Define(stage, f"/nozzles/{name}")
    prim.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(points.astype(np.float32)))
    prim.CreateFaceVertexCountsAttr(counts)
    prim.CreateFaceVertexIndicesAttr(indices)
    prim.CreateSubdivisionSchemeAttr("none")
    return prim


def main(path: Path) -> None:
    """Write the stage."""
    stage = Usd.Stage.CreateNew(str(path)) if not path.exists() else Usd.Stage.Open(str(path))
    stage.GetRootLayer().Clear()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    stage.SetTimeCodesPerSecond(24.0)
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, "/nozzles").GetPrim())
    write(stage, "jar", turned(JAR + INSIDE))
    write(stage, "star", prism([(0.0, star()), (LENGTH, star())]))
    turns = 2.0 * np.pi * np.arange(AROUND) / AROUND
    disc = SPOUT * np.stack([np.cos(turns), -np.sin(turns)], axis=1)
    write(stage, "spout", prism([(0.0, disc), (LENGTH, disc)]))
    line = spiral()
    curve = UsdGeom.BasisCurves.Define(stage, "/nozzles/spiral")
    curve.CreateTypeAttr("linear")
    curve.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(line.astype(np.float32)))
    curve.CreateCurveVertexCountsAttr([len(line)])
    stage.GetRootLayer().Save()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "nozzles.usda")
