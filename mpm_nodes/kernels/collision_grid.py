"""Collisions of grid nodes with posed bodies and domain walls: the rule of `collision`, body by body in order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.collision import OPEN, respond, sample, striped, striped_places, to_body, world_normal
from mpm_nodes.kernels.collision_culling import FRAME_INTEGERS, FRAME_REALS, clear_lanes, write_frame
from mpm_nodes.kernels.jit import kernel, part
from mpm_nodes.kernels.lane_gather import mask_bits
from mpm_nodes.kernels.lane_memory import lane_constant, load_splat
from mpm_nodes.kernels.lanes import broadcast, const
from mpm_nodes.kernels.lend import lend
from mpm_nodes.kernels.level_set import FRICTION, RULE, Bodies
from mpm_nodes.kernels.parallel import parallel_for
from mpm_nodes.kernels.posing import body_velocity

NODE_Y, NODE_Z = lane_constant([n // 4 - 1.5 for n in range(16)]), lane_constant([n % 4 - 1.5 for n in range(16)])
"""Places of the sixteen nodes of a slice of a block, from its middle [cells]."""
HALF_DIAGONAL = 2.6
"""No node of a block is farther from its middle [cells]."""
ALL_CLEAR = 65535
"""Bits of sixteen nodes that lie outside."""


class ContactList(NamedTuple):
    """Where contacts are listed; see `list_grid_contacts`."""

    start: np.ndarray
    counts: np.ndarray
    rows: np.ndarray


@kernel(fastmath=False)
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
    bodies = lend(Bodies(integer, real, lattice_integer, lattice_real, table, coarse, values, velocities, coarse_velocities))
    parallel_for(_collide_grid_block, striped_places(coord.shape[0]),
                 (velocity, momentum, coord, h, shift, dt, walls, wall_rules, bodies, None))


@kernel(fastmath=False)
def list_grid_contacts(
    start, counts, rows, momentum, coord, h, shift, dt, walls, wall_rules,
    integer, real, lattice_integer, lattice_real, table, coarse, values, velocities, coarse_velocities,
):
    """List the contacts that `collide_grid_nodes` would respond to, block by block, in the order in which it does.

    Args:
        start: First row of each block, shape (n,), int64.
        counts: Contacts of each block, shape (n,), int64, written.
        rows: (node, rule, friction, normal, velocity of the body), shape (contacts, 9), float64, written; those beyond its end
            are counted only.
        momentum ... coarse_velocities: As for `collide_grid_nodes`.
    """
    bodies = lend(Bodies(integer, real, lattice_integer, lattice_real, table, coarse, values, velocities, coarse_velocities))
    parallel_for(_collide_grid_block, striped_places(coord.shape[0]),
                 (momentum, momentum, coord, h, shift, dt, walls, wall_rules, bodies, lend(ContactList(start, counts, rows))))


@part
def _note(found, block, node, rule, friction, n0, n1, n2, w0, w1, w2):
    """Count a contact of a block, and write it where there is room."""
    at = found.start[block] + found.counts[block]
    found.counts[block] += 1
    if at < found.rows.shape[0]:
        row = found.rows[at]
        row[0], row[1], row[2] = block * 64 + node, rule, friction
        row[3], row[4], row[5] = n0, n1, n2
        row[6], row[7], row[8] = w0, w1, w2


@part
def _collide_grid_block(place, velocity, momentum, coord, h, shift, dt, walls, wall_rules, bodies, found):
    block = striped(place, coord.shape[0])
    if block >= coord.shape[0]:
        return
    if found is not None:
        found.counts[block] = 0
    base0, base1, base2 = 4 * coord[block, 0], 4 * coord[block, 1], 4 * coord[block, 2]
    if bodies.real.shape[0]:
        _meet_bodies(block, velocity, momentum, base0, base1, base2, h, shift, dt, bodies, found)
    for side in range(6):
        rule = int(wall_rules[side])
        if rule < OPEN:
            _wall_block(block, side, rule, velocity, momentum, (base0, base1, base2), h, shift, walls, wall_rules[6], found)


@part
def _meet_bodies(block, velocity, momentum, base0, base1, base2, h, shift, dt, bodies, found):
    """Apply the bodies, in order, to the nodes of a block: sixteen are tried at a time, then each that is left."""
    m0, m1, m2 = shift[0] + h * (base0 + 1.5), shift[1] + h * (base1 + 1.5), shift[2] + h * (base2 + 1.5)
    reals, integers = np.empty(FRAME_REALS, np.float32), np.empty(FRAME_INTEGERS, np.int32)
    for b in range(bodies.real.shape[0]):
        if not write_frame(reals, integers, np.int64(0), b, np.int64(1), m0, m1, m2, HALF_DIAGONAL, h, 0.0, 0.0, bodies):
            continue
        for layer in range(4):
            clear = _clear_nodes(layer, reals, integers, 1.0 / h, bodies)
            for rest in range(16 * int(clear != ALL_CLEAR)):
                if not clear >> rest & 1:
                    _collide_node(block, 16 * layer + rest, velocity, momentum, base0, base1, base2, b, h, shift, dt, bodies,
                                  found)


@part
def _clear_nodes(layer, reals, integers, per_metre, bodies):
    """Return the bits of those nodes of a layer of a block that surely lie outside the body of frame 0."""
    like = load_splat(reals, 0)
    o0, zero = broadcast(like, layer - 1.5), const(like, 0.0)
    return mask_bits(clear_lanes(reals, integers, 0, o0, NODE_Y(like), NODE_Z(like), zero, zero, zero, per_metre,
                                 bodies.table, bodies.coarse, bodies.values))


@part
def _collide_node(block, node, velocity, momentum, base0, base1, base2, b, h, shift, dt, bodies, found):
    """Apply the rule of body b to a node of a block, if it has mass and lies on or in the body."""
    at = (block * 64 + node) * 4
    if momentum[at + 3] <= 0.0:
        return
    x0 = shift[0] + h * (base0 + (node >> 4))
    x1 = shift[1] + h * (base1 + ((node >> 2) & 3))
    x2 = shift[2] + h * (base2 + (node & 3))
    y0, y1, y2 = to_body(b, 1, x0, x1, x2, bodies.real)
    phi, g0, g1, g2 = sample(b, 1.0, y0, y1, y2, bodies)
    if phi > 0.0:
        return
    n0, n1, n2 = world_normal(b, 1.0, g0, g1, g2, bodies.real)
    w0, w1, w2 = body_velocity(b, dt, y0, y1, y2, bodies)
    if found is not None:
        _note(found, block, node, bodies.integer[b, RULE], bodies.real[b, FRICTION], n0, n1, n2, w0, w1, w2)
        return
    r0, r1, r2 = respond(
        bodies.integer[b, RULE], bodies.real[b, FRICTION], n0, n1, n2,
        np.float64(velocity[at]), np.float64(velocity[at + 1]), np.float64(velocity[at + 2]), w0, w1, w2)
    velocity[at], velocity[at + 1], velocity[at + 2] = r0, r1, r2


@part
def _wall_block(block, side, rule, velocity, momentum, base, h, shift, walls, friction, found):
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
            if momentum[at + 3] > 0.0 and found is not None:
                _note(found, block, node, rule, friction, n0, n1, n2, 0.0, 0.0, 0.0)
            elif momentum[at + 3] > 0.0:
                r0, r1, r2 = respond(rule, friction, n0, n1, n2, np.float64(velocity[at]), np.float64(velocity[at + 1]),
                                     np.float64(velocity[at + 2]), 0.0, 0.0, 0.0)
                velocity[at], velocity[at + 1], velocity[at + 2] = r0, r1, r2
