"""The rules by which a substep gets its length: functions of numbers, which `device.batches` also writes as C++."""

from __future__ import annotations

import math

__all__ = ["even_step", "strain_step", "uses_up", "wave_step"]

FINE = 4
"""Steps in a tick from which on they end where it does: rounding up takes less than a fifth more of them, a tenth on average."""


def strain_step(gradient: float, most: float) -> float:
    """Return the longest dt with dt |grad v| <= `most`."""
    return most / gradient if gradient > 0.0 else math.inf


def wave_step(wave: float, speed: float, distance: float) -> float:
    """Return the longest dt in which a wave on matter of a speed runs `distance`; without waves there is none."""
    return distance / (wave + speed) if wave > 0.0 else math.inf


def even_step(dt: float, left: float, tick: float, rest: float, dt_min: float) -> float:
    """Return the step of at most dt that divides evenly what is left of the tick, or of the frame where ticks are short.

    Args:
        dt: Longest step [s].
        left: Seconds to the end of the frame.
        tick: Length of a tick [s].
        rest: What is left of this one [s].
        dt_min: An even share is not to be shorter either [s].
    """
    span = left
    if tick >= FINE * dt:
        if rest < 0.5 * dt:  # a tick that was not begun at its beginning leaves no sliver
            rest += tick
        span = min(rest, left)
    count = math.ceil(span / dt * (1.0 - 1e-12))
    if dt_min > 0.0:
        count = max(1, min(count, math.floor(span / dt_min * (1.0 + 1e-12))))
    return span / count


def uses_up(dt: float, left: float) -> bool:
    """Return whether a step is the last one of what is left."""
    return dt >= left * (1.0 - 1e-9)
