"""Time codes of a stage: how frames that someone counts lie on the codes that a file counts.

| symbol | meaning | unit |
|---|---|---|
| f | frame, fractional between frames | - |
| c | time code: c = shift + step f | - |

A stage counts `timeCodesPerSecond` codes a second, whatever the frames of a shot or of its own samples are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from mpm_nodes.data import InputError

__all__ = ["ROUNDING", "Codes", "StageFrames", "frames_of_samples", "per_second"]

SLOWEST, FASTEST = 1e-6, 1e9
"""Time codes per second that a stage may count."""
ROUNDING = 0.02
"""Share of a frame by which a sample may lie off it: some programs round codes, and 23.976 is not quite 24000/1001."""


@dataclass(frozen=True)
class Codes:
    """Frames as time codes of one stage. By default a frame is its code, as in caches of ours.

    Attributes:
        step: Codes from a frame to the next, > 0.
        shift: Code of frame 0.
    """

    step: float = 1.0
    shift: float = 0.0

    def code(self, frame: float) -> float:
        """Return the time code of a frame."""
        return self.shift + frame * self.step

    def frame(self, code: float) -> float:
        """Return the (fractional) frame at a time code; a whole one where it is that but for rounding."""
        frame = (code - self.shift) / self.step
        return float(round(frame)) if abs(frame - round(frame)) <= ROUNDING else frame


@dataclass(frozen=True)
class StageFrames(Codes):
    """The frames that a stage holds, as its samples have them.

    Attributes:
        first: First frame.
        last: Last frame.
        fps: Frames per second.
        numbered: Whether their numbers count, not their seconds: in caches of ours.
    """

    first: int = 0
    last: int = 0
    fps: float = 24.0
    numbered: bool = False


def frames_of_samples(first: float, last: float, per_second: float, samples: Sequence[float]) -> StageFrames:
    """Return the frames between two codes: one a sample where samples lie evenly, or in the least distance of two.

    Args:
        first: First time code of the stage.
        last: Last time code.
        per_second: Codes per second.
        samples: Codes of the samples, in order; fewer than two make each code a frame.
    """
    apart = [after - before for before, after in pairwise(samples)]
    if not apart:
        return StageFrames(1.0, 0.0, round(first), round(last), per_second)
    step = (samples[-1] - samples[0]) / len(apart) if max(apart) < 1.5 * min(apart) else min(apart)
    codes = Codes(step, samples[0] - step * round(samples[0] / step))
    return StageFrames(step, codes.shift, round(codes.frame(first)), round(codes.frame(last)), per_second / step)


def per_second(stage: Any) -> float:
    """Return the time codes per second of a `Usd.Stage`.

    Raises:
        InputError: It does not count time.
    """
    rate = float(stage.GetTimeCodesPerSecond())
    if not SLOWEST <= rate <= FASTEST:
        raise InputError(
            f"{stage.GetRootLayer().identifier}: timeCodesPerSecond is {rate:g}; give {SLOWEST:g} to {FASTEST:g}, such as 24"
        )
    return rate
