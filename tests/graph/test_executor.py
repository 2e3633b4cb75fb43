"""Cooking graphs of small fake nodes: what is cooked again, what is frozen, what a failure says."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
from fake_nodes import REGISTRY, Solver, calls, content, needs, shot

from mpm_nodes.data import Cancelled, InputError, MpmNodesError, OutputError
from mpm_nodes.graph.cook import executor
from mpm_nodes.graph.cook.evaluator import Evaluator, NodeFailed
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.reports.problems import GraphError
from mpm_nodes.graph.values.store import DiskStore, MemoryStore


@pytest.fixture(autouse=True)
def no_calls():
    """Counts begin at zero."""
    calls.clear()


def diamond(**join) -> Graph:
    """source -> move -> join <- other source."""
    graph = Graph(registry=REGISTRY, cell_size=0.5, start=1, end=3)
    one = graph.add("fake_source", "one", count=3)
    two = graph.add("fake_source", "two", count=2)
    moved = graph.add("fake_move", "moved", cloud=one)
    graph.add("fake_join", "join", clouds=[moved, two], **join)
    return graph


# ---------------------------------------------------------------- what is cooked
def test_values_are_those_of_the_functions():
    """Ports arrive in the order of the wires, knobs are converted, the frame is told."""
    result = execute(diamond(scale=2.0), frames=(2, 2))
    assert result.outputs["join"]["cloud"].points.tolist() == [4.0, 4.5, 5.0, 0.0, 1.0]
    assert result.frames == result.cooked == (2,)
    assert result.revision_folder is None


def test_only_time_dependent_nodes_are_cooked_each_frame():
    """Sources that do not depend on time are cooked once for three frames."""
    execute(diamond())
    assert calls == {"source": 2, "move": 3, "join": 3}


def test_a_long_cook_holds_no_more_than_a_short_one(monkeypatch):
    """Values of frames that are over go: fifty frames hold the bytes of five, and static nodes are not cooked again."""
    stores = []
    monkeypatch.setattr(executor, "MemoryStore", lambda limit: stores.append(MemoryStore(limit)) or stores[-1])
    for end in (5, 50):
        calls.clear()
        execute(diamond(), frames=(1, end))
        assert calls == {"source": 2, "move": end, "join": end}
    assert stores[0].held == stores[1].held > 0 and len(stores[0]) == len(stores[1])


def test_a_changed_knob_recooks_only_what_lies_downstream():
    """With a shared store, the same graph costs nothing, and a change at the end costs the end."""
    store = MemoryStore(1 << 20)
    execute(diamond(), store=store)
    calls.clear()
    execute(diamond(), store=store)
    assert not calls
    execute(diamond(scale=3.0), store=store)
    assert calls == {"join": 3}
    graph = diamond()
    graph.set("moved.by", 2.0)
    graph.set("one.count", 3)
    execute(graph, store=store)
    assert calls == {"move": 3, "join": 6}


def test_names_and_places_of_nodes_do_not_matter():
    """A renamed graph finds the values of the old one."""
    store = MemoryStore(1 << 20)
    execute(diamond(), store=store)
    calls.clear()
    graph = Graph(registry=REGISTRY, cell_size=0.5, start=1, end=3)
    b = graph.add("fake_source", "b", count=2)
    a = graph.add("fake_source", "a", count=3)
    graph.add("fake_join", "c", clouds=[graph.add("fake_move", "m", cloud=a), b])
    execute(graph, store=store)
    assert not calls


def test_a_keyed_knob_makes_a_node_vary():
    """A keyed knob is sampled at each frame, and equal samples are cooked once."""
    graph = diamond()
    graph.set("two.size", {"keys": [[1, 0.0, "linear"], [2, 4.0, "step"]]})
    result = execute(graph)
    assert calls["source"] == 3  # `one` once, `two` at size 0 and at size 4
    assert result.outputs["join"]["cloud"].points[-1] == 2.0


def test_an_input_file_that_changes_is_read_again(tmp_path):
    """The content of a file counts, not its name."""
    graph = Graph(registry=REGISTRY, base=tmp_path)
    graph.add("fake_read", "read", file="in.txt")
    (tmp_path / "in.txt").write_text("1 2")
    store = MemoryStore(1 << 20)
    assert Evaluator(graph, store=store).value("read").points.tolist() == [1.0, 2.0]
    assert Evaluator(graph, store=store).value("read").points.tolist() == [1.0, 2.0]
    assert calls["read"] == 1
    (tmp_path / "in.txt").write_text("3 4")
    assert Evaluator(graph, store=store).value("read").points.tolist() == [3.0, 4.0]


def test_bypassed_nodes_pass_same_named_ports_through():
    """What bypassing leaves is what the graph without the node gives."""
    graph = diamond()
    graph["moved"].entry.bypass = True
    assert execute(graph, frames=(3, 3)).outputs["join"]["cloud"].points.tolist() == [0.0, 0.25, 0.5, 0.0, 0.5]
    assert "move" not in calls


def test_a_chain_of_a_thousand_nodes_does_not_exhaust_the_stack():
    """Evaluation does not recurse along the wires."""
    graph = Graph(registry=REGISTRY)
    cloud = graph.add("fake_source")
    for _ in range(1200):
        cloud = graph.add("fake_join", clouds=[cloud])
    assert len(Evaluator(graph).value(str(cloud)).points) == 5


# ---------------------------------------------------------------- sequential nodes
def test_sequential_nodes_run_in_order_from_the_start_frame():
    """Asking for frame 5 alone cooks frames 1 to 5; asking on cooks one more; going back begins again."""
    evaluator = Evaluator(shot())
    at_five = evaluator.value("sim.cloud", 5).points
    assert calls["solve"] == 5
    evaluator.value("sim.cloud", 6)
    assert calls["solve"] == 6
    assert evaluator.value("sim.cloud", 3) is evaluator.value("sim.cloud", 3) and calls["solve"] == 6
    fresh = Evaluator(shot(), store=MemoryStore(0))
    fresh.value("sim.cloud", 6)
    assert np.array_equal(fresh.value("sim.cloud", 5).points, at_five)


def test_a_state_is_moved_and_a_published_value_is_frozen():
    """The solver may write its state; nobody may write what was published."""
    evaluator = Evaluator(shot())
    state = evaluator.value("sim.state", 2)
    assert isinstance(state, Solver) and state.points.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        evaluator.value("sim.cloud", 2).points[0] = 1.0
    assert evaluator.value("sim.state", 3) is state


def test_frames_before_the_start_are_refused():
    """A sequential node has no frame before its first."""
    with pytest.raises(GraphError, match="begins at frame 1"):
        Evaluator(shot()).value("sim.cloud", 0)
    with pytest.raises(GraphError, match=r"lower settings\.start"):
        execute(shot(), frames=(0, 3))


def test_keys_are_sampled_within_the_frame():
    """The solver samples its keyed knob at each substep, so a key between frames counts."""
    graph = shot(write=False)
    graph.set("sim.push", {"keys": [[1.0, 0.5, "step"], [1.5, 0.25, "step"]]})
    constant = Evaluator(shot(write=False)).value("sim.cloud", 2).points
    assert not np.array_equal(Evaluator(graph).value("sim.cloud", 2).points, constant)


# ---------------------------------------------------------------- failures
@pytest.mark.parametrize(
    "fail, kind, code, words",
    [
        ("user", MpmNodesError, 2, "join, frame 1: scale is silly; give another"),
        ("bug", NodeFailed, 1, r"join, frame 1: fake_nodes\.py, line \d+: ZeroDivisionError: division by zero"),
        ("memory", MpmNodesError, 2, "join, frame 1: ran out of memory; raise settings.cell_size"),
        ("write", NodeFailed, 1, r"join, frame 1: fake_nodes\.py, line \d+: ValueError: .*read-only"),
        ("type", NodeFailed, 1, r"join, frame 1: evaluator\.py, line \d+: TypeError: returned a int for cloud, declared is Cloud"),
    ],
)
def test_failures_name_node_and_frame(fail, kind, code, words):
    """Whatever a node raises, the message says where, and the exit code stays."""
    with pytest.raises(kind, match=words) as caught:
        execute(diamond(fail=fail))
    assert caught.value.exit_code == code


def test_divergence_keeps_its_exit_code_and_the_frames_before(tmp_path):
    """The solver's own error passes through; the last good frame stays on disk and can be resumed."""
    with pytest.raises(MpmNodesError, match="sim, frame 4: frame 4: not a number") as caught:
        execute(shot(dies=4), out=tmp_path)
    assert caught.value.exit_code == 4
    assert sorted((tmp_path / "r001" / "points").iterdir())[-1].name == "points.0003.bin"
    assert not list((tmp_path / "r001").rglob(".tmp-*"))


def test_a_missing_input_file_is_an_input_error(tmp_path):
    """Exit code 5, with the node's name."""
    graph = Graph(registry=REGISTRY, base=tmp_path)
    graph.add("fake_read", "read", file="none.txt")
    with pytest.raises(InputError, match=r"read, frame 1: .*none\.txt"):
        execute(graph)


def test_all_problems_come_at_once_and_nothing_is_written(tmp_path):
    """An invalid graph leaves no folder."""
    graph = diamond(scale="big")
    graph.set("one.size", -1.0)
    with pytest.raises(GraphError) as caught:
        execute(graph, out=tmp_path / "out")
    assert len(caught.value.problems) == 2
    assert not (tmp_path / "out").exists()


def test_asking_for_what_is_not_there_names_the_nearest():
    """Wrong node and output names are answered with the right ones."""
    with pytest.raises(GraphError, match="did you mean sim"):
        Evaluator(shot()).value("sin.cloud")
    with pytest.raises(GraphError, match="did you mean cloud"):
        Evaluator(shot()).value("sim.clod")


# ---------------------------------------------------------------- cancel
def test_cancel_stops_within_a_node_and_keeps_the_frames_before(tmp_path):
    """Set during the third frame's substeps, the cook ends there with exit code 3 and can be resumed."""
    cancel = threading.Event()

    def on_event(event):
        if event["event"] == "substep" and event["frame"] == 3:
            cancel.set()

    with pytest.raises(Cancelled) as caught:
        execute(shot(), out=tmp_path / "a", cancel=cancel, on_event=on_event)
    assert caught.value.exit_code == 3
    events = []
    result = execute(shot(), out=tmp_path / "a", resume=True, on_event=events.append)
    assert result.cooked == (3, 4, 5, 6)
    execute(shot(), out=tmp_path / "b")
    assert content(tmp_path / "a") == content(tmp_path / "b")


def test_a_cook_that_is_cancelled_before_its_first_frame_leaves_no_revision(tmp_path):
    """Nothing cooked, nothing left."""
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Cancelled):
        execute(shot(), out=tmp_path, cancel=cancel)
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- writing
def test_a_node_that_writes_is_never_answered_from_the_cache(tmp_path):
    """Two cooks with one store give two whole revisions."""
    store = MemoryStore(1 << 20)
    first = execute(shot(), out=tmp_path, store=store)
    second = execute(shot(), out=tmp_path, store=store)
    assert (first.revision_folder.name, second.revision_folder.name) == ("r001", "r002")
    assert content(first.revision_folder).keys() - content(second.revision_folder).keys() <= {
        "checkpoints/0005.sim.state", "checkpoints/0006.sim.state"}  # fmt: skip
    assert first.files == second.files and len(first.files) == 7
    assert calls["solve"] == 6 and calls["write"] == 12


def test_negative_frames_are_numbered_from_zero(tmp_path):
    """The offset is stored before the first write, and resume uses it."""
    execute(shot(start=-3, end=0), out=tmp_path, frames=(-3, -2))
    result = execute(shot(start=-3, end=0), out=tmp_path, resume=True, frames=(-3, 0))
    assert result.cooked == (-1, 0)
    names = sorted(path.name for path in (tmp_path / "r001" / "points").iterdir())
    assert names == [f"points.{number:04d}.bin" for number in range(4)]
    assert (tmp_path / "r001" / "stage.txt").read_text() == "-3 -2 -1 0"


def test_provenance_is_in_the_manifest_that_nodes_see(tmp_path):
    """Graph, overrides and version are stored with the cook."""
    execute(shot(end=1), out=tmp_path, overrides=["sim.push=0.5"])
    import json

    manifest = json.loads((tmp_path / "r001" / "cook.json").read_text())
    assert manifest["overrides"] == ["sim.push=0.5"]
    assert manifest["graph"] == shot(end=1).to_json()
    assert manifest["frame_offset"] == 0 and manifest["package_version"]


# ---------------------------------------------------------------- before the run
def test_memory_and_disk_are_compared_with_what_is_free(tmp_path, monkeypatch):
    """A graph that needs more than there is stops before any node runs, and names the knob."""
    monkeypatch.setitem(needs, "source", lambda told: {"memory": 10**15, "count": told.knobs["count"]})
    with pytest.raises(
        GraphError, match=r"source: needs about 1000\.0 TB of memory.* are free; raise settings\.cell_size \(now 0\.5"
    ):
        execute(shot(), out=tmp_path / "out")
    assert not calls and not (tmp_path / "out").exists()
    seen = []

    def estimate(told):
        seen.append(told.inputs["cloud"])
        return {"disk": 10**17}

    monkeypatch.setitem(needs, "source", lambda told: {"count": told.knobs["count"]})
    monkeypatch.setitem(needs, "solve", estimate)
    with pytest.raises(OutputError, match=r"needs about .* for 6 frames"):
        execute(shot(), out=tmp_path / "out")
    assert seen == [({"count": 5},)] and not calls


def test_a_preflight_that_refuses_is_named_and_costs_nothing(tmp_path, monkeypatch):
    """What a node's own preflight raises comes before any node runs, with the node's name and its exit code."""

    def refuse(told):
        raise InputError("in.usd: no such file; give the path of a file that is there")

    monkeypatch.setitem(needs, "source", refuse)
    with pytest.raises(InputError, match=r"source: in\.usd: no such file"):
        execute(shot(), out=tmp_path / "out")
    assert not calls and not (tmp_path / "out").exists()


def test_free_memory_is_no_more_than_the_machine_has():
    """The figure is between a megabyte and the machine's memory."""
    assert 1 << 20 < preflight.free_memory() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


# ---------------------------------------------------------------- the disk cache of values
def test_values_are_found_on_disk_by_another_process(tmp_path):
    """A static value that can be stored is not cooked again; a damaged file is cooked again and replaced."""
    graph = Graph(registry=REGISTRY)
    graph.add("fake_source", "source")
    value = Evaluator(graph, disk=DiskStore(tmp_path)).value("source").points
    again = Evaluator(graph, disk=DiskStore(tmp_path)).value("source")
    assert calls["source"] == 1 and np.array_equal(again.points, value) and not again.points.flags.writeable
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    assert np.array_equal(Evaluator(graph, disk=DiskStore(tmp_path)).value("source").points, value)
    assert calls["source"] == 2 and path.read_bytes() == whole
