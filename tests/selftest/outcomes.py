"""What one case of the selftest came to, and the rows that they add up to."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["SKIPPED", "Job", "Outcome", "Tally"]

SKIPPED = "skipped"
"""Ending of what cannot be tried on this machine; `fault` then says why, and is none."""
MOST_FAULTS = 20
"""Faults of a row that are kept; all are counted."""


@dataclass(frozen=True)
class Job:
    """The share of a part that one process does.

    Attributes:
        part: Name of the part.
        seed: From which every case follows, together with its number.
        first: Number of the first case.
        step: Distance to the next one: what other processes do lies between.
        count: Number after the last case of the part.
        long: Whether this is the long form.
        folder: Scratch folder of this process alone.
        keep: Folder for what shows a fault.
        samples: Folder of sound graphs and geometry.
    """

    part: str
    seed: int
    first: int
    step: int
    count: int
    long: bool
    folder: str
    keep: str
    samples: str

    def numbers(self) -> Iterator[int]:
        """Yield the numbers of the cases of this share."""
        return iter(range(self.first, self.count, self.step))

    def share(self, cases: list[Any]) -> Iterator[tuple[int, Any]]:
        """Yield number and case of this process's share of a list, however long it is."""
        return ((number, cases[number]) for number in range(self.first, len(cases), self.step))


@dataclass(frozen=True)
class Outcome:
    """How one case ended.

    Attributes:
        row: What was tried: the row that counts it.
        ending: How it ended, in a word or three.
        fault: What goes against a promise, with what gives it again; "" where nothing does.
        seconds: How long it took, where there is a target for it.
        megabytes: What it took of memory, where there is a target for it.
    """

    row: str
    ending: str
    fault: str = ""
    seconds: float = 0.0
    megabytes: float = 0.0


@dataclass
class Tally:
    """What the cases of one row came to."""

    part: str
    name: str
    cases: int = 0
    endings: collections.Counter[str] = field(default_factory=collections.Counter)
    faults: list[str] = field(default_factory=list)
    against: int = 0
    seconds: float = 0.0
    megabytes: float = 0.0
    skipped: str = ""

    def add(self, outcome: Outcome) -> None:
        """Count a case."""
        if outcome.ending == SKIPPED:
            self.skipped = outcome.fault
            return
        self.cases += 1
        self.endings[outcome.ending] += 1
        self.seconds = max(self.seconds, outcome.seconds)
        self.megabytes = max(self.megabytes, outcome.megabytes)
        if outcome.fault:
            self.against += 1
            if len(self.faults) < MOST_FAULTS:
                self.faults.append(outcome.fault)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Tally:
        """Return the row that `to_json` told of."""
        endings, bounds = collections.Counter(told["endings"]), (told["slowest_seconds"], told["most_megabytes"])
        faults, against = list(told["faults"]), told["against_a_promise"]
        return cls(told["part"], told["row"], told["cases"], endings, faults, against, *bounds, told["skipped"])

    def to_json(self) -> Mapping[str, Any]:
        """Return the row as JSON-able facts."""
        return {
            "part": self.part,
            "row": self.name,
            "cases": self.cases,
            "endings": dict(sorted(self.endings.items())),
            "slowest_seconds": round(self.seconds, 4),
            "most_megabytes": round(self.megabytes, 1),
            "against_a_promise": self.against,
            "faults": self.faults,
            "skipped": self.skipped,
        }
