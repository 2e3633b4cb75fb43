"""Shape and pressure solved together: stiff matter in long steps stands, and stands where forces balance."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from solver_scenes import cube

from mpm_nodes.data import Collider, CollisionRule, Material, WallRule, Walls
from mpm_nodes.graph.declare.registry import stages
from mpm_nodes.kernels.level_sets.level_set import PLANE, PosedLevelSets
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.scenes import block, material

CELL, WIDE, HIGH = 6e-3, 2, 10
COUPLED = {"preset": "incompressible", "set": {"coupled": True}}


def column(dt: float, wide: int = WIDE, **knobs: object) -> SubstepSolver:
    """Return a column of rubber, 100 kPa and 1300 kg/m^3, on a sticky floor, so many cells wide."""
    rubber = material("neo_hookean", 1300.0, youngs_modulus=1e5, poisson_ratio=0.45)
    start = block(rubber, (0.0, 0.0, 0.0), (wide * CELL, HIGH * CELL, wide * CELL), CELL)
    far = 20 * CELL
    rules = (WallRule.OPEN, WallRule.OPEN, WallRule.STICKY, *(WallRule.OPEN,) * 3)
    return SubstepSolver(
        start,
        {"preset": "incompressible", "set": {"coupled": True, **knobs}},
        cell_size=CELL,
        walls=Walls((-far, 0.0, -far), (far, 2.0 * far, far), rules),
        dtype=np.float64,
        dt_max=dt,
        origin=(0.0, 0.0, 0.0),
    )


@pytest.mark.parametrize("dt", [3e-3, 6e-3], ids=["3 ms", "6 ms"])
def test_a_thin_stiff_column_stands_in_long_steps(dt):
    """A shear wave takes 1.2 ms through a cell. The top sinks by rho g H^2 / 2 E at rest, by twice that as it swings: 0.8 % of H.

    One after the other, shape and pressure let it sink by 3 % at 3 ms, and tore it apart in five steps at 6 ms.
    """
    run = column(dt)
    low = wide = 0.0
    for _ in range(20):
        run.step(dt)
        size = np.ptp(run.particles.unpack("position"), axis=0) / CELL + 0.5
        low, wide = max(low, 1.0 - size[1] / HIGH), max(wide, abs(size[0] / WIDE - 1.0))
    report = run.step_context.report["projection"]
    assert low < 0.015 and wide < 0.02, (low, wide)
    assert report["unsolved"] == 0 and 0 < report["coupled"] < 100


@pytest.mark.parametrize(
    ("knobs", "ways"),
    [({"coupled": False}, 1.0), ({}, 10.0), ({"project_velocity.coupled_iterations": 100}, 5.0)],
    ids=["one after the other", "together", "together, in fewer iterations"],
)
def test_steps_are_as_long_as_shape_and_pressure_allow(knobs, ways):
    """By how many cells a shear wave goes in one step, where nothing else limits it."""
    run = column(1.0, **knobs)
    run.step(time_left=1.0)
    assert run.step_context.limit.name == "shear wave"
    rubber = next(law for law, _ in run.particles.runs())
    wave = math.sqrt(rubber.moduli.shear / rubber.density)
    assert run.step_context.dt * wave / CELL == pytest.approx(ways, rel=0.05)
    assert run.step_context.report["projection"]["unsolved"] == 0


def test_strained_matter_takes_short_steps_together():
    """A column that is drawn to 1.3 of its length gives back more than a long step bears; at rest its steps are long."""
    run = column(1.0)
    stretch = np.diag([1.3**-0.5, 1.3, 1.3**-0.5])
    run.particles.pack("deformation", np.tile(stretch, (run.particles.count, 1, 1)))
    run.step(time_left=1.0)
    rubber = next(law for law, _ in run.particles.runs())
    assert run.step_context.dt * math.sqrt(rubber.moduli.shear / rubber.density) / CELL < 2.0


@pytest.mark.parametrize("cells", [2, 6])
@pytest.mark.parametrize("youngs_modulus", [1e5, 1e6, 3e6])
def test_rubber_that_lands_gains_no_energy(cells, youngs_modulus):
    """Blocks that meet a plane at 0.5 m/s in the steps that the preset takes; they left it at up to 2.7 times that."""
    cell, speed = 0.2 / 12, 0.5
    rubber = Material("neo_hookean", {"youngs_modulus": youngs_modulus, "poisson_ratio": 0.3}, 1000.0, "rubber")
    start = cube(rubber, (0.0, 0.25 * cell, 0.0), cells=cells, cell_size=cell, velocity=np.array([0.0, -speed, 0.0]))
    floor = Collider("floor", CollisionRule.SEPARATE, 0.2, PosedLevelSets(PLANE))
    substeps = {"preset": "incompressible", "set": {"of_laws": True}}
    run = SubstepSolver(start, substeps, cell_size=cell, colliders=[floor], gravity=(0.0, 0.0, 0.0), dtype=np.float64)
    mass, energies, ups = run.particles.unpack("mass"), [], []
    end = 6.0 * cells * cell / math.sqrt(youngs_modulus / 2600.0) + 4.0 * cell / speed
    while run.time < end:
        run.step()
        velocity = run.particles.unpack("velocity")
        energies.append(float(mass @ (velocity**2).sum(axis=1)) / float(mass.sum()))
        ups.append(float(mass @ velocity[:, 1]) / float(mass.sum()))
    assert max(energies) < speed**2
    assert -speed < ups[-1] < 0.9 * speed and min(ups) > -1.001 * speed


def test_it_keeps_what_the_projection_keeps():
    """Momentum in free space, and the volume of incompressible matter, are as after the projection alone."""
    rubber = Material("neo_hookean", {"youngs_modulus": 1e6}, 1000.0, "rubber")
    start = cube(rubber, (4.0, 4.0, 4.0), cells=3)
    bent = 0.3 * np.random.default_rng(3).normal(size=(len(start), 3))
    start = dataclasses.replace(start, attributes={**start.attributes, "velocity": bent})
    run = SubstepSolver(start, COUPLED, cell_size=0.1, gravity=(0.0, 0.0, 0.0), dtype=np.float64, dt_max=5e-3)
    mass = run.particles.unpack("mass")
    before = mass @ bent
    for _ in range(4):
        run.step(5e-3)
        told = run.step_context.report["projection"]
        assert told["coupled"] > 0 and told["unsolved"] == 0
        assert np.abs(mass @ run.particles.unpack("velocity") - before).max() < 1e-9 * mass.sum()
    # div v h, over the speeds
    speed = float(np.abs(run.particles.unpack("velocity")).max())
    J = np.linalg.det(run.particles.unpack("deformation").reshape(-1, 3, 3))
    assert told["divergence"] * 5e-3 < 0.05 and abs(float(J.mean()) - 1.0) < 0.01 and speed < 1.0


def test_rubber_lands_in_the_steps_that_its_speed_allows():
    """A bulk modulus of four shear moduli and no dt_max: it neither jumps nor bursts (it did, with the projection last)."""
    rubber = dataclasses.replace(Material("neo_hookean", {"youngs_modulus": 3e4}, 1000.0, "rubber"), bulk_modulus=4e4)
    start = cube(rubber, (0.0, 0.05, 0.0), cells=4, cell_size=0.05, velocity=np.array([0.0, -0.7, 0.0]))
    floor = Collider("floor", CollisionRule.SEPARATE, 0.4, PosedLevelSets(PLANE))
    run = SubstepSolver(start, COUPLED, cell_size=0.05, colliders=[floor], origin=(0.0125, 0.0, 0.0125), dtype=np.float64)
    fastest, least = 0.0, 1.0
    while run.time < 0.15:
        run.step()
        fastest = max(fastest, float(np.abs(run.particles.unpack("velocity")).max()))
        least = min(least, float(np.linalg.det(run.particles.unpack("deformation").reshape(-1, 3, 3)).min()))
    assert fastest < 1.4 and least > 0.7, (fastest, least)


def test_graphs_of_version_one_still_project_last():
    """An old project_velocity takes particles from where its grid comes from, and does not couple."""
    upgrade = stages()["project_velocity"].upgrades[1]
    knobs, inputs = upgrade({"tolerance": 1e-9}, {"staggered": "semi_implicit_faces", "colliders": "choose_time_step"})
    assert knobs == {"tolerance": 1e-9, "coupled": False}
    assert inputs == {"particles": "semi_implicit_faces", "staggered": "semi_implicit_faces", "colliders": "choose_time_step"}
