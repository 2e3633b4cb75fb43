"""A cook looks at its graph once: validated, resolved, planned and its presets read a single time."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from mpm_nodes.cli import main
from mpm_nodes.graph.cook import evaluator
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.document import substep_document
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.files import strict_json
from mpm_nodes.graph.plan import hazards, plan, substeps, validate
from mpm_nodes.solver import program


@pytest.fixture
def counted(monkeypatch) -> Counter:
    """Counts the calls of everything that looks at a whole graph or substep graph, wherever it was imported to."""
    counts: Counter = Counter()
    packages = (evaluator, hazards, plan, program, strict_json, substep_document, substeps, validate)
    homes = {
        "examine": validate.examine,
        "plan_graph": plan.plan_graph,
        "load_substeps": substep_document.load_substeps,
        "plan_resolved": substeps.plan_resolved,
        "Wiring": validate.Wiring,
        "read": strict_json.read,
    }
    for name, function in homes.items():

        def call(*args, _name=name, _function=function, **knobs):
            counts[_name] += 1
            return _function(*args, **knobs)

        for package in packages:
            if getattr(package, name, None) is function:
                monkeypatch.setattr(package, name, call)
    return counts


def fall(substeps="explicit_apic", solves: int = 1) -> Graph:
    graph = Graph(cell_size=0.1, start=1, end=1)
    stuff = graph.add("material_neo_hookean", "stuff")
    for number in range(solves):
        box = graph.add("emit_box", f"box{number}", material=stuff, size=(0.3, 0.3, 0.3))
        graph.add("solve", f"sim{number}", sources=[box], substeps=substeps)
    return graph


@pytest.mark.parametrize("solves", [1, 2])
def test_a_cook_plans_its_graph_once(solves, counted):
    """One examination, one plan; of equal substeps one look at their file; a plan for each solve."""
    result = execute(fall(solves=solves))
    assert result.cooked == (1,) and len(result.outputs) == solves
    once = {"examine": 1, "plan_graph": 1, "Wiring": 1, "load_substeps": 1, "read": 1}
    assert counted == once | {"plan_resolved": solves}


def test_edits_cost_no_second_look(counted):
    """A patch is applied on the one way."""
    graph = fall({"preset": "explicit_apic", "edits": [{"bypass": "apply_plasticity"}]})
    execute(graph)
    assert (counted["load_substeps"], counted["plan_resolved"], counted["examine"]) == (1, 1, 1)


def test_candidates_are_resolved_once_each(counted):
    """The preset that chooses while it runs is resolved itself, and each of its candidates."""
    execute(fall("auto"))
    assert (counted["load_substeps"], counted["plan_resolved"], counted["examine"]) == (3, 2, 1)


def test_the_command_line_adds_nothing(counted, tmp_path, monkeypatch):
    """`mpm-nodes cook` with an override examines the graph once as well."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shot.json").write_text(json.dumps(fall().to_json()))
    assert main(["cook", "shot.json", "--set", "sim0.dt_max=0.005", "--events", "none"]) == 0
    assert (counted["examine"], counted["plan_graph"], counted["load_substeps"]) == (1, 1, 1)


@pytest.mark.phenomena("surface_tension")
def test_solves_that_share_substeps_share_their_plan(counted, tmp_path):
    """Looking for what no stage reads asks each of them for a plan: one is made (401 solves took 1.3 s to validate)."""
    graph = Graph()
    graph.add("material_liquid", "water")
    graph.add("material_surface_tension", "wet", material="water", tension=0.07)
    graph.add("emit_box", "drop", material="wet", size=(0.1, 0.1, 0.1))
    for n in range(5):
        graph.add("solve", f"run_{n}", sources=["drop"], substeps="surface_tension")
    graph.save(tmp_path / "many.json")
    assert main(["validate", str(tmp_path / "many.json")]) == 0
    assert counted["plan_resolved"] == 1
