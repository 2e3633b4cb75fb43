"""Two clicks to matter: an object and a preset become a graph that cooks at once."""

import contextlib
import functools

import bmesh
import bpy
from mathutils import Vector

from . import (
    cook,
    environment,
    force_fields,
    graph_file,
    history,
    looks,
    problems,
    quick_presets,
    rigid_bodies,
    scene_input,
    scene_pass,
    surfaces,
    timeline,
)
from .steps import Stepwise


class QuickFault(Exception):
    """Nothing can be made of what is selected; the message says why and what to do."""


def own_folder():
    """Return the folder of presets that the preferences name, "" for none."""
    chosen = environment.preferences()
    return bpy.path.abspath(chosen.quick_folder) if chosen and chosen.quick_folder else ""


def measured(thing, stage, scene):
    """Return (volume [m^3], area [m^2], lowest point [m], whether it is a sheet) of an object's surface as it is now."""
    whole = bmesh.new()

    def take(mesh, matrix):
        part = bmesh.new()
        part.from_mesh(mesh)
        part.transform(matrix)
        held = bpy.data.meshes.new("MPM part")
        part.to_mesh(held)
        part.free()
        whole.from_mesh(held)
        bpy.data.meshes.remove(held)

    try:
        surfaces.visit(stage.stands[thing], take, stage.depsgraph)
        if not whole.faces:
            raise QuickFault(f"{thing.name} has no faces; {scene_input.face_cure(thing)}")
        unit = surfaces.metres(scene)
        lowest = unit * min(vertex.co.z for vertex in whole.verts)
        middle = sum((vertex.co for vertex in whole.verts), start=Vector()) / len(whole.verts)
        bmesh.ops.translate(whole, verts=whole.verts, vec=-middle)  # an open surface has a volume only about its middle
        area = unit**2 * sum(face.calc_area() for face in whole.faces)
        volume = unit**3 * abs(whole.calc_volume(signed=True))
        is_open = any(not edge.is_manifold for edge in whole.edges)
        sheet = volume < (1e-2 if is_open else 1e-6) * area**1.5
        return (0.0 if sheet else volume), area, lowest, sheet
    finally:
        whole.free()


def make(preset, source, others, scene, particles, ground=True):
    """Return a new graph tree that turns an object into matter, which feels the scene's force fields.

    Args:
        preset: Document of a quick preset.
        source: The object.
        others: Objects that the matter meets.
        scene: The scene.
        particles: About how many particles the object is filled with.
        ground: Whether there is ground at height 0, or below what lies lower.

    Raises:
        QuickFault: The object has no surface.
    """
    if not surfaces.has_surface(source):
        raise QuickFault(f"{source.name} has no surface; make a mesh the active object")
    facts = preset["editor"]["quick"]
    met = [thing for thing in others if surfaces.has_surface(thing)]
    with scene_pass.apart(scene, [source, *met]) as stage:
        stage.scene.frame_set(scene.frame_start)
        found = {thing.name: measured(thing, stage, scene) for thing in (source, *met)}
        speed = _speed(source, stage, scene)
    volume, area, *_ = found[source.name]
    lowest = min(low for _, _, low, _ in found.values())
    sheets = {name for name, (*_, sheet) in found.items() if sheet}
    cell = quick_presets.cell_size(volume, area, particles)
    edge = volume ** (1.0 / 3.0) if volume else area**0.5 / 2.0
    document = quick_presets.scaled(preset, edge / float(facts.get("size", edge)))
    height = min(0.0, lowest) if ground else None
    document = quick_presets.filled(document, source.name, [thing.name for thing in met], height, sheets, cell)
    for thing in met:
        _let_move(document, thing, found[thing.name][0])
    rate = scene.render.fps / scene.render.fps_base
    seconds = (document["settings"].get("end", 48) - document["settings"].get("start", 1) + 1) / document["settings"].get("fps", 24)
    last = scene.frame_start + max(2, round(seconds * rate)) - 1
    document["settings"].update(fps=rate, start=scene.frame_start, end=last)
    for entry in document["nodes"].values():
        if entry["type"] == "solve":
            entry.setdefault("knobs", {})["start_frame"] = scene.frame_start
            entry["knobs"] |= scene_input.gravity(scene)
        if (entry.get("editor") or {}).get("blender", {}).get("object") == source.name:
            entry["knobs"] = {**speed, **entry.get("knobs", {})}
    tree = graph_file.load(document, f"{facts.get('label', 'Quick')} {source.name}")
    solve = next(node for node in tree.nodes if node.record and node.record["id"] == "solve")
    for thing in felt(scene):
        with contextlib.suppress(scene_input.ObjectFault):  # `unheard` tells of it
            force_fields.add_force(tree, thing, scene, solve)
    timeline.follow(tree, scene)
    return tree


def _let_move(document, thing, volume):
    """Let the collider of an active rigid body move by itself."""
    facts = rigid_bodies.facts(thing, volume)
    for name, entry in list(document["nodes"].items()) if facts else ():
        if entry["type"] == "collide_usd" and (entry.get("editor") or {}).get("blender", {}).get("object") == thing.name:
            rigid_bodies.moved(document, name, facts)


def moving(tree):
    """Return the objects that a solve of a tree moves as rigid bodies."""
    return [node.scene_object for node in tree.nodes if getattr(node, "scene_object", None) and rigid_bodies.is_body(node)]


def volumes(things, scene):
    """Return the volumes [m^3] of objects at a scene's first frame, 0 of those that enclose none, by object."""
    found = {}
    with scene_pass.apart(scene, things) as stage:
        stage.scene.frame_set(scene.frame_start)
        for thing in things:
            with contextlib.suppress(QuickFault):
                found[thing] = measured(thing, stage, scene)[0]
    return found


def felt(scene):
    """Return the force fields of a scene that are not switched off."""
    return [thing for thing in scene.objects if scene_input.is_field(thing) and not thing.hide_viewport]


def _speed(thing, stage, scene):
    """Return the knobs of the velocity and spin that an object's keys give it at the scene's first frame; none where it rests.

    The stage is at that frame, and at the next one afterwards.
    """
    first = stage.evaluated(thing).matrix_world.copy()
    corners = [vertex for piece in stage.pieces(thing) for vertex in piece.vertices()]
    stage.scene.frame_set(scene.frame_start + 1)
    way = stage.evaluated(thing).matrix_world @ first.inverted_safe()
    middle = sum(corners, start=Vector()) / max(1, len(corners))
    rate = scene.render.fps / scene.render.fps_base
    axis, angle = way.to_quaternion().to_axis_angle()
    moved = surfaces.metres(scene) * rate * ((way @ middle) - middle)
    found = {"velocity": surfaces.Y_UP @ moved, "angular_velocity": surfaces.Y_UP @ (axis * angle * rate)}
    return {name: [float(f"{round(each, 4):.4g}") + 0.0 for each in value] for name, value in found.items() if value.length > 1e-4}


def unheard(tree, scene):
    """Return, in sentences, (what the matter neither feels nor meets, numbers that were scaled to the object)."""
    winds = [thing.name for thing in felt(scene) if thing.field.type not in force_fields.KINDS]
    held = {node.scene_object for node in tree.nodes if getattr(node, "scene_object", None)} - set(moving(tree))
    stay = sorted(thing.name for thing in held if rigid_bodies.is_active(thing))
    alone = [each.name for each in problems.graph_trees(bpy.data) if each != tree and looks.quick_facts(each)]
    said = [f"{', '.join(winds)}: a solve does not feel force fields of this kind"] if winds else []
    if stay:
        said.append(f"{', '.join(stay)}: an active rigid body that this preset does not move; bake it, or make it passive")
    if left := scene_input.gravity_left(scene):
        said.append(left)
    if alone:
        said.append(f"Its matter does not meet that of {', '.join(alone)}: wire both sources into one solve for that")
    scaled = [node.comment for node in tree.nodes if getattr(node, "comment", "").startswith("Scaled by Quick")]
    return said, scaled


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


class MPM_OT_quick(Stepwise, bpy.types.Operator):
    """Make the active object of this matter, on ground, with the other selected objects as colliders, and cook it"""

    bl_idname = "mpm_nodes.quick"
    bl_label = "Quick"
    bl_options = {"REGISTER"}

    preset: bpy.props.StringProperty(name="Preset", options={"SKIP_SAVE"})
    particles: bpy.props.IntProperty(name="Particles", default=0, min=0, description="0: the panel's", options={"SKIP_SAVE"})
    cook: bpy.props.BoolProperty(name="Cook", default=True, options={"SKIP_SAVE"})

    @classmethod
    def poll(cls, context):
        """An object must be active."""
        return context.object is not None and context.mode == "OBJECT"

    @classmethod
    def description(cls, _context, properties):
        """Return the preset's help."""
        presets, _ = quick_presets.found(own_folder())
        return presets[properties.preset]["editor"]["quick"].get("doc", "") if properties.preset in presets else cls.__doc__

    def steps(self, context):
        """Make the graph, hide the object, cook."""
        presets, faults = quick_presets.found(own_folder())
        if self.preset not in presets:
            self.report({"ERROR"}, f"There is no preset {self.preset}; there are {', '.join(presets)}. {' '.join(faults)}".strip())
            return {"CANCELLED"}
        source, scene = context.object, context.scene
        others = [thing for thing in context.selected_objects if thing is not source]
        budget = self.particles or context.window_manager.mpm_nodes_particles
        try:
            tree = make(presets[self.preset], source, others, scene, budget, context.window_manager.mpm_nodes_ground)
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
            job = (yield from cook.start_steps(tree, scene)) if self.cook else None
        finally:
            if self.cook and job is None:
                back()
        if self.cook and job is None:
            self.report({"ERROR"}, tree.status)
            return {"CANCELLED"}
        if job is not None:
            job.on_failure = back
        left_out, scaled = unheard(tree, scene)
        said = [f"{tree.name}: cells of {tree.k_cell_size:.3g} m, about {budget} particles", *left_out, *scaled]
        self.report({"WARNING" if left_out else "INFO"}, ". ".join(said))
        return {"FINISHED"}


CLASSES = [MPM_OT_quick]


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
