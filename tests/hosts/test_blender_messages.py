"""What is told before a cook instead of after minutes, in which colour, with which cure; and what goes on after a change of End."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from blender_process import in_blender

LAYOUT = """
class Layout:
    \"\"\"Keeps each text with whether it is drawn in red.\"\"\"
    def __init__(self, said=None):
        self.said, self.alert, self.enabled = ([] if said is None else said), False, True
    def label(self, text="", **how):
        self.said.append([text, self.alert])
    def prop(self, *a, **k):
        pass
    def operator(self, *a, **k):
        from types import SimpleNamespace
        return SimpleNamespace()
    def progress(self, **how):
        pass
    def inside(self, *a, **k):
        return Layout(self.said)
    row = column = box = grid_flow = split = inside

def drawn(tree):
    layout = Layout()
    interface.draw_cook(layout, tree)
    for node in tree.nodes:
        nodes.draw_problem(node, layout)
    return layout.said
"""

CHECKED = """
tree = trees.new_tree(trees.GRAPH_TREE, "unwired")
tree.folder, tree.k_end = given["folder"], 2
fall, cache = add(tree, "solve", "fall"), add(tree, "write_cache", "cache")
nodes.connect(fall, "particles", cache, "particles")
def check():
    bpy.ops.mpm_nodes.validate(tree="unwired")
    return [tree.failed, problems_of(tree)]
answer["unwired"] = check()
answer["started"] = [cook.start(tree, bpy.context.scene) is None or cook.wait(tree, 300), problems_of(tree)]
answer["files"] = sorted(str(each) for each in places.out_path(tree).glob("r*/frames/*"))
ball = add(tree, "emit_sphere", "ball")
nodes.connect(ball, "", fall, "sources")
answer["no_material"] = check()
nodes.connect(add(tree, "material_snow", "snow"), "", ball, "material")
answer["wired"] = check()
bpy.ops.mesh.primitive_grid_add(size=1.0)
sheet = bpy.context.object
body = add(tree, "emit_mesh", "body")
body.scene_object = sheet
nodes.connect(tree.nodes["snow"], "", body, "material")
nodes.connect(body, "", fall, "sources")
answer["sheet"] = check()
body.k_thickness = 0.1
answer["thick"] = check()
"""

WARNED = """
scene = bpy.context.scene
scene.frame_end = 1
bpy.ops.mpm_nodes.new_graph()
tree = bpy.data.node_groups["MPM Graph"]
tree.folder, tree.k_cell_size, tree.k_start, tree.k_end = given["folder"], 0.1, 1, 2
made = {node.record["id"]: node for node in tree.nodes}
made["material_library"].k_name = "toothpaste"
stone = add(tree, "collide_sphere", "stone", centre=(0.0, 0.0, 1.2), radius=0.4)
nodes.connect(stone, "", made["solve"], "colliders")
bpy.ops.mpm_nodes.validate(tree="MPM Graph")
answer["check"] = [tree.failed, tree.status, made["solve"].notice, problems_of(tree)]
stone.mute = True
bpy.ops.mesh.primitive_cube_add(size=0.5, location=(0.0, 0.0, 1.2))
scene_input.add_collider(tree, bpy.context.object, made["solve"])
bpy.ops.mpm_nodes.validate(tree="MPM Graph")
answer["mesh"] = [tree.failed, made["solve"].notice]
job = cook.start(tree, scene)
said = []
while job.state == "running":
    cook.look()
    said.append(tree.status)
answer["cook"] = [job.state, tree.failed, tree.status, made["solve"].notice]
answer["meanwhile"] = [each for each in said[:-1] if "Warning: " in each][:1]
"""

COLOURS = (
    LAYOUT
    + """
scene = bpy.context.scene
bpy.ops.mpm_nodes.new_graph()
tree = bpy.data.node_groups["MPM Graph"]
tree.folder, tree.k_cell_size, tree.k_start, tree.k_end = given["folder"], 0.12, 0, 2
made = {node.record["id"]: node for node in tree.nodes}
made["solve"].k_start_frame = 1
cook.start(tree, scene)
answer["state"] = cook.wait(tree, 300)
answer["warned"] = [drawn(tree), tree.failed, problems_of(tree), made["solve"].notice]
tree.k_end = 400
job = cook.start(tree, scene)
while not job.frames and job.state == "running":
    cook.look()
cook.cancel(tree)
answer["stopped"] = cook.wait(tree, 300)
answer["cancelled"] = [drawn(tree), tree.failed, problems_of(tree)]
made["write_cache"].mute = True
bpy.ops.mpm_nodes.validate(tree="MPM Graph")
preferences.environment = "/nowhere/at/all"
cook.start(tree, scene)
answer["failed"] = [drawn(tree), tree.failed]
"""
)

MISSING = """
answer["said"] = {}
os.environ["PYTHONPATH"] = ""
for name, lacking in given["pythons"].items():
    preferences.environment = lacking
    try:
        environment.check()
        answer["said"][name] = ""
    except environment.EnvironmentFault as fault:
        answer["said"][name] = str(fault)
answer["cures"] = environment.CURES
"""

LONGER = """
scene = bpy.context.scene
scene.frame_end = 2
bpy.ops.mesh.primitive_cube_add(size=0.5, location=(0.0, 0.0, 0.25))
block = bpy.context.object
block.name = "Block"
bpy.ops.mpm_nodes.new_graph()
tree = bpy.data.node_groups["MPM Graph"]
tree.folder, tree.k_cell_size, tree.k_start, tree.k_end = given["folder"], 0.12, 1, 2
made = {node.record["id"]: node for node in tree.nodes}
scene_input.add_collider(tree, block, made["solve"])
cook.start(tree, scene)
answer["first"] = [cook.wait(tree, 300), problems_of(tree)]
tree.k_end = scene.frame_end = 4  # both: the scene was as short as the graph
job = cook.start(tree, scene, resume=True)
answer["second"] = [cook.wait(tree, 300), tree.status, problems_of(tree), Path(job.revision).name if job else ""]
answer["frames"] = sorted(path.name for path in places.out_path(tree).glob("r*/frames/*.json"))
""".replace("scene = bpy", "from pathlib import Path\nscene = bpy", 1)

MOVING = """
import shutil
from pathlib import Path
scene = bpy.context.scene
scene.frame_end = 2
def key(thing, path, *values):
    for frame, value in values:
        setattr(thing, path, value)
        thing.keyframe_insert(path, frame=frame)
def cube(name, location, size=0.3):
    bpy.ops.mesh.primitive_cube_add(size=size, location=location)
    bpy.context.object.name = name
    return bpy.context.object
block, spout = cube("Block", (0.0, 0.0, 0.15)), cube("Spout", (1.0, 0.0, 1.5))
key(block, "location", *((frame, (0.1 * frame, 0.0, 0.15)) for frame in range(1, 7)))
key(spout, "location", (1, (1.0, 0.0, 1.5)), (6, (2.0, 0.0, 1.5)))
bent = cube("Bent", (-1.0, 0.0, 0.15))
bent.shape_key_add(name="Basis")
raised = bent.shape_key_add(name="Raised")
for point in raised.data:
    point.co.z += 0.2
key(raised, "value", (1, 0.0), (6, 1.0))
bpy.ops.object.empty_add(type="SPHERE", radius=0.2, location=(0.0, 1.0, 0.2))
ball = bpy.context.object
key(ball, "location", (1, (0.0, 1.0, 0.2)), (6, (0.0, 0.5, 0.2)))
bpy.ops.mpm_nodes.new_graph()
tree = bpy.data.node_groups["MPM Graph"]
tree.folder, tree.k_cell_size, tree.k_start, tree.k_end = given["folder"], 0.12, 1, 2
made = {node.record["id"]: node for node in tree.nodes}
for thing in (block, bent, ball):
    scene_input.add_collider(tree, thing, made["solve"])
scene_input.add_source(tree, spout, made["solve"], stream=True)
def cooked(**how):
    job = cook.start(tree, scene, **how)
    return [cook.wait(tree, 300), tree.status + str(problems_of(tree)), Path(job.revision).name if job else ""]
answer["first"] = cooked()
tree.k_end = scene.frame_end = 4  # both: the scene was as short as the graph
answer["longer"] = cooked(resume=True)
answer["frames"] = sorted(path.name for path in places.out_path(tree).glob("r001/frames/*.json"))
for kept in Path(given["folder"]).rglob("solved"):
    shutil.rmtree(kept)  # so that they are solved again
answer["whole"] = cooked()  # the same frames in one go
answer["out"] = str(places.out_path(tree))
key(block, "location", (4, (0.3, 0.0, 0.15)))
tree.k_end = scene.frame_end = 5
answer["changed"] = cooked(resume=True)
scene.frame_set(3)
bpy.ops.mpm_nodes.cook_again(tree="MPM Graph")
answer["again"] = [cook.wait(tree, 300), tree.status + str(problems_of(tree)), Path(tree.revision).name]
"""

UNSAVED = """
scene = bpy.context.scene
bpy.ops.mpm_nodes.new_graph()
tree = bpy.data.node_groups["MPM Graph"]
tree.k_cell_size, tree.k_end = 0.12, 2
cook.start(tree, scene)
answer["state"], answer["out"], answer["temporary"] = cook.wait(tree, 300), str(places.out_path(tree)), bpy.app.tempdir
import shutil
shutil.rmtree(bpy.app.tempdir)  # Blender does that when it is closed
bpy.ops.wm.read_homefile(use_factory_startup=True)
bpy.ops.mpm_nodes.new_graph()
answer["next"] = str(places.out_path(bpy.data.node_groups["MPM Graph"]))
"""


def test_an_unwired_solve_and_an_open_sheet_are_told_by_the_check(tmp_path: Path):
    """The solve without matter, matter without material, a sheet without thickness: each on its node, and nothing was cooked."""
    seen = in_blender(CHECKED, folder=str(tmp_path))
    failed, said = seen["unwired"]
    assert failed and set(said) == {"fall"} and "sources" in said["fall"] and "emitters" in said["fall"], said
    assert seen["started"][0] in (True, "failed") and "fall" in seen["started"][1] and seen["files"] == []
    failed, said = seen["no_material"]
    assert failed and set(said) == {"ball"} and "material" in said["ball"]
    assert seen["wired"] == [False, {}]
    failed, said = seen["sheet"]
    assert failed and "sheet" in said["body"] and "thickness" in said["body"].lower(), said
    assert seen["thick"] == [False, {}]


def test_what_is_valid_and_will_surprise_is_told_by_the_check_and_as_the_cook_begins(tmp_path: Path):
    """Matter inside a collider, a law made for less gravity: on the solve and in the panel, and nothing is red. A cook's last frame
    past the scene's End is told with what shows it."""
    seen = in_blender(WARNED, folder=str(tmp_path))
    failed, status, notice, problems = seen["check"]
    assert not failed and problems == {} and status.startswith("The graph is valid")
    assert "start inside collider 'stone'" in notice and "under gravity of 9.81 m/s^2" in notice, notice
    assert "Warning: " in status and "1 more on the nodes" in status, status
    failed, notice = seen["mesh"]
    assert not failed and "start inside collider 'Cube'" in notice, notice
    state, failed, status, notice = seen["cook"]
    assert state == "done" and not failed and "start inside collider 'Cube'" in notice, notice
    assert "2 frames cooked" in status and "Warning: " in status
    assert "The scene ends at frame 1: set its End to 2" in status, status
    assert seen["meanwhile"], "the warning stood there before the cook was over"


def test_only_what_went_wrong_is_red(tmp_path: Path):
    """A warning of the solve and the end of a cancelled cook are drawn plainly; a cook that cannot begin is drawn in red."""
    seen = in_blender(COLOURS, folder=str(tmp_path))
    said, failed, problems, notice = seen["warned"]
    assert seen["state"] == "done" and not failed and problems == {} and "nothing moves before frame 1" in notice
    shown = " ".join(text for text, _ in said)
    assert "nothing moves before frame 1" in shown and not any(red for _, red in said), said
    said, failed, problems = seen["cancelled"]
    assert seen["stopped"] == "cancelled" and not failed and problems == {}
    assert any("Cancelled" in text for text, _ in said) and not any(red for _, red in said), said
    said, failed = seen["failed"]
    assert failed and any(red for text, red in said if "/nowhere" in text), said


def test_no_message_names_a_package_that_cannot_be_installed(tmp_path: Path):
    """An environment without a package is told with what installs it; mpm-nodes itself comes from its folder."""
    pythons = {}
    for name in ("mpm_nodes", "numba", "pxr"):
        modules = tmp_path / f"without_{name}"
        for there in ("mpm_nodes", "numpy", "numba", "pxr"):
            if there != name:
                (modules / there).mkdir(parents=True)
                (modules / there / "__init__.py").write_text("__version__ = '0.1.0'\n")
        python = tmp_path / f"python_{name}"
        python.write_text(f'#!/bin/sh\nPYTHONPATH={modules} exec {sys.executable} -S "$@"\n')
        python.chmod(0o755)
        pythons[name] = str(python)
    seen = in_blender(MISSING, pythons=pythons)
    for name, python in pythons.items():
        assert f"{python} (Python" in seen["said"][name] and f"has no {name}; " in seen["said"][name], seen["said"]
    assert seen["said"]["mpm_nodes"].endswith(
        f'in the folder of mpm-nodes, {python_of(pythons, "mpm_nodes")} -m pip install ".[all]"'
    )
    assert seen["said"]["pxr"].endswith("-m pip install usd-core")
    assert "pip install mpm" not in json.dumps([seen["said"], seen["cures"]])


def python_of(pythons, name):
    """Return the program without a package."""
    return pythons[name]


def test_end_is_raised_and_resume_goes_on_with_a_still_mesh_in_the_scene(tmp_path: Path):
    """Frames 1 and 2, End at 4, Resume: the mesh's export is the same file, and the same revision gets frames 3 and 4."""
    seen = in_blender(LONGER, folder=str(tmp_path))
    assert seen["first"] == ["done", {}]
    state, status, said, revision = seen["second"]
    assert (state, said, revision) == ("done", {}, "r001"), status
    assert seen["frames"] == [f"000{number}.commit.json" for number in range(1, 5)]


def test_end_is_raised_and_resume_goes_on_with_what_moves_in_the_scene(tmp_path: Path):
    """A mesh that moves, one that bends, a stream and an empty, each sampled over the frames of the scene and those of the graph:
    frames 3 and 4 come with the bytes of one cook. A mesh that has moved otherwise at frame 4 is refused; cooked again from frame
    3, the state of frame 2 that was let go is made again, since nothing was changed up to there.
    """
    seen = in_blender(MOVING, folder=str(tmp_path))
    assert seen["first"][0] == "done", seen["first"]
    assert seen["longer"][::2] == ["done", "r001"], seen["longer"]
    assert seen["frames"] == [f"000{number}.commit.json" for number in range(1, 5)]
    assert seen["whole"][::2] == ["done", "r002"], seen["whole"]
    for frame in range(1, 5):
        one, other = (committed(Path(seen["out"]) / revision, frame) for revision in ("r001", "r002"))
        assert one == other and one, f"frame {frame}"
    assert seen["changed"][0] == "failed" and "was changed since; press Cook or Cook Again" in seen["changed"][1], seen["changed"]
    assert seen["again"][::2] == ["done", "r003"], seen["again"]


def committed(revision: Path, frame: int) -> dict[str, str]:
    """Return digests of the frame's own layer and states by name."""
    files = json.loads((revision / "frames" / f"{frame:04d}.commit.json").read_text())["files"]
    return {name: facts["sha256"] for name, facts in files.items() if f"{frame:04d}" in name}


def test_the_cache_of_an_unsaved_file_outlives_blender(tmp_path: Path):
    """It lies outside of the folder that Blender empties at exit, its frames stay, and a new file has another place."""
    seen = in_blender(UNSAVED, variables={"TMPDIR": str(tmp_path)})
    out = Path(seen["out"])
    assert seen["state"] == "done" and seen["temporary"] and not out.is_relative_to(seen["temporary"])
    assert sorted(path.name for path in out.glob("r001/frames/*.json")) == ["0001.commit.json", "0002.commit.json"]
    assert (out / "r001" / "cache.usda").is_file() and seen["next"] != seen["out"]
