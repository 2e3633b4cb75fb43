"""Energy terms: whoever adds one is minimised, with its gradient, its Hessian and its blocks; viscosity is one like any other."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import numpy as np
import pytest
from solver_scenes import cube

import mpm_nodes
from mpm_nodes.data import A, Attribute, Energy, Grid, Kernel, Material, Particles, Reads, Stage, Writes
from mpm_nodes.graph.declare import registry, stage
from mpm_nodes.kernels.transfers.weights import STENCIL
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.terms.law_energy import LawEnergy, ViscousEnergy
from mpm_nodes.solver.terms.point_term import PointTerm
from mpm_nodes.verification.implicit import block_error, deformed_cloud, derivative_errors, prepared, random_nodes

ANCHOR = Attribute("anchor", "X", (3,), "m", "primvars:anchor", "anchor", "Where the spring of a particle ends.")
SOFT = Material("neo_hookean", {"youngs_modulus": 1e3}, 1000.0, "soft")


def springs(particles, grid, kernel, k=300.0, hardening=50.0):
    """Springs of stiffness k [N/m] that harden with the square of their length, from each particle to where it is, less 1 cm."""
    rest = particles.unpack("position") - 0.01

    def energy(x):
        d2 = ((x - rest) ** 2).sum(axis=1)
        return 0.5 * k * d2 * (1.0 + hardening * d2)

    def force(x):
        d = x - rest
        return -k * (1.0 + 2.0 * hardening * (d**2).sum(axis=1))[:, None] * d

    def stiffness(x):
        d = x - rest
        d2 = (d**2).sum(axis=1)[:, None, None]
        return k * ((1.0 + 2.0 * hardening * d2) * np.eye(3) + 4.0 * hardening * d[:, :, None] * d[:, None, :])

    return PointTerm(particles.unpack("position"), grid, kernel, energy, force, stiffness)


@stage(label="Hold Points")
def hold_points(
    particles: A[Particles, Reads("position", "anchor"), ANCHOR],
    grid: A[Grid, Reads("mass")],
    energy: A[Energy, Reads("terms"), Writes("terms")],
    *,
    pull: float = 1e3,
) -> Stage["particles", "grid", "energy"]:
    """Pull every particle to its anchor by a spring of its own.

    Args:
        particles: Particles with the attribute "anchor" [m].
        grid: Grid under them.
        energy: Terms of the potential.
        pull: Stiffness of each spring [N/m].
    """
    rest = particles.unpack("anchor")
    term = PointTerm(
        particles.unpack("position"),
        grid,
        Kernel.QUADRATIC,
        lambda x: 0.5 * pull * ((x - rest) ** 2).sum(axis=1),
        lambda x: pull * (rest - x),
        lambda x: np.broadcast_to(pull * np.eye(3), (len(x), 3, 3)),
    )
    energy.add("hold_points", term)


@pytest.mark.parametrize("kernel", list(Kernel))
def test_a_term_of_ones_own_has_exact_derivatives(kernel):
    """Gradient, Hessian product and node blocks of law and springs are differences of the potential (1e-6, 1e-5, 1e-12)."""
    problem = prepared(deformed_cloud("neo_hookean"), 0.01, kernel)
    problem.energy.add("springs", springs(problem.grid.particles, problem.grid, kernel))
    assert list(problem.energy.terms) == ["law_energy", "springs"]
    slope, curvature = derivative_errors(problem, random_nodes(problem, 0.5, 1), random_nodes(problem, 0.5, 2))
    assert slope < 1e-6 and curvature < 1e-5
    assert block_error(problem) < 1e-12


class _BendsDown:
    """A term of a quadratic energy that bends down along x, unless it is asked for its positive part; it tells how often."""

    def __init__(self, mass):
        self.mass, self.asked = mass, []

    def evaluate(self, dt, velocity, force):
        """A constant force along x."""
        force[: self.mass.size].reshape(-1, 4)[:, 0] += self.mass[3::4]
        return -dt * float(self.mass[3::4] @ velocity[: self.mass.size][::4]), 0

    def linearise(self, dt):
        """Take the positive part."""
        self.asked.append("positive")

    def linearise_whole(self, dt):
        """Take all of it."""
        self.asked.append("whole")

    def apply(self, dt, direction, result):
        """Three times the mass down along x, or nothing."""
        if self.asked[-1] == "whole":
            given, taken = (array[: self.mass.size].reshape(-1, 4) for array in (direction, result))
            taken[:, 0] -= 3.0 * self.mass[3::4] * given[:, 0]

    def add_blocks(self, dt, blocks):
        """No blocks: the mass stands for them."""


def test_newton_drops_what_bends_down_only_where_it_meets_it():
    """All of the Hessian is asked for first; where it bends down the step is that of the positive part, v~ + dt f / m."""
    problem = prepared(deformed_cloud("neo_hookean"), 0.01)
    problem.energy.begin_substep()
    mass = problem.grid.array("momentum")[: 256 * problem.grid.count].copy()
    problem.energy.add("bends_down", term := _BendsDown(mass))
    problem.start()
    problem._reduce()
    problem._find_change(1e-10, True)
    assert term.asked == ["whole", "positive"]
    filled = mass[3::4] > problem.grid.least_mass
    np.testing.assert_allclose(problem.change[: mass.size].reshape(-1, 4)[filled, 0], 0.01, rtol=1e-9)


def test_several_terms_of_one_name_all_count():
    """Two springs give twice the force of one."""
    problem = prepared(deformed_cloud("neo_hookean"), 0.01)
    problem.energy.begin_substep()
    values = []
    for _ in range(2):
        problem.energy.add("springs", springs(problem.grid.particles, problem.grid, Kernel.QUADRATIC))
        problem.energy.evaluate(0.01, problem.grid.array("velocity"))
        values.append(problem.grid.array("force").copy())
    assert list(problem.energy.terms) == ["springs", "springs_2"] and np.abs(values[0]).max() > 0
    np.testing.assert_allclose(values[1], 2.0 * values[0], rtol=1e-12)


def with_hold_points():
    """Return the built-in registry, and the stage of this file."""
    found = registry.load()
    found.add(hold_points.declaration)
    return found


def test_a_users_stage_is_minimised(monkeypatch):
    """A block on springs, wired into the implicit preset, swings about where they carry its weight: sag m g / k, to 1 %."""
    start = cube(SOFT, cells=2)
    start = Particles({**start.attributes, "anchor": start["position"]}, start.materials, start.spacing)
    monkeypatch.setattr(registry, "_LOADED", {os.environ.get(registry.PATH_VARIABLE, ""): with_hold_points()})
    document = _wired_in()
    solver = SubstepSolver(start, document, cell_size=0.1, gravity=(0.0, -10.0, 0.0), dtype=np.float64)
    for _ in range(60):  # backward Euler with steps of many periods damps the swing
        solver.step(0.05)
    sag = (start["position"] - solver.snapshot()["position"])[:, 1].mean()
    assert sag == pytest.approx(solver.particles.unpack("mass").mean() * 10.0 / 1e3, rel=0.01)
    assert np.abs(solver.particles.unpack("velocity")).max() < 1e-3


def _wired_in():
    document = json.loads((Path(mpm_nodes.__file__).parent / "solver/presets/implicit_apic.json").read_text())
    nodes = document["nodes"]
    nodes["hold_points"] = {
        "type": "hold_points",
        "inputs": {"particles": "viscous_energy", "grid": "law_energy", "energy": "viscous_energy"},
    }
    nodes["minimise_energy"]["inputs"].update(particles="hold_points", grid="hold_points", energy="hold_points")
    return document


def viscous_cloud():
    """A cloud of liquid with a viscosity of the law and one of the material."""
    cloud = deformed_cloud("liquid")
    return Particles(cloud.attributes, tuple(dataclasses.replace(m, viscosity=30.0) for m in cloud.materials), cloud.spacing)


@pytest.mark.parametrize("viscous_first", [False, True])
def test_viscosity_joins_the_law_or_stands_alone(viscous_first):
    """Joined in either order they are one pass, the sum of the two alone (1e-12); viscosity alone has exact derivatives."""
    problem = prepared(viscous_cloud(), 0.01)
    particles, grid, stencil = problem.grid.particles, problem.grid, STENCIL["quadratic"]
    velocity = random_nodes(problem, 0.5, 1)
    grid.array("velocity")[: velocity.size] = velocity[: grid.array("velocity").size]

    def value(*terms):
        problem.energy.begin_substep()
        for name, term in terms:
            problem.energy.add(name, term(particles, grid, stencil))
        energy, broken = problem.energy.evaluate(0.01, grid.array("velocity"))
        assert broken == 0
        return energy, grid.array("force").copy(), len(problem.energy.terms)

    law, viscous = ("law_energy", LawEnergy), ("viscous_energy", ViscousEnergy)
    both = value(*((viscous, law) if viscous_first else (law, viscous)))
    alone = value(law), value(viscous)
    assert [both[2], alone[1][2]] == [1, 1] and alone[1][0] > 0.0
    assert both[0] == pytest.approx(alone[0][0] + alone[1][0], rel=1e-12)
    np.testing.assert_allclose(both[1], alone[0][1] + alone[1][1], atol=1e-12 * np.abs(both[1]).max())
    slope, curvature = derivative_errors(problem, random_nodes(problem, 0.5, 1), random_nodes(problem, 0.5, 2))
    assert slope < 1e-6 and curvature < 1e-5 and block_error(problem) < 1e-12


def test_the_stage_of_viscosity_adds_its_term():
    """With it a step of the implicit preset slows sheared honey as nu u'' = 0.04 m/s^2 says; without it nothing does."""
    start = cube(Material("neo_hookean", {"youngs_modulus": 1.0}, 1000.0, viscosity=10.0), cells=10)
    y, dt = start["position"][:, 1], 1e-3
    moving = Particles(
        {**start.attributes, "velocity": np.stack([2.0 * y**2, 0.0 * y, 0.0 * y], axis=1)}, start.materials, start.spacing
    )
    inside, speeds = (np.abs(start["position"] - 0.5) < 0.05).all(axis=1), []
    for bypass in (False, True):
        edits = {"preset": "implicit_apic", "edits": [{"bypass": "viscous_energy"}] if bypass else []}
        solver = SubstepSolver(moving, edits, gravity=(0.0, 0.0, 0.0), dtype=np.float64)
        solver.step(dt)
        speeds.append(solver.snapshot(["velocity"])["velocity"][inside, 0])
    gained = (speeds[0] - speeds[1]) / dt
    assert inside.sum() == 8 and np.abs(gained - 0.04).max() < 0.004
