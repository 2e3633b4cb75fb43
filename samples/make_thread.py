"""Make thread.usda: a quarter of a thread of radius 1 m, 14 m long, whose section is 1 - 0.4 cos(2 pi z / 14 m).

The mesh is turned, and emit_mesh.orientation turns it back: so its lattice lies askew to the thread, as the ring of integers of the
field of 2 cos(2 pi / 7) lies to its axes (Bayer-Fluckiger 2004). No two of its points are close in such a lattice however far it is
drawn out along z. One along the axes is drawn out to sheets.

python samples/make_thread.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
LENGTH, WAVE = 14.0, 0.2
"""Of a wave, from string to string [m], and its amplitude."""
SIDES, RINGS = 24, 168
ASKEW = 2.0 / np.sqrt(7.0) * np.sin(2.0 * np.pi * np.outer([1, 2, 3], [1, 2, 3]) / 7.0) * [1.0, 1.0, -1.0]
"""Rotation of the lattice: its columns are the axes of the lattice."""


def main(target: Path) -> None:
    """Write the stage."""
    z = LENGTH * np.arange(RINGS + 1) / RINGS
    radius = np.sqrt(1.0 - 2.0 * WAVE * np.cos(2.0 * np.pi * z / LENGTH))
    turn = 0.5 * np.pi * np.arange(SIDES + 1) / SIDES
    rim = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    section = np.concatenate([[[0.0, 0.0]], rim])
    places = np.concatenate([np.column_stack([r * section, np.full(len(section), at)]) for r, at in zip(radius, z, strict=True)])
    points = [f"({x:.6f}, {y:.6f}, {w:.6f})" for x, y, w in places @ ASKEW]
    n = len(section)
    sides = [(n * j + s, n * j + (s + 1) % n, n * j + n + (s + 1) % n, n * j + n + s) for j in range(RINGS) for s in range(n)]
    faces = [*sides, tuple(reversed(range(n))), tuple(range(RINGS * n, RINGS * n + n))]
    counts, indices = ", ".join(str(len(face)) for face in faces), ", ".join(str(i) for face in faces for i in face)
    target.write_text(
        '#usda 1.0\n(\n    defaultPrim = "thread"\n    metersPerUnit = 1\n    upAxis = "Y"\n)\n\n'
        f'def Mesh "thread"\n{{\n    int[] faceVertexCounts = [{counts}]\n    int[] faceVertexIndices = [{indices}]\n'
        f'    point3f[] points = [{", ".join(points)}]\n    uniform token subdivisionScheme = "none"\n}}\n'
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "thread.usda")
