"""A changed graph is cooked again from a frame: the frames before it are the older cook's, or it says why they cannot be."""

from __future__ import annotations

import json
import os
import threading

import pytest
from fake_nodes import REGISTRY, calls, content, shot

from mpm_nodes import cli
from mpm_nodes.data import Cancelled, InputError, OutputError
from mpm_nodes.graph.cook.again import AgainRefused
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.cook.repair import find_faults
from mpm_nodes.graph.cook.resume import ResumeRefused
from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.reports.problems import GraphError
from mpm_nodes.graph.revisions.revision import Revision


def points(folder, frame):
    """Return the bytes of a frame's points."""
    return (folder / "points" / f"points.{frame:04d}.bin").read_bytes()


@pytest.fixture
def older(tmp_path):
    """A cook of six frames; its folder."""
    execute(shot(), out=tmp_path)
    return tmp_path / "r001"


@pytest.mark.parametrize("frame", [2, 4, 6, 7])
def test_an_unchanged_graph_gives_the_same_bytes(tmp_path, older, frame):
    """Whatever the frame, and whether its state was kept (6 and 7) or is made again: every frame has the bytes of a whole cook."""
    before = content(older)
    result = execute(shot(end=8), out=tmp_path, again_from=frame)
    assert result.revision_folder == tmp_path / "r002"
    assert result.cooked == tuple(range(frame, 9)) and result.frames == tuple(range(1, 9))
    execute(shot(end=8), out=tmp_path / "whole")
    found, whole = content(tmp_path / "r002"), content(tmp_path / "whole" / "r001")
    for name, data in whole.items():
        if name.startswith("points") or name == "stage.txt":
            assert found[name] == data, name
    assert content(older) == before


def test_frames_of_another_root_are_taken_by_their_path(tmp_path, older):
    """As of the same root; a folder that holds no cook is refused."""
    graph = shot(push=0.5)
    for name, of in (("same", older), ("kept", "r001")):
        root = tmp_path / name if name == "same" else tmp_path
        result = execute(graph, out=root, again_from=6, of=str(of))
        assert result.cooked == (6,)
    taken = json.loads((tmp_path / "same" / "r001" / "cook.json").read_text())["taken"]
    assert taken["from"] == "r001" and taken["last"] == 5
    assert all(points(tmp_path / "same" / "r001", frame) == points(tmp_path / "r002", frame) for frame in range(1, 7))
    with pytest.raises(InputError, match="is not the folder of a cook"):
        execute(graph, out=tmp_path / "same", again_from=6, of=str(tmp_path / "same"))


def test_other_settings_count_from_the_frame_on(tmp_path, older):
    """Frames before it are the same files, later ones are what the new knob makes of the older state; the manifest says so."""
    graph = shot(push=0.5)
    calls.clear()
    result = execute(graph, out=tmp_path, again_from=6)
    new = tmp_path / "r002"
    assert result.cooked == (6,) and calls["solve"] == 1
    for frame in range(1, 6):
        assert os.path.samefile(older / f"points/points.{frame:04d}.bin", new / f"points/points.{frame:04d}.bin"), frame
    assert points(new, 6) != points(older, 6)
    manifest = json.loads((new / "cook.json").read_text())
    assert manifest["taken"]["from"] == "r001" and manifest["taken"]["last"] == 5 and manifest["frames"] == [1, 6]
    assert manifest["graph"]["nodes"]["sim"]["knobs"]["push"] == 0.5
    assert (new / "stage.txt").read_text() == "1 2 3 4 5 6" == (older / "stage.txt").read_text()
    digests = [json.loads((new / f"frames/{frame:04d}.commit.json").read_text())["graph_digest"] for frame in (5, 6)]
    assert digests[0] == json.loads((older / "cook.json").read_text())["graph_digest"] != digests[1] == manifest["graph_digest"]


def test_a_state_that_was_not_kept_is_made_by_the_older_graph(tmp_path, older):
    """Frame 4 from a cook whose states of frames 5 and 6 are kept: frames 1 to 3 are solved again with the older knob."""
    said = []
    graph = shot(push=0.5)
    execute(graph, out=tmp_path, again_from=4, on_event=said.append)
    assert any("the state of frame 3 was not kept" in event.get("message", "") for event in said)
    kept = tmp_path / "kept"
    execute(shot(), out=kept, keep_every=3)
    execute(graph, out=kept, again_from=4)
    assert points(tmp_path / "r002", 6) == points(kept / "r002", 6) != points(older, 6)


def test_the_new_revision_is_sound_and_is_resumed(tmp_path, older):
    """Its records hold what lies there; stopped in its first frame or later it goes on to the bytes of one that was not stopped."""
    graph = shot(push=0.5, end=8)
    execute(graph, out=tmp_path, again_from=5)
    whole = content(tmp_path / "r002")
    cancel, kinds = threading.Event(), set()

    def stop(event):
        kinds.add(event["event"])
        if event["event"] == "substep" and "frame_start" in kinds:  # not one of those that make the state again
            cancel.set()

    with pytest.raises(Cancelled):
        execute(graph, out=tmp_path, again_from=5, of="r001", on_event=stop, cancel=cancel)
    revision = Revision.open(tmp_path / "r003")
    assert revision.committed() == [1, 2, 3, 4] and not find_faults(revision, 1, 4, digests=range(1, 5))
    revision.close()
    assert execute(graph, out=tmp_path, resume=True, frames=(5, 6)).cooked == (5, 6)
    assert execute(graph, out=tmp_path, resume=True, frames=(7, 8)).cooked == (7, 8)
    found = content(tmp_path / "r003")
    assert {name: data for name, data in found.items() if name != "cook.json"} == {
        name: data for name, data in whole.items() if name != "cook.json"
    }


def test_a_cook_again_of_a_cook_again(tmp_path, older):
    """The third revision takes frames of two cooks, from states that were kept and such that are made again."""
    execute(shot(push=0.5, end=9), out=tmp_path, again_from=4)
    execute(shot(push=1.0, end=9), out=tmp_path, again_from=7)
    second, third = tmp_path / "r002", tmp_path / "r003"
    assert points(third, 3) == points(older, 3) and points(third, 6) == points(second, 6) != points(older, 6)
    assert points(third, 7) != points(second, 7)


def test_one_store_does_not_mix_the_cooks(tmp_path, older):
    """Values that stay in memory between cooks are told apart: what follows on taken frames is not what a whole cook has."""
    from mpm_nodes.graph.values.store import MemoryStore

    store, graph = MemoryStore(1 << 24), shot(push=0.5)
    execute(graph, out=tmp_path / "other", store=store)
    execute(graph, out=tmp_path, again_from=6, store=store)
    assert points(tmp_path / "r002", 6) != points(tmp_path / "other" / "r001", 6)
    execute(graph, out=tmp_path / "without", store=MemoryStore(1 << 24))
    assert points(tmp_path / "without" / "r001", 6) == points(tmp_path / "other" / "r001", 6)


def test_what_cannot_be_taken_over_is_refused_with_the_cure(tmp_path, older):
    """Nothing is left of the revision that was not to be."""

    def refused(match, graph=None, again_from=4, **options):
        with pytest.raises((AgainRefused, GraphError, InputError), match=match):
            execute(graph or shot(), out=tmp_path, again_from=again_from, **options)

    refused(r"holds frames 1 to 6, so it cannot be cooked again from frame 9; choose one of 2 to 7", shot(end=12), 9)
    refused(r"choose one of 2 to 7", again_from=1)
    refused(r"frame 5: lies after the last frame 4; raise settings\.end", shot(end=4), 5)
    changed = shot()
    changed.set("settings.cell_size", 0.25)
    refused(r"settings\.cell_size: was 0\.5, is 0\.25; .*set it back, or cook from the beginning", changed)
    refused(r"settings\.start: was 1, is 0", shot(start=0))
    more = shot()
    more.add("fake_solve", "second", cloud=more["source"])
    refused(r"second: has no state in r001", more)
    refused(r"holds no revision 'r009'; it has r001", of="r009")
    refused(r"again_from: is 4 for a cook that is resumed", resume=True)
    assert [path.name for path in tmp_path.iterdir()] == ["r001"]
    with pytest.raises(InputError, match="holds no cook whose frames could be taken"):
        execute(shot(), out=tmp_path / "none", again_from=4)
    (older / "points" / "points.0002.bin").unlink()
    refused(r"points/points\.0002\.bin is missing; resume that cook to repair it")


def test_a_state_that_nobody_can_make_again_is_refused_with_frames_that_can(tmp_path):
    """The input file is another one by now and the state of frame 3 is not kept: frames 6 and 7 are offered, and work."""
    graph = Graph(registry=REGISTRY, base=tmp_path, start=1, end=6)
    graph.add("fake_read", "read", file="in.txt")
    graph.add("fake_write", "cache", cloud=graph.add("fake_solve", "sim", cloud=graph["read"])["cloud"])
    (tmp_path / "in.txt").write_text("1 2")
    execute(graph, out=tmp_path / "out")
    (tmp_path / "in.txt").write_text("1 3")
    with pytest.raises(AgainRefused, match=r"no state of frame 3 is kept, and an input file .* choose frame 6, 7"):
        execute(graph, out=tmp_path / "out", again_from=4)
    assert execute(graph, out=tmp_path / "out", again_from=6).cooked == (6,)


def test_a_failure_in_the_first_frame_leaves_the_older_cook_alone(tmp_path, older):
    """Divergence at the chosen frame: the new revision is gone with its links, the older files stay."""
    before = content(older)
    with pytest.raises(Exception, match="not a number"):
        execute(shot(dies=5), out=tmp_path, again_from=5)
    assert content(older) == before and [path.name for path in tmp_path.iterdir()] == ["r001"]


def test_damage_to_taken_frames_is_not_cooked_over(tmp_path, older):
    """The new graph does not make them: resume says where they can be had again, and removes nothing."""
    graph = shot(push=0.5, end=8)
    execute(graph, out=tmp_path, again_from=5, frames=(1, 6))
    (tmp_path / "r002" / "points" / "points.0002.bin").unlink()
    before = content(tmp_path / "r002")
    with pytest.raises(ResumeRefused, match=r"frames up to 4 came from r001, .* cook again from frame 5 of that cook"):
        execute(graph, out=tmp_path, resume=True, frames=(7, 8))
    assert content(tmp_path / "r002") == before


def test_files_are_copied_where_links_are_refused(tmp_path, older, monkeypatch):
    """A file system without links takes copies."""
    monkeypatch.setattr(os, "link", lambda *args, **options: (_ for _ in ()).throw(PermissionError(1, "no links")))
    execute(shot(push=0.5), out=tmp_path, again_from=6)
    assert points(tmp_path / "r002", 2) == points(older, 2)
    assert not os.path.samefile(older / "points/points.0002.bin", tmp_path / "r002/points/points.0002.bin")


def test_a_cook_that_runs_is_not_taken_from(tmp_path, older):
    """While it is written, its frames are not to be had."""
    revision = Revision.open(older)
    with pytest.raises(OutputError, match="another cook"):
        execute(shot(), out=tmp_path, again_from=4)
    revision.close()
    assert execute(shot(), out=tmp_path, again_from=4).cooked == (4, 5, 6)


def test_the_command_line_cooks_again(tmp_path, monkeypatch, capfd):
    """--again-from takes the newest cook, --of another one."""
    monkeypatch.setattr(registry, "default", lambda: REGISTRY)
    monkeypatch.chdir(tmp_path)
    shot().save("shot.json")
    assert cli.main(["cook", "shot.json", "--out", "out"]) == 0
    for number, more in ((2, ()), (3, ("--of", "r001"))):
        assert cli.main(["cook", "shot.json", "--out", "out", "--again-from", "6", *more, "--set", f"sim.push={number}"]) == 0
        assert json.loads((tmp_path / f"out/r00{number}/cook.json").read_text())["taken"]["from"] == "r001"
    capfd.readouterr()
    assert cli.main(["cook", "shot.json", "--out", "out", "--again-from", "12"]) == 2
    assert "choose one of 2 to 7" in capfd.readouterr().err
