"""From a graph file to wired nodes."""

from __future__ import annotations

import json

import hou

from .collect import FILE, UNITS
from .nodes import facts_of
from .values import write_knob

FIELDS = ("label", "doc", "parameters", "set", "editor")
"""What a substeps document holds besides format, version and stages."""


def assets_missing(graph):
    """Return whether a graph file names nodes or stages, in versions, that there are no assets of."""
    entries = list(graph["nodes"].values())
    for entry in graph["nodes"].values():
        for value in entry.get("knobs", {}).values():
            if isinstance(value, dict) and isinstance(value.get("nodes"), dict):
                entries += value["nodes"].values()
    return any(_asset(entry) is None for entry in entries)


def _asset(entry):
    """Return the node type of an entry's version, of the newest one where it names none, or None."""
    found = hou.sopNodeTypeCategory().nodeTypes()
    if "version" in entry:
        return found.get(f"mpm_nodes::{entry['type']}::{entry['version']}.0")
    versions = [name for name in found if name.startswith(f"mpm_nodes::{entry['type']}::")]
    return found[max(versions, key=lambda name: float(name.rpartition("::")[2]))] if versions else None


def build(graph, cook):
    """Make the nodes of a graph beside a cook node and wire its ends into it.

    Raises:
        hou.OperationFailed: A node's type is unknown, or a value cannot stand in a parameter.
    """
    parent, facts = cook.parent(), facts_of(cook)
    settings = graph.get("settings", {})
    for knob in facts["knobs"]:
        write_knob(cook, knob, settings.get(knob["name"], knob["default"]))
    made = make_all(parent, graph["nodes"], (0.0, 0.0))
    wire_all(parent, graph["nodes"], made, {})
    for name, entry in graph["nodes"].items():
        for knob in facts_of(made[name])["knobs"]:
            value = entry.get("knobs", {}).get(knob["name"])
            if knob["kind"] == "substeps" and isinstance(value, dict) and "preset" not in value:
                _build_substeps(made[name], knob["name"], value)
    connect(parent, cook, 0, _ends(graph["nodes"], made))
    cook.setUserData(FILE, json.dumps({"editor": graph["editor"]} if "editor" in graph else {}))
    return made


def geometry_input(facts):
    """Return the index of the input that takes geometry of the scene."""
    return next(number for number, port in enumerate(facts["inputs"]) if port["kind"] == "geometry")


def _ends(entries, made):
    """Return the nodes that nothing is wired from."""
    wires = [wire for entry in entries.values() for wire in entry.get("inputs", {}).values()]
    used = {text.partition(".")[0] for wire in wires for text in _listed(wire)}
    return [made[name] for name in entries if name not in used]


def _listed(wire):
    return wire if isinstance(wire, list) else [wire]


def make_all(parent, entries, offset):
    """Make the nodes of a graph or of a substeps document; return them by name."""
    return {name: _make(parent, name, entry, offset) for name, entry in entries.items()}


def _make(parent, name, entry, offset):
    found = _asset(entry)
    if found is None:
        raise hou.OperationFailed(
            f"{name}: there is no asset for {entry['type']}, version {entry.get('version', 'any')}; "
            "write the assets again with mpm-nodes host houdini"
        )
    node = parent.createNode(found.name(), name, exact_type_name=True, force_valid_node_name=True)
    node.parm("mpm_id").set("" if node.name() == name else name)
    node.parm("mpm_bypass").set(int(entry.get("bypass", False)))
    node.setComment(entry.get("comment", ""))
    x, y = entry.get("position", (0, 0))
    node.setPosition(hou.Vector2((x / UNITS + offset[0], -y / UNITS + offset[1])))
    kept = {"inputs": entry.get("inputs", {}), "position": [x, y], "placed": list(node.position())}
    kept.update({"editor": entry["editor"]} if "editor" in entry else {})
    for knob in facts_of(node)["knobs"]:
        if knob["name"] in entry.get("knobs", {}):
            value = entry["knobs"][knob["name"]]
            write_knob(node, knob, value)
            if knob["kind"] == "substeps":
                whole = isinstance(value, dict) and "preset" not in value
                kept["substeps_fields" if whole else "substeps"] = {k: value[k] for k in FIELDS if k in value} if whole else value
    node.setUserData(FILE, json.dumps(kept))
    return node


def wire_all(parent, entries, made, outside):
    """Wire nodes as their entries say; `outside` holds nodes for names that are not entries."""
    for name, entry in entries.items():
        ports = [port["name"] for port in facts_of(made[name])["inputs"]]
        for port, wire in entry.get("inputs", {}).items():
            sources = [made.get(text.partition(".")[0], outside.get(text)) for text in _listed(wire)]
            if port not in ports or None in sources:
                raise hou.OperationFailed(f"{name}.{port}: cannot be wired from {wire}; check the graph with mpm-nodes validate")
            connect(parent, made[name], ports.index(port), sources)


def connect(parent, node, index, sources):
    """Wire one node into an input, or several through a Merge."""
    if len(sources) == 1:
        node.setInput(index, sources[0])
    elif sources:
        merge = parent.createNode("merge", f"{node.name()}_merge")
        for number, source in enumerate(sources):
            merge.setInput(number, source)
        merge.setPosition(hou.Vector2((node.position()[0] - 0.5, node.position()[1] + 0.7)))
        node.setInput(index, merge)


def unfold(solve, port, document):
    """Make the stages of a substeps document and wire them into a solve, as if it had been in a graph file."""
    _build_substeps(solve, port, document)
    kept = json.loads(solve.userData(FILE) or "{}")
    kept.pop("substeps", None)
    kept["substeps_fields"] = {name: document[name] for name in FIELDS if name in document}
    solve.setUserData(FILE, json.dumps(kept))


def _build_substeps(solve, port, document):
    """Make the stages of a substeps document inside one subnet beside the solve, and wire that into it."""
    x, y = solve.position()
    inside = solve.parent().createNode("subnet", f"{solve.name()}_stages")
    inside.setPosition(hou.Vector2((x - 2.0, y + 1.0)))
    entries = document["nodes"]
    made = make_all(inside, entries, (0.0, 0.0))
    begin = inside.createNode("mpm_nodes::substep_begin::1.0", "substep_begin", exact_type_name=True)
    begin.setPosition(hou.Vector2((-2.0, 1.0)))
    outside = {output["name"]: begin for output in facts_of(begin)["outputs"]}
    wire_all(inside, entries, made, outside)
    end = inside.createNode("output", "output0")
    last = max(node.position()[0] for node in made.values()) if made else 0.0
    end.setPosition(hou.Vector2((last + 2.0, -2.0)))
    connect(inside, end, 0, _ends(entries, made))
    index = [each["name"] for each in facts_of(solve)["inputs"]].index(port)
    solve.setInput(index, inside)


def add_stage(begin):
    """Make the stage that is chosen on a Substep Begin node beside it: stages are not in the TAB menu."""
    kind = begin.parm("mpm_stage").evalAsString()
    found = _asset({"type": kind})
    if found is None:
        raise hou.OperationFailed(
            f"{begin.name()}: there is no asset for {kind}; write the assets again with mpm-nodes host houdini"
        )
    node = begin.parent().createNode(found.name(), kind, exact_type_name=True)
    x, y = begin.position()
    node.setPosition(hou.Vector2((x + 2.0, y - 1.0)))
    return node
