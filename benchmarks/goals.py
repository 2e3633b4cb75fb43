"""What the engine is to reach on two cores, and whether measured rows do.

    mpm-nodes bench --json rows.json && python benchmarks/goals.py rows.json

The exit code is 1 when a goal is not met. `to_reach.py` has harder ones.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Record = dict[str, Any]

MILLION = 1_000_000
CASE = ("law", "kernel", "transfer", "fused")


@dataclass(frozen=True)
class Goal:
    """One figure to reach.

    Attributes:
        text: What is measured.
        bound: Least value, or greatest where `at_most`.
        unit: Unit of the figures, to print.
        figure: Returns the worst figure among records of two threads and float32, None where none touches the goal.
        at_most: Whether smaller is better.
    """

    text: str
    bound: float
    unit: str
    figure: Callable[[Sequence[Record]], float | None]
    at_most: bool = False


@dataclass(frozen=True)
class Result:
    """A goal that was touched."""

    goal: Goal
    figure: float

    @property
    def met(self) -> bool:
        """Whether the figure reaches the bound."""
        return self.figure <= self.goal.bound if self.goal.at_most else self.figure >= self.goal.bound

    def __str__(self) -> str:
        side, met = "at most" if self.goal.at_most else "at least", "met" if self.met else "NOT MET"
        return f"{met:8} {self.goal.text}: {self.figure:.3g}, {side} {self.goal.bound:g} {self.goal.unit}"


def main(arguments: list[str] | None = None) -> int:
    """Print the goals that the rows of a file touch; 1 when one is not met."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rows", type=Path, help="what `mpm-nodes bench --json FILE` wrote")
    found = results(json.loads(parser.parse_args(arguments).rows.read_text()))
    for result in found:
        print(result)
    return 0 if all(result.met for result in found) else 1


def results(records: Iterable[Record]) -> list[Result]:
    """Return the goals that the records touch, with their worst figures."""
    usable = [record for record in records if record["threads"] == 2 and record["precision"] == "float32"]
    figures = [(goal, goal.figure(usable)) for goal in GOALS]
    return [Result(goal, figure) for goal, figure in figures if figure is not None]


def rate(**wanted: Any) -> Callable[[Sequence[Record]], float | None]:
    """Return a figure: million particle-steps per second of the cube of a million particles that is `wanted`."""

    def figure(records: Sequence[Record]) -> float | None:
        found = _with(records, scene="cube", particles=MILLION, **wanted)
        return min((1e-6 * record["particle_steps_per_second"] for record in found), default=None)

    return figure


def share(small: Record, large: Record, case: Sequence[str] = CASE) -> Callable[[Sequence[Record]], float | None]:
    """Return a figure: the rate of `small` rows in percent of that of `large` ones that are the same `case` otherwise."""

    def figure(records: Sequence[Record]) -> float | None:
        base = {tuple(record[name] for name in case): record for record in _with(records, **large)}
        pairs = [(record, base.get(tuple(record[name] for name in case))) for record in _with(records, **small)]
        shares = [100.0 * a["particle_steps_per_second"] / b["particle_steps_per_second"] for a, b in pairs if b is not None]
        return min(shares, default=None)

    return figure


def largest(name: str, scale: float) -> Callable[[Sequence[Record]], float | None]:
    """Return a figure: the largest `name` of the rows of a million particles, times `scale`."""
    return lambda records: max((scale * record[name] for record in _with(records, particles=MILLION)), default=None)


def of_step(stage: str, **wanted: Any) -> Callable[[Sequence[Record]], float | None]:
    """Return a figure: the share of a stage in the time of a substep, in percent."""

    def figure(records: Sequence[Record]) -> float | None:
        found = [(record["stage_seconds"], record["total_seconds"] / record["substeps"]) for record in _with(records, **wanted)]
        return max((100.0 * stages[stage] / substep for stages, substep in found if stage in stages), default=None)

    return figure


def _with(records: Sequence[Record], **wanted: Any) -> list[Record]:
    return [record for record in records if all(record[name] == value for name, value in wanted.items())]


RATE = "million particle-steps/s"
QUADRATIC = {"kernel": "quadratic", "transfer": "apic"}
CUBE = {"scene": "cube", "particles": MILLION}

GOALS = (
    Goal("neo-Hookean, quadratic", 45.0, RATE, rate(law="neo_hookean", **QUADRATIC)),
    Goal("fixed corotated, quadratic", 30.0, RATE, rate(law="fixed_corotated", **QUADRATIC)),
    Goal("snow, quadratic", 30.0, RATE, rate(law="snow", **QUADRATIC)),
    Goal("neo-Hookean, cubic FLIP", 35.0, RATE, rate(law="neo_hookean", kernel="cubic", transfer="flip")),
    Goal("dam break beside the cube of the same law", 50.0, "%", share({"scene": "dam_break", "particles": MILLION}, CUBE)),
    Goal("100 thousand particles beside a million", 70.0, "%", share({"scene": "cube", "particles": 100_000}, CUBE)),
    Goal("10 thousand particles beside a million", 40.0, "%", share({"scene": "cube", "particles": 10_000}, CUBE)),
    Goal(
        "avoid-a-void in a million particles of foam, every 50 substeps",
        15.0,
        "% of a substep",
        of_step("avoid_a_void", scene="foam", particles=MILLION),
        at_most=True,
    ),
    Goal("memory of a particle", 320.0, "bytes", largest("bytes_per_particle", 1.0), at_most=True),
    Goal("memory beside a million particles", 450.0, "MB", largest("beside_bytes", 1e-6), at_most=True),
)


if __name__ == "__main__":
    sys.exit(main())
