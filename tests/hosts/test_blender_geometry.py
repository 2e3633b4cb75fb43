"""Whatever Geometry Nodes make is input: points with what they carry are particles, and meshes of any object are surfaces."""

from __future__ import annotations

import numpy as np
import pytest
from blender_process import in_blender

from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.document.document import load_graph

SCENE = """
scene = bpy.context.scene
scene.unit_settings.scale_length = given["metres"]

def made_by(thing, *kinds):
    group = bpy.data.node_groups.new(thing.name, "GeometryNodeTree")
    for way in ("INPUT", "OUTPUT"):
        group.interface.new_socket("Geometry", in_out=way, socket_type="NodeSocketGeometry")
    made = [group.nodes.new(kind) for kind in ("NodeGroupInput", *kinds, "NodeGroupOutput")]
    thing.modifiers.new("Nodes", "NODES").node_group = group
    return group, made

def linked(name, data):
    thing = bpy.data.objects.new(name, data)
    scene.collection.objects.link(thing)
    return thing

def wire(group, *ends):
    for (one, output), (other, port) in ends:
        group.links.new(one.outputs[output], other.inputs[port])

def stored(node, name, kind):
    node.data_type, node.domain, node.inputs["Name"].default_value = kind, "POINT", name
    return node

def value_of(node):
    return next(place for place, socket in enumerate(node.inputs) if socket.name == "Value" and socket.enabled)

bpy.ops.mpm_nodes.new_graph()
tree = bpy.data.node_groups["MPM Graph"]
tree.folder, tree.k_cell_size, tree.k_end = given["folder"], 0.1, 3
for node in list(tree.nodes):
    if node.record["id"] in ("emit_sphere", "collide_plane"):
        tree.nodes.remove(node)

def add_as(role, *things):
    for each in scene.objects:
        each.select_set(each in things)
    bpy.ops.mpm_nodes.add_objects(tree=tree.name, role=role)
    return [node for node in tree.nodes if node.scene_object in things]

def written():
    path = cook.write_graph(tree, scene)
    return {"path": str(path or ""), "problems": problems_of(tree)}
"""

POINTS = """
cloud = linked("Cloud", bpy.data.meshes.new("cloud"))
store = "GeometryNodeStoreNamedAttribute"
group, (start, points, line, speed, heat, force, end) = made_by(
    cloud, "GeometryNodePoints", "ShaderNodeCombineXYZ", store, store, store)
index, now = group.nodes.new("GeometryNodeInputIndex"), group.nodes.new("GeometryNodeInputSceneTime")
points.inputs["Count"].default_value, points.inputs["Radius"].default_value = 5, 0.25
stored(speed, "velocity", "FLOAT_VECTOR").inputs[value_of(speed)].default_value = (0.0, 2.0, 4.0)
stored(heat, "Temperature", "FLOAT")
stored(force, "F", "FLOAT")  # the artist's, and not the matrix that particles call so
wire(group, ((index, 0), (line, "X")), ((now, "Frame"), (line, "Z")), ((line, 0), (points, "Position")), ((points, 0), (speed, 0)),
     ((speed, 0), (heat, 0)), ((now, "Frame"), (heat, value_of(heat))), ((heat, 0), (force, 0)), ((force, 0), (end, 0)))
cloud.location, cloud.rotation_euler = (0.0, 0.0, 10.0), (0.0, 0.0, 1.5707963267948966)
cloud.scale = (2.0, 2.0, 2.0)
two = linked("Two", bpy.data.meshes.new("two"))
group, (start, points, on, info, end) = made_by(two, "GeometryNodePoints", "GeometryNodeInstanceOnPoints", "GeometryNodeObjectInfo")
points.inputs["Count"].default_value, info.inputs["Object"].default_value = 2, cloud
wire(group, ((points, 0), (on, "Points")), ((info, "Geometry"), (on, "Instance")), ((on, 0), (end, 0)))
made = add_as("SOURCE", cloud, two)
answer["kinds"] = {node.scene_object.name: node.record["id"] for node in made}
for node in made:
    node.name = f"of_{node.scene_object.name}"
answer.update(written())
points.inputs["Count"].default_value = 0
answer["none"] = written()
points.inputs["Count"].default_value = 2
bpy.ops.mesh.primitive_cube_add()
made[0].scene_object = bpy.context.object
answer["cube"] = written()
"""


@pytest.mark.parametrize("metres", [1.0, 0.1])
def test_points_that_nodes_make_are_particles(tmp_path, metres):
    """With place, velocity, size and temperature, in metres and turned as the object is, at the frame; instances too."""
    found = in_blender(SCENE + POINTS, folder=str(tmp_path), metres=metres)
    assert found["kinds"] == {"Cloud": "read_points", "Two": "read_points"} and not found["problems"], found
    graph = load_graph(found["path"])
    for frame in (1, 2):
        matter = Evaluator(graph).value("of_Cloud", frame)
        order = np.argsort(-matter["position"][:, 2])  # along y of the scene, backwards in the graph
        wanted = metres * np.array([[0.0, 10.0 + 2.0 * frame, -2.0 * each] for each in range(5)])
        np.testing.assert_allclose(matter["position"][order], wanted, atol=1e-5)
        np.testing.assert_allclose(matter["velocity"], metres * np.array([[-4.0, 8.0, 0.0]] * 5), atol=1e-5)
        np.testing.assert_allclose(matter["temperature"], frame)
        np.testing.assert_allclose(matter["volume"], (2.0 * 0.5 * metres) ** 3, rtol=1e-5)
    assert len(Evaluator(graph).value("of_Two", 1)["position"]) == 10
    assert found["none"]["path"] == "" and "Two has no points at the first frame" in found["none"]["problems"]["of_Two"]
    assert "Cube is not a point cloud" in found["cube"]["problems"]["of_Cloud"]


SURFACES = """
hair = linked("Hair", bpy.data.hair_curves.new("hair"))
group, (start, cube, end) = made_by(hair, "GeometryNodeMeshCube")
wire(group, ((cube, 0), (end, 0)))
line = linked("Line", bpy.data.meshes.new("line"))
group, (start, curve, size, circle, tube, end) = made_by(line, "GeometryNodeCurvePrimitiveLine", "GeometryNodeSetCurveRadius",
                                                          "GeometryNodeCurvePrimitiveCircle", "GeometryNodeCurveToMesh")
curve.inputs["End"].default_value, size.inputs["Radius"].default_value = (0.0, 0.0, 4.0), 0.5
tube.inputs["Fill Caps"].default_value = True
wire(group, ((curve, 0), (size, 0)), ((size, 0), (tube, "Curve")), ((circle, 0), (tube, "Profile Curve")), ((tube, 0), (end, 0)))
if "Scale" in tube.inputs:  # Blender 5 leaves the radius to it
    radius = group.nodes.new("GeometryNodeInputRadius")
    wire(group, ((radius, 0), (tube, "Scale")))
swarm = linked("Swarm", bpy.data.meshes.new("swarm"))
group, (start, points, box, on, again, first, realized, end) = made_by(
    swarm, "GeometryNodePoints", "GeometryNodeMeshCube", "GeometryNodeInstanceOnPoints", "GeometryNodeInstanceOnPoints",
    "GeometryNodePoints", "GeometryNodeJoinGeometry")
points.inputs["Count"].default_value, first.inputs["Count"].default_value = 2, 3
wire(group, ((points, 0), (on, "Points")), ((box, 0), (on, "Instance")), ((on, 0), (again, "Instance")),
     ((first, 0), (again, "Points")), ((again, 0), (realized, 0)), ((points, 0), (realized, 0)), ((realized, 0), (end, 0)))
bare = linked("Bare", bpy.data.hair_curves.new("bare"))
answer["kinds"] = {}
for role, things in (("COLLIDER", (hair, line, swarm)), ("SOURCE", (hair, line))):
    for node in add_as(role, *things):
        answer["kinds"].setdefault(node.scene_object.name, []).append(node.record["id"])
answer.update(written())
import os
from pathlib import Path
answer["inputs"] = sorted(str(each) for each in Path(given["folder"]).rglob("*.usdc"))
for each in scene.objects:
    each.select_set(each is bare)
count = len(tree.nodes)
bpy.ops.mpm_nodes.add_objects(tree=tree.name, role="COLLIDER")
answer["refused"] = len(tree.nodes) - count
"""


def test_meshes_that_nodes_make_are_surfaces(tmp_path):
    """Of hair, of curves with their radius, of instances of instances; hair alone has none."""
    from pxr import Usd, UsdGeom

    found = in_blender(SCENE + SURFACES, folder=str(tmp_path), metres=1.0)
    assert found["kinds"]["Swarm"] == ["collide_usd"] and not found["problems"] and found["refused"] == 0, found
    assert set(found["kinds"]["Hair"]) == set(found["kinds"]["Line"]) == {"collide_usd", "emit_mesh"}
    stages = {path.split("/")[-2]: Usd.Stage.Open(path) for path in found["inputs"]}
    meshes = {name: [each for each in stage.Traverse() if each.IsA(UsdGeom.Mesh)] for name, stage in stages.items()}
    assert {name: len(each) for name, each in meshes.items()} == {"Hair": 1, "Line": 1, "Swarm": 6}
    points = np.array(UsdGeom.Mesh(meshes["Line"][0]).GetPointsAttr().Get())
    np.testing.assert_allclose([np.hypot(*points[:, :2].T).max(), points[:, 2].max()], [0.5, 4.0], atol=1e-5)
