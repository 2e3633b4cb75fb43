"""Attributes that change while a solve runs: values over time, masks, order, bits, and what is refused."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from mpm_nodes import Graph
from mpm_nodes.data import MpmNodesError, Particles
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph
from usd_io.stage_reader import read_points

LAST = 6


def shot(*updates: dict[str, Any], birth: dict[str, Any] | None = None, material: str = "jelly", **solve: Any) -> Graph:
    """Return the graph of a cube that falls onto the ground; fields among the knobs are (node type, knobs)."""
    graph = Graph(cell_size=0.1, start=1, end=LAST)
    matter = graph.add("material_neo_hookean", "jelly", youngs_modulus=2e4)
    if material != "jelly":
        matter = graph.add("material_over_attribute", "varied", material=matter, attribute="paint", parameter=material)
    source = graph.add("emit_box", "box", material=matter, size=(0.3, 0.3, 0.3), centre=(0.0, 0.5, 0.0), velocity=(0.0, -2.0, 0.0))
    if birth is not None:
        source = graph.add("set_attribute", "start", particles=source, **birth)

    def made(name: str, value: Any) -> Any:
        return graph.add(value[0], name, **value[1]) if isinstance(value, tuple) else value

    nodes = [
        graph.add("update_attribute", f"update{n}", **{knob: made(f"{knob}{n}", value) for knob, value in knobs.items()})
        for n, knobs in enumerate(updates)
    ]
    solve = {"dt_max": 2e-3, "precision": "double", **solve}
    graph.add("solve", "sim", sources=[source], colliders=[graph.add("collide_plane", "ground")], updates=nodes, **solve)
    return graph


def cooked(*updates: dict[str, Any], **more: Any) -> list[Particles]:
    """Return the particles of all frames."""
    cook = Evaluator(shot(*updates, **more))
    return [cook.value("sim.particles", frame) for frame in range(1, LAST + 1)]


def keyed(*keys: tuple[float, float, str]) -> dict[str, Any]:
    """Return a keyed knob."""
    return {"keys": [list(key) for key in keys]}


@pytest.mark.parametrize("preset", ["explicit_apic", "implicit_apic"])
def test_what_is_set_later_is_as_if_set_at_birth_from_then_on(preset):
    """Softened from the first frame on is soft from birth, to the bit; softened in free fall lands as what was soft before."""
    options = {"substeps": preset, "precision": "single", "dt_max": 1e-3}
    soft = cooked(birth={"value": 0.1}, **options)[-1]
    begun = cooked({"value": 0.1}, **options)[-1]
    assert all(np.array_equal(soft[name], begun[name]) for name in soft.attributes)
    options["precision"] = "double"
    soft = cooked(birth={"value": 0.1}, **options)[-1]
    later = cooked({"value": keyed((1, 1.0, "step"), (3, 0.1, "step"))}, **options)[-1]
    stiff = cooked(**options)[-1]
    assert (later["stiffness_scale"] == 0.1).all() and np.abs(stiff["position"] - soft["position"]).max() > 5e-3
    assert np.abs(later["position"] - soft["position"]).max() < 1e-6


def test_a_parameter_follows_what_is_updated():
    """Matter that nobody painted before begins with 0, and a law follows its attribute from the frame at which it is painted."""
    changed = cooked({"attribute": "paint", "value": keyed((1, 0.0, "step"), (3, 1.0, "step"))}, material="youngs_modulus")
    soft = cooked(birth={"value": 0.1})[-1]
    assert [found["paint"].max() for found in changed] == [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
    assert np.abs(changed[-1]["position"] - soft["position"]).max() < 1e-6


def test_values_over_time_and_the_order_of_the_wires():
    """Keys are those of the frame that begins; what is added adds up; the second update sees what the first left."""
    line = keyed((1, 0.0, "linear"), (6, 5.0, "linear"))
    found = cooked(
        {"attribute": "line", "value": line},
        {"attribute": "warmth", "value": 10.0, "combination": "add"},
        {"attribute": "twice", "field": ("field_attribute", {"attribute": "line"}), "combination": "add"},
        {"attribute": "twice", "value": 2.0, "combination": "multiply"},
    )
    twice = 0.0
    for n, each in enumerate(found):
        line_now = max(n - 1.0, 0.0)
        twice = 2.0 * (twice + line_now) if n else 0.0
        assert np.ptp(each["line"]) == 0.0 and each["line"][0] == pytest.approx(line_now)
        assert (each["warmth"] == 10.0 * n).all() and each["twice"][0] == pytest.approx(twice)


def test_a_mask_takes_what_is_there_as_the_frame_begins():
    """What has been under a line at the beginning of a frame is wet for good; half a mask takes half of the way."""
    low = ("field_shape", {"shape": "half_space", "centre": (0.0, 0.4, 0.0)})
    found = cooked(
        {"attribute": "wet", "mask": low}, {"attribute": "half", "value": 8.0, "mask": ("field_constant", {"value": 0.5})}
    )
    wet = np.zeros(len(found[0]), bool)
    for n, each in enumerate(found):
        assert np.array_equal(each["wet"] > 0.5, wet) and set(each["wet"]) <= {0.0, 1.0}
        assert each["half"][0] == pytest.approx(8.0 * (1.0 - 0.5**n))
        wet = wet | (each["position"][:, 1] < 0.4)
    assert 0 < found[2]["wet"].sum() < found[-1]["wet"].sum()


def test_every_substep_where_it_is_asked_for(tmp_path):
    """1 is added in every substep, and in every frame."""
    each = {"attribute": "often", "combination": "add", "each_substep": True}
    graph = shot(each, {"attribute": "seldom", "combination": "add"})
    graph.add("write_cache", "cache", particles=graph["sim"], attributes=["often", "seldom"])
    events = []
    execute(graph, out=tmp_path, frames=(1, 3), on_event=events.append)
    found = read_points(next(tmp_path.rglob("cache.usda")), 3)
    count = sum(event["event"] == "substep" for event in events)
    assert count > 40 and (found["often"] == count).all() and (found["seldom"] == 2.0).all()


def test_values_stay_in_range():
    """A temperature below 0 K, a stiffness below 0: they are brought back."""
    found = cooked({"attribute": "temperature", "value": -5.0}, {"value": -1.0})[1]
    assert (found["temperature"] == 0.0).all() and found["stiffness_scale"].max() <= 1.001e-6


def test_values_out_of_range_are_told_before_the_cook():
    """What is certain to go beyond, and what a field may; not what is added or within."""

    def told(*updates):
        return list(preflight.warnings_of(preflight.estimate(plan_graph(shot(*updates)), 1)))

    cold = {"attribute": "temperature", "value": {"keys": [[1, 300.0, "linear"], [3, -5.0, "linear"]]}}
    assert any(
        node == "update0" and "temperature lies from 0 to inf, and values may go from -5 to 300" in text
        for node, text in told(cold)
    )
    assert any("stiffness_scale lies from" in text for _, text in told({"field": ("field_noise", {})}))
    for fine in ({"value": -0.5, "combination": "add"}, {"value": 2.0}, {"attribute": "paint", "value": -7.0}):
        assert not any("brought back" in text for _, text in told(fine))


WAY = {"keys": [[1, [0.0, 0.5, 0.0], "linear"], [6, [0.0, 0.0, 0.0], "linear"]]}
PAINTED: tuple[dict[str, Any], ...] = (
    {"attribute": "paint", "mask": ("field_shape", {"radius": 0.12, "centre": WAY})},
    {"field": ("field_noise", {"offset": 1.0, "amplitude": 0.1, "evolution": 5.0}), "each_substep": True},
)


@pytest.mark.parametrize("preset", ["explicit_apic", "implicit_apic"])
def test_threads_and_resume_change_no_bit(tmp_path, preset):
    """A ball that paints matter softer, and noise on its stiffness in every substep."""
    graph = shot(*PAINTED, material="youngs_modulus", substeps=preset, precision="single")
    graph.add("write_cache", "cache", particles=graph["sim"], attributes=["velocity", "id", "paint", "stiffness_scale"])
    execute(graph, out=tmp_path / "whole")
    execute(graph, out=tmp_path / "cut", frames=(1, 4))
    most = numba.config.NUMBA_NUM_THREADS
    numba.set_num_threads(1)
    try:
        execute(graph, out=tmp_path / "cut", frames=(1, LAST), resume=True)
    finally:
        numba.set_num_threads(most)
    points = [[file.read_bytes() for file in sorted((tmp_path / each).rglob("cache.*.usdc"))] for each in ("whole", "cut")]
    assert len(points[0]) >= LAST and points[0] == points[1]


# ---------------------------------------------------------------- what is refused
@pytest.mark.parametrize(
    "update, words",
    [
        ({"attribute": "velocity"}, "velocity is what the solve finds; push matter by forces"),
        ({"attribute": "volume_change"}, "volume_change is what the solve finds; choose of stiffness_scale"),
        ({"attribute": "two words"}, "is not a name"),
        ({"field": ("field_vector", {})}, "update_attribute.field: stiffness_scale needs a field of numbers"),
        ({"mask": ("field_vector", {})}, "update_attribute.mask: is a field of vectors"),
        ({"mask": ("field_attribute", {"attribute": "wet"})}, r"solve.updates \(update0\): a field reads 'wet'"),
        pytest.param({"attribute": "heat_source"}, "heat_source", marks=pytest.mark.phenomena("heat")),
    ],
)
def test_what_does_not_fit_is_refused_before_the_cook(update, words):
    """With the node and the knob, and what to do."""
    with pytest.raises(MpmNodesError, match=words):
        preflight.estimate(plan_graph(shot(update)), 1)


def test_one_attribute_has_one_kind():
    """Numbers and vectors for one name are told before the cook, with both nodes."""
    both = {"attribute": "paint", "field": ("field_vector", {})}, {"attribute": "paint", "value": 1.0}
    with pytest.raises(MpmNodesError, match=r"solve\.updates: 'paint' gets vectors from update0 and numbers from update1"):
        preflight.estimate(plan_graph(shot(*both)), 1)


def test_matter_keeps_its_mass():
    """A density cannot follow what changes; what is missing and not updated is still told."""
    update = {"attribute": "paint", "value": 0.5}
    with pytest.raises(MpmNodesError, match=r"the density of material .* follows 'paint', and matter keeps its mass"):
        preflight.estimate(plan_graph(shot(update, material="density")), 1)
    vector = {"attribute": "paint", "field": ("field_vector", {})}
    with pytest.raises(MpmNodesError, match="follows 'paint', which is updated to a vector"):
        preflight.estimate(plan_graph(shot(vector, material="youngs_modulus")), 1)
    with pytest.raises(MpmNodesError, match="follows 'paint', which these particles do not have"):
        preflight.estimate(plan_graph(shot(material="youngs_modulus")), 1)
    told = preflight.estimate(plan_graph(shot(update, material="youngs_modulus")), 1)["sim"]
    assert "paint" in told["columns"]
