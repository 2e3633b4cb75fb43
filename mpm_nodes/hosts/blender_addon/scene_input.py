"""Objects of the scene as input of a graph: meshes written as USD with all that moves them, placements read from any object."""

import contextlib
import struct
from pathlib import Path

from mathutils import Vector

from . import (
    animation,
    history,
    knobs,
    mesh_attributes,
    nodes,
    painting,
    places,
    point_clouds,
    problems,
    rigid_bodies,
    scene_export,
    scene_pass,
    simulations,
    steps,
    surfaces,
    timeline,
)
from .surfaces import Y_UP, has_surface, metres

EARTH = [0.0, -9.81, 0.0]
"""The earth's gravity [m/s^2]."""
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
        environment.EnvironmentFault: The environment's Python cannot write USD.
    """
    return steps.finish(gather_steps(tree, path, scene))


def gather_steps(tree, path, scene):
    """Do as `gather`, in steps: one pass over the frames of the graph, for all of its objects."""
    ours = [node for node in tree.nodes if isinstance(node, nodes.MpmNode)]
    held = {node: node.scene_object for node in ours if _holds(node, scene)}
    driven = timeline.driven(ours)
    if not held and not driven:
        return {}
    refuse_unbaked(held, scene, tree.k_end)
    if driven and timeline.follow(tree, scene):
        history.remember("Knobs that follow the timeline")
    kinds = [(thing, node.takes_object()) for node, thing in held.items()]
    inputs = {(thing, kind): places.input_path(path, thing, kind) for thing, kind in kinds if kind in places.FILES}
    frames = range(tree.k_start, tree.k_end + 1)
    with scene_export.ArrayFile(places.inputs_path(path)) as store:
        seen = scene_pass.Pass(held, inputs, driven)
        over = scene_pass.over_frames(scene, list(dict.fromkeys(held.values())), tree, frames)
        with contextlib.closing(over):
            for number, (stage, updated) in enumerate(over):
                try:
                    seen.look(stage, updated, store)
                except OSError as error:
                    raise SceneFault(next(iter(held)), f"{places.inputs_path(path)} cannot be written ({error})") from error
                problems.report(tree, f"Reading the scene: frame {frames[number]} of {frames[-1]}; Esc stops", False)
                yield (number + 1) / len(frames)
        values = {}
        for (node, knob), found in zip(driven, seen.driven, strict=True):
            values.setdefault(node.name, {})[knob["name"]] = timeline.keyed(frames, found)
        rate = scene.render.fps / scene.render.fps_base
        exports = {}
        for node, thing in held.items():
            own, kind = values.setdefault(node.name, {}), node.takes_object()
            if (thing, kind) not in inputs:
                own.update(placement(node, seen, scene, frames))
                continue
            shapes, file = seen.shapes[thing, kind], inputs[thing, kind]
            if text := fault_of(node, seen):
                raise SceneFault(node, text)
            own.update(_mesh(node, file, Path(path), tree, _moved(node, shapes, scene, frames) if kind == "mesh" else {}))
            exports[file] = scene_export.export_of(file, kind, shapes, frames, metres(scene), rate)
        try:
            yield from store.write_steps(list(exports.values()))
        except OSError as error:
            raise SceneFault(next(iter(held)), f"{places.inputs_path(path)} cannot be written ({error})") from error
    return values


def fault_of(node, seen):
    """Return what is wrong with an object that is written for a node, "" for nothing; `seen` is the pass over the frames."""
    thing, kind = node.scene_object, node.takes_object()
    if kind == "points":
        return "" if seen.shapes[thing, kind][0] else f"{thing.name} has no points at the first frame; {point_clouds.CURE}"
    if not any(seen.shapes[thing, kind]):
        return f"{thing.name} has no faces; {face_cure(thing)}"
    return painting.fault(node, seen.painted[thing])


def refuse_unbaked(held, scene, last):
    """Play simulations of geometry nodes that nodes' objects hang on up to a frame.

    Args:
        held: Objects by node.
        scene: The artist's scene.
        last: The frame.

    Raises:
        SceneFault: An object hangs on another simulation, which is not baked.
    """
    blocks = simulations.dependencies(held.values()) if held else {}
    for node, thing in held.items():
        own = {thing} if rigid_bodies.is_body(node) else set()  # the solve moves it
        text = simulations.unbaked(blocks[thing] - own, scene)
        if text:
            raise SceneFault(node, text)
    simulations.play(set().union(*blocks.values()), scene, last)


def gravity(scene):
    """Return the knob of a scene's gravity, with its keys, sampled at whole frames; none for Blender's default, the earth's."""
    pull, switch = animation.curves_of(scene, "gravity"), animation.curves_of(scene, "use_gravity")
    frames = sorted({point.co[0] for curve in (*pull, *switch) for point in curve.keyframe_points})
    frames = animation.sampled_frames(frames) if frames else [scene.frame_current]
    found = []
    for frame in frames:
        now = Vector(scene.gravity)
        for curve in pull:
            now[curve.array_index] = curve.evaluate(frame)
        is_on = all(curve.evaluate(frame) for curve in switch) if switch else scene.use_gravity
        found.append(_metric(now, scene) if is_on else [0.0, 0.0, 0.0])
    return {} if all(each == EARTH for each in found) else {"gravity": timeline.keyed(frames, found)}


def _metric(pull, scene):
    """Return a gravity in a graph's axes and units; Blender's default is the earth's whatever the unit of the scene."""
    if all(abs(a - b) < 1e-4 for a, b in zip(pull, (0.0, 0.0, -9.81), strict=True)):
        return EARTH
    return [float(f"{each + 0.0:.6g}") for each in metres(scene) * (Y_UP @ pull)]


def gravity_left(scene):
    """Return what to say where drivers or NLA strips move a scene's gravity, which a graph does not follow; "" where none do."""
    if not any(animation.is_driven(scene, name) for name in ("gravity", "use_gravity")):
        return ""
    return f"The gravity of {scene.name} has drivers or NLA strips: the graph has that of frame {scene.frame_current}"


def _holds(node, scene):
    """Return whether an object stands for a node.

    Raises:
        SceneFault: It cannot.
    """
    thing = node.scene_object
    if thing is None:
        if node.object_name:
            raise SceneFault(node, f"{node.object_name} was deleted; choose another object, or clear the field to use the knobs")
        return False
    if scene.objects.get(thing.name) is not thing:
        raise SceneFault(node, f"{thing.name} is not in the scene {scene.name}; choose another object, or none")
    if node.takes_object() == "mesh" and not has_surface(thing):
        raise SceneFault(node, f"{thing.name} has no surface; choose a mesh, or use an emitter with a place for an empty")
    if node.takes_object() == "points" and not point_clouds.may_have_points(thing):
        raise SceneFault(node, f"{thing.name} is not a point cloud, and has no modifier that makes one; {point_clouds.CURE}")
    return bool(node.takes_object())


# ---------------------------------------------------------------- meshes
def _mesh(node, path, graph, tree, moved):
    """Return the knobs that name a node's exported object."""
    frame = {"frame": float(tree.k_start)} if any(knob["name"] == "frame" for knob in node.record["knobs"]) else {}
    painted = {"primvar": mesh_attributes.usd_name(node.k_primvar)} if painting.reads(node) else {}
    return {"path": path.relative_to(graph.parent).as_posix(), "prim": ""} | frame | painted | moved


def face_cure(thing):
    """Return what to do about an object without faces."""
    if thing.type == "META":
        return "metaballs of a family are one surface, which belongs to the first: choose that one"
    if thing.type in ("CURVE", "SURFACE", "FONT"):
        return "give it a bevel or an extrusion in its data properties, or fill it"
    return "choose an object with a surface"


def _moved(node, shapes, scene, frames):
    """Return the knobs that move what streams out of a mesh: its turn and shift, or for one that changes its shape its frame."""
    wanted = {knob["name"]: knob for knob in node.record["knobs"]}
    if not _is_template(node) or not {"frame", "rotation", "translation"} <= wanted.keys():
        return {}
    ways = surfaces.motion(shapes)
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


# ---------------------------------------------------------------- placements
def placement(node, seen, scene, frames):
    """Return the knobs that an object's place, turn and size stand for; keyed where it moves a collider, a stream or drops.

    Raises:
        SceneFault: The node needs a size, and the object has none.
    """
    thing = seen.held[node]
    worlds, wanted = seen.worlds[thing], {knob["name"]: knob for knob in node.record["knobs"]}
    place = next(name for name in ("centre", "translate") if name in wanted)
    moves = node.record["time_dependent"] or _is_template(node)
    if not (moves or node.record["category"] in ("Force", "Field")):  # their keys travel
        worlds, frames = worlds[:1], frames[:1]
    unit, where, turns, angles = metres(scene), [], [], None
    centre, extent = _box(node, thing, worlds[0], seen.first.get(thing, ()))
    size = {} if is_field(thing) else _size(wanted, [unit * each for each in extent])
    for world in worlds:
        middle = Y_UP @ (world @ centre) * unit
        angles = _angles(world, angles)
        where.append([knobs.short(_single(each)) for each in middle])
        turns.append(_degrees(angles))
    values = {place: timeline.keyed(frames, where)}
    if "rotation" in wanted:
        values["rotation"] = timeline.keyed(frames, turns) if moves or wanted["rotation"]["keyable"] else turns[0]
    if "orientation" in wanted:  # the object's turn counts, whatever the node had before
        values["orientation"] = wanted["orientation"]["default"]
    return (_carried(wanted, values) if _is_template(node) else values) | size


def _is_template(node):
    """Return whether particles of a node end in an emitter, which makes them at every frame, and not at the first one alone."""
    below = {link.to_node for socket in _ours(node.outputs) for link in socket.links}
    return any(any(socket.type_id == "Emitter" for socket in _ours(each.outputs)) or _is_template(each) for each in below)


def _single(number):
    return struct.unpack("f", struct.pack("f", number))[0]


def _box(node, thing, world, pieces):
    """Return centre and edges, along an object's own axes, of what it fills: its surface, or the shape of an empty."""
    scale = [abs(each) for each in world.to_scale()]
    if has_surface(thing):
        inverse = world.inverted_safe()
        corners = [inverse @ vertex for piece in pieces for vertex in piece.vertices()]
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
def add_collider(tree, thing, solve=None, volume=0.0):
    """Add a node that collides with an object, and wire it into a solve; return it. An active body with a volume [m^3] moves."""
    node = _add(tree, _kind(thing, "collide_usd", "collide_box", "collide_sphere"), thing, solve, -200.0)
    if found := rigid_bodies.facts(thing, volume):
        rigid_bodies.add_body(tree, node, found, solve)
        return node
    return _wired(node, "collider", solve, "colliders")


def add_source(tree, thing, solve=None, stream=False):
    """Add nodes that fill an object (a mesh, or an empty's cube or ball) with matter, or take its points; wire them into a solve.

    `stream` lets the matter pour out of the place without end. Returns the emitting node.
    """
    kind = "read_points" if point_clouds.is_cloud(thing) else _kind(thing, "emit_mesh", "emit_box", "emit_sphere")
    node = _add(tree, kind, thing, solve, 150.0)
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


def is_field(thing):
    """Return whether an object is a force field, however large it is drawn."""
    return thing.field is not None and thing.field.type != "NONE"


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
    if is_field(thing):
        raise ObjectFault(
            f"{thing.name} is a force field, which is neither: add it as a force; choose meshes, or empties drawn as balls or cubes"
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
