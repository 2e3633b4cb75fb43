"""Checks, cooks and frames through the server: the command line's own answers."""

from __future__ import annotations

import argparse
import json
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from editor_page import GRAPH, Page

from mpm_nodes.commands import edit
from mpm_nodes.editor import server as servers
from mpm_nodes.editor.quantised import even_order


def test_a_text_that_is_not_saved_is_checked_as_validate_does(page, project):
    """Problems with their place and cure in the page's words, and what a cook needs; nothing is written."""
    before = sorted(project.iterdir())
    sound = page.call("check", path="shot.json", text=json.dumps(GRAPH))
    assert sound["problems"] == [] and sound["needs"]["particles"] > 0 and "particles" in sound["said"]
    bad = json.loads(json.dumps(GRAPH))
    bad["nodes"]["ball"]["knobs"]["radius"] = -1
    del bad["nodes"]["ball"]["inputs"]
    found = page.call("check", path="shot.json", text=json.dumps(bad))["problems"]
    assert {problem["place"] for problem in found} == {"ball.radius", "ball.material"}
    assert sorted(project.iterdir()) == before


def test_the_specification_is_the_command_lines(page):
    """The page reads what every host reads."""
    from mpm_nodes.hosts.spec import host_spec

    assert page.call("spec") == json.loads(json.dumps(host_spec()))


def test_files_of_older_versions_are_brought_up_to_date(page, project):
    """By the command line; the file itself stays as it is until it is saved."""
    old = json.loads(json.dumps(GRAPH))
    old["nodes"]["fall"]["version"] = 1
    (project / "shot.json").write_text(json.dumps(old))
    newest = {record["id"]: record["version"] for record in page.call("spec")["nodes"]}
    document = page.call("upgrade", path="shot.json")["document"]
    assert {entry["type"]: entry["version"] for entry in document["nodes"].values()}["solve"] == newest["solve"] > 1
    assert json.loads((project / "shot.json").read_text()) == old


def followed(page, until: str) -> list[dict]:
    """Return the events of a cook up to one of a kind."""
    found, number, end = [], 0, time.monotonic() + 240
    while time.monotonic() < end:
        told = page.call("events", cook=number, since=len(found), wait=True)
        if told["cook"] != number:
            found, number = [], told["cook"]
        found += told["events"]
        if any(event["event"] == until for event in found):
            return found
    raise AssertionError(found[-3:])


def unpacked(data: bytes) -> tuple[dict, np.ndarray]:
    """Return the head of a frame, and the rows of its first cloud."""
    (length,) = struct.unpack_from("<I", data)
    head = json.loads(data[4 : 4 + length])
    rows = np.frombuffer(data, "<u2", 4 * head["clouds"][0]["shown"], 4 + length).reshape(-1, 4)
    return head, rows


def test_a_cook_is_the_command_lines_and_its_frames_can_be_looked_at(page, project):
    """Events as they are printed; particles at their places to half a step of 16 bits of the box, and their values."""
    page.call("cook", path="shot.json")
    status, body = page.send("POST", "/api/cook", body={"path": "shot.json"})
    assert status == 409 and b"is cooking" in body
    events = followed(page, "ended")
    assert [event["n"] for event in events] == list(range(len(events)))
    assert [event["frame"] for event in events if event["event"] == "frame_done"] == [1, 2, 3]
    assert events[-1]["name"] == "done"
    assert page.call("revisions", path="shot.json") == {"revisions": ["r001"]}
    assert page.call("cooked", path="shot.json", revision="r001")["graph"]["nodes"]["ball"]["knobs"]["radius"] == 0.2
    assert sum(event["seconds"] for event in events if event["event"] == "stages") > 0.0

    from mpm_nodes.preview.pictures import find_root
    from mpm_nodes.preview.scene import open_scene

    scene = open_scene(find_root(project / "shot_cache" / "r001"))
    cloud = scene.shapes(3).clouds[0]
    head, rows = unpacked(page.call("frame", path="shot.json", revision="r001", attribute="velocity"))
    assert (head["frame"], head["first"], head["last"], head["unit"]) == (3, 1, 3, "m/s")
    low, high = np.array(head["clouds"][0]["box"])
    step, order = (high - low) / 65535, even_order(len(rows), len(rows))[0]
    assert (np.abs(low + rows[:, :3] * step - cloud.positions[order]) <= 0.5001 * step + 1e-7).all()
    speeds = scene.numbers(cloud.path, "velocity", 3)
    least, most = head["values"]
    assert (least, most) == (speeds.min(), speeds.max()) and most > least
    assert np.abs(least + rows[:, 3] * (most - least) / 65535 - speeds[order]).max() <= 0.5001 * (most - least) / 65535
    assert "velocity" in head["attributes"] and "position" not in head["attributes"]

    few, _ = unpacked(page.call("frame", path="shot.json", revision="r001", frame=2, most=50))
    assert few["frame"] == 2 and 25 <= few["clouds"][0]["shown"] <= 50 and few["clouds"][0]["count"] == len(cloud.positions)
    for damaged in project.glob("shot_cache/r001/*/*.usdc"):
        damaged.write_bytes(b"PXR-USDC" + bytes(200))
    for _ in range(2):  # a damaged frame is told, and the server goes on
        status, body = page.send("POST", "/api/frame", body={"path": "shot.json", "revision": "r001", "frame": 1})
        assert status == 422 and json.loads(body)["error"]


def test_a_cook_that_is_stopped_ends_and_goes_on(page, project):
    """Whole frames stay; `resume` cooks the rest."""
    long = json.loads(json.dumps(GRAPH))
    long["settings"]["end"] = 200
    (project / "shot.json").write_text(json.dumps(long))
    page.call("cook", path="shot.json")
    followed(page, "frame_done")
    page.call("stop")
    events = followed(page, "ended")
    assert events[-1]["name"] == "cancelled"
    done = [event["frame"] for event in events if event["event"] == "frame_done"]
    long["settings"]["end"] = done[-1] + 1
    (project / "shot.json").write_text(json.dumps(long))
    page.call("cook", path="shot.json", mode="resume")
    again = followed(page, "ended")
    assert [event["frame"] for event in again if event["event"] == "frame_done"] == [done[-1] + 1]
    assert page.call("revisions", path="shot.json") == {"revisions": ["r001"]}


def test_a_node_is_cooked_with_what_it_needs_alone(page, project):
    """Its particles are a revision like any other; the rest of the graph need not be whole."""
    half = json.loads(json.dumps(GRAPH))
    del half["nodes"]["fall"]["inputs"]
    (project / "shot.json").write_text(json.dumps(half))
    page.call("cook", path="shot.json", to="ball")
    assert followed(page, "ended")[-1]["name"] == "done"
    assert page.call("cooked", path="shot.json", revision="r001")["graph"]["nodes"].keys() == {"jelly", "ball", "write_cache_1"}
    head, _ = unpacked(page.call("frame", path="shot.json", revision="r001"))
    assert head["clouds"][0]["count"] > 100


def test_a_cook_goes_on_from_a_frame_in_place_of_another(page, project):
    """A knob that changes while it cooks: the one that runs is stopped, and a revision takes its frames; its curves can be read.

    A branch of that branch, at a frame that it took over, is one of the first cook.
    """
    long = json.loads(json.dumps(GRAPH))
    long["settings"]["end"] = 400
    (project / "shot.json").write_text(json.dumps(long))
    page.call("cook", path="shot.json")
    while not [event for event in followed(page, "frame_done") if event.get("frame") == 4 and event["event"] == "frame_done"]:
        time.sleep(0.1)
    assert page.call("events", cook=0, since=0)["memory"] > 1e7
    long["settings"]["end"] = 5
    (project / "shot.json").write_text(json.dumps(long))
    for of, frame, begun in (("r001", 4, "r001"), ("r002", 3, "r001"), ("", 5, "r003")):
        page.call("cook", path="shot.json", mode="again", of=of, frame=frame, replace=True)
        assert followed(page, "ended")[-1]["name"] == "done"
        newest = page.call("revisions", path="shot.json")["revisions"][-1]
        taken = json.loads((project / "shot_cache" / newest / "cook.json").read_text())["taken"]
        assert (taken["from"], taken["last"]) == (begun, frame - 1)
    panels = {panel["name"]: panel for panel in page.call("curves", path="shot.json", revision="r003", first=3)["panels"]}
    assert panels["Mass"]["lines"][0]["frames"] == [3, 4, 5] and panels["Mass"]["unit"] == "kg"
    assert "wave" in panels["Shortest time step"]["notes"]["4"]
    assert page.send("POST", "/api/curves", body={"path": "shot.json", "revision": "r009"})[0] == 422
    assert page.send("POST", "/api/cook", body={"path": "shot.json", "mode": "again", "frame": 2, "of": "../r001"})[0] == 422
    (project / "shot_cache" / "r004" / "cook.json").unlink()
    status, body = page.send("POST", "/api/curves", body={"path": "shot.json", "revision": "r004"})
    assert status == 422 and b"cook.json" in body


def test_an_invalid_graph_ends_with_what_the_command_line_says(page, project):
    """In the words of the page: no argument of a command line is in them."""
    bad = json.loads(json.dumps(GRAPH))
    bad["nodes"]["ball"]["knobs"]["radius"] = -1
    (project / "shot.json").write_text(json.dumps(bad))
    page.call("cook", path="shot.json")
    end = followed(page, "ended")[-1]
    assert end["name"] == "invalid" and "ball.radius" in end["said"] and "--" not in end["said"]
    assert "stderr" not in end["message"]


@pytest.mark.parametrize("ending", ["SIGKILL", "SIGTERM", "SIGHUP"])
def test_no_cook_outlives_the_server(project, ending):
    """However it ends: with its terminal, on request, or killed."""
    long = json.loads(json.dumps(GRAPH))
    long["settings"]["end"] = 5000
    (project / "shot.json").write_text(json.dumps(long))
    environ = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    code = f"import test_cooking; test_cooking.serve_and_cook({str(project)!r})"
    server = subprocess.Popen([sys.executable, "-c", code], env=environ, cwd=Path(__file__).parents[2])
    cache = project / "shot_cache" / "r001"
    end = time.monotonic() + 120
    while not list(cache.rglob("*.commit.json")):
        assert time.monotonic() < end and server.poll() is None
        time.sleep(0.2)
    server.send_signal(getattr(signal, ending))
    server.wait(20)
    time.sleep(1.0)
    before = sorted(path.name for path in cache.rglob("*.commit.json"))
    time.sleep(1.5)
    assert sorted(path.name for path in cache.rglob("*.commit.json")) == before


def serve_and_cook(folder: str) -> None:
    """Serve a folder as the command does, and start a cook, in a process of its own."""
    begun = servers.serve_in_background

    def serve(server: servers.EditorServer) -> threading.Thread:
        threading.Thread(target=lambda: Page(server).call("cook", path="shot.json"), daemon=True).start()
        return begun(server)

    servers.serve_in_background = serve
    edit.run(argparse.Namespace(graph=None, root=Path(folder), port=0, listen="127.0.0.1", token="", no_browser=True))
