"""What a transfer moves, as kernels see it: one record per grid array, in a tuple that is compiled for just those fields.

A grid array has four values a point: up to three values and, last, the weight (mass, heat capacity, volume) that they were
multiplied by. All its points share one origin, given in half cells: nodes (0, 0, 0), faces (1, 0, 0), (0, 1, 0) and (0, 0, 1),
cell corners (1, 1, 1); any of the eight is served. What is None takes no instructions.

A row is (array, row): row r of particle p at r * stride + p.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

from numba.core import types

from mpm_nodes.kernels.compile.jit import inline, overloaded
from mpm_nodes.kernels.lanes.memory import bare, load, prefetch, store_first

__all__ = [
    "FULL",
    "Flux",
    "Given",
    "Slopes",
    "Taken",
    "bare_given",
    "bare_or_none",
    "bare_taken",
    "by_row",
    "each_of",
    "for_each",
    "four_rows",
    "load_row",
    "matrix_rows",
    "prefetch_row",
    "slopes_of_matrix",
    "slopes_of_rows",
    "store_row",
    "vector_rows",
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


class Slopes(NamedTuple):
    """Where a gradient goes, with a stride of its own: the first of three rows of each value.

    Attributes:
        rows: Four rows, as in `Taken`.
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


@inline
def _no_rows(array):
    return None


@inline
def _vector_rows(array):
    data = bare(array)
    return (data, 0), (data, 1), (data, 2)


@inline
def _matrix_rows(array):
    data = bare(array)
    return (data, 0), (data, 3), (data, 6)


@inline
def _no_four_rows(rows):
    return None


@inline
def _no_slopes(rows, stride):
    return None


@inline
def _four_rows(rows):
    return rows[0], rows[1], rows[2], None


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


vector_rows = by_row(_no_rows, _vector_rows)
"""Return the rows of a vector attribute, or None."""
matrix_rows = by_row(_no_rows, _matrix_rows)
"""Return the first rows of a matrix attribute's lines, or None."""
four_rows = by_row(_no_four_rows, _four_rows)
"""Return three rows and a None in the place of the weight, or None."""


@inline
def slopes_of_matrix(array, stride, shift):
    """Return where a gathered gradient goes: nine rows of an array."""
    return Slopes(four_rows(matrix_rows(array)), stride, shift)


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
