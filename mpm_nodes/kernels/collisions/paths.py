"""Collisions of particle paths with posed bodies and domain walls.

Symbols
    x, v        position at the start of the substep, velocity      m, m/s
    s           time within the substep, 0 (start) to 1 (end)       -
    g(s)        phi at the moving point, of the body posed at s     m

A path is sphere-traced relative to the moving body, so bodies thinner than a cell or faster than the particle do not leak.
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.collisions.culling import FARTHEST, FRAME_INTEGERS, FRAME_REALS, SLACK, clear_lanes, write_frame
from mpm_nodes.kernels.collisions.posing import body_velocity
from mpm_nodes.kernels.collisions.rules import (
    DELETE,
    OPEN,
    SEPARATE,
    respond,
    sample,
    signed_distance,
    striped,
    striped_places,
    to_body,
    world_normal,
)
from mpm_nodes.kernels.collisions.sides import slide_off_edge
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.lend import lend_plain
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.lanes.arithmetic import both, broadcast, const
from mpm_nodes.kernels.lanes.indexed import mask_bits, to_single
from mpm_nodes.kernels.lanes.memory import load, to_float
from mpm_nodes.kernels.lanes.types import WIDTH
from mpm_nodes.kernels.level_sets.level_set import FRICTION, OWN_SPEED, PLATE, RULE

MARGIN = 0.01
"""Distance at which a particle is set down outside a body [cells]: far above the rounding of stored positions."""
STEP = 0.02
"""Shortest step of the path tracing [cells]: thinner corners than this may be cut."""
PUSH = 0.5
"""Farthest that a particle found inside a body is pushed out in one substep [cells]."""
FARTHEST_WAY = 1.0 + PUSH
"""The position update moves a particle by at most a cell along each axis, and it may be pushed out of bodies besides [cells]."""
BOUNCES = 4
"""Contacts followed along one path; after the last the particle stays where it touches, carried by the body."""

LARGEST_SHIFT = 2.0
"""Farthest that a stored position is moved in one substep [cells]."""
ALL_CLEAR = (1 << WIDTH) - 1
"""Bits of sixteen particles that meet nothing."""
FASTEST = 1.0e24
"""Square of the speed from which on a particle counts as diverged [m^2/s^2]."""


# ---------------------------------------------------------------- the moving body
@part
def _moving_frame(b, s, x0, x1, x2, real):
    """Return y at time s: between the positions that both end poses give, exact at either end."""
    a0, a1, a2 = to_body(b, 0, x0, x1, x2, real)
    c0, c1, c2 = to_body(b, 1, x0, x1, x2, real)
    return a0 + s * (c0 - a0), a1 + s * (c1 - a1), a2 + s * (c2 - a2)


# ---------------------------------------------------------------- particle paths
@compiled(fastmath=False)
def collide_particle_paths(cloud, blocks, velocity, drift, dt, walls, bodies, doomed):
    """Follow each particle's path over the substep and end it outside every body and closed wall.

    Before: x at the start of the substep, v its final velocity. After: v obeys the rule of what the path met, and x is such
    that x + dt v is where the path ends (so that the position update that follows needs no knowledge of contacts).

    Args:
        cloud: `ParticleBlocks`; offsets are changed in place.
        blocks: Places of the blocks to look at, int64.
        velocity: 3 rows, changed in place [m/s].
        drift: Largest |offset| in cells.
        dt: Substep [s].
        walls: `WallPlanes`.
        bodies: `Bodies`.
        doomed: Set to 1 for particles beyond a deleting wall, shape (count,), uint8.
    """
    given = (cloud, blocks, velocity, (drift + FARTHEST_WAY, dt), walls, lend_plain(bodies), doomed)
    parallel_for(_collide_particle_block, striped_places(blocks.shape[0]), given)


@compiled(fastmath=False)
def find_blocks_in_reach(block_coord, h, shift, drift, dt, walls, bodies, found):
    """Set the marks of the blocks, shape (blocks,), uint8, that `collide_particle_paths` finds near bodies or walls; see there."""
    given = (block_coord, shift, drift + FARTHEST_WAY, (h, dt), walls, lend_plain(bodies), found)
    parallel_for(_find_block_in_reach, striped_places(block_coord.shape[0]), given)


@part
def _wall_places(b0, b1, b2, h, walls, wall_rules):
    """Return how far each wall that does anything lies from a block's centre along its axis [cells], in the order of sides."""
    places = np.empty(6)
    for side in range(6):
        centre = b0 if side < 2 else (b1 if side < 4 else b2)
        away = np.inf if side & 1 else -np.inf
        places[side] = away if wall_rules[side] == OPEN else (walls[side & 1, side >> 1] - centre) / h
    return places


@part
def _find_block_in_reach(place, block_coord, shift, reach, motion, walls, bodies, found):
    h, _ = motion
    block, count = striped(place, block_coord.shape[0]), len(bodies.real)
    if block >= block_coord.shape[0]:
        return
    middle = _middle(block, block_coord, h, shift)
    reals, integers = np.empty(count * FRAME_REALS, np.float32), np.empty(count * FRAME_INTEGERS, np.int32)
    _, walled = _walls_near(middle, reach, h, walls)
    found[block] = walled or _bodies_near((reals, integers), np.empty(count, np.int64), middle, reach, motion, bodies) > 0


@inline
def _middle(block, block_coord, h, shift):
    """Return the middle of a block of particles, three values [m]."""
    return (
        shift[0] + h * (4.0 * block_coord[block, 0] + 3.5),
        shift[1] + h * (4.0 * block_coord[block, 1] + 3.5),
        shift[2] + h * (4.0 * block_coord[block, 2] + 3.5),
    )


@part
def _walls_near(middle, reach, h, walls):
    """Return the `_wall_places` of a block, and whether a wall is in reach."""
    sides = _wall_places(middle[0], middle[1], middle[2], h, walls.box, walls.rules)
    return sides, max(sides[0], sides[2], sides[4]) > -reach or min(sides[1], sides[3], sides[5]) < reach


@part
def _bodies_near(frames, near, middle, reach, motion, bodies):
    """Write the bodies in reach of a block to `near`, and their frames; return how many there are."""
    (h, dt), count = motion, np.int64(0)
    for b in range(len(bodies.real)):
        # what sticks or slides was set down at the surface and is still in contact there
        touching = 1.5 * MARGIN if bodies.integer[b, RULE] != SEPARATE else 0.0
        if write_frame(frames, count, b, np.int64(0), middle, 3.0**0.5 * reach, (h, dt, touching), bodies):
            near[count] = b
            count += 1
    return count


@part
def _collide_particle_block(place, cloud, blocks, velocity, ways, walls, bodies, doomed):
    """Collide one block: the bodies and walls near it are tried on sixteen particles at a time, then on each that is left."""
    offset, stride, block_coord, block_start, unit, h, shift = cloud
    reach, dt = ways
    rows, motion = (offset, velocity, stride), (h / unit, h, dt)
    index = striped(place, blocks.shape[0])
    if index >= blocks.shape[0]:
        return
    block = blocks[index]
    b0, b1, b2 = _middle(block, block_coord, h, shift)
    sides, walled = _walls_near((b0, b1, b2), reach, h, walls)
    bodies_count = len(bodies.real)
    if bodies_count == 0 and not walled:
        return
    reals, integers = np.empty(bodies_count * FRAME_REALS, np.float32), np.empty(bodies_count * FRAME_INTEGERS, np.int32)
    frames, near = (reals, integers), np.empty(bodies_count, np.int64)
    count = _bodies_near(frames, near, (b0, b1, b2), reach, (h, dt), bodies)
    if count == 0 and not walled:
        return
    near = near[:count]
    end = block_start[block + 1]
    for first in range(block_start[block], end, WIDTH):
        off_bodies, off_walls = _clear_of_all(first, rows, unit, motion, sides, near.size, frames, bodies)
        if off_bodies & off_walls == ALL_CLEAR:
            continue
        for lane in range(min(WIDTH, end - first)):
            if not (off_bodies & off_walls) >> lane & 1:
                hits = near[: near.size * int(not (off_bodies >> lane & 1))]
                collide_particle(first + lane, rows, (b0, b1, b2), motion, walls, doomed, hits, bodies)


@part
def _clear_of_all(first, rows, unit, motion, sides, count, frames, bodies):
    """Return the bits of those of sixteen particles that surely meet no body, and no wall if they meet no body."""
    (offset, velocity, stride), (_, h, dt) = rows, motion
    o0, o1, o2 = (_cells(offset, first, unit), _cells(offset, stride + first, unit), _cells(offset, 2 * stride + first, unit))
    scale = broadcast(o0, dt / h)
    d0 = scale * to_single(load(velocity, first))
    d1 = scale * to_single(load(velocity, stride + first))
    d2 = scale * to_single(load(velocity, 2 * stride + first))
    off_walls = both(
        both(_between(o0 + d0, sides[0], sides[1]), _between(o1 + d1, sides[2], sides[3])), _between(o2 + d2, sides[4], sides[5])
    )
    off_bodies = o0 == o0
    for k in range(count):
        off_bodies = both(off_bodies, clear_lanes(frames, k, (o0, o1, o2), (d0, d1, d2), 1.0 / h, bodies))
    return mask_bits(off_bodies), mask_bits(off_walls)


@inline
def _cells(offset, at, unit):
    """Return offsets in cells, in single precision."""
    o = to_single(to_float(load(offset, at)))
    return o * broadcast(o, 1.0 / unit)


@inline
def _between(x, low, high):
    """Return the mask of what lies between two walls, clear of both."""
    return both(x > broadcast(x, low + SLACK), x < broadcast(x, high - SLACK))


@compiled(fastmath=False)
def collide_particle(p, rows, b, motion, walls, doomed, near, bodies):
    """Follow the path of particle p of the block at b past the bodies `near`, then apply the walls.

    `rows` are offsets and velocities with the distance of their rows; `motion` is the length of a unit [m], h and dt.
    """
    (offset, velocity, stride), (b0, b1, b2), (cell, h, dt) = rows, b, motion
    x0, x1, x2 = b0 + cell * offset[p], b1 + cell * offset[stride + p], b2 + cell * offset[2 * stride + p]
    v0, v1, v2 = np.float64(velocity[p]), np.float64(velocity[stride + p]), np.float64(velocity[2 * stride + p])
    if not (v0 * v0 + v1 * v1 + v2 * v2 < FASTEST):
        return  # diverged: the stage that chooses dt reports it
    met, ahead, after = follow_path((x0, x1, x2), (v0, v1, v2), dt, h, near, bodies)
    met, (z0, z1, z2), (w0, w1, w2), gone = _meet_walls(met, ahead, after, dt, walls)
    if gone:
        doomed[p] = 1
    if met:
        most = LARGEST_SHIFT * h  # offsets must not overflow whatever a body does
        offset[p] += int(np.rint(min(max(z0 - x0, -most), most) / cell))
        offset[stride + p] += int(np.rint(min(max(z1 - x1, -most), most) / cell))
        offset[2 * stride + p] += int(np.rint(min(max(z2 - x2, -most), most) / cell))
        velocity[p], velocity[stride + p], velocity[2 * stride + p] = w0, w1, w2


@part
def follow_path(x, v, dt, h, near, bodies):
    """Return (met, position to advance from, velocity) of one particle at x with v after the contacts of its path."""
    (x0, x1, x2), (v0, v1, v2) = x, v
    met = False
    s = pushed = 0.0
    p0, p1, p2 = x0, x1, x2
    w0 = w1 = w2 = 0.0
    held = False
    for bounce in range(BOUNCES):
        hit, at, phi = np.int64(-1), 2.0, 0.0
        g0 = g1 = g2 = 0.0
        for k in range(near.shape[0]):
            # what sticks or slides was set down at the surface and is still in contact there
            holds = bounce == 0 and bodies.integer[near[k], RULE] != SEPARATE
            touching = 1.5 * MARGIN * h if holds else 0.0
            found = first_touch(near[k], s, touching, (p0, p1, p2), (v0, v1, v2), dt, h, bodies)
            if found[0] < at:
                hit = near[k]
                at, phi, g0, g1, g2 = found
        held = hit >= 0
        if not held:
            break
        met = True
        ahead = (at - s) * dt
        p0, p1, p2, s = p0 + ahead * v0, p1 + ahead * v1, p2 + ahead * v2, at
        y0, y1, y2 = _moving_frame(hit, s, p0, p1, p2, bodies.real)
        if bodies.integer[hit, PLATE] >= 0:
            phi, g0, g1, g2 = slide_off_edge(hit, s, (y0, y1, y2), (phi, g0, g1, g2), h, bodies)
        normal = world_normal(hit, s, g0, g1, g2, bodies.real)
        w0, w1, w2 = body_velocity(hit, dt, y0, y1, y2, bodies)
        v0, v1, v2 = respond(bodies.integer[hit, RULE], bodies.real[hit, FRICTION], normal, (v0, v1, v2), (w0, w1, w2))
        out = min(max(MARGIN * h - phi, 0.0), PUSH * h - pushed)
        pushed += out
        p0, p1, p2 = p0 + out * normal[0], p1 + out * normal[1], p2 + out * normal[2]
    if held:  # still in contact after the last bounce: wait at the touching point, carried by the body
        rest = (1.0 - s) * dt
        p0, p1, p2 = p0 + rest * (w0 - v0), p1 + rest * (w1 - v1), p2 + rest * (w2 - v2)
    gone = s * dt
    return met, (p0 - gone * v0, p1 - gone * v1, p2 - gone * v2), (v0, v1, v2)


@part
def first_touch(b, s, touching, p, v, dt, h, bodies):
    """Return when the path from p with v first touches body b (s..1, or 2: never), and phi and its gradient there.

    Sphere tracing of g with a least step, then halving. The point lies outside the body (g > 0) unless the path begins
    inside; a path that begins with g <= touching begins in contact.
    """
    (p0, p1, p2), (v0, v1, v2) = p, v
    rest = (1.0 - s) * dt
    y0, y1, y2 = _moving_frame(b, s, p0, p1, p2, bodies.real)
    c0, c1, c2 = to_body(b, 1, p0 + rest * v0, p1 + rest * v1, p2 + rest * v2, bodies.real)
    length = 1.05 * np.sqrt((c0 - y0) ** 2 + (c1 - y1) ** 2 + (c2 - y2) ** 2) + rest * bodies.real[b, OWN_SPEED]
    outside, inside, t = 0.0, 2.0, 0.0  # along the rest of the path, 0..1
    phi = d0 = d1 = d2 = 0.0
    halvings = 0
    while halvings < 7:
        at = s + (1.0 - s) * t
        g, e0, e1, e2 = sample(b, at, y0, y1, y2, bodies)
        if t == 0.0:
            if g <= touching:
                return s, g, e0, e1, e2
            if g > length:
                return 2.0, g, e0, e1, e2
        if g > 0.0:
            outside, phi, d0, d1, d2 = t, g, e0, e1, e2
            if t >= 1.0:
                return 2.0, g, e0, e1, e2
        else:
            inside = t
        if inside <= 1.0:
            halvings += 1
            t = 0.5 * (outside + inside)
        else:
            t = min(t + max(g, STEP * h) / length, 1.0)
        along = t * rest
        y0, y1, y2 = _moving_frame(b, s + (1.0 - s) * t, p0 + along * v0, p1 + along * v1, p2 + along * v2, bodies.real)
    return s + (1.0 - s) * outside, phi, d0, d1, d2


@part
def _meet_walls(met, z, v, dt, walls):
    """Apply the walls to a particle that would advance from z with v; the last value says that it is to be deleted."""
    gone, (box, wall_rules) = False, walls
    (z0, z1, z2), (v0, v1, v2) = z, v
    for side in range(6):
        rule = int(wall_rules[side])
        if rule == OPEN:
            continue
        axis, sign = side >> 1, 1.0 - 2.0 * (side & 1)
        plane = box[side & 1, axis]
        start = z0 if axis == 0 else (z1 if axis == 1 else z2)
        along = v0 if axis == 0 else (v1 if axis == 1 else v2)
        if sign * (start + dt * along - plane) >= 0.0:
            continue
        met = True
        if rule == DELETE:
            gone = True
            continue
        normal = (sign if axis == 0 else 0.0, sign if axis == 1 else 0.0, sign if axis == 2 else 0.0)
        speed = wall_rules[7 + side]
        motion = (speed if axis == 0 else 0.0, speed if axis == 1 else 0.0, speed if axis == 2 else 0.0)
        v0, v1, v2 = respond(rule, wall_rules[6], normal, (v0, v1, v2), motion)
        if axis == 0:
            z0 = plane - dt * v0
        elif axis == 1:
            z1 = plane - dt * v1
        else:
            z2 = plane - dt * v2
    return met, (z0, z1, z2), (v0, v1, v2), gone


# ---------------------------------------------------------------- report
@compiled(fastmath=False)
def distances_at(points, bodies, found):
    """Write distance [m] and normal of each body at its end pose at points, shape (n, 3); `found` has shape (n, bodies, 4)."""
    parallel_for(_distances_at, points.shape[0], (points, lend_plain(bodies), found))


@part
def _distances_at(p, points, bodies, found):
    for b in range(found.shape[1]):
        y0, y1, y2 = to_body(b, 1, points[p, 0], points[p, 1], points[p, 2], bodies.real)
        phi, g0, g1, g2 = sample(b, 1.0, y0, y1, y2, bodies)
        found[p, b, 0] = phi
        found[p, b, 1], found[p, b, 2], found[p, b, 3] = world_normal(b, 1.0, g0, g1, g2, bodies.real)


@compiled(fastmath=False)
def penetration(cloud, bodies):
    """Return, for each body at its end pose, how many particles are inside and the greatest depth [m], shape (bodies, 2)."""
    blocks, real = cloud.block_coord.shape[0], bodies.real
    found = np.zeros((blocks, real.shape[0], 2))
    parallel_for(_penetrate_block, striped_places(blocks), (cloud, lend_plain(bodies), found))
    total = np.zeros((real.shape[0], 2))
    for block in range(blocks):
        for b in range(real.shape[0]):
            total[b, 0] += found[block, b, 0]
            total[b, 1] = max(total[b, 1], found[block, b, 1])
    return total


@part
def _penetrate_block(place, cloud, bodies, found):
    """Write how many particles of a block are inside each body, and the greatest depth [m]."""
    offset, stride, block_coord, block_start, unit, h, shift = cloud
    block = striped(place, block_coord.shape[0])
    if block >= block_coord.shape[0]:
        return
    b0 = shift[0] + h * (4.0 * block_coord[block, 0] + 3.5)
    b1 = shift[1] + h * (4.0 * block_coord[block, 1] + 3.5)
    b2 = shift[2] + h * (4.0 * block_coord[block, 2] + 3.5)
    cell, end = h / unit, block_start[block + 1]
    frames = (np.empty(FRAME_REALS, np.float32), np.empty(FRAME_INTEGERS, np.int32))
    for b in range(found.shape[1]):
        if not write_frame(frames, np.int64(0), b, np.int64(1), (b0, b1, b2), FARTHEST, (h, 0.0, 0.0), bodies):
            continue
        for first in range(block_start[block], end, WIDTH):
            outside = _outside(first, offset, stride, unit, 1.0 / h, frames, bodies)
            for p in range(first, min(first + WIDTH, end)):
                if outside >> (p - first) & 1:
                    continue
                y0, y1, y2 = to_body(
                    b, 1, b0 + cell * offset[p], b1 + cell * offset[stride + p], b2 + cell * offset[2 * stride + p], bodies.real
                )
                phi = signed_distance(b, 1.0, y0, y1, y2, bodies)
                if phi < 0.0:
                    found[block, b, 0] += 1.0
                    found[block, b, 1] = max(found[block, b, 1], -phi)


@part
def _outside(first, offset, stride, unit, per_metre, frames, bodies):
    """Return the bits of those of sixteen particles that surely lie outside the body of frame 0."""
    o0, o1, o2 = _cells(offset, first, unit), _cells(offset, stride + first, unit), _cells(offset, 2 * stride + first, unit)
    zero = const(o0, 0.0)
    return mask_bits(clear_lanes(frames, 0, (o0, o1, o2), (zero, zero, zero), per_metre, bodies))
