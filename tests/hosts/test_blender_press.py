"""One press of Check, Cook or Quick: one pass over the graph's frames that changes nothing and can be stopped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from blender_process import in_blender

PRESS = """
scene = bpy.context.scene
scene.frame_start, scene.frame_end = 1, 250
def cube(name, x):
    bpy.ops.mesh.primitive_cube_add(size=0.2, location=(x, 0.0, 0.3))
    bpy.context.object.name = name
    return bpy.context.object
things = [cube(f"C{number}", 0.3 * number) for number in range(8)]
heavy = cube("Heavy", 9.0)
heavy.modifiers.new("wave", "WAVE")
scene.frame_set(3)
seen = {"frames": [], "evaluated": set()}
def note(_scene, graph):
    seen["frames"].append(graph.scene.frame_current)
    seen["evaluated"] |= {each.id.original.name for each in graph.updates}
bpy.app.handlers.frame_change_post.append(note)
real = environment.start
def started(arguments, folder):
    answer.setdefault("started", []).append(arguments[1])
    return real(arguments, folder)
environment.start = started
def press(what, work):
    seen["frames"], seen["evaluated"], answer["started"] = [], set(), []
    work()
    answer[what] = {"frames": seen["frames"], "heavy": "Heavy" in seen["evaluated"], "started": answer.pop("started")}
def graph(name, *colliders):
    tree = trees.new_tree(trees.GRAPH_TREE, name)
    tree.folder, tree.k_start, tree.k_end, tree.k_cell_size = given["folder"], 1, 4, 0.1
    fall = add(tree, "solve", "fall")
    for thing in colliders:
        scene_input.add_collider(tree, thing, fall)
    return tree, fall
still, _ = graph("still", *things)
press("check", lambda: bpy.ops.mpm_nodes.validate(tree="still"))
press("again", lambda: bpy.ops.mpm_nodes.validate(tree="still"))
still.k_end = 9
press("longer", lambda: cook.write_graph(still, scene))
moving, fall = graph("moving", *things[:4])
for frame, x in ((1, 0.0), (4, 1.0)):
    things[0].location.x = x
    things[0].keyframe_insert("location", frame=frame)
scene_input.add_source(moving, things[4], fall, stream=True)
scene_input.add_source(moving, things[0], fall, stream=True)
empty = bpy.data.objects.new("Empty", None)
empty.empty_display_type = "SPHERE"
scene.collection.objects.link(empty)
scene_input.add_collider(moving, empty, fall)
fall.driver_add("k_time_scale").driver.expression = "1 + frame / 10"
press("write", lambda: cook.write_graph(moving, scene))
answer["driven"] = graph_file.read(places.graph_path(moving))["nodes"]["fall"]["knobs"]["time_scale"]
press("cook", lambda: cook.start(moving, scene))
cook.cancel(moving)
cook.cancel(moving)
cook.wait(moving, 100)
bpy.ops.object.select_all(action="DESELECT")
things[5].select_set(True)
bpy.context.view_layer.objects.active = things[5]
press("quick", lambda: bpy.ops.mpm_nodes.quick(preset="jelly", particles=500))
made = next(tree for tree in problems.graph_trees(bpy.data) if tree.name.startswith("Jelly"))
answer["quick"]["many"] = made.k_end - made.k_start + 1
cook.cancel(made)
cook.cancel(made)
cook.wait(made, 100)
"""

KEPT = """
scene = bpy.context.scene
scene.frame_start, scene.frame_end = 1, 9
bpy.ops.mesh.primitive_cube_add(size=1.0)
prop = bpy.context.object
for frame in (1, 9):
    prop.keyframe_insert("location", frame=frame)
prop.shape_key_add(name="Basis")
bulge = prop.shape_key_add(name="Bulge")
bulge.keyframe_insert("value", frame=1)
lamp = bpy.data.objects.new("Lamp", bpy.data.lights.new("Lamp", "POINT"))
scene.collection.objects.link(lamp)
lamp.data.keyframe_insert("energy", frame=1)
bones = bpy.data.objects.new("Bones", bpy.data.armatures.new("Bones"))
scene.collection.objects.link(bones)
bpy.context.view_layer.objects.active = bones
bpy.ops.object.mode_set(mode="EDIT")
bones.data.edit_bones.new("bone").tail = (0.0, 0.0, 1.0)
bpy.ops.object.mode_set(mode="OBJECT")
bones.pose.bones["bone"].keyframe_insert("location", frame=1)
prop.parent = bones
scene.frame_set(5)
prop.location.x, bulge.value, lamp.data.energy, bones.pose.bones["bone"].location.x = 3.0, 0.75, 123.0, 0.5
prop.hide_set(True)
shelf = bpy.data.objects.new("Shelf", prop.data)
shelf.hide_viewport = True
scene.collection.objects.link(shelf)
bpy.context.view_layer.update()
def state():
    return [list(prop.location), bulge.value, lamp.data.energy, list(bones.pose.bones["bone"].location), scene.frame_current,
            scene.frame_end, prop.hide_get(), shelf.hide_viewport, sorted(each.name for each in bpy.data.objects),
            sorted(each.name for each in bpy.data.meshes), [each.name for each in bpy.data.scenes],
            [each.name for each in bpy.context.selected_objects], bpy.context.view_layer.objects.active.name]
tree = trees.new_tree(trees.GRAPH_TREE, "kept")
tree.folder, tree.k_start, tree.k_end = given["folder"], 1, 6
fall = add(tree, "solve", "fall")
scene_input.add_collider(tree, prop, fall)
scene_input.add_collider(tree, shelf, fall)
answer["before"] = state()
answer["written"] = cook.write_graph(tree, scene) is not None
answer["after"] = state()

# Esc after two frames
class Press(operators.Stepwise):
    def steps(self, context):
        return (yield from cook.write_steps(tree, scene))
    def report(self, kinds, text):
        answer["said"] = text
class Manager:
    def __getattr__(self, name):
        return lambda *given, **named: answer.setdefault("asked", []).append(name)
class Context:
    window_manager, window, area = Manager(), None, None
class Event:
    def __init__(self, kind):
        self.type = kind
from bl_ext.user_default.mpm_nodes import steps
places.graph_path(tree).unlink()
prop.location.y = 2.0
steps.SLICE = 0.0
press, context = Press(), Context()
press.begin(context)
answer["running"] = [press.modal(context, Event("TIMER")) == {"RUNNING_MODAL"} for _ in range(2)]
answer["panel"], answer["waits"] = tree.status, press.modal(context, Event("MOUSEMOVE")) == {"RUNNING_MODAL"}
answer["held"], answer["busy"] = len(bpy.data.scenes), cook.look() == cook.INTERVAL
answer["stopped"], answer["status"] = press.modal(context, Event("ESC")) == {"CANCELLED"}, tree.status
answer["graph"] = places.graph_path(tree).exists()
answer["left"] = sorted(each.name for each in places.inputs_path(places.graph_path(tree)).iterdir())
answer["esc"], answer["ended"] = state(), answer.pop("asked")
# the same to its end
press.begin(context)
result = {"RUNNING_MODAL"}
while result == {"RUNNING_MODAL"}:
    result = press.modal(context, Event("TIMER"))
answer["result"], answer["free"] = str(result), steps.RUNNING == []
"""

DRAWN = """
scene = bpy.context.scene
scene.frame_start, scene.frame_end = 1, 20
bpy.ops.mesh.primitive_cube_add(size=1.0)
smooth = bpy.context.object
smooth.name = "Smooth"
levels = smooth.modifiers.new("s", "SUBSURF")
levels.levels, levels.render_levels = 0, 2
hidden = smooth.modifiers.new("w", "SOLIDIFY")
hidden.show_render = False
bpy.ops.mesh.primitive_plane_add(size=10.0)
bpy.ops.rigidbody.object_add(type="PASSIVE")
bpy.ops.mesh.primitive_cube_add(size=0.4, location=(3.0, 0.0, 2.0))
bpy.context.object.name = "Falling"
falling = bpy.context.object
bpy.ops.rigidbody.object_add(type="ACTIVE")
scene.rigidbody_world.point_cache.frame_end = 12
with bpy.context.temp_override(point_cache=scene.rigidbody_world.point_cache):
    bpy.ops.ptcache.bake(bake=True)
scene.frame_set(1)
tree = trees.new_tree(trees.GRAPH_TREE, "drawn")
tree.folder, tree.k_start, tree.k_end = given["folder"], 1, 12
fall = add(tree, "solve", "fall")
scene_input.add_collider(tree, smooth, fall)
scene_input.add_collider(tree, falling, fall)
frames = []
bpy.app.handlers.frame_change_post.append(lambda changed, graph: frames.append(changed.frame_current))
path = cook.write_graph(tree, scene)
answer["frames"], answer["status"] = len(frames), tree.status
document = graph_file.read(path)["nodes"]
answer["files"] = {name: str(path.parent / document[name]["knobs"]["path"]) for name in ("Smooth", "Falling")}
answer["plays"] = []
for frame in range(1, 13):
    scene.frame_set(frame)
    answer["plays"].append(falling.evaluated_get(bpy.context.evaluated_depsgraph_get()).matrix_world.translation.z)
"""

PROMISED = """
scene = bpy.context.scene
scene.frame_start, scene.frame_end = 1, 24
bpy.ops.mesh.primitive_cylinder_add(radius=0.1, depth=0.05, location=(0.0, 0.0, 1.0))
nozzle = bpy.context.object
nozzle.name = "Nozzle"
tree = trees.new_tree(trees.GRAPH_TREE, "promised")
tree.folder, tree.k_end, tree.k_cell_size = given["folder"], 24, 0.08
fall, cache = add(tree, "solve", "fall"), add(tree, "write_cache", "cache")
nodes.connect(fall, "particles", cache, "particles")
scene_input.add_source(tree, nozzle, fall, stream=True)
def check():
    bpy.ops.mpm_nodes.validate(tree="promised")
    return [tree.failed, tree.status, problems_of(tree)]
answer["stream"] = check()
cache.k_attributes = "velocity, tempreature"
answer["name"] = check()
cache.k_attributes = "velocity"
tree.k_cell_size = 0.5
answer["small"] = check()
"""


@pytest.fixture(scope="module")
def pressed(tmp_path_factory: pytest.TempPathFactory):
    """What every press evaluated and started."""
    return in_blender(PRESS, folder=str(tmp_path_factory.mktemp("press")))


@pytest.mark.parametrize("press", ["check", "again", "longer", "write", "cook", "quick"])
def test_one_press_evaluates_each_frame_of_the_graph_once(pressed, press: str):
    """At most the frames of the graph and two more, whatever the scene's range and the number of objects; nothing else."""
    many = {"quick": pressed["quick"].get("many"), "longer": 9}.get(press, 4)
    assert 1 <= len(pressed[press]["frames"]) <= many + 2, pressed[press]["frames"]
    assert not pressed[press]["heavy"], "an animated mesh that is not in the graph"


def test_what_has_not_changed_is_not_written_again(pressed):
    """The program that writes USD is started by the first press, and by one that finds something new."""
    writes = {press: "usd_io.scene_meshes" in facts["started"] for press, facts in pressed.items() if press != "driven"}
    assert writes == {"check": True, "again": False, "longer": False, "write": True, "cook": False, "quick": True}


def test_driven_knobs_are_read_in_the_same_pass(pressed):
    assert [key[:2] for key in pressed["driven"]["keys"]] == [[1, 1.1], [2, 1.2], [3, 1.3], [4, 1.4]]


def test_a_press_changes_nothing_and_esc_stops_it(tmp_path: Path):
    """What is set without a key stays, of the graph's objects and of others; a press that is stopped leaves no trace."""
    seen = in_blender(KEPT, folder=str(tmp_path))
    assert seen["written"] and seen["after"] == seen["before"]
    assert seen["running"] == [True, True] and seen["waits"] and seen["busy"] and seen["held"] == 2
    assert "frame 2 of 6; Esc stops" in seen["panel"]
    assert seen["stopped"] and "nothing was written" in seen["status"] and seen["said"] == "Stopped" and not seen["graph"]
    moved = [[3.0, 2.0, 0.0], *seen["before"][1:]]
    assert seen["esc"] == moved and not any(name.startswith(".") for name in seen["left"])
    assert {"progress_begin", "progress_update", "progress_end", "event_timer_remove"} <= set(seen["ended"])
    assert seen["result"].endswith("kept.json") and seen["free"]


def test_what_renders_and_what_plays_is_written(tmp_path: Path):
    """Subdivision and modifiers as rendered; a baked rigid body as it falls in the scene, in no more frames."""
    from pxr import Usd, UsdGeom

    seen = in_blender(DRAWN, folder=str(tmp_path))
    assert seen["frames"] <= 12 + 2, seen["status"]
    stages = {name: Usd.Stage.Open(file) for name, file in seen["files"].items()}
    (mesh,) = [each for each in stages["Smooth"].Traverse() if each.IsA(UsdGeom.Mesh)]
    assert len(UsdGeom.Mesh(mesh).GetPointsAttr().Get()) == 98
    (mesh,) = [each for each in stages["Falling"].Traverse() if each.IsA(UsdGeom.Mesh)]
    heights = [UsdGeom.XformCache(f).GetLocalToWorldTransform(mesh).ExtractTranslation()[2] for f in range(1, 13)]
    assert seen["plays"][-1] < 1.9, "it falls"
    np.testing.assert_allclose(heights, seen["plays"], atol=1e-5)


def test_check_promises_what_a_stream_brings_and_refuses_what_would_fail(tmp_path: Path):
    """384 particles come out of the disc in 24 frames; a name that none has, and a disc too small for any, are on their nodes."""
    seen = in_blender(PROMISED, folder=str(tmp_path))
    failed, status, _ = seen["stream"]
    assert not failed and "about 383 particles" in status, status
    assert seen["name"][0] and "'tempreature' is not an attribute" in seen["name"][2]["cache"]
    assert seen["small"][0] and "no particle fits" in seen["small"][2]["Nozzle"]
