"""Which faces of the staggered grid lie inside a body or wall, and how fast it moves there.

A face collides where phi <= 1e-6 h at its centre: S14's strict `phi < 0` would let go of the faces in a wall on a node plane. A
face that a separating body holds along its normal tells what matter needs to leave it and to rub on it.
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.collisions.posing import body_velocity
from mpm_nodes.kernels.collisions.rules import OPEN, SEPARATE, STICKY, sample, to_body, world_normal
from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.lend import lend
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.level_sets.level_set import FRICTION, RULE

__all__ = ["FREE", "HELD", "LEVEL", "SLIDING", "find_solid_faces"]

FREE, HELD = 0, 1
SLIDING = 2
"""States of a face: SLIDING + 2 axis + side slides along a surface whose normal points that way (side 1: to high coordinates)."""
LEVEL = 1.0
"""What stands in the place of the velocity of faces that slide along a surface whose normal is an axis."""
FLAT = 0.999
"""Component of a unit normal from which on it is an axis."""
TOUCHING = 1e-6
HALF_DIAGONAL = 3.1
TIE = 1e-4
"""Components of a normal that differ by less count as equal: on a diagonal, which bodies often pass a face on, rounding decides."""


@part
def _take(c, axis, rule, friction, normal, velocity, faces):
    """Note that a face lies in a body: held where its rule is sticky, or its own axis the (first) one nearest to the normal."""
    (n0, n1, n2), (v0, v1, v2), (state, speed, contact) = normal, velocity, faces
    v = v0 if axis == 0 else (v1 if axis == 1 else v2)
    contact[4 * c] = 0.0
    a0, a1, a2 = abs(n0), abs(n1), abs(n2)
    least = (1.0 - TIE) * max(a0, a1, a2)
    main = 0 if a0 >= least else (1 if a1 >= least else 2)
    if rule == STICKY or main == axis:
        state[c], speed[c] = HELD, v
        if rule == SEPARATE:
            along = n0 if axis == 0 else (n1 if axis == 1 else n2)
            contact[4 * c], contact[4 * c + 1] = 1.0 if along > 0.0 else -1.0, friction
            contact[4 * c + 2], contact[4 * c + 3] = (v1, v2) if axis == 0 else ((v2, v0) if axis == 1 else (v0, v1))
        return
    out = n0 if main == 0 else (n1 if main == 1 else n2)
    state[c], speed[c] = SLIDING + 2 * main + (1 if out > 0.0 else 0), LEVEL if abs(out) > FLAT else 0.0


@part
def _faces_at(g, axis, place, dt, walls, bodies, cut, faces):
    (coord, h, shift), (box, wall_rules), (state, speed, contact) = place, walls, faces
    b0, b1, b2 = shift[0] + h * 4 * coord[g, 0], shift[1] + h * 4 * coord[g, 1], shift[2] + h * 4 * coord[g, 2]
    o0, o1, o2 = 0.0 if axis == 0 else 0.5, 0.0 if axis == 1 else 0.5, 0.0 if axis == 2 else 0.5
    for c in range(64 * g, 64 * g + 64):
        state[c], speed[c], contact[4 * c] = FREE, 0.0, 0.0
    for b in range(bodies.real.shape[0]):
        if cut[b]:
            continue
        y0, y1, y2 = to_body(b, 1, b0 + 2.0 * h, b1 + 2.0 * h, b2 + 2.0 * h, bodies.real)
        if sample(b, 1.0, y0, y1, y2, bodies)[0] > HALF_DIAGONAL * h:
            continue
        for n in range(64):
            x0, x1, x2 = b0 + h * ((n >> 4) + o0), b1 + h * (((n >> 2) & 3) + o1), b2 + h * ((n & 3) + o2)
            y0, y1, y2 = to_body(b, 1, x0, x1, x2, bodies.real)
            phi, g0, g1, g2 = sample(b, 1.0, y0, y1, y2, bodies)
            if phi > TOUCHING * h:
                continue
            normal = world_normal(b, 1.0, g0, g1, g2, bodies.real)
            velocity = body_velocity(b, dt, y0, y1, y2, bodies)
            _take(64 * g + n, axis, bodies.integer[b, RULE], bodies.real[b, FRICTION], normal, velocity, faces)
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
            if sign * (low + h * (row + offset) - box[side & 1, along]) <= TOUCHING * h:
                _take(64 * g + n, axis, rule, wall_rules[6], normal, velocity, faces)


@compiled(fastmath=False)
def find_solid_faces(axis, place, dt, walls, bodies, cut, faces):
    """Write the state of the faces of one axis, and the velocity along it that bodies and walls give to held ones.

    Args:
        axis: Axis of the faces.
        place: Grid blocks, shape (n, 3), int32; cell size h [m]; grid origin in the frame of the bodies, shape (3,) [m].
        dt: Substep [s].
        walls: `WallPlanes`.
        bodies: `Bodies`.
        cut: Which bodies are left to `open_faces`, shape (bodies,), bool.
        faces: Written: state, shape (64 n,), int32; speed, shape (64 n,), float64 [m/s], LEVEL at some faces that slide; contact,
            shape (256 n,), float64: where a separating body holds the face along its normal, the normal's sign, friction, and the
            body's velocities along the next axis and the one after [m/s]; a sign of 0 elsewhere.
    """
    parallel_for(_faces_at, place[0].shape[0], (np.int64(axis), place, dt, walls, lend(bodies), cut, faces))
