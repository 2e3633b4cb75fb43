"""Stop, change, cook again from a frame in Blender: frames before the current one are those of the cook that is shown."""

from __future__ import annotations

from blender_process import in_blender

AGAIN = """
scene = bpy.context.scene
bpy.ops.mpm_nodes.new_graph()
tree = bpy.data.node_groups["MPM Graph"]
tree.name, tree.folder, tree.k_cell_size, tree.k_end = "melt", given["folder"], 0.12, 4
made = {node.record["id"]: node for node in tree.nodes}
cook.start(tree, scene)
answer["first"] = cook.wait(tree, 300)
made["solve"].k_gravity = (0.0, 0.0, 5.0)
scene.frame_set(4)
bpy.ops.mpm_nodes.cook_again(tree="melt")
answer["again"], answer["status"] = cook.wait(tree, 300), tree.status
answer["revision"], answer["shown"] = tree.revision, bpy.data.objects["particles"].modifiers[0].cache_file.filepath
bpy.ops.mpm_nodes.compare_revisions(tree="melt", revision="r001")
answer["compared"] = tree.status
folder = places.out_path(tree)
answer["manifest"] = json.loads((folder / "r002" / "cook.json").read_text())["taken"]
tree.k_cell_size = 0.1
bpy.ops.mpm_nodes.cook_again(tree="melt")
answer["refused"], answer["text"] = cook.wait(tree, 300), tree.status + tree.message + str(problems_of(tree))
answer["found"] = [path.name for path in revisions.found(folder)]
tree.k_cell_size = 0.12
scene.frame_set(1)
bpy.ops.mpm_nodes.cook_again(tree="melt")
answer["whole"] = cook.wait(tree, 300)
answer["taken"] = "taken" in json.loads((folder / "r003" / "cook.json").read_text())
"""


def test_the_button_cooks_again_from_the_current_frame(tmp_path):
    """Frame 4 is cooked with the new knob, frames 1 to 3 are taken; another cell size is refused; frame 1 begins a whole cook."""
    seen = in_blender("import json\n" + AGAIN, folder=str(tmp_path))
    assert seen["first"] == seen["again"] == "done" and "4 frames cooked" in seen["status"]
    assert seen["revision"].endswith("r002") and "r002" in seen["shown"]
    assert seen["manifest"]["from"] == "r001" and seen["manifest"]["last"] == 3
    assert "solve.gravity" in seen["compared"].lower().replace("mpm ", "")
    assert seen["refused"] == "failed" and "cell_size" in seen["text"] and "set it back" in seen["text"]
    assert seen["found"] == ["r001", "r002"]
    assert seen["whole"] == "done" and not seen["taken"]
    names = [f"frames/{frame:04d}.commit.json" for frame in range(1, 5)]
    roots = sorted(path.parent for path in tmp_path.rglob("cook.json"))
    assert all((roots[1] / name).is_file() for name in names)
