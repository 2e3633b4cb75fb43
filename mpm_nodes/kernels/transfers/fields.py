"""What a transfer moves, as kernels see it: one record per grid array, in a tuple that is compiled for just those fields.

A grid array has four values a point: up to three values and, last, the weight (mass, heat capacity, volume) that they were
multiplied by. All its points share one origin, given in half cells: nodes (0, 0, 0), faces (1, 0, 0), (0, 1, 0) and (0, 0, 1),
cell corners (1, 1, 1); any of the eight is served. What is None takes no instructions.

A row is (array, row): row r of particle p at r * stride + p. `Whole` stands for all rows of an attribute, in order.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

from numba.core import types

from mpm_nodes.kernels.compile.jit import inline, overloaded
from mpm_nodes.kernels.lanes.arithmetic import fma
from mpm_nodes.kernels.lanes.memory import bare, load, prefetch, store_first, store_first_each

__all__ = [
    "FULL",
    "Flux",
    "Given",
    "Slopes",
    "Taken",
    "Whole",
    "bare_given",
    "bare_or_none",
    "bare_taken",
    "by_row",
    "change_row",
    "change_values",
    "each_of",
    "for_each",
    "load_slopes",
    "load_values",
    "prefetch_values",
    "slopes_of_matrix",
    "slopes_of_rows",
    "store_slopes",
    "store_values",
    "whole_rows",
]


class Flux(NamedTuple):
    """What particles give with the gradients of their weights: scale * volume * sigma grad w.

    Attributes:
        array, stride, shift: Row r of sigma of particle p at array[r * stride + shift + p].
        rows: For each of three values its rows along x, y and z, or None; None for all: sigma is symmetric, xx xy xz yy yz zz.
        volume: Array of the factor of each particle.
        scale: Factor of all, over the cell size: -1/h makes the force - sum V0 tau grad w.
    """

    array: Any
    stride: Any
    shift: Any
    rows: Any
    volume: Any
    scale: Any


FULL = ((0, 1, 2), (3, 4, 5), (6, 7, 8))
"""The rows of a `Flux` that is not symmetric."""


class Whole(NamedTuple):
    """All rows of an attribute: one for each of three values, or three for each. Their addresses have a base in common.

    Attributes:
        data: The attribute's rows.
    """

    data: Any


class Slopes(NamedTuple):
    """Where a gradient goes, with a stride of its own: the first of three rows of each value.

    Attributes:
        rows: Four rows, as in `Taken`, or `Whole`.
        stride, shift: Row r of particle p at r * stride + shift + p.
    """

    rows: Any
    stride: Any
    shift: Any


class Given(NamedTuple):
    """What a scatter gives to one grid array.

    Attributes:
        half: Origin of the points in half cells, three integers.
        weight: Array of the particles' weights, None where only a flux is given.
        values: Three rows, or None in the place of one or of all.
        slopes: Three rows, each the first of the three along x, y and z of a value's gradient (the affine part of APIC), or None.
        flux: A `Flux`, or None.
        grid: The grid array.
    """

    half: Any
    weight: Any
    values: Any
    slopes: Any
    flux: Any
    grid: Any


class Taken(NamedTuple):
    """What a gather takes from one grid array; `values`, `affine` and `gradient` have four rows each, or are None.

    Attributes:
        half: Origin of the points in half cells, three integers.
        values: Where sum w v_i goes.
        affine: Where D^-1 sum w v_i (x_i - x_p) goes: the first of three rows.
        gradient: Where sum v_i grad w goes: the first of three rows.
        before: Grid array of weighted values before the update, weight last: the particle's own value is changed by a blend of
            FLIP and PIC. None replaces it.
        fraction: Share of FLIP, None without `before`.
        paired: Not None where, with `before`, the first value and its gradient are all that is wanted.
        grid: The grid array.
    """

    half: Any
    values: Any
    affine: Any
    gradient: Any
    before: Any
    fraction: Any
    paired: Any
    grid: Any


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


# ---------------------------------------------------------------- records without arrays
@inline
def _no_rows(array):
    return None


@inline
def _whole(array):
    return Whole(bare(array))


@inline
def _no_slopes(rows, stride):
    return None


@inline
def _bare_row(array):
    return bare(array[0]), array[1]


_bared = by_row(_no_rows, _bare_row)


@inline
def _bare_flux(array):
    return Flux(bare(array.array), array.stride, array.shift, array.rows, bare(array.volume), array.scale)


@inline
def _bare_array(array):
    return bare(array)


_bared_flux, bare_or_none = by_row(_no_rows, _bare_flux), by_row(_no_rows, _bare_array)


def _bared_rows(rows):
    """Return three or four rows with data instead of arrays, or None."""
    raise NotImplementedError("for compiled functions only")


@overloaded(_bared_rows)
def _bare_rows(rows):
    if isinstance(rows, types.NoneType):
        return lambda rows: None
    if rows.count == 3:
        return lambda rows: (_bared(rows[0]), _bared(rows[1]), _bared(rows[2]))
    return lambda rows: (_bared(rows[0]), _bared(rows[1]), _bared(rows[2]), _bared(rows[3]))


@inline
def bare_given(given):
    """Return a `Given` that holds data instead of arrays: taking arrays out of it for every block would count references."""
    return Given(
        given.half,
        bare_or_none(given.weight),
        _bared_rows(given.values),
        _bared_rows(given.slopes),
        _bared_flux(given.flux),
        bare(given.grid),
    )


@inline
def bare_taken(taken):
    """Return a `Taken` that holds data instead of arrays."""
    return Taken(
        taken.half,
        _bared_rows(taken.values),
        _bared_rows(taken.affine),
        _bared_rows(taken.gradient),
        bare_or_none(taken.before),
        taken.fraction,
        taken.paired,
        bare(taken.grid),
    )


whole_rows = by_row(_no_rows, _whole)
"""Return all rows of an attribute, or None."""


@inline
def slopes_of_matrix(array, stride, shift):
    """Return where a gathered gradient goes: nine rows of an array."""
    return Slopes(Whole(bare(array)), stride, shift)


@inline
def _slopes_of_rows(rows, stride):
    return Slopes(rows, stride, 0)


slopes_of_rows = by_row(_no_slopes, _slopes_of_rows)
"""Return where a gathered gradient goes: rows among others of the particles, or None."""


# ---------------------------------------------------------------- several grid arrays in one pass
def for_each(body, records, arguments):
    """Call body(record, arguments) for every record of a tuple, each compiled for its own fields."""
    for record in records:
        body(record, arguments)


@overloaded(for_each)
def _for_each(body, records, arguments):
    if records.count == 1:
        return lambda body, records, arguments: body(records[0], arguments)

    def first_and_others(body, records, arguments):
        body(records[0], arguments)
        for_each(body, records[1:], arguments)

    return first_and_others


def each_of(body, records):
    """Return the tuple of body(record) for every record of a tuple."""
    return tuple(body(record) for record in records)


@overloaded(each_of)
def _each_of(body, records):
    if records.count == 1:
        return lambda body, records: (body(records[0]),)
    return lambda body, records: (body(records[0]),) + each_of(body, records[1:])
