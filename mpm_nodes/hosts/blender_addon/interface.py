"""Panels, menus and preferences."""

import bpy

from . import cook, looks, problems, quick_operators, quick_pictures, quick_presets
from .nodes import MpmSubstepState, broken
from .operators import tree_of
from .specification import STAGES, categories
from .trees import GRAPH_TREE, SUBSTEP_TREE, is_ours


class MpmPreferences(bpy.types.AddonPreferences):
    """Where the Python environment with mpm-nodes is."""

    bl_idname = __package__

    environment: bpy.props.StringProperty(
        name="Python Environment",
        subtype="DIR_PATH",
        description="Folder of the Python environment that has mpm-nodes, or its python; "
        "empty: the environment variable MPM_NODES_PYTHON, or mpm-nodes on the PATH",
    )
    quick_folder: bpy.props.StringProperty(
        name="Quick Presets", subtype="DIR_PATH", description="A folder of graph files that the panel Quick offers besides its own"
    )
    answer: bpy.props.StringProperty(options={"HIDDEN", "SKIP_SAVE"})
    is_bad: bpy.props.BoolProperty(options={"HIDDEN", "SKIP_SAVE"})

    def draw(self, context):
        """Draw the path, the check button and its answer."""
        self.layout.prop(self, "environment")
        self.layout.prop(self, "quick_folder")
        self.layout.operator("mpm_nodes.check_environment", icon="CHECKMARK")
        draw_text(self.layout, self.answer, self.is_bad, 90)


def draw_text(layout, text, bad, width):
    """Draw a text in lines, red when it is bad news."""
    if text:
        box = layout.box()
        box.alert = bad
        for line in broken(text, width):
            box.label(text=line)


def draw_cook(layout, tree):
    """Draw the buttons of a graph's cook, its progress, and what it says."""
    if cook.job_of(tree) is not None:
        if hasattr(layout, "progress"):
            layout.progress(factor=tree.progress, text=f"{100 * tree.progress:.0f} %")
        else:
            layout.prop(tree, "progress", slider=True)
        layout.operator("mpm_nodes.cancel", icon="X").tree = tree.name
        _draw_queue(layout, tree)
    elif cook.waits(tree):
        _draw_queue(layout, tree)
    else:
        row = layout.row(align=True)
        begin, go_on = row.operator("mpm_nodes.cook", icon="PLAY"), row.operator("mpm_nodes.cook", text="Resume", icon="FF")
        begin.tree = go_on.tree = tree.name
        begin.resume, go_on.resume = False, True
        fine = layout.operator("mpm_nodes.cook", text="Cook High", icon="RENDER_ANIMATION")
        fine.tree, fine.high = tree.name, True
        if cook.JOBS:
            _draw_queue(layout, tree)
        if tree.revision:
            layout.operator("mpm_nodes.cook_again", icon="FRAME_NEXT").tree = tree.name
    draw_text(layout, tree.status, tree.failed, 40)


def _draw_queue(layout, tree):
    if cook.waits(tree):
        button = layout.operator("mpm_nodes.cancel", text="Take Out of Queue", icon="X")
        button.tree, button.queued = tree.name, True
        return
    row = layout.row(align=True)
    for text, high in (("Queue", False), ("Queue High", True)):
        button = row.operator("mpm_nodes.queue", text=text, icon="TIME")
        button.tree, button.high = tree.name, high


class Sidebar:
    """Panels in the sidebar of the node editor."""

    bl_space_type = "NODE_EDITOR"
    bl_region_type = "UI"
    bl_category = "MPM"

    @classmethod
    def poll(cls, context):
        """An MPM graph must be open."""
        return tree_of(context) is not None


class MPM_PT_cook(Sidebar, bpy.types.Panel):
    """Cook, check, cancel; progress"""

    bl_idname = "MPM_PT_cook"
    bl_label = "Cook"

    def draw(self, context):
        """Draw the buttons, or the progress of a running cook."""
        tree, layout = tree_of(context), self.layout
        draw_cook(layout, tree)
        if cook.job_of(tree) is None:
            layout.operator("mpm_nodes.validate", icon="CHECKMARK")
            layout.operator("mpm_nodes.show_frames", icon="IMPORT")
        draw_text(layout, tree.message, True, 40)
        layout.prop(tree, "load_frames")


class MPM_PT_graph(Sidebar, bpy.types.Panel):
    """Settings of the whole graph"""

    bl_idname = "MPM_PT_graph"
    bl_label = "Graph"

    def draw(self, context):
        """Draw the settings."""
        tree, layout = tree_of(context), self.layout
        for name in ("k_cell_size", "k_resolution", "high_resolution", "k_fps", "k_start", "k_end"):
            layout.prop(tree, name)
        layout.prop(tree, "folder")
        row = layout.row(align=True)
        row.operator("mpm_nodes.load_graph", text="Load", icon="FILE_FOLDER")
        row.operator("mpm_nodes.save_graph", text="Save", icon="FILE_TICK")


class MPM_PT_objects(Sidebar, bpy.types.Panel):
    """Objects of the scene as input"""

    bl_idname = "MPM_PT_objects"
    bl_label = "Selected Objects"

    def draw(self, context):
        """Draw a button for each role."""
        for role, text, icon in (
            ("COLLIDER", "Add as Colliders", "MOD_PHYSICS"),
            ("SOURCE", "Add as Sources", "MESH_ICOSPHERE"),
            ("STREAM", "Add as Streams", "MOD_FLUIDSIM"),
            ("FORCE", "Add as Forces", "FORCE_WIND"),
        ):
            self.layout.operator("mpm_nodes.add_objects", text=text, icon=icon).role = role


class MPM_PT_quick(bpy.types.Panel):
    """Two clicks to matter"""

    bl_idname = "MPM_PT_quick"
    bl_label = "Quick"
    bl_space_type = "VIEW_3D"
    bl_region_type = "UI"
    bl_category = "MPM"

    def draw(self, context):
        """Draw a button for each preset, and what the graphs that cook say."""
        layout, chosen = self.layout, context.window_manager
        own = quick_operators.own_folder()
        presets, faults = quick_presets.found(own)
        layout.prop(chosen, "mpm_nodes_particles")
        row = layout.row()
        row.prop(chosen, "mpm_nodes_ground")
        row.prop(chosen, "mpm_nodes_guides")
        grid = layout.grid_flow(columns=2, even_columns=True, align=True)
        for name, document in presets.items():
            label = document["editor"]["quick"].get("label", name)
            grid.operator("mpm_nodes.quick", text=label, icon_value=quick_pictures.icon(name, own)).preset = name
        layout.operator("mpm_nodes.quick_dialog", text="More Options...")
        draw_text(layout, "\n".join(faults), True, 40)
        for tree in problems.graph_trees(bpy.data):
            if cook.job_of(tree) is not None or looks.quick_facts(tree):
                box = layout.box()
                box.label(text=tree.name, icon="PHYSICS")
                draw_cook(box, tree)


class MPM_PT_substeps(bpy.types.Panel):
    """The substep graph that is open"""

    bl_idname = "MPM_PT_substeps"
    bl_label = "Substeps"
    bl_space_type = "NODE_EDITOR"
    bl_region_type = "UI"
    bl_category = "MPM"

    @classmethod
    def poll(cls, context):
        """A substep graph must be open."""
        tree = getattr(context.space_data, "edit_tree", None)
        return tree is not None and tree.bl_idname == SUBSTEP_TREE

    def draw(self, context):
        """Draw its label and help."""
        tree = context.space_data.edit_tree
        self.layout.operator("mpm_nodes.close_substeps", icon="BACK")
        self.layout.prop(tree, "title")
        self.layout.prop(tree, "doc")
        draw_text(self.layout, tree.message, True, 40)


# ---------------------------------------------------------------- the Add menu
def _search_items(_self, context):
    """Return what may stand in the tree that is open, with its category: (identifier, whole label, help)."""
    tree = getattr(context.space_data, "edit_tree", None) if context and context.space_data else None
    kind = tree.bl_idname if is_ours(tree) else GRAPH_TREE
    return SEARCHED[kind]


def _words(record):
    """Return what artists call a node as well, as one text in a list, which is empty where there is nothing."""
    return [", ".join(record["words"])] if record.get("words") else []


SEARCHED = {
    GRAPH_TREE: [
        (f"MpmNode_{record['id']}", ": ".join([f"{record['label']} ({category})", *_words(record)]), record["doc"].rstrip("."))
        for category, records in categories().items()
        for record in records
    ],
    SUBSTEP_TREE: [
        (MpmSubstepState.bl_idname, MpmSubstepState.bl_label, "The state that every substep begins with"),
        *((f"MpmStage_{name}", record["label"], record["doc"].rstrip(".")) for name, record in STAGES.items()),
    ],
}


class MPM_OT_search_node(bpy.types.Operator):
    """Find a node by any part of its name or of its category, and add it"""

    bl_idname = "mpm_nodes.search_node"
    bl_label = "Search MPM Nodes"
    bl_options = {"REGISTER", "UNDO"}
    bl_property = "kind"

    kind: bpy.props.EnumProperty(name="Node", items=_search_items)

    @classmethod
    def poll(cls, context):
        """One of our trees must be open."""
        return is_ours(getattr(context.space_data, "edit_tree", None))

    def invoke(self, context, _event):
        """Ask for the node."""
        context.window_manager.invoke_search_popup(self)
        return {"RUNNING_MODAL"}

    def execute(self, context):
        """Add it, alone selected, where the pointer is; it follows the pointer in a window."""
        tree = context.space_data.edit_tree
        for each in tree.nodes:
            each.select = False
        node = tree.nodes.new(self.kind)
        node.location = context.space_data.cursor_location
        tree.nodes.active = node
        if not bpy.app.background:
            bpy.ops.node.translate_attach_remove_on_cancel("INVOKE_DEFAULT")
        return {"FINISHED"}


def _menu_class(name, items):
    def draw(self, _context):
        for idname, label in items:
            add = self.layout.operator("node.add_node", text=label)
            add.type, add.use_transform = idname, True

    fields = {"bl_idname": f"MPM_MT_{name.lower().replace(' ', '_')}", "bl_label": name, "draw": draw}
    return type(fields["bl_idname"], (bpy.types.Menu,), fields)


MENUS = [
    _menu_class(name, [(f"MpmNode_{record['id']}", ": ".join([record["label"], *_words(record)])) for record in records])
    for name, records in categories().items()
]
STAGE_MENU = _menu_class(
    "Stages",
    [
        (MpmSubstepState.bl_idname, MpmSubstepState.bl_label),
        *((f"MpmStage_{name}", record["label"]) for name, record in STAGES.items()),
    ],
)


def draw_add_menu(self, context):
    """Add our categories to the node editor's Add menu."""
    tree = getattr(context.space_data, "edit_tree", None)
    if not is_ours(tree):
        return
    self.layout.operator_context = "INVOKE_DEFAULT"
    if "search_single_menu" not in dir(bpy.ops.wm):  # Blender 4.1 has a search of its own there, which finds ours too
        self.layout.operator(MPM_OT_search_node.bl_idname, text="Search...", icon="VIEWZOOM")
    for menu in MENUS if tree.bl_idname == GRAPH_TREE else [STAGE_MENU]:
        self.layout.menu(menu.bl_idname)


def draw_header(self, context):
    """Offer a new graph in the header of an empty MPM editor."""
    space = context.space_data
    if getattr(space, "tree_type", "") != GRAPH_TREE:
        return
    if space.node_tree is None:
        self.layout.operator("mpm_nodes.new_graph", icon="ADD")
        self.layout.operator("mpm_nodes.load_graph", icon="FILE_FOLDER")
    elif len(space.path) > 1:
        self.layout.operator("mpm_nodes.close_substeps", icon="BACK")
    else:
        self.layout.operator("mpm_nodes.cook", icon="PLAY")


CLASSES = [
    MpmPreferences,
    MPM_OT_search_node,
    MPM_PT_cook,
    MPM_PT_graph,
    MPM_PT_objects,
    MPM_PT_quick,
    MPM_PT_substeps,
    *MENUS,
    STAGE_MENU,
]


def register():
    """Put the menus into Blender's."""
    bpy.types.NODE_MT_add.append(draw_add_menu)
    bpy.types.NODE_HT_header.append(draw_header)


def unregister():
    """Take them out again."""
    bpy.types.NODE_HT_header.remove(draw_header)
    bpy.types.NODE_MT_add.remove(draw_add_menu)
