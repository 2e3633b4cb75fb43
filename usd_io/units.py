"""Units and axes of USD stages: the one place where scene coordinates become SI, Y up."""

from __future__ import annotations

from typing import Any

import numpy as np

Z_UP_TO_Y_UP = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, -1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])


def stage_to_si(stage: Any) -> np.ndarray:
    """Return the matrix (4, 4), for column vectors, from a stage's coordinates to metres with Y up.

    A stage that states neither is read as USD defines: centimetres, Y up.
    """
    from pxr import UsdGeom

    scale = float(UsdGeom.GetStageMetersPerUnit(stage))
    metres = np.diag([scale, scale, scale, 1.0])
    return Z_UP_TO_Y_UP @ metres if UsdGeom.GetStageUpAxis(stage) == UsdGeom.Tokens.z else metres
