"""Figures of a frame: what it took, and what its nodes reported."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["FrameFigures", "FrameTally", "SubstepFigures", "time_left"]


_OWN = ("dt", "substep", "frame", "node", "particles")
"""Facts of a substep that stand elsewhere in the figures."""
RECENT = 5
"""Frames by which it is told how long others will take."""


@dataclass
class SubstepFigures:
    """The substeps of one solve in a frame.

    Attributes:
        substeps: How many.
        dt_min: The shortest [s].
        dt_max: The longest [s].
        dt_sum: All of them together [s].
        particles: Particles after the last one, None when it was not reported.
        facts: What was told of the shortest one: what limited it, and whatever else its stages tell of every substep.
    """

    substeps: int = 0
    dt_min: float = math.inf
    dt_max: float = 0.0
    dt_sum: float = 0.0
    particles: int | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def add(self, facts: Mapping[str, Any]) -> None:
        """Count one substep."""
        dt = facts.get("dt", math.inf)
        if dt < self.dt_min or not self.substeps:
            self.dt_min, self.facts = dt, {name: value for name, value in facts.items() if name not in _OWN}
        if dt < math.inf:
            self.dt_max = max(self.dt_max, dt)
            self.dt_sum += dt
        self.substeps += 1
        self.particles = facts.get("particles", self.particles)

    @property
    def limit(self) -> str | None:
        """What limited the shortest substep."""
        return self.facts.get("limit")

    @property
    def dt_mean(self) -> float:
        """Their mean [s]."""
        return self.dt_sum / self.substeps if self.substeps else 0.0


@dataclass(frozen=True)
class FrameFigures:
    """What a cooked frame took, and what its nodes reported.

    Attributes:
        frame: Frame number.
        seconds: Wall-clock time [s].
        solves: Substeps of each solve, by node.
        nodes: Wall-clock time of each node that was cooked [s].
        facts: What nodes reported besides substeps, by kind of event ("implicit", "removed", ...), in order.
    """

    frame: int
    seconds: float
    solves: Mapping[str, SubstepFigures] = field(default_factory=dict)
    nodes: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)

    @property
    def substeps(self) -> int:
        """Substeps of all solves."""
        return sum(each.substeps for each in self.solves.values())

    @property
    def dt_min(self) -> float | None:
        """The shortest substep of all solves [s], None without one."""
        return min((each.dt_min for each in self.solves.values() if math.isfinite(each.dt_min)), default=None)

    @property
    def particles(self) -> int | None:
        """Particles of all solves at the end of the frame, None when none was reported."""
        counts = [each.particles for each in self.solves.values() if each.particles is not None]
        return sum(counts) if counts else None

    def facts_of(self, node: str, kind: str | None = None) -> Iterator[Mapping[str, Any]]:
        """Yield what a node reported, of one kind or of all."""
        for name, events in self.facts.items():
            yield from (event for event in events if event.get("node") == node and kind in (None, name))


class FrameTally:
    """Collects the figures of one frame while it is cooked."""

    def __init__(self, frame: int = 0) -> None:
        self.frame = frame
        self.solves: dict[str, SubstepFigures] = {}
        self.nodes: dict[str, float] = {}
        self.facts: dict[str, list[Mapping[str, Any]]] = {}
        self.substeps = 0

    def substep(self, facts: Mapping[str, Any]) -> None:
        """Count a substep that a node reports."""
        self.solves.setdefault(facts.get("node", ""), SubstepFigures()).add(facts)
        self.substeps += 1

    def figures(self, seconds: float) -> FrameFigures:
        """Return what was collected."""
        facts = {kind: tuple(events) for kind, events in self.facts.items()}
        return FrameFigures(self.frame, seconds, dict(self.solves), dict(self.nodes), facts)

    def summary(self) -> dict[str, Any]:
        """Return the few figures that an event and a commit record carry: of several solves the one with the shortest dt."""
        whole = self.figures(0.0)
        if not whole.substeps:
            return {"substeps": 0}
        shortest = min(self.solves.values(), key=lambda each: each.dt_min)
        found = {**shortest.facts, "dt_min": whole.dt_min, "particles": whole.particles}
        return {"substeps": whole.substeps} | {name: value for name, value in found.items() if value is not None}


def time_left(figures: Sequence[FrameFigures], frames: int) -> float:
    """Return how long some more frames will take, by the last `RECENT` [s].

    Kernels are compiled in the first frames: until there are so many, the quickest tells how long one takes.

    Args:
        figures: Those of the frames so far, at least one.
        frames: How many there are still to be.
    """
    recent = [each.seconds for each in itertools.islice(reversed(figures), RECENT)]
    return (statistics.median(recent) if len(recent) == RECENT else min(recent)) * frames
