"""Check a whole graph before anything is cooked; every problem is reported, not the first one alone."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from mpm_nodes.data.suggestions import few_suggestions, nearest
from mpm_nodes.graph.declare.declarations import NodeDeclaration, Port, StageDeclaration, type_name
from mpm_nodes.graph.declare.knobs import to_json
from mpm_nodes.graph.declare.registry import Registry, nearest_type
from mpm_nodes.graph.document import order
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.document.substep_document import Substeps, check_knobs, load_substeps, version_problems
from mpm_nodes.graph.plan.hazards import order_problems
from mpm_nodes.graph.reports.problems import GraphError, Problem, Problems
from mpm_nodes.graph.time import keys

__all__ = ["Examination", "GraphError", "Problem", "Wiring", "check", "examine", "validate"]

Wire = tuple[str, str]
"""Where a wire comes from: (node, output)."""
MOST_OF_ONE = 10
"""Wires that are looked at in a port that takes one."""


@dataclass(frozen=True)
class Examination:
    """A graph looked at once: what is wrong with it, and what the plan is made from when nothing is.

    Attributes:
        problems: What is wrong.
        wiring: Declarations and wires.
        substeps: Resolved substep graphs by node and knob.
    """

    problems: Problems
    wiring: Wiring
    substeps: Mapping[str, Mapping[str, Substeps]]


def examine(graph: Graph, registry: Registry | None = None) -> Examination:
    """Check a graph and keep what was resolved on the way."""
    with few_suggestions():
        return _examined(graph, registry or graph.registry)


def _examined(graph: Graph, registry: Registry) -> Examination:
    wiring = Wiring(graph, registry)
    problems = Problems(_setting_problems(graph))
    substeps: dict[str, dict[str, Substeps]] = {}
    known: dict[str, tuple[Substeps, Problems]] = {}
    for name, entry in graph.nodes.items():
        declaration = wiring.declarations.get(name)
        if declaration is None:
            _add_unknown_type(problems, name, entry.type, registry)
            continue
        problems.extend(version_problems(name, entry, declaration))
        values = entry.complete(declaration)
        check_knobs(name, declaration, values, problems)
        for knob in declaration.knobs:
            value = values.get(knob.name)
            if knob.kind == "substeps" and value is not None and knob.fault(value) is None:
                loaded, found = _loaded(value, registry, known)
                substeps.setdefault(name, {})[knob.name] = loaded
                problems.extend_inside(f"{name}.{knob.name}", found)
    problems.extend(wiring.problems)
    problems.extend(_idle_key_problems(wiring))
    problems.extend(_alternative_problems(wiring))
    return Examination(problems, wiring, substeps)


def _loaded(value: Any, registry: Registry, known: dict[str, tuple[Substeps, Problems]]) -> tuple[Substeps, Problems]:
    """Return resolved substeps and what is wrong with them; equal values are resolved once, and share what they stand for."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError):  # a path
        text = repr(value)
    if text not in known:
        loaded, found = load_substeps(value, registry)
        problems = Problems(found)
        if not problems:
            for each in (loaded, *loaded.others):
                problems.extend(order_problems(each))
        known[text] = loaded, problems
    return known[text]


def validate(graph: Graph, registry: Registry | None = None) -> list[Problem]:
    """Return what is wrong with a graph, [] when it can be cooked; see `Problems` for a flood of mistakes."""
    return examine(graph, registry).problems


def check(graph: Graph, registry: Registry | None = None) -> None:
    """Raise a `GraphError` with the problems of a graph, when there is one."""
    problems = validate(graph, registry)
    if problems:
        raise GraphError(problems)


def _setting_problems(graph: Graph) -> Iterator[Problem]:
    settings = graph.settings
    if settings.end < settings.start:
        yield Problem(
            "settings.end",
            f"lies before the first frame {settings.start}",
            settings.end,
            f">= {settings.start}",
            "raise it, or lower settings.start",
        )
    if not graph.nodes:
        yield Problem("nodes", "holds no node", cure="add nodes")


def _add_unknown_type(problems: Problems, name: str, type: str, registry: Registry) -> None:
    if isinstance(registry.find(type), StageDeclaration):
        problems.add(name, f"is of type {type}, which is a stage", cure="use it in the substeps of a solve node")
    else:
        problems.add(name, f"is of type {type}, which is unknown", cure=partial(nearest_type, type, registry.nodes))


def _idle_key_problems(wiring: Wiring) -> Iterator[Problem]:
    """Yield the keys of nodes that are taken at one frame only: they would change nothing.

    Keys that travel with the value are followed by whoever takes it.
    """
    takers: dict[str, list[tuple[str, Port]]] = {name: [] for name in wiring.inputs}
    for name, ports in wiring.inputs.items():
        for port in wiring.declarations[name].ports:
            for node in dict.fromkeys(node for node, _ in ports[port.name]):
                takers[node].append((name, port))
    followed: set[str] = {name for name, found in takers.items() if not found}
    for name in reversed(order.topological(wiring.inputs)):
        if any(taker in followed and not port.at_start for taker, port in takers[name]):
            followed.add(name)
    for name in wiring.inputs.keys() - followed:
        declaration = wiring.declarations[name]
        values = wiring.graph.nodes[name].complete(declaration)
        for knob in declaration.knobs:
            if knob.animatable and not knob.keys_travel and keys.is_keyed(values.get(knob.name)):
                place = next((f"{taker}.{port.name}" for taker, port in takers[name] if port.at_start), "what it is wired into")
                yield Problem(
                    f"{name}.{knob.name}",
                    f"is keyed, but {place} takes {name} as it is at one frame: the keys would do nothing",
                    values[knob.name],
                    "one value",
                    "give one value; to bring matter in over time, wire it through emit_stream or emit_drops into the emitters",
                )


def _alternative_problems(wiring: Wiring) -> Iterator[Problem]:
    """Yield knobs that are given beside one that says the same in other words."""
    for name in wiring.inputs:
        declaration = wiring.declarations[name]
        values = wiring.graph.nodes[name].complete(declaration) if declaration.alternatives else {}
        knobs = [knob for knob in declaration.knobs if knob.name in declaration.alternatives]
        given = [knob for knob in knobs if to_json(values.get(knob.name)) != knob.json_default()]
        for knob in given[1:]:
            yield Problem(
                f"{name}.{knob.name}",
                f"is given beside {given[0].name}, which says the same in other words",
                values[knob.name],
                f"{knob.json_default()}, or {given[0].name} at {given[0].json_default()}",
                f"give {given[0].name} or {knob.name}",
            )


class Wiring:
    """The wires of a graph, bypassed nodes taken out, with everything that is wrong with them.

    Attributes:
        declarations: Declarations of the nodes whose type is known, bypassed ones included.
        inputs: For each such node that is not bypassed, the wires into each of its ports.
        problems: What is wrong.
    """

    def __init__(self, graph: Graph, registry: Registry) -> None:
        self.graph = graph
        found = {name: registry.find(entry.type) for name, entry in graph.nodes.items()}
        self.declarations = {name: d for name, d in found.items() if isinstance(d, NodeDeclaration)}
        self.problems = Problems()
        self._reported: set[tuple[str, str]] = set()
        self._known_makers: dict[Any, list[str]] = {}
        self._known_wires: dict[str, Wire] = {}
        self._fitting: dict[tuple[Any, str, str], bool] = {}
        written = {
            name: {port.name: self._written(name, port) for port in declaration.ports}
            for name, declaration in self.declarations.items()
        }
        for name, declaration in self.declarations.items():
            self._unknown_ports(name, declaration)
        cycle = order.find_cycle(written)
        if cycle:
            self.problems.append(
                Problem(cycle[0], f"lies on a cycle: {' -> '.join([*cycle, cycle[0]])}", cure="remove one wire of it")
            )
            self.inputs: dict[str, dict[str, list[Wire]]] = {}
            return
        self._pass_through(written)
        self.inputs = {name: ports for name, ports in written.items() if not graph.nodes[name].bypass}
        self._check_inputs()

    def _unknown_ports(self, name: str, declaration: NodeDeclaration) -> None:
        ports = [port.name for port in declaration.ports]

        def cure(given: str) -> str:
            return "it is a knob; put it under knobs" if declaration.knob(given) else nearest(given, ports)

        for given in self.graph.nodes[name].inputs:
            if given not in ports:
                self.problems.add(f"{name}.{given}", "is not an input port", cure=partial(cure, given))

    def _written(self, name: str, port: Port) -> list[Wire]:
        """Return the wires into a port as the file gives them, without those from nowhere."""
        wires = []
        given = self.graph.nodes[name].inputs.get(port.name, [])
        if len(given) > 1 and not port.many:
            self._too_many(name, port, len(given))
            given = given[:MOST_OF_ONE]
        for source in given:
            wire = self._known_wires.get(source)
            if wire is None and (wire := self._wire(name, port, source)) is not None:
                self._known_wires[source] = wire
            if wire is not None:
                wires.append(wire)
        return wires

    def _wire(self, name: str, port: Port, source: str) -> Wire | None:
        """Return where a wire comes from; None when from nowhere, which is reported, or from a node of unknown type."""
        node, dot, output = source.partition(".")
        if node not in self.graph.nodes:
            self._wire_problem(name, port, f"is wired from {node}, which does not exist", partial(nearest, node, self.graph.nodes))
        elif node in self.declarations:
            outputs = [o.name for o in self.declarations[node].outputs]
            if outputs and not (dot and output not in outputs):
                return node, output or outputs[0]
            if not outputs:
                self._wire_problem(name, port, f"is wired from {node}, which has no output", "remove the wire")
            else:
                message = f"is wired from {source}, which is not an output"
                self._wire_problem(name, port, message, partial(nearest, output, outputs))
        return None

    def _too_many(self, name: str, port: Port, count: int) -> None:
        self._wire_problem(name, port, f"has {count:,} wires", "keep one, or merge them first", "one wire")

    def _wire_problem(self, name: str, port: Port, message: str, cure: str | Callable[[], str], allowed: str = "") -> None:
        self._reported.add((name, port.name))
        self.problems.add(f"{name}.{port.name}", message, None, allowed, cure)

    def _pass_through(self, written: dict[str, dict[str, list[Wire]]]) -> None:
        """Replace wires from bypassed nodes by what is wired into their port of the same name.

        One that takes nothing in brings nothing: a bypassed collider or source is not there. A port that needs a wire says so.
        """
        for name in order.topological(written):
            for port in self.declarations[name].ports:
                wires: list[Wire] = []
                for node, output in written[name][port.name]:
                    if not self.graph.nodes[node].bypass:
                        wires.append((node, output))
                    elif output in written[node]:
                        wires.extend(written[node][output])
                    elif not port.optional:
                        self._wire_problem(
                            name,
                            port,
                            f"is wired from {node}.{output}, and {node} is bypassed",
                            f"switch {node} on, or wire past it",
                            f"an input port of {node} called {output}",
                        )
                written[name][port.name] = wires

    def _check_inputs(self) -> None:
        for name, ports in self.inputs.items():
            wanted = self.declarations[name].needs_any
            if wanted and not any(ports[each] for each in wanted) and not any(self._is_explained(name, each) for each in wanted):
                self.problems.add(
                    name,
                    f"has no wire into {' or '.join(wanted)}, so it has nothing to do",
                    cure=f"wire something into {wanted[0]}",
                )
            for port in self.declarations[name].ports:
                wires = ports[port.name]
                if not wires and not port.optional and not self._is_explained(name, port.name):
                    self._wire_problem(name, port, "has no wire", f"wire a {type_name(port.type)} into it")
                if len(wires) > 1 and not port.many and (name, port.name) not in self._reported:
                    self._too_many(name, port, len(wires))
                for node, output in wires:
                    if not self._fits(port, self.declarations[node], output):
                        self._wrong_type(name, port, node, output)

    def _is_explained(self, name: str, port: str) -> bool:
        """Whether a problem that is reported already leaves the port without a wire."""
        given = [source.partition(".")[0] for source in self.graph.nodes[name].inputs.get(port, [])]
        return (name, port) in self._reported or any(node not in self.declarations for node in given)

    def _makers(self, port: Port) -> list[str]:
        """Return a few nodes whose first output a port takes; looked for once a type, since many ports may ask."""
        if port.type not in self._known_makers:
            named = (name for name, d in self.declarations.items() if d.outputs and port.accepts(d.outputs[0].type))
            self._known_makers[port.type] = list(itertools.islice(named, 4))
        return self._known_makers[port.type]

    def _fits(self, port: Port, source: NodeDeclaration, output: str) -> bool:
        """Return whether a port takes an output; looked at once a kind of both, since there may be many wires of it."""
        key = (port.type, source.id, output)
        if key not in self._fitting:
            found = source.output(output)
            self._fitting[key] = found is None or port.accepts(found.type)
        return self._fitting[key]

    def _wrong_type(self, name: str, port: Port, node: str, output: str) -> None:
        source, mine = self.declarations[node], type_name(port.type)
        fitting = [f"{node}.{o.name}" for o in source.outputs if port.accepts(o.type)]
        choices = fitting or [other for other in self._makers(port) if other != name][:3]
        found = source.output(output)
        assert found is not None
        self._wire_problem(
            name,
            port,
            f"is wired from {node}.{output}, a {type_name(found.type)}",
            f"wire {' or '.join(choices)}" if choices else f"add a node that makes a {mine}",
            mine,
        )
