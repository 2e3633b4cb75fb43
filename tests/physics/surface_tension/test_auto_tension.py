"""The choice between explicit and implicit substeps of surface tension."""

from __future__ import annotations

import numpy as np
import pytest
from solver_scenes import cube

from mpm_nodes import SubstepSolver
from mpm_nodes.data import Material, SurfaceTension
from mpm_nodes.physics.surface_tension.stages.surface_tension import longest_step
from mpm_nodes.solver import auto_steps
from mpm_nodes.solver.auto_steps import measure


def test_capillary_waves_limit_the_explicit_surface_alone(monkeypatch):
    """Of the presets with surfaces either is tried with the steps that it may take, and settings of both reach both."""
    drop = Material("liquid", {"bulk_modulus": 1e4}, 1.0, surface_tension=SurfaceTension(100.0))
    substeps = {"preset": "auto_surface_tension", "set": {"contact_angle": 60.0, "tolerance": 1e-5}}
    solver = SubstepSolver(cube(drop), substeps, dtype=np.float64, dt_max=0.002, gravity=(0.0, 0.0, 0.0))
    knobs = [{planned.id: planned.knobs for planned in program.plan.stages} for program in solver.candidates.programs]
    assert [each["set_tension"]["contact_angle"] for each in knobs] == [60.0, 60.0]
    cost, steps = auto_steps._cost, []
    monkeypatch.setattr(auto_steps, "_cost", lambda *given: steps.append(cost(*given)) or steps[-1])
    measure(solver, 0.01, lambda: None)
    (_, explicit), (_, implicit) = steps
    assert explicit == pytest.approx(longest_step(100.0, 1.0, solver.cell_size), rel=0.05)  # whole steps fill the time that is left
    assert implicit > 3.0 * explicit
    solver.choose(0)
    solver.step(time_left=1.0)
    assert solver.step_context.limit.name == "capillary wave"
