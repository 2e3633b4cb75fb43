"""The choice between explicit and implicit substeps: it disturbs nothing, follows the measurement, and is made again in time."""

from __future__ import annotations

import dataclasses
import time

import numpy as np
import pytest
from solver_scenes import JELLY, cube, shot

from mpm_nodes import SubstepSolver
from mpm_nodes.data import A, Fact, Facts, Material, Reads, Reduction, Stage, StepContext, SurfaceTension, Thermal
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.declare import costs, stage
from mpm_nodes.graph.reports.problems import GraphError
from mpm_nodes.solver import auto_steps
from mpm_nodes.solver.auto_steps import measure
from mpm_nodes.solver.candidates import Choice
from mpm_nodes.solver.checkpoint import SolverState
from mpm_nodes.solver.divergence import SimulationDiverged
from mpm_nodes.solver.state import ParticleStore


def auto_solver(**options):
    """Return a small solve that chooses its own substeps."""
    return SubstepSolver(cube(JELLY), "auto", dtype=np.float64, dt_max=0.002, **options)


def wobbling(block):
    """Return a block that shears to and fro."""
    velocity = 0.5 * np.sin(20.0 * np.asarray(block.attributes["position"])[:, ::-1])
    return dataclasses.replace(block, attributes={**block.attributes, "velocity": velocity})


def test_measuring_leaves_the_state_as_it_was():
    """After a measurement positions, velocities, law state and time are those before it, bit for bit."""
    solver = auto_solver()
    solver.step(1e-4)
    before, time = solver.snapshot(), solver.time
    measure(solver, 0.01, lambda: None)
    after = solver.snapshot()
    assert solver.time == time
    for name in before.attributes:
        assert np.array_equal(before[name], after[name]), name


def test_the_cheaper_candidate_runs(monkeypatch):
    """The candidate with the least work for a simulated second goes on, and the report names every cost."""
    for chosen, name in (((2.0, 1.0), "implicit_apic"), ((1.0, 2.0), "explicit_apic"), ((float("inf"), 9.0), "implicit_apic")):
        given = iter(chosen)
        monkeypatch.setattr(auto_steps, "_cost", lambda *_, given=given: (next(given), 1e-3))
        solver = auto_solver()
        solver.step(time_left=0.01)
        facts = solver.step_context.report["choice"]
        assert facts["chosen"] == name and set(facts["cost"]) == {"explicit_apic", "implicit_apic"}
        assert ("minimise_energy" in [planned.id for planned in solver.plan.stages]) == (name == "implicit_apic")


@pytest.mark.parametrize("held", [None, 0, 1])
def test_the_running_candidate_is_left_only_for_a_clearly_cheaper_one(monkeypatch, held):
    """Costs within a quarter keep what runs, at first the first candidate; beyond that the cheaper one takes over."""
    solver = auto_solver()
    kept = held or 0
    for other_cost, index in ((0.9, kept), (0.76, kept), (0.7, 1 - kept), (float("inf"), kept)):
        solver.candidates.choice = None if held is None else Choice(held, 1e-3, (1.0, 1.0), solver.candidates.names)
        given = iter((1.0, other_cost) if kept == 0 else (other_cost, 1.0))
        monkeypatch.setattr(auto_steps, "_cost", lambda *_, given=given: (next(given), 1e-3))
        assert measure(solver, 0.01, lambda: None).index == index


def test_a_candidate_that_diverges_costs_infinitely_much(monkeypatch):
    """A candidate whose trial diverges is not chosen, and its trial leaves no trace."""
    solver = auto_solver()
    run = solver.run_stages

    def fails_explicitly(*arguments):
        if solver.program is solver.candidates.programs[0]:
            raise SimulationDiverged("too fast")
        return run(*arguments)

    monkeypatch.setattr(solver, "run_stages", fails_explicitly)
    choice = measure(solver, 0.01, lambda: None)
    assert choice.index == 1 and choice.cost[0] == float("inf") and solver.time == 0.0


def test_a_much_longer_or_shorter_step_asks_for_a_new_choice():
    """Ten times the dt of the choice, or a tenth, is too far; less is not."""
    choice = Choice(0, 1e-3, (1.0, 2.0), ("a", "b"))
    assert [choice.is_old(1e-3 * factor) for factor in (0.09, 0.11, 1.0, 9.0, 11.0)] == [True, False, False, False, True]


def test_a_resumed_solve_keeps_the_choice(monkeypatch):
    """A checkpoint holds the choice: a resumed solve does not measure again, and goes on with equal bits."""
    monkeypatch.setattr(auto_steps, "_cost", lambda solver, *_: (float(solver.program is solver.candidates.programs[0]), 1e-3))
    solver, other = auto_solver(), auto_solver()
    solver.advance(0.003)
    SolverState.from_arrays(*SolverState(solver).to_arrays()).revive(other)
    assert other.program is other.candidates.programs[1] and other.candidates.own_dt == solver.candidates.own_dt
    monkeypatch.setattr(auto_steps, "_cost", pytest.fail)
    for each in (solver, other):
        each.advance(0.002)
    assert np.array_equal(solver.snapshot()["position"], other.snapshot()["position"])


def test_what_is_left_of_a_frame_asks_for_no_new_choice(monkeypatch):
    """A last substep of a thousandth says nothing of the pace: neither the trial nor the solve takes it for the scene's own."""
    solver = auto_solver()
    choice = measure(solver, 0.0020001, lambda: None)
    assert choice.dt > 1e-4
    solver.candidates.choice, solver.candidates.own_dt = Choice(0, 2e-4, (1.0, 1.0), solver.candidates.names), 2e-4
    monkeypatch.setattr("mpm_nodes.solver.run.choose_again", pytest.fail)
    for length in (2e-4, 1e-7, 2e-4):
        solver.step(time_left=length)
    assert solver.candidates.own_dt == 2e-4


def test_two_cooks_choose_alike(tmp_path):
    """Cooks of one graph choose the same, at the same cost to the last digit, and leave the same bytes."""
    graph = shot(end=3, material="material_neo_hookean", precision="double", substeps="auto", dt_max=2e-3)
    cooks = [execute(graph, out=tmp_path / name) for name in ("first", "second")]
    told = [[event for figures in cook.figures for event in figures.facts.get("choice", ())] for cook in cooks]
    assert told[0] == told[1] and told[0][0]["cost"]["implicit_apic"] > 0.0
    states = [{path.name: path.read_bytes() for path in (cook.revision_folder / "checkpoints").iterdir()} for cook in cooks]
    assert states[0] == states[1]


def test_iterations_are_counted():
    """A tighter tolerance takes more Krylov iterations for the same step, and costs more by what they cost."""
    costs = []
    for tolerance in (1e-2, 1e-8):
        block = wobbling(cube(JELLY))
        solver = SubstepSolver(block, {"preset": "auto", "set": {"tolerance": tolerance}}, dtype=np.float64, dt_max=0.002)
        costs.append(measure(solver, 0.01, lambda: None).cost)
    (explicit, loose), (same, tight) = costs
    assert explicit == same and tight > 1.2 * loose


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["auto", "auto_incompressible", "auto_surface_tension"])
def test_counted_work_is_what_the_clock_says(preset):
    """Of two candidates the ratio of counted work is that of measured seconds, within a factor of two on 32,768 particles."""
    liquid = Material("liquid", {"bulk_modulus": 1e5}, 1000.0, surface_tension=SurfaceTension(0.07))
    block = wobbling(cube(liquid if preset == "auto_surface_tension" else JELLY, cells=16))
    solver = SubstepSolver(block, preset, dtype=np.float32, dt_max=0.002)
    counted = measure(solver, 0.01, lambda: None)
    seconds = []
    for index in range(2):
        solver.choose(index)
        spent = []
        for _ in range(8):
            begin = time.perf_counter()
            dt = solver.run_stages(None, 1.0, lambda: None)
            spent.append((time.perf_counter() - begin) / dt)
        seconds.append(float(np.median(spent[2:])))
    assert 0.5 < counted.cost[1] / counted.cost[0] / (seconds[1] / seconds[0]) < 2.0


@pytest.mark.parametrize("preset", ["auto_incompressible", "auto_melting"])
def test_matter_that_hardly_compresses_takes_the_projection(preset):
    """Pressure waves of rubber of nu = 0.499 are 22 times as fast as its shear waves, which alone limit projected steps.

    What went in explicit steps goes on in projected ones: the same velocity, and the volume that the law's modulus allows.
    """
    thermal = Thermal(1000.0, 0.5, 1000.0, 0.5) if preset == "auto_melting" else None
    rubber = Material("neo_hookean", {"youngs_modulus": 2.5e5, "poisson_ratio": 0.499}, 1000.0, "rubber", thermal=thermal)
    block = cube(rubber)
    if thermal is not None:
        block = dataclasses.replace(block, attributes={**block.attributes, "temperature": np.full(len(block), 300.0)})
    solver = SubstepSolver(block, preset, dtype=np.float64, dt_max=0.0105)
    solver.advance(2e-4)
    falling = solver.snapshot()["velocity"].mean(axis=0)
    solver.candidates.choice = None
    solver.step(time_left=0.02)
    choice = solver.candidates.choice
    assert choice.index == 1 and choice.dt == 0.01 and choice.cost[0] > 3.0 * choice.cost[1]
    after = solver.snapshot()
    assert np.allclose(after["velocity"].mean(axis=0), falling + [0.0, -9.81 * choice.dt, 0.0], rtol=0.0, atol=1e-9)
    assert np.allclose(np.linalg.det(after["deformation"]), 1.0, rtol=0.0, atol=1e-6)


def test_a_preset_with_candidates_has_settings_of_its_own():
    """They reach the candidates that know them, and give way to those of the user."""
    for given, taken in (({}, True), ({"of_laws": False}, False)):
        solver = SubstepSolver(cube(JELLY), {"preset": "auto_incompressible", "set": given}, fuse=False)
        knobs = [{planned.id: planned.knobs for planned in program.plan.stages} for program in solver.candidates.programs]
        assert "measure_dilation" not in knobs[0] and knobs[1]["measure_dilation"]["of_laws"] is taken


def test_settings_go_to_the_candidates_that_know_them():
    """A parameter of one candidate alone is set there; one of none is refused by name."""
    solver = SubstepSolver(cube(JELLY), {"preset": "auto", "set": {"tolerance": 1e-5, "cfl": 0.3}}, fuse=False)
    knobs = [{planned.id: planned.knobs for planned in program.plan.stages} for program in solver.candidates.programs]
    assert knobs[1]["minimise_energy"]["tolerance"] == 1e-5
    assert [each["choose_time_step"]["cfl"] for each in knobs] == [0.3, 0.3]
    with pytest.raises(GraphError, match="nonsense"):
        SubstepSolver(cube(JELLY), {"preset": "auto", "set": {"nonsense": 1}})


def test_a_trial_counts_its_cheapest_substep_after_the_first(monkeypatch):
    """The first begins from nothing, and one that the end of a frame cuts short does not say what a second takes."""
    solver, lengths = auto_solver(), iter((4e-3, 1e-3, 2e-3, 5e-4))
    monkeypatch.setattr(solver, "run_stages", lambda *_: next(lengths))
    cost, longest = auto_steps._cost(solver, 1.0, lambda: None)
    fixed = sum(each.declaration.passes for each in solver.program.plan.stages)
    assert cost == pytest.approx(fixed / 2e-3) and longest == 4e-3


def test_work_that_a_stage_declares_is_counted():
    """A stage of a user's, with work of its own and a fact that counts some more."""
    facts = (Fact("looks", "", Reduction.SUM, "Looks.", 0.5), Fact("seen", "", Reduction.SUM, "Seen."))
    looks = Facts("looks", "How often it looked.", facts)

    @costs(7.0)
    @stage(label="Look", facts=(looks,))
    def look(particles: A[ParticleStore, Reads("position")], step: StepContext) -> Stage["particles"]:
        """Look.

        Args:
            particles: Particles.
        """

    solver = auto_solver()
    plan = solver.program.plan
    part = dataclasses.replace(plan.stages[0], declaration=look.declaration)
    assert part.declaration.passes == 7.0 and plan.stages[0].declaration.passes == pytest.approx(0.1)
    told = {"looks": {"looks": 3, "seen": 100}, "others": {"iterations": 5}}
    assert auto_steps._iterated(dataclasses.replace(plan, stages=(part,)), told) == pytest.approx(1.5)
