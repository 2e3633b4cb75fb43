"""A shot whose look alone changed is not solved again, and gives the bytes of a whole cook."""

from __future__ import annotations

import json
import os
import shutil

import pytest
from fake_nodes import calls, content, shot

from mpm_nodes import cli
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.revisions.clean import removable


def looking(scale: float = 3.0, **solve):
    """Return the shot with another look: the solve's cloud is scaled before it is written."""
    graph = shot(**solve)
    graph.nodes["cache"].connect("cloud", graph.add("fake_join", "look", clouds=[graph["sim"]["cloud"]], scale=scale))
    return graph


def cooked(graph, out, **options) -> tuple[int, dict[str, bytes]]:
    """Cook, keeping solves; return how many frames were solved, and the files of the newest revision but its records."""
    calls.clear()
    result = execute(graph, out=out, keep_solves=True, **options)
    files = {name: data for name, data in content(result.revision_folder).items() if name.startswith("points")}
    return calls["solve"], files


def test_another_look_solves_nothing_again(tmp_path):
    """The frames of the solve are taken, and the files are those of a cook from nothing."""
    assert cooked(shot(), tmp_path / "a")[0] == 6
    solved, files = cooked(looking(), tmp_path / "a")
    whole = cooked(looking(), tmp_path / "b")
    assert solved == 0 and whole[0] == 6 and files == whole[1] and len(files) == 6


def test_another_solve_is_solved(tmp_path):
    """And what the older one gave goes, once a cook that does not use it is done."""
    cooked(shot(), tmp_path)
    before = {path.name for path in (tmp_path / "solved").iterdir()}
    assert cooked(shot(push=0.5), tmp_path)[0] == 6
    after = {path.name for path in (tmp_path / "solved").iterdir()}
    assert len(before) == len(after) == 6 and not before & after
    assert cooked(shot(push=0.5, end=8), tmp_path)[0] == 8  # its state is not kept: frames beyond are solved from the first


def test_a_damaged_or_foreign_file_is_solved_again(tmp_path):
    """Other bytes, none, and a link to a file elsewhere: nothing outside is touched."""
    cooked(shot(), tmp_path / "out")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"mine")
    for name, harm in enumerate((lambda path: path.write_bytes(b"no archive"), lambda path: path.write_bytes(b""))):
        path = sorted((tmp_path / "out" / "solved").iterdir())[name]
        harm(path)
        solved, files = cooked(shot(), tmp_path / "out")
        assert solved > 0 and files == cooked(shot(), tmp_path / f"whole{name}")[1]
    shutil.rmtree(tmp_path / "out" / "solved")
    (tmp_path / "out" / "solved").symlink_to(tmp_path / "other", target_is_directory=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "note.value").write_bytes(b"mine")
    cooked(shot(), tmp_path / "out")
    assert (tmp_path / "other" / "note.value").read_bytes() == b"mine"


def test_a_file_under_the_name_of_another_frame_is_solved_again(tmp_path):
    """A copy is whole, and is not what its name says."""
    _, whole = cooked(shot(), tmp_path)
    first, *_, last = sorted((tmp_path / "solved").iterdir())
    shutil.copy(last, first)
    solved, files = cooked(shot(), tmp_path)
    assert solved > 0 and files == whole


def test_files_of_others_stay_and_what_a_dead_cook_left_goes(tmp_path):
    """In cooks, and in clean; a link to a file of ours elsewhere is not read, and its file not touched."""
    _, whole = cooked(shot(), tmp_path / "out")
    folder = tmp_path / "out" / "solved"
    kept = sorted(folder.iterdir())[0]
    (folder / "mine.value").write_bytes(b"mine")
    kept.with_name(f"{kept.name}.12345.tmp").write_bytes(b"half")
    elsewhere = tmp_path / "elsewhere.value"
    shutil.move(kept, elsewhere)
    kept.symlink_to(elsewhere)
    os.utime(elsewhere, (1, 1))
    solved, files = cooked(shot(), tmp_path / "out")
    assert solved > 0 and files == whole and elsewhere.stat().st_mtime == 1
    assert not list(folder.glob("*.tmp")) and (folder / "mine.value").exists()
    kept.with_name(f"{kept.name}.12345.tmp").write_bytes(b"half")
    for group in list(removable(tmp_path / "out")):
        for item in group:
            item.remove()
    assert [path.name for path in folder.iterdir()] == ["mine.value"]


def test_code_that_a_users_node_imports_and_the_environment_count(tmp_path, monkeypatch):
    """Lineage keys know the file of a node alone; of the compiler they know nothing."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "helper.py").write_text("PUSH = 1.0")
    monkeypatch.setenv("MPM_NODES_PATH", str(mine))
    cooked(shot(), tmp_path / "out")
    assert cooked(shot(), tmp_path / "out")[0] == 0
    (mine / "helper.py").write_text("PUSH = 20.0")
    assert cooked(shot(), tmp_path / "out")[0] == 6
    monkeypatch.setenv("NUMBA_OPT", "1")
    assert cooked(shot(), tmp_path / "out")[0] == 6


LAYER = """#usda 1.0
(
    defaultPrim = "points"
    metersPerUnit = 1
    upAxis = "Y"
)
"""


def test_a_file_that_leads_to_others_keeps_no_solve(tmp_path):
    """What it leads to may change, and the file with it not: points that another layer holds."""
    shot_of = {
        "format": "mpm_nodes.graph",
        "version": 1,
        "settings": {"cell_size": 0.1, "end": 2},
        "nodes": {
            "snow": {"type": "material_snow"},
            "points": {"type": "read_points", "knobs": {"path": "outer.usda"}, "inputs": {"material": "snow"}},
            "fall": {"type": "solve", "inputs": {"sources": ["points"]}},
            "cache": {"type": "export_points", "inputs": {"particles": "fall.particles"}},
        },
    }
    path = tmp_path / "shot.json"
    path.write_text(json.dumps(shot_of))

    def place(height: float) -> None:
        places = ", ".join(f"({0.05 * x}, {height + 0.05 * y}, 0)" for x in range(4) for y in range(4))
        widths = 'float[] widths = [0.05] (interpolation = "constant")'
        text = f'def Points "points" {{\n    point3f[] points = [{places}]\n    {widths}\n}}\n'
        (tmp_path / "inner.usda").write_text(LAYER + text)

    def files(out: str) -> dict[str, bytes]:
        assert cli.main(["cook", str(path), "--out", str(tmp_path / out)]) == 0
        newest = sorted((tmp_path / out).glob("r*"))[-1]
        return {name: data for name, data in content(newest).items() if "points" in name}

    (tmp_path / "outer.usda").write_text(LAYER + 'def Points "points" (references = @./inner.usda@) {}\n')
    place(1.0)
    before = files("out")
    place(2.0)
    after = files("out")
    assert after and after == files("new") and after != before


def test_a_cook_of_kept_solves_can_be_resumed(tmp_path):
    """Stopped in the middle, with no state at hand, it goes on to the same files."""
    cooked(shot(), tmp_path / "out")
    execute(looking(), frames=(1, 3), out=tmp_path / "out", keep_solves=True)
    _, files = cooked(looking(), tmp_path / "out", resume=True)
    assert files == cooked(looking(), tmp_path / "whole")[1]


def test_states_come_along_so_that_a_longer_shot_goes_on(tmp_path):
    """A cook that solved nothing has the checkpoints of the one before: its end is raised, and only the new frames are solved."""
    cooked(shot(), tmp_path / "out")
    cooked(looking(), tmp_path / "out")
    kept = [{path.name for path in (tmp_path / "out" / name / "checkpoints").iterdir()} for name in ("r001", "r002")]
    assert kept[0] == kept[1] != set()
    solved, files = cooked(looking(end=8), tmp_path / "out", resume=True)
    assert solved == 2 and files == cooked(looking(end=8), tmp_path / "whole")[1]


def test_clean_removes_them(tmp_path):
    """They are listed with their size, and go."""
    cooked(shot(), tmp_path)
    (item,) = [each for group in removable(tmp_path) for each in group if each.folder.name == "solved"]
    assert item.bytes > 0 and len(item.names) == 6
    item.remove()
    assert not (tmp_path / "solved").exists()


def test_the_command_line_keeps_them_and_python_does_not(tmp_path, capsys):
    """`mpm-nodes cook` takes them without being told, and says so."""
    graph = {
        "format": "mpm_nodes.graph",
        "version": 1,
        "settings": {"cell_size": 0.1, "end": 3},
        "nodes": {
            "snow": {"type": "material_snow"},
            "ball": {"type": "emit_box", "knobs": {"size": [0.2, 0.2, 0.2]}, "inputs": {"material": "snow"}},
            "fall": {"type": "solve", "inputs": {"sources": ["ball"]}},
            "cache": {"type": "write_cache", "inputs": {"particles": "fall.particles"}},
        },
    }
    path = tmp_path / "shot.json"
    path.write_text(json.dumps(graph))
    out = tmp_path / "out"
    assert cli.main(["cook", str(path), "--out", str(out), "--events", "jsonl"]) == 0
    first = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert any(event["event"] == "substep" for event in first)
    arguments = ["--set", 'cache.attributes=["velocity"]', "--events", "jsonl"]
    assert cli.main(["cook", str(path), "--out", str(out), *arguments]) == 0
    again = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert not any(event["event"] == "substep" for event in again)
    assert any("solved in an earlier cook" in event.get("message", "") for event in again)
    assert (out / "r002" / "cook.json").is_file() and (out / "solved").is_dir()


@pytest.mark.parametrize("option", [{"checked": True}, {"fuse": False}, {"part": "solve"}])
def test_other_kinds_of_cooks_keep_none(tmp_path, option):
    """Their numbers are others, or they keep their solves themselves."""
    execute(shot(), out=tmp_path, keep_solves=True, **option)
    assert not (tmp_path / "solved").exists()
