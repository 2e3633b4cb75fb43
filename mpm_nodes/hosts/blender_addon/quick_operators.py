"""Buttons of the panel Quick: a preset for the active object at once, or with what else can be chosen in a dialog."""

import contextlib
import functools

import bpy
from mathutils import Vector

from . import cook, environment, graph_file, history, problems, quick_pictures, quick_presets, quick_ways, surfaces
from .quick import QuickFault, make, moving, unheard
from .steps import Stepwise
from .trees import GRAPH_TREE

NEW = "NEW"
"""Choice of a new graph in the dialog."""


def own_folder():
    """Return the folder of presets that the preferences name, "" for none."""
    chosen = environment.preferences()
    return bpy.path.abspath(chosen.quick_folder) if chosen and chosen.quick_folder else ""


def hide(thing):
    """Hide an object that has become matter; it stays in the scene, and is still what the graph is made of."""
    thing.hide_render = True
    thing.hide_set(True)


def give_back(key, hidden, no_render):
    """Show an object again of which nothing has become; `key` is `history.key_of` it."""
    thing = next((each for each in bpy.data.objects if history.key_of(each) == key), None)
    if thing is not None:
        thing.hide_render = no_render
        with contextlib.suppress(RuntimeError):  # the view layer does not hold it
            thing.hide_set(hidden)


def _give_all_back(shown):
    for each in shown:
        give_back(*each)


class QuickChoices:
    """What can be chosen besides the preset."""

    particles: bpy.props.IntProperty(name="Particles", default=0, min=0, description="0: the panel's", options={"SKIP_SAVE"})
    high: bpy.props.BoolProperty(
        name="Final Resolution", description="Cook at the graph's High resolution, and not as a preview", options={"SKIP_SAVE"}
    )
    cook: bpy.props.BoolProperty(name="Cook", default=True, description="Cook it at once", options={"SKIP_SAVE"})
    way: bpy.props.EnumProperty(
        name="Object", items=[(name, *said) for name, said in quick_ways.WAYS.items()], default="FILL", options={"SKIP_SAVE"}
    )
    velocity: bpy.props.FloatVectorProperty(
        name="Velocity",
        subtype="VELOCITY",
        unit="VELOCITY",
        description="Of the stream or the throw; all 0: one that suits the object's size",
        options={"SKIP_SAVE"},
    )
    height: bpy.props.FloatProperty(
        name="Height",
        min=0.0,
        unit="LENGTH",
        description="How far above its place the drop begins; 0: twice the object's size",
        options={"SKIP_SAVE"},
    )


class MPM_OT_quick(QuickChoices, Stepwise, bpy.types.Operator):
    """Make the active object of this matter, on ground, with the other selected objects as colliders, and cook it"""

    bl_idname = "mpm_nodes.quick"
    bl_label = "Quick"
    bl_options = {"REGISTER"}

    preset: bpy.props.StringProperty(name="Preset", options={"SKIP_SAVE"})
    graph: bpy.props.StringProperty(
        name="Graph", description="Graph that the matter is added to; empty: a new one", options={"SKIP_SAVE"}
    )

    @classmethod
    def poll(cls, context):
        """An object must be active."""
        return context.object is not None and context.mode == "OBJECT"

    @classmethod
    def description(cls, _context, properties):
        """Return the preset's help."""
        presets, _ = quick_presets.found(own_folder())
        return presets[properties.preset]["editor"]["quick"].get("doc", "") if properties.preset in presets else cls.__doc__

    def at_hand(self):
        """Return the graph that the matter is added to, None for a new one.

        Raises:
            QuickFault: There is no such graph, or it cooks.
        """
        if not self.graph:
            return None
        tree = bpy.data.node_groups.get(self.graph)
        if tree is None or tree.bl_idname != GRAPH_TREE:
            raise QuickFault(f"There is no graph {self.graph}; choose another, or none for a new one")
        if cook.job_of(tree) is not None:
            raise QuickFault(f"{tree.name} is cooking; cancel that first")
        return tree

    def steps(self, context):
        """Make the graph, hide the object, cook."""
        presets, faults = quick_presets.found(own_folder())
        if self.preset not in presets:
            self.report({"ERROR"}, f"There is no preset {self.preset}; there are {', '.join(presets)}. {' '.join(faults)}".strip())
            return {"CANCELLED"}
        source, scene = context.object, context.scene
        others = [thing for thing in context.selected_objects if thing is not source]
        budget = self.particles or context.window_manager.mpm_nodes_particles
        unit = surfaces.metres(scene)
        way = quick_ways.Way(self.way, tuple(unit * each for each in surfaces.Y_UP @ Vector(self.velocity)), unit * self.height)
        try:
            graph = self.at_hand()
            tree = make(presets[self.preset], source, others, scene, budget, context.window_manager.mpm_nodes_ground, way, graph)
        except (QuickFault, graph_file.FileFault) as fault:
            self.report({"ERROR"}, str(fault))
            return {"CANCELLED"}
        taken = [source, *moving(tree)]
        shown = [(history.key_of(thing), thing.hide_get(), thing.hide_render) for thing in taken]
        back = functools.partial(_give_all_back, shown)
        for thing in taken:
            hide(thing)
        history.remember(f"Quick {self.preset}")
        job = None
        try:
            job = (yield from cook.start_steps(tree, scene, high=self.high)) if self.cook else None
        finally:
            if self.cook and job is None:
                back()
        if self.cook and job is None:
            self.report({"ERROR"}, tree.status)
            return {"CANCELLED"}
        if job is not None:
            job.on_failure = back
        left_out, scaled = unheard(tree, scene)
        finer = tree.high_resolution if self.cook and self.high else 1.0
        count = "" if self.graph else f", about {round(budget * finer**3)} particles"
        said = [f"{tree.name}: cells of {tree.k_cell_size / finer:.3g} m{count}", *left_out, *scaled]
        self.report({"WARNING" if left_out else "INFO"}, ". ".join(said))
        return {"FINISHED"}


def _presets(_self, _context):
    MENUS["presets"] = [
        (name, document["editor"]["quick"].get("label", name), document["editor"]["quick"].get("doc", ""))
        for name, document in quick_presets.found(own_folder())[0].items()
    ]
    return MENUS["presets"]


def _graphs(_self, _context):
    """Return the graphs that matter can be added to, by the number of their tree: names need not be ASCII."""
    MENUS["graphs"] = [
        (NEW, "New Graph", "A graph of its own: its matter does not meet that of others"),
        *((str(history.key_of(tree)), tree.name, "Meets the matter that is there") for tree in problems.graph_trees(bpy.data)),
    ]
    return MENUS["graphs"]


MENUS = {}
"""Menus of the dialog as they were last asked for: Blender keeps no reference to their texts."""


class MPM_OT_quick_dialog(QuickChoices, bpy.types.Operator):
    """Choose what becomes of the active object, with which matter, and in which graph"""

    bl_idname = "mpm_nodes.quick_dialog"
    bl_label = "Quick: More Options"
    bl_options = {"REGISTER"}

    preset: bpy.props.EnumProperty(name="Matter", items=_presets)
    graph: bpy.props.EnumProperty(name="Add To", items=_graphs, options={"SKIP_SAVE"})

    poll = MPM_OT_quick.poll

    def invoke(self, context, _event):
        """Ask."""
        self.particles = context.window_manager.mpm_nodes_particles
        return context.window_manager.invoke_props_dialog(self)

    def draw(self, _context):
        """Draw what counts for the way that is chosen."""
        layout = self.layout
        picture = quick_pictures.icon(self.preset, own_folder())
        if picture:
            layout.template_icon(picture, scale=6.0)
        layout.prop(self, "preset")
        layout.row().prop(self, "way", expand=True)
        if self.way == "DROP":
            layout.prop(self, "height")
        elif self.way in ("POUR", "THROW"):
            layout.prop(self, "velocity")
        layout.prop(self, "graph")
        if self.graph == NEW:
            layout.prop(self, "particles")
        layout.prop(self, "cook")
        if self.cook:
            layout.prop(self, "high")

    def execute(self, _context):
        """Do as the preset's button does, with what was chosen."""
        named = {str(history.key_of(tree)): tree.name for tree in problems.graph_trees(bpy.data)}
        chosen = {name: getattr(self, name) for name in QuickChoices.__annotations__}
        how = "EXEC_DEFAULT" if bpy.app.background else "INVOKE_DEFAULT"
        try:
            done = bpy.ops.mpm_nodes.quick(how, preset=self.preset, graph=named.get(self.graph, ""), **chosen)
        except RuntimeError as error:  # a report of an error, which scripts get as an exception
            self.report({"ERROR"}, str(error).partition("Error: ")[2].strip() or str(error))
            return {"CANCELLED"}
        return {"FINISHED"} if done == {"RUNNING_MODAL"} else done  # the other operator goes on, and not this one


CLASSES = [MPM_OT_quick, MPM_OT_quick_dialog]


def register():
    """Give the panel its choices."""
    bpy.types.WindowManager.mpm_nodes_particles = bpy.props.IntProperty(
        name="Particles", default=30000, min=100, soft_max=2000000, description="About how many particles the object is filled with"
    )
    bpy.types.WindowManager.mpm_nodes_ground = bpy.props.BoolProperty(
        name="Ground", default=True, description="Ground at height 0, or below what lies lower"
    )


def unregister():
    """Take the choices away."""
    del bpy.types.WindowManager.mpm_nodes_ground
    del bpy.types.WindowManager.mpm_nodes_particles
