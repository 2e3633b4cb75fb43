"""A node group for each graph that gives Geometry Nodes what its cook has brought in: points, mesh and volume, at the frame."""

import bpy

OWNER = "mpm_nodes_tree"
"""Custom property of collections and node groups: the tree itself."""
BUILT = "mpm_nodes_built"
"""Custom property of node groups: what they were built for."""
NAMED = "mpm_nodes_named"
"""Custom property of node groups: the name that was wanted for them, and the one that they got, in two lines."""

KINDS = {"POINTCLOUD": "Points", "MESH": "Mesh", "VOLUME": "Volume"}
"""Outputs by the type of the objects that they give."""


def group_of(tree):
    """Return the node group that gives the results of a graph, or None before the first frames have come in."""
    return next((each for each in bpy.data.node_groups if each.bl_idname == "GeometryNodeTree" and each.get(OWNER) == tree), None)


def offer(tree, things):
    """Let the node group of a graph give objects that show its cook; it is made when there is none.

    Trees that use the group keep their wires, and what is in it is left alone while the objects are the same.

    Args:
        tree: The graph.
        things: Objects of its cook.
    """
    group = group_of(tree)
    if group is None:
        group = bpy.data.node_groups.new("MPM Result", "GeometryNodeTree")
        group[OWNER], group[NAMED] = tree, f"\n{group.name}"
        for label in KINDS.values():
            group.interface.new_socket(label, in_out="OUTPUT", socket_type="NodeSocketGeometry")
        group.is_modifier = True
        group.asset_mark()
    _name(group, tree)
    ordered = sorted(things, key=lambda each: each.name)
    wanted = [(kind, thing, _has_velocity(thing)) for kind in KINDS for thing in ordered if thing.type == kind]
    facts = repr([(thing.name, moves) for _, thing, moves in wanted])
    given = [node.inputs["Object"].default_value for node in group.nodes if node.bl_idname == "GeometryNodeObjectInfo"]
    if group.get(BUILT) != facts or set(given) != {thing for _, thing, _ in wanted}:
        _fill(group, wanted)
        group[BUILT] = facts


def _name(group, tree):
    """Call a group as its graph is called now, unless the artist has given it a name."""
    before, _, given = group.get(NAMED, "").partition("\n")
    wanted = f"MPM Result {tree.name}"
    if before == wanted or given != group.name:
        return
    group.name = wanted
    group[NAMED] = f"{wanted}\n{group.name}"
    if group.asset_data is not None:
        group.asset_data.description = f"What the cook of {tree.name} has brought in, with its attributes by name"


def _has_velocity(thing):
    """Return whether the points of an object have velocities, which are in its own axes."""
    if thing.type == "VOLUME":
        return False
    shown = thing.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return any("velocity" in each.data.attributes for each in (thing, shown))


def _fill(group, wanted):
    """Build a group: objects of each type, where they are in the world, joined."""
    group.nodes.clear()
    end = group.nodes.new("NodeGroupOutput")
    end.location = (800.0, 0.0)
    joined = {}
    for row, (kind, label) in enumerate(KINDS.items()):
        joined[kind] = group.nodes.new("GeometryNodeJoinGeometry")
        joined[kind].location = (600.0, -200.0 * row)
        group.links.new(joined[kind].outputs[0], end.inputs[label])
    for row, (kind, thing, moves) in enumerate(reversed(wanted)):  # the last wire comes first
        info = group.nodes.new("GeometryNodeObjectInfo")
        info.location, info.transform_space, info.label = (0.0, -300.0 * row), "RELATIVE", thing.name
        info.inputs["Object"].default_value = thing
        group.links.new(_turned(group, info) if moves else info.outputs["Geometry"], joined[kind].inputs[0])


def _turned(group, info):
    """Return an object's geometry whose velocities are turned as its places are."""
    velocity, turn, store = (
        group.nodes.new(kind)
        for kind in ("GeometryNodeInputNamedAttribute", "FunctionNodeTransformDirection", "GeometryNodeStoreNamedAttribute")
    )
    for column, node in enumerate((velocity, turn, store)):
        node.location = (130.0 * (column + 1), info.location[1] - 120.0)
    velocity.data_type = store.data_type = "FLOAT_VECTOR"
    velocity.inputs["Name"].default_value = store.inputs["Name"].default_value = "velocity"
    group.links.new(_shown(velocity.outputs, "Attribute"), turn.inputs["Direction"])
    group.links.new(info.outputs["Transform"], turn.inputs["Transform"])
    group.links.new(info.outputs["Geometry"], store.inputs["Geometry"])
    group.links.new(turn.outputs[0], _shown(store.inputs, "Value"))
    return store.outputs["Geometry"]


def _shown(sockets, name):
    """Return the socket of a name that the type of a node's data has."""
    return next(socket for socket in sockets if socket.name == name and socket.enabled)
