"""What lies around a place, sixteen particles at a time: runs of sorted particles, and how far they are.

A column of bins holds one run of sorted particles. Places that follow each other mostly share their bins, so the runs are looked
for again only where the bins change.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.arithmetic import broadcast
from mpm_nodes.kernels.lanes.indexed import to_single
from mpm_nodes.kernels.lanes.memory import lane_index, load, one_lane, shuffle_by
from mpm_nodes.kernels.lanes.types import WIDTH
from mpm_nodes.kernels.level_sets.regions import pack_key
from mpm_nodes.kernels.surfaces.splat import SortedParticles, _floor, _lower_bound

_MOST = 36
"""Most columns of bins within two edges of a place: five by five, and one more each way where rounding says so."""
_EDGES = 2.0 + 1e-9
"""How far can be looked, in edges of a bin; rounding may make a little more of two."""
_BOUNDS = 7
"""Bounds of the bins that were looked at last, two each way, and how many runs are in them."""
_EIGHT, _FOUR, _TWO, _ONE = (shuffle_by([(lane + half) % WIDTH for lane in range(WIDTH)]) for half in (8, 4, 2, 1))
"""Lanes turned round by as many."""


class Columns(NamedTuple):
    """`SortedParticles` as kernels on lanes take them: one coordinate after the other, with room for whole lanes at the end.

    Attributes:
        keys: Key of each particle's bin, rising, shape (n,), int64.
        x: [m], shape (n + 16,), float64.
        y: The same.
        z: The same.
        inverse: One over the edge of a bin [1/m].
    """

    keys: np.ndarray
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    inverse: float


def in_columns(bins: SortedParticles, reach: float) -> Columns:
    """Return sorted particles as kernels on lanes take them, which look as far as `reach` [m].

    Raises:
        ValueError: That is more than two edges of a bin: `find_runs` has no room for so many.
    """
    if reach > _EDGES * bins.edge:
        raise ValueError(f"bins of {bins.edge:g} m: no particle can be looked for {reach:g} m away; make them larger")
    held = np.zeros((3, len(bins.positions) + WIDTH))
    held[:, : len(bins.positions)] = bins.positions.T
    return Columns(bins.keys, held[0], held[1], held[2], 1.0 / bins.edge)


@inline
def no_runs():
    """Return bounds that hold no bin, and room for runs, as `find_runs` takes them; each thread has its own."""
    bounds = np.zeros(_BOUNDS, np.int64)
    bounds[0] = 1  # the first bin after the last: no place asks for that
    return bounds, np.empty((_MOST, 2), np.int64)


@inline
def find_runs(particles, place, reach, bounds, runs):
    """Return how many runs of particles fill the bins within `reach` of a place, and write where each begins and ends.

    Args:
        particles: `Columns`.
        place: x, y, z [m].
        reach: At most two edges of a bin [m].
        bounds: From `no_runs`, or of the last place.
        runs: First row, and the row after the last.
    """
    (x, y, z), keys, inverse = place, particles[0], particles[4]
    i, j, k = _floor((x - reach) * inverse), _floor((y - reach) * inverse), _floor((z - reach) * inverse)
    i_last, j_last, k_last = _floor((x + reach) * inverse), _floor((y + reach) * inverse), _floor((z + reach) * inverse)
    same = bounds[0] == i and bounds[1] == i_last and bounds[2] == j and bounds[3] == j_last
    if same and bounds[4] == k and bounds[5] == k_last:
        return bounds[6]
    count = 0
    for bi in range(i, i_last + 1):
        for bj in range(j, j_last + 1):
            first, last = pack_key(bi, bj, k), pack_key(bi, bj, k_last)
            begin = _lower_bound(keys, first)
            end = begin
            while end < len(keys) and keys[end] <= last:
                end += 1
            if begin < end:
                runs[count, 0], runs[count, 1] = begin, end
                count += 1
    bounds[0], bounds[1], bounds[2], bounds[3], bounds[4], bounds[5] = i, i_last, j, j_last, k, k_last
    bounds[6] = count
    return count


@inline
def apart(columns, row, end, place):
    """Return the ways from a place to sixteen particles from `row` on [m], float32, and which of them come before `end`."""
    x, y, z = load(columns[1], row), load(columns[2], row), load(columns[3], row)
    dx = to_single(x - broadcast(x, place[0]))
    dy = to_single(y - broadcast(y, place[1]))
    dz = to_single(z - broadcast(z, place[2]))
    return dx, dy, dz, lane_index(dx) < broadcast(dx, end - row)


@inline
def sum_of(x):
    """Return the sum of sixteen lanes, by halves: four additions that wait for each other, and not sixteen."""
    x = x + _EIGHT(x, x)
    x = x + _FOUR(x, x)
    x = x + _TWO(x, x)
    return one_lane(x + _ONE(x, x), 0)
