"""The transfers that have one stencil for cells and faces of all axes, against the general ones, checked against splines."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from solver_scenes import LIQUID, SNOW

from mpm_nodes.data import Kernel, Particles, Thermal
from mpm_nodes.physics.heat.numerics.deposits import give_heat
from mpm_nodes.physics.projection.numerics import isochoric
from mpm_nodes.physics.projection.numerics.shape_response import ShapeResponse
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.staggered import AXES
from mpm_nodes.solver.transfers import Deposit, Force, Take, gather, scatter

DT, H = 1e-3, 0.1
HEAT = ("heat", *(f"conduction_{axis}" for axis in AXES))


def solver_of(dtype, drift=0.5):
    """Return a solver of snow and a viscous liquid at random, whose particles may have drifted out of their blocks."""
    random = np.random.default_rng(4)
    count = 700
    thermal = Thermal(2000.0, 1.0, 2000.0, 1.0)
    materials = tuple(dataclasses.replace(material, thermal=thermal) for material in (SNOW, LIQUID))
    position, material = random.uniform(-0.65, 0.55, (count, 3)), random.integers(0, 2, count).astype(np.int32)
    run = SubstepSolver(
        Particles({"position": position, "material": material}, materials, 0.5 * H), "melting", cell_size=H, dtype=dtype
    )
    particles = run.particles
    particles.pack("deformation", np.eye(3) + 0.2 * random.standard_normal((count, 3, 3)))
    particles.pack("volume_change", 0.1 * random.standard_normal(count))
    for name in ("heat_capacity", "volume", "conductivity", "temperature"):
        particles.pack(name, random.uniform(1.0, 2.0, count))
    particles.pack("temperature_gradient", random.standard_normal((count, 3)))
    particles.sort()
    moved = random.uniform(-drift, drift, (3, particles.stride)) * particles.unit
    particles.offset[: 3 * particles.stride] += moved.reshape(-1).astype(particles.offset.dtype)
    particles.drift = 2.0 + drift
    run.grid.follow()
    return run, random


def close(found, exact, dtype):
    """Hold values to each other by 100 units in the last place of the largest."""
    return np.abs(found - exact).max() <= 100.0 * np.finfo(dtype).eps * np.abs(exact).max()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("slopes", "even"), [(True, False), (False, True)], ids=["slopes", "even"])
def test_heat_is_what_general_transfers_give(dtype, slopes, even):
    """Cells and faces get the same heat, volume and conduction, where all particles conduct alike as well."""
    run, _ = solver_of(dtype)
    particles, staggered = run.particles, run.stores["staggered"]
    if even:
        particles.pack("conductivity", np.full(particles.count, 1.7))
    staggered.clear(*HEAT)
    give_heat(particles, staggered, slopes, False)
    found = [staggered.array(name)[: 256 * staggered.count].astype(float) for name in HEAT]
    staggered.clear(*HEAT)
    ones = np.ones(particles.count)
    particles.pack("volume_per_heat", particles.unpack("volume") / particles.unpack("heat_capacity"))
    gradient = (("temperature_gradient", 0), None, None) if slopes else None
    cells = Deposit("heat", "heat_capacity", ("temperature", "volume_per_heat", None), gradient)
    faces = [Deposit(name, "volume", ("conductivity", None, None)) for name in HEAT[1:]]
    scatter(particles, staggered, Kernel.QUADRATIC, cells, *faces)
    for name, values in zip(HEAT, found, strict=True):
        exact = staggered.array(name)[: 256 * staggered.count].astype(float)
        for row in range(4):
            assert close(values[row::4], exact[row::4], dtype), (name, row)
    assert abs(found[0][3::4].sum() - particles.unpack("heat_capacity") @ ones) < 1e-4 * particles.count


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_forces_answer_to_velocities_as_general_transfers_and_laws_say(dtype):
    """K v is what gradients by general gathers, laws in NumPy from F, and general scatters make of v."""
    run, random = solver_of(dtype)
    particles, staggered = run.particles, run.stores["staggered"]
    size = 64 * staggered.count
    velocity = random.standard_normal(3 * size).astype(dtype)
    found = ShapeResponse(particles, staggered, DT, 0.5).change(velocity).astype(float).reshape(3, size)
    for n, axis in enumerate(AXES):
        staggered.array(f"velocity_{axis}")[: 4 * size : 4] = velocity[n * size : (n + 1) * size]
    takes = [Take(f"velocity_{axis}", gradient=(("velocity_gradient", 3 * n), None, None)) for n, axis in enumerate(AXES)]
    gather(particles, staggered, Kernel.QUADRATIC, *takes)
    change = np.zeros((particles.count, 9))
    for law, _ in particles.runs():
        here = particles.unpack("material") == law.index
        known = law.loops.law
        state = tuple(_columns(particles.unpack(name)[here].astype(float)) for name in known.state)
        coefficients = tuple(np.full(here.sum(), value) for value in law.coefficients[: len(known.names)].astype(float))
        gradient = _columns(particles.unpack("velocity_gradient")[here].astype(float))
        values = isochoric.response(known.module, state, coefficients, gradient, np.full(here.sum(), 0.5 * DT), np.float64(0.0))
        change[here] = np.stack(values, axis=1)
    particles.pack("affine", change.reshape(-1, 3, 3))
    staggered.clear(*(f"force_{axis}" for axis in AXES))
    lines = [((3 * n, 3 * n + 1, 3 * n + 2), None, None) for n in range(3)]
    gives = [Deposit(f"force_{axis}", force=Force("affine", rows, factor=1.0)) for axis, rows in zip(AXES, lines, strict=True)]
    scatter(particles, staggered, Kernel.QUADRATIC, *gives)
    exact = np.stack([staggered.array(f"force_{axis}")[: 4 * size : 4].astype(float) for axis in AXES])
    assert np.abs(exact).max() > 1.0
    assert np.abs(found - exact).max() < (2e-4 if dtype is np.float32 else 1e-12) * np.abs(exact).max()


def _columns(values):
    """Return a state entry as columns, one for each value."""
    return values if values.ndim == 1 else tuple(values.reshape(len(values), -1).T)
