"""The two kinds of node trees: graphs, cooked frame by frame, and the substep graphs inside their solve nodes."""

import bpy

from . import knobs, memory, sockets
from .specification import SETTINGS

GRAPH_TREE = "MpmGraphTree"
SUBSTEP_TREE = "MpmSubstepTree"


class _Checked:
    """What both kinds share: links between unlike types are taken out again, and the tree says why."""

    as_loaded: memory.loaded_property()
    rest: bpy.props.StringProperty(name="Rest", description="Fields of the file that Blender has no place for", options={"HIDDEN"})
    message: bpy.props.StringProperty(name="Message", options={"HIDDEN", "SKIP_SAVE"})

    def update(self):
        """Remove links between unlike types; called by Blender whenever the tree has changed."""
        for link in list(self.links):
            reason = sockets.fault(link.from_socket, link.to_socket)
            if reason:
                self.message = reason
                self.links.remove(link)


SWITCHES = []
"""Called with a tree whose renders shall read another cook than they did."""


def _switch(tree, _context):
    for switch in SWITCHES:
        switch(tree)


class MpmGraphTree(_Checked, bpy.types.NodeTree):
    """A graph of sources, colliders, solves, surfaces and caches."""

    bl_idname = GRAPH_TREE
    bl_label = "MPM Graph"
    bl_icon = "PHYSICS"

    __annotations__ = {
        **_Checked.__annotations__,
        **{name: value for knob in SETTINGS.values() for name, value in knobs.knob_properties(knob).items()},
        "folder": bpy.props.StringProperty(
            name="Folder",
            subtype="DIR_PATH",
            description="Where graph file, exported inputs and caches go; empty: a folder mpm beside the .blend file",
        ),
        "base": bpy.props.StringProperty(
            name="Base", description="Folder of the graph file that was loaded; relative paths start there", options={"HIDDEN"}
        ),
        "revision": bpy.props.StringProperty(name="Revision", description="Folder of the newest cook", options={"HIDDEN"}),
        "progress": bpy.props.FloatProperty(name="Progress", min=0.0, max=1.0, subtype="FACTOR", options={"SKIP_SAVE"}),
        "status": bpy.props.StringProperty(name="Status", options={"SKIP_SAVE"}),
        "failed": bpy.props.BoolProperty(name="Failed", options={"SKIP_SAVE"}),
        "seconds_a_frame": bpy.props.FloatProperty(name="Seconds a Frame", options={"HIDDEN"}),
        "high_resolution": bpy.props.FloatProperty(
            name="High",
            default=2.0,
            min=0.1,
            soft_min=1.0,
            soft_max=4.0,
            description="Cells along an axis of a High cook for each of a Low one: at 2 it has eight times as many particles",
        ),
        "render_high": bpy.props.BoolProperty(
            name="Render High",
            default=True,
            update=_switch,
            description="Renders read the High cook; else what the viewport shows",
        ),
        "load_frames": bpy.props.BoolProperty(
            name="Show Frames", default=True, description="Bring cooked frames into the scene as they finish"
        ),
    }


class MpmSubstepTree(_Checked, bpy.types.NodeTree):
    """The stages of a substep, in the order that the wires give."""

    bl_idname = SUBSTEP_TREE
    bl_label = "MPM Substeps"
    bl_icon = "MOD_PHYSICS"

    __annotations__ = {
        **_Checked.__annotations__,
        "title": bpy.props.StringProperty(name="Label", description="What artists call these substeps"),
        "doc": bpy.props.StringProperty(name="Help", description="What these substeps do"),
        "looked_at": bpy.props.StringProperty(
            name="Looked At",
            description="Preset and stages that were opened to look at; empty: a graph of its own",
            options={"HIDDEN"},
        ),
    }


CLASSES = [MpmGraphTree, MpmSubstepTree]


def is_ours(tree):
    """Return whether a tree is one of this add-on's."""
    return tree is not None and tree.bl_idname in (GRAPH_TREE, SUBSTEP_TREE)


def new_tree(kind, name):
    """Return a new tree that is saved even when nothing shows it."""
    tree = bpy.data.node_groups.new(name, kind)
    tree.use_fake_user = True
    return tree
