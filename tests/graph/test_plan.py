"""The outer plan: one order for one graph, and lineage keys that change exactly when values may."""

from __future__ import annotations

import os
import random
from pathlib import Path

import outer_nodes
import plan_stages
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_stages import substeps

from mpm_nodes.data import FrameContext, Mesh
from mpm_nodes.graph.declare import node
from mpm_nodes.graph.declare.registry import Registry
from mpm_nodes.graph.document.document import Graph, load_graph
from mpm_nodes.graph.plan.plan import FRAMES_OF_KEYS, Plan, plan_graph
from mpm_nodes.graph.reports.problems import GraphError

REGISTRY = Registry([f.declaration for f in (*outer_nodes.NODES, *plan_stages.STAGES)])


def build(base=None) -> Graph:
    g = Graph(registry=REGISTRY, base=base, start=1, end=10)
    cheese = g.add("stuff", "cheese")
    block = g.add("box", "block", material=cheese)
    other = g.add("box", "other", material=cheese, count=4)
    moved = g.add("move", "moved", particles=block)
    bowl = g.add("read_mesh", "bowl", file="bowl.usd")
    sim = g.add("solve", "sim", sources=[moved, other], obstacle=bowl, substeps=substeps())
    g.add("write", "cache", particles=sim["particles"])
    return g


def renamed(raw: dict, seed: int) -> dict:
    """Return a graph file with new ids and every object's keys shuffled; lists keep their order, it has a meaning."""
    shuffle = random.Random(seed)
    names = list(raw["nodes"])
    new = dict(zip(names, shuffle.sample([f"n{i}" for i in range(100)], len(names)), strict=True))

    def wire(source: str) -> str:
        head, dot, port = source.partition(".")
        return new.get(head, head) + dot + port

    def shuffled(value):
        if isinstance(value, dict):
            items = list(value.items())
            shuffle.shuffle(items)
            return {key: shuffled(item) for key, item in items}
        return value

    nodes = {}
    for name, record in raw["nodes"].items():
        wires = {
            port: [wire(s) for s in sources] if isinstance(sources, list) else wire(sources)
            for port, sources in record.get("inputs", {}).items()
        }
        nodes[new[name]] = {**record, "inputs": wires}
    return shuffled({**raw, "nodes": nodes})


def shape(plan: Plan) -> list:
    """Return a plan with the names left out."""
    place = {planned.id: index for index, planned in enumerate(plan.nodes)}
    return [
        (
            p.declaration.id,
            p.knobs(1) | {"substeps": None},
            {port: [(place[s], output) for s, output in wires] for port, wires in p.inputs.items()},
            plan.key(p.id, 3),
        )
        for p in plan.nodes
    ]


def keys_at(graph: Graph, frame: int = 4) -> dict[str, str]:
    plan = plan_graph(graph)
    return {planned.id: plan.key(planned.id, frame) for planned in plan.nodes}


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name in before if before[name] != after[name]}


def test_each_node_follows_its_sources():
    """The order is topological, and every node has its wires resolved to node and output."""
    plan = plan_graph(build())
    place = {planned.id: index for index, planned in enumerate(plan.nodes)}
    assert len(place) == 7
    assert all(place[s] < place[p.id] for p in plan.nodes for wires in p.inputs.values() for s, _ in wires)
    assert plan["sim"].inputs["sources"] == (("moved", "particles"), ("other", "particles"))
    assert [planned.id for planned in plan.sinks] == ["cache"]
    assert [planned.id for planned in plan.needed("moved")] == ["cheese", "block", "moved"]


@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_names_and_file_order_do_not_change_the_plan(seed):
    """Renaming all ids and permuting the JSON gives the same plan, the same knobs, the same keys."""
    raw = build().to_json()
    first, second = (plan_graph(load_graph(each, registry=REGISTRY)) for each in (raw, renamed(raw, seed)))
    assert shape(first) == shape(second) and first.signature == second.signature


@st.composite
def graphs(draw) -> dict:
    """Return a random graph file with many equal nodes in it."""
    g = Graph(registry=REGISTRY)
    stuffs = [g.add("stuff", density=draw(st.sampled_from([1.0, 2.0]))) for _ in range(draw(st.integers(1, 3)))]
    particles = [g.add("box", material=draw(st.sampled_from(stuffs))) for _ in range(draw(st.integers(1, 3)))]
    for _ in range(draw(st.integers(0, 6))):
        if draw(st.booleans()):
            particles.append(g.add("move", particles=draw(st.sampled_from(particles))))
        else:
            sources = draw(st.lists(st.sampled_from([*stuffs, *particles]), min_size=1, max_size=3))
            particles.append(g.add("solve", sources=sources, substeps=substeps()))
    for handle in draw(st.lists(st.sampled_from(particles), max_size=2)):
        g.nodes[handle.id].bypass = g.nodes[handle.id].type == "move"
    return g.to_json()


@settings(max_examples=40)
@given(graphs(), st.integers(0, 10**6))
def test_any_graph_has_one_plan(raw, seed):
    """Random graphs, full of nodes that are equal but for their names, are planned alike under any names."""
    first, second = (plan_graph(load_graph(each, registry=REGISTRY)) for each in (raw, renamed(raw, seed)))
    assert shape(first) == shape(second)


def test_the_order_of_many_wires_counts():
    """Sources are taken in the order of the file: swapping them is another value."""
    before = keys_at(build())
    g = build()
    g.nodes["sim"].connect("sources", ["other", "moved"])
    assert changed(before, keys_at(g)) == {"sim", "cache"}


def test_a_changed_knob_changes_what_depends_on_it():
    """The node and everything downstream get new keys, nothing else does."""
    g = build()
    before = keys_at(g)
    g.set("moved.by", 2.0)
    assert changed(before, keys_at(g)) == {"moved", "sim", "cache"}
    g.set("moved.by", 1)  # the default 1.0 in another spelling
    assert changed(before, keys_at(g)) == set()


def test_spelling_of_substeps_does_not_count():
    """Renamed stages and written-out defaults are the same substeps; another knob value is not."""
    g = build()
    before = keys_at(g)
    g.nodes["sim"].knobs["substeps"] = renamed({**substeps(), "parameters": {}}, 7)
    assert changed(before, keys_at(g)) == set()
    g.nodes["sim"].knobs["substeps"] = {**substeps(), "set": {"push.by": 1.0}}
    assert changed(before, keys_at(g)) == set()
    g.nodes["sim"].knobs["substeps"] = {**substeps(), "set": {"push.by": 1.5}}
    assert changed(before, keys_at(g)) == {"sim", "cache"}


def test_only_time_dependent_nodes_have_a_key_per_frame():
    """Static nodes keep one key for the whole shot; ctx makes a key per frame, and so does what depends on it."""
    plan = plan_graph(build())
    moving = {p.id for p in plan.nodes if plan.key(p.id, 2) != plan.key(p.id, 3)}
    assert moving == {"moved", "sim", "cache"}


def test_keyed_knobs_count_as_they_run_up_to_the_frame():
    """Moving a later key leaves earlier frames cooked; from there on everything is new, as the node is sequential."""

    def with_key(value: float) -> Plan:
        g = build()
        g.key("sim.gravity", 1, (0, -9, 0))
        g.key("sim.gravity", 4, (0, -5, 0))
        g.key("sim.gravity", 8, (0, value, 0))
        return plan_graph(g)

    one, other = with_key(0.0), with_key(1.0)
    same = [frame for frame in range(1, 11) if one.key("sim", frame) == other.key("sim", frame)]
    assert same == [1, 2, 3, 4]


def test_keyed_substep_knobs_count_in_the_same_way():
    """A key list inside the substeps is cut to the frame's interval too."""

    def with_key(value: float) -> Plan:
        g = build()
        g.key("sim.substeps.push.by", 1, 0.0, "step")
        g.key("sim.substeps.push.by", 5, value, "step")
        return plan_graph(g)

    one, other = with_key(0.0), with_key(1.0)
    assert [frame for frame in range(1, 8) if one.key("sim", frame) == other.key("sim", frame)] == [1, 2, 3, 4]


def test_keyed_knobs_of_static_nodes_are_sampled_at_the_frame():
    """Without ctx a node sees one value per frame: equal values are equal keys."""
    g = build()
    g.key("block.count", 1, 3, "step")
    g.key("block.count", 5, 4, "step")
    plan = plan_graph(g)
    assert plan.key("block", 1) == plan.key("block", 4) != plan.key("block", 5)
    assert plan["block"].knobs(4)["count"] == 3 and plan["block"].knobs(5)["count"] == 4


def test_sequential_keys_do_not_depend_on_the_order_of_questions():
    """Asking for frame 9 first, or frame by frame, gives the same keys."""
    one, other = plan_graph(build()), plan_graph(build())
    last = one.key("sim", 9)
    assert [one.key("sim", f) for f in range(1, 9)] == [other.key("sim", f) for f in range(1, 9)]
    assert other.key("sim", 9) == last


def test_a_long_shot_holds_keys_of_few_frames():
    """Of the rest only those of sequential nodes stay, and earlier frames have the keys that they had."""
    plan, frames = plan_graph(build()), range(1, 4 * FRAMES_OF_KEYS)
    first = [{node.id: plan.key(node.id, frame) for node in plan.nodes} for frame in frames]
    assert len(plan._keys) == FRAMES_OF_KEYS and set(map(len, plan._sequences.values())) == {1}
    assert [{node.id: plan.key(node.id, frame) for node in plan.nodes} for frame in reversed(frames)] == first[::-1]


def test_settings_count_where_they_are_asked_for():
    """cell_size reaches nodes with ctx or settings; a longer shot keeps everything that is cooked."""
    g = build()
    before = keys_at(g)
    g.set("settings.end", 500)
    assert changed(before, keys_at(g)) == set()
    g.set("settings.cell_size", 0.5)
    assert changed(before, keys_at(g)) == {"moved", "sim", "cache"}


def test_input_files_count_by_content(tmp_path):
    """A file that changes changes the key, a touched one does not; a missing one is one more state."""
    g = build(tmp_path)
    missing = keys_at(g)
    (tmp_path / "bowl.usd").write_bytes(b"one")
    one = keys_at(g)
    os.utime(tmp_path / "bowl.usd", (1, 1))
    assert changed(one, keys_at(g)) == set() and changed(one, missing) == {"bowl", "sim", "cache"}
    (tmp_path / "bowl.usd").write_bytes(b"two")
    assert changed(one, keys_at(g)) == {"bowl", "sim", "cache"}


@pytest.mark.parametrize("pattern", ["bowl.####.vdb", "bowl.%04d.vdb", "bowl.$F4.vdb"])
def test_every_file_of_a_sequence_counts(tmp_path, pattern):
    """A numbered sequence is as new as its newest file; files of other names do not belong to it."""
    g = build(tmp_path)
    g.set("bowl.file", pattern)
    for name in ("bowl.0001.vdb", "bowl.0002.vdb", "bowl.txt", "bowl.a.vdb"):
        (tmp_path / name).write_bytes(b"x")
    before = keys_at(g)
    (tmp_path / "bowl.txt").write_bytes(b"yy")
    (tmp_path / "bowl.a.vdb").write_bytes(b"yy")
    assert changed(before, keys_at(g)) == set()
    (tmp_path / "bowl.0002.vdb").write_bytes(b"yy")
    assert changed(before, keys_at(g)) == {"bowl", "sim", "cache"}


def test_a_time_dependent_node_may_read_the_whole_sequence(tmp_path):
    """Naming one numbered file means its sequence to a node with ctx, and that file alone to others."""

    @node(category="Test", label="Read")
    def read_sequence(ctx: FrameContext, *, file: Path) -> Mesh:
        """Read one file a frame.

        Args:
            file: One of them.
        """

    for name in ("b[1].0001.vdb", "b[1].0002.vdb"):
        (tmp_path / name).write_bytes(b"x")
    g = Graph(registry=Registry([read_sequence.declaration, outer_nodes.read_mesh.declaration]), base=tmp_path)
    g.add("read_sequence", "all", file="b[1].0001.vdb")
    g.add("read_mesh", "one", file="b[1].0001.vdb")
    before = keys_at(g)
    (tmp_path / "b[1].0002.vdb").write_bytes(b"yy")
    assert changed(before, keys_at(g)) == {"all"}


def test_every_file_of_a_folder_counts(tmp_path):
    """A knob that names a folder stands for what lies in it."""
    (tmp_path / "bowl.usd").mkdir()
    (tmp_path / "bowl.usd" / "a").write_bytes(b"x")
    before = keys_at(build(tmp_path))
    (tmp_path / "bowl.usd" / "b").write_bytes(b"x")
    assert changed(before, keys_at(build(tmp_path))) == {"bowl", "sim", "cache"}


def test_frames_before_the_start_do_not_reach_into_the_shot():
    """A sequential node begins at the first frame, whatever was asked before."""
    one, other = plan_graph(build()), plan_graph(build())
    one.key("sim", 0)
    assert one.key("sim", 2) == other.key("sim", 2)


def test_large_files_count_by_size_and_time(tmp_path, monkeypatch):
    """Files above the limit are not read."""
    monkeypatch.setattr("mpm_nodes.graph.plan.lineage.LARGEST_DIGESTED", 2)
    (tmp_path / "bowl.usd").write_bytes(b"one")
    before = keys_at(build(tmp_path))
    os.utime(tmp_path / "bowl.usd", (1, 1))
    assert changed(before, keys_at(build(tmp_path))) == {"bowl", "sim", "cache"}


def test_the_code_of_user_nodes_counts(monkeypatch):
    """A node outside the package carries a digest of its code, ours stand by their version."""
    before = keys_at(build())
    monkeypatch.setitem(vars(outer_nodes.box.declaration), "code_digest", "edited")
    assert changed(before, keys_at(build())) == {"block", "other", "moved", "sim", "cache"}


def test_a_bypassed_node_is_not_planned():
    """Its wires run past it, and the keys are those of the graph without it."""
    g = build()
    g.nodes["moved"].bypass = True
    without = build()
    without.nodes["sim"].connect("sources", ["block", "other"])
    del without.nodes["moved"]
    assert "moved" not in keys_at(g) and keys_at(g) == keys_at(without)


def test_a_node_is_called_with_everything_it_asks_for(tmp_path):
    """Values by port, sampled knobs as Python values, paths from the graph's folder, ctx where it is asked for."""
    seen = {}

    @node(category="Test", label="Ask")
    def ask(
        mesh: Mesh,
        ctx: FrameContext,
        other: Mesh | None = None,
        *,
        by: float = 0.0,
        side: outer_nodes.Side = outer_nodes.Side.LEFT,
    ) -> Mesh:
        """Remember the call.

        Args:
            mesh: A mesh.
            other: Another one.
            by: A number.
            side: A choice.
        """
        seen.update(mesh=mesh, ctx=ctx, other=other, by=by, side=side)
        return mesh

    registry = Registry([ask.declaration, outer_nodes.read_mesh.declaration])
    g = Graph(registry=registry, base=tmp_path)
    g.add("ask", "asked", mesh=g.add("read_mesh", "bowl", file="a/b.usd"), side="right")
    g.key("asked.by", 1, 0.0)
    g.key("asked.by", 5, 8.0)
    plan = plan_graph(g)
    ctx = FrameContext(3)
    assert plan["bowl"].knobs(1) == {"file": tmp_path / "a/b.usd", "scale": None}
    assert plan["asked"].call(lambda wire: wire, 3, g.settings, ctx) == {"mesh": ("bowl", "mesh")}
    assert seen == {"mesh": ("bowl", "mesh"), "ctx": ctx, "other": None, "by": 4.0, "side": outer_nodes.Side.RIGHT}
    assert plan["asked"].sample("by", 2.5) == 3.0


def test_a_graph_with_problems_is_not_planned():
    """Planning validates first."""
    g = build()
    g.set("block.count", 100)
    with pytest.raises(GraphError, match=r"block\.count"):
        plan_graph(g)


def test_a_chain_of_a_thousand_nodes_is_planned():
    """Depth costs no recursion, neither in the order nor in cycles nor in keys."""
    g = Graph(registry=REGISTRY)
    last = g.add("box", "box", material=g.add("stuff", "stuff"))
    for number in range(1000):
        last = g.add("move", f"move_{number}", particles=last)
    assert len(plan_graph(g).key("move_999", 1)) == 64
    g.nodes["move_0"].connect("particles", "move_999")
    with pytest.raises(GraphError, match="cycle"):
        plan_graph(g)
