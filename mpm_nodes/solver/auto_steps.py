"""Choice between substep graphs by what they cost on the scene at hand: `substeps="auto"`.

Every candidate runs a few substeps from the same state, which is put back afterwards; the one with the fewest seconds of work for a
second of simulated time goes on. A time step ten times longer or shorter than at the choice asks for a new one. Clocks are noisy:
the candidate that runs, at first the first one, is left only for one that is cheaper by a quarter.
"""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from mpm_nodes.data import Fact, Facts, Reduction, StepContext
from mpm_nodes.solver.divergence import SimulationDiverged
from mpm_nodes.solver.stores import Store

__all__ = ["CHOICE", "Choice", "measure"]

CHOICE = Facts(
    "choice",
    "Which candidate a solve with several goes on with; cost: seconds a simulated second, by name.",
    (
        Fact("chosen", "", Reduction.LAST, "Preset of the candidate."),
        Fact("dt", "s", Reduction.LAST, "Length of the substep at which it was chosen."),
        Fact("cost", "s/s", Reduction.LAST, "Seconds of work for a simulated second, of every candidate."),
    ),
)

WARM, FEWEST, MOST, ENOUGH = 1, 2, 8, 0.25
"""Substeps before the clock runs (they may compile), timed ones at least and at most, and seconds after which they end."""

MARGIN = 0.75
"""Share of the running candidate's cost below which another one takes its place."""

LOOK_AGAIN = 10.0
"""Factor by which dt may change before the choice is made anew."""


@dataclass
class Choice:
    """Which candidate runs, and why.

    Attributes:
        index: Its place among the candidates.
        dt: Length of the substep that it was made at [s].
        cost: Seconds of work for a simulated second, of every candidate; infinity where it diverged.
        names: Presets of the candidates.
    """

    index: int
    dt: float
    cost: tuple[float, ...]
    names: tuple[str, ...]

    def facts(self) -> dict[str, Any]:
        """Return what is reported of it."""
        costs = ["diverged" if math.isinf(cost) else cost for cost in self.cost]
        return {"chosen": self.names[self.index], "dt": self.dt, "cost": dict(zip(self.names, costs, strict=True))}

    def is_old(self, dt: float) -> bool:
        """Whether a substep of length `dt` [s] asks for a new choice."""
        return not self.dt / LOOK_AGAIN < dt < self.dt * LOOK_AGAIN


class SeveralPrograms(Protocol):
    """What measuring asks of a solver.

    Attributes:
        time: Simulated seconds.
        step_context: What its stages are told.
        stage_seconds: Seconds of work by stage.
        choice: The candidate that runs now and why, None where none was chosen yet.
    """

    time: float
    step_context: StepContext
    stage_seconds: dict[str, float]
    choice: Choice | None

    @property
    def programs(self) -> Sequence[object]:
        """The candidates."""
        ...

    @property
    def candidate_names(self) -> tuple[str, ...]:
        """Their presets."""
        ...

    @property
    def lasting_stores(self) -> Mapping[str, Store]:
        """What holds something from one substep to the next."""
        ...

    def choose(self, index: int) -> None:
        """Run this candidate from now on."""
        ...

    def run_stages(self, dt: float | None, time_left: float, check_cancel: Callable[[], None], /) -> float:
        """Run one substep without advancing the time; return its length [s]."""
        ...


def measure(solver: SeveralPrograms, time_left: float, check_cancel: Callable[[], None]) -> Choice:
    """Run every candidate of a solver for a moment, put the state back, and choose.

    Args:
        solver: The solver.
        time_left: Longest substep allowed [s].
        check_cancel: Raises when the user asked to stop.
    """
    costs, steps = [], []
    for index in range(len(solver.programs)):
        with _put_back(solver):
            solver.choose(index)
            cost, dt = _cost(solver, time_left, check_cancel)
        costs.append(cost)
        steps.append(dt)
    held = 0 if solver.choice is None else solver.choice.index
    cheapest = min(range(len(costs)), key=costs.__getitem__)
    index = cheapest if math.isinf(costs[held]) or costs[cheapest] < MARGIN * costs[held] else held
    return Choice(index, steps[index], tuple(costs), solver.candidate_names)


def _cost(solver: SeveralPrograms, time_left: float, check_cancel: Callable[[], None]) -> tuple[float, float]:
    """Return seconds of work for a simulated second, and the length of the last substep [s]."""
    rates: list[float] = []
    spent, left, dt = 0.0, time_left, time_left
    try:
        for count in range(WARM + MOST):
            begin = clock.perf_counter()
            dt = solver.run_stages(None, left, check_cancel)
            if count >= WARM:
                rates.append((clock.perf_counter() - begin) / dt)
                spent += clock.perf_counter() - begin
            solver.time += dt
            left -= dt
            if left <= 1e-9 * time_left:
                left = time_left  # a short frame is run again, so that there is something to measure
                solver.time -= time_left
            if len(rates) >= FEWEST and spent >= ENOUGH:
                break
    except SimulationDiverged:
        return math.inf, dt
    return min(rates), dt  # a substep in which something was compiled does not count


@contextmanager
def _put_back(solver: SeveralPrograms) -> Iterator[None]:
    """Restore the state of all domains, time and facts of a solver on leaving."""
    saved = {place: store.save() for place, store in solver.lasting_stores.items()}
    step = solver.step_context
    facts, time, seconds = step.report.save(), solver.time, dict(solver.stage_seconds)
    try:
        yield
    finally:
        for place, state in saved.items():
            solver.lasting_stores[place].restore(state)
        step.report.restore(facts)
        solver.time = time
        solver.stage_seconds.update(seconds)
