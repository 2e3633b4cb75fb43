"""What the assets do beside Houdini's interface: cooks that do not block, points of a cache, recipes."""

from __future__ import annotations

import json
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from test_houdini_cook import graph_of, program, small_shot

PACED = """
import json, os, pathlib
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1]) / "r001"
out.mkdir(parents=True)
def say(**event):
    print(json.dumps(event), flush=True)
say(event="plan", frames=[1, 3], out=str(out), done=0)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
for frame in (1, 2, 3):
    say(event="substep", frame=frame, substep=4, particles=280, dt=0.0005, limit="elastic wave")
    (out / "cache.usda").write_text("#usda 1.0")
    say(event="wrote", frame=frame, path=str(out / "cache.usda"))
    say(event="frame_done", frame=frame, particles=280, seconds_left=3 - frame)
    gate = out / f"go{frame}"
    while not gate.exists():
        time.sleep(0.01)
"""
"""A program whose cook waits after each frame until a file appears."""


def until(houdini, met, seconds=60.0):
    """Let the window's loop go round until something holds."""
    end = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < end, houdini.shown[-3:]
        houdini.turn()
        time.sleep(0.01)


@pytest.fixture
def window(houdini, tmp_path):
    """A shot in a Houdini with windows, whose program waits after every frame."""
    cook = small_shot(houdini, end=3)
    cook.parm("mpm_program").set(program(tmp_path, PACED))
    houdini.add_ui(houdini.module)
    return cook


def test_the_button_returns_and_frames_appear_while_the_rest_cooks(houdini, window, tmp_path, monkeypatch):
    """The importer is there after the first frame, is told to read again after the second, and keeps the artist's display flag."""
    import mpm_nodes_houdini.cooking as cooking

    monkeypatch.setattr(cooking, "SHOW_EVERY", 0.0)
    refreshed = []
    monkeypatch.setattr(cooking, "refresh", refreshed.append)
    window.parm("mpm_cook").pressButton()
    out = tmp_path / "mpm" / "cook" / "r001"
    assert len(houdini.callbacks) == 1 and houdini.work.node("cook_cache") is None and houdini.progress == []
    until(houdini, lambda: houdini.work.node("cook_cache") is not None)
    assert refreshed == [] and not (out / "go1").exists(), "the cook waits after its first frame"
    assert any("held by elastic wave" in text and "280 particles" in text for text in houdini.shown)
    window.parm("mpm_cook").pressButton()
    assert "is cooking already" in houdini.shown[-1]
    (out / "go1").touch()
    until(houdini, lambda: refreshed)
    for number in (2, 3):
        (out / f"go{number}").touch()
    until(houdini, lambda: not houdini.callbacks)
    assert "cooked into" in houdini.shown[-1] and cooking.RUNNING == {}


def test_cancel_stops_after_the_substep_and_a_deleted_node_stops_its_cook(houdini, window):
    """Both end the program, take the callback away, and leave no window with a trouble behind."""
    import mpm_nodes_houdini.cooking as cooking

    window.parm("mpm_cancel").pressButton()
    assert "is not cooking" in houdini.shown[-1]
    window.parm("mpm_cook").pressButton()
    until(houdini, lambda: houdini.work.node("cook_cache") is not None)
    job = cooking.RUNNING[window.sessionId()]
    window.parm("mpm_cancel").pressButton()
    until(houdini, lambda: not houdini.callbacks)
    assert job.running.child.returncode == 3 and "stopped. Whole frames are kept" in houdini.shown[-1]


def test_a_cook_that_fails_beside_the_interface_says_so_on_its_node(houdini, window, tmp_path):
    """The window with the trouble comes when the program has ended, and the node keeps it as a warning."""
    window.parm("mpm_program").set(program(tmp_path, "print('dt is too long', file=sys.stderr)\nsys.exit(4)"))
    window.parm("mpm_cook").pressButton()
    until(houdini, lambda: not houdini.callbacks)
    assert "dt is too long" in houdini.shown[-1] and "The solve left the stable range" in window.warnings()[0]


def test_points_of_a_cache_have_houdinis_attributes(houdini, tmp_path):
    """P, v, id and pscale are the stage's at the node's frame; primvars come along under their names; a bad stage is explained."""
    from pxr import Sdf, Usd, UsdGeom, Vt

    stage = Usd.Stage.CreateNew(str(tmp_path / "cache.usda"))
    points = UsdGeom.Points.Define(stage, "/cache/particles")
    for frame in (1, 2):
        points.GetPointsAttr().Set(Vt.Vec3fArray([(frame, 0, 0), (0, frame, 1)]), frame)
        points.GetVelocitiesAttr().Set(Vt.Vec3fArray([(0, -frame, 0), (0, 0, 0)]), frame)
    points.GetIdsAttr().Set(Vt.Int64Array([7, 9]))
    points.GetWidthsAttr().Set(Vt.FloatArray([0.5, 0.25]))
    UsdGeom.PrimvarsAPI(points).CreatePrimvar("temperature", Sdf.ValueTypeNames.FloatArray, "vertex").Set(Vt.FloatArray([300, 400]))
    UsdGeom.PrimvarsAPI(points).CreatePrimvar("displayColor", Sdf.ValueTypeNames.Color3fArray, "constant").Set([(1, 0, 0)])
    stage.Save()
    node = houdini.work.createNode("mpm_nodes::cached_points::1.0", "points")
    node.parm("mpm_stage").set(str(tmp_path / "cache.usda"))
    houdini.current_frame = 2.0
    got = node.geometry()
    assert got._points == [(2.0, 0.0, 0.0), (0.0, 2.0, 1.0)]
    assert {name: values for name, (_, values) in got._numbers.items()} == {
        "v": [0.0, -2.0, 0.0, 0.0, 0.0, 0.0],
        "id": [7, 9],
        "pscale": [0.25, 0.125],
        "temperature": [300.0, 400.0],
        "Cd": [1.0, 0.0, 0.0, 1.0, 0.0, 0.0],
    }
    node.parm("mpm_prim").set("/nothing")
    with pytest.raises(sys.modules["hou"].OperationFailed):
        node.cook(force=True)
    assert "holds no points at /nothing" in node.errors()[0]


def test_packed_points_of_a_cache_are_read(houdini, tmp_path):
    """Whole steps become positions and velocities; ids and widths are as they are written."""
    from mpm_nodes.data import Particles
    from usd_io.stage import CacheNames, FrameContent, frame_layer

    columns = {
        "position": np.array([[0.5, 1.0, -2.0], [0.0, 0.25, 3.0]]),
        "velocity": np.array([[0.0, -3.0, 0.0], [0.75, 0.0, 1.5]]),
    }
    cloud = Particles({**columns, "id": np.array([7, 9])}, (), 0.5)
    layer = frame_layer(CacheNames("cache"), 2, 24.0, FrameContent(cloud, attributes=("velocity", "id"), precision=1.0 / 256.0))
    layer.Export(str(tmp_path / "cache.usdc"))
    node = houdini.work.createNode("mpm_nodes::cached_points::1.0", "points")
    node.parm("mpm_stage").set(str(tmp_path / "cache.usdc"))
    houdini.current_frame = 2.0
    got = node.geometry()
    assert np.array_equal(got._points, columns["position"])
    numbers = {name: values for name, (_, values) in got._numbers.items()}
    assert np.allclose(np.reshape(numbers["v"], (2, 3)), columns["velocity"], atol=0.1) and numbers["id"] == [7, 9]
    assert numbers["pscale"] == [0.25, 0.25]


RECIPES = (
    *("snow", "foam", "cream", "cheese", "toothpaste", "honey", "jelly", "wax", "chocolate", "pinned", "mud"),
    *("sand", "wet_sand", "dough", "slime", "viscoelastic"),
)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_wired_up_and_valid(houdini, name):
    """From nothing, and from a source and two colliders: the nodes that a recipe makes give a graph that the program takes."""
    import mpm_nodes_houdini

    source, *others = (houdini.work.createNode("box", f"part{number}") for number in range(3))
    pane = SimpleNamespace(pwd=lambda: houdini.work)
    for chosen, colliders in (([], 0), ([source, *others], 2)):
        houdini.selected = chosen
        cook = mpm_nodes_houdini.configure({"pane": pane}, name)
        graph = graph_of(cook)
        kinds = [entry["type"] for entry in graph["nodes"].values()]
        assert kinds.count("collide_usd") == colliders and kinds.count("emit_mesh") == 1 and "write_cache" in kinds
        body = next(entry for entry in graph["nodes"].values() if entry["type"] == "emit_mesh")
        assert body["knobs"]["path"].startswith("inputs/") and graph["settings"]["cell_size"] == 0.0644
        solve = next(entry for entry in graph["nodes"].values() if entry["type"] == "solve")
        assert len(solve["inputs"]["colliders"]) == 1 + colliders
        cook.parm("mpm_check").pressButton()
        assert cook.warnings() == () and cook.errors() == ()


def test_recipes_are_made_where_there_is_no_network_of_sops(houdini):
    """From the object level a recipe makes a Geometry object of its own; 30,000 particles fill the source's box."""
    import mpm_nodes_houdini

    cook = mpm_nodes_houdini.configure({"pane": SimpleNamespace(pwd=lambda: houdini.roots["obj"])}, "snow")
    assert cook.parent().name() == "mpm_snow" and cook.parent().node("matter") is not None
    settings = json.loads(json.dumps(graph_of(cook)["settings"]))
    assert np.isclose(8.0 / settings["cell_size"] ** 3, 30000, rtol=0.01)
