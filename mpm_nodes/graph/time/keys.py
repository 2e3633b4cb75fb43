"""Keyframed knob values: `{"keys": [[frame, value, interpolation], ...]}` in a graph file, sampled at any frame.

A key's interpolation shapes the curve from that key to the next: "step" holds, "linear" is straight, "smooth" eases in
and out (3 s^2 - 2 s^3). Before the first key and after the last one the value is constant. Quaternions turn at an even rate
where vectors go straight.

Every number may be keyed unless its declaration says `NotKeyable`, and a choice if it says `KeyedInSteps`. A node is called
again with the values of each frame; a knob that `KeysTravel` hands its keys on inside the value, for whoever uses it to sample at
every substep.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

INTERPOLATIONS = ("step", "linear", "smooth")

Value = TypeVar("Value", float, tuple[float, ...])
NumberKeys = Sequence[tuple[float, float, str]]
VectorKeys = Sequence[tuple[float, tuple[float, ...], str]]


# ---------------------------------------------------------------- what declarations say of a knob or port
@dataclass(frozen=True)
class NotKeyable:
    """Marks a number that has one value for the whole shot.

    Attributes:
        reason: Why, as half a sentence: "cannot be keyframed: " stands before it.
    """

    reason: str


@dataclass(frozen=True)
class KeysTravel:
    """Marks a number whose keys travel with the value: the node gets a `KeyedNumber` or `KeyedVector` where it is keyed."""


@dataclass(frozen=True)
class KeyedInSteps:
    """Marks a choice, or what is on or off, that takes keys: all of them "step", since there is nothing between two choices."""


@dataclass(frozen=True)
class TakenAtStart:
    """Marks an input port that counts at one frame only; keys of what is wired into it are refused, since they would do nothing."""


# ---------------------------------------------------------------- keyed values
class KeyedNumber(float):
    """A number that carries its keys; as a plain float it is the value at its first key.

    Args:
        keys: Rows (frame, value, interpolation).
    """

    keys: NumberKeys

    def __new__(cls, keys: NumberKeys) -> KeyedNumber:
        made = super().__new__(cls, sample(keys, -math.inf))
        made.keys = tuple((frame, value, mode) for frame, value, mode in keys)
        return made

    def at(self, frame: float) -> float:
        """Return the value at a (fractional) frame."""
        return float(sample(self.keys, frame))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyedNumber) and self.keys == other.keys

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.keys)

    def __reduce__(self) -> tuple[type[KeyedNumber], tuple[NumberKeys]]:
        return type(self), (self.keys,)


class KeyedVector(tuple):
    """A vector that carries its keys; as a plain tuple it is the value at its first key.

    Args:
        keys: Rows (frame, components, interpolation).
    """

    keys: VectorKeys

    def __new__(cls, keys: VectorKeys) -> KeyedVector:
        rows = tuple((frame, tuple(map(float, value)), mode) for frame, value, mode in keys)
        made = super().__new__(cls, rows[0][1])
        made.keys = rows
        return made

    def at(self, frame: float) -> tuple[float, ...]:
        """Return the value at a (fractional) frame."""
        return sample(self.keys, frame)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyedVector) and self.keys == other.keys

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.keys)

    def __reduce__(self) -> tuple[type[KeyedVector], tuple[VectorKeys]]:
        return type(self), (self.keys,)


def carries_keys(value: Any) -> bool:
    """Return whether a value is keyed and carries its keys."""
    return isinstance(value, (KeyedNumber, KeyedVector))


def at(value: Any, frame: float) -> Any:
    """Return a value at a (fractional) frame: itself unless it carries keys."""
    return value.at(frame) if carries_keys(value) else value


def most(value: float) -> float:
    """Return a number, or the largest at its keys, which is the largest at any frame."""
    return float(max(key[1] for key in value.keys)) if isinstance(value, KeyedNumber) else float(value)


def scaled_keys(value: float, factor: float) -> float:
    """Return a number, or all keys of one that carries them, times a factor."""
    if not isinstance(value, KeyedNumber):
        return value * factor
    return KeyedNumber([(frame, each * factor, mode) for frame, each, mode in value.keys])


# ---------------------------------------------------------------- key lists


def is_keyed(raw: Any) -> bool:
    """Return whether a knob's raw value is a key list."""
    return isinstance(raw, Mapping) and "keys" in raw


def key_list_problem(raw: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return (message, what is allowed) when the shape of a key list is wrong, else None. Knobs check the values."""
    allowed = '{"keys": [[frame, value, interpolation], ...]} with frames increasing'
    keys = raw["keys"]
    if set(raw) != {"keys"} or not isinstance(keys, (list, tuple)) or not keys:
        return "is not a key list", allowed
    before = -math.inf
    for number, key in enumerate(keys, 1):
        if not isinstance(key, (list, tuple)) or len(key) != 3:
            return f"key {number} is not [frame, value, interpolation]", allowed
        frame, _, interpolation = key
        if (
            isinstance(frame, bool) or not isinstance(frame, (int, float)) or not abs(frame) <= 1e300
        ):  # also NaN, and integers that no float holds
            return f"key {number} has no frame number", allowed
        if frame <= before:
            return f"key {number} at frame {frame:g} does not follow frame {before:g}", allowed
        if interpolation not in INTERPOLATIONS:
            return f"key {number} has interpolation {interpolation!r}", " | ".join(INTERPOLATIONS)
        before = frame
    return None


def sample(keys: Sequence[tuple[float, Value, str]], frame: float) -> Value:
    """Return the value at a (fractional) frame; vectors are interpolated per component."""
    value, target, s = _between(keys, frame)
    if s == 0.0:
        return _plain(value)
    if isinstance(value, (list, tuple)):
        return tuple(a + (b - a) * s for a, b in zip(value, target, strict=True))
    return value + (target - value) * s


def before_cut(keys: Sequence[Any], first: float, last: float) -> Sequence[Any]:
    """Return the rows of keys without those from the first jump on that a "step" makes within (first, last]; else all.

    Of a place they say how a body moves over that interval: where it jumps, it does not move.
    """
    for index, (here, after) in enumerate(pairwise(keys), 1):
        if here[2] == "step" and first < after[0] <= last and _plain(here[1]) != _plain(after[1]):
            return keys[:index]
    return keys


def slerp(keys: VectorKeys, frame: float) -> tuple[float, ...]:
    """Return a quaternion at a (fractional) frame; between keys it turns about one axis, along the shorter arc (Shoemake 1985)."""
    value, target, s = _between(keys, frame)
    if s == 0.0:
        return tuple(value)
    a, b = _unit(value), _unit(target)
    cosine = math.fsum(x * y for x, y in zip(a, b, strict=True))
    if cosine < 0.0:  # q and -q are one rotation
        b, cosine = tuple(-y for y in b), -cosine
    sine = math.sqrt(math.fsum((y - cosine * x) ** 2 for x, y in zip(a, b, strict=True)))
    angle = math.atan2(sine, cosine)
    if sine < 1e-9:  # equal to rounding
        return a
    first, second = math.sin((1.0 - s) * angle) / sine, math.sin(s * angle) / sine
    return tuple(first * x + second * y for x, y in zip(a, b, strict=True))


def _unit(quaternion: Sequence[float]) -> tuple[float, ...]:
    length = math.hypot(*quaternion)
    return tuple(part / length for part in quaternion)


def _between(keys: Sequence[tuple[float, Value, str]], frame: float) -> tuple[Value, Value, float]:
    """Return the values of the keys around a frame, and how far it is from the first to the second, 0 to 1."""
    index = bisect_right([key[0] for key in keys], frame) - 1
    start, value, interpolation = keys[max(index, 0)]
    if index < 0 or index + 1 == len(keys) or interpolation == "step" or frame == start:
        return value, value, 0.0
    end, target, _ = keys[index + 1]
    s = (frame - start) / (end - start)
    return value, target, s * s * (3.0 - 2.0 * s) if interpolation == "smooth" else s


def integral(keys: NumberKeys, first: float, last: float) -> float:
    """Return the integral over frames of a keyed number from `first` to `last` >= `first`, exact for every interpolation."""
    places = [first, *(key[0] for key in keys if first < key[0] < last), last]
    total = 0.0
    for begin, end in pairwise(places):
        middle = sample(keys, 0.5 * (begin + end))
        held = bisect_right([key[0] for key in keys], begin) - 1
        if held < 0 or held + 1 == len(keys) or keys[held][2] == "step":
            total += (end - begin) * middle
        else:  # Simpson's rule: exact up to cubics, as "smooth" is
            total += (end - begin) / 6.0 * (sample(keys, begin) + 4.0 * middle + sample(keys, end))
    return total


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def interval(keys: Sequence[tuple[float, Value, str]], first: float, last: float, straight: bool = True) -> list[Any]:
    """Return what decides the values on [first, last]: equal lists mean equal curves there.

    Args:
        keys: The keys.
        first: First frame.
        last: Last frame.
        straight: Whether "linear" joins keys by straight lines, as it does not for quaternions.
    """
    inside = [list(key) for key in keys if first < key[0] < last]
    facts: list[Any] = [sample(keys, first), sample(keys, last), inside]
    for here, after in pairwise(keys):
        overlaps = here[0] < last and after[0] > first
        if overlaps and (here[2] == "smooth" or (not straight and here[2] != "step")):
            facts.append([list(here), list(after)])
        elif overlaps and here[2] == "step" and first < after[0] <= last:
            facts.append([after[0], "steps"])
    return facts


def with_key(raw: Any, frame: float, value: Any, interpolation: str) -> dict[str, Any]:
    """Return a key list like `raw` with one key added or replaced; a constant that was there is given up."""
    keys = [list(key) for key in raw["keys"] if key[0] != frame] if is_keyed(raw) else []
    keys.append([frame, value, interpolation])
    return {"keys": sorted(keys, key=lambda key: key[0])}
