"""The cook of every asset: read the graph that comes in, check the wires, add this node, pass it on.

What flows is geometry with one point for each node above. Its point attributes say which node it is (`mpm_node`, Houdini's
session id), what is wired into it (`mpm_wires`, JSON: session ids by port) and whether the wire carries its result (`mpm_end`).
Houdini's own Merge thus joins graphs, and Null, Switch and Object Merge pass them on.
"""

from __future__ import annotations

import json

import hou

from . import guides
from .points import read_points

PROBLEM = "mpm_nodes_problem"
"""User data of a node that the last check or cook complained about; shown as a warning on it."""

ATTRIBUTES = ("mpm_node", "mpm_wires", "mpm_end")


class Network:
    """Nodes by session id with their wires, upstream ones first, and the ids whose results a wire carries."""

    def __init__(self):
        self.wires = {}
        self.ends = []

    def add(self, node_id, wires, end):
        """Add a node; one that is known is not added again."""
        self.wires.setdefault(node_id, wires)
        if end and node_id not in self.ends:
            self.ends.append(node_id)

    def read(self, geometry):
        """Add what a geometry carries and return the ids of its ends, in order."""
        if geometry is None or geometry.findPointAttrib("mpm_node") is None:
            return []
        columns = [geometry.pointStringAttribValues(name) for name in ATTRIBUTES]
        ends = []
        for node_id, wires, end in zip(*columns, strict=True):
            self.add(int(node_id), json.loads(wires), False)
            if end == "1" and int(node_id) not in ends:
                ends.append(int(node_id))
        return ends

    def write(self, geometry):
        """Write all nodes as points."""
        geometry.clear()
        points = geometry.createPoints(tuple(_place(hou.nodeBySessionId(node_id)) for node_id in self.wires))
        rows = [(str(node_id), json.dumps(wires), "1" if node_id in self.ends else "0") for node_id, wires in self.wires.items()]
        columns = list(zip(*rows, strict=True)) if points else [(), (), ()]
        for name, values in zip(ATTRIBUTES, columns, strict=True):
            if geometry.findPointAttrib(name) is None:
                geometry.addAttrib(hou.attribType.Point, name, "", False, False)
            geometry.setPointStringAttribValues(name, values)


def facts_of(node):
    """Return what the asset's NodeSpec section says of a node, or None when it is not an asset of ours."""
    definition = node.type().definition() if node is not None else None
    section = definition.sections().get("NodeSpec") if definition is not None else None
    return json.loads(section.contents()) if section is not None else None


def chosen_output(facts, port):
    """Return the first output of a node that a port takes, or None."""
    return next((output for output in facts["outputs"] if output["type"] in port["accepts"]), None)


def put(node, name, value):
    """Set a parameter of one of Houdini's own nodes.

    Raises:
        hou.OperationFailed: This Houdini's node has no such parameter.
    """
    parm = node.parm(name)
    if parm is None:
        raise hou.OperationFailed(
            f"{node.path()}: {node.type().name()} has no parameter {name} in this Houdini; set the path "
            "by hand, and report it as docs/houdini.md says"
        )
    parm.deleteAllKeyframes()
    parm.set(value)


def cook_node(node):
    """Cook an asset: pass the network on with this node added. Called by the PythonCook section."""
    facts = facts_of(node)
    if facts["scope"] == "points":
        read_points(node)
        return
    network, wires, problems = Network(), {}, []
    inputs = node.inputs()
    for index, port in enumerate(facts["inputs"]):
        if index >= len(inputs) or inputs[index] is None or port["kind"] == "geometry":
            continue
        ends = network.read(node.inputGeometry(index))
        wires[port["name"]] = ends
        problems += _wire_problems(port, ends, inputs[index])
    if facts["scope"] == "cook":
        network.ends = wires.get("graph", [])
    elif facts["scope"] == "guides":
        above = map(hou.nodeBySessionId, network.wires)
        guides.draw(node.geometry(), [(each, facts_of(each)) for each in above])
        return
    else:
        network.add(node.sessionId(), wires, True)
    network.write(node.geometry())
    if problems:
        raise hou.NodeError("\n".join(problems))
    if node.userData(PROBLEM):
        raise hou.NodeWarning(node.userData(PROBLEM))


def _wire_problems(port, ends, source):
    label = port["label"].split(" (")[0]
    if not ends:
        yield f"{label}: {source.name()} carries no MPM node; wire one of MPM Nodes here"
    if len(ends) > 1 and not port["many"]:
        yield f"{label}: takes one node, {len(ends)} come in; wire a single one"
    for end in ends:
        other = hou.nodeBySessionId(end)
        facts = facts_of(other)
        if facts is not None and chosen_output(facts, port) is None:
            given = " or ".join(output["type"] for output in facts["outputs"]) or "nothing"
            yield f"{label}: takes {' or '.join(port['accepts'])}, {other.name()} gives {given}; wire another node"


def _place(node):
    """Return where a node's body stands, so that its point lies there in the viewport."""
    parms = node.parmTuple("centre") if node is not None else None
    return tuple(float(value) for value in parms.eval()) if parms is not None and len(parms) == 3 else (0.0, 0.0, 0.0)


def node_created(node):
    """Give a new node the colour of what it passes on. Called by the OnCreated section."""
    facts = facts_of(node)
    if facts is not None:
        node.setColor(hou.Color(tuple(facts["colour"])))
