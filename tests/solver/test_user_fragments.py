"""A stage of the user with a fragment, in one file on MPM_NODES_PATH: it shares the loop of its neighbours like ours."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fusion_scenes import DT, MIXED, PRESET, SCENES, differing, far, matter, names, solver

from mpm_nodes.data import ATTRIBUTES
from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.graph.plan.fusion import runs_of
from mpm_nodes.graph.plan.plan import SubstepPlan, plan_substeps
from mpm_nodes.graph.plan.substeps import resolve
from mpm_nodes.materials.contract import law, law_of
from mpm_nodes.solver.checkpoint import SolverState
from mpm_nodes.solver.fusion_report import explained
from mpm_nodes.solver.shared_loops import shared_loop

PAGE = (Path(__file__).parents[2] / "docs" / "fragments.md").read_text()
FILE = PAGE.split("```python\n")[1].split("```")[0]
ALL = "gather+update_deformation+user+apply_plasticity+collide_particles+move_particles"


@pytest.fixture(scope="module")
def own(tmp_path_factory) -> registries.Registry:
    """Return the registry with the file."""
    assert FILE.count("\n") < 60
    folder = tmp_path_factory.mktemp("stages")
    (folder / "warm_by_shear.py").write_text(FILE)
    return registries.load(path=str(folder))


def planned_with(own, port: tuple[str, str] = ("apply_plasticity", "particles"), **settings) -> SubstepPlan:
    """Plan the explicit preset with the stage on the wire into (stage, port)."""
    document = copy.deepcopy(PRESET)
    source = document["nodes"][port[0]]["inputs"][port[1]]
    document["nodes"][port[0]]["inputs"][port[1]] = "user"
    document["nodes"]["user"] = {"type": "warm_by_shear", "inputs": {"particles": source}}
    states = dict.fromkeys(name for material in matter(MIXED).materials for name in law_of(material)[0].state)
    return plan_substeps({**document, "set": settings}, tuple(states), own)


@pytest.mark.parametrize("scene", ["free", "bodies"])
def test_the_stage_of_a_user_shares_the_loop(own, scene):
    """One loop with ours, with its own attribute, knob and reduction: equal to single stages to rounding, and to checked mode."""
    planned = planned_with(own, **{"user.rate": 0.5})
    fused, single = (solver(MIXED, planned, fuse=fuse, **SCENES[scene]) for fuse in (True, False))
    assert ALL in names(fused) and "user" in names(single)
    for count in range(1, 11):
        for run in (fused, single):
            run.step(dt=DT)
        if count in (1, 10):
            assert far(fused, single, count, warmth="velocity_gradient") == {}, count
    warmth = fused.snapshot()["warmth"]
    assert fused.step_context.report["heat"]["hottest"] == warmth.max() > 0.0
    assert fused.step_context.report["heat"]["hottest"] == pytest.approx(single.step_context.report["heat"]["hottest"], rel=1e-4)
    checked = solver(MIXED, planned, checked=True, **SCENES[scene])
    for _ in range(2):
        checked.step()


def test_what_it_reads_inside_the_loop_is_not_stored_for_it(own):
    """The velocity gradient lives in the loop, although a stage of the user reads it there: no other bit differs."""
    planned = planned_with(own)
    kept, lean = (solver(("snow", "fixed_corotated"), planned) for _ in range(2))
    for _ in range(4):
        assert lean.step(keep=False) == kept.step(keep=True)
    assert "velocity_gradient" in lean.particles.stale
    assert differing(lean, kept, "stress", "velocity_gradient") == []


def test_outside_the_loop_it_is_given_what_it_reads(own):
    """In front of the scatter it joins that loop, which reads the gradient of the substep before: that is stored for it."""
    planned = planned_with(own, ("rasterize", "particles"))
    fused, single = (solver(MIXED, planned, fuse=fuse) for fuse in (True, False))
    assert any(name.startswith("user+rasterize+") for name in names(fused))
    for _ in range(5):
        for run in (fused, single):
            run.step(dt=DT, keep=False)
    for run in (fused, single):
        run.step(dt=DT, keep=True)
    assert far(fused, single, 6, warmth="velocity_gradient") == {}


def test_its_attribute_is_saved_and_resumed(own):
    """A solver that takes up a saved state goes on with the bits of one that was never stopped, the stage's own attribute too."""
    planned = planned_with(own, **{"user.rate": 0.5})
    whole, stopped, revived = (solver(MIXED, planned) for _ in range(3))
    for run in (whole, stopped):
        for _ in range(2):
            run.step(dt=DT)
    facts, arrays = SolverState(stopped).to_arrays()
    SolverState.from_arrays(facts, {name: array.copy() for name, array in arrays.items()}).revive(revived)
    for run in (whole, revived):
        run.step(dt=DT)
    assert differing(revived, whole) == [] and whole.snapshot()["warmth"].max() > 0.0


def lint(texts, folder) -> str:
    """Return what the linter has against modules."""
    for place, text in enumerate(texts):
        (folder / f"loop_{place}.py").write_text(text)
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "E9,F,B,I", "--line-length", "132", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout if done.returncode else ""


@pytest.mark.phenomena("foam", "heat", "melting", "projection", "rigid_bodies", "separate_bodies", "surface_tension")
def test_the_composed_source_is_clean(tmp_path):
    """Every loop of every preset is a module that the linter has nothing against: it imports what it uses, and nothing else."""
    found, texts = law("snow"), set()
    for first in map(resolve, registries.load(path="", entry_points=False).presets):
        for substeps in (first, *first.others):
            plan = plan_substeps(substeps, found.state)
            table = {**ATTRIBUTES, **found.fields, **plan.own_fields.get("particles", {})}
            texts |= {shared_loop(run, plan).source(found, table).text for run in runs_of(plan) if run.is_shared}
    assert len(texts) > 5 and not lint(sorted(texts), tmp_path)


@pytest.mark.parametrize("law_id", ["snow", "liquid"])
@pytest.mark.parametrize("project", [False, True])
def test_the_loops_of_implicit_steps_are_composed_and_shown(law_id, project, tmp_path):
    """What a minimisation asks of a law is composed of fragments too: modules without a fault, named and shown by the report."""
    text = explained({"preset": "implicit_apic", "set": {"law_energy.project_hessians": project}}, law_id)
    asked = re.findall("on request: (.*)", text)
    assert asked == ["evaluate trial", *(["store Hessians"] if project else ["apply Hessian", "add node blocks"])]
    modules = [part for part in re.split('(?m)^(?=""")(?=.*\n(?:.*\n)?\nWritten by)', text) if "@compiled" in part]
    assert sum("gather velocity + energy + trial stress + scatter force" in part for part in modules) == 1
    assert len(modules) > len(asked) and not lint(modules, tmp_path)
    assert max(len(line) for line in text.splitlines()) <= 132


def test_a_substep_graph_explains_what_it_fuses():
    """The report names every stage, why a loop ends, what stays in it, and shows the source of its loops."""
    text = explained({"preset": "explicit_apic", "set": {"transfer": "flip"}}, "snow")
    assert all(name in text for name in PRESET["nodes"])
    assert "update_grid_velocity works on grid nodes, and momentum is still read later" in text
    assert "collide_grid: alone, since it brings no fragment" in text
    assert "velocity_gradient stays in the loop unless" in text and text.count("\n@compiled") == 2
