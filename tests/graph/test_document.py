"""Graph files: built in Python, written with every value, read back strictly, upgraded, overridden."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import outer_nodes
import plan_stages
import pytest
from outer_nodes import Side

from mpm_nodes.data import InputError, OutputError
from mpm_nodes.graph.declare.registry import Registry
from mpm_nodes.graph.document.document import Graph, apply_override, load_graph
from mpm_nodes.graph.reports.problems import GraphError

REGISTRY = Registry([f.declaration for f in (*outer_nodes.NODES, *plan_stages.STAGES)])


def small_graph() -> Graph:
    g = Graph(cell_size=0.05, fps=30, start=3, end=9, registry=REGISTRY)
    cheese = g.add("stuff", "cheese", density=300.0, side=Side.RIGHT)
    block = g.add("box", "block", material=cheese, size=np.array([1.0, 2.0, 3.0]))
    sim = g.add("solve", "sim", sources=[block, cheese])
    g.add("write", "cache", particles=sim["particles"], folder=Path("out/points"))
    return g


def refused(raw, **fields) -> str:
    with pytest.raises(GraphError) as caught:
        load_graph({**raw, **fields} if isinstance(raw, dict) else raw, registry=REGISTRY)
    return str(caught.value)


def test_a_graph_built_in_python_is_the_file_format():
    """Handles become wires, enums, paths, tuples and arrays become JSON, defaults are written out."""
    raw = small_graph().to_json()
    assert raw["settings"] == {"cell_size": 0.05, "fps": 30.0, "start": 3, "end": 9}
    assert raw["nodes"]["cheese"]["knobs"] == {"density": 300.0, "side": "right"} and raw["nodes"]["cheese"]["version"] == 3
    assert raw["nodes"]["block"]["knobs"] == {"size": [1.0, 2.0, 3.0], "count": 3, "on": True}
    assert raw["nodes"]["sim"]["inputs"] == {"sources": ["block", "cheese"]}
    assert raw["nodes"]["cache"]["inputs"] == {"particles": "sim.particles"}
    assert raw["nodes"]["cache"]["knobs"] == {"folder": "out/points", "names": ["position"]}


def test_saved_and_loaded_is_the_same(tmp_path):
    """A graph file gives the same bytes when it is loaded and saved again, and relative paths start beside it."""
    first = small_graph().save(tmp_path / "shot.json")
    loaded = load_graph(first, registry=REGISTRY)
    second = loaded.save(tmp_path / "again.json")
    assert first.read_bytes() == second.read_bytes() and loaded.base == tmp_path
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.json", "shot.json"]


def test_what_editors_keep_comes_back():
    """Positions, comments, bypass, and anything under "editor" round-trip."""
    raw = small_graph().to_json()
    raw["editor"] = {"zoom": 0.5, "frames": [{"label": "sim"}]}
    raw["nodes"]["block"] |= {
        "position": [120.5, -3],
        "comment": "melts",
        "bypass": True,
        "editor": {"colour": [1, 0, 0]},
    }
    assert load_graph(raw, registry=REGISTRY).to_json() == raw


def test_missing_knobs_are_filled_in_on_save():
    """A file with few knobs is saved with all of them, so that a changed default cannot change the shot."""
    raw = {"format": "mpm_nodes.graph", "version": 1, "nodes": {"a": {"type": "stuff", "version": 3}}}
    assert load_graph(raw, registry=REGISTRY).to_json()["nodes"]["a"]["knobs"] == {"density": 400.0, "side": "left"}


def test_nodes_of_older_versions_are_upgraded():
    """Each version's upgrade runs in turn: version 1 knew half the density, as "rho"."""
    raw = {
        "format": "mpm_nodes.graph",
        "version": 1,
        "nodes": {"a": {"type": "stuff", "version": 1, "knobs": {"rho": 50.0}}},
    }
    entry = load_graph(raw, registry=REGISTRY).to_json()["nodes"]["a"]
    assert entry["version"] == 3 and entry["knobs"] == {"density": 100.0, "side": "left"}


def test_an_upgrade_that_fails_is_a_problem():
    """A knob that an upgrade cannot digest is reported with its node, not raised as it is."""
    message = refused(
        {
            "format": "mpm_nodes.graph",
            "version": 1,
            "nodes": {"a": {"type": "stuff", "version": 1, "knobs": {"rho": None}}},
        }
    )
    assert message.startswith("a: cannot be upgraded from version 1 to 3")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": "mpm_nodes.graph", "version": 1, "nodes": {"a": {}, "a": {}}}', "'a' twice"),
        ('{"format": "mpm_nodes.graph", "version": NaN}', "holds NaN"),
        ('{"format": "mpm_nodes.graph", "x": -Infinity}', "holds -Infinity"),
        ('{"format": "mpm_nodes.graph", "x": 1e999}', "too large"),
        ('{"format": "mpm_nodes.graph", "x": ' + "9" * 5000 + "}", "not usable JSON"),
        ('{"x": ' + "[" * 200 + "]" * 200 + "}", "nested deeper"),
        ('{"x": ' + "[" * 200_000 + "]" * 200_000 + "}", "nested deeper"),
        ('{"format": "mpm_nodes.graph",\n "version": 1,\n}', f":{3 if sys.version_info < (3, 13) else 2}: is not JSON"),
        ("[]", "not a file of format mpm_nodes.graph"),
        ('{"format": "mpm_nodes.substeps", "version": 1}', "not a file of format mpm_nodes.graph"),
        ('{"format": "mpm_nodes.graph", "version": 2}', "newer mpm-nodes"),
        ('{"format": "mpm_nodes.graph", "version": true}', "cannot be read"),
        ("\udcff", "UTF-8"),
    ],
)
def test_a_broken_file_is_one_line(tmp_path, text, message):
    """Duplicate keys, NaN, deep nesting, broken JSON and other formats are refused in one line that names the file."""
    path = tmp_path / "shot.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(GraphError) as caught:
        load_graph(path, registry=REGISTRY)
    assert message in str(caught.value) and "\n" not in str(caught.value) and str(path) in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_graph_given_as_a_dict_is_held_to_the_same_rules():
    """NaN, objects and endless nesting are refused in a dict as in a file."""
    endless: dict = {}
    endless["nodes"] = endless
    for raw, message in (
        ({"x": float("nan")}, "holds NaN"),
        ({"x": object()}, "cannot"),
        (endless, "cannot"),
        ({}, "not a file"),
    ):
        with pytest.raises(GraphError, match=message):
            load_graph(raw, registry=REGISTRY)


def test_an_oversized_file_is_not_read(tmp_path, monkeypatch):
    """A file above the limit is refused by its size alone."""
    monkeypatch.setattr("mpm_nodes.graph.files.strict_json.read.__defaults__", (100,))
    path = tmp_path / "shot.json"
    path.write_text(" " * 101)
    with pytest.raises(GraphError, match="larger than 100 bytes"):
        load_graph(path, registry=REGISTRY)


def test_a_missing_file_is_an_input_error(tmp_path):
    """A path that cannot be read has exit code 5, and nothing else happens."""
    with pytest.raises(InputError, match="No such file") as caught:
        load_graph(tmp_path / "nowhere.json", registry=REGISTRY)
    assert caught.value.exit_code == 5


def test_a_folder_that_cannot_be_written_is_an_output_error(tmp_path):
    """Saving into nowhere says so, with exit code 5."""
    with pytest.raises(OutputError, match="cannot be written"):
        small_graph().save(tmp_path / "nowhere" / "shot.json")


def test_all_malformed_parts_are_reported_at_once():
    """Unknown fields, wrong field types, bad names, bad settings and bad wires come as one list with their places."""
    raw = {
        "format": "mpm_nodes.graph",
        "version": 1,
        "colour": 1,
        "settings": {"cell_size": -1, "fps": "fast", "pfs": 24, "start": {"keys": [[1, 1, "step"]]}},
        "nodes": {
            "2nd": {"type": "stuff"},
            "a": {"typ": "stuff"},
            "b": {"type": "stuff", "knbos": {}},
            "c": {"type": "stuff", "bypass": "yes"},
            "d": {"type": "box", "inputs": {"material": 7}},
            "e": {"type": "box", "version": 0},
            "f": {"type": "box", "position": [1]},
            "g.h": {"type": "box"},
        },
    }
    with pytest.raises(GraphError) as caught:
        load_graph(raw, registry=REGISTRY)
    places = {problem.place for problem in caught.value.problems}
    assert places == {
        "colour",
        "settings.cell_size",
        "settings.fps",
        "settings.pfs",
        "settings.start",
        "2nd",
        "a",
        "b.knbos",
        "c.bypass",
        "d.material",
        "e.version",
        "f.position",
        "g.h",
    }
    near = next(problem for problem in caught.value.problems if problem.place == "b.knbos")
    assert "did you mean knobs" in near.cure
    assert len(str(caught.value).splitlines()) == len(caught.value.problems)


@pytest.mark.parametrize(
    ("text", "place", "value"),
    [
        ("block.size=[0, 1.5, 2]", ("block", "size"), [0, 1.5, 2]),
        ("block.count=4", ("block", "count"), 4),
        ("block.on=false", ("block", "on"), False),
        ("cheese.side=left", ("cheese", "side"), "left"),
        ('cheese.side="left"', ("cheese", "side"), "left"),
        ("cheese.density=1e3", ("cheese", "density"), 1000.0),
        ("cache.folder=out/a=b", ("cache", "folder"), "out/a=b"),
        ('sim.gravity={"keys": [[1, [0, 0, 0], "step"]]}', ("sim", "gravity"), {"keys": [[1, [0, 0, 0], "step"]]}),
        ("sim.substeps.kernel=cubic", ("sim", "substeps"), {"preset": "simple", "set": {"kernel": "cubic"}}),
        ("sim.substeps.choose.cfl=0.4", ("sim", "substeps"), {"preset": "simple", "set": {"choose.cfl": 0.4}}),
    ],
)
def test_an_override_sets_one_knob(text, place, value):
    """The value is JSON, a bare word is text; parts of substeps are reached through the knob."""
    g = small_graph()
    apply_override(g, text)
    assert g.to_json()["nodes"][place[0]]["knobs"][place[1]] == value


def test_overrides_of_substeps_add_up():
    """A second override of the same substeps keeps the first one."""
    g = small_graph()
    for text in ("sim.substeps.kernel=cubic", "sim.substeps.choose.cfl=0.4", "sim.substeps.kernel=quadratic"):
        apply_override(g, text)
    assert g.nodes["sim"].knobs["substeps"] == {"preset": "simple", "set": {"kernel": "quadratic", "choose.cfl": 0.4}}


def test_a_setting_is_overridden():
    """settings.cell_size and its like are reached in the same way."""
    g = small_graph()
    apply_override(g, "settings.cell_size=0.01")
    assert g.settings.cell_size == 0.01 and g.settings.fps == 30.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("block.size", "write --set node.knob=value"),
        ("block=3", "names no knob"),
        ("blok.size=[1,1,1]", "did you mean block"),
        ("block.siez=[1,1,1]", "did you mean size"),
        ("settings.cell=1", "did you mean cell_size"),
        ("block.size=[1,1", "not JSON"),
        ("cheese.density=NaN", "holds NaN"),
        ("settings.cell_size=0", "settings.cell_size: 0 is out of range"),
        ("block.size.x=1", "has no parts"),
        ("settings.cell_size=__import__('os')", "is text"),
    ],
)
def test_a_wrong_override_says_what_to_do(text, message):
    """Unknown places give the nearest names, values are never evaluated."""
    with pytest.raises(GraphError, match=message.replace("(", r"\(")):
        apply_override(small_graph(), text)


def test_keys_are_set_in_python():
    """key() animates a knob, also one inside the substeps."""
    g = small_graph()
    g.key("sim.gravity", 1, (0, -9.81, 0))
    g.key("sim.gravity", 24, (0, 0, 0), "step")
    g.key("sim.substeps.choose.cfl", 5, 0.3, "smooth")
    knobs = g.to_json()["nodes"]["sim"]["knobs"]
    assert knobs["gravity"] == {"keys": [[1, [0, -9.81, 0], "linear"], [24, [0, 0, 0], "step"]]}
    assert knobs["substeps"] == {"preset": "simple", "set": {"choose.cfl": {"keys": [[5, 0.3, "smooth"]]}}}


@pytest.mark.parametrize(
    ("arguments", "values", "message"),
    [
        (("stuf",), {}, "did you mean stuff"),
        (("stuff", "cheese"), {}, "is taken"),
        (("stuff", "a.b"), {}, "not a name"),
        (("stuff",), {"densty": 1.0}, "did you mean density"),
        (("choose",), {}, "unknown"),
    ],
)
def test_add_refuses_what_does_not_exist(arguments, values, message):
    """Unknown types, ports and knobs are named at once, with the nearest."""
    with pytest.raises(GraphError, match=message):
        small_graph().add(*arguments, **values)


def test_an_unknown_output_of_a_handle_is_refused():
    """handle["port"] knows the node's outputs."""
    with pytest.raises(GraphError, match="did you mean particles"):
        small_graph()["sim"]["particle"]


def test_names_are_made_up_when_left_out():
    """add() without a name counts up."""
    g = Graph(registry=REGISTRY)
    assert [g.add("stuff").id, g.add("stuff").id] == ["stuff_1", "stuff_2"]


def test_short_lists_stay_on_one_line(tmp_path):
    """A saved file reads well: vectors, key lists and wires are not spread over lines."""
    text = small_graph().save(tmp_path / "shot.json").read_text()
    assert '"size": [1.0, 2.0, 3.0]' in text and '"inputs": {"sources": ["block", "cheese"]}' in text
    assert json.loads(text) == small_graph().to_json()
