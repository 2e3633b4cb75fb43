"""How liquids wet bodies: contact angles, even or painted, with hysteresis."""

from __future__ import annotations

import dataclasses
import enum
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import (
    A,
    Collider,
    Degrees,
    FrameContext,
    GraphSettings,
    Metres,
    MpmNodesError,
    Range,
    SpaceField,
    SurfaceField,
    Unitless,
    Vec3,
)
from mpm_nodes.graph.declare import node
from mpm_nodes.graph.declare.declarations import PreflightContext
from mpm_nodes.graph.values.kept import NOTHING_KEPT, Kept
from mpm_nodes.nodes.bodies import collider_passed_on
from mpm_nodes.nodes.values_of_files import field_of, first_values, over_meshes, primvar_contents, primvar_values, volume_of, voxels

_Angle = A[float, Degrees, Range(min=0.0, max=180.0)]
_ROUNDING = 1e-6
"""Share of the range by which a number may lie beyond it: files hold single precision, and faces are interpolated."""
_Scale = Range(min=0.0, exclusive_min=True, soft_max=100.0)


class Wetting(enum.Enum):
    """What the numbers of a painted file are.

    ANGLE: the contact angle [degrees].
    RATIO: k_SL / k_LG, from -1 (wets) to 1 (repels).
    MASK: 0 where the angle is that outside, 1 where it is the painted one, shares of the area in between (Cassie 1944).
    """

    ANGLE = "angle"
    RATIO = "ratio"
    MASK = "mask"


@node(category="Collide", label="Contact Angle", preflight=collider_passed_on)
def collider_contact_angle(collider: Collider, *, angle: _Angle = 60.0, hysteresis: _Angle = 0.0) -> Collider:
    """Say how liquids with a surface tension wet a collider.

    Args:
        collider: Any collider; a sticky one pins the edge of the liquid, take slip or separate.
        angle: Between its surface and that of the liquid, through the liquid: 0 wets, 90 is neutral, 180 repels.
        hysteresis: Advancing less receding angle, evenly around `angle`: the edge of the liquid stays where it is in between, so
            that drops hang on slopes. Clean glass 10, paint 30, a dirty window 50.

    Raises:
        MpmNodesError: The hysteresis takes an angle out of 0 to 180 degrees.

    Source: Young's law; C21 section 3.6; Furmidge 1962.
    """
    _check_hysteresis("collider_contact_angle", angle, hysteresis)
    return dataclasses.replace(collider, contact_angle=angle, contact_hysteresis=hysteresis)


@node(category="Collide", label="Contact Angle from VDB", preflight=collider_passed_on)
def collider_contact_angle_vdb(
    collider: Collider,
    settings: GraphSettings,
    kept: Kept = NOTHING_KEPT,
    *,
    path: Path,
    grid: str = "contact_angle",
    values: Wetting = Wetting.ANGLE,
    outside: _Angle = 90.0,
    painted: _Angle = 30.0,
    hysteresis: _Angle = 0.0,
    translate: A[Vec3, Metres] = (0.0, 0.0, 0.0),
    scale: A[float, Unitless, _Scale] = 1.0,
) -> Collider:
    """Paint how liquids wet a collider by a grid of a .vdb file; the grid stands still while the body moves.

    Args:
        collider: Any collider; a sticky one pins the edge of the liquid, take slip or separate.
        path: The file.
        grid: Name of a grid of numbers.
        values: What they are: `angle` in degrees, `ratio` k_SL / k_LG, or a `mask`.
        outside: Contact angle where the grid holds nothing, and where a mask is 0.
        painted: Contact angle where a mask is 1.
        hysteresis: Advancing less receding angle, as around `outside`.
        translate: Moves the grid; keys carry it along with a body.
        scale: Factor on all lengths of the file, for files that are not in metres.

    Raises:
        InputError: The file cannot be read, or has no such grid of numbers.
        MpmNodesError: An angle lies outside 0 to 180 degrees, a ratio outside -1 to 1 (|k_SL| > k_LG), or a mask outside 0 to 1.

    Source: Young's law; C21 section 3.6.
    """
    places, numbers, apart = voxels(volume_of(kept, path, grid), scale)
    where = "collider_contact_angle_vdb"
    ratios = _ratios(f"{where}.grid: '{grid}'", numbers, values, (outside, painted))
    edge = max(settings.cell_size, apart)
    field = field_of(f"{where}.grid", places + np.asarray(translate), ratios, edge, _ratio(outside))
    return _wetted(where, collider, outside, hysteresis, field)


def _passed_on_with_primvar(told: PreflightContext) -> dict[str, Any]:
    """Preflight: the body is passed on; a mesh or a primvar that cannot be used is told now."""
    first_values(told)
    return collider_passed_on(told)


@node(category="Collide", label="Contact Angle from USD", preflight=_passed_on_with_primvar, contents={"path": primvar_contents})
def collider_contact_angle_usd(
    collider: Collider,
    ctx: FrameContext,
    settings: GraphSettings,
    kept: Kept = NOTHING_KEPT,
    *,
    path: Path,
    prim: str = "",
    primvar: str = "contact_angle",
    values: Wetting = Wetting.ANGLE,
    frame_offset: A[float, Unitless] = 0.0,
    outside: _Angle = 90.0,
    painted: _Angle = 30.0,
    hysteresis: _Angle = 0.0,
) -> Collider:
    """Paint how liquids wet a collider by a primvar of USD meshes; both may be animated.

    Args:
        collider: Any collider, as a rule that of the same meshes (collide_usd); a sticky one pins the edge of the liquid.
        path: The USD file.
        prim: Prim at or below which meshes are taken; empty takes all.
        primvar: Name of the primvar, one value a point, or one for all.
        values: What they are: `angle` in degrees, `ratio` k_SL / k_LG, or a `mask`.
        frame_offset: Added to the frame number before the stage is read.
        outside: Contact angle away from the meshes, and where a mask is 0.
        painted: Contact angle where a mask is 1.
        hysteresis: Advancing less receding angle, as around `outside`.

    Raises:
        InputError: The file cannot be read, or a mesh has no such primvar.
        MpmNodesError: An angle lies outside 0 to 180 degrees, a ratio outside -1 to 1 (|k_SL| > k_LG), or a mask outside 0 to 1.

    Source: Young's law; C21 section 3.6.
    """
    where, file = "collider_contact_angle_usd", (path, prim, primvar)

    def field_at(frame: float) -> SurfaceField:
        places, numbers = primvar_values(where, file, frame, settings, kept)
        ratios = _ratios(f"{where}.primvar: '{primvar}'", numbers, values, (outside, painted))
        return field_of(f"{where}.primvar", places, ratios, settings.cell_size, _ratio(outside))

    field = over_meshes(ctx, kept, file, frame_offset, field_at)
    return _wetted(where, collider, outside, hysteresis, field)


# ---------------------------------------------------------------- what they share
def _ratio(angle: float) -> float:
    return -float(np.cos(np.radians(angle)))


def _ratios(where: str, numbers: np.ndarray, values: Wetting, angles: tuple[float, float]) -> np.ndarray:
    """Return k_SL / k_LG of painted numbers; `angles` are those where a mask is 0 and 1 [degrees]."""
    low, high, cure = {
        Wetting.ANGLE: (0.0, 180.0, "contact angles lie from 0 to 180 degrees"),
        Wetting.RATIO: (-1.0, 1.0, "with |k_SL| > k_LG there is no contact angle; ratios lie from -1 (wets) to 1 (repels)"),
        Wetting.MASK: (0.0, 1.0, "masks lie from 0 to 1"),
    }[values]
    slack = _ROUNDING * (high - low)
    bad = np.flatnonzero(~((numbers >= low - slack) & (numbers <= high + slack)))
    if len(bad):
        raise MpmNodesError(f"{where} has a value of {numbers[bad[0]]:g}; {cure}, or set `values` to what the file holds")
    numbers = np.clip(numbers, low, high)
    if values is Wetting.RATIO:
        return numbers
    if values is Wetting.ANGLE:
        return np.asarray(-np.cos(np.radians(numbers)))
    rest, painted = map(_ratio, angles)
    return np.asarray(rest + (painted - rest) * numbers)


def _check_hysteresis(where: str, angle: float, hysteresis: float) -> None:
    low, high = angle - 0.5 * hysteresis, angle + 0.5 * hysteresis
    if not 0.0 <= low <= high <= 180.0:
        raise MpmNodesError(
            f"{where}.hysteresis: {hysteresis:g} degrees around {angle:g} recede at {low:g} and advance at {high:g}; both lie from "
            "0 to 180, lower the hysteresis"
        )


def _wetted(where: str, collider: Collider, outside: float, hysteresis: float, field: SpaceField) -> Collider:
    _check_hysteresis(where, outside, hysteresis)
    return dataclasses.replace(collider, contact_angle=outside, contact_hysteresis=hysteresis, wetting=field)
