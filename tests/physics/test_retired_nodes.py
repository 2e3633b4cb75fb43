"""Graph files with nodes that are no more load with those that stand for them: knobs, names, wires, and what no rule can read."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpm_nodes import cli
from mpm_nodes.data import LevelSet
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.document.document import Graph, load_graph
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.graph.plan.validate import validate
from mpm_nodes.graph.reports.problems import GraphError
from usd_io.openvdb_module import find_openvdb

pytestmark = pytest.mark.phenomena("heat", "surface_tension")

START = 5
"""First frame of the shots."""
PLACED = {"path": "a.vdb", "grid": "g", "translate": [1.0, 2.0, 3.0], "scale": 0.1}
FILMED = {**PLACED, "path": "a.1.vdb", "sequence": True, "frame_offset": 3}
MESH = {"path": "a.usda", "prim": "/a", "primvar": "p"}
SLIDE = {"keys": [[1, [0.0, 0.0, 0.0], "linear"], [9, [1.0, 0.0, 0.0], "smooth"]]}
FADE = {"keys": [[1, 0.5, "step"], [9, 2.0, "linear"]]}
WARM = {"keys": [[1, 300.0, "linear"], [9, 400.0, "linear"]]}
SHIFT = {"keys": [[1, 0, "step"], [5, 7, "step"]]}

PART = {"emit": ("particles", "box", "sources"), "collide": ("collider", "plane", "colliders"), "around": (None, None, "ambient")}
"""Of each kind the port that is passed through, what is wired into it, and the port of the solve that it is wired into."""


def cos(angle: float) -> float:
    """Return k_SL / k_LG of a contact angle [degrees]."""
    return -math.cos(math.radians(angle))


def field(kind: str, **knobs: Any) -> tuple[str, dict[str, Any], dict[str, list[str]]]:
    """Return a node of a field that nothing is wired into."""
    return kind, knobs, {}


def of(kind: str, part: str, **knobs: Any) -> tuple[str, dict[str, Any], dict[str, list[str]]]:
    """Return the node that takes the place, which a field is wired into."""
    port, source, _ = PART[part]
    return kind, knobs, {**({port: [source]} if port else {}), "field": ["old_field"]}


def ramp(low: float, high: Any, mask: str = "old_mask") -> tuple[str, dict[str, Any], dict[str, list[str]]]:
    """Return the ramp that makes values of a mask."""
    return "field_ramp", {"from_value": low, "to_value": high}, {"field": [mask]}


# type of old, its version, its kind, its knobs, and what it becomes
CASES: dict[str, tuple[str, int, str, dict[str, Any], dict[str, Any]]] = {
    "air": (
        "air_vdb", 2, "around", {**PLACED, "translate": SLIDE, "outside": WARM, "convection": FADE},
        {"old_field": field("field_vdb", **{**PLACED, "translate": SLIDE}, edge="extend", outside=WARM),
         "old": of("air", "around", convection=FADE)},
    ),
    "air of defaults": (
        "air_vdb", 2, "around", {"path": "a.vdb"},
        {"old_field": field("field_vdb", path="a.vdb", grid="temperature", edge="extend", outside=293.15),
         "old": of("air", "around")},
    ),
    "air with a mask, version 1": (
        "air_vdb", 1, "around", {**FILMED, "mask_grid": "m", "outside": 250.0},
        {
            "old_field": field("field_vdb", **{**FILMED, "frame_offset": 4}, interpolation="held", edge="extend", outside=250.0),
            "old_exposure": field("field_vdb", **{**FILMED, "frame_offset": 4, "grid": "m"}, interpolation="held"),
            "old": ("air", {}, {"field": ["old_field"], "exposure": ["old_exposure"]}),
        },
    ),
    "heat in a place": (
        "heat_field_vdb", 2, "around", {**FILMED, "interpolation": "held", "strength": FADE, "scale": FADE},
        {"old_field": field("field_vdb", **{**FILMED, "scale": FADE}, interpolation="held"),
         "old": of("heat_field", "around", strength=FADE)},
    ),
    "heat in a place, version 1": (
        "heat_field_vdb", 1, "around", {"path": "a.1.vdb", "sequence": True, "frame_offset": SHIFT},
        {
            "old_field": field(
                "field_vdb", path="a.1.vdb", grid="heat_source", sequence=True, interpolation="held",
                frame_offset={"keys": [[1, 1, "step"], [5, 8, "step"]]},
            ),
            "old": of("heat_field", "around"),
        },
    ),
    "heat in a place, version 1 of one file": (
        "heat_field_vdb", 1, "around", {"path": "a.vdb", "frame_offset": 3},
        {"old_field": field("field_vdb", path="a.vdb", grid="heat_source", frame_offset=3), "old": of("heat_field", "around")},
    ),
    "a heat source": (
        "set_heat_source", 1, "emit", {"source": -3e5},
        {"old": ("set_attribute", {"attribute": "heat_source", "value": -3e5}, {"particles": ["box"]})},
    ),
    "a heat source of defaults": (
        "set_heat_source", 1, "emit", {},
        {"old": ("set_attribute", {"attribute": "heat_source", "value": 1e6}, {"particles": ["box"]})}
    ),
    "a heat source of a grid": (
        "set_heat_source_vdb", 1, "emit", {**PLACED, "strength": 4.0, "outside": 10.0},
        {"old_field": field("field_vdb", **PLACED, strength=4.0, outside=2.5),
         "old": of("set_attribute", "emit", attribute="heat_source")},
    ),
    "a temperature of a grid": (
        "set_temperature_vdb", 1, "emit", {**PLACED, "outside": 250.0},
        {"old_field": field("field_vdb", **PLACED, edge="extend", outside=250.0),
         "old": of("set_attribute", "emit", attribute="temperature")},
    ),
    "a body's temperature of a grid": (
        "collider_temperature_vdb", 1, "collide", {**PLACED, "translate": SLIDE, "outside": WARM, "conductance": FADE},
        {
            "old_field": field("field_vdb", **{**PLACED, "translate": SLIDE}, edge="spread", outside=WARM),
            "old": of("collider_temperature", "collide", temperature=WARM, conductance=FADE),
        },
    ),
    "a body's temperature of a mesh": (
        "collider_temperature_usd", 1, "collide", {"path": "a.usda", "frame_offset": SHIFT, "held": True},
        {
            "old_field": field("field_primvar", path="a.usda", primvar="temperature", frame_offset=SHIFT, outside=293.15),
            "old": of("collider_temperature", "collide", temperature=293.15, held=True),
        },
    ),
    "a concentration": (
        "set_concentration", 1, "emit", {"concentration": 0.25},
        {"old": ("set_attribute", {"attribute": "concentration", "value": 0.25}, {"particles": ["box"]})},
    ),
    "a factor": (
        "set_tension_scale", 1, "emit", {},
        {"old": ("set_attribute", {"attribute": "tension_scale", "value": 0.5}, {"particles": ["box"]})}
    ),
    "factors of a grid": (
        "set_tension_scale_vdb", 1, "emit", {**PLACED, "outside": 0.8, "painted": 0.1},
        {"old_field": field("field_vdb", **PLACED, outside=0.8), "old": of("set_attribute", "emit", attribute="tension_scale")},
    ),
    "factors of a mask": (
        "set_tension_scale_vdb", 1, "emit", {**PLACED, "values": "mask", "outside": 0.8, "painted": 0.1},
        {
            "old_mask": field("field_vdb", **PLACED), "old_field": ramp(0.8, 0.1),
            "old": of("set_attribute", "emit", attribute="tension_scale"),
        },
    ),
    "factors of a mesh": (
        "set_tension_scale_usd", 1, "emit", {**MESH, "frame": 3.5, "outside": 0.75},
        {
            "old_field": field("field_primvar", **MESH, frame_offset=3.5 - START, animated=False, outside=0.75),
            "old": of("set_attribute", "emit", attribute="tension_scale"),
        },
    ),
    "factors of a mesh's mask": (
        "set_tension_scale_usd", 1, "emit", {"path": "a.usda", "values": "mask"},
        {
            "old_mask": field("field_primvar", path="a.usda", primvar="tension_scale", frame_offset=1.0 - START, animated=False),
            "old_field": ramp(1.0, 0.5),
            "old": of("set_attribute", "emit", attribute="tension_scale"),
        },
    ),
    "factors in places": (
        "tension_field_vdb", 2, "around", {**PLACED, "translate": SLIDE, "outside": FADE},
        {"old_field": field("field_vdb", **{**PLACED, "translate": SLIDE}, outside=FADE), "old": of("tension_field", "around")},
    ),
    "factors of a mask in places, version 1": (
        "tension_field_vdb", 1, "around", {**FILMED, "values": "mask", "painted": FADE},
        {
            "old_mask": field("field_vdb", **{**FILMED, "frame_offset": 4}, interpolation="held"), "old_field": ramp(1.0, FADE),
            "old": of("tension_field", "around"),
        },
    ),
    "angles of a grid": (
        "collider_contact_angle_vdb", 1, "collide", {**PLACED, "translate": SLIDE, "outside": 80.0, "hysteresis": 20.0},
        {
            "old_field": field("field_vdb", **{**PLACED, "translate": SLIDE}, edge="spread", outside=80.0),
            "old": of("collider_contact_angle", "collide", angle=80.0, values="angle", hysteresis=20.0),
        },
    ),
    "ratios of a grid": (
        "collider_contact_angle_vdb", 1, "collide", {"path": "a.vdb", "values": "ratio", "outside": 60.0},
        {
            "old_field": field("field_vdb", path="a.vdb", grid="contact_angle", edge="spread", outside=cos(60.0)),
            "old": of("collider_contact_angle", "collide", angle=60.0, values="ratio"),
        },
    ),
    "angles of a mesh's mask": (
        "collider_contact_angle_usd", 1, "collide",
        {**MESH, "values": "mask", "outside": 120.0, "painted": 45.0, "frame_offset": 2.0},
        {
            "old_mask": field("field_primvar", **MESH, frame_offset=2.0), "old_field": ramp(cos(120.0), cos(45.0)),
            "old": of("collider_contact_angle", "collide", angle=120.0, values="ratio"),
        },
    ),
    "a mask of keyed angles": (
        "collider_contact_angle_usd", 1, "collide",
        {**MESH, "values": "mask", "outside": {"keys": [[1, 140.0, "linear"], [3, 90.0, "step"]]}, "painted": 45.0},
        {
            "old_mask": field("field_primvar", **MESH),
            "old_field": ramp({"keys": [[1, cos(140.0), "linear"], [3, cos(90.0), "step"]]}, cos(45.0)),
            "old": of(
                "collider_contact_angle", "collide",
                angle={"keys": [[1, 140.0, "linear"], [3, 90.0, "step"]]}, values="ratio",
            ),
        },
    ),
    "angles of a mesh": (
        "collider_contact_angle_usd", 1, "collide", {"path": "a.usda"},
        {
            "old_field": field("field_primvar", path="a.usda", primvar="contact_angle", outside=90.0),
            "old": of("collider_contact_angle", "collide", angle=90.0, values="angle"),
        },
    ),
}  # fmt: skip


def document(kind: str, version: int | None, part: str, knobs: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a graph file with a node called `old`, wired into a solve."""
    port, source, into = PART[part]
    old = {"type": kind, "knobs": knobs, "inputs": {port: source} if port else {}, **fields}
    old |= {} if version is None else {"version": version}
    nodes = {
        "water": {"type": "material_liquid"},
        "box": {"type": "emit_box", "knobs": {"size": [0.3, 0.3, 0.3], "centre": [0, 0, 0]}, "inputs": {"material": "water"}},
        "plane": {"type": "collide_plane"},
        "old": old,
        "sim": {"type": "solve", "inputs": {"sources": ["box"], into: ["old"]}},
    }
    settings = {"cell_size": 0.1, "start": START, "end": 9}
    return {"format": "mpm_nodes.graph", "version": 1, "settings": settings, "nodes": nodes}


def test_every_retired_type_is_tried():
    """And none of them is a node of today."""
    retired = registry.default().retired
    assert {case[0] for case in CASES.values()} == set(retired) and not set(retired) & set(registry.nodes())


@pytest.mark.parametrize("case", CASES)
def test_the_nodes_of_today_stand_for_it(case):
    """Exactly these knobs and wires; all others, and what it is wired into, are as they were, and the graph is valid."""
    kind, version, part, knobs, expected = CASES[case]
    given = document(kind, version, part, knobs, comment="mine", position=[30, 40], editor={"colour": "red"})
    graph = load_graph(given)
    made = {name: entry for name, entry in graph.nodes.items() if name not in given["nodes"] or name == "old"}
    assert {name: (entry.type, entry.knobs, entry.inputs) for name, entry in made.items()} == expected
    assert [name for name in graph.nodes if name in given["nodes"]] == list(given["nodes"])
    assert graph.nodes["sim"].inputs[PART[part][2]] == ["old"]
    old = graph.nodes["old"]
    assert (old.comment, old.position, old.editor, old.bypass) == ("mine", [30, 40], {"colour": "red"}, False)
    places = [tuple(entry.position) for entry in made.values()]
    assert len(set(places)) == len(places) and all(x < 30 for name, (x, _) in zip(made, places, strict=True) if name != "old")
    assert validate(graph) == []
    assert load_graph(graph.to_json()).to_json() == graph.to_json()


@pytest.mark.parametrize("case", CASES)
def test_upgrade_prints_the_nodes_of_today(case, tmp_path, capsys):
    """What `mpm-nodes upgrade` writes has no retired type, loads, and means the same."""
    kind, version, part, knobs, _ = CASES[case]
    file = tmp_path / "old.json"
    file.write_text(json.dumps(document(kind, version, part, knobs)))
    assert cli.main(["upgrade", str(file)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert kind not in {record["type"] for record in printed["nodes"].values()}
    assert load_graph(printed).to_json() == load_graph(file).to_json() == printed


@pytest.mark.parametrize("part", ["emit", "collide"])
def test_a_node_that_is_bypassed_stays_so(part):
    """The particles or the collider go through, and nothing of its file is looked at."""
    kind = {"emit": "set_temperature_vdb", "collide": "collider_temperature_vdb"}[part]
    graph = load_graph(document(kind, 1, part, {"path": "none.vdb"}, bypass=True))
    assert graph.nodes["old"].bypass and validate(graph) == []
    port, source, _ = PART[part]
    assert plan_graph(graph).nodes and graph.nodes["old"].inputs[port] == [source]
    preflight.estimate(plan_graph(graph), START)


def test_names_that_are_taken_get_numbers():
    """New nodes keep out of the way of those of the file, wherever they stand in it, and of each other."""
    given = document("air_vdb", 2, "around", {"path": "a.vdb", "mask_grid": "m"})
    given["nodes"] = {"old_field": {"type": "field_constant"}, **given["nodes"], "old_exposure": {"type": "field_constant"}}
    given["nodes"]["old_field_2"] = {"type": "heat_field_vdb", "knobs": {"path": "b.vdb"}}
    graph = load_graph(given)
    assert graph.nodes["old"].inputs == {"field": ["old_field_3"], "exposure": ["old_exposure_2"]}
    assert graph.nodes["old_field_2"].inputs == {"field": ["old_field_2_field"]}
    assert {graph.nodes[name].type for name in ("old_field", "old_exposure")} == {"field_constant"}
    assert graph.nodes["old_field_2_field"].knobs["path"] == "b.vdb" and graph.nodes["old_field_3"].knobs["path"] == "a.vdb"
    assert validate(graph) == []


def test_wires_are_kept_as_they_are_written():
    """Ports of sources, ports that are named at its end, and several wires."""
    given = document("set_concentration", 1, "emit", {})
    given["nodes"]["old"]["inputs"] = {"particles": "box.particles"}
    given["nodes"]["sim"]["inputs"]["sources"] = ["box", "old.particles"]
    graph = load_graph(given)
    assert graph.nodes["old"].inputs == {"particles": ["box.particles"]} and validate(graph) == []
    given["nodes"]["old"]["inputs"] = {}
    (problem,) = validate(load_graph(given))
    assert problem.place == "old.particles"


UNREAD = {
    "strength of nothing": ("set_heat_source_vdb", "emit", {"path": "a.vdb", "strength": 0.0, "outside": 5.0}, "a strength of 0"),
    "keyed frame": ("set_tension_scale_usd", "emit", {"path": "a.usda", "frame": FADE}, ""),
    "text for an angle": ("collider_contact_angle_usd", "collide", {"path": "a.usda", "values": "ratio", "outside": "wet"}, ""),
    "text for an offset": ("air_vdb", "around", {"path": "a.1.vdb", "sequence": True, "frame_offset": "later"}, ""),
}


@pytest.mark.parametrize("case", UNREAD)
def test_what_no_rule_can_read_is_a_problem_of_the_node(case):
    """All of them at once, with the node, its type and what to do."""
    kind, part, knobs, says = UNREAD[case]
    given = document(kind, 1, part, knobs)
    given["nodes"]["other"] = {"type": "tension_field_vdb", "version": 1, "knobs": {"sequence": True, "frame_offset": []}}
    with pytest.raises(GraphError) as caught:
        load_graph(given)
    first, other = caught.value.problems
    assert (first.place, other.place) == ("old", "other")
    assert f"is a {kind}, and cannot be brought to the nodes of today" in first.message and says in first.message
    assert "by hand" in first.cure


def test_other_knobs_out_of_range_are_found_by_validate():
    """By the node and the knob that stand for them."""
    graph = load_graph(document("air_vdb", 2, "around", {"path": "a.vdb", "convection": -1.0, "scale": "wide"}))
    assert {problem.place for problem in validate(graph)} == {"old.convection", "old_field.scale"}


# ---------------------------------------------------------------- what they give
def value_of(case: dict[str, Any], folder: Path, frame: int = START) -> Any:
    """Return what the node `old` gives."""
    return Evaluator(load_graph(case, base=folder)).value("old", frame)


@pytest.fixture(scope="module")
def paint(tmp_path_factory) -> Path:
    """Write a grid `g` that is 0.5 around the origin, over 1.6 m."""
    try:
        find_openvdb()
    except Exception:
        pytest.skip("OpenVDB is not installed")
    from usd_io.volumes import write_volumes

    folder = tmp_path_factory.mktemp("paint")
    corner = 8 * np.stack(np.meshgrid([-1, 0], [-1, 0], [-1, 0], indexing="ij"), -1).reshape(-1, 3).astype(np.int32)
    write_volumes(
        folder / "a.vdb", [LevelSet(corner, np.full((8, 8, 8, 8), 0.5, np.float32), 0.1, background=0.0, kind="fog", name="g")]
    )
    return folder


@pytest.mark.parametrize(
    ("kind", "knobs", "attribute", "inside", "outside"),
    [
        ("set_heat_source_vdb", {"strength": 4.0, "outside": 10.0}, "heat_source", 2.0, 10.0),
        ("set_temperature_vdb", {"outside": 250.0}, "temperature", 0.5, 250.0),
        ("set_tension_scale_vdb", {"outside": 0.8}, "tension_scale", 0.5, 0.8),
        ("set_tension_scale_vdb", {"values": "mask", "outside": 0.8, "painted": 0.2}, "tension_scale", 0.5, 0.8),
        ("set_tension_scale_vdb", {"values": "mask", "outside": 0.25, "painted": 2.0}, "tension_scale", 1.125, 0.25),
    ],
)
def test_matter_has_the_values_that_it_had(paint, kind, knobs, attribute, inside, outside):
    """In the grid and far from it."""
    for shift, value in ((0.0, inside), (9.0, outside)):
        given = document(kind, 1, "emit", {"path": "a.vdb", "grid": "g", "translate": [shift, 0.0, 0.0], **knobs})
        np.testing.assert_allclose(value_of(given, paint)[attribute], value, rtol=1e-6)


@pytest.mark.parametrize(("values", "ratio"), [("angle", cos(0.5)), ("ratio", 0.5), ("mask", 0.5 * (cos(120.0) + cos(60.0)))])
def test_bodies_are_wetted_as_they_were(paint, values, ratio):
    """Angles, ratios and masks, each with the angle outside."""
    given = document("collider_contact_angle_vdb", 1, "collide", {"path": "a.vdb", "grid": "g", "values": values})
    given["nodes"]["old"]["knobs"] |= {"outside": 120.0, "painted": 60.0, "hysteresis": 10.0}
    body = value_of(given, paint)
    np.testing.assert_allclose(body.wetting.at(np.array([[0.0, 0.0, 0.0], [9.0, 0.0, 0.0]])), [ratio, cos(120.0)], rtol=1e-6)
    assert (body.contact_angle, body.contact_hysteresis) == (120.0, 10.0)


def test_a_factor_is_read_at_its_frame(tmp_path):
    """The frame that the old node named, whichever frame asks: the template of a stream is asked for at many."""
    Sdf, Usd, UsdGeom = (pytest.importorskip(f"pxr.{name}") for name in ("Sdf", "Usd", "UsdGeom"))
    stage = Usd.Stage.CreateNew(str(tmp_path / "a.usda"))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    mesh = UsdGeom.Mesh.Define(stage, "/a")
    mesh.GetPointsAttr().Set([(-1, 0, -1), (1, 0, -1), (1, 0, 1), (-1, 0, 1)])
    mesh.GetFaceVertexCountsAttr().Set([4])
    mesh.GetFaceVertexIndicesAttr().Set([3, 2, 1, 0])
    primvar = UsdGeom.PrimvarsAPI(mesh).CreatePrimvar("p", Sdf.ValueTypeNames.FloatArray, UsdGeom.Tokens.vertex)
    for frame in (1, 11):
        primvar.Set([0.1 * frame] * 4, frame)
    stage.Save()
    given = document("set_tension_scale_usd", 1, "emit", {**MESH, "frame": 3.0})
    for frame in (START, START + 1, 9):
        found = value_of(given, tmp_path, frame)
        near = np.abs(found["position"][:, 1]) < 0.1
        np.testing.assert_allclose(found["tension_scale"][near], 0.3, rtol=1e-5)


def test_a_graph_that_is_built_has_no_retired_types():
    """Only files have them: in code they are unknown."""
    with pytest.raises(GraphError, match="set_concentration"):
        Graph().add("set_concentration", "soap")


@pytest.mark.parametrize(
    ("given", "told"), [("outsde", "is not a knob of set_temperature_vdb"), ("partcles", "is not an input of")]
)
def test_what_it_never_had_is_told(given, told):
    """A misspelt knob or input of a node that is no more, with the nearest of those that it had."""
    node = {"type": "set_temperature_vdb", "knobs": {"path": "a.vdb"}, "inputs": {"particles": "box"}}
    (node["knobs"] if given == "outsde" else node["inputs"])[given] = "box"
    with pytest.raises(GraphError, match=told) as caught:
        load_graph({"format": "mpm_nodes.graph", "version": 1, "settings": {}, "nodes": {"old": node}})
    assert f"old.{given}" in str(caught.value) and f"did you mean {'outside' if given == 'outsde' else 'particles'}" in str(
        caught.value
    )
