"""The contract of every node and stage of the registry: none of them needs a test of its own for it."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest

from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.graph.declare.declarations import Declaration, NodeDeclaration, StageDeclaration, type_name
from mpm_nodes.graph.declare.knobs import to_json
from mpm_nodes.graph.declare.registry import Registry
from mpm_nodes.graph.document.document import Graph, load_graph
from mpm_nodes.graph.document.substep_document import load_substeps
from mpm_nodes.graph.plan.plan import plan_graph, plan_substeps
from mpm_nodes.graph.plan.validate import validate
from mpm_nodes.packaged_samples import samples_folder

ALL = list(registries.default())
NODES = [d for d in ALL if isinstance(d, NodeDeclaration)]
STAGES = [d for d in ALL if isinstance(d, StageDeclaration)]

each = pytest.mark.parametrize("declaration", ALL, ids=lambda d: d.id)
each_node = pytest.mark.parametrize("declaration", NODES, ids=lambda d: d.id)
each_stage = pytest.mark.parametrize("declaration", STAGES, ids=lambda d: d.id)


def alone(declaration: NodeDeclaration) -> Graph:
    """Return a graph that holds this node, with a value for each knob that has no default."""
    stand_in = {
        "path": "some/file",
        "output_path": "some/file",
        "str": "text",
        "strings": ["text"],
        "int": 1,
        "float": 1.0,
        "table": [[300.0, 1.0]],
    }
    graph = Graph()
    graph.add(declaration.id, "it", **{k.name: stand_in[k.kind] for k in declaration.knobs if k.required})
    return graph


def test_there_is_something_to_sweep():
    """The registry holds nodes and stages, each under its own id."""
    assert NODES and STAGES and len({d.id for d in ALL}) == len(ALL)


@each
def test_it_says_what_it_is(declaration: Declaration):
    """Label in title case, one imperative line, help of every knob that ends as a sentence."""
    assert declaration.label[:1].isupper() and len(declaration.label) <= 40
    assert declaration.doc.endswith(".") and declaration.doc[:1].isupper() and len(declaration.doc) <= 400
    for knob in declaration.knobs:
        assert len(knob.doc) >= 5 and knob.doc[:1] == knob.doc[:1].upper(), f"{declaration.id}.{knob.name}: {knob.doc!r}"


@each
def test_its_defaults_are_allowed(declaration: Declaration):
    """A default has no fault, survives the way through a graph file, and lies within the slider as well."""
    for knob in declaration.knobs:
        if knob.required:
            continue
        raw = json.loads(json.dumps(knob.json_default(), allow_nan=False))
        assert knob.fault(raw) is None
        value = knob.convert(raw)
        if knob.kind != "substeps":
            assert to_json(value) == raw, f"{declaration.id}.{knob.name}"
        if knob.range is not None and knob.kind in ("int", "float") and value is not None:
            soft = (knob.range.soft_min, knob.range.soft_max)
            assert (soft[0] is None or soft[0] <= value) and (soft[1] is None or value <= soft[1])


@each
def test_its_ranges_make_sense(declaration: Declaration):
    """min <= soft_min <= soft_max <= max, and a logarithmic slider does not reach zero."""
    for knob in declaration.knobs:
        if knob.range is not None:
            assert knob.kind in ("int", "float", "vector"), f"{declaration.id}.{knob.name} has a range"
            limits = knob.range
            ordered = [x for x in (limits.min, limits.soft_min, limits.soft_max, limits.max) if x is not None]
            assert ordered == sorted(ordered), f"{declaration.id}.{knob.name}"
            if limits.log:
                low = limits.soft_min if limits.soft_min is not None else limits.min
                assert low is not None and (low > 0 or limits.exclusive_min), f"{declaration.id}.{knob.name}"


@each
def test_bad_values_are_refused_with_a_cure(declaration: Declaration):
    """NaN, wrong kinds and values beyond the limits have message, allowed values and cure; none raises."""
    for knob in declaration.knobs:
        for bad in (float("nan"), {"x": 1}, [[]], object()):
            fault = knob.fault(bad)
            if knob.kind != "substeps":
                assert fault is not None and all(fault), f"{declaration.id}.{knob.name} takes {bad!r}"
        if knob.range is not None and knob.range.min is not None and knob.kind in ("int", "float"):
            assert knob.fault(knob.range.min - 1) is not None


@each
def test_it_is_written_as_json(declaration: Declaration):
    """What `mpm-nodes nodes --json` prints of it is plain JSON with all that a host needs."""
    record = json.loads(json.dumps(declaration.to_json(), allow_nan=False))
    assert record["id"] == declaration.id and len(record["knobs"]) == len(declaration.knobs)
    for knob in record["knobs"]:
        assert knob["kind"] == "enum" or not knob["choices"]
        assert knob["doc"] and knob["kind"]


@each
def test_it_stays_a_plain_function(declaration: Declaration):
    """The function is a plain callable that knows its declaration, and its signature has what is declared."""
    function = declaration.function
    assert inspect.isfunction(function) and function.declaration is declaration
    keyword_only = [p.name for p in inspect.signature(function).parameters.values() if p.kind == p.KEYWORD_ONLY]
    assert keyword_only == [knob.name for knob in declaration.knobs]


@each_node
def test_a_node_with_its_defaults_round_trips(declaration: NodeDeclaration):
    """Added, written, read and written again it is the same; alone it lacks nothing but its required wires."""
    graph = alone(declaration)
    raw = graph.to_json()
    assert load_graph(raw).to_json() == raw
    missing = {f"it.{port.name}" for port in declaration.ports if not port.optional} | ({"it"} if declaration.needs_any else set())
    assert {problem.place for problem in validate(graph)} == missing


@each_node
def test_a_node_can_be_found_by_menu_and_wire(declaration: NodeDeclaration):
    """It has a category; its ports and outputs have types with names; ports and knobs do not share names."""
    assert declaration.category[:1].isupper()
    assert all(type_name(item.type) for item in (*declaration.ports, *declaration.outputs))
    names = [item.name for item in (*declaration.ports, *declaration.knobs)]
    assert len(set(names)) == len(names)


@pytest.mark.phenomena("foam", "heat", "melting", "projection", "rigid_bodies", "separate_bodies", "surface_tension")
@each_node
def test_every_required_port_can_be_fed(declaration: NodeDeclaration):
    """For each port there is a node whose output fits it."""
    for port in declaration.ports:
        assert any(port.accepts(output.type) for other in NODES for output in other.outputs), f"{declaration.id}.{port.name}"


@each_stage
def test_a_stage_stands_in_a_preset_or_says_what_it_touches(declaration: StageDeclaration):
    """What it writes leaves it, so that later stages can be ordered after it."""
    for domain in declaration.domains:
        assert not domain.writes or domain.name in declaration.outputs


@pytest.mark.parametrize("name", sorted(registries.default().presets))
def test_a_preset_is_sound(name: str):
    """Each preset is planned without a problem and promotes its knobs under names that all can be set."""
    registry: Registry = registries.default()
    document = json.loads(registry.presets[name].read_text())
    assert document["label"] and document["doc"].endswith(".")
    plan = plan_substeps(name, ("deformation",))
    if "candidates" in document:
        assert plan.sets_dt and set(document["candidates"]) <= set(registry.presets)
        return
    assert len(plan.stages) == len(document["nodes"]) and plan.sets_dt
    for parameter, places in document["parameters"].items():
        stage, _, knob = places[0].partition(".")
        value = load_substeps(name)[0].knobs[stage][knob]
        _, problems = load_substeps({"preset": name, "set": {parameter: value}})
        assert problems == []
    for stage, record in document["nodes"].items():
        assert stage in {planned.id for planned in plan.stages} and record["type"] in registry


@pytest.mark.phenomena("foam", "heat", "melting", "projection", "rigid_bodies", "separate_bodies", "surface_tension")
@pytest.mark.parametrize("path", sorted(samples_folder().glob("*.json")), ids=lambda p: p.stem)
def test_a_shipped_sample_is_sound(path: Path):
    """Each sample graph loads, has no problem and can be planned."""
    assert plan_graph(load_graph(path)).nodes
