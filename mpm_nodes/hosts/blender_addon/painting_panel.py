"""The panel that says what is painted on the object of a node."""

import bpy

from . import painting
from .interface import Sidebar

_LISTED = {}
"""Items of the menu that Blender shows: it does not keep them itself."""


def _active(context):
    """Return the node that is painted on in the editor, or None."""
    tree = getattr(context.space_data, "edit_tree", None) if context.space_data else None
    node = tree.nodes.active if tree else None
    return node if node is not None and painting.roles_of(node) else None


def _sources(_self, context):
    """Return what is painted on the object of the active node, as items of a menu."""
    node = _active(context)
    found = painting.painted_on(node.scene_object) if node else []
    _LISTED["items"] = [(name, name, "") for name in found] or [("", "Nothing is painted", "")]
    return _LISTED["items"]


class OnPainted:
    """Operators on what is painted. Scripts name tree and node; empty takes the active one of the editor."""

    tree: bpy.props.StringProperty(name="Graph", options={"HIDDEN", "SKIP_SAVE"})
    node: bpy.props.StringProperty(name="Node", options={"HIDDEN", "SKIP_SAVE"})
    role: bpy.props.EnumProperty(name="What", items=[(key, role.label, role.doc) for key, role in painting.ROLES.items()])

    def target(self, context):
        """Return the node; None, with a report, where nothing can be painted on it so."""
        tree = bpy.data.node_groups.get(self.tree)
        node = tree.nodes.get(self.node) if tree else _active(context)
        if node is None or self.role not in painting.roles_of(node):
            self.report({"ERROR"}, "Choose an emitter or a collider that an object of the scene stands for")
            return None
        return node


class MPM_OT_paint(OnPainted, bpy.types.Operator):
    """Let this follow a vertex group, a colour or an attribute of the object"""

    bl_idname = "mpm_nodes.paint"
    bl_label = "From"
    bl_options = {"REGISTER", "UNDO"}
    bl_property = "source"

    source: bpy.props.EnumProperty(name="From", items=_sources, options={"SKIP_SAVE"})
    attribute: bpy.props.StringProperty(
        name="Attribute", description="For scripts, in place of the menu", options={"HIDDEN", "SKIP_SAVE"}
    )

    def execute(self, context):
        """Add the nodes, or let those that are there read another."""
        node = self.target(context)
        name = self.attribute or self.source
        if node is None or not name:
            return {"CANCELLED"}
        painting.paint(node, self.role, name)
        return {"FINISHED"}


class MPM_OT_unpaint(OnPainted, bpy.types.Operator):
    """Let it be the same everywhere again"""

    bl_idname = "mpm_nodes.unpaint"
    bl_label = "Remove"
    bl_options = {"REGISTER", "UNDO"}

    def execute(self, context):
        """Remove the nodes."""
        node = self.target(context)
        if node is None or painting.painted(node, self.role) is None:
            return {"CANCELLED"}
        painting.take_away(node, self.role)
        return {"FINISHED"}


class MPM_PT_painting(Sidebar, bpy.types.Panel):
    """Fields from vertex groups, colours and attributes"""

    bl_idname = "MPM_PT_painting"
    bl_label = "Painted"

    @classmethod
    def poll(cls, context):
        """A node with something to be painted on must be active."""
        return Sidebar.poll(context) and _active(context) is not None

    def draw(self, context):
        """Draw a line for each thing that may be painted, with its lowest and highest value."""
        node = _active(context)
        for role in painting.roles_of(node):
            there = painting.painted(node, role)
            row = self.layout.row(align=True)
            row.label(text=f"{painting.ROLES[role].label} from")
            shown = there[0].k_primvar if there else "..."
            row.operator_menu_enum("mpm_nodes.paint", "source", text=shown).role = role
            if there:
                row.operator("mpm_nodes.unpaint", text="", icon="X").role = role
                if there[1] is not None:
                    ends = self.layout.column(align=True)  # side by side their names would be cut
                    ends.prop(there[1], "k_from_value", text="Lowest")
                    ends.prop(there[1], "k_to_value", text="Highest")


CLASSES = [MPM_OT_paint, MPM_OT_unpaint, MPM_PT_painting]
