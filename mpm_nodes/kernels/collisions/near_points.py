"""Which body or wall each sample of a surface touches, how that moves, and how far points are from a body."""

from __future__ import annotations

from mpm_nodes.kernels.collisions.posing import body_velocity
from mpm_nodes.kernels.collisions.rules import OPEN, sample, to_body, world_normal
from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.lend import lend_plain
from mpm_nodes.kernels.compile.parallel import parallel_for

__all__ = ["find_distances", "find_footing", "find_touched"]

CHUNK = 256


@part
def _touched_at(c, points, normals, walls, bodies, reach, which, below):
    count, (box, wall_rules) = len(bodies.real), walls
    for p in range(c * CHUNK, min((c + 1) * CHUNK, points.shape[0])):
        which[p], least = -1, reach
        x, y, z = points[p, 0], points[p, 1], points[p, 2]
        for b in range(count):
            y0, y1, y2 = to_body(b, 1, x, y, z, bodies.real)
            distance, g0, g1, g2 = sample(b, 1.0, y0, y1, y2, bodies)
            if distance < least:
                n0, n1, n2 = world_normal(b, 1.0, g0, g1, g2, bodies.real)
                if n0 * normals[p, 0] + n1 * normals[p, 1] + n2 * normals[p, 2] < 0.0:
                    which[p], least = b, distance
                    below[p, 0], below[p, 1], below[p, 2] = n0, n1, n2
        for side in range(6):
            if wall_rules[side] < OPEN:
                axis, sign = side >> 1, 1.0 - 2.0 * (side & 1)
                distance = sign * (points[p, axis] - box[side & 1, axis])
                if distance < least and sign * normals[p, axis] < 0.0:
                    which[p], least = count + side, distance
                    below[p, 0], below[p, 1], below[p, 2] = 0.0, 0.0, 0.0
                    below[p, axis] = sign
        below[p, 3] = least


@compiled(fastmath=False)
def find_touched(points, normals, walls, bodies, reach, which, below):
    """Write the body that each sample touches, the nearest of those that it faces, inside counted as nearer; walls stand behind.

    The upper side of a film faces away from the body below it, however thin it is.

    Args:
        points: In the frame of the bodies, shape (n, 3) [m].
        normals: Out of the matter, shape (n, 3).
        walls: `WallPlanes`.
        bodies: `Bodies`.
        reach: Distance from which on a body counts as none [m].
        which: Written, shape (n,), int32; -1 where none is near.
        below: Written, shape (n, 4): its normal, of length 1, and its distance [m]; the normal only where one is near.
    """
    parallel_for(_touched_at, -(-points.shape[0] // CHUNK), (points, normals, walls, lend_plain(bodies), reach, which, below))


@part
def _footing_at(c, points, which, dt, bodies, footing):
    for p in range(c * CHUNK, min((c + 1) * CHUNK, points.shape[0])):
        b = which[p]
        if 0 <= b < len(bodies.real):
            y0, y1, y2 = to_body(b, 1, points[p, 0], points[p, 1], points[p, 2], bodies.real)
            footing[p, 0], footing[p, 1], footing[p, 2] = body_velocity(b, dt, y0, y1, y2, bodies)


@compiled(fastmath=False)
def find_footing(points, which, dt, bodies, footing):
    """Write the velocity of the body that each sample touches; what touches a wall or nothing is left alone.

    Args:
        points: In the frame of the bodies, shape (n, 3) [m].
        which: Body that each touches, shape (n,), int32.
        dt: Substep [s].
        bodies: `Bodies`.
        footing: Written, shape (n, 3) [m/s].
    """
    parallel_for(_footing_at, -(-points.shape[0] // CHUNK), (points, which, dt, lend_plain(bodies), footing))


@part
def _distances_at(c, points, b, bodies, found):
    for p in range(c * CHUNK, min((c + 1) * CHUNK, points.shape[0])):
        y0, y1, y2 = to_body(b, 1, points[p, 0], points[p, 1], points[p, 2], bodies.real)
        distance, g0, g1, g2 = sample(b, 1.0, y0, y1, y2, bodies)
        found[p, 0], found[p, 1], found[p, 2] = world_normal(b, 1.0, g0, g1, g2, bodies.real)
        found[p, 3] = distance


@compiled(fastmath=False)
def find_distances(points, body, bodies, found):
    """Write how far points are from one body.

    Args:
        points: In the frame of the bodies, shape (n, 3) [m].
        body: Its number.
        bodies: `Bodies`.
        found: Written, shape (n, 4): the unit normal out of the body, and the signed distance [m].
    """
    parallel_for(_distances_at, -(-points.shape[0] // CHUNK), (points, body, lend_plain(bodies), found))
