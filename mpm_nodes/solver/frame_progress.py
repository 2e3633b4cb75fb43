"""How far the frame of a solve has come: substeps expected, seconds left, and what to do where it would take for ever."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from mpm_nodes.data import MpmNodesError, StepContext

__all__ = ["FrameProgress", "TooManySubsteps", "never_ends"]

FIRST_WORD, NEXT_WORD = 5.0, 10.0
"""Seconds of a frame before the first word about its pace, and between two."""
COLLAPSE, LEAST_COLLAPSE, SURE = 50.0, 2000.0, 0.1
"""Times the substeps of the frames before at which dt has collapsed, the least number, and the share of them that is waited for:
matter that is thrown may need short substeps for a while."""
LONG_FRAME = 600.0
"""Seconds that a frame may be expected to take before the word becomes a warning."""


class TooManySubsteps(MpmNodesError):
    """A frame would take more substeps than allowed (exit code 4)."""

    exit_code = 4


class FrameProgress:
    """Watches the substeps of one frame.

    Args:
        frame: Frame being advanced to.
        length: Simulated seconds of the frame.
        report: Called as `FrameContext.report` is.
        most: Substeps that the frame may take; None for any number.
        cold: Whether kernels are compiled in the first substep, whose seconds say nothing of the others.
        before: Substeps of the frames before it, on average; 0 where there are none.
        clock: Gives seconds; for tests.
        advise: As in `StepContext`.
    """

    def __init__(
        self,
        frame: int,
        length: float,
        report: Callable[..., None],
        most: int | None = None,
        cold: bool = False,
        before: float = 0.0,
        clock: Callable[[], float] = time.perf_counter,
        advise: Callable[[str, str], str] = lambda limit, name: "",
    ) -> None:
        self._advise = advise
        self.frame, self.length, self.report, self.most, self.clock = frame, length, report, most, clock
        self.begin, self.done, self.cold = clock(), 0.0, cold
        self.word_at = self.begin + FIRST_WORD
        self.substeps, self.warned = 0, False
        self.before, self.collapse = before, max(COLLAPSE * before, LEAST_COLLAPSE) if before and most is None else math.inf

    def after(self, dt: float, left: float, facts: Mapping[str, Any]) -> None:
        """Note a substep of `dt` seconds after which `left` simulated seconds of the frame remain.

        `facts` are those of the step's report: "limit" and "limit_material".

        Raises:
            TooManySubsteps: More substeps are expected than are allowed, or dt has collapsed.
        """
        self.substeps += 1
        expected = self.substeps + (left / dt if dt > 0 else math.inf)
        if self.most is not None and expected > self.most * (1.0 + 1e-9) + 0.5:
            allowed = f"{self.most:,} are allowed (--max-substeps)"
            raise TooManySubsteps(f"frame {self.frame}: {_text(expected, dt, facts)}, and {allowed}{self._cure(facts)}")
        if expected > self.collapse and self.substeps > SURE * self.collapse:
            raise TooManySubsteps(
                f"frame {self.frame}: {_text(expected, dt, facts)}, and those before it took {self.before:.3g}{self._cure(facts)}; "
                f"allow {math.ceil(1.5 * expected)} (--max-substeps) and continue with --resume to go on all the same"
            )
        now = self.clock()
        if self.cold and self.substeps == 1:
            self.begin, self.done, self.word_at = now, self.length - left, now + FIRST_WORD
        if now < self.word_at or left <= 0.0:
            return
        self.word_at = now + NEXT_WORD
        share, since = 1.0 - left / self.length, self.length - left - self.done
        seconds = (now - self.begin) * left / since if since > 0 else math.inf
        self.report("pace", substeps_expected=expected, share=share, seconds_left=seconds)
        if seconds > LONG_FRAME and not self.warned:
            self.warned = True
            self.report(
                "warning",
                where=f"frame {self.frame}",
                message=f"{_text(expected, dt, facts)}, {lasting(seconds)} at this pace{self._cure(facts)}",
            )

    def _cure(self, facts: Mapping[str, Any]) -> str:
        return _behind(self._advise(facts.get("limit", ""), facts.get("limit_material", "")))


def never_ends(step: StepContext, limit: str, material: str) -> TooManySubsteps:
    """Return the error for a substep so short that its frame would never end, though nothing moves too fast."""
    facts = {"limit": limit, "limit_material": material}
    if step.dt > 0:
        text = _text(step.time_left / step.dt, step.dt, facts)
    else:
        text = f"no substep is short enough ({_limit(facts)})"
    advice = _behind(step.advise(limit, material))
    return TooManySubsteps(f"frame {step.frame}, substep {step.substep}: {text}: the frame would never end{advice}")


def _text(expected: float, dt: float, facts: Mapping[str, Any]) -> str:
    return f"about {expected:.3g} substeps are expected, of {dt:.3g} s each ({_limit(facts)})"


def _limit(facts: Mapping[str, Any]) -> str:
    material = f" of '{facts['limit_material']}'" if facts.get("limit_material") else ""
    return f"limited by {facts['limit']}{material}" if facts.get("limit") else "as given"


def _behind(advice: str) -> str:
    return f"; {advice}" if advice else ""


def lasting(seconds: float) -> str:
    """Return a length of time in the unit that people would use: "40 minutes", "3 days", "1.2e+05 years"."""
    for unit, size in (("years", 365.25 * 86400), ("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.2g} {unit}" if seconds < 1e4 * size else f"{seconds / size:.1e} {unit}"
    return f"{seconds:.0f} seconds"
