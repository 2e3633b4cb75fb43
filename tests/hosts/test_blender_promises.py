"""What an artist counts on: told before minutes are lost, red for what is wrong, Resume that goes on, caches that stay."""

from __future__ import annotations

import venv
from pathlib import Path

from blender_process import in_blender

SHOT = """
scene = bpy.context.scene
tree = trees.new_tree(trees.GRAPH_TREE, "shot")
tree.folder, tree.k_cell_size, tree.k_end, tree.load_frames = given["folder"], 0.1, 2, False
jelly = add(tree, "material_neo_hookean", "jelly")
cube = add(tree, "emit_box", "cube", size=(0.4, 0.4, 0.4), centre=(0.0, 0.8, 0.0))
fall, cache = add(tree, "solve", "fall"), add(tree, "write_cache", "cache")
nodes.connect(jelly, "", cube, "material")
"""

UNWIRED = (
    SHOT
    + """
nodes.connect(fall, "particles", cache, "particles")
bpy.ops.mpm_nodes.validate(tree="shot")
answer["sources"] = [tree.failed, problems_of(tree)]
nodes.connect(cube, "", fall, "sources")
bpy.ops.mpm_nodes.validate(tree="shot")
answer["wired"] = [tree.failed, problems_of(tree)]
tree.links.remove(next(link for link in tree.links if link.to_node == cache))
bpy.ops.mpm_nodes.validate(tree="shot")
answer["cache"] = [tree.failed, problems_of(tree), tree.status]
"""
)

WARNED = (
    SHOT
    + """
nodes.connect(cube, "", fall, "sources")
nodes.connect(fall, "particles", cache, "particles")
jelly.k_youngs_modulus = 10.0
cook.start(tree, scene)
answer["state"] = cook.wait(tree, 300)
answer["red"], answer["failed"] = problems_of(tree), tree.failed
answer["news"] = {node.name: node.notice for node in tree.nodes if getattr(node, "notice", "")}
"""
)

RAISED = (
    SHOT
    + """
nodes.connect(cube, "", fall, "sources")
nodes.connect(fall, "particles", cache, "particles")
bpy.ops.mesh.primitive_uv_sphere_add(radius=0.3, location=(0.0, 0.0, 0.2))
bowl = add(tree, "collide_usd", "bowl")
bowl.scene_object = bpy.context.object
nodes.connect(bowl, "", fall, "colliders")
cook.start(tree, scene)
answer["first"] = [cook.wait(tree, 300), problems_of(tree)]
tree.k_end = 4
bpy.ops.mpm_nodes.cook(tree="shot", resume=True)
answer["resumed"] = [cook.wait(tree, 300), tree.status, problems_of(tree), tree.revision]
"""
)

UNSAVED = """
bpy.ops.mpm_nodes.new_graph()
tree = bpy.data.node_groups["MPM Graph"]
tree.k_cell_size, tree.k_end = 0.12, 2
cook.start(tree, bpy.context.scene)
answer["state"], answer["revision"] = cook.wait(tree, 300), tree.revision
answer["temporary"] = tree.revision.startswith(bpy.app.tempdir)
bpy.ops.wm.save_as_mainfile(filepath=given["file"])
shown = bpy.data.objects["particles"].modifiers[0].cache_file.filepath
answer["kept"] = [tree.revision, bpy.path.abspath(shown)]
"""


def test_what_is_not_wired_is_told_by_the_check(tmp_path: Path):
    """A solve without matter, and a cache that nothing is wired to, are refused by Check Graph on the node, before any cook."""
    seen = in_blender(UNWIRED, folder=str(tmp_path))
    failed, said = seen["sources"]
    assert failed and "fall" in said and "wire" in said["fall"]
    assert seen["wired"] == [False, {}]
    failed, said, status = seen["cache"]
    assert failed and "wire" in (said.get("cache", "") + status)


def test_a_warning_is_news_and_not_red(tmp_path: Path):
    """Jelly that gravity flattens is warned of on its node, which is not red, and the cook counts as done."""
    seen = in_blender(WARNED, folder=str(tmp_path))
    assert seen["state"] == "done" and not seen["failed"] and seen["red"] == {}
    assert any("rho g H" in text or "gravity" in text for text in seen["news"].values()), seen["news"]


def test_resume_goes_on_after_the_end_was_raised_with_a_still_mesh(tmp_path: Path):
    """Two frames, then four: the mesh of the scene is written again for the longer range, and the cook goes on where it was."""
    seen = in_blender(RAISED, folder=str(tmp_path))
    assert seen["first"] == ["done", {}]
    state, status, said, revision = seen["resumed"]
    assert state == "done" and said == {}, (status, said)
    assert Path(revision).name == "r001" and len(list((Path(revision) / "frames").glob("*.commit.json"))) == 4


def test_the_caches_of_an_unsaved_file_outlive_blender(tmp_path: Path):
    """What a file without a name cooks is there after Blender has ended, and a file that is saved later still shows it."""
    seen = in_blender(UNSAVED, folder=str(tmp_path), file=str(tmp_path / "late.blend"))
    revision = Path(seen["revision"])
    assert seen["state"] == "done" and not seen["temporary"]
    assert len(list((revision / "frames").glob("*.commit.json"))) == 2
    shown, file = seen["kept"]
    assert Path(shown) == revision and Path(file).is_file()


def test_what_the_environment_lacks_is_named_with_a_command_that_works(tmp_path: Path):
    """A Python without mpm_nodes: told how to install it from its folder, since no index has a package of that name."""
    folder = tmp_path / "bare"
    venv.create(folder, with_pip=False, symlinks=True)
    seen = in_blender(
        """
preferences.environment = given["folder"]
os.environ.pop("PYTHONPATH")  # the way to this copy of the package
try:
    environment.check()
except environment.EnvironmentFault as error:
    answer["text"] = str(error)
""",
        folder=str(folder),
    )
    assert "has no mpm_nodes" in seen["text"] and "in the folder of mpm-nodes, " in seen["text"]
    assert '-m pip install ".[all]"' in seen["text"]
