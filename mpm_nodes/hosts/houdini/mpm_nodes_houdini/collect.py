"""From wired nodes to a graph as its file holds it."""

from __future__ import annotations

import json
import math
import re

import hou

from . import sources
from .nodes import Network, chosen_output, facts_of
from .values import read_knob

FILE = "mpm_nodes_file"
"""User data: how a node stood in the graph file that it was made from, as JSON."""

UNITS = 100.0
"""Distances in a graph file's editor for one of Houdini's."""


class Collected:
    """A graph, and what is needed to cook it.

    Attributes:
        graph: The graph as plain JSON.
        nodes: Houdini nodes by name in the graph.
        geometry: (name, knob, writer, node, input index) of geometry that must be written to files.
        frames: First and last frame.
    """

    def __init__(self, graph, nodes, geometry, frames):
        self.graph, self.nodes, self.geometry, self.frames = graph, nodes, geometry, frames


def collect(cook):
    """Return the graph that is wired into a cook node.

    Raises:
        hou.NodeError: Nothing is wired in.
    """
    cook_facts = facts_of(cook)
    settings = {knob["name"]: read_knob(cook, knob, (1, 1)) for knob in cook_facts["knobs"]}
    if settings.get("resolution") == 1.0:
        del settings["resolution"]  # as graphs without it are written
    frames = (settings["start"], settings["end"])
    network = Network()
    network.read(cook.inputGeometry(0))
    if not network.wires:
        raise hou.NodeError(f"{cook.name()}: no graph is wired in; wire a Write Cache node into the input")
    found = {node_id: (hou.nodeBySessionId(node_id), facts_of(hou.nodeBySessionId(node_id))) for node_id in network.wires}
    if any(facts is None for _, facts in found.values()):
        raise hou.NodeError(
            f"{cook.name()}: the wires carry nodes of another session or of assets that are gone; unlock what is "
            "locked above, and load the assets"
        )
    outer = {node_id: pair for node_id, pair in found.items() if pair[1]["scope"] in ("graph", "source")}
    names = _names(outer)
    nodes, owners, geometry = {}, {}, []
    for node_id, (node, node_facts) in outer.items():
        wires = network.wires[node_id]
        geometry += [(names[node_id], name, writer, node, index) for name, writer, index in _geometry_inputs(node, node_facts)]
        if node_facts["scope"] == "source":
            made = sources.entries(node, node_facts, names[node_id], sources.streams(node_id, network, found), frames)
            nodes.update({name: {**entry, "position": _position(node, {})} for name, entry in made.items()})
            owners.update(dict.fromkeys(made, node))
            continue
        entry = _entry(node, node_facts, wires, names, found, frames, listed=True)
        _put_substeps(entry, node, node_facts, wires, network, found, cook_facts, frames)
        nodes[names[node_id]] = entry
    form = cook_facts["graph_format"]
    graph = {"format": form["name"], "version": form["version"], "settings": settings, "nodes": nodes}
    kept = _kept(cook)
    if "editor" in kept:
        graph["editor"] = kept["editor"]
    return Collected(graph, {names[node_id]: pair[0] for node_id, pair in outer.items()} | owners, geometry, frames)


def _names(found):
    """Return a name for each node: its own, or what it was called in a graph file; later namesakes get a number."""
    names, taken = {}, set()
    for node_id, (node, _) in found.items():
        wanted = re.sub(r"[^\w-]", "_", node.parm("mpm_id").evalAsString().strip() or node.name())
        wanted = wanted if re.match(r"[^\W\d]", wanted) else "node_" + wanted
        name, number = wanted, 2
        while name in taken:
            name, number = f"{wanted}_{number}", number + 1
        taken.add(name)
        names[node_id] = name
    return names


def _kept(node):
    text = node.userData(FILE)
    return json.loads(text) if text else {}


# ---------------------------------------------------------------- one node
def _entry(node, facts, wires, names, found, frames, listed):
    kept = _kept(node)
    inputs = {}
    for port in facts["inputs"]:
        sources = [_source(end, port, names, found) for end in wires.get(port["name"], ())]
        if port["kind"] == "graph" and sources:
            plain = sources if len(sources) > 1 or (listed and port["many"]) else sources[0]
            before = kept.get("inputs", {}).get(port["name"])
            inputs[port["name"]] = before if before is not None and _same_wires(before, sources, port, found, names) else plain
    entry = {
        "type": facts["id"],
        "version": facts["version"],
        "knobs": {knob["name"]: read_knob(node, knob, frames) for knob in facts["knobs"]},
        "inputs": inputs,
        "bypass": bool(node.parm("mpm_bypass").eval()),
        "position": _position(node, kept),
        "comment": node.comment(),
    }
    if "substeps" in kept:  # a preset without settings may be written in two ways
        for knob in facts["knobs"]:
            if knob["kind"] == "substeps" and entry["knobs"][knob["name"]] == _bare(kept["substeps"]):
                entry["knobs"][knob["name"]] = kept["substeps"]
    return entry | ({"editor": kept["editor"]} if "editor" in kept else {})


def _source(end, port, names, found):
    """Return how a wire is written: the node, with the output's name unless it is the first one or the port's own."""
    facts = found[end][1]
    output = chosen_output(facts, port)
    if facts["scope"] == "source":
        return sources.name_of(names[end], output)
    if end not in names:  # the start of the substep
        return output["name"] if output else port["name"]
    usual = output is None or output == facts["outputs"][0] or facts["scope"] == "substeps"
    return names[end] if usual else f"{names[end]}.{output['name']}"


def _same_wires(before, sources, port, found, names):
    """Return whether the spelling of a file means the wires that are there now."""
    usual = {}
    for end, name in names.items():
        facts = found[end][1]
        output = facts["outputs"][0]["name"] if facts["scope"] == "graph" and facts["outputs"] else port["name"]
        usual[name] = f"{name}.{output}"
    given = before if isinstance(before, list) else [before]
    return [usual.get(text, text) for text in given] == [usual.get(text, text) for text in sources]


def _bare(value):
    return (
        value["preset"] if isinstance(value, dict) and "preset" in value and not (value.get("set") or value.get("edits")) else value
    )


def _position(node, kept):
    at = [float(component) for component in node.position()]
    placed = kept.get("placed")
    if placed is not None and all(math.isclose(a, b, abs_tol=1e-3) for a, b in zip(at, placed, strict=True)):
        return kept["position"]
    return [round(UNITS * at[0], 1), round(-UNITS * at[1], 1)]


def _geometry_inputs(node, facts):
    inputs = node.inputs()
    for index, port in enumerate(facts["inputs"]):
        wired = index < len(inputs) and inputs[index] is not None
        if port["kind"] == "geometry" and (wired or node.parm("mpm_object").evalAsString()):
            yield port["name"], port["writer"], index


# ---------------------------------------------------------------- substep graphs
def _put_substeps(entry, node, facts, wires, network, found, cook_facts, frames):
    """Put the stages that are wired into a solve in the place of its preset."""
    for port in facts["inputs"]:
        ends = wires.get(port["name"], ()) if port["kind"] == "substeps" else ()
        if ends:
            entry["knobs"][port["name"]] = _document(ends, _kept(node), network, found, cook_facts["substeps_format"], frames)


def _document(ends, kept, network, found, form, frames):
    stages = {}
    waiting = list(ends)
    while waiting:
        node_id = waiting.pop()
        if node_id not in stages:
            stages[node_id] = found[node_id]
            waiting += [end for sources in network.wires[node_id].values() for end in sources]
    ordered = {
        node_id: found[node_id] for node_id in network.wires if node_id in stages and found[node_id][1]["id"] != "substep_begin"
    }
    names = _names(ordered)
    nodes = {
        names[node_id]: _entry(node, facts, network.wires[node_id], names, found, frames, listed=False)
        for node_id, (node, facts) in ordered.items()
    }
    return {"format": form["name"], "version": form["version"], **kept.get("substeps_fields", {}), "nodes": nodes}
