"""Units and axes of USD stages: the one place where scene coordinates become SI, Y up."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpm_nodes.data import InputError

SHORTEST_UNIT, LONGEST_UNIT = 1e-15, 1e15
"""Metres: beyond it squares and cubes of coordinates leave the range of numbers."""
Z_UP_TO_Y_UP = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, -1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])


def stage_to_si(stage: Any) -> np.ndarray:
    """Return the matrix (4, 4), for column vectors, from a stage's coordinates to metres with Y up.

    A stage that states neither is read as USD defines: centimetres, Y up.

    Raises:
        InputError: Its unit is not a length.
    """
    from pxr import UsdGeom

    scale = float(UsdGeom.GetStageMetersPerUnit(stage))
    if not SHORTEST_UNIT <= scale <= LONGEST_UNIT:
        where, allowed = stage.GetRootLayer().identifier, f"a length from {SHORTEST_UNIT:g} to {LONGEST_UNIT:g} m"
        raise InputError(f"{where}: metersPerUnit is {scale:g}; give {allowed}")
    metres = np.diag([scale, scale, scale, 1.0])
    return Z_UP_TO_Y_UP @ metres if UsdGeom.GetStageUpAxis(stage) == UsdGeom.Tokens.z else metres
