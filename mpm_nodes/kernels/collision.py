"""The collision rule, and collisions of grid nodes with posed bodies and domain walls.

Symbols
    v, v_b      velocity of the matter, of the body                 m/s
    n           unit normal out of the body
    v_n, v_t    normal and tangential part of v - v_b               m/s
    mu_f        Coulomb friction coefficient                        -

The rule is that of Stomakhin 2013, section 8. Bodies are processed in order. Walls: normals point into the domain.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from mpm_nodes.kernels.jit import inline, kernel
from mpm_nodes.kernels.level_set import FRICTION, POSE, RULE, Bodies
from mpm_nodes.kernels.posing import body_velocity, sample_body

STICKY, SLIP, SEPARATE, OPEN, DELETE = range(5)


# ---------------------------------------------------------------- the rule
@inline
def respond(rule, friction, nx, ny, nz, vx, vy, vz, bx, by, bz):
    """Return the velocity after contact, as three values [m/s].

    Args:
        rule: STICKY, SLIP or SEPARATE.
        friction: mu_f, used by SEPARATE.
        nx, ny, nz: Unit normal out of the body.
        vx, vy, vz: Velocity of the matter [m/s].
        bx, by, bz: Velocity of the body [m/s].

    Neither |v_t| nor the speed relative to the body ever grows.
    """
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
    return (real[b, p] * d0 + real[b, p + 3] * d1 + real[b, p + 6] * d2,
            real[b, p + 1] * d0 + real[b, p + 4] * d1 + real[b, p + 7] * d2,
            real[b, p + 2] * d0 + real[b, p + 5] * d1 + real[b, p + 8] * d2)


@kernel(fastmath=False)
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


# ---------------------------------------------------------------- grid nodes
@kernel(parallel=True, fastmath=False)
def collide_grid_nodes(
    velocity, momentum, coord, h, shift, dt, walls, wall_rules,
    integer, real, lattice_integer, lattice_real, table, coarse, values, velocities, coarse_velocities,
):
    """Apply the rules to every grid node with mass on or in a body or wall, at the end of the substep.

    Args:
        velocity: Nodes' (vx, vy, vz, 0), flat, changed in place [m/s].
        momentum: Nodes' (px, py, pz, m), flat: nodes without mass are left alone.
        coord: Grid blocks, shape (n, 3), int32.
        h: Grid spacing [m].
        shift: Grid origin in the frame of the bodies, shape (3,) [m].
        dt: Substep [s].
        walls: Box corners (2, 3) in the frame of the bodies [m].
        wall_rules: Rules of the sides -x +x -y +y -z +z and one friction, shape (7,), float64.
        integer ... coarse_velocities: The arrays of `Bodies`.
    """
    bodies = Bodies(integer, real, lattice_integer, lattice_real, table, coarse, values, velocities, coarse_velocities)
    for block in prange(coord.shape[0]):
        _collide_grid_block(block, velocity, momentum, coord, h, shift, dt, walls, wall_rules, bodies)


@kernel(fastmath=False)
def _collide_grid_block(block, velocity, momentum, coord, h, shift, dt, walls, wall_rules, bodies):
    base0, base1, base2 = 4 * coord[block, 0], 4 * coord[block, 1], 4 * coord[block, 2]
    m0, m1, m2 = shift[0] + h * (base0 + 1.5), shift[1] + h * (base1 + 1.5), shift[2] + h * (base2 + 1.5)
    radius = 2.6 * h  # half the diagonal of 4^3 nodes is 2.598 h
    for b in range(bodies.real.shape[0]):
        c0, c1, c2 = to_body(b, 1, m0, m1, m2, bodies.real)
        if sample_body(b, 1.0, c0, c1, c2, bodies)[0] > radius:
            continue
        for node in range(64):
            at = (block * 64 + node) * 4
            if momentum[at + 3] <= 0.0:
                continue
            x0 = shift[0] + h * (base0 + (node >> 4))
            x1 = shift[1] + h * (base1 + ((node >> 2) & 3))
            x2 = shift[2] + h * (base2 + (node & 3))
            y0, y1, y2 = to_body(b, 1, x0, x1, x2, bodies.real)
            phi, g0, g1, g2 = sample_body(b, 1.0, y0, y1, y2, bodies)
            if phi > 0.0:
                continue
            n0, n1, n2 = world_normal(b, 1.0, g0, g1, g2, bodies.real)
            w0, w1, w2 = body_velocity(b, dt, y0, y1, y2, bodies)
            r0, r1, r2 = respond(
                bodies.integer[b, RULE], bodies.real[b, FRICTION], n0, n1, n2,
                float(velocity[at]), float(velocity[at + 1]), float(velocity[at + 2]), w0, w1, w2)
            velocity[at], velocity[at + 1], velocity[at + 2] = r0, r1, r2
    for side in range(6):
        rule = int(wall_rules[side])
        if rule < OPEN:
            _wall_block(block, side, rule, velocity, momentum, (base0, base1, base2), h, shift, walls, wall_rules[6])


@kernel(fastmath=False)
def _wall_block(block, side, rule, velocity, momentum, base, h, shift, walls, friction):
    """Apply one wall to the nodes of a block that lie on or beyond its plane (within a millionth of a cell)."""
    axis, sign = side >> 1, 1.0 - 2.0 * (side & 1)
    n0, n1, n2 = sign if axis == 0 else 0.0, sign if axis == 1 else 0.0, sign if axis == 2 else 0.0
    low = base[0] if axis == 0 else (base[1] if axis == 1 else base[2])
    for layer in range(4):
        beyond = sign * (shift[axis] + h * (low + layer) - walls[side & 1, axis])
        if beyond > 1e-6 * h:
            continue
        for rest in range(16):
            if axis == 0:
                node = 16 * layer + rest
            elif axis == 1:
                node = 16 * (rest >> 2) + 4 * layer + (rest & 3)
            else:
                node = 4 * rest + layer
            at = (block * 64 + node) * 4
            if momentum[at + 3] > 0.0:
                r0, r1, r2 = respond(rule, friction, n0, n1, n2, float(velocity[at]), float(velocity[at + 1]),
                                     float(velocity[at + 2]), 0.0, 0.0, 0.0)
                velocity[at], velocity[at + 1], velocity[at + 2] = r0, r1, r2


