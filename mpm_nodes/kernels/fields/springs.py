"""Springs that tie particles to places that may move: their pull in a substep.

| symbol | meaning | unit |
|---|---|---|
| d, w | way of a particle from its place, velocity against it, as the substep begins | m, m/s |
| M, k | mass of all that is tied together, and stiffness of all its ties together | kg, N/m |
| f | angular frequency, f^2 = k / M: the same for every particle, whatever the resolution | 1/s |
| z | damping, as a share of the critical one | - |

    w <- exp(-2 z f dt) w - min(f^2, 1 / dt^2) dt d

Damping is solved exactly. The spring pulls as stiffly as it is, so that it stretches by F / k under a load F, as long as f dt <= 1;
a stiffer one brings what is tied back to its place within the substep. With dt^2 f^2 <= 1 the pair (d, w) grows in no substep.
"""

from __future__ import annotations

import math

from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.lend import plain
from mpm_nodes.kernels.compile.parallel import parallel_for

__all__ = ["BROKEN", "LEFT_OUT", "TOLD", "UNSEEN", "pull"]

UNSEEN, BROKEN, LEFT_OUT = 0, -1, -2
"""What became of a particle: not looked at; its tie broke; it is not tied. Above 0 it is tied: 1, on a surface 1 + the triangle."""

TOLD = 8
"""Numbers that are told of each block: impulse [N s], work [J], square of the largest acceleration [m^2/s^4], and the impulse
that is left without damping [N s]."""


@part
def _on_surface(points, triangles, t, u, v, w):
    """Return the place of a material point: corner + u (second - corner) + v (third - corner) + w normal."""
    a, b, c = 3 * triangles[3 * t], 3 * triangles[3 * t + 1], 3 * triangles[3 * t + 2]
    ax, ay, az = points[a], points[a + 1], points[a + 2]
    bx, by, bz = points[b] - ax, points[b + 1] - ay, points[b + 2] - az
    cx, cy, cz = points[c] - ax, points[c + 1] - ay, points[c + 2] - az
    nx, ny, nz = by * cz - bz * cy, bz * cx - bx * cz, bx * cy - by * cx
    w /= max(math.sqrt(nx * nx + ny * ny + nz * nz), 1e-300)
    return ax + u * bx + v * cx + w * nx, ay + u * by + v * cy + w * ny, az + u * bz + v * cz + w * nz


@part
def _place(ties, body, triangles, p):
    """Return where the tie of a particle holds [m]; a pose has nine entries of a rotation and three of a translation."""
    state, anchor, stride = ties
    pose, points = body
    corners, surface = triangles
    x, y, z = float(anchor[p]), float(anchor[stride + p]), float(anchor[2 * stride + p])
    if surface > 0:
        t = state[p] - 1
        x, y, z = _on_surface(points, corners, t, x, y, z)
    return (
        pose[0] * x + pose[1] * y + pose[2] * z + pose[9],
        pose[3] * x + pose[4] * y + pose[5] * z + pose[10],
        pose[6] * x + pose[7] * y + pose[8] * z + pose[11],
    )


@part
def _nearest_image(d, period):
    return d - period * math.floor(d / period + 0.5) if period > 0.0 else d


@part
def _pull_at(k, cloud, ties, where, body, numbers, told):
    (offset, stride, cell), velocity, mass = cloud
    ranges, corners = where
    dt, decay, spring, square, near = numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]
    state, (begin, end, triangles) = ties[0], body
    block, given = ranges[k, 2], plain(told[k])
    cx, cy, cz = corners[block, 0], corners[block, 1], corners[block, 2]
    for p in range(ranges[k, 0], ranges[k, 1]):
        if state[p] <= 0:
            continue
        px, py, pz = _place(ties, begin, triangles, p)
        x = _nearest_image(cx + cell * offset[p] - px, numbers[5])
        y = _nearest_image(cy + cell * offset[stride + p] - py, numbers[6])
        z = _nearest_image(cz + cell * offset[2 * stride + p] - pz, numbers[7])
        far = math.sqrt(x * x + y * y + z * z)
        if far > near:
            given[4] = max(given[4], square * square * far * far)
        if dt <= 0.0:
            continue
        qx, qy, qz = _place(ties, end, triangles, p)
        u = _nearest_image(qx - px, numbers[5]) / dt
        v = _nearest_image(qy - py, numbers[6]) / dt
        w = _nearest_image(qz - pz, numbers[7]) / dt
        a, b, c = float(velocity[p]), float(velocity[stride + p]), float(velocity[2 * stride + p])
        i = u + decay * (a - u) - spring * x
        j = v + decay * (b - v) - spring * y
        m = w + decay * (c - w) - spring * z
        kilograms = float(mass[p])
        given[0] += kilograms * (i - a)
        given[1] += kilograms * (j - b)
        given[2] += kilograms * (m - c)
        given[3] += 0.5 * kilograms * (i * i + j * j + m * m - a * a - b * b - c * c)
        given[5] -= kilograms * spring * x
        given[6] -= kilograms * spring * y
        given[7] -= kilograms * spring * z
        velocity[p], velocity[stride + p], velocity[2 * stride + p] = i, j, m


@compiled(fastmath=False)
def pull(cloud, ties, where, body, numbers, told):
    """Pull what is tied to its places.

    Args:
        cloud: As `pushing.push` takes it: placement, velocities (updated where dt is above 0), masses.
        ties: What became of each particle, int32, and where it is tied, shape (3 stride,): a place [m], or on a surface shares of
            two edges of the triangle and the height above it [m].
        where: As `pushing.push` takes it.
        body: Of the beginning and of the end of the substep the pose, shape (12,), and the vertices [m], shape (3 n,), float64; the
            triangles, int64, shape (3 m,), void where nothing is tied to a surface.
        numbers: dt [s], 0 only to find the strongest; exp(-2 z f dt); min(f^2, 1 / dt^2) dt [1/s]; f^2 [1/s^2]; how near to its
            place nothing counts as strong [m]; how far apart periodic sides are along each axis [m], 0 for none. Float64, shape
            (8,).
        told: Written: of each block what `TOLD` says, shape (n, TOLD), float64.
    """
    told[:] = 0.0
    (offset, stride, cell), velocity, mass = cloud
    (pose, points), (later, there), triangles = body
    given = (
        ((plain(offset), stride, cell), plain(velocity), plain(mass)),
        (plain(ties[0]), plain(ties[1]), stride),
        where,
        ((plain(pose), plain(points)), (plain(later), plain(there)), (plain(triangles), triangles.shape[0])),
        plain(numbers),
        told,
    )
    parallel_for(_pull_at, where[0].shape[0], given)
