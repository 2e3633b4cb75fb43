"""A frame is all there or not there, whatever happens in between."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import threading

import numpy as np
import pytest

from mpm_nodes.data import InputError, OutputError
from mpm_nodes.graph.revisions import transaction as transaction_module
from mpm_nodes.graph.revisions.clean import removable
from mpm_nodes.graph.revisions.revision import Revision, check_writable, list_revisions, temporary_files
from mpm_nodes.graph.revisions.transaction import file_frame, frame_offset

MANIFEST = {"package_version": "0", "graph_digest": "d", "frame_offset": 0}


class Counter:
    """Smallest state that can be checkpointed."""

    def __init__(self, value: int) -> None:
        self.value = value

    def to_arrays(self):
        return {"value": self.value}, {"ramp": np.arange(self.value, dtype=np.float32)}

    @classmethod
    def from_arrays(cls, facts, arrays):
        assert len(arrays["ramp"]) == facts["value"]
        return cls(facts["value"])


class Crash(Exception):
    """Stands for the death of the process."""


def write_frame(revision, frame, crash=lambda label: None, state=True):
    transaction = revision.begin(frame, crash)
    transaction.path(f"points/points.{transaction.number:04d}.txt").write_text(f"points {frame}\n")
    transaction.path(f"mesh.{transaction.number:04d}.txt").write_text(f"mesh {frame}\n")
    transaction.path("stage.txt").write_text(f"frames up to {frame}\n")
    if state:
        transaction.checkpoint({"sim": Counter(frame + 5)})
    transaction.commit(particles=frame)


def content(folder):
    """Bytes of every file below a folder, without the lock."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "cook.lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(files)}


# ---------------------------------------------------------------- names and numbers
@pytest.mark.parametrize(
    "name",
    ["/etc/passwd", "../up.txt", "a/../../up", "C:/x", "C:x", "\\\\server\\x", "nul", "a/CON.txt", "", "a:b",
     "cook.json",      "frames/0001.commit.json", ".tmp-x", "trailing. ", "a/./../../b", "new\nline"],
)  # fmt: skip
def test_names_that_could_leave_or_harm_the_folder_are_refused(tmp_path, name):
    """No file name from a graph leads out of the revision or onto our own files."""
    transaction = Revision.create(tmp_path, MANIFEST).begin(1)
    with pytest.raises(OutputError, match="output file"):
        transaction.path(name)


def test_links_are_not_followed(tmp_path):
    """A link inside the revision that leads out of it is refused by name."""
    outside = tmp_path / "outside"
    outside.mkdir()
    revision = Revision.create(tmp_path / "out", MANIFEST)
    (revision.folder / "points").symlink_to(outside, target_is_directory=True)
    with pytest.raises(OutputError, match="points is a link"):
        revision.begin(1).path("points/a.txt")
    assert not list(outside.iterdir())


def test_negative_frames_are_renumbered_by_the_stored_offset(tmp_path):
    """A cook that starts at -5 numbers its files from 0, without gaps."""
    offset = frame_offset(-5)
    revision = Revision.create(tmp_path, {**MANIFEST, "frame_offset": offset})
    write_frame(revision, -5)
    write_frame(revision, -4)
    assert (revision.folder / "mesh.0000.txt").read_text() == "mesh -5\n"
    assert revision.committed() == [-5, -4]
    assert frame_offset(12) == 0
    with pytest.raises(OutputError, match="start at frame -5 or later"):
        file_frame(-6, offset)


# ---------------------------------------------------------------- commits
def test_nothing_is_visible_before_the_commit_and_everything_after(tmp_path):
    """Readers see the old files until the commit; abort leaves no trace."""
    revision = Revision.create(tmp_path, MANIFEST)
    write_frame(revision, 1)
    before = content(revision.folder)
    transaction = revision.begin(2)
    path = transaction.path("points/points.0002.txt")
    path.write_text("x")
    assert path.suffix == ".txt" and not (revision.folder / "points" / "points.0002.txt").exists()
    transaction.abort()
    assert content(revision.folder) == before
    write_frame(revision, 2)
    assert revision.committed() == [1, 2] and not temporary_files(revision.folder)
    record = revision.record(2)
    assert record["files"]["stage.txt"]["bytes"] == len("frames up to 2\n")
    assert record["facts"] == {"particles": 2}


def test_a_file_that_was_announced_and_never_written_stops_the_commit(tmp_path):
    """A frame with a hole in it does not come to exist."""
    transaction = Revision.create(tmp_path, MANIFEST).begin(1)
    transaction.path("a.txt")
    with pytest.raises(OutputError, match=r"a\.txt was announced but never written"):
        transaction.commit()
    assert transaction.revision.committed() == []


LABELS = ["synced", "recorded", "renamed checkpoints/0003.sim.state", "renamed mesh.0003.txt",
          "renamed points/points.0003.txt", "renamed stage.txt", "before record", "committed"]  # fmt: skip


@pytest.mark.parametrize("label", LABELS)
def test_death_between_any_two_steps_of_a_commit_is_repaired_by_resume(tmp_path, label):
    """After a death at each step of frame 3, resume ends with the bytes of a cook that never died."""
    whole = Revision.create(tmp_path / "whole", MANIFEST)
    for frame in (1, 2, 3, 4):
        write_frame(whole, frame)

    def crash(here):
        if here == label:
            raise Crash

    revision = Revision.create(tmp_path / "out", MANIFEST)
    write_frame(revision, 1)
    write_frame(revision, 2)
    with pytest.raises(Crash):
        write_frame(revision, 3, crash)
    revision.close()

    revision = Revision.resume(tmp_path / "out", MANIFEST)
    last = revision.resume_frame(["sim"], first=1)
    assert last == (2 if label == "synced" else 3)
    assert not temporary_files(revision.folder)
    assert revision.load_checkpoint(last, "sim", Counter).value == last + 5
    for frame in range(last + 1, 5):
        write_frame(revision, frame)
    assert content(revision.folder) == content(whole.folder)


def test_stage_file_never_names_a_frame_that_is_not_there(tmp_path):
    """The file that replaces an older one is renamed after the new ones."""
    revision = Revision.create(tmp_path, MANIFEST)
    write_frame(revision, 1)
    seen = []
    write_frame(revision, 2, seen.append)
    assert seen == ["synced", "recorded", "renamed checkpoints/0002.sim.state", "renamed mesh.0002.txt",
                    "renamed points/points.0002.txt", "renamed stage.txt", "before record", "committed"]  # fmt: skip


# ---------------------------------------------------------------- damage
def damaged(revision, how):
    folder = revision.folder
    if how == "file cut":
        (folder / "mesh.0003.txt").write_text("m")
    elif how == "file altered":
        (folder / "mesh.0003.txt").write_text("mess 3\n")
    elif how == "file gone":
        (folder / "points" / "points.0003.txt").unlink()
    elif how == "record altered":
        path = folder / "frames" / "0003.commit.json"
        path.write_text(path.read_text().replace('"particles": 3', '"particles": 4'))
    elif how == "record respaced":
        path = folder / "frames" / "0003.commit.json"
        path.write_text(path.read_text().replace('"frame": 3', '"frame":  3'))
    elif how == "checkpoint altered":
        path = folder / "checkpoints" / "0003.sim.state"
        path.write_bytes(path.read_bytes()[:-1] + b"\0")


@pytest.mark.parametrize(
    "how", ["file cut", "file altered", "file gone", "record altered", "record respaced", "checkpoint altered"]
)
def test_resume_goes_back_behind_damage(tmp_path, how):
    """A damaged last frame is cooked again from the checkpoint before it."""
    revision = Revision.create(tmp_path, MANIFEST)
    for frame in (1, 2, 3):
        write_frame(revision, frame)
    intact = content(revision.folder)
    damaged(revision, how)
    assert revision.resume_frame(["sim"], first=1) == 2
    assert revision.roll_back(2) == [3]
    assert not (revision.folder / "mesh.0003.txt").exists() or how.startswith("record")
    write_frame(revision, 3)
    assert content(revision.folder) == intact


def test_resume_without_a_usable_checkpoint_starts_over(tmp_path):
    """When no frame has both sound files and a checkpoint, nothing can be built on."""
    revision = Revision.create(tmp_path, MANIFEST)
    write_frame(revision, 1)
    (revision.folder / "checkpoints" / "0001.sim.state").unlink()
    assert revision.resume_frame(["sim"], first=1) is None
    assert revision.resume_frame([], first=1) == 1
    revision.roll_back(None)
    assert set(content(revision.folder)) == {"cook.json"}


def test_checkpoint_of_another_state_format_is_refused(tmp_path, monkeypatch):
    """A state that this version reads differently is refused with the cure, not misread."""
    revision = Revision.create(tmp_path, MANIFEST)
    write_frame(revision, 1)
    monkeypatch.setattr(Counter, "STATE_FORMAT", 2, raising=False)
    with pytest.raises(InputError, match="holds state format 1, this version reads 2; cook again without --resume"):
        revision.load_checkpoint(1, "sim", Counter)


# ---------------------------------------------------------------- beside the nodes
def test_files_digested_beside_the_node_have_the_record_of_any_other(tmp_path):
    """Checkpoints and files that a node calls finished are recorded with the size and digest that lie on disk."""
    revision = Revision.create(tmp_path, MANIFEST)
    transaction = revision.begin(1)
    transaction.begin_checkpoint("sim", Counter(6))
    mesh = transaction.path("mesh.0001.txt")
    mesh.write_text("mesh")
    transaction.finished(mesh)
    transaction.path("stage.txt").write_text("stage")
    transaction.checkpoint({"sim": Counter(7)})  # another value than the one begun with: the last one counts
    transaction.commit()
    files = revision.record(1)["files"]
    assert sorted(files) == ["checkpoints/0001.sim.state", "mesh.0001.txt", "stage.txt"]
    for name, facts in files.items():
        data = (revision.folder / name).read_bytes()
        assert facts == {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    assert revision.load_checkpoint(1, "sim", Counter).value == 7
    assert revision.resume_frame(["sim"], first=1) == 1


def test_a_file_reserved_again_is_digested_again(tmp_path):
    """What a node writes after it called a file finished is what the record tells of."""
    revision = Revision.create(tmp_path, MANIFEST)
    transaction = revision.begin(1)
    path = transaction.path("a.txt")
    path.write_text("first")
    transaction.finished(path)
    transaction.path("a.txt").write_text("second, longer")
    transaction.commit()
    assert revision.record(1)["files"]["a.txt"]["bytes"] == len("second, longer")


def test_a_failure_beside_the_nodes_stops_the_commit_and_abort_leaves_nothing(tmp_path, monkeypatch):
    """The thread's error comes out of `commit` with its own message; abort waits for the thread, then removes its files."""
    revision = Revision.create(tmp_path, MANIFEST)
    write_frame(revision, 1)
    before = content(revision.folder)
    begun, go_on = threading.Event(), threading.Event()

    def slow(path, *args, **options):
        path.write_bytes(b"half")
        begun.set()
        assert go_on.wait(20)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(transaction_module, "write_archive", slow)
    transaction = revision.begin(2)
    transaction.begin_checkpoint("sim", Counter(3))
    transaction.path("mesh.0002.txt").write_text("mesh")
    assert begun.wait(20)
    go_on.set()
    with pytest.raises(OutputError, match=r"0002\.sim\.state: the disk is full; free some space") as caught:
        transaction.commit()
    assert caught.value.exit_code == 5
    transaction.abort()
    assert content(revision.folder) == before and revision.committed() == [1]
    begun.clear()
    go_on.clear()
    transaction = revision.begin(2)
    transaction.begin_checkpoint("sim", Counter(3))
    assert begun.wait(20)  # a write that has not begun is dropped: abort has nothing to wait for
    threading.Timer(0.2, go_on.set).start()
    transaction.abort()
    assert go_on.is_set() and content(revision.folder) == before


# ---------------------------------------------------------------- folders
def test_each_cook_gets_a_new_revision_and_resume_the_newest(tmp_path):
    """Revisions count up; an unfinished one (no manifest yet) is taken over by resume."""
    first = Revision.create(tmp_path, MANIFEST)
    first.close()
    second = Revision.create(tmp_path, MANIFEST)
    assert [path.name for path in list_revisions(tmp_path)] == ["r001", "r002"]
    second.close()
    (tmp_path / "r003").mkdir()
    third = Revision.resume(tmp_path, MANIFEST)
    assert third.folder.name == "r003" and third.manifest["frame_offset"] == 0
    assert Revision.resume(tmp_path / "elsewhere", MANIFEST) is None


def test_two_cooks_cannot_write_one_revision(tmp_path):
    """The second cook is told which process holds the revision."""
    revision = Revision.create(tmp_path, MANIFEST)
    with pytest.raises(OutputError, match=f"another cook \\(process {os.getpid()}\\) is writing it"):
        Revision.resume(tmp_path, MANIFEST)
    revision.close()
    Revision.resume(tmp_path, MANIFEST).close()


def test_damaged_manifest_is_refused(tmp_path):
    """Half a cook.json is named, not guessed at."""
    Revision.create(tmp_path, MANIFEST).close()
    (tmp_path / "r001" / "cook.json").write_text('{"format": "mpm_no')
    with pytest.raises(InputError, match=r"cook\.json: is damaged"):
        Revision.resume(tmp_path, MANIFEST)


def test_what_killed_checks_of_the_output_folder_left_is_removed(tmp_path):
    for name in (".tmp-probe-1", ".tmp-probe-4194304", ".tmp-probe-notes", ".tmp-notes"):
        (tmp_path / name).touch()
    check_writable(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".tmp-notes", ".tmp-probe-notes"]


def test_output_root_that_is_a_file_is_refused(tmp_path):
    """A file where the folder should be gives one clear line."""
    (tmp_path / "out").write_text("")
    with pytest.raises(OutputError, match="is a file; give a folder"):
        Revision.create(tmp_path / "out", MANIFEST)


@pytest.mark.parametrize(
    "code, words", [(errno.EACCES, "permission denied"), (errno.ENOSPC, "disk is full"), (errno.EIO, "cannot be")]
)
def test_errors_of_the_disk_become_output_errors(tmp_path, monkeypatch, code, words):
    """Whatever the operating system refuses while a frame is committed, the frames before stay as they were."""
    revision = Revision.create(tmp_path, MANIFEST)
    write_frame(revision, 1)
    before = content(revision.folder)

    def fsync(handle):
        raise OSError(code, os.strerror(code))

    transaction = revision.begin(2)
    transaction.path("mesh.0002.txt").write_text("mesh")
    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OutputError, match=words) as caught:
        transaction.commit()
    assert caught.value.exit_code == 5
    transaction.abort()
    assert content(revision.folder) == before


# ---------------------------------------------------------------- retention and clean
def test_retention_keeps_the_last_two_and_every_nth(tmp_path):
    """Checkpoints of frames 1 to 9 with n = 4: 4 and 8 by number, 8 and 9 as the last two."""
    revision = Revision.create(tmp_path, MANIFEST)
    for frame in range(1, 10):
        write_frame(revision, frame)
        revision.retain(last=2, every=4)
    assert sorted(path.name for path in (revision.folder / "checkpoints").iterdir()) == [
        "0004.sim.state", "0008.sim.state", "0009.sim.state"]  # fmt: skip
    assert revision.resume_frame(["sim"], first=1) == 9


def test_clean_lists_before_it_removes_and_leaves_frames_alone(tmp_path):
    """Looking removes nothing; removing takes temporary files, surplus checkpoints and old revisions only."""
    old = Revision.create(tmp_path, MANIFEST)
    write_frame(old, 1)
    old.close()
    revision = Revision.create(tmp_path, MANIFEST)
    for frame in (1, 2, 3):
        write_frame(revision, frame)
    frames = {name: data for name, data in content(revision.folder).items() if not name.startswith("checkpoints/0001")}
    revision.begin(4).path("points/points.0004.txt").write_text("half")
    with pytest.raises(OutputError, match="another cook"):
        list(removable(tmp_path))
    revision.close()
    found = [item for group in removable(tmp_path, keep_every=0) for item in group]
    assert [(item.path.name, item.why) for item in found] == [
        (".tmp-points.0004.txt", "temporary file of a dead cook"),
        ("0001.sim.state", "checkpoint beyond retention")]  # fmt: skip
    assert found[0].bytes == 4 and all(item.path.exists() for item in found)
    for group in removable(tmp_path, old_revisions=True, keep_every=0):
        for item in group:
            item.remove()
    assert list_revisions(tmp_path) == [revision.folder]
    assert content(revision.folder) == frames
    with pytest.raises(InputError, match="holds no cook"):
        list(removable(tmp_path / "nothing"))


def test_record_and_manifest_are_plain_json_without_times(tmp_path):
    """Two cooks of the same thing give the same bytes, records included."""
    one, two = Revision.create(tmp_path / "a", MANIFEST), Revision.create(tmp_path / "b", MANIFEST)
    write_frame(one, 1)
    write_frame(two, 1)
    assert content(one.folder) == content(two.folder)
    assert json.loads((one.folder / "cook.json").read_text())["format"] == "mpm_nodes.cook"


def test_a_thread_that_never_begins_stops_no_frame(tmp_path, monkeypatch):
    """Where memory runs out as a thread begins, Python drops it and tells nobody: the frame does the work itself, in order."""
    from mpm_nodes.graph.revisions import background

    for start in (
        lambda function, arguments: 7,
        lambda function, arguments: (_ for _ in ()).throw(RuntimeError("no more threads")),
    ):
        monkeypatch.setattr(background._thread, "start_new_thread", start)
        revision = Revision.create(tmp_path, MANIFEST)
        transaction = revision.begin(1)
        transaction.begin_checkpoint("sim", Counter(6))
        transaction.checkpoint({"sim": Counter(7)})
        transaction.commit()
        assert revision.load_checkpoint(1, "sim", Counter).value == 7
        revision.close()


def test_work_beside_the_owner_is_done_once_and_in_order():
    """Two hundred tasks, some waited for at once: each runs once, none before those given earlier; errors reach who asks."""
    from mpm_nodes.graph.revisions.background import Background

    worker, order = Background(), []
    tasks = []
    for number in range(200):
        tasks.append(worker.start(lambda number=number: order.append(number)))
        if number % 50 == 49:
            worker.settle()
    worker.settle()
    assert order == list(range(200)) and all(task.result() is None for task in tasks)
    failing = worker.start(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        failing.result()
    worker.rest()
