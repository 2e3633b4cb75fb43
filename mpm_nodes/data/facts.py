"""What stages remember, what they tell, and what may limit the time step: all of it declared."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mpm_nodes.data.errors import MpmNodesError


class Reduction(enum.Enum):
    """How the values of a frame's substeps become one. AT_SHORTEST: the value of the shortest substep."""

    LAST = "last"
    SUM = "sum"
    MAX = "max"
    MIN = "min"
    MEAN = "mean"
    AT_SHORTEST = "at_shortest"


@dataclass(frozen=True)
class Fact:
    """One figure that a stage tells.

    Attributes:
        name: Name in events.
        unit: SI unit; "" for counts and text.
        reduction: How the values of a frame become one.
        doc: One sentence.
        passes: Work of one where it counts something, such as iterations, in passes over the particles.
    """

    name: str
    unit: str
    reduction: Reduction
    doc: str
    passes: float = 0.0


@dataclass(frozen=True)
class Facts:
    """Facts that are told and published together, as one event.

    Attributes:
        event: Kind of the event.
        doc: One sentence.
        facts: The facts.
        per_substep: Part of the event of every substep, instead of an event of their own at the end of the frame.
        quiet: Name of the fact that keeps the event unpublished while it is 0; "" publishes whenever something was told.
        warning: Sentence with {fact} in it that is published as a warning where the fact `warn_if` is not 0.
        warn_if: See there.
        by_rank: Whether each of several ranks tells of its own particles; their values are reduced at the end of the frame.
    """

    event: str
    doc: str
    facts: tuple[Fact, ...]
    per_substep: bool = False
    quiet: str = ""
    warning: str = ""
    warn_if: str = ""
    by_rank: bool = False

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """Names of the facts."""
        return frozenset(fact.name for fact in self.facts)

    def __post_init__(self) -> None:
        names = [fact.name for fact in self.facts]
        unknown = [name for name in (self.quiet, self.warn_if) if name and name not in names]
        if len(set(names)) < len(names) or unknown or bool(self.warning) != bool(self.warn_if):
            raise MpmNodesError(
                f"facts {self.event}: named twice, or quiet, warning and warn_if do not fit the facts {', '.join(names)}; fix them"
            )


@dataclass(frozen=True)
class Limit:
    """What may hold the time step.

    Attributes:
        name: Word in reports ("elastic wave").
        function: Returns the longest substep [s]; parameters before `*` are domains with their `Reads`, or the step, those after
            it knobs of the stage that offers it. None where the stage that chooses dt finds it itself.
        cause: Why a solve diverged while this held dt; facts stand in braces. "" where it says nothing about that.
        cure: What to turn then, or against what `against` names; where there is a `function`, also so that it allows longer steps.
        against: "state" or "speed": `cure` helps where a state left its range, or where something became too fast.
    """

    name: str
    function: Callable[..., float] | None = None
    cause: str = ""
    cure: str = ""
    against: str = ""


@dataclass
class StageMemory:
    """What a stage remembers between substeps: derive a dataclass with defaults, and take it as `memory: MyMemory`.

    Numbers, text, lists and NumPy arrays are saved in checkpoints and restored; nothing else may stand in it.

    Attributes:
        keep_next: Whether the next substep is to store what the stage reads `on_request`.
    """

    keep_next: bool = False


@dataclass
class _Tally:
    group: Facts
    frame: int
    values: dict[str, Any]
    count: int


class Report(Mapping[str, Mapping[str, Any]]):
    """What was told in the frame, by event, every fact reduced as it is declared."""

    def __init__(self) -> None:
        self._tallies: dict[str, _Tally] = {}
        self.told: set[str] = set()

    def tell(self, group: Facts, frame: int, values: Mapping[str, Any]) -> None:
        """Add the facts of a substep; those of another frame are forgotten.

        Raises:
            MpmNodesError: The values are not those that the group declares.
        """
        if values.keys() != group.names:
            raise MpmNodesError(
                f"report: {group.event} tells {', '.join(sorted(values))}, but declares "
                f"{', '.join(sorted(fact.name for fact in group.facts))}; tell each declared fact once"
            )
        self.told.add(group.event)
        held = self._tallies.get(group.event)
        if held is None or held.frame != frame:
            self._tallies[group.event] = _Tally(group, frame, dict(values), 1)
            return
        for fact in group.facts:
            held.values[fact.name] = _reduced(fact.reduction, held.values[fact.name], values[fact.name], held.count)
        held.count += 1

    def of_frame(self, frame: int) -> Iterator[tuple[Facts, dict[str, Any]]]:
        """Yield the groups that were told something in a frame, and the reduced values."""
        for held in self._tallies.values():
            if held.frame == frame:
                yield held.group, dict(held.values)

    def join(self, others: Sequence[Sequence[tuple[Facts, dict[str, Any]]]], frame: int) -> None:
        """Take what each rank was told of its own particles in a frame, reduced, in place of what is held."""
        for event in [event for event, held in self._tallies.items() if held.group.by_rank]:
            del self._tallies[event]
        for told in others:
            for group, values in told:
                if group.by_rank:
                    self.tell(group, frame, values)

    def of_substeps(self) -> dict[str, Any]:
        """Return the facts that are part of the event of every substep, as they were told last."""
        return {name: value for held in self._tallies.values() if held.group.per_substep for name, value in held.values.items()}

    def save(self) -> Any:
        """Return what was told so far."""
        return {event: _Tally(held.group, held.frame, dict(held.values), held.count) for event, held in self._tallies.items()}

    def restore(self, saved: Any) -> None:
        """Put back what `save` gave."""
        self._tallies = {event: _Tally(held.group, held.frame, dict(held.values), held.count) for event, held in saved.items()}

    def __getitem__(self, event: str) -> Mapping[str, Any]:
        return self._tallies[event].values

    def __iter__(self) -> Iterator[str]:
        return iter(self._tallies)

    def __len__(self) -> int:
        return len(self._tallies)


def _reduced(reduction: Reduction, before: Any, now: Any, count: int) -> Any:
    """Return one value for those before and the one of now; vectors component by component."""
    if reduction in (Reduction.LAST, Reduction.AT_SHORTEST):
        return now
    if isinstance(now, tuple):
        return tuple(_reduced(reduction, a, b, count) for a, b in zip(before, now, strict=True))
    if reduction is Reduction.SUM:
        return before + now
    if reduction is Reduction.MEAN:
        return before + (now - before) / (count + 1)
    return max(before, now) if reduction is Reduction.MAX else min(before, now)
