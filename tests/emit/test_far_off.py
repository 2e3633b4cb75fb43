"""What lies far out or far off is right, said or refused: far places, absurd densities, crowded sources, shots without matter."""

from __future__ import annotations

import re
import tracemalloc

import numpy as np
import pytest

from mpm_nodes import Graph
from mpm_nodes.data import GraphSettings, Material, MpmNodesError, OutputError
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.nodes import crowding as crowds
from mpm_nodes.nodes.crowding import crowded_share
from mpm_nodes.nodes.emit import emit_box, emit_sphere, merge_particles
from mpm_nodes.nodes.seeding import Seeding
from mpm_nodes.verification.scenes import changed

CELL = 0.05
SETTINGS = GraphSettings(cell_size=CELL)
RUBBER = Material("neo_hookean", {"youngs_modulus": 1e5}, 1000.0)


def scene(end=2, centre=(0.0, 1.0, 0.0), density=1000.0, copies=1, merged=False, **solve) -> Graph:
    """Return boxes of 4 x 4 x 4 cells in the air."""
    graph = Graph(cell_size=CELL, start=1, end=end)
    matter = graph.add("material_neo_hookean", "matter", youngs_modulus=1e5, density=density)
    boxes = [graph.add("emit_box", f"box{n}", material=matter, size=(0.2, 0.2, 0.2), centre=centre) for n in range(copies)]
    sources = [graph.add("merge_particles", "all", sources=boxes)] if merged else boxes
    graph.add("solve", "solve", sources=sources, **solve)
    return graph


# ---------------------------------------------------------------- far places
@pytest.mark.parametrize("far", [1e5, 1e7, 1e9])
def test_a_box_far_out_falls_as_one_at_the_origin(far):
    """The solve keeps positions to a thousandth of a cell 10^9 m from the origin."""
    near, away = (execute(scene(centre=(x, 1.0, 0.0))).outputs["solve"]["particles"]["position"] for x in (0.0, far))
    assert np.abs(away - [far, 0.0, 0.0] - near).max() < 1e-3 * CELL
    assert near[:, 1].mean() < 0.995


def test_a_cache_refuses_positions_that_its_numbers_cannot_hold(tmp_path):
    """At 10^7 m the numbers of a USD file are 1 m apart: the cook does not begin, and a file is not written with one x."""
    graph = scene(centre=(1e7, 1.0, 0.0))
    graph.add("write_cache", "cache", particles="solve.particles")
    with pytest.raises(
        OutputError, match=r"cache: write_cache: particles 0\.025 m apart lie 1e.07 m from the origin.* 1 m apart; move"
    ):
        preflight.estimate(plan_graph(graph), 1)
    graph = scene(end=1, centre=(1e7, 1.0, 0.0))
    graph.add("export_points", "points", particles="solve.particles")
    with pytest.raises(OutputError, match=r"export_points: particles 0\.025 m apart"):
        execute(graph, out=tmp_path)
    graph = scene(end=1, centre=(1e4, 1.0, 0.0))
    graph.add("write_cache", "cache", particles="solve.particles")
    preflight.estimate(plan_graph(graph), 1)


# ---------------------------------------------------------------- absurd numbers
@pytest.mark.parametrize("density", [1e300, 1e36, 1e-30])
def test_densities_that_the_solve_s_numbers_do_not_hold_are_refused(density):
    """Masses near the ends of float32 stood still in the air; in float64 1e36 falls like everything else."""
    with pytest.raises(MpmNodesError, match=r"solve: particle mass from .* is out of range in float32"):
        execute(scene(density=density))
    if density == 1e36:
        found = execute(scene(density=density, precision="double")).outputs["solve"]["particles"]
        assert found["position"][:, 1].mean() < 0.995


# ---------------------------------------------------------------- crowds
def box(centre=(0.3, 0.2, 0.1), **knobs):
    """Return a box of random orientation."""
    return emit_box(SETTINGS, RUBBER, size=(0.3, 0.25, 0.2), centre=centre, rotation=(11.0, 25.0, 60.0), **knobs)


@pytest.mark.parametrize("knobs", [{}, {"jitter": 1.0}, {"seeding": Seeding.POISSON}])
def test_overlap_is_told_by_how_much_matter_lies_double(knobs, monkeypatch):
    """Nothing for one body or bodies apart, also far apart; for n copies near (n - 1) / n; the same slab by slab."""
    one, far = box(**knobs), box((3e5, -1e5, 0.0), **knobs)
    assert crowded_share([one], CELL) == crowded_share([one, far], CELL) == 0.0
    double, tenfold = crowded_share([one, one, far], CELL), crowded_share([one] * 10, CELL)
    assert 0.25 < double < 1.0 / 3.0 and 0.8 < tenfold < 0.9
    monkeypatch.setattr(crowds, "DENSE", 200)
    assert crowded_share([one, one, far], CELL) == pytest.approx(double, rel=1e-12)


def test_the_grid_of_the_overlap_is_as_large_as_the_matter():
    """It had eight million nodes whatever the matter, 64 MB, which were cleared and added up for each source."""
    one = box()
    crowded_share([one, one], CELL)
    tracemalloc.start()
    try:
        crowded_share([one, one], CELL)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 4e6 + 2000 * len(one)


@pytest.mark.parametrize("knobs", [{}, {"jitter": 1.0}, {"seeding": Seeding.POISSON}])
def test_the_share_is_that_of_the_bodies(knobs):
    """A ball in a box, and two boxes that overlap, against their volumes; half of a small one was lost before."""
    room = emit_box(SETTINGS, RUBBER, size=(10 * CELL,) * 3, centre=(0.0, 0.0, 0.0), **knobs)
    for radius in (3.0 * CELL, 4.0 * CELL):
        ball = emit_sphere(SETTINGS, RUBBER, radius=radius, centre=(0.2 * CELL, 0.4 * CELL, 0.1 * CELL), **knobs)
        volume = 4.0 / 3.0 * np.pi * radius**3
        assert crowded_share([room, ball], CELL) == pytest.approx(volume / (volume + 1000.0 * CELL**3), rel=0.1)
    for overlap in (1.0, 2.0, 5.0, 0.0):
        beside = emit_box(
            SETTINGS, RUBBER, size=(10 * CELL,) * 3, centre=((10.0 - overlap) * CELL, 0.0, 0.0), **{**knobs, "seed": 1}
        )
        assert crowded_share([room, beside], CELL) == pytest.approx(0.05 * overlap, rel=0.16, abs=0.01)


@pytest.mark.parametrize("merged", [False, True])
def test_sources_on_one_spot_are_said(merged):
    """Ten emitters in one place warn, merged before or not; one does not, nor two that touch."""
    crowded, single = execute(scene(copies=10, merged=merged), frames=(1, 1)), execute(scene(copies=1), frames=(1, 1))
    assert any("10 sources lie on top of each other" in text for text in crowded.warnings)
    assert not any("on top" in text for text in single.warnings)
    beside = emit_box(SETTINGS, RUBBER, size=(0.2, 0.2, 0.2), centre=(0.2, 1.0, 0.0))
    assert crowds.crowding([emit_box(SETTINGS, RUBBER, size=(0.2, 0.2, 0.2)), beside], CELL) == ""
    with pytest.warns(UserWarning, match="2 sources lie on top"):
        merge_particles((beside, beside))


def test_matter_that_is_dense_in_itself_does_not_lie_on_others():
    """Columns that were solved, and are dense where they were drawn out, are joined without a word; on one spot they warn."""
    dense = box(**{"centre": (0.0, 0.0, 0.0)})
    thread = changed(dense, position=dense["position"] * [0.5, 1.0, 1.0])
    far = changed(thread, position=thread["position"] + [2.0, 0.0, 0.0])
    assert crowds.crowding([thread, far], CELL) == ""
    assert "on top of each other" in crowds.crowding([thread, thread], CELL)


def emitting(copies: int, kind: str = "emit_stream", source: float | None = None, **knobs) -> list[str]:
    """Return what a solve with emitters of one box says before it moves, with a source so far above their place [m] if given."""
    graph = scene(copies=1, centre=(0.0, 1.0 + (source or 0.0), 0.0))
    graph.add("emit_box", "template", material="matter", size=(0.2, 0.2, 0.2), centre=(0.0, 1.0, 0.0))
    each = [graph.add(kind, f"emitter{n}", template="template", **knobs) for n in range(copies)]
    graph.connect("solve.emitters", *each)
    if source is None:
        graph.disconnect("solve.sources")
    return [text for text in execute(graph, frames=(1, 1)).warnings if "burst apart" in text]


@pytest.mark.parametrize("kind", ["emit_stream", "emit_drops"])
def test_emitters_on_one_spot_are_said(kind):
    """Ten streams, or ten that drop their first copy, in one place warn; one does not, nor one with a source elsewhere."""
    (text,) = emitting(10, kind)
    assert "the 10 emitters lie on top of each other" in text
    assert emitting(1, kind) == emitting(1, kind, source=2.0) == []


@pytest.mark.parametrize("kind", ["emit_stream", "emit_drops"])
def test_a_source_in_the_place_of_an_emitter_is_said(kind):
    """All of the box on one spot, half of it where they overlap by half; nothing where they touch, or the emitter begins later."""
    (whole,), (half,) = emitting(1, kind, source=0.0), emitting(1, kind, source=0.1)
    assert "sources lie where emitters bring matter" in whole and "sources lie where emitters bring matter" in half
    whole, half = (int(re.search(r"(\d+) %", text)[1]) for text in (whole, half))
    assert 40 <= whole <= 100 and 10 <= half < 0.75 * whole
    assert emitting(1, kind, source=0.2) == emitting(1, kind, source=0.0, start_frame=2) == []


# ---------------------------------------------------------------- shots without matter
def test_a_solve_that_loses_all_its_matter_says_so():
    """A floor that deletes takes the box in frame 2; nothing is said while a stream still runs."""
    deleting = {"wall_low": (-10.0, 0.0, -10.0), "wall_y_low": "delete", "gravity": (0.0, -500.0, 0.0), "dt_max": 1e-3}
    graph = scene(end=3, centre=(0.0, 0.15, 0.0), **deleting)
    result = execute(graph)
    assert len(result.outputs["solve"]["particles"]) == 0
    assert sum("no particle is left after frame 2" in text for text in result.warnings) == 1
    graph.add("emit_stream", "stream", template="box0", velocity=(0.0, -0.001, 0.0))
    graph.connect("solve.emitters", "stream")
    assert not any("no particle is left" in text for text in execute(graph).warnings)


def test_a_stream_and_an_initial_state_after_the_last_frame_are_said():
    """Both cook, empty or still, and say why."""
    graph = scene(start_frame=9)
    assert any("after the last frame 2: nothing moves" in text for text in execute(graph).warnings)
    graph = scene(end=1)
    graph.add("emit_stream", "stream", template="box0", start_frame=7)
    graph.connect("solve.emitters", "stream")
    assert any("lies after the last frame 1: the stream never comes" in text for text in execute(graph).warnings)


# ---------------------------------------------------------------- thin colliders
@pytest.mark.parametrize("thickness", [1e-3, 1e-6])
@pytest.mark.parametrize(
    "substeps", ["explicit_apic", pytest.param("separate_bodies", marks=pytest.mark.phenomena("separate_bodies"))]
)
def test_no_thin_box_lets_matter_through(substeps, thickness):
    """A block of 1000 particles falls at 5 m/s on a card of an eightieth of a cell and less: all stay above it.

    Where substeps keep its sides apart the grid alone holds them; with several bodies their paths must.
    """
    graph = Graph(cell_size=0.08, start=1, end=5)
    matter = graph.add("material_neo_hookean", "matter", youngs_modulus=1e5)
    block = graph.add("emit_box", "block", material=matter, size=(0.4,) * 3, centre=(0.0, 0.3, 0.0), velocity=(0.0, -5.0, 0.0))
    card = graph.add("collide_box", "card", size=(2.0, thickness, 2.0), centre=(0.0, 0.0137, 0.0))
    graph.add("solve", "solve", sources=[block], colliders=[card], substeps=substeps)
    found = execute(graph).outputs["solve"]["particles"]
    assert len(found) == 1000 and found["position"][:, 1].min() > 0.0137
