"""Forces, drains and active masks: what pushes matter besides gravity, takes it away, and holds it, wired into a solve."""

from __future__ import annotations

import math
from typing import Any

from mpm_nodes.data import (
    A,
    ActiveMask,
    BodyForce,
    CollisionRule,
    Drain,
    GraphSettings,
    KilogramsPerCubicMetre,
    Metres,
    MetresPerSecond,
    MetresPerSecondSquared,
    MpmNodesError,
    Range,
    Seconds,
    Sleep,
    SpatialField,
    Unit,
    Unitless,
    Vec3,
)
from mpm_nodes.graph.declare import node
from mpm_nodes.graph.declare.decorators import PreflightContext, found_by
from mpm_nodes.graph.time.keys import KeysTravel, NotKeyable
from mpm_nodes.nodes.fields import constant, gradient, number, place, scaled, tried

_SETTINGS = GraphSettings()
"""Those of a force that is made outside of a graph."""
_Place = A[Vec3, Metres, KeysTravel()]
_Speed = A[float, MetresPerSecond, Range(min=0.0, soft_max=20.0), KeysTravel()]
_Acceleration = A[float, MetresPerSecondSquared, Range(soft_min=-50.0, soft_max=50.0), KeysTravel()]
_Rate = A[float, Unit("1/s"), Range(min=0.0, soft_max=20.0), KeysTravel()]


def _masked(where: str, field: SpatialField, mask: SpatialField | None) -> SpatialField:
    return field if mask is None else scaled(field, number(f"{where}.mask", mask))


def _air(where: str, velocity: Vec3, field: SpatialField | None) -> SpatialField:
    """Return the velocities of the air."""
    if field is None:
        return constant(velocity)
    if not field.vector:
        raise MpmNodesError(
            f"{where}.field: is a field of numbers, and velocities are vectors; multiply it by field_vector with field_math"
        )
    return SpatialField("ADD", (constant(velocity), field), vector=True)


@found_by("gravity", "push", "turbulence")
@node(category="Force", label="Acceleration", preflight=tried(__name__, "force_acceleration", "field", "mask"))
def force_acceleration(
    field: SpatialField | None = None,
    mask: SpatialField | None = None,
    *,
    acceleration: A[Vec3, MetresPerSecondSquared, KeysTravel()] = (0.0, 0.0, 0.0),
    strength: A[float, MetresPerSecondSquared, KeysTravel()] = 1.0,
    speed_limit: _Speed = 0.0,
) -> BodyForce:
    """Accelerate matter: everywhere alike, by keys, or as a field of vectors says (noise, a blast, a flow of your own).

    Args:
        field: A field of vectors, which `strength` multiplies; without it `acceleration` holds.
        mask: Factor: 1 where it acts, 0 where it does not.
        acceleration: Added everywhere.
        strength: Factor on the field.
        speed_limit: Speed beyond which it makes nothing faster; 0: there is none.

    Raises:
        MpmNodesError: The field is one of numbers, or the mask one of vectors.
    """
    value = constant(acceleration)
    if field is not None:
        if not field.vector:
            raise MpmNodesError("force_acceleration.field: is a field of numbers; multiply it by field_vector with field_math")
        value = SpatialField("ADD", (value, scaled(field, constant(strength))), vector=True)
    return BodyForce(_masked("force_acceleration", value, mask), most_speed=speed_limit)


@found_by("blow", "fan", "breeze", "storm")
@node(category="Force", label="Wind", preflight=tried(__name__, "force_wind", "field", "mask"))
def force_wind(
    field: SpatialField | None = None,
    mask: SpatialField | None = None,
    *,
    velocity: A[Vec3, MetresPerSecond, KeysTravel()] = (1.0, 0.0, 0.0),
    drag: _Rate = 2.0,
    quadratic: A[bool, NotKeyable("it is another law")] = False,
    speed_limit: _Speed = 0.0,
) -> BodyForce:
    """Draw matter along with moving air: the faster, the more they differ. Without a velocity it is drag alone.

    Args:
        field: Velocities of the air [m/s], added to `velocity`: gusts of field_noise, a vortex.
        mask: Factor on the drag.
        velocity: Velocity of the air.
        drag: Share of the difference that is lost in a second, 1/s; where quadratic, in a metre of way, 1/m.
        quadratic: Drag in proportion to the square of the difference, as of things in air; else in proportion to it.
        speed_limit: Speed beyond which it makes nothing faster; 0: there is none. It slows down as ever.

    Raises:
        MpmNodesError: The field is one of numbers, or the mask one of vectors.
    """
    rate = _masked("force_wind", constant(drag), mask)
    return BodyForce(_air("force_wind", velocity, field), rate, quadratic, most_speed=speed_limit)


def _pressing(told: PreflightContext) -> dict[str, Any]:
    """Preflight: made, so that what does not fit is told; it presses on the surface of all matter."""
    return {**tried(__name__, "force_air", "field", "mask")(told), "presses": 1, "past_bodies": 1}


@node(category="Force", label="Air Drag", preflight=_pressing)
def force_air(
    field: SpatialField | None = None,
    mask: SpatialField | None = None,
    *,
    velocity: A[Vec3, MetresPerSecond, KeysTravel()] = (0.0, 0.0, 0.0),
    density: A[float, KilogramsPerCubicMetre, Range(min=0.0, soft_max=10.0), KeysTravel()] = 1.2,
    coefficient: A[float, Unitless, Range(min=0.0, soft_max=2.0), KeysTravel()] = 1.0,
    speed_limit: _Speed = 0.0,
) -> BodyForce:
    """Let air press on the surface that matter turns to it: a flake flies, a lump of the same matter does not.

    The force on a surface is density / 2 coefficient w^2 times its area across the wind, w what it moves at through the air. What
    has a cell or so of matter to windward is in its lee; shadows farther than two and a half cells are not seen.

    Args:
        field: Velocities of the air [m/s], added to `velocity`.
        mask: Factor on the density.
        velocity: Velocity of the air.
        density: Of the air.
        coefficient: Drag coefficient: a plate across the wind has 1.2, a cube 1.05, a ball 0.47.
        speed_limit: Speed beyond which it makes nothing faster; 0: there is none. It slows down as ever.

    Raises:
        MpmNodesError: The field is one of numbers, or the mask one of vectors.
    """
    half = SpatialField("MULTIPLY", (scaled(constant(density), constant(coefficient)), constant(0.5)))
    wind, rate = _air("force_air", velocity, field), _masked("force_air", half, mask)
    return BodyForce(wind, rate, quadratic=True, surface=True, most_speed=speed_limit)


@found_by("tornado", "swirl", "whirl", "twist", "spin", "stir")
@node(category="Force", label="Vortex", preflight=tried(__name__, "force_vortex", "mask"))
def force_vortex(
    mask: SpatialField | None = None,
    *,
    centre: _Place = (0.0, 0.0, 0.0),
    axis: A[Vec3, NotKeyable("only what moves a force takes keys")] = (0.0, 1.0, 0.0),
    strength: _Acceleration = 10.0,
    inward: _Acceleration = 0.0,
    radius: A[float, Metres, Range(min=0.0, exclusive_min=True, soft_max=10.0), KeysTravel()] = 1.0,
    speed_limit: _Speed = 0.0,
) -> BodyForce:
    """Drive matter around an axis, counterclockwise as it points at the viewer, and towards it.

    Args:
        mask: Factor: 1 where it acts, 0 where it does not.
        centre: A point of the axis.
        axis: Its direction, of any length.
        strength: Acceleration around the axis at the radius; it grows with the distance up to there, and is the same beyond.
        inward: Acceleration towards the axis, likewise.
        radius: Where both reach their full strength.
        speed_limit: Speed beyond which it makes nothing faster; 0: there is none.

    Raises:
        MpmNodesError: The axis is 0, or the mask a field of vectors.
    """
    long = math.hypot(*axis)
    if not long > 0.0:
        raise MpmNodesError(f"force_vortex.axis: is {tuple(axis)}; give one that is not 0")
    along = constant(tuple(each / long for each in axis))
    arm = SpatialField("SUBTRACT", (place(), constant(centre)), vector=True)
    away = SpatialField("SUBTRACT", (arm, scaled(along, SpatialField("DOT", (arm, along)))), vector=True)
    reach = SpatialField("MAXIMUM", (SpatialField("LENGTH", (away,)), constant(radius)))
    share = SpatialField("DIVIDE", (away, reach), vector=True)
    around = scaled(SpatialField("CROSS", (along, share), vector=True), constant(strength))
    value = SpatialField("SUBTRACT", (around, scaled(share, constant(inward))), vector=True)
    return BodyForce(_masked("force_vortex", value, mask), most_speed=speed_limit)


@found_by("magnet", "explosion", "explode", "implode", "blast", "gravity", "suck")
@node(category="Force", label="Attraction", preflight=tried(__name__, "force_attraction", "mask", "distance"))
def force_attraction(
    mask: SpatialField | None = None,
    distance: SpatialField | None = None,
    settings: GraphSettings = _SETTINGS,
    *,
    centre: _Place = (0.0, 0.0, 0.0),
    strength: _Acceleration = 10.0,
    radius: A[float, Metres, Range(min=0.0, exclusive_min=True, soft_max=10.0), KeysTravel()] = 1.0,
    falloff: A[float, NotKeyable("it is another law"), Range(min=-1.0, max=4.0)] = 0.0,
    speed_limit: _Speed = 0.0,
) -> BodyForce:
    """Draw matter to a point or a surface, or throw it away: a magnet, a blast, a goal shape. Key the strength for an explosion.

    Args:
        mask: Factor: 1 where it acts, 0 where it does not.
        distance: Distance from a surface [m], below 0 inside (field_collider, field_shape, field_vdb): it draws to the nearest
            point of it, from inside too, in place of to the centre.
        centre: The point.
        strength: Acceleration at the radius towards the point; below 0 away from it.
        radius: Distance at which the strength holds.
        falloff: Power of the distance by which it falls off beyond the radius: 0 not at all, 2 as gravity does, -1 grows as a
            spring's. Within the radius it goes down to 0 at the point, straight.
        speed_limit: Speed beyond which it makes nothing faster; 0: there is none.

    Raises:
        MpmNodesError: The mask or the distance is a field of vectors.
    """
    if distance is None:
        arm = SpatialField("SUBTRACT", (constant(centre), place()), vector=True)
    else:
        away = gradient(number("force_attraction.distance", distance), 0.25 * settings.cell_size)
        arm = scaled(SpatialField("NORMALIZE", (away,), vector=True), distance, constant(-1.0))
    reach = SpatialField("MAXIMUM", (SpatialField("LENGTH", (arm,)), constant(radius)))
    share = SpatialField("DIVIDE", (arm, reach), vector=True)
    fading = SpatialField("POWER", (SpatialField("DIVIDE", (constant(radius), reach)), constant(falloff)))
    value = scaled(share, fading, constant(strength))
    return BodyForce(_masked("force_attraction", value, mask), most_speed=speed_limit)


@found_by("delete", "kill", "outflow", "sink", "hole", "remove")
@node(category="Force", label="Drain", preflight=tried(__name__, "drain", "field"))
def drain(field: SpatialField) -> Drain:
    """Take matter away where a field is above 1/2: in a sink, or all beyond a box. Wire it into solve.drains.

    Args:
        field: A field of numbers: field_shape, or 1 less it by field_math to keep what lies inside.

    Raises:
        MpmNodesError: The field is one of vectors.
    """
    return Drain(number("drain.field", field))


def _sleeps(told: PreflightContext) -> dict[str, Any]:
    """Preflight: the solve refuses sleep where matter changes at rest."""
    return {"sleeps": 1}


@node(category="Force", label="Sleep", preflight=_sleeps)
def sleep(
    *,
    motion: A[float, Unitless, Range(min=0.0, exclusive_min=True, soft_max=0.1)] = 0.01,
    window: A[float, Seconds, Range(min=0.0, soft_max=2.0)] = 0.5,
) -> ActiveMask:
    """Let matter that has come to rest sleep, by blocks of 4 cells, until something comes near. Wire it into solve.active.

    What sleeps takes no time. It wakes as a frame begins in which matter, a body, a wall, a drain, another gravity or another force
    could come to it, or a body leaps, and goes on from where it is. What rings without going anywhere counts as at rest.

    Args:
        motion: Cells that all particles of a block and of those around it stay within for it to sleep.
        window: Time for which they do; they sleep at the end of such a window.
    """
    return ActiveMask(constant(1.0), sleep=Sleep(motion, window))


@found_by("freeze", "hold", "pin", "stop")
@node(category="Force", label="Active Mask", preflight=tried(__name__, "active_mask", "field"))
def active_mask(
    field: SpatialField,
    *,
    rule: A[CollisionRule, NotKeyable("it is what matter is made of")] = CollisionRule.STICKY,
    friction: A[float, Unitless, Range(min=0.0, soft_max=1.0)] = 0.0,
) -> ActiveMask:
    """Move only the matter where a field is above 1/2 as a frame begins; hold the rest as it is. Wire it into solve.active.

    What is not active is passive: it keeps its place, its deformation and all that updates do not change to the bit, takes no time,
    and stands in the way of active matter like a collider. It goes on from where it is, without a velocity, once the field lets it.

    Args:
        field: A field of numbers: field_shape, a ramp that keys move, or field_attribute, for what particles have.
        rule: What passive matter does to active matter that meets it: sticky, as matter of one body; or slip or separate.
        friction: Coulomb coefficient, for the rule separate.

    Raises:
        MpmNodesError: The field is one of vectors.
    """
    return ActiveMask(number("active_mask.field", field), rule, friction)
