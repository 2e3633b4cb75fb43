"""Wedges from Python, what they come to, and how others open it."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from walking_shot import cooked

from mpm_nodes import cli, wedge
from mpm_nodes.data import FrameContext, InputError, MpmNodesError
from mpm_nodes.farm import gather as gathering
from mpm_nodes.farm.gather import gather
from mpm_nodes.farm.job import load_job, make_job
from mpm_nodes.graph.declare import node
from mpm_nodes.graph.document.document import Graph, load_graph
from mpm_nodes.graph.reports.events import JobLines
from mpm_nodes.graph.reports.problems import GraphError
from usd_io.stage_reader import read_points


def test_wedges_from_python(walking, tmp_path):
    """Two wedges, each cooked once however often it is asked for; figures by wedge; one that fails is named."""
    found = wedge(walking(), {"walk.step": (1.0, 2.0)}, out=tmp_path / "job", jobs=2)
    assert [(row["walk.step"], row["state"], row["frames"]) for row in found.figures] == [(1.0, "done", 6), (2.0, "done", 6)]
    assert [len(list(folder.glob("r001/walk/*.txt"))) for folder in found.folders] == [6, 6]
    assert found.sheet is None and found.stage is None and found.table.is_file()
    before = len(cooked(tmp_path, "walk"))
    assert wedge(load_graph(walking()), {"walk.step": (1.0, 2.0)}, out=tmp_path / "job").outcome.kept == ["cook_000", "cook_001"]
    assert len(cooked(tmp_path, "walk")) == before == 12
    with pytest.raises(MpmNodesError, match=r"cook_001 failed; .*cook_001\.log says why") as caught:
        wedge(walking(), {"walk.fall_at": (0, 4)}, out=tmp_path / "falls", frames=(1, 4))
    assert caught.value.exit_code == 2
    states = [row["state"] for row in csv.DictReader(io.StringIO((tmp_path / "falls/wedges.csv").read_text()))]
    assert states == ["done", "unfinished"]  # the table is made of what is there


def test_nodes_of_a_script_are_refused_before_the_cook(tmp_path):
    """Other processes do not know them."""

    @node(category="Test", label="Here Only")
    def here_only(ctx: FrameContext, *, size: float = 1.0) -> float:
        """Be known to this process.

        Args:
            size: Nothing.
        """
        return size

    graph = Graph()
    graph.add(here_only, "here")
    with pytest.raises(GraphError, match="here_only"):
        wedge(graph, {"here.size": (1.0, 2.0)}, out=tmp_path / "job")
    assert not (tmp_path / "job").exists()


def test_links_in_a_job_are_refused(graph, tmp_path):
    """A job of somebody else leads nowhere else."""
    make_job(graph, tmp_path / "job")
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "job/wedges/000/cache"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="cache: is a link"):
        load_job(tmp_path / "job")
    link.unlink()
    (tmp_path / "job/logs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="logs: is a link"):
        load_job(tmp_path / "job")


def test_lines_for_runners_of_open_job_description(walking, tmp_path, capfd):
    """Percent and status of a cook in parts, a pace within a frame, a warning, a failure; nothing else on standard output."""
    assert cli.main(["cook", str(walking()), "--part", "solve", "--out", "solve", "--frames", "1-4", "--events", "openjd"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[:2] == ["openjd_progress: 25.0", "openjd_status: frame 1 of 4 is done"]
    assert lines[-1] == "openjd_progress: 100.0" and all(line.startswith("openjd_") for line in lines)
    arguments = ["--part", "frames", "--solved", "solve", "--out", "frames/3-4", "--frames", "3-4", "--events", "openjd"]
    assert cli.main(["cook", str(walking()), *arguments]) == 0
    assert "openjd_progress: 50.0\nopenjd_status: frame 3 of 4 is done" in capfd.readouterr().out
    assert cli.main(["join", "frames", "--frames", "3-4", "--out", "cache", "--events", "openjd"]) == 0
    assert "openjd_status: joined 2 of 2 frames" in capfd.readouterr().out
    assert cli.main(["join", "frames", "--frames", "1-4", "--out", "other"]) == 5
    assert cli.main(["cook", str(walking(fall_at=1)), "--out", "falls", "--events", "openjd"]) != 0
    assert "openjd_fail: walk, frame 1: fell over" in capfd.readouterr().out
    stream = io.StringIO()
    told = JobLines(stream)
    told({"event": "plan", "frames": [1, 4]})
    told({"event": "pace", "frame": 2, "share": 0.5, "substeps_expected": 10, "seconds_left": 1.0})
    told({"event": "warning", "where": "fall", "message": "too\nsoft"})
    assert stream.getvalue().splitlines() == ["openjd_progress: 37.5", "openjd_status: frame 2 of 4", "warning: fall: too\\nsoft"]


OPEN = """
import json, sys
import bpy
bpy.ops.wm.read_factory_settings(use_empty=True)
assert bpy.ops.wm.usd_import(filepath=sys.argv[1]) == {"FINISHED"}
scene, found = bpy.context.scene, []
for frame in (scene.frame_start, scene.frame_end):
    scene.frame_set(frame)
    cloud = bpy.data.objects["particles"].evaluated_get(bpy.context.evaluated_depsgraph_get()).data
    found.append([frame, max(point.co[1] for point in cloud.points)])
print("FOUND " + json.dumps(found))
"""


def shot(folder: Path) -> Graph:
    graph = Graph(cell_size=0.1, start=1, end=3, base=folder)
    jelly = graph.add("material_neo_hookean", "jelly", youngs_modulus=3e4)
    cube = graph.add("emit_box", "cube", material=jelly, size=(0.3, 0.3, 0.3), centre=(0.0, 0.3, 0.0))
    fall = graph.add("solve", "fall", sources=[cube])
    graph.add("write_cache", "cache", particles=fall["particles"])
    return graph


@pytest.mark.slow  # starts Blender
def test_the_stage_of_wedges_opens_in_blender(tmp_path):
    """Its own importer shows the first wedge, moving: the points of its cache in the first frame and in the last."""
    pytest.importorskip("bpy", reason="needs Blender's wheel (bpy)")
    job = make_job(shot(tmp_path), tmp_path / "job", {"jelly.density": [500.0, 1000.0]})
    for task in job.tasks():
        assert cli.main(task.command(str(job.folder))) == 0
    assert gather(job).stage == job.folder / "wedges.usda"
    done = subprocess.run(
        [sys.executable, "-c", OPEN, str(job.folder / "wedges.usda")], capture_output=True, text=True, timeout=600, check=False
    )
    told = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    assert told, done.stdout + done.stderr
    (first, high), (last, low) = json.loads(told[0].removeprefix("FOUND "))
    assert (first, last) == (1, 3)
    written = [read_points(job.folder / "wedges/000/cache/r001/cache.usda", frame)["position"] for frame in (1, 3)]
    assert [high, low] == pytest.approx([float(points[:, 1].max()) for points in written], abs=1e-6) and high - low > 0.03


def test_centre_and_speed_of_a_wedge_are_those_of_its_mass(monkeypatch, tmp_path):
    """Three kilograms at one end count three times as much as the one at the other."""
    points = {
        "position": np.array([[0.0, 1.0, 0.0], [4.0, 3.0, -8.0]]),
        "mass": np.array([3.0, 1.0]),
        "velocity": np.array([[0.0, 2.0, 0.0], [6.0, 0.0, 8.0]]),
    }
    monkeypatch.setattr("usd_io.stage_reader.read_points", lambda *_: points)
    found = gathering._matter(tmp_path / "shot.usda", 1)
    centre = {"centre_x": 1.0, "centre_y": 1.5, "centre_z": -2.0}
    assert found == {"low": 1.0, "high": 3.0, "width": 8.0, **centre, "speed": 4.0}


@pytest.mark.parametrize(("there", "state"), [(0, "not begun"), (5, "unfinished"), (6, "done")])
def test_a_wedge_is_done_with_its_last_frame(monkeypatch, tmp_path, there, state):
    """Six frames, 3 to 8, and not five."""
    monkeypatch.setattr(gathering, "_records", lambda _: iter([{"facts": {"substeps": 4, "dt_min": 0.1}}] * there))
    monkeypatch.setattr(gathering, "_stage", lambda *_: None)
    job = SimpleNamespace(folder=tmp_path, frames=(3, 8), start=3, chunk=None)
    found = gathering.figures_of(job, SimpleNamespace(folder="w0001", solve_bytes=0, frames_bytes=0))
    assert (found["state"], found["frames"], found["substeps"]) == (state, there, 4 * there)
