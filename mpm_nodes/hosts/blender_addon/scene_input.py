"""Objects of the scene as input of a graph: meshes written as USD with all that moves them, placements read from any object.

Blender's Z is up, a graph's Y: a point (x, y, z) of the scene is (x, z, -y) in the graph. One Blender unit is one metre.
"""

from pathlib import Path

import bpy
from mathutils import Matrix

from . import knobs, nodes

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


class SceneFault(Exception):
    """A node's object cannot be used. `node` is the node; the message says why and what to do."""

    def __init__(self, node, message):
        super().__init__(message)
        self.node = node


def gather(tree, folder, scene):
    """Write out the objects that nodes of a tree stand for; return knob values by node name.

    Raises:
        SceneFault: An object is gone, is of the wrong kind, or cannot be written.
    """
    names = {}
    for node in tree.nodes:
        if not isinstance(node, nodes.MpmNode) or node.scene_object is None:
            continue
        kind = node.takes_object()
        if node.scene_object.name not in scene.objects:
            raise SceneFault(node, f"{node.scene_object.name} is not in the scene {scene.name}; choose another object, or none")
        if kind == "mesh":
            names[node.name] = _mesh(node, Path(folder) / "inputs", scene, tree)
        elif kind == "place":
            names[node.name] = placement(node, node.scene_object, scene, tree)
    return names


# ---------------------------------------------------------------- meshes
def _mesh(node, folder, scene, tree):
    """Write a node's object as USD with its animation and deformation; return the knobs that name it."""
    thing = node.scene_object
    if thing.type not in MESHES:
        raise SceneFault(node, f"{thing.name} has no surface; choose a mesh, or use an emitter with a place for an empty")
    if not len(_evaluated(thing).to_mesh().vertices):
        raise SceneFault(node, f"{thing.name} has no vertices; choose another object")
    path = folder / f"{file_name(thing.name)}.usdc"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _export(thing, path, scene, (tree.k_start, tree.k_end))
    except (OSError, RuntimeError) as error:
        raise SceneFault(node, f"{thing.name} cannot be written to {path} ({error})") from error
    values = {"path": f"inputs/{path.name}", "prim": ""}
    if any(knob["name"] == "frame" for knob in node.record["knobs"]):
        values["frame"] = float(tree.k_start)
    return values


def file_name(name):
    """Return an object's name with what file systems do not like replaced."""
    return "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in name)


def _evaluated(thing):
    return thing.evaluated_get(bpy.context.evaluated_depsgraph_get())


def _export(thing, path, scene, span):
    """Export one object; selection, frame range and current frame are put back afterwards."""
    layer = bpy.context.view_layer
    if thing.name not in layer.objects:
        raise RuntimeError("it is not in the current view layer")
    known = set(bpy.ops.wm.usd_export.get_rna_type().properties.keys())
    selected, active, hidden = [each for each in layer.objects if each.select_get()], layer.objects.active, thing.hide_get()
    before = scene.frame_start, scene.frame_end, scene.frame_current
    try:
        scene.frame_start, scene.frame_end = span
        thing.hide_set(False)
        for each in selected:
            each.select_set(False)
        thing.select_set(True)
        if not thing.select_get():
            raise RuntimeError("it cannot be selected; show it and its collection")
        layer.objects.active = thing
        options = {name: value for name, value in EXPORT.items() if name in known}
        bpy.ops.wm.usd_export(filepath=str(path), check_existing=False, **options)
    finally:
        thing.select_set(False)
        thing.hide_set(hidden)
        for each in selected:
            each.select_set(True)
        layer.objects.active = active
        scene.frame_start, scene.frame_end = before[:2]
        scene.frame_set(before[2])
    if not path.is_file():
        raise RuntimeError("Blender's USD exporter wrote no file")


# ---------------------------------------------------------------- placements
def placement(node, thing, scene, tree):
    """Return the knobs that an object's place, turn and (for empties) size stand for; keyed where it moves a collider."""
    wanted = {knob["name"]: knob for knob in node.record["knobs"]}
    place = next(name for name in ("centre", "translate") if name in wanted)
    frames = range(tree.k_start, tree.k_end + 1) if node.record["time_dependent"] else [tree.k_start]
    before, places, turns, angles = scene.frame_current, [], [], None
    try:
        for frame in frames:
            scene.frame_set(frame)
            world = _evaluated(thing).matrix_world
            where = Y_UP @ world.to_translation()
            angles = (Y_UP @ world.to_quaternion().to_matrix() @ Y_UP.transposed()).to_euler("XYZ", *([angles] if angles else []))
            places.append([knobs.short(each) for each in where])
            turns.append([knobs.short(round(each * 57.29577951308232, 4)) for each in angles])
    finally:
        scene.frame_set(before)
    values = {place: _keyed(list(frames), places)}
    if "rotation" in wanted:
        values["rotation"] = _keyed(list(frames), turns)
    return values | _size(thing, wanted)


def _keyed(frames, values):
    """Return one value when nothing changes, else a key a frame."""
    if all(value == values[0] for value in values):
        return values[0]
    return {"keys": [[frame, value, "linear"] for frame, value in zip(frames, values, strict=True)]}


def _size(thing, wanted):
    """Return the size that an empty is drawn with: half edge or radius, times its scale."""
    if thing.type != "EMPTY":
        return {}
    reach = [thing.empty_display_size * abs(each) for each in thing.matrix_world.to_scale()]
    if "size" in wanted and wanted["size"]["kind"] == "vector":
        return {"size": [knobs.short(2.0 * reach[axis]) for axis in (0, 2, 1)]}
    if "radius" in wanted and "length" not in wanted:
        return {"radius": knobs.short(max(reach))}
    return {}


# ---------------------------------------------------------------- nodes for objects
def add_collider(tree, thing, solve=None):
    """Add a node that collides with an object, and wire it into a solve; return it."""
    node = _add(tree, "collide_usd" if thing.type in MESHES else "collide_sphere", thing, solve, -200.0)
    return _wired(node, "collider", solve, "colliders")


def add_source(tree, thing, solve=None, stream=False):
    """Add nodes that fill an object (a mesh, or an empty's cube or ball) with matter, and wire them into a solve.

    `stream` lets the matter pour out of the place without end. Returns the emitting node.
    """
    if thing.type in MESHES:
        kind = "emit_mesh"
    else:
        kind = "emit_box" if getattr(thing, "empty_display_type", "") == "CUBE" else "emit_sphere"
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


def _ours(sockets):
    return [socket for socket in sockets if hasattr(socket, "type_id")]


def _add(tree, kind, thing, solve, down):
    node = tree.nodes.new(f"MpmNode_{kind}")
    node.name = file_name(thing.name)
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
