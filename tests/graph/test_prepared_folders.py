"""A cache folder that a stranger prepared: nothing outside it is read into it, written, cut or removed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest
from fake_nodes import content, shot

from mpm_nodes import cli
from mpm_nodes.data import InputError, MpmNodesError, OutputError
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.files.folder import Folder, json_bytes
from mpm_nodes.graph.revisions.revision import Revision, temporary_files

LONG = "n" * 5000
BAD_NAMES = [
    "../../victim.txt", "../victim.txt", "points/../../../victim.txt", "..\\..\\victim.txt", "points\\..\\..\\victim.txt",
    "/etc/victim.txt", "C:\\victim.txt", "C:victim.txt", "\\\\host\\share\\victim.txt", "//host/share", "", ".", "./a.txt",
    "a//b.txt", "a/./b.txt", "points/", "a\0b.txt", "nul", "con.txt", "COM1.bin", "lpt¹.txt", "CONIN$", "a:stream", "a?.txt",
    "trailing.", "space ", LONG, "/".join("d" * 100 for _ in range(60)), "\ud800.txt", "cook.json", "COOK.JSON", "cook.lock",
    "frames/0001.commit.json", "Frames/x.txt", "checkpoints/../cook.json", "checkpoints/x/y.state", "checkpoints/evil.txt",
    ".tmp-a.txt", "points/.tmp-a.txt",
]  # fmt: skip


@pytest.fixture
def out(tmp_path):
    """An output root with three of six frames, a victim beside it, and the state of all that is outside the root."""
    execute(shot(), out=tmp_path / "out", frames=(1, 3))
    (tmp_path / "victim.txt").write_text("precious")
    (tmp_path / "victims").mkdir()
    for name in (
        "0001.sim.state",
        "0001.commit.json",
        ".tmp-0004.commit.json",
        "points.0002.bin",
        "contact_sheet.splat.png",
        "cook.json",
    ):
        (tmp_path / "victims" / name).write_text("precious")
    return tmp_path / "out"


def outside(out: Path) -> dict[str, bytes]:
    return {name: data for name, data in content(out.parent).items() if not name.startswith("out/")}


def sealed(record: dict) -> str:
    body = {name: value for name, value in record.items() if name != "seal"}
    whole = {**body, "seal": hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()}
    return json_bytes(whole).decode()


def forge(path: Path, target: Path | None = None, **changes) -> None:
    """Change facts of a commit record and seal it again, as its own program would."""
    (target or path).write_text(sealed({**json.loads(path.read_text()), **changes}))


def renamed(path: Path, name: str) -> dict:
    """Return the table of files of a record with one more, which has the size and digest of nothing."""
    nothing = {"bytes": 0, "sha256": hashlib.sha256(b"").hexdigest()}
    return {**json.loads(path.read_text())["files"], name: nothing}


# ---------------------------------------------------------------- names in records
@pytest.mark.parametrize("name", BAD_NAMES, ids=lambda name: ascii(name[:24]))
@pytest.mark.parametrize("committed", [True, False], ids=["committed", "half committed"])
def test_a_record_that_names_a_file_elsewhere_is_refused(out, name, committed):
    """Whether the frame is there or its commit waits to be finished: nothing is touched, and the message says what to do."""
    path = out / "r001" / "frames" / "0003.commit.json"
    if committed:
        forge(path, files=renamed(path, name))
    else:
        forge(path, path.with_name(".tmp-0004.commit.json"), frame=4, files=renamed(path, name))
    before, folder = outside(out), content(out)
    with pytest.raises(InputError, match=r"was not written by mpm-nodes; .*cook without --resume"):
        execute(shot(), out=out, resume=True)
    assert outside(out) == before and content(out) == folder
    with pytest.raises(InputError, match="was not written by mpm-nodes"):
        revision = Revision.resume(out, {})
        try:
            revision.roll_back(None)
        finally:
            revision.close()
    assert outside(out) == before


@pytest.mark.parametrize(
    "changes",
    [
        {"frame": 4}, {"frame": "3"}, {"frame": -(10**40)}, {"files": []}, {"files": None}, {"facts": 3}, {"files": {"a.txt": 3}},
        {"files": {"a.txt": {"bytes": -1, "sha256": "0" * 64}}}, {"files": {"a.txt": {"bytes": True, "sha256": "0" * 64}}},
        {"files": {"a.txt": {"bytes": 1e300, "sha256": "0" * 64}}}, {"files": {"a.txt": {"bytes": 1, "sha256": "../x"}}},
        {"files": {"a.txt": {"bytes": 1}}},
    ],
    ids=repr,
)  # fmt: skip
def test_every_field_of_a_record_is_checked(out, changes):
    """Whole records that no cook of ours writes are refused as such."""
    forge(out / "r001" / "frames" / "0003.commit.json", **changes)
    with pytest.raises(InputError, match="was not written by mpm-nodes"):
        execute(shot(), out=out, resume=True)


@pytest.mark.parametrize("name", ["package_version", "graph_digest", "frame_offset", "frames", "graph", "format", "state_format"])
@pytest.mark.parametrize("value", [None, "..", -1, [], {}, 10**40, [1], ["a", 2], True, {"settings": 3, "nodes": {}}], ids=repr)
def test_every_field_of_a_manifest_is_checked(out, name, value):
    """Whatever a manifest says, or leaves out, a resume ends in a sentence of ours and changes nothing elsewhere."""
    path = out / "r001" / "cook.json"
    manifest = {**json.loads(path.read_text()), name: value}
    if value is None:
        del manifest[name]
    elif name == "package_version" and isinstance(value, str):
        pytest.skip("any text may be a version")
    path.write_text(json.dumps(manifest))
    before = outside(out)
    with pytest.raises(MpmNodesError):
        execute(shot(), out=out, resume=True)
    assert outside(out) == before


def test_a_manifest_that_nests_too_deep_is_refused(out):
    """A hundred thousand brackets are damage, not a crash."""
    (out / "r001" / "cook.json").write_text("[" * 100_000)
    with pytest.raises(InputError, match="is damaged or not a manifest of ours"):
        execute(shot(), out=out, resume=True)
    (out / "r001" / "frames" / "0003.commit.json").write_text("[" * 100_000)


# ---------------------------------------------------------------- links
LINKS = [
    "cook.lock", "cook.json", ".tmp-cook.json", "frames", "frames/0001.commit.json", "frames/0003.commit.json",
    "frames/.tmp-0004.commit.json", "frames/0004.commit.json", "checkpoints", "checkpoints/0003.sim.state",
    "checkpoints/.tmp-0004.sim.state", "points", "points/points.0002.bin", "points/points.0004.bin", "points/.tmp-points.0004.bin",
    "stage.txt", ".tmp-stage.txt",
]  # fmt: skip


@pytest.mark.parametrize("kind", ["link", "dangling link", "hard link"])
@pytest.mark.parametrize("name", LINKS)
def test_a_link_is_never_followed(out, name, kind):
    """A link at every level that a cook writes: what it leads to stays as it was, whether the cook refuses or goes on."""
    path, victim = out / "r001" / name, out.parent / "victim.txt"
    folder = path.is_dir()
    if kind == "hard link" and folder:
        pytest.skip("folders have no second names")
    shutil.rmtree(path, ignore_errors=True) if folder else path.unlink(missing_ok=True)
    target = out.parent / "victims" if folder else victim
    if kind == "dangling link":
        target = out.parent / "not yet"
    path.hardlink_to(target) if kind == "hard link" else path.symlink_to(target, target_is_directory=folder)
    before = outside(out)
    try:
        execute(shot(), out=out, resume=True)
    except MpmNodesError as error:
        assert str(path.name) in str(error) or "commit" in str(error) or "cook" in str(error)
    assert outside(out) == before


def test_a_lock_with_other_content_is_not_cut(out):
    """What is called cook.lock and holds a text is refused untouched; an old lock with a number is taken."""
    lock = out / "r001" / "cook.lock"
    lock.write_text("my notes")
    with pytest.raises(OutputError, match="not a lock file of ours"):
        execute(shot(), out=out, resume=True)
    assert lock.read_text() == "my notes"
    lock.write_text("12345")
    assert execute(shot(), out=out, resume=True, frames=(1, 6)).cooked == (4, 5, 6)


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="needs openat")
def test_a_folder_swapped_for_a_link_between_two_steps_is_not_followed(tmp_path, monkeypatch):
    """The look and the opening are one step: a folder that becomes a link after it was looked at is met as a link."""
    (tmp_path / "in" / "points").mkdir(parents=True)
    (tmp_path / "victims").mkdir()
    (tmp_path / "victims" / "a.txt").write_text("precious")
    (tmp_path / "in" / "points" / "a.txt").write_text("old")
    whole, swaps = Folder._step, []

    def swap(place, name, path):
        handle = whole(place, name, path)
        if name == "points":
            swaps.append(path.rename(tmp_path / "in" / f"aside{len(swaps)}"))
            path.symlink_to(tmp_path / "victims")
        return handle

    monkeypatch.setattr(Folder, "_step", staticmethod(swap))
    Folder(tmp_path / "in").unlink("points/a.txt")
    with pytest.raises(OutputError, match="points is a link"):
        Folder(tmp_path / "in").write_json("points/a.txt", {})
    assert len(swaps) == 1 and not (swaps[0] / "a.txt").exists()
    assert (tmp_path / "victims" / "a.txt").read_text() == "precious"


@pytest.mark.parametrize("held", [True, False], ids=["held", "looked at"])
def test_both_ways_to_refuse_links_refuse_them(tmp_path, monkeypatch, held):
    """Systems that cannot open relative to a folder look first; links at the end and on the way are refused there too."""
    from mpm_nodes.graph.files import folder as module

    if held and not module.HELD:
        pytest.skip("this system looks")
    monkeypatch.setattr(module, "HELD", held)
    (tmp_path / "in").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.txt").write_text("precious")
    (tmp_path / "in" / "way").symlink_to(tmp_path / "outside", target_is_directory=True)
    (tmp_path / "in" / "end.txt").symlink_to(tmp_path / "outside" / "a.txt")
    files = Folder(tmp_path / "in")
    for action in (files.open, files.unlink, files.facts, lambda name: files.write_json(name, {}), lambda name: files.make(name)):
        with pytest.raises(OutputError, match="is a link; remove it"):
            action("way/a.txt")
    for action in (files.open, files.facts):
        with pytest.raises(OutputError, match="is a link; remove it"):
            action("end.txt")
    for name in ("../outside/a.txt", "", "way/../../outside/a.txt", "a\0", "way//a.txt"):
        with pytest.raises(OutputError, match="is not a name below"):
            files.unlink(name)
    assert files.size("way/a.txt") is None and files.size("end.txt") is None and files.names() == []
    files.make("deep/er")
    files.replace("deep/er/b.bin", b"new")
    files.write_json("end.txt", {})
    assert (
        files.read("deep/er/b.bin") == b"new"
        and files.names("deep/er") == ["b.bin"]
        and not (tmp_path / "in" / "end.txt").is_symlink()
    )
    assert content(tmp_path / "outside") == {"a.txt": b"precious"}


# ---------------------------------------------------------------- folders of others
def test_a_folder_that_is_not_ours_is_not_adopted(tmp_path):
    """A folder called r001 with files in it and no cook.json is refused untouched; one that a cook died in at once is taken."""
    mine = tmp_path / "out" / "r001"
    (mine / "frames").mkdir(parents=True)
    (mine / "stage.txt").write_text("precious")
    with pytest.raises(OutputError, match=r"holds 'stage\.txt' but no cook\.json.*move it away, or cook without --resume"):
        execute(shot(), out=tmp_path / "out", resume=True)
    assert (mine / "stage.txt").read_text() == "precious"
    assert execute(shot(), out=tmp_path / "out").revision_folder.name == "r002"
    shutil.rmtree(tmp_path / "out" / "r002")
    (mine / "stage.txt").unlink()
    (mine / ".tmp-cook.json").write_text('{"format"')
    assert execute(shot(), out=tmp_path / "out", resume=True).cooked == (1, 2, 3, 4, 5, 6)


def test_a_cook_that_fails_at_once_removes_nothing_that_it_did_not_make(out):
    """A resumed revision without frames that holds a stranger's file stays."""
    for frame in (1, 2, 3):
        (out / "r001" / "frames" / f"{frame:04d}.commit.json").unlink()
    (out / "r001" / "notes.txt").write_text("precious")
    revision = Revision.resume(out, {})
    assert not revision.discard_if_empty()
    revision.close()
    assert (out / "r001" / "notes.txt").read_text() == "precious" and (out / "r001" / "cook.json").exists()


# ---------------------------------------------------------------- the other commands
@pytest.mark.parametrize("name", [name for name in LINKS if name not in ("cook.json",)])
def test_clean_follows_no_link(out, name, capsys):
    """`mpm-nodes clean --yes --old-revisions` in a folder with a link at each level removes the link at most."""
    path = out / "r001" / name
    folder = path.is_dir()
    shutil.rmtree(path, ignore_errors=True) if folder else path.unlink(missing_ok=True)
    path.symlink_to(out.parent / ("victims" if folder else "victim.txt"), target_is_directory=folder)
    before = outside(out)
    code = cli.main(["clean", str(out), "--yes", "--keep-every", "0"])
    assert code in (0, 5) and outside(out) == before and "defect" not in capsys.readouterr().err
    execute(shot(), out=out, frames=(1, 1))
    assert cli.main(["clean", str(out), "--yes", "--old-revisions"]) in (0, 5)
    assert outside(out) == before


@pytest.mark.parametrize(
    "name", ["preview", "preview/frame.0001.splat.png", "preview/contact_sheet.splat.png", "preview/.tmp-frame.0001.splat.png"]
)
def test_render_writes_through_no_link(tmp_path, name, capsys):
    """Pictures beside a cache replace a link of their name; a folder for them that is a link is refused."""
    pytest.importorskip("pxr")
    graph = Graph(start=1, end=1, cell_size=0.1)
    body = graph.add("emit_box", "body", size=(0.2, 0.2, 0.2), material=graph.add("material_neo_hookean", "stuff"))
    graph.add("write_cache", "cache", name="cache", particles=body["particles"])
    execute(graph, out=tmp_path / "out")
    (tmp_path / "victims").mkdir()
    (tmp_path / "victims" / "frame.0001.splat.png").write_text("precious")
    (tmp_path / "victim.txt").write_text("precious")
    path = tmp_path / "out" / "r001" / name
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(tmp_path / ("victims" if name == "preview" else "victim.txt"))
    before = outside(tmp_path / "out")
    code = cli.main(["render", str(tmp_path / "out"), "--engine", "splat"])
    assert code == (5 if name == "preview" else 0), capsys.readouterr().err
    assert outside(tmp_path / "out") == before
    if code:
        assert "preview is a link; remove it" in capsys.readouterr().err


def test_temporary_files_behind_a_link_are_not_found(out):
    """The search for what a dead cook left does not leave the folder."""
    (out / "r001" / "more").symlink_to(out.parent / "victims", target_is_directory=True)
    assert temporary_files(out / "r001") == []
