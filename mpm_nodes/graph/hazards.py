"""The proof that a substep graph has one order: the wires must order every two stages that touch the same array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mpm_nodes.data import LAW_STATE, Attribute
from mpm_nodes.graph import order
from mpm_nodes.graph.declarations import StageDeclaration
from mpm_nodes.graph.problems import Problem
from mpm_nodes.graph.substep_document import OUTSIDE, Substeps, raw_fact

ALWAYS_KNOWN = {("grid", "position")}

Array = tuple[str, str]
"""A domain's array: ("grid", "momentum")."""


def touched(declaration: StageDeclaration, law_states: Sequence[str]) -> tuple[frozenset[Array], frozenset[Array]]:
    """Return the arrays that a stage reads and writes, with the law state spelled out."""

    def spelled(domain: str, names: Sequence[str]) -> Iterator[Array]:
        for name in names:
            yield from (
                ((domain, state) for state in law_states) if name == LAW_STATE and law_states else [(domain, name)]
            )

    reads = frozenset(array for domain in declaration.domains for array in spelled(domain.name, domain.reads))
    writes = frozenset(array for domain in declaration.domains for array in spelled(domain.name, domain.writes))
    return reads, writes


def order_problems(substeps: Substeps, law_states: Sequence[str] = ()) -> list[Problem]:
    """Return why the wires do not prove one order: hazards, reads before writes, a late time step, ambiguous ends."""
    names = substeps.ordered(raw_fact).names
    before = order.ancestors(substeps.wires, names)
    bit = {name: 1 << index for index, name in enumerate(names)}
    arrays = {name: touched(substeps.declarations[name], law_states) for name in names}
    return [
        *_hazards(substeps, names, before, bit, arrays),
        *_unwritten(names, before, bit, arrays),
        *_late_steps(substeps, names, before, bit),
        *_ends(substeps, names),
        *_attribute_clashes(substeps),
    ]


def _hazards(substeps: Substeps, names: Sequence[str], before: Any, bit: Any, touched: Any) -> Iterator[Problem]:
    for index, first in enumerate(names):
        for second in names[index + 1 :]:
            if before[second] & bit[first] or before[first] & bit[second]:
                continue
            (reads, writes), (reads2, writes2) = touched[first], touched[second]
            shared = sorted((writes & (reads2 | writes2)) | (reads & writes2))
            if shared:
                domain, array = shared[0]
                verbs = [
                    " and ".join(verb for verb, arrays in (("reads", r), ("writes", w)) if shared[0] in arrays)
                    for r, w in (touched[first], touched[second])
                ]
                a, b = (first, second) if domain in substeps.declarations[first].outputs else (second, first)
                yield Problem(
                    f"{b}.{domain}",
                    f"is not ordered with {a}: {first} {verbs[0]} {domain}.{array}, {second} {verbs[1]} it",
                    None,
                    "",
                    f'wire "{domain}": "{a}.{domain}" into {b}',
                )


def _unwritten(names: Sequence[str], before: Any, bit: Any, touched: Any) -> Iterator[Problem]:
    for name in names:
        for domain, array in sorted(touched[name][0] - ALWAYS_KNOWN):
            if domain == "grid" and not any(before[name] & bit[w] and (domain, array) in touched[w][1] for w in names):
                writers = [w for w in names if w != name and (domain, array) in touched[w][1]]
                cure = f"wire {name} after {writers[0]}" if writers else f"add a stage that writes {domain}.{array}"
                yield Problem(
                    f"{name}.{domain}", f"reads {domain}.{array}, which nothing wrote before it", None, "", cure
                )


def _late_steps(substeps: Substeps, names: Sequence[str], before: Any, bit: Any) -> Iterator[Problem]:
    setters = [name for name in names if "dt" in substeps.declarations[name].sets]
    if len(setters) > 1:
        yield Problem(
            setters[1], f"sets dt, and so does {setters[0]}", None, "one stage that sets dt", "remove or bypass one"
        )
    for name in names:
        declaration = substeps.declarations[name]
        if declaration.wants_step and name not in setters and setters and not before[name] & bit[setters[0]]:
            common = [d.name for d in declaration.domains if d.name in substeps.declarations[setters[0]].outputs]
            domain = common[0] if common else declaration.domains[0].name
            yield Problem(
                f"{name}.{domain}",
                f"takes the step but is not ordered after {setters[0]}, which sets dt",
                None,
                "",
                f'wire "{domain}": "{setters[0]}.{domain}" into {name}, or into a stage before it',
            )


def _ends(substeps: Substeps, names: Sequence[str]) -> Iterator[Problem]:
    for domain in OUTSIDE:
        carriers = [name for name in names if domain in substeps.declarations[name].outputs]
        continued = {source for name in carriers for source, _ in substeps.wires[name][domain]}
        ends = sorted(set(carriers) - continued)
        if len(ends) > 1:
            yield Problem(
                ends[1],
                f"ends {domain}, and so does {', '.join(e for e in ends if e != ends[1])}",
                None,
                f"one end of {domain}",
                f"wire one into the other, or all as a list into the {domain} of a last stage",
            )


def _attribute_clashes(substeps: Substeps) -> Iterator[Problem]:
    known: dict[str, tuple[str, Attribute]] = {}
    for name, declaration in substeps.declarations.items():
        for attribute in (a for domain in declaration.domains for a in domain.attributes):
            other = known.setdefault(attribute.name, (name, attribute))
            if other[1] != attribute:
                yield Problem(
                    name,
                    f"describes attribute {attribute.name} otherwise than {other[0]}",
                    None,
                    "",
                    "describe it once and import it",
                )
