"""Quick's dialog: an object is filled, poured, dropped or thrown, in a graph of its own or in one that is there."""

from __future__ import annotations

from pathlib import Path

import pytest
from blender_process import in_blender

WAYS = """
scene = bpy.context.scene
scene.unit_settings.scale_length = 0.5
preset = quick_presets.found()[0]["sand"]
bpy.ops.mesh.primitive_cube_add(size=0.4, location=(0.0, 0.0, 2.0))
body = bpy.context.object
answer["ways"] = {}
for way, more in (("FILL", {}), ("POUR", {}), ("DROP", {"height": 1.0}), ("THROW", {"velocity": (2.0, 4.0, 6.0)}), ("THROW", {})):
    body.hide_set(False)
    bpy.context.view_layer.objects.active = body
    known = set(problems.graph_trees(bpy.data))
    bpy.ops.mpm_nodes.quick_dialog(preset="sand", way=way, particles=2000, cook=False, **more)
    (tree,) = set(problems.graph_trees(bpy.data)) - known
    tree.folder = given["folder"]
    path = cook.write_graph(tree, scene)
    count = problems.validate(tree, path)
    kept = graph_file.read(path)
    answer["ways"][f"{way} {bool(more)}"] = [count, tree.status, kept["nodes"], kept["settings"]]
"""

DIALOG = """
from types import SimpleNamespace
class Layout:
    def __init__(self):
        self.said = []
    def prop(self, owner, name, **how):
        getattr(owner, name)
        self.said.append(name)
    def row(self):
        return self
fields = [*quick_operators.QuickChoices.__annotations__, "preset", "graph"]
answer["drawn"] = {}
for way, graph, high in (("FILL", "NEW", True), ("DROP", "7", True), ("THROW", "NEW", False)):
    chosen = SimpleNamespace(**dict.fromkeys(fields), layout=Layout())
    chosen.way, chosen.graph, chosen.cook = way, graph, high
    quick_operators.MPM_OT_quick_dialog.draw(chosen, bpy.context)
    answer["drawn"][way] = chosen.layout.said
"""

TOGETHER = """
scene = bpy.context.scene
bpy.ops.wm.save_as_mainfile(filepath=given["blend"])
bpy.ops.mesh.primitive_cube_add(size=0.2, location=(0.0, 0.0, 0.1))
below = bpy.context.object
bpy.ops.mpm_nodes.quick(preset="jelly", particles=1500, cook=False)
(tree,) = problems.graph_trees(bpy.data)
tree.k_end = 8
bpy.ops.mesh.primitive_cube_add(size=0.12, location=(0.0, 0.0, 0.28))
above = bpy.context.object
bpy.ops.mesh.primitive_cube_add(size=0.05, location=(0.4, 0.0, 0.1))
stone = bpy.context.object
above.select_set(True)
bpy.context.view_layer.objects.active = above
cell = tree.k_cell_size
bpy.ops.mpm_nodes.quick_dialog(preset="honey", graph=str(history.key_of(tree)), cook=False)
answer["trees"], answer["cell"] = len(problems.graph_trees(bpy.data)), tree.k_cell_size == cell
saved = graph_file.save(tree)["nodes"]
answer["solve"] = [saved["motion"]["inputs"], sorted(each["type"] for each in saved.values())]
answer["refused"] = []
bpy.ops.mesh.primitive_cube_add(size=0.05, location=(0.8, 0.0, 0.1))
candle = bpy.context.object
for preset, thing in (("honey", above), ("wax", candle)):
    thing.hide_set(False)
    thing.select_set(True)
    bpy.context.view_layer.objects.active = thing
    try:
        bpy.ops.mpm_nodes.quick(preset=preset, graph=tree.name, cook=False)
    except RuntimeError as error:
        answer["refused"].append(str(error))
    thing.select_set(False)
cook.start(tree, scene)
answer["state"] = [cook.wait(tree, 300), tree.status, problems_of(tree)]
scene.frame_set(8)
things = {each.name: each for each in bpy.data.objects if each.name.startswith("mesh_")}
answer["looks"] = {name: each.material_slots[0].material.name for name, each in things.items()}
seen = {name: each.evaluated_get(bpy.context.evaluated_depsgraph_get()) for name, each in things.items()}
answer["lowest"] = {name: min((each.matrix_world @ v.co).z for v in each.data.vertices) for name, each in seen.items()}
"""


def test_an_object_is_filled_poured_dropped_or_thrown(tmp_path: Path):
    """Lengths and speeds are the scene's and come out in metres, Y up; cells follow what pours; zeros suit the size."""
    seen = in_blender(WAYS, folder=str(tmp_path))["ways"]
    assert all(count == 0 for count, *_ in seen.values()), {name: each[1] for name, each in seen.items()}
    nodes = {name: each[2] for name, each in seen.items()}
    assert nodes["FILL False"]["body"]["knobs"]["translation"] == [0.0, 0.0, 0.0]
    assert nodes["DROP True"]["body"]["knobs"]["translation"] == [0.0, pytest.approx(0.5), 0.0]
    assert nodes["THROW True"]["body"]["knobs"]["velocity"] == pytest.approx([1.0, 3.0, -2.0])
    fall = (9.81 * 0.2) ** 0.5
    assert nodes["THROW False"]["body"]["knobs"]["velocity"] == pytest.approx([2.0 * fall, fall, 0.0], rel=1e-3)
    stream = nodes["POUR False"]["body_stream"]
    assert stream["type"] == "emit_stream" and stream["inputs"] == {"template": "body"} and stream["knobs"]["jitter"] == 1.0
    assert stream["knobs"]["velocity"] == pytest.approx([0.0, -fall, 0.0], rel=1e-3)
    solve = nodes["POUR False"]["motion"]["inputs"]
    assert solve["emitters"] == ["body_stream"] and "sources" not in solve
    settings = seen["POUR False"][3]
    seconds = (settings["end"] - settings["start"] + 1) / settings["fps"]
    assert settings["cell_size"] == pytest.approx((8 * 0.04 * fall * seconds / 2000) ** (1 / 3), rel=1e-2)


def test_the_dialog_asks_for_what_counts():
    """A height for a drop, a velocity for a throw, particles for a new graph, the resolution where it cooks."""
    seen = in_blender(DIALOG)["drawn"]
    assert seen["FILL"] == ["preset", "way", "graph", "particles", "cook", "high"]
    assert seen["DROP"] == ["preset", "way", "height", "graph", "cook", "high"]
    assert seen["THROW"] == ["preset", "way", "velocity", "graph", "particles", "cook"]


def test_matter_of_two_quick_calls_meets_in_one_graph(tmp_path: Path):
    """Honey lies on jelly and has its own look; ground and cells are those of the graph; what cannot be added is refused."""
    seen = in_blender(TOGETHER, blend=str(tmp_path / "shot.blend"))
    assert seen["trees"] == 1 and seen["cell"]
    wires, types = seen["solve"]
    assert len(wires["sources"]) == 2 and types.count("collide_plane") == types.count("solve") == types.count("write_cache") == 1
    assert "is in Jelly Cube already" in seen["refused"][0] and "Melting Wax needs other substeps" in seen["refused"][1]
    assert seen["state"][0] == "done" and seen["state"][2] == {}, seen["state"]
    assert len(set(seen["looks"].values())) == 2 and seen["looks"]["mesh_honey"].endswith("honey"), seen["looks"]
    assert seen["lowest"]["mesh_jelly"] < 0.02 and seen["lowest"]["mesh_honey"] > 0.1, "0.07 s of free fall are 0.4 m more"
