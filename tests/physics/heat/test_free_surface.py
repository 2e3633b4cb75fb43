"""The free surface that heat goes through: its edges count, it ends at walls, and heat comes in where it is."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.physics.heat.problems.free_surface import CELL, FAR, box_areas
from mpm_nodes.physics.heat.problems.heat import FORMS, START, matter, solver, still
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import SLIP, block, changed, walled

WITHIN = {"cells": 0.03, "nodes": 0.045}
EXACT = {"cells": 1e-3, "nodes": 5e-3}
"""What faces a wall is left out by distance on nodes."""


@pytest.mark.parametrize("form", FORMS)
def test_edges_and_corners_count(form):
    """Boxes of 4 to 12 cells have their area wherever they lie; cubes of six cells had 0.84 of it. In the mean they are closer."""
    found = [measured / exact for _, exact, measured in box_areas(form)]
    assert np.abs(np.array(found) - 1.0).max() < WITHIN[form]
    assert np.mean(found) == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("form", FORMS)
def test_no_edge_is_found_along_walls(form):
    """The end of a bar between walls has its area, though splines reach through the walls."""
    side, low, high = 2 * CELL, -FAR * CELL, FAR * CELL
    bar = block(matter(), (0.0, 0.0, 0.0), (10 * CELL, side, side), CELL)
    bar = changed(bar, temperature=np.full(len(bar), START))
    walls = walled((low, 0.0, 0.0), (high, side, side), SLIP)
    run = solver(bar, still(form=form, air_convection=1.0), CELL, walls=walls)
    run.step(1e-3)
    assert run.step_context.report["heat"]["surface"] == pytest.approx(2.0 * side**2, rel=EXACT[form])


def test_heat_comes_in_where_the_surface_is():
    """What a short flux gives to a plane surface lies half in the cell inside it, half in that outside: none two cells deep."""
    bar = block(matter(), (0.0, 0.0, 0.0), (10 * CELL, 4 * CELL, 4 * CELL), CELL)
    bar = changed(bar, temperature=np.full(len(bar), START))
    low, high = -FAR * CELL, FAR * CELL
    walls = walled((low, 0.0, 0.0), (high, 4 * CELL, 4 * CELL), SLIP)
    run = solver(bar, still(form="cells", surface_flux=1e9), CELL, walls=walls)
    run.step(1e-6)
    x, rise = column(run, "position")[:, 0], column(run, "temperature") - START
    deep = (x > 2.0 * CELL) & (x < 8.0 * CELL)
    assert rise.max() > 0.0 and np.abs(rise[deep]).max() < 1e-3 * rise.max()
