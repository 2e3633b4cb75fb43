"""Objects of the scene as input of a graph: meshes written as USD with all that moves them, placements read from any object.

Blender's Z is up, a graph's Y: a point (x, y, z) of the scene is (x, z, -y) in the graph. A Blender unit is as many metres as the
scene's Unit Scale says.
"""

import contextlib
import hashlib
import os
import struct
from pathlib import Path

import bpy
from mathutils import Matrix, Vector

from . import knobs, nodes, places, timeline

Y_UP = Matrix(((1, 0, 0), (0, 0, 1), (0, -1, 0)))
EXPORT = {
    "selected_objects_only": True,
    "export_animation": True,
    "export_hair": False,
    "export_uvmaps": False,
    "export_normals": False,
    "export_materials": False,
    "export_textures": False,
    "export_lights": False,
    "export_cameras": False,
    "export_volumes": False,
    "export_curves": False,
    "export_points": False,
    "export_armatures": False,
    "export_shapekeys": False,
    "use_instancing": False,
    "convert_orientation": False,
    "convert_world_material": False,
    "triangulate_meshes": False,
    "export_subdivision": "TESSELLATE",
    "evaluation_mode": "RENDER",
}
"""Options of Blender's USD exporter; those that a version does not have are left out."""

MESHES = ("MESH", "CURVE", "SURFACE", "META", "FONT")

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
    values = timeline.driven_values(tree, ours, scene, range(tree.k_start, tree.k_end + 1))
    for node in ours:
        if node.scene_object is None:
            continue
        kind = node.takes_object()
        if scene.objects.get(node.scene_object.name) is not node.scene_object:
            raise SceneFault(node, f"{node.scene_object.name} is not in the scene {scene.name}; choose another object, or none")
        if kind == "mesh":
            values.setdefault(node.name, {}).update(_mesh(node, Path(path), scene, tree))
        elif kind == "place":
            values.setdefault(node.name, {}).update(placement(node, node.scene_object, scene, tree))
    return values


def has_surface(thing):
    """Return whether an object is of a kind that has a surface: a mesh or what becomes one, or an instance of a collection."""
    return thing.type in MESHES or (thing.instance_type == "COLLECTION" and thing.instance_collection is not None)


def metres(scene):
    """Return how many metres a Blender unit of the scene is."""
    units = scene.unit_settings
    return 1.0 if units.system == "NONE" else units.scale_length


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
        with shown(thing, scene), _realised(thing):
            if not any(_pieces(thing)):
                raise SceneFault(node, f"{thing.name} has no vertices; choose another object")
            if tree.k_start < 0 and _moves(thing, scene, range(tree.k_start, 1)):
                raise SceneFault(
                    node, f"{thing.name} moves before frame 0, and Blender exports frames from 0 on; start the graph at 0"
                )
            written = _export(thing, path, scene, span)
    except (OSError, RuntimeError) as error:
        raise SceneFault(node, f"{thing.name} cannot be written to {path} ({error})") from error
    values = {"path": written.relative_to(graph.parent).as_posix(), "prim": ""}
    if any(knob["name"] == "frame" for knob in node.record["knobs"]):
        values["frame"] = float(tree.k_start)
    return values


def _evaluated(thing):
    return thing.evaluated_get(bpy.context.evaluated_depsgraph_get())


def surfaces(thing):
    """Yield (mesh, matrix to the world) of an object's surface and of its instances; the mesh is gone with the next."""
    for each in bpy.context.evaluated_depsgraph_get().object_instances:
        owner = each.parent if each.is_instance else each.object
        if owner is None or owner.original is not thing or each.object.type not in MESHES:
            continue
        mesh = each.object.to_mesh()
        if mesh is not None and len(mesh.vertices):
            yield mesh, each.matrix_world.copy()
        each.object.to_mesh_clear()


def _pieces(thing):
    """Yield (matrix to the world, vertices) of an object's surface and of the instances that it makes."""
    for mesh, matrix in surfaces(thing):
        yield matrix, [vertex.co.copy() for vertex in mesh.vertices]


def _moves(thing, scene, frames):
    """Return whether an object's surface is not the same at all frames."""
    seen = []
    for _ in timeline.at_frames(scene, frames):
        seen.append([(matrix, vertices) for matrix, vertices in _pieces(thing)])
        if seen[0] != seen[-1]:
            return True
    return False


@contextlib.contextmanager
def shown(thing, scene):
    """Let an object be seen, rendered and selected for a while, whatever hides it."""
    kept = {name: getattr(thing, name) for name in ("hide_select", "hide_render", "hide_viewport")}
    layer, linked, hidden = bpy.context.view_layer, False, None
    try:
        for name in kept:
            setattr(thing, name, False)
        if layer.objects.get(thing.name) is thing:
            hidden = thing.hide_get()
            thing.hide_set(False)
        if not (thing.visible_get() and _renders(thing)) and scene.collection.objects.get(thing.name) is not thing:
            scene.collection.objects.link(thing)
            linked = True
        layer.update()
        yield
    finally:
        if linked:
            scene.collection.objects.unlink(thing)
        if hidden is not None:
            thing.hide_set(hidden)
        for name, value in kept.items():
            setattr(thing, name, value)
        layer.update()


@contextlib.contextmanager
def _realised(thing):
    """Turn the instances that geometry nodes of an object make into a mesh for a while: Blender's exporter leaves them empty."""
    made = (each for each in bpy.context.evaluated_depsgraph_get().object_instances if each.is_instance)
    if thing.type not in MESHES or not any(each.parent is not None and each.parent.original is thing for each in made):
        yield
        return
    group = bpy.data.node_groups.new("MPM realize", "GeometryNodeTree")
    for way in ("INPUT", "OUTPUT"):
        group.interface.new_socket("Geometry", in_out=way, socket_type="NodeSocketGeometry")
    inside, whole, outside = map(group.nodes.new, ("NodeGroupInput", "GeometryNodeRealizeInstances", "NodeGroupOutput"))
    group.links.new(inside.outputs[0], whole.inputs[0])
    group.links.new(whole.outputs[0], outside.inputs[0])
    modifier = thing.modifiers.new("MPM realize", "NODES")
    modifier.node_group = group
    try:
        yield
    finally:
        thing.modifiers.remove(modifier)
        bpy.data.node_groups.remove(group)


def _renders(thing):
    return not any(collection.hide_render or collection.hide_select for collection in thing.users_collection)


def _export(thing, path, scene, span):
    """Export one object; return the file that holds it, which stays as it is where nothing in it has changed.

    Selection and frame range are put back afterwards; no frame is set, which would undo what the artist has moved without a key.
    """
    layer = bpy.context.view_layer
    known = set(bpy.ops.wm.usd_export.get_rna_type().properties.keys())
    selected, active = [each for each in layer.objects if each.select_get()], layer.objects.active
    before = scene.frame_start, scene.frame_end
    part = path.with_name(f"part_{os.getpid()}.usdc")
    try:
        scene.frame_start, scene.frame_end = span
        for each in selected:
            each.select_set(False)
        thing.select_set(True)
        if not thing.select_get():
            raise RuntimeError("it cannot be selected; show it and its collection")
        layer.objects.active = thing
        options = {name: value for name, value in EXPORT.items() if name in known}
        bpy.ops.wm.usd_export(filepath=str(part), check_existing=False, **options)
        if not part.is_file():
            raise RuntimeError("Blender's USD exporter wrote no file")
        _replace(path, part.read_bytes())
    finally:
        part.unlink(missing_ok=True)
        thing.select_set(False)
        for each in selected:
            each.select_set(True)
        layer.objects.active = active
        scene.frame_start, scene.frame_end = before
    return _in_metres(path, scene) if scene.unit_settings.scale_length != 1.0 else path


def _in_metres(path, scene):
    """Return a file that says how large the units of an exported one are, which Blender's exporter does not in every version."""
    outer = path.with_suffix(".usda")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    rate = scene.render.fps / scene.render.fps_base
    _replace(
        outer,
        f"""#usda 1.0
(
    "the units of {path.name}, whose content is {digest}"
    metersPerUnit = {metres(scene):.9g}
    upAxis = "Z"
    timeCodesPerSecond = {rate:.9g}
    defaultPrim = "root"
    subLayers = [@./{path.name}@]
)
""".encode(),
    )
    return outer


def _replace(path, content):
    """Write a file at once; one that holds the same already keeps its time."""
    if path.is_file() and path.read_bytes() == content:
        return
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.write_bytes(content)
    os.replace(part, path)


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
            angles = (Y_UP @ world.to_quaternion().to_matrix() @ Y_UP.transposed()).to_euler("XYZ", *([angles] if angles else []))
            where.append([knobs.short(_single(each)) for each in middle])
            turns.append([knobs.short(round(each * 57.29577951308232, 4)) for each in angles])
    values = {place: timeline.keyed(frames, where)}
    if "rotation" in wanted:
        values["rotation"] = timeline.keyed(frames, turns)
    if "orientation" in wanted:  # the object's turn counts, whatever the node had before
        values["orientation"] = wanted["orientation"]["default"]
    return values | size


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
        corners = [inverse @ matrix @ vertex for matrix, vertices in _pieces(thing) for vertex in vertices]
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
