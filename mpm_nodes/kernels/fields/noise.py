"""Gradient noise in space and time: one that a number varies by, and one whose curl has no divergence.

| symbol | meaning | unit |
|---|---|---|
| x, y, z, w | place in lattice cells, and time in lattice times | - |
| i, j, k, m | corner of the lattice | - |
| g | gradient of a corner, one of (+-1, +-1, +-1, 0) and its permutations | - |
| b(t) | 6 t^5 - 15 t^4 + 10 t^3 | - |

    n(x) = sum over the 16 corners of b b b b g . (x - corner)          Perlin 2002, in four dimensions
    u = curl (n_1, n_2, n_3)                                            Bridson and Hourihan 2007, eq. 1

Corners are hashed from integers alone, so that noise is the same on every machine. Octaves halve the amplitude and the size.
"""

from __future__ import annotations

import math

from mpm_nodes.kernels.compile.jit import part

__all__ = ["curl_noise", "gradient_noise"]

MASK = 0xFFFFFFFF
PRIMES = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)
"""One a coordinate and one for the seed: what they multiply differs in all bits."""


@part
def _mixed(h):
    """Return 32 mixed bits of what the coordinates of a corner and the seed are joined to."""
    h = h & MASK
    h = ((h ^ (h >> 16)) * 0x7FEB352D) & MASK
    h = ((h ^ (h >> 15)) * 0x846CA68B) & MASK
    return h ^ (h >> 16)


@part
def _wrapped(corner, period):
    """Return a corner's number where the noise repeats after `period` cells; 0: it does not."""
    return corner % period if period > 0 else corner


@part
def _corner_gradient(bits):
    """Return the gradient that six bits stand for."""
    void = bits & 3
    return (
        float(1 - ((bits >> 1) & 2)) * (void != 0),
        float(1 - ((bits >> 2) & 2)) * (void != 1),
        float(1 - ((bits >> 3) & 2)) * (void != 2),
        float(1 - ((bits >> 4) & 2)) * (void != 3),
    )


@part
def _blend(t):
    return t * t * t * (t * (6.0 * t - 15.0) + 10.0)


@part
def _blend_slope(t):
    return 30.0 * t * t * (t - 1.0) * (t - 1.0)


@part
def _one_octave(x, y, z, w, seed, periods):
    fx, fy, fz, fw = math.floor(x), math.floor(y), math.floor(z), math.floor(w)
    i, j, k, m = int(fx), int(fy), int(fz), int(fw)
    x, y, z, w = x - fx, y - fy, z - fz, w - fw
    bx, by, bz, bw = _blend(x), _blend(y), _blend(z), _blend(w)
    total = 0.0
    for d in range(2 if w > 0.0 else 1):
        at_w, by_w = ((m + d) * PRIMES[3]) ^ (seed * PRIMES[4]), bw if d else 1.0 - bw
        for c in range(2):
            at_z, by_z = at_w ^ (_wrapped(k + c, periods[2]) * PRIMES[2]), by_w * (bz if c else 1.0 - bz)
            for b in range(2):
                at_y, by_y = at_z ^ (_wrapped(j + b, periods[1]) * PRIMES[1]), by_z * (by if b else 1.0 - by)
                for a in range(2):
                    gx, gy, gz, gw = _corner_gradient(_mixed(at_y ^ (_wrapped(i + a, periods[0]) * PRIMES[0])))
                    weight = by_y * (bx if a else 1.0 - bx)
                    total += weight * (gx * (x - a) + gy * (y - b) + gz * (z - c) + gw * (w - d))
    return total


@part
def gradient_noise(x, y, z, w, seed, octaves, periods, rough):
    """Return noise with a mean of 0; one octave lies within -1.5 and 1.5, mostly within -0.5 and 0.5.

    Args:
        x, y, z: Place [lattice cells].
        w: Time [lattice times].
        seed: Of the corners.
        octaves: How many, each of half the size and amplitude.
        periods: Cells after which it repeats along x, y and z; 0: never.
        rough: Whether the octaves' absolute values are summed up.
    """
    total, size, share = 0.0, 1.0, 1.0
    for octave in range(octaves):
        wide = periods[0] << octave, periods[1] << octave, periods[2] << octave
        value = _one_octave(size * x, size * y, size * z, size * w, seed + octave, wide)
        total += share * (abs(value) if rough else value)
        size, share = 2.0 * size, 0.5 * share
    return total


@part
def _one_curl(x, y, z, w, seed, periods):
    fx, fy, fz, fw = math.floor(x), math.floor(y), math.floor(z), math.floor(w)
    i, j, k, m = int(fx), int(fy), int(fz), int(fw)
    x, y, z, w = x - fx, y - fy, z - fz, w - fw
    bx, by, bz, bw = _blend(x), _blend(y), _blend(z), _blend(w)
    sx, sy, sz = _blend_slope(x), _blend_slope(y), _blend_slope(z)
    u = v = r = 0.0
    for corner in range(16 if w > 0.0 else 8):
        a, b, c, d = corner & 1, (corner >> 1) & 1, (corner >> 2) & 1, corner >> 3
        wx, wy, wz = bx if a else 1.0 - bx, by if b else 1.0 - by, bz if c else 1.0 - bz
        ww = bw if d else 1.0 - bw
        dx, dy, dz = sx if a else -sx, sy if b else -sy, sz if c else -sz
        px, py, pz, pw = x - a, y - b, z - c, w - d
        joined = (_wrapped(i + a, periods[0]) * PRIMES[0]) ^ (_wrapped(j + b, periods[1]) * PRIMES[1])
        joined ^= (_wrapped(k + c, periods[2]) * PRIMES[2]) ^ ((m + d) * PRIMES[3]) ^ (seed * PRIMES[4])
        bits = _mixed(joined)
        weight, along_x, along_y, along_z = ww * wx * wy * wz, ww * dx * wy * wz, ww * wx * dy * wz, ww * wx * wy * dz
        g1x, g1y, g1z, g1w = _corner_gradient(bits)
        g2x, g2y, g2z, g2w = _corner_gradient(bits >> 8)
        g3x, g3y, g3z, g3w = _corner_gradient(bits >> 16)
        n1 = g1x * px + g1y * py + g1z * pz + g1w * pw
        n2 = g2x * px + g2y * py + g2z * pz + g2w * pw
        n3 = g3x * px + g3y * py + g3z * pz + g3w * pw
        u += along_y * n3 + weight * g3y - along_z * n2 - weight * g2z
        v += along_z * n1 + weight * g1z - along_x * n3 - weight * g3x
        r += along_x * n2 + weight * g2x - along_y * n1 - weight * g1y
    return u, v, r


@part
def curl_noise(x, y, z, w, seed, octaves, periods):
    """Return the curl of three noises: a vector without divergence, each octave of half the size and half the amplitude.

    Args:
        x, y, z: Place [lattice cells].
        w: Time [lattice times].
        seed: Of the corners.
        octaves: How many.
        periods: Cells after which it repeats along x, y and z; 0: never.
    """
    u = v = r = 0.0
    size, share = 1.0, 1.0
    for octave in range(octaves):
        wide = periods[0] << octave, periods[1] << octave, periods[2] << octave
        a, b, c = _one_curl(size * x, size * y, size * z, size * w, seed + octave, wide)
        u, v, r = u + share * a, v + share * b, r + share * c
        size, share = 2.0 * size, 0.5 * share
    return u, v, r
