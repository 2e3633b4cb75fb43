"""Frames in 16 bits: how far places and values are off, what a frame of nothing is, and how many points stand for all."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest

from mpm_nodes.editor.frames import STEPS, FrameBox, _cloud, packed
from mpm_nodes.preview.scene import Cloud


def cloud(count: int, colours: np.ndarray | None = None) -> Cloud:
    rng = np.random.default_rng(3)
    places = rng.normal(size=(count, 3)) * (4.0, 0.1, 2.0)
    one = np.full((count, 3), 0.5, np.float32)
    return Cloud("/cache/particles", places, np.full(count, 0.01, np.float32), one if colours is None else colours)


def test_places_and_values_are_off_by_half_a_step_at_most():
    """Of the box, and of the span of the values; both ends are met."""
    shape = cloud(20_000)
    low, high, values = shape.positions.min(axis=0), shape.positions.max(axis=0), shape.positions[:, 0] ** 3
    box = FrameBox(low, high, [values])
    rows = box.rows(shape.positions, values).astype(float)
    step = (high - low) / STEPS
    assert (np.abs(low + rows[:, :3] * step - shape.positions) <= 0.5000001 * step).all()
    span = (box.most - box.least) / STEPS
    assert np.abs(box.least + rows[:, 3] * span - values).max() <= 0.5000001 * span
    assert rows.min() == 0 and rows.max() == STEPS


def test_what_is_flat_empty_or_not_a_number_has_a_frame():
    """A box without height, no points at all, and values of which some are not finite."""
    flat = FrameBox(np.zeros(3), np.array([1.0, 0.0, 1.0]), [np.array([np.nan, np.inf])])
    assert (flat.least, flat.most) == (0.0, 0.0)
    assert (flat.rows(np.zeros((2, 3)), np.array([np.nan, 1.0])) == 0).all()
    some = FrameBox(np.zeros(3), np.ones(3), [np.array([1.0, np.nan, 3.0])])
    assert (some.least, some.most) == (1.0, 3.0)
    assert list(some.rows(np.zeros((3, 3)), np.array([1.0, np.nan, 3.0]))[:, 3]) == [0, 0, STEPS]
    assert len(flat.rows(np.zeros((0, 3)), None)) == 0


@pytest.mark.parametrize(("count", "most", "shown"), [(10, 100, 10), (100, 100, 100), (101, 100, 51), (1000, 7, 7), (1, 1, 1)])
def test_points_that_are_left_out_are_made_up_for(count, most, shown):
    """At most as many as asked for; each is larger, so that they hold the volume of all."""
    shape, arrays = cloud(count), []
    record = _cloud(shape, FrameBox(np.full(3, -9.0), np.full(3, 9.0), []), None, most, arrays)
    assert (record["count"], record["shown"], len(arrays[0])) == (count, shown, shown)
    assert shown * record["radius"] ** 3 == pytest.approx(count * 0.01**3, rel=0.35)
    assert not record["colours"] and record["colour"] == [188, 188, 188]


def test_arrays_begin_at_four_bytes():
    """The page looks at them where they lie: a view of numbers of four bytes begins at one."""
    data = packed({"a": "é"}, [np.arange(3, dtype=np.uint16), np.arange(2, dtype=np.uint32)])
    (length,) = struct.unpack_from("<I", data)
    assert length % 4 == 0 and json.loads(data[4 : 4 + length]) == {"a": "é"}
    assert list(np.frombuffer(data, "<u4", 2, 4 + length + 8)) == [0, 1]
