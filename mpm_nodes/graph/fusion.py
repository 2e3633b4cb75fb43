"""Fusion: neighbouring stages of a plan that one kernel does at once.

A fusion gives the numbers of its stages to rounding. It is found in the plan, never in the graph: wires, knobs and hazards are
those of the stages, and a stage that stands in between keeps them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mpm_nodes.graph.hazards import Array
from mpm_nodes.graph.substeps import PlannedStage, SubstepPlan

Knobs = Mapping[str, Mapping[str, Any]]
"""Knob values by stage function's name."""


@dataclass(frozen=True)
class Fusion:
    """A kernel that stands for stages which follow each other.

    Attributes:
        stages: Their functions, in order.
        function: Called as function(*domains, knobs={stage: knobs}).
        arguments: Its positional arguments: names of domains, and "step".
        spoils: Arrays that the stages write and the kernel leaves in another state.
        omits: Arrays that the stages write and the kernel does not touch. It stands in only where no later stage of the
            substep reads what it spoils or omits.
        fits: Whether it can do what these knobs ask for.
    """

    stages: tuple[Callable[..., None], ...]
    function: Callable[..., None]
    arguments: tuple[str, ...]
    spoils: frozenset[Array] = frozenset()
    omits: frozenset[Array] = frozenset()
    fits: Callable[[Knobs], bool] = lambda knobs: True

    def stands_for(self, members: Sequence[PlannedStage], later: Sequence[PlannedStage]) -> bool:
        """Return whether it can stand for the first stages of `members`, followed by `later`."""
        if tuple(member.function for member in members) != self.stages:
            return False
        needed = frozenset().union(*(stage.reads for stage in later))
        return not (self.spoils | self.omits) & needed and self.fits({member.function.__name__: member.knobs for member in members})


@dataclass(frozen=True)
class FusedStage(PlannedStage):
    """Several planned stages as one call.

    Attributes:
        members: The stages, in order; `declaration` is that of the first.
    """

    members: tuple[PlannedStage, ...] = ()

    @property
    def sets(self) -> tuple[str, ...]:
        """What its members set in the step's context."""
        return tuple(name for member in self.members for name in member.sets)

    def sample(self, frame: float) -> dict[str, Any]:
        """Return the knobs of all members at a fractional frame."""
        return {"knobs": {m.function.__name__: {**m.knobs, **m.sample(frame)} for m in self.members}}


def fused(plan: SubstepPlan, fusions: Sequence[Fusion]) -> SubstepPlan:
    """Return the plan with every run of stages that a fusion stands for replaced by it, the longest first."""
    stages, place = [], 0
    longest_first = sorted(fusions, key=lambda fusion: -len(fusion.stages))
    while place < len(plan.stages):
        found = None
        for fusion in longest_first:
            end = place + len(fusion.stages)
            if fusion.stands_for(plan.stages[place:end], plan.stages[end:]):
                found = _fused_stage(fusion, plan.stages[place:end])
                break
        stages.append(found or plan.stages[place])
        place += len(found.members) if found else 1
    return replace(plan, stages=tuple(stages))


def _fused_stage(fusion: Fusion, members: Sequence[PlannedStage]) -> FusedStage:
    reads: set[Array] = set()
    writes: set[Array] = set()
    for member in members:
        reads |= member.reads - writes
        writes |= member.writes
    knobs = {"knobs": {member.function.__name__: dict(member.knobs) for member in members}}
    keyed = {f"{member.id}.{name}": value for member in members for name, value in member.keyed.items()}
    return FusedStage("+".join(member.id for member in members), members[0].declaration, fusion.function, fusion.arguments, knobs,
                      keyed, frozenset(reads), frozenset(writes - fusion.omits), tuple(members))
