"""Cut cells: what a smooth body that crosses the grid leaves open of faces and cells (Batty 2007, Ng 2009).

| symbol | meaning | unit |
|---|---|---|
| theta | share of a face's area that lies outside of the bodies | - |
| u_b | velocity of the body along the face's axis | m/s |

A staircase of held faces drags what slides along it. With the flux theta v + (1 - theta) u_b through every face, the shares of a
cell add up to its cut times the normal, so that pressure pushes along the normal, and faces that are not shut all over are free.
"""

from __future__ import annotations

from mpm_nodes.kernels.collisions.posing import body_velocity
from mpm_nodes.kernels.collisions.rules import SEPARATE, signed_distance, to_body
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.lend import lend_plain
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.level_sets.level_set import FRICTION, RULE
from mpm_nodes.physics.projection.kernels.solid_faces import HALF_DIAGONAL, TOUCHING

__all__ = ["find_open_cells", "find_open_faces"]

HALF_FACE = 0.75
"""Distance of a surface from a face's centre, in cells, from which on it does not cut the face: half a diagonal is 0.71."""
SHUT = 1e-4
"""Shares below which a face counts as shut: what flows through it says nothing of its velocity."""


@inline
def _tip(a, b, c):
    """Return the share of a triangle where a linear function has the sign of its value a, unlike that of b and of c."""
    return a * a / ((a - b) * (a - c))


@part
def _positive(a, b, c):
    """Return the share of a triangle where a linear function with these values at its corners is above 0."""
    count = (1 if a > 0.0 else 0) + (1 if b > 0.0 else 0) + (1 if c > 0.0 else 0)
    if count == 0 or count == 3:
        return 1.0 if count else 0.0
    alone = count == 1
    if (a > 0.0) == alone and (b > 0.0) != alone and (c > 0.0) != alone:
        share = _tip(a, b, c)
    elif (b > 0.0) == alone and (a > 0.0) != alone and (c > 0.0) != alone:
        share = _tip(b, c, a)
    else:
        share = _tip(c, a, b)
    return share if alone else 1.0 - share


@part
def _distance(b, x0, x1, x2, h, bodies):
    """Return the distance from body b, what touches it counted as inside."""
    y0, y1, y2 = to_body(b, 1, x0, x1, x2, bodies.real)
    return signed_distance(b, 1.0, y0, y1, y2, bodies) - TOUCHING * h


@part
def _share_at(b, axis, x0, x1, x2, h, bodies):
    """Return theta of the face centred at x."""
    middle = _distance(b, x0, x1, x2, h, bodies)
    if abs(middle) > HALF_FACE * h:
        return 1.0 if middle > 0.0 else 0.0
    r = 0.5 * h
    u0, u1, u2 = 0.0 if axis == 0 else r, r if axis == 0 else 0.0, 0.0
    w0, w1, w2 = 0.0, 0.0 if axis != 2 else r, r if axis != 2 else 0.0
    one = _distance(b, x0 - u0 - w0, x1 - u1 - w1, x2 - u2 - w2, h, bodies)
    two = _distance(b, x0 + u0 - w0, x1 + u1 - w1, x2 + u2 - w2, h, bodies)
    three = _distance(b, x0 + u0 + w0, x1 + u1 + w1, x2 + u2 + w2, h, bodies)
    four = _distance(b, x0 - u0 + w0, x1 - u1 + w1, x2 - u2 + w2, h, bodies)
    total = _positive(middle, one, two) + _positive(middle, two, three)
    return 0.25 * (total + _positive(middle, three, four) + _positive(middle, four, one))


@part
def _faces_at(g, axis, place, dt, bodies, cut, faces):
    (coord, h, shift), (share, carried) = place, faces
    b0, b1, b2 = shift[0] + h * 4 * coord[g, 0], shift[1] + h * 4 * coord[g, 1], shift[2] + h * 4 * coord[g, 2]
    o0, o1, o2 = 0.0 if axis == 0 else 0.5, 0.0 if axis == 1 else 0.5, 0.0 if axis == 2 else 0.5
    for b in range(len(bodies.real)):
        if not cut[b] or _distance(b, b0 + 2.0 * h, b1 + 2.0 * h, b2 + 2.0 * h, h, bodies) > (HALF_DIAGONAL + 1.0) * h:
            continue
        for n in range(64):
            x0, x1, x2 = b0 + h * ((n >> 4) + o0), b1 + h * (((n >> 2) & 3) + o1), b2 + h * ((n & 3) + o2)
            theta = _share_at(b, axis, x0, x1, x2, h, bodies)
            if theta < share[64 * g + n]:
                y0, y1, y2 = to_body(b, 1, x0, x1, x2, bodies.real)
                velocity = body_velocity(b, dt, y0, y1, y2, bodies)
                theta = theta if theta > SHUT else 0.0
                share[64 * g + n] = theta
                carried[64 * g + n] = (1.0 - theta) * velocity[axis]


@compiled(fastmath=False)
def find_open_faces(axis, place, dt, bodies, cut, faces):
    """Write theta and (1 - theta) u_b of the faces of one axis; where bodies overlap, of the one that shuts most.

    Args:
        axis: Axis of the faces.
        place: Grid blocks, shape (n, 3), int32; cell size h [m]; grid origin in the frame of the bodies, shape (3,) [m].
        dt: Substep [s].
        bodies: `Bodies`.
        cut: Which bodies cut faces, shape (bodies,), bool.
        faces: theta, shape (64 n,), float64, 1 at first; (1 - theta) u_b, shape (64 n,), float64 [m/s].
    """
    for_axis = (axis, place, dt, lend_plain(bodies), cut, faces)
    parallel_for(_faces_at, place[0].shape[0], for_axis)


@part
def _cells_at(g, place, dt, bodies, cut, cells):
    (coord, h, shift), (room, contact) = place, cells
    b0, b1, b2 = shift[0] + h * 4 * coord[g, 0], shift[1] + h * 4 * coord[g, 1], shift[2] + h * 4 * coord[g, 2]
    for b in range(len(bodies.real)):
        if not cut[b] or _distance(b, b0 + 2.0 * h, b1 + 2.0 * h, b2 + 2.0 * h, h, bodies) > (HALF_DIAGONAL + 1.0) * h:
            continue
        for n in range(64):
            c = 64 * g + n
            x0, x1, x2 = b0 + h * ((n >> 4) + 0.5), b1 + h * (((n >> 2) & 3) + 0.5), b2 + h * ((n & 3) + 0.5)
            phi = _distance(b, x0, x1, x2, h, bodies)
            open_share = min(max(0.5 + phi / h, 0.0), 1.0)
            room[c] = min(room[c], open_share)
            if phi < contact[5 * c]:
                y0, y1, y2 = to_body(b, 1, x0, x1, x2, bodies.real)
                v0, v1, v2 = body_velocity(b, dt, y0, y1, y2, bodies)
                contact[5 * c], contact[5 * c + 2], contact[5 * c + 3], contact[5 * c + 4] = phi, v0, v1, v2
                contact[5 * c + 1] = bodies.real[b, FRICTION] if bodies.integer[b, RULE] == SEPARATE else -1.0


@compiled(fastmath=False)
def find_open_cells(place, dt, bodies, cut, cells):
    """Write what bodies that cut faces leave of the cells.

    Args:
        place: See `find_open_faces`.
        dt: Substep [s].
        bodies: `Bodies`.
        cut: Which bodies cut faces.
        cells: Share of each cell that lies outside, about, shape (64 n,), float64, 1 at first; distance of the nearest body [m],
            large at first, its friction, -1 where it does not separate, and its velocity [m/s], shape (320 n,), float64.
    """
    parallel_for(_cells_at, place[0].shape[0], (place, dt, lend_plain(bodies), cut, cells))
