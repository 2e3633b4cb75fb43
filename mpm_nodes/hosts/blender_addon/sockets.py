"""A socket class for every type of wire, in the colour that the specification gives it."""

import bpy

from .specification import TYPES

PREFIX = "MpmSocket_"


class MpmSocket:
    """What all sockets share; `type_id` is the type in the specification, `colour` its colour (RGBA)."""

    type_id = ""
    colour = (0.5, 0.5, 0.5, 1.0)

    accepts: bpy.props.StringProperty(
        name="Accepts", description="Types that may be wired here, separated by spaces", options={"HIDDEN"}
    )

    def takes(self, type_id):
        """Return whether a wire of a type may end here."""
        return type_id in self.accepts.split()

    def draw(self, _context, layout, _node, text):
        """Draw the socket's label."""
        layout.label(text=text)

    def draw_color(self, _context, _node):
        """Return the colour; Blender 3 asks for it here."""
        return self.colour

    @classmethod
    def draw_color_simple(cls):
        """Return the colour; Blender 4 asks for it here."""
        return cls.colour


def _socket_class(identifier, label, colour):
    fields = {
        "bl_idname": PREFIX + identifier,
        "bl_label": label,
        "type_id": identifier,
        "colour": (*colour, 1.0),
        "__annotations__": dict(MpmSocket.__annotations__),
    }
    return type(PREFIX + identifier, (MpmSocket, bpy.types.NodeSocket), fields)


CLASSES = [_socket_class(record["id"], record["label"], record["colour"]) for record in TYPES.values()]
CLASSES.append(_socket_class("unknown", "Unknown", (0.8, 0.1, 0.1)))
KNOWN = {cls.type_id for cls in CLASSES}


def idname(type_name):
    """Return the socket class of a type's name; a union takes that of its first member."""
    first = type_name.split(" | ")[0]
    return PREFIX + (first if first in KNOWN else "unknown")


def add_input(node, name, label, type_name, accepts, many):
    """Add an input socket to a node; `many` lets it take any number of wires."""
    try:
        socket = node.inputs.new(idname(type_name), label, identifier=name, use_multi_input=many)
    except TypeError:  # Blender 3
        socket = node.inputs.new(idname(type_name), label, identifier=name)
        if many:
            socket.link_limit = 0
    socket.accepts = " ".join(accepts)
    return socket


def add_output(node, name, label, type_name):
    """Add an output socket to a node."""
    return node.outputs.new(idname(type_name), label, identifier=name)


def fault(start, end):
    """Return why an output cannot be wired to an input, or ""."""
    if not isinstance(start, MpmSocket) or not isinstance(end, MpmSocket):
        return ""
    if end.takes(start.type_id) or "unknown" in (start.type_id, end.type_id):
        return ""
    wanted = " or ".join(TYPES[name]["label"] for name in end.accepts.split() if name in TYPES)
    return f"{end.node.name}: {end.name} takes {wanted}, not {TYPES[start.type_id]['label']} ({start.node.name})"
