"""What an artist's scene holds goes into a graph as the artist sees it: names, kinds of objects, knobs, units, poses, time."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from blender_process import in_blender

NAMES = """
scene = bpy.context.scene
def cube(name, x, size):
    bpy.ops.mesh.primitive_cube_add(size=size, location=(x, 0.0, 0.0))
    bpy.context.object.name = name
    return bpy.context.object
things = [cube("Rock.001", 1.0, 0.2), cube("Rock_001", 2.0, 0.4), cube("rock_001", 3.0, 0.6)]
def graph(name, start, end, folder=""):
    tree = trees.new_tree(trees.GRAPH_TREE, name)
    tree.k_start, tree.k_end, tree.folder = start, end, folder
    fall = add(tree, "solve", "fall")
    for thing in things:
        scene_input.add_collider(tree, thing, fall)
    return tree
answer["unsaved"] = str(places.folder_of(graph("unsaved", 1, 2)))
answer["temporary"] = bpy.app.tempdir
bpy.ops.wm.save_as_mainfile(filepath=given["first"])
one, two = graph("shot.a", 1, 10), graph("shot_a", 20, 22)
answer["graphs"] = [str(cook.write_graph(tree, scene)) for tree in (one, two)]
mine = graph("shared", 1, 2, given["folder"])
answer["mine"] = str(cook.write_graph(mine, scene))
bpy.ops.wm.save_as_mainfile(filepath=given["second"])
answer["other_file"] = str(places.graph_path(one))
answer["refused"] = [cook.write_graph(mine, scene) is None, mine.status]
"""

KINDS = """
import math
scene = bpy.context.scene
def link(thing, **values):
    scene.collection.objects.link(thing)
    for name, value in values.items():
        setattr(thing, name, value)
    return thing
bpy.ops.mesh.primitive_cube_add(size=0.5, location=(0.0, 0.0, 0.25))
source = bpy.context.object
kit = bpy.data.collections.new("Kit")
kit.objects.link(source)
scene.collection.objects.unlink(source)
instance = link(bpy.data.objects.new("Instance", None), instance_type="COLLECTION", location=(1.0, 2.0, 3.0))
instance.instance_collection = kit
scattered = link(bpy.data.objects.new("Scattered", bpy.data.meshes.new("scattered")))
group = bpy.data.node_groups.new("scatter", "GeometryNodeTree")
group.interface.new_socket("Geometry", in_out="OUTPUT", socket_type="NodeSocketGeometry")
out, points = group.nodes.new("NodeGroupOutput"), group.nodes.new("GeometryNodePoints")
on, box = group.nodes.new("GeometryNodeInstanceOnPoints"), group.nodes.new("GeometryNodeMeshCube")
points.inputs["Count"].default_value = 3
for a, b in ((points.outputs[0], on.inputs["Points"]), (box.outputs[0], on.inputs["Instance"]), (on.outputs[0], out.inputs[0])):
    group.links.new(a, b)
scattered.modifiers.new("scatter", "NODES").node_group = group
lamp = link(bpy.data.objects.new("Lamp", bpy.data.lights.new("Lamp", "POINT")))
camera = link(bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera")))
crate = link(bpy.data.objects.new("Crate", None), empty_display_type="CUBE", empty_display_size=0.5, scale=(1.0, 2.0, 3.0))
bpy.ops.mesh.primitive_cube_add(size=1.0, location=(5.0, 0.0, 1.0))
brick = bpy.context.object
brick.name, brick.scale = "Brick", (0.2, 0.4, 0.6)  # the operator's own `scale` is in the mesh
brick.data.transform(__import__("mathutils").Matrix.Translation((0.0, 0.0, 0.5)))
hidden = []
for number, hide in enumerate(("hide_render", "hide_select", "hide_viewport", "hide_set", "excluded")):
    bpy.ops.mesh.primitive_cube_add(size=0.1, location=(number, 0.0, 0.0))
    thing = bpy.context.object
    thing.name = hide
    if hide == "hide_set":
        thing.hide_set(True)
    elif hide == "excluded":
        shelf = bpy.data.collections.new("Shelf")
        scene.collection.children.link(shelf)
        shelf.objects.link(thing)
        scene.collection.objects.unlink(thing)
        bpy.context.view_layer.layer_collection.children["Shelf"].exclude = True
    else:
        setattr(thing, hide, True)
    hidden.append(thing)
tree = trees.new_tree(trees.GRAPH_TREE, "kinds")
tree.folder, tree.k_end = given["folder"], 2
fall = add(tree, "solve", "fall")
colliders = [scene_input.add_collider(tree, thing, fall) for thing in (instance, scattered, crate, *hidden)]
answer["types"] = {node.scene_object.name: node.record["id"] for node in colliders}
paddle, blob = add(tree, "collide_box", "paddle"), add(tree, "emit_sphere", "blob")
paddle.scene_object = blob.scene_object = brick
nodes.connect(paddle, "", fall, "colliders")
answer["said"] = []
for thing in (lamp, camera):
    for role in (scene_input.add_collider, scene_input.add_source):
        try:
            role(tree, thing, fall)
            answer["said"].append("")
        except scene_input.ObjectFault as fault:
            answer["said"].append(str(fault))
answer["nodes"] = len(tree.nodes)
path = cook.write_graph(tree, scene)
answer["status"] = tree.status
answer["graph"], answer["path"] = graph_file.read(path), str(path)
answer["states"] = [[each.hide_render, each.hide_select, each.hide_viewport] for each in hidden]
answer["modifiers"], answer["groups"] = len(scattered.modifiers), len(bpy.data.node_groups)
answer["excluded"] = sorted(each.name for each in scene.collection.objects)
blob.scene_object = camera
answer["sized"] = [cook.write_graph(tree, scene) is None, problems_of(tree)]
"""

KNOBS = """
scene = bpy.context.scene
bpy.ops.mpm_nodes.new_graph()
tree = bpy.data.node_groups["MPM Graph"]
tree.folder, tree.k_start, tree.k_end = given["folder"], 1, 5
made = {node.bl_idname[len("MpmNode_"):]: node for node in tree.nodes}
ball, fall, ground = made["emit_sphere"], made["solve"], made["collide_plane"]
for frame, speed in ((1, 0.0), (5, -8.0)):
    fall.k_gravity = (0.0, 0.0, speed)
    fall.keyframe_insert("k_gravity", frame=frame)
for curve in animation.curves_of(fall, "k_gravity"):
    for point in curve.keyframe_points:
        point.interpolation = "LINEAR"
seen = []
for frame in (1, 3, 5):
    scene.frame_set(frame)
    seen.append(round(fall.k_gravity[2], 4))
answer["follows"] = seen
driver = ground.driver_add("k_friction").driver
driver.expression = "frame / 10"
# an action whose first slot is another's
if hasattr(tree.animation_data, "action_slot"):
    action = bpy.data.actions.new("shared")
    other = bpy.data.objects.new("Other", None)
    scene.collection.objects.link(other)
    other.animation_data_create()
    other.animation_data.action = action
    other.keyframe_insert("location", frame=1)
    tree.animation_data.action = action
    tree.animation_data.action_slot = action.slots.new("NODETREE", "graph")
    for frame, speed in ((1, -1.0), (5, -5.0)):
        fall.k_gravity = (0.0, 0.0, speed)
        fall.keyframe_insert("k_gravity", frame=frame)
    for curve in animation.curves_of(fall, "k_gravity"):
        for point in curve.keyframe_points:
            point.interpolation = "LINEAR"
scene.frame_set(3)
answer["slots"] = graph_file.read(cook.write_graph(tree, scene))["nodes"]
# the same action as an NLA strip, two frames later
strip = tree.animation_data.nla_tracks.new().strips.new("late", 3, tree.animation_data.action)
if hasattr(strip, "action_slot"):
    strip.action_slot = tree.animation_data.action_slot
tree.animation_data.action = None
strip.action_frame_start, strip.action_frame_end, strip.frame_end = 1, 5, 7
answer["late"] = graph_file.read(cook.write_graph(tree, scene))["nodes"]
answer["frame"] = scene.frame_current
named = graph_file.names_in_file(tree)
answer["names"] = {kind: named[node.name] for kind, node in made.items()}
"""

POSES = """
scene = bpy.context.scene
scene.frame_start, scene.frame_end = 1, 20
bpy.ops.mesh.primitive_cube_add(size=0.2)
lid = bpy.context.object
lid.name = "Lid"
for frame, height in ((1, 0.0), (20, 1.0)):
    lid.location.z = height
    lid.keyframe_insert("location", frame=frame)
handle = bpy.data.objects.new("Handle", None)
handle.empty_display_type = "SPHERE"
scene.collection.objects.link(handle)
for frame, height in ((1, 0.0), (20, 1.0)):
    handle.location.z = height
    handle.keyframe_insert("location", frame=frame)
tree = trees.new_tree(trees.GRAPH_TREE, "poses")
tree.folder, tree.k_end = given["folder"], 5
fall = add(tree, "solve", "fall")
scene_input.add_collider(tree, lid, fall)
scene_input.add_collider(tree, handle, fall)
scene.frame_set(7)
lid.location, handle.location = (9.0, 8.0, 7.0), (6.0, 5.0, 4.0)
path = cook.write_graph(tree, scene)
answer["poses"] = [list(lid.location), list(handle.location), scene.frame_current]
answer["handle"] = graph_file.read(path)["nodes"]["Handle"]["knobs"]["centre"]
exported = path.parent / graph_file.read(path)["nodes"]["Lid"]["knobs"]["path"]
before = [exported.read_bytes(), exported.stat().st_mtime_ns]
cook.write_graph(tree, scene)
answer["unchanged"] = before == [exported.read_bytes(), exported.stat().st_mtime_ns]
answer["left"] = sorted(each.name for each in exported.parent.iterdir())
"""

EARLY = """
from mathutils import Vector
scene = bpy.context.scene
scene.frame_start, scene.frame_end = 0, 4
scene.unit_settings.scale_length = 0.01
scene.render.fps = given["fps"]
bpy.ops.mesh.primitive_cube_add(size=40.0, location=(0.0, 0.0, 20.0))
block = bpy.context.object
block.name = "Block"
for frame, height in ((given["first"], 20.0), (given["first"] + 4, 40.0)):
    block.location.z = height
    block.keyframe_insert("location", frame=frame)
tree = trees.new_tree(trees.GRAPH_TREE, "early")
tree.folder, tree.k_cell_size, tree.k_fps = given["folder"], 0.08, 24.0
tree.k_start, tree.k_end = given["first"], given["first"] + 4
jelly = add(tree, "material_neo_hookean", "jelly")
cube = add(tree, "emit_box", "cube", size=(30.0, 30.0, 30.0), centre=(0.0, 0.0, 150.0), velocity=(0.0, 0.0, -400.0))
fall, cache = add(tree, "solve", "fall", start_frame=given["first"]), add(tree, "write_cache", "cache")
nodes.connect(jelly, "", cube, "material")
nodes.connect(cube, "", fall, "sources")
nodes.connect(fall, "particles", cache, "particles")
wall = scene_input.add_collider(tree, block, fall)
nodes.connect(wall, "", cache, "colliders")
cook.start(tree, scene)
key = cook.key_of(tree)
tree.name = "renamed while it cooks"
answer["same_job"] = cook.key_of(tree) == key and cook.job_of(tree) is not None
answer["state"], answer["status"] = cook.wait(tree, 300), tree.status
answer["fps"] = scene.render.fps
points, met = bpy.data.objects["particles"], bpy.data.objects["collider_Block"]
met.hide_viewport = False
seen = []
for frame in range(tree.k_start, tree.k_end + 1):
    scene.frame_set(frame)
    graph = bpy.context.evaluated_depsgraph_get()
    shown = points.evaluated_get(graph)
    heights = [(shown.matrix_world @ each.vector).z for each in shown.data.attributes["position"].data]
    body = met.evaluated_get(graph)
    corners = [(body.matrix_world @ each.co).z for each in body.data.vertices]
    seen.append([sum(heights) / len(heights), min(corners), max(corners)])
answer["seen"], answer["revision"] = seen, tree.revision
scene.frame_start = 0
bpy.ops.mpm_nodes.new_graph()
answer["begins"] = [node.k_start_frame for node in bpy.data.node_groups["MPM Graph"].nodes if hasattr(node, "k_start_frame")]
"""


LOOKED = """
from bl_ext.user_default.mpm_nodes import scene_pass, surfaces
scene = bpy.context.scene
def cube(name):
    bpy.ops.mesh.primitive_cube_add(size=1.0)
    bpy.context.object.name = name
    return bpy.context.object
def slide(thing):
    for frame, x in ((3, 0.0), (5, 3.0)):
        thing.location.x = x
        thing.keyframe_insert("location", frame=frame)
still, moved, child, shaped, driven, wave, cut, stands = map(
    cube, ("still", "moved", "child", "shaped", "driven", "wave", "cut", "stands"))
slide(moved)
child.parent = moved
shaped.shape_key_add(name="Basis")
raised = shaped.shape_key_add(name="Raised")
raised.data[0].co.z += 1.0
for frame, value in ((3, 0.0), (5, 1.0)):
    raised.value = value
    raised.keyframe_insert("value", frame=frame)
driven.driver_add("location", 1).driver.expression = "max(frame - 3, 0)"
wave.modifiers.new("w", "WAVE")
cut.modifiers.new("c", "BOOLEAN").object = moved
for frame in (1, 9):
    stands.keyframe_insert("location", frame=frame)  # evaluated again at every frame, and stays where it is
group = bpy.data.collections.new("Group")
scene.collection.children.link(group)
inner = cube("inner")
group.objects.link(inner)
slide(inner)
copies = bpy.data.objects.new("copies", None)
copies.instance_type, copies.instance_collection = "COLLECTION", group
scene.collection.objects.link(copies)
frame = cube("frame")
frame.instance_type = "VERTS"
grown = cube("grown")
grown.parent = frame
slide(grown)
bpy.context.view_layer.update()
real, looked = surfaces.pieces, []
surfaces.pieces = lambda thing, depsgraph, painted: looked.append(thing.name) or real(thing, depsgraph, painted)
things = (still, moved, child, shaped, driven, wave, cut, stands, copies, frame)
found = {thing: [] for thing in things}
for stage, updated in scene_pass.over_frames(scene, things, None, range(1, 10)):
    for thing, pieces in found.items():
        pieces.append(stage.pieces(thing) if not pieces or stage.may_change(thing, updated) else pieces[-1])
answer["changes"] = {thing.name: any(each != pieces[0] for each in pieces) for thing, pieces in found.items()}
answer["looked"] = {name: looked.count(name) for name in answer["changes"]}
answer["handlers"], answer["frame"] = len(bpy.app.handlers.frame_change_post), scene.frame_current
"""


def test_every_file_graph_and_object_has_its_own_place(tmp_path: Path):
    """Names that clean alike, two graphs, two .blend files in a folder: no export and no cache is written over another."""
    first, second = tmp_path / "shot_v001.blend", tmp_path / "shot_v002.blend"
    seen = in_blender(NAMES, first=str(first), second=str(second), folder=str(tmp_path / "shared"))
    one, two = map(Path, seen["graphs"])
    assert one != two and one.parent == two.parent == tmp_path / "mpm" / "shot_v001"
    exports = {}
    for path in (one, two):
        for entry in json.loads(path.read_text())["nodes"].values():
            if entry["type"] == "collide_usd":
                exports[path, entry["editor"]["blender"]["object"]] = path.parent / entry["knobs"]["path"]
    assert len(exports) == len({str(each).casefold() for each in exports.values()}) == 6
    from pxr import Usd, UsdGeom

    for (_, name), path in exports.items():
        stage = Usd.Stage.Open(str(path))
        box = UsdGeom.BBoxCache(1, ["default"]).ComputeWorldBound(stage.GetPseudoRoot()).ComputeAlignedRange()
        size = {"Rock.001": 0.2, "Rock_001": 0.4, "rock_001": 0.6}[name]
        np.testing.assert_allclose(box.GetSize(), [size] * 3, atol=1e-6)
    assert Path(seen["other_file"]).parent == tmp_path / "mpm" / "shot_v002"
    refused, said = seen["refused"]
    assert refused and "shot_v001.blend" in said and "Folder" in said
    assert not Path(seen["unsaved"]).is_relative_to(seen["temporary"]), "what is not saved must outlive Blender"


def test_every_kind_of_object_is_what_it_is_or_is_refused(tmp_path: Path):
    """Instances are realised, boxes have their mesh's size, lamps and cameras are refused with the cure, hidden things work."""
    seen = in_blender(KINDS, folder=str(tmp_path))
    hidden = ("hide_render", "hide_select", "hide_viewport", "hide_set", "excluded")
    assert seen["types"] == {"Instance": "collide_usd", "Scattered": "collide_usd", "Crate": "collide_box"} | dict.fromkeys(
        hidden, "collide_usd"
    )
    assert all("has no surface; choose meshes, or empties" in text for text in seen["said"]) and len(seen["said"]) == 4
    entries, folder = seen["graph"]["nodes"], Path(seen["path"]).parent
    from pxr import Usd, UsdGeom

    def bounds(name):
        stage = Usd.Stage.Open(str(folder / entries[name]["knobs"]["path"]))
        box = UsdGeom.BBoxCache(1, ["default"]).ComputeWorldBound(stage.GetPseudoRoot()).ComputeAlignedRange()
        return np.array([box.GetMin(), box.GetMax()])

    np.testing.assert_allclose(bounds("Instance"), [[0.75, 1.75, 3.0], [1.25, 2.25, 3.5]], atol=1e-6)
    np.testing.assert_allclose(bounds("Scattered"), [[-0.5] * 3, [0.5] * 3], atol=1e-6)
    for number, name in enumerate(hidden):
        np.testing.assert_allclose(bounds(name), [[number - 0.05, -0.05, -0.05], [number + 0.05, 0.05, 0.05]], atol=1e-6)
    assert entries["Crate"]["knobs"]["size"] == pytest.approx([1.0, 3.0, 2.0])
    paddle, blob = entries["paddle"]["knobs"], entries["blob"]["knobs"]
    assert paddle["size"] == pytest.approx([0.2, 0.6, 0.4]) and paddle["centre"] == pytest.approx([5.0, 1.3, 0.0])
    assert blob["radius"] == pytest.approx(0.3) and blob["centre"] == pytest.approx([5.0, 1.3, 0.0])
    expected = [[name == each for name in ("hide_render", "hide_select", "hide_viewport")] for each in hidden]
    assert seen["states"] == expected and "excluded" not in seen["excluded"]
    assert (seen["modifiers"], seen["groups"]) == (1, 2), "what realised the instances is taken away again"
    refused, said = seen["sized"]
    assert refused and "Camera (camera) has no size" in said["blob"]


def test_knobs_are_what_the_timeline_makes_of_them(tmp_path: Path):
    """Keyed knobs follow the timeline; drivers, NLA strips and actions that share slots reach the graph, frame by frame."""
    seen = in_blender(KNOBS, folder=str(tmp_path))
    assert seen["follows"] == [0.0, -4.0, -8.0]
    names, slots, late = seen["names"], seen["slots"], seen["late"]
    friction = slots[names["collide_plane"]]["knobs"]["friction"]["keys"]
    assert [key[0] for key in friction] == [1, 2, 3, 4, 5]
    assert [key[1] for key in friction] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])
    gravity = {key[0]: key[1][1] for key in slots[names["solve"]]["knobs"]["gravity"]["keys"]}
    assert gravity == {1: -1.0, 5: -5.0} or gravity == {1: 0.0, 5: -8.0}, "before Blender 4.4 actions have no slots"
    first, last = gravity[1], gravity[5]
    moved = [key[1][1] for key in late[names["solve"]]["knobs"]["gravity"]["keys"]]
    np.testing.assert_allclose(moved, np.interp([1, 2, 3, 4, 5], [3, 7], [first, last]), atol=1e-5)
    assert seen["frame"] == 3


def test_a_cook_changes_no_pose_and_the_next_one_finds_its_exports_unchanged(tmp_path: Path):
    seen = in_blender(POSES, folder=str(tmp_path))
    assert seen["poses"] == [[9.0, 8.0, 7.0], [6.0, 5.0, 4.0], 7]
    heights = [key[1][1] for key in seen["handle"]["keys"]]
    assert len(heights) == 5 and heights[0] == 0.0 and np.all(np.diff(heights) > 0.0)
    assert seen["unchanged"], "what has not changed is not written again"
    assert seen["left"] == ["object.usdc", "object.usdc.digest"]


@pytest.mark.parametrize("first", [0, -2])
def test_frames_before_one_and_scenes_in_centimetres_come_back_where_they_were(tmp_path: Path, first: int):
    """In a scene whose units are centimetres every frame, below 1 too, shows its own state at the scene's size."""
    from pxr import Usd, UsdGeom

    seen = in_blender(EARLY, folder=str(tmp_path), fps=24, first=first)
    assert seen["state"] == "done" and seen["same_job"], seen["status"]
    stage = Usd.Stage.Open(str(Path(seen["revision"]) / "cache.usda"))
    points = UsdGeom.Points(stage.GetPrimAtPath("/cache/particles")).GetPointsAttr()
    for number, (height, low, high) in enumerate(seen["seen"]):
        metres = np.array(points.Get(stage.GetStartTimeCode() + number))[:, 1].mean()
        assert height == pytest.approx(100.0 * metres, rel=1e-5), f"frame {first + number}"
        assert high - low == pytest.approx(40.0, abs=0.1)
    heights = np.array([height for height, _, _ in seen["seen"]])
    assert np.all(np.diff(heights) < -5.0), "the jelly falls in every frame"
    middles = np.array([(low + high) / 2.0 for _, low, high in seen["seen"]])
    assert seen["begins"] == [0]
    assert middles[[0, -1]] == pytest.approx([20.0, 40.0], abs=0.1) and np.all(np.diff(middles) > 0.5)


def test_another_frame_rate_is_told_and_left_alone(tmp_path: Path):
    """The scene keeps its frames a second; the panel says what a different number in the graph does."""
    seen = in_blender(EARLY, folder=str(tmp_path), fps=25, first=0)
    assert seen["state"] == "done" and seen["fps"] == 25
    assert "25 frames a second and the graph 24" in seen["status"]


def test_a_surface_is_looked_at_when_it_may_have_changed():
    """Whatever moves or bends an object is found; one that Blender leaves as it is gets one look, however many frames there are."""
    seen = in_blender(LOOKED)
    still = [name for name, changes in seen["changes"].items() if not changes]
    assert still == ["still", "stands"], seen["changes"]
    assert seen["looked"]["still"] == 1 and seen["looked"]["stands"] == 9
    assert seen["handlers"] == 0 and seen["frame"] == 1
