"""What `validate` calls valid cooks: random graphs of every node that reads no file, and names that two nodes write."""

from __future__ import annotations

import random

import pytest

from mpm_nodes.data import MpmNodesError, Particles
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.graph.plan.validate import validate
from mpm_nodes.graph.reports.problems import GraphError

READ_FILES = {"field_image", "field_primvar", "emit_mesh", "emit_level_set", "read_points", "retime_points", "emit_secondary"}
NODES = {name: each for name, each in registry.nodes().items() if name not in READ_FILES and not name.endswith(("_usd", "_vdb"))}
TEXTS = ("temperature", "velocity", "age", "rest", "displayColor", "birth")


def random_graph(chance: random.Random) -> Graph:
    """Return some nodes wired as their types allow, with some knobs set to what their kinds allow."""
    graph, outputs = Graph(cell_size=0.1, start=1, end=2), []

    def add(name: str) -> None:
        wires, knobs = {}, {}
        for port in NODES[name].ports:
            fitting = [place for place, kind in outputs if port.accepts(kind)]
            if fitting and (not port.optional or port.name == "sources" or chance.random() < 0.6):
                wires[port.name] = chance.sample(fitting, min(len(fitting), chance.choice((1, 2)))) if port.many else fitting[-1]
            elif not fitting and not port.optional:
                return
        for knob in NODES[name].knobs:
            if knob.name != "device" and chance.random() < 0.2:  # a machine may have none
                if knob.choices:
                    knobs[knob.name] = chance.choice(knob.choices)
                elif knob.kind in ("bool", "str"):
                    knobs[knob.name] = chance.random() < 0.5 if knob.kind == "bool" else chance.choice(TEXTS)
        own = f"{name}{len(graph.nodes)}"
        try:
            graph.add(name, own, **wires, **knobs)
        except MpmNodesError:  # a knob of text that takes other texts
            return
        outputs.extend((f"{own}.{output.name}", output.type) for output in NODES[name].outputs)

    begin = ["material_library", "emit_box", chance.choice([*NODES])]
    middle = [chance.choice([*NODES]) for _ in range(chance.randrange(2, 9))]
    for name in [*begin, *middle, *(["solve"] if chance.random() < 0.5 else []), *(chance.choice([*NODES]) for _ in range(3))]:
        add(name)
    return graph


def estimates_of(graph: Graph) -> dict[str, dict] | None:
    """Return what `validate` finds out, None where it refuses."""
    if validate(graph):
        return None
    try:
        return preflight.estimate(plan_graph(graph), graph.settings.start)
    except MpmNodesError:
        return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seeds", [range(60), pytest.param(range(60, 400), marks=pytest.mark.slow)], ids=["few", "many"])
def test_what_is_valid_cooks(seeds, tmp_path):
    """No graph that passes is refused by the cook, and particles carry the columns that were told before it."""
    cooked = told = 0
    for seed in seeds:
        graph = random_graph(random.Random(seed))
        estimates = estimates_of(graph)
        if estimates is None:
            continue
        execute(graph, out=tmp_path / str(seed))
        cooked += 1
        evaluator = Evaluator(graph)
        for name, facts in estimates.items():
            outputs = NODES[graph.nodes[name].type].outputs
            if facts.get("columns") is not None and outputs and outputs[0].type is Particles:
                told += 1
                assert set(evaluator.value(f"{name}.{outputs[0].name}", 2).attributes) == facts["columns"], (seed, name)
    assert cooked > len(seeds) // 6 and told > cooked


@pytest.mark.parametrize(
    ("kind", "knob", "names"),
    [("write_cache", "name", ("cache", "CACHE")), ("write_cache", "name", ("cache", "cache")),
     ("export_points", "path", ("p.####", "P.####.obj")), ("export_points", "path", ("points/p", "points/p"))],
)  # fmt: skip
def test_two_nodes_that_write_one_file_are_refused(kind, knob, names):
    """Also where capitals alone tell the names apart."""
    graph = Graph(cell_size=0.1, start=1, end=2)
    block = graph.add("emit_box", "block", material=graph.add("material_library", "stuff"))
    for number, name in enumerate(names):
        graph.add(kind, f"sink{number}", particles=block, **{knob: name})
    with pytest.raises(GraphError, match=r"sink(0: writes \S+, and so does sink1|1: writes \S+, and so does sink0)"):
        preflight.estimate(plan_graph(graph), 1)
