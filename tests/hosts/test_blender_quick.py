"""Two clicks to matter: presets are files with open slots, scaled to the object; a cook follows, and frames come back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from blender_process import in_blender

MAKE = """
scene = bpy.context.scene
answer["presets"], answer["faults"] = quick_presets.found()
bpy.ops.mesh.primitive_plane_add(size=2.0, location=(0.0, 0.0, -0.5))
tray = bpy.context.object
tray.name = "Tray"
bpy.ops.mesh.primitive_uv_sphere_add(radius=0.1, location=(0.3, 0.0, 0.1))
bpy.context.object.name = "Stone"
bpy.ops.object.light_add(type="POINT")
lamp = bpy.context.object
bpy.ops.mesh.primitive_cube_add(size=0.4, location=(0.0, 0.0, 0.5))
cube = bpy.context.object
cube.name, cube.scale = "Body", (1.0, 1.0, 0.5)
bpy.context.view_layer.update()
answer["graphs"] = {}
for name in answer["presets"]:
    tree = quick.make(answer["presets"][name], cube, [tray, bpy.data.objects["Stone"], lamp], scene, 2000)
    tree.folder = os.path.join(given["folder"], name)
    path = cook.write_graph(tree, scene)
    answer["graphs"][name] = graph_file.read(path)
    problems.validate(tree, path)
    answer["graphs"][name]["said"] = [tree.status, problems_of(tree)]
alone = quick.make(answer["presets"]["wax"], cube, [], scene, 2000, ground=False)
answer["alone"] = graph_file.save(alone)["nodes"]
sheet = quick.make(answer["presets"]["honey"], tray, [], scene, 2000)
answer["sheet"] = graph_file.save(sheet)
try:
    quick.make(answer["presets"]["honey"], lamp, [], scene, 2000)
except quick.QuickFault as fault:
    answer["refused"] = str(fault)
cube.scale = (0.0, 0.0, 0.0)
try:
    answer["flat"] = quick.make(answer["presets"]["honey"], cube, [], scene, 2000).name
except quick.QuickFault as fault:
    answer["flat"] = str(fault)
"""

COOK = """
scene = bpy.context.scene
scene.frame_start, scene.render.fps = 5, 30
bpy.ops.wm.save_as_mainfile(filepath=given["blend"])
bpy.ops.mesh.primitive_uv_sphere_add(radius=0.1, location=(0.0, 0.0, 0.3))
body = bpy.context.object
bpy.ops.ed.undo_push(message="Before")
preset = quick_presets.found()[0]["jelly"]
answer["done"] = list(bpy.ops.mpm_nodes.quick(preset="jelly", particles=1500, cook=False))
tree = next(each for each in bpy.data.node_groups if each.bl_idname == trees.GRAPH_TREE)
answer["span"], answer["rate"] = [tree.k_start, tree.k_end], tree.k_fps
tree.k_end = 8
job = cook.start(tree, scene)
answer["state"], answer["status"], answer["problems"] = cook.wait(tree, 300), tree.status, problems_of(tree)
mesh = bpy.data.objects["mesh"]
answer["hidden"] = [body.hide_render, body.hide_get()]
shader = next(node for node in mesh.material_slots[0].material.node_tree.nodes if node.type == "BSDF_PRINCIPLED")
answer["colour"], answer["look"] = list(shader.inputs["Base Color"].default_value), preset["editor"]["quick"]["look"]
heights = []
for frame in range(5, 9):
    scene.frame_set(frame)
    seen = mesh.evaluated_get(bpy.context.evaluated_depsgraph_get())
    heights.append(sum((seen.matrix_world @ vertex.co).z for vertex in seen.data.vertices) / len(seen.data.vertices))
    answer["points"] = len(bpy.data.objects["particles"].evaluated_get(bpy.context.evaluated_depsgraph_get()).data.points)
answer["heights"] = heights
try:
    bpy.ops.mpm_nodes.quick(preset="lava")
except RuntimeError as error:
    answer["unknown"] = str(error)
"""

HELD = """
scene = bpy.context.scene
scene.frame_start = 1
bpy.ops.wm.save_as_mainfile(filepath=given["blend"])
answer["lowest"] = {}
for name in ("pinned", "jelly"):
    bpy.ops.mesh.primitive_uv_sphere_add(radius=0.12, location=(0.0, 0.0, 1.2))
    pin = bpy.context.object
    bpy.ops.mesh.primitive_cube_add(size=0.4, location=(0.0, 0.0, 1.0))
    body = bpy.context.object
    pin.select_set(True)
    bpy.ops.mpm_nodes.quick(preset=name, particles=1500, cook=False)
    tree = next(each for each in bpy.data.node_groups if each.bl_idname == trees.GRAPH_TREE and body.name in each.name)
    tree.k_end = 8
    cook.start(tree, scene)
    answer[name] = [cook.wait(tree, 300), tree.status, problems_of(tree)]
    scene.frame_set(8)
    shown = [each for each in bpy.data.objects if each.name.startswith("mesh")][-1]
    seen = shown.evaluated_get(bpy.context.evaluated_depsgraph_get())
    answer["lowest"][name] = min((seen.matrix_world @ vertex.co).z for vertex in seen.data.vertices)
"""


def test_every_preset_becomes_a_valid_graph_for_an_object_of_any_size(tmp_path: Path):
    """Source, ground, colliders and cell size are filled in; sheets get a thickness; numbers follow the size by their units."""
    seen = in_blender(MAKE, folder=str(tmp_path))
    names = ["snow", "foam", "cream", "cheese", "toothpaste", "honey", "jelly", "wax", "chocolate", "pinned", "mud"]
    names += ["sand", "wet_sand", "dough", "slime"]
    assert list(seen["presets"]) == names and seen["faults"] == []
    volume = 0.4 * 0.4 * 0.2
    for name, graph in seen["graphs"].items():
        status, said = graph.pop("said")
        assert status.startswith("The graph is valid: about ") and said == {}, (name, status, said)
        assert graph["settings"]["cell_size"] == pytest.approx((8.0 * volume / 2000) ** (1 / 3), rel=5e-3)
        entries = graph["nodes"]
        assert entries["body"]["editor"]["blender"]["object"] == "Body" and entries["body"]["knobs"]["thickness"] == 0.0
        assert entries["ground"]["knobs"]["centre"] == [0.0, -0.5, 0.0], "below the lowest object"
        met = {entries[each]["knobs"]["name"]: entries[each]["knobs"]["thickness"] for each in ("collider_1", "collider_2")}
        assert met == {"Tray": pytest.approx(2 * graph["settings"]["cell_size"]), "Stone": 0.0}
        assert len(entries["motion"]["inputs"]["colliders"]) == 3
    ratio = volume ** (1 / 3) / 0.1
    honey = seen["graphs"]["honey"]["nodes"]["matter"]["knobs"]
    assert honey["viscosity"] == pytest.approx(10.0 * ratio**1.5, rel=1e-4) and honey["density"] == 1420.0
    assert honey["bulk_modulus"] == pytest.approx(2.5e4 * ratio, rel=1e-4)
    cream, ratio = seen["graphs"]["cream"]["nodes"]["matter"]["knobs"], ratio * 0.1 / 0.06
    assert cream["consistency"] == pytest.approx(8.0 * ratio ** (1 + cream["flow_index"] / 2), rel=1e-4)
    wet, ratio = seen["graphs"]["wet_sand"]["nodes"]["matter"]["knobs"], volume ** (1 / 3) / 0.2
    assert (wet["friction_angle"], wet["density"]) == (35.0, 1800.0) and wet["cohesion"] == pytest.approx(1e3 * ratio, rel=1e-4)
    wax = volume ** (1 / 3) / 0.036
    solve = seen["graphs"]["wax"]["nodes"]["motion"]["knobs"]["substeps"]
    assert solve["set"] == {"air_convection": pytest.approx(300.0 * wax**1.5, rel=1e-4), "air_temperature": 400.0}
    assert "ground" not in seen["alone"] and "hot" not in seen["alone"] and "collider" not in "".join(seen["alone"])
    cell = seen["sheet"]["settings"]["cell_size"]
    assert seen["sheet"]["nodes"]["body"]["knobs"]["thickness"] == pytest.approx(2 * cell)
    assert cell == pytest.approx((16 * 4.0 / 2000) ** 0.5, rel=0.5), "a sheet of 4 m^2, two cells thick"
    assert "has no surface" in seen["refused"]
    assert seen["flat"].endswith("has no extent at frame 1; check its scale"), "cells of a nanometre, and a stiffness of 0 Pa"


def test_a_click_cooks_the_object_and_its_frames_come_back(tmp_path: Path):
    """The object is hidden, the mesh falls with the look of the preset, in the scene's own frames; an unknown preset is refused."""
    seen = in_blender(COOK, blend=str(tmp_path / "shot.blend"))
    assert seen["done"] == ["FINISHED"] and seen["state"] == "done" and seen["problems"] == {}, seen["status"]
    assert seen["span"] == [5, 64] and seen["rate"] == 30.0, "two seconds at the scene's frame rate"
    assert seen["hidden"] == [True, True]
    assert seen["colour"] == pytest.approx(seen["look"]["Base Color"], abs=1e-6)
    assert 0.6 * 1500 < seen["points"] < 1.5 * 1500
    assert seen["heights"][0] == pytest.approx(0.3, abs=0.01) and seen["heights"][-1] < seen["heights"][0] - 0.03
    assert "There is no preset lava" in seen["unknown"] and "snow" in seen["unknown"]


def test_pinned_jelly_hangs_where_the_other_object_holds_it(tmp_path: Path):
    """For seven frames its bottom sags from 0.8 m by less than a tenth of a free fall, 0.42 m, that jelly falls nearly."""
    seen = in_blender(HELD, blend=str(tmp_path / "shot.blend"))
    assert seen["pinned"][0] == seen["jelly"][0] == "done", seen
    assert seen["lowest"]["pinned"] > 0.8 - 0.042 and seen["lowest"]["jelly"] < 0.8 - 0.2


def test_a_studio_adds_a_preset_by_dropping_a_file(tmp_path: Path):
    """Files of MPM_NODES_QUICK and of the preferences' folder are offered, replace those of the same name, or say what is wrong."""
    folder = tmp_path / "presets"
    folder.mkdir()
    builtin = Path(__file__).parents[2] / "mpm_nodes/hosts/blender_addon/quick/honey.json"
    syrup = json.loads(builtin.read_text())
    syrup["editor"]["quick"] |= {"label": "Syrup", "order": 0}
    (folder / "syrup.json").write_text(json.dumps(syrup))
    (folder / "honey.json").write_text(json.dumps(syrup | {"comment": "ours"}))
    (folder / "broken.json").write_text("{}")
    del syrup["nodes"]["body"]["editor"]
    (folder / "slotless.json").write_text(json.dumps(syrup))
    script = """
import os
os.environ["MPM_NODES_QUICK"] = given["folder"]
presets, faults = quick_presets.found()
answer["env"] = [list(presets), presets["honey"].get("comment"), faults]
os.environ["MPM_NODES_QUICK"] = ""
preferences.quick_folder = given["folder"]
answer["own"] = list(quick_presets.found(quick_operators.own_folder())[0])
"""
    seen = in_blender(script, folder=str(folder))
    names, comment, faults = seen["env"]
    assert set(names[:2]) == {"syrup", "honey"} and comment == "ours" and len(faults) == 2
    assert any("broken.json: is not a quick preset" in text for text in faults)
    assert any("slotless.json: 0 nodes" in text for text in faults)
    assert seen["own"] == names


def test_the_preset_of_the_page_is_one(tmp_path: Path):
    """What docs/blender.md shows as a preset of one's own is offered, filled and valid."""
    page = (Path(__file__).parents[2] / "docs" / "blender.md").read_text(encoding="utf-8")
    (tmp_path / "syrup.json").write_text(page.partition("### A preset of your own")[2].partition("```json")[2].partition("```")[0])
    script = """
bpy.ops.mesh.primitive_cube_add(size=0.4, location=(0.0, 0.0, 0.5))
tree = quick.make(quick_presets.found(given["folder"])[0]["syrup"], bpy.context.object, [], bpy.context.scene, 1000)
tree.folder = given["folder"]
answer["count"] = problems.validate(tree, cook.write_graph(tree, bpy.context.scene))
answer["status"] = tree.status
"""
    seen = in_blender(script, folder=str(tmp_path))
    assert seen["count"] == 0 and "about 10" in seen["status"], seen
