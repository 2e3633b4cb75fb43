"""A thousand mistakes are found as quickly as one is: no check compares every name with every other."""

from __future__ import annotations

import time

import pytest

from mpm_nodes.graph import keys, registry
from mpm_nodes.graph.document import load_graph
from mpm_nodes.graph.validate import validate


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
def test_many_mistakes_take_no_longer_than_few(what):
    """Two thousand of a kind, each told, in less than two seconds of the processor; the first ones with a suggestion."""
    known = registry.load(path="", entry_points=False)
    known.find("nope")  # imports the stages
    begin = time.process_time()
    problems = validate(load_graph(graph_of(MISTAKES[what]), registry=known))
    assert len(problems) >= 1999 and time.process_time() - begin < 2.0
    assert "did you mean" in problems[0].cure or "wire" in problems[0].cure


def test_what_is_suggested_does_not_depend_on_what_was_asked_before():
    """A process that has seen ten thousand mistakes says the same of the next."""
    known = registry.load(path="", entry_points=False)
    graph = load_graph(graph_of({"ball": entry("surface_partcles")}), registry=known)
    said = validate(graph)[0].cure
    for _ in range(10):
        validate(load_graph(graph_of(MISTAKES["unknown knobs"]), registry=known))
    assert validate(graph)[0].cure == said and "did you mean surface_particles" in said


@pytest.mark.parametrize("frame", [10**400, -(10**400)])
def test_a_key_at_a_frame_that_no_number_holds_is_refused(frame):
    """An integer of four hundred digits is no frame."""
    problem = keys.key_list_problem({"keys": [[1, 0.0, "linear"], [frame, 0.0, "linear"]]})
    assert problem is not None
