"""What contacts take of the pressure on a ball."""

import numpy as np
import pressure_on_bodies
import pytest


def test_all_of_the_buoyancy_is_taken_or_left():
    """The forces of pressure and weight sum to the weight of what is displaced; impulses by patches leave less than contacts do."""
    shares = pressure_on_bodies.shares_of(2.0, np.array([0.1, 0.3, 0.2]))
    taken, along, images, others, flux, left, left_by_flux = shares
    assert taken + along + images + others == pytest.approx(1.0, abs=0.03)
    assert taken < flux < 1.0
    assert left_by_flux < left
