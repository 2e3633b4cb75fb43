"""Make ellipse.usda: an elliptic cylinder, 0.24 and 0.16 m, 3/63 m thick.

python samples/make_ellipse.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
SIDES = 128
HALF_AXES = (0.24, 0.16)
THICKNESS = 3.0 / 63.0
"""Two cells of the sample's quick size, three of its source's."""


def main(target: Path) -> None:
    """Write the stage."""
    turn = 2.0 * np.pi * np.arange(SIDES) / SIDES
    rim = np.stack([HALF_AXES[0] * np.cos(turn), HALF_AXES[1] * np.sin(turn)], axis=1)
    points = [f"({x:.6f}, {y:.6f}, {z:.6f})" for z in (0.0, THICKNESS) for x, y in rim]
    sides = [(n, (n + 1) % SIDES, SIDES + (n + 1) % SIDES, SIDES + n) for n in range(SIDES)]
    faces = [*sides, tuple(reversed(range(SIDES))), tuple(range(SIDES, 2 * SIDES))]
    counts, indices = ", ".join(str(len(face)) for face in faces), ", ".join(str(n) for face in faces for n in face)
    target.write_text(
        '#usda 1.0\n(\n    defaultPrim = "ellipse"\n    metersPerUnit = 1\n    upAxis = "Y"\n)\n\n'
        f'def Mesh "ellipse"\n{{\n    int[] faceVertexCounts = [{counts}]\n    int[] faceVertexIndices = [{indices}]\n'
        f'    point3f[] points = [{", ".join(points)}]\n    uniform token subdivisionScheme = "none"\n}}\n'
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "ellipse.usda")
