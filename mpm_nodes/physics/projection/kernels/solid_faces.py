"""Which faces of the staggered grid lie inside a body or wall, and how fast it moves there.

A face collides where phi <= 1e-6 h at its centre: S14's strict `phi < 0` would let go of the faces in a wall on a node plane. A
face that a separating body holds along its normal tells what matter needs to leave it and to rub on it. One along a level surface
of a sticky body tells how deep it lies: matter that does not slip has the body's velocity at the surface, not there. One a little
before any other surface of a sticky body, or before a body that clamps, clings to it: shape and viscosity find it at the body's
velocity.
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.collisions.posing import body_velocity
from mpm_nodes.kernels.collisions.rules import OPEN, SEPARATE, STICKY, sample, signed_distance, to_body, world_normal
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.lend import lend_plain
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.level_sets.level_set import FRICTION, RULE

__all__ = ["DEPTH", "FREE", "HELD", "LEVEL", "OUTWARDS", "SLIDING", "SLOPE", "find_solid_faces"]

FREE, HELD = 0, 1
SLIDING = 2
"""States of a face: SLIDING + 2 axis + side slides along a surface whose normal points that way (side 1: to high coordinates)."""
LEVEL = 1.0
"""What stands in the place of the velocity of faces that slide along a surface whose normal is an axis."""
FLAT = 0.999
"""Component of a unit normal from which on it is an axis."""
OUTWARDS, DEPTH, SLOPE = 0, 1, 2
"""Columns of what a face inside a sticky body tells: the way out, 1 + 2 axis + side, or 0; cells to the surface that way; what the
body's velocity along the face's axis grows by in a cell of it [m/s]."""
TOUCHING = 1e-6
CLINGING = 0.76
"""Faces up to so far before a sticky surface that is not level, or one that clamps, cling to it [cells].

Quadratic splines over matter that ends at a surface meet the plate between 0.5 cells before and 0.7 behind it, by where the first
spline lies that nothing holds. Surfaces that cross the grid have it at all places in turn: with this limit the mean is 0. Where the
matter goes on into the body that holds it, they meet it 1.21 cells behind that spline, and the mean is 0.05.
"""
HALF_DIAGONAL = 3.1
TIE = 1e-4
"""Components of a normal that differ by less count as equal: on a diagonal, which bodies often pass a face on, rounding decides."""


@inline
def _main_axis(normal):
    """Return the (first) axis nearest to a normal."""
    a0, a1, a2 = abs(normal[0]), abs(normal[1]), abs(normal[2])
    least = (1.0 - TIE) * max(a0, a1, a2)
    return 0 if a0 >= least else (1 if a1 >= least else 2)


@inline
def _along(axis, vector):
    return vector[0] if axis == 0 else (vector[1] if axis == 1 else vector[2])


@part
def _take(c, axis, rule, friction, normal, velocity, faces):
    """Note that a face lies in a body: held where its rule is sticky, or its own axis the (first) one nearest to the normal."""
    (v0, v1, v2), (state, speed, contact, inside, _) = velocity, faces
    v, main = _along(axis, velocity), _main_axis(normal)
    contact[4 * c], inside[3 * c + OUTWARDS] = 0.0, 0.0
    if rule == STICKY or main == axis:
        state[c], speed[c] = HELD, v
        if rule == SEPARATE:
            contact[4 * c], contact[4 * c + 1] = 1.0 if _along(axis, normal) > 0.0 else -1.0, friction
            contact[4 * c + 2], contact[4 * c + 3] = (v1, v2) if axis == 0 else ((v2, v0) if axis == 1 else (v0, v1))
        return
    out = _along(main, normal)
    state[c], speed[c] = SLIDING + 2 * main + (1 if out > 0.0 else 0), LEVEL if abs(out) > FLAT else 0.0


@part
def _lies_deep(b, c, axis, step, found, bodies, inside):
    """Note how deep a face lies in a sticky body whose surface is level there, but for those whose axis is the normal."""
    (h, dt), (x, phi, normal, velocity) = step, found
    main = _main_axis(normal)
    out = _along(main, normal)
    if main == axis or abs(out) <= FLAT:
        return
    way = h if out > 0.0 else -h
    d0, d1, d2 = way if main == 0 else 0.0, way if main == 1 else 0.0, way if main == 2 else 0.0
    y0, y1, y2 = to_body(b, 1, x[0] + d0, x[1] + d1, x[2] + d2, bodies.real)
    beyond = body_velocity(b, dt, y0, y1, y2, bodies)
    inside[3 * c + OUTWARDS] = 1.0 + 2.0 * main + (1.0 if out > 0.0 else 0.0)
    inside[3 * c + DEPTH] = max(-phi, 0.0) / (h * abs(out))
    inside[3 * c + SLOPE] = _along(axis, beyond) - _along(axis, velocity)


@part
def _faces_at(g, axis, place, dt, walls, bodies, which, faces):
    (coord, h, shift), (box, wall_rules), (cut, mirrored, clamps) = place, walls, which
    state, speed, contact, inside, clings = faces
    b0, b1, b2 = shift[0] + h * 4 * coord[g, 0], shift[1] + h * 4 * coord[g, 1], shift[2] + h * 4 * coord[g, 2]
    o0, o1, o2 = 0.0 if axis == 0 else 0.5, 0.0 if axis == 1 else 0.5, 0.0 if axis == 2 else 0.5
    for c in range(64 * g, 64 * g + 64):
        state[c], speed[c], contact[4 * c], clings[c] = FREE, 0.0, 0.0, np.nan
    for b in range(len(bodies.real)):
        if cut[b]:
            continue
        reach = (CLINGING if mirrored[b] or clamps[b] else TOUCHING) * h
        y0, y1, y2 = to_body(b, 1, b0 + 2.0 * h, b1 + 2.0 * h, b2 + 2.0 * h, bodies.real)
        if signed_distance(b, 1.0, y0, y1, y2, bodies) > HALF_DIAGONAL * h + reach:
            continue
        for n in range(64):
            x0, x1, x2 = b0 + h * ((n >> 4) + o0), b1 + h * (((n >> 2) & 3) + o1), b2 + h * ((n & 3) + o2)
            y0, y1, y2 = to_body(b, 1, x0, x1, x2, bodies.real)
            phi, g0, g1, g2 = sample(b, 1.0, y0, y1, y2, bodies)
            if phi > reach:
                continue
            normal = world_normal(b, 1.0, g0, g1, g2, bodies.real)
            velocity = body_velocity(b, dt, y0, y1, y2, bodies)
            if phi > TOUCHING * h:
                if clamps[b] or max(abs(normal[0]), abs(normal[1]), abs(normal[2])) <= FLAT:
                    clings[64 * g + n] = _along(axis, velocity)
                continue
            _take(64 * g + n, axis, bodies.integer[b, RULE], bodies.real[b, FRICTION], normal, velocity, faces)
            if mirrored[b]:
                _lies_deep(b, 64 * g + n, axis, (h, dt), ((x0, x1, x2), phi, normal, velocity), bodies, inside)
    for side in range(6):
        rule = int(wall_rules[side])
        if rule >= OPEN:
            continue
        along, sign = side >> 1, 1.0 - 2.0 * (side & 1)
        normal = (sign if along == 0 else 0.0, sign if along == 1 else 0.0, sign if along == 2 else 0.0)
        speed_of = wall_rules[7 + side]
        velocity = (speed_of if along == 0 else 0.0, speed_of if along == 1 else 0.0, speed_of if along == 2 else 0.0)
        low = b0 if along == 0 else (b1 if along == 1 else b2)
        offset = 0.0 if along == axis else 0.5
        for n in range(64):
            row = (n >> 4) if along == 0 else (((n >> 2) & 3) if along == 1 else (n & 3))
            above = sign * (low + h * (row + offset) - box[side & 1, along])
            # what a wall leaves open in part is not its own: where it meets a floor it would let go of what that holds, and where
            # two meet they would shut all faces of a cell
            slides = along != axis and rule != STICKY
            if above <= (TOUCHING - 0.5 if slides else TOUCHING) * h:
                _take(64 * g + n, axis, rule, wall_rules[6], normal, velocity, faces)
                if rule == STICKY and along != axis:
                    c = 64 * g + n
                    inside[3 * c + OUTWARDS], inside[3 * c + DEPTH] = float(2 * along + 2 - (side & 1)), max(-above, 0.0) / h
                    inside[3 * c + SLOPE] = 0.0


@compiled(fastmath=False)
def find_solid_faces(axis, place, dt, walls, bodies, which, faces):
    """Write the state of the faces of one axis, and the velocity along it that bodies and walls give to held ones.

    Args:
        axis: Axis of the faces.
        place: Grid blocks, shape (n, 3), int32; cell size h [m]; grid origin in the frame of the bodies, shape (3,) [m].
        dt: Substep [s].
        walls: `WallPlanes`.
        bodies: `Bodies`.
        which: Bodies that are left to `open_faces`, those that stick, and those that clamp, each shape (bodies,), bool.
        faces: Written: state, shape (64 n,), int32; speed, shape (64 n,), float64 [m/s], LEVEL at some faces that slide; contact,
            shape (256 n,), float64: where a separating body holds the face along its normal, the normal's sign, friction, and the
            body's velocities along the next axis and the one after [m/s]; a sign of 0 elsewhere; inside, shape (192 n,), float64,
            zeros before: OUTWARDS, DEPTH and SLOPE; clings, shape (64 n,), float64: velocity of the body to which a face clings
            [m/s], nan elsewhere.
    """
    parallel_for(_faces_at, place[0].shape[0], (np.int64(axis), place, dt, walls, lend_plain(bodies), which, faces))
