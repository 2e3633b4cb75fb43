"""The substep graphs of a solve: one, or with `substeps="auto"` several, of which one runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mpm_nodes.graph.declare.registry import Registry
from mpm_nodes.graph.plan.hazards import Array
from mpm_nodes.graph.plan.substeps import SubstepPlan, recipe_of
from mpm_nodes.solver.bound_law import BoundLaw
from mpm_nodes.solver.memory import StageMemories
from mpm_nodes.solver.program import limiting, programs_of
from mpm_nodes.solver.sides import bears_sides, spline_width

__all__ = ["Candidates", "Choice"]

LOOK_AGAIN = 10.0
"""Factor by which dt may change before the choice is made again."""


@dataclass
class Choice:
    """Which candidate runs, and why.

    Attributes:
        index: Its place among the candidates.
        dt: Longest substep of its trial [s].
        cost: Passes over the particles for a simulated second, of every candidate; infinity where it diverged.
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


class Candidates:
    """The substep graphs that a solve may run.

    Args:
        substeps: As `SubstepSolver` takes it.
        laws: Laws of the solve.
        fuse: Let neighbouring stages run as one kernel.
        registry: Stages and presets that `substeps` may name.

    Attributes:
        recipe: What they were planned from.
        fuse: As given.
        law_state: State attributes of the laws, and attributes that their coefficients follow.
        programs: The candidates.
        program: The one that runs.
        choice: Why it does; None before one was chosen, and where there is one.
        own_dt: Length of its last substep that the end of a frame did not cut [s].
    """

    def __init__(self, substeps: Any, laws: Iterable[BoundLaw], fuse: bool, registry: Registry | None) -> None:
        laws = tuple(laws)
        state = tuple(dict.fromkeys(name for law in laws for name in law.names))
        inputs = tuple(dict.fromkeys(name for law in laws for name in law.loops.law.inputs))
        self.recipe, self.fuse, self.law_state = recipe_of(substeps), fuse, (*state, *inputs)
        self.programs = programs_of(substeps, state, fuse, registry, inputs)
        self.program = self.programs[0]
        self.choice: Choice | None = None
        self.own_dt = 0.0

    @property
    def index(self) -> int:
        """The place of the one that runs."""
        return self.programs.index(self.program)

    @property
    def names(self) -> tuple[str, ...]:
        """Presets of the candidates of `substeps="auto"`."""
        return tuple(program.recipe["preset"] for program in self.programs)

    @property
    def plans(self) -> list[SubstepPlan]:
        """Their plans of single stages."""
        return [program.unfused for program in self.programs]

    def fields_of(self, domain: str) -> list[str]:
        """Return the fields of a domain that some stage of theirs touches."""
        return [name for plan in self.plans for name in plan.fields_needed.get(domain, ())]

    @property
    def makes_particles(self) -> bool:
        """Whether some stage of theirs adds particles."""
        return any(("particles", "id") in planned.writes for program in self.programs for planned in program.plan.stages)

    @property
    def transient(self) -> frozenset[Array]:
        """Fields that each of them writes in every substep before it reads them."""
        return frozenset.intersection(*(program.transient for program in self.programs))

    @cached_property
    def limiting(self) -> frozenset[Array]:
        """What the limits of dt hang on."""
        return limiting(self.law_state)

    @property
    def spline(self) -> int:
        """Width of their splines [cells]."""
        return int(max(map(spline_width, self.plans)))

    @property
    def bear_sides(self) -> bool:
        """Whether all of them keep the two sides of thin plates apart."""
        return all(map(bears_sides, self.plans))

    def new_memories(self) -> StageMemories:
        """Return what their stages remember, at the start."""
        memories = [(n, each.plan.new_memories()) for n, each in enumerate(self.programs)]
        return StageMemories({f"{n} {key}": memory for n, each in memories for key, memory in each.items()})

    def new_seconds(self) -> dict[str, float]:
        """Return seconds of work by stage, none yet."""
        return dict.fromkeys(["sort", *(planned.id for program in self.programs for planned in program.plan.stages)], 0.0)

    def resume(self, choice: Sequence[Any]) -> None:
        """Go on with the choice that a checkpoint holds: (index, dt, costs, own dt)."""
        self.choice, self.own_dt = Choice(choice[0], choice[1], tuple(choice[2]), self.names), choice[3]
