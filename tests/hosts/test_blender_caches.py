"""What an artist does with cooks: notes, published versions that no cook changes, and a queue."""

from __future__ import annotations

import json
import runpy
import threading
from pathlib import Path

from blender_process import in_blender

import mpm_nodes

ADDON = Path(mpm_nodes.__file__).parent / "hosts" / "blender_addon"

KEPT = """
scene = bpy.context.scene
bpy.ops.mpm_nodes.new_graph()
tree = bpy.data.node_groups["MPM Graph"]
tree.name, tree.folder, tree.k_cell_size, tree.k_end = "melt", given["folder"], 0.15, 2
cook.start(tree, scene)
answer["states"] = [cook.wait(tree, 300)]
folder = places.out_path(tree) / "r001"
bpy.ops.mpm_nodes.note_revision(tree="melt", revision="r001", note="the best so far: säße")
for _ in range(2):
    bpy.ops.mpm_nodes.publish_revision(tree="melt", revision="r001")
answer["said"], answer["notes"] = tree.status, revisions.notes(folder)
version = places.published_path(tree)[0] / "melt_v001"
def content():
    return {str(path.relative_to(version)): hash(path.read_bytes()) for path in version.rglob("*") if path.is_file()}
before = content()
answer["files"] = sorted({name.partition("/")[0] for name in before})
tree.k_end = 3
cook.start(tree, scene, resume=True)
answer["states"].append(cook.wait(tree, 300))
bpy.ops.mpm_nodes.verify_revision(tree="melt", revision="r001")
answer["whole"] = tree.status
bpy.ops.mpm_nodes.delete_revision(tree="melt", revision="r001")
answer["kept"] = [content() == before, cache_import.frames_of(version)]
tree.name = "thaw"
said = []
class Layout:
    def label(self, text, **how):
        said.append(text)
    def column(self, **how):
        return self
    row = column
    def operator(self, *given, **how):
        return self
    prop = operator
from types import SimpleNamespace
from bl_ext.user_default.mpm_nodes import cache_panel
cache_import.show(tree, version, scene, [1, 2])
drawn = []
cache_panel.MPM_OT_note_revision.act(
    SimpleNamespace(note="new"),
    SimpleNamespace(area=SimpleNamespace(tag_redraw=lambda: drawn.append(revisions.notes(version)[0]))), tree, version)
answer["drawn"] = drawn
revisions.write_notes(version, answer["notes"][0], [])
space = SimpleNamespace(type="NODE_EDITOR", node_tree=tree)
cache_panel.MPM_PT_caches.draw(SimpleNamespace(layout=Layout()), SimpleNamespace(space_data=space))
answer["panel"] = said
before = set(bpy.data.objects)
bpy.ops.wm.usd_import(filepath=str(version / "cache.usda"))
answer["opened"] = sorted(each.type for each in set(bpy.data.objects) - before)
"""

QUEUE = """
scene = bpy.context.scene
made = []
for name in ("one", "two", "three"):
    bpy.ops.mpm_nodes.new_graph()
    tree = bpy.data.node_groups["MPM Graph"]
    tree.name, tree.folder, tree.k_cell_size, tree.k_end = name, given["folder"], 0.15, 2
    made.append(tree)
bpy.ops.mpm_nodes.cook(tree="one")
bpy.ops.mpm_nodes.queue(tree="two")
bpy.ops.mpm_nodes.queue(tree="three")
bpy.ops.mpm_nodes.queue(tree="one", high=True)
answer["waiting"] = [[cook.waits(tree), cook.job_of(tree) is not None, tree.status] for tree in made]
try:
    bpy.ops.mpm_nodes.queue(tree="two")
except RuntimeError as error:
    answer["twice"] = str(error)
class Shown:
    progress = None
    def row(self, **how):
        return self
    box = row
    def __init__(self):
        self.buttons = []
    def operator(self, name, **how):
        self.buttons.append(how.get("text", name))
        return Shown()
    def prop(self, *given, **how):
        pass
    label = progress = prop
def buttons(tree):
    panel = Shown()
    interface.draw_cook(panel, tree)
    return panel.buttons
answer["buttons"] = [buttons(tree) for tree in made]
bpy.ops.mpm_nodes.cancel(tree="one", queued=True)
answer["still"] = [cook.waits(made[0]), cook.job_of(made[0]).stop_asked]
bpy.ops.mpm_nodes.queue(tree="one", high=True)
bpy.ops.mpm_nodes.cancel(tree="three")
made[1].k_end = 3
most, states = 0, {}
import time
end = time.monotonic() + 300
while (cook.JOBS or cook.WAITING) and time.monotonic() < end:
    cook.look()
    most = max(most, len(cook.JOBS))
    time.sleep(0.02)
answer["most"] = most
answer["cooked"] = {each.name: [cache_import.frames_of(path) for path in revisions.found(places.out_path(each))] for each in made}
answer["high"] = [resolutions.cooked_at(path) for path in revisions.found(places.out_path(made[0]))]
answer["left"] = made[2].status

# one that cannot be read from, one whose scene is gone, and a defect, do not keep up those behind them
def boom(tree, *given, **how):
    if tree == made[0]:
        raise RuntimeError("no such thing")
    return begin(tree, *given, **how)
begin, cook.start = cook.start, boom
cook.JOBS["another"] = None
gone = bpy.data.scenes.new("Gone")
cook.queue(made[0], scene)
cook.queue(made[1], gone)
answer["counts"] = [made[0].status]
cook.queue(made[2], scene)
bpy.data.scenes.remove(gone)
del cook.JOBS["another"]
cook.look()
answer["behind"] = [made[0].status, made[1].status, cook.job_of(made[2]) is not None]
cook.start = begin
cook.cancel(made[2]), cook.cancel(made[2])
cook.wait(made[2], 300)
cook.queue(made[0], scene)
answer["counts"].append(made[0].status)
cook.cancel(made[0])

# a cook that was stopped before its first frame
empty = places.out_path(made[0]) / "r009"
empty.mkdir()
(empty / "cook.json").write_text("{}")
answer["refused"] = []
for name in ("show", "render", "publish"):
    try:
        getattr(bpy.ops.mpm_nodes, f"{name}_revision")(tree="one", revision="r009")
    except RuntimeError as error:
        answer["refused"].append(str(error).strip())
"""


def test_a_note_and_a_published_version_stay_when_the_cook_goes(tmp_path: Path):
    """A version is a cache of its own, without states: a cook that goes on or is deleted changes none of its bytes."""
    seen = in_blender(KEPT, folder=str(tmp_path))
    assert seen["states"] == ["done", "done"]
    note, published = seen["notes"]
    assert note == "the best so far: säße" and published == ["melt_v001", "melt_v002"] and "published as" in seen["said"]
    assert seen["files"] == ["cache", "cache.usda", "cook.json", "frames", "notes.json"]
    assert seen["whole"] == "r001: every file is as it was written", "notes do not count as damage"
    assert seen["kept"] == [True, [1, 2]]
    assert "POINTCLOUD" in seen["opened"]
    assert seen["drawn"] == ["new"], "a note is seen at once"
    assert seen["panel"] == ["Shown: melt_v001 in published", "Nothing is cooked in thaw_cache"]
    assert json.loads((tmp_path / "published" / "melt_v002" / "notes.json").read_text())["note"] == note


def test_cooks_wait_for_one_another(tmp_path: Path):
    """One cooks at a time, each as it is by then; one that is taken out does not cook."""
    seen = in_blender(QUEUE, folder=str(tmp_path))
    assert [each[:2] for each in seen["waiting"]] == [[True, True], [True, False], [True, False]]
    assert seen["waiting"][2][2] == "Waits for 2 other cooks" and "two waits already" in seen["twice"]
    out = "Take Out of Queue"
    assert seen["buttons"] == [["mpm_nodes.cancel", out], [out], [out]] and seen["still"] == [False, False]
    assert seen["most"] == 1
    assert seen["cooked"] == {"one": [[1, 2], [1, 2]], "two": [[1, 2, 3]], "three": []}
    assert seen["high"] == [None, 2.0] and seen["left"] == "Taken out of the queue"
    assert seen["counts"] == ["Waits for 1 other cook", "Begins at once"]
    defect, deleted, goes_on = seen["behind"]
    assert "no such thing" in defect and deleted == "The scene that it was queued in was deleted; cook it in another" and goes_on
    assert seen["refused"] == ["Error: r009 holds no whole frame"] * 3


def test_notes_that_were_written_by_hand(tmp_path):
    """The panel reads them each time that it is drawn: it shows what can be read."""
    revisions = runpy.run_path(str(ADDON / "revisions.py"))
    for text in ('{"note": null, "published": 5}', "[]", "no JSON"):
        (tmp_path / "notes.json").write_text(text)
        assert revisions["notes"](tmp_path) == ("", [])


def test_the_size_of_a_cook_that_runs(tmp_path):
    """The panel asks for it while files are written under other names: `.tmp-cache.set.usda` was gone before it was measured."""
    revisions = runpy.run_path(str(ADDON / "revisions.py"))
    (tmp_path / "frame.usdc").write_bytes(bytes(1000))
    (tmp_path / "link").symlink_to(tmp_path / "frame.usdc")
    over = threading.Event()

    def write():
        while not over.is_set():
            (tmp_path / ".tmp-cache.set.usda").touch()
            (tmp_path / ".tmp-cache.set.usda").unlink()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert {revisions["size"](tmp_path) for _ in range(2000)} == {1000}
    finally:
        over.set()
        writer.join()
