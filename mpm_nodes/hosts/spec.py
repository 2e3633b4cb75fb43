"""The registry as plain JSON: all that an artist's program needs to offer the nodes, wire them and start a cook.

Written by a process that has this package; read by hosts that have neither numba nor pxr nor this package. Every list is in a
fixed order, so that what is generated from the specification differs only where the registry does.

```
format, version, package_version        what this is ("mpm_nodes.host_spec", 1)
graph_format, substeps_format           name, version and field lists of the files that a host writes
name_pattern, reserved_names            what a node may be called in a graph file; names a stage may not have
interpolations                          of keys: {"keys": [[frame, value, interpolation], ...]}
settings                                knobs of the whole graph: cell_size, fps, start, end
types                                   what wires carry: id, label, doc, colour (RGB, 0 to 1, sRGB), scope "graph" or "substeps"
nodes                                   id, label, version, category, doc, builtin, inputs, outputs, knobs, time_dependent,
                                        sequential; words: what artists call it as well, where there are some
stages                                  the same for substep graphs; inputs say what is read and written; `sets` is ["dt"] or []
categories                              groups of nodes and stages: name, colour; in the order of menus
presets                                 name, label, doc and the whole document of every substep graph that ships; `parameters`
                                        are its settings as knobs, `candidates` names those that a preset without stages
                                        chooses from while it runs
materials                               the entries of the node material_library with their numbers
attributes                              particle attributes: name, doc, unit, shape, usd, houdini
cook                                    command lines, exit codes and event kinds of the program, words of its messages
```

An input has name, label, type (an id of `types`, or several joined by " | "), accepts (ids of the types that may be wired to it),
optional, many, doc. An output has name, label, type, and internal (not for wires; do not show it). A knob has name, label, kind,
default, required, unit, range (min, max, soft_min, soft_max, log, exclusive_min; null where it is not a number), doc, choices, menu
(value, label), size, optional (may be null), keyable (may hold a key list), file (mode, patterns; or null), and of nodes advanced
(how it is computed: fold it away). Vectors have element ("float" or "int"), axes ("signed", "extent", "quaternion" or "") and
corner (knob of the opposite corner of a box, or "").

Kinds of knobs: "bool", "int", "float", "str", "enum" (see menu), "path" (a file to read), "output_path" (relative, below the output
folder), "vector" (`size` components), "strings" (a list of text), "table" (rows [temperature, value] by
increasing temperature: a curve), "substeps" (a preset's name, {"preset": name, "set": {...}, "edits": [...]}, or a whole substeps
document).
"""

from __future__ import annotations

import colorsys
import dataclasses
import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

import mpm_nodes
from mpm_nodes.data import ATTRIBUTES, Domain, all_domains, domain_names
from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.graph.declare.declarations import NodeDeclaration, Output, Port, StageDeclaration, members, type_name
from mpm_nodes.graph.declare.knobs import NUMERIC, Knob
from mpm_nodes.graph.declare.registry import Registry
from mpm_nodes.graph.document import document, entries, substep_document
from mpm_nodes.graph.files import strict_json
from mpm_nodes.graph.time import keys
from mpm_nodes.hosts.sliders import slider_range
from mpm_nodes.hosts.words import ADVANCED, LABELS, label_of, title
from mpm_nodes.materials.library import LIBRARY

__all__ = ["FORMAT", "FORMAT_VERSION", "host_spec"]

FORMAT = "mpm_nodes.host_spec"
FORMAT_VERSION = 1

STAGES = "Substep Stages"
"""Category of all stages."""

COLOURS: dict[str, tuple[float, float, float]] = {
    "Particles": (0.36, 0.62, 0.90),
    "Emitter": (0.38, 0.80, 0.82),
    "Material": (0.93, 0.62, 0.27),
    "Collider": (0.62, 0.62, 0.64),
    "Ambient": (0.88, 0.46, 0.40),
    "SpatialField": (0.55, 0.58, 0.90),
    "BodyForce": (0.94, 0.72, 0.50),
    "Drain": (0.72, 0.62, 0.50),
    "AttributeUpdate": (0.80, 0.66, 0.74),
    "ActiveMask": (0.66, 0.72, 0.86),
    "LevelSet": (0.66, 0.48, 0.86),
    "Mesh": (0.42, 0.78, 0.45),
    "CacheFrame": (0.90, 0.82, 0.36),
    "str": (0.86, 0.70, 0.58),
}
"""Colours of wires by type; types of users' nodes get one made from their name."""

CATEGORIES: dict[str, tuple[float, float, float]] = {
    "Material": (0.47, 0.33, 0.18),
    "Emit": (0.20, 0.33, 0.47),
    "Collide": (0.34, 0.34, 0.36),
    "Field": (0.28, 0.28, 0.48),
    "Force": (0.48, 0.34, 0.22),
    "Solve": (0.45, 0.20, 0.22),
    "Surface": (0.22, 0.40, 0.25),
    "Cache": (0.43, 0.39, 0.17),
    "Substep Stages": (0.35, 0.26, 0.45),
}
"""Colours of nodes by category; categories of users' nodes get one made from their name."""

FILE_PATTERNS: dict[str, tuple[str, ...]] = {
    "usd": ("*.usd", "*.usda", "*.usdc", "*.usdz"),
    "vdb": ("*.vdb",),
}
"""What file choosers show for a path whose help, or whose node's help, names the format."""

EXIT_CODES: dict[int, tuple[str, str]] = {
    0: ("done", "All frames are cooked."),
    1: ("defect", "A defect of the program or of a node; report it with the text on stderr."),
    2: ("invalid", "The graph or the arguments are invalid; every problem is listed on stderr."),
    3: ("cancelled", "Stopped on request; the frames before are whole, and a resumed cook goes on after them."),
    4: ("diverged", "The solve left the stable range; the frames before are whole."),
    5: ("files", "A file cannot be read or written."),
}

WORDING: tuple[tuple[str, str], ...] = (
    ("cook again without --resume, or from a frame on with --again-from", "again"),
    ("cook again without --resume", "cook"),
    ("cook without --resume", "cook"),
    ("continue with --resume", "resume"),
    (" with --out", "folder"),
    (" with --frames", "frames"),
    ("--frames ", "asked"),
    (" (--max-substeps)", "limit"),
    (" (mpm-nodes cook GRAPH --out DIR)", "start"),
    ("; run again with --debug and report it", "report"),
    (", --debug shows where", "report"),
)
"""Words of messages that speak of the command line, and what they ask for: a host puts its own words in their place, in this order.

cook: begin again; again: begin again, or at a frame; resume: go on; folder: after "choose another folder"; frames: after "cook
fewer"; asked: before the numbers of frames that were asked for; limit: after the most substeps; start: after "cook the graph";
report: after what went wrong.
"""

EVENTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "plan": ("The cook begins.", ("frames", "nodes", "out", "done")),
    "estimate": (
        "Bytes that the cook is expected to take; `unknown`: nodes that are not in it.",
        ("memory", "disk", "unknown"),
    ),
    "frame_start": ("A frame begins.", ("frame", "last")),
    "node": ("A node has been evaluated.", ("node", "frame", "seconds")),
    "substep": ("A substep is done; at most ten a second.", ("frame", "substep", "dt", "particles")),
    "pace": ("How far a long frame has come; every ten seconds.", ("frame", "substeps_expected", "share", "seconds_left")),
    "stages": ("Seconds of each stage in a frame of a solve.", ("frame", "seconds", "stages")),
    "choice": (
        "Which candidate a solve with several goes on with; cost: work for a simulated second, by name.",
        ("frame", "chosen", "dt", "cost"),
    ),
    "inside_collider": ("Particles are inside a collider.", ("frame", "collider", "particles", "depth")),
    "frame_done": (
        "A frame is committed; its files are whole.",
        ("frame", "seconds", "seconds_left", "particles", "substeps", "dt_min"),
    ),
    "wrote": ("A file of a committed frame.", ("frame", "path")),
    "warning": ("Something that the artist should see.", ("message", "where")),
    "note": ("Something worth knowing.", ("message",)),
    "compiling": ("Kernels are being compiled; every 1.5 seconds.", ("message", "kernel", "compiled", "total", "seconds")),
    "done": ("The cook is over; `out` is the revision folder.", ("frames", "seconds", "out")),
    "cancelled": ("The cook was stopped.", ("message",)),
    "error": ("The cook failed.", ("message", "exit_code")),
}
"""Kinds of events with their help and their facts, beside those that stages declare.

Every event has "event" (the kind) and "time" (Unix seconds) as well.
"""


def host_spec(registry: Registry | None = None) -> dict[str, Any]:
    """Return the specification as plain JSON values.

    Args:
        registry: What to describe; None takes the shared one, with the nodes of the user.
    """
    registry = registry or registries.default()
    nodes, stages = registry.nodes(), registry.stages()  # stages may bring domains along
    offered = _types_of(nodes.values())
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "package_version": mpm_nodes.__version__,
        "graph_format": {"name": document.FORMAT, "version": entries.FORMAT_VERSION, "node_fields": list(entries.FIELDS)},
        "substeps_format": {
            "name": substep_document.FORMAT,
            "version": entries.FORMAT_VERSION,
            "node_fields": list(entries.FIELDS),
        },
        "name_pattern": entries.ID.pattern,
        "reserved_names": list(domain_names()),
        "interpolations": list(keys.INTERPOLATIONS),
        "settings": [_knob(knob) for knob in document.SETTINGS.values()],
        "types": [
            *(_type(name, hint) for name, hint in sorted(offered.items())),
            *map(_domain_type, all_domains()),
        ],
        "nodes": [_node(declaration, offered) for declaration in nodes.values()],
        "stages": [_stage(declaration) for declaration in stages.values()],
        "categories": _categories([*nodes.values()]),
        "presets": _presets(registry),
        "materials": [{"name": name, **dataclasses.asdict(entry)} for name, entry in LIBRARY.items()],
        "attributes": [
            {"name": a.name, "doc": a.doc, "unit": a.unit, "shape": list(a.shape), "usd": a.usd, "houdini": a.houdini}
            for a in ATTRIBUTES.values()
        ],
        "cook": _cook(stages.values()),
    }


# ---------------------------------------------------------------- types
def _types_of(nodes: Iterable[NodeDeclaration]) -> dict[str, Any]:
    """Return every type that a wire of the outer graph may carry, by name."""
    found = {}
    for declaration in nodes:
        for hint in (*(port.type for port in declaration.ports), *(output.type for output in declaration.outputs)):
            found.update({type_name(part): part for part in members(hint)})
    return found


def _type(name: str, hint: Any) -> dict[str, Any]:
    doc = "Text." if hint is str else (getattr(hint, "__doc__", None) or "").strip().split("\n")[0]
    label = "Text" if hint is str else _spaced(name)
    return {"id": name, "label": label, "doc": doc, "colour": list(_colour(name)), "scope": "graph"}


def _domain_type(domain: Domain) -> dict[str, Any]:
    label = f"{domain.label} of the Substep"
    doc = f"The solve's {domain.name}, changed in place; a wire says only what comes before what."
    return {"id": f"domain_{domain.name}", "label": label, "doc": doc, "colour": list(domain.colour), "scope": "substeps"}


def _colour(name: str) -> tuple[float, float, float]:
    return COLOURS[name] if name in COLOURS else _own_colour(name, 0.8)


def _own_colour(name: str, value: float) -> tuple[float, float, float]:
    """Return a colour made from a name, with a brightness from 0 to 1."""
    hue = hashlib.sha256(name.encode()).digest()[0] / 256.0
    red, green, blue = (round(part, 3) for part in colorsys.hsv_to_rgb(hue, 0.5, value))
    return red, green, blue


def _categories(nodes: Iterable[NodeDeclaration]) -> list[dict[str, Any]]:
    names = dict.fromkeys((*(declaration.category for declaration in nodes), STAGES))
    return [{"name": name, "colour": list(CATEGORIES.get(name) or _own_colour(name, 0.42))} for name in names]


# ---------------------------------------------------------------- nodes and stages
def _node(declaration: NodeDeclaration, offered: Mapping[str, Any]) -> dict[str, Any]:
    return _common(declaration) | {
        "category": declaration.category,
        "inputs": [_input(port, offered) for port in declaration.ports],
        "outputs": [_output(output, declaration) for output in declaration.outputs],
        "knobs": [_knob(knob, declaration.doc) | {"advanced": knob.name in ADVANCED} for knob in declaration.knobs],
        "time_dependent": declaration.wants_ctx,
        "sequential": declaration.previous_type is not None,
    }


def _stage(declaration: StageDeclaration) -> dict[str, Any]:
    inputs = []
    for domain in declaration.domains:
        kind = f"domain_{domain.name}"
        doc = f"Reads {_listed(domain.reads)}; writes {_listed(domain.writes)}."
        inputs.append(
            {
                "name": domain.name,
                "label": title(domain.name),
                "type": kind,
                "accepts": [kind],
                "optional": False,
                "many": True,
                "doc": doc,
                "reads": list(domain.reads),
                "writes": list(domain.writes),
            }
        )
    outputs = [{"name": name, "label": title(name), "type": f"domain_{name}", "internal": False} for name in declaration.outputs]
    return _common(declaration) | {
        "category": STAGES,
        "inputs": inputs,
        "outputs": outputs,
        "knobs": [_knob(knob, declaration.doc) for knob in declaration.knobs],
        "sets": list(declaration.sets),
        "reads_step": declaration.wants_step,
    }


def _common(declaration: NodeDeclaration | StageDeclaration) -> dict[str, Any]:
    return {
        "id": declaration.id,
        "label": declaration.label,
        "version": declaration.version,
        "doc": declaration.doc,
        "builtin": declaration.is_builtin,
    } | ({"words": list(declaration.words)} if declaration.words else {})


def _input(port: Port, offered: Mapping[str, Any]) -> dict[str, Any]:
    accepts = [name for name, hint in sorted(offered.items()) if port.accepts(hint)]
    return {
        "name": port.name,
        "label": title(port.name),
        "type": type_name(port.type),
        "accepts": accepts,
        "optional": port.optional,
        "many": port.many,
        "doc": port.doc,
    }


def _output(output: Output, declaration: NodeDeclaration) -> dict[str, Any]:
    return {
        "name": output.name,
        "label": title(output.name),
        "type": type_name(output.type),
        "internal": declaration.previous_type is not None and output.type == declaration.previous_type,
    }


def _knob(knob: Knob, about: str = "") -> dict[str, Any]:
    """Return a knob; `about` is the help of its owner, where a path's format may be named."""
    record = knob.to_json()
    record["label"] = label_of(knob.name)
    if knob.name in LABELS:
        term = f"{LABELS[knob.name][1]}, {knob.unit}" if knob.unit else LABELS[knob.name][1]
        record["doc"] = f"{term}. {knob.doc.replace(f' [{knob.unit}]', '')}"
    record["range"] = slider_range(record, None if knob.range is None else vars(knob.range))
    record["keyable"] = record.pop("animatable") and knob.kind in NUMERIC  # hosts have curves of numbers
    record["menu"] = [{"value": choice, "label": title(str(choice))} for choice in knob.choices]
    record["file"] = None
    if knob.kind in ("path", "output_path"):
        words = set(re.findall(r"\w+", (knob.doc + " " + about).lower()))
        patterns = [pattern for name, some in FILE_PATTERNS.items() if name in words for pattern in some]
        record["file"] = {"mode": "read" if knob.kind == "path" else "write", "patterns": patterns if knob.kind == "path" else []}
    return record


def _spaced(name: str) -> str:
    """Return a type's name as a label: "LevelSet" becomes "Level Set"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "nothing"


# ---------------------------------------------------------------- presets and the program
def _presets(registry: Registry) -> list[dict[str, Any]]:
    files = {name: strict_json.read(path) for name, path in sorted(registry.presets.items())}
    return [
        {
            "name": name,
            "label": file.get("label", ""),
            "doc": file.get("doc", ""),
            "document": file,
            "parameters": _parameters(file, registry),
            "candidates": list(file.get("candidates", [])),
        }
        for name, file in files.items()
    ]


def _parameters(file: Mapping[str, Any], registry: Registry) -> list[dict[str, Any]]:
    """Return the parameters of a substeps document as knobs: what they are of the first stage that they set."""
    found = []
    for name, places in file.get("parameters", {}).items():
        stage, _, knob_name = places[0].partition(".")
        entry = file["nodes"][stage]
        declaration = registry.stages()[entry["type"]]
        knob = next(knob for knob in declaration.knobs if knob.name == knob_name)
        record = _knob(knob, declaration.doc)
        default = file.get("set", {}).get(name, entry.get("knobs", {}).get(knob_name, record["default"]))
        found.append({**record, "name": name, "label": label_of(name), "default": default, "keyable": False})
    return found


def events_of(stages: Iterable[StageDeclaration]) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return all kinds of events with their help and their facts: those of the program, and those that stages declare."""
    found = dict(EVENTS)
    for group in dict.fromkeys(group for declaration in stages for group in declaration.facts):
        names = tuple(fact.name for fact in group.facts)
        if not group.per_substep:
            found[group.event] = (group.doc, ("frame", *names))
            continue
        for kind in ("substep", "frame_done"):
            doc, known = found[kind]
            found[kind] = (doc, tuple(dict.fromkeys((*known, *names))))
    return found


def _cook(stages: Iterable[StageDeclaration]) -> dict[str, Any]:
    """Return how the program is called: argument lists with {placeholders}, exit codes, event kinds."""
    return {
        "program": "mpm-nodes",
        "module": "mpm_nodes.cli",
        "check_environment": ["--version"],
        "validate": ["validate", "{graph}", "--json"],
        "needs": ["validate", "{graph}", "--json", "--needs"],
        "upgrade": ["upgrade", "{graph}"],
        "check": ["check", "{cache}", "--json"],
        "free": ["clean", "{cache}", "--yes"],
        "cook": ["cook", "{graph}", "--out", "{out}", "--events", "jsonl"],
        "frames": ["--frames", "{first}-{last}"],
        "resume": ["--resume"],
        "resolution": ["--resolution", "{resolution:g}"],
        "to": ["--to", "{node}"],
        "farm": ["farm", "{graph}", "--out", "{out}"],
        "wedge": ["--wedge", "{wedge}"],
        "again": ["--again-from", "{frame}", "--of", "{revision}"],
        "cancel": {"signal": "SIGTERM", "doc": "Stops after the substep; the second one stops at once. Whole frames stay."},
        "wording": [{"says": says, "action": action} for says, action in WORDING],
        "exit_codes": [{"code": code, "name": name, "doc": doc} for code, (name, doc) in EXIT_CODES.items()],
        "events": [{"kind": kind, "doc": doc, "facts": list(facts)} for kind, (doc, facts) in events_of(stages).items()],
    }
