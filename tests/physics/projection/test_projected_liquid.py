"""Cells of the projection take the room that the grid sees in them."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.data import Particles
from mpm_nodes.physics.projection.kernels.cell_density import follow_cells
from mpm_nodes.physics.projection.stages import density
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import SEPARATE, block, material, walled

CELL = 0.1
WATER = material("liquid", 1000.0, bulk_modulus=1e5)


@pytest.mark.parametrize(
    ("liquid", "compressibility", "integrated", "room", "expected"),
    [
        (1.0, 0.0, 0.03, -0.05, 0.5 * -0.04),  # what particles integrated is forgotten
        (1.0, 0.0, 0.03, 0.008, 0.0),  # counts as none
        (0.25, 0.0, 0.04, -0.05, 0.03 + 0.25 * 0.5 * -0.04),  # solids say themselves how they are strained
        (0.0, 0.0, 0.04, -0.05, 0.04),
        (1.0, 1e-6, 0.03, -0.05, 0.03 + 0.5 * -0.07),  # a pressure of its own is kept, and relaxes
    ],
)
def test_cells_of_liquids_take_the_room_that_the_grid_sees(liquid, compressibility, integrated, room, expected):
    """e of a cell relaxes to r by the share of its liquids; how full it is, is told of cells that hold mostly liquids."""
    cells, grid, filling = np.zeros(256), np.zeros(256), np.zeros(256)
    mass, opened, volume = 2.0, 0.8, 0.6
    cells[0::4] = cells[1::4] = mass * integrated
    cells[2::4], cells[3::4] = mass * compressibility, mass
    grid[0::4], grid[1::4], grid[2::4], grid[3::4] = opened * room, opened, liquid * volume, volume
    follow_cells(1, cells, grid, filling, (1.0, 0.5, 0.01))
    assert cells[0::4] / mass == pytest.approx(expected, abs=1e-12)
    assert cells[1::4] / mass == pytest.approx(expected, abs=1e-12)
    assert filling[1::4] == pytest.approx(volume / opened if liquid > 0.5 else 0.0)


def test_spray_falls_under_the_projection():
    """A particle a cell fills an eighth of it: it falls to the floor, and does not hang in the air since it keeps its distances."""
    side = 6 * CELL
    spray = block(WATER, (0, 0, 0), (side, side, side), CELL)
    at = spray["position"]
    every = np.all(np.round(at / (0.5 * CELL) - 0.5).astype(int) % 2 == 0, axis=1)
    spray = Particles({name: values[every] for name, values in spray.attributes.items()}, spray.materials, spray.spacing)
    run = SubstepSolver(
        spray,
        "incompressible",
        cell_size=CELL,
        walls=walled((0, 0, 0), (side, 2 * side, side), SEPARATE),
        gravity=(0.0, -9.81, 0.0),
        dtype=np.float64,  # as in the tests of ghost faces: its kernels are compiled once
    )
    run.advance(1.0)
    assert column(run, "position")[:, 1].mean() < 1.0 * CELL  # 0.375 where it is packed


def test_the_projection_takes_back_a_share_by_the_speed_of_a_fall_by_half_a_cell(monkeypatch):
    """1 - exp(-rate dt sqrt(g h) / h) in a substep, whatever its length."""
    shares = []
    monkeypatch.setattr(density, "follow_cells", lambda *given: shares.append(given[-1][1]))
    for dt in (1e-3, 4e-3):
        pool = block(WATER, (0.0, 0.0, 0.0), (0.4, 0.4, 0.4), CELL)
        run = SubstepSolver(
            pool, {"preset": "incompressible", "set": {"density_rate": 3.0}}, cell_size=CELL, dt_max=dt, dtype=np.float64
        )
        run.step(dt)
        assert shares.pop() == pytest.approx(1.0 - np.exp(-3.0 * dt * np.sqrt(9.81 * CELL) / CELL), rel=1e-9)
