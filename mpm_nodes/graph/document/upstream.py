"""A node of a graph with what it needs, to be cooked without the rest: the rest may be unfinished."""

from __future__ import annotations

from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.files.strict_json import refuse

__all__ = ["keep_upstream"]

WRITER = "write_cache"
FORCES = "bodies"
"""Its port for forces on colliders, of which it warns where a solve tells none."""


def keep_upstream(graph: Graph, node: str) -> None:
    """Take out of a graph what a node does not need; what it gives is written as a cache.

    Nodes of category "Cache" write for themselves; behind others a `write_cache` is added, which takes the outputs that fit.

    Args:
        graph: The graph; it is changed.
        node: Name of the node.

    Raises:
        GraphError: There is no such node, or nothing of what it gives can be written.
    """
    graph[node]  # a name that is not there is refused
    needed, open_ends = {node}, [node]
    while open_ends:
        wires = [wire for sources in graph.nodes[open_ends.pop()].inputs.values() for wire in sources]
        fresh = {wire.partition(".")[0] for wire in wires} & graph.nodes.keys() - needed
        needed |= fresh
        open_ends += fresh
    graph.nodes = {name: entry for name, entry in graph.nodes.items() if name in needed}
    declaration = graph.declaration(node)
    if declaration is None or declaration.category == "Cache":
        return  # an unknown type is refused by validation, with the type's name
    writer = graph.add(WRITER)
    found = graph.declaration(str(writer))
    for port in found.ports if found else ():
        fitting = [f"{node}.{output.name}" for output in declaration.outputs if port.accepts(output.type)]
        if fitting and (port.name != FORCES or graph.nodes[node].knobs.get("contact_forces")):
            graph.connect(f"{writer}.{port.name}", *(fitting if port.many else fitting[:1]))
    if not graph.nodes[str(writer)].inputs:
        refuse(node, "gives nothing that a cache holds", "cook to a node that gives particles, a mesh, volumes or colliders")
