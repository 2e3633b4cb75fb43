"""What is painted on objects in Blender is where their matter begins: groups, colours, attributes, also those that nodes make."""

from __future__ import annotations

import numpy as np
import pytest
from blender_process import in_blender
from pxr import Usd, UsdGeom

from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.document.document import load_graph
from mpm_nodes.solver.field_programs import field_values

SCENE = """
def block(name, x=0.0):
    bpy.ops.mesh.primitive_cube_add(size=0.4, location=(x, 0.0, 1.0))
    thing = bpy.context.object
    thing.name = name
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.subdivide(number_cuts=3)
    bpy.ops.object.mode_set(mode="OBJECT")
    return thing

def group(thing, name, weight):
    made = thing.vertex_groups.new(name=name)
    for vertex in thing.data.vertices:
        if weight(vertex.co) > 0.0:
            made.add([vertex.index], weight(vertex.co), "REPLACE")
    return made

scene = bpy.context.scene
bpy.ops.mpm_nodes.new_graph()
tree = bpy.data.node_groups["MPM Graph"]
tree.folder, tree.k_cell_size, tree.k_end = given["folder"], 0.05, 6
for node in list(tree.nodes):
    if node.record["id"] in ("emit_sphere", "collide_plane"):
        tree.nodes.remove(node)

def add_as(role, *things):
    for each in scene.objects:
        each.select_set(each in things)
    bpy.ops.mpm_nodes.add_objects(tree=tree.name, role=role)

def kinds():
    return sorted(node.record["id"] for node in tree.nodes)
"""

KNOWN = """
jelly = block("Jelly")
group(jelly, "Pin", lambda co: float(co.x < -0.09))
group(jelly, "Strength", lambda co: 0.0)
colour = jelly.data.color_attributes.new("Stiffness", "BYTE_COLOR", "CORNER")
for face in jelly.data.polygons:
    for corner in face.loop_indices:
        colour.data[corner].color = (1.0, 1.0, 1.0, 1.0) if face.center.z > 0.0 else (0.0, 0.0, 0.0, 1.0)
jelly.modifiers.new("finer", "SUBSURF").levels = 1
jelly.modifiers["finer"].subdivision_type = "SIMPLE"
add_as("SOURCE", jelly)
answer["kinds"] = kinds()
answer["graph"] = str(cook.write_graph(tree, scene))
answer["status"] = tree.status
"""


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    return in_blender(SCENE + KNOWN, folder=str(tmp_path_factory.mktemp("painted")))


def test_groups_of_known_names_are_taken(known):
    """A vertex group Pin and a colour Stiffness become nodes; a group that holds nothing does not."""
    for kind, count in (("field_primvar", 2), ("field_ramp", 1), ("set_attribute", 1), ("force_attach", 1), ("collide_usd", 1)):
        assert known["kinds"].count(kind) == count, known["kinds"]


def test_particles_have_what_is_painted_nearest(known):
    """Stiffness 10 above and 1 below through the whole block, but where the cubes with the seam reach: two and a half cells."""
    graph = load_graph(known["graph"])
    ends = [name for name, node in graph.nodes.items() if node.type == "set_attribute"]
    matter = Evaluator(graph).value(ends[0], 1)
    height = np.asarray(matter["position"])[:, 1] - 1.0
    assert len(height) > 3000
    np.testing.assert_allclose(matter["stiffness_scale"][height > 0.126], 10.0, rtol=1e-5)
    np.testing.assert_allclose(matter["stiffness_scale"][height < -0.126], 1.0, rtol=1e-5)


def test_what_is_pinned_goes_with_its_object(tmp_path):
    """The end of a falling block that is pinned moves as the keys of the object say; the rest sags."""
    carried = """
jelly = block("Jelly")
group(jelly, "Pin", lambda co: float(co.x < -0.09))
for frame, x in ((1, 0.0), (6, 0.1)):
    jelly.location.x = x
    jelly.keyframe_insert("location", frame=frame)
for curve in animation.curves_of(jelly, "location"):
    for point in curve.keyframe_points:
        point.interpolation = "LINEAR"
add_as("SOURCE", jelly)
made = {node.record["id"]: node for node in tree.nodes}
soft = add(tree, "material_fixed_corotated", youngs_modulus=20000.0, density=1000.0)
nodes.connect(soft, "", made["emit_mesh"], "material")
tree.nodes.remove(made["material_library"])
cook.start(tree, scene)
cook.wait(tree, 400)
answer["message"] = [tree.message, problems_of(tree)]
answer["status"], answer["revision"], answer["failed"] = tree.status, tree.revision, tree.failed
"""
    found = in_blender(SCENE + carried, folder=str(tmp_path))
    assert found["revision"], found
    stage = Usd.Stage.Open(f"{found['revision']}/cache.usda")
    cloud = UsdGeom.Points(stage.GetPrimAtPath("/cache/particles"))
    ids = [np.argsort(np.array(cloud.GetIdsAttr().Get(frame))) for frame in (1, 6)]
    first, last = (np.array(cloud.GetPointsAttr().Get(frame))[order] for frame, order in zip((1, 6), ids, strict=True))
    held = first[:, 0] < first[:, 0].min() + 0.05
    way = last - first
    np.testing.assert_allclose(way[held], [[0.1, 0.0, 0.0]] * held.sum(), atol=0.005)
    assert way[first[:, 0] > 0.1, 1].mean() < -0.03


CHOSEN = """
import contextlib
block_ = block("Block")
weights = block_.data.attributes.new("weight of it", "FLOAT_VECTOR", "FACE")
for face, each in zip(block_.data.polygons, weights.data):
    each.vector = (3.0, 6.0, 9.0) if face.center.x > 0.0 else (300.0, 330.0, 360.0)
maker = bpy.data.node_groups.new("Maker", "GeometryNodeTree")
for way in ("INPUT", "OUTPUT"):
    maker.interface.new_socket("Geometry", in_out=way, socket_type="NodeSocketGeometry")
start, store, end = (maker.nodes.new(kind) for kind in ("NodeGroupInput", "GeometryNodeStoreNamedAttribute", "NodeGroupOutput"))
store.domain, store.inputs["Name"].default_value = "FACE", "made"
position, seconds = (maker.nodes.new(f"GeometryNodeInput{kind}") for kind in ("Position", "SceneTime"))
parts, total = maker.nodes.new("ShaderNodeSeparateXYZ"), maker.nodes.new("ShaderNodeMath")
for a, b in ((start.outputs[0], store.inputs["Geometry"]), (position.outputs[0], parts.inputs[0]),
             (parts.outputs["X"], total.inputs[0]), (seconds.outputs["Frame"], total.inputs[1]),
             (total.outputs[0], store.inputs["Value"]), (store.outputs[0], end.inputs[0])):
    maker.links.new(a, b)
block_.modifiers.new("Maker", "NODES").node_group = maker
group(block_, "Stiffness", lambda co: 0.0)
add_as("SOURCE", block_)
emitter = next(node for node in tree.nodes if node.record["id"] == "emit_mesh")
answer["taken"] = kinds().count("field_primvar")
answer["roles"], answer["there"] = list(painting.roles_of(emitter)), painting.painted_on(block_)
def paint(role, name):
    return list(bpy.ops.mpm_nodes.paint(tree=tree.name, node=emitter.name, role=role, attribute=name))
answer["paint"] = [paint("TEMPERATURE", "weight of it"), paint("STRENGTH", "made"), list(bpy.ops.mpm_nodes.unpaint(
    tree=tree.name, node=emitter.name, role="STRENGTH")), paint("STRENGTH", "made"), paint("STRENGTH", "made")]
answer["kinds"] = kinds()
with contextlib.suppress(RuntimeError):
    answer["collider"] = paint("STICKINESS", "made")
answer["graph"] = str(cook.write_graph(tree, scene))
answer["faults"] = []
for role, name in (("STRENGTH", "mode"), ("STRENGTH", "Stiffness")):
    paint(role, name)
    answer["faults"].append([cook.write_graph(tree, scene) is None, *problems_of(tree).values()])
    problems.clear(tree)
for role in ("STRENGTH", "TEMPERATURE"):
    bpy.ops.mpm_nodes.unpaint(tree=tree.name, node=emitter.name, role=role)
answer["left"] = kinds()

# another object takes the place of the one that is painted on; a remesh takes weights away; an attribute on edges
problems.clear(tree)
other = block("Other", 2.0)
group(other, "Pin", lambda co: float(co.z > 0.0))
group(other, "Strength", lambda co: 0.0)
filler = other.modifiers.new("filler", "VERTEX_WEIGHT_EDIT")
filler.vertex_group, filler.use_add, filler.add_threshold, filler.default_weight = "Strength", True, 0.0, 1.0
other.data.attributes.new("Stiffness", "FLOAT", "EDGE")
add_as("SOURCE", other)
emitter = next(node for node in tree.nodes if node.record["id"] == "emit_mesh" and node.scene_object == other)
answer["by modifiers"] = [role for role in painting.roles_of(emitter) if painting.painted(emitter, role)]
answer["edges"] = painting.take_known(emitter)
third = block("Third", 4.0)
group(third, "Pin", lambda co: float(co.z > 0.0))
group(third, "Strength", lambda co: float(co.z > 0.0))
emitter.scene_object = third
answer["swapped"] = [role for role in painting.roles_of(emitter) if painting.painted(emitter, role)]
answer["of"] = sorted({node.scene_object.name for node in tree.nodes if node.scene_object})
third.modifiers.new("finer", "REMESH").voxel_size = 0.1
painting.painted(emitter, "STRENGTH")[0].k_primvar = "Strength"
answer["remeshed"] = [cook.write_graph(tree, scene) is None, *sorted(set(problems_of(tree).values()))]
add_as("COLLIDER", block_)
wall = next(node for node in tree.nodes if node.record["id"] == "collide_usd" and node.scene_object == block_)
answer["adhesion"] = [wall.k_adhesion]
named = {"tree": tree.name, "node": wall.name, "role": "STICKINESS"}
bpy.ops.mpm_nodes.paint(attribute="made", **named)
answer["adhesion"].append(wall.k_adhesion)
bpy.ops.mpm_nodes.unpaint(**named)
answer["adhesion"].append(wall.k_adhesion)
"""


@pytest.fixture(scope="module")
def chosen(tmp_path_factory):
    return in_blender(SCENE + CHOSEN, folder=str(tmp_path_factory.mktemp("chosen")))


def test_any_attribute_may_be_chosen_for_a_role(chosen):
    """Attributes of faces, also of Geometry Nodes, count as they are, vectors by their mean; a second choice adds no nodes."""
    assert chosen["taken"] == 0 and chosen["roles"] == ["STIFFNESS", "STRENGTH", "TEMPERATURE", "PIN"]
    assert {"weight of it", "made", "Stiffness"} <= set(chosen["there"]) and "position" not in chosen["there"]
    assert chosen["paint"] == [["FINISHED"]] * 5 and "collider" not in chosen
    assert [chosen["kinds"].count(kind) for kind in ("field_primvar", "field_ramp", "set_attribute")] == [2, 2, 2]
    graph = load_graph(chosen["graph"])
    last = next(iter(graph.nodes["MPM_Solve"].inputs["sources"]))
    matter = Evaluator(graph).value(str(last).split(".")[0], 1)
    x = np.asarray(matter["position"])[:, 0]
    seam = np.abs(x) < 0.126
    np.testing.assert_allclose(matter["temperature"][~seam], np.where(x > 0.0, 6.0, 330.0)[~seam], rtol=1e-5)
    inner = np.abs(np.asarray(matter["position"]) - [0.0, 1.0, 0.0]).max(axis=1) < 0.1
    np.testing.assert_allclose(matter["tear_scale"].mean(), 1.0, atol=0.02)
    assert np.corrcoef(matter["tear_scale"][~inner], x[~inner])[0, 1] > 0.9


def test_what_is_not_painted_is_told_before_the_cook(chosen):
    """On the node that reads it: a name that is not there, and a group that holds nothing."""
    (refused, missing), (also, empty) = chosen["faults"]
    assert refused and "Block has no vertex group or attribute 'mode'; it has Stiffness" in missing and "made" in missing
    assert also and empty == "the vertex group Stiffness of Block holds no vertex; paint it, or choose another"


def test_what_is_unpainted_leaves_the_graph_as_it_was(chosen):
    """None of the nodes is left, and the emitter is wired to the solve."""
    assert chosen["left"] == ["emit_mesh", "material_library", "solve", "write_cache"]


def test_what_modifiers_fill_counts_and_what_cannot_be_read_is_told(chosen):
    """A group that a modifier fills is taken; an attribute on edges, and weights that a remesh loses, are told as what they are."""
    assert chosen["by modifiers"] == ["STRENGTH", "PIN"]
    assert chosen["edges"] == ["the attribute Stiffness of Other is on edges, and is left out"]
    refused, why = chosen["remeshed"]
    assert refused and why == "the modifiers of Third leave nothing of its vertex group Strength; paint it, or choose another"


def test_what_is_painted_follows_the_object_that_takes_the_place(chosen):
    """Fields and ties read the new object of the emitter; a collider that is no longer painted is as little sticky as before."""
    assert chosen["swapped"] == ["STRENGTH", "PIN"] and chosen["of"] == ["Block", "Third"]
    assert chosen["adhesion"] == [0.0, 1000.0, 0.0]


MOVING = """
ball = block("Ball")
colour = ball.data.attributes.new("heat", "FLOAT", "POINT")
group(ball, "Stickiness", lambda co: float(co.z > 0.0))
scattered = bpy.data.objects.new("Scattered", bpy.data.meshes.new("scattered"))
scene.collection.objects.link(scattered)
nodes_of = bpy.data.node_groups.new("scatter", "GeometryNodeTree")
nodes_of.interface.new_socket("Geometry", in_out="OUTPUT", socket_type="NodeSocketGeometry")
out, points, on, info, seconds, store = (nodes_of.nodes.new(kind) for kind in (
    "NodeGroupOutput", "GeometryNodePoints", "GeometryNodeInstanceOnPoints", "GeometryNodeObjectInfo", "GeometryNodeInputSceneTime",
    "GeometryNodeStoreNamedAttribute"))
info.inputs["Object"].default_value = ball
store.domain, store.inputs["Name"].default_value = "POINT", "heat"
points.inputs["Count"].default_value = given["count"]
line = nodes_of.nodes.new("GeometryNodeInputIndex")
vector = nodes_of.nodes.new("ShaderNodeCombineXYZ")
for a, b in ((info.outputs["Geometry"], store.inputs["Geometry"]), (seconds.outputs["Frame"], store.inputs["Value"]),
             (store.outputs[0], on.inputs["Instance"]), (points.outputs[0], on.inputs["Points"]), (on.outputs[0], out.inputs[0]),
             (line.outputs[0], vector.inputs["X"]), (vector.outputs[0], points.inputs["Position"])):
    nodes_of.links.new(a, b)
scattered.modifiers.new("scatter", "NODES").node_group = nodes_of
reader = add(tree, "field_primvar", "reader", primvar="heat")
reader.scene_object = scattered
add_as("COLLIDER", ball)
add_as("SOURCE", block("Matter", 3.0))
answer["kinds"] = kinds()
answer["adhesion"] = next(node.k_adhesion for node in tree.nodes if node.record["id"] == "collide_usd")
answer["graph"] = str(cook.write_graph(tree, scene))
answer["message"] = problems_of(tree)
"""


QUICK = """
jelly = block("Jelly")
group(jelly, "PIN", lambda co: float(co.z > 0.1))
group(jelly, "stiffness", lambda co: 0.0)
group(jelly, "Temperature?", lambda co: 1.0)
jelly.select_set(True)
bpy.context.view_layer.objects.active = jelly
bpy.ops.mpm_nodes.quick(preset="jelly", particles=2000, cook=False)
tree = bpy.data.node_groups["Jelly Jelly"]
answer["kinds"] = kinds()
answer["notices"] = [node.notice for node in tree.nodes if node.notice]
folder = bpy.data.collections.new("Folder")
folder.objects.link(jelly)
double = bpy.data.objects.new("Double", None)
double.instance_type, double.instance_collection = "COLLECTION", folder
scene.collection.objects.link(double)
bpy.context.view_layer.update()
add_as("SOURCE", double)
source = next(node for node in tree.nodes if getattr(node, "scene_object", None) == double)
taken = [role for role in painting.roles_of(source) if painting.painted(source, role)]
answer["of instances"] = [painting.painted_on(double), taken]
"""


def test_quick_takes_known_names_too():
    """Whatever their case; what holds nothing is left out, which is said on the source."""
    found = in_blender(SCENE + QUICK, folder="")
    assert [found["kinds"].count(kind) for kind in ("force_attach", "field_primvar", "set_attribute")] == [1, 1, 0]
    assert found["notices"] == ["the vertex group stiffness of Jelly holds no vertex, and is left out"]
    assert found["of instances"] == [["PIN", "stiffness", "Temperature?", "UVMap"], ["PIN"]]


@pytest.mark.parametrize("count", [3, 300])
def test_attributes_of_instances_may_change(tmp_path, count):
    """Also where so many instances become one mesh; and a collider with a group Stickiness gets adhesion there."""
    found = in_blender(SCENE + MOVING, folder=str(tmp_path), count=count)
    assert not found["message"] and found["adhesion"] == 1000.0 and found["kinds"].count("collider_contact") == 1
    graph = load_graph(found["graph"])
    for frame in (1, 2):
        field = Evaluator(graph).value("reader", frame)
        np.testing.assert_allclose(field_values(field, np.array([[2.2, 0.0, 0.0], [0.0, 0.2, 0.0]]), float(frame)), frame)


PANEL = """
from types import SimpleNamespace
from bl_ext.user_default.mpm_nodes import painting_panel
class Layout:
    said = []
    def inside(self, **how):
        return self
    row = inside
    def column(self, **how):
        self.said.append("one below the other")
        return self
    def label(self, text=""):
        self.said.append(text)
    def prop(self, owner, name, text=""):
        self.said.append([text, getattr(owner, name)])
    def operator(self, name, **how):
        self.said.append(name)
        return SimpleNamespace()
    def operator_menu_enum(self, name, member, text=""):
        assert member in getattr(bpy.ops.mpm_nodes, name.split(".")[1]).get_rna_type().properties
        self.said.append(text)
        return SimpleNamespace()
jelly = block("Jelly")
group(jelly, "Stiffness", lambda co: float(co.z > 0.0))
group(jelly, "Other", lambda co: 1.0)
add_as("SOURCE", jelly)
space = SimpleNamespace(type="NODE_EDITOR", node_tree=tree, edit_tree=tree, tree_type=tree.bl_idname, path=[1])
context = SimpleNamespace(space_data=space)
answer["shown"] = {}
for node in tree.nodes:
    tree.nodes.active = node
    answer["shown"][node.record["id"]] = painting_panel.MPM_PT_painting.poll(context)
tree.nodes.active = next(node for node in tree.nodes if node.record["id"] == "emit_mesh")
painting_panel.MPM_PT_painting.draw(SimpleNamespace(layout=Layout()), context)
answer["said"], answer["items"] = Layout.said, [item[0] for item in painting_panel._sources(None, context)]
"""


def test_the_panel_shows_what_is_painted(tmp_path):
    """Of an emitter with an object alone: what each role follows, with its ends, and what there is to choose."""
    found = in_blender(SCENE + PANEL, folder=str(tmp_path))
    assert found["shown"] == {kind: kind == "emit_mesh" for kind in found["shown"]} and len(found["shown"]) == 7
    said = found["said"]
    assert said.pop(said.index(["Lowest", 1.0]) - 1) == "one below the other", "half a sidebar cuts Lowest to Low"
    assert (
        said[:3] == ["Stiffness from", "Stiffness", "mpm_nodes.unpaint"] and ["Highest", 10.0] in said and ["Lowest", 1.0] in said
    )
    assert said[said.index("Pin from") + 1] == "..." and {"Stiffness", "Other"} <= set(found["items"])


def test_a_sheet_hangs_from_what_is_pinned(tmp_path):
    """Matter of a thickness is tied where its edge is painted, and its mesh need not enclose anything."""
    sheet = """
bpy.ops.mesh.primitive_grid_add(x_subdivisions=8, y_subdivisions=8, size=0.8, location=(0.0, 0.0, 1.0))
sheet = bpy.context.object
group(sheet, "Pin", lambda co: float(co.x < -0.25))
bpy.ops.object.select_all(action="DESELECT")
solve = next(node for node in tree.nodes if node.record["id"] == "solve")
source = scene_input.add_source(tree, sheet, solve)
source.k_thickness = 0.1
answer["left"] = painting.take_known(source)
soft = add(tree, "material_fixed_corotated", youngs_modulus=20000.0, density=1000.0)
nodes.connect(soft, "", source, "material")
cook.start(tree, scene)
cook.wait(tree, 400)
answer["message"], answer["revision"] = [tree.status, tree.message, problems_of(tree)], tree.revision
"""
    found = in_blender(SCENE + sheet, folder=str(tmp_path))
    assert found["revision"] and not found["left"], found["message"]
    stage = Usd.Stage.Open(f"{found['revision']}/cache.usda")
    cloud = UsdGeom.Points(stage.GetPrimAtPath("/cache/particles"))
    ids = [np.argsort(np.array(cloud.GetIdsAttr().Get(frame))) for frame in (1, 6)]
    first, last = (np.array(cloud.GetPointsAttr().Get(frame))[order] for frame, order in zip((1, 6), ids, strict=True))
    held = first[:, 0] < -0.35
    assert held.sum() > 50 and np.abs(last - first)[held].max() < 0.005
    assert (last - first)[first[:, 0] > 0.3, 1].mean() < -0.1


UNTOUCHED = """
jelly = block("Jelly")
group(jelly, "Pin", lambda co: float(co.z > 0.1))
jelly.modifiers.new("finer", "SUBSURF")
for frame in (1, 6):
    jelly.location.x = frame
    jelly.keyframe_insert("location", frame=frame)
hidden = block("Hidden")
hidden.hide_viewport = True
group(hidden, "Pin", lambda co: 1.0)
scene.frame_set(3)
jelly.location.x = 77.0
jelly.data.update_tag()
hidden.select_set(True)
answer["before"] = jelly.location.x
add_as("SOURCE", jelly)
answer["added"] = jelly.location.x
source = scene_input.add_source(tree, hidden)
painting.take_known(source)
answer["hidden"] = kinds().count("force_attach")
bpy.context.view_layer.objects.active = jelly
bpy.ops.mpm_nodes.quick(preset="jelly", particles=2000, cook=False)
answer["quick"] = jelly.location.x
"""


def test_what_an_artist_has_changed_without_a_key_stays(tmp_path):
    """Looking at what modifiers make leaves keyed values alone; groups of hidden objects are seen as well."""
    found = in_blender(SCENE + UNTOUCHED, folder=str(tmp_path))
    assert found["before"] == found["added"] == found["quick"] == 77.0
    assert found["hidden"] == 2
