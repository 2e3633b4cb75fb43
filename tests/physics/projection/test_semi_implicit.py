"""Semi-implicit substeps: exact for quadratic energies, stable beyond the explicit limit, least damped at beta = 1/2."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from solver_scenes import JELLY, LIQUID, cube

from mpm_nodes import SubstepSolver
from mpm_nodes.data import Particles, WallRule, Walls
from mpm_nodes.graph.declare import registry

WHIRL = 3.0


def document(stage="semi_implicit_update", **knobs):
    """Return the implicit preset with another update."""
    raw = json.loads(registry.default().presets["implicit_apic"].read_text())
    raw["nodes"]["minimise_energy"] |= {"type": stage, "knobs": knobs}
    return raw | {"parameters": {}}


def moving(material, scale=1.0):
    """Return a cube in a smooth flow that stretches, shears and turns it."""
    start = cube(material)
    x = WHIRL * start["position"]
    velocity = scale * np.stack([np.sin(x[:, 1]), np.cos(x[:, 2]), np.sin(x[:, 0] + x[:, 1])], 1)
    return Particles({**start.attributes, "velocity": velocity}, start.materials, start.spacing)


def solver_of(start, substeps, **options):
    """Return a double-precision solver without gravity."""
    return SubstepSolver(start, substeps, cell_size=0.1, dtype=np.float64, gravity=(0, 0, 0), **options)


def from_minimum(scale, own_viscosity):
    """Return how far one linear solve at beta = 1 ends from the minimisation, and how far that moves, in a liquid [m/s]."""
    start = moving(dataclasses.replace(LIQUID, viscosity=own_viscosity), scale)
    tight = {"krylov_tolerance": 1e-13, "krylov": "conjugate_gradient"}
    ends = []
    for substeps in (document(beta=1.0, **tight), document("minimise_energy", tolerance=1e-10, **tight)):
        solver = solver_of(start, substeps)
        solver.step(5e-3)
        ends.append(solver.snapshot()["velocity"])
    return np.abs(ends[0] - ends[1]).max(), np.abs(ends[1] - start["velocity"]).max()


@pytest.mark.parametrize("own_viscosity", [0.0, 20.0])
def test_beta_one_is_backward_euler_for_quadratic_energies(own_viscosity):
    """A liquid's energy is quadratic to second order in dt grad v: the difference falls a hundredfold with a tenth of the speed."""
    (fast, _), (slow, moved) = (from_minimum(scale, own_viscosity) for scale in (1e-2, 1e-3))
    assert moved > 1e-4 and slow < 1e-6 * moved
    assert slow == pytest.approx(0.01 * fast, rel=0.01)


def energy_left(beta, dt, steps):
    """Return the largest kinetic energy of the second half of a cube's stretching oscillation, over that at the start."""
    start = cube(JELLY)
    stretch = 0.1 * (start["position"] - start["position"].mean(axis=0)) * (1.0, -0.5, -0.5)
    solver = solver_of(Particles({**start.attributes, "velocity": stretch}, start.materials, start.spacing), document(beta=beta))
    kinetic = []
    for _ in range(steps):
        solver.step(dt)
        kinetic.append(float(np.square(solver.particles.unpack("velocity")).sum()))
    return max(kinetic[steps // 2 :]) / float(np.square(stretch).sum())


def test_beta_one_half_damps_less_than_backward_euler():
    """The amplification per step is 1 / (1 + beta z): more of the motion is left at 1/2 than at 1, and no mode grows."""
    half, whole = (energy_left(beta, 8e-3, 60) for beta in (0.5, 1.0))
    assert 1.5 * whole < half <= 1.0


def test_stable_at_fifty_times_the_explicit_limit():
    """Steps of fifty times the wave limit neither diverge nor gain energy."""
    limit = 0.5 * 0.1 / np.sqrt(5e3 * 0.7 / (1.3 * 0.4) / 1000.0)
    assert energy_left(0.5, 50 * limit, 6) <= 1.0


def test_sticky_walls_hold_their_nodes():
    """Velocities at a sticky wall are those of the wall, and matter off it is held by its stress alone: nothing falls through."""
    floor = Walls((-1.0, 0.0, -1.0), (2.0, 2.0, 2.0), (WallRule.OPEN,) * 2 + (WallRule.STICKY,) + (WallRule.OPEN,) * 3)
    solver = SubstepSolver(cube(JELLY), document(), cell_size=0.1, dtype=np.float64, walls=floor)
    for _ in range(40):
        solver.step(4e-3)
    nodes, velocity = solver.grid.unpack("position"), solver.grid.unpack("velocity")
    on_wall = np.abs(nodes[:, 1]) <= 1e-9
    assert np.array_equal(velocity[on_wall], np.zeros_like(velocity[on_wall]))
    assert 0.0 < solver.snapshot()["position"][:, 1].min() < 0.05


def test_friction_slows_a_sliding_block():
    """A stiff block that slides on a rough floor loses mu_f g t of its speed (3 %)."""
    floor = Walls((-9.0, 0.0, -9.0), (9.0, 9.0, 9.0), (WallRule.OPEN,) * 2 + (WallRule.SEPARATE,) + (WallRule.OPEN,) * 3, 0.3)
    start = cube(dataclasses.replace(JELLY, params={"youngs_modulus": 1e6}))
    start = Particles({**start.attributes, "velocity": np.tile([1.0, 0.0, 0.0], (len(start), 1))}, start.materials, start.spacing)
    solver = SubstepSolver(start, document(), cell_size=0.1, dtype=np.float64, walls=floor)
    for _ in range(50):
        solver.step(4e-3)
    lost = 1.0 - solver.snapshot()["velocity"][:, 0].mean()
    assert lost == pytest.approx(0.3 * 9.81 * solver.time, rel=0.03)
