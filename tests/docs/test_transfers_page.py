"""The example of docs/transfers.md runs as it is printed."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from mpm_nodes.data import Attribute
from mpm_nodes.kernels.algebra.krylov import Stop
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.state import ParticleStore

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "transfers.md").read_text()
FIRST, SECOND = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


def made() -> tuple[ParticleStore, GridStore]:
    """Particles with velocities, temperatures and heat capacities, and the grid under them."""
    random = np.random.default_rng(4)
    extra = tuple(
        Attribute(name, name, (), unit, f"primvars:{name}", name, "Of this test.")
        for name, unit in (("temperature", "K"), ("heat_capacity", "J/K"))
    )
    names = ["velocity_gradient", *(each.name for each in extra)]
    particles = ParticleStore(names, cell_size=0.1, dtype=np.float64, own_fields=extra)
    particles.append({"position": random.uniform(0.0, 0.5, (200, 3)), "velocity": random.normal(size=(200, 3))})
    for name, low in (("mass", 1.0), ("temperature", 300.0), ("heat_capacity", 2.0)):
        particles.pack(name, random.uniform(low, low + 1.0, 200))
    particles.sort()
    grid = GridStore(particles)
    grid.follow()
    return particles, grid


def test_the_transfers_of_the_page_keep_heat_and_momentum():
    """sum m c T and each component of the momentum are the same on the grid."""
    particles, grid = made()
    before, temperature = particles.unpack("velocity"), particles.unpack("temperature")
    exec(FIRST, {"particles": particles, "grid": grid})
    heat = (particles.unpack("heat_capacity") * temperature).sum()
    assert grid.unpack("heat").sum() == pytest.approx(heat, rel=1e-12)
    for axis, name in enumerate("xyz"):
        momentum = (particles.unpack("mass") * before[:, axis]).sum()
        assert grid.unpack(f"momentum_{name}").sum() == pytest.approx(momentum, abs=1e-10)
    # nothing was solved: the new fields are zero, and 0.95 of what particles carried stays less 0.95 of what the grid held
    assert np.abs(particles.unpack("temperature")).max() < 0.95
    assert not particles.unpack("velocity_gradient").any()


def test_the_solve_of_the_page_solves():
    """A diagonal system by the names that the page gives."""
    _, grid = made()
    diagonal = 1.0 + np.arange(256 * grid.count) % 5.0
    b, x = diagonal.copy(), np.zeros_like(diagonal)
    names = {"grid": grid, "b": b, "x": x}
    names["apply"] = lambda p, q: np.copyto(q, diagonal * p)
    names["precondition"] = lambda r, z: np.copyto(z, r)
    exec(SECOND, names)
    assert names["found"].stop is Stop.CONVERGED and names["found"].iterations == 5
    np.testing.assert_allclose(x, 1.0, atol=1e-7)
