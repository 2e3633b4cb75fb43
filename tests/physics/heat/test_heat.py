"""Heat: how matter melts into another law and back, bits, checked mode, resume, and what is refused."""

from __future__ import annotations

import dataclasses

import numba
import numpy as np
import pytest
from heat_scenes import FREEZING, LIQUID, SOLID, WAX, enthalpy, plate, solver, wax
from solver_scenes import cube

from mpm_nodes.data import FrameContext, Material, MpmNodesError, Thermal
from mpm_nodes.nodes.surface import attribute_volume
from mpm_nodes.physics.heat.nodes.heat import Ramp, collider_heat_flux, collider_temperature, material_thermal, set_temperature
from mpm_nodes.physics.heat.stages.heat import flip_share
from mpm_nodes.solver.run import SubstepSolver


def test_matter_melts_into_its_other_law_and_keeps_mass_and_volume():
    """What melts becomes liquid with the volume that it had, what it lies on heats it, and the enthalpy is what came in."""
    run = solver(wax(), substeps={"preset": "explicit_heat", "set": {"conduct_heat.tolerance": 1e-13}})
    before, mass = enthalpy(run), run.particles.unpack("mass").sum()
    gained, ratios = 0.0, {}
    for frame in range(60):
        run.step_context.frame = frame
        run.step()
        gained += run.step_context.report["heat"]["from_bodies"]
        ratios[frame] = run.particles.unpack("volume_change")
    liquid = run.particles.unpack("phase") == 1
    assert 0.02 < liquid.mean() < 0.98 and np.array_equal(run.particles.unpack("material"), liquid.astype(np.int32))
    assert run.particles.unpack("position")[liquid, 1].mean() < run.particles.unpack("position")[~liquid, 1].mean()
    assert abs(enthalpy(run) - before - gained) < 1e-9 * gained and gained > 0.0
    assert run.particles.unpack("mass").sum() == pytest.approx(mass, rel=1e-14)
    assert np.abs(ratios[59][liquid]).max() < 0.2 and np.abs(ratios[59][liquid]).max() > 0.0


def test_matter_begins_in_the_phase_of_its_temperature_and_freezes_with_its_volume():
    """Hot wax is liquid from the start; cooled below its freezing temperature it is elastic again, at rest in shear."""
    start = wax(FREEZING + 0.5, volume_change=-0.03)
    run = solver(start, colliders=[plate(250.0)], gravity=(0.0, 0.0, 0.0))
    assert (run.particles.unpack("phase") == 1).all() and (run.particles.unpack("material") == 1).all()
    for _ in range(80):
        run.step()
    solid = run.particles.unpack("phase") == 0
    assert solid.any()
    assert np.array_equal(run.particles.unpack("material"), (~solid).astype(np.int32))
    assert np.abs(np.linalg.det(run.particles.unpack("deformation")[solid]) - 1.0).max() < 0.1


def test_freezing_temperatures_differ_between_particles():
    """A shift of its own keeps a particle solid above the material's freezing temperature."""
    shift = np.where(np.arange(216) % 2, 10.0, 0.0)
    run = SubstepSolver(wax(FREEZING + 5.0, freezing_shift=shift), "explicit_heat", dtype=np.float64)
    odd = run.particles.unpack("id") % 2 == 1
    assert np.array_equal(run.particles.unpack("phase") == 1, ~odd)


@pytest.mark.parametrize("fuse", [True, False], ids=["fused", "single"])
def test_no_stage_of_heat_lies(fuse):
    """Checked mode finds nothing undeclared while matter melts among bodies, and changes no bit."""
    ends = []
    for checked in (False, True):
        run = solver(wax(), checked=checked, fuse=fuse, dtype=np.float32)
        for _ in range(12):
            run.step()
        ends.append(run.snapshot().attributes)
    assert 0 < ends[0]["phase"].sum() < 216
    assert all(np.array_equal(ends[0][name], ends[1][name]) for name in ends[0])


def test_the_number_of_threads_changes_no_bit():
    """One thread and two give the same temperatures, phases and velocities."""
    ends, most = [], numba.config.NUMBA_NUM_THREADS
    for threads in (1, most):
        numba.set_num_threads(threads)
        try:
            run = solver(wax(), dtype=np.float32)
            for _ in range(12):
                run.step()
        finally:
            numba.set_num_threads(most)
        ends.append(run.snapshot().attributes)
    assert all(np.array_equal(ends[0][name], ends[1][name]) for name in ends[0])


def test_books_close_whatever_the_unit_of_heat():
    """A ten-millionth of all capacities and conductances changes no temperature: cells with next to no matter do not count."""
    found = {}
    for unit in (1.0, 1e-7):
        poor = Thermal(2000.0 * unit, 2e4 * unit, 2000.0 * unit, 2e4 * unit, 0.0, None, None)
        block = cube(dataclasses.replace(SOLID, thermal=poor), (0.0, 0.01, 0.0), temperature=300.0)
        low = block["position"].min(axis=0)
        near_faces = block["position"] - low + 1.9999 * block.spacing  # so that cells at edges and corners get next to nothing
        block = dataclasses.replace(block, attributes={**block.attributes, "position": near_faces})
        air = {"preset": "explicit_heat", "set": {"air_temperature": 400.0, "air_convection": 1e5 * unit}}
        run = solver(block, air, colliders=[], dtype=np.float32, gravity=(0.0, 0.0, 0.0), origin=np.zeros(3))
        run.step(1e-3)
        content, missing, gained = run.step_context.report["heat"]["content"], 0.0, 0.0
        for frame in range(1, 31):
            run.step_context.frame = frame
            run.step(1e-3)
            told = run.step_context.report["heat"]
            missing += told["content"] - content - told["from_air"]
            gained, content = gained + told["from_air"], told["content"]
        assert gained > 0.0 and abs(missing) < 1e-4 * gained
        found[unit] = run.particles.unpack("temperature")
    assert np.ptp(found[1.0]) > 1.0 and np.abs(found[1e-7] - found[1.0]).max() < 1e-3


def test_single_precision_agrees_with_double():
    """Both float types melt the same matter."""
    found = []
    for dtype in (np.float32, np.float64):
        run = solver(wax(), dtype=dtype)
        for _ in range(40):
            run.step(5e-4)
        found.append(run.snapshot().attributes)
    assert np.abs(found[0]["temperature"] - found[1]["temperature"]).max() < 0.1
    assert np.abs(found[0]["phase"] - found[1]["phase"]).mean() < 0.02


def test_materials_survive_storage():
    """Thermal parameters and the melt come back from plain JSON values."""
    assert Material.from_json(WAX.to_json()) == WAX
    assert Material.from_json(SOLID.to_json()) == SOLID


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"conductivity": 0.0}, "conductivity = 0"),
        ({"heat_capacity": -1.0}, "heat_capacity = -1"),
        ({"liquid_heat_capacity": float("nan")}, "liquid_heat_capacity"),
        ({"latent_heat": -5.0}, "latent_heat = -5"),
        ({"freezing_temperature": -3.0}, "freezing_temperature = -3 K"),
    ],
)
def test_thermal_parameters_out_of_range_are_refused(change, words):
    """The message names the material, the number and what is allowed."""
    bad = dataclasses.replace(WAX, thermal=dataclasses.replace(WAX.thermal, **change))
    with pytest.raises(MpmNodesError, match=f"material wax: {words}.*give"):
        SubstepSolver(cube(bad), "explicit_heat")


def test_matter_without_thermal_parameters_is_refused():
    """A heat stage says which material lacks them and what to wire."""
    with pytest.raises(MpmNodesError, match="material wax: has no thermal parameters"):
        SubstepSolver(cube(SOLID), "explicit_heat").step()


def test_temperatures_below_zero_are_refused():
    """Of particles, of noise and of bodies."""
    with pytest.raises(MpmNodesError, match="temperature of particle 0 is -5 K"):
        SubstepSolver(wax(-5.0), "explicit_heat")
    with pytest.raises(MpmNodesError, match="coldest particle"):
        set_temperature(wax(), temperature=10.0, noise=100.0, noise_size=0.05)
    with pytest.raises(MpmNodesError, match="collider 'plate': temperature = -1 K"):
        solver(wax(), colliders=[plate(-1.0)]).step()
    with pytest.raises(MpmNodesError, match="freezing_temperature"):
        material_thermal(SOLID, LIQUID)
    with pytest.raises(MpmNodesError, match=r"particle 0 of material wax freezes at -30 K.*freezing_variation"):
        SubstepSolver(wax(freezing_shift=-FREEZING - 30.0), "explicit_heat")


def test_nodes_set_temperatures():
    """Ramp, noise and variation of the freezing temperature; a collider's temperature."""
    matter = wax()
    ramped = set_temperature(matter, temperature=300.0, ramp=Ramp.Y, far_temperature=400.0)
    height = matter["position"][:, 1]
    assert np.allclose(ramped["temperature"], 300.0 + 100.0 * (height - height.min()) / np.ptp(height))
    noisy = set_temperature(matter, temperature=300.0, noise=10.0, noise_size=0.1, freezing_variation=2.0, seed=4)
    assert 1.0 < np.abs(noisy["temperature"] - 300.0).max() <= 10.0 and 1.0 < np.abs(noisy["freezing_shift"]).max() <= 2.0
    hot = collider_temperature(plate(), FrameContext(1), temperature=600.0)
    assert hot.temperature == 600.0 and hot.conductance == 1e4
    assert collider_temperature(plate(), FrameContext(1), temperature=600.0, held=True).conductance == np.inf
    burner = collider_heat_flux(hot, FrameContext(1), flux=-300.0)
    assert (burner.temperature, burner.heat_flux) == (600.0, -300.0)


def test_a_volume_holds_the_temperature():
    """Every voxel with matter has a temperature between the coldest and the hottest particle."""
    ramped = set_temperature(wax(), temperature=300.0, ramp=Ramp.X, far_temperature=400.0)
    volume = attribute_volume(ramped)
    held = volume.values[volume.values > 0.0]
    assert volume.name == "temperature" and volume.kind == "fog"
    assert held.min() >= 300.0 - 1e-3 and held.max() <= 400.0 + 1e-3 and np.ptp(held) > 80.0
    with pytest.raises(MpmNodesError, match="no number 'velocity'"):
        attribute_volume(ramped, attribute="velocity")


@pytest.mark.parametrize("liquid", [0.5, 10.0], ids=["solid faster", "liquid faster"])
def test_smoothing_follows_the_faster_of_solid_and_liquid(liquid):
    """f = exp(-s a dt / h^2), a the larger diffusivity: where the liquid conducts ten times as well, it decides."""
    conducting = dataclasses.replace(WAX.thermal, liquid_conductivity=liquid * WAX.thermal.conductivity * 3000.0 / 2000.0)
    run = solver(cube(dataclasses.replace(WAX, thermal=conducting), temperature=319.0))
    run.step(1e-3)
    diffusivity = max(1.0, liquid) * WAX.thermal.conductivity / (WAX.thermal.heat_capacity * WAX.density)
    expected = np.exp(-0.5 * diffusivity * 1e-3 / run.step_context.cell_size**2)
    assert flip_share(run.particles, run.step_context, 0.5) == pytest.approx(expected, rel=1e-9)
