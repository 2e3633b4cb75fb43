"""Graphs as documents: build them in Python, load, override and save them. Nothing in a graph file is evaluated.

```python
g = Graph(cell_size=0.02, fps=24, start=1, end=48)
cheese = g.add("material_snow", "cheese", density=400.0)
block = g.add("emit_box", "block", material=cheese, size=(1, 1, 1))
g.add("solve", "sim", sources=[block])
g.key("sim.gravity", 24, (0, 0, 0))
g.save("shot.json")
```
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mpm_nodes.data import GraphSettings, Range
from mpm_nodes.data.suggestions import few_suggestions, nearest
from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.graph.declare.decorators import parse_docstring
from mpm_nodes.graph.declare.knobs import Knob, to_json
from mpm_nodes.graph.declare.registry import Registry
from mpm_nodes.graph.document.editing import Editable
from mpm_nodes.graph.document.entries import FORMAT_VERSION, Entry, check_format, pretty, read_entries, upgrade_entries
from mpm_nodes.graph.document.recipe import SubstepRecipe
from mpm_nodes.graph.document.retired import replace_retired
from mpm_nodes.graph.files import strict_json
from mpm_nodes.graph.files.folder import holds_json, replace_named
from mpm_nodes.graph.files.strict_json import refuse
from mpm_nodes.graph.reports.problems import GraphError, Problem, Problems
from mpm_nodes.graph.time import keys

FORMAT = "mpm_nodes.graph"


_HELP = parse_docstring(GraphSettings.__doc__ or "")[1]
SETTINGS: dict[str, Knob] = {
    knob.name: dataclasses.replace(knob, default=getattr(GraphSettings(), knob.name), doc=_HELP[knob.name])
    for knob in (
        Knob("cell_size", "float", None, "m", Range(min=1e-9, max=1e6)),
        Knob("fps", "float", None, "frames/s", Range(min=1e-3, max=1e5)),
        Knob("start", "int", None, "frames", Range(min=-(10**6), max=10**7)),
        Knob("end", "int", None, "frames", Range(min=-(10**6), max=10**7)),
        Knob("resolution", "float", None, "", Range(min=0.01, max=100.0, soft_min=0.25, soft_max=2.0)),
    )
}


@dataclass(frozen=True)
class Handle:
    """A node of a graph under construction; give it as an input to `Graph.add`. `handle["port"]` picks an output."""

    graph: Graph
    id: str
    port: str = ""

    def __getitem__(self, port: str) -> Handle:
        declaration = self.graph.declaration(self.id)
        if declaration is not None and declaration.output(port) is None:
            refuse(f"{self.id}.{port}", "is not an output", nearest(port, [output.name for output in declaration.outputs]))
        return Handle(self.graph, self.id, port)

    def __str__(self) -> str:
        return f"{self.id}.{self.port}" if self.port else self.id

    @property
    def entry(self) -> Entry:
        """The node in its graph."""
        return self.graph.nodes[self.id]

    @property
    def substeps(self) -> SubstepRecipe:
        """The substep graph of a solve; its edits are written into the node's knob.

        Raises:
            GraphError: The node has no substeps.
        """
        declaration = self.graph.declaration(self.id)
        knob = next((each for each in declaration.knobs if each.kind == "substeps"), None) if declaration else None
        if knob is None:
            refuse(self.id, "has no substeps", "name a solve node")
        name = knob.name

        def changed(value: Any, registry: Registry) -> None:
            self.graph.nodes[self.id].knobs[name] = value
            self.graph._registry = registry

        given = self.entry.knobs.get(name, knob.json_default())
        return SubstepRecipe(given, registry=self.graph.registry, changed=changed)


class Graph(Editable):
    """A graph of nodes with its settings.

    Args:
        settings: Settings of the whole graph; the keyword arguments below replace single ones.
        registry: Nodes that may be used; None takes the shared registry.
        base: Folder that relative input paths are resolved against; the graph file's, else the current one.
        cell_size: Edge of a background grid cell [m].
        fps: Frames per second.
        start: First frame.
        end: Last frame.
        resolution: Factor on the cells along an axis.
    """

    def __init__(
        self,
        settings: GraphSettings | None = None,
        *,
        registry: Registry | None = None,
        base: Path | None = None,
        **changes: Any,
    ) -> None:
        self.settings = settings or GraphSettings()
        self.nodes: dict[str, Entry] = {}
        self.editor: dict[str, Any] | None = None
        self.base = Path(base) if base else Path.cwd()
        self._registry = registry or registries.default()
        for name, value in changes.items():
            self.set(f"settings.{name}", value)

    @property
    def registry(self) -> Registry:
        """The nodes that this graph may use."""
        return self._registry

    def __getitem__(self, name: str) -> Handle:
        if name not in self.nodes:
            refuse(name, "is not a node of this graph", nearest(name, self.nodes))
        return Handle(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.nodes)

    # ------------------------------------------------------------ building
    def add(self, type: Any, id: str | None = None, /, **values: Any) -> Handle:
        """Add a node; keyword arguments are its input ports (handles, or lists of them) and its knobs.

        Args:
            type: Id of the node's declaration, or a function declared with `@node`.
            id: Its name in this graph; made from the type when left out.

        Raises:
            GraphError: When the type, a port or a knob is unknown, or the name is taken.
        """
        return Handle(self, self._add(type, id, values))

    def set(self, place: str, value: Any) -> None:
        """Set "node.knob", "node.substeps.name" (a parameter, or "stage.knob") or "settings.name".

        Raises:
            GraphError: When the place does not exist, or a setting is out of range. `validate` checks other values.
        """
        if place.startswith("settings."):
            self._set_setting(place.removeprefix("settings."), value)
        else:
            owner, name = self._slot(place)
            owner[name] = to_json(value)

    def key(self, place: str, frame: float, value: Any, interpolation: str = "linear") -> None:
        """Add a key to a numeric knob ("sim.gravity"); its interpolation holds from this key to the next."""
        owner, name = self._slot(place)
        owner[name] = keys.with_key(owner.get(name), frame, to_json(value), interpolation)

    def _set_setting(self, name: str, value: Any) -> None:
        knob = SETTINGS.get(name)
        if knob is None:
            refuse(f"settings.{name}", "is not a setting", nearest(name, SETTINGS))
        problem = setting_problem(knob, value)
        if problem is not None:
            raise GraphError([problem])
        self.settings = dataclasses.replace(self.settings, **{name: knob.convert(value)})

    def _slot(self, place: str) -> tuple[MutableMapping[str, Any], str]:
        name, _, rest = place.partition(".")
        if not rest:
            refuse(place, "names no knob", "write NODE.KNOB, or settings.KNOB")
        entry = self[name].entry
        knob_name, _, inner = rest.partition(".")
        declaration = self.declaration(name)
        knob = declaration.knob(knob_name) if declaration else None
        if declaration is not None and knob is None:
            refuse(f"{name}.{knob_name}", "is not a knob", declaration.nearest_knob(knob_name))
        if not inner:
            return entry.knobs, knob_name
        if knob is not None and knob.kind != "substeps":
            refuse(place, f"has no parts: {knob_name} is {knob.allowed()}", f"set {name}.{knob_name}")
        value = entry.knobs.get(knob_name, knob.json_default() if knob else None)
        value = {"preset": value} if isinstance(value, str) else dict(value or {})
        value["set"] = dict(value.get("set", {}))
        entry.knobs[knob_name] = value
        return value["set"], inner

    # ------------------------------------------------------------ files
    def to_json(self) -> dict[str, Any]:
        """Return the graph as it stands in a file: every knob written out, keys in a fixed order."""
        record: dict[str, Any] = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "settings": dataclasses.asdict(self.settings),
        }
        if self.settings.resolution == 1.0:  # as graphs without it are written, and were
            del record["settings"]["resolution"]
        record["nodes"] = {name: entry.to_json(self.declaration(name)) for name, entry in self.nodes.items()}
        return record | ({} if self.editor is None else {"editor": self.editor})

    def save(self, path: str | Path) -> Path:
        """Write the graph file; it appears under its name only when it is complete.

        Raises:
            OutputError: When it cannot be written, or something else than a graph has that name.
        """
        text = pretty(self.to_json()) + "\n"
        return replace_named(path, text.encode(), lambda old: holds_json(old, lambda found: found["format"] == FORMAT))


def load_graph(source: str | Path | Mapping[str, Any], *, registry: Registry | None = None, base: Path | None = None) -> Graph:
    """Load a graph from a file or from the same content as a dict; nodes of older versions are upgraded.

    The nodes' types, knobs and wires are checked by `validate`, not here.

    Raises:
        InputError: When the file cannot be read.
        GraphError: When it is not a graph file; all problems are listed.
    """
    if isinstance(source, Mapping):
        raw, place = _plain(source), "graph"
    else:
        raw, place = strict_json.read(Path(source)), str(source)
        base = base or Path(source).resolve().parent
    problems = Problems()
    graph = Graph(registry=registry, base=base)
    with few_suggestions():
        check_format(raw, place, FORMAT, ("settings", "nodes", "editor"), problems)
        graph.editor = raw.get("editor")
        _read_settings(graph, raw.get("settings", {}), problems)
        entries = read_entries(raw.get("nodes", {}), problems)
        graph.nodes = replace_retired(entries, graph.registry.retired, graph.settings.start, problems)
        upgrade_entries(graph.nodes, graph.registry, problems)
    if problems:
        raise GraphError(problems)
    return graph


def _read_settings(graph: Graph, settings: Any, problems: Problems) -> None:
    if not isinstance(settings, dict):
        problems.add("settings", "is not an object", settings, ", ".join(SETTINGS), "write {}")
        return
    for name, value in settings.items():
        if name not in SETTINGS:
            problems.add(f"settings.{name}", "is not a setting", cure=partial(nearest, name, SETTINGS))
            continue
        problem = setting_problem(SETTINGS[name], value)
        if problem is None:
            graph.set(f"settings.{name}", value)
        else:
            problems.append(problem)


def _plain(source: Mapping[str, Any]) -> Any:
    """Return a deep copy of a graph given as a dict, held to the same rules as a file."""
    try:
        text = json.dumps(source, default=_written)
    except (TypeError, ValueError, RecursionError) as error:
        refuse("graph", f"holds what a graph file cannot ({error})", "use numbers, text, lists and objects")
    return strict_json.parse(text, "graph")


def _written(value: Any) -> Any:
    """Return what JSON does not know as it stands in a file.

    Raises:
        TypeError: A file cannot hold it.
    """
    found = to_json(value)
    if found is value:
        raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")
    return found


def apply_override(graph: Graph, text: str) -> None:
    """Apply one `--set place=value`; the value is JSON, and a bare word is text.

    Raises:
        GraphError: When the text has no "=", the value is broken JSON, or the place does not exist.
    """
    place, equals, value = text.partition("=")
    if not equals or not place.strip():
        refuse(f"--set {text}", "is not an override", "write --set node.knob=value")
    graph.set(place.strip(), override_value(value.strip(), f"--set {place}"))


def override_value(text: str, place: str) -> Any:
    """Return the value of an override's text: JSON where it looks like JSON, else the text itself."""
    looks_like_json = text[:1] in tuple('[{"') or text in ("true", "false", "null", "NaN", "Infinity", "-Infinity")
    if looks_like_json or re.fullmatch(r"-?\d+(\.\d*)?([eE][+-]?\d+)?", text):
        return strict_json.parse(text if not text.endswith(".") else text + "0", place)
    return text


def setting_problem(knob: Knob, value: Any) -> Problem | None:
    """Return what is wrong with the value of a graph setting, or None."""
    if keys.is_keyed(value):
        return Problem(f"settings.{knob.name}", "cannot be keyframed", value, knob.allowed(), "give one value")
    fault = knob.fault(value)
    return None if fault is None else Problem(f"settings.{knob.name}", fault[0], value, fault[1], fault[2])
