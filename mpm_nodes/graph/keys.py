"""Keyframed knob values: `{"keys": [[frame, value, interpolation], ...]}` in a graph file, sampled at any frame.

A key's interpolation shapes the curve from that key to the next: "step" holds, "linear" is straight, "smooth" eases in
and out (3 s^2 - 2 s^3). Before the first key and after the last one the value is constant.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

INTERPOLATIONS = ("step", "linear", "smooth")

Value = float | int | tuple[float, ...]
KeyList = Sequence[Sequence[Any]]


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
        if isinstance(frame, bool) or not isinstance(frame, (int, float)) or not math.isfinite(frame):
            return f"key {number} has no frame number", allowed
        if frame <= before:
            return f"key {number} at frame {frame:g} does not follow frame {before:g}", allowed
        if interpolation not in INTERPOLATIONS:
            return f"key {number} has interpolation {interpolation!r}", " | ".join(INTERPOLATIONS)
        before = frame
    return None


def sample(keys: KeyList, frame: float) -> Value:
    """Return the value at a (fractional) frame; vectors are interpolated per component."""
    index = bisect_right([key[0] for key in keys], frame) - 1
    if index < 0:
        return _plain(keys[0][1])
    start, value, interpolation = keys[index]
    if index + 1 == len(keys) or interpolation == "step" or frame == start:
        return _plain(value)
    end, target, _ = keys[index + 1]
    s = (frame - start) / (end - start)
    if interpolation == "smooth":
        s = s * s * (3.0 - 2.0 * s)
    if isinstance(value, (list, tuple)):
        return tuple(a + (b - a) * s for a, b in zip(value, target, strict=True))
    return value + (target - value) * s


def _plain(value: Any) -> Value:
    return tuple(value) if isinstance(value, list) else value


def interval(keys: KeyList, first: float, last: float) -> list[Any]:
    """Return what decides the values on [first, last]: equal lists mean equal curves there."""
    inside = [list(key) for key in keys if first < key[0] < last]
    facts: list[Any] = [sample(keys, first), sample(keys, last), inside]
    for here, after in pairwise(keys):
        overlaps = here[0] < last and after[0] > first
        if overlaps and here[2] == "smooth":
            facts.append([list(here), list(after)])
        elif overlaps and here[2] == "step" and first < after[0] <= last:
            facts.append([after[0], "steps"])
    return facts


def with_key(raw: Any, frame: float, value: Any, interpolation: str) -> dict[str, Any]:
    """Return a key list like `raw` with one key added or replaced; a constant that was there is given up."""
    keys = [list(key) for key in raw["keys"] if key[0] != frame] if is_keyed(raw) else []
    keys.append([frame, value, interpolation])
    return {"keys": sorted(keys, key=lambda key: key[0])}
