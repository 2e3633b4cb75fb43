"""MPM Configure tools: a graph with open slots, filled with what is selected, as nodes that are wired up to MPM Cook.

A recipe is a graph file. The node with the slot "source" takes the first selected SOP as its geometry, or a box where none is
selected; that with the slot "collider" is repeated for every other one, and left out where there is none; "ground" is put below
everything.
"""

from __future__ import annotations

import copy
import json
import os

import hou

from .build import FILE, build, geometry_input
from .nodes import facts_of

FOLDER = os.path.join(os.path.dirname(__file__), "recipes")
PARTICLES = 30000.0
"""How many particles would fill the box around the source."""


def configure(kwargs, name):
    """Make the nodes of a recipe where the tool was called from; return the MPM Cook node, None where it failed."""
    try:
        return _configured(kwargs, name)
    except hou.Error as error:
        if not hou.isUIAvailable():
            raise
        hou.ui.displayMessage(error.instanceMessage(), severity=hou.severityType.Error, title="MPM Nodes")
        return None


def _configured(kwargs, name):
    pane = kwargs.get("pane")
    parent = pane.pwd() if pane is not None else hou.node("/obj")
    if parent.childTypeCategory() != hou.sopNodeTypeCategory():
        parent = hou.node("/obj").createNode("geo", f"mpm_{name}")
    return make(parent, name, [node for node in hou.selectedNodes() if node.parent() == parent])


def make(parent, name, chosen):
    """Make the nodes of a recipe; return the MPM Cook node.

    Args:
        parent: Network of SOPs.
        name: The recipe.
        chosen: SOPs: the source, then colliders; a box is made where there are none.
    """
    with open(os.path.join(FOLDER, f"{name}.json"), encoding="utf-8") as file:
        document = json.load(file)
    with hou.undos.group(f"MPM Configure {name}"):
        source = chosen[0] if chosen else _box(parent, document["editor"]["quick"]["size"])
        ground = min([0.0, *(node.geometry().boundingBox().minvec()[1] for node in (source, *chosen[1:]))])
        size = source.geometry().boundingBox().sizevec()
        slots = fill(document, len(chosen[1:]), ground)
        volume = max(size[0] * size[1] * size[2], 1e-12)
        document["settings"]["cell_size"] = float(f"{(8.0 * volume / PARTICLES) ** (1.0 / 3.0):.3g}")
        kind = next(each for each in hou.sopNodeTypeCategory().nodeTypes() if each.startswith("mpm_nodes::cook_graph::"))
        cook = parent.createNode(kind, f"mpm_{name}", exact_type_name=True)
        made = build(document, cook)
        for slot, shape in zip(slots, [source, *chosen[1:]], strict=True):
            made[slot].setInput(geometry_input(facts_of(made[slot])), shape)
        cook.setUserData(FILE, "{}")
        x, y = source.position()
        cook.setPosition(hou.Vector2((x, y - 8.0)))
        cook.setDisplayFlag(True)
    return cook


def fill(document, colliders, ground):
    """Fill the slots of a recipe in place; return the names of the nodes that take geometry: the source, then the colliders."""
    given, nodes, renamed, slots = document["nodes"], {}, {}, []
    for name, entry in given.items():
        slot = entry.pop("editor", {}).get("slot")
        if slot == "collider":
            renamed[name] = [f"{name}_{number}" for number in range(1, colliders + 1)]
            nodes.update({each: copy.deepcopy(entry) for each in renamed[name]})
            slots += renamed[name]
            continue
        if slot == "source":
            slots.insert(0, name)
        elif slot == "ground":
            entry.setdefault("knobs", {})["centre"] = [0.0, ground, 0.0]
        nodes[name] = entry
    document["nodes"] = nodes
    for entry in nodes.values():
        for port, wire in list(entry.get("inputs", {}).items()):
            texts = [each for text in (wire if isinstance(wire, list) else [wire]) for each in renamed.get(text, [text])]
            _rewire(entry["inputs"], port, wire, texts)
    _drop_unfed(nodes)
    return slots


def _rewire(inputs, port, wire, texts):
    """Put wires in the place of those of a port; one that took a single wire and has none left holds an empty list."""
    if not isinstance(wire, list):
        inputs[port] = texts[0] if len(texts) == 1 else texts
    elif texts:
        inputs[port] = texts
    else:
        del inputs[port]


def _drop_unfed(nodes):
    """Leave out nodes whose only wire into a port came from a slot that nothing fills, with what hangs on them."""
    while True:
        lacking = {name for name, entry in nodes.items() if [] in entry.get("inputs", {}).values()}
        if not lacking:
            return
        for name in lacking:
            del nodes[name]
        for entry in nodes.values():
            for port, wire in list(entry.get("inputs", {}).items()):
                texts = [text for text in (wire if isinstance(wire, list) else [wire]) if text.partition(".")[0] not in lacking]
                _rewire(entry["inputs"], port, wire, texts)


def _box(parent, size):
    """Make a box of a size that falls from its own height."""
    box = parent.createNode("box", "matter")
    for name, value in (("scale", size), ("ty", 1.5 * size)):
        parm = box.parm(name)
        if parm is not None:
            parm.set(value)
    return box
