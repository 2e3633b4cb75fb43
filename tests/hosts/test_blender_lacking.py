"""Blender without USD or OpenVDB, and defects while frames are shown: all is said, no timer ends, Quick gives its source back."""

from __future__ import annotations

from pathlib import Path

from blender_process import in_blender

LACKING = """
import types
scene = bpy.context.scene
tree = trees.new_tree(trees.GRAPH_TREE, "lacking")
tree.folder, tree.k_cell_size, tree.k_end = given["folder"], 0.2, 2
ball, fall, cache = add(tree, "emit_sphere", "ball"), add(tree, "solve", "fall"), add(tree, "write_cache", "cache")
nodes.connect(add(tree, "material_library"), "", ball, "material")
nodes.connect(ball, "", fall, "sources")
nodes.connect(fall, "particles", cache, "particles")

def checked():
    try:
        bpy.ops.mpm_nodes.check_environment()
    except RuntimeError:
        pass
    return [preferences.is_bad, preferences.answer]

def cooked():
    job = cook.start(tree, scene)
    state = cook.wait(tree, 300)
    return [state, tree.failed, tree.status, len(cook.JOBS), cook.look()]

whole = environment.build_options
answer["whole"] = checked()
environment.build_options = lambda: types.SimpleNamespace(usd=True, openvdb=False)
answer["no_volumes"] = checked()
environment.build_options = lambda: types.SimpleNamespace(usd=False, openvdb=False)
answer["no_usd"] = checked()
answer["cook_no_usd"] = cooked()
environment.build_options = whole

def broken(*a, **k):
    raise KeyError("broken on purpose")
kept = cache_import._imported
cache_import._imported = broken
answer["cook_broken"] = cooked()
cache_import._imported = kept
for name in ("_finish", "_show_progress", "_redraw"):
    whole = getattr(cook, name)
    setattr(cook, name, broken)
    job = cook.start(tree, scene)
    end = time.monotonic() + 120
    looks = 0
    while cook.JOBS and time.monotonic() < end:
        looks += cook.look() in (cook.INTERVAL, None)
        time.sleep(0.05)
    answer[name] = [job.state, len(cook.JOBS), looks > 0, tree.status if name != "_redraw" else ""]
    setattr(cook, name, whole)
history._SHOWN[history.key_of(tree)] = (tree.revision, history.key_of(scene))
cache_import.take_away(tree)
kept, cache_import.show = cache_import.show, broken
answer["restore"] = [history.restore(), tree.status]
cache_import.show = kept

bpy.ops.mesh.primitive_cube_add(size=0.3, location=(0.0, 0.0, 1.0))
body = bpy.context.object
def quick(shown=False):
    try:
        bpy.ops.mpm_nodes.quick(preset="jelly", particles=200)
    except RuntimeError as error:
        return str(error)
    made = next(each for each in problems.graph_trees(bpy.data) if cook.job_of(each))
    made.load_frames, made.k_end = shown, 2
    return cook.wait(made, 300)
kept = os.environ["MPM_NODES_PYTHON"]
os.environ["MPM_NODES_PYTHON"] = "/nowhere"
answer["quick_refused"] = [quick(), body.hide_get(), body.hide_render]
os.environ["MPM_NODES_PYTHON"] = kept
written = graph_file.write
graph_file.write = broken
answer["quick_broken"] = [quick(), body.hide_get(), body.hide_render]
graph_file.write = written
start = environment.command
environment.command = lambda words, **values: [*start(words, **values), *(["--gone"] if words == "cook" else [])]
answer["quick_failed"] = [quick(), body.hide_get(), body.hide_render]
environment.command = start
environment.build_options = lambda: types.SimpleNamespace(usd=False, openvdb=False)
answer["quick_unseen"] = [quick(shown=True), body.hide_get(), body.hide_render]
"""


def test_what_is_missing_or_breaks_is_said_and_nothing_hangs(tmp_path: Path):
    """The check names the part, a cook ends with its frames kept, whichever function fails, and a failed Quick shows its source."""
    seen = in_blender("import time\n" + LACKING, folder=str(tmp_path))
    assert seen["whole"][0] is False and "built without" not in seen["whole"][1]
    assert seen["no_volumes"][0] is False and "built without OpenVDB" in seen["no_volumes"][1]
    assert seen["no_usd"][0] and "built without USD" in seen["no_usd"][1] and "blender.org" in seen["no_usd"][1]
    state, failed, status, jobs, again = seen["cook_no_usd"]
    assert (state, failed, jobs, again) == ("done", True, 0, None)
    assert "built without USD" in status and "2 frames cooked" in status
    state, failed, status, jobs, _ = seen["cook_broken"]
    assert (state, failed, jobs) == ("done", True, 0) and "broken on purpose" in status and "2 frames cooked" in status
    for name, state in (("_finish", "failed"), ("_show_progress", "done"), ("_redraw", "done")):
        assert seen[name][:3] == [state, 0, True], (name, seen[name])
    assert "broken on purpose" in seen["_finish"][3] and seen["restore"][0] is None and "broken on purpose" in seen["restore"][1]
    assert "/nowhere" in seen["quick_refused"][0] and "broken on purpose" in seen["quick_broken"][0]
    assert (seen["quick_failed"][0], seen["quick_unseen"][0]) == ("failed", "done")
    for name in ("quick_refused", "quick_broken", "quick_failed", "quick_unseen"):
        assert seen[name][1:] == [False, False], (name, seen[name])
