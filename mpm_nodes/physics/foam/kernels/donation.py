"""Mass and volume of new particles, by donation of those around them (Y15 algorithm 19).

| symbol | meaning | unit |
|---|---|---|
| r | radius of a particle's sphere, half a grid cell; lengths in the bins are in r | m |
| N | donors of a sample: particles of its material closer than r; than 1.5 r or 2 r where there are none | - |
| dm | what a donor gives: 1/(N + 1) of its mass | kg |

Samples give and take one after the other, so that each sees what the ones before it left. Sums are in float64, and written so:
in a kernel `float` of a single-precision number stays one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.cells.bins import Bins, in_block
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.lend import lend
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.physics.foam.kernels.darts import Samples

RADII = np.array([1.0, 1.5, 2.0])
"""Search radii for donors [r], one after the other."""
ROOM = 1024
"""Particles around a sample that are looked at; a uniform filling has 34."""
CHUNK = 32
"""Samples looked at one after the other, with one list of those."""


class Matter(NamedTuple):
    """Rows of the particles that may give.

    Attributes:
        offset: Fixed-point offsets.
        velocity: Velocity [m/s].
        affine: Affine velocity [1/s]; empty where the transfer has none.
        mass: Mass [kg]; lowered by donation.
        volume: Volume [m^3]; lowered by donation.
    """

    offset: np.ndarray
    velocity: np.ndarray
    affine: np.ndarray
    mass: np.ndarray
    volume: np.ndarray


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


def donate(bins: Bins, samples: Samples, matter: Matter, stride: int, shift: int, r: float, inertia: float) -> Gifts:
    """Take mass and volume of every sample from the particles around it.

    Args:
        bins: The particles.
        samples: The new samples.
        matter: What the particles are; those that give become lighter.
        stride: Distance of rows.
        shift: Bits of the offsets.
        r: Half a grid cell [m].
        inertia: D of the transfer's B-spline [m^2].
    """
    n = len(samples.slot)
    gifts = Gifts(np.zeros(n, np.int64), np.zeros(n), np.zeros(n), *(np.zeros((n, 3)) for _ in range(3)))
    _donate(bins, samples, matter, stride, 2.0 / (1 << shift), float(r), float(inertia), gifts)
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
        found = _particles_around(
            bins, samples.slot[n], samples.position[n, 0], samples.position[n, 1], samples.position[n, 2], near, away
        )
        if found:
            nearest[n] = bins.index[near[_least(away, found)]]


@compiled(fastmath=False)
def _find_nearest(bins, samples, nearest):
    parallel_for(_find_nearest_at, (nearest.size + CHUNK - 1) // CHUNK, (lend(bins), lend(samples), nearest))


@inline
def _least(away, found):
    least = 0
    for c in range(1, found):
        if away[c] < away[least]:
            least = c
    return least


@compiled(fastmath=False)
def _donate(bins, samples, matter, stride, unit, r, inertia, gifts):
    offset, giving, given = matter.offset, lend(matter), lend(gifts)
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
                _give(q, (dx, dy, dz), donors, giving, inertia, stride, given, n)


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
def _give(q, away, donors, matter, inertia, stride, gifts, n):
    """Let donor q, `away` [m] from sample n, give 1/(N + 1) of its mass and volume, and what they carry."""
    dx, dy, dz = away
    velocity, affine, mass, volume = matter.velocity, matter.affine, matter.mass, matter.volume
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
