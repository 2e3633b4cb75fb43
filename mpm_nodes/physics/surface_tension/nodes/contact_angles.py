"""How liquids wet bodies: contact angles, even or painted, with hysteresis."""

from __future__ import annotations

import dataclasses
import enum
import math
from typing import Any

from mpm_nodes.data import A, Collider, Degrees, FrameContext, MpmNodesError, Range, SpatialField
from mpm_nodes.graph.declare import node
from mpm_nodes.graph.declare.declarations import PreflightContext
from mpm_nodes.nodes.bodies import collider_passed_on
from mpm_nodes.nodes.fields import constant
from mpm_nodes.nodes.through_space import refuse_misfits, through_space

_Angle = A[float, Degrees, Range(min=0.0, max=180.0)]


class Wetting(enum.Enum):
    """What the numbers of a field are.

    ANGLE: the contact angle [degrees].
    RATIO: k_SL / k_LG = -cos(angle), from -1 (wets) to 1 (repels); where two kinds of surface are mixed, ratios are averaged by
        their shares of the area (Cassie 1944).
    """

    ANGLE = "angle"
    RATIO = "ratio"


def _told(told: PreflightContext) -> dict[str, Any]:
    """Preflight: the body is passed on."""
    refuse_misfits(told, "collider_contact_angle.field")
    _check_hysteresis(told.knobs["angle"], told.knobs["hysteresis"])
    return collider_passed_on(told)


@node(category="Collide", label="Contact Angle", preflight=_told)
def collider_contact_angle(
    collider: Collider,
    ctx: FrameContext,
    field: SpatialField | None = None,
    *,
    angle: _Angle = 60.0,
    hysteresis: _Angle = 0.0,
    values: Wetting = Wetting.ANGLE,
) -> Collider:
    """Say how liquids with a surface tension wet a collider.

    Args:
        collider: Any collider; a sticky one pins the edge of the liquid, take slip or separate.
        field: Contact angles of places on its surface [degrees], or ratios; without it `angle` everywhere.
        angle: Between its surface and that of the liquid, through the liquid: 0 wets, 90 is neutral, 180 repels.
        hysteresis: Advancing less receding angle, evenly around `angle`: the edge of the liquid stays where it is in between, so
            that drops hang on slopes. Clean glass 10, paint 30, a dirty window 50.
        values: What the numbers of the field are. Beyond 0 to 180 degrees, or -1 to 1, they are taken as the nearest of these.

    Raises:
        MpmNodesError: The hysteresis takes an angle out of 0 to 180 degrees, or the field is one of vectors.

    Source: Young's law; C21 section 3.6; Furmidge 1962.
    """
    _check_hysteresis(angle, hysteresis)
    wetting = None if field is None else through_space(ctx, "collider_contact_angle.field", _ratio(field, values))
    return dataclasses.replace(collider, contact_angle=angle, contact_hysteresis=hysteresis, wetting=wetting)


def _ratio(field: SpatialField, values: Wetting) -> SpatialField:
    """Return k_SL / k_LG of a field of angles or ratios."""
    low, high = (0.0, 180.0) if values is Wetting.ANGLE else (-1.0, 1.0)
    limited = SpatialField("MINIMUM", (SpatialField("MAXIMUM", (field, constant(low))), constant(high)), vector=field.vector)
    if values is Wetting.RATIO:
        return limited
    radians = SpatialField("MULTIPLY", (limited, constant(math.pi / 180.0)), vector=field.vector)
    cosine = SpatialField("COSINE", (radians,), vector=field.vector)
    return SpatialField("SUBTRACT", (constant(0.0), cosine), vector=field.vector)


def _check_hysteresis(angle: float, hysteresis: float) -> None:
    low, high = angle - 0.5 * hysteresis, angle + 0.5 * hysteresis
    if not 0.0 <= low <= high <= 180.0:
        raise MpmNodesError(
            f"collider_contact_angle.hysteresis: {hysteresis:g} degrees around {angle:g} recede at {low:g} and advance at "
            f"{high:g}; both lie from 0 to 180, lower the hysteresis"
        )
