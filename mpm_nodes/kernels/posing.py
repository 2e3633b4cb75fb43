"""Pose bodies at the two ends of a substep: rigid motion between pose keys, and the level sets to blend."""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.jit import kernel
from mpm_nodes.kernels.level_set import DRIFT, KEY_LATTICES, KEY_MIX, KEY_SPAN, POSE


@kernel(fastmath=False)
def _bracket(times, first, last, time):
    """Return the keys around `time` among times[first:last] and the place between them, 0..1; held outside."""
    k = first
    while k < last - 2 and times[k + 1] <= time:
        k += 1
    if last - first < 2 or times[k + 1] <= times[k]:
        return k, k, 0.0
    return k, k + 1, min(max((time - times[k]) / (times[k + 1] - times[k]), 0.0), 1.0)


@kernel(fastmath=False)
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


@kernel(fastmath=False)
def pose_bodies(times, origin, pose_start, pose_times, rotations, translations,
                key_start, key_times, key_lattices, centres, integer, real):
    """Write poses and key blends of every body at times[0] and times[1] into `integer` and `real`.

    Args:
        times: Start and end of the substep [s], shape (2,).
        origin: Origin of the frame that the kernels work in [m], shape (3,).
        pose_start: First pose key of each body, shape (bodies + 1,).
        pose_times, rotations, translations: Pose keys of all bodies.
        key_start: First level-set key of each body, shape (bodies + 1,).
        key_times, key_lattices: Level-set keys of all bodies: time and lattice number.
        centres: Centre of each lattice's inside [m], shape (lattices, 3).
        integer, real: Columns of `Bodies`.
    """
    for b in range(real.shape[0]):
        for end in range(2):
            p, q, mix = _bracket(pose_times, pose_start[b], pose_start[b + 1], times[end])
            w, x, y, z = _slerp(rotations[p], rotations[q], mix)
            at = POSE + 12 * end
            real[b, at], real[b, at + 1] = 1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z)
            real[b, at + 2], real[b, at + 3] = 2.0 * (x * z + w * y), 2.0 * (x * y + w * z)
            real[b, at + 4], real[b, at + 5] = 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)
            real[b, at + 6], real[b, at + 7] = 2.0 * (x * z - w * y), 2.0 * (y * z + w * x)
            real[b, at + 8] = 1.0 - 2.0 * (x * x + y * y)
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
