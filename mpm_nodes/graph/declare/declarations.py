"""What a declaration holds: ports, knobs, domains, versions. `decorators` makes them from function signatures."""

from __future__ import annotations

import copy
import functools
import hashlib
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mpm_nodes.data import Facts, Field, GraphSettings, Limit
from mpm_nodes.data.suggestions import nearest
from mpm_nodes.graph.declare.knobs import Knob
from mpm_nodes.graph.values.kept import NOTHING_KEPT, Kept

UpgradeFunction = Callable[[dict[str, Any], dict[str, Any]], tuple[dict[str, Any], dict[str, Any]]]


@dataclass(frozen=True)
class Port:
    """An input of a node.

    Attributes:
        name: Parameter name.
        type: Type of the values that it takes; a union for several.
        optional: Whether it may stay without a wire.
        many: Whether it takes any number of wires.
        doc: Help text.
        at_start: Whether it counts at one frame only (`keys.TakenAtStart`).
    """

    name: str
    type: Any
    optional: bool
    many: bool
    doc: str
    at_start: bool = False

    def accepts(self, given: Any) -> bool:
        """Return whether every value of type `given` may be wired here."""
        return all(any(_is_kind(part, mine) for mine in members(self.type)) for part in members(given))


@dataclass(frozen=True)
class Output:
    """An output of a node: name and type."""

    name: str
    type: Any


@dataclass(frozen=True)
class DomainPort:
    """A stage's port.

    Attributes:
        name: Name of the domain.
        reads: Names of the fields that are read there.
        writes: Names of the fields that are written there.
        own: Fields that the stage describes itself.
        conditions: (name, knob, value) of fields that are read only where the knob has that value.
        on_request: Names among `reads` that are read only in substeps that were asked to keep them.
    """

    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    own: tuple[Field, ...] = ()
    conditions: tuple[tuple[str, str, Any], ...] = ()
    on_request: tuple[str, ...] = ()


@dataclass(frozen=True)
class OfferedLimit:
    """A limit of the time step that a stage offers.

    Attributes:
        limit: What it is.
        domains: What its function reads.
        arguments: Its positional arguments in order: names of domains, and "step".
        knobs: Names of the stage's knobs that it takes.
    """

    limit: Limit
    domains: tuple[DomainPort, ...] = ()
    arguments: tuple[str, ...] = ()
    knobs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Declaration:
    """What nodes and stages have in common.

    Attributes:
        id: Name in graph files: the function's name.
        label: Name that artists see.
        version: Raised when the same knobs give other results, or when names or meanings change.
        doc: First paragraph of the docstring.
        knobs: Knobs, in order of the signature.
        function: The plain function.
        upgrades: By old version, the function that brings knobs and inputs of that version to the next one.
        file: Source file.
        line: First line there.
        words: What artists call it, beside its label: menus search by them as well.
    """

    id: str
    label: str
    version: int
    doc: str
    knobs: tuple[Knob, ...]
    function: Callable[..., Any] = field(compare=False, repr=False)
    upgrades: Mapping[int, UpgradeFunction] = field(default_factory=dict, compare=False, repr=False)
    file: str = field(default="", compare=False)
    line: int = field(default=0, compare=False)
    words: tuple[str, ...] = field(default=(), compare=False)

    @property
    def is_builtin(self) -> bool:
        """Whether it belongs to this package (its version then stands for its code)."""
        return str(self.function.__module__).split(".")[0] == "mpm_nodes"

    @property
    def place(self) -> str:
        """Where it is written: "file:line"."""
        return f"{self.file}:{self.line}"

    def knob(self, name: str) -> Knob | None:
        """Return a knob by name, or None."""
        return next((knob for knob in self.knobs if knob.name == name), None)

    def nearest_knob(self, name: Any) -> str:
        """Return a cure for a name that is none of the knobs: the nearest of them, or where they are listed."""
        return nearest(name, [knob.name for knob in self.knobs], f"mpm-nodes nodes {self.id}")

    def defaults(self) -> dict[str, Any]:
        """Return the knobs that have a default, as they stand in a graph file."""
        return {name: copy.copy(value) for name, value in self._written_defaults.items()}

    @functools.cached_property
    def _written_defaults(self) -> dict[str, Any]:
        """Made once: loading a graph and checking it ask for the defaults of every node several times."""
        return {knob.name: knob.json_default() for knob in self.knobs if not knob.required}

    @functools.cached_property
    def code_digest(self) -> str:
        """Digest of the source file (of the code object when there is no file); "" for built-in code."""
        if self.is_builtin:
            return ""
        path = Path(self.file)
        code = getattr(self.function, "__code__", None)
        source = path.read_bytes() if path.is_file() else repr(code and (code.co_code, code.co_consts, code.co_names)).encode()
        return hashlib.sha256(source).hexdigest()

    def _common_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "label": self.label,
            "version": self.version,
            "doc": self.doc,
            "builtin": self.is_builtin,
            "knobs": [knob.to_json() for knob in self.knobs],
        }


@dataclass(frozen=True)
class PreflightContext:
    """What a node's preflight is told, before anything is cooked.

    Attributes:
        knobs: Python values of the knobs, keyed ones at the first frame.
        settings: Settings of the graph; `end` is the last frame that will be cooked.
        inputs: By port, what the preflights of the wired nodes said.
        kept: Where the node keeps what its cook will need as well.
        ranks: How many processes cook the solves together.
        names: By port, the names of the wired nodes.
        keyed: Names of the knobs that have keys.
    """

    knobs: Mapping[str, Any]
    settings: GraphSettings = field(default_factory=GraphSettings)
    inputs: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)
    kept: Kept = NOTHING_KEPT
    ranks: int = 1
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    keyed: frozenset[str] = frozenset()

    def total(self, port: str, fact: str) -> int:
        """Return the sum of a fact over the nodes that are wired into a port."""
        return int(sum(each.get(fact, 0) for each in self.inputs.get(port, ())))

    def mean(self, port: str, fact: str = "particles") -> int:
        """Return the sum of a fact's mean over the shot, "mean_" and its name, for those nodes that told one; else of the fact."""
        return int(sum(each.get(f"mean_{fact}", each.get(fact, 0)) for each in self.inputs.get(port, ())))

    def every(self, port: str, fact: str) -> tuple[Any, ...]:
        """Return what the nodes that are wired into a port said of a fact that is a sequence, one after the other."""
        return tuple(each for facts in self.inputs.get(port, ()) for each in facts.get(fact, ()))

    def distinct(self, port: str, fact: str) -> tuple[Any, ...]:
        """Return what `every` does, each thing once: what is wired twice at thirty nodes in a row would be there 2^30 times."""
        told = [facts.get(fact, ()) for facts in {id(facts): facts for facts in self.inputs.get(port, ())}.values()]
        return tuple({id(each): each for things in told for each in things}.values())


@dataclass(frozen=True)
class ContentsContext:
    """What a function of a node's `contents` is told.

    Attributes:
        path: The file that the knob names.
        frame: The frame.
        settings: Settings of the graph.
        knobs: Python values of the knobs at the frame.
        sample: Returns the value of a knob at a fractional frame.
        kept: Where the function keeps what is costly to open.
        of_file: Returns what tells the whole content of a file.
    """

    path: Path
    frame: int
    settings: GraphSettings
    knobs: Mapping[str, Any]
    sample: Callable[[str, float], Any]
    kept: Kept
    of_file: Callable[[Path], Any]


Contents = Callable[[ContentsContext], Any]
"""Says, as plain JSON, what a node reads of a file at a frame: while that is equal, so is what the node makes of it. What it raises
means that the whole file counts."""

Preflight = Callable[[PreflightContext], Mapping[str, Any]]
"""Says what a node will need: {"memory": bytes at its peak, "disk": bytes written per frame, "particles": count,
"warnings": texts to say before the cook, ...}. Whatever else it says is for the nodes downstream. It may raise: the cook does not
begin then."""


@dataclass(frozen=True)
class NodeDeclaration(Declaration):
    """Declaration of a node of the outer graph.

    Attributes:
        category: Where menus put it.
        ports: Inputs, in order of the signature.
        outputs: Outputs; the first one is meant when a wire names the node alone.
        wants_ctx: Time-dependent: takes `ctx: FrameContext`.
        wants_settings: Takes `settings: GraphSettings`.
        previous_type: Sequential: type of `previous: Previous[T]`, else None.
        special: Parameter name of each special argument: {"ctx": ..., "settings": ..., "previous": ..., "kept": ...}.
        preflight: Says what the node will need, None when it says nothing.
        needs_any: Input ports of which one at least must be wired.
        alternatives: Knobs of which one at most may differ from its default.
        contents: By knob that names a file, what of the file counts at a frame; of other files all of them does.
    """

    category: str = ""
    ports: tuple[Port, ...] = ()
    outputs: tuple[Output, ...] = ()
    wants_ctx: bool = False
    wants_settings: bool = False
    previous_type: Any = None
    special: Mapping[str, str] = field(default_factory=dict)
    preflight: Preflight | None = field(default=None, compare=False, repr=False)
    needs_any: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()
    contents: Mapping[str, Contents] = field(default_factory=dict, compare=False, repr=False)

    def port(self, name: str) -> Port | None:
        """Return an input port by name, or None."""
        return next((port for port in self.ports if port.name == name), None)

    def output(self, name: str) -> Output | None:
        """Return an output port by name, or None."""
        return next((output for output in self.outputs if output.name == name), None)

    def unpack(self, result: Any) -> dict[str, Any]:
        """Return what the function returned as values by output port."""
        if len(self.outputs) == 1 and not hasattr(result, "_fields"):
            return {self.outputs[0].name: result}
        return {output.name: getattr(result, output.name) for output in self.outputs}

    def previous_output(self) -> str | None:
        """Return the name of the output that `previous` receives, one frame later."""
        return next((output.name for output in self.outputs if output.type == self.previous_type), None)

    def to_json(self) -> dict[str, Any]:
        """Return the declaration as plain JSON values."""
        return self._common_json() | {
            "category": self.category,
            "ports": [
                {
                    "name": port.name,
                    "type": type_name(port.type),
                    "optional": port.optional,
                    "many": port.many,
                    "doc": port.doc,
                }
                for port in self.ports
            ],
            "outputs": [{"name": output.name, "type": type_name(output.type)} for output in self.outputs],
            "time_dependent": self.wants_ctx,
            "sequential": self.previous_type is not None,
        }


@dataclass(frozen=True)
class StageDeclaration(Declaration):
    """Declaration of a stage of the substep graph.

    Attributes:
        domains: Its ports, in order of the signature.
        arguments: Its positional arguments in order: names of domains, "step" and "memory".
        outputs: Names of the domains that leave it.
        sets: Fields of the step that it sets: ("dt",) or ().
        facts: What it tells.
        limits: What it may limit the time step by.
        removes: Domains of which it may remove elements.
        memory: Type of what it remembers between substeps, or None.
        fragments: What it brings for shared loops, or a function of its knobs that returns it.
        joins: Whether it meets bodies on the nodes, so that copies of them that no body keeps apart are joined before it.
        copies: Whether a grid node may come to it in several copies, whose sum counts, and beside nodes across a periodic side.
        around: Whether it finds all neighbours of a particle beside a periodic side.
        shared: Whether it gives the same on several ranks, though it looks beyond one particle.
        of_materials: Members of materials that it reads, of those that laws do not read themselves.
        passes: Its work besides iterations, in passes over the particles (`costs`).
        moves_bodies: Knobs with which it does not move rigid bodies; None: it never does (`moves_rigid_bodies`).
    """

    domains: tuple[DomainPort, ...] = ()
    arguments: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    facts: tuple[Facts, ...] = ()
    limits: tuple[OfferedLimit, ...] = ()
    removes: tuple[str, ...] = ()
    memory: type | None = None
    fragments: Any = field(default=(), compare=False, repr=False)
    joins: bool = False
    copies: bool = True
    around: bool = True
    shared: bool = False
    of_materials: tuple[str, ...] = ()
    passes: float = 0.1
    moves_bodies: tuple[str, ...] | None = None

    def fragments_for(self, knobs: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return its fragments with these knobs."""
        return tuple(self.fragments(**knobs) if callable(self.fragments) else self.fragments)

    @property
    def wants_step(self) -> bool:
        """Whether it takes the step context."""
        return "step" in self.arguments

    @property
    def is_transparent(self) -> bool:
        """Whether it touches nothing at all, so that only its place in the order counts."""
        return not self.wants_step and self.memory is None and not any(domain.reads or domain.writes for domain in self.domains)

    def domain(self, name: str) -> DomainPort | None:
        """Return a port by name, or None."""
        return next((domain for domain in self.domains if domain.name == name), None)

    def to_json(self) -> dict[str, Any]:
        """Return the declaration as plain JSON values."""
        return self._common_json() | {
            "domains": [{"name": d.name, "reads": list(d.reads), "writes": list(d.writes)} for d in self.domains],
            "outputs": list(self.outputs),
            "wants_step": self.wants_step,
            "sets": list(self.sets),
        }


# ---------------------------------------------------------------- types
def members(hint: Any) -> tuple[Any, ...]:
    """Return the parts of a union, else the type alone."""
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)


def type_name(hint: Any) -> str:
    """Return a type as artists see it: "Particles", "Particles | Emitter"."""
    if len(members(hint)) > 1:
        return " | ".join(type_name(part) for part in members(hint))
    return hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint).replace("typing.", "")


def _is_kind(given: Any, wanted: Any) -> bool:
    if wanted in (Any, object) or given == wanted:
        return True
    return isinstance(given, type) and isinstance(wanted, type) and issubclass(given, wanted)
