"""The exact drop on a plate: a part of a sphere without weight, a puddle with much of it, and what the sample measures of it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mpm_nodes.data import InputError
from tests.reproduction.sessile import sessile_drop
from tests.reproduction.surfaces import exact_angle_on_floor

RADIUS, TENSION = 6e-4, 0.072
VOLUME = 4.0 / 3.0 * math.pi * RADIUS**3


@pytest.mark.parametrize("angle", [30.0, 90.0, 150.0, 180.0])
def test_a_drop_without_weight_is_part_of_a_sphere(angle):
    """Its points lie on a sphere that meets the plate at the contact angle, and it has the volume."""
    profile = sessile_drop(VOLUME, angle, 0.0, TENSION)
    r, y = profile.T
    cosine = math.cos(math.radians(angle))
    radius = (3.0 * VOLUME / (math.pi * (2.0 + cosine) * (1.0 - cosine) ** 2)) ** (1.0 / 3.0)
    np.testing.assert_allclose(np.hypot(r, y + radius * cosine), radius, rtol=1e-4)
    assert y[-1] == 0.0 and y[0] == pytest.approx(radius * (1.0 - cosine), rel=1e-4)
    assert exact_angle_on_floor(VOLUME, angle, 0.0, TENSION, 0.1 * RADIUS) == pytest.approx(angle, abs=0.1)


@pytest.mark.parametrize("angle", [60.0, 120.0])
def test_a_heavy_drop_is_a_puddle(angle):
    """A drop of many capillary lengths is 2 sqrt(k / rho g) sin(angle / 2) high, and a little more by its rim."""
    weight = 9810.0
    length = math.sqrt(TENSION / weight)
    profile = sessile_drop(4.0 / 3.0 * math.pi * (6.0 * length) ** 3, angle, weight, TENSION)
    high = 2.0 * length * math.sin(math.radians(0.5 * angle))
    assert high < profile[0, 1] < 1.05 * high
    with pytest.raises(InputError, match=r"a sphere of 20 capillary lengths, too flat a puddle at"):
        sessile_drop(4.0 / 3.0 * math.pi * (20.0 * length) ** 3, angle, weight, TENSION)


def test_weight_flattens_a_drop():
    """A drop of 0.6 mm that does not wet sinks by 7.7 % of its radius, and the sphere through it meets the plate at 157 degrees."""
    profile = sessile_drop(VOLUME, 180.0, 9810.0, TENSION)
    assert 2.0 - profile[0, 1] / RADIUS == pytest.approx(0.0768, rel=0.01)
    assert exact_angle_on_floor(VOLUME, 180.0, 9810.0, TENSION, RADIUS / 6.0) == pytest.approx(156.7, abs=0.3)
