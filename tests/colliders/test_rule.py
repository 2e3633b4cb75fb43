"""The collision rule on values (Stomakhin 2013, section 8)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpm_nodes.kernels.collisions.rules import SEPARATE, SLIP, STICKY, respond

UP = (0.0, 1.0, 0.0)
STILL = (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("rule", "friction", "velocity", "body", "expected"),
    [
        (STICKY, 0.0, (1.0, 2.0, 3.0), (0.5, 0.0, 0.0), (0.5, 0.0, 0.0)),
        (SLIP, 0.0, (1.0, -2.0, 3.0), STILL, (1.0, 0.0, 3.0)),
        (SLIP, 0.0, (1.0, 2.0, 3.0), STILL, (1.0, 0.0, 3.0)),  # no separation either
        (SLIP, 0.0, (1.0, -2.0, 3.0), (5.0, 4.0, 0.0), (1.0, 4.0, 3.0)),
        (SEPARATE, 0.0, (1.0, 2.0, 0.0), STILL, (1.0, 2.0, 0.0)),
        (SEPARATE, 0.0, (1.0, -2.0, 0.0), STILL, (1.0, 0.0, 0.0)),
        (SEPARATE, 0.0, (1.0, 2.0, 0.0), (0.0, 3.0, 0.0), (1.0, 3.0, 0.0)),  # the body catches up
        (SEPARATE, 0.25, (2.0, -2.0, 0.0), STILL, (1.5, 0.0, 0.0)),  # |v_t| shortened by mu |v_n|
        (SEPARATE, 1.5, (2.0, -2.0, 0.0), STILL, (0.0, 0.0, 0.0)),  # sticks
        (SEPARATE, 1.5, (2.0, -2.0, 0.0), (1.0, 0.0, 2.0), (1.0, 0.0, 2.0)),
        (SEPARATE, 0.5, (2.0, 2.0, 0.0), STILL, (2.0, 2.0, 0.0)),  # receding: no friction
    ],
)
def test_rule(rule, friction, velocity, body, expected):
    """Every rule gives the value worked out by hand, for still and for moving bodies."""
    np.testing.assert_allclose(respond(rule, friction, UP, velocity, body), expected, atol=1e-15)


_speed = st.floats(-10.0, 10.0)


@given(
    rule=st.sampled_from([STICKY, SLIP, SEPARATE]), friction=st.floats(0.0, 2.0), numbers=st.lists(_speed, min_size=9, max_size=9)
)
def test_relative_speed_never_grows(rule, friction, numbers):
    """Relative to the body neither the speed nor its tangential part grows, and nothing is left that goes into the body."""
    normal, velocity, body = np.reshape(numbers, (3, 3))
    length = np.linalg.norm(normal)
    if length < 1e-3:
        return
    normal = normal / length
    before = velocity - body
    after = np.array(respond(rule, friction, normal, velocity, body)) - body
    assert np.linalg.norm(after) <= np.linalg.norm(before) + 1e-12
    tangent_before, tangent_after = (v - (v @ normal) * normal for v in (before, after))
    assert np.linalg.norm(tangent_after) <= np.linalg.norm(tangent_before) + 1e-12
    assert after @ normal >= -1e-12


def test_rule_keeps_its_float_type():
    """Single precision in, single precision out: no literal makes it double."""
    normal, velocity, body = (tuple(map(np.float32, values)) for values in (UP, (1.0, -2.0, 0.5), STILL))
    assert all(isinstance(part, np.float32) for part in respond(SEPARATE, np.float32(0.5), normal, velocity, body))
