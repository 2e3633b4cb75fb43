"""Geometry Nodes read the results of a cook through a node group, by the names of their attributes, and follow newer cooks."""

from __future__ import annotations

import numpy as np
from blender_process import in_blender

SHOT = """
scene = bpy.context.scene
bpy.ops.mpm_nodes.new_graph()
tree = bpy.data.node_groups["MPM Graph"]
tree.folder, tree.k_cell_size, tree.k_end = given["folder"], 0.1, 3
made = {node.record["id"]: node for node in tree.nodes}
made["emit_sphere"].k_radius, made["emit_sphere"].k_velocity = 0.3, (1.0, 2.0, 3.0)
surface, fog = add(tree, "surface_particles"), add(tree, "density_volume")
nodes.connect(made["solve"], "particles", surface, "particles")
nodes.connect(made["solve"], "particles", fog, "particles")
nodes.connect(surface, "mesh", made["write_cache"], "mesh")
nodes.connect(fog, "", made["write_cache"], "volumes")
nodes.connect(made["collide_plane"], "", made["write_cache"], "colliders")
cook.start(tree, scene)
answer["state"] = [cook.wait(tree, 400), tree.status, tree.message, problems_of(tree)]
group = results.group_of(tree)
assert group, answer
answer["group"] = [group.name, [item.name for item in group.interface.items_tree], group.asset_data is not None]

reader = bpy.data.objects.new("Reader", bpy.data.meshes.new("reader"))
scene.collection.objects.link(reader)
reader.location = (0.0, 7.0, 0.0)
own = bpy.data.node_groups.new("Own", "GeometryNodeTree")
own.interface.new_socket("Geometry", in_out="OUTPUT", socket_type="NodeSocketGeometry")
result, name, store, joined, mesh, end = (own.nodes.new(kind) for kind in (
    "GeometryNodeGroup", "GeometryNodeInputNamedAttribute", "GeometryNodeStoreNamedAttribute", "GeometryNodeJoinGeometry",
    "GeometryNodeVolumeToMesh", "NodeGroupOutput"))
result.node_tree, name.data_type, store.data_type = group, "FLOAT_VECTOR", "FLOAT_VECTOR"
name.inputs["Name"].default_value, store.inputs["Name"].default_value = "velocity", "seen"
value = next(socket for socket in store.inputs if socket.name == "Value" and socket.enabled)
source = next(socket for socket in name.outputs if socket.name == "Attribute" and socket.enabled)
for a, b in ((result.outputs["Points"], store.inputs[0]), (source, value), (store.outputs[0], joined.inputs[0]),
             (result.outputs["Volume"], mesh.inputs[0]), (mesh.outputs[0], joined.inputs[0]),
             (result.outputs["Mesh"], joined.inputs[0]), (joined.outputs[0], end.inputs[0])):
    own.links.new(a, b)
reader.modifiers.new("Own", "NODES").node_group = own

def places_of(mesh, matrix):
    numbers = [0.0] * (3 * len(mesh.vertices))
    mesh.vertices.foreach_get("co", numbers)
    corners = [matrix @ __import__("mathutils").Vector(numbers[at : at + 3]) for at in range(0, len(numbers), 3)]
    return [[pick(each[axis] for each in corners) for axis in range(3)] for pick in (min, max)] if corners else []

def facts():
    found = {}
    for frame in (1, 3):
        scene.frame_set(frame)
        depsgraph = bpy.context.evaluated_depsgraph_get()
        there = found[frame] = {}
        for each in depsgraph.object_instances:
            owner, data = (each.parent if each.is_instance else each.object), each.object.data
            is_ours = owner is not None and owner.original is reader
            if each.object.type == "POINTCLOUD":
                for wanted in ("seen", "velocity", "id"):
                    attribute = data.attributes.get(wanted)
                    if attribute is not None:
                        numbers = [0 if wanted == "id" else 0.0] * (len(data.points) * (1 if wanted == "id" else 3))
                        attribute.data.foreach_get("value" if wanted == "id" else "vector", numbers)
                        there[f"{wanted} of {'reader' if is_ours else 'points'}"] = numbers
            elif each.object.type == "MESH" and (is_ours or owner.name == "mesh"):
                there["box of reader" if is_ours else "box of mesh"] = places_of(data, each.matrix_world)
                there["vertices of reader" if is_ours else "vertices of mesh"] = len(data.vertices)
    return found

answer["first"] = facts()
made["emit_sphere"].k_velocity = (0.0, 0.0, -2.0)
cook.start(tree, scene)
answer["again"] = [cook.wait(tree, 400), results.group_of(tree) == group, len(bpy.data.node_groups)]
answer["second"] = facts()
cache_import.take_away(tree)
bpy.ops.mpm_nodes.show_frames(tree=tree.name)
answer["back"] = [results.group_of(tree) == group, all(
    node.inputs["Object"].default_value for node in group.nodes if node.bl_idname == "GeometryNodeObjectInfo")]
answer["third"] = facts()
answer["names"] = []
for wanted in ("Käse (2)", "Käse", None, "Brot"):
    if wanted is None:
        group.name = "By hand"
    else:
        tree.name = wanted
    results.offer(tree, resolutions.of_tree(tree))
    answer["names"].append(group.name)
"""


def test_geometry_nodes_read_a_cook_by_name(tmp_path):
    """Points with their velocities and ids, mesh and volume, where they are, at each frame; of the cook that is shown."""
    seen = in_blender(SHOT, folder=str(tmp_path))
    assert seen["state"][0] == "done", seen["state"]
    assert seen["group"] == ["MPM Result MPM Graph", ["Points", "Mesh", "Volume"], True]
    for cook in ("first", "second", "third"):
        for frame in ("1", "3"):
            there = seen[cook][frame]
            assert len(there["seen of reader"]) > 300
            own = np.reshape(there["velocity of points"], (-1, 3))[:, [0, 2, 1]] * (1.0, -1.0, 1.0)  # the cache has Y up
            np.testing.assert_allclose(np.reshape(there["seen of reader"], (-1, 3)), own, atol=1e-5)
            assert there["seen of reader"] == there["velocity of reader"]
            assert there["id of reader"] == there["id of points"]
            assert there["vertices of reader"] > there["vertices of mesh"] > 20, "mesh, and volume"
            np.testing.assert_allclose(there["box of reader"], there["box of mesh"], atol=0.15)
    speeds = {cook: np.reshape(seen[cook]["1"]["seen of reader"], (-1, 3)).mean(axis=0) for cook in ("first", "second", "third")}
    np.testing.assert_allclose(speeds["first"], [1.0, 2.0, 3.0], atol=1e-3)
    np.testing.assert_allclose(speeds["second"], [0.0, 0.0, -2.0], atol=1e-3)
    np.testing.assert_allclose(speeds["third"], speeds["second"])
    assert seen["names"] == ["MPM Result Käse (2)", "MPM Result Käse", "By hand", "By hand"]
    assert seen["again"][:2] == ["done", True] and seen["back"] == [True, True]
