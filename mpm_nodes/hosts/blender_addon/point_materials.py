"""Materials of points in Blender before 4.5, which drops all material slots of a point cloud when the number of points changes.

A geometry nodes modifier behind the cache sets the material again; it takes the one in the object's first slot, so that artists
assign materials as they are used to.
"""

import bpy

MARK = "mpm_nodes"
"""Custom property of collections (their tree) and objects (tree, stage, type and prim)."""

NEEDED = bpy.app.version < (4, 5)
GROUP = "MPM Material"


def hold(thing):
    """Add the modifier to a new object where this Blender needs it."""
    if NEEDED and thing.type == "POINTCLOUD" and GROUP not in thing.modifiers:
        modifier = thing.modifiers.new(GROUP, "NODES")
        modifier.node_group = _group()
        _take_slot(thing)


def _group():
    """Return the node group: geometry and material in, geometry with that material out."""
    group = bpy.data.node_groups.get(GROUP)
    if group is not None:
        return group
    group = bpy.data.node_groups.new(GROUP, "GeometryNodeTree")
    group.interface.new_socket("Geometry", in_out="INPUT", socket_type="NodeSocketGeometry")
    group.interface.new_socket("Material", in_out="INPUT", socket_type="NodeSocketMaterial")
    group.interface.new_socket("Geometry", in_out="OUTPUT", socket_type="NodeSocketGeometry")
    start, end = group.nodes.new("NodeGroupInput"), group.nodes.new("NodeGroupOutput")
    setter = group.nodes.new("GeometryNodeSetMaterial")
    group.links.new(start.outputs[0], setter.inputs["Geometry"])
    group.links.new(start.outputs[1], setter.inputs["Material"])
    group.links.new(setter.outputs[0], end.inputs[0])
    return group


def _take_slot(thing):
    """Give the modifier the material of the object's first slot."""
    modifier = thing.modifiers.get(GROUP)
    if modifier is None or modifier.node_group is None or not thing.material_slots:
        return
    name = next(
        item.identifier
        for item in modifier.node_group.interface.items_tree
        if item.item_type == "SOCKET" and item.in_out == "INPUT" and item.socket_type == "NodeSocketMaterial"
    )
    wanted = thing.material_slots[0].material
    if modifier.get(name) != wanted:
        modifier[name] = wanted
        thing.update_tag()


@bpy.app.handlers.persistent
def follow(*_):
    """Take in materials that artists have assigned since; called after every change of the scene."""
    for thing in bpy.data.objects:
        if thing.type == "POINTCLOUD" and MARK in thing:
            _take_slot(thing)


def register():
    """Follow the artist's assignments where this Blender needs it."""
    if NEEDED:
        bpy.app.handlers.depsgraph_update_post.append(follow)
        bpy.app.handlers.frame_change_pre.append(follow)


def unregister():
    """Stop following."""
    if NEEDED:
        bpy.app.handlers.frame_change_pre.remove(follow)
        bpy.app.handlers.depsgraph_update_post.remove(follow)
