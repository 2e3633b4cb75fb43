"""What buttons and menus do."""

import json
from pathlib import Path

import bpy

from . import (
    cache_import,
    cook,
    environment,
    force_fields,
    graph_file,
    history,
    knobs,
    painting,
    places,
    problems,
    quick,
    rigid_bodies,
    scene_input,
    specification,
    timeline,
)
from .steps import Stepwise
from .trees import GRAPH_TREE, new_tree

LOOKS, LOOK_AGAIN = 40, 0.1
"""How often it is tried to turn a sidebar to our tab, and the time between [s]."""


def tree_of(context):
    """Return the graph tree of the node editor, also while one of its substep graphs is open; else None."""
    space = context.space_data
    tree = getattr(space, "node_tree", None) if space and space.type == "NODE_EDITOR" else None
    return tree if tree is not None and tree.bl_idname == GRAPH_TREE else None


class OnGraph:
    """Operators that need a graph. `tree` names one for scripts; empty takes the one in the editor."""

    tree: bpy.props.StringProperty(name="Graph", options={"HIDDEN", "SKIP_SAVE"})

    @classmethod
    def poll(cls, context):
        """A graph must be open, or the file must hold one (scripts name it)."""
        return tree_of(context) is not None or bool(problems.graph_trees(bpy.data))

    def graph(self, context):
        """Return the tree that is meant; None, with a report, when there is none."""
        tree = bpy.data.node_groups.get(self.tree) if self.tree else tree_of(context)
        if tree is None:
            self.report({"ERROR"}, "Open an MPM graph in the node editor first")
        return tree


def show_tree(context, tree):
    """Open a tree in the node editor, with the sidebar at the tab that cooks it."""
    space = context.space_data
    if space is None or space.type != "NODE_EDITOR":
        return
    space.tree_type, space.node_tree = tree.bl_idname, tree
    space.show_region_ui = True
    if not bpy.app.background:
        tries = iter(range(LOOKS))
        bpy.app.timers.register(lambda: None if open_tab(tree.name) or next(tries, None) is None else LOOK_AGAIN)


def open_tab(name):
    """Turn the sidebars of the editors that show a graph to our tab; return whether all are.

    Blender knows a tab once the sidebar has been drawn with it, which is after the graph is there.
    """
    opened = True
    for area in (area for window in bpy.context.window_manager.windows for area in window.screen.areas):
        tree = area.spaces.active.node_tree if area.type == "NODE_EDITOR" else None
        for region in area.regions if tree is not None and tree.name == name else ():
            if region.type == "UI":
                try:
                    region.active_panel_category = "MPM"
                except (AttributeError, TypeError):
                    opened = False
                region.tag_redraw()
    return opened


class MPM_OT_new_graph(bpy.types.Operator):
    """Make a new graph with a ball that falls on the ground"""

    bl_idname = "mpm_nodes.new_graph"
    bl_label = "New MPM Graph"
    bl_options = {"REGISTER", "UNDO"}

    def execute(self, context):
        """Make the nodes and wire them."""
        tree = new_tree(GRAPH_TREE, "MPM Graph")
        scene = context.scene
        tree.k_fps = scene.render.fps / scene.render.fps_base
        tree.k_start, tree.k_end = scene.frame_start, min(scene.frame_end, scene.frame_start + 47)
        start_graph(tree)
        for node in tree.nodes:
            if hasattr(node, "k_start_frame"):
                node.k_start_frame = tree.k_start
            knob = specification.knob(node.record, "gravity")
            if knob is not None:
                knobs.set_value(node, knob, scene_input.gravity(scene).get("gravity", knob["default"]))
        if left := scene_input.gravity_left(scene):
            self.report({"WARNING"}, left)
        timeline.follow(tree, scene)
        show_tree(context, tree)
        return {"FINISHED"}


def start_graph(tree):
    """Fill a new tree with material, emitter, ground, solve and cache."""
    from .nodes import connect

    made = {}
    for kind, x, y in (
        ("material_library", 0, 0),
        ("emit_sphere", 240, 0),
        ("collide_plane", 240, -420),
        ("solve", 500, 0),
        ("write_cache", 760, 0),
    ):
        made[kind] = tree.nodes.new(f"MpmNode_{kind}")
        made[kind].location = (x, y)
    connect(made["material_library"], "", made["emit_sphere"], "material")
    connect(made["emit_sphere"], "", made["solve"], "sources")
    connect(made["collide_plane"], "", made["solve"], "colliders")
    connect(made["solve"], "particles", made["write_cache"], "particles")


class MPM_OT_load_graph(bpy.types.Operator):
    """Open a graph file; nodes of older versions are upgraded"""

    bl_idname = "mpm_nodes.load_graph"
    bl_label = "Load Graph"
    bl_options = {"REGISTER", "UNDO"}

    filepath: bpy.props.StringProperty(subtype="FILE_PATH")
    filter_glob: bpy.props.StringProperty(default="*.json", options={"HIDDEN"})

    def invoke(self, context, _event):
        """Ask for the file."""
        context.window_manager.fileselect_add(self)
        return {"RUNNING_MODAL"}

    def execute(self, context):
        """Load it into a new tree and show that."""
        path = Path(bpy.path.abspath(self.filepath))
        try:
            document = graph_file.read(path)
            if graph_file.is_old(document):
                document = upgraded(path)
        except (graph_file.FileFault, environment.EnvironmentFault) as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        if document["format"] == graph_file.SUBSTEPS_FORMAT["name"]:
            tree = graph_file.load_substeps(document, path.stem)
        else:
            tree = graph_file.load(document, path.stem, path.parent)
            timeline.follow(tree, context.scene)
        show_tree(context, tree)
        return {"FINISHED"}


def upgraded(path):
    """Return the document of a graph file with every node brought to its newest version.

    Raises:
        environment.EnvironmentFault: The program cannot be run, or cannot upgrade the file.
    """
    code, out, error = environment.run(["-m", environment.SPEC["cook"]["module"], "upgrade", str(path)])
    if code:
        raise environment.EnvironmentFault(f"{path} cannot be upgraded: {error.strip()[-300:]}")
    return json.loads(out)


class MPM_OT_save_graph(OnGraph, bpy.types.Operator):
    """Write the graph as a file that the command line and other programs open"""

    bl_idname = "mpm_nodes.save_graph"
    bl_label = "Save Graph"

    filepath: bpy.props.StringProperty(subtype="FILE_PATH")
    filter_glob: bpy.props.StringProperty(default="*.json", options={"HIDDEN"})

    def invoke(self, context, _event):
        """Ask for the file."""
        tree = self.graph(context)
        if tree is None:
            return {"CANCELLED"}
        self.filepath = str(places.graph_path(tree))
        context.window_manager.fileselect_add(self)
        return {"RUNNING_MODAL"}

    def execute(self, context):
        """Write it, with the objects that nodes stand for beside it."""
        tree = self.graph(context)
        if tree is None:
            return {"CANCELLED"}
        path = Path(bpy.path.abspath(self.filepath))
        try:
            values = scene_input.gather(tree, path, context.scene)
            graph_file.write(graph_file.save(tree, path.parent, values), path)
        except (graph_file.FileFault, scene_input.SceneFault, environment.EnvironmentFault) as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        self.report({"INFO"}, f"Saved {path}")
        return {"FINISHED"}


class MPM_OT_upgrade(OnGraph, bpy.types.Operator):
    """Bring every node of the graph to its newest version"""

    bl_idname = "mpm_nodes.upgrade"
    bl_label = "Upgrade Nodes"
    bl_options = {"REGISTER", "UNDO"}

    def execute(self, context):
        """Write the graph, let the program upgrade it, and load what it gives."""
        tree = self.graph(context)
        if tree is None:
            return {"CANCELLED"}
        path = places.graph_path(tree).with_suffix(".old.json")
        try:
            graph_file.write(graph_file.save(tree, path.parent), path)
            graph_file.load(upgraded(path), tree.name, path.parent, tree)
        except (graph_file.FileFault, environment.EnvironmentFault) as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        return {"FINISHED"}


class MPM_OT_validate(OnGraph, Stepwise, bpy.types.Operator):
    """Look for everything that is wrong with the graph; problems appear on the nodes"""

    bl_idname = "mpm_nodes.validate"
    bl_label = "Check Graph"

    def steps(self, context):
        """Write the graph and let the program validate it."""
        tree = self.graph(context)
        if tree is None:
            return {"CANCELLED"}
        problems.clear(tree)
        path = yield from cook.write_steps(tree, context.scene)
        try:
            count = (yield from problems.validate_steps(tree, path)) if path else 1
        except environment.EnvironmentFault as error:
            cook.fail_to_start(tree, str(error))
            count = 1
        self.report({"WARNING" if count or "Warning: " in tree.status else "INFO"}, tree.status)
        return {"FINISHED"}


class MPM_OT_cook(OnGraph, Stepwise, bpy.types.Operator):
    """Simulate the graph in another process; frames appear in the scene as they finish"""

    bl_idname = "mpm_nodes.cook"
    bl_label = "Cook"

    resume: bpy.props.BoolProperty(name="Resume", description="Go on after the last whole frame", options={"SKIP_SAVE"})
    high: bpy.props.BoolProperty(
        name="High",
        description="Cook at the High resolution: renders read it, the viewport shows the Low cook",
        options={"SKIP_SAVE"},
    )

    def steps(self, context):
        """Start it."""
        tree = self.graph(context)
        if tree is None or (yield from cook.start_steps(tree, context.scene, self.resume, high=self.high)) is None:
            self.report({"ERROR"}, tree.status if tree else "There is no graph")
            return {"CANCELLED"}
        return {"FINISHED"}


class MPM_OT_cook_again(OnGraph, Stepwise, bpy.types.Operator):
    """Cook the changed graph again from the current frame on; frames before it are taken from the cook that is shown"""

    bl_idname = "mpm_nodes.cook_again"
    bl_label = "Cook Again from This Frame"

    def steps(self, context):
        """Start it; from the first frame on it is a whole cook."""
        tree, frame = self.graph(context), context.scene.frame_current
        again = frame if tree is not None and frame > tree.k_start else None
        if tree is None or (yield from cook.start_steps(tree, context.scene, again=again)) is None:
            self.report({"ERROR"}, tree.status if tree else "There is no graph")
            return {"CANCELLED"}
        return {"FINISHED"}


class MPM_OT_cancel(OnGraph, bpy.types.Operator):
    """Stop the cook after its substep; whole frames stay"""

    bl_idname = "mpm_nodes.cancel"
    bl_label = "Cancel"

    queued: bpy.props.BoolProperty(
        name="Queued", description="Take it out of the queue; a cook that runs goes on", options={"HIDDEN", "SKIP_SAVE"}
    )

    def execute(self, context):
        """Stop it."""
        tree = self.graph(context)
        if tree is not None:
            cook.cancel(tree, self.queued)
        return {"FINISHED"}


class MPM_OT_show_frames(OnGraph, bpy.types.Operator):
    """Bring the newest cook of the graph into the scene, or read what is new in it"""

    bl_idname = "mpm_nodes.show_frames"
    bl_label = "Show Newest Cook"

    def execute(self, context):
        """Find its newest revision folder and show that."""
        tree = self.graph(context)
        if tree is None:
            return {"CANCELLED"}
        found = sorted(places.out_path(tree).glob("r[0-9]*"), key=lambda path: (len(path.name), path.name))
        frames = cache_import.frames_of(found[-1]) if found else []
        if not frames:
            self.report({"ERROR"}, f"{places.out_path(tree)} holds no whole frame; cook the graph first")
            return {"CANCELLED"}
        try:
            history.show(tree, found[-1], context.scene, frames)
        except cache_import.CacheFault as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        self.report({"INFO"}, f"Frames {frames[0]} to {frames[-1]} of {found[-1]}")
        return {"FINISHED"}


class MPM_OT_add_objects(OnGraph, bpy.types.Operator):
    """Add a node for every selected object of the scene and wire it into the solve"""

    bl_idname = "mpm_nodes.add_objects"
    bl_label = "Add Selected Objects"
    bl_options = {"REGISTER", "UNDO"}

    role: bpy.props.EnumProperty(
        name="As",
        items=[
            ("COLLIDER", "Colliders", "Things that matter meets, with their animation and deformation"),
            ("SOURCE", "Sources", "Places that are filled with matter at the start"),
            ("STREAM", "Streams", "Places that matter pours out of"),
            ("FORCE", "Forces", "Force fields that push matter, with their keys"),
        ],
    )

    def execute(self, context):
        """Add the nodes."""
        tree = self.graph(context)
        if tree is None:
            return {"CANCELLED"}
        things = [thing for thing in context.view_layer.objects if thing.select_get()]
        solves = [node for node in tree.nodes if getattr(node, "record", None) and node.record["id"] == "solve"]
        solve = tree.nodes.active if tree.nodes.active in solves else next(iter(solves), None)
        if not things:
            self.report({"ERROR"}, "Select objects in the 3D viewport first")
            return {"CANCELLED"}
        refused, left = [], []
        active = [thing for thing in things if self.role == "COLLIDER" and rigid_bodies.is_active(thing)]
        volumes = quick.volumes(active, context.scene) if active else {}
        for thing in things:
            try:
                if self.role == "FORCE":
                    force_fields.add_force(tree, thing, context.scene, solve)
                    continue
                if self.role == "COLLIDER":
                    node = scene_input.add_collider(tree, thing, solve, volumes.get(thing, 0.0))
                else:
                    node = scene_input.add_source(tree, thing, solve, self.role == "STREAM")
                left += painting.take_known(node)
            except scene_input.ObjectFault as fault:
                refused.append(str(fault))
        said = f"{len(things) - len(refused)} added" + ("" if solve else "; there is no solve node to wire them to")
        self.report({"WARNING" if refused or left else "INFO"}, ". ".join([said, *refused, *left]))
        return {"FINISHED"}


class MPM_OT_check_environment(bpy.types.Operator):
    """Start the Python environment and see whether it can cook"""

    bl_idname = "mpm_nodes.check_environment"
    bl_label = "Check Environment"

    def execute(self, context):
        """Check it; the answer stands in the preferences."""
        chosen = environment.preferences()
        try:
            text, bad = environment.check(), False
        except environment.EnvironmentFault as error:
            text, bad = str(error), True
        if chosen:
            chosen.answer, chosen.is_bad = text, bad
        self.report({"ERROR" if bad else "INFO"}, text)
        return {"CANCELLED" if bad else "FINISHED"}


CLASSES = [
    MPM_OT_new_graph,
    MPM_OT_load_graph,
    MPM_OT_save_graph,
    MPM_OT_upgrade,
    MPM_OT_validate,
    MPM_OT_cook,
    MPM_OT_cook_again,
    MPM_OT_cancel,
    MPM_OT_show_frames,
    MPM_OT_add_objects,
    MPM_OT_check_environment,
]
