"""A thousand mistakes are found as quickly as one is: no check compares every name with every other."""

from __future__ import annotations

import tracemalloc

import pytest

from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.document.document import load_graph
from mpm_nodes.graph.files import strict_json
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.graph.plan.validate import validate
from mpm_nodes.graph.reports.problems import MOST_KEPT, GraphError, Problem, Problems
from mpm_nodes.graph.time import keys


def graph_of(entries: dict) -> dict:
    return {"format": "mpm_nodes.graph", "version": 1, "settings": {}, "nodes": entries}


def entry(kind: str = "surface_particles", **given) -> dict:
    return {"type": kind, "version": 1, "knobs": {}, "inputs": {}, **given}


MANY = range(2000)
MISTAKES = {
    "wires from nowhere": {f"ball_{n}": entry(inputs={"particles": f"bell_{n}"}) for n in MANY},
    "wires of a wrong type": {f"ball_{n}": entry(inputs={"particles": f"ball_{n - 1}"}) for n in MANY},
    "unknown types": {f"ball_{n}": entry(f"surface_partcles{n}") for n in MANY},
    "unknown knobs": {"ball": entry(knobs={f"radius{n}": 1 for n in MANY})},
    "unknown ports": {"ball": entry(inputs={f"particles{n}": "ball" for n in MANY})},
}


@pytest.mark.parametrize("what", MISTAKES)
def test_many_mistakes_take_no_longer_than_few(what, stopwatch):
    """Two thousand of a kind, each told, in less than two seconds of the processor; the first ones with a suggestion."""
    known = registry.load(path="", entry_points=False)
    known.find("nope")  # imports the stages
    with stopwatch() as taken:
        problems = validate(load_graph(graph_of(MISTAKES[what]), registry=known))
    assert len(problems) >= 1999 and taken.seconds < 2.0
    assert "did you mean" in problems[0].cure or "wire" in problems[0].cure


def test_what_is_suggested_does_not_depend_on_what_was_asked_before():
    """A process that has seen ten thousand mistakes says the same of the next."""
    known = registry.load(path="", entry_points=False)
    graph = load_graph(graph_of({"ball": entry("surface_partcles")}), registry=known)
    said = validate(graph)[0].cure
    for _ in range(10):
        validate(load_graph(graph_of(MISTAKES["unknown knobs"]), registry=known))
    assert validate(graph)[0].cure == said and "did you mean surface_particles" in said


SUBSTEPS = {
    "settings of substeps": {"preset": "auto", "set": {f"z{n}": 1 for n in range(30_000)}},
    "stages": {"format": "mpm_nodes.substeps", "version": 1, "nodes": {f"s{n}": entry("gather") for n in range(5000)}},
    "edits": {"preset": "explicit_apic", "edits": [{"insert": f"s{n}", "after": "gather"} for n in range(5000)]},
}
FLOODS = {
    "wires": {"fall": entry("solve", inputs={"sources": [f"b{n}" for n in range(30_000)]})},
    "fields": {"fall": entry("solve", **{f"b{n}": 1 for n in range(30_000)})},
    "wires that are none": {"fall": entry("solve", inputs={f"b{n}": [1] for n in range(30_000)})},
    "unknown types": {f"n{n}": entry("nope") for n in range(9000)},
    **{what: {"fall": entry("solve", knobs={"substeps": value})} for what, value in SUBSTEPS.items()},
}


BUNDLES = {
    "one-wire ports": ("colour_particles", "particles", ["ball"]),
    "one-wire ports, wrong type": ("colour_particles", "particles", ["snow"]),
    "ports that take many": ("merge_particles", "sources", ["ball"]),
    "ports that take many, wrong type": ("merge_particles", "sources", ["ball"] * 99 + ["snow"]),
}


@pytest.mark.parametrize("what", BUNDLES)
def test_wires_cost_no_more_than_the_file_that_names_them(what, stopwatch):
    """400,000 wires, as many as a file can name, in less than a second of the processor; each port that is wrong is told."""
    kind, port, pattern = BUNDLES[what]
    known = registry.load(path="", entry_points=False)
    known.find("nope")
    wires = (pattern * 1000)[:1000]
    nodes = {"snow": entry("material_snow"), "ball": entry("emit_sphere", inputs={"material": "snow"})}
    graph = load_graph(graph_of(nodes | {f"n{n}": entry(kind, inputs={port: wires}) for n in range(400)}), registry=known)
    with stopwatch() as taken:
        problems = validate(graph)
    assert taken.seconds < 1.0
    expected = 400 if "many" not in what else (4000 if "wrong" in what else 0)
    found = [problem for problem in problems if problem.place.endswith(f".{port}")]
    assert len(found) >= expected and (expected or not found)


@pytest.mark.parametrize("what", FLOODS)
def test_a_flood_of_mistakes_is_counted_and_few_are_kept(what, stopwatch):
    """Thirty thousand of a kind: told in a hundred lines, within seconds of the processor, and 10,000 are kept at most."""
    known = registry.load(path="", entry_points=False)
    known.find("nope")
    with stopwatch() as taken, pytest.raises(GraphError) as caught:
        plan_graph(load_graph(graph_of(FLOODS[what]), registry=known))
    assert taken.seconds < 4.0 and len(caught.value.problems) <= MOST_KEPT and len(str(caught.value)) < 200_000
    told = int(str(caught.value).splitlines()[-1].split()[1].replace(",", "")) + 99 if caught.value.more else 0
    assert told == len(caught.value.problems) + caught.value.more or not caught.value.more


def test_problems_count_what_they_do_not_keep(monkeypatch):
    """By each way that problems come in; cures of those that are not kept are not looked for."""
    monkeypatch.setattr("mpm_nodes.graph.reports.problems.MOST_KEPT", 3)
    found = Problems(Problem(str(n), "is wrong") for n in range(5))
    assert (len(found), found.more) == (3, 2)
    found.add("x", "is wrong", cure=lambda: pytest.fail("is looked for"))
    whole = Problems([Problem("a", "is wrong")])
    whole.extend_inside("outer", found)
    assert [problem.place for problem in whole] == ["a", "outer.0", "outer.1"] and whole.more == 4
    whole.extend(found)
    assert (len(whole), whole.more) == (3, 10) and GraphError(whole).more == 10
    assert str(GraphError(whole)).count("\n") == 3 and str(GraphError(whole)).endswith("and 10 more problems")


def test_equal_solves_are_looked_at_once(stopwatch):
    """Four hundred solves of one material: what they stand for, and what it weighs, is found once."""
    known = registry.load(path="", entry_points=False)
    bodies = {"stuff": entry("material_neo_hookean"), "body": entry("emit_box", inputs={"material": "stuff"})}
    solve = entry("solve", knobs={"substeps": {"preset": "implicit_apic"}}, inputs={"sources": "body"})
    plans = []
    for count in (1, 400):
        with stopwatch() as taken:
            plan = plan_graph(load_graph(graph_of({**bodies, **{f"fall{n}": solve for n in range(count)}}), registry=known))
            preflight.estimate(plan, 1)
        plans.append((plan, taken.seconds))
    shared = {id(plans[1][0][f"fall{n}"].substeps["substeps"]) for n in range(400)}
    assert len(shared) == 1 and plans[1][1] < 2.0
    assert plans[0][0]["fall0"].substeps["substeps"].whole_signature == plans[1][0]["fall7"].substeps["substeps"].whole_signature


def test_what_is_wired_twice_forty_times_over_is_estimated_at_once():
    """Each of forty nodes takes the one before it twice: 2^39 copies of a body are one body."""
    known = registry.load(path="", entry_points=False)
    nodes = {"stuff": entry("material_neo_hookean"), "m0": entry("emit_box", inputs={"material": "stuff"})}
    nodes |= {f"m{n}": entry("merge_particles", inputs={"sources": [f"m{n - 1}"] * 2}) for n in range(1, 40)}
    told = preflight.estimate(plan_graph(load_graph(graph_of(nodes), registry=known)), 1)
    assert len(told["m39"]["bodies"]) == 1 and told["m39"]["particles"] == 2**39 * told["m0"]["particles"]


TEXTS = {
    "a key twice among many": ("{" + ",".join(f'"k{n}": 1' for n in range(50_000)) + ', "k49999": 2}', "'k49999' twice"),
    "brackets": ("[" * 60_000, "is nested deeper"),
    "more values than fit": ("[" + "{}," * 400_000 + "1]", "more than 500,000 values"),
}


@pytest.mark.parametrize("what", TEXTS)
def test_what_is_refused_is_refused_at_once(what, stopwatch):
    """No check looks at every pair of keys, and nothing is made of what is refused."""
    text, words = TEXTS[what]
    with stopwatch() as taken, pytest.raises(GraphError, match=words):
        strict_json.parse(text, "text")
    assert taken.seconds < 1.0


@pytest.mark.parametrize("piece", ["{},", '{"a":1},', "1.5,", '"ab",', '{"a":[]},'])
def test_what_a_file_takes_is_bounded(piece):
    """As many values as a file may hold take less than 200 MB, text included."""
    text = "[" + piece * 2000 + "1]"
    tracemalloc.start()
    strict_json.parse(text, "text")
    most = tracemalloc.get_traced_memory()[1] + len(text)
    tracemalloc.stop()
    assert most * strict_json.MOST_VALUES / sum(map(text.count, ",:[{")) < 200e6


@pytest.mark.parametrize("preset", ["auto", "explicit_apic"])
@pytest.mark.parametrize("given", [1e300, [1], "x", None])
def test_settings_that_are_no_object_are_refused(preset, given):
    """Beside a preset that leaves the choice to the solve, too."""
    known = registry.load(path="", entry_points=False)
    graph = load_graph(graph_of({"fall": entry("solve", knobs={"substeps": {"preset": preset, "set": given}})}), registry=known)
    places = [problem.place for problem in validate(graph)]
    assert sorted(places) == ["fall", "fall.substeps.set"], "the solve has no source either"


@pytest.mark.parametrize("frame", [10**400, -(10**400)])
def test_a_key_at_a_frame_that_no_number_holds_is_refused(frame):
    """An integer of four hundred digits is not a frame."""
    problem = keys.key_list_problem({"keys": [[1, 0.0, "linear"], [frame, 0.0, "linear"]]})
    assert problem is not None
