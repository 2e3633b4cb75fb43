"""The exact mode of a viscous disc, and the damped wave that is fitted to a swing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mpm_nodes.physics.surface_tension.problems.viscous_swing import fitted, normal_mode


@pytest.mark.parametrize("n", [2, 3, 4])
def test_with_little_viscosity_the_mode_is_rayleigh_s(n: int):
    """omega^2 = n (n^2 - 1) and Lamb's decay 2 n (n - 1) nu, as nu goes to 0."""
    s = normal_mode(1e-4, n)
    assert s.imag == pytest.approx(math.sqrt(n * (n * n - 1)), rel=1e-4)
    assert -s.real == pytest.approx(2 * n * (n - 1) * 1e-4, rel=0.02)


def test_a_damped_wave_is_found():
    """Its own rate, whatever its phase and what it swings about."""
    times = np.linspace(0.0, 7.7, 400)
    values = 0.03 * np.exp(-0.13 * times) * np.cos(2.3 * times + 0.2) + 0.001
    assert abs(fitted(times, values, normal_mode(0.03)) - complex(-0.13, 2.3)) < 1e-4
