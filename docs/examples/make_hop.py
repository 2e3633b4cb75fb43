"""Write hop.usdc, the finished cache of the example of `retime_points`: drops that are thrown up in a ring."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pxr import Gf, Usd, UsdGeom

DROPS, FPS, LAST = 260, 24, 13


def main() -> None:
    """Write the file beside this one."""
    stage = Usd.Stage.CreateNew(str(Path(__file__).with_name("hop.usdc")))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, "Y")
    stage.SetTimeCodesPerSecond(FPS)
    stage.SetFramesPerSecond(FPS)
    stage.SetStartTimeCode(1)
    stage.SetEndTimeCode(LAST)
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, "/hop").GetPrim())
    points = UsdGeom.Points.Define(stage, "/hop/drops")
    rng = np.random.default_rng(1)
    angle, outward = rng.uniform(0.0, 2.0 * np.pi, DROPS), rng.uniform(0.35, 0.8, DROPS)
    start = 0.05 * np.stack([np.cos(angle), np.zeros(DROPS), np.sin(angle)], axis=1)
    thrown = np.stack([outward * np.cos(angle), rng.uniform(2.0, 2.6, DROPS), outward * np.sin(angle)], axis=1)
    fall = np.array([0.0, -9.81, 0.0])
    for frame in range(1, LAST + 1):
        seconds = (frame - 1) / FPS
        place, speed = start + thrown * seconds + 0.5 * fall * seconds**2, thrown + fall * seconds
        points.GetPointsAttr().Set([Gf.Vec3f(*row) for row in place.tolist()], frame)
        points.GetVelocitiesAttr().Set([Gf.Vec3f(*row) for row in speed.tolist()], frame)
    points.GetIdsAttr().Set(list(range(DROPS)))
    points.GetWidthsAttr().Set([0.03] * DROPS)
    stage.GetRootLayer().Save()


if __name__ == "__main__":
    main()
