"""Which body or wall lies next to each cell of the staggered grid, how far, and in what direction.

| symbol | meaning | unit |
|---|---|---|
| phi | signed distance of the cell's centre from the nearest surface, negative inside | cells |
| n | unit normal out of the body | - |
| o | share of the cell's surroundings that bodies leave open, the product of F(phi) over all that are near | - |

F is the integral of the quadratic B-spline: what matter that fills the space outside a body gives the cell by its weights, so that
matter and bodies in contact fill space together.
"""

from __future__ import annotations

from mpm_nodes.kernels.collisions.open_share import spline_up_to
from mpm_nodes.kernels.collisions.rules import OPEN, sample, signed_distance, to_body, world_normal
from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.lend import lend_plain
from mpm_nodes.kernels.compile.parallel import parallel_for

__all__ = ["FAR", "find_near_bodies"]

FAR = 9.0
"""What phi is where no surface is near [cells]."""
REACH = 1.5
"""How far from a block a surface is looked for [cells]."""
HALF_DIAGONAL = 2.6


@part
def _note(c, body, distance, n, near):
    phi, normal, which, opened = near
    opened[c] *= spline_up_to(distance)
    if distance < phi[c]:
        phi[c], which[c] = distance, body
        normal[3 * c], normal[3 * c + 1], normal[3 * c + 2] = n


@part
def _near_at(g, coord, h, shift, walls, bodies, near):
    (phi, normal, which, opened), (box, wall_rules) = near, walls
    x0, x1, x2 = (
        shift[0] + h * (4 * coord[g, 0] + 2.0),
        shift[1] + h * (4 * coord[g, 1] + 2.0),
        shift[2] + h * (4 * coord[g, 2] + 2.0),
    )
    for c in range(64 * g, 64 * g + 64):
        phi[c], which[c], opened[c] = FAR, -1, 1.0
        normal[3 * c] = normal[3 * c + 1] = normal[3 * c + 2] = 0.0
    for b in range(len(bodies.real)):
        y0, y1, y2 = to_body(b, 1, x0, x1, x2, bodies.real)
        if signed_distance(b, 1.0, y0, y1, y2, bodies) > (HALF_DIAGONAL + REACH) * h:
            continue
        for n in range(64):
            z0, z1, z2 = x0 + h * ((n >> 4) - 1.5), x1 + h * (((n >> 2) & 3) - 1.5), x2 + h * ((n & 3) - 1.5)
            y0, y1, y2 = to_body(b, 1, z0, z1, z2, bodies.real)
            distance, g0, g1, g2 = sample(b, 1.0, y0, y1, y2, bodies)
            n0, n1, n2 = world_normal(b, 1.0, g0, g1, g2, bodies.real)
            _note(64 * g + n, b, distance / h, (n0, n1, n2), near)
    for side in range(6):
        if wall_rules[side] >= OPEN:
            continue
        axis, sign = side >> 1, 1.0 - 2.0 * (side & 1)
        middle = x0 if axis == 0 else (x1 if axis == 1 else x2)
        at_centre = sign * (middle - box[side & 1, axis]) / h
        if at_centre > HALF_DIAGONAL + REACH:
            continue
        for n in range(64):
            place = (n >> 4) if axis == 0 else (((n >> 2) & 3) if axis == 1 else (n & 3))
            n0, n1, n2 = sign if axis == 0 else 0.0, sign if axis == 1 else 0.0, sign if axis == 2 else 0.0
            distance = at_centre + sign * (place - 1.5)
            _note(64 * g + n, len(bodies.real) + side, distance, (n0, n1, n2), near)


@compiled(fastmath=False)
def find_near_bodies(coord, h, shift, walls, bodies, near):
    """Write the nearest surface of every cell of the grid's blocks.

    Args:
        coord: Grid blocks, shape (n, 3), int32.
        h: Cell size [m].
        shift: Grid origin in the frame of the bodies, shape (3,) [m].
        walls: `WallPlanes`.
        bodies: `Bodies`.
        near: Written: phi, shape (64 n,), float64, FAR where there is none near; the normal, shape (192 n,), float64; which body,
            shape (64 n,), int32, walls behind the bodies and -1 for none; what bodies leave open, shape (64 n,), float64.
    """
    parallel_for(_near_at, coord.shape[0], (coord, h, shift, walls, lend_plain(bodies), near))
