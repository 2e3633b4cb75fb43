"""Undo and redo during and after a cook: the artist's edit is taken back, and neither the cook nor what it brought in."""

from __future__ import annotations

from pathlib import Path

from blender_process import in_blender

UNDO = """
import time
scene = bpy.context.scene
bpy.ops.ed.undo_push(message="Start")
tree = trees.new_tree(trees.GRAPH_TREE, "undone")
tree.folder, tree.k_cell_size, tree.k_end = given["folder"], 0.08, 3
jelly = add(tree, "material_neo_hookean", "jelly")
cube = add(tree, "emit_box", "cube", size=(0.3, 0.3, 0.3), centre=(0.0, 0.0, 1.0))
fall, cache = add(tree, "solve", "fall"), add(tree, "write_cache", "cache")
nodes.connect(jelly, "", cube, "material")
nodes.connect(cube, "", fall, "sources")
nodes.connect(fall, "particles", cache, "particles")
bpy.ops.ed.undo_push(message="Made")
here = lambda: bpy.data.node_groups["undone"]
speed = lambda: round(here().nodes["cube"].k_velocity[2], 3)

def facts():
    points = bpy.data.objects.get("particles")
    slot = points.material_slots[0].material if points and points.material_slots else None
    modifier = next((each for each in points.modifiers if each.type == "MESH_SEQUENCE_CACHE"), None) if points else None
    counts = []
    for frame in (1, 2, 3) if points else ():
        scene.frame_set(frame)
        counts.append(len(points.evaluated_get(bpy.context.evaluated_depsgraph_get()).data.points))
    return {"points": points is not None, "material": slot.name if slot else "", "counts": counts,
            "file": modifier.cache_file.filepath if modifier and modifier.cache_file else "",
            "revision": here().revision, "jobs": len(cook.JOBS), "speed": speed()}

job = cook.start(here(), scene)
# during: an edit is undone, then redone, while the program works
here().nodes["cube"].k_velocity = (0.0, 0.0, -1.0)
bpy.ops.ed.undo_push(message="Edit")
bpy.ops.ed.undo()
scene = bpy.context.scene
answer["undone"] = [speed(), cook.job_of(here()) is job]
cook.look()
bpy.ops.ed.redo()
cook.look()
answer["redone"] = [speed(), cook.job_of(here()) is job]
# further back than the graph itself, and forward again
for _ in range(3):
    bpy.ops.ed.undo()
answer["away"] = "undone" not in bpy.data.node_groups
cook.look()
answer["still"] = [len(cook.JOBS), job.process.poll(), job.stop_asked]
for _ in range(3):
    bpy.ops.ed.redo()
answer["back"] = cook.job_of(here()) is job
scene = bpy.context.scene
answer["state"] = cook.wait(here(), 300)
scene = bpy.context.scene
answer["cooked"] = facts()
def step(what):
    getattr(bpy.ops.ed, what)()
    history.restore()  # in a window a timer does this
    globals()["scene"] = bpy.context.scene
    return facts()
# an undo at once, and its redo: frames stay, the knob follows
answer["at_once"] = [step("undo"), step("undo"), step("redo"), step("redo")]
# after: an edit, its undo and its redo
here().nodes["cube"].k_velocity = (0.0, 0.0, -2.0)
bpy.ops.ed.undo_push(message="Edit again")
answer["after"] = [step("undo"), step("redo")]
# the artist's own material outlives the undo of later edits, and a second cook
clay = bpy.data.materials.new("clay of the artist")
bpy.data.objects["particles"].material_slots[0].material = clay
bpy.ops.ed.undo_push(message="Material")
here().nodes["cube"].k_velocity = (0.0, 0.0, -3.0)
bpy.ops.ed.undo_push(message="Edit once more")
cook.start(here(), scene)
bpy.ops.ed.undo()
history.restore()
scene = bpy.context.scene
answer["second"] = cook.wait(here(), 300)
scene = bpy.context.scene
answer["dressed"] = [facts(), step("undo"), step("redo")]
# edits made while frames are there without a step of their own become part of the history
answer["deep"] = [step("undo") for _ in range(5)]
bpy.ops.ed.undo_push(message="Branch")
here().nodes["cube"].k_velocity = (0.0, 0.0, -5.0)
bpy.ops.ed.undo_push(message="Branch on")
answer["branch"] = [step("undo"), step("redo"), step("undo"), step("undo")]
"""


def test_undo_takes_back_the_edit_and_not_the_cook(tmp_path: Path):
    """A cook goes on through undo and redo, even past its graph; its frames stay, and what undo takes back is the knob."""
    seen = in_blender(UNDO, folder=str(tmp_path / "out"))
    assert seen["undone"] == [0.0, True] and seen["redone"] == [-1.0, True], "the job belongs to the graph in every state of it"
    assert seen["away"] and seen["still"] == [1, None, False] and seen["back"]
    assert seen["state"] == seen["second"] == "done"
    states = [seen["cooked"], *seen["at_once"], *seen["after"], *seen["dressed"], *seen["deep"], *seen["branch"]]
    for number, state in enumerate(states):
        assert state["points"] and state["counts"] == [512] * 3 and state["file"].endswith("cache.usda"), (number, state)
        assert state["jobs"] == 0
    assert {state["material"] for state in states} == {"MPM Pointcloud", "clay of the artist"}
    assert [state["speed"] for state in seen["after"]] == [-1.0, -2.0]
    assert [state["material"] for state in seen["dressed"]] == ["clay of the artist"] * 3
    assert seen["at_once"][-1]["speed"] == -1.0 and seen["deep"][-1]["speed"] > -2.0
    speeds = [state["speed"] for state in seen["branch"]]
    assert speeds[1] == -5.0 and speeds[0] == speeds[2] == seen["deep"][-1]["speed"]
