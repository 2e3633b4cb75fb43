"""Graph files to Houdini nodes and back, in the stand-in for Houdini."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_houdini_cook import graph_of, make, small_shot

from mpm_nodes.graph.document.document import load_graph
from mpm_nodes.graph.files import strict_json
from mpm_nodes.graph.plan.validate import validate

ROOT = Path(__file__).parents[2]
FILES = sorted(path for folder in ("samples", "docs") for path in (ROOT / folder).glob("*.json"))
GRAPHS = [path for path in FILES if strict_json.read(path).get("format") == "mpm_nodes.graph"]
PRESETS = sorted(path for path in (ROOT / "mpm_nodes" / "solver" / "presets").glob("*.json") if "nodes" in strict_json.read(path))

FULL = {
    "format": "mpm_nodes.graph",
    "version": 1,
    "settings": {"cell_size": 0.05, "fps": 30, "start": -5, "end": 10},
    "nodes": {
        "goo": {"type": "material_snow", "knobs": {"preserve_volume": True, "label": 'he said "hi"'}, "comment": "mine"},
        "tear-it": {"type": "material_tearing", "inputs": {"material": "goo"}, "bypass": True, "position": [120.125, -40]},
        "9".replace("9", "ümlaut"): {
            "type": "emit_sphere",
            "inputs": {"material": "tear-it"},
            "knobs": {
                "radius": {"keys": [[1, 0.2, "step"], [4.5, 0.3, "linear"], [9, 0.4, "smooth"]]},
                "seed": 7,
                "centre": {"keys": [[1, [0, 1, 0], "smooth"], [8, [0, 2, 1], "linear"]]},
                "seeding": "poisson",
            },
        },
        "box": {"type": "emit_box", "inputs": {"material": "goo.material"}, "editor": {"blender": {"width": 200}}},
        "floor": {"type": "collide_plane", "knobs": {"rule": "sticky"}},
        "file": {"type": "collide_vdb", "knobs": {"path": "../bodies/a #1.####.vdb", "frame_offset": -3}},
        "fall": {
            "type": "solve",
            "inputs": {"sources": ["box", "ümlaut"], "colliders": ["file", "floor"]},
            "knobs": {
                "substeps": {"preset": "explicit_apic", "set": {"cfl": 0.25, "kernel": "cubic", "gather.flip_fraction": 0.5}},
                "wall_y_low": "separate",
            },
        },
        "again": {"type": "solve", "inputs": {"sources": "fall.particles"}, "knobs": {"substeps": {"preset": "explicit_apic"}}},
        "patched": {
            "type": "solve",
            "inputs": {"sources": "fall.particles"},
            "knobs": {"substeps": {"preset": "explicit_apic", "edits": [{"bypass": "apply_plasticity"}], "set": {"cfl": 0.3}}},
        },
        "surface": {
            "type": "surface_particles",
            "inputs": {"particles": "again"},
            "knobs": {"attributes": ["velocity", "two words"]},
        },
        "cache": {"type": "write_cache", "inputs": {"mesh": "surface.mesh", "volumes": ["surface"], "particles": "fall"}},
        "points": {"type": "export_points", "inputs": {"particles": "fall"}},
    },
    "editor": {"zoom": 1.5},
}
"""Every kind of knob, keys of every shape, several wires, an output by name, names that Houdini does not allow, a bypass."""


def through_houdini(houdini, graph, tmp_path):
    """Load a graph file into a new cook node and write it again; return what was written."""
    cook = make(houdini, "cook_graph", "cook")
    cook.parm("mpm_graph").set(str(tmp_path / "in.json"))
    (tmp_path / "in.json").write_text(json.dumps(graph), encoding="utf-8")
    cook.parm("mpm_load").pressButton()
    cook.parm("mpm_graph").set(str(tmp_path / "out.json"))
    return graph_of(cook)


def same(houdini, graph, tmp_path):
    """Hold what comes back to what went in, all knobs written out."""
    loaded = load_graph(graph, base=tmp_path)
    assert through_houdini(houdini, loaded.to_json(), tmp_path) == loaded.to_json()
    for node in houdini.work.children():
        node.destroy()
    short = through_houdini(houdini, graph, tmp_path)  # knobs, versions and settings left out mean today's defaults
    assert short == loaded.to_json()
    return load_graph(tmp_path / "out.json")


def test_a_graph_with_everything_comes_back_equal(houdini, tmp_path):
    """Nothing of a graph is lost or changed on the way through Houdini's nodes, and the package still takes it."""
    back = same(houdini, FULL, tmp_path)
    # a solve takes its sources at one frame: keys on them travel, and are told
    told = [problem for problem in validate(back) if "file.path" not in problem.place]
    assert [problem for problem in told if "is keyed, but" not in problem.message] == []


@pytest.mark.parametrize("path", GRAPHS, ids=lambda path: path.stem)
def test_sample_graphs_come_back_equal(houdini, path, tmp_path):
    """Every graph that ships goes through Houdini's nodes unchanged."""
    same(houdini, strict_json.read(path), tmp_path)


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_whole_substep_graphs_come_back_equal(houdini, path, tmp_path):
    """A substep graph in a solve becomes a network of stages, and the network becomes the same substep graph."""
    from mpm_nodes.graph.document.substep_document import load_substeps

    graph = load_graph(FULL, base=tmp_path)
    graph.nodes["fall"].knobs["substeps"] = strict_json.read(path)
    written = through_houdini(houdini, graph.to_json(), tmp_path)
    made, problems = load_substeps(written["nodes"]["fall"]["knobs"]["substeps"])
    wanted, _ = load_substeps(strict_json.read(path))
    assert problems == [] and (made.knobs, made.wires) == (wanted.knobs, wanted.wires)
    fields = set(strict_json.read(path)) - {"nodes"}
    assert {k: written["nodes"]["fall"]["knobs"]["substeps"][k] for k in fields} == {k: strict_json.read(path)[k] for k in fields}


def test_a_preset_unfolds_into_its_stages(houdini):
    """The button makes the stages of the chosen preset with its settings; wires and numbers are those of the preset."""
    import hou

    from mpm_nodes.graph.document.substep_document import load_substeps

    cook = small_shot(houdini)
    fall = houdini.work.node("fall")
    fall.parm("mpm_set").set(1)
    fall.parm("mpm_set_name1").set("cfl")
    fall.parm("mpm_set_value1").set("0.2")
    wanted, _ = load_substeps(graph_of(cook)["nodes"]["fall"]["knobs"]["substeps"])
    fall.parm("mpm_unfold").pressButton()
    made, problems = load_substeps(graph_of(cook)["nodes"]["fall"]["knobs"]["substeps"])
    assert problems == [] and (made.knobs, made.wires) == (wanted.knobs, wanted.wires)
    assert made.knobs["choose_time_step"]["cfl"] == 0.2 and houdini.work.node("rasterize") is None
    inside = houdini.work.node("fall_stages")
    wired = [number for number, source in enumerate(fall.inputs()) if source is inside]
    assert inside.type().name() == "subnet" and len(wired) == 1 and inside.node("rasterize") is not None
    begin, count = inside.node("substep_begin"), len(inside.children())
    begin.parm("mpm_stage").set("move_particles")
    begin.parm("mpm_add").pressButton()
    assert len(inside.children()) == count + 1, "stages are added here, for the TAB menu does not show them"
    with pytest.raises(hou.NodeError, match="wired in already"):
        fall.parm("mpm_unfold").pressButton()
    fall.setInput(wired[0], None)
    fall.parm("substeps").set("auto")
    with pytest.raises(hou.NodeError, match="no stages of its own"):
        fall.parm("mpm_unfold").pressButton()


def test_an_artists_own_wires_win_over_the_file(houdini, tmp_path):
    """After loading, a changed wire, knob or place is what the next file holds."""
    through_houdini(houdini, load_graph(FULL, base=tmp_path).to_json(), tmp_path)
    work, cook = houdini.work, houdini.work.node("cook")
    work.node("surface").setInput(0, work.node("fall"))
    work.node("box").setPosition(type(work.node("box").position())((3.0, 2.0)))
    work.node("floor").parm("rule").set("slip")
    nodes = graph_of(cook)["nodes"]
    assert nodes["surface"]["inputs"] == {"particles": "fall"} and nodes["floor"]["knobs"]["rule"] == "slip"
    assert nodes["box"]["position"] == [300.0, -200.0] and nodes["points"]["inputs"] == {"particles": "fall"}


def test_expressions_are_sampled_frame_by_frame(houdini):
    """A parameter that moves by an expression becomes one key a frame; curves that a graph file cannot hold do too."""
    import hou

    cook = small_shot(houdini, end=3)
    key = hou.Keyframe()
    key.setFrame(1)
    key.setExpression("$F*2")
    houdini.work.node("ball").parm("radius").setKeyframe(key)
    for frame, value in ((1, 0.0), (3, 1.0)):
        key = hou.Keyframe()
        key.setFrame(frame)
        key.setValue(value)
        key.setExpression("bezier()")
        houdini.work.node("fall").parm("time_scale").setKeyframe(key)
    for frame, slope in ((1, 0.0), (3, 2.0)):
        key = hou.Keyframe()
        key.setFrame(frame)
        key.setValue(frame)
        key.setSlope(slope)
        key.setExpression("cubic()")
        houdini.work.node("fall").parm("dt_max").setKeyframe(key)
    knobs = {name: entry["knobs"] for name, entry in graph_of(cook)["nodes"].items()}
    assert knobs["ball"]["radius"] == {"keys": [[1, 2.0, "linear"], [2, 4.0, "linear"], [3, 6.0, "linear"]]}
    assert [key[0] for key in knobs["fall"]["dt_max"]["keys"]] == [1, 2, 3]
    assert knobs["fall"]["time_scale"] == {"keys": [[1, 0.0, "linear"], [2, 0.5, "linear"], [3, 1.0, "linear"]]}


def test_frame_variables_in_paths_become_sequences(houdini, tmp_path):
    """$F4 in a path is the #### of a graph file; other variables are expanded."""
    from test_houdini_cook import wire

    cook = small_shot(houdini)
    body = make(houdini, "collide_vdb", "body", path="$HIP/body.$F4.vdb")
    wire(houdini.work.node("fall"), colliders=body)
    assert graph_of(cook)["nodes"]["body"]["knobs"]["path"] == f"{tmp_path}/body.####.vdb"


def test_a_wrong_file_is_refused_with_a_sentence(houdini, tmp_path):
    """Loading what is not a graph file says so and makes no node."""
    import hou

    cook = make(houdini, "cook_graph", "cook", mpm_graph=str(tmp_path / "x.json"))
    for text in ("{", "[]", '{"format": "other"}'):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(hou.NodeError, match="is not a graph file"):
            cook.parm("mpm_load").pressButton()
    (tmp_path / "x.json").write_text(json.dumps({**FULL, "nodes": {"a": {"type": "nonsense"}}}))
    with pytest.raises(hou.NodeError, match="no asset for nonsense"):
        cook.parm("mpm_load").pressButton()
    wrong = {"a": {"type": "collide_plane"}, "b": {"type": "collide_plane", "knobs": {"name": "$JOB"}}}
    (tmp_path / "x.json").write_text(json.dumps({**FULL, "nodes": wrong}))
    with pytest.raises(hou.NodeError, match="would expand"):
        cook.parm("mpm_load").pressButton()
    wrong["b"]["knobs"] = {"rule": {"keys": [[1, "sticky", "step"], [5, "separate", "step"]]}}
    (tmp_path / "x.json").write_text(json.dumps({**FULL, "nodes": wrong}))
    with pytest.raises(hou.NodeError, match="rule: its keys step between choices"):
        cook.parm("mpm_load").pressButton()
    assert [node.name() for node in houdini.work.children()] == ["cook"]


def test_an_old_file_is_upgraded_by_the_program(houdini, tmp_path):
    """Nodes of versions that have no asset any more are brought to today's by the program, in its own process."""
    from test_houdini_cook import program

    old = {"format": "mpm_nodes.graph", "version": 1, "nodes": {"floor": {"type": "ground", "version": 3, "knobs": {"rub": 0.5}}}}
    new = {**old, "nodes": {"floor": {"type": "collide_plane", "version": 1, "knobs": {"friction": 0.5}}}}
    code = f"if sys.argv[1] == 'upgrade':\n    import json\n    print(json.dumps({new!r}))\n    sys.exit(0)"
    (tmp_path / "x.json").write_text(json.dumps(old))
    cook = make(houdini, "cook_graph", "cook", mpm_graph=str(tmp_path / "x.json"), mpm_program=program(tmp_path, code))
    cook.parm("mpm_load").pressButton()
    assert houdini.work.node("floor").parm("friction").eval() == 0.5


def test_namesakes_get_numbers(houdini):
    """Two nodes that go by one name in the graph stay two; names that a graph file does not allow are changed."""
    from test_houdini_cook import wire

    cook = small_shot(houdini)
    merge = houdini.work.createNode("merge", "bodies")
    for number, name in enumerate(("floor", "floor", "2 walls")):
        merge.setInput(number, make(houdini, "collide_plane", f"plane{number}", mpm_id=name))
    wire(houdini.work.node("fall"), colliders=merge)
    assert graph_of(cook)["nodes"]["fall"]["inputs"]["colliders"] == ["floor", "floor_2", "node_2_walls"]
