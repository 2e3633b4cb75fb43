"""What a new particle gets from those around it: mass and volume by donation (Y15 algorithm 19), fields by averages on the
grid (Y15 algorithm 20).

| symbol | meaning | unit |
|---|---|---|
| r | radius of a particle's sphere, half a grid cell; lengths in the bins are in r | m |
| N | donors of a sample: particles of its material closer than r; than 1.5 r or 2 r where there are none | - |
| dm | what a donor gives: 1/(N + 1) of its mass | kg |
| w_iq | weight of particle q at node i | - |
| q_i | average of a field at node i, sum w_iq m_q q_q / sum w_iq m_q | |

Samples give and take one after the other, so that each sees what the ones before it left. Sums are in float64, and written so:
in a kernel `float` of a single-precision number stays one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels import mat3
from mpm_nodes.kernels.jit import inline, kernel, part
from mpm_nodes.kernels.lane_memory import load, store
from mpm_nodes.kernels.lane_types import WIDTH
from mpm_nodes.kernels.lanes import broadcast, fma
from mpm_nodes.kernels.lend import lend
from mpm_nodes.kernels.parallel import parallel_for
from mpm_nodes.kernels.void_bins import Bins, in_block
from mpm_nodes.kernels.void_darts import Samples
from mpm_nodes.kernels.weights import by_width, weights

RADII = np.array([1.0, 1.5, 2.0])
"""Search radii for donors [r], one after the other."""
ROOM = 1024
"""Particles around a sample that are looked at; a uniform filling has 34."""
CHUNK = 32
"""Samples looked at one after the other, with one list of those."""


class Gifts(NamedTuple):
    """What the donors of each sample gave.

    Attributes:
        donors: Number of donors, 0 where a sample found none, int64.
        mass: Mass [kg].
        volume: Undeformed volume [m^3].
        momentum: sum dm v [kg m/s], shape (n, 3).
        spin: sum dm ((x_q - x) x v_q + D curl_q) [kg m^2/s], shape (n, 3), where D curl is what APIC carries.
        moment: sum dm (x - x_q) [kg m], shape (n, 3): how the sample moves the centre of mass.
    """

    donors: np.ndarray
    mass: np.ndarray
    volume: np.ndarray
    momentum: np.ndarray
    spin: np.ndarray
    moment: np.ndarray


def donate(bins: Bins, samples: Samples, offset: np.ndarray, stride: int, shift: int, r: float, velocity: np.ndarray,
           affine: np.ndarray, inertia: float, mass: np.ndarray, volume: np.ndarray) -> Gifts:
    """Take mass and volume of every sample from the particles around it.

    Args:
        bins: The particles.
        samples: The new samples.
        offset: Fixed-point offsets.
        stride: Distance of rows.
        shift: Bits of the offsets.
        r: Half a grid cell [m].
        velocity: Rows of the velocity [m/s].
        affine: Rows of the affine velocity [1/s]; empty where the transfer has none.
        inertia: D of the transfer's B-spline [m^2].
        mass: Rows of the mass [kg]; lowered.
        volume: Rows of the volume [m^3]; lowered.
    """
    n = len(samples.slot)
    gifts = Gifts(np.zeros(n, np.int64), np.zeros(n), np.zeros(n), *(np.zeros((n, 3)) for _ in range(3)))
    _donate(bins, samples, offset, stride, 2.0 / (1 << shift), float(r), velocity, affine, float(inertia), mass, volume, gifts)
    return gifts


def nearest_particles(bins: Bins, samples: Samples) -> np.ndarray:
    """Return the particle nearest to each sample, int64; there is one closer than 2 r wherever the distance is negative."""
    nearest = np.zeros(len(samples.slot), np.int64)
    _find_nearest(bins, samples, nearest)
    return nearest


@part
def _find_nearest_at(chunk, bins, samples, nearest):
    near, away = np.empty(ROOM, np.int64), np.empty(ROOM)
    for n in range(CHUNK * chunk, min(CHUNK * chunk + CHUNK, nearest.size)):
        found = _particles_around(bins, samples.slot[n], samples.position[n, 0], samples.position[n, 1], samples.position[n, 2],
                                  near, away)
        if found:
            nearest[n] = bins.index[near[_least(away, found)]]


@kernel(fastmath=False)
def _find_nearest(bins, samples, nearest):
    parallel_for(_find_nearest_at, (nearest.size + CHUNK - 1) // CHUNK, (lend(bins), lend(samples), nearest))


@inline
def _least(away, found):
    least = 0
    for c in range(1, found):
        if away[c] < away[least]:
            least = c
    return least


@kernel(fastmath=False)
def _donate(bins, samples, offset, stride, unit, r, velocity, affine, inertia, mass, volume, gifts):
    near, away = np.empty(ROOM, np.int64), np.empty(ROOM)
    for n in range(samples.slot.size):
        x, y, z = samples.position[n, 0], samples.position[n, 1], samples.position[n, 2]
        found = _particles_around(bins, samples.slot[n], x, y, z, near, away)
        if found == 0:
            continue
        kind = bins.material[near[_least(away, found)]]
        donors = 0
        for reach in RADII:
            donors = 0
            for c in range(found):
                donors += bins.material[near[c]] == kind and away[c] < reach * reach
            if donors:
                break
        gifts.donors[n] = donors
        for c in range(found):
            if donors and bins.material[near[c]] == kind and away[c] < reach * reach:
                q = bins.index[near[c]]
                i, j, k = _side(bins, samples.slot[n], near[c])
                dx = r * (offset[q] * unit + (8 * i + 4) - x)
                dy = r * (offset[stride + q] * unit + (8 * j + 4) - y)
                dz = r * (offset[2 * stride + q] * unit + (8 * k + 4) - z)
                _give(q, dx, dy, dz, donors, velocity, affine, inertia, stride, mass, volume, gifts, n)


@inline
def _particles_around(bins, slot, x, y, z, near, away):
    """List the rows of the bins closer than 2 r and their squared distances; return how many."""
    start, slots, xs, ys, zs = bins.start, bins.near[slot], bins.x, bins.y, bins.z
    found = 0
    i, j, k = min(int(x), 7), min(int(y), 7), min(int(z), 7)
    for a in range(i - 2, i + 3):
        for b in range(j - 2, j + 3):
            for c in range(k - 2, k + 3):
                n, cell = in_block(a, b, c)
                q = slots[n]
                if q >= 0:
                    for row in range(start[512 * q + cell], start[512 * q + cell + 1]):
                        dx = np.float64(xs[row]) - x + (a - (a & 7))
                        dy = np.float64(ys[row]) - y + (b - (b & 7))
                        dz = np.float64(zs[row]) - z + (c - (c & 7))
                        square = dx * dx + dy * dy + dz * dz
                        if square < 4.0 and found < near.size:
                            near[found], away[found] = row, square
                            found += 1
    return found


@inline
def _side(bins, slot, row):
    """Return on which side of a slot's block a row of the bins lies: -1, 0 or 1 block along each axis."""
    for m in range(27):
        b = bins.near[slot, m]
        if b >= 0 and bins.start[512 * b] <= row < bins.start[512 * b + 512]:
            return m // 9 - 1, m // 3 % 3 - 1, m % 3 - 1
    return 0, 0, 0


@inline
def _give(q, dx, dy, dz, donors, velocity, affine, inertia, stride, mass, volume, gifts, n):
    """Let donor q, at (dx, dy, dz) [m] from sample n, give 1/(N + 1) of its mass and volume, and what they carry."""
    old_mass, old_volume = mass[q], volume[q]
    mass[q], volume[q] = old_mass * donors / (donors + 1), old_volume * donors / (donors + 1)
    dm = np.float64(old_mass) - np.float64(mass[q])  # what is really gone, so that nothing is lost to rounding
    gifts.mass[n] += dm
    gifts.volume[n] += np.float64(old_volume) - np.float64(volume[q])
    u, v, w = np.float64(velocity[q]), np.float64(velocity[stride + q]), np.float64(velocity[2 * stride + q])
    gifts.momentum[n, 0] += dm * u
    gifts.momentum[n, 1] += dm * v
    gifts.momentum[n, 2] += dm * w
    gifts.moment[n, 0] -= dm * dx
    gifts.moment[n, 1] -= dm * dy
    gifts.moment[n, 2] -= dm * dz
    gifts.spin[n, 0] += dm * (dy * w - dz * v)
    gifts.spin[n, 1] += dm * (dz * u - dx * w)
    gifts.spin[n, 2] += dm * (dx * v - dy * u)
    if affine.size > 9:
        gifts.spin[n, 0] += dm * inertia * (np.float64(affine[7 * stride + q]) - np.float64(affine[5 * stride + q]))
        gifts.spin[n, 1] += dm * inertia * (np.float64(affine[2 * stride + q]) - np.float64(affine[6 * stride + q]))
        gifts.spin[n, 2] += dm * inertia * (np.float64(affine[3 * stride + q]) - np.float64(affine[stride + q]))


# ---------------------------------------------------------------- fields
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


@part
def _stack_rows_at(run, arrays, rows, stride, determinants, ranges, first_row, fields, width):
    _stack_run(arrays, rows, stride, determinants, ranges[run, 0], ranges[run, 1], first_row[run], fields, width)


@kernel
def stack_rows(arrays, rows, stride, determinants, ranges, first_row, fields, width):
    """Write attributes of the particles of some runs side by side: 1, then their rows, then determinants, then zeros.

    Args:
        arrays: Tuple of the attributes' arrays.
        rows: Rows of each.
        stride: Distance of rows.
        determinants: Columns where matrices start whose determinants are wanted.
        ranges: (begin, end, ...) of every run.
        first_row: Where each run starts in `fields`, counted in particles.
        fields: Values, `width` a particle, flat.
        width: A multiple of sixteen.
    """
    parallel_for(_stack_rows_at, ranges.shape[0], (arrays, rows, stride, determinants, ranges, first_row, fields, width))


@inline
def _stack_run(arrays, rows, stride, determinants, begin, end, first_row, fields, width):
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
def _add_to_nodes_at(c, stencil, offset, stride, inverse_unit, mass, arrays, rows, determinants, width, ranges, near, of_slot,
                     chosen, wanted, sums):
    run = chosen[c]
    begin, end = ranges[run, 0], ranges[run, 1]
    fields = np.empty((end - begin) * width, sums.dtype)  # of one block: it stays in the cache
    _stack_run(arrays, rows, stride, determinants, begin, end, np.int64(0), fields, width)
    _add_run(stencil, offset, stride, inverse_unit, mass, fields, np.int64(width), begin, end, near[of_slot[ranges[run, 2]]],
             wanted, sums)


@kernel(fastmath=False)
def add_to_nodes(stencil, offset, stride, inverse_unit, mass, arrays, rows, determinants, width, ranges, near, of_slot, chosen,
                 wanted, sums):
    """Add w m times the values of some runs of particles to the nodes of their places; the runs must not share nodes.

    Args:
        stencil: Tuple of as many zeros as the B-spline has nodes along an axis.
        offset: Fixed-point offsets.
        stride: Distance of rows.
        inverse_unit: Cells per unit of the offsets.
        mass: Rows of the mass [kg].
        arrays: The attributes, as for `stack_rows`.
        rows: Rows of each.
        determinants: Columns where matrices start whose determinants are wanted.
        width: Values a particle, and a node.
        ranges: (begin, end, slot) of every run.
        near: Neighbours of the places.
        of_slot: Place of each slot.
        chosen: Which of the runs to take.
        wanted: Whether the sums of a node matter, 64 nodes a place.
        sums: Sums, 64 nodes of `width` values a place, flat; the first is the mass.
    """
    parallel_for(_add_to_nodes_at, chosen.size, (
        stencil, offset, stride, inverse_unit, mass, arrays, rows, determinants, width, ranges, near, of_slot, chosen, wanted,
        sums))


@kernel(fastmath=False)
def _add_run(stencil, offset, stride, inverse_unit, mass, fields, width, begin, end, near, wanted, sums):
    shares, places = np.empty(64, sums.dtype), np.empty(64, np.int64)
    for p in range(begin, end):
        count = _shares(stencil, offset, stride, inverse_unit, mass, p, near, width, wanted, shares, places)
        for column in range(0, width, WIDTH):
            given = load(fields, (p - begin) * width + column)
            for n in range(count):
                at = places[n] + column
                store(sums, at, fma(given, broadcast(given, shares[n]), load(sums, at)))


@inline
def _shares(stencil, offset, stride, inverse_unit, mass, p, near, width, wanted, shares, places):
    """List w m of each wanted node of a particle's stencil, and where its values start; return how many nodes there are."""
    u, v, w = (offset[p] * inverse_unit + 3.5, offset[stride + p] * inverse_unit + 3.5, offset[2 * stride + p] * inverse_unit + 3.5)
    wx, wy, wz = _along(stencil, u), _along(stencil, v), _along(stencil, w)
    i, j, k = _first(stencil, u), _first(stencil, v), _first(stencil, w)
    count = 0
    for a in range(len(stencil)):
        for b in range(len(stencil)):
            flat = wx[a] * wy[b] * mass[p]
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


@kernel
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


@kernel(fastmath=False)
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
