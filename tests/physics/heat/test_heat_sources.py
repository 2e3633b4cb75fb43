"""Heat made inside matter: of a number or a field where it begins, and what it heats."""

from __future__ import annotations

import dataclasses
import math

import numba
import numpy as np
import pytest
from heat_scenes import WAX, plate, solver, wax
from solver_scenes import cube

from mpm_nodes.data import Emitter, FrameContext, MpmNodesError, Particles, SpatialField, Thermal
from mpm_nodes.nodes.attributes import set_attribute
from mpm_nodes.nodes.fields import constant, field_shape, scaled
from mpm_nodes.solver.checkpoint import SolverState
from mpm_nodes.solver.run import SubstepSolver

STILL = {"gravity": (0.0, 0.0, 0.0), "colliders": []}
TIGHT = {"preset": "explicit_heat", "set": {"conduct_heat.tolerance": 1e-13}}
POWER = 1e9


def heated(matter: Particles, source: float = 1e6, field: SpatialField | None = None) -> Particles:
    """Return matter with a heat source, of a number or of a field times it."""
    given = None if field is None else scaled(field, constant(source))
    return set_attribute(matter, FrameContext(1), given, attribute="heat_source", value=source)


def uneven() -> np.ndarray:
    """Return heat sources of the cube's 216 particles, some of which cool."""
    return 1e8 * np.random.default_rng(5).uniform(-0.3, 1.0, 216)


def power(particles: Particles) -> float:
    """Return the heat that particles make [W]."""
    return float(np.asarray(particles["heat_source"], float) @ np.asarray(particles["volume"], float))


def test_an_even_source_heats_at_its_rate():
    """dT/dt = q / (rho c) in every particle, to rounding."""
    run = solver(heated(wax(300.0), POWER), TIGHT, **STILL)
    for _ in range(5):
        run.step(1e-3)
    rise = run.particles.unpack("temperature") - 300.0
    assert np.abs(rise / (5 * 1e-3 * POWER / (900.0 * 2000.0)) - 1.0).max() < 1e-9


def test_it_adds_to_that_of_the_stage():
    """A number for all matter and one for these particles are one source."""
    both = solver(heated(wax(300.0), POWER), {"preset": "explicit_heat", "set": {"conduct_heat.source": 2e9}}, **STILL)
    both.step(1e-3)
    one = solver(heated(wax(300.0), 3.0 * POWER), "explicit_heat", **STILL)
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


def test_a_mask_heats_only_what_it_covers():
    """Half of a block that hardly conducts lies in the mask: it heats as it should, the other half stays as it was."""
    poor = dataclasses.replace(WAX, thermal=Thermal(2000.0, 1e-6, 2000.0, 1e-6, 0.0, None, None))
    block = cube(poor, cells=12, cell_size=0.05, temperature=300.0)
    x = block["position"][:, 0]
    middle, cell = 0.5 * (x.min() + x.max()), 2.0 * block.spacing
    painted = heated(block, POWER, field_shape(centre=(middle + 5.0, 0.3, 0.3), radius=5.0))
    assert (painted["heat_source"] == np.where(x > middle + 0.05, POWER, 0.0))[abs(x - middle) > 0.05].all()
    run = solver(painted, TIGHT, **STILL)
    for _ in range(5):
        run.step(1e-3)
    rise = (run.particles.unpack("temperature") - 300.0) / (5 * 1e-3 * POWER / (900.0 * 2000.0))
    x = run.particles.unpack("position")[:, 0]
    # a particle gives to cells within 1.5 cells of it, and takes from as many
    far, near = x < middle - 3.0 * cell, x > middle + 0.05 + 3.0 * cell
    assert far.any() and near.any()
    assert np.abs(rise[far]).max() < 1e-9 and np.abs(rise[near] - 1.0).max() < 1e-9


@pytest.mark.parametrize("source", [math.nan, math.inf])
def test_what_is_no_source_is_refused(source):
    """What is not a finite number, of all matter or somewhere in it; one below 0 cools."""
    with pytest.raises(MpmNodesError, match=rf"set_attribute\.value: is {source:g}; heat_source lies from"):
        heated(wax(), source)
    with pytest.raises(MpmNodesError, match="give finite numbers"):
        heated(wax(), source, constant(1.0))
    assert (heated(wax(), -5.0)["heat_source"] == -5.0).all()


def test_substeps_without_heat_refuse_it():
    """The solve says which presets to take; a source of 0 is none."""
    with pytest.raises(MpmNodesError, match=r"heat_source, and these substeps carry no heat; take the preset explicit_heat"):
        SubstepSolver(heated(wax()), "explicit_apic")
    with pytest.raises(MpmNodesError, match="carry no heat"):
        SubstepSolver(cube(WAX), "explicit_apic", emitters=[Emitter(heated(wax()), (0.0, -1.0, 0.0))])
    SubstepSolver(heated(wax(), 0.0), "explicit_apic")
    for preset in ("explicit_heat", "melting"):
        SubstepSolver(heated(wax()), preset)


def test_nothing_is_made_room_for_where_nobody_brings_it():
    """Neither the attribute nor what is computed from it; the cells' values stand in a slot of an array that was there before."""
    without, given = (solver(start) for start in (wax(), heated(wax())))
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
