"""Open the stages of a solve as a graph of their own, and go back."""

import bpy

from . import graph_file, knobs, preset_settings
from .nodes import MpmNode
from .specification import PRESETS


class MPM_OT_edit_substeps(bpy.types.Operator):
    """Open the stages of the solve; those of a preset become a graph of their own once you change them"""

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
            self.report({"WARNING"}, f"{node.name}: the edits of the preset are not shown, and are lost once you change a stage")
        try:
            inner = opened_substeps(node, name)
        except ValueError as fault:
            self.report({"ERROR"}, str(fault))
            return {"CANCELLED"}
        space = context.space_data
        if space is not None and space.type == "NODE_EDITOR":
            space.path.append(inner, node=node)
        return {"FINISHED"}


def own_substeps(node, name):
    """Return the substep tree of a node's knob, made from its preset when it has none, and let the node have it as its own.

    Raises:
        ValueError: The text of settings is not JSON.
    """
    inner = opened_substeps(node, name)
    inner.looked_at = ""
    setattr(node, knobs.prop(name), knobs.OWN)
    return inner


def opened_substeps(node, name):
    """Return the substep tree of a node's knob: its own, or one that shows the stages of its preset.

    The node keeps its preset and its settings until such a tree is changed (`knobs.value` sees to that).

    Raises:
        ValueError: The text of settings is not JSON.
    """
    choice, before = getattr(node, knobs.prop(name)), getattr(node, knobs.tree_prop(name))
    if choice == knobs.OWN and before is not None:
        return before
    document = stages_of(choice)
    given = knobs.settings_of(node, name, choice)
    if isinstance(given, str):
        raise ValueError(f"{node.name}: the text below More Settings is not JSON; fix it, or empty it")
    if given:  # edits of stages the artist makes with stages now
        document["set"] = {**document.get("set", {}), **{key: v for key, v in given.items() if key != preset_settings.EDITS}}
    inner = graph_file.load_substeps(document, f"{node.name} substeps")
    inner.looked_at = knobs.looked_at(choice, graph_file.save_substeps(inner))
    setattr(node, knobs.tree_prop(name), inner)
    if before is not None and before.looked_at and before.users <= 1:  # its fake user
        bpy.data.node_groups.remove(before)
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
        """Go back; stages that were changed are the node's own from now on."""
        context.space_data.path.pop()
        for node in context.space_data.node_tree.nodes:
            for knob in node.record["knobs"] if isinstance(node, MpmNode) and node.record else ():
                if knob["kind"] == "substeps":
                    knobs.value(node, knob, graph_file.save_substeps)
        return {"FINISHED"}


CLASSES = [MPM_OT_edit_substeps, MPM_OT_close_substeps]
