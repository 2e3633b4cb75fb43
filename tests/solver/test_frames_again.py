"""A frame of implicit substeps in which one fails is solved again, with shorter ones, from the state in which it began."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.graph.plan.preflight import estimate
from mpm_nodes.nodes.solve import DT_FACTORS
from mpm_nodes.nodes.solve_needs import BYTES, BYTES_ALWAYS
from mpm_nodes.solver import auto_steps
from mpm_nodes.solver.divergence import SimulationDiverged
from mpm_nodes.solver.run import SubstepSolver

END = 4
BAD = 3
"""Frame whose substeps fail."""


def scene(substeps, **solve) -> Graph:
    """Return a cube that falls on a plate that rises, and a stream beside it; frames of some substeps."""
    graph = Graph(cell_size=0.1, fps=24.0, start=1, end=END)
    matter = graph.add("material_neo_hookean", "matter", youngs_modulus=5e3)
    warm = graph.add("material_thermal", "warm", material=matter)
    block = graph.add("emit_box", "block", material=warm, size=(0.3,) * 3, centre=(0.0, 0.2, 0.0), velocity=(0.0, -1.0, 0.0))
    layer = graph.add("emit_box", "layer", material=warm, size=(0.2,) * 3, centre=(1.0, 0.6, 0.0))
    stream = graph.add("emit_stream", "stream", template=layer, velocity=(0.0, -2.0, 0.0))
    plate = graph.add("collide_box", "plate", size=(1.0, 0.1, 1.0), centre=(0.0, -0.02, 0.0))
    graph.key("plate.centre", 1, [0.0, -0.02, 0.0])
    graph.key("plate.centre", END, [0.0, 0.1, 0.0])
    graph.add("solve", "sim", sources=[block], emitters=[stream], colliders=[plate], substeps=substeps, dt_max=0.02, **solve)
    return graph


def fail_above(monkeypatch, factor: float) -> list[float]:
    """Let the second substep of one frame fail while the factor on dt is above `factor`; return the factors that were tried."""
    step, tried = SubstepSolver.step, []

    def failing(self, *given, **named):
        context = self.step_context
        if context.frame == BAD and context.substep == 0:
            tried.append(context.dt_factor)
        found = step(self, *given, **named)
        if context.frame == BAD and context.substep == 2 and context.dt_factor > factor:
            raise SimulationDiverged("a particle went too far")
        return found

    monkeypatch.setattr(SubstepSolver, "step", failing)
    return tried


def shorten(monkeypatch, factor: float) -> None:
    """Solve one frame with a factor on dt from the start."""
    step = SubstepSolver.step

    def shortened(self, *given, **named):
        self.step_context.dt_factor = factor if self.step_context.frame == BAD else 1.0
        return step(self, *given, **named)

    monkeypatch.setattr(SubstepSolver, "step", shortened)


def last(graph: Graph) -> dict[str, bytes]:
    """Return the bytes of the last frame's attributes."""
    particles = Evaluator(graph).value("sim.particles", END)
    return {name: column.tobytes() for name, column in sorted(particles.attributes.items())}


@pytest.mark.parametrize("factor", DT_FACTORS[1:])
@pytest.mark.parametrize("substeps", ["implicit_apic", "melting"])
def test_a_frame_that_failed_is_as_if_it_had_been_solved_so_at_once(substeps, factor, monkeypatch):
    """Bodies, streams, books and what frames before left are those of its beginning: the same bits in the end."""
    with monkeypatch.context() as patch:
        shorten(patch, factor)
        expected = last(scene(substeps))
    tried = fail_above(monkeypatch, factor)
    assert last(scene(substeps)) == expected
    assert tried == list(DT_FACTORS[: DT_FACTORS.index(factor) + 1])
    monkeypatch.undo()
    assert last(scene(substeps)) != expected


def test_it_is_told_and_the_next_frame_is_as_ever(monkeypatch):
    """A warning for each attempt; facts of the frame are those of the attempt that held; later frames have the whole dt."""
    fail_above(monkeypatch, 0.25)
    events: list[dict] = []
    execute(scene("melting"), on_event=events.append)
    told = [event["message"] for event in events if event["event"] == "warning" and event["where"] == "substeps"]
    assert len(told) == 2 and "again from its beginning, with 0.5 of dt" in told[0] and "with 0.25 of dt" in told[1]
    steps = {frame: [e["dt"] for e in events if e["event"] == "substep" and e["frame"] == frame] for frame in range(2, END + 1)}
    assert max(steps[BAD + 1]) == pytest.approx(max(steps[2]), rel=0.2)
    assert steps[BAD][0] > steps[BAD][1] > steps[BAD][2] and max(steps[BAD][2:]) <= 0.25 * 0.02
    heat = [event["from_air"] for event in events if event["event"] == "heat"]
    assert len(heat) == END - 1 and np.isfinite(heat).all()


def test_what_cannot_be_mended_ends_as_before(monkeypatch):
    """Shorter substeps than dt_min are not tried; explicit ones are chosen by what is stable, and end at once."""
    tried = fail_above(monkeypatch, 0.0)
    with pytest.raises(SimulationDiverged, match="went too far"):
        last(scene("implicit_apic"))
    assert tried == list(DT_FACTORS)
    for substeps, options in (("implicit_apic", {"dt_min": 0.015}), ("explicit_apic", {})):
        tried.clear()
        with pytest.raises(SimulationDiverged, match="went too far"):
            last(scene(substeps, **options))
        assert tried == [1.0]


def test_candidates_are_chosen_again_as_they_were(monkeypatch):
    """Of a solve that chooses its substeps, the choice is put back with the state: the implicit one, whatever the clock says."""
    monkeypatch.setattr(auto_steps, "_cost", lambda solver, *_: (9.0 - 8.0 * solver.candidates.index, 0.02))
    tried = fail_above(monkeypatch, 0.5)
    events: list[dict] = []
    execute(scene("auto"), on_event=events.append)
    assert tried == [1.0, 0.5]


@pytest.mark.parametrize(("substeps", "more"), [("explicit_apic", 0), ("implicit_apic", 250), ("auto", 250), ("melting", 250)])
def test_what_is_held_of_a_frame_is_in_the_estimate(substeps, more):
    """Implicit substeps hold a copy of the state: 250 bytes a particle, which its fields do not exceed."""
    report = estimate(plan_graph(scene(substeps)), 1)["sim"]
    assert report["memory"] - BYTES_ALWAYS == pytest.approx(report["particles"] * (BYTES + more), abs=1.0)
    if substeps in ("implicit_apic", "melting"):
        run = Evaluator(scene(substeps)).value("sim.state", 2).solver
        held = sum(array.nbytes for store in run.lasting_stores.values() for array in store.save().fields.values())
        assert held <= more * run.particles.count
