"""The substep plan: one proven order for one graph, everything resolved, nothing decided by names."""

from __future__ import annotations

import copy
import json
import random
from typing import Annotated as A

import plan_stages
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_stages import registry, substeps

from mpm_nodes.data import Attribute, Grid, Kernel, Particles, Reads, Stage, StepContext, Writes
from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.graph.declare import stage
from mpm_nodes.graph.plan.plan import SubstepPlan, plan_substeps
from mpm_nodes.graph.reports.problems import GraphError


@stage(label="Tap")
def tap(particles: A[Particles, Reads("velocity")], grid: A[Grid, Reads("momentum")]) -> Stage["grid"]:
    """Look at particles and grid, and hand on the grid alone."""


@stage(label="Force")
def add_force(grid: A[Grid, Reads("force"), Writes("force")]) -> Stage["grid"]:
    """Add to a force that somebody else has written."""


@stage(label="Cool")
def cool(
    particles: A[Particles, Attribute("warmth", "T", (3,), "K", "x", "x", "Otherwise."), Reads("warmth")],
) -> Stage["particles"]:
    """Describe warmth otherwise than `heat`."""


@stage(label="Stamp")
def stamp(grid: A[Grid, Writes("force")]) -> Stage["grid"]:
    """Write a force that nobody reads."""


REGISTRY = registry(tap, add_force, cool, stamp)


def plan(value, law_states=("deformation",)) -> SubstepPlan:
    return plan_substeps(value, law_states, REGISTRY)


def refused(value, law_states=("deformation",)) -> list[str]:
    with pytest.raises(GraphError) as caught:
        plan(value, law_states)
    return [str(problem) for problem in caught.value.problems]


def shape(substep_plan: SubstepPlan) -> list:
    """Return a plan with the names left out."""
    return [(s.declaration.id, s.arguments, s.knobs, s.reads, s.writes) for s in substep_plan.stages]


def wires_of(document: dict) -> list[tuple[str, str, int]]:
    """Return (stage, port, number) of every wire."""
    return [
        (name, port, number)
        for name, record in document["nodes"].items()
        for port, sources in record["inputs"].items()
        for number in range(len(sources) if isinstance(sources, list) else 1)
    ]


def with_pass(document: dict, place: tuple[str, str, int], name: str = "extra") -> dict:
    """Return the substeps with a stage that touches nothing on one wire."""
    document = copy.deepcopy(document)
    stage_name, port, number = place
    inputs = document["nodes"][stage_name]["inputs"]
    sources = inputs[port] if isinstance(inputs[port], list) else [inputs[port]]
    document["nodes"][name] = {"type": f"pass_{port}", "inputs": {port: sources[number]}}
    inputs[port] = [*sources[:number], name, *sources[number + 1 :]]
    return document


def renamed(document: dict, seed: int) -> dict:
    """Return the substeps with new names, shuffled objects and shuffled merges."""
    shuffle = random.Random(seed)
    names = list(document["nodes"])
    new = dict(zip(names, shuffle.sample([f"s{i}" for i in range(99)], len(names)), strict=True))

    def wire(source: str) -> str:
        head, dot, port = source.partition(".")
        return new.get(head, head) + dot + port

    nodes = []
    for name, record in document["nodes"].items():
        wires = [
            (port, shuffle.sample([wire(s) for s in ss], len(ss)) if isinstance(ss, list) else wire(ss))
            for port, ss in record["inputs"].items()
        ]
        nodes.append((new[name], {**record, "inputs": dict(shuffle.sample(wires, len(wires)))}))
    parameters = {key: [wire(place) for place in places] for key, places in document["parameters"].items()}
    return {**document, "nodes": dict(shuffle.sample(nodes, len(nodes))), "parameters": parameters}


# ---------------------------------------------------------------- order
def test_the_order_follows_the_wires():
    """Every stage comes after what it is wired from; unordered ones stand in a fixed order."""
    names = [s.id for s in plan(substeps()).stages]
    assert names[:5] == ["choose", "scatter", "push", "bump", "gather"] and names[-1] == "drift"
    assert set(names[5:7]) == {"strain", "heat"}


@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_names_and_file_order_do_not_change_the_plan(seed):
    """Renaming all stages and permuting the JSON gives the same calls and the same signature."""
    first, second = plan(substeps()), plan(renamed(substeps(), seed))
    assert shape(first) == shape(second) and first.signature == second.signature


@pytest.mark.parametrize("place", wires_of(substeps()))
def test_a_stage_that_touches_nothing_changes_no_order(place):
    """On any wire, one or two stages without reads and writes leave the order of the others as it was."""
    once = with_pass(substeps(), place)
    twice = with_pass(once, ("extra", place[1], 0), "another")
    before = [s.id for s in plan(substeps()).stages]
    for document in (once, twice):
        assert [s.id for s in plan(document).stages if not s.declaration.is_transparent] == before


def test_a_stage_that_touches_nothing_stands_between_its_neighbours():
    """It is called after what it is wired from and before what is wired from it."""
    names = [s.id for s in plan(with_pass(substeps(), ("bump", "grid", 0))).stages]
    assert names.index("push") < names.index("extra") < names.index("bump")


def test_a_bypassed_stage_is_left_out():
    """Its ports pass through, merges included."""
    document = substeps()
    document["nodes"]["push"]["bypass"] = True
    document["nodes"]["heat"]["bypass"] = True
    assert [s.id for s in plan(document).stages] == ["choose", "scatter", "bump", "gather", "strain", "drift"]


# ---------------------------------------------------------------- what is refused
def test_unordered_stages_that_touch_one_array_are_refused():
    """Both stages, the array, who writes it, and the wire that would order them."""
    document = substeps(drift={"type": "drift", "inputs": {"particles": "scatter"}})
    problems = refused(document)
    message = next(line for line in problems if "drift" in line and "gather" in line)
    assert message == (
        "gather.particles: is not ordered with drift: drift writes particles.position, gather reads it; "
        'wire "particles": "drift.particles" into gather'
    )


def test_a_hazard_names_the_stage_that_can_hand_the_array_on():
    """A stage that does not hand particles on can only be wired after the one that writes them."""
    document = substeps(
        look={"type": "tap", "inputs": {"particles": "choose", "grid": "scatter"}},
        push={"type": "push", "inputs": {"grid": "scatter"}},
        bump={"type": "bump", "inputs": {"grid": ["push", "look"], "colliders": "colliders"}},
    )
    # both hand the grid on, and which of the two comes first follows from a digest of their sources
    either = {
        "push.grid: is not ordered with look: look reads grid.momentum, push reads and writes it; "
        'wire "grid": "look.grid" into push',
        "look.grid: is not ordered with push: push reads and writes grid.momentum, look reads it; "
        'wire "grid": "push.grid" into look',
    }
    problems = refused(document)
    assert len(problems) == 1 and set(problems) < either
    loose = substeps(look={"type": "tap", "inputs": {"particles": "choose", "grid": "scatter"}})
    assert (
        "look.particles: is not ordered with gather: look reads particles.velocity, gather writes it; "
        'wire "particles": "gather.particles" into look'
    ) in refused(loose)


def test_two_writers_need_an_order():
    """Two stages that only write one array are refused side by side: what it holds in the end would be anybody's guess."""
    document = substeps(
        one={"type": "stamp", "inputs": {"grid": "scatter"}},
        other={"type": "stamp", "inputs": {"grid": "scatter"}},
        push={"type": "push", "inputs": {"grid": ["one", "other"]}},
    )
    (problem,) = refused(document)
    assert "is not ordered with" in problem and problem.count("writes grid.force") == 1 and "writes it" in problem
    document["nodes"]["other"]["inputs"]["grid"] = "one"
    document["nodes"]["push"]["inputs"]["grid"] = "other"
    assert plan(document)


def test_two_readers_need_no_order():
    """Stages that only read may stand side by side, if one of them carries the domain on."""
    document = substeps(
        look={"type": "tap", "inputs": {"particles": "choose", "grid": "scatter"}},
        push={"type": "push", "inputs": {"grid": "look"}},
    )
    assert len(plan(document).stages) == 9


def test_the_law_state_is_spelled_out():
    """A hazard on a law's own state is found once the laws are known."""

    @stage(label="Clamp")
    def clamp(particles: A[Particles, Reads("deformation"), Writes("deformation")]) -> Stage["particles"]:
        """Touch the deformation by its name."""

    document = substeps(
        clamp={"type": "clamp", "inputs": {"particles": "gather"}},
        drift={"type": "drift", "inputs": {"particles": ["strain", "heat", "clamp"]}},
    )
    own = registry(clamp)
    planned = plan_substeps(document, ("volume_change",), own)
    assert ("particles", "volume_change") in {a for s in planned.stages for a in s.writes}
    needed = planned.fields_needed["particles"]
    assert "volume_change" in needed and "law_state" not in needed
    with pytest.raises(GraphError, match=r"particles\.deformation"):
        plan_substeps(document, ("deformation",), own)


def test_a_grid_array_that_nobody_wrote_is_refused():
    """The grid begins empty: reading first is an error that names array and cure; particles live on."""
    document = substeps(
        force={"type": "add_force", "inputs": {"grid": "scatter"}}, push={"type": "push", "inputs": {"grid": "force"}}
    )
    assert refused(document) == ["force.grid: reads grid.force, which nothing wrote before it; add a stage that writes grid.force"]
    early = substeps(
        push={"type": "push", "inputs": {"grid": "grid"}},
        scatter={"type": "scatter", "inputs": {"particles": "choose", "grid": "push"}},
        bump={"type": "bump", "inputs": {"grid": "scatter", "colliders": "colliders"}},
    )
    assert any("push.grid: reads grid.momentum" in line and "wire push after" in line for line in refused(early))


def test_the_time_step_is_chosen_before_it_is_used():
    """A stage that takes the step must come after the stage that sets dt."""
    document = substeps(
        scatter={"type": "scatter", "inputs": {"particles": "particles", "grid": "grid"}},
        choose={"type": "choose", "inputs": {"particles": "scatter"}},
        gather={"type": "gathered", "inputs": {"particles": "choose", "grid": "bump"}},
    )
    assert refused(document) == [
        "push.grid: takes the step but is not ordered after choose, which sets dt; "
        'wire "particles": "choose.particles" into a stage before push'
    ]
    late = substeps(
        strain={"type": "strain", "inputs": {"particles": "particles"}},
        choose={"type": "choose", "inputs": {"particles": "strain"}},
    )
    assert refused(late) == [
        "strain.particles: takes the step but is not ordered after choose, which sets dt; "
        'wire "particles": "choose.particles" into strain'
    ]


def test_one_stage_sets_the_time_step():
    """Two stages that set dt are refused; none at all is allowed, dt is then given from outside."""
    second = substeps(
        again={"type": "choose", "inputs": {"particles": "choose"}},
        scatter={"type": "scatter", "inputs": {"particles": "again", "grid": "grid"}},
    )
    assert any("sets dt, and so does" in line for line in refused(second))
    none = substeps(choose=None, scatter={"type": "scatter", "inputs": {"particles": "particles", "grid": "grid"}})
    assert not plan({**none, "parameters": {}}).sets_dt and plan(substeps()).sets_dt


def test_each_domain_ends_in_one_place():
    """Branches that write other arrays must meet again, or the end of the domain is ambiguous."""
    document = substeps(drift={"type": "drift", "inputs": {"particles": "strain"}})
    assert any("ends particles, and so does" in line for line in refused(document))


def test_a_branch_that_writes_nothing_ends_nothing():
    """A stage that hands a domain on as it is may stand beside the chain; behind one that writes, it ends the domain."""
    looking = substeps(look={"type": "pass_particles", "inputs": {"particles": "choose"}})
    assert plan(looking)
    behind = substeps(
        drift={"type": "drift", "inputs": {"particles": "strain"}},
        look={"type": "pass_particles", "inputs": {"particles": "drift"}},
    )
    assert any("ends particles, and so does" in line for line in refused(behind))


def test_attributes_described_twice_must_agree():
    """Two stages with different ideas of one attribute are refused."""
    document = substeps(cool={"type": "cool", "inputs": {"particles": "drift"}})
    assert any("describes particles.warmth otherwise than" in line for line in refused(document))


# ---------------------------------------------------------------- what is planned
def test_allocation_is_what_is_touched():
    """Attributes and grid arrays are the union of reads and writes, user attributes come with their description."""
    planned = plan(substeps())
    assert planned.fields_needed["particles"] == ("deformation", "position", "velocity", "warmth")
    assert planned.fields_needed["grid"] == ("mass", "momentum", "position")
    assert planned.own_fields["particles"] == {"warmth": plan_stages.WARMTH}
    assert plan(substeps(), ()).fields_needed["particles"] == ("position", "velocity", "warmth")


def test_parameters_reach_every_stage_that_they_name():
    """A promoted name sets several knobs; "stage.knob" sets one and wins; defaults fill the rest."""
    value = {**substeps(), "set": {"gather.kernel": "quadratic", "kernel": "cubic", "cfl": 0.25}}
    knobs = {s.id: s.knobs for s in plan(value).stages}
    assert knobs["scatter"] == {"kernel": Kernel.CUBIC} and knobs["gather"] == {"kernel": Kernel.QUADRATIC}
    assert knobs["choose"] == {"cfl": 0.25} and knobs["push"] == {"by": 1.0}


def test_presets_are_files_and_take_settings(tmp_path):
    """A preset is found by its file's name; its settings are those of the value, over its own."""
    path = tmp_path / "simple.json"
    path.write_text(json.dumps({**substeps(), "set": {"cfl": 0.1, "kernel": "cubic"}}))
    own = registry(presets={"simple": path})
    for value, cfl in (("simple", 0.1), ({"preset": "simple", "set": {"cfl": 0.2}}, 0.2), (path, 0.1)):
        planned = plan_substeps(value, (), own)
        assert planned.stages[0].knobs == {"cfl": cfl} and planned.stages[1].knobs == {"kernel": Kernel.CUBIC}


def test_a_bound_plan_is_plain_calls():
    """Each call passes the domains and the step in the order of the signature, and the knobs by name."""
    plan_stages.calls.clear()
    bound = plan({**substeps(), "set": {"push.by": {"keys": [[1, 0.0, "linear"], [3, 4.0, "linear"]]}}}).bind(
        {"particles": "P", "grid": "G", "colliders": "C"}, "S"
    )
    bound.sample(2.5)
    for call in bound.calls:
        call()
    assert plan_stages.calls[:5] == [
        ("choose", "P", "S", 0.5),
        ("scatter", "P", "G", Kernel.QUADRATIC),
        ("push", "S", "G", 3.0),
        ("bump", "G", "C"),
        ("gathered", "P", "G", Kernel.QUADRATIC),
    ]
    assert plan_stages.calls[-1] == ("drift", "P", "S") and len(plan_stages.calls) == 8


def test_two_bound_plans_do_not_share_knobs():
    """Sampling one solver's keyed knobs leaves another's alone."""
    planned = plan({**substeps(), "set": {"push.by": {"keys": [[1, 0.0, "linear"], [3, 4.0, "linear"]]}}})
    one, other = (
        planned.bind({"particles": 1, "grid": 2, "colliders": 3}, 4),
        planned.bind({"particles": 1, "grid": 2, "colliders": 3}, 4),
    )
    one.sample(3)
    assert one.calls[2].keywords == {"by": 4.0} and other.calls[2].keywords == {"by": 0.0}


def test_a_step_in_the_middle_of_a_signature_is_no_matter():
    """Domains and step may stand in any order before the knobs."""

    @stage(label="Odd")
    def odd(grid: A[Grid, Writes("mass")], now: StepContext, particles: A[Particles, Reads("mass")]) -> Stage["grid"]:
        """Take everything in an odd order."""
        plan_stages.calls.append(("odd", grid, now, particles))

    document = {
        "format": "mpm_nodes.substeps",
        "version": 1,
        "nodes": {"odd": {"type": "odd", "inputs": {"grid": "grid", "particles": "particles"}}},
    }
    plan_stages.calls.clear()
    for call in plan_substeps(document, (), registry(odd)).bind({"particles": "P", "grid": "G"}, "S").calls:
        call()
    assert plan_stages.calls == [("odd", "G", "S", "P")]


def test_equal_branches_may_stand_in_any_order():
    """Two equal stages side by side, told apart by their names only, give the same plan whichever is written first."""
    base = substeps(
        look={"type": "tap", "inputs": {"particles": "choose", "grid": "scatter"}},
        look2={"type": "tap", "inputs": {"particles": "choose", "grid": "scatter"}},
        push={"type": "push", "inputs": {"grid": ["look", "look2"]}},
    )
    orders = {tuple(s.declaration.id for s in plan(renamed(base, seed)).stages) for seed in range(6)}
    assert len(orders) == 1


def test_presets_of_the_package_are_planned_in_one_order():
    """Every shipped preset is sound, and neither names nor stages that touch nothing change its order."""
    shared = registries.default()
    with_passes = registries.Registry([*shared, *(f.declaration for f in plan_stages.PASSES)], shared.presets)
    assert shared.presets
    for name, path in shared.presets.items():
        document = json.loads(path.read_text())
        if "candidates" in document:
            continue  # each of them is a preset of its own
        before = plan_substeps(name, ("deformation",), shared)
        types = [s.declaration.id for s in before.stages]
        for seed in range(3):
            assert [s.declaration.id for s in plan_substeps(renamed(document, seed), ("deformation",), shared).stages] == types
        for place in wires_of(document):
            after = plan_substeps(with_pass(document, place), ("deformation",), with_passes)
            assert [s.id for s in after.stages if not s.declaration.is_transparent] == [s.id for s in before.stages]
