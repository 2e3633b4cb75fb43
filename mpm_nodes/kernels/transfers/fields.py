"""What a transfer moves, as kernels see it: one record per grid array, in a tuple that is compiled for just those fields.

A grid array has four values a point: up to three values and, last, the weight (mass, heat capacity, volume) that they were
multiplied by. All its points share one origin, given in half cells: nodes (0, 0, 0), faces (1, 0, 0), (0, 1, 0) and (0, 0, 1),
cell corners (1, 1, 1); any of the eight is served. What is None takes no instructions.

`field_rows` has the rows that the records name.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba.core import types

from mpm_nodes.kernels.compile.jit import inline, overloaded
from mpm_nodes.kernels.lanes.memory import bare
from mpm_nodes.kernels.transfers.field_rows import Whole, by_row

__all__ = [
    "FULL",
    "Flux",
    "Given",
    "Slopes",
    "Taken",
    "bare_given",
    "bare_or_none",
    "bare_taken",
    "slopes_of_matrix",
    "slopes_of_rows",
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
