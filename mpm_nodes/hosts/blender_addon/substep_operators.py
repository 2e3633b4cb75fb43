"""Open the stages of a solve as a graph of their own, and go back."""

import bpy

from . import graph_file, knobs, preset_settings
from .nodes import MpmNode
from .specification import PRESETS


class MPM_OT_edit_substeps(bpy.types.Operator):
    """Open the stages of the solve; those of a preset become a graph of their own first"""

    bl_idname = "mpm_nodes.edit_substeps"
    bl_label = "Edit Substeps"
    bl_options = {"REGISTER", "UNDO"}

    knob: bpy.props.StringProperty(options={"HIDDEN", "SKIP_SAVE"})

    def execute(self, context):
        """Open them."""
        node = getattr(context, "node", None) or getattr(context, "active_node", None)
        if not isinstance(node, MpmNode):
            self.report({"ERROR"}, "Choose a solve node first")
            return {"CANCELLED"}
        name = self.knob or next((each["name"] for each in node.record["knobs"] if each["kind"] == "substeps"), "")
        if not name:
            self.report({"ERROR"}, f"{node.name} has no substeps; choose a solve node")
            return {"CANCELLED"}
        if preset_settings.EDITS in knobs.settings_of(node, name, getattr(node, knobs.prop(name))):
            self.report({"WARNING"}, f"{node.name}: the edits of the preset are left out; make them with stages")
        try:
            inner = own_substeps(node, name)
        except ValueError as fault:
            self.report({"ERROR"}, str(fault))
            return {"CANCELLED"}
        space = context.space_data
        if space is not None and space.type == "NODE_EDITOR":
            space.path.append(inner, node=node)
        return {"FINISHED"}


def own_substeps(node, name):
    """Return the substep tree of a node's knob; made from its preset when it has none.

    Raises:
        ValueError: The text of settings is not JSON.
    """
    if getattr(node, knobs.prop(name)) == knobs.OWN and getattr(node, knobs.tree_prop(name)) is not None:
        return getattr(node, knobs.tree_prop(name))
    choice = getattr(node, knobs.prop(name))
    document = stages_of(choice)
    given = knobs.settings_of(node, name, choice)
    if isinstance(given, str):
        raise ValueError(f"{node.name}: the text below More Settings is not JSON; fix it, or empty it")
    if given:  # edits of stages the artist makes with stages now
        document["set"] = {**document.get("set", {}), **{key: v for key, v in given.items() if key != preset_settings.EDITS}}
    inner = graph_file.load_substeps(document, f"{node.name} substeps")
    setattr(node, knobs.tree_prop(name), inner)
    setattr(node, knobs.prop(name), knobs.OWN)
    return inner


def stages_of(preset):
    """Return the document of a preset; of one that leaves the choice to the solve, that of its first candidate."""
    document = PRESETS.get(preset, next(iter(PRESETS.values())))["document"]
    return dict(document) if "nodes" in document else stages_of(document["candidates"][0])


class MPM_OT_close_substeps(bpy.types.Operator):
    """Go back to the graph that the substeps belong to"""

    bl_idname = "mpm_nodes.close_substeps"
    bl_label = "Back to Graph"

    @classmethod
    def poll(cls, context):
        """A substep graph must be open inside a graph."""
        space = context.space_data
        return space is not None and space.type == "NODE_EDITOR" and len(space.path) > 1

    def execute(self, context):
        """Go back."""
        context.space_data.path.pop()
        return {"FINISHED"}


CLASSES = [MPM_OT_edit_substeps, MPM_OT_close_substeps]
