"""What the scene says goes into a quick graph: gravity, the speed of a keyed object; and what cannot is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from blender_process import in_blender

SCENE = """
scene = bpy.context.scene
scene.frame_start, scene.render.fps = 1, 24
def made(preset="snow", source=None, others=()):
    for each in bpy.context.view_layer.objects:
        each.select_set(each == source or each in others)
    bpy.context.view_layer.objects.active = source
    source.hide_set(False)
    before = set(bpy.data.node_groups)
    with bpy.context.temp_override(object=source, active_object=source, selected_objects=[source, *others]):
        bpy.ops.mpm_nodes.quick(preset=preset, particles=300, cook=False)
    (tree,) = [each for each in set(bpy.data.node_groups) - before if each.bl_idname == trees.GRAPH_TREE]
    return tree
def knobs_of(tree):
    entries = graph_file.save(tree)["nodes"]
    return entries["motion"]["knobs"]["gravity"], entries["body"]["knobs"]
bpy.ops.mesh.primitive_cube_add(size=0.1, location=(0.0, 0.0, 1.0))
ball = bpy.context.object
bpy.ops.object.effector_add(type="CHARGE")
bpy.context.object.name = "Spark"
scene.frame_set(1)
answer["rest"] = knobs_of(made(source=ball))
for frame, x, turn in ((1, 0.0, 0.0), (3, 1.0, 0.5)):
    ball.location.x, ball.rotation_euler.z = x, turn
    ball.keyframe_insert("location", frame=frame)
    ball.keyframe_insert("rotation_euler", frame=frame)
for path in ("location", "rotation_euler"):
    for curve in animation.curves_of(ball, path):
        for point in curve.keyframe_points:
            point.interpolation = "LINEAR"
scene.frame_set(3)
answer["thrown"] = knobs_of(made(source=ball))
scene.gravity = (1.0, 2.0, -1.62)
answer["moon"] = knobs_of(made(source=ball))[0]
scene.unit_settings.scale_length = 0.01
answer["small units"] = knobs_of(made(source=ball))[0]
scene.gravity = (0.0, 0.0, -9.81)
answer["default"] = knobs_of(made(source=ball))[0]
scene.unit_settings.scale_length = 1.0
scene.use_gravity = False
tree = made(source=ball)
answer["off"] = knobs_of(tree)[0]
bpy.ops.mpm_nodes.new_graph()
answer["new"] = list(bpy.data.node_groups["MPM Graph"].nodes["MPM Solve"].k_gravity)
answer["said"] = quick.unheard(tree, scene)
scene.use_gravity = True
for frame, pull in ((1, -9.81), (3, 0.0), (5, -1.81)):
    scene.gravity = (0.0, 0.0, pull)
    scene.keyframe_insert("gravity", index=2, frame=frame)
for curve in animation.curves_of(scene, "gravity"):
    for point in curve.keyframe_points:
        point.interpolation = "LINEAR"
keyed = made(source=ball)
answer["keyed"] = knobs_of(keyed)[0]
scene.frame_set(3)
answer["follows"] = list(keyed.nodes["motion"].k_gravity)
scene.animation_data_clear()
scene.driver_add("gravity", 2).driver.expression = "-frame"
answer["driven"] = quick.unheard(keyed, scene)[0]
scene.driver_remove("gravity", 2)
scene.gravity = (0.0, 0.0, -9.81)
paste = made("toothpaste", ball)
answer["comment"], answer["matter"] = paste.nodes["matter"].comment, graph_file.save(paste)["nodes"]["matter"]["knobs"]
"""


def test_what_the_scene_says_is_heard_or_told(tmp_path: Path):
    """Gravity in metres and Y up, also none or keyed; a thrown body keeps speed and spin; what cannot be heard is told."""
    seen = in_blender(SCENE, folder=str(tmp_path))
    gravity, body = seen["rest"]
    assert gravity == [0.0, -9.81, 0.0] and body["velocity"] == [0.0, 0.0, 0.0]
    gravity, body = seen["thrown"]
    assert body["velocity"] == pytest.approx([12.0, 0.0, 0.0], abs=1e-2), "half a metre a frame"
    assert body["angular_velocity"] == pytest.approx([0.0, 6.0, 0.0], abs=1e-2), "a quarter of a radian a frame, about the vertical"
    assert seen["moon"] == pytest.approx([1.0, -1.62, -2.0]) and seen["small units"] == pytest.approx([0.01, -0.0162, -0.02])
    assert seen["default"] == [0.0, -9.81, 0.0] and seen["off"] == seen["new"] == [0.0, 0.0, 0.0]
    pulls = [-9.81, -4.905, 0.0, -0.905, -1.81]
    assert seen["keyed"] == {"keys": [[frame, [0.0, pull, 0.0], "linear"] for frame, pull in enumerate(pulls, 1)]}
    assert seen["follows"] == [0.0, 0.0, 0.0] and any("drivers or NLA strips" in each for each in seen["driven"])
    left_out, scaled = seen["said"]
    assert (
        "Spark: a solve does not feel force fields of this kind" in left_out[0]
        and "does not meet that of" in left_out[1]
        and scaled
    )
    assert f"Holds Shape Up To {seen['matter']['yield_stress']:g} Pa (from 90)" in seen["comment"], seen["comment"]
