"""Heat made inside matter: from a number, a VDB grid or a mask, and what it heats."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numba
import numpy as np
import pytest
from heat_scenes import WAX, plate, solver, wax
from solver_scenes import cube

from mpm_nodes.data import Emitter, InputError, LevelSet, MpmNodesError, Particles, Thermal
from mpm_nodes.physics.heat.nodes.heat_sources import set_heat_source, set_heat_source_vdb
from mpm_nodes.solver.checkpoint import SolverState
from mpm_nodes.solver.run import SubstepSolver
from usd_io.openvdb_module import find_openvdb

STILL = {"gravity": (0.0, 0.0, 0.0), "colliders": []}
TIGHT = {"preset": "explicit_heat", "set": {"conduct_heat.tolerance": 1e-13}}
POWER = 1e9


def mask(folder: Path, value: float = 1.0) -> Path:
    """Write a grid of 0.1 m voxels that is `value` over one leaf: centres from 0 to 0.7 m on each axis."""
    from usd_io.volumes import write_volumes

    values = np.full((1, 8, 8, 8), value, np.float32)
    path = folder / "mask.vdb"
    write_volumes(path, [LevelSet(np.zeros((1, 3), np.int32), values, 0.1, background=0.0, kind="fog", name="heat_source")])
    return path


def uneven() -> np.ndarray:
    """Return heat sources of the cube's 216 particles, some of which cool."""
    return 1e8 * np.random.default_rng(5).uniform(-0.3, 1.0, 216)


def power(particles: Particles) -> float:
    """Return the heat that particles make [W]."""
    return float(np.asarray(particles["heat_source"], float) @ np.asarray(particles["volume"], float))


def test_an_even_source_heats_at_its_rate():
    """dT/dt = q / (rho c) in every particle, to rounding."""
    run = solver(set_heat_source(wax(300.0), source=POWER), TIGHT, **STILL)
    for _ in range(5):
        run.step(1e-3)
    rise = run.particles.unpack("temperature") - 300.0
    assert np.abs(rise / (5 * 1e-3 * POWER / (900.0 * 2000.0)) - 1.0).max() < 1e-9


def test_it_adds_to_that_of_the_stage():
    """A number for all matter and one for these particles are one source."""
    both = solver(
        set_heat_source(wax(300.0), source=POWER), {"preset": "explicit_heat", "set": {"conduct_heat.source": 2e9}}, **STILL
    )
    both.step(1e-3)
    one = solver(set_heat_source(wax(300.0), source=3.0 * POWER), "explicit_heat", **STILL)
    one.step(1e-3)
    found = [run.particles.unpack("temperature") for run in (both, one)]
    assert np.allclose(*found, rtol=1e-12)


def test_the_books_close():
    """What an uneven source makes is told as `from_sources`, and with what the plate gives it is what the matter gains."""
    run = solver(wax(300.0, heat_source=uneven()), TIGHT)
    content = None
    for frame in range(20):
        made = power(run.snapshot()) * 1e-3
        run.step_context.frame = frame
        run.step(1e-3)
        told = run.step_context.report["heat"]
        assert told["from_sources"] == pytest.approx(made, rel=1e-10)
        if content is not None:
            gained = told["from_sources"] + told["from_bodies"] + told["from_air"]
            assert told["content"] - content == pytest.approx(gained, abs=1e-10 * content)
        content = told["content"]
        held = run.particles.unpack("mass") * 2000.0 @ run.particles.unpack("temperature")
        assert held == pytest.approx(content, rel=1e-10)


def test_a_mask_heats_only_what_it_covers(tmp_path):
    """Half of a block that hardly conducts lies in the mask: it heats as it should, the other half stays as it was."""
    poor = dataclasses.replace(WAX, thermal=Thermal(2000.0, 1e-6, 2000.0, 1e-6, 0.0, None, None))
    block = cube(poor, cells=12, cell_size=0.05, temperature=300.0)
    x = block["position"][:, 0]
    middle, cell = 0.5 * (x.min() + x.max()), 2.0 * block.spacing
    # the mask falls off over the voxel before its first centre
    painted = set_heat_source_vdb(block, path=mask(tmp_path), strength=POWER, translate=(middle, -0.05, -0.05))
    assert (painted["heat_source"][x > middle] == POWER).all() and (painted["heat_source"][x < middle - 0.1] == 0.0).all()
    run = solver(painted, TIGHT, **STILL)
    for _ in range(5):
        run.step(1e-3)
    rise = (run.particles.unpack("temperature") - 300.0) / (5 * 1e-3 * POWER / (900.0 * 2000.0))
    x = run.particles.unpack("position")[:, 0]
    # a particle gives to cells within 1.5 cells of it, and takes from as many
    far, near = x < middle - 0.1 - 3.0 * cell, x > middle + 3.0 * cell
    assert far.any() and near.any()
    assert np.abs(rise[far]).max() < 1e-9 and np.abs(rise[near] - 1.0).max() < 1e-9


def test_values_fall_off_over_a_voxel(tmp_path):
    """Trilinear inside, to `outside` over the voxel around the grid, moved and scaled: the sum over space is that of the voxels."""
    path = mask(tmp_path, 3.0)
    line = np.zeros((1601, 3)) + 0.35
    line[:, 0] = np.linspace(-0.4, 1.2, 1601)
    given = Particles({"position": line}, (WAX,), 0.1)
    found = set_heat_source_vdb(given, path=path, strength=2.0)["heat_source"]
    share = np.clip(np.minimum(line[:, 0] + 0.1, 0.8 - line[:, 0]) / 0.1, 0.0, 1.0)
    assert np.abs(found - 6.0 * share).max() < 1e-5
    assert found.sum() * 1e-3 == pytest.approx(6.0 * 8 * 0.1, rel=1e-5)
    cooled = set_heat_source_vdb(given, path=path, outside=-1.0)["heat_source"]
    assert np.abs(cooled - (3.0 * share - (1.0 - share))).max() < 1e-5
    moved = set_heat_source_vdb(given, path=path, translate=(-0.4, 0.0, 0.0), scale=2.0)["heat_source"]
    wide = np.clip(np.minimum(line[:, 0] + 0.6, 1.2 - line[:, 0]) / 0.2, 0.0, 1.0)
    assert np.abs(moved - 3.0 * wide).max() < 1e-5


def test_what_is_no_source_is_refused(tmp_path):
    """No such grid or file, and what is not a finite number."""
    with pytest.raises(MpmNodesError, match=r"set_heat_source.source: is nan W/m\^3; give a finite number"):
        set_heat_source(wax(), source=float("nan"))
    with pytest.raises(MpmNodesError, match=r"set_heat_source_vdb.strength: is inf; give a finite number"):
        set_heat_source_vdb(wax(), path=mask(tmp_path), strength=float("inf"))
    with pytest.raises(InputError, match=r"no grid named 'power'"):
        set_heat_source_vdb(wax(), path=mask(tmp_path), grid="power")
    with pytest.raises(InputError, match="no such file"):
        set_heat_source_vdb(wax(), path=tmp_path / "none.vdb")
    vdb = find_openvdb()
    hollow = vdb.FloatGrid(0.0)
    hollow.name = "heat_source"
    hollow.copyFromArray(np.ones((8, 8, 8), np.float32))
    hollow.fill((0, 0, 0), (3, 3, 3), float("nan"))
    vdb.write(str(tmp_path / "hollow.vdb"), [hollow])
    with pytest.raises(InputError, match="grid 'heat_source' holds NaN or infinite values"):
        set_heat_source_vdb(wax(), path=tmp_path / "hollow.vdb")


def test_substeps_without_heat_refuse_it():
    """The solve says which presets to take; a source of 0 is none."""
    with pytest.raises(MpmNodesError, match=r"heat_source, and these substeps carry no heat; take the preset explicit_heat"):
        SubstepSolver(set_heat_source(wax()), "explicit_apic")
    with pytest.raises(MpmNodesError, match="carry no heat"):
        SubstepSolver(cube(WAX), "explicit_apic", emitters=[Emitter(set_heat_source(wax()), (0.0, -1.0, 0.0))])
    SubstepSolver(set_heat_source(wax(), source=0.0), "explicit_apic")
    for preset in ("explicit_heat", "melting"):
        SubstepSolver(set_heat_source(wax()), preset)


def test_nothing_is_made_room_for_where_nobody_brings_it():
    """Neither the attribute nor what is computed from it; the cells' values stand in a slot of an array that was there before."""
    without, given = (solver(start) for start in (wax(), set_heat_source(wax())))
    assert not {"heat_source", "heating_rate"} & set(without.particles.names)
    assert {"heat_source", "heating_rate"} <= set(given.particles.names)
    without.step()
    given.step()
    assert without.stores["staggered"].nbytes == given.stores["staggered"].nbytes
    assert not without.stores["staggered"].unpack("heat_source").any()


@pytest.mark.parametrize("fuse", [True, False], ids=["fused", "single"])
def test_no_stage_lies_about_it(fuse):
    """Checked mode finds nothing undeclared, and changes no bit."""
    ends = []
    for checked in (False, True):
        run = solver(wax(heat_source=uneven()), checked=checked, fuse=fuse, dtype=np.float32)
        for _ in range(6):
            run.step()
        ends.append(run.snapshot().attributes)
    assert all(np.array_equal(ends[0][name], ends[1][name]) for name in ends[0])


def test_the_number_of_threads_changes_no_bit():
    """One thread and two give the same temperatures."""
    ends, most = [], numba.config.NUMBA_NUM_THREADS
    for threads in (1, most):
        numba.set_num_threads(threads)
        try:
            run = solver(wax(heat_source=uneven()), dtype=np.float32)
            for _ in range(6):
                run.step()
        finally:
            numba.set_num_threads(most)
        ends.append(run.snapshot().attributes)
    assert all(np.array_equal(ends[0][name], ends[1][name]) for name in ends[0])


def test_it_goes_on_from_a_state():
    """A solve resumed from a state has the bits of one that ran through, and the matter its sources."""
    through = solver(wax(heat_source=uneven()), colliders=[plate()])
    for _ in range(4):
        through.step(1e-3)
    state = SolverState.from_arrays(*SolverState(through).to_arrays())
    resumed = solver(wax(heat_source=uneven()), colliders=[plate()])
    state.revive(resumed)
    for run in (through, resumed):
        for _ in range(4):
            run.step(1e-3)
    ends = [run.snapshot().attributes for run in (through, resumed)]
    assert "heating_rate" in through.unsaved("particles") and "heat_source" not in through.unsaved("particles")
    assert all(np.array_equal(ends[0][name], ends[1][name]) for name in ends[0])
