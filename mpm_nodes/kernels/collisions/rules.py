"""The collision rule, the frames of posed bodies, and how blocks are shared among threads.

Symbols
    v, v_b      velocity of the matter, of the body                 m/s
    n           unit normal out of the body
    v_n, v_t    normal and tangential part of v - v_b               m/s
    mu_f        Coulomb friction coefficient                        -

The rule is that of Stomakhin 2013, section 8. Bodies are processed in order. Walls: normals point into the domain.
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.collisions.posing import sample_body
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.level_sets.level_set import KEY_LATTICES, KIND, LEVEL_SET, POSE, lattice_distance, sample_lattice

STICKY, SLIP, SEPARATE, OPEN, DELETE = range(5)

STRIPES = 32
"""Parts of the domain that every thread takes an even share of."""


# ---------------------------------------------------------------- the rule
@inline
def respond(rule, friction, normal, velocity, body):
    """Return the velocity after contact, as three values [m/s].

    Args:
        rule: STICKY, SLIP or SEPARATE.
        friction: mu_f, used by SEPARATE.
        normal: Unit normal out of the body, three values.
        velocity: Velocity of the matter, three values [m/s].
        body: Velocity of the body, three values [m/s].

    Neither |v_t| nor the speed relative to the body ever grows.
    """
    (nx, ny, nz), (vx, vy, vz), (bx, by, bz) = normal, velocity, body
    if rule == STICKY:
        return bx, by, bz
    rx, ry, rz = vx - bx, vy - by, vz - bz
    vn = rx * nx + ry * ny + rz * nz
    zero = vn - vn
    if rule == SEPARATE and vn >= zero:
        return vx, vy, vz
    tx, ty, tz = rx - vn * nx, ry - vn * ny, rz - vn * nz
    if rule == SEPARATE and friction > zero:
        speed = (tx * tx + ty * ty + tz * tz) ** type(vn)(0.5)
        if speed <= -friction * vn:
            return bx, by, bz
        keep = (speed + friction * vn) / speed
        tx, ty, tz = keep * tx, keep * ty, keep * tz
    return bx + tx, by + ty, bz + tz


# ---------------------------------------------------------------- frames
@inline
def to_body(b, end, x0, x1, x2, real):
    """Return y = R^T (x - t) for the pose at the start (0) or end (1) of the substep."""
    p = POSE + 12 * end
    d0, d1, d2 = x0 - real[b, p + 9], x1 - real[b, p + 10], x2 - real[b, p + 11]
    return (
        real[b, p] * d0 + real[b, p + 3] * d1 + real[b, p + 6] * d2,
        real[b, p + 1] * d0 + real[b, p + 4] * d1 + real[b, p + 7] * d2,
        real[b, p + 2] * d0 + real[b, p + 5] * d1 + real[b, p + 8] * d2,
    )


@part
def world_normal(b, s, g0, g1, g2, real):
    """Return the unit world normal of a gradient in the body's frame; zeros where there is none."""
    p = POSE if s < 0.5 else POSE + 12
    n0 = real[b, p] * g0 + real[b, p + 1] * g1 + real[b, p + 2] * g2
    n1 = real[b, p + 3] * g0 + real[b, p + 4] * g1 + real[b, p + 5] * g2
    n2 = real[b, p + 6] * g0 + real[b, p + 7] * g1 + real[b, p + 8] * g2
    length = np.sqrt(n0 * n0 + n1 * n1 + n2 * n2)
    if length < 1e-9:
        return 0.0, 0.0, 0.0
    return n0 / length, n1 / length, n2 / length


@compiled(fastmath=False)
def sample(b, s, y0, y1, y2, bodies):
    """Return what `sample_body` does, a level set that does not change shape at first hand."""
    integer = bodies.integer
    lattice = integer[b, KEY_LATTICES]
    if integer[b, KIND] == LEVEL_SET and lattice == integer[b, KEY_LATTICES + 1] and lattice == integer[b, KEY_LATTICES + 3]:
        return sample_lattice(lattice, y0, y1, y2, bodies)
    return sample_body(b, s, y0, y1, y2, bodies)


@part
def signed_distance(b, s, y0, y1, y2, bodies):
    """Return the first of what `sample` does: phi [m]."""
    integer = bodies.integer
    lattice = integer[b, KEY_LATTICES]
    if integer[b, KIND] == LEVEL_SET and lattice == integer[b, KEY_LATTICES + 1] and lattice == integer[b, KEY_LATTICES + 3]:
        return lattice_distance(lattice, y0, y1, y2, bodies)
    return sample_body(b, s, y0, y1, y2, bodies)[0]


# ---------------------------------------------------------------- sharing blocks among threads
@inline
def striped_places(blocks):
    """Return how many places `striped` must be asked for."""
    return -(-blocks // STRIPES) * STRIPES


@inline
def striped(place, blocks):
    """Return the block at a place, `blocks` or more for none.

    Neighbouring places are blocks far apart: each thread takes a run of places, and contacts gather in a part of the domain.
    """
    return place % STRIPES * -(-blocks // STRIPES) + place // STRIPES
