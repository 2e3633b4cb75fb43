"""Objects of the scene written as USD by Blender's exporter, with all that moves them."""

import contextlib
import hashlib
import os

import bpy

from . import environment, unkeyed
from .surfaces import makes_instances, metres

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


@contextlib.contextmanager
def shown(thing, scene):
    """Let an object be seen, rendered and selected for a while, whatever hides it."""
    kept = {name: getattr(thing, name) for name in ("hide_select", "hide_render", "hide_viewport")}
    layer, linked, hidden = bpy.context.view_layer, False, None
    try:
        with unkeyed.kept():  # what comes into view is evaluated
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
        with unkeyed.kept():
            if linked:
                scene.collection.objects.unlink(thing)
            if hidden is not None:
                thing.hide_set(hidden)
            for name, value in kept.items():
                setattr(thing, name, value)
            layer.update()


@contextlib.contextmanager
def as_mesh(thing, scene):
    """Give the object to export in place of one whose surface Blender's exporter leaves out, and put all back afterwards.

    Instances of geometry nodes are made real by a modifier. Of curves, surfaces of splines and instances of text the exporter
    writes no mesh: an object of geometry nodes stands in for them, which has their mesh and place at every frame.
    """
    replaced = thing.type in ("CURVE", "SURFACE") or (
        thing.type == "FONT" and any(each.type == "NODES" for each in thing.modifiers)
    )
    if not replaced and not (thing.type == "MESH" and makes_instances(thing)):
        yield thing
        return
    group = bpy.data.node_groups.new("MPM realize", "GeometryNodeTree")
    for way in ("INPUT", "OUTPUT"):
        group.interface.new_socket("Geometry", in_out=way, socket_type="NodeSocketGeometry")
    first = "GeometryNodeObjectInfo" if replaced else "NodeGroupInput"
    inside, whole, outside = map(group.nodes.new, (first, "GeometryNodeRealizeInstances", "NodeGroupOutput"))
    group.links.new(inside.outputs["Geometry"], whole.inputs[0])
    group.links.new(whole.outputs[0], outside.inputs[0])
    changed = thing
    if replaced:
        inside.inputs["Object"].default_value = thing
        changed = bpy.data.objects.new(thing.name, bpy.data.meshes.new(thing.name))
        changed.constraints.new("COPY_TRANSFORMS").target = thing
        scene.collection.objects.link(changed)
    modifier = changed.modifiers.new("MPM realize", "NODES")
    modifier.node_group = group
    bpy.context.view_layer.update()
    try:
        yield changed
    finally:
        if replaced:
            mesh = changed.data
            bpy.data.objects.remove(changed)
            bpy.data.meshes.remove(mesh)
        else:
            changed.modifiers.remove(modifier)
        bpy.data.node_groups.remove(group)


def _renders(thing):
    return not any(collection.hide_render or collection.hide_select for collection in thing.users_collection)


def export(thing, path, scene, span):
    """Export one object; return the file that holds it, which stays as it is where nothing in it has changed.

    Selection and frame range are put back afterwards; no frame is set, which would undo what the artist has moved without a key.
    """
    if environment.lacks("usd"):
        raise RuntimeError(f"this Blender was built without USD; {environment.OTHER_BUILD}")
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
