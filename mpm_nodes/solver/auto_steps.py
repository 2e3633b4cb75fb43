"""Choice between substep graphs by the work that they take on the scene at hand: `substeps="auto"`.

Every candidate runs a few substeps from the same state, which is put back afterwards; the one with the least work for a second of
simulated time goes on. Work is counted, in passes over the particles, not timed: cooks of one graph choose alike on any machine.
Stages declare theirs (`costs`, `Fact.passes`), as measured on 4,000 to 110,000 particles in single precision on two cores;
`test_counted_work_is_what_the_clock_says` compares them. A time step ten times longer or shorter than at the choice asks for a new
one. What a pass costs differs from scene to scene: the candidate that runs, at first the first one, is left only for one that is
cheaper by a quarter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from mpm_nodes.data import Fact, Facts, Reduction, StepContext
from mpm_nodes.graph.plan.substeps import SubstepPlan
from mpm_nodes.solver.candidates import Candidates, Choice
from mpm_nodes.solver.divergence import SimulationDiverged
from mpm_nodes.solver.rollback import Rollback
from mpm_nodes.solver.stores import Store

__all__ = ["CHOICE", "choose_again", "measure"]

CHOICE = Facts(
    "choice",
    "Which candidate a solve with several goes on with; cost: work for a simulated second, by name.",
    (
        Fact("chosen", "", Reduction.LAST, "Preset of the candidate."),
        Fact("dt", "s", Reduction.LAST, "Length of the substep at which it was chosen."),
        Fact("cost", "1/s", Reduction.LAST, "Passes over all particles for a simulated second, of every candidate."),
    ),
)

WARM, TRIED = 1, 3
"""Substeps of a trial that begin from nothing, as a linear solve does whose last result is unknown, and those that are counted."""

MARGIN = 0.75
"""Share of the running candidate's cost below which another one takes its place."""


class SeveralPrograms(Protocol):
    """What measuring asks of a solver.

    Attributes:
        time: Simulated seconds.
        step_context: What its stages are told.
        stage_seconds: Seconds of work by stage.
        candidates: The substep graphs that it may run.
    """

    time: float
    step_context: StepContext
    stage_seconds: dict[str, float]
    candidates: Candidates

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
    """Choose, run what was chosen from now on, and tell it.

    Args:
        solver: The solver.
        time_left: Longest substep allowed [s].
        check_cancel: Raises when the user asked to stop.
    """
    choice = measure(solver, time_left, check_cancel)
    solver.choose(choice.index)
    solver.forget_past()  # trials leave what a resumed solve would not know
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
    for index in range(len(solver.candidates.programs)):
        rollback = Rollback(solver)
        try:
            solver.choose(index)
            cost, dt = _cost(solver, time_left, check_cancel)
        finally:
            rollback.restore()
        costs.append(cost)
        steps.append(dt)
    held = 0 if solver.candidates.choice is None else solver.candidates.choice.index
    cheapest = min(range(len(costs)), key=costs.__getitem__)
    index = cheapest if math.isinf(costs[held]) or costs[cheapest] < MARGIN * costs[held] else held
    return Choice(index, steps[index], tuple(costs), solver.candidates.names)


def _cost(solver: SeveralPrograms, time_left: float, check_cancel: Callable[[], None]) -> tuple[float, float]:
    """Return passes for a simulated second, and the length of the longest substep [s]: others may end at the frame."""
    plan = solver.candidates.program.plan
    fixed = sum(planned.declaration.passes for planned in plan.stages)
    rates: list[float] = []
    left, longest = time_left, 0.0
    try:
        for count in range(WARM + TRIED):
            solver.step_context.report.restore({})  # what is told from here on is of this substep alone
            dt = solver.run_stages(None, left, check_cancel)
            longest = max(longest, dt)
            if count >= WARM:
                rates.append((fixed + _iterated(plan, solver.step_context.report)) / dt)
            solver.time += dt
            left -= dt
            if left <= 1e-9 * time_left:
                left = time_left  # a short frame is run again, so that there is something to count
                solver.time -= time_left
    except SimulationDiverged:
        return math.inf, longest or time_left
    return min(rates), longest  # a substep that the end of a frame cuts short does not count


def _iterated(plan: SubstepPlan, report: Mapping[str, Mapping[str, Any]]) -> float:
    """Return the passes of all iterations that the stages of a substep told."""
    told = {facts.event: facts.facts for part in plan.parts for facts in part.declaration.facts}
    counted = {(event, fact.name): fact.passes for event, facts in told.items() for fact in facts}
    return sum(passes * report[event].get(name, 0) for (event, name), passes in counted.items() if passes and event in report)
