"""A coarse cook that the viewport shows, and a fine one that renders read: of the same objects, by a switch."""

from __future__ import annotations

from pathlib import Path

from blender_process import in_blender

TWO = """
scene = bpy.context.scene
bpy.ops.wm.save_as_mainfile(filepath=given["folder"] + "/shot.blend")
drawn = {}
class Counter(bpy.types.RenderEngine):
    bl_idname, bl_label = "COUNTER", "Counter"
    def render(self, depsgraph):
        drawn.clear()
        for thing in depsgraph.objects:
            if thing.type == "MESH":
                drawn[thing.name] = [len(thing.data.vertices), thing.material_slots[0].material.name]
bpy.utils.register_class(Counter)
scene.render.engine, scene.render.resolution_x, scene.render.resolution_y = "COUNTER", 16, 16
bpy.ops.object.camera_add()
scene.camera = bpy.context.object
tree = trees.new_tree(trees.GRAPH_TREE, "shot")
tree.k_cell_size, tree.k_end, tree.high_resolution = 0.12, 3, 1.75
ball, fall = add(tree, "emit_box", "ball", size=(0.5, 0.5, 0.5)), add(tree, "solve", "fall")
cache = add(tree, "write_cache", "cache")
for one, output, other, port in ((add(tree, "material_library"), "", ball, "material"), (ball, "", fall, "sources"),
                                 (fall, "particles", add(tree, "surface_particles", "skin"), "particles"),
                                 (fall, "particles", cache, "particles"), (tree.nodes["skin"], "mesh", cache, "mesh")):
    nodes.connect(one, output, other, port)
def seen(name):
    scene.frame_set(3)
    shown = bpy.data.objects["mesh"].evaluated_get(bpy.context.evaluated_depsgraph_get())
    drawn.clear()
    bpy.ops.render.render()
    answer[name] = [len(shown.data.vertices), *drawn["mesh"], tree.status]
def cooked(**how):
    bpy.ops.mpm_nodes.cook(tree="shot", **how)
    return cook.wait(tree, 300)
states = [cooked()]
red = bpy.data.materials.new("Red")
bpy.data.objects["mesh"].material_slots[0].material = red
seen("low")
states.append(cooked(high=True))
seen("high")
answer["newest"] = [tree.revision, str(cache_import.shown_folder(tree)), str(resolutions.rendered_folder(tree))]
tree.render_high = False
seen("switched")
tree.render_high = True
tree.k_end = 4
states.append(cooked(resume=True))
answer["resumed"] = {path.name: cache_import.frames_of(path) for path in revisions.found(places.out_path(tree))}
fall.k_gravity = (0.0, 0.0, -1.0)
states.append(cooked())
seen("again")
answer["both"] = [str(cache_import.shown_folder(tree)), str(resolutions.rendered_folder(tree))]
resolutions.forget(tree)
history.restore()
seen("undone")
bpy.ops.wm.save_mainfile()
bpy.ops.wm.open_mainfile(filepath=given["folder"] + "/shot.blend")
scene, tree = bpy.context.scene, bpy.data.node_groups["shot"]
seen("opened")
bpy.ops.mpm_nodes.render_revision(tree="shot", revision="r003")
seen("shown")
bpy.ops.mpm_nodes.render_revision(tree="shot", revision="r002")
bpy.ops.mpm_nodes.delete_revision(tree="shot", revision="r002")
seen("deleted")
answer["states"], answer["objects"] = states, sorted(each.name for each in bpy.data.objects)
"""


def test_renders_read_the_fine_cook_and_the_viewport_the_coarse_one(tmp_path: Path):
    """By a render: of one object with its material, also after another coarse cook, an undo, and in the file opened again."""
    seen = in_blender(TWO, folder=str(tmp_path))
    assert seen["states"] == ["done"] * 4, seen
    coarse, drawn, look, _ = seen["low"]
    assert drawn == coarse > 100 and look == "Red"
    fine = seen["high"][1]
    assert seen["high"][0] == coarse and fine > 2.0 * coarse and seen["high"][2] == "Red", "cells 1.75 times as fine, of an area"
    assert [Path(each).name for each in seen["newest"]] == ["r001", "r001", "r002"]
    assert seen["switched"][:2] == [coarse, coarse]
    assert seen["resumed"] == {"r001": [1, 2, 3], "r002": [1, 2, 3, 4]}, "a fine cook goes on as one"
    assert [Path(each).name for each in seen["both"]] == ["r003", "r002"]
    again = seen["again"][0]
    for name in ("again", "undone", "opened"):
        assert seen[name][:3] == [again, fine, "Red"], name
    assert seen["shown"][:2] == seen["deleted"][:2] == [again, again]
    assert len(seen["objects"]) == len({each.partition(".")[0] for each in seen["objects"]}), "nothing is left of imports"
