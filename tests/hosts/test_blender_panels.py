"""What panels of Blender say and do: needs before a cook, live substeps, caches, outlines in the viewport; every panel draws."""

from __future__ import annotations

from pathlib import Path

import pytest
from blender_process import in_blender

CACHES = """
scene = bpy.context.scene
bpy.ops.mpm_nodes.new_graph()
tree = bpy.data.node_groups["MPM Graph"]
tree.name, tree.folder, tree.k_cell_size, tree.k_end = "melt", given["folder"], 0.12, 3
made = {node.record["id"]: node for node in tree.nodes}
bpy.ops.mpm_nodes.validate(tree="melt")
answer["needs"] = tree.status
said = []
def cooked():
    cook.start(tree, scene)
    while cook.job_of(tree) is not None:
        cook.look()
        said.append(tree.status)
cooked()
answer["live"] = [text for text in said if "substep" in text]
bpy.ops.mpm_nodes.validate(tree="melt")
answer["again"] = tree.status
made["solve"].k_gravity = (0.0, 0.0, -1.0)
cooked()
folder = places.out_path(tree)
answer["found"] = [path.name for path in revisions.found(folder)]
answer["sizes"] = [revisions.size(path) for path in revisions.found(folder)]
bpy.ops.mpm_nodes.compare_revisions(tree="melt", revision="r001")
answer["compared"] = tree.status
bpy.ops.mpm_nodes.verify_revision(tree="melt", revision="r001")
answer["whole"] = [tree.status, tree.failed]
bpy.ops.mpm_nodes.show_revision(tree="melt", revision="r001")
answer["shown"] = bpy.data.objects["particles"].modifiers[0].cache_file.filepath
damaged = next((folder / "r002").rglob("*.usdc"))
damaged.write_bytes(b"#" + damaged.read_bytes()[1:])
bpy.ops.mpm_nodes.verify_revision(tree="melt", revision="r002")
answer["damaged"] = [tree.status, tree.failed]
for number in range(3):
    (folder / "r001" / f".tmp-{number}").write_bytes(b"0" * 1000)
bpy.ops.mpm_nodes.free_caches(tree="melt")
answer["freed"], answer["left"] = tree.status, revisions.size(folder / "r001")
(folder / "r77").mkdir()
answer["refused"] = []
for name in ("r77", "r5", ".."):
    try:
        bpy.ops.mpm_nodes.delete_revision(tree="melt", revision=name)
        answer["refused"].append("")
    except RuntimeError as error:
        answer["refused"].append(str(error))
bpy.ops.mpm_nodes.delete_revision(tree="melt", revision="r001")
answer["after"] = [path.name for path in revisions.found(folder)]
answer["scene"] = sorted(thing.type for thing in bpy.data.objects)
history.restore()
answer["gone"] = sorted(thing.type for thing in bpy.data.objects)
"""

GUIDES = """
import gpu
scene = bpy.context.scene
scene.unit_settings.scale_length = 0.1
tree = trees.new_tree(trees.GRAPH_TREE, "places")
box = add(tree, "emit_box", "box", size=(10.0, 30.0, 20.0), centre=(40.0, -60.0, 50.0), rotation=(0.0, 0.0, 90.0))
ball = add(tree, "collide_sphere", "ball", radius=5.0, centre=(0.0, 0.0, 10.0))
ground = add(tree, "collide_plane", "ground")
rod = add(tree, "collide_capsule", "rod")
muted = add(tree, "emit_sphere", "muted")
muted.mute = True
taken = add(tree, "emit_sphere", "taken")
taken.scene_object = bpy.data.objects.new("Empty", None)
fall = add(tree, "solve", "fall", wall_low=(-10.0, -20.0, 0.0), wall_high=(10.0, 20.0, 30.0))
answer["open"] = [role for role, _ in guides.outlines(tree, scene)]
fall.k_wall_y_low = fall.k_wall_x_high = "slip"
bounds = []
for role, lines in guides.outlines(tree, scene):
    points = [point for line in lines for point in line]
    bounds.append([role, len(lines), [min(p[a] for p in points) for a in range(3)], [max(p[a] for p in points) for a in range(3)]])
answer["bounds"] = bounds
"""

DRAWN = """
class Layout:
    \"\"\"Takes what panels draw, and looks up what they name, as Blender would.\"\"\"
    alert = enabled = True
    def __init__(self):
        self.said = []
    def prop(self, owner, name, **how):
        getattr(owner, name)
        self.said.append(name)
    def operator(self, name, **how):
        module, own = name.split(".")
        properties = getattr(getattr(bpy.ops, module), own).get_rna_type().properties
        assert how.get("text") != "", f"{name} has an icon and no word"
        self.said.append(name)
        class Chosen:
            def __setattr__(self, key, value):
                assert key in properties, (name, key)
        return Chosen()
    def label(self, text="", **how):
        self.said.append(text)
    def progress(self, **how):
        self.said.append("progress")
    def menu(self, name):
        assert hasattr(bpy.types, name)
    def inside(self, *a, **k):
        layout = Layout()
        layout.said = self.said
        return layout
    row = column = box = grid_flow = split = inside
from types import SimpleNamespace
bpy.ops.mpm_nodes.new_graph()
tree = bpy.data.node_groups["MPM Graph"]
tree.folder = given["folder"]
tree.rest = json.dumps({"editor": {"quick": {"label": "Ours"}}})
for number in (1, 2):
    frames = os.path.join(given["folder"], "MPM_Graph_cache", f"r00{number}", "frames")
    os.makedirs(frames)
for frame in (1, 2, 3):
    open(os.path.join(frames, f"000{frame}.commit.json"), "w").close()
os.utime(frames, (1e9, 1e9 + 3e4))  # noon in most places
space = SimpleNamespace(type="NODE_EDITOR", node_tree=tree, edit_tree=tree, tree_type=tree.bl_idname, path=[1])
context = SimpleNamespace(space_data=space, window_manager=bpy.context.window_manager, scene=bpy.context.scene)
from bl_ext.user_default.mpm_nodes import cache_panel
drawn = {}
for panel in [each for each in (*interface.CLASSES, *cache_panel.CLASSES) if issubclass(each, bpy.types.Panel)]:
    if hasattr(panel, "poll") and not panel.poll(context):
        continue
    layout = Layout()
    panel.draw(SimpleNamespace(layout=layout), context)
    drawn[panel.bl_label] = layout.said
class Menu(Layout):
    operator_context = "EXEC_REGION_WIN"  # as where the menu is called by its key
    def operator(self, name, text="", **how):
        self.said.append(text)
        return SimpleNamespace()
    def separator(self, **how):
        pass
    menu_contents = separator
menu = Menu()
for draw in bpy.types.NODE_MT_add._dyn_ui_initialize():
    draw(SimpleNamespace(layout=menu), context)
answer["menu"] = menu.said
answer["drawn"], answer["budget"] = drawn, bpy.context.window_manager.mpm_nodes_particles
"""


def test_needs_substeps_and_caches(tmp_path: Path):
    """Particles, memory and disk stand there before a cook, what holds substeps during it; cooks are compared and deleted."""
    seen = in_blender(CACHES, folder=str(tmp_path))
    assert "particles" in seen["needs"] and "of memory" in seen["needs"] and "on disk" in seen["needs"], seen["needs"]
    assert "pace" not in seen["needs"] and "at the last cook's pace for 3 frames" in seen["again"]
    assert any("steps of" in text and "held by" in text for text in seen["live"]), seen["live"][:3]
    assert seen["found"] == ["r001", "r002"] and min(seen["sizes"]) > 10_000
    assert seen["compared"].startswith("r002 -> r001") and "gravity: [0.0, -1.0, 0.0] -> [0.0, -9.81, 0.0]" in seen["compared"]
    assert seen["whole"] == ["r001: every file is as it was written", False]
    assert "r001" in seen["shown"]
    assert seen["damaged"][1] and "1 faults" in seen["damaged"][0]
    assert "freed" in seen["freed"] and seen["left"] <= seen["sizes"][0]
    assert all("not a cook of this graph" in text or "There is no cook" in text for text in seen["refused"])
    assert seen["after"] == ["r002", "r77"] and seen["scene"] == seen["gone"] == []


def test_outlines_stand_where_matter_and_bodies_will_be(tmp_path: Path):
    """Y up in the graph becomes Z up, metres become units; muted nodes, objects of the scene and open walls are not drawn."""
    seen = in_blender(GUIDES)
    assert seen["open"] == ["source", "collider", "collider", "collider"]
    role, count, low, high = seen["bounds"][0]
    assert (role, count) == ("source", 12), "a box has twelve edges"
    assert low == pytest.approx([25.0, -65.0, 40.0], abs=1e-4) and high == pytest.approx([55.0, -55.0, 60.0], abs=1e-4)
    _, _, low, high = seen["bounds"][1]
    assert low == pytest.approx([-5.0, -5.0, 5.0], abs=1e-4) and high == pytest.approx([5.0, 5.0, 15.0], abs=1e-4)
    role, _, low, high = seen["bounds"][-1]
    assert role == "wall" and low == pytest.approx([-10.0, -20.0, 0.0]) and high == pytest.approx([10.0, 20.0, 30.0])


def test_every_panel_draws(tmp_path: Path):
    """Panels name properties and operators that there are, and give operators what they take."""
    found = in_blender(DRAWN, folder=str(tmp_path))
    seen = found["drawn"]
    assert found["budget"] == 30000 and "mpm_nodes_particles" in seen["Quick"], "a first look takes this many particles"
    assert {"Quick", "Cook", "Graph", "Selected Objects", "Caches"} <= set(seen)
    assert seen["Quick"].count("mpm_nodes.quick") == 15 and "mpm_nodes.delete_revision" in seen["Caches"]
    assert "r002: frames 1 to 3" in seen["Caches"] and any(text.startswith("2001-09-09 ") for text in seen["Caches"]), seen[
        "Caches"
    ]
    assert max(map(len, seen["Caches"])) < 35, "a sidebar cuts what is longer"
    assert found["menu"].count("Search...") == 1, found["menu"]
