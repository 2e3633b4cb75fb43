"""The nodes of a graph or substeps file as they are written: read, upgraded, written back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from mpm_nodes.data.suggestions import nearest
from mpm_nodes.graph.declare.declarations import Declaration
from mpm_nodes.graph.declare.knobs import to_json
from mpm_nodes.graph.declare.registry import Registry
from mpm_nodes.graph.files.strict_json import refuse
from mpm_nodes.graph.reports.problems import Problem, Problems

FORMAT_VERSION = 1
MOST_NODES = 10_000
ID = re.compile(r"[^\W\d][\w-]*")
FIELDS = ("type", "version", "knobs", "inputs", "bypass", "position", "comment", "editor")


@dataclass
class Entry:
    """One node of a graph file, or one stage of a substeps file.

    Attributes:
        type: Id in the registry.
        version: Version of the declaration that knobs and inputs are written for.
        knobs: Raw JSON values by knob.
        inputs: Wires by port: the names of their sources ("node" or "node.port").
        many: Ports whose wires were written as a list.
        bypass: Whether same-named ports pass through instead.
        position: Place in an editor.
        comment: Note of the artist.
        editor: What editors keep here; untouched.
    """

    type: str
    version: int | None = None
    knobs: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, list[str]] = field(default_factory=dict)
    many: set[str] = field(default_factory=set)
    bypass: bool = False
    position: list[float] = field(default_factory=lambda: [0, 0])
    comment: str = ""
    editor: dict[str, Any] | None = None

    def complete(self, declaration: Declaration) -> dict[str, Any]:
        """Return all knob values in the declaration's order, defaults filled in, unknown ones last."""
        return {name: self.knobs.get(name, value) for name, value in declaration.defaults().items()} | self.knobs

    def upgrade(self, declaration: Declaration) -> None:
        """Bring knobs and inputs of an older version to the declared one."""
        version = declaration.version if self.version is None else self.version
        while version < declaration.version:
            if version in declaration.upgrades:
                wires = {port: self.wire(port) for port in self.inputs}
                knobs, inputs = declaration.upgrades[version](dict(self.knobs), wires)
                self.knobs, self.inputs, self.many = dict(knobs), {}, set()
                for port, source in inputs.items():
                    self.connect(port, source)
            version += 1
        self.version = version

    def wire(self, port: str) -> Any:
        """Return a port's wires as a graph file writes them: one name, or a list."""
        sources = self.inputs[port]
        return list(sources) if port in self.many or len(sources) != 1 else sources[0]

    def connect(self, port: str, source: Any) -> None:
        """Wire a port from "node", "node.port", a handle, or a list of these."""
        listed = isinstance(source, (list, tuple))
        self.inputs[port] = [str(item) for item in (source if listed else [source])]
        (self.many.add if listed else self.many.discard)(port)

    def to_json(self, declaration: Declaration | None) -> dict[str, Any]:
        """Return the entry as it stands in a file."""
        ports = [port.name for port in getattr(declaration, "ports", ())]
        order = sorted(self.inputs, key=lambda name: ports.index(name) if name in ports else len(ports))
        record = {
            "type": self.type,
            "version": self.version or 1,
            "knobs": to_json(self.complete(declaration) if declaration else self.knobs),
            "inputs": {port: self.wire(port) for port in order},
            "bypass": self.bypass,
            "position": self.position,
            "comment": self.comment,
        }
        return record | ({} if self.editor is None else {"editor": self.editor})


def check_format(raw: Any, place: str, name: str, fields: tuple[str, ...], problems: Problems) -> None:
    """Check format name, version and field names of a file's content; raise at once when it is another kind of file."""
    if not isinstance(raw, dict) or raw.get("format") != name:
        given = raw.get("format") if isinstance(raw, dict) else None
        refuse(place, f"is not a file of format {name}", f'start it with {{"format": "{name}", "version": 1, ...}}', given)
    version = raw.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= FORMAT_VERSION:
        refuse(
            f"{place}: version" if place else "version",
            "cannot be read by this package",
            "install a newer mpm-nodes",
            version,
            f"1 to {FORMAT_VERSION}",
        )
    for field_name in raw:
        if field_name not in ("format", "version", *fields):
            cure = 'put notes and editor data under "editor"'
            problems.add(field_name, "is not a field of this file", None, ", ".join(fields), cure)


def read_entries(raw: Any, problems: Problems) -> dict[str, Entry]:
    """Return the entries of a file's "nodes"; what is malformed is added to `problems` and left out."""
    if not isinstance(raw, dict) or len(raw) > MOST_NODES:
        problems.append(Problem("nodes", "is not an object of at most 10,000 nodes", None, '{"name": {...}}', "fix it"))
        return {}
    entries = {}
    for name, record in raw.items():
        if _is_sound(name, record, problems):
            entry = Entry(
                record["type"],
                record.get("version"),
                dict(record.get("knobs", {})),
                bypass=record.get("bypass", False),
                position=record.get("position", [0, 0]),
                comment=record.get("comment", ""),
                editor=record.get("editor"),
            )
            for port, source in record.get("inputs", {}).items():
                entry.connect(port, source)
            entries[name] = entry
    return entries


def _is_sound(name: str, record: Any, problems: Problems) -> bool:
    """Return whether the record of an entry has the form of one; what is wrong with it is added to `problems`."""
    found = list(_entry_problems(name, record))
    problems.extend(found)
    if not isinstance(record, dict) or not isinstance(record.get("type"), str):
        return False
    unknown = [key for key in record if key not in FIELDS]
    for key in unknown:
        problems.add(f"{name}.{key}", "is not a field of a node", None, ", ".join(FIELDS), partial(nearest, key, FIELDS))
    inputs = record.get("inputs")
    wrong = [each for each in inputs.items() if not _is_wire(each[1])] if isinstance(inputs, dict) else []
    for port, source in wrong:
        problems.add(f"{name}.{port}", "is not a wire", source, '"node", "node.port" or a list of these', "fix it")
    return not (found or unknown or wrong)


def _is_wire(source: Any) -> bool:
    return all(isinstance(item, str) for item in (source if isinstance(source, list) else [source]))


def _entry_problems(name: str, record: Any) -> Iterator[Problem]:
    if not ID.fullmatch(name):
        yield Problem(
            name or '""',
            "is not a name for a node",
            None,
            "letters, digits, _ and -, not starting with a digit",
            "rename it",
        )
    if not isinstance(record, dict) or not isinstance(record.get("type"), str):
        yield Problem(name, "has no type", None, '{"type": "...", ...}', "name the node's type")
        return
    kinds: dict[str, Any] = {
        "knobs": dict,
        "inputs": dict,
        "bypass": bool,
        "comment": str,
        "editor": dict,
        "position": list,
    }
    for key, kind in kinds.items():
        if key in record and not isinstance(record[key], kind):
            yield Problem(f"{name}.{key}", f"is not of type {kind.__name__}", record[key], "", "fix it")
    position = record.get("position", [0, 0])
    if isinstance(position, list) and (len(position) != 2 or not all(type(x) in (int, float) for x in position)):
        yield Problem(f"{name}.position", "is not a place in an editor", position, "[x, y]", "fix it")
    version = record.get("version", 1)
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        yield Problem(f"{name}.version", "is not a version", version, "a whole number >= 1", "fix it")


def upgrade_entries(entries: Mapping[str, Entry], registry: Registry, problems: Problems) -> None:
    """Upgrade every entry whose type is known; an upgrade that fails becomes a problem."""
    for name, entry in entries.items():
        declaration = registry.find(entry.type)
        if declaration is None:
            continue
        given = entry.version
        try:
            entry.upgrade(declaration)
        except Exception as error:
            problems.append(
                Problem(
                    name,
                    f"cannot be upgraded from version {given} to {declaration.version} ({error})",
                    cure="fix its knobs, or set them again by hand",
                )
            )


def pretty(value: Any, indent: int = 0, width: int = 110) -> str:
    """Return JSON text with short lists and objects on one line."""
    flat = json.dumps(value, ensure_ascii=False, allow_nan=False)
    holds_objects = isinstance(value, dict) and any(isinstance(item, dict) and item for item in value.values())
    if not isinstance(value, (dict, list)) or not value or (len(flat) + indent <= width and not holds_objects):
        return flat
    inner = " " * (indent + 1)
    if isinstance(value, list):
        lines = [inner + pretty(item, indent + 1, width) for item in value]
        return "[\n" + ",\n".join(lines) + "\n" + " " * indent + "]"
    lines = [f"{inner}{json.dumps(key, ensure_ascii=False)}: {pretty(item, indent + 1, width)}" for key, item in value.items()]
    return "{\n" + ",\n".join(lines) + "\n" + " " * indent + "}"
