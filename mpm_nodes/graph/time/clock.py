"""The clock: frames, seconds of the shot, simulated seconds and time codes of files, mapped to one another in one place.

Symbols
    f        frame number, fractional between frames                        -
    t        seconds of the shot: (f - start) / fps                         s
    T        simulated seconds since the initial state                      s
    pace     dT/dt, simulated seconds per second of the shot; may be keyed  -

Keys, nozzles, colliders and files live in f or t, matter lives in T. What leaves a solve is per second of the shot, so that
motion blur and whoever takes differences of positions see what was written: v = pace * (simulated velocity).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpm_nodes.data import GraphSettings
from mpm_nodes.graph.time import keys

__all__ = ["Clock", "FrameClock", "per_second_of_the_shot", "rest_of_tick", "seconds_in_unit"]


@dataclass(frozen=True)
class Clock:
    """Maps the times of one shot to each other. The default one has frames, shot and simulation alike in seconds from 0.

    Attributes:
        start: First frame of the shot: second 0.
        fps: Frames per second.
        begin: Frame of the initial state of the simulation; before it simulated time stands still. None: the first frame.
        pace: Simulated seconds per second of the shot, > 0; a `KeyedNumber` where it is keyed.
    """

    start: float = 0.0
    fps: float = 1.0
    begin: float | None = None
    pace: float = 1.0

    @classmethod
    def of(cls, settings: GraphSettings, begin: float | None = None, pace: float = 1.0) -> Clock:
        """Return the clock of a graph's shot; an initial state before its first frame is put there."""
        return cls(settings.start, settings.fps, settings.start if begin is None else max(begin, settings.start), pace)

    @property
    def origin(self) -> float:
        """Frame of the initial state."""
        return self.start if self.begin is None else self.begin

    # ---------------------------------------------------------------- frames and seconds of the shot
    def seconds(self, frame: Any) -> Any:
        """Return seconds of the shot at frames (a number or an array)."""
        return (frame - self.start) / self.fps

    def frame(self, seconds: Any) -> Any:
        """Return the (fractional) frames at seconds of the shot (a number or an array)."""
        return self.start + seconds * self.fps

    # ---------------------------------------------------------------- simulated seconds
    def pace_at(self, frame: float) -> float:
        """Return simulated seconds per second of the shot at a frame; 0 before the initial state."""
        return 0.0 if frame < self.origin else keys.at(self.pace, frame)

    def simulated(self, frame: float) -> float:
        """Return the simulated seconds at a frame, 0 up to the initial state; infinity stays infinity."""
        if frame <= self.origin:
            return 0.0
        if not isinstance(self.pace, keys.KeyedNumber) or math.isinf(frame):
            return (frame - self.origin) / self.fps * float(self.pace)
        return keys.integral(self.pace.keys, self.origin, frame) / self.fps

    def frame_at(self, simulated: float) -> float:
        """Return the frame at simulated seconds >= 0."""
        if not isinstance(self.pace, keys.KeyedNumber):
            return self.origin + simulated / self.pace * self.fps
        paces = [pace for _, pace, _ in self.pace.keys]
        slowest, fastest = min(paces), max(paces)
        low, high = self.origin + simulated * self.fps / fastest, self.origin + simulated * self.fps / slowest
        while high - low > 1e-12 * max(1.0, abs(high)):
            middle = 0.5 * (low + high)
            if middle in (low, high):
                break
            low, high = (middle, high) if self.simulated(middle) < simulated else (low, middle)
        return 0.5 * (low + high)

    # ---------------------------------------------------------------- files
    def code(self, frame: float, codes_per_second: float) -> float:
        """Return the time code of a frame in a file that counts so many codes a second: frame 0 is code 0."""
        return frame * codes_per_second / self.fps

    def over(self, frame: int) -> FrameClock:
        """Return the clock over the frame that ends at `frame`."""
        return FrameClock(self, frame)


TICKS = 96.0
"""Least ticks in a second of the shot: frames are halved, so 24, 48 and 96 a second share them, and 30, 60 and 120 do."""


@dataclass(frozen=True)
class FrameClock:
    """The clock over one frame: from `frame - 1` to `frame`.

    Attributes:
        clock: The shot's.
        frame: The frame that ends the interval.
    """

    clock: Clock
    frame: int

    @property
    def begin(self) -> float:
        """Simulated seconds at the beginning of the interval."""
        return self.clock.simulated(self.frame - 1)

    @property
    def end(self) -> float:
        """Simulated seconds at its end."""
        return self.clock.simulated(self.frame)

    @property
    def pace(self) -> float:
        """Mean simulated seconds per second of the shot over the interval; 0 while simulated time stands still."""
        return (self.end - self.begin) * self.clock.fps if keys.carries_keys(self.clock.pace) else self.clock.pace_at(self.frame)

    def simulated(self, seconds: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return simulated seconds at seconds of the shot; before the initial state they go on backwards at the pace of now.

        Keys of bodies may lie before the interval, where simulated time stands still or has gone at another pace.
        """
        frames = self.clock.frame(np.asarray(seconds, np.float64))
        if not keys.carries_keys(self.clock.pace):
            return (frames - self.clock.origin) / self.clock.fps * float(self.clock.pace)
        first = max(float(self.frame - 1), self.clock.origin)
        later = np.array([self.clock.simulated(frame) for frame in np.maximum(frames, first).ravel()]).reshape(frames.shape)
        return later + np.minimum(frames - first, 0.0) / self.clock.fps * self.pace

    def frame_at(self, simulated: float) -> float:
        """Return the frame at simulated seconds, held within the interval; exact at its ends, where keys are."""
        if simulated <= self.begin:
            return self.frame - 1.0
        if simulated >= self.end:
            return float(self.frame)
        if keys.carries_keys(self.clock.pace):
            return self.clock.frame_at(simulated)
        return self.frame - 1.0 + (simulated - self.begin) / (self.end - self.begin)

    @property
    def tick(self) -> float:
        """Length of the frame's ticks [simulated s]."""
        halvings = max(0, math.ceil(math.log2(0.99 * TICKS / self.clock.fps)))
        return (self.end - self.begin) / 2**halvings

    def tick_at(self, simulated: float) -> tuple[float, float]:
        """Return the length of the frame's ticks and what is left of the one at a time [simulated s]."""
        return self.tick, rest_of_tick(self.tick, simulated - self.begin)


def rest_of_tick(tick: float, elapsed: float) -> float:
    """Return what is left of the tick of a length in which a frame is, `elapsed` seconds after it began."""
    left = tick - elapsed % tick if tick > 0.0 else 0.0
    return left if left > 1e-9 * tick else tick


# ---------------------------------------------------------------- what is written
def seconds_in_unit(unit: str) -> int:
    """Return how often a unit divides by seconds: 1 for "m/s" and "1/s", 2 for "m/s^2", 0 for "Pa" and "Pa s"."""
    _, slash, below = unit.rpartition("/")
    power = {"s": 1, "s^2": 2, "s2": 2, "s^3": 3}
    return power.get(below.strip(), 0) if slash else 0


def per_second_of_the_shot(columns: dict[str, np.ndarray], units: dict[str, str], pace: float) -> dict[str, np.ndarray]:
    """Return columns per simulated second as columns per second of the shot.

    Args:
        columns: By name.
        units: Units by name; columns without one are left as they are.
        pace: Simulated seconds per second of the shot.
    """
    if pace == 1.0:
        return columns
    powers = {name: seconds_in_unit(units.get(name, "")) for name in columns}
    return {name: column * column.dtype.type(pace ** powers[name]) if powers[name] else column for name, column in columns.items()}
