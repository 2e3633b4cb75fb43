"""Make nozzles.usda: a star and the spiral along which cream is piped; a jar that tilts, its honey, a dish and a stack of pancakes.

python samples/make_nozzles.py            (needs usd-core: pip install "mpm-nodes[usd]")
"""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
from pxr import Gf, Usd, UsdGeom, Vt

AROUND = 48
JAR = [(0.0, -0.068), (0.033, -0.068), (0.036, -0.065), (0.036, -0.003), (0.035, -0.001), (0.033, 0.0)]
"""Radius and height of the outside of the jar, from the middle of its bottom up to its rim [m]."""
INSIDE = [(0.031, -0.001), (0.03, -0.003), (0.03, -0.062), (0.0, -0.062)]
"""And of its inside, from the rim down."""
HONEY = [(0.0, -0.0618), (0.0298, -0.0618), (0.0298, -0.0098), (0.0, -0.0098)]
"""What is in it."""
LIP = (0.003, 0.114)
"""Where the jar turns about the edge that it pours over [m]."""
TILT = [(1, 0.0), (4, 0.0), (28, 50.0), (52, 80.0), (61, 80.0), (77, 25.0)]
"""Frames, and how far it has turned by then [degrees]; smooth between them."""
DISH = [(0.0, 0.0), (0.051, 0.0), (0.055, 0.004), (0.0565, 0.029), (0.055, 0.0315)]
"""Radius and height of the outside of the dish below; the table is at 0 [m]."""
DISH_INSIDE = [(0.051, 0.0315), (0.0495, 0.029), (0.048, 0.008), (0.0, 0.008)]
"""And of its inside."""
CAKES = [(0.031, 0.011, -0.001, 0.001), (0.0305, 0.011, 0.0015, -0.001), (0.0295, 0.011, -0.0005, 0.001)]
"""Pancakes from below: radius, thickness, and where their middle is [m]."""
POINTS, OUTER, INNER = 6, 0.0085, 0.005
"""Of the star: its points, the radius at them and between them [m]."""
LENGTH = 0.006
"""Of the star [m]."""
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


def cake(radius: float, thick: float, low: float) -> list[tuple[float, float]]:
    """Return the outline of a pancake: its edge is round."""
    edge = np.linspace(-0.5 * np.pi, 0.5 * np.pi, 9)
    round_edge = zip(radius - 0.5 * thick * (1.0 - np.cos(edge)), low + 0.5 * thick * (1.0 + np.sin(edge)), strict=True)
    return [(0.0, low), *((float(r), float(y)) for r, y in round_edge), (0.0, low + thick)]


def tilted(frame: int) -> float:
    """Return how far the jar has turned at a frame [degrees]."""
    for (before, low), (after, high) in pairwise(TILT):
        if frame <= after:
            share = min(max((frame - before) / (after - before), 0.0), 1.0)
            return low + (high - low) * share * share * (3.0 - 2.0 * share)
    return TILT[-1][1]


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
    beside = np.array([-JAR[2][0], 0.0, 0.0])
    points, counts, indices = turned(JAR + INSIDE)
    jar = write(stage, "jar", (points + beside, counts, indices))
    jar.AddTranslateOp().Set(Gf.Vec3d(*LIP, 0.0))
    turn = jar.AddRotateZOp()
    for frame in range(TILT[0][0], TILT[-1][0] + 1):
        turn.Set(-round(tilted(frame), 4), frame)
    points, counts, indices = turned(HONEY)
    write(stage, "honey", (points + beside + (*LIP, 0.0), counts, indices))
    write(stage, "dish", turned(DISH + DISH_INSIDE))
    UsdGeom.Scope.Define(stage, "/nozzles/stack")
    low = DISH_INSIDE[-1][1] - 0.0002
    for n, (radius, thick, x, z) in enumerate(CAKES):
        points, counts, indices = turned(cake(radius, thick, low))
        write(stage, f"stack/cake_{n + 1}", (points + (x, 0.0, z), counts, indices))
        low += thick - 0.0004
    write(stage, "star", prism([(0.0, star()), (LENGTH, star())]))
    line = spiral()
    curve = UsdGeom.BasisCurves.Define(stage, "/nozzles/spiral")
    curve.CreateTypeAttr("linear")
    curve.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(line.astype(np.float32)))
    curve.CreateCurveVertexCountsAttr([len(line)])
    stage.GetRootLayer().Save()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "nozzles.usda")
