"""What limits the time step, seen from outside: dt of a first substep against the formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from solver_scenes import JELLY, cube, shot

from mpm_nodes import SubstepSolver
from mpm_nodes.data import MpmNodesError
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.solver.step_lengths import even_step

H, WAVE = 0.1, math.sqrt(5e3 * 0.7 / (1.3 * 0.4) / 1000.0)
"""Cell size of the cube [m], and wave speed of the jelly at rest, nu = 0.3 [m/s]."""


@pytest.mark.parametrize(("speed", "dt_max"), [(0.0, 10.0), (0.5, 10.0), (2.0, 10.0), (2.0, math.inf)])
def test_the_elastic_limit_counts_the_speed_of_the_matter(speed, dt_max):
    """Waves run on matter that moves: dt = elastic_cfl h / (c + |v|), where nothing else is shorter."""
    start = cube(JELLY, velocity=(0.6 * speed, -0.8 * speed, 0.0))
    settings = {"preset": "explicit_apic", "set": {"choose_time_step.cfl": 0.9, "choose_time_step.elastic_cfl": 0.2}}
    solver = SubstepSolver(start, settings, gravity=(0.0, 0.0, 0.0), dt_max=dt_max, dtype=np.float64)
    assert solver.step() == pytest.approx(0.2 * H / (WAVE + speed), rel=1e-6)
    assert solver.step_context.limit.name == "elastic wave"


def test_a_step_that_nothing_limits_is_refused():
    solver = SubstepSolver(cube(JELLY), "implicit_apic", gravity=(0.0, 0.0, 0.0), dt_max=math.inf)
    with pytest.raises(MpmNodesError, match="nothing limits dt"):
        solver.step()


@pytest.mark.parametrize("speed", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("cfl", [0.5, 0.9])
def test_matter_falls_no_farther_than_allowed(speed, cfl):
    """A substep moves matter by its speed at the end, v + g dt: cfl cells from rest too, where gravity alone limits dt."""
    settings = {"preset": "implicit_apic", "set": {"choose_time_step.cfl": cfl}}
    solver = SubstepSolver(cube(JELLY, velocity=(0.0, -speed, 0.0)), settings, dt_max=10.0, dtype=np.float64)
    before = solver.particles.unpack("position")[:, 1].mean()
    solver.step()
    fallen = before - solver.particles.unpack("position")[:, 1].mean()
    assert fallen == pytest.approx(cfl * H, rel=1e-6)


def test_matter_deep_inside_a_collider_is_warned_of():
    """A ball of two cells' radius around the middle of a block, one substep a frame: half a cell a step does not bring it out."""
    graph = shot(2, fps=2000.0, colliders=[("core", "collide_sphere", {"centre": (0.0, 1.0, 0.0), "radius": 0.2, "name": "core"})])
    (text,) = [text for text in execute(graph).warnings if "are inside collider" in text]
    assert text.startswith("core: ") and "m deep; lower choose_time_step.cfl" in text
    away = shot(2, fps=2000.0, colliders=[("core", "collide_sphere", {"centre": (0.0, 3.0, 0.0), "radius": 0.2})])
    assert not any("inside collider" in text for text in execute(away).warnings)


@pytest.mark.parametrize(("left", "expected"), [(0.5, 0.5), (0.09, 1.09), (0.11, 0.11)])
def test_what_is_left_of_a_tick_is_no_sliver(left, expected):
    """Less than half a step to the end of a tick goes with the next one; where ticks are short, frames are divided."""
    assert even_step(0.2, 3.0, 1.0, left, 0.0) == pytest.approx(expected / math.ceil(expected / 0.2))
    assert even_step(0.3, 3.0, 1.0, left, 0.0) == pytest.approx(0.3)
