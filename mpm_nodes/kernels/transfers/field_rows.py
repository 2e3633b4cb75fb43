"""Rows of what a transfer moves, as kernels see them: loaded, stored and changed sixteen particles at a time, or not at all.

A row is (array, row): row r of particle p at r * stride + p. `Whole` stands for all rows of an attribute, in order. What is None
takes no instructions.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

from numba.core import types

from mpm_nodes.kernels.compile.jit import inline, overloaded
from mpm_nodes.kernels.lanes.arithmetic import fma
from mpm_nodes.kernels.lanes.memory import load, prefetch, store_first, store_first_each
from mpm_nodes.kernels.transfers.tuples import for_each

__all__ = [
    "Whole",
    "by_row",
    "by_rows",
    "change_row",
    "change_values",
    "load_row",
    "load_slopes",
    "load_values",
    "prefetch_row",
    "prefetch_values",
    "store_row",
    "store_slopes",
    "store_values",
]


class Whole(NamedTuple):
    """All rows of an attribute: one for each of three values, or three for each. Their addresses have a base in common.

    Attributes:
        data: The attribute's rows.
    """

    data: Any


# ---------------------------------------------------------------- rows that may be None
def by_row(nothing, some):
    """Return a kernel function that is `nothing` where its first argument is None, else `some`."""

    def choose(row, *arguments):
        return (nothing if row is None else some)(row, *arguments)

    def typed(row, *arguments):
        return nothing if isinstance(row, types.NoneType | types.Omitted) else some

    choose.__signature__ = typed.__signature__ = inspect.signature(some)
    overloaded(choose)(typed)
    return choose


def by_rows(single, whole):
    """Return a kernel function that is `whole` where its first argument is `Whole`, else `single`, of a tuple of rows."""

    def choose(rows, *arguments):
        return (whole if isinstance(rows, Whole) else single)(rows, *arguments)

    def typed(rows, *arguments):
        return whole if getattr(rows, "instance_class", None) is Whole else single

    choose.__signature__ = typed.__signature__ = inspect.signature(single)
    overloaded(choose)(typed)
    return choose


@inline
def _load_nothing(row, further, stride, p, scale, zero):
    return zero


@inline
def _load_scaled(row, further, stride, p, scale, zero):
    return scale * load(row[0], (row[1] + further) * stride + p)


@inline
def _prefetch_nothing(row, count, stride, p):
    return


@inline
def _prefetch_some(row, count, stride, p):
    for further in range(count):
        prefetch(row[0], (row[1] + further) * stride + p)


@inline
def _store_nothing(row, further, stride, p, value, count):
    return


@inline
def _store_some(row, further, stride, p, value, count):
    store_first(row[0], (row[1] + further) * stride + p, value, count)


load_row = by_row(_load_nothing, _load_scaled)
"""Return `scale` times the row `further` rows on of particles p .. p+15, or zero."""
prefetch_row = by_row(_prefetch_nothing, _prefetch_some)
"""Ask for `count` rows from a row on."""
store_row = by_row(_store_nothing, _store_some)
"""Store the first `count` lanes to the row `further` rows on."""


# ---------------------------------------------------------------- the rows of three or four values
@inline
def _load_single_values(rows, stride, p, scale, zero):
    return (
        load_row(rows[0], 0, stride, p, scale, zero),
        load_row(rows[1], 0, stride, p, scale, zero),
        load_row(rows[2], 0, stride, p, scale, zero),
    )


@inline
def _load_whole_values(rows, stride, p, scale, zero):
    return scale * load(rows.data, p), scale * load(rows.data, stride + p), scale * load(rows.data, 2 * stride + p)


@inline
def _load_single_slopes(rows, axis, stride, p, scale, zero):
    return (
        load_row(rows[0], axis, stride, p, scale, zero),
        load_row(rows[1], axis, stride, p, scale, zero),
        load_row(rows[2], axis, stride, p, scale, zero),
    )


@inline
def _load_whole_slopes(rows, axis, stride, p, scale, zero):
    return (
        scale * load(rows.data, axis * stride + p),
        scale * load(rows.data, (3 + axis) * stride + p),
        scale * load(rows.data, (6 + axis) * stride + p),
    )


@inline
def _prefetch_single(rows, count, stride, p):
    for_each(_prefetch_one, rows, (count, stride, p))


@inline
def _prefetch_one(row, place):
    prefetch_row(row, place[0], place[1], place[2])


@inline
def _prefetch_whole(rows, count, stride, p):
    for row in range(3 * count):
        prefetch(rows.data, row * stride + p)


@inline
def _store_single_values(rows, stride, p, values, count):
    store_row(rows[0], 0, stride, p, values[0], count)
    store_row(rows[1], 0, stride, p, values[1], count)
    store_row(rows[2], 0, stride, p, values[2], count)
    store_row(rows[3], 0, stride, p, values[3], count)


@inline
def _store_whole_values(rows, stride, p, values, count):
    store_first_each(rows.data, p, stride, values[:3], count)


@inline
def _store_single_slopes(rows, stride, p, x, y, z, count):
    _store_slope(rows[0], stride, p, (x[0], y[0], z[0]), count)
    _store_slope(rows[1], stride, p, (x[1], y[1], z[1]), count)
    _store_slope(rows[2], stride, p, (x[2], y[2], z[2]), count)
    _store_slope(rows[3], stride, p, (x[3], y[3], z[3]), count)


@inline
def _store_whole_slopes(rows, stride, p, x, y, z, count):
    store_first_each(rows.data, p, stride, (x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2]), count)


@inline
def _store_no_slope(row, stride, p, slope, count):
    return


@inline
def _store_some_slope(row, stride, p, slope, count):
    store_first_each(row[0], row[1] * stride + p, stride, slope, count)


_store_slope = by_row(_store_no_slope, _store_some_slope)


@inline
def _change_nothing(row, stride, p, keep, change, count):
    return


@inline
def _change_some(row, stride, p, keep, change, count):
    at = row[1] * stride + p
    store_first(row[0], at, fma(keep, load(row[0], at), change), count)


change_row = by_row(_change_nothing, _change_some)
"""Replace the first `count` lanes of a row by `keep` times themselves and a change."""


@inline
def _change_single_values(rows, stride, p, keep, changes, count):
    change_row(rows[0], stride, p, keep, changes[0], count)
    change_row(rows[1], stride, p, keep, changes[1], count)
    change_row(rows[2], stride, p, keep, changes[2], count)
    change_row(rows[3], stride, p, keep, changes[3], count)


@inline
def _change_whole_values(rows, stride, p, keep, changes, count):
    old = load(rows.data, p), load(rows.data, stride + p), load(rows.data, 2 * stride + p)
    new = fma(keep, old[0], changes[0]), fma(keep, old[1], changes[1]), fma(keep, old[2], changes[2])
    store_first_each(rows.data, p, stride, new, count)


load_values = by_rows(_load_single_values, _load_whole_values)
"""Return `scale` times the three values of particles p .. p+15."""
load_slopes = by_rows(_load_single_slopes, _load_whole_slopes)
"""Return `scale` times the slopes of the three values along one axis."""
prefetch_values = by_rows(_prefetch_single, _prefetch_whole)
"""Ask for `count` rows of each value."""
store_values = by_rows(_store_single_values, _store_whole_values)
"""Store the first `count` lanes of four values, or of the three that are wanted."""
store_slopes = by_rows(_store_single_slopes, _store_whole_slopes)
"""Store the first `count` lanes of the four values' slopes, given along x, y and z."""
change_values = by_rows(_change_single_values, _change_whole_values)
"""As `change_row`, for four values or the three that are wanted."""
