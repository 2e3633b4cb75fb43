"""From wired nodes to a cache on disk, in the stand-in for Houdini; the program that cooks is the real one."""

from __future__ import annotations

import json
import signal
import sys

import pytest


def make(houdini, type_name, name, **parms):
    """Make a node of ours and set single-valued parameters."""
    kind = next(kind for kind in houdini.types if kind.startswith(f"mpm_nodes::{type_name}::"))
    node = houdini.work.createNode(kind, name)
    for parm, value in parms.items():
        node.parm(parm).set(value)
    return node


def wire(node, **sources):
    """Wire nodes into named ports."""
    ports = [port["name"] for port in json.loads(node.type()._sections["NodeSpec"])["inputs"]]
    for port, source in sources.items():
        node.setInput(ports.index(port), source)
    return node


def small_shot(houdini, end=2):
    """Wire a little ball of snow, a solve and a cache into a cook node."""
    snow = make(houdini, "material_library", "snow")
    ball = wire(make(houdini, "emit_sphere", "ball", radius=0.2), material=snow)
    fall = wire(make(houdini, "solve", "fall"), sources=ball)
    cache = wire(make(houdini, "write_cache", "writer"), particles=fall)
    cook = wire(make(houdini, "cook_graph", "cook", cell_size=0.1), graph=cache)
    for name, value in (("fps", 24), ("start", 1), ("end", end)):
        cook.parm(name).deleteAllKeyframes()
        cook.parm(name).set(value)
    return cook


def graph_of(cook):
    cook.parm("mpm_save").pressButton()
    return json.loads(open(cook.parm("mpm_graph").evalAsString(), encoding="utf-8").read())


def test_wires_are_the_graph(houdini):
    """The graph file holds what is wired, through Houdini's own Merge and Null as well, in the order of the wires."""
    cook = small_shot(houdini)
    floor, wall = make(houdini, "collide_plane", "floor"), make(houdini, "collide_box", "wall")
    merge, null = houdini.work.createNode("merge", "bodies"), houdini.work.createNode("null", "through")
    merge.setInput(0, wall)
    merge.setInput(1, floor)
    null.setInput(0, merge)
    wire(houdini.work.node("fall"), colliders=null)
    make(houdini, "collide_sphere", "not_wired")
    nodes = graph_of(cook)["nodes"]
    assert set(nodes) == {"snow", "ball", "fall", "writer", "floor", "wall"}
    assert nodes["fall"]["inputs"] == {"sources": ["ball"], "colliders": ["wall", "floor"]}
    assert nodes["ball"]["inputs"] == {"material": "snow"} and nodes["ball"]["knobs"]["radius"] == 0.2


def test_cook_from_wires_to_cache(houdini, tmp_path):
    """The button starts the program, shows its progress, and points a USD Import node at what it wrote."""
    cook = small_shot(houdini)
    cook.parm("mpm_cook").pressButton()
    shown = houdini.work.node("cook_cache")
    stage = shown.parm("filepath1").evalAsString()
    assert shown.type().name() == "usdimport" and stage == str(tmp_path / "mpm" / "cook" / "r001" / "cache.usda")
    from pxr import Usd, UsdGeom

    points = UsdGeom.Points.Get(opened := Usd.Stage.Open(stage), "/cache/particles")
    assert (opened.GetStartTimeCode(), opened.GetEndTimeCode()) == (1, 2)
    assert len(points.GetPointsAttr().Get(2)) == 280
    fractions = [fraction for fraction, _ in houdini.progress]
    assert fractions == sorted(fractions) and fractions[-1] == 1.0
    assert any("280 particles" in (text or "") for _, text in houdini.progress)


def test_interrupt_stops_the_program_and_continue_goes_on(houdini, tmp_path):
    """Esc stops the cook after its substep and keeps whole frames; Continue cooks the rest into the same folder."""
    cook = small_shot(houdini, end=4)
    houdini.interrupt = lambda fraction, text: "frame 2" in text
    with pytest.raises(sys.modules["hou"].NodeError, match="Continue"):
        cook.parm("mpm_cook").pressButton()
    frames = tmp_path / "mpm" / "cook" / "r001" / "frames"
    kept = len(list(frames.glob("*.commit.json")))
    assert 1 <= kept < 4
    houdini.interrupt = None
    cook.parm("mpm_continue").pressButton()
    assert len(list(frames.glob("*.commit.json"))) == 4


def test_problems_appear_on_their_nodes_and_go_away(houdini):
    """What the program finds wrong is a warning on the node that has it, until the next check finds it fixed."""
    cook = small_shot(houdini)
    ball, fall = houdini.work.node("ball"), houdini.work.node("fall")
    ball.parm("radius").set(0.0)
    with pytest.raises(sys.modules["hou"].NodeError, match=r"ball\.radius"):
        cook.parm("mpm_check").pressButton()
    assert "radius" in ball.warnings()[0] and fall.warnings() == () and "radius" in cook.warnings()[0]
    ball.parm("radius").set(0.2)
    cook.parm("mpm_check").pressButton()
    assert ball.warnings() == () and cook.warnings() == ()


def test_a_check_tells_what_will_surprise_and_what_a_cook_needs(houdini, capsys):
    """As Blender's does: a warning stands on its node until the next check, and the line has particles, memory and disk."""
    cook = small_shot(houdini)
    fall = houdini.work.node("fall")
    stone = make(houdini, "collide_sphere", "stone", radius=10.0)
    wire(fall, colliders=stone)
    cook.parm("mpm_check").pressButton()
    line = capsys.readouterr().out.strip()
    assert "valid; " in line and "about 268 particles" in line and "of memory" in line and "Warning: fall: 100 %" in line
    assert "start inside collider 'stone'" in fall.warnings()[0] and cook.warnings() == ()
    stone.parm("radius").set(0.001)
    cook.parm("mpm_check").pressButton()
    assert fall.warnings() == () and "Warning" not in capsys.readouterr().out


def test_unlike_types_are_refused_on_the_node(houdini):
    """A wire of the wrong type is an error on the node that it goes into; the message names both types."""
    ball = make(houdini, "emit_sphere", "ball")
    wire(ball, material=make(houdini, "collide_plane", "floor"))
    with pytest.raises(sys.modules["hou"].OperationFailed):
        ball.geometry()
    assert ball.errors() == ("Material: takes Material, floor gives Collider; wire another node",)


def test_a_missing_program_is_explained(houdini):
    """A program that cannot be started gives its name and the cure, in a window when there are windows."""
    cook = small_shot(houdini)
    cook.parm("mpm_program").set("/nowhere/mpm-nodes")
    houdini.add_ui(houdini.module)
    cook.parm("mpm_cook").pressButton()
    assert houdini.shown and "/nowhere/mpm-nodes: cannot be started" in houdini.shown[-1]
    assert "cannot be started" in cook.warnings()[0]


def test_scene_geometry_is_written_by_houdini(houdini, tmp_path):
    """Polygons wired into an emitter are exported beside the graph file, and the program takes the graph with them."""
    cook = small_shot(houdini)
    box = houdini.work.createNode("box", "box1")
    body = wire(make(houdini, "emit_mesh", "body"), material=houdini.work.node("snow"), path=box)
    shape = wire(make(houdini, "collide_vdb", "shape"), path=box)
    wire(houdini.work.node("fall"), sources=body, colliders=shape)
    nodes = graph_of(cook)["nodes"]
    assert nodes["body"]["knobs"]["path"] == "inputs/body.usd" and (tmp_path / "mpm" / "inputs" / "body.usd").is_file()
    assert nodes["shape"]["knobs"]["path"] == "inputs/shape.####.vdb" and nodes["shape"]["knobs"]["sequence"] is True
    assert (tmp_path / "mpm" / "inputs" / "shape.0002.vdb").is_file()
    assert [node.name() for node in houdini.work.children() if "export" in node.name()] == []
    houdini.work.node("fall").setInput(2, None)
    cook.parm("mpm_check").pressButton()


def test_the_program_gets_a_clean_environment(houdini, monkeypatch):
    """What leads Python and the linker to Houdini's libraries is kept from the program."""
    import mpm_nodes_houdini.process as process

    for name in process.FOREIGN:
        monkeypatch.setenv(name, "/opt/hfs")
    monkeypatch.setenv("MPM_NODES_CACHE", "/kept")
    assert not set(process.FOREIGN) & set(process.environment()) and process.environment()["MPM_NODES_CACHE"] == "/kept"


# ---------------------------------------------------------------- programs that behave badly
def program(tmp_path, cook_code):
    """Return the command of a program that finds every graph valid, and runs the given code as its cook."""
    script = tmp_path / "program.py"
    valid = {"problems": [], "said": "", "warnings": []}
    begins = f"import json, signal, sys, time\nif sys.argv[1] == 'validate':\n    print(json.dumps({valid}))\n    sys.exit(0)\n"
    script.write_text(begins + cook_code)
    return f"{sys.executable} {script}"


def test_what_a_failing_program_says_is_shown(houdini, tmp_path):
    """Its exit code is explained, what it printed is kept, and lines that are not events do no harm."""
    cook = small_shot(houdini)
    cook.parm("mpm_program").set(program(tmp_path, "print('not json')\nprint('dt is too long', file=sys.stderr)\nsys.exit(4)"))
    with pytest.raises(sys.modules["hou"].NodeError) as caught:
        cook.parm("mpm_cook").pressButton()
    text = caught.value.instanceMessage()
    assert "dt is too long" in text and "not json" in text and "The solve left the stable range" in text
    assert houdini.work.node("cook_cache") is None


def test_a_program_that_does_not_stop_is_stopped_hard(houdini, tmp_path, monkeypatch):
    """A cook that ignores the request to stop does not hold Houdini up for ever."""
    import mpm_nodes_houdini.process as process

    monkeypatch.setattr(process, "PATIENCE", 0.2)
    stubborn = 'signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint(\'{"event": "plan"}\', flush=True)\ntime.sleep(60)'
    running = process.Process([*process.command(program(tmp_path, stubborn)), "cook"])
    assert next(event for event in running.events() if event) == {"event": "plan"}
    running.stop()
    assert running.finish()[0] == -signal.SIGKILL


def test_the_cache_can_go_to_solaris_or_nowhere(houdini):
    """The menu decides which of Houdini's own importers is pointed at the cache; a second cook moves it along."""
    from mpm_nodes_houdini.cooking import bring_in

    cook = make(houdini, "cook_graph", "cook")
    for way, place in (("none", None), ("lop", "/stage/cook_cache")):
        cook.parm("mpm_import").set(way)
        bring_in(cook, "/caches/r001/cache.usda")
        node = houdini.module.node("/stage/cook_cache")
        assert (node.path() if node else None) == place
    bring_in(cook, "/caches/r002/cache.usda")
    del houdini.types["sublayer"]._dialog.parms[:]
    with pytest.raises(houdini.module.OperationFailed, match="has no parameter filepath1 in this Houdini"):
        bring_in(cook, "/caches/r002/other.usda")
    node.parent().node("cook_other").destroy()
    assert node.parm("filepath1").eval() == "/caches/r002/cache.usda" and len(node.parent().children()) == 1


def test_the_stand_in_refuses_what_houdini_refuses(houdini):
    """Names that are not documented do not exist; parameters cannot be set in a cook; keys must go before a value."""
    with pytest.raises(AttributeError):
        houdini.module.cookEverything()
    ball = make(houdini, "emit_sphere", "ball")
    with pytest.raises(AttributeError):
        ball.knobs()
    houdini.cooking.append(ball)
    with pytest.raises(houdini.module.PermissionError):
        ball.parm("radius").set(1.0)
    houdini.cooking.pop()
    with pytest.raises(houdini.module.PermissionError):
        make(houdini, "cook_graph", "cook").parm("fps").set(25)
    with pytest.raises(houdini.module.GeometryPermissionError):
        make(houdini, "collide_plane", "floor").geometry().clear()


def test_a_programs_path_may_hold_spaces_and_backslashes(houdini, tmp_path, monkeypatch):
    """A file is taken whole; words of a command are split at spaces outside quotes; backslashes stay."""
    from mpm_nodes.hosts.houdini.mpm_nodes_houdini import process

    program = tmp_path / "my programs" / "mpm-nodes"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m mpm_nodes.cli "$@"\n')
    program.chmod(0o755)
    assert process.command(str(program)) == [str(program)]
    assert process.command(f'"{program}" --debug') == [str(program), "--debug"]
    assert process.command(r'"C:\Program Files\mpm\Scripts\mpm-nodes.exe"') == [r"C:\Program Files\mpm\Scripts\mpm-nodes.exe"]
    assert process.command(r"D:\mpm\new\mpm-nodes.exe") == [r"D:\mpm\new\mpm-nodes.exe"]
    monkeypatch.delenv("MPM_NODES_PROGRAM")
    assert process.command("") == ["mpm-nodes"]
    cook = small_shot(houdini)
    cook.parm("mpm_program").set(str(program))
    cook.parm("mpm_check").pressButton()
    assert cook.warnings() == ()
