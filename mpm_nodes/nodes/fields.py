"""Fields: numbers and vectors through space and time, wired into what they vary."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mpm_nodes.data import (
    A,
    Degrees,
    GraphSettings,
    Metres,
    MpmNodesError,
    Orientation,
    PerFrame,
    Range,
    SpatialField,
    Unit,
    Unitless,
    Vec3,
    attributes_of,
)
from mpm_nodes.graph.declare.declarations import Preflight, PreflightContext
from mpm_nodes.graph.declare.decorators import found_by, node
from mpm_nodes.graph.time.keys import KeyedNumber, KeyedVector, KeysTravel, NotKeyable
from mpm_nodes.nodes.rotations import TURNS, UNTURNED, turn_matrix

__all__ = ["ShapeOutput", "constant", "gradient", "inside_of", "moved", "number", "place", "rewired", "scaled", "tried"]

_Number = A[float, Unitless, KeysTravel()]
_Place = A[Vec3, Metres, KeysTravel()]
_Length = Range(min=0.0, exclusive_min=True, soft_min=1e-3, soft_max=10.0, log=True)
_FIXED = NotKeyable("only what moves and scales a field takes keys")


def constant(value: float | tuple[float, ...]) -> SpatialField:
    """Return the field of a number or a vector, which may carry keys.

    Raises:
        MpmNodesError: One of its numbers is not finite.
    """
    values = [key[1] for key in value.keys] if isinstance(value, (KeyedNumber, KeyedVector)) else [value]
    for each in values:
        if not np.isfinite(each).all():
            raise MpmNodesError(f"a field has the value {each}; give finite numbers")
    if isinstance(value, tuple):
        return SpatialField("CONSTANT", (), (value,), vector=True)
    return SpatialField("CONSTANT", (), (value, value, value))


_PLACE = SpatialField("PLACE", vector=True)


def place() -> SpatialField:
    """Return the field that says where it is [m]."""
    return _PLACE


def scaled(field: SpatialField, *factors: SpatialField | None) -> SpatialField:
    """Return a field times others."""
    for each in factors:
        if each is not None:
            field = SpatialField("MULTIPLY", (field, each), vector=field.vector or each.vector)
    return field


def moved(centre: Vec3, turn: np.ndarray | None = None, size: float = 1.0) -> SpatialField:
    """Return the place in the axes of something that is turned, at a centre and of a size."""
    rows = tuple(float(each) for each in (np.eye(3) if turn is None else turn).ravel())
    return SpatialField("MOVED", (place(),), (*rows, centre, size, size, size), vector=True)


def number(where: str, field: SpatialField) -> SpatialField:
    """Return a field that has to be a number.

    Raises:
        MpmNodesError: It is a vector.
    """
    if field.vector:
        raise MpmNodesError(f"{where}: is a field of vectors, and a number is needed; take its length by field_math")
    return field


def tried(module: str, name: str, *ports: str) -> Preflight:
    """Return the preflight of a node of fields: it is made, so that what does not fit is told before the cook.

    Args:
        module: Where the node is.
        name: Its name.
        ports: Its ports of fields.
    """

    def preflight(told: PreflightContext) -> dict[str, Any]:
        make = getattr(importlib.import_module(module), name)
        pushes = {"forces": 1} if name.startswith("force_") else {}
        given: dict[str, Any] = {}
        for port in ports:
            for facts in told.inputs.get(port, ())[:1]:
                if "field" not in facts:  # a user's field: what it is shows in the cook
                    return pushes
                given[port] = facts["field"]
        if "settings" in inspect.signature(make).parameters:
            given["settings"] = told.settings
        found = make(**given, **told.knobs)
        if isinstance(found, SpatialField):
            return {"vector": found.vector, "field": found, "attributes": attributes_of(found)}
        return {**pushes, "attributes": found.attributes, "past_bodies": int(bool(found.attributes) and bool(pushes))}

    return preflight


# ---------------------------------------------------------------- sources of fields
@node(category="Field", label="Constant Field", preflight=tried(__name__, "field_constant"))
def field_constant(*, value: _Number = 1.0) -> SpatialField:
    """Be the same number everywhere; keys change it over time.

    Args:
        value: The number.
    """
    return constant(value)


@node(category="Field", label="Vector Field", preflight=tried(__name__, "field_vector"))
def field_vector(*, vector: A[Vec3, Unitless, KeysTravel()] = (0.0, 1.0, 0.0)) -> SpatialField:
    """Be the same vector everywhere; keys change it over time.

    Args:
        vector: The vector, in units of what it is wired to.
    """
    return constant(vector)


class NoiseKind(enum.Enum):
    """What noise gives.

    VALUE: a number around 0.
    TURBULENCE: a number above 0: the absolute values of its octaves, summed up.
    CURL: a vector, the curl of three noises: a flow that neither piles up nor thins out.
    """

    VALUE = "value"
    TURBULENCE = "turbulence"
    CURL = "curl"


_NOISE_CODES = {NoiseKind.VALUE: "NOISE", NoiseKind.TURBULENCE: "ROUGH", NoiseKind.CURL: "CURL"}
_SPREAD = {NoiseKind.VALUE: 0.293, NoiseKind.TURBULENCE: 0.238, NoiseKind.CURL: 1.015}
"""Root of the mean square of an octave of each over space and time, by component of a vector; the mean of turbulence."""


@found_by("turbulence", "random", "perlin")
@node(category="Field", label="Noise Field", preflight=tried(__name__, "field_noise"))
def field_noise(
    settings: GraphSettings,
    *,
    kind: NoiseKind = NoiseKind.VALUE,
    size: A[float, Metres, _Length, _FIXED] = 0.1,
    amplitude: _Number = 1.0,
    offset: _Number = 0.0,
    evolution: A[float, Unit("1/s"), Range(soft_min=0.0, soft_max=10.0), _FIXED] = 0.0,
    octaves: A[int, Unitless, Range(min=1, max=8), _FIXED] = 1,
    repeat: A[int, Unitless, Range(min=0, soft_max=64), _FIXED] = 0,
    translate: _Place = (0.0, 0.0, 0.0),
    seed: A[int, Range(min=0, max=1_000_000), _FIXED] = 0,
) -> SpatialField:
    """Vary through space, and over time: smooth gradient noise, the same on every machine.

    Args:
        kind: A number, a rough number, or a vector without divergence.
        size: Distance from one bump to the next.
        amplitude: Standard deviation of one octave; of turbulence its mean.
        offset: Added to numbers.
        evolution: How many times a second the pattern becomes another.
        octaves: Copies of half the size and half the amplitude on top of each other.
        repeat: Cells of `size` after which it repeats along each axis, for tiles; 0: it does not.
        translate: Moves the pattern.
        seed: Another pattern.

    Source: Perlin 2002; Bridson and Hourihan 2007, eq. 1.
    """
    where = moved(translate, size=size)
    time = PerFrame(evolution / settings.fps)
    curl = kind is NoiseKind.CURL
    found = SpatialField(_NOISE_CODES[kind], (where,), (time, seed, octaves, repeat, repeat, repeat), vector=curl)
    unit = SpatialField("DIVIDE", (found, constant(_SPREAD[kind])), vector=curl)
    return _with_offset(scaled(unit, constant(amplitude)), offset, curl)


def _with_offset(field: SpatialField, offset: float, vector: bool) -> SpatialField:
    return field if vector else SpatialField("ADD", (field, constant(offset)))


class FieldShape(enum.Enum):
    """A solid around its centre. BALL: of the radius. BOX: of the edge lengths. CAPSULE: of the radius, around a line of the length
    along y. HALF_SPACE: all below its centre."""

    BALL = "ball"
    BOX = "box"
    CAPSULE = "capsule"
    HALF_SPACE = "half_space"


class ShapeOutput(enum.Enum):
    """What a shape gives. INSIDE: 1 in it, 0 outside. DISTANCE: the way to its surface [m], below 0 inside."""

    INSIDE = "inside"
    DISTANCE = "distance"


@node(category="Field", label="Shape Field", preflight=tried(__name__, "field_shape"), alternatives=TURNS)
def field_shape(
    *,
    shape: FieldShape = FieldShape.BALL,
    output: ShapeOutput = ShapeOutput.INSIDE,
    centre: _Place = (0.0, 0.0, 0.0),
    rotation: A[Vec3, Degrees, _FIXED] = (0.0, 0.0, 0.0),
    orientation: A[Orientation, _FIXED] = UNTURNED,
    radius: A[float, Metres, _Length, KeysTravel()] = 0.5,
    size: A[Vec3, Metres, _Length, _FIXED] = (1.0, 1.0, 1.0),
    length: A[float, Metres, Range(min=0.0, soft_max=10.0), _FIXED] = 1.0,
    falloff: A[float, Metres, Range(min=0.0, soft_max=1.0), KeysTravel()] = 0.0,
) -> SpatialField:
    """Be 1 inside a shape and 0 outside, or the distance from its surface; key the centre to move it.

    Args:
        shape: Which one.
        output: Inside or not, or the distance.
        centre: Its centre; of a half space a point of its surface.
        rotation: Turns about x, then y, then z.
        orientation: Turns by a quaternion (w, x, y, z), in place of the angles.
        radius: Of a ball or a capsule.
        size: Edge lengths of a box.
        length: Of the line in a capsule.
        falloff: Way outside over which `inside` falls off smoothly.
    """
    codes = {FieldShape.BALL: "SPHERE", FieldShape.BOX: "BOX", FieldShape.CAPSULE: "CAPSULE", FieldShape.HALF_SPACE: "PLANE"}
    numbers: tuple[float, ...] = (radius, 0.5 * length) if shape is not FieldShape.BOX else tuple(0.5 * each for each in size)
    distance = SpatialField(codes[shape], (moved(centre, turn_matrix(rotation, orientation)),), numbers)
    return distance if output is ShapeOutput.DISTANCE else inside_of(distance, falloff)


def inside_of(distance: SpatialField, falloff: float) -> SpatialField:
    """Return a field that is 1 where a distance is below 0, and falls off to 0 smoothly within a way [m]."""
    return SpatialField("REMAPPED", (distance,), (0.0, falloff, 1.0, 0.0, 2.0))


class RampForm(enum.Enum):
    """How a ramp rises. LINEAR: straight, held at its ends. SMOOTH: gently from one end to the other. ENDLESS: straight on."""

    LINEAR = "linear"
    SMOOTH = "smooth"
    ENDLESS = "endless"


@node(category="Field", label="Ramp Field", preflight=tried(__name__, "field_ramp", "field"))
def field_ramp(
    field: SpatialField | None = None,
    *,
    origin: _Place = (0.0, 0.0, 0.0),
    direction: A[Vec3, Unitless, _FIXED] = (0.0, 1.0, 0.0),
    low: _Number = 0.0,
    high: _Number = 1.0,
    from_value: _Number = 0.0,
    to_value: _Number = 1.0,
    interpolation: RampForm = RampForm.LINEAR,
) -> SpatialField:
    """Rise from one value to another along an axis, or as another field does: over a distance, over noise.

    Args:
        field: What it follows; without it the way along the direction [m].
        origin: Where that way begins.
        direction: Axis of the way, of any length.
        low: Where the ramp begins, in units of the field.
        high: Where it ends.
        from_value: Value where it begins.
        to_value: Value where it ends.
        interpolation: Straight or smooth.

    Raises:
        MpmNodesError: The direction is 0, or the field one of vectors.
    """
    if field is None:
        long = math.hypot(*direction)
        if not long > 0.0:
            raise MpmNodesError(f"field_ramp.direction: is {tuple(direction)}; give one that is not 0")
        axis = constant(tuple(each / long for each in direction))
        field = SpatialField("DOT", (moved(origin), axis))
    mode = {RampForm.ENDLESS: 0.0, RampForm.LINEAR: 1.0, RampForm.SMOOTH: 2.0}[interpolation]
    return SpatialField("REMAPPED", (number("field_ramp.field", field),), (low, high, from_value, to_value, mode))


@node(category="Field", label="Field Gradient", preflight=tried(__name__, "field_gradient", "field"))
def field_gradient(
    field: SpatialField,
    settings: GraphSettings,
    *,
    step: A[float, Metres, Range(min=0.0, soft_max=1.0), _FIXED] = 0.0,
) -> SpatialField:
    """Be the slope of a field: a vector that points where it grows fastest, as long as it grows by in a metre.

    Of a distance it points away from the surface, with length 1. Its source is evaluated six times.

    Args:
        field: A field of numbers.
        step: Way over which differences are taken, half of it to each side; 0 takes a cell.

    Raises:
        MpmNodesError: The field is one of vectors.
    """
    return gradient(number("field_gradient.field", field), step or settings.cell_size)


def gradient(field: SpatialField, step: float) -> SpatialField:
    """Return the gradient of a field of numbers, by differences over a step [m] around each place.

    Raises:
        MpmNodesError: The field reads particles, whose neighbours it does not know.
    """
    if attributes_of(field):
        raise MpmNodesError("the slope of a field is looked at beside particles, and this one reads them (field_attribute)")
    total: SpatialField | None = None
    for axis in np.eye(3):
        ends = [_shifted(field, (side * step * axis).tolist()) for side in (0.5, -0.5)]
        slope = SpatialField("DIVIDE", (SpatialField("SUBTRACT", tuple(ends)), constant(step)))
        along = scaled(constant(tuple(axis.tolist())), slope)
        total = along if total is None else SpatialField("ADD", (total, along), vector=True)
    assert total is not None
    return total


def _shifted(field: SpatialField, offset: list[float]) -> SpatialField:
    """Return a field as it is at an offset from each place."""
    elsewhere = SpatialField("ADD", (_PLACE, constant(tuple(offset))), vector=True)
    return rewired(field, lambda each: elsewhere if each is _PLACE else None)


def rewired(field: SpatialField, instead: Callable[[SpatialField], SpatialField | None]) -> SpatialField:
    """Return a field with others in place of some that it is made of.

    Args:
        field: The field.
        instead: Returns what takes the place of a field that has no inputs, None to leave it.
    """
    known: dict[int, SpatialField] = {}

    def of(each: SpatialField) -> SpatialField:
        if id(each) not in known:
            inputs = tuple(map(of, each.inputs))
            same = all(new is old for new, old in zip(inputs, each.inputs, strict=True))
            left = each if same else dataclasses.replace(each, inputs=inputs)
            known[id(each)] = (instead(each) if not each.inputs else None) or left
        return known[id(each)]

    return of(field)


class FieldOperation(enum.Enum):
    """What becomes of a, b and c; of vectors component by component.

    MIX: a + c (b - a). LENGTH, NORMALIZE, ABSOLUTE: of a. DOT, CROSS: of a and b. POWER: |a|^b with the sign of a. DIVIDE: 0 where
    b is 0.
    """

    ADD = "add"
    SUBTRACT = "subtract"
    MULTIPLY = "multiply"
    DIVIDE = "divide"
    MINIMUM = "minimum"
    MAXIMUM = "maximum"
    POWER = "power"
    ABSOLUTE = "absolute"
    LENGTH = "length"
    NORMALIZE = "normalize"
    DOT = "dot"
    CROSS = "cross"
    MIX = "mix"


_OF_NUMBERS = {FieldOperation.LENGTH: FieldOperation.ABSOLUTE, FieldOperation.DOT: FieldOperation.MULTIPLY}
_OF_ONE = (FieldOperation.ABSOLUTE, FieldOperation.LENGTH, FieldOperation.NORMALIZE)


@node(category="Field", label="Field Math", preflight=tried(__name__, "field_math", "a", "b", "c"))
def field_math(
    a: SpatialField,
    b: SpatialField | None = None,
    c: SpatialField | None = None,
    *,
    operation: FieldOperation = FieldOperation.MULTIPLY,
    b_value: _Number = 1.0,
    c_value: _Number = 0.5,
) -> SpatialField:
    """Calculate with fields; a number that meets a vector counts along all axes.

    Args:
        a: First field.
        b: Second field; without it `b_value`.
        c: Share of a mix; without it `c_value`.
        operation: What to do.
        b_value: A number in place of b.
        c_value: A number in place of c.

    Raises:
        MpmNodesError: The operation is of vectors, and none is wired.
    """
    second, third = constant(b_value) if b is None else b, constant(c_value) if c is None else c
    inputs = (a,) if operation in _OF_ONE else (a, second, third) if operation is FieldOperation.MIX else (a, second)
    if not any(each.vector for each in inputs):
        if operation in (FieldOperation.NORMALIZE, FieldOperation.CROSS):
            raise MpmNodesError(f"field_math.operation: {operation.value} is of vectors; wire one into a")
        operation = _OF_NUMBERS.get(operation, operation)
    vector = any(each.vector for each in inputs)
    if operation in (FieldOperation.LENGTH, FieldOperation.DOT):
        vector = False
    if operation in (FieldOperation.CROSS, FieldOperation.NORMALIZE):
        vector = True
    return SpatialField(operation.name, inputs, vector=vector)
