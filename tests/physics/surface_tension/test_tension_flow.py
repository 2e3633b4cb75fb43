"""The exact profiles of Marangoni flow: what they satisfy at the floor, at the surface, and in between."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.physics.surface_tension.problems.tension_flow import DEPTH, SLOPE, SPEED, VISCOSITY, circulation, start_up

SHEAR = SLOPE / VISCOSITY


def test_the_circulation_carries_nothing_and_bears_the_tension():
    """u = 0 on the floor, tau at the surface, the stated speed there, an even pressure gradient, no flux."""
    y = np.linspace(0.0, DEPTH, 4001)
    u = circulation(y)
    assert u[0] == 0.0 and u[-1] == pytest.approx(SPEED, rel=1e-12)
    slope = np.gradient(u, y, edge_order=2)
    assert slope[-1] == pytest.approx(SHEAR, rel=1e-9)
    assert np.ptp(np.gradient(slope, y, edge_order=2)) < 1e-6 * SHEAR / DEPTH
    assert abs((0.5 * (u[1:] + u[:-1]) * np.diff(y)).sum()) < 1e-6 * SPEED * DEPTH


def test_the_start_up_diffuses_from_the_surface():
    """u obeys du/dt = nu d2u/dy2, bears tau at the surface and is nearly nothing at the floor."""
    time, dt = 0.04, 1e-5
    y = np.linspace(0.0, DEPTH, 2001)
    u = start_up(y, time)
    dy = y[1] - y[0]
    rate = (start_up(y, time + dt) - start_up(y, time - dt)) / (2.0 * dt)
    bend = (u[2:] - 2.0 * u[1:-1] + u[:-2]) / dy**2
    np.testing.assert_allclose(rate[1:-1], VISCOSITY * bend, atol=1e-4 * np.abs(rate).max())
    assert (3.0 * u[-1] - 4.0 * u[-2] + u[-3]) / (2.0 * dy) == pytest.approx(SHEAR, rel=1e-4)
    assert abs(u[0]) < 0.001 * u[-1]
