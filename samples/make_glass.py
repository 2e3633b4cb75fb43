"""Make glass.usda: half of a wine glass that is cut open, the wine in it, and two bands of wine on its wall.

python samples/make_glass.py              (needs usd-core: pip install "mpm-nodes[usd]")
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from pxr import Usd, UsdGeom

CENTRE, HALF_AXES = (0.5, 0.7, 0.5), (0.4, 0.6)
"""Of the ellipsoid [m]; the half axes across and up."""
RIM, THICKNESS = 0.95, 0.12
LEVEL = 0.3
BAND = (0.5, 0.75)
"""Heights between which the glass is wetted [m]."""
FILMS = {"band": 2.0 / 36.0, "fine_band": 2.0 / 127.0}
"""How thick: two cells of the quick size, and of the source's [m]."""
AROUND, ALONG = 36, 14
HUB = 0.0001
"""Radius of the pinhole along the axis [m]: faces there have an area."""
CUT = 0.08
"""How far the glass goes on beyond the plane in which it is cut [m]."""


def meridian(low: float, high: float, inset: float = 0.0) -> np.ndarray:
    """Return radius and height of points on the wall, moved in along its normal, from one height to another [m], shape (n, 2)."""
    across, up = HALF_AXES
    ends = [np.arcsin(np.clip((each - CENTRE[1]) / up, -1.0, 1.0)) for each in (low, high)]
    angle = np.linspace(*ends, ALONG + 1)
    point = np.stack([np.maximum(across * np.cos(angle), HUB), up * np.sin(angle)], axis=1)
    normal = point / np.array([across, up]) ** 2
    point -= inset * normal / np.linalg.norm(normal, axis=1)[:, None]
    return point + [0.0, CENTRE[1]]


def outlines() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return two sides of each body in the plane of radius and height, from below to above; the inner one first."""
    bottom = CENTRE[1] - HALF_AXES[1]
    wall = meridian(bottom, RIM)
    outside = meridian(bottom, RIM, -THICKNESS)
    pool = meridian(bottom, LEVEL)
    band = meridian(*BAND)
    return {
        "glass": (wall, outside),
        "pool": (pool * [0.0, 1.0] + [HUB, 0.0], pool),
        **{name: (meridian(*BAND, film), band) for name, film in FILMS.items()},
    }


def turned(sides: tuple[np.ndarray, np.ndarray], beyond: float) -> tuple[np.ndarray, list[int], list[int]]:
    """Turn two sides of a body half a turn around the glass's axis, go on straight by `beyond`, and close rims and ends.

    Returns:
        Points [m], shape (n, 3), the number of corners of each face, and the corners, seen from outside counterclockwise.
    """
    angles = np.pi + np.linspace(0.0, np.pi, AROUND + 1)
    n, outline = len(sides[0]), np.concatenate([sides[0], sides[1][::-1]])
    rings = [np.stack([r * np.cos(angles), np.full(AROUND + 1, y), r * np.sin(angles)], axis=1) for r, y in outline]
    points = np.stack(rings, axis=1)  # (around, outline, 3)
    if beyond:
        points = np.concatenate([points[:1] + [0.0, 0.0, beyond], points, points[-1:] + [0.0, 0.0, beyond]])
    steps, m = len(points), len(outline)
    faces = [
        [a * m + k, (a + 1) * m + k, (a + 1) * m + (k + 1) % m, a * m + (k + 1) % m] for a in range(steps - 1) for k in range(m)
    ]
    end = (steps - 1) * m
    for k in range(n - 1):
        strip = [k, k + 1, m - 2 - k, m - 1 - k]
        faces += [strip, [end + corner for corner in strip[::-1]]]
    return points.reshape(-1, 3) + [CENTRE[0], 0.0, CENTRE[2]], [len(each) for each in faces], [k for each in faces for k in each]


def main(target: Path) -> None:
    """Write the stage."""
    stage = Usd.Stage.CreateNew(str(target))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    for name, sides in outlines().items():
        points, counts, indices = turned(sides, CUT if name == "glass" else 0.0)
        mesh = UsdGeom.Mesh.Define(stage, f"/{name}")
        mesh.CreatePointsAttr([tuple(round(float(c), 4) for c in point) for point in points])
        mesh.CreateFaceVertexCountsAttr(counts)
        mesh.CreateFaceVertexIndicesAttr(indices)
        mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    stage.SetDefaultPrim(stage.GetPrimAtPath("/glass"))
    stage.Save()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("glass.usda"))
