"""Objects of the scene as input of a graph: meshes written as USD with all that moves them, placements read from any object."""

import struct
from pathlib import Path

import bpy
from mathutils import Vector

from . import knobs, nodes, places, simulations, surfaces, timeline
from .scene_export import as_mesh, export, shown
from .surfaces import Y_UP, has_surface, metres

SIZES = ("size", "radius", "length", "half_height")
"""Knobs of nodes with a place that say how large it is."""


class ObjectFault(Exception):
    """An object can be neither a collider nor a source; the message says why and what to choose."""


class SceneFault(Exception):
    """A node's object cannot be used. `node` is the node; the message says why and what to do."""

    def __init__(self, node, message):
        super().__init__(message)
        self.node = node


def gather(tree, path, scene):
    """Write out the objects that nodes of a tree stand for; return knob values by node name.

    Knobs that drivers or NLA strips move are there too, with their value at every frame.

    Args:
        tree: The graph.
        path: The graph file that is to be written; exports lie beside it.
        scene: The scene of the objects.

    Raises:
        SceneFault: An object is gone, is of the wrong kind, or cannot be written.
    """
    ours = [node for node in tree.nodes if isinstance(node, nodes.MpmNode)]
    refuse_unbaked(ours, scene, tree.k_end)
    values = timeline.driven_values(tree, ours, scene, range(tree.k_start, tree.k_end + 1))
    for node in ours:
        if node.scene_object is None:
            if node.object_name:
                raise SceneFault(
                    node, f"{node.object_name} was deleted; choose another object, or clear the field to use the knobs"
                )
            continue
        kind = node.takes_object()
        if scene.objects.get(node.scene_object.name) is not node.scene_object:
            raise SceneFault(node, f"{node.scene_object.name} is not in the scene {scene.name}; choose another object, or none")
        if kind == "mesh":
            values.setdefault(node.name, {}).update(_mesh(node, Path(path), scene, tree))
        elif kind == "place":
            values.setdefault(node.name, {}).update(placement(node, node.scene_object, scene, tree))
    return values


def refuse_unbaked(ours, scene, last):
    """Play simulations of geometry nodes that nodes' objects hang on up to a frame.

    Raises:
        SceneFault: An object hangs on another simulation, which is not baked.
    """
    held = {node: node.scene_object for node in ours if node.scene_object is not None and node.takes_object()}
    blocks = simulations.dependencies(held.values()) if held else {}
    for node, thing in held.items():
        text = simulations.unbaked(blocks[thing], scene)
        if text:
            raise SceneFault(node, text)
    simulations.play(set().union(*blocks.values()), scene, last)


# ---------------------------------------------------------------- meshes
def _mesh(node, graph, scene, tree):
    """Write a node's object as USD with its animation and deformation; return the knobs that name it."""
    thing = node.scene_object
    if not has_surface(thing):
        raise SceneFault(node, f"{thing.name} has no surface; choose a mesh, or use an emitter with a place for an empty")
    path = places.input_path(graph, thing)
    # the whole shot, so that a longer graph finds what is there unchanged and can go on after the frames that it has
    span = min(scene.frame_start, tree.k_start), max(scene.frame_end, tree.k_end)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with shown(thing, scene), as_mesh(thing, scene) as mesh:
            if not any(piece.faces for piece in surfaces.pieces(thing)):
                raise SceneFault(node, f"{thing.name} has no faces; {face_cure(thing)}")
            if tree.k_start < 0 and surfaces.changes(thing, scene, range(tree.k_start, 1)):
                raise SceneFault(
                    node, f"{thing.name} moves before frame 0, and Blender exports frames from 0 on; start the graph at 0"
                )
            still = not surfaces.changes(thing, scene, range(max(span[0], 0), span[1] + 1))
            # one frame of what stands still: its file is the same one whatever the frames of the scene are
            written = export(mesh, path, scene, (span[0], span[0]) if still else span)
            values = _moved(node, thing, scene, tree) if _is_template(node) else {}
    except (OSError, RuntimeError) as error:
        raise SceneFault(node, f"{thing.name} cannot be written to {path} ({error})") from error
    if any(knob["name"] == "frame" for knob in node.record["knobs"]):
        values = {"frame": float(tree.k_start)} | values
    return {"path": written.relative_to(graph.parent).as_posix(), "prim": ""} | values


def face_cure(thing):
    """Return what to do about an object without faces."""
    if thing.type == "META":
        return "metaballs of a family are one surface, which belongs to the first: choose that one"
    if thing.type in ("CURVE", "SURFACE", "FONT"):
        return "give it a bevel or an extrusion in its data properties, or fill it"
    return "choose an object with a surface"


def _moved(node, thing, scene, tree):
    """Return the knobs that move what streams out of a mesh: its turn and shift, or for one that changes its shape its frame."""
    wanted = {knob["name"]: knob for knob in node.record["knobs"]}
    if not {"frame", "rotation", "translation"} <= wanted.keys():
        return {}
    frames = range(tree.k_start, tree.k_end + 1)
    ways = surfaces.motion(thing, scene, frames)
    own = any(knobs.value(node, wanted[name]) != wanted[name]["default"] for name in ("rotation", "translation"))
    if ways is None or (own and any(way != ways[0] for way in ways)):
        return {"frame": timeline.keyed(frames, [float(frame) for frame in frames])}
    if own:
        return {}
    turns, shifts, angles = [], [], None
    for way in ways:
        angles = _angles(way, angles)
        turns.append(_degrees(angles))
        shifts.append([knobs.short(_single(each)) for each in Y_UP @ way.translation * metres(scene)])
    return _carried(wanted, {"rotation": timeline.keyed(frames, turns), "translation": timeline.keyed(frames, shifts)})


def _carried(wanted, values):
    """Return the knobs of a place that matter streams out of: where it moves, its particles are laid out in it, and go along."""
    moves = any(isinstance(value, dict) for value in values.values())
    return values | ({"lattice": "body"} if moves and "lattice" in wanted else {})


def _angles(matrix, before):
    """Return a matrix's turns about a graph's axes, next to those of the frame before."""
    turn = Y_UP @ matrix.to_quaternion().to_matrix() @ Y_UP.transposed()
    return turn.to_euler("XYZ", *([before] if before else []))


def _degrees(angles):
    return [knobs.short(round(each * 57.29577951308232, 4) + 0.0) for each in angles]


def _evaluated(thing):
    return thing.evaluated_get(bpy.context.evaluated_depsgraph_get())


# ---------------------------------------------------------------- placements
def placement(node, thing, scene, tree):
    """Return the knobs that an object's place, turn and size stand for; keyed where it moves a collider, a stream or drops.

    Raises:
        SceneFault: The node needs a size, and the object has none.
    """
    wanted = {knob["name"]: knob for knob in node.record["knobs"]}
    place = next(name for name in ("centre", "translate") if name in wanted)
    moves = node.record["time_dependent"] or _is_template(node)
    frames = range(tree.k_start, tree.k_end + 1) if moves else [tree.k_start]
    unit, centre, size, where, turns, angles = metres(scene), Vector(), {}, [], [], None
    with shown(thing, scene):
        for frame in timeline.at_frames(scene, frames):
            world = _evaluated(thing).matrix_world
            if frame == frames[0]:
                centre, extent = _box(node, thing, world)
                size = _size(wanted, [unit * each for each in extent])
            middle = Y_UP @ (world @ centre) * unit
            angles = _angles(world, angles)
            where.append([knobs.short(_single(each)) for each in middle])
            turns.append(_degrees(angles))
    values = {place: timeline.keyed(frames, where)}
    if "rotation" in wanted:
        values["rotation"] = timeline.keyed(frames, turns)
    if "orientation" in wanted:  # the object's turn counts, whatever the node had before
        values["orientation"] = wanted["orientation"]["default"]
    return (_carried(wanted, values) if _is_template(node) else values) | size


def _is_template(node):
    """Return whether particles of a node end in an emitter, which makes them at every frame, and not at the first one alone."""
    below = {link.to_node for socket in _ours(node.outputs) for link in socket.links}
    return any(any(socket.type_id == "Emitter" for socket in _ours(each.outputs)) or _is_template(each) for each in below)


def _single(number):
    return struct.unpack("f", struct.pack("f", number))[0]


def _box(node, thing, world):
    """Return centre and edges, along an object's own axes, of what it fills: its surface, or the shape of an empty."""
    scale = [abs(each) for each in world.to_scale()]
    if has_surface(thing):
        inverse = world.inverted_safe()
        corners = [inverse @ vertex for piece in surfaces.pieces(thing) for vertex in piece.vertices()]
        if not corners:
            raise SceneFault(node, f"{thing.name} has no vertices; choose another object")
        low, high = (Vector(pick(corner[axis] for corner in corners) for axis in range(3)) for pick in (min, max))
        return (low + high) / 2.0, [scale[axis] * (high[axis] - low[axis]) for axis in range(3)]
    if thing.type == "EMPTY":
        return Vector(), [2.0 * thing.empty_display_size * each for each in scale]
    if any(name in SIZES for name in (knob["name"] for knob in node.record["knobs"])):
        kind = thing.type.replace("_", " ").lower()
        raise SceneFault(node, f"{thing.name} ({kind}) has no size; choose a mesh, or an empty drawn as a ball or a cube")
    return Vector(), [0.0, 0.0, 0.0]


def _size(wanted, extent):
    """Return the knobs that edges in metres stand for, in the axes of a graph."""
    if "size" in wanted and wanted["size"]["kind"] == "vector":
        return {"size": [knobs.short(_single(extent[axis])) for axis in (0, 2, 1)]}
    if "radius" in wanted and "length" not in wanted:
        return {"radius": knobs.short(_single(max(extent) / 2.0))}
    return {}


# ---------------------------------------------------------------- nodes for objects
def add_collider(tree, thing, solve=None):
    """Add a node that collides with an object, and wire it into a solve; return it."""
    node = _add(tree, _kind(thing, "collide_usd", "collide_box", "collide_sphere"), thing, solve, -200.0)
    return _wired(node, "collider", solve, "colliders")


def add_source(tree, thing, solve=None, stream=False):
    """Add nodes that fill an object (a mesh, or an empty's cube or ball) with matter, and wire them into a solve.

    `stream` lets the matter pour out of the place without end. Returns the emitting node.
    """
    node = _add(tree, _kind(thing, "emit_mesh", "emit_box", "emit_sphere"), thing, solve, 150.0)
    material = next((each for each in tree.nodes if any(s.type_id == "Material" for s in _ours(each.outputs))), None)
    if material is None:
        material = tree.nodes.new("MpmNode_material_library")
        material.location = (node.location[0] - 240.0, node.location[1])
    nodes.connect(material, "", node, "material")
    if not stream:
        return _wired(node, "particles", solve, "sources")
    pour = tree.nodes.new("MpmNode_emit_stream")
    pour.location = (node.location[0] + 220.0, node.location[1])
    nodes.connect(node, "particles", pour, "template")
    _wired(pour, "emitter", solve, "emitters")
    return node


def _kind(thing, surface, box, ball):
    """Return the type of node that stands for an object.

    Raises:
        ObjectFault: For none.
    """
    if has_surface(thing):
        return surface
    if thing.type != "EMPTY":
        kind = thing.type.replace("_", " ").lower()
        raise ObjectFault(f"{thing.name} ({kind}) has no surface; choose meshes, or empties drawn as balls or cubes")
    if thing.field is not None and thing.field.type != "NONE":
        raise ObjectFault(
            f"{thing.name} is a force field, which a solve does not feel; choose meshes, or empties drawn as balls or cubes"
        )
    if thing.empty_display_type not in ("CUBE", "SPHERE"):
        shown = thing.empty_display_type.replace("_", " ").lower()
        raise ObjectFault(
            f"{thing.name} is an empty drawn as {shown}, which has no size; let it be displayed as a cube or a sphere"
        )
    return box if thing.empty_display_type == "CUBE" else ball


def _ours(sockets):
    return [socket for socket in sockets if hasattr(socket, "type_id")]


def _add(tree, kind, thing, solve, down):
    node = tree.nodes.new(f"MpmNode_{kind}")
    node.name = places.file_name(thing.name)
    node.scene_object = thing
    x, y = solve.location if solve else (0.0, 0.0)
    beside = sum(1 for each in tree.nodes if abs(each.location[0] - (x - 480.0)) < 1.0)
    node.location = (x - 480.0, y + down - 260.0 * beside)
    for knob in node.record["knobs"]:
        if knob["name"] == "name":
            setattr(node, knobs.prop("name"), thing.name)
    return node


def _wired(node, output, solve, port):
    if solve is not None:
        nodes.connect(node, output, solve, port)
    return node
