"""Plan a substep graph: its stages in proven order, every call resolved, and what must be allocated for them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mpm_nodes.data import LAW_STATE, Field, Limit, StageMemory, domain_names
from mpm_nodes.graph.declare.declarations import StageDeclaration
from mpm_nodes.graph.declare.registry import Registry
from mpm_nodes.graph.document import order
from mpm_nodes.graph.document.recipe import SubstepRecipe
from mpm_nodes.graph.document.substep_document import Substeps, load_substeps, raw_fact
from mpm_nodes.graph.plan.hazards import Array, limit_reads, order_problems, touched, unread
from mpm_nodes.graph.reports.problems import GraphError, Problem
from mpm_nodes.graph.time import keys


@dataclass(frozen=True)
class PlannedStage:
    """One call of a substep, with everything resolved.

    Attributes:
        id: Name in the substep graph.
        declaration: What it is.
        function: The plain function.
        arguments: Positional arguments in order: names of domains, "step" and "memory".
        knobs: Keyword arguments as Python values; keyed ones hold their first value until `sample`.
        keyed: Key lists of the keyed knobs.
        reads: Arrays read with these knobs, law state expanded.
        writes: Arrays written, law state expanded.
        place: Its place in the order, which no name changes.
        for_limits: Arrays among its reads that the limits offered by stages ask for.
        by_itself: Arrays among its reads that it reads without them; None: all.
    """

    id: str
    declaration: StageDeclaration
    function: Callable[..., Any]
    arguments: tuple[str, ...]
    knobs: dict[str, Any]
    keyed: dict[str, Any]
    reads: frozenset[Array]
    writes: frozenset[Array]
    place: int = 0
    for_limits: frozenset[Array] = frozenset()
    by_itself: frozenset[Array] | None = None

    @property
    def parts(self) -> tuple[PlannedStage, ...]:
        """The stages that the call stands for."""
        return (self,)

    @property
    def memory_key(self) -> str:
        """Name of what it remembers, the same whatever the stages are called."""
        return f"{self.place} {self.declaration.id}"

    @property
    def on_request(self) -> frozenset[Array]:
        """Arrays among its reads that it reads only in substeps that were asked to keep them."""
        return frozenset((port.name, name) for port in self.declaration.domains for name in port.on_request) - self.for_limits

    @property
    def sets(self) -> tuple[str, ...]:
        """What it sets in the step's context."""
        return self.declaration.sets

    @property
    def domains(self) -> tuple[str, ...]:
        """Names of the domains that it takes, in order."""
        return tuple(name for name in self.arguments if name not in ("step", "memory"))

    def sample(self, frame: float) -> dict[str, Any]:
        """Return the keyed knobs' values at a fractional frame."""
        return {knob.name: knob.sample(self.keyed[knob.name], frame) for knob in self.declaration.knobs if knob.name in self.keyed}


@dataclass(frozen=True)
class Dispatch:
    """A plan bound to one solver's state: `for call in dispatch.calls: call()` runs a substep.

    Attributes:
        stages: The planned stages.
        calls: One call without arguments for each.
        limits: What may limit the time step: the limit, its call (None where who chooses dt finds it), and its stage.
    """

    stages: tuple[PlannedStage, ...]
    calls: tuple[functools.partial, ...]
    limits: tuple[tuple[Limit, functools.partial | None, PlannedStage], ...] = ()

    def sample(self, frame: float) -> None:
        """Set the keyed knobs to their values at a fractional frame."""
        for planned, call in zip(self.stages, self.calls, strict=True):
            if planned.keyed:
                call.keywords.update(planned.sample(frame))
        for _, limit, planned in self.limits:
            if limit is not None and planned.keyed:
                limit.keywords.update({name: value for name, value in planned.sample(frame).items() if name in limit.keywords})


@dataclass(frozen=True)
class SubstepPlan:
    """The stages of a substep in proven order, and what must be allocated for them.

    Attributes:
        stages: In order.
        fields_needed: By domain, the names of the fields that some stage reads or writes, sorted.
        own_fields: By domain, the fields that stages describe themselves, by name.
        signature: Digest of types, versions, knobs and wires: equal for equal substeps, whatever the names.
    """

    stages: tuple[PlannedStage, ...]
    fields_needed: Mapping[str, tuple[str, ...]]
    own_fields: Mapping[str, Mapping[str, Field]]
    signature: str

    @functools.cached_property
    def sets_dt(self) -> bool:
        """Whether a stage chooses the time step."""
        return any("dt" in planned.sets for planned in self.stages)

    @property
    def parts(self) -> tuple[PlannedStage, ...]:
        """The single stages, those that one call stands for one by one."""
        return tuple(part for planned in self.stages for part in planned.parts)

    def new_memories(self) -> dict[str, StageMemory]:
        """Return what the stages remember as a solve begins, by `PlannedStage.memory_key`."""
        return {part.memory_key: part.declaration.memory() for part in self.parts if part.declaration.memory}

    def bind(self, domains: Mapping[str, Any], step: Any, memories: Mapping[str, StageMemory] | None = None) -> Dispatch:
        """Bind the stages to the state objects of a solver, by domain name, to its step context and to what they remember.

        The limits of the time step that they offer are bound as well.
        """
        memories = self.new_memories() if memories is None else memories

        def bound(function: Any, arguments: tuple[str, ...], planned: PlannedStage, knobs: Mapping[str, Any]) -> functools.partial:
            given = {**domains, "step": step, "memory": memories.get(planned.memory_key)}
            return functools.partial(function, *(given[name] for name in arguments), **knobs)

        limits = []
        for part in self.parts:
            for offered in part.declaration.limits:
                function, knobs = offered.limit.function, {name: part.knobs[name] for name in offered.knobs}
                limits.append((offered.limit, function and bound(function, offered.arguments, part, knobs), part))
        calls = tuple(bound(planned.function, planned.arguments, planned, planned.knobs) for planned in self.stages)
        return Dispatch(self.stages, calls, tuple(limits))


def plan_substeps(
    value: Any, law_states: Sequence[str] = (), registry: Registry | None = None, law_inputs: Sequence[str] = ()
) -> SubstepPlan:
    """Plan a substep graph.

    Args:
        value: Preset name, {"preset": name, "set": {...}, "edits": [...]}, a substeps document, the path of one, a
            `SubstepRecipe`, or a resolved graph.
        law_states: State attributes of the laws in the solve; they stand for "law_state" in declarations.
        registry: Stages that may be used; None takes the shared registry.
        law_inputs: Attributes that the coefficients of laws follow; who reads law states reads them, too.

    Raises:
        GraphError: With everything that is wrong.
    """
    substeps = resolve(value, registry)
    _raise(order_problems(substeps, law_states, law_inputs))
    return plan_resolved(substeps, law_states, law_inputs)


def plan_of(substeps: Substeps) -> SubstepPlan:
    """Return the plan of a resolved graph for laws without states, made once: hundreds of solves may share the graph.

    Raises:
        GraphError: With everything that is wrong.
    """
    if substeps.plan is None:
        substeps.plan = plan_substeps(substeps)
    plan: SubstepPlan = substeps.plan
    return plan


def plans_of(value: Any) -> list[SubstepPlan]:
    """Return the plans that a solve may take, for laws without states: that of its substeps, and those that `auto` chooses from.

    Args:
        value: As `plan_substeps` takes it.

    Raises:
        GraphError: With everything that is wrong.
    """
    resolved = resolve(value)
    return [plan_of(each) for each in (resolved, *resolved.others)]


def resolve(value: Any, registry: Registry | None = None) -> Substeps:
    """Return a substep graph with everything resolved; one that is resolved already is returned as it is.

    Raises:
        GraphError: With everything that is wrong.
    """
    if isinstance(value, Substeps):
        return value
    if isinstance(value, SubstepRecipe):
        value, registry = value.value, value.registry
    substeps, problems = load_substeps(value, registry)
    _raise(problems)
    return substeps


def is_implicit(stages: Iterable[tuple[StageDeclaration, Mapping[str, Any]]]) -> bool:
    """Return whether the stage that chooses dt goes beyond what explicit steps bear.

    Args:
        stages: Declaration and knobs of each stage.
    """
    return any(declaration.sets and knobs.get("implicit") is True for declaration, knobs in stages)


def recipe_of(value: Any) -> Any:
    """Return what a substep graph was resolved from, as it stands in a graph file (a plan stays a plan)."""
    return value.recipe if isinstance(value, Substeps) else value.value if isinstance(value, SubstepRecipe) else value


def _raise(problems: Sequence[Problem]) -> None:
    if problems:
        raise GraphError([problem if problem.place else replace(problem, place="substeps") for problem in problems])


def plan_resolved(substeps: Substeps, law_states: Sequence[str], law_inputs: Sequence[str] = ()) -> SubstepPlan:
    """Plan a resolved substep graph without problems."""
    ordered = substeps.ordered(raw_fact)
    laws = law_states, law_inputs
    stages = tuple(_planned(name, substeps, laws, place) for place, name in enumerate(ordered.names))
    offered = frozenset().union(*(limit_reads(planned.declaration, *laws) for planned in stages))
    stages = tuple(_asking(planned, offered) if planned.sets else planned for planned in stages)
    arrays = {array for planned in stages for array in planned.reads | planned.writes}
    ports = [port for planned in stages for port in planned.declaration.domains]
    return SubstepPlan(
        stages,
        {place: tuple(sorted(n for at, n in arrays if at == place and n != LAW_STATE)) for place in domain_names()},
        {place: {field.name: field for port in ports if port.name == place for field in port.own} for place in domain_names()},
        order.digest(*sorted(ordered.hashes.values())),
    )


def fields_touched(substeps: Substeps, place: str, law_states: Sequence[str], law_inputs: Sequence[str] = ()) -> set[str]:
    """Return the names of a domain's fields that the stages of a resolved graph touch or bring, as its plan would have them.

    They are found once: hundreds of solves may share the graph.
    """
    asked = (place, tuple(law_states), tuple(law_inputs))
    found: set[str] | None = substeps.touched.get(asked)
    if found is not None:
        return found
    found = substeps.touched[asked] = set()
    for name in substeps.ordered(raw_fact).names:
        declaration = substeps.declarations[name]
        reads, writes = touched(declaration, law_states, law_inputs)
        arrays = (reads - unread(declaration, substeps.knobs[name])) | writes | limit_reads(declaration, law_states, law_inputs)
        found.update(field for at, field in arrays if at == place and field != LAW_STATE)
        found.update(field.name for port in declaration.domains if port.name == place for field in port.own)
    return found


def _asking(planned: PlannedStage, offered: frozenset[Array]) -> PlannedStage:
    """Return a stage that sets dt with what the limits of all stages read."""
    return replace(planned, reads=planned.reads | offered, for_limits=offered, by_itself=planned.reads)


def _planned(name: str, substeps: Substeps, laws: tuple[Sequence[str], Sequence[str]], place: int) -> PlannedStage:
    declaration, raw = substeps.declarations[name], substeps.knobs[name]
    keyed = {knob.name: raw[knob.name] for knob in declaration.knobs if keys.is_keyed(raw[knob.name])}
    values = {knob.name: knob.sample(raw[knob.name], float("-inf")) for knob in declaration.knobs}
    reads, writes = touched(declaration, *laws)
    reads -= unread(declaration, raw)
    return PlannedStage(name, declaration, declaration.function, declaration.arguments, values, keyed, reads, writes, place)
