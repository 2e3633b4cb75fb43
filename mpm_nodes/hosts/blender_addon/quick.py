"""Two clicks to matter: an object and a preset become a graph, or a part of one."""

import contextlib

import bmesh
import bpy
from mathutils import Vector

from . import (
    force_fields,
    graph_file,
    knobs,
    looks,
    nodes,
    painting,
    problems,
    quick_presets,
    quick_ways,
    rigid_bodies,
    scene_input,
    scene_pass,
    specification,
    surfaces,
    timeline,
)

SMALLEST = 1e-15
"""Area [m^2] of a surface that nothing can be made of."""


class QuickFault(Exception):
    """Nothing can be made of what is selected; the message says why and what to do."""


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
        if area < SMALLEST:
            raise QuickFault(f"{thing.name} has no extent at frame {stage.scene.frame_current}; check its scale")
        volume = unit**3 * abs(whole.calc_volume(signed=True))
        is_open = any(not edge.is_manifold for edge in whole.edges)
        sheet = volume < (1e-2 if is_open else 1e-6) * area**1.5
        return (0.0 if sheet else volume), area, lowest, sheet
    finally:
        whole.free()


def make(preset, source, others, scene, particles, ground=True, way=quick_ways.FILL, tree=None):
    """Return a graph tree that turns an object into matter, which feels the scene's force fields.

    Args:
        preset: Document of a quick preset.
        source: The object.
        others: Objects that the matter meets.
        scene: The scene.
        particles: About how many particles the object is filled with, or pours out.
        ground: Whether there is ground at height 0, or below what lies lower.
        way: What becomes of the object.
        tree: Graph that the matter is added to, with its cell size and frames; None makes one.

    Raises:
        QuickFault: The object has no surface, or the graph cannot take it.
    """
    if not surfaces.has_surface(source):
        raise QuickFault(f"{source.name} has no surface; make a mesh the active object")
    held = held_by(tree) if tree else set()
    if source in held:
        raise QuickFault(f"{source.name} is in {tree.name} already; choose another object, or make a new graph")
    met = [thing for thing in others if surfaces.has_surface(thing) and thing not in held]
    with scene_pass.apart(scene, [source, *met]) as stage:
        stage.scene.frame_set(scene.frame_start)
        found = {thing.name: measured(thing, stage, scene) for thing in (source, *met)}
        speed = _speed(source, stage, scene)
    rate = scene.render.fps / scene.render.fps_base
    settings = preset["settings"]
    seconds = (settings.get("end", 48) - settings.get("start", 1) + 1) / settings.get("fps", 24)
    volume, area, *_ = found[source.name]
    edge = volume ** (1.0 / 3.0) if volume else area**0.5 / 2.0
    way = quick_ways.suited(way, edge)
    size = float(preset["editor"]["quick"].get("size", edge))
    document = quick_presets.scaled(preset, edge / size)
    pours = way.kind == "POUR"
    cell = quick_presets.cell_size(quick_ways.poured_volume(way, edge, seconds) if pours else volume, area, particles)
    lowest = min(low for _, _, low, _ in found.values())
    document = quick_presets.filled(
        document,
        source.name,
        [thing.name for thing in met],
        min(0.0, lowest) if ground else None,
        {name for name, (*_, sheet) in found.items() if sheet},
        tree.k_cell_size if tree else cell,
    )
    for thing in met:
        _let_move(document, thing, found[thing.name][0])
    emitter = _entry_of(document, source)
    document = quick_ways.sent(document, emitter, way, scene.frame_start)
    entry = document["nodes"][emitter]
    entry["knobs"] = {**({} if pours else speed), **entry["knobs"]}
    if tree is not None:
        solve = _add(tree, document, preset)
    else:
        last = scene.frame_start + max(2, round(seconds * rate)) - 1
        document["settings"].update(fps=rate, start=scene.frame_start, end=last)
        for entry in document["nodes"].values():
            if entry["type"] == "solve":
                entry.setdefault("knobs", {})["start_frame"] = scene.frame_start
                entry["knobs"] |= scene_input.gravity(scene)
        tree = graph_file.load(document, f"{preset['editor']['quick'].get('label', 'Quick')} {source.name}")
        solve = first_of(tree, "solve")
    for thing in felt(scene):
        if thing not in held:
            with contextlib.suppress(scene_input.ObjectFault):  # `unheard` tells of it
                force_fields.add_force(tree, thing, scene, solve)
    painting.take_all_known(tree)
    timeline.follow(tree, scene)
    return tree


def held_by(tree):
    """Return the objects of the scene that nodes of a tree stand for."""
    return {node.scene_object for node in tree.nodes if getattr(node, "scene_object", None)}


def first_of(tree, kind):
    """Return the first node of a type in a tree, or None."""
    return next((node for node in tree.nodes if getattr(node, "record", None) and node.record["id"] == kind), None)


def _entry_of(document, thing):
    """Return the name of the entry that stands for an object."""
    objects = {name: (entry.get("editor") or {}).get("blender", {}).get("object") for name, entry in document["nodes"].items()}
    return next(name for name, held in objects.items() if held == thing.name)


def _add(tree, document, preset):
    """Add what a filled preset feeds its solve with to a tree that has a solve; return that solve.

    Raises:
        QuickFault: The tree has no solve, or one with other substeps than the preset needs.
    """
    solve, cache = first_of(tree, "solve"), first_of(tree, "write_cache")
    label = preset["editor"]["quick"].get("label", "This preset")
    if solve is None or cache is None:
        raise QuickFault(f"{tree.name} has no {'solve' if solve is None else 'cache'} yet; choose another graph, or a new one")
    known = specification.knob(solve.record, "substeps")
    needed = document["nodes"][quick_ways.solve_of(document["nodes"])].get("knobs", {}).get("substeps", known["default"])
    given = knobs.value(solve, known, graph_file.save_substeps)
    if needed != given:
        raise QuickFault(f"{label} needs other substeps than {tree.name} has; make a new graph for it")
    entries, into_solve, into_cache = quick_ways.for_graph(document, first_of(tree, "collide_plane") is not None)
    there = {quick_ways.solve_of(document["nodes"]): solve}
    made = graph_file.add(tree, entries, there)
    for target, wires in ((solve, into_solve), (cache, into_cache)):
        for port, wire in wires:
            name, _, output = wire.partition(".")
            nodes.connect(made[name], output, target, port)
    cache.k_mesh_per_material = True
    labels = [node.k_label for name, node in made.items() if name in entries and hasattr(node, "k_label")]
    looks.add_look(tree, labels, preset["editor"]["quick"].get("look"))
    return solve


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
    held = held_by(tree) - set(moving(tree))
    stay = sorted(thing.name for thing in held if rigid_bodies.is_active(thing))
    alone = [each.name for each in problems.graph_trees(bpy.data) if each != tree and looks.quick_facts(each)]
    said = [f"{', '.join(winds)}: a solve does not feel force fields of this kind"] if winds else []
    if stay:
        said.append(f"{', '.join(stay)}: an active rigid body that this preset does not move; bake it, or make it passive")
    if left := scene_input.gravity_left(scene):
        said.append(left)
    if alone:
        said.append(f"Its matter does not meet that of {', '.join(alone)}: add it to that graph for that (More Options)")
    scaled = [node.comment for node in tree.nodes if getattr(node, "comment", "").startswith("Scaled by Quick")]
    return said, scaled
