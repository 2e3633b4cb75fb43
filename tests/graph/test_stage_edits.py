"""Edits of substep graphs: a small patch plans as the whole document that it stands for, in JSON and from Python."""

from __future__ import annotations

import json
from typing import Annotated as A

import plan_stages
import pytest

from mpm_nodes.data import Grid, Particles, Reads, Stage, StepContext, Writes
from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.graph.declare import stage
from mpm_nodes.graph.document.document import Graph, load_graph
from mpm_nodes.graph.document.recipe import SubstepRecipe
from mpm_nodes.graph.document.substep_document import load_substeps, raw_fact
from mpm_nodes.graph.plan.hazards import order_problems
from mpm_nodes.graph.plan.substeps import plan_substeps
from mpm_nodes.graph.plan.validate import validate
from mpm_nodes.graph.reports.problems import GraphError


@stage(label="Gust")
def gust(grid: A[Grid, Reads("mass", "momentum"), Writes("momentum")], step: StepContext, *, push: float = 1.0) -> Stage["grid"]:
    """Push the grid.

    Args:
        push: How much.
    """


@stage(label="Stir")
def stir(
    particles: A[Particles, Reads("position", "velocity"), Writes("velocity")], step: StepContext, *, rate: float = 1.0
) -> Stage["particles"]:
    """Stir the particles.

    Args:
        rate: How much.
    """


SHARED = registries.default()
REGISTRY = SHARED.extended(gust.declaration, stir.declaration, *(f.declaration for f in plan_stages.PASSES))
DOCUMENTS = {name: json.loads(path.read_text()) for name, path in SHARED.presets.items()}
PRESETS = sorted(name for name, document in DOCUMENTS.items() if "nodes" in document)


def signature(value) -> str:
    substeps, problems = load_substeps(value, REGISTRY)
    assert problems == []
    return substeps.signature(raw_fact)


def problems_of(value) -> list[str]:
    return [str(problem) for problem in load_substeps(value, REGISTRY)[1]]


# ---------------------------------------------------------------- what edits do
def test_an_inserted_stage_plans_as_the_document_with_it():
    """The patch that inserts a wind gives the plan of the copied document that wires it by hand."""
    by_hand = json.loads(json.dumps(DOCUMENTS["explicit_apic"]))
    by_hand["nodes"]["blow"] = {"type": "gust", "knobs": {"push": 30.0}, "inputs": {"grid": "add_stress_forces"}}
    by_hand["nodes"]["update_grid_velocity"]["inputs"]["grid"] = "blow"
    edit = {"insert": "blow", "after": "add_stress_forces", "type": "gust", "knobs": {"push": 30.0}}
    patch = {"preset": "explicit_apic", "edits": [edit]}
    assert plan_substeps(patch, (), REGISTRY).signature == plan_substeps(by_hand, (), REGISTRY).signature
    before = {"preset": "explicit_apic", "edits": [{**edit, "before": "update_grid_velocity"}]}
    del before["edits"][0]["after"]
    assert signature(before) == signature(patch)
    stages = plan_substeps({**patch, "set": {"blow.push": 2.0}}, (), REGISTRY).stages
    assert {stage.id: stage.knobs for stage in stages}["blow"] == {"push": 2.0}


@pytest.mark.parametrize("where", ["after", "before"])
@pytest.mark.parametrize("preset", PRESETS)
def test_what_is_inserted_and_removed_leaves_no_trace(preset, where):
    """At every place of every preset: a stage put in and taken out again gives the preset's own digest."""
    own = signature(preset)
    for anchor in DOCUMENTS[preset]["nodes"]:
        for type in ("gust", "stir"):
            put = {"insert": "extra", where: anchor, "type": type}
            assert signature({"preset": preset, "edits": [put, {"remove": "extra"}]}) == own
            with_it = signature({"preset": preset, "edits": [put]})
            assert with_it != own
            assert signature({"preset": preset, "edits": [put, {"bypass": "extra"}]}) == own
            assert signature({"preset": preset, "edits": [put, {"bypass": "extra"}, {"enable": "extra"}]}) == with_it
            assert signature({"preset": preset, "edits": [put, {"rename": "extra", "to": "other"}]}) == with_it


@pytest.mark.parametrize("preset", PRESETS)
def test_particles_may_be_touched_after_any_stage_but_the_first(preset):
    """Whatever the anchor, a stage that moves particles is put in an order that the planner proves."""
    names = [planned.id for planned in plan_substeps(preset, (), REGISTRY).stages]
    for anchor in names[1:]:
        substeps, problems = load_substeps(
            {"preset": preset, "edits": [{"insert": "extra", "after": anchor, "type": "stir"}]}, REGISTRY
        )
        assert problems == []
        found = order_problems(substeps)
        assert found == [], f"{preset}, after {anchor}: {found}"


def test_removing_equals_bypassing_for_every_stage():
    """A stage that is taken out leaves what bypassing it leaves; parameters of its knobs go with it."""
    for preset in PRESETS:
        for name in DOCUMENTS[preset]["nodes"]:
            removed = {"preset": preset, "edits": [{"remove": name}]}
            assert signature(removed) == signature({"preset": preset, "edits": [{"bypass": name}]})
    found = problems_of({"preset": "explicit_apic", "set": {"cfl": 0.3}, "edits": [{"remove": "choose_time_step"}]})
    assert len(found) == 1 and found[0].startswith("cfl: is not a parameter of these substeps")


def test_a_replaced_stage_keeps_name_wires_and_knobs():
    """The new stage stands where the old one stood; a domain that only the old one had is joined past it."""
    edits = [{"insert": "a", "after": "add_stress_forces", "type": "gust", "knobs": {"push": 3.0}}]
    same = [*edits, {"replace": "a", "type": "gust"}]
    assert signature({"preset": "explicit_apic", "edits": same}) == signature({"preset": "explicit_apic", "edits": edits})
    other, problems = load_substeps(
        {"preset": "explicit_apic", "edits": [*edits, {"replace": "a", "type": "stir", "knobs": {"rate": 2.0}}]}, REGISTRY
    )
    assert problems == [] == order_problems(other)
    assert other.knobs["a"] == {"rate": 2.0}
    assert other.wires["update_grid_velocity"]["grid"] == [("add_stress_forces", "grid")]
    assert other.wires["follow_density"]["particles"] == [("a", "particles")]


def test_wires_can_be_moved_by_hand():
    """connect and disconnect say what insert would have done."""
    edits = [
        {"insert": "a", "after": "gather", "type": "stir"},
        {"connect": "a.particles", "from": "follow_density"},
        {"connect": "gather.particles", "from": "a"},
        {"connect": "update_deformation.particles", "from": "gather"},
    ]
    wanted = {"preset": "explicit_apic", "edits": [{"insert": "a", "before": "gather", "type": "stir"}]}
    moved = {"preset": "explicit_apic", "edits": edits}
    assert load_substeps(moved, REGISTRY)[0].wires == load_substeps(wanted, REGISTRY)[0].wires
    loose = {"preset": "explicit_apic", "edits": [{"disconnect": "gather.grid"}]}
    assert any(line.startswith("gather.grid: has no wire") for line in problems_of(loose))


def test_settings_go_preset_edits_then_beside():
    """Where several set one knob, the one written last for the artist wins: what stands beside the edits."""
    edits = [{"set": {"cfl": 0.1, "rasterize.kernel": "cubic"}}, {"set": {"cfl": 0.2}}]
    knobs = load_substeps({"preset": "explicit_apic", "edits": edits}, REGISTRY)[0].knobs
    assert knobs["choose_time_step"]["cfl"] == 0.2 and knobs["rasterize"]["kernel"] == "cubic"
    beside = load_substeps({"preset": "explicit_apic", "edits": edits, "set": {"cfl": 0.3}}, REGISTRY)[0].knobs
    assert beside["choose_time_step"]["cfl"] == 0.3


def test_edits_beside_auto_go_to_every_candidate():
    """A preset that chooses while it runs is edited as a whole, or refused as a whole."""
    edit = {"insert": "extra", "before": "gather", "type": "stir"}
    substeps, problems = load_substeps({"preset": "auto", "edits": [edit], "set": {"extra.rate": 4.0}}, REGISTRY)
    assert problems == []
    assert [each.knobs["extra"] for each in (substeps, *substeps.others)] == [{"rate": 4.0}] * 2
    only_one = {"preset": "auto", "edits": [{"remove": "minimise_energy"}]}
    assert problems_of(only_one)[0].startswith("edits[0].minimise_energy: is not a stage of these substeps")


# ---------------------------------------------------------------- what is refused
def test_everything_that_is_wrong_with_a_patch_comes_at_once():
    """Seven broken edits, a broken knob and a broken setting are nine problems; each names its edit and a cure."""
    value = {
        "preset": "explicit_apic",
        "set": {"nothing": 1},
        "edits": [
            {"insert": "a", "after": "rasterise", "type": "gust"},
            {"insert": "b", "after": "rasterize", "type": "gusty"},
            {"insert": "c", "after": "rasterize", "type": "gust", "knobs": {"push": "hard"}},
            {"insert": "gather", "after": "rasterize", "type": "gust"},
            {"remove": "gathr"},
            {"remove": "gather", "because": "I can"},
            {"explode": "gather"},
            {"connect": "gather.grids", "from": "rasterize"},
        ],
    }
    found = problems_of(value)
    for start in (
        "edits[0].rasterise: is not a stage of these substeps; did you mean rasterize",
        "edits[1].b: is of type gusty, which is unknown; did you mean gust",
        "edits[3].gather: is taken",
        "edits[4].gathr: is not a stage of these substeps; did you mean gather",
        "edits[5].because: does not stand beside remove",
        "edits[6]:",
        "edits[7].gather.grids: is not a port; did you mean grid",
        "nothing: is not a parameter",
        'c.push: "hard" is text',
    ):
        assert sum(line.startswith(start) for line in found) == 1, (start, found)
    assert len(found) == 9


@pytest.mark.parametrize("edits", [3, {}, [3], [[]], [{}], [{"remove": 3}], [{"remove": "gather", "bypass": "gather"}],
                                   [{"insert": "a", "type": "gust"}], [{"set": []}], [{"rename": "gather"}],
                                   [{"rename": "gather", "to": "grid"}], [{"rename": "gather", "to": "a b"}],
                                   [{"connect": "gather.grid", "from": 3}], [{"connect": "gather.grid", "from": [3]}],
                                   [{"insert": "a", "after": "gather", "type": "gust", "knobs": []}],
                                   [{"insert": "a", "after": "gather", "type": "solve"}],
                                   [{"insert": "a", "after": "gather", "before": "gather", "type": "gust"}]])  # fmt: skip
def test_no_form_of_edits_raises_anything_but_problems(edits):
    """Whatever stands in the list, the answer is a list of problems that name it."""
    found = problems_of({"preset": "explicit_apic", "edits": edits})
    assert found and all(line.startswith("edits") for line in found)


# ---------------------------------------------------------------- from Python
def sim() -> tuple[Graph, object]:
    graph = Graph(cell_size=0.1)
    stuff = graph.add("material_neo_hookean", "stuff")
    return graph, graph.add("solve", "sim", sources=[graph.add("emit_box", "box", material=stuff)])


def test_one_line_puts_a_declared_function_into_a_solve():
    """The function comes along, the shared registry stays as it is, and the file holds the patch alone."""
    graph, solve = sim()
    assert solve.substeps.insert_after("add_stress_forces", gust, push=30.0) == "gust"
    assert validate(graph) == []
    assert "gust" in graph.registry and "gust" not in registries.default()
    record = graph.to_json()["nodes"]["sim"]["knobs"]["substeps"]
    edit = {"insert": "gust", "after": "add_stress_forces", "type": "gust", "version": 1, "knobs": {"push": 30.0}}
    assert record == {"preset": "explicit_apic", "edits": [edit]}
    assert validate(load_graph(graph.to_json(), registry=REGISTRY)) == []
    assert any("gust" in str(problem) for problem in validate(load_graph(graph.to_json())))
    assert solve.substeps.insert_before("gather", gust) == "gust_2"
    assert list(solve.substeps).count("gust_2") == 1 and "gust" in solve.substeps


def test_every_edit_from_python_is_the_edit_of_the_file():
    """Methods and JSON are two spellings of one thing."""
    recipe = SubstepRecipe("explicit_apic", registry=REGISTRY)
    recipe.insert_before("gather", "stir", "mix", rate=2.0)
    recipe.bypass("apply_plasticity")
    recipe.bypass("apply_plasticity", on=False)
    recipe.rename("mix", "whirl")
    recipe.replace("whirl", gust, push=2.0)
    recipe.connect("move_particles.particles", "collide_particles")
    recipe.disconnect("move_particles.particles", "collide_particles")
    recipe.connect("move_particles.particles", "collide_particles", "apply_plasticity")
    recipe.remove("collide_particles")
    recipe.set("cfl", 0.25)
    assert recipe.resolve().signature(raw_fact) == signature(recipe.value)
    assert len(recipe.value["edits"]) == 9 and recipe.value["set"] == {"cfl": 0.25}
    json.dumps(recipe.value)


def test_an_edit_that_cannot_be_done_changes_nothing():
    """The place is named, the cure given, and the recipe is as before."""
    graph, solve = sim()
    with pytest.raises(GraphError, match="add_stres_forces: is not a stage of these substeps; did you mean add_stress_forces"):
        solve.substeps.insert_after("add_stres_forces", gust)
    with pytest.raises(GraphError, match="solve, which is a node, not a stage"):
        solve.substeps.insert_after("gather", "solve")
    with pytest.raises(GraphError, match="box: has no substeps"):
        _ = graph["box"].substeps
    assert solve.entry.knobs["substeps"] == "explicit_apic"


def test_a_whole_document_is_edited_in_place():
    """A document stays a document; it plans as the preset with the same edits."""
    recipe = SubstepRecipe(DOCUMENTS["explicit_apic"], registry=REGISTRY)
    recipe.insert_after("add_stress_forces", gust, push=30.0)
    recipe.remove("apply_plasticity")
    assert "edits" not in recipe.value and "gust" in recipe.value["nodes"]
    edits = [{"insert": "gust", "after": "add_stress_forces", "type": "gust", "knobs": {"push": 30.0}}]
    assert signature(recipe.value) == signature({"preset": "explicit_apic", "edits": [*edits, {"remove": "apply_plasticity"}]})
