"""Fusion: neighbouring stages of a plan that share one loop.

A stage that brings fragments (`@stage(fragments=...)`) says what it does to the particles of one block. Such stages that follow
each other become one call, wherever they stand and whoever wrote them. The numbers are those of the single stages to rounding.
Fusion is found in the plan, never in the graph: wires, knobs and hazards are those of the stages, and a stage without a fragment in
between keeps them apart.

This package knows no physics: of a fragment it reads `joins` (it can share a loop), `gathers` and `scatters` (grid arrays that its
loop reads from and adds to), `source` and `into` (an array that others' scatters may go to instead), `mark` (particles that go)
and `idle` (no loop, and often nothing to do).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mpm_nodes.graph.plan.hazards import Array
from mpm_nodes.graph.plan.substeps import PlannedStage, SubstepPlan

__all__ = ["FusedStage", "StageRun", "arguments_of", "by_fragments", "fragments_of", "fused", "runs_of"]

ARGUMENTS = ("particles", "grid", "colliders", "energy", "step")
POSITION = ("particles", "position")


@dataclass(frozen=True)
class FusedStage(PlannedStage):
    """Several planned stages as one call.

    Attributes:
        members: The stages, in order; `declaration` is that of the first.
    """

    members: tuple[PlannedStage, ...] = ()

    @property
    def parts(self) -> tuple[PlannedStage, ...]:
        """The stages that the call stands for."""
        return self.members

    @property
    def sets(self) -> tuple[str, ...]:
        """What its members set in the step's context."""
        return tuple(name for member in self.members for name in member.sets)

    def sample(self, frame: float) -> dict[str, Any]:
        """Return the knobs of all members at a fractional frame."""
        return {"knobs": {m.id: {**m.knobs, **m.sample(frame)} for m in self.members}}


@dataclass(frozen=True)
class StageRun:
    """Stages that follow each other in a plan, as far as one loop can take them.

    Attributes:
        members: The stages.
        place: Place of the first in the plan.
        ending: Why the next stage is not among them.
        omits: Grid arrays that members write and the loop does not touch.
    """

    members: tuple[PlannedStage, ...]
    place: int
    ending: str
    omits: frozenset[Array] = frozenset()

    @property
    def is_shared(self) -> bool:
        """Whether there is more than one stage."""
        return len(self.members) > 1


def fused(plan: SubstepPlan, compose: Callable[[StageRun, SubstepPlan], Callable[..., None]]) -> SubstepPlan:
    """Return the plan with every run of more than one stage replaced by one call.

    Args:
        plan: Single stages.
        compose: Makes the call, which takes the domains of its stages, in the order of `ARGUMENTS`, and
            `knobs={stage id: knobs}`.
    """
    stages = []
    for run in runs_of(plan):
        stages.append(_fused_stage(run, compose(run, plan)) if run.is_shared else run.members[0])
    return replace(plan, stages=tuple(stages))


def by_fragments(plan: SubstepPlan, compose: Callable[[StageRun], Callable[..., None]]) -> SubstepPlan:
    """Return the plan with every single stage whose fragments loop replaced by a call made of these; `compose` as for `fused`."""

    def called(planned: PlannedStage, place: int) -> PlannedStage:
        if isinstance(planned, FusedStage) or _no_start(planned):
            return planned
        run = StageRun((planned,), place, "")
        return _fused_stage(run, compose(run))

    return replace(plan, stages=tuple(called(planned, place) for place, planned in enumerate(plan.stages)))


def runs_of(plan: SubstepPlan) -> Iterator[StageRun]:
    """Yield the stages of a plan by runs, each as long as it can be; a stage that shares no loop is one by itself."""
    place = 0
    while place < len(plan.stages):
        run = _run_from(plan, place)
        yield run
        place += len(run.members)


def fragments_of(planned: PlannedStage) -> tuple[Any, ...]:
    """Return the fragments of a stage with the knobs that it has in the plan."""
    return planned.declaration.fragments_for(planned.knobs)


def arguments_of(members: Sequence[PlannedStage]) -> tuple[str, ...]:
    """Return the positional arguments of a call that stands for stages: their domains, and always the step."""
    return tuple(name for name in ARGUMENTS if name == "step" or any(name in member.arguments for member in members))


# ---------------------------------------------------------------- how far a loop goes
def _run_from(plan: SubstepPlan, place: int) -> StageRun:
    members: list[PlannedStage] = []
    ending, omits = "", frozenset[Array]()
    for planned in plan.stages[place:]:
        ending = _obstacle(planned, members) if members else _no_start(planned)
        if ending:
            break
        folds = [f for f in fragments_of(planned) if hasattr(f, "into")]
        if folds:
            later = plan.stages[place + len(members) + 1 :]
            ending = _no_fold(planned, folds[0], members, later)
            if not ending:
                members.append(planned)
                omits = frozenset([("grid", folds[0].source)])
                ending = f"{planned.id} works on grid nodes, which is another loop"
            break
        members.append(planned)
    else:
        ending = f"{members[-1].id} is the last stage"
    while members and all(hasattr(f, "idle") for f in fragments_of(members[-1])):
        ending = f"{members.pop().id} has no loop of its own, and no stage behind it shares this one"
    if not members:
        return StageRun((plan.stages[place],), place, ending)
    return StageRun(tuple(members), place, ending, omits)


def _no_start(planned: PlannedStage) -> str:
    """Return why no loop starts with a stage, or ""."""
    fragments = fragments_of(planned)
    if not fragments or not all(f.joins for f in fragments):
        return f"{planned.id} brings no fragment"
    if any(hasattr(f, "into") for f in fragments):
        return f"{planned.id} works on grid nodes, which is another loop"
    return f"{planned.id} has no loop of its own" if any(hasattr(f, "idle") for f in fragments) else ""


def _obstacle(planned: PlannedStage, members: Sequence[PlannedStage]) -> str:
    """Return why a stage cannot join those before it, or ""."""
    fragments = fragments_of(planned)
    if not fragments or not all(f.joins for f in fragments):
        return f"{planned.id} brings no fragment"
    before = [f for member in members for f in fragments_of(member)]
    scattered = frozenset().union(*(getattr(f, "scatters", ()) for f in before))
    written = frozenset().union(*(member.writes for member in members))
    for fragment in fragments:
        gathers: frozenset[str] = getattr(fragment, "gathers", frozenset())
        scatters: frozenset[str] = getattr(fragment, "scatters", frozenset())
        if gathers & scattered:
            return f"{planned.id} reads {', '.join(sorted(gathers & scattered))} of nodes that other blocks still add to"
        if scatters and any(hasattr(f, "mark") for f in before):
            return f"{planned.id} would still add what was removed"
        if (gathers or scatters) and POSITION in written:
            return f"{planned.id} visits the grid where particles are no longer"
        if hasattr(fragment, "mark"):
            late = [name for name in fragment.reads if ("particles", name) in written]
            if late:
                return f"{planned.id} chooses by {', '.join(late)}, which those before it change"
    return ""


def _no_fold(planned: PlannedStage, fragment: Any, members: Sequence[PlannedStage], later: Sequence[PlannedStage]) -> str:
    """Return why an update of nodes cannot do without one of its arrays, or ""."""
    scattered = frozenset().union(*(getattr(f, "scatters", ()) for member in members for f in fragments_of(member)))
    if not {fragment.source, fragment.into} <= scattered:
        return f"{planned.id} works on grid nodes, which is another loop"
    needed = frozenset().union(*(stage.reads for stage in later)) & {("grid", fragment.source), ("grid", fragment.into)}
    if needed:
        return f"{planned.id} works on grid nodes, and {', '.join(sorted(name for _, name in needed))} is still read later"
    return ""


# ---------------------------------------------------------------- one call
def _fused_stage(run: StageRun, function: Callable[..., None]) -> FusedStage:
    members = run.members
    reads: set[Array] = set()
    writes: set[Array] = set()
    for member in members:
        reads |= member.reads - writes
        writes |= member.writes
    knobs = {"knobs": {member.id: dict(member.knobs) for member in members}}
    keyed = {f"{member.id}.{name}": value for member in members for name, value in member.keyed.items()}
    return FusedStage(
        "+".join(member.id for member in members),
        members[0].declaration,
        function,
        arguments_of(members),
        knobs,
        keyed,
        frozenset(reads),
        frozenset(writes - run.omits),
        members[0].place,
        members=tuple(members),
    )
