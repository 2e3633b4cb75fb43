"""Shapes in 16 bits: how far places and values are off, which points stand for all, and what a block of fog holds."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest

from mpm_nodes.editor.frames import packed
from mpm_nodes.editor.quantised import STEPS, ShapeBox, Span, even_order, quantised_volume


def places(count: int) -> np.ndarray:
    return np.random.default_rng(3).normal(size=(count, 3)) * (4.0, 0.1, 2.0)


def test_places_and_values_are_off_by_half_a_step_at_most():
    """Of the box, and of the span of the values; both ends are met."""
    points = places(20_000)
    values = points[:, 0] ** 3
    box, span = ShapeBox.around(points), Span.of(values)
    rows = box.rows(points, values, span).astype(float)
    step = box.size / STEPS
    assert (np.abs(box.low + rows[:, :3] * step - points) <= 0.5000001 * step).all()
    assert (
        np.abs(span.least + rows[:, 3] * (span.most - span.least) / STEPS - values).max()
        <= 0.50001 * (span.most - span.least) / STEPS
    )
    assert rows.min() == 0 and rows.max() == STEPS


def test_what_is_flat_empty_or_not_a_number_has_a_frame():
    """A box without height, no points at all, and values of which some are not finite."""
    assert Span.of(np.array([np.nan, np.inf])) is None and Span.of(None) is None
    span = Span.of(np.array([1.0, np.nan, 3.0]))
    assert span == (1.0, 3.0)
    flat = ShapeBox.around(np.array([[0.0, 2.0, 0.0], [1.0, 2.0, 1.0]]))
    assert list(flat.rows(np.full((3, 3), 2.0), np.array([1.0, np.nan, 3.0]), span)[:, 3]) == [0, 0, STEPS]
    assert len(ShapeBox.around(np.zeros((0, 3))).rows(np.zeros((0, 3)), None, Span())) == 0
    assert (flat.rows(np.zeros((2, 3)), np.array([5.0]), Span(5.0, 5.0))[:, 3] == 0).all()


@pytest.mark.parametrize(("count", "most"), [(10, 100), (100, 100), (101, 100), (1000, 7), (100_000, 30_000), (1, 1), (0, 5)])
def test_at_most_as_many_points_are_sent_and_every_beginning_is_even(count, most):
    """None twice, all where they are few; of the first so many, no gap is more than four times as wide as even ones."""
    sent, _ = even_order(count, most)
    assert ((sent >= 0) & (sent < count)).all()
    assert len(sent) <= most and len(np.unique(sent)) == len(sent)
    assert len(sent) == count if count <= most else len(sent) > 0.8 * most
    for share in (0.1, 0.5, 1.0):
        some = np.sort(sent[: int(share * len(sent))])
        if len(some) > 8:
            assert np.diff(some).max() <= 4.0 * count / len(some)


def test_points_of_a_lattice_do_not_line_up():
    """Of rows of 64, a sixteenth of the points stands in all columns."""
    sent, _ = even_order(64 * 1000, 64 * 1000 // 16)
    columns = np.bincount(sent % 64, minlength=64)
    assert columns.min() > 0.3 * columns.mean()


def test_fog_is_the_mean_of_what_it_holds_and_stays_where_it_is():
    """One voxel a cell where there is room; of a far one, cells of several, whose sum is that of the voxels."""
    rng = np.random.default_rng(5)
    values = rng.random((2, 8, 8, 8)).astype(np.float32)
    near = np.array([[-8, 0, 8], [0, 0, 8]])
    block, low, factor, most = quantised_volume(near, values)
    assert (block.shape, low.tolist(), factor) == ((8, 8, 16), [-8, 0, 8], 1)
    assert np.abs(block[:, :, 8:] / 255.0 * most - values[1].transpose(2, 1, 0)).max() <= 0.5 * most / 255.0
    block, low, factor, most = quantised_volume(np.array([[-8, 0, 8], [992, 0, 8]]), values)
    assert factor == 8 and max(block.shape) <= 128 and low.tolist() == [-8, 0, 8]
    assert block.sum() / 255.0 * most * factor**3 == pytest.approx(values.sum(), rel=0.005)
    assert block[0, 0, 0] / 255.0 * most == pytest.approx(values[0].mean(), rel=0.005)


def test_arrays_begin_at_four_bytes():
    """The page looks at them where they lie: a view of numbers of four bytes begins at one."""
    data = packed({"a": "é"}, [np.arange(3, dtype=np.uint16), np.arange(2, dtype=np.uint32)])
    (length,) = struct.unpack_from("<I", data)
    assert length % 4 == 0 and json.loads(data[4 : 4 + length]) == {"a": "é"}
    assert list(np.frombuffer(data, "<u4", 2, 4 + length + 8)) == [0, 1]
