"""Plan a substep graph: its stages in proven order, every call resolved, and what must be allocated for them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mpm_nodes.data import LAW_STATE, Attribute
from mpm_nodes.graph import keys, order
from mpm_nodes.graph.declarations import StageDeclaration
from mpm_nodes.graph.hazards import Array, order_problems, touched
from mpm_nodes.graph.problems import GraphError
from mpm_nodes.graph.registry import Registry
from mpm_nodes.graph.substep_document import Substeps, load_substeps, raw_fact


@dataclass(frozen=True)
class PlannedStage:
    """One call of a substep, with everything resolved.

    Attributes:
        id: Name in the substep graph.
        declaration: What it is.
        function: The plain function.
        arguments: Positional arguments in order: names of domains, and "step".
        knobs: Keyword arguments as Python values; keyed ones hold their first value until `sample`.
        keyed: Key lists of the keyed knobs.
        reads: Arrays read with these knobs, law state expanded.
        writes: Arrays written, law state expanded.
    """

    id: str
    declaration: StageDeclaration
    function: Callable[..., Any]
    arguments: tuple[str, ...]
    knobs: dict[str, Any]
    keyed: dict[str, Any]
    reads: frozenset[Array]
    writes: frozenset[Array]

    @property
    def sets(self) -> tuple[str, ...]:
        """What it sets in the step's context."""
        return self.declaration.sets

    @property
    def domains(self) -> tuple[str, ...]:
        """Names of the domains that it takes, in order."""
        return tuple(name for name in self.arguments if name != "step")

    def sample(self, frame: float) -> dict[str, Any]:
        """Return the keyed knobs' values at a fractional frame."""
        return {name: self.declaration.knob(name).sample(raw, frame) for name, raw in self.keyed.items()}


@dataclass(frozen=True)
class Dispatch:
    """A plan bound to one solver's state: `for call in dispatch.calls: call()` runs a substep.

    Attributes:
        stages: The planned stages.
        calls: One call without arguments for each.
    """

    stages: tuple[PlannedStage, ...]
    calls: tuple[functools.partial, ...]

    def sample(self, frame: float) -> None:
        """Set the keyed knobs to their values at a fractional frame."""
        for planned, call in zip(self.stages, self.calls, strict=True):
            if planned.keyed:
                call.keywords.update(planned.sample(frame))


@dataclass(frozen=True)
class SubstepPlan:
    """The stages of a substep in proven order, and what must be allocated for them.

    Attributes:
        stages: In order.
        attributes_needed: Particle attributes that some stage reads or writes, sorted.
        grid_arrays_needed: Grid arrays that some stage reads or writes, sorted.
        user_attributes: Attributes that user stages brought along, by name.
        signature: Digest of types, versions, knobs and wires: equal for equal substeps, whatever the names.
    """

    stages: tuple[PlannedStage, ...]
    attributes_needed: tuple[str, ...]
    grid_arrays_needed: tuple[str, ...]
    user_attributes: Mapping[str, Attribute]
    signature: str

    @property
    def sets_dt(self) -> bool:
        """Whether a stage chooses the time step."""
        return any("dt" in planned.sets for planned in self.stages)

    def bind(self, domains: Mapping[str, Any], step: Any) -> Dispatch:
        """Bind the stages to the state objects of a solver, by domain name, and to its step context."""
        given = {**domains, "step": step}
        calls = (functools.partial(s.function, *(given[name] for name in s.arguments), **s.knobs) for s in self.stages)
        return Dispatch(self.stages, tuple(calls))


def plan_substeps(value: Any, law_states: Sequence[str] = (), registry: Registry | None = None) -> SubstepPlan:
    """Plan a substep graph.

    Args:
        value: Preset name, {"preset": name, "set": {...}}, a substeps document, or the path of one.
        law_states: State attributes of the laws in the solve; they stand for "law_state" in declarations.
        registry: Stages that may be used; None takes the shared registry.

    Raises:
        GraphError: With everything that is wrong.
    """
    substeps, problems = load_substeps(value, registry)
    problems = problems or order_problems(substeps, law_states)
    if problems:
        raise GraphError([problem if problem.place else replace(problem, place="substeps") for problem in problems])
    return plan_resolved(substeps, law_states)


def plan_resolved(substeps: Substeps, law_states: Sequence[str]) -> SubstepPlan:
    """Plan a resolved substep graph without problems."""
    ordered = substeps.ordered(raw_fact)
    stages = tuple(_planned(name, substeps, law_states) for name in ordered.names)
    arrays = {array for planned in stages for array in planned.reads | planned.writes}
    brought = {a.name: a for planned in stages for domain in planned.declaration.domains for a in domain.attributes}
    return SubstepPlan(
        stages,
        tuple(sorted(name for domain, name in arrays if domain == "particles" and name != LAW_STATE)),
        tuple(sorted(name for domain, name in arrays if domain == "grid")),
        brought,
        order.digest(*sorted(ordered.hashes.values())),
    )


def _planned(name: str, substeps: Substeps, law_states: Sequence[str]) -> PlannedStage:
    declaration, raw = substeps.declarations[name], substeps.knobs[name]
    keyed = {knob.name: raw[knob.name] for knob in declaration.knobs if keys.is_keyed(raw[knob.name])}
    values = {knob.name: knob.sample(raw[knob.name], float("-inf")) for knob in declaration.knobs}
    reads, writes = touched(declaration, law_states)
    unread = {(domain.name, array) for domain in declaration.domains for array, knob, value in domain.conditions
              if knob not in keyed and values[knob] != value}
    return PlannedStage(name, declaration, declaration.function, declaration.arguments, values, keyed, reads - unread, writes)
