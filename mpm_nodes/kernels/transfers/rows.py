"""The rows of one stencil in registers: what a scatter adds to them, and how they come into a tile.

| symbol | meaning |
|---|---|
| rows | the stencil's z-rows, by x and y: one sixteen-lane value each, four nodes of four components |
| s, t, w | slopes, highest differences and weights of the stencil along one axis, in all lanes (`weights`) |
| u, k | what the point gives with the slope and with the highest difference |
"""

from __future__ import annotations

from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.arithmetic import const, fma
from mpm_nodes.kernels.lanes.memory import load, store
from mpm_nodes.kernels.transfers.tiles import ROW, SLICE
from mpm_nodes.kernels.transfers.weights import by_width

__all__ = [
    "add",
    "add_into",
    "flush",
    "no_rows",
    "only_weights",
    "plain_add",
    "plain_add_into",
    "plain_profile",
    "profile",
    "with_weights",
]


# ---------------------------------------------------------------- what a particle gives along one axis
@inline
def _profile3(s, u, k):
    """Return s_i u + t_i k for every node of the stencil; their sum is zero."""
    first, last = fma(s[0], u, k), fma(s[2], u, k)
    return first, -(first + last), last


@inline
def _profile4(s, u, k):
    three = const(u, 3.0) * k
    first, second, last = fma(s[0], u, -k), fma(s[1], u, three), fma(s[3], u, k)
    return first, second, -((first + second) + last), last


@inline
def _plain_profile3(s, u):
    first, last = s[0] * u, s[2] * u
    return first, -(first + last), last


@inline
def _plain_profile4(s, u):
    first, second, last = s[0] * u, s[1] * u, s[3] * u
    return first, second, -((first + second) + last), last


@inline
def _with_weights3(w, h, along):
    return fma(w[0], h, along[0]), fma(w[1], h, along[1]), fma(w[2], h, along[2])


@inline
def _with_weights4(w, h, along):
    return fma(w[0], h, along[0]), fma(w[1], h, along[1]), fma(w[2], h, along[2]), fma(w[3], h, along[3])


@inline
def _only_weights3(w, h):
    return w[0] * h, w[1] * h, w[2] * h


@inline
def _only_weights4(w, h):
    return w[0] * h, w[1] * h, w[2] * h, w[3] * h


profile, plain_profile = by_width(_profile3, _profile4), by_width(_plain_profile3, _plain_profile4)
with_weights, only_weights = by_width(_with_weights3, _with_weights4), by_width(_only_weights3, _only_weights4)


# ---------------------------------------------------------------- rows in registers
@inline
def _line3(rows, w, p, wx, z):
    """Add w_j p + w_i z_j to the rows of one x-slice."""
    return fma(wx, z[0], fma(w[0], p, rows[0])), fma(wx, z[1], fma(w[1], p, rows[1])), fma(wx, z[2], fma(w[2], p, rows[2]))


@inline
def _line4(rows, w, p, wx, z):
    a, b, c = _line3(rows, w, p, wx, z)
    return a, b, c, fma(wx, z[3], fma(w[3], p, rows[3]))


_line = by_width(_line3, _line4)


@inline
def _plain_line3(rows, w, p):
    return fma(w[0], p, rows[0]), fma(w[1], p, rows[1]), fma(w[2], p, rows[2])


@inline
def _plain_line4(rows, w, p):
    return fma(w[0], p, rows[0]), fma(w[1], p, rows[1]), fma(w[2], p, rows[2]), fma(w[3], p, rows[3])


_plain_line = by_width(_plain_line3, _plain_line4)


@inline
def _add3(rows, w, p, wx, z):
    return _line(rows[0], w, p[0], wx[0], z), _line(rows[1], w, p[1], wx[1], z), _line(rows[2], w, p[2], wx[2], z)


@inline
def _add4(rows, w, p, wx, z):
    return (
        _line(rows[0], w, p[0], wx[0], z),
        _line(rows[1], w, p[1], wx[1], z),
        _line(rows[2], w, p[2], wx[2], z),
        _line(rows[3], w, p[3], wx[3], z),
    )


@inline
def _plain_add3(rows, w, p):
    return _plain_line(rows[0], w, p[0]), _plain_line(rows[1], w, p[1]), _plain_line(rows[2], w, p[2])


@inline
def _plain_add4(rows, w, p):
    return (
        _plain_line(rows[0], w, p[0]),
        _plain_line(rows[1], w, p[1]),
        _plain_line(rows[2], w, p[2]),
        _plain_line(rows[3], w, p[3]),
    )


add, plain_add = by_width(_add3, _add4), by_width(_plain_add3, _plain_add4)


@inline
def _no_rows3(stencil, zero):
    z = (zero, zero, zero)
    return z, z, z


@inline
def _no_rows4(stencil, zero):
    z = (zero, zero, zero, zero)
    return z, z, z, z


no_rows = by_width(_no_rows3, _no_rows4)


@inline
def _flush_line3(rows, scratch, at):
    store(scratch, at, load(scratch, at) + rows[0])
    store(scratch, at + ROW, load(scratch, at + ROW) + rows[1])
    store(scratch, at + 2 * ROW, load(scratch, at + 2 * ROW) + rows[2])


@inline
def _flush_line4(rows, scratch, at):
    _flush_line3(rows, scratch, at)
    store(scratch, at + 3 * ROW, load(scratch, at + 3 * ROW) + rows[3])


_flush_line = by_width(_flush_line3, _flush_line4)


@inline
def _flush3(rows, scratch, at):
    """Add rows to the tile."""
    _flush_line(rows[0], scratch, at)
    _flush_line(rows[1], scratch, at + SLICE)
    _flush_line(rows[2], scratch, at + 2 * SLICE)


@inline
def _flush4(rows, scratch, at):
    _flush3(rows, scratch, at)
    _flush_line(rows[3], scratch, at + 3 * SLICE)


flush = by_width(_flush3, _flush4)


# ---------------------------------------------------------------- straight into the tile
@inline
def _line_into3(w, scratch, at, p, wx, z):
    store(scratch, at, fma(wx, z[0], fma(w[0], p, load(scratch, at))))
    store(scratch, at + ROW, fma(wx, z[1], fma(w[1], p, load(scratch, at + ROW))))
    store(scratch, at + 2 * ROW, fma(wx, z[2], fma(w[2], p, load(scratch, at + 2 * ROW))))


@inline
def _line_into4(w, scratch, at, p, wx, z):
    _line_into3(w, scratch, at, p, wx, z)
    store(scratch, at + 3 * ROW, fma(wx, z[3], fma(w[3], p, load(scratch, at + 3 * ROW))))


_line_into = by_width(_line_into3, _line_into4)


@inline
def _plain_line_into3(w, scratch, at, p):
    store(scratch, at, fma(w[0], p, load(scratch, at)))
    store(scratch, at + ROW, fma(w[1], p, load(scratch, at + ROW)))
    store(scratch, at + 2 * ROW, fma(w[2], p, load(scratch, at + 2 * ROW)))


@inline
def _plain_line_into4(w, scratch, at, p):
    _plain_line_into3(w, scratch, at, p)
    store(scratch, at + 3 * ROW, fma(w[3], p, load(scratch, at + 3 * ROW)))


_plain_line_into = by_width(_plain_line_into3, _plain_line_into4)


@inline
def _add_into3(w, scratch, at, p, wx, z):
    _line_into(w, scratch, at, p[0], wx[0], z)
    _line_into(w, scratch, at + SLICE, p[1], wx[1], z)
    _line_into(w, scratch, at + 2 * SLICE, p[2], wx[2], z)


@inline
def _add_into4(w, scratch, at, p, wx, z):
    _add_into3(w, scratch, at, p, wx, z)
    _line_into(w, scratch, at + 3 * SLICE, p[3], wx[3], z)


@inline
def _plain_add_into3(w, scratch, at, p):
    _plain_line_into(w, scratch, at, p[0])
    _plain_line_into(w, scratch, at + SLICE, p[1])
    _plain_line_into(w, scratch, at + 2 * SLICE, p[2])


@inline
def _plain_add_into4(w, scratch, at, p):
    _plain_add_into3(w, scratch, at, p)
    _plain_line_into(w, scratch, at + 3 * SLICE, p[3])


add_into, plain_add_into = by_width(_add_into3, _add_into4), by_width(_plain_add_into3, _plain_add_into4)
"""As `add` and `plain_add`, to rows that stay in the tile: where registers do not hold them all."""
