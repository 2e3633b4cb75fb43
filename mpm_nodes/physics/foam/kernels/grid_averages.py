"""Fields of new particles, by averages on the grid of what was there before (Y15 algorithm 20).

| symbol | meaning | unit |
|---|---|---|
| w_iq | weight of particle q at node i | - |
| q_i | average of a field at node i, sum w_iq m_q q_q / sum w_iq m_q | |
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mpm_nodes.kernels.algebra import mat3
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.lanes.arithmetic import broadcast, fma
from mpm_nodes.kernels.lanes.memory import load, store
from mpm_nodes.kernels.lanes.types import WIDTH
from mpm_nodes.kernels.transfers.weights import by_width, weights


@inline
def _first_quadratic(stencil, u):
    return int(np.floor(u - 0.5))


@inline
def _first_cubic(stencil, u):
    return int(np.floor(u)) - 1


@inline
def _past_quadratic(stencil, u):
    return (u - 0.5) - np.floor(u - 0.5)


@inline
def _past_cubic(stencil, u):
    return u - np.floor(u)


_first = by_width(_first_quadratic, _first_cubic)
"""First node of the stencil, for a position in cells; nodes are integers."""
_past = by_width(_past_quadratic, _past_cubic)
"""What `weights` takes: how far the position lies past the stencil's reference."""


@inline
def _along(stencil, u):
    return weights(stencil, _past(stencil, u))


class Stack(NamedTuple):
    """Attributes that are written side by side for each particle: 1, then their rows, then determinants, then zeros.

    Attributes:
        arrays: Tuple of the attributes' arrays.
        rows: Rows of each.
        stride: Distance of rows.
        determinants: Columns where matrices start whose determinants are wanted.
        width: Values a particle, a multiple of sixteen.
    """

    arrays: Any
    rows: Any
    stride: Any
    determinants: Any
    width: Any


class SummedNodes(NamedTuple):
    """Places whose nodes take sums.

    Attributes:
        near: Neighbours of the places.
        of_slot: Place of each slot.
        wanted: Whether the sums of a node matter, 64 nodes a place.
        sums: Sums, 64 nodes a place, flat; the first value of each is the mass.
    """

    near: np.ndarray
    of_slot: np.ndarray
    wanted: np.ndarray
    sums: np.ndarray


@part
def _stack_rows_at(run, stack, ranges, first_row, fields):
    _stack_run(stack, ranges[run, 0], ranges[run, 1], first_row[run], fields)


@compiled
def stack_rows(stack, ranges, first_row, fields):
    """Write attributes of the particles of some runs side by side.

    Args:
        stack: `Stack` of the attributes.
        ranges: (begin, end, ...) of every run.
        first_row: Where each run starts in `fields`, counted in particles.
        fields: Values, flat.
    """
    parallel_for(_stack_rows_at, ranges.shape[0], (stack, ranges, first_row, fields))


@inline
def _stack_run(stack, begin, end, first_row, fields):
    arrays, rows, stride, determinants, width = stack
    start = first_row * width
    for p in range(end - begin):
        fields[start + p * width] = 1
    column = 1
    for a in range(len(arrays)):
        array = arrays[a]
        for row in range(rows[a]):
            for p in range(end - begin):
                fields[start + p * width + column] = array[row * stride + begin + p]
            column += 1
    for d in range(determinants.size):
        for p in range(end - begin):
            f = fields[start + p * width + determinants[d] : start + p * width + determinants[d] + 9]
            fields[start + p * width + column] = mat3.det((f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8]))
        column += 1
    for c in range(column, width):
        for p in range(end - begin):
            fields[start + p * width + c] = 0


@part
def _add_to_nodes_at(c, stencil, points, mass, stack, ranges, chosen, places):
    run = chosen[c]
    begin, end = ranges[run, 0], ranges[run, 1]
    fields = np.empty((end - begin) * stack.width, places.sums.dtype)  # of one block: it stays in the cache
    _stack_run(stack, begin, end, np.int64(0), fields)
    near = places.near[places.of_slot[ranges[run, 2]]]
    _add_run(stencil, points, mass, (fields, np.int64(stack.width)), (begin, end), near, places.wanted, places.sums)


@compiled(fastmath=False)
def add_to_nodes(stencil, points, mass, stack, ranges, chosen, places):
    """Add w m times the values of some runs of particles to the nodes of their places; the runs must not share nodes.

    Args:
        stencil: Tuple of as many zeros as the B-spline has nodes along an axis.
        points: Fixed-point offsets, distance of their rows, and cells per unit.
        mass: Rows of the mass [kg].
        stack: `Stack` of the attributes; the nodes of `places` have as many values.
        ranges: (begin, end, slot) of every run.
        chosen: Which of the runs to take.
        places: `SummedNodes`.
    """
    parallel_for(_add_to_nodes_at, chosen.size, (stencil, points, mass, stack, ranges, chosen, places))


@part
def _add_run(stencil, points, mass, given_fields, run, near, wanted, sums):
    (fields, width), (begin, end) = given_fields, run
    shares, places = np.empty(64, sums.dtype), np.empty(64, np.int64)
    for p in range(begin, end):
        count = _shares(stencil, points, mass[p], p, (near, wanted), width, shares, places)
        for column in range(0, width, WIDTH):
            given = load(fields, (p - begin) * width + column)
            for n in range(count):
                at = places[n] + column
                store(sums, at, fma(given, broadcast(given, shares[n]), load(sums, at)))


@inline
def _shares(stencil, points, mass, p, nodes, width, shares, places):
    """List w m of each wanted node of a particle's stencil, and where its values start; return how many nodes there are."""
    (offset, stride, inverse_unit), (near, wanted) = points, nodes
    u, v, w = (offset[p] * inverse_unit + 3.5, offset[stride + p] * inverse_unit + 3.5, offset[2 * stride + p] * inverse_unit + 3.5)
    wx, wy, wz = _along(stencil, u), _along(stencil, v), _along(stencil, w)
    i, j, k = _first(stencil, u), _first(stencil, v), _first(stencil, w)
    count = 0
    for a in range(len(stencil)):
        for b in range(len(stencil)):
            flat = wx[a] * wy[b] * mass
            for c in range(len(stencil)):
                n, node = _node(i + a, j + b, k + c)
                at = 64 * np.int64(near[n]) + node
                if wanted[at]:
                    shares[count], places[count] = flat * wz[c], at * width
                    count += 1
    return count


@inline
def _node(i, j, k):
    """Return the neighbour (of 27) and the number there of node (i, j, k) of a block's tile, 0 .. 7 each."""
    return ((i >> 2) + 1) * 9 + ((j >> 2) + 1) * 3 + (k >> 2) + 1, ((i & 3) << 4) + ((j & 3) << 2) + (k & 3)


@compiled
def mark_nodes(stencil, place, position, near, wanted):
    """Mark the nodes of the stencils of some points, as `average_at` takes them."""
    for n in range(place.size):
        i, j, k = _first(stencil, position[n, 0]), _first(stencil, position[n, 1]), _first(stencil, position[n, 2])
        for a in range(len(stencil)):
            for b in range(len(stencil)):
                for c in range(len(stencil)):
                    side, node = _node(i + a, j + b, k + c)
                    wanted[64 * np.int64(near[place[n], side]) + node] = 1


@part
def _average_at_point(n, stencil, place, position, near, sums, width, averages):
    mine = averages[n]
    mine[:] = 0.0
    u, v, w = position[n, 0], position[n, 1], position[n, 2]
    wx, wy, wz = _along(stencil, u), _along(stencil, v), _along(stencil, w)
    i, j, k = _first(stencil, u), _first(stencil, v), _first(stencil, w)
    total = 0.0
    for a in range(len(stencil)):
        for b in range(len(stencil)):
            for c in range(len(stencil)):
                side, node = _node(i + a, j + b, k + c)
                source = (64 * np.int64(near[place[n], side]) + node) * width
                if sums[source] > 0:
                    share = wx[a] * wy[b] * wz[c]
                    total += share
                    for value in range(mine.size):
                        mine[value] += share * (sums[source + value + 1] / sums[source])
    if total > 0:
        for value in range(mine.size):
            mine[value] /= total


@compiled(fastmath=False)
def average_at(stencil, place, position, near, sums, width, averages):
    """Write sum w_i q_i / sum w_i over the nodes with mass, for points in cells from their block's low corner.

    Args:
        stencil: Tuple of as many zeros as the B-spline has nodes along an axis.
        place: Place of each point's block.
        position: Points in cells from grid node (0, 0, 0) of their block, shape (n, 3).
        near: Neighbours of the places.
        sums: What `add_to_nodes` filled.
        width: Values a node.
        averages: Averages, shape (n, K); zero where no node has mass.
    """
    parallel_for(_average_at_point, place.size, (stencil, place, position, near, sums, width, averages))
