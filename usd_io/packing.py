"""Positions and velocities as whole numbers of a step, which USD compresses to a third of what vectors take.

The schema has 12 bytes for each, whatever is in them. Packed particles lie on a Scope, since programs expect points of Points
(Blender 4.5 crashes without): other programs see surface and volume of such a cache, the nodes of mpm_nodes the particles too. The
prim says what the rounding takes away.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from pxr import Sdf, Usd, UsdGeom, Vt

from mpm_nodes.data import InputError, OutputError
from usd_io.intact import refuse_damaged
from usd_io.layers import set_sample
from usd_io.typed import number, numbers

__all__ = ["PACKED", "add_packed", "holds_points", "power_of_two", "rounded", "rounding_of", "sampled", "unpacked"]

PACKED = "mpm:packed:"
"""Where the numbers lie: `mpm:packed:points_x` and so on, and their step as `mpm:packed:points_step`."""
AXES = ("x", "y", "z")
ERRORS = {"points": "mpm_position_error", "velocities": "mpm_velocity_error"}
"""Custom data of the prim: largest difference from what was simulated [m], [m/s], along an axis."""


def power_of_two(most: float) -> float:
    """Return the largest step, a power of two, whose rounding is off by at most `most` along an axis, in the same unit."""
    return 2.0 ** math.floor(math.log2(2.0 * most))


def rounded(where: str, rows: np.ndarray, step: float) -> np.ndarray:
    """Return vectors in whole steps, shape (n, 3), int32.

    Args:
        where: Who says so.
        rows: Finite vectors, shape (n, 3).
        step: In their unit.

    Raises:
        OutputError: They reach further than 32 bits count.
    """
    whole = np.rint(np.asarray(rows, np.float64) / step)
    if np.abs(whole).max(initial=0.0) >= 2**31:
        raise OutputError(
            f"{where}: steps of {step:.2g} do not reach {np.abs(rows).max():.3g} in 32 bits; "
            "raise position_precision, or move the scene nearer to the origin"
        )
    return whole.astype(np.int32)


def add_packed(prim: Sdf.PrimSpec, name: str, whole: np.ndarray, step: float, frame: int) -> None:
    """Store vectors in whole steps as three columns, in place of the attribute `name`.

    Args:
        prim: What holds the particles.
        name: "points" or "velocities".
        whole: Shape (n, 3), int32.
        step: [m] or [m/s].
        frame: Time code of the samples.
    """
    for axis, column in zip(AXES, whole.T, strict=True):
        values = Vt.IntArray.FromNumpy(np.ascontiguousarray(column))
        set_sample(prim, f"{PACKED}{name}_{axis}", Sdf.ValueTypeNames.IntArray, values, frame, custom=True)
    set_sample(prim, f"{PACKED}{name}_step", Sdf.ValueTypeNames.Double, step, frame, custom=True)
    prim.customData[ERRORS[name]] = 0.5 * step


def unpacked(prim: Usd.Prim, name: str, frame: float) -> np.ndarray | None:
    """Return points or velocities as they are written or packed, shape (n, 3), None where there are none.

    Args:
        prim: Any prim.
        name: "points" or "velocities".
        frame: Time code.

    Raises:
        InputError: The frame's layer is damaged; columns of different length, without their step, or values of another kind.
    """
    refuse_damaged(prim, frame)
    plain = numbers(prim.GetAttribute(name), frame, 3)
    if plain is not None:
        return np.array(plain)
    values = [numbers(prim.GetAttribute(f"{PACKED}{name}_{axis}"), frame, whole=True) for axis in AXES]
    if all(value is None for value in values):
        return None
    step = number(prim.GetAttribute(f"{PACKED}{name}_step"), frame)
    counts = [0 if value is None else len(value) for value in values]
    if step is None or step <= 0.0 or len(set(counts)) > 1:
        told = f"{name} are packed in columns of {counts} numbers in steps of {step}"
        raise InputError(f"{prim.GetPath()}: {told} at frame {frame:g}; cook it again")
    return np.stack([np.array(value, np.float64) for value in values], axis=1) * step


def holds_points(prim: Usd.Prim) -> bool:
    """Whether a prim has particles, packed or as Points."""
    return prim.IsA(UsdGeom.Points) or prim.HasAttribute(f"{PACKED}points_{AXES[0]}")


def sampled(prim: Usd.Prim) -> Usd.Attribute:
    """Return the attribute whose samples say when a prim has points."""
    packed = prim.GetAttribute(f"{PACKED}points_{AXES[0]}")
    return packed if packed else prim.GetAttribute("points")


def rounding_of(stage: Usd.Stage) -> Iterator[str]:
    """Yield a line for each prim whose particles are rounded, and by how much."""
    for prim in stage.Traverse():
        told = {name: prim.GetCustomDataByKey(key) for name, key in ERRORS.items()}
        errors = {name: error if isinstance(error, float) else None for name, error in told.items()}
        if errors["points"]:
            speeds = f", velocities by at most {errors['velocities']:.2g} m/s" if errors["velocities"] else ""
            yield (
                f"{prim.GetPath()}: positions are rounded by at most {errors['points']:.2g} m{speeds} along an axis; "
                "only mpm_nodes reads these particles"
            )
