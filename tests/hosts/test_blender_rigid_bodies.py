"""Active rigid bodies of a Blender scene: a solve moves them, by their mass, friction and bounce; passive ones stay colliders."""

from __future__ import annotations

from pathlib import Path

import pytest
from blender_process import in_blender

SCENE = """
scene = bpy.context.scene
scene.frame_start, scene.render.fps = 1, 24
bpy.ops.wm.save_as_mainfile(filepath=given["blend"])
bpy.ops.rigidbody.world_add()
def box(name, place, size, kind=None, **facts):
    bpy.ops.mesh.primitive_cube_add(size=size, location=place)
    thing = bpy.context.object
    thing.name = name
    if kind:
        bpy.ops.rigidbody.object_add(type=kind)
        for key, value in facts.items():
            setattr(thing.rigid_body, key, value)
    return thing
dice = box("Dice", (0.0, 0.0, 0.45), 0.1, "ACTIVE", mass=0.5, friction=0.3, restitution=1.0)
kept = box("Kept", (1.0, 0.0, 0.45), 0.1, "ACTIVE", mass=0.5, kinematic=True)
post = box("Post", (0.3, 0.0, 0.1), 0.1, "PASSIVE")
slab = box("Slab", (0.0, 0.0, 0.1), 0.2)
def quick_of(preset, source, others):
    bpy.context.view_layer.objects.active = source
    before = set(bpy.data.node_groups)
    with bpy.context.temp_override(object=source, active_object=source, selected_objects=[source, *others]):
        bpy.ops.mpm_nodes.quick(preset=preset, particles=300, cook=False)
    (tree,) = [each for each in set(bpy.data.node_groups) - before if each.bl_idname == trees.GRAPH_TREE]
    return tree
tree = quick_of("jelly", slab, [dice, kept, post])
answer["hidden"] = [thing.hide_get() for thing in (slab, dice, kept, post)]
entries = graph_file.save(tree)["nodes"]
answer["graph"] = {name: [entry["type"], entry.get("inputs", {}), entry.get("knobs", {})] for name, entry in entries.items()}
tree.k_end = 5
job = cook.start(tree, scene)
answer["state"], answer["status"] = cook.wait(tree, 300), tree.status
moved = bpy.data.objects["collider_Dice"]
answer["shown"] = [moved.hide_render, moved.hide_viewport]
answer["drawn"] = sorted(thing.name for thing in bpy.data.objects if thing.name.startswith("collider_"))
heights = []
for frame in range(1, 6):
    scene.frame_set(frame)
    seen = moved.evaluated_get(bpy.context.evaluated_depsgraph_get())
    heights.append(sum((seen.matrix_world @ vertex.co).z for vertex in seen.data.vertices) / len(seen.data.vertices))
answer["heights"] = heights
bpy.ops.mpm_nodes.new_graph()
other = bpy.data.node_groups["MPM Graph"]
other.folder = given["folder"]
dice.hide_set(False)
for thing in bpy.context.view_layer.objects:
    thing.select_set(thing in (dice, post))
from bl_ext.user_default.mpm_nodes import quick as _quick
solve = next(node for node in other.nodes if node.record and node.record["id"] == "solve")
scene_input.add_collider(other, dice, solve, _quick.volumes([dice], scene)[dice])
scene_input.add_collider(other, post, solve)
entries = graph_file.save(other)["nodes"]
answer["added"] = {name: [entry["type"], entry.get("inputs", {}), entry.get("knobs", {})] for name, entry in entries.items()}
"""


def test_active_bodies_move_in_a_solve(tmp_path: Path):
    """Quick and Add as Colliders: density, friction and bounce; the cook moves them, shows that and hides the object."""
    seen = in_blender(SCENE, blend=str(tmp_path / "scene.blend"), folder=str(tmp_path / "cook"))
    assert seen["hidden"] == [True, True, False, False]
    by_type = {}
    for name, (kind, inputs, knobs) in seen["graph"].items():
        by_type.setdefault(kind, []).append((name, inputs, knobs))
    ((body, inputs, knobs),) = by_type["rigid_body"]
    assert knobs["name"] == "Dice" and knobs["density"] == pytest.approx(500.0) and knobs["restitution"] == pytest.approx(0.99)
    ((_, held, _),) = by_type["moved_body"]
    assert inputs["collider"] in seen["graph"] and held["collider"] == body
    collider = seen["graph"][inputs["collider"]]
    assert collider[0] == "collide_usd" and collider[2]["friction"] == pytest.approx(0.3)
    wired = by_type["solve"][0][1]["colliders"]
    assert body in wired and inputs["collider"] not in wired and len(wired) == 4  # the ground, and two that stay colliders
    assert seen["state"] == "done", seen["status"]
    assert seen["drawn"] == ["collider_Dice"] and seen["shown"] == [False, False]
    assert seen["heights"][0] == pytest.approx(0.45, abs=1e-3)
    assert seen["heights"][0] - seen["heights"][4] == pytest.approx(0.5 * 9.81 * (4.0 / 24.0) ** 2, rel=0.06)
    kinds = [kind for kind, _, _ in seen["added"].values()]
    assert kinds.count("rigid_body") == kinds.count("moved_body") == 1 and kinds.count("collide_usd") == 2
