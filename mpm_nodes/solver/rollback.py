"""Rollback to the state of a solve at a moment: after trials, and where a frame is solved again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from mpm_nodes.data import StepContext
from mpm_nodes.solver.stores import Store

__all__ = ["Rollback"]


class Moving(Protocol):
    """What coming back asks of a solver.

    Attributes:
        time: Simulated seconds.
        step_context: What its stages are told.
        stage_seconds: Seconds of work by stage.
    """

    time: float
    step_context: StepContext
    stage_seconds: dict[str, float]

    @property
    def lasting_stores(self) -> Mapping[str, Store]:
        """What holds something from one substep to the next."""
        ...


class Rollback:
    """A copy of all domains of a solver, its time, and what its stages told.

    Args:
        solver: The solver.
    """

    def __init__(self, solver: Moving) -> None:
        self._solver = solver
        self._saved = {place: store.save() for place, store in solver.lasting_stores.items()}
        self._report: Any = solver.step_context.report.save()
        self._time, self._seconds = solver.time, dict(solver.stage_seconds)

    def restore(self) -> None:
        """Put the solver back into that state; the copy stays good for another time."""
        solver = self._solver
        for place, state in self._saved.items():
            solver.lasting_stores[place].restore(state)
        solver.step_context.report.restore(self._report)
        solver.time = self._time
        solver.stage_seconds.update(self._seconds)
