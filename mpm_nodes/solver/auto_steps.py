"""Choice between substep graphs by what they cost on the scene at hand: `substeps="auto"`.

Every candidate runs a few substeps from the same state, which is put back afterwards; the one with the fewest seconds of work for a
second of simulated time goes on. A time step ten times longer or shorter than at the choice asks for a new one. Clocks are noisy:
the candidate that runs, at first the first one, is left only for one that is cheaper by a quarter, and what an earlier cook of the
same frame chose is chosen again without a clock.
"""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mpm_nodes.data import Fact, Facts, Reduction, StepContext
from mpm_nodes.solver.divergence import SimulationDiverged
from mpm_nodes.solver.moments import Moment
from mpm_nodes.solver.stores import Store

__all__ = ["CHOICE", "Choice", "KeptChoices", "choose_again", "measure"]

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
"""Factor by which dt may change before the choice is made again."""


@dataclass
class Choice:
    """Which candidate runs, and why.

    Attributes:
        index: Its place among the candidates.
        dt: Longest substep of its trial [s].
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

    @classmethod
    def of_facts(cls, facts: Any, names: tuple[str, ...]) -> Choice | None:
        """Return the choice that `facts` gave, None where they are not such of these candidates."""
        try:
            chosen, dt, given = facts["chosen"], facts["dt"], facts["cost"]
            index = names.index(chosen)
            costs = tuple(math.inf if given[name] == "diverged" else given[name] for name in names)
            sound = set(facts) == {"chosen", "dt", "cost"} and set(given) == set(names)
            sound = sound and all(type(value) is float for value in (dt, *costs)) and 0.0 < dt < math.inf and min(costs) >= 0.0
        except (KeyError, TypeError, ValueError, IndexError):
            return None
        return cls(index, dt, costs, names) if sound else None

    def is_old(self, dt: float) -> bool:
        """Whether a substep of length `dt` [s] asks for a new choice."""
        return not self.dt / LOOK_AGAIN < dt < self.dt * LOOK_AGAIN


class KeptChoices(Protocol):
    """What earlier cooks of a frame chose (`graph.choices.FrameChoices`)."""

    def recall(self, understand: Callable[[Any], Choice | None], /) -> Choice | None:
        """Return the choice that this place in the frame once led to, None where nothing is known of it."""
        ...

    def note(self, choice: Any, /) -> None:
        """Keep a choice."""
        ...


class SeveralPrograms(Protocol):
    """What measuring asks of a solver.

    Attributes:
        time: Simulated seconds.
        step_context: What its stages are told.
        stage_seconds: Seconds of work by stage.
        choice: The candidate that runs now and why, None where none was chosen yet.
        kept_choices: What earlier cooks of the frame chose, None where nobody keeps it.
    """

    time: float
    step_context: StepContext
    stage_seconds: dict[str, float]
    choice: Choice | None
    kept_choices: KeptChoices | None

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

    def forget_past(self) -> None:
        """Forget what stores keep of earlier substeps to save work."""
        ...

    def run_stages(self, dt: float | None, time_left: float, check_cancel: Callable[[], None], /) -> float:
        """Run one substep without advancing the time; return its length [s]."""
        ...


def choose_again(solver: SeveralPrograms, time_left: float, check_cancel: Callable[[], None]) -> Choice:
    """Choose as an earlier cook did at this place of the frame, or measure; the choice is kept and told.

    Args:
        solver: The solver.
        time_left: Longest substep allowed [s].
        check_cancel: Raises when the user asked to stop.
    """
    kept, names = solver.kept_choices, solver.candidate_names
    recalled = None if kept is None else kept.recall(lambda facts: Choice.of_facts(facts, names))
    choice = measure(solver, time_left, check_cancel) if recalled is None else recalled
    if kept is not None:
        kept.note(choice.facts())
    solver.choose(choice.index)
    solver.forget_past()  # trials leave other things than a choice that was kept
    solver.step_context.tell(CHOICE, **choice.facts())
    return choice


def measure(solver: SeveralPrograms, time_left: float, check_cancel: Callable[[], None]) -> Choice:
    """Run every candidate of a solver for a moment, put the state back, and choose.

    Args:
        solver: The solver.
        time_left: Longest substep allowed [s].
        check_cancel: Raises when the user asked to stop.
    """
    costs, steps = [], []
    for index in range(len(solver.programs)):
        moment = Moment(solver)
        try:
            solver.choose(index)
            cost, dt = _cost(solver, time_left, check_cancel)
        finally:
            moment.come_back()
        costs.append(cost)
        steps.append(dt)
    held = 0 if solver.choice is None else solver.choice.index
    cheapest = min(range(len(costs)), key=costs.__getitem__)
    index = cheapest if math.isinf(costs[held]) or costs[cheapest] < MARGIN * costs[held] else held
    return Choice(index, steps[index], tuple(costs), solver.candidate_names)


def _cost(solver: SeveralPrograms, time_left: float, check_cancel: Callable[[], None]) -> tuple[float, float]:
    """Return seconds of work for a simulated second, and the length of the longest substep [s]: others may end at the frame."""
    rates: list[float] = []
    spent, left, longest = 0.0, time_left, 0.0
    try:
        for count in range(WARM + MOST):
            begin = clock.perf_counter()
            dt = solver.run_stages(None, left, check_cancel)
            longest = max(longest, dt)
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
        return math.inf, longest or time_left
    return min(rates), longest  # a substep in which something was compiled does not count
