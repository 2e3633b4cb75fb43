"""Cooks stay what they are when folders move, scenes are renamed, and there is nothing left to cook."""

from __future__ import annotations

from pathlib import Path

from blender_process import in_blender

SHOT = """
def middle(scene, frame):
    scene.frame_set(frame)
    cloud = next(each for each in bpy.data.objects if each.type == "POINTCLOUD")
    cloud = cloud.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return sum((cloud.matrix_world @ point.co).x for point in cloud.data.points) / max(1, len(cloud.data.points))
def cooked(**how):
    try:
        bpy.ops.mpm_nodes.cook(tree="shot", **how)
    except RuntimeError as error:
        return str(error)
    return cook.wait(bpy.data.node_groups["shot"], 300)
scene = bpy.context.scene
bpy.ops.wm.save_as_mainfile(filepath=given["folder"] + "/before/shot.blend")
tree = trees.new_tree(trees.GRAPH_TREE, "shot")
tree.k_cell_size, tree.k_end = 0.15, 3
ball = add(tree, "emit_box", "ball", centre=(0.0, 0.0, 1.0), size=(0.3, 0.3, 0.3))
fall, fog, cache = add(tree, "solve", "fall"), add(tree, "density_volume", "fog"), add(tree, "write_cache", "cache")
for one, output, other, port in ((add(tree, "material_library"), "", ball, "material"), (ball, "", fall, "sources"),
                                 (fall, "particles", fog, "particles"), (fall, "particles", cache, "particles"),
                                 (fog, "", cache, "volumes")):
    nodes.connect(one, output, other, port)
"""

MOVED = (
    SHOT
    + """
job = cook.start(tree, scene)
scene.name = "Renamed while it cooks"
answer["states"] = [cook.wait(tree, 300)]
answer["renamed"] = [scene.name, sorted(thing.type for thing in scene.objects)]
cache_import.take_away(tree)
answer["states"].append(cooked(resume=True))
answer["resumed"] = sorted(thing.type for thing in scene.objects)
ball.k_velocity = (30.0, 0.0, 0.0)
answer["states"].append(cooked())
bpy.ops.mpm_nodes.show_revision(tree="shot", revision="r001")
ball.k_velocity = (0.0, 0.0, 0.0)
answer["before"] = middle(scene, 2)
answer["paths"] = [each.filepath for each in bpy.data.cache_files] + [each.filepath for each in bpy.data.volumes]
bpy.ops.wm.save_mainfile()
os.rename(given["folder"] + "/before", given["folder"] + "/after")
bpy.ops.wm.open_mainfile(filepath=given["folder"] + "/after/shot.blend")
scene, tree = bpy.context.scene, bpy.data.node_groups["shot"]
answer["moved"] = middle(scene, 2)
grids = bpy.data.volumes[0].grids
answer["grids"] = grids.load()
scene.frame_set(3)
tree.nodes["fall"].k_gravity = (0.0, 0.0, -5.0)
bpy.ops.mpm_nodes.cook_again(tree="shot")
answer["states"].append(cook.wait(tree, 300))
answer["again"], answer["shown"] = middle(scene, 2), str(cache_import.shown_folder(tree))
bpy.ops.wm.save_as_mainfile(filepath=given["folder"] + "/after/other.blend")
tree.nodes["fall"].k_gravity = (0.0, 0.0, -2.0)
scene.frame_set(3)
bpy.ops.mpm_nodes.cook_again(tree="shot")
answer["states"].append(cook.wait(tree, 300))
answer["kept"] = [str(cache_import.shown_folder(tree)), middle(scene, 2), tree.status]
cook_json = json.loads((cache_import.shown_folder(tree) / "cook.json").read_text())
answer["taken"] = [cook_json["taken"]["from"], cook_json["taken"]["last"]]
os.rename(given["folder"] + "/after/mpm/other", given["folder"] + "/after/mpm/gone")
scene.frame_set(3)
try:
    bpy.ops.mpm_nodes.cook_again(tree="shot")
except RuntimeError as error:
    answer["gone"] = str(error)
"""
)


def test_what_is_shown_is_known_after_a_move(tmp_path: Path):
    """A renamed scene gets its frames, Resume brings them back, and Cook Again takes those that are shown, after Save As too."""
    (tmp_path / "before").mkdir()
    seen = in_blender(MOVED, folder=str(tmp_path))
    assert seen["states"] == ["done"] * 5, seen
    assert seen["renamed"] == ["Renamed while it cooks", ["EMPTY", "POINTCLOUD", "VOLUME"]]
    assert seen["resumed"] == ["EMPTY", "POINTCLOUD", "VOLUME"], "there was nothing left to cook"
    assert all(path.startswith("//") for path in seen["paths"]) and len(seen["paths"]) == 2, seen["paths"]
    assert seen["moved"] == seen["before"] and seen["grids"]
    assert abs(seen["again"] - seen["before"]) < 1e-6, "frame 2 is that of r001, not of the newest cook"
    assert seen["shown"] == str(tmp_path / "after" / "mpm" / "shot" / "shot_cache" / "r003")
    other = tmp_path / "after" / "mpm" / "other" / "shot_cache" / "r001"
    assert seen["kept"][0] == str(other) and abs(seen["kept"][1] - seen["before"]) < 1e-6, "a file saved under another name"
    assert seen["taken"] == ["r003", 2]
    assert f"{other}, is not there; show one of the panel Caches" in seen["gone"]
