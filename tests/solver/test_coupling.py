"""Shape and pressure solved together: stiff matter in long steps stands, and stands where forces balance."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from solver_scenes import cube

from mpm_nodes import Graph
from mpm_nodes.data import Collider, CollisionRule, Material, WallRule, Walls
from mpm_nodes.graph.executor import execute
from mpm_nodes.graph.registry import stages
from mpm_nodes.kernels.level_sets.level_set import PLANE, PosedLevelSets
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.thin_solids import thickness
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
    ("knobs", "wide", "dt", "told"),
    [
        ({"coupled": False}, 2, 3e-3, 2.55),
        ({"coupled": False}, 2, 2.5e-3, 0.0),
        ({"coupled": False}, 4, 3e-3, 0.0),
        ({"coupled": True}, 2, 3e-3, None),
    ],
    ids=["long steps", "short steps", "thick", "coupled"],
)
def test_thin_stiff_matter_in_long_steps_is_told(knobs, wide, dt, told):
    """Two cells thin, beyond 2.5 times a shear wave's way through a cell, and one after the other: only all three together."""
    run = column(dt, wide, **knobs)
    run.step(dt)
    found = run.step_context.report["thin_solids"] if told is not None else None
    assert found is None or found["steps"] == pytest.approx(told, rel=0.02)
    if told is None:
        assert "thin_solids" not in {group.event for group, _ in run.step_context.report.of_frame(0)}


def test_a_cook_says_how_to_cure_thin_stiff_matter():
    """One warning for all frames, with the knob to turn; none of it where shape and pressure are solved together."""
    for coupled in (False, True):
        graph = Graph(cell_size=CELL, fps=48.0, start=1, end=3)
        rubber = graph.add("material_neo_hookean", "rubber", density=1300.0, youngs_modulus=1e5, poisson_ratio=0.45)
        size = (WIDE * CELL, HIGH * CELL, WIDE * CELL)
        block = graph.add("emit_box", "block", material=rubber, size=size, centre=(0.0, 0.5 * HIGH * CELL, 0.0))
        substeps = {"preset": "incompressible", "set": {"coupled": coupled}}
        graph.add(
            "solve", "solve", sources=[block], substeps=substeps, dt_max=3.5e-3, wall_low=(-1.0, 0.0, -1.0), wall_y_low="sticky"
        )
        said = [text for text in execute(graph).warnings if "two cells thin" in text]
        assert len(said) == (0 if coupled else 1)
        assert coupled or ("project_velocity.coupled" in said[0] and "dt_max" in said[0])


@pytest.mark.parametrize("shift", [0.0, 0.3, 0.5])
def test_thickness_is_that_of_the_body_however_it_lies_between_the_cells(shift):
    """Plates two and three cells thick, and the gap of a cell between two of them, which ends the sum."""
    axis = np.arange(0.25, 12.0, 0.5)
    for high, exact in ((2, 2.0), (3, 3.0)):
        layers = np.arange(0.25, high, 0.5) + shift
        place = np.stack(np.meshgrid(axis, layers, axis, indexing="ij"), -1).reshape(-1, 3)
        inside = (np.abs(place[:, [0, 2]] - 6.0) < 2.0).all(axis=1)
        assert np.allclose(thickness(place, np.full(len(place), 0.125))[inside], exact)
    two = np.concatenate([place, place + [0.0, 5.0, 0.0]])
    assert np.allclose(thickness(two, np.full(len(two), 0.125))[np.flatnonzero(inside)], 3.0)


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
