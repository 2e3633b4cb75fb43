"""Sums over the rows of one stencil in a tile: what a gather takes from them, by differences or directly.

Differences are taken once per cell and then need a third of the arithmetic per particle (`weights`); direct sums serve a change
that lies in a second tile, and single values, where particles one after another seldom share a cell.
"""

from __future__ import annotations

from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.arithmetic import const, fma
from mpm_nodes.kernels.lanes.memory import load
from mpm_nodes.kernels.transfers.tiles import ROW, SLICE
from mpm_nodes.kernels.transfers.weights import by_width, differences, slope_at, value_at

__all__ = ["along_y", "cell_differences", "plane_slopes", "plane_sum", "plane_tops", "slope_along_y", "top_along_y"]


# ---------------------------------------------------------------- lines of a cell
@inline
def _cell3(stencil, scratch, at):
    a = differences((load(scratch, at), load(scratch, at + SLICE), load(scratch, at + 2 * SLICE)))
    at += ROW
    b = differences((load(scratch, at), load(scratch, at + SLICE), load(scratch, at + 2 * SLICE)))
    at += ROW
    c = differences((load(scratch, at), load(scratch, at + SLICE), load(scratch, at + 2 * SLICE)))
    return differences((a[0], b[0], c[0])), differences((a[1], b[1], c[1])), differences((a[2], b[2], c[2]))


@inline
def _line4(scratch, at):
    return differences((load(scratch, at), load(scratch, at + SLICE), load(scratch, at + 2 * SLICE), load(scratch, at + 3 * SLICE)))


@inline
def _cell4(stencil, scratch, at):
    a, b, c, d = _line4(scratch, at), _line4(scratch, at + ROW), _line4(scratch, at + 2 * ROW), _line4(scratch, at + 3 * ROW)
    return (
        differences((a[0], b[0], c[0], d[0])),
        differences((a[1], b[1], c[1], d[1])),
        differences((a[2], b[2], c[2], d[2])),
        differences((a[3], b[3], c[3], d[3])),
    )


cell_differences = by_width(_cell3, _cell4)
"""Return the differences of a cell's rows along x and y: entry [i][j] is the i-th along x, the j-th along y."""


@inline
def _along_y3(cell, y):
    return value_at(cell[0], y), value_at(cell[1], y), value_at(cell[2], y)


@inline
def _along_y4(cell, y):
    return value_at(cell[0], y), value_at(cell[1], y), value_at(cell[2], y), value_at(cell[3], y)


@inline
def _slope_along_y3(cell, y):
    return slope_at(cell[0], y), slope_at(cell[1], y), slope_at(cell[2], y)


@inline
def _slope_along_y4(cell, y):
    return slope_at(cell[0], y), slope_at(cell[1], y), slope_at(cell[2], y), slope_at(cell[3], y)


@inline
def _top_along_y3(cell):
    return cell[0][2], cell[1][2], cell[2][2]


@inline
def _top_along_y4(cell):
    return cell[0][3], cell[1][3], cell[2][3], cell[3][3]


along_y = by_width(_along_y3, _along_y4)
slope_along_y = by_width(_slope_along_y3, _slope_along_y4)
top_along_y = by_width(_top_along_y3, _top_along_y4)


# ---------------------------------------------------------------- sums of the change, for FLIP
@inline
def _row_sum3(y, scratch, at):
    return fma(y[2], load(scratch, at + 2 * ROW), fma(y[1], load(scratch, at + ROW), y[0] * load(scratch, at)))


@inline
def _row_sum4(y, scratch, at):
    return fma(y[3], load(scratch, at + 3 * ROW), _row_sum3(y, scratch, at))


_row_sum = by_width(_row_sum3, _row_sum4)


@inline
def _plane_sum3(x, y, scratch, at):
    return fma(
        x[2], _row_sum(y, scratch, at + 2 * SLICE), fma(x[1], _row_sum(y, scratch, at + SLICE), x[0] * _row_sum(y, scratch, at))
    )


@inline
def _plane_sum4(x, y, scratch, at):
    return fma(x[3], _row_sum(y, scratch, at + 3 * SLICE), _plane_sum3(x, y, scratch, at))


plane_sum = by_width(_plane_sum3, _plane_sum4)
"""Return sum w_i w_j of a cell's rows."""


# ---------------------------------------------------------------- sums with slopes, without differences
@inline
def _sum3(w, a):
    return fma(w[2], a[2], fma(w[1], a[1], w[0] * a[0]))


@inline
def _sum4(w, a):
    return fma(w[3], a[3], fma(w[2], a[2], fma(w[1], a[1], w[0] * a[0])))


_sum = by_width(_sum3, _sum4)


@inline
def _rows_of_slice3(y, ys, scratch, at):
    rows = load(scratch, at), load(scratch, at + ROW), load(scratch, at + 2 * ROW)
    return _sum(y, rows), _sum(ys, rows)


@inline
def _rows_of_slice4(y, ys, scratch, at):
    rows = load(scratch, at), load(scratch, at + ROW), load(scratch, at + 2 * ROW), load(scratch, at + 3 * ROW)
    return _sum(y, rows), _sum(ys, rows)


_rows_of_slice = by_width(_rows_of_slice3, _rows_of_slice4)


@inline
def _plane_slopes3(x, xs, y, ys, scratch, at):
    a, b = _rows_of_slice(y, ys, scratch, at), _rows_of_slice(y, ys, scratch, at + SLICE)
    c = _rows_of_slice(y, ys, scratch, at + 2 * SLICE)
    along = a[0], b[0], c[0]
    return _sum(x, along), _sum(xs, along), _sum(x, (a[1], b[1], c[1]))


@inline
def _plane_slopes4(x, xs, y, ys, scratch, at):
    a, b = _rows_of_slice(y, ys, scratch, at), _rows_of_slice(y, ys, scratch, at + SLICE)
    c, d = _rows_of_slice(y, ys, scratch, at + 2 * SLICE), _rows_of_slice(y, ys, scratch, at + 3 * SLICE)
    along = a[0], b[0], c[0], d[0]
    return _sum(x, along), _sum(xs, along), _sum(x, (a[1], b[1], c[1], d[1]))


plane_slopes = by_width(_plane_slopes3, _plane_slopes4)
"""Return sum w_i w_j of a cell's rows, and its slopes along x and y."""


# ---------------------------------------------------------------- sums with slopes and highest differences, without those of cells
@inline
def _top3(a):
    return fma(const(a[1], -2.0), a[1], a[0] + a[2])


@inline
def _top4(a):
    return fma(const(a[1], 3.0), a[1] - a[2], a[3] - a[0])


_top = by_width(_top3, _top4)


@inline
def _slice3(y, ys, scratch, at):
    rows = load(scratch, at), load(scratch, at + ROW), load(scratch, at + 2 * ROW)
    return _sum(y, rows), _sum(ys, rows), _top(rows)


@inline
def _slice4(y, ys, scratch, at):
    rows = load(scratch, at), load(scratch, at + ROW), load(scratch, at + 2 * ROW), load(scratch, at + 3 * ROW)
    return _sum(y, rows), _sum(ys, rows), _top(rows)


_slice = by_width(_slice3, _slice4)


@inline
def _plane_tops3(x, xs, y, ys, scratch, at):
    a, b, c = _slice(y, ys, scratch, at), _slice(y, ys, scratch, at + SLICE), _slice(y, ys, scratch, at + 2 * SLICE)
    v = a[0], b[0], c[0]
    return _sum(x, v), _sum(xs, v), _top(v), _sum(x, (a[1], b[1], c[1])), _sum(x, (a[2], b[2], c[2]))


@inline
def _plane_tops4(x, xs, y, ys, scratch, at):
    a, b, c = _slice(y, ys, scratch, at), _slice(y, ys, scratch, at + SLICE), _slice(y, ys, scratch, at + 2 * SLICE)
    d = _slice(y, ys, scratch, at + 3 * SLICE)
    v = a[0], b[0], c[0], d[0]
    return _sum(x, v), _sum(xs, v), _top(v), _sum(x, (a[1], b[1], c[1], d[1])), _sum(x, (a[2], b[2], c[2], d[2]))


plane_tops = by_width(_plane_tops3, _plane_tops4)
"""Return sum w_i w_j of a cell's rows, its slope and highest difference along x, and the two along y."""
