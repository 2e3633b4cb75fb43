"""Evaluate nodes of a graph at a frame, through the lineage cache; failures say where they happened."""

from __future__ import annotations

import dataclasses
import errno
import functools
import re
import sysconfig
import threading
import time
import traceback
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import mpm_nodes
from mpm_nodes.data import Cancelled, FrameContext, InputError, MpmNodesError, OutputError
from mpm_nodes.data.suggestions import nearest
from mpm_nodes.graph.cook.kept_solves import KeptSolves
from mpm_nodes.graph.cook.parts import Parts, SolvedFrames
from mpm_nodes.graph.declare.decorators import type_name
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.plan.plan import Plan, PlannedNode, plan_graph
from mpm_nodes.graph.plan.preflight import free_memory, free_space
from mpm_nodes.graph.reports.events import EventStream
from mpm_nodes.graph.reports.node_warnings import caught_warnings
from mpm_nodes.graph.reports.problems import GraphError, Problem, Problems
from mpm_nodes.graph.revisions.transaction import FrameTransaction, output_error
from mpm_nodes.graph.values.kept import Kept
from mpm_nodes.graph.values.store import ABSENT, DiskStore, MemoryStore, freeze

__all__ = ["Evaluator", "NodeFailed"]

Values = dict[str, Any]
"""Values of one node by output."""

_WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


class NodeFailed(MpmNodesError):
    """A node's own code raised; the original error is its cause (exit code 1: not the graph is at fault)."""

    exit_code = 1


@dataclasses.dataclass
class _State:
    """What a sequential node hands to its next frame."""

    frame: int
    key: str
    value: Any


def default_memory_limit() -> int:
    """Return the bytes that published values may take unless told: a quarter of the free memory, at most 4 GB."""
    return min(4 << 30, free_memory() // 4)


class Evaluator:
    """Evaluates single nodes of a graph.

    ```python
    particles = Evaluator(graph).value("sim.particles", frame=24)
    ```

    Args:
        graph: The graph; all its problems are raised at once as `GraphError`.
        store: Published values; share one between evaluators to keep what a changed graph has in common.
        disk: Values of nodes that do not change over time, kept between processes; None for none.
        events: Where progress goes.
        cancel: When set, evaluation stops with `Cancelled`.
        checked: Run stages in checked mode.
        fuse: Let neighbouring stages of a solve run as one kernel; the numbers are the same to rounding.
        max_substeps: Substeps that a frame of a solve may take; None for any number.

    Attributes:
        team: The ranks that cook the solves together; None where there is one process.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        store: MemoryStore | None = None,
        disk: DiskStore | None = None,
        events: EventStream | None = None,
        cancel: threading.Event | None = None,
        checked: bool = False,
        fuse: bool = True,
        max_substeps: int | None = None,
    ) -> None:
        self.plan = plan_graph(graph)
        self.graph = graph
        self._nodes = {node.id: node for node in self.plan.nodes}
        self.store = MemoryStore(default_memory_limit()) if store is None else store
        self.kept = Kept(self.store)
        self.disk = disk
        self.events = events or EventStream()
        self.cancel = cancel or threading.Event()
        self.checked, self.fuse, self.max_substeps = checked, fuse, max_substeps
        self.files: FrameTransaction | None = None
        self.team: Any = None
        self.solved: SolvedFrames | None = None
        self.kept_solves: KeptSolves | None = None
        self._handed: dict[str, list[str]] = {}
        self._states: dict[str, _State] = {}
        wires = {wire for node in self.plan.nodes for sources in node.inputs.values() for wire in sources}
        self._state_read = {name for name, output in wires if output == state_output(self._nodes[name])}
        self._static = _static_nodes(self.plan)

    # ------------------------------------------------------------ asking
    def value(self, place: str, frame: int | None = None) -> Any:
        """Return one output ("sim.particles", or "sim" for its first one) at a frame (the first one when None).

        Raises:
            GraphError: There is no such node or output.
        """
        name, _, output = place.partition(".")
        declaration = self.graph.declaration(name)
        if declaration is None:
            raise GraphError([Problem(place, "is not a node of this graph", cure=nearest(name, self.graph.nodes))])
        if output and declaration.output(output) is None:
            names = [each.name for each in declaration.outputs]
            raise GraphError([Problem(place, "is not an output", cure=nearest(output, names))])
        frame = self.graph.settings.start if frame is None else frame
        port = output or declaration.outputs[0].name
        if name not in self._nodes:
            raise GraphError([Problem(place, "is bypassed", cure="switch it on, or ask for the node before it")])
        return self.evaluate([name], frame, outputs={(name, port)})[name][port]

    def read_solves(self, solved: SolvedFrames) -> None:
        """Take the values of the sequential nodes from a cook of them; no such node is cooked from now on."""
        self.solved = solved
        for name, output in Parts(self.plan, "frames").handed():
            self._handed.setdefault(name, []).append(output)

    def sequential(self) -> dict[str, Any]:
        """Return the type of the state of each sequential node that is cooked here."""
        if self.solved is not None:
            return {}
        return {node.id: node.declaration.previous_type for node in self.plan.nodes if node.is_sequential}

    def lineage(self, frame: int) -> dict[str, str]:
        """Return what the values of the sequential nodes at a frame are made of, wherever these are cooked."""
        return {node.id: self.plan.key(node.id, frame) for node in self.plan.nodes if node.is_sequential}

    def evaluate(
        self,
        names: Collection[str],
        frame: int,
        *,
        force: Collection[str] = (),
        outputs: Collection[tuple[str, str]] = (),
    ) -> dict[str, Values]:
        """Return the values of some nodes at a frame; only what is not cached is cooked.

        Args:
            names: The nodes.
            frame: Frame number.
            force: Nodes to cook although their values are cached.
            outputs: Outputs that must be among the values even where they are a state that is not cached.
        """
        values: dict[str, Values] = {}
        needed: set[str] = set()
        stack = list(names)
        while stack:
            name = stack.pop()
            if name in values or name in needed:
                continue
            found = None if name in force else self._find(name, frame, outputs)
            if found is None:
                needed.add(name)
                stack.extend(source for wires in self._nodes[name].inputs.values() for source, _ in wires)
            else:
                values[name] = found
        for node in self.plan.nodes:
            if node.id in needed:
                values[node.id] = self._cook(node, frame, values)
        return {name: values[name] for name in names}

    def check_cancel(self) -> None:
        """Raise `Cancelled` when the user asked to stop."""
        if self.cancel.is_set():
            raise Cancelled("stopped by the user")

    # ------------------------------------------------------------ states of sequential nodes
    def states(self, frame: int) -> dict[str, Any]:
        """Return the states after `frame` of the sequential nodes that were cooked up to it."""
        return {name: state.value for name, state in self._states.items() if state.frame == frame}

    def held(self, name: str) -> int | None:
        """Return the frame that the state at hand of a sequential node is after, None when there is none."""
        state = self._states.get(name)
        return None if state is None else state.frame

    def forget(self) -> None:
        """Drop every value and state at hand: what is asked for next is cooked."""
        self.store.clear()
        self._states.clear()

    def restore(self, name: str, frame: int, value: Any) -> None:
        """Give a sequential node the state that it had after `frame`."""
        self._states[name] = _State(frame, self.plan.key(name, frame), value)

    def _catch_up(self, node: PlannedNode, frame: int) -> Any:
        """Return the state of a sequential node after `frame - 1`, cooking the frames that are missing."""
        start = self.graph.settings.start
        if frame < start:
            raise GraphError([Problem(node.id, f"has no frame {frame}: it begins at frame {start}", cure="ask for a later frame")])
        state = self._states.get(node.id)
        usable = state is not None and state.frame < frame and state.key == self.plan.key(node.id, state.frame)
        for each in range(state.frame + 1 if state is not None and usable else start, frame):
            self.evaluate([node.id], each, force=[node.id])
        return self._states.pop(node.id).value if frame > start else None

    # ------------------------------------------------------------ the cache
    def _find(self, name: str, frame: int, outputs: Collection[tuple[str, str]]) -> Values | None:
        node, key = self._nodes[name], self.plan.key(name, frame)
        if self.solved is not None and node.is_sequential:
            return self.solved.values(node, frame, key, self._handed.get(name, ()))
        found = self.store.get(key)
        if found is ABSENT:
            found = self._find_on_disk(node, key)
        if found is ABSENT:
            return self._find_kept(node, frame, key, outputs)
        port = state_output(node)
        if port is not None and port not in found and (name in self._state_read or (name, port) in outputs):
            state = self._states.get(name)
            if state is None or (state.frame, state.key) != (frame, key):
                return None
            return {**found, port: state.value}
        return found

    def _find_kept(self, node: PlannedNode, frame: int, key: str, outputs: Collection[tuple[str, str]]) -> Values | None:
        """Return what a solve of an earlier cook gave, where no one asks for more than it handed on."""
        if self.kept_solves is None or not node.is_sequential or node.id in self._state_read:
            return None
        if any(name == node.id for name, _ in outputs):
            return None
        found = self.kept_solves.find(node, key)
        if found is not None:
            self.store.put(key, found)
            if self.kept_solves.taken == 1:
                message = f"frame {frame} of {node.id} was solved in an earlier cook, and is taken from there, as are others"
                self.events.emit("note", message=message)
        return found

    def _find_on_disk(self, node: PlannedNode, key: str) -> Any:
        if self.disk is None or node.id not in self._static:
            return ABSENT
        found = {each.name: self.disk.get(key, each.name, each.type) for each in node.declaration.outputs}
        if any(value is ABSENT for value in found.values()):
            return ABSENT
        self.store.put(key, found)
        return found

    def _publish(self, node: PlannedNode, frame: int, values: Values, cacheable: bool) -> None:
        """Freeze and cache what a node returned; a state that moves on to the next frame is neither."""
        key = self.plan.key(node.id, frame)
        published = dict(values)
        port = state_output(node)
        if port is not None:
            self._states[node.id] = _State(frame, key, values[port])
            if moves(values[port]):
                del published[port]
        freeze(published)
        if not cacheable:
            return
        self.store.put(key, published)
        if self.kept_solves is not None and node.is_sequential:
            self.kept_solves.keep(node, key, published)
        if self.disk is not None and node.id in self._static:
            for name, value in published.items():
                self.disk.put(key, name, value)

    # ------------------------------------------------------------ one call of one node
    def _cook(self, node: PlannedNode, frame: int, values: Mapping[str, Values]) -> Values:
        self.check_cancel()
        previous = self._catch_up(node, frame) if node.is_sequential else None
        started = time.perf_counter()
        written = self._files_written()
        try:
            with caught_warnings() as caught:  # a node without a context warns as any function does
                result = node.call(
                    lambda wire: values[wire[0]][wire[1]],
                    frame,
                    self.plan.settings,
                    self._context(node, frame),
                    previous,
                    self.kept,
                )
            for message in caught:
                self.events.report("warning", node=node.id, where=node.id, message=message)
            self._check_types(node, result)
        except (Cancelled, KeyboardInterrupt):
            raise
        except (Exception, SystemExit) as error:  # a node that calls sys.exit has failed; it would end the cook without a word
            raise self._located(error, node.id, frame) from error
        # the value of a node that wrote files is not cached: the next cook would skip the writing
        self._publish(node, frame, result, cacheable=self._files_written() == written)
        if node.id in self._states and self.files is not None and self.files.frame == frame:
            self.files.begin_checkpoint(node.id, self._states[node.id].value)
        self.events.emit("node", node=node.id, frame=frame, seconds=time.perf_counter() - started)
        return result

    def _files_written(self) -> int:
        return 0 if self.files is None else self.files.reserved

    def _context(self, node: PlannedNode, frame: int) -> FrameContext:
        return FrameContext(
            frame=frame,
            settings=self.plan.settings,
            report=functools.partial(self.events.report, node=node.id),
            check_cancel=self.check_cancel,
            sample=node.sample,
            sample_uncut=functools.partial(node.sample_uncut, frame),
            keyed=node.keyed,
            files=self.files if self.files is not None and self.files.frame == frame else None,
            checked=self.checked,
            fuse=self.fuse,
            max_substeps=self.max_substeps,
            team=self.team,
            wired={port: tuple(wire[0] for wire in wires) for port, wires in node.inputs.items()},
        )

    @staticmethod
    def _check_types(node: PlannedNode, values: Values) -> None:
        for output in node.declaration.outputs:
            value = values[output.name]
            if isinstance(output.type, type) and not isinstance(value, output.type) and value is not None:
                raise TypeError(f"returned a {type(value).__name__} for {output.name}, declared is {type_name(output.type)}")

    def _located(self, error: BaseException, name: str, frame: int) -> MpmNodesError:
        """Return `error` as one that says at which node and frame it happened; exit codes stay."""
        place = f"{name}, frame {frame}"
        if isinstance(error, GraphError):
            located = Problems(each if each.place.startswith(name) else each.inside(name) for each in error.problems)
            located.more += error.more
            return GraphError(located)
        if isinstance(error, MpmNodesError):
            if not re.match(re.escape(name) + r"[.,:]", str(error)):
                error.args = (f"{place}: {error}", *error.args[1:])
            return error
        if isinstance(error, MemoryError):
            return MpmNodesError(f"{place}: ran out of memory; raise settings.cell_size (now {self.plan.settings.cell_size:g} m)")
        if isinstance(error, OSError) and error.errno is not None:
            kind = output_error(place, error) if error.errno in _WRITE_ERRORS or self.files is not None else InputError(str(error))
            return type(kind)(f"{place}: {kind}")
        if self.files is not None and free_space(Path(self.files.folder)) < 1 << 16:
            return OutputError(f"{place}: the disk of {self.files.folder} is full; free some space, then continue with --resume")
        within = "".join(f"{note}, " for note in getattr(error, "__notes__", ()) if note.startswith("stage "))
        what = "stage" if within else "node"
        raised = f"{type(error).__name__}: {error}"
        return NodeFailed(f"{place}: {within}{_line_of(error)}: {raised}; this is a defect of the {what}, --debug shows where")


def _line_of(error: BaseException) -> str:
    """Return file and line of the innermost code that is neither this package's nor an installed one's; else of the innermost."""
    every = traceback.extract_tb(error.__traceback__)
    apart = (str(Path(mpm_nodes.__file__).parent), *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")))
    mine = [each for each in every if not each.filename.startswith((*apart, "<"))] or every
    return f"{Path(mine[-1].filename).name}, line {mine[-1].lineno}" if mine else "unknown line"


def state_output(node: PlannedNode) -> str | None:
    """Return the output that a sequential node gets back one frame later, None for other nodes."""
    return node.declaration.previous_output() if node.is_sequential else None


def _static_nodes(plan: Plan) -> set[str]:
    """Return the nodes whose values are the same at every frame."""
    static: set[str] = set()
    for node in plan.nodes:
        own = node.declaration.wants_ctx or node.is_sequential or bool(node.keyed)
        if not own and all(source in static for wires in node.inputs.values() for source, _ in wires):
            static.add(node.id)
    return static


def moves(value: Any) -> bool:
    """Return whether a state is handed on and changed in place: whatever is neither plain data nor a frozen dataclass."""
    frozen = dataclasses.is_dataclass(value) and getattr(type(value), "__dataclass_params__").frozen  # noqa: B009
    return not frozen and hasattr(value, "to_arrays")
