"""Which body or wall is near each point of a list."""

from __future__ import annotations

from mpm_nodes.kernels.collisions.rules import OPEN, sample, to_body
from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.lend import lend
from mpm_nodes.kernels.compile.parallel import parallel_for

__all__ = ["find_nearest"]

CHUNK = 256


@part
def _nearest_at(c, points, walls, bodies, reach, which):
    count, (box, wall_rules) = bodies.real.shape[0], walls
    for p in range(c * CHUNK, min((c + 1) * CHUNK, points.shape[0])):
        which[p], least = -1, reach
        x, y, z = points[p, 0], points[p, 1], points[p, 2]
        for b in range(count):
            y0, y1, y2 = to_body(b, 1, x, y, z, bodies.real)
            distance = sample(b, 1.0, y0, y1, y2, bodies)[0]
            if distance < least:
                which[p], least = b, distance
        for side in range(6):
            if wall_rules[side] < OPEN:
                axis, sign = side >> 1, 1.0 - 2.0 * (side & 1)
                distance = sign * (points[p, axis] - box[side & 1, axis])
                if distance < least:
                    which[p], least = count + side, distance


@compiled(fastmath=False)
def find_nearest(points, walls, bodies, reach, which):
    """Write the body whose surface is nearest to each point, inside counted as nearer; walls stand behind the bodies.

    Args:
        points: In the frame of the bodies, shape (n, 3) [m].
        walls: `WallPlanes`.
        bodies: `Bodies`.
        reach: Distance from which on a body counts as none [m].
        which: Written, shape (n,), int32; -1 where none is near.
    """
    parallel_for(_nearest_at, -(-points.shape[0] // CHUNK), (points, walls, lend(bodies), reach, which))
