"""Forces of POP and DOP networks as nodes of the graph, wired into a solve, with what a particle of a kilogram would feel.

What a node of Houdini stands for is written as a piece of a graph file, and that is built as a file is loaded.
"""

from __future__ import annotations

import hou

from .build import connect, make_all, wire_all
from .collect import UNITS
from .force_kinds import INSTEAD, KINDS, NO_FORCES, HoudiniForce
from .nodes import facts_of

STEP = 2.5
"""Way from one node to the next in the network editor."""


def add_forces(nodes, solve):
    """Make the forces that nodes of POP and DOP networks stand for, beside a solve, and wire them into it.

    Args:
        nodes: Nodes of Houdini: POP Force, POP Wind, POP Drag, POP Axis Force, POP Attract, Gravity, Uniform and Drag Force.
        solve: An MPM Solve.

    Returns:
        tuple: The nodes of the forces, and what was not taken over, a sentence for each node that it is true of.

    Raises:
        hou.OperationFailed: The second node is no MPM Solve.
    """
    facts = facts_of(solve)
    if facts is None or facts["id"] != "solve":
        raise hou.OperationFailed(f"{solve.name()}: is no MPM Solve; choose the one that the forces go into")
    index = next(number for number, port in enumerate(facts["inputs"]) if port["name"] == "forces")
    parent, made, left = solve.parent(), [], []
    x, y = solve.position()
    with hou.undos.group("Add MPM forces"):
        for node in nodes:
            entries, forces, said = _translated(node, parent)
            left += [f"{node.name()}: {each}" for each in said]
            found = make_all(parent, entries, (x + STEP * (1 + len(made)), y + STEP))
            wire_all(parent, entries, found, {})
            made += [found[name] for name in forces]
        before = solve.inputs()[index : index + 1]
        connect(parent, solve, index, [each for each in (*before, *made) if each is not None])
    return made, left


def choose_forces(kwargs):
    """Add the selected forces of Houdini to the selected MPM Solve, or to the only one; return the nodes. A tool of the shelf.

    Args:
        kwargs: What Houdini gives to tools; nothing of it is needed.
    """
    chosen = hou.selectedNodes()
    ours = [node for node in chosen if facts_of(node) is not None]
    try:
        made, left = add_forces([node for node in chosen if node not in ours], _solve_of(ours, len(chosen) > len(ours)))
    except hou.Error as error:
        if not hou.isUIAvailable():
            raise
        hou.ui.displayMessage(error.instanceMessage(), severity=hou.severityType.Error, title="MPM Nodes")
        return []
    text = "\n".join([f"made {len(made)} forces", *left])
    if left and hou.isUIAvailable():
        hou.ui.displayMessage(text, severity=hou.severityType.Warning, title="MPM Nodes")
    elif hou.isUIAvailable():
        hou.ui.setStatusMessage(text)
    else:
        print(text)
    return made


def _solve_of(ours, any_forces):
    """Return the selected solve, or the only one of the scene."""
    if not any_forces:
        raise hou.OperationFailed("No forces are selected; select them in their POP or DOP network, and the MPM Solve as well")
    kinds = [kind for name, kind in hou.sopNodeTypeCategory().nodeTypes().items() if name.startswith("mpm_nodes::solve::")]
    solves = [node for kind in kinds for node in kind.instances()]
    found = [node for node in solves if node in ours] or solves
    if len(found) != 1:
        raise hou.OperationFailed(
            f"There are {len(found)} MPM Solves to choose from; select the one that the forces go into together with them"
        )
    return found[0]


def _translated(node, parent):
    """Return the entries that a node stands for, the names of its forces, and what is left out."""
    kind = node.type().nameComponents()[2]
    if kind in NO_FORCES:
        return {}, [], []
    if kind not in KINDS:
        instead = f"; take {INSTEAD[kind]}" if kind in INSTEAD else ""
        return {}, [], [f"a {kind} is not taken over{instead}"]
    first, last = hou.playbar.frameRange()
    source = HoudiniForce(node, (first, last), _Names(parent))
    try:
        if source.off():
            return {}, [], ["is switched off"]
        KINDS[kind](source)
    except hou.OperationFailed as error:
        return {}, [], [error.instanceMessage()]
    for depth, names in enumerate(source.rows()):
        for number, name in enumerate(names):
            source.entries[name]["position"] = [number * UNITS * STEP / 3.0, -depth * UNITS * STEP / 2.0]
    return source.entries, source.forces, source.said


class _Names:
    """Names that are free in a network."""

    def __init__(self, parent):
        self.taken = {node.name() for node in parent.children()}

    def free(self, name):
        found, number = name, 2
        while found in self.taken:
            found, number = f"{name}_{number}", number + 1
        self.taken.add(found)
        return found
