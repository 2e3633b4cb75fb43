"""What people stumble over in the page, in a real browser; what the server says where it once hung up."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from editor_page import GRAPH, WEB, node_needed

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")


@pytest.fixture
def found(page, project: Path) -> dict:
    """What `stumbles.mjs` found, with a graph that cannot be upgraded and one whose file is missing."""
    node_needed("playwright-core")
    if not Path(CHROMIUM).exists():
        pytest.skip(f"needs Chromium at {CHROMIUM}")
    nodes = GRAPH["nodes"]
    odd = nodes | {"alien": {"type": "no_such"}, "ball": nodes["ball"] | {"wat": 1}}
    mesh = {"type": "emit_mesh", "knobs": {"path": "gone.usda"}, "inputs": {"material": "jelly"}}
    (project / "odd.json").write_text(json.dumps(GRAPH | {"nodes": odd}))
    huge = {"radius": 1e300, "centre": [1e300, -1e22, 0]}
    keys = {"radius": {"keys": [[1]]}, "centre": {"keys": []}, "velocity": {"keys": [["x", [0, 0, 0]]]}}
    (project / "keys.json").write_text(json.dumps(GRAPH | {"nodes": nodes | {"ball": nodes["ball"] | {"knobs": keys}}}))
    (project / "huge.json").write_text(json.dumps(GRAPH | {"nodes": nodes | {"far": nodes["ball"] | {"knobs": huge}}}))
    (project / "missing.json").write_text(json.dumps(GRAPH | {"nodes": nodes | {"ball": mesh}}))
    command = ["node", str(Path(__file__).with_name("stumbles.mjs")), page.server.url, str(project), str(WEB)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.strip(), done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_nothing_that_was_done_is_lost_and_there_is_a_way_on(found):
    """Typed values, undo, moves by keyboard, removed files, names that cannot be, graphs that cannot be upgraded."""
    assert "error" not in found, found["error"]
    assert found["faults"] == []
    assert "token" in found["stranger"] and "Try again" in found["stranger"]
    assert found["ticks"] == []
    assert found["typed"] == 0.22 and found["still"]
    assert found["conflicts"] == 0 and found["undone"] == "0.23"
    assert "0,5 is not a number" in found["told"]
    assert (found["crumbs"], found["levels"], found["trapped"]) == (1, 1, 0)
    assert found["moved"]
    assert found["nagged"] == 0 and found["kept"] == 0.23
    assert found["removed"] == ["Write it again", "Later"]
    assert found["names"] == [0, 0]
    assert found["put"] < 3.0 and found["scale"] == "20 cm"
    assert "problem" in found["problems"] and "gone.usda" in found["missing"]
    assert found["keys"] and "defect" in found["defect"] and found["way_on"]
    assert found["messages"] == "1 message of the cook"


def test_a_file_that_is_missing_is_a_problem_of_its_node(page):
    """The check names the node; no trace of the program's own lines is shown."""
    mesh = {"type": "emit_mesh", "knobs": {"path": "gone.usda"}, "inputs": {"material": "jelly"}}
    graph = GRAPH | {"nodes": GRAPH["nodes"] | {"ball": mesh}}
    (problem,) = page.call("check", path="shot.json", text=json.dumps(graph))["problems"]
    assert problem["place"] == "ball" and "gone.usda" in problem["message"] and "Traceback" not in problem["message"]


def test_half_a_character_is_told_and_not_written(page, project):
    """A lone surrogate is JSON, but no text that a file can hold."""
    text = json.dumps(GRAPH | {"editor": {"note": "NOTE"}}).replace("NOTE", "\ud800")
    status, body = page.send("POST", "/api/save", body={"path": "half.json", "text": text, "digest": ""})
    assert status == 422 and "half a character" in json.loads(body)["error"]
    assert not (project / "half.json").exists()


def test_a_defect_has_an_answer(page, monkeypatch, capfd):
    """The page is told, and the terminal where."""
    monkeypatch.setattr(page.server.calls, "hello", lambda given: 1 // 0)
    status, body = page.send("POST", "/api/hello")
    assert status == 500 and "defect" in json.loads(body)["error"]
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_a_folder_that_may_not_be_read_hides_no_others(page, project, monkeypatch):
    """Graphs beside it are offered all the same."""
    (project / "closed").mkdir()
    scan = os.scandir

    def refused(place):
        if str(place).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(place))
        return scan(place)

    monkeypatch.setattr("mpm_nodes.editor.project.os.scandir", refused)
    assert page.call("hello")["graphs"] == ["shot.json"]
