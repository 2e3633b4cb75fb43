"""Make candles.usda: a round candle, and the letters W, A and X as candles that lie on their backs.

python samples/make_candles.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
SIDES = 64
RADIUS, HEIGHT = 0.16, 0.47
"""Of the round candle [m]: the source's 618,000 particles at its cells of 1/127 m."""

Mesh = tuple[np.ndarray, list[tuple[int, ...]]]
STROKES = {
    "w": ((-0.45, -0.19, -0.37, 0.19), (-0.37, 0.19, -0.29, -0.05), (-0.29, -0.05, -0.21, 0.19), (-0.21, 0.19, -0.13, -0.19)),
    "a": ((-0.04, 0.19, 0.05, -0.19), (0.05, -0.19, 0.14, 0.19), (0.01, 0.08, 0.09, 0.08)),
    "x": ((0.285, -0.19, 0.445, 0.19), (0.445, -0.19, 0.285, 0.19)),
}
"""Axes of the letters' strokes: x and z of either end [m]."""
WIDTH, DEPTH = 0.07, 0.11
"""Of a stroke, and from the floor to its top [m]."""


def prism(rim: np.ndarray, height: float) -> Mesh:
    """Return the prism over an outline on the floor, x and z [m], shape (n, 2), counter-clockwise seen from above."""
    sides = len(rim)
    points = np.concatenate([np.insert(rim, 1, y, axis=1) for y in (0.0, height)])
    around = [(n, (n + 1) % sides, sides + (n + 1) % sides, sides + n) for n in range(sides)]
    return points, [*around, tuple(reversed(range(sides))), tuple(range(sides, 2 * sides))]


def stroke(x: float, z: float, to_x: float, to_z: float) -> Mesh:
    """Return a bar of WIDTH and DEPTH around a line on the floor [m], half a width longer than it at both ends."""
    along = np.array([to_x - x, to_z - z]) / np.hypot(to_x - x, to_z - z)
    half, across = 0.5 * WIDTH * along, 0.5 * WIDTH * np.array([along[1], -along[0]])
    start, end = np.array([x, z]) - half, np.array([to_x, to_z]) + half
    return prism(np.array([start - across, end - across, end + across, start + across]), DEPTH)


def joined(parts: list[Mesh]) -> Mesh:
    """Return one mesh of several, which may overlap."""
    points, faces, count = [], [], 0
    for corners, sides in parts:
        points.append(corners)
        faces += [tuple(count + n for n in side) for side in sides]
        count += len(corners)
    return np.concatenate(points), faces


def written(name: str, mesh: Mesh) -> str:
    """Return a mesh as USD text."""
    points, faces = mesh
    counts, indices = ", ".join(str(len(face)) for face in faces), ", ".join(str(n) for face in faces for n in face)
    corners = ", ".join(f"({x:.6f}, {y:.6f}, {z:.6f})" for x, y, z in points + 0.0)
    return (
        f'    def Mesh "{name}"\n    {{\n'
        f"        int[] faceVertexCounts = [{counts}]\n        int[] faceVertexIndices = [{indices}]\n"
        f'        point3f[] points = [{corners}]\n        uniform token subdivisionScheme = "none"\n    }}\n'
    )


def main(target: Path) -> None:
    """Write the stage."""
    turn = -2.0 * np.pi * np.arange(SIDES) / SIDES
    round_candle = prism(RADIUS * np.stack([np.cos(turn), np.sin(turn)], axis=1), HEIGHT)
    letters = {name: joined([stroke(*line) for line in lines]) for name, lines in STROKES.items()}
    body = "".join(written(name, mesh) for name, mesh in {"candle": round_candle, **letters}.items())
    head = '#usda 1.0\n(\n    defaultPrim = "candles"\n    metersPerUnit = 1\n    upAxis = "Y"\n)\n\n'
    target.write_text(f'{head}def Xform "candles"\n{{\n{body}}}\n')


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "candles.usda")
