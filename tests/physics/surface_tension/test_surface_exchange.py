"""What passes through the sampled surface: a flux from one side, and a solute that evaporates."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mpm_nodes.data import Material, MpmNodesError, SurfaceTension
from mpm_nodes.physics.heat.problems.heat import solver
from mpm_nodes.physics.surface_tension.problems.evaporation import evaporating, wine
from mpm_nodes.physics.surface_tension.problems.surface_heat import sampled, skinned
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import SLIP, ball, block, changed, walled


@pytest.mark.parametrize("towards", [(-2.0, 0.0, 0.0), (0.0, 0.3, 0.4)])
def test_a_flux_from_one_side_warms_what_faces_it(towards: tuple[float, float, float]):
    """A ball takes up b pi R^2 of it, on the side that faces it; the other side takes up nothing, however long the direction."""
    radius, flux, h = 0.5, 1e9, 0.1
    start = ball(skinned(), (0, 0, 0), radius, h)
    substeps = sampled(flux=flux, tolerance=1e-13)
    substeps["nodes"]["heat_surface"]["knobs"]["flux_from"] = list(towards)
    run = solver(changed(start, temperature=np.full(len(start), 300.0)), substeps, h)
    dt = 1e-6  # too short for conduction
    run.step(dt)
    came = run.step_context.report["heat"]["from_sources"]
    assert came == pytest.approx(flux * math.pi * radius**2 * dt, rel=0.06)
    facing = column(run, "position") @ np.array(towards) / math.hypot(*towards)
    warmer = column(run, "temperature") - 300.0
    assert warmer[facing > 0.8 * radius].min() > 0.1 * warmer.max()
    assert np.abs(warmer[facing < -3.0 * h]).max() < 1e-4 * warmer.max()


def test_a_solute_that_does_not_diffuse_cannot_evaporate():
    """Evaporation without a diffusivity is refused with both cures."""
    tension = SurfaceTension(1.0, solute_tension=0.5)
    start = ball(Material("liquid", {"bulk_modulus": 10.0}, 1.0, "wine", surface_tension=tension), (0, 0, 0), 0.3, 0.1)
    substeps = {"preset": "surface_tension_solute", "set": {"evaporation": 0.1}}
    run = SubstepSolver(changed(start, concentration=np.ones(len(start))), substeps, cell_size=0.1)
    with pytest.raises(MpmNodesError, match=r"evaporation = 0.1 m/s: .* set material_surfactant.diffusivity, or evaporation = 0"):
        run.step(1e-4)


@pytest.mark.parametrize(("top", "leaves"), [(0.5, False), (2.0, True)])
def test_a_solute_leaves_through_free_surfaces_alone(top: float, leaves: bool):
    """Matter that fills its box loses nothing; below an open lid it loses some, and only near the lid."""
    h = 0.1
    start = block(wine(), (0, 0, 0), (5 * h, 5 * h, 5 * h), h)
    walls = walled((0, 0, 0), (5 * h, top, 5 * h), SLIP)
    run = solver(changed(start, concentration=np.ones(len(start))), evaporating(2.0), h, walls=walls)
    run.step(1e-4)
    told = run.step_context.report["solute"]["evaporated"]
    drawn = float(column(run, "surface_area").sum())  # times the speed
    assert told == pytest.approx(drawn * 1e-4, rel=1e-2, abs=1e-15)
    assert drawn == pytest.approx(2.0 * 25 * h**2 if leaves else 0.0, rel=0.25)  # its rim touches the walls
    left, y = column(run, "concentration"), column(run, "position")[:, 1]
    assert left[y < 2 * h].min() > 1.0 - 1e-4


def test_presets_let_a_solute_evaporate_with_and_without_heat():
    """Both presets with a solute take `evaporation`, and the books of the solute close."""
    tension = SurfaceTension(1.0, solute_tension=0.5, solute_diffusivity=0.01)
    for preset, make in (("surface_tension_solute", wine), ("surface_tension_heat", skinned)):
        matter = changed(ball(make(), (0, 0, 0), 0.3, 0.1))
        materials = tuple(
            Material(m.law, m.params, m.density, m.label, surface_tension=tension, thermal=m.thermal) for m in matter.materials
        )
        start = changed(type(matter)(matter.attributes, materials, matter.spacing), concentration=np.ones(len(matter)))
        start = changed(start, temperature=np.full(len(start), 300.0))
        run = SubstepSolver(
            start, {"preset": preset, "set": {"evaporation": 0.1}}, cell_size=0.1, gravity=(0, 0, 0), dtype=np.float64
        )
        told, before = 0.0, float(column(run, "volume") @ column(run, "concentration"))
        for n in range(5):
            run.step_context.frame = n
            run.step(1e-4)
            told += run.step_context.report["solute"]["evaporated"]
        assert told > 0.0
        after = float(column(run, "volume") @ column(run, "concentration"))
        assert (before - after) == pytest.approx(told, rel=1e-6)
