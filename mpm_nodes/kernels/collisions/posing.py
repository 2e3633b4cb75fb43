"""Bodies in a substep: posed at its two ends, and their distance and velocity at a point and time between."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.level_sets.level_set import (
    BOX,
    CAPSULE,
    DRIFT,
    HAS_VELOCITY,
    KEY_LATTICES,
    KEY_MIX,
    KEY_SPAN,
    KIND,
    LEAF,
    LEVEL_SET,
    PLANE,
    POSE,
    SHEETS,
    SIZES,
    SPHERE,
    TABLE_OFFSET,
    VOXEL,
    sample_lattice,
    sample_sheet,
    sample_velocity,
)

EVEN = 1e-9
"""Faces of a box whose distances differ by less are as near [sum of its half edges]."""


# ---------------------------------------------------------------- posing
class PoseKeys(NamedTuple):
    """Pose keys of all bodies.

    Attributes:
        start: First key of each body, shape (bodies + 1,).
        times: [s].
        rotations: Unit quaternions w x y z.
        translations: [m].
    """

    start: np.ndarray
    times: np.ndarray
    rotations: np.ndarray
    translations: np.ndarray


class ShapeKeys(NamedTuple):
    """Level-set keys of all bodies.

    Attributes:
        start: First key of each body, shape (bodies + 1,).
        times: [s].
        lattices: Number of each key's lattice.
        centres: Centre of each lattice's inside [m], shape (lattices, 3).
    """

    start: np.ndarray
    times: np.ndarray
    lattices: np.ndarray
    centres: np.ndarray


@part
def _bracket(times, first, last, time):
    """Return the keys around `time` among times[first:last] and the place between them, 0..1; held outside."""
    k = first
    while k < last - 2 and times[k + 1] <= time:
        k += 1
    if last - first < 2 or times[k + 1] <= times[k]:
        return k, k, 0.0
    return k, k + 1, min(max((time - times[k]) / (times[k + 1] - times[k]), 0.0), 1.0)


@part
def _slerp(a, b, mix):
    """Return the unit quaternion at `mix` on the arc from a to b."""
    cosine = min(a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3], 1.0)
    angle = np.arccos(cosine)
    if angle < 1e-6:
        p, q = 1.0 - mix, mix
    else:
        p, q = np.sin((1.0 - mix) * angle) / np.sin(angle), np.sin(mix * angle) / np.sin(angle)
    w, x, y, z = p * a[0] + q * b[0], p * a[1] + q * b[1], p * a[2] + q * b[2], p * a[3] + q * b[3]
    length = np.sqrt(w * w + x * x + y * y + z * z)
    return w / length, x / length, y / length, z / length


@compiled(fastmath=False)
def pose_bodies(times, origin, poses, shapes, integer, real):
    """Write poses and key blends of every body at times[0] and times[1] into `integer` and `real`.

    Args:
        times: Start and end of the substep [s], shape (2,).
        origin: Origin of the frame that the kernels work in [m], shape (3,).
        poses: `PoseKeys`.
        shapes: `ShapeKeys`.
        integer, real: Columns of `Bodies`.
    """
    pose_start, pose_times, rotations, translations = poses
    key_start, key_times, key_lattices, centres = shapes
    for b in range(real.shape[0]):
        for end in range(2):
            p, q, mix = _bracket(pose_times, pose_start[b], pose_start[b + 1], times[end])
            w, x, y, z = _slerp(rotations[p], rotations[q], mix)
            at = POSE + 12 * end
            # over the square of the norm, and without 1 - 2 (..): so quarter turns leave exact 0 and 1
            ww, xx, yy, zz = w * w, x * x, y * y, z * z
            one = ww + xx + yy + zz
            real[b, at], real[b, at + 1] = (ww + xx - yy - zz) / one, 2.0 * (x * y - w * z) / one
            real[b, at + 2], real[b, at + 3] = 2.0 * (x * z + w * y) / one, 2.0 * (x * y + w * z) / one
            real[b, at + 4], real[b, at + 5] = (ww - xx + yy - zz) / one, 2.0 * (y * z - w * x) / one
            real[b, at + 6], real[b, at + 7] = 2.0 * (x * z - w * y) / one, 2.0 * (y * z + w * x) / one
            real[b, at + 8] = (ww - xx - yy + zz) / one
            for axis in range(3):
                move = translations[p, axis] + mix * (translations[q, axis] - translations[p, axis])
                real[b, at + 9 + axis] = move - origin[axis]
            if key_start[b] == key_start[b + 1]:
                continue
            p, q, mix = _bracket(key_times, key_start[b], key_start[b + 1], times[end])
            span = key_times[q] - key_times[p]
            integer[b, KEY_LATTICES + 2 * end], integer[b, KEY_LATTICES + 2 * end + 1] = key_lattices[p], key_lattices[q]
            real[b, KEY_MIX + end], real[b, KEY_SPAN + end] = mix, span
            for axis in range(3):
                drift = centres[key_lattices[q], axis] - centres[key_lattices[p], axis]
                real[b, DRIFT + 3 * end + axis] = drift / span if span > 0.0 else 0.0


# ---------------------------------------------------------------- sampling a body
@compiled(fastmath=False)
def sample_body(b, s, y0, y1, y2, bodies):
    """Return phi [m] and its gradient at y in the frame of body b, at time s of the substep (0 start, 1 end)."""
    kind = bodies.integer[b, KIND]
    s0, s1, s2 = bodies.real[b, SIZES], bodies.real[b, SIZES + 1], bodies.real[b, SIZES + 2]
    if kind == SPHERE:
        r = np.sqrt(y0 * y0 + y1 * y1 + y2 * y2)
        inverse = 1.0 / max(r, 1e-300)
        return r - s0, y0 * inverse, y1 * inverse, y2 * inverse
    if kind == CAPSULE:
        along = y1 - min(max(y1, -s1), s1)
        r = np.sqrt(y0 * y0 + along * along + y2 * y2)
        inverse = 1.0 / max(r, 1e-300)
        return r - s0, y0 * inverse, along * inverse, y2 * inverse
    if kind == PLANE:
        return y1, 0.0, 1.0, 0.0
    if kind == BOX:
        return _box(y0, y1, y2, s0, s1, s2)
    return _keyed(b, s, y0, y1, y2, bodies)


@inline
def _box(y0, y1, y2, s0, s1, s2):
    """Return the exact signed distance of a box with half edges s, and its gradient."""
    q0, q1, q2 = abs(y0) - s0, abs(y1) - s1, abs(y2) - s2
    e0 = 1.0 if y0 >= 0.0 else -1.0
    e1 = 1.0 if y1 >= 0.0 else -1.0
    e2 = 1.0 if y2 >= 0.0 else -1.0
    if q0 <= 0.0 and q1 <= 0.0 and q2 <= 0.0:
        # as near to two faces or three, the way out is between them: rounding does not choose one
        nearest = max(q0, q1, q2)
        least = nearest - EVEN * (s0 + s1 + s2)
        e0, e1, e2 = e0 if q0 >= least else 0.0, e1 if q1 >= least else 0.0, e2 if q2 >= least else 0.0
        r = np.sqrt(e0 * e0 + e1 * e1 + e2 * e2)
        return nearest, e0 / r, e1 / r, e2 / r
    q0, q1, q2 = max(q0, 0.0), max(q1, 0.0), max(q2, 0.0)
    r = np.sqrt(q0 * q0 + q1 * q1 + q2 * q2)
    return r, e0 * q0 / r, e1 * q1 / r, e2 * q2 / r


@inline
def _place_between_keys(b, s, real):
    """Return which end's pair of keys holds time s of the substep, and the place between them (0..1)."""
    if s >= 1.0:
        return 1, real[b, KEY_MIX + 1]
    first, second = real[b, KEY_SPAN], real[b, KEY_SPAN + 1]
    to_key = (1.0 - real[b, KEY_MIX]) * first
    elapsed = s * (to_key + real[b, KEY_MIX + 1] * second)
    if elapsed <= to_key:
        return 0, real[b, KEY_MIX] + (elapsed / first if first > 0.0 else 0.0)
    return 1, (elapsed - to_key) / second if second > 0.0 else 0.0


@inline
def _same_pair(b, integer):
    """Whether start and end of the substep lie between the same two keys."""
    return integer[b, KEY_LATTICES] == integer[b, KEY_LATTICES + 2] and integer[b, KEY_LATTICES + 1] == integer[b, KEY_LATTICES + 3]


@part
def _carrying_velocity(b, end, mix, y0, y1, y2, bodies):
    """Return the velocity at y that carries a level-set body's keys, in its own frame [m/s]: of the grids, else the drift."""
    first = KEY_LATTICES + 2 * end
    if bodies.integer[b, HAS_VELOCITY] == 0:
        return bodies.real[b, DRIFT + 3 * end], bodies.real[b, DRIFT + 3 * end + 1], bodies.real[b, DRIFT + 3 * end + 2]
    v0 = v1 = v2 = 0.0
    keys = 1 if bodies.integer[b, first] == bodies.integer[b, first + 1] else 2
    for key in range(keys):
        weight = 1.0 if keys == 1 else (mix if key == 1 else 1.0 - mix)
        p0, p1, p2 = sample_velocity(bodies.integer[b, first + key], y0, y1, y2, bodies)
        v0, v1, v2 = v0 + weight * p0, v1 + weight * p1, v2 + weight * p2
    return v0, v1, v2


@part
def _carried_keys(b, end, mix, y0, y1, y2, bodies):
    """Return a level-set body between its two keys: phi and gradient, its velocity [m/s], and d phi/dt left over.

    The velocity (of the grids, else the drift of the centre) carries each key's level set from its time to this one; the
    two are blended.
    """
    first, span = KEY_LATTICES + 2 * end, bodies.real[b, KEY_SPAN + end]
    keys = 1 if bodies.integer[b, first] == bodies.integer[b, first + 1] else 2
    v0, v1, v2 = _carrying_velocity(b, end, mix, y0, y1, y2, bodies)
    phi = g0 = g1 = g2 = before = change = 0.0
    for key in range(keys):
        weight, back = 1.0, 0.0
        if keys == 2:
            weight, back = (mix, (mix - 1.0) * span) if key == 1 else (1.0 - mix, mix * span)
        f, d0, d1, d2 = sample_lattice(bodies.integer[b, first + key], y0 - back * v0, y1 - back * v1, y2 - back * v2, bodies)
        phi, g0, g1, g2 = phi + weight * f, g0 + weight * d0, g1 + weight * d1, g2 + weight * d2
        change, before = f - before, f
    rate = change / span if keys == 2 and span > 0.0 else 0.0
    return phi, g0, g1, g2, v0, v1, v2, rate


@compiled(fastmath=False)
def _keyed(b, s, y0, y1, y2, bodies):
    """Return phi and gradient of a level-set body at time s."""
    first = bodies.integer[b, KEY_LATTICES]
    if first == bodies.integer[b, KEY_LATTICES + 1] and first == bodies.integer[b, KEY_LATTICES + 3]:
        return sample_lattice(first, y0, y1, y2, bodies)
    end, mix = np.int64(1), bodies.real[b, KEY_MIX + 1]
    if s < 1.0:
        if _same_pair(b, bodies.integer):
            mix = bodies.real[b, KEY_MIX] + s * (mix - bodies.real[b, KEY_MIX])
        else:
            end, mix = _place_between_keys(b, s, bodies.real)
    phi, g0, g1, g2, _, _, _, _ = _carried_keys(b, end, mix, y0, y1, y2, bodies)
    return phi, g0, g1, g2


@inline
def sheet_of_body(b, sheet, end, y0, y1, y2, bodies):
    """Return what `sample_sheet` does of one of a level-set body's sheets, at the start (0) or end (1) of the substep."""
    return across_sheet(b, sheet, end, y0, y1, y2, True, bodies)


@part
def across_sheet(b, sheet, end, y0, y1, y2, with_half, bodies):
    """Return what `sheet_of_body` does, half the thickness only when asked for it."""
    first, mix, span = KEY_LATTICES + 2 * end, bodies.real[b, KEY_MIX + end], bodies.real[b, KEY_SPAN + end]
    one, other = bodies.integer[b, first], bodies.integer[b, first + 1]
    if one == other:
        return sample_sheet(bodies.lattice_integer[one, SHEETS] + 2 * sheet, y0, y1, y2, with_half, bodies)
    v0, v1, v2 = _carrying_velocity(b, end, mix, y0, y1, y2, bodies)
    across = g0 = g1 = g2 = half = 0.0
    for key in range(2):
        weight, back = (mix, (mix - 1.0) * span) if key == 1 else (1.0 - mix, mix * span)
        lattice = bodies.lattice_integer[other if key == 1 else one, SHEETS] + 2 * sheet
        f, d0, d1, d2, t = sample_sheet(lattice, y0 - back * v0, y1 - back * v1, y2 - back * v2, with_half, bodies)
        across, half = across + weight * f, half + weight * t
        g0, g1, g2 = g0 + weight * d0, g1 + weight * d1, g2 + weight * d2
    return across, g0, g1, g2, half


@part
def beyond_sheet(b, sheet, end, y0, y1, y2, reach, bodies):
    """Return whether no place within `reach` [m] knows a sheet of a level-set body; one that changes its shape is not asked."""
    first = KEY_LATTICES + 2 * end
    one = bodies.integer[b, first]
    if one != bodies.integer[b, first + 1]:
        return False
    k, ints, reals = bodies.lattice_integer[one, SHEETS] + 2 * sheet, bodies.lattice_integer, bodies.lattice_real
    more = reach / reals[k, VOXEL]
    low0, high0 = _leaves_along(k, 0, more, y0, y1, y2, ints, reals)
    low1, high1 = _leaves_along(k, 1, more, y0, y1, y2, ints, reals)
    low2, high2 = _leaves_along(k, 2, more, y0, y1, y2, ints, reals)
    for l0 in range(low0, high0):
        for l1 in range(low1, high1):
            for l2 in range(low2, high2):
                if bodies.table[ints[k, TABLE_OFFSET] + (l0 * ints[k, 2] + l1) * ints[k, 3] + l2] >= 0:
                    return False
    return True


@inline
def _leaves_along(k, axis, more, y0, y1, y2, ints, reals):
    """Return the first and last + 1 of the leaves of lattice k along an axis that lie within `more` voxels of a point."""
    row = 4 * axis
    u = reals[k, row] * y0 + reals[k, row + 1] * y1 + reals[k, row + 2] * y2 + reals[k, row + 3] - LEAF * ints[k, 4 + axis]
    last = 1.0 * ints[k, 1 + axis]
    first = min(max(np.floor((u - more) / LEAF), 0.0), last)
    return np.int64(first), np.int64(min(max(np.floor((u + more) / LEAF) + 1.0, first), last))


@compiled(fastmath=False)
def body_velocity(b, dt, y0, y1, y2, bodies):
    """Return the world velocity [m/s] of the body's matter at y, from its displacement in this substep over dt.

    A level set that moves in its own frame adds that motion: its velocities, else d phi/dt along the normal.
    """
    real = bodies.real
    v0 = v1 = v2 = 0.0
    if bodies.integer[b, KIND] == LEVEL_SET:
        v0, v1, v2 = _own_motion(b, y0, y1, y2, bodies)
    p, q = POSE, POSE + 12
    inverse = 1.0 / dt
    o0 = (real[b, q] - real[b, p]) * y0 + (real[b, q + 1] - real[b, p + 1]) * y1
    o1 = (real[b, q + 3] - real[b, p + 3]) * y0 + (real[b, q + 4] - real[b, p + 4]) * y1
    o2 = (real[b, q + 6] - real[b, p + 6]) * y0 + (real[b, q + 7] - real[b, p + 7]) * y1
    o0 += (real[b, q + 2] - real[b, p + 2]) * y2 + real[b, q + 9] - real[b, p + 9]
    o1 += (real[b, q + 5] - real[b, p + 5]) * y2 + real[b, q + 10] - real[b, p + 10]
    o2 += (real[b, q + 8] - real[b, p + 8]) * y2 + real[b, q + 11] - real[b, p + 11]
    return (
        o0 * inverse + real[b, q] * v0 + real[b, q + 1] * v1 + real[b, q + 2] * v2,
        o1 * inverse + real[b, q + 3] * v0 + real[b, q + 4] * v1 + real[b, q + 5] * v2,
        o2 * inverse + real[b, q + 6] * v0 + real[b, q + 7] * v1 + real[b, q + 8] * v2,
    )


@inline
def _own_motion(b, y0, y1, y2, bodies):
    """Return the velocity of a level set in its own frame at the end of the substep; a still one may carry it (a belt)."""
    first = bodies.integer[b, KEY_LATTICES + 2]
    if first == bodies.integer[b, KEY_LATTICES + 3] and bodies.integer[b, HAS_VELOCITY] == 0:
        return 0.0, 0.0, 0.0
    _, g0, g1, g2, v0, v1, v2, rate = _carried_keys(b, np.int64(1), bodies.real[b, KEY_MIX + 1], y0, y1, y2, bodies)
    squared = g0 * g0 + g1 * g1 + g2 * g2
    if bodies.integer[b, HAS_VELOCITY] == 0 and squared > 1e-12:
        # what the drift leaves over: along the normal the surface moves at -(d phi/dt) / |grad phi|
        return v0 - rate * g0 / squared, v1 - rate * g1 / squared, v2 - rate * g2 / squared
    return v0, v1, v2
