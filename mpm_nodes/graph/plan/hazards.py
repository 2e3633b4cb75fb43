"""The proof that a substep graph has one order: the wires must order every two stages that touch the same array."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from mpm_nodes.data import LAW_STATE, Field, all_domains, domain_names
from mpm_nodes.graph.declare.declarations import StageDeclaration
from mpm_nodes.graph.document import order
from mpm_nodes.graph.document.substep_document import Substeps, raw_fact
from mpm_nodes.graph.reports.problems import Problem
from mpm_nodes.graph.time import keys

Array = tuple[str, str]
"""A domain's array: ("grid", "momentum")."""


def touched(
    declaration: StageDeclaration, law_states: Sequence[str], law_inputs: Sequence[str] = ()
) -> tuple[frozenset[Array], frozenset[Array]]:
    """Return the arrays that a stage reads and writes, with the law state spelled out; its readers read the inputs of laws, too."""
    seen = (*law_states, *law_inputs)
    reads = frozenset(array for port in declaration.domains for array in _spelled(port.name, port.reads, seen))
    writes = frozenset(array for port in declaration.domains for array in _spelled(port.name, port.writes, law_states))
    return reads, writes


def unread(declaration: StageDeclaration, raw: Mapping[str, Any]) -> frozenset[Array]:
    """Return the arrays that a stage leaves alone with these raw knob values: those that another value would make it read."""
    knobs = {knob.name: knob for knob in declaration.knobs}
    return frozenset(
        (port.name, array)
        for port in declaration.domains
        for array, name, value in port.conditions
        if not keys.is_keyed(raw[name]) and knobs[name].sample(raw[name], -math.inf) != value
    )


def limit_reads(declaration: StageDeclaration, law_states: Sequence[str], law_inputs: Sequence[str] = ()) -> frozenset[Array]:
    """Return the arrays that are read when the time step is chosen, for the limits that a stage offers."""
    ports = [port for offered in declaration.limits for port in offered.domains]
    return frozenset(array for port in ports for array in _spelled(port.name, port.reads, (*law_states, *law_inputs)))


def _spelled(place: str, names: Sequence[str], law_states: Sequence[str]) -> Iterator[Array]:
    for name in names:
        yield from (((place, state) for state in law_states) if name == LAW_STATE and law_states else [(place, name)])


def order_problems(substeps: Substeps, law_states: Sequence[str] = (), law_inputs: Sequence[str] = ()) -> list[Problem]:
    """Return why the wires do not prove one order: hazards, reads before writes, a late time step, ambiguous ends."""
    proof = _Proof(substeps, law_states, law_inputs)
    return [
        *proof.hazards(),
        *proof.unwritten(),
        *proof.late_steps(),
        *proof.ends(),
        *proof.field_clashes(),
    ]


class _Proof:
    """Everything that can stand against one order of a resolved substep graph."""

    def __init__(self, substeps: Substeps, law_states: Sequence[str], law_inputs: Sequence[str]) -> None:
        self.stages, self.wires = substeps.declarations, substeps.wires
        self.names = substeps.ordered(raw_fact).names
        self._before = order.ancestors(self.wires, self.names)
        self._bit = {name: 1 << index for index, name in enumerate(self.names)}
        self.arrays = {}
        for name in self.names:
            reads, writes = touched(self.stages[name], law_states, law_inputs)
            self.arrays[name] = reads - unread(self.stages[name], substeps.knobs[name]), writes
        offered = frozenset().union(*(limit_reads(stage, law_states, law_inputs) for stage in self.stages.values()))
        for name in self.names:
            if "dt" in self.stages[name].sets:  # it asks for the limits of all others
                reads, writes = self.arrays[name]
                self.arrays[name] = reads | offered, writes

    def is_before(self, first: str, second: str) -> bool:
        """Whether wires lead from one stage to the other."""
        return bool(self._before[second] & self._bit[first])

    def hazards(self) -> Iterator[Problem]:
        """Yield each pair of unordered stages that touch one array, one of them writing it."""
        for first, second in combinations(self.names, 2):
            (reads, writes), (other_reads, other_writes) = self.arrays[first], self.arrays[second]
            shared = (writes & (other_reads | other_writes)) | (reads & other_writes)
            if shared and not self.is_before(first, second) and not self.is_before(second, first):
                place, array = min(shared)
                early, late = (first, second) if place in self.stages[first].outputs else (second, first)
                yield Problem(
                    f"{late}.{place}",
                    f"is not ordered with {early}: {first} {self._verb(first, (place, array))} {place}.{array}, "
                    f"{second} {self._verb(second, (place, array))} it",
                    cure=f'wire "{place}": "{early}.{place}" into {late}',
                )

    def _verb(self, name: str, array: Array) -> str:
        reads, writes = self.arrays[name]
        return " and ".join(verb for verb, arrays in (("reads", reads), ("writes", writes)) if array in arrays)

    def unwritten(self) -> Iterator[Problem]:
        """Yield each field that is read before a stage wrote it, of domains that begin every substep empty."""
        empty = {each.name: each.fields for each in all_domains() if each.begins_empty}
        for name in self.names:
            for place, array in sorted(self.arrays[name][0]):
                if place not in empty or (array in empty[place] and empty[place][array].always_known):
                    continue
                writers = [each for each in self.names if each != name and (place, array) in self.arrays[each][1]]
                if not any(self.is_before(writer, name) for writer in writers):
                    cure = f"wire {name} after {writers[0]}" if writers else f"add a stage that writes {place}.{array}"
                    yield Problem(f"{name}.{place}", f"reads {place}.{array}, which nothing wrote before it", cure=cure)

    def late_steps(self) -> Iterator[Problem]:
        """Yield each stage that takes the step before the time step is chosen, and each further stage that chooses."""
        setters = [name for name in self.names if "dt" in self.stages[name].sets]
        for setter in setters[1:]:
            yield Problem(
                setter,
                f"sets dt, and so does {setters[0]}",
                allowed="one stage that sets dt",
                cure="remove or bypass one",
            )
        for name in self.names if setters else ():
            if self.stages[name].wants_step and name not in setters and not self.is_before(setters[0], name):
                carried = self.stages[setters[0]].outputs
                shared = [port.name for port in self.stages[name].domains if port.name in carried]
                wire, goal = (shared[0], name) if shared else (carried[0], f"a stage before {name}")
                yield Problem(
                    f"{name}.{wire if shared else self.stages[name].domains[0].name}",
                    f"takes the step but is not ordered after {setters[0]}, which sets dt",
                    cure=f'wire "{wire}": "{setters[0]}.{wire}" into {goal}',
                )

    def ends(self) -> Iterator[Problem]:
        """Yield each domain that ends in several places; a branch on which nothing writes the domain does not end it."""
        for place in domain_names():
            carriers = [name for name in self.names if place in self.stages[name].outputs]
            continued = {source for name in carriers for source, _ in self.wires[name][place]}
            ends = [name for name in carriers if name not in continued]
            ends = [end for end in ends if self._changes(end, place, ends)]
            for end in ends[1:]:
                yield Problem(
                    end,
                    f"ends {place}, and so does {ends[0]}",
                    allowed=f"one end of {place}",
                    cure=f"wire one into the other, or both as a list into the {place} of a last stage",
                )

    def _changes(self, end: str, place: str, ends: Sequence[str]) -> bool:
        """Whether a stage at the end of a branch of a domain, or one before it that no other end comes after, writes the domain."""
        if any(domain == place for domain, _ in self.arrays[end][1]):
            return True
        before = [source for source, _ in self.wires[end][place] if source in self.stages]
        return any(
            self._changes(source, place, ends)
            for source in before
            if not any(self.is_before(source, other) for other in ends if other != end)
        )

    def field_clashes(self) -> Iterator[Problem]:
        """Yield each field of their own that two stages describe in different ways."""
        known: dict[Array, tuple[str, Field]] = {}
        for name in self.names:
            for place, own in ((port.name, field) for port in self.stages[name].domains for field in port.own):
                first, description = known.setdefault((place, own.name), (name, own))
                if description != own:
                    message = f"describes {place}.{own.name} otherwise than {first}"
                    yield Problem(name, message, cure="describe it once and import it")
