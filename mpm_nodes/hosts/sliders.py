"""Where the sliders of numbers begin and end: one rule for every host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

REACH: dict[str, float] = {"frames": 240.0, "deg": 360.0, "m/s": 10.0, "rad/s": 10.0}
"""How far a slider of a unit reaches at least."""
PLACES = 10.0
"""How far the sliders of a place or a shift reach at least [m]."""
WHOLE = 100.0
"""How far a slider of whole numbers reaches at least."""
DECADES = 1e-4
"""Where a logarithmic slider begins, as a share of its end, when nothing says so."""


def slider_range(knob: Mapping[str, Any], limits: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a number's limits with both ends of its slider; None for what is not a number.

    The ends that its declaration names stay. Others follow from the hard limits, from twice the default, and from the unit.

    Args:
        knob: Record of the knob: kind, default, unit, and for vectors element.
        limits: What its declaration says: min, max, soft_min, soft_max, log, exclusive_min; None for nothing.
    """
    if knob["kind"] not in ("int", "float", "vector"):
        return None
    found = dict.fromkeys(("min", "max", "soft_min", "soft_max")) | {"log": False, "exclusive_min": False} | dict(limits or {})
    default = knob["default"]
    values = [0.0] if default is None else list(default) if isinstance(default, (list, tuple)) else [default]
    whole = knob["kind"] == "int" or knob.get("element") == "int"
    begins = found["min"] if found["soft_min"] is None else found["soft_min"]
    if found["soft_max"] is None:
        ends = [_reach(knob, values, whole), 0.0 if begins is None else 2.0 * abs(begins)]
        found["soft_max"] = max(ends) if found["max"] is None else found["max"]
    if begins is None:
        begins = min(-found["soft_max"], *values) if knob["kind"] == "vector" or min(values) < 0 else 0.0
    found["soft_min"] = DECADES * found["soft_max"] if found["log"] and begins <= 0.0 else begins
    return found | ({key: int(found[key]) for key in ("soft_min", "soft_max")} if whole else {})


def _reach(knob: Mapping[str, Any], values: Sequence[float], whole: bool) -> float:
    """Return how far from zero a slider reaches when nothing says so."""
    twice, unit = 2.0 * max(map(abs, values)), knob.get("unit") or ""
    if unit in REACH or whole:
        return max(twice, REACH.get(unit, WHOLE))
    if unit == "m" and knob["kind"] == "vector":
        return max(twice, PLACES)
    return twice or 1.0
