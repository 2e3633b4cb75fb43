"""Make foot.usdc: a shoe that steps down heel first, rolls over its toes, bends, and is lifted; and the leg that it hangs on.

python samples/make_foot.py              (needs usd-core: pip install "mpm-nodes[usd]")
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from pxr import Usd, UsdGeom

OUTLINE = (
    (-0.2, 0.35, 0.55),
    (-0.19, 0.75, 0.85),
    (-0.165, 0.95, 1.0),
    (-0.12, 0.9, 1.0),
    (-0.07, 0.85, 0.95),
    (-0.03, 1.05, 0.8),
    (0.0, 1.2, 0.65),
    (0.04, 1.1, 0.55),
    (0.07, 0.8, 0.5),
    (0.085, 0.4, 0.4),
)
"""Along the shoe from the heel: metres before the ball of the foot, half the width and the height, over those of the heel."""
HALF_WIDTH, HEIGHT = 0.036, 0.07
"""Of the heel [m]."""
RINGS, AROUND = 29, 24
SQUARE = 0.55
"""Power of the outline of a ring: 1 is an ellipse, 0 a box."""
BENDS = (-0.05, 0.02)
"""Between them the shoe bends, behind and before the ball of the foot [m]."""
MOTION = (
    (1, (-0.04, 0.15), 16.0, 16.0),
    (6, (0.0, 0.098), 14.0, 14.0),
    (11, (0.0, 0.028), 0.0, 0.0),
    (15, (0.0, 0.022), 0.0, 0.0),
    (24, (0.0, 0.03), -24.0, 0.0),
    (31, (0.0, 0.075), -26.0, -8.0),
    (40, (0.01, 0.15), -14.0, -14.0),
    (50, (0.015, 0.2), -12.0, -12.0),
)
"""Frames, where the sole under the ball of the foot is by then, forward and up [m], and the slopes of heel and toes [deg]."""
LEG = (0.034, 0.3, -0.135)
"""Radius, length, and place before the ball of the foot [m]."""


def pose(frame: float) -> tuple[np.ndarray, float, float]:
    """Return the place of the ball [m], shape (2,), and the slopes of heel and toes [rad] at a frame, eased from key to key."""
    times = [key[0] for key in MOTION]
    after = min(max(int(np.searchsorted(times, frame, side="right")), 1), len(MOTION) - 1)
    first, second = MOTION[after - 1], MOTION[after]
    s = min(max((frame - first[0]) / (second[0] - first[0]), 0.0), 1.0)
    s = s * s * (3.0 - 2.0 * s)
    place, heel, toes = (np.array(a) + s * (np.array(b) - np.array(a)) for a, b in zip(first[1:], second[1:], strict=True))
    return place, float(np.radians(heel)), float(np.radians(toes))


def bent(points: np.ndarray, frame: float) -> np.ndarray:
    """Return points (along, over the sole, across) of the straight shoe as it stands at a frame, shape (n, 3) [m]."""
    place, heel, toes = pose(frame)
    along = np.linspace(-0.3, 0.2, 1001)
    share = np.clip((along - BENDS[0]) / (BENDS[1] - BENDS[0]), 0.0, 1.0)
    slope = heel + share * share * (3.0 - 2.0 * share) * (toes - heel)
    step = along[1] - along[0]
    line = [np.concatenate([[0.0], np.cumsum(0.5 * step * (f[1:] + f[:-1]))]) for f in (np.cos(slope), np.sin(slope))]
    x, y = (np.interp(points[:, 0], along, each - np.interp(0.0, along, each)) for each in line)
    turn = np.interp(points[:, 0], along, slope)
    return np.stack([place[0] + x - points[:, 1] * np.sin(turn), place[1] + y + points[:, 1] * np.cos(turn), points[:, 2]], axis=1)


def capped(rings: np.ndarray) -> tuple[np.ndarray, list[list[int]]]:
    """Return points, shape (n, 3), and faces of rings of points, shape (rings, around, 3), joined and closed at the ends."""
    count, around = rings.shape[:2]
    faces = [
        [k * around + a, (k + 1) * around + a, (k + 1) * around + (a + 1) % around, k * around + (a + 1) % around]
        for k in range(count - 1)
        for a in range(around)
    ]
    last = (count - 1) * around
    return rings.reshape(-1, 3), [list(range(around)), *faces, list(range(last, last + around))[::-1]]


def shoe() -> tuple[np.ndarray, list[list[int]]]:
    """Return points (along, over the sole, across) [m] and faces of the straight shoe."""
    at, widths, heights = np.array(OUTLINE).T
    along = np.linspace(at[0], at[-1], RINGS)
    turn = np.linspace(0.0, 2.0 * np.pi, AROUND, endpoint=False)
    across, up = (np.sign(f) * np.abs(f) ** SQUARE for f in (np.cos(turn), np.sin(turn)))
    rings = np.empty((RINGS, AROUND, 3))
    rings[:, :, 0] = along[:, None]
    rings[:, :, 1] = 0.5 * HEIGHT * np.interp(along, at, heights)[:, None] * (1.0 + up)
    rings[:, :, 2] = HALF_WIDTH * np.interp(along, at, widths)[:, None] * across
    return capped(rings)


def leg() -> tuple[np.ndarray, list[list[int]]]:
    """Return points and faces of the leg, in the frame of the straight shoe."""
    radius, length, place = LEG
    turn = np.linspace(0.0, 2.0 * np.pi, AROUND, endpoint=False)
    rings = np.empty((5, AROUND, 3))
    rings[:, :, 0] = place + radius * np.sin(turn)
    rings[:, :, 1] = np.linspace(0.8 * HEIGHT, length, 5)[:, None]
    rings[:, :, 2] = -radius * np.cos(turn)
    return capped(rings)


def main(target: Path) -> None:
    """Write the stage."""
    stage = Usd.Stage.CreateNew(str(target))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    stage.SetStartTimeCode(MOTION[0][0])
    stage.SetEndTimeCode(MOTION[-1][0])
    for name, (points, faces) in {"shoe": shoe(), "leg": leg()}.items():
        mesh = UsdGeom.Mesh.Define(stage, f"/{name}")
        attribute = mesh.CreatePointsAttr()
        for frame in range(MOTION[0][0], MOTION[-1][0] + 1):
            attribute.Set([tuple(round(float(c), 5) for c in point) for point in bent(points, frame)], frame)
        mesh.CreateFaceVertexCountsAttr([len(face) for face in faces])
        mesh.CreateFaceVertexIndicesAttr([k for face in faces for k in face])
        mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    stage.SetDefaultPrim(stage.GetPrimAtPath("/shoe"))
    stage.Save()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("foot.usdc"))
