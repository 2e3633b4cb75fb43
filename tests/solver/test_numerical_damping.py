"""Implicit steps that damp less than backward Euler: what they go by, the domain of laws at their end, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from solver_scenes import LIQUID, SNOW, cube

from mpm_nodes.data import Kernel, Material, MpmNodesError, Particles, WallRule, Walls
from mpm_nodes.solver.minimisation import MinimisationSettings
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.transfers import Take, gather, lines_of
from mpm_nodes.verification.implicit import deformed_cloud, prepared
from mpm_nodes.verification.scenes import changed

RUBBER = Material("neo_hookean", {"youngs_modulus": 1e5}, 1000.0, "rubber")
FLOOR = Walls((-5.0, 0.0, -5.0), (5.0, 5.0, 5.0), (*(WallRule.OPEN,) * 2, WallRule.SEPARATE, *(WallRule.OPEN,) * 3), 0.3)


def damped(value, **settings):
    """Return the implicit preset with a numerical damping."""
    return {"preset": "implicit_apic", "set": {"numerical_damping": value, **settings}}


def thrown(material, walls=None, speed=(0.4, -2.0, 0.1), turn=(6.0, 9.0, -4.0), **options):
    """Return the solve of a cube that turns and flies."""
    start = cube(material, cells=3)
    velocity = np.cross(turn, start["position"] - start["position"].mean(axis=0)) + speed
    moving = Particles({**start.attributes, "velocity": velocity}, start.materials, start.spacing)
    options = {"substeps": damped(0.1), "dtype": np.float64, **options}
    return SubstepSolver(moving, cell_size=0.1, walls=walls, **options)


def test_forces_of_the_deformation_follow_the_mean_velocities():
    """F <- (I + dt grad u) F with u = 0.55 v + 0.45 v^n on the nodes (1e-12), and not with their velocities v of the end."""
    solver = thrown(RUBBER)
    solver.step(0.01)
    particles, grid = solver.particles, solver.grid
    before = particles.unpack("deformation")
    stored = particles.unpack("velocity_gradient")
    momentum = grid.array("momentum")[: 256 * grid.count].reshape(-1, 4)
    velocity = grid.array("velocity")[: 256 * grid.count].reshape(-1, 4)
    heavy = momentum[:, 3] > grid.least_mass
    velocity[heavy, :3] = 0.55 * velocity[heavy, :3] + 0.45 * momentum[heavy, :3] / momentum[heavy, 3:]
    assert np.allclose(before, np.eye(3) + 0.01 * stored, rtol=0.0, atol=1e-12)
    assert np.abs(stored - particles.unpack("affine")).max() > 1e-3
    # particles have moved since: those of a second solve, halted before they do, see the same nodes
    again = thrown(RUBBER)
    again.particles.sort()
    again.grid.follow()
    again.grid.array("velocity")[: velocity.size] = velocity.ravel()
    gather(again.particles, again.grid, Kernel.QUADRATIC, Take("velocity", gradient=lines_of("velocity_gradient")))
    mean = again.particles.unpack("velocity_gradient")[np.argsort(again.particles.unpack("id"))]
    assert np.allclose(stored[np.argsort(particles.unpack("id"))], mean, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("material", [RUBBER, LIQUID, SNOW], ids=lambda each: each.law)
def test_one_loop_gives_what_single_stages_give(material):
    """Fused and single stages agree to rounding: none of them takes the gradient of the end."""
    found = []
    for fuse in (True, False):
        solver = thrown(material, FLOOR, fuse=fuse)
        for _ in range(4):
            solver.step(0.01)
        order = np.argsort(solver.particles.unpack("id"))
        found.append([solver.particles.unpack(name)[order] for name in ("position", "velocity", *solver.particles.laws[0].names)])
    for one, other in zip(*found, strict=True):
        assert np.allclose(one, other, rtol=1e-9, atol=1e-11)


def test_a_step_whose_end_leaves_the_domain_counts_as_broken():
    """At the mean det(I + A) is positive, at the end it is not: guards see it, where backward Euler with the mean would not."""
    start = deformed_cloud("neo_hookean")
    start = changed(start, velocity=np.zeros((len(start), 3)), affine=np.zeros((len(start), 3, 3)))
    problem = prepared(start, 0.01, settings=MinimisationSettings(numerical_damping=0.0))
    velocity = np.zeros_like(problem.velocity)
    nodes = velocity[: 256 * problem.count].reshape(-1, 4)
    # grad v = -c along x: A of the mean is -c dt / 4, and of the end -c dt / 2
    position = problem.grid.unpack("position")
    for squeeze, broken in ((1.8, False), (3.0, True)):
        nodes[:, 0] = -squeeze / 0.01 * position[:, 0]
        assert bool(problem.value(velocity)[1]) is broken
        assert problem.energy.terms["law_energy"].share == 0.5


def test_less_damping_bounces_higher():
    """A cube dropped without a turn leaves the floor faster with a damping of 0.1 than by backward Euler, and fastest with 0."""
    speeds = []
    for damping in (1.0, 0.1, 0.0):
        solver = thrown(RUBBER, FLOOR, turn=(0, 0, 0), speed=(0, -1, 0), gravity=(0, 0, 0), substeps=damped(damping))
        for _ in range(40):
            solver.step(0.005)
        speeds.append(solver.particles.unpack("velocity")[:, 1].mean())
    assert 0.0 < speeds[0] < speeds[1] < speeds[2]


@pytest.mark.parametrize(
    ("substeps", "what"),
    [
        ({"preset": "implicit_apic", "set": {"minimise_energy.numerical_damping": 0.1}}, "stages differ"),
        ({"preset": "explicit_apic", "set": {"gather.numerical_damping": 0.1}}, "without minimise_energy"),
        pytest.param(
            {
                "preset": "implicit_surface_tension",
                "set": {f"{stage}.numerical_damping": 0.1 for stage in ("law_energy", "minimise_energy", "gather")},
            },
            "surfaces are backward Euler",
            marks=pytest.mark.phenomena("surface_tension"),
        ),
    ],
)
def test_what_would_gain_energy_is_refused(substeps, what):
    """Stages that differ, explicit substeps and those with surfaces are told before the first substep, with the cure."""
    with pytest.raises(MpmNodesError, match=what):
        SubstepSolver(cube(RUBBER, cells=2), substeps, cell_size=0.1)
