"""Make chocolate.usdc: a bar of chocolate as it comes out of its mould, closed, with texture coordinates.

python samples/make_chocolate.py

It lies flat with its middle at the origin: 6 x 3 blocks with slanted sides on a plate, rounded off at its rim. One map lies over
top and sides as seen from above, the bottom is beside it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

BLOCKS, EDGE = (6, 3), 0.026
"""Blocks along x and z, and the edge of one [m]."""
PLATE, HEIGHT = 0.0065, 0.0125
"""Thickness of the plate and of the whole [m]."""
INSETS = (0.0, 0.0009, 0.0026, 0.0036, 0.0045)
"""How far from a block's border its rings lie [m]."""
RISES = (0.0, 0.12, 0.86, 0.97, 1.0)
"""Share of its height that each ring has reached."""
SPLIT = 4
"""Faces across the middle of a block."""


def lines(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return where the lines of the top's faces cross an axis [m], and how high blocks have risen there, in shares."""
    inner = np.linspace(INSETS[-1], EDGE - INSETS[-1], SPLIT + 1)
    places = np.concatenate([INSETS[:-1], inner, [EDGE - each for each in INSETS[-2:0:-1]]])
    rises = np.concatenate([RISES[:-1], np.ones(SPLIT + 1), RISES[-2:0:-1]])
    every = np.concatenate([*(EDGE * k + places for k in range(count)), [EDGE * count]])
    return every - 0.5 * EDGE * count, np.concatenate([*([rises] * count), [0.0]])


def chocolate() -> tuple[np.ndarray, list[list[int]], np.ndarray]:
    """Return points (n, 3) [m], faces counter-clockwise from outside, and texture coordinates of their corners (c, 2)."""
    (x, along), (z, across) = (lines(count) for count in BLOCKS)
    rise = np.minimum(along[:, None], across[None, :])
    low, high = -0.5 * HEIGHT, PLATE - 0.5 * HEIGHT
    top = np.stack([*np.broadcast_arrays(x[:, None], high + rise * (HEIGHT - PLATE), z[None, :])], axis=-1)
    bottom = np.stack([*np.broadcast_arrays(x[:, None], low, z[None, :])], axis=-1)
    points = np.concatenate([top.reshape(-1, 3), bottom.reshape(-1, 3)])
    m, n = len(x), len(z)
    base = m * n

    def at(i: int, j: int) -> int:
        return i * n + j

    faces = [[at(i, j), at(i, j + 1), at(i + 1, j + 1), at(i + 1, j)] for i in range(m - 1) for j in range(n - 1)]
    upper = len(faces)
    faces += [[base + each for each in reversed(face)] for face in faces]
    rim = [(i, 0) for i in range(m - 1)] + [(m - 1, j) for j in range(n - 1)]
    rim += [(i, n - 1) for i in range(m - 1, 0, -1)] + [(0, j) for j in range(n - 1, 0, -1)]
    for one, other in zip(rim, [*rim[1:], rim[0]], strict=True):
        faces.append([at(*one), at(*other), base + at(*other), base + at(*one)])
    wide = max(x[-1] - x[0], z[-1] - z[0])
    maps = []
    for number, face in enumerate(faces):
        flat = (points[face][:, [0, 2]] + 0.5 * wide) / wide
        maps.append(flat + [1.0, 0.0] if upper <= number < 2 * upper else flat)
    return points, faces, np.concatenate(maps)


def main(path: Path) -> None:
    """Write the file."""
    from pxr import Sdf, Usd, UsdGeom

    points, faces, maps = chocolate()
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    mesh = UsdGeom.Mesh.Define(stage, "/chocolate")
    mesh.CreatePointsAttr(points.astype(np.float32).tolist())
    mesh.CreateFaceVertexCountsAttr([len(face) for face in faces])
    mesh.CreateFaceVertexIndicesAttr([corner for face in faces for corner in face])
    mesh.CreateSubdivisionSchemeAttr("none")
    made = UsdGeom.PrimvarsAPI(mesh).CreatePrimvar("st", Sdf.ValueTypeNames.TexCoord2fArray, "faceVarying")
    made.Set(maps.astype(np.float32).tolist())
    stage.SetDefaultPrim(mesh.GetPrim())
    stage.Save()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("chocolate.usdc"))
