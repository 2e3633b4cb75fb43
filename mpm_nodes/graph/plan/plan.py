"""The plan of an outer graph: nodes in one order, their wires, their knobs at each frame, and their lineage keys.

`plan_substeps` plans the substep graph inside a solve node; it lives in `substeps` and is offered here as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mpm_nodes.data import FrameContext, GraphSettings, MpmNodesError
from mpm_nodes.graph.declare.decorators import ContentsContext, NodeDeclaration
from mpm_nodes.graph.declare.knobs import Knob, to_json
from mpm_nodes.graph.declare.registry import Registry
from mpm_nodes.graph.document import order
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.document.substep_document import Substeps, raw_fact
from mpm_nodes.graph.plan import lineage
from mpm_nodes.graph.plan.substeps import Dispatch, PlannedStage, SubstepPlan, plan_substeps
from mpm_nodes.graph.plan.validate import Examination, Wire, examine
from mpm_nodes.graph.reports.problems import GraphError
from mpm_nodes.graph.time import keys
from mpm_nodes.graph.values.kept import NOTHING_KEPT, Kept
from mpm_nodes.graph.values.store import MemoryStore

__all__ = ["Dispatch", "Plan", "PlannedNode", "PlannedStage", "SubstepPlan", "plan_graph", "plan_substeps"]

OPEN_FILES = 2**28
"""Bytes of files that stay open for what nodes say of their contents."""
FRAMES_OF_KEYS = 32
"""Frames whose keys stay; of the others only those of sequential nodes do, which the rest is found from again."""


@dataclass(frozen=True)
class PlannedNode:
    """One node of the plan, with everything resolved.

    Attributes:
        id: Name in the graph.
        declaration: What it is.
        inputs: Wires into each port, bypassed nodes taken out.
        raw: Raw values of all knobs, at the resolution of the graph.
        base: Folder that relative input paths are resolved against.
        substeps: Resolved substep graphs by knob.
    """

    id: str
    declaration: NodeDeclaration
    inputs: Mapping[str, tuple[Wire, ...]]
    raw: Mapping[str, Any]
    base: Path
    substeps: Mapping[str, Substeps] = field(default_factory=dict)

    @property
    def is_sequential(self) -> bool:
        """Whether it needs its own value of the frame before."""
        return self.declaration.previous_type is not None

    @property
    def keyed(self) -> frozenset[str]:
        """Names of the knobs that are keyframed."""
        return frozenset(name for name, value in self.raw.items() if keys.is_keyed(value))

    def sample(self, name: str, frame: float) -> Any:
        """Return the Python value of a knob at a fractional frame: paths to read from the graph's folder on, substeps resolved."""
        if name in self.substeps:
            return self.substeps[name]
        knob = self.declaration.knob(name)
        if knob is None:
            raise KeyError(name)
        value = knob.sample(self.raw[name], frame)
        return self.base / value if knob.kind == "path" and value is not None else value

    def sample_uncut(self, within: float, name: str, frame: float) -> Any:
        """Return a knob at a fractional frame of (within - 1, within], as if it did not jump there where a key steps."""
        raw: Any = self.raw.get(name)
        knob = self.declaration.knob(name)
        if knob is None or not keys.is_keyed(raw):
            return self.sample(name, frame)
        return knob.sample({"keys": keys.before_cut(raw["keys"], within - 1.0, within)}, frame)

    def knobs(self, frame: float) -> dict[str, Any]:
        """Return the Python values of all knobs at a frame; those whose keys travel carry them."""
        travelling = {k.name for k in self.declaration.knobs if k.keys_travel and keys.is_keyed(self.raw[k.name])}
        return {
            knob.name: knob.keyed_value(self.raw[knob.name]) if knob.name in travelling else self.sample(knob.name, frame)
            for knob in self.declaration.knobs
        }

    def call(
        self,
        value_of: Callable[[Wire], Any],
        frame: int,
        settings: GraphSettings,
        ctx: FrameContext | None = None,
        previous: Any = None,
        kept: Kept = NOTHING_KEPT,
    ) -> dict[str, Any]:
        """Run the node and return its values by output.

        Args:
            value_of: Gives the value that a wire (node, output) carries.
            frame: Frame at which the knobs are sampled.
            settings: Settings of the graph, for nodes that ask for them.
            ctx: For time-dependent nodes.
            previous: The node's own output of the frame before, for sequential nodes.
            kept: For nodes that keep values between calls.
        """
        given: dict[str, Any] = self.knobs(frame)
        for port in self.declaration.ports:
            values = tuple(value_of(wire) for wire in self.inputs[port.name])
            if port.many:
                given[port.name] = values
            elif values:
                given[port.name] = values[0]
        special = {"ctx": ctx, "settings": settings, "previous": previous, "kept": kept}
        given |= {name: special[role] for role, name in self.declaration.special.items()}
        return self.declaration.unpack(self.declaration.function(**given))


class Plan:
    """The nodes of a graph in an order that depends on neither their names nor the file's order.

    Attributes:
        nodes: Planned nodes; each follows the nodes that it needs. Bypassed ones are left out.
        settings: Settings of the graph, with cells of the size that they are cooked with.
        signature: Digest of the whole graph, names left out.
    """

    def __init__(self, nodes: tuple[PlannedNode, ...], settings: GraphSettings, signature: str, base: Path) -> None:
        self.nodes, self.settings, self.signature = nodes, settings, signature
        self._by_id = {planned.id: planned for planned in nodes}
        self._files = lineage.FileFacts(base)
        self._open = Kept(MemoryStore(OPEN_FILES))
        self._keys: dict[int, dict[str, str]] = {}
        self._sequences: dict[int, tuple[str, ...]] = {}
        self._taken: dict[tuple[str, int], str] = {}
        self._sequential = tuple(planned.id for planned in nodes if planned.is_sequential)

    def __getitem__(self, name: str) -> PlannedNode:
        return self._by_id[name]

    @property
    def sinks(self) -> tuple[PlannedNode, ...]:
        """Nodes that no other node takes from, in order."""
        used = {source for planned in self.nodes for wires in planned.inputs.values() for source, _ in wires}
        return tuple(planned for planned in self.nodes if planned.id not in used)

    def needed(self, *names: str) -> tuple[PlannedNode, ...]:
        """Return the named nodes and all that they are made from, in order."""
        wanted = set(names)
        for planned in reversed(self.nodes):
            if planned.id in wanted:
                wanted |= {source for wires in planned.inputs.values() for source, _ in wires}
        return tuple(planned for planned in self.nodes if planned.id in wanted)

    def key(self, name: str, frame: int) -> str:
        """Return the lineage key of a node at a frame: nodes and frames with equal keys have equal values."""
        if frame not in self._keys:
            first = frame
            while self._sequential and first > self.settings.start and first - 1 not in self._sequences:
                first -= 1
            for each in range(first, frame + 1):
                self._add_keys(each)
        return self._keys[frame][name]

    def take(self, frame: int, keys: Mapping[str, str]) -> None:
        """Let values of nodes at a frame be those of another graph, by their keys there: what follows on them is keyed by them."""
        self._taken = {(name, frame): key for name, key in keys.items()}
        self._keys.clear()
        self._sequences.clear()

    def _add_keys(self, frame: int) -> None:
        found: dict[str, str] = {}
        follows = frame > self.settings.start
        before = dict(zip(self._sequential, self._sequences[frame - 1], strict=True)) if follows and self._sequential else {}
        for planned in self.nodes:
            declaration = planned.declaration
            facts = {knob.name: self._fact(planned, knob, frame) for knob in declaration.knobs}
            inputs = [
                [port, [[found[source], output] for source, output in wires]] for port, wires in sorted(planned.inputs.items())
            ]
            own = lineage.key_of(declaration, facts, inputs, self.settings, frame, before.get(planned.id))
            found[planned.id] = self._taken.get((planned.id, frame), own)
        if self._sequential:
            self._sequences[frame] = tuple(found[name] for name in self._sequential)
        self._keys[frame] = found
        while len(self._keys) > FRAMES_OF_KEYS:  # a long shot would hold those of every frame
            del self._keys[next(iter(self._keys))]

    def _fact(self, planned: PlannedNode, knob: Knob, frame: int) -> Any:
        if knob.name in planned.substeps:
            return lineage.substeps_fact(planned.substeps[knob.name], frame)
        raw = planned.raw[knob.name]
        if knob.kind == "path" and knob.convert(raw) is not None:
            return [to_json(knob.convert(raw)), self._file_fact(planned, knob, Path(raw), frame)]
        return lineage.knob_fact(knob, raw, frame, planned.declaration.wants_ctx)

    def _file_fact(self, planned: PlannedNode, knob: Knob, path: Path, frame: int) -> Any:
        """Return what counts of a file at a frame: what the node says that it reads of it then, else the whole file."""
        reads = planned.declaration.contents.get(knob.name)
        if reads is not None:
            told = ContentsContext(
                self._files.base / path,
                frame,
                self.settings,
                planned.knobs(frame),
                planned.sample,
                self._open,
                lambda each: self._files.fact(each, False),
            )
            try:
                return reads(told)
            except (MpmNodesError, OSError, ImportError):
                pass  # the node itself says what is wrong with the file
        return self._files.fact(path, planned.declaration.wants_ctx)


def plan_graph(graph: Graph, registry: Registry | None = None) -> Plan:
    """Validate and plan a graph.

    Raises:
        GraphError: With everything that is wrong.
    """
    found = examine(graph, registry)
    if found.problems:
        raise GraphError(found.problems)
    nodes = {name: _planned(name, found, graph) for name in found.wiring.inputs}
    ordered = order.canonical(found.wiring.inputs, {name: _identity(planned) for name, planned in nodes.items()})
    settings = graph.settings.resolved()
    signature = order.digest(*sorted(ordered.hashes.values()), json.dumps(lineage.settings_fact(settings)))
    return Plan(tuple(nodes[name] for name in ordered.names), settings, signature, graph.base)


def _planned(name: str, found: Examination, graph: Graph) -> PlannedNode:
    declaration = found.wiring.declarations[name]
    inputs = {port: tuple(wires) for port, wires in found.wiring.inputs[name].items()}
    given = graph.nodes[name].complete(declaration)
    raw = {knob.name: knob.resolved(given[knob.name], graph.settings.resolution) for knob in declaration.knobs}
    return PlannedNode(name, declaration, inputs, raw, graph.base, found.substeps.get(name, {}))


def _identity(planned: PlannedNode) -> str:
    declaration = planned.declaration
    facts = {
        knob.name: planned.substeps[knob.name].whole_signature
        if knob.name in planned.substeps
        else raw_fact(knob, planned.raw[knob.name])
        for knob in declaration.knobs
    }
    return json.dumps([declaration.id, declaration.version, declaration.code_digest, facts], sort_keys=True)
