"""A JSON Schema (draft 2020-12) of graph files, for editors that complete and check what is typed, and for pipelines.

It knows every node, port and knob with its range, unit and help. What it cannot say (which types of wires fit, circles, what
presets take) `mpm-nodes validate` does. Nodes of older versions are upgraded as they are loaded, and may not fit it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.graph.declare.declarations import NodeDeclaration
from mpm_nodes.graph.declare.knobs import Knob
from mpm_nodes.graph.declare.registry import Registry
from mpm_nodes.graph.document import document, entries, substep_document
from mpm_nodes.graph.time import keys

__all__ = ["graph_schema"]

NAME = r"^[^\W\d][\w-]*$"
OF_TYPE = "type-"
"""Before the name of a node in the schema's definitions: one of a user may be called "node" or "wire"."""
WIRE = r"^[^\W\d][\w-]*(\.\w+)?$"


def graph_schema(registry: Registry | None = None) -> dict[str, Any]:
    """Return the schema of graph files as plain JSON values.

    Args:
        registry: Nodes that graphs may use; None takes the shared one, with the nodes of the user.
    """
    nodes = (registry or registries.default()).nodes()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "mpm_nodes graph",
        "type": "object",
        "required": ["format", "version", "nodes"],
        "additionalProperties": False,
        "properties": {
            "format": {"const": document.FORMAT},
            "version": {"type": "integer", "minimum": 1, "maximum": entries.FORMAT_VERSION},
            "settings": _record(document.SETTINGS.values(), keyed=False),
            "nodes": {
                "type": "object",
                "maxProperties": entries.MOST_NODES,
                "propertyNames": {"pattern": NAME},
                "additionalProperties": {"$ref": "#/$defs/node"},
            },
            "editor": {"type": "object"},
        },
        "$defs": {
            "wire": {"type": "string", "pattern": WIRE, "description": 'A node, or one of its outputs: "node.output".'},
            "wires": {"anyOf": [{"$ref": "#/$defs/wire"}, {"type": "array", "items": {"$ref": "#/$defs/wire"}}]},
            "substeps": _substeps(),
            "node": {
                "type": "object",
                "required": ["type"],
                "additionalProperties": False,
                "properties": {
                    "type": {"enum": list(nodes)},
                    "version": {"type": "integer", "minimum": 1},
                    "knobs": {"type": "object"},
                    "inputs": {"type": "object"},
                    "bypass": {"type": "boolean"},
                    "position": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
                    "comment": {"type": "string"},
                    "editor": {"type": "object"},
                },
                "allOf": [
                    {"if": {"properties": {"type": {"const": name}}}, "then": {"$ref": f"#/$defs/{OF_TYPE}{name}"}}
                    for name in nodes
                ],
            },
            **{OF_TYPE + name: _node(declaration) for name, declaration in nodes.items()},
        },
    }


def _node(declaration: NodeDeclaration) -> dict[str, Any]:
    ports = {port.name: {"$ref": "#/$defs/wires"} | ({"description": port.doc} if port.doc else {}) for port in declaration.ports}
    needs_knobs = any(knob.required for knob in declaration.knobs)
    return {
        "title": declaration.label,
        "description": declaration.doc,
        **({"required": ["knobs"]} if needs_knobs else {}),
        "properties": {
            "knobs": _record(declaration.knobs),
            "inputs": {"type": "object", "additionalProperties": False, "properties": ports},
        },
    }


def _record(knobs: Iterable[Knob], keyed: bool = True) -> dict[str, Any]:
    found = list(knobs)
    required = [knob.name for knob in found if knob.required]
    properties = {knob.name: _knob(knob, keyed) for knob in found}
    record = {"type": "object", "additionalProperties": False, "properties": properties}
    return record | {"required": required} if required else record


def _knob(knob: Knob, keyed: bool) -> dict[str, Any]:
    value = _value(knob)
    forms = [value]
    if keyed and knob.animatable:
        modes = {"enum": ["step"] if knob.steps else list(keys.INTERPOLATIONS)}
        row = {"type": "array", "prefixItems": [{"type": "number"}, value, modes], "minItems": 3, "maxItems": 3}
        listed = {"type": "array", "items": row, "minItems": 1}
        forms.append({"type": "object", "required": ["keys"], "additionalProperties": False, "properties": {"keys": listed}})
    if knob.optional or (knob.kind in ("path", "output_path") and not knob.required):
        forms.append({"type": "null"})
    shape: dict[str, Any] = dict(value) if len(forms) == 1 else {"anyOf": forms}
    shape["description"] = f"{knob.doc} [{knob.unit}]" if knob.unit else knob.doc
    return shape if knob.required else shape | {"default": knob.json_default()}


def _value(knob: Knob) -> dict[str, Any]:
    """Return the schema of one value of a knob, without keys."""
    whole = knob.kind == "int" or (knob.kind == "vector" and knob.element is int)
    number = {"type": "integer" if whole else "number"} | _limits(knob)
    pair = {"type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}], "minItems": 2, "maxItems": 2}
    shapes: dict[str, dict[str, Any]] = {
        "bool": {"type": "boolean"},
        "int": number,
        "float": number,
        "str": {"type": "string"},
        "path": {"type": "string"},
        "output_path": {"type": "string"},
        "enum": {"enum": list(knob.choices)},
        "strings": {"type": "array", "items": {"type": "string"}},
        "table": {"type": "array", "items": pair},
        "vector": {"type": "array", "items": number, "minItems": knob.size, "maxItems": knob.size},
        "substeps": {"$ref": "#/$defs/substeps"},
    }
    return shapes[knob.kind]


def _limits(knob: Knob) -> dict[str, float]:
    limits = knob.range
    if limits is None:
        return {}
    low = {} if limits.min is None else {"exclusiveMinimum" if limits.exclusive_min else "minimum": limits.min}
    return low | ({} if limits.max is None else {"maximum": limits.max})


def _substeps() -> dict[str, Any]:
    """Return the schema of a `substeps` knob: a preset's name, a changed preset, or a document of its own."""
    edits = {"type": "array", "items": {"type": "object"}}
    changed = {
        "type": "object",
        "required": ["preset"],
        "additionalProperties": False,
        "properties": {"preset": {"type": "string"}, "set": {"type": "object"}, "edits": edits},
    }
    own = {"type": "object", "required": ["format"], "properties": {"format": {"const": substep_document.FORMAT}}}
    return {"anyOf": [{"type": "string"}, changed, own]}
