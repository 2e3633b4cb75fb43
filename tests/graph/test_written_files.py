"""Files that a user names are written by one function, which refuses links, folders and files of others."""

from __future__ import annotations

import ast
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

import mpm_nodes
from mpm_nodes import cli
from mpm_nodes.data import MpmNodesError, OutputError
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.files.folder import holds_json, replace_named
from mpm_nodes.graph.revisions.clean import removable

PRECIOUS = b'{"format": "a file of somebody else", "nodes": []}'
ROOT = Path(mpm_nodes.__file__).parent.parent


def _is_ours(old: bytes) -> bool:
    return old.startswith(b"ours")


# ---------------------------------------------------------------- the function
def test_a_file_of_ours_is_replaced_and_keeps_its_permissions(tmp_path):
    """A new file gets the system's permissions, one that only its owner may read stays so."""
    path = tmp_path / "a.txt"
    replace_named(path, b"ours 1", _is_ours)
    path.chmod(0o600)
    replace_named(path, b"ours 2", _is_ours)
    assert path.read_bytes() == b"ours 2" and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("kind", ["link", "dangling link", "folder", "pipe", "foreign"])
def test_what_is_not_ours_is_refused(tmp_path, kind):
    """The message names it; neither it nor what it leads to is changed."""
    path, victim = tmp_path / "a.txt", tmp_path / "victim.txt"
    victim.write_bytes(b"ours, but behind a link")
    if kind.endswith("link"):
        path.symlink_to(victim if kind == "link" else tmp_path / "nothing")
    elif kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)  # nobody reads it: opening it would wait without end
    else:
        path.write_bytes(PRECIOUS)
    before = path.lstat()
    with pytest.raises(OutputError, match=r"a\.txt"):
        replace_named(path, b"ours", _is_ours)
    assert (path.lstat().st_ino, path.lstat().st_mode) == (before.st_ino, before.st_mode)
    assert victim.read_bytes() == b"ours, but behind a link" and not (tmp_path / "nothing").exists()


def test_devices_are_written_to(tmp_path):
    """Whoever names /dev/null keeps it."""
    replace_named("/dev/null", b"ours", _is_ours)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_json_of_a_kind_is_known():
    """Bytes that do not parse, or hold something of another shape, are not."""
    assert holds_json(b'{"a": 1}', lambda found: found["a"] == 1)
    for other in (b"", b"{", b"[]", b"3", b'{"b": 1}', b"[" * 100_000):
        assert not holds_json(other, lambda found: found["a"] == 1)


# ---------------------------------------------------------------- every writer
def _save(path: Path) -> None:
    Graph(start=1, end=1).save(path)


def _upgrade(path: Path) -> None:
    graph = Graph(start=1, end=1).save(path.parent / "from.json")
    _run("upgrade", str(graph), "--out", str(path))


def _run(*words: str) -> None:
    """Run a command; refusals are raised again."""
    code = cli.main([*words])
    if code:
        raise MpmNodesError(f"exit code {code}")


def _verify(path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mpm_nodes.verification.run", lambda *_, **__: [])
        _run("verify", "--json", str(path))


def _bench(path: Path) -> None:
    from mpm_nodes.bench.table import write

    write(path, [{"row": 1}])


def _movie(path: Path) -> None:
    from PIL import Image

    from mpm_nodes.preview.movie import write_movie

    images = []
    for number in range(2):
        images.append(path.parent / f"frame{number}.png")
        Image.new("RGB", (16, 16), (number, 0, 0)).save(images[-1])
    write_movie(images, path, 24.0)


def _flipbook(path: Path) -> None:
    from PIL import Image

    from mpm_nodes.preview.movie import write_flipbook

    Image.new("RGB", (16, 16)).save(path.parent / "frame.png")
    write_flipbook([path.parent / "frame.png"], ["1"], path, 24.0, "shot")


def _blender(path: Path) -> None:
    from mpm_nodes.hosts import blender

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blender, "extension_files", lambda spec: {"blender_manifest.toml": b""})
        blender.build(path.parent)


def _specs(path: Path) -> None:
    _run("host", "houdini", "--specs", str(path.parent))


def _package(path: Path) -> None:
    from mpm_nodes.hosts.houdini import package

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(package, "all_files", lambda spec, form: {"mpm_nodes.json": b"{}"})
        package.write({}, path.parent)


def _job(path: Path) -> None:
    from mpm_nodes.farm.submit import write_submission

    job = SimpleNamespace(folder=path.parent, wedges=())
    with pytest.MonkeyPatch.context() as patch:
        for name in ("template_of", "commands_of", "page_of"):
            patch.setattr(f"mpm_nodes.farm.submit.{name}", lambda job: "")
        write_submission(job)


WRITERS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "graph": ("g.json", _save),
    "upgrade": ("g.json", _upgrade),
    "verify": ("v.json", _verify),
    "bench": ("b.json", _bench),
    "webp": ("m.webp", _movie),
    "gif": ("m.gif", _movie),
    "png": ("m.png", _movie),
    "mp4": ("m.mp4", _movie),
    "flipbook": ("f.html", _flipbook),
    "blender": (f"mpm_nodes-{mpm_nodes.__version__}.zip", _blender),
    "specs": ("solve.json", _specs),
    "package": ("mpm_nodes.json", _package),
}
"""What writes files under names that users give or may have themselves."""


@pytest.mark.parametrize("writer", WRITERS)
def test_every_writer_replaces_its_own_file_only(tmp_path, writer, capsys):
    """Written twice it is there; a file of somebody else stays as it is, and so do a link and what it leads to."""
    if writer == "mp4":
        pytest.importorskip("av")
    name, write = WRITERS[writer]
    home = tmp_path / "home"
    home.mkdir()
    path, victim = home / name, tmp_path / "victim"
    write(path)
    first = path.read_bytes()
    write(path)
    assert path.is_file() and path.read_bytes()[:4] == first[:4]
    path.write_bytes(PRECIOUS)
    with pytest.raises(MpmNodesError):
        write(path)
    assert path.read_bytes() == PRECIOUS
    path.unlink()
    victim.write_bytes(first)
    path.symlink_to(victim)
    if writer == "package":  # known by its records, so that the link is replaced and not followed
        write(path)
    else:
        with pytest.raises(MpmNodesError):
            write(path)
    assert victim.read_bytes() == first


@pytest.mark.parametrize("name", ["g.json", "cook.json", "page.txt"])
def test_a_flipbook_is_a_page(tmp_path, name):
    """Other endings are refused before anything is drawn: a graph is not written over."""
    with pytest.raises(MpmNodesError, match=r"\.html"):
        _flipbook(tmp_path / name)
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("name", ["wedges", "wedges/000"])
def test_a_job_writes_through_no_link(tmp_path, name, capsys):
    """A folder for jobs that a stranger prepared: what its links lead to stays as it is."""
    victims = tmp_path / "victims"
    (victims / "000").mkdir(parents=True)
    for place in (victims, victims / "000"):
        (place / "graph.json").write_bytes(PRECIOUS)
    link = tmp_path / "job" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(victims if name == "wedges" else victims / "000", target_is_directory=True)
    graph = Graph(start=1, end=2, cell_size=0.1)
    graph.add("emit_box", "body", size=(0.2, 0.2, 0.2), material=graph.add("material_neo_hookean", "stuff"))
    graph.save(tmp_path / "g.json")
    assert cli.main(["farm", str(tmp_path / "g.json"), "-o", str(tmp_path / "job")]) == 5
    assert "is a link" in capsys.readouterr().err
    assert {path.read_bytes() for path in victims.rglob("*.json")} == {PRECIOUS}


def test_a_job_replaces_links_by_its_own_files(tmp_path):
    """The pages of a job are its own: a link that has such a name is replaced, and what it led to stays as it is."""
    victim = tmp_path / "victim"
    victim.write_bytes(PRECIOUS)
    (tmp_path / "job").mkdir()
    for name in ("template.json", "commands.txt", "README.md"):
        (tmp_path / "job" / name).symlink_to(victim)
    _job(tmp_path / "job" / "x")
    assert victim.read_bytes() == PRECIOUS and not (tmp_path / "job" / "README.md").is_symlink()


# ---------------------------------------------------------------- what is deleted
def test_old_revisions_leave_what_no_record_names(tmp_path):
    """A user's file in an old revision stays, in the folder that it is in; all that the cook made is gone."""
    from fake_nodes import shot

    from mpm_nodes.graph.cook.executor import execute

    for _ in range(2):
        execute(shot(), out=tmp_path, frames=(1, 2))
    old = tmp_path / "r001"
    (old / "preview").mkdir()
    mine = [old / "notes.txt", old / "preview" / "painting.png", old / "points" / "mine.bin"]
    for path in mine:
        path.write_bytes(PRECIOUS)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.txt").write_bytes(PRECIOUS)
    (old / "frames" / "link").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    for group in removable(tmp_path, old_revisions=True):
        for item in group:
            assert item.path != old or "3 files in it that are not the cook's stay" in item.why
            item.remove()
    assert sorted(path for path in old.rglob("*") if path.is_file()) == sorted(mine)
    assert (tmp_path / "elsewhere" / "a.txt").read_bytes() == PRECIOUS and (tmp_path / "r002" / "cook.json").is_file()


def test_clearing_kernels_deletes_kernels_only(tmp_path, monkeypatch, capsys):
    """Folders that only look like the cache, and other files in it, stay."""
    monkeypatch.setenv("MPM_NODES_CACHE", str(tmp_path))
    ours = tmp_path / f"kernels-{'a' * 20}"
    (ours / "loops").mkdir(parents=True)
    kernel, loop = ours / f"kernels.x.y-{'0' * 24}.kernel", ours / "loops" / f"law_{'b' * 16}.py"
    mine = [tmp_path / "kernels-of-corn" / "a.txt", ours / "notes.txt", tmp_path / "kernels-" / "x.kernel"]
    for path in (kernel, loop, *mine):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(PRECIOUS)
    (tmp_path / f"kernels-{'c' * 20}").symlink_to(tmp_path / "kernels-of-corn", target_is_directory=True)
    assert cli.main(["kernels", "clear"]) == 0
    assert not kernel.exists() and not loop.parent.exists() and all(path.read_bytes() == PRECIOUS for path in mine)


# ---------------------------------------------------------------- no other way
WRITING = {"write_text", "write_bytes", "rmtree", "copyfile", "copy2", "copytree", "hardlink_to", "symlink_to", "mkfifo"}
ALLOWED = {
    "mpm_nodes/graph/files/folder.py": "the functions themselves",
    "mpm_nodes/graph/cook/again.py": "copies into names that Folder has made",
    "mpm_nodes/graph/values/store.py": "a cache folder of ours, by temporary names",
    "mpm_nodes/terminal.py": "its own stdout",
    "mpm_nodes/farm/join.py": "a transaction's temporary names",
    "mpm_nodes/farm/process.py": "what Folder has opened",
    "mpm_nodes/nodes/export.py": "a transaction's temporary names",
    "mpm_nodes/kernels/compile/kernel_cache.py": "the cache of kernels, by temporary names",
    "mpm_nodes/kernels/composition/generated.py": "the cache of kernels, by temporary names",
    "mpm_nodes/exports/alembic.py": "a folder that is thrown away",
    "mpm_nodes/preview/cycles.py": "a folder that is thrown away",
    "mpm_nodes/preview/movie.py": "a folder that is thrown away",
    "usd_io/vdb_file.py": "a transaction's temporary names",
    "usd_io/vdb_reader.py": "a pipe between processes",
}
"""Files that write without `Folder`, and where they write."""


def _writes(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in ("open", "fdopen"):
        given = [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "mode")]
        return any(isinstance(each, ast.Constant) and set(str(each.value)) & set("wax+") for each in given)
    if name == "replace":
        return isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and call.func.value.id == "os"
    return name in WRITING and not (name in ("write_text", "write_bytes") and isinstance(call.func, ast.Name))


def test_nothing_is_written_another_way():
    """A sweep over our sources: who opens a file for writing, renames or removes trees by itself stands in the list above."""
    found = set()
    apart = ("blender_addon", "mpm_nodes_houdini")  # other programs
    for path in sorted([*(ROOT / "mpm_nodes").rglob("*.py"), *(ROOT / "usd_io").rglob("*.py")]):
        name = path.relative_to(ROOT).as_posix()
        if not any(each in name for each in apart):
            calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
            found |= {name for call in calls if _writes(call)}
    assert found == set(ALLOWED)


def test_a_stage_is_repaired_through_no_link(tmp_path):
    """A planted link beside a stage, under the name of a temporary file, leads nowhere; a user's file of that name stays."""
    pytest.importorskip("pxr")
    from usd_io.relink import relink

    stage, victim = tmp_path / "cache.usda", tmp_path / "victim"
    victim.write_bytes(PRECIOUS)
    header = "#usda 1.0\n(\n    customLayerData = {{\n{0}    }}\n    subLayers = [@./gone/a.usda@]\n)\n"
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "a.usda").write_text("#usda 1.0\n")
    stage.write_text(header.format("        dictionary mpm_nodes = {\n        }\n"))
    (tmp_path / "cache.relinked.usda").symlink_to(victim)
    (tmp_path / ".tmp-cache.usda").symlink_to(victim)
    assert relink(stage) == ["cache.usda: ./gone is ./here now"]
    assert victim.read_bytes() == PRECIOUS and (tmp_path / "cache.relinked.usda").is_symlink()
    stage.write_text(header.format(""))
    with pytest.raises(MpmNodesError, match="not a cache that mpm-nodes wrote"):
        relink(stage)
    assert json.dumps(stage.read_text()) == json.dumps(header.format(""))
