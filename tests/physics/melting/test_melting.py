"""Heat and projection in one preset: books, densities by phase, bits, checked mode, precision, resume."""

from __future__ import annotations

import dataclasses
import json

import numba
import numpy as np
import pytest
from solver_scenes import cube

from mpm_nodes.data import Material, MpmNodesError, Particles, Thermal, WallRule, Walls
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.document.document import load_graph
from mpm_nodes.graph.plan.fusion import FusedStage
from mpm_nodes.solver.run import SubstepSolver

LATENT, FREEZING, ICE_DENSITY, WATER_DENSITY = 2000.0, 273.15, 800.0, 1000.0
WATER = Material("liquid", {"bulk_modulus": 2e4, "viscosity": 0.5}, WATER_DENSITY, "water")
FROZEN = Material("neo_hookean", {"youngs_modulus": 2e4}, ICE_DENSITY, "ice")
ICE = dataclasses.replace(FROZEN, thermal=Thermal(2000.0, 1e6, 4000.0, 5e5, LATENT, FREEZING, WATER))


def half_frozen() -> Particles:
    """Return a cube of ice of which the lower half is warm water, as light as ice where it is water: V0 follows the mass."""
    start = cube(ICE)
    temperature = np.where(start["position"][:, 1] < 0.15, FREEZING + 1.0, FREEZING - 0.5)
    return dataclasses.replace(start, attributes={**start.attributes, "temperature": temperature})


def solver(start: Particles | None = None, source: float = 0.0, **options: object) -> SubstepSolver:
    """Return a solver of the cube in free space, without gravity."""
    settings = {"conduct_heat.tolerance": 1e-13, "conduct_heat.source": source}
    given = {"gravity": (0.0, 0.0, 0.0), "dtype": np.float64, "dt_max": 2e-3, "cell_size": 0.1, **options}
    return SubstepSolver(half_frozen() if start is None else start, {"preset": "melting", "set": settings}, **given)


def enthalpy(run: SubstepSolver) -> float:
    """Return heat and latent heat over the solid at its freezing temperature [J]."""
    mass, phase = run.particles.unpack("mass"), run.particles.unpack("phase")
    above = run.particles.unpack("temperature") - FREEZING
    specific = np.where(phase == 1, 4000.0, 2000.0) * above + LATENT * run.particles.unpack("latent_heat_fraction")
    return float(mass @ specific)


def test_mass_and_enthalpy_are_kept_while_matter_melts_and_draws_in():
    """The books of a melting cube in free space close; its undeformed volume is that of its mass at the density of its phase."""
    run = solver()
    heat, mass, content = enthalpy(run), run.particles.unpack("mass").sum(), 0.0
    solid = (run.particles.unpack("phase") == 0).sum()
    for _ in range(40):
        run.step()
        content = run.step_context.report["heat"]["content"]
    share, masses = run.particles.unpack("latent_heat_fraction"), run.particles.unpack("mass")
    assert 0 < (run.particles.unpack("phase") == 0).sum() < solid and ((share > 0.0) & (share < 1.0)).any()
    assert abs(enthalpy(run) - heat) < 1e-10 * content and masses.sum() == pytest.approx(mass, rel=1e-14)
    exact = masses * ((1.0 - share) / ICE_DENSITY + share / WATER_DENSITY)
    assert np.allclose(run.particles.unpack("volume"), exact, rtol=1e-12)


@pytest.mark.parametrize(("ice", "water"), [(-0.5, 1.0), (-4.0, 0.05)], ids=["melting", "freezing"])
def test_each_substep_keeps_the_enthalpy(ice, water):
    """No substep of an insulated cube changes its enthalpy over ice at its freezing point by more than 1e-10 of that."""
    start = half_frozen()
    temperature = np.where(start["position"][:, 1] < 0.15, FREEZING + water, FREEZING + ice)
    run = solver(dataclasses.replace(start, attributes={**start.attributes, "temperature": temperature}))
    liquid, before = (run.particles.unpack("phase") == 1).sum(), enthalpy(run)
    for _ in range(40):
        run.step()
        after = enthalpy(run)
        assert abs(after - before) <= 1e-10 * abs(before)
        before = after
    now = (run.particles.unpack("phase") == 1).sum()
    assert now > liquid if water > 0.5 else now < liquid


def test_no_substep_changes_the_momentum_in_free_space():
    """Half a cube of ice melts and draws in, untouched: sum m v stays 0, to 1e-10 of the mass times the fastest particle."""
    run = solver()
    for _ in range(20):
        run.step()
        mass, velocity = run.particles.unpack("mass"), run.particles.unpack("velocity")
        assert np.abs(mass @ velocity).max() <= 1e-10 * mass.sum() * np.linalg.norm(velocity, axis=1).max()


def test_what_melts_takes_the_room_of_its_new_density():
    """Melted whole by a source inside it, a cube of ice takes 80 % of its room: the volume that its law knows, and its extent."""
    start = half_frozen()
    columns = {"temperature": np.full(len(start), FREEZING), "phase": np.zeros(len(start), np.int32)}
    run = solver(dataclasses.replace(start, attributes={**start.attributes, **columns}), source=2.0 * ICE_DENSITY * LATENT / 0.1)
    extent = np.ptp(run.particles.unpack("position"), axis=0)
    for _ in range(50):
        run.step()
    assert (run.particles.unpack("phase") == 1).all()
    assert np.abs(run.particles.unpack("volume_change")).mean() < 0.02
    shrunk = np.ptp(run.particles.unpack("position"), axis=0) / extent
    assert shrunk == pytest.approx(0.8 ** (1.0 / 3.0), abs=0.03)


@pytest.mark.parametrize("fuse", [True, False], ids=["fused", "single"])
def test_bits_hang_on_neither_threads_nor_checked_mode(fuse):
    """One thread, two, and checked mode give the same bits while matter melts on a floor."""
    most, ends = numba.config.NUMBA_NUM_THREADS, []
    walls = Walls((0.0, 0.0, 0.0), (0.4, 1.0, 0.4), (WallRule.SLIP,) * 6)
    for threads, checked in ((most, False), (1, False), (most, True)):
        numba.set_num_threads(threads)
        try:
            run = solver(dtype=np.float32, walls=walls, gravity=(0.0, -9.81, 0.0), fuse=fuse, checked=checked)
            for _ in range(8):
                run.step()
        finally:
            numba.set_num_threads(most)
        ends.append(run.snapshot().attributes)
    assert 0 < ends[0]["phase"].sum() < 216
    for other in ends[1:]:
        assert all(np.array_equal(ends[0][name], other[name]) for name in ends[0])


def test_fused_and_single_stages_agree():
    """In double precision to what solves leave, which stop at 1e-8 of what they begin with; phases are the same."""
    walls, ends = Walls((0.0, 0.0, 0.0), (0.4, 1.0, 0.4), (WallRule.SLIP,) * 6), []
    for fuse in (True, False):
        run = solver(dtype=np.float64, walls=walls, gravity=(0.0, -9.81, 0.0), fuse=fuse)
        assert any(isinstance(planned, FusedStage) for planned in run.plan.stages) is fuse
        for _ in range(8):
            run.step(1e-3)
        ends.append(run.snapshot().attributes)
    fused, single = ends
    assert 0 < fused["phase"].sum() < 216 and np.array_equal(fused["phase"], single["phase"])
    for name, scale in {"position": 0.4, "velocity": 0.08, "temperature": 300.0}.items():
        assert np.abs(fused[name] - single[name]).max() < 1e-7 * scale, name


def test_single_precision_agrees_with_double():
    """Both float types melt the same matter."""
    found = []
    for dtype in (np.float32, np.float64):
        run = solver(dtype=dtype)
        for _ in range(20):
            run.step(1e-3)
        found.append(run.snapshot().attributes)
    assert np.abs(found[0]["temperature"] - found[1]["temperature"]).max() < 0.01
    assert np.abs(found[0]["position"] - found[1]["position"]).max() < 1e-4


def test_a_stored_state_goes_on_with_the_same_bits():
    """Saved after ten substeps and restored into a new solve, the rest of the shot is the same to the last bit."""
    whole, ends = solver(dtype=np.float32), []
    for _ in range(10):
        whole.step(1e-3)
    saved = whole.particles.save()
    for run in (whole, solver(dtype=np.float32)):
        if run is not whole:
            run.particles.restore(saved)
        for _ in range(10):
            run.step(1e-3)
        ends.append(run.snapshot().attributes)
    assert all(np.array_equal(ends[0][name], ends[1][name]) for name in ends[0])


def test_a_resumed_cook_has_the_same_bytes(tmp_path):
    """A frame whose checkpoint is lost comes out as it was, every file of the cook, while a block melts on a hot plate."""
    materials = {
        "solid": {"type": "material_neo_hookean", "knobs": {"youngs_modulus": 20000.0, "density": 900.0}},
        "melt": {"type": "material_liquid", "knobs": {"viscosity": 0.5}},
        "wax": {
            "type": "material_thermal",
            "knobs": {"heat_capacity": 2000.0, "conductivity": 5e5, "latent_heat": 2000.0, "freezing_temperature": 300.0},
            "inputs": {"material": "solid", "melt": "melt"},
        },
    }
    shot = {
        "block": {
            "type": "emit_box",
            "knobs": {"size": [0.3, 0.3, 0.3], "centre": [0.0, 0.15, 0.0]},
            "inputs": {"material": "wax"},
        },
        "cold": {"type": "set_temperature", "knobs": {"temperature": 299.0}, "inputs": {"particles": "block"}},
        "plate": {"type": "collide_plane"},
        "hot": {"type": "collider_temperature", "knobs": {"temperature": 350.0}, "inputs": {"collider": "plate"}},
        "sim": {
            "type": "solve",
            "knobs": {"substeps": {"preset": "melting"}, "dt_max": 0.01},
            "inputs": {"sources": ["cold"], "colliders": ["hot"]},
        },
        "cache": {
            "type": "write_cache",
            "knobs": {"attributes": ["temperature", "phase"]},
            "inputs": {"particles": "sim.particles"},
        },
    }
    settings = {"cell_size": 0.1, "fps": 24, "start": 1, "end": 4}
    file = tmp_path / "shot.json"
    file.write_text(json.dumps({"format": "mpm_nodes.graph", "version": 1, "settings": settings, "nodes": {**materials, **shot}}))
    folder = execute(load_graph(file), out=tmp_path / "out").revision_folder
    whole = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    (lost,) = folder.glob("checkpoints/0004*")
    lost.write_bytes(b"lost")
    assert execute(load_graph(file), out=tmp_path / "out", resume=True).cooked == (3, 4)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == whole


def test_an_infinite_modulus_belongs_to_this_preset():
    """It is taken here, and refused where nothing projects."""
    endless = dataclasses.replace(WATER, bulk_modulus=0.0)
    run = SubstepSolver(cube(dataclasses.replace(endless, thermal=ICE.thermal), cells=2), "melting", cell_size=0.1)
    run.step(1e-3)
    with pytest.raises(MpmNodesError, match=r"water.*infinity.*incompressible"):
        SubstepSolver(cube(endless, cells=2), "explicit_apic", cell_size=0.1)
