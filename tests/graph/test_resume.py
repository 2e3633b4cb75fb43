"""A resumed cook ends with the bytes of one that was never interrupted, or says why it will not begin."""

from __future__ import annotations

import errno
import json
import os
import pathlib
from types import SimpleNamespace

import pytest
from fake_nodes import REGISTRY, Solver, calls, content, shot

import mpm_nodes
from mpm_nodes.data import OutputError
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.cook.resume import ResumeRefused
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.files.folder import Folder
from mpm_nodes.graph.revisions.revision import Revision


@pytest.fixture
def whole(tmp_path):
    """Content of a cook of six frames that nobody interrupted."""
    execute(shot(), out=tmp_path / "whole")
    return content(tmp_path / "whole" / "r001")


def test_a_cook_in_two_parts_gives_the_bytes_of_one(tmp_path, whole):
    """Frames 1 to 3, then the rest: every file is equal, records, checkpoints and manifest included."""
    out = tmp_path / "out"
    execute(shot(), out=out, frames=(1, 3))
    calls.clear()
    result = execute(shot(), out=out, resume=True, frames=(1, 6))
    assert result.cooked == (4, 5, 6) and result.frames == (1, 2, 3, 4, 5, 6) and calls["solve"] == 3
    assert content(out / "r001") == whole


def test_resuming_a_finished_cook_does_nothing(tmp_path, whole):
    """There is nothing to cook, and nothing changes."""
    calls.clear()
    result = execute(shot(), out=tmp_path / "whole", resume=True)
    assert result.cooked == () and result.frames[-1] == 6 and not calls
    assert content(tmp_path / "whole" / "r001") == whole


def test_resume_where_nothing_was_cooked_begins(tmp_path, whole):
    """A first start with --resume is a start."""
    assert execute(shot(), out=tmp_path / "new", resume=True).cooked == (1, 2, 3, 4, 5, 6)
    assert content(tmp_path / "new" / "r001") == whole


def test_a_longer_shot_goes_on_where_the_shorter_one_ended(tmp_path):
    """Raising settings.end does not make it another graph; without --frames the resumed cook follows it."""
    execute(shot(end=4), out=tmp_path / "a")
    assert execute(shot(end=6), out=tmp_path / "a", resume=True).cooked == (5, 6)
    execute(shot(end=6), out=tmp_path / "b")
    assert content(tmp_path / "a") == content(tmp_path / "b")


def test_resume_without_frames_goes_on_to_the_end_of_the_shot(tmp_path):
    """A cook of frames 2 and 3 of a shot of six goes on to 6, or as far as it is told; one of eight keeps its own end."""
    for name in ("a", "b"):
        execute(shot(), out=tmp_path / name, frames=(2, 3))
    assert execute(shot(), out=tmp_path / "a", resume=True, frames=(4, 5)).frames == (2, 3, 4, 5)
    assert execute(shot(), out=tmp_path / "a", resume=True).frames == (2, 3, 4, 5, 6)
    assert execute(shot(), out=tmp_path / "b", resume=True).frames == (2, 3, 4, 5, 6)
    execute(shot(), out=tmp_path / "longer", frames=(1, 8))
    (tmp_path / "longer" / "r001" / "frames" / "0008.commit.json").unlink()
    assert execute(shot(), out=tmp_path / "longer", resume=True).frames == tuple(range(1, 9))


def test_the_command_to_continue_has_the_frames_that_were_asked_for(tmp_path, monkeypatch, capsys):
    """Frames 2 to 4 that are stopped are continued to 4 by the line that is printed, not to the end of the shot."""
    from mpm_nodes import cli
    from mpm_nodes.commands import cook
    from mpm_nodes.graph.declare import registry

    monkeypatch.setattr(registry, "default", lambda: REGISTRY)
    (tmp_path / "shot.json").write_text(json.dumps(shot().to_json()))
    said = []
    monkeypatch.setattr(cook, "cook", lambda graph, args, out, resume: said.append(resume) or SimpleNamespace())
    monkeypatch.setattr(cook, "print_written", lambda *args: None)
    assert cli.main(["cook", str(tmp_path / "shot.json"), "--out", str(tmp_path / "out"), "--frames", "2-4"]) == 0
    assert said[0].endswith("--resume --frames=2-4")
    assert cli.main(["cook", str(tmp_path / "shot.json"), "--out", str(tmp_path / "out"), "--resume", "--of", "r001"]) == 0
    assert said[1].endswith("--resume --of r001"), "stopped again, it goes on with the revision that was named"


def test_gaps_are_refused(tmp_path):
    """Frames that would leave a hole in the numbering are refused with the right ones named."""
    execute(shot(), out=tmp_path, frames=(2, 3))
    for frames in ((5, 6), (1, 6)):
        with pytest.raises(ResumeRefused, match=r"would leave a gap, its frames are 2 to 3; begin at 4"):
            execute(shot(), out=tmp_path, resume=True, frames=frames)


def test_another_graph_is_refused_with_the_difference(tmp_path):
    """The first knob that differs is named; positions, comments and nothing else may differ."""
    execute(shot(end=2), out=tmp_path)
    graph = shot(end=3)
    graph["sim"].entry.position = [3, 4]
    graph["sim"].entry.comment = "moved"
    assert execute(graph, out=tmp_path, resume=True).cooked == (3,)
    graph.set("sim.push", 0.5)
    with pytest.raises(ResumeRefused, match=r"r001: was cooked from another graph: sim\.push was 0\.25, is 0\.5") as caught:
        execute(graph, out=tmp_path, resume=True)
    assert caught.value.exit_code == 2
    graph = shot(end=3)
    graph.add("fake_source", "more")
    with pytest.raises(ResumeRefused, match=r"more was added"):
        execute(graph, out=tmp_path, resume=True)


def test_keys_of_frames_to_come_may_change(tmp_path):
    """Keys after the last frame that is there make the same cook; what changes a frame that is there is refused and named."""

    def keyed(end, count, changed=0):
        graph = shot(end=end)
        rows = [[frame, 3.0 if frame == changed else 0.1 * frame, "linear"] for frame in range(1, count + 1)]
        graph.set("sim.push", {"keys": rows})
        return graph

    def cooked(name):  # records say which graph their frame was cooked from, and that was a shorter one
        return {path: data for path, data in content(tmp_path / name).items() if "/frames/" not in path}

    execute(keyed(4, 4), out=tmp_path / "a")
    assert execute(keyed(6, 6), out=tmp_path / "a", resume=True).cooked == (5, 6)
    execute(keyed(6, 6), out=tmp_path / "b")
    assert cooked("a") == cooked("b") and len(cooked("a")) > 6
    assert execute(keyed(7, 9, changed=7), out=tmp_path / "a", resume=True).cooked == (7,), "compared with the keys of frame 6"
    with pytest.raises(ResumeRefused, match=r"another graph: sim\.push\.keys was "):
        execute(keyed(9, 9, changed=3), out=tmp_path / "a", resume=True)


def test_a_changed_input_file_is_refused(tmp_path):
    """A cook does not go on with other input than it began with."""
    graph = Graph(registry=REGISTRY, base=tmp_path, start=1, end=2)
    graph.add("fake_read", "read", file="in.txt")
    graph.add("fake_write", "cache", cloud=graph.add("fake_solve", "sim", cloud=graph["read"])["cloud"])
    (tmp_path / "in.txt").write_text("1 2")
    execute(graph, out=tmp_path / "out")
    graph.set("settings.end", 3)
    (tmp_path / "in.txt").write_text("1 3")
    with pytest.raises(ResumeRefused, match="an input file, or the code of a node, that sim depends on was changed"):
        execute(graph, out=tmp_path / "out", resume=True)
    (tmp_path / "in.txt").write_text("1 2")
    assert execute(graph, out=tmp_path / "out", resume=True).cooked == (3,)


def test_another_version_with_the_same_state_format_goes_on_and_says_so(tmp_path, monkeypatch):
    """The version is in the warning; the frames are the same."""
    execute(shot(), out=tmp_path, frames=(1, 3))
    monkeypatch.setattr(mpm_nodes, "__version__", "99.0")
    result = execute(shot(), out=tmp_path, resume=True, frames=(1, 4))
    assert result.cooked == (4,)
    assert any("version 99.0 reads its state and goes on" in warning for warning in result.warnings)
    assert json.loads((tmp_path / "r001" / "frames" / "0004.commit.json").read_text())["package_version"] == "99.0"


def test_another_state_format_is_refused(tmp_path, monkeypatch):
    """States that would be misread are refused, both the cook's own format and that of a node's state."""
    execute(shot(), out=tmp_path, frames=(1, 3))
    with monkeypatch.context() as patch:
        patch.setattr("mpm_nodes.graph.cook.resume.STATE_FORMAT", 2)
        with pytest.raises(ResumeRefused, match="with state format 1, this version continues format 2"):
            execute(shot(), out=tmp_path, resume=True)
    monkeypatch.setattr(Solver, "STATE_FORMAT", 7, raising=False)
    with pytest.raises(ResumeRefused, match="holds state format 1, this version reads 7"):
        execute(shot(), out=tmp_path, resume=True)


def test_a_damaged_frame_is_cooked_again(tmp_path, whole):
    """Damage at the last frame costs that frame, damage at an early one that one; the bytes are right."""
    folder = tmp_path / "whole" / "r001"
    (folder / "points" / "points.0006.bin").write_bytes(b"x" * 40)
    result = execute(shot(), out=tmp_path / "whole", resume=True)
    assert result.cooked == (6,) and any("frame 6 is damaged" in warning for warning in result.warnings)
    assert content(folder) == whole
    (folder / "points" / "points.0002.bin").unlink()
    assert execute(shot(), out=tmp_path / "whole", resume=True).cooked == (2,)
    assert content(folder) == whole


def test_a_cook_is_locked_while_it_runs(tmp_path):
    """A second cook cannot resume the revision that the first one writes."""

    def on_event(event):
        if event["event"] == "frame_done" and event["frame"] == 2:
            with pytest.raises(OutputError, match="another cook"):
                execute(shot(), out=tmp_path, resume=True)

    assert execute(shot(), out=tmp_path, on_event=on_event).cooked == (1, 2, 3, 4, 5, 6)


# ---------------------------------------------------------------- the disk
def test_disk_full_keeps_the_last_good_frame(tmp_path, whole, monkeypatch):
    """The cook stops with exit code 5; after space is made, resume completes it."""
    write = pathlib.Path.write_bytes

    def full(path, data):
        if "points.0004" in path.name:
            write(path, data[:3])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return write(path, data)

    monkeypatch.setattr(pathlib.Path, "write_bytes", full)
    with pytest.raises(
        OutputError, match=r"cache, frame 4: .*the disk is full; free some space, then continue with --resume"
    ) as caught:
        execute(shot(), out=tmp_path / "out")
    assert caught.value.exit_code == 5
    monkeypatch.undo()
    assert not list((tmp_path / "out").rglob(".tmp-*"))
    assert execute(shot(), out=tmp_path / "out", resume=True).cooked == (4, 5, 6)
    assert content(tmp_path / "out" / "r001") == whole


def test_disk_full_while_the_checkpoint_is_written(tmp_path, monkeypatch):
    """A real file system that is full: /dev/full stands in for the checkpoint."""
    if not pathlib.Path("/dev/full").exists():
        pytest.skip("needs /dev/full")

    def reserve(transaction, parts):
        return pathlib.Path("/dev/full") if parts[0] == "checkpoints" and transaction.frame == 2 else before(transaction, parts)

    from mpm_nodes.graph.revisions.transaction import FrameTransaction

    before = FrameTransaction._reserve
    monkeypatch.setattr(FrameTransaction, "_reserve", reserve)
    with pytest.raises(OutputError, match="the disk is full"):
        execute(shot(), out=tmp_path)
    monkeypatch.undo()
    assert execute(shot(), out=tmp_path, resume=True).cooked[0] == 2


def test_a_folder_that_cannot_be_written_is_refused_before_any_node_runs(tmp_path, monkeypatch):
    """Permission denied and a file in the way: one line, exit code 5, nothing cooked."""
    calls.clear()
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="is a file; give a folder with --out"):
        execute(shot(), out=tmp_path / "file")
    with pytest.raises(OutputError, match="cannot be written"):
        execute(shot(), out=tmp_path / "file" / "below")
    locked = tmp_path / "locked"
    locked.mkdir()

    def no_open(folder, name, flags=0, mode=0):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder.path / name))

    monkeypatch.setattr(Folder, "open", no_open)  # the superuser of a container may write anywhere
    with pytest.raises(OutputError, match=r"locked.*permission denied.*choose another folder with --out"):
        execute(shot(), out=locked)
    assert not calls and list(locked.iterdir()) == []


def test_retention_keeps_what_every_nth_frame_needs(tmp_path):
    """Checkpoints of the last two frames and of every third stay."""
    execute(shot(end=8), out=tmp_path, keep_every=3)
    names = sorted(path.name[:4] for path in (tmp_path / "r001" / "checkpoints").iterdir())
    assert names == ["0003", "0006", "0007", "0008"]
    revision = Revision.resume(tmp_path, {})
    assert revision.resume_frame(["sim"], first=1) == 8
    revision.close()
