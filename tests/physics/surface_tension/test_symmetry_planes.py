"""Planes of symmetry of matter with a surface: an eighth of a drop stands for the whole."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from mpm_nodes.data import MpmNodesError, SurfaceTension, Thermal, Walls
from mpm_nodes.physics.surface_tension.problems.surface_tension import H, liquid
from mpm_nodes.physics.surface_tension.problems.wetting import FAR, filled
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import OPEN, SLIP, changed, walled

CELLS, STEPS, DT = 5, 60, 2e-3
CORNER = walled((0.0, 0.0, 0.0), (FAR, FAR, FAR), SLIP, OPEN, SLIP, OPEN, SLIP, OPEN)


def egg(low: int, walls: Walls, **settings: str) -> SubstepSolver:
    """Return the solve of a drop of five cells that is stretched along z, or of an eighth of it, with even samples."""
    n = CELLS
    drop = filled((low,) * 3, (n, n, n), lambda at: (at**2).sum(axis=1) < n * n, liquid(viscosity=0.02))
    drop = changed(drop, position=drop["position"] * [0.9, 0.9, 1.23])
    substeps = {"preset": "surface_tension", "set": {"placement": "even", **settings}}
    return SubstepSolver(drop, substeps, cell_size=H, dtype=np.float64, origin=(0.0,) * 3, gravity=(0.0,) * 3, walls=walls)


def energy_and_shape(run: SubstepSolver) -> tuple[float, np.ndarray]:
    """Return the energy of the surface at the start [J], and the change of the second moments of the mass, shape (3,) [m^2]."""
    begin = moments(run)
    run.step(DT)
    energy = float(run.step_context.report["surface"]["energy"])
    for _ in range(STEPS):
        run.step(DT)
    return energy, moments(run) - begin


def moments(run: SubstepSolver) -> np.ndarray:
    m = column(run, "mass")
    return m @ column(run, "position") ** 2 / m.sum()


def test_an_eighth_of_a_drop_moves_as_the_whole():
    """Between planes of symmetry: an eighth of the energy to 0.5 %, the same swing to 3 %; between bodies it loses more of both."""
    whole, swing = energy_and_shape(egg(-CELLS, walled((-FAR,) * 3, (FAR,) * 3, OPEN)))
    assert swing[2] < -1e-4
    part, same = energy_and_shape(egg(0, CORNER, mirrors="xyz"))
    assert 8.0 * part == pytest.approx(whole, rel=5e-3)
    np.testing.assert_allclose(same, swing, atol=0.03 * np.abs(swing).max())
    touching, _ = energy_and_shape(egg(0, CORNER))
    assert 8.0 * touching < 0.97 * whole


def exchanging(low: int, walls: Walls, **settings: str) -> tuple[float, float, float]:
    """Return the free surface [m^2], the heat that came [J] and the solute that left [m^3] in ten steps of a ball, or an eighth."""
    n, matter = CELLS, liquid(viscosity=0.02)
    tension = SurfaceTension(1.0, solute_tension=0.9, solute_diffusivity=0.05)
    matter = dataclasses.replace(matter, surface_tension=tension, thermal=Thermal(1.0, 0.1, 1.0, 0.1))
    drop = filled((low,) * 3, (n, n, n), lambda at: (at**2).sum(axis=1) < n * n, matter)
    drop = changed(drop, temperature=np.full(len(drop), 300.0), concentration=np.full(len(drop), 0.5))
    given = {"placement": "even", "air_temperature": 320.0, "air_convection": 2.0, "evaporation": 0.1, **settings}
    substeps = {"preset": "surface_tension_heat", "set": given}
    run = SubstepSolver(drop, substeps, cell_size=H, dtype=np.float64, origin=(0.0,) * 3, gravity=(0.0,) * 3, walls=walls)
    for _ in range(10):
        run.step(DT)
    heat, solute = run.step_context.report["heat"], run.step_context.report["solute"]
    return float(heat["surface"]), float(heat["from_air"]), float(solute["evaporated"])


def test_heat_and_solutes_pass_through_the_surface_of_an_eighth_as_through_the_whole():
    """An eighth of the surface, the heat and the solute to 1 %; beside bodies the edge of the surface counts as wetted."""
    whole = exchanging(-CELLS, walled((-FAR,) * 3, (FAR,) * 3, OPEN))
    part = exchanging(0, CORNER, mirrors="xyz")
    assert min(whole) > 0.0
    np.testing.assert_allclose(8.0 * np.array(part), whole, rtol=1e-2)
    assert 8.0 * exchanging(0, CORNER)[0] < 0.97 * whole[0]


def test_mistakes_are_told():
    """A plane of symmetry slips and lies on nodes."""
    with pytest.raises(MpmNodesError, match=r"mirrors: no wall along x or y or z slips; place solve\.wall_low"):
        egg(0, walled((0.0,) * 3, (FAR,) * 3, OPEN), mirrors="xyz").step(DT)
    off = walled((0.0, 0.5 * H, 0.0), (FAR, FAR, FAR), SLIP, OPEN, SLIP, OPEN, SLIP, OPEN)
    with pytest.raises(MpmNodesError, match=r"mirrors: the walls along y lie at 0\.5 cells; place them on planes of nodes"):
        egg(0, off, mirrors="xyz").step(DT)
