"""Places for nodes that come without any: columns by distance from the sources."""

from .nodes import first_knobs, rows

WIDTH = 240.0
GAP = 40.0


def place(placed):
    """Put nodes where their file says; all of them into columns when it says nothing.

    Args:
        placed: (node, [x, y]) of each.
    """
    if any(position != [0, 0] for _, position in placed) or len(placed) < 2:
        for node, position in placed:
            node.location = position
        return
    bottom = {}
    depths = _depths([node for node, _ in placed])
    for node, _ in placed:
        column = depths[node.name]
        node.location = (WIDTH * column, bottom.get(column, 0.0))
        bottom[column] = bottom.get(column, 0.0) - height(node) - GAP


def height(node):
    """Return about how tall a node is drawn."""
    shown = sum(rows(knob) for knob in first_knobs(node.record)) + 2 if node.record else 2
    return 40.0 + 22.0 * (len(node.inputs) + len(node.outputs) + shown + bool(node.takes_object()))


def _depths(nodes):
    """Return by name the longest way from a node without wires into it."""
    depths = dict.fromkeys((node.name for node in nodes), 0)
    links = [(link.from_node.name, link.to_node.name) for link in nodes[0].id_data.links]
    for _ in nodes:
        for start, end in links:
            if start in depths and end in depths:
                depths[end] = min(max(depths[end], depths[start] + 1), len(nodes))
    return depths
