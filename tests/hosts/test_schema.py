"""The JSON Schema of graph files takes what loads, and refuses what does not."""

import copy
import json
from pathlib import Path

import jsonschema
import pytest

from mpm_nodes import cli
from mpm_nodes.data import Particles
from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.graph.declare.decorators import node
from mpm_nodes.graph.declare.registry import Registry
from mpm_nodes.graph.document.document import load_graph
from mpm_nodes.hosts.schema import graph_schema
from mpm_nodes.packaged_samples import samples_folder

GRAPHS = sorted(
    path
    for folder in (samples_folder(), Path(__file__).parents[2] / "docs" / "examples")
    for path in folder.glob("*.json")
    if json.loads(path.read_text()).get("format") == "mpm_nodes.graph"
)


@pytest.fixture(scope="module")
def checker():
    """A validator by the schema, which is itself valid."""
    schema = graph_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_every_packaged_graph_fits(checker):
    """Samples and examples do as they are written by us: of the newest versions, every knob given."""
    assert len(GRAPHS) > 100
    for path in GRAPHS:
        faults = [
            f"{'/'.join(map(str, e.absolute_path))}: {e.message[:200]}" for e in checker.iter_errors(load_graph(path).to_json())
        ]
        assert not faults, (path.name, faults)


GRAPH = {
    "format": "mpm_nodes.graph",
    "version": 1,
    "settings": {"cell_size": 0.1},
    "nodes": {
        "jelly": {"type": "material_library", "knobs": {"name": "jelly"}},
        "cube": {"type": "emit_box", "knobs": {"size": [1, 1, 1]}, "inputs": {"material": "jelly"}},
        "solve": {
            "type": "solve",
            "knobs": {"gravity": {"keys": [[1, [0, -9.81, 0], "linear"], [9, [0, 0, 0], "step"]]}, "substeps": "explicit_apic"},
            "inputs": {"sources": ["cube"]},
        },
    },
}


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("format",), "other"),
        (("colour",), 1),
        (("settings", "cell_size"), 0),
        (("settings", "cell"), 0.1),
        (("settings", "cell_size"), {"keys": [[1, 0.1, "linear"]]}),
        (("nodes", "body"), {"type": "collide_usd"}),
        (("nodes", "cube", "type"), "emit_bxo"),
        (("nodes", "cube", "knobs", "sizes"), [1, 1, 1]),
        (("nodes", "cube", "knobs", "size"), [1, 1]),
        (("nodes", "cube", "knobs", "jitter"), "much"),
        (("nodes", "cube", "knobs", "seeding"), "random walk"),
        (("nodes", "cube", "inputs", "matter"), "jelly"),
        (("nodes", "solve", "inputs", "sources"), 3),
        (("nodes", "solve", "knobs", "gravity"), {"keys": [[1, [0, 0], "linear"]]}),
        (("nodes", "solve", "knobs", "gravity"), {"keys": [[1, [0, 0, 0], "bent"]]}),
        (("nodes", "solve", "knobs", "precision"), {"keys": [[1, "single", "step"]]}),
        (("nodes", "a b"), {"type": "emit_box"}),
    ],
)
def test_what_is_wrong_does_not_fit(checker, place, value):
    """A slip of each kind in a graph that fits."""
    assert checker.is_valid(GRAPH)
    changed = copy.deepcopy(GRAPH)
    at = changed
    for name in place[:-1]:
        at = at[name]
    at[place[-1]] = value
    assert not checker.is_valid(changed)


@node(category="Mine", label="Wire")
def wire(particles: Particles) -> Particles:
    """Pass particles on.

    Args:
        particles: Any.
    """
    return particles


def test_nodes_of_a_user_may_be_called_as_parts_of_a_schema_are():
    """A type "wire": what wires are stays what it is."""
    registry = Registry([*registries.default().nodes().values(), wire.declaration])
    checker = jsonschema.Draft202012Validator(graph_schema(registry))
    graph = copy.deepcopy(GRAPH)
    graph["nodes"]["mine"] = {"type": "wire", "inputs": {"particles": "cube"}}
    assert checker.is_valid(graph)
    for inputs in ({"particle": "cube"}, {"particles": 3}):
        graph["nodes"]["mine"]["inputs"] = inputs
        assert not checker.is_valid(graph)


def test_the_command_prints_it(capsys):
    """`mpm-nodes host schema` prints it as JSON."""
    assert cli.main(["host", "schema"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(graph_schema()))
