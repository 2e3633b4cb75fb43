"""One contract for every host: the same graph, refusals and cache from a terminal, Blender, Houdini and the browser.

A host is driven by a list of steps; its adapter carries them out with what that program's artists have at hand, and answers alike.
"""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from blender_process import in_blender

from mpm_nodes import editor as edited
from mpm_nodes.editor.calls import Calls

NODES = {
    "jelly": ("material_library", {"name": "jelly"}),
    "ball": ("emit_sphere", {"radius": 0.2, "centre": [0.0, 0.3, 0.0]}),
    "ground": ("collide_plane", {"friction": 0.4}),
    "fall": ("solve", {}),
    "writer": ("write_cache", {}),
}
WIRES = [
    ("jelly", "material", "ball", "material"),
    ("ball", "particles", "fall", "sources"),
    ("ground", "collider", "fall", "colliders"),
    ("fall", "particles", "writer", "particles"),
]
SETTINGS = {"cell_size": 0.1, "fps": 24.0, "start": 1, "end": 2}
TERMINAL = Path(__file__).parents[2] / "docs" / "examples" / "mpm_terminal.py"


# ---------------------------------------------------------------- adapters
def in_terminal(folder: Path, _request: pytest.FixtureRequest) -> dict[str, Any]:
    """Type the shot; a script of the host with its commands."""

    def typed(lines: list[str]) -> subprocess.CompletedProcess[str]:
        environ = {"MPM_NODES_PROGRAM": f"{sys.executable} -m mpm_nodes.cli", "PATH": "/usr/bin:/bin", "HOME": str(Path.home())}
        command = [sys.executable, "-I", str(TERMINAL)]
        return subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, cwd=folder, env=environ, check=False)

    lines = [f"add {kind} {name}" for name, (kind, _) in NODES.items()]
    lines += [f"set {name}.{knob} {json.dumps(value)}" for name, (_, knobs) in NODES.items() for knob, value in knobs.items()]
    lines += [f"wire {source}{'.particles' if source == 'fall' else ''} {target}.{port}" for source, _, target, port in WIRES]
    lines += [f"set {name} {value}" for name, value in SETTINGS.items()]
    refused = typed([*lines, "wire ground ball.material"]).stderr
    wrong = typed([*lines, "set ball.radius 0", "check"]).stdout
    done = typed([*lines, "save shot.json", "check", "cook"])
    saved = json.loads((folder / "shot.json").read_text())
    typed(["load shot.json", "save copy.json"])
    again = typed(["load shot.json", "set end 3", "resume"])
    other = typed(["load shot.json", "set end 3", "set fall.gravity [0, 1, 0]", "resume 3"])
    assert other.stdout.rstrip().endswith("done"), other.stderr
    assert json.loads((folder / "shot_cache" / "r002" / "cook.json").read_text())["taken"]["last"] == 2
    return {
        "graph": saved,
        "copy": json.loads((folder / "copy.json").read_text()),
        "refused": refused,
        "wrong": wrong,
        "cooked": done.stdout.rstrip().endswith("done"),
        "resumed": again.stdout.rstrip().endswith("done"),
        "revision": folder / "shot_cache" / "r001",
    }


def in_blenders_editor(folder: Path, _request: pytest.FixtureRequest) -> dict[str, Any]:
    """Make the shot of nodes in Blender's node editor."""
    script = """
scene = bpy.context.scene
tree = trees.new_tree(trees.GRAPH_TREE, "shot")
tree.folder = given["folder"]
for name, value in given["settings"].items():
    setattr(tree, f"k_{name}", value)
made = {}
for name, (kind, values) in given["nodes"].items():
    made[name] = add(tree, kind, name)
    for knob, value in values.items():
        knobs.set_value(made[name], specification.knob(made[name].record, knob), value)
for source, output, target, port in given["wires"]:
    nodes.connect(made[source], output, made[target], port)
try:
    nodes.connect(made["ground"], "collider", made["ball"], "material")
except ValueError as error:
    answer["refused"] = str(error)
made["ball"].k_radius = 0.0
bpy.ops.mpm_nodes.validate(tree="shot")
answer["wrong"] = json.dumps(problems_of(tree))
made["ball"].k_radius = 0.2
path = cook.write_graph(tree, scene)
answer["graph"] = graph_file.read(path)
cook.start(tree, scene)
answer["cooked"] = cook.wait(tree, 300) == "done"
answer["revision"] = tree.revision
other = graph_file.load(graph_file.read(path), "copy", path.parent)
answer["copy"] = graph_file.save(other, path.parent)
tree.k_end = 3
cook.start(tree, scene, resume=True)
answer["resumed"] = cook.wait(tree, 300) == "done"
"""
    return in_blender(script, folder=str(folder), nodes=NODES, wires=WIRES, settings=SETTINGS)


def in_houdinis_stand_in(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    """Make the shot of assets in the stand-in for Houdini."""
    houdini = request.getfixturevalue("houdini")
    error_type = sys.modules["hou"].NodeError

    def made(kind: str, name: str) -> Any:
        return houdini.work.createNode(next(each for each in houdini.types if each.startswith(f"mpm_nodes::{kind}::")), name)

    def put(node: Any, name: str, value: Any) -> None:
        parms = node.parmTuple(name) if isinstance(value, list) else [node.parm(name)]
        for parm, part in zip(parms, value if isinstance(value, list) else [value], strict=True):
            parm.deleteAllKeyframes()
            parm.set(part)

    def port_of(node: Any, name: str) -> int:
        return [port["name"] for port in json.loads(node.type()._sections["NodeSpec"])["inputs"]].index(name)

    found = {}
    for name, (kind, knobs) in NODES.items():
        found[name] = made(kind, name)
        for knob, value in knobs.items():
            put(found[name], knob, value)
    for source, _, target, port in WIRES:
        found[target].setInput(port_of(found[target], port), found[source])
    shot = made("cook_graph", "shot")
    shot.setInput(0, found["writer"])
    for name, value in SETTINGS.items():
        put(shot, name, value)

    def saved(node: Any) -> dict[str, Any]:
        node.parm("mpm_save").pressButton()
        return json.loads(Path(node.parm("mpm_graph").evalAsString()).read_text())

    other = made("emit_sphere", "other")
    other.setInput(port_of(other, "material"), found["ground"])
    with pytest.raises(sys.modules["hou"].OperationFailed):
        other.geometry()
    refused = "; ".join(other.errors())
    other.destroy()
    put(found["ball"], "radius", 0.0)
    with pytest.raises(error_type) as wrong:
        shot.parm("mpm_check").pressButton()
    put(found["ball"], "radius", 0.2)
    graph = saved(shot)
    shot.parm("mpm_cook").pressButton()
    revision = Path(shot.parm("mpm_out").evalAsString()) / "r001"
    cooked = (revision / "cache.usda").is_file()
    shot.parm("mpm_load").pressButton()
    copy = saved(shot)
    put(shot, "end", 3)
    shot.parm("mpm_continue").pressButton()
    return {
        "graph": graph,
        "copy": copy,
        "refused": refused,
        "wrong": str(wrong.value),
        "cooked": cooked,
        "resumed": (revision / "frames" / "0003.commit.json").is_file(),
        "revision": revision,
    }


def in_the_editor(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    """Make the shot by the page's model of graphs, and save and cook it through its server."""
    web = Path(edited.__file__).parent / "web"
    build = web / "node_modules" / ".bin" / "esbuild"
    if shutil.which("node") is None or not build.exists():
        pytest.skip(f"needs Node, and npm ci --ignore-scripts in {web}")
    script = folder.parent / "model.cjs"
    entry = str(Path(__file__).with_name("editor_model.ts"))
    subprocess.run([str(build), entry, "--bundle", "--platform=node", f"--outfile={script}", "--log-level=error"], check=True)
    steps = {"spec": request.getfixturevalue("spec"), "nodes": NODES, "wires": WIRES, "settings": SETTINGS}
    done = subprocess.run(["node", str(script)], input=json.dumps(steps), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    calls = Calls(folder, "")

    def cooked(mode: str) -> bool:
        number = calls.answer("events", {"since": 0})["cook"]
        calls.answer("cook", {"path": "shot.json", "mode": mode})
        told: dict[str, Any] = {"over": False, "cook": number}
        while not told["over"]:
            told = calls.answer("events", {"since": 2**40, "cook": told["cook"], "wait": True})
        return calls.answer("events", {"since": 0})["events"][-1]["name"] == "done"

    try:
        digest = calls.answer("save", {"path": "shot.json", "text": made["text"], "digest": ""})["digest"]
        copy = calls.answer("save", {"path": "copy.json", "text": made["copy"], "digest": ""})
        assert copy["digest"] == digest
        wrong = calls.answer("check", {"path": "shot.json", "text": made["wrong"]})["problems"]
        first = cooked("new")
        calls.answer("save", {"path": "shot.json", "text": made["longer"], "digest": digest})
        return {
            "graph": json.loads(made["text"]),
            "copy": json.loads((folder / "copy.json").read_text()),
            "refused": made["refused"],
            "wrong": json.dumps(wrong),
            "cooked": first,
            "resumed": cooked("resume"),
            "revision": folder / "shot_cache" / "r001",
        }
    finally:
        calls.close()


HOSTS: dict[str, Callable[[Path, pytest.FixtureRequest], dict[str, Any]]] = {
    "terminal": in_terminal,
    "blender": in_blenders_editor,
    "houdini": in_houdinis_stand_in,
    "editor": in_the_editor,
}


# ---------------------------------------------------------------- the contract
def plain(graph: dict[str, Any], records: dict[str, Any]) -> dict[str, Any]:
    """Return the settings, all knobs and the wires of a graph, whatever else a host writes beside them."""
    nodes = {}
    for name, entry in graph["nodes"].items():
        inputs = {port: given if isinstance(given, list) else [given] for port, given in entry.get("inputs", {}).items()}
        knobs = {knob["name"]: knob["default"] for knob in records[entry["type"]]["knobs"]} | entry.get("knobs", {})
        nodes[name] = {"type": entry["type"], "knobs": knobs, "inputs": inputs}
    return {"settings": graph["settings"], "nodes": nodes}


@pytest.mark.parametrize("host", sorted(HOSTS))
def test_a_host_keeps_the_contract(host, tmp_path, request, spec):
    """The graph is the shot, and comes back from its file; wrong wires and knobs are refused by name; cook and resume work."""
    folder = tmp_path / "shot"
    folder.mkdir()
    seen = HOSTS[host](folder, request)
    records = {record["id"]: record for record in spec["nodes"]}
    graph = plain(seen["graph"], records)
    assert {name: entry["type"] for name, entry in graph["nodes"].items()} == {name: kind for name, (kind, _) in NODES.items()}
    for name, (kind, wanted) in NODES.items():
        defaults = {knob["name"]: knob["default"] for knob in records[kind]["knobs"]}
        assert graph["nodes"][name]["knobs"] == defaults | wanted, name
    wires = set()
    for name, entry in graph["nodes"].items():
        wires |= {(source.partition(".")[0], name, port) for port, given in entry["inputs"].items() for source in given}
    assert wires == {(source, target, port) for source, _, target, port in WIRES}
    assert {key: float(value) for key, value in graph["settings"].items() if key in SETTINGS} == pytest.approx(SETTINGS)
    assert plain(seen["copy"], records) == graph, "a file is opened and saved without loss"
    assert "Material" in seen["refused"] and "Collider" in seen["refused"]
    assert "radius" in seen["wrong"] and "ball" in seen["wrong"]
    assert seen["cooked"] and seen["resumed"]
    assert cache_of(Path(seen["revision"])) == expected_cache(tmp_path), "the command line's cache, bit for bit"


def cache_of(revision: Path) -> list[bytes]:
    """Return the positions and velocities of every frame, as bytes."""
    from pxr import Usd, UsdGeom

    stage = Usd.Stage.Open(str(revision / "cache.usda"))
    points = UsdGeom.Points(stage.GetPrimAtPath("/cache/particles"))
    return [
        bytes(memoryview(each.Get(frame))) for frame in (1, 2, 3) for each in (points.GetPointsAttr(), points.GetVelocitiesAttr())
    ]


def expected_cache(folder: Path) -> list[bytes]:
    """Return what the same shot gives from Python."""
    from mpm_nodes import Graph
    from mpm_nodes.graph.cook.executor import execute

    graph = Graph(**{**SETTINGS, "end": 3})
    made: dict[str, Any] = {}
    for name, (kind, knobs) in NODES.items():
        ports = {port: made[source] for source, _, target, port in WIRES if target == name}
        given = {port: [node] if port in ("sources", "colliders") else node for port, node in ports.items()}
        made[name] = graph.add(kind, name, **given, **knobs)
    execute(graph, out=folder / "expected")
    return cache_of(folder / "expected" / "r001")


def test_the_lines_of_the_page_cook(tmp_path: Path):
    """What docs/protocol.md types, with two frames, is carried out to its end."""
    page = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text(encoding="utf-8")
    script = page.partition("<!-- terminal: tested -->\n```text\n")[2].partition("```")[0]
    (tmp_path / "script.txt").write_text(script.replace("set end 3", "set end 2"))
    environ = {"MPM_NODES_PROGRAM": f"{sys.executable} -m mpm_nodes.cli", "PATH": "/usr/bin:/bin", "HOME": str(Path.home())}
    command = [sys.executable, str(TERMINAL), "script.txt"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environ, check=False)
    assert done.returncode == 0 and done.stdout.rstrip().endswith("done"), done.stdout + done.stderr
    assert "valid; particles" in done.stdout and "frame 2:" in done.stdout


def test_the_terminal_host_is_small_and_needs_python_alone():
    """Under 300 lines, and nothing but the standard library."""
    text = TERMINAL.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 300
    names = {alias.name for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Import) for alias in each.names}
    names |= {each.module for each in ast.walk(ast.parse(text)) if isinstance(each, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= set(sys.stdlib_module_names)
