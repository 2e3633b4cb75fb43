"""What of the matter stands in the wind: the area that each particle turns to it.

| symbol | meaning | unit |
|---|---|---|
| f | share of the space around that undeformed matter fills, trilinear between samples half a cell apart | - |
| d | direction in which the particle moves through the air | - |
| a, b | way through matter ahead of and behind the particle along d, within 2.5 cells, counted by f | cells |
| l | largest f on that way, 1 at most: below 1 beside an edge of the matter, and in a thin layer | - |
| q | way of the matter on the whole, (a + b) / l^(1/4) | cells |
| V0, h | undeformed volume, size of a cell | m^3, m |

    e = clip((1.4 - a / l) / 0.5, 0, 1) / max(E(q), 2/3 V0^(1/3) / h),    E(q) = q - clip(q - 0.9, 0, 0.5)^2,  q < 1.4

E is the integral of the share that counts over a layer of the thickness q, so that e V0 / h, summed up through any layer, is the
area across d: of thick matter a cell's depth is pushed, and a thin layer takes all of the force. No particle has more than the mean
cross-section of a cube of its volume, 3/2 V0^(2/3) (Cauchy). Beside edges two limits meet: that of a layer which fills half of its
cells, and that of matter which ends there; l^(1/4) lies between the two, and was chosen by plates, cubes and balls all around.
"""

from __future__ import annotations

import math

from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.lend import plain
from mpm_nodes.kernels.compile.parallel import parallel_for

__all__ = ["OWN", "SPREAD", "fill_samples", "gather_samples", "open_area", "thinnest"]

SPREAD = 13
"""Samples along each edge of what particles of a block fill: -2 to 10, its own are 0 to 7; particles drift out by a cell."""
OWN = 8
"""Samples of a block along each edge: half a cell apart, the first at its corner."""
STEP, STEPS = 0.25, 10
"""Length of a step along the wind [cells], and how many are taken to each side."""
WIDE = 0.55
"""Width of a particle from which on it is shared out as eight, so that there are no gaps between the samples [cells]."""
DEEP, BLUR = 1.4, 0.5
"""Depth beyond which matter is in the lee, and the last part of it over which that begins [cells]."""


@part
def _sample_of(at):
    """Return an offset from the centre of a block [cells] in samples from its corner, within what its particles may fill."""
    return min(max(2.0 * (at + 2.0), -2.0), 9.999)


@part
def _filling_at(home, x, y, z, around, samples):
    """Return f at a place in samples from the corner of a block, -7 to 15."""
    a, b, c = math.floor(x), math.floor(y), math.floor(z)
    i, j, k = int(a), int(b), int(c)
    x, y, z = x - a, y - b, z - c
    total = 0.0
    for corner in range(8):
        u, v, w = i + (corner >> 2), j + ((corner >> 1) & 1), k + (corner & 1)
        place = around[27 * home + 9 * ((u >> 3) + 1) + 3 * ((v >> 3) + 1) + (w >> 3) + 1]
        weight = (x if corner >> 2 else 1.0 - x) * (y if (corner >> 1) & 1 else 1.0 - y) * (z if corner & 1 else 1.0 - z)
        total += weight * samples[512 * place + 64 * (u & 7) + 8 * (v & 7) + (w & 7)]
    return total


@part
def thinnest(volume, size):
    """Return the thickness of a layer whose particles show all that one can: 2/3 V0^(1/3) / h."""
    return max(volume, 1e-30) ** (1.0 / 3.0) / (1.5 * size)


@part
def open_area(home, place, wind, around, samples, thin):
    """Return e of a particle.

    Args:
        home: Place of its block among those of `around`.
        place: Its offset from the block's centre [cells].
        wind: What it moves at through the air, of any unit.
        around: The places at and around each, 27 in the order x, y, z from -1 to 1, lent.
        samples: f, 8^3 a place, lent.
        thin: As `thinnest` returns it.
    """
    speed = math.sqrt(wind[0] * wind[0] + wind[1] * wind[1] + wind[2] * wind[2])
    if speed == 0.0:
        return 0.0
    x, y, z = _sample_of(place[0]), _sample_of(place[1]), _sample_of(place[2])
    u, v, w = 2.0 * STEP * wind[0] / speed, 2.0 * STEP * wind[1] / speed, 2.0 * STEP * wind[2] / speed
    most = _filling_at(home, x, y, z, around, samples)
    ahead = behind = 0.0
    for n in range(STEPS):
        found = _filling_at(home, x + (n + 0.5) * u, y + (n + 0.5) * v, z + (n + 0.5) * w, around, samples)
        ahead, most = ahead + STEP * found, max(most, found)
        if ahead >= DEEP:
            return 0.0
    for n in range(STEPS):
        found = _filling_at(home, x - (n + 0.5) * u, y - (n + 0.5) * v, z - (n + 0.5) * w, around, samples)
        behind, most = behind + STEP * found, max(most, found)
    most = min(max(most, 1e-6), 1.0)
    share = min(max((DEEP - ahead / most) / BLUR, 0.0), 1.0)
    whole = min((ahead + behind) / math.sqrt(math.sqrt(most)), DEEP)
    blurred = max(whole - (DEEP - BLUR), 0.0)
    return share / max(whole - 0.5 * blurred * blurred / BLUR, thin)


@part
def _share_out(share, x, y, z, first, filled):
    """Add to the samples around a place in samples from the corner of a block, straight."""
    a, b, c = math.floor(x), math.floor(y), math.floor(z)
    i, j, k = int(a) + 2, int(b) + 2, int(c) + 2
    x, y, z = x - a, y - b, z - c
    for corner in range(8):
        weight = (x if corner >> 2 else 1.0 - x) * (y if (corner >> 1) & 1 else 1.0 - y) * (z if corner & 1 else 1.0 - z)
        at = SPREAD * (SPREAD * (i + (corner >> 2)) + j + ((corner >> 1) & 1)) + k + (corner & 1)
        filled[first + at] += weight * share


@part
def _fill_at(k, placement, volume, ranges, size, filled):
    offset, stride, unit = placement
    block = ranges[k, 2]
    first = SPREAD * SPREAD * SPREAD * block
    for n in range(first, first + SPREAD * SPREAD * SPREAD):
        filled[n] = 0.0
    for p in range(ranges[k, 0], ranges[k, 1]):
        cells = float(volume[p]) / (size * size * size)
        parts = 8 if cells > WIDE * WIDE * WIDE else 1
        away = 0.25 * cells ** (1.0 / 3.0) if parts > 1 else 0.0
        share = 8.0 * cells / parts
        for n in range(parts):
            x = _sample_of(unit * offset[p] + (away if n >> 2 else -away))
            y = _sample_of(unit * offset[stride + p] + (away if (n >> 1) & 1 else -away))
            z = _sample_of(unit * offset[2 * stride + p] + (away if n & 1 else -away))
            _share_out(share, x, y, z, first, filled)


@compiled(fastmath=False)
def fill_samples(placement, volume, ranges, size, filled):
    """Share out undeformed matter to the samples around it, straight.

    Args:
        placement: Offsets from the centres of the blocks, elements from row to row, size of a unit of offsets [cells].
        volume: Shape (stride,) [m^3].
        ranges: First and last + 1 of the particles of each block, and the block, shape (n, 3).
        size: Of a cell [m].
        filled: Written: what the particles of each block add to f, `SPREAD`^3 a block, float64.
    """
    offset, stride, unit = placement
    parallel_for(_fill_at, ranges.shape[0], ((plain(offset), stride, unit), plain(volume), ranges, size, plain(filled)))


@part
def _gather_at(k, filled, around, samples):
    for n in range(512 * k, 512 * k + 512):
        samples[n] = 0.0
    for side in range(27):
        other = around[27 * k + side]
        if other < 0:
            continue
        a, b, c = side // 9 - 1, (side // 3) % 3 - 1, side % 3 - 1
        first = SPREAD * SPREAD * SPREAD * other
        for i in range(6 if a > 0 else 0, 3 if a < 0 else 8):
            for j in range(6 if b > 0 else 0, 3 if b < 0 else 8):
                for m in range(6 if c > 0 else 0, 3 if c < 0 else 8):
                    at = SPREAD * (SPREAD * (i - 8 * a + 2) + j - 8 * b + 2) + m - 8 * c + 2
                    samples[512 * k + 64 * i + 8 * j + m] += filled[first + at]


@compiled(fastmath=False)
def gather_samples(filled, around, samples):
    """Sum up f at the samples of each place, from what lies in it and around it.

    Args:
        filled: Of each place that holds blocks, as `fill_samples` gives it, summed up over them.
        around: Of each place, those at and around it that hold blocks, -1 for none, shape (27 places,), int32.
        samples: Written, shape (512 places,), float64.
    """
    parallel_for(_gather_at, samples.shape[0] // 512, (plain(filled), plain(around), plain(samples)))
