"""Liquids that slip on solids in the projection: balances, the matrix of both pressures, what stays as it was, what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mpm_nodes.physics.projection.numerics.slipping as slipping
from mpm_nodes.data import MpmNodesError, Thermal, concatenate
from mpm_nodes.physics.projection.problems.bodies_in_water import CELL, SolidInWater
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.quantities import column, kinetic_energy, momentum
from mpm_nodes.verification.scenes import ball, block, changed, material

WATER = material("liquid", 1000.0)
CORK = material("neo_hookean", 200.0, youngs_modulus=1e5)


def drop(density_rate: float = 0.0) -> SubstepSolver:
    """Return a drop of water with a block of cork in it, half out of it, at random velocities."""
    water = block(WATER, (0, 0, 0), (0.32, 0.32, 0.32), CELL)
    x = np.asarray(water.attributes["position"])
    outside = ~((x[:, 0] > 0.2) & (np.abs(x[:, 1:] - 0.16) < 0.08).all(axis=1))
    parts = changed(water, **{name: values[outside] for name, values in water.attributes.items()})
    both = concatenate([parts, block(CORK, (0.2, 0.08, 0.08), (0.4, 0.24, 0.24), CELL)])
    speeds = np.random.default_rng(3).normal(size=(len(both), 3))
    substeps = {"preset": "incompressible", "set": {"slip": True, "density_rate": density_rate}}
    return SubstepSolver(
        changed(both, velocity=speeds), substeps, dtype=np.float64, gravity=(0.0, 0.0, 0.0), dt_max=1e-3, cell_size=CELL
    )


def test_momentum_stays_and_energy_is_not_made() -> None:
    """Pushes of both pressures are equal and opposite, and the solve finds the nearest velocities."""
    run = drop()
    begin, energy = momentum(run), kinetic_energy(run)
    for _ in range(5):
        run.step(1e-3)
        assert kinetic_energy(run) < energy
        energy = kinetic_energy(run)
    scale = float((column(run, "mass")[:, None] * np.abs(column(run, "velocity"))).sum())
    assert np.abs(momentum(run) - begin).max() < 1e-12 * scale


def test_momentum_stays_where_air_lies_between() -> None:
    """Cells that are mostly air count as empty: faces of both then follow others, and weigh what both do."""
    run = drop(5.0)
    begin = momentum(run)
    run.step(1e-3)
    scale = float((column(run, "mass")[:, None] * np.abs(column(run, "velocity"))).sum())
    assert np.abs(momentum(run) - begin).max() < 1e-12 * scale


def test_equations_are_symmetric_and_positive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Conjugate gradients ask for it, of the preconditioner as well."""
    found = []
    make = slipping.equations_of_both

    def kept(vectors: Any, *given: Any) -> Any:
        found.append((vectors, make(vectors, *given), given))
        return found[-1][1]

    monkeypatch.setattr("mpm_nodes.physics.projection.numerics.pressure_solver.equations_of_both", kept)
    drop().step(1e-3)
    vectors, equations, (matrix, _, fields, slip) = found[0]
    count = 64 * len(matrix.around)
    active = np.concatenate([fields.kind == 1, slip.cx**2 + slip.cy**2 + slip.cz**2 > 0.0])
    assert active[count:].sum() > 100
    random, pair = np.random.default_rng(1), []
    for _ in range(2):
        x = vectors.new()
        x[: len(active)] = np.where(active, random.normal(size=len(active)), 0.0)
        pair.append(x)
    for of in (equations.apply, equations.precondition):
        products = [vectors.new(), vectors.new()]
        for x, product in zip(pair, products, strict=True):
            of(x, product)
        one, other = vectors.dot(pair[0], products[1]), vectors.dot(pair[1], products[0])
        assert one == pytest.approx(other, rel=1e-9, abs=1e-12 * vectors.dot(pair[0], products[0]))
        assert vectors.dot(pair[0], products[0]) > 0.0


def test_water_slips_on_a_block() -> None:
    """A thin block that water streams along keeps still, and is dragged where both share their faces."""
    moved = []
    for slip in (True, False):
        water = block(WATER, (0, 0, 0), (0.32, 0.32, 0.32), CELL)
        x = np.asarray(water.attributes["position"])
        outside = np.abs(x[:, 1] - 0.16) > 0.04
        part = changed(water, **{name: values[outside] for name, values in water.attributes.items()})
        part = changed(part, velocity=np.tile([1.0, 0.0, 0.0], (len(part), 1)))
        both = concatenate([part, block(CORK, (0, 0.12, 0), (0.32, 0.2, 0.32), CELL)])
        run = SubstepSolver(
            both, {"preset": "incompressible", "set": {"slip": slip}}, cell_size=CELL, gravity=(0, 0, 0), dt_max=1e-3
        )
        run.advance(5e-3)
        moved.append(float(column(run, "velocity")[run.particles.unpack("material") == 1, 0].mean()))
    assert abs(moved[0]) < 0.02 and moved[1] > 0.2


def test_a_light_ball_rises_by_potential_flow() -> None:
    """One of three cells in a smaller box than that of `verify bodies_in_water`."""
    assert SolidInWater(3.0, 500.0, 14).rise() == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("solid", [False, True])
def test_matter_of_one_kind_is_left_as_it_was(solid: bool) -> None:
    """Nothing slips where there are only liquids, or only solids."""
    found = []
    for slip in (False, True):
        matter = ball(CORK if solid else WATER, (0, 0, 0), 0.12, CELL, velocity=(1.0, 0.0, 0.0))
        run = SubstepSolver(matter, {"preset": "incompressible", "set": {"slip": slip}}, cell_size=CELL, dt_max=1e-3)
        run.advance(3e-3)
        found.append(run.snapshot())
    assert np.array_equal(found[0]["position"], found[1]["position"])


@pytest.mark.parametrize(
    ("substeps", "what"),
    [
        ({"preset": "incompressible", "set": {"slip": True, "coupled": True}}, "coupled"),
        ({"preset": "melting", "set": {"project_velocity.slip": True}}, "stages that move heat"),
    ],
)
def test_what_does_not_go_together_is_refused(substeps: dict[str, Any], what: str) -> None:
    """Shape and pressure in one solve, and heat."""
    thermal = Thermal(2000.0, 5.0, 4000.0, 2.0)
    run = SubstepSolver(ball(replace(WATER, thermal=thermal), (0, 0, 0), 0.12, CELL), substeps, cell_size=CELL)
    with pytest.raises(MpmNodesError, match=f"slip and {what} do not go together"):
        run.step(1e-3)
