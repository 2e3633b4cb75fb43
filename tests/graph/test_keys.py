"""Key lists: step, linear and smooth interpolation of numbers and vectors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpm_nodes.graph.time import keys

KEYS = [[0, 0.0, "linear"], [10, 20.0, "step"], [20, 5.0, "smooth"], [30, 15.0, "linear"]]


@pytest.mark.parametrize(
    ("frame", "value"),
    [
        (-5, 0.0),
        (0, 0.0),
        (2.5, 5.0),
        (10, 20.0),
        (19.9, 20.0),
        (20, 5.0),
        (25, 10.0),
        (22.5, 5.0 + 10.0 * 0.15625),
        (99, 15.0),
    ],
)
def test_numbers_are_sampled(frame, value):
    """Exact values: held before, between and after; smooth is 3 s^2 - 2 s^3."""
    assert keys.sample(KEYS, frame) == pytest.approx(value, abs=1e-12)


def test_vectors_are_sampled_per_component():
    """Each component of a vector runs on its own."""
    assert keys.sample([[1, [0, 0, 8], "linear"], [3, [2, 4, 0], "step"]], 2) == (1, 2, 4)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"keys": []}, "not a key list"),
        ({"keys": [[1, 2]]}, "key 1"),
        ({"keys": [[1, 2, "wavy"]]}, "wavy"),
        ({"keys": [[2, 0, "step"], [2, 1, "step"]]}, "does not follow"),
        ({"keys": [[True, 0, "step"]]}, "no frame"),
        ({"keys": [[float("inf"), 0, "step"]]}, "no frame"),
        ({"keys": [[1, 0, "step"]], "loop": 1}, "not a key list"),
    ],
)
def test_malformed_key_lists_are_named(raw, message):
    """Each fault of a key list is said with the number of the key."""
    assert message in keys.key_list_problem(raw)[0]


def test_a_good_key_list_has_no_problem():
    """Frames that increase and known interpolations pass."""
    assert keys.key_list_problem({"keys": KEYS}) is None


def test_a_key_is_added_in_order_and_replaced():
    """Keys stay sorted by frame; a second key at a frame replaces the first; a constant is given up."""
    raw = keys.with_key(5.0, 10, 1.0, "step")
    raw = keys.with_key(keys.with_key(raw, 2, 0.0, "linear"), 10, 3.0, "smooth")
    assert raw == {"keys": [[2, 0.0, "linear"], [10, 3.0, "smooth"]]}


def test_later_keys_do_not_count_in_an_interval():
    """Moving a key beyond the interval leaves the interval's facts alone, moving the curve within changes them."""
    changed_later = [*KEYS[:3], [30, 99.0, "linear"]]
    changed_inside = [[0, 1.0, "linear"], *KEYS[1:]]
    assert keys.interval(KEYS, 4, 5) == keys.interval(changed_later, 4, 5)
    assert keys.interval(KEYS, 4, 5) != keys.interval(changed_inside, 4, 5)


curves = st.lists(
    st.tuples(st.integers(0, 8), st.sampled_from([0.0, 1.0, 2.0]), st.sampled_from(keys.INTERPOLATIONS)),
    min_size=1,
    max_size=5,
    unique_by=lambda key: key[0],
).map(sorted)


@given(curves, curves, st.integers(0, 7))
def test_equal_interval_facts_mean_equal_curves(one, other, first):
    """Whenever two curves have the same facts on an interval, they agree at every fraction of it."""
    if keys.interval(one, first, first + 1) == keys.interval(other, first, first + 1):
        for step in range(9):
            frame = first + step / 8
            assert keys.sample(one, frame) == pytest.approx(keys.sample(other, frame), abs=1e-12)
