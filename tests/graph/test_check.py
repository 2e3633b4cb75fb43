"""A missing or damaged file costs its frame, not the cook; `mpm-nodes check` finds every one."""

from __future__ import annotations

import json

import pytest
from fake_nodes import REGISTRY, calls, content, shot

from mpm_nodes import cli
from mpm_nodes.data import OutputError
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.revisions.revision import Revision


@pytest.fixture
def whole(tmp_path):
    """Bytes of a finished cook of eight frames."""
    execute(shot(end=8), out=tmp_path / "out")
    return content(tmp_path / "out" / "r001")


NAMES = sorted(
    ["stage.txt"] + [f"points/points.000{n}.bin" for n in range(1, 9)] + [f"frames/000{n}.commit.json" for n in range(1, 8)]
)
HARM = {
    "gone": lambda path: path.unlink(),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-2]),
    "altered": lambda path: path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:]),
}


@pytest.mark.parametrize("how", HARM)
@pytest.mark.parametrize("name", NAMES)
def test_every_file_is_found_and_repaired_alone(tmp_path, whole, name, how, capsys):
    """Each file of a cook, missing, cut or altered: check names it, a deep resume cooks one frame, and every byte is as before."""
    folder = tmp_path / "out" / "r001"
    HARM[how](folder / name)
    assert cli.main(["check", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().out
    assert (name in said) if not name.startswith("frames/") else ("its record" in said)
    calls.clear()
    result = execute(shot(end=8), out=tmp_path / "out", resume=True, deep=True)
    assert len(result.cooked) == 1 and calls["write"] == 1
    assert content(folder) == whole
    assert cli.main(["check", str(folder)]) == 0 and "frames 1 to 8 are whole" in capsys.readouterr().out


def test_an_older_revision_is_repaired_itself(tmp_path, whole, monkeypatch, capsys):
    """`check OUT/r001 --repair GRAPH` cooks in r001, though there is a newer one of another graph; r002 stays as it is."""
    monkeypatch.setattr(registry, "default", lambda: REGISTRY)
    out, file = tmp_path / "out", tmp_path / "shot.json"
    shot(end=8).save(file)
    execute(shot(end=8, push=0.5), out=out)
    newer = content(out / "r002")
    (out / "r001" / "points" / "points.0003.bin").unlink()
    assert cli.main(["check", str(out / "r001"), "--repair", str(file)]) == 0
    assert "cooked again: 3\n" in capsys.readouterr().out
    assert content(out / "r001") == whole and content(out / "r002") == newer


def test_an_older_revision_is_resumed_by_name(tmp_path, monkeypatch, capsys):
    """Check prints the command that goes on with the folder that was checked, and it does; a name that is none is refused."""
    monkeypatch.setattr(registry, "default", lambda: REGISTRY)
    out, file = tmp_path / "out", tmp_path / "shot.json"
    shot(end=8).save(file)
    execute(shot(end=8), out=out)
    for name in ("frames/0007.commit.json", "frames/0008.commit.json"):
        (out / "r001" / name).unlink()
    execute(shot(end=8, push=0.5), out=out)
    cli.main(["check", str(out / "r001")])
    assert f"cook GRAPH --out {out} --resume --of r001" in capsys.readouterr().out
    assert cli.main(["cook", str(file), "--out", str(out), "--resume", "--of", "r001"]) == 0
    assert not (out / "r003").exists() and (out / "r001" / "frames" / "0008.commit.json").is_file()
    capsys.readouterr()
    assert cli.main(["cook", str(file), "--out", str(out), "--resume", "--of", "r009"]) == 5
    assert "holds no revision 'r009'; it has r001, r002" in capsys.readouterr().err


def test_several_frames_are_repaired_in_one_pass(tmp_path, whole):
    """Three frames lost at once: each is cooked once, the solve runs up to the last of them and no further."""
    folder = tmp_path / "out" / "r001"
    for number in (2, 3, 5):
        (folder / "points" / f"points.000{number}.bin").unlink()
    calls.clear()
    assert execute(shot(end=8), out=tmp_path / "out", resume=True).cooked == (2, 3, 5)
    assert content(folder) == whole and calls["write"] == 3 and calls["solve"] == 5


def test_a_checkpoint_near_a_lost_frame_is_where_the_solve_begins(tmp_path):
    """With checkpoints of every second frame, one frame is solved for one that is lost."""
    execute(shot(end=8), out=tmp_path / "out", keep_every=2)
    before = content(tmp_path / "out" / "r001")
    (tmp_path / "out" / "r001" / "points" / "points.0005.bin").unlink()
    calls.clear()
    assert execute(shot(end=8), out=tmp_path / "out", resume=True, keep_every=2).cooked == (5,)
    assert content(tmp_path / "out" / "r001") == before and calls["solve"] == 1


def test_what_does_not_come_out_as_it_was_is_cooked_with_all_after_it(tmp_path, whole, monkeypatch):
    """When the bytes differ (another machine, another library), the cook goes back to where it is whole."""
    import fake_nodes

    folder = tmp_path / "out" / "r001"
    (folder / "points" / "points.0003.bin").unlink()
    from mpm_nodes.graph.cook.repair import _Repairing

    monkeypatch.setattr(_Repairing, "restore", lambda self, wanted, **facts: False)
    calls.clear()
    assert execute(shot(end=8), out=tmp_path / "out", resume=True).cooked == (1, 2, 3, 4, 5, 6, 7, 8)
    assert content(folder) == whole
    assert fake_nodes.calls["write"] == 9


def test_a_cook_that_is_going_on_is_not_checked(tmp_path, whole):
    """Files that are being written are not damage."""
    revision = Revision.resume(tmp_path / "out", {})
    with pytest.raises(OutputError, match="another cook"):
        from mpm_nodes.commands.check import examine

        examine(tmp_path / "out" / "r001")
    revision.close()


def test_frames_that_are_not_cooked_yet_are_told(tmp_path, capsys):
    """A cook that was stopped is whole as far as it came; JSON says the same."""
    execute(shot(end=8), out=tmp_path, frames=(1, 8))
    for number in (6, 7, 8):
        (tmp_path / "r001" / "frames" / f"000{number}.commit.json").unlink()
    assert cli.main(["check", str(tmp_path)]) == 1  # stage.txt names frame 8
    assert "frames 6 to 8 are not cooked yet" in capsys.readouterr().out
    assert cli.main(["check", str(tmp_path), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["frames"] == [1, 5] and found["not_cooked"] == [6, 8] and found["faults"][0]["name"] == "stage.txt"


def test_a_real_cache_is_repaired_from_its_graph_file(tmp_path, capsys):
    """USD layers, the root stage and a record of a solved cook: `check --repair GRAPH` brings back the same bytes."""
    pytest.importorskip("pxr")
    graph = Graph(registry=registry.load(path="", entry_points=False), start=1, end=4, cell_size=0.1)
    body = graph.add("emit_box", "body", size=(0.2, 0.2, 0.2), material=graph.add("material_neo_hookean", "stuff"))
    fall = graph.add("solve", "fall", sources=[body], time_scale=0.05)
    graph.add("write_cache", "cache", name="cache", particles=fall["particles"])
    file = graph.save(tmp_path / "shot.json")
    for _ in range(2):  # the first one is damaged and named
        execute(graph, out=tmp_path / "out")
    folder = tmp_path / "out" / "r001"
    before = content(folder)
    for name in ("cache.usda", "cache/cache.manifest.usda", "cache/cache.0002.usdc", "frames/0003.commit.json"):
        (folder / name).unlink()
    assert cli.main(["check", str(folder)]) == 1
    assert "next: mpm-nodes check" in capsys.readouterr().out
    assert cli.main(["check", str(folder), "--repair", str(file)]) == 0
    assert "cooked again: 2, 3, 4" in capsys.readouterr().out and content(folder) == before


def test_the_revision_that_was_named_is_repaired_and_no_newer_one(tmp_path):
    """Of two cooks the older one is damaged: it gets its file back, the newer one and the root stay as they were."""
    graph = shot(end=3)
    for _ in range(2):
        execute(graph, out=tmp_path / "out")
    older, newer = (tmp_path / "out" / name for name in ("r001", "r002"))
    before, other = content(older), content(newer)
    (older / "points" / "points.0002.bin").unlink()
    execute(graph, out=tmp_path / "out", resume=True, of="r001", deep=True, frames=(1, 3))
    assert content(older) == before and content(newer) == other
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["r001", "r002"]
