"""Slopes of fields, and pulls to surfaces that follow them."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.data import GraphSettings, MpmNodesError
from mpm_nodes.graph.time.keys import KeyedVector
from mpm_nodes.nodes import fields
from mpm_nodes.nodes.fields import FieldOperation, FieldShape, NoiseKind, ShapeOutput
from mpm_nodes.nodes.forces import force_attraction
from mpm_nodes.solver.field_programs import field_values

SETTINGS = GraphSettings(cell_size=0.1)
PLACES = np.random.default_rng(2).uniform(-1.0, 1.0, (300, 3))


def test_the_slope_of_a_square_is_exact():
    """Of x . x + 3 y, with keys and what does not depend on the place left as they are."""
    here = fields.place()
    square = fields.field_math(here, here, operation=FieldOperation.DOT)
    ramp = fields.field_ramp(high=1.0, to_value=3.0, interpolation=fields.RampForm.ENDLESS)
    both = fields.field_math(square, ramp, operation=FieldOperation.ADD)
    found = field_values(fields.field_gradient(both, SETTINGS), PLACES, 1.0)
    np.testing.assert_allclose(found, 2.0 * PLACES + [0.0, 3.0, 0.0], atol=1e-12)


def test_the_slope_of_noise_is_that_of_its_values():
    """Against differences of a hundredth of its size, to the square of that."""
    noise = fields.field_noise(SETTINGS, size=0.5, octaves=2, evolution=1.0)
    found = field_values(fields.field_gradient(noise, SETTINGS, step=0.005), PLACES, 3.0)
    ends = [field_values(noise, PLACES + side * 1e-4 * np.eye(3)[axis], 3.0) for axis in range(3) for side in (1, -1)]
    expected = np.stack([(ends[2 * axis] - ends[2 * axis + 1]) / 2e-4 for axis in range(3)], axis=1)
    np.testing.assert_allclose(found, expected, atol=2e-2 * np.abs(expected).max())
    with pytest.raises(MpmNodesError, match=r"field_gradient\.field: is a field of vectors"):
        fields.field_gradient(fields.field_noise(SETTINGS, kind=NoiseKind.CURL), SETTINGS)


@pytest.mark.parametrize("frame", [1.0, 3.0])
def test_a_surface_draws_from_both_sides(frame):
    """To the nearest point of a ball that keys move: with full strength from the radius on, straight down to 0 on it."""
    centre = KeyedVector([(1, (0.0, 0.0, 0.0), "linear"), (3, (0.4, 0.0, 0.0), "linear")])
    ball = fields.field_shape(shape=FieldShape.BALL, radius=0.5, centre=centre, output=ShapeOutput.DISTANCE)
    force = force_attraction(distance=ball, strength=20.0, radius=0.25)
    arm = PLACES - np.array(centre.at(frame))
    away = np.linalg.norm(arm, axis=1)
    clear = away > 0.1  # at the middle the nearest point is any, and differences are over a quarter of a cell
    expected = -20.0 * np.clip((away - 0.5) / 0.25, -1.0, 1.0)[:, None] * arm / away[:, None]
    np.testing.assert_allclose(field_values(force.value, PLACES, frame)[clear], expected[clear], atol=1e-3)
    with pytest.raises(MpmNodesError, match=r"force_attraction\.distance: is a field of vectors"):
        force_attraction(distance=fields.field_vector())
