"""The incremental potential of implicit steps on the grid: its gradient, its Hessian's product, its preconditioner.

| symbol | meaning | unit |
|---|---|---|
| v, v~ | velocities, those without internal forces | m/s |
| r, z, p, q | residual, preconditioned residual, direction, H p | kg m/s, m/s, m/s, kg m/s |
| inverse | inverse 3 x 3 block of every node, xx xy xz yy yz zz | 1/kg |
| slot, free, drag | place of a node among those in contact or -1, its projector on free directions, its friction | -, -, kg |

A vector has four float64 values a node, flat; the fourth is zero. Sums are given block by block: the caller adds them in order, so
that they do not depend on the number of threads. Every function runs over the first `count` blocks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.parallel import FEW, parallel_for

__all__ = [
    "Held",
    "Start",
    "add_forces",
    "finish_product",
    "kick",
    "largest",
    "precondition",
    "predict",
    "remove_constrained",
    "residual",
]


class Start(NamedTuple):
    """What an implicit step begins with.

    Attributes:
        momentum: Nodes' (px, py, pz, m), flat, in the solve's float type.
        predicted: v~ [m/s].
        dt: Substep [s].
        least_mass: Mass of an empty node [kg].
        count: Number of grid blocks.
    """

    momentum: np.ndarray
    predicted: np.ndarray
    dt: float
    least_mass: float
    count: int


class Held(NamedTuple):
    """What contacts leave of the nodes.

    Attributes:
        slot: Place of each node among those in contact, or -1, int32.
        free: Projector P of each node in contact, six values each.
        drag: Second derivative of the friction of each node in contact, six values each [kg].
    """

    slot: np.ndarray
    free: np.ndarray
    drag: np.ndarray


@inline
def _symmetric_product(matrix, at, x, y, z):
    """Return the product of a symmetric matrix, stored from `at` on, and a vector."""
    return (
        matrix[at] * x + matrix[at + 1] * y + matrix[at + 2] * z,
        matrix[at + 1] * x + matrix[at + 3] * y + matrix[at + 4] * z,
        matrix[at + 2] * x + matrix[at + 4] * y + matrix[at + 5] * z,
    )


@part
def _predict_at(g, start, gx, gy, gz):
    momentum, predicted, _, least_mass, _ = start
    for n in range(256 * g, 256 * g + 256, 4):
        mass = np.float64(momentum[n + 3])
        for axis in range(4):
            predicted[n + axis] = 0.0
        if mass > least_mass:
            predicted[n] = momentum[n] / mass + gx
            predicted[n + 1] = momentum[n + 1] / mass + gy
            predicted[n + 2] = momentum[n + 2] / mass + gz


@compiled(fastmath=False)
def predict(start, gx, gy, gz):
    """Write v~ = v + dt g of nodes heavier than `least_mass`, zero elsewhere; (gx, gy, gz) is dt g [m/s]."""
    parallel_for(_predict_at, start.count, (start, gx, gy, gz), FEW)


@part
def _kick_at(g, start, force, velocity):
    momentum, predicted, dt, least_mass, _ = start
    for n in range(256 * g, 256 * g + 256, 4):
        mass = np.float64(momentum[n + 3])
        share = dt / mass if mass > least_mass else 0.0
        for axis in range(3):
            velocity[n + axis] = predicted[n + axis] + share * force[n + axis]
        velocity[n + 3] = 0.0


@compiled(fastmath=False)
def kick(start, force, velocity):
    """Write v~ + dt f / m, the velocities of an explicit step [m/s]."""
    parallel_for(_kick_at, start.count, (start, force, velocity), FEW)


@part
def _add_forces_at(g, force, product, factor):
    for n in range(256 * g, 256 * g + 256):
        force[n] += factor * product[n]


@compiled(fastmath=False)
def add_forces(force, product, factor, count):
    """force += factor product, both grid arrays of the solve."""
    parallel_for(_add_forces_at, count, (force, product, factor), FEW)


@part
def _residual_at(g, start, velocity, force, drag, slot, gradient, sums):
    momentum, predicted, dt, least_mass, _ = start
    total = 0.0
    for n in range(256 * g, 256 * g + 256, 4):
        mass = np.float64(momentum[n + 3])
        if mass <= least_mass:
            mass = 0.0
        for axis in range(3):
            change = velocity[n + axis] - predicted[n + axis]
            total += 0.5 * mass * change * change
            gradient[n + axis] = mass * change - dt * np.float64(force[n + axis]) if mass > 0.0 else 0.0
        gradient[n + 3] = 0.0
        contact = slot[n >> 2]
        if contact >= 0:
            for axis in range(3):
                gradient[n + axis] += drag[3 * contact + axis]
    sums[g] = total


@compiled(fastmath=False)
def residual(start, velocity, force, drag, slot, gradient, sums):
    """Write dE/dv = m (v - v~) - dt f + drag [kg m/s], and the kinetic part m/2 |v - v~|^2 of every grid block [J].

    Args:
        start: `Start`.
        velocity: v [m/s].
        force: Grid array of the solve.
        drag: Gradient of the friction of each node in contact, three values each [kg m/s].
        slot: Place of each node in it, or -1, int32.
        gradient: Written.
        sums: Written, shape (count,), float64.
    """
    parallel_for(_residual_at, start.count, (start, velocity, force, drag, slot, gradient, sums), FEW)


@part
def _finish_product_at(g, start, held, product, factor, p, q, sums):
    (momentum, _, _, least_mass, _), (slot, free, drag) = start, held
    total = 0.0
    for n in range(256 * g, 256 * g + 256, 4):
        mass = np.float64(momentum[n + 3])
        if mass <= least_mass:
            q[n] = q[n + 1] = q[n + 2] = q[n + 3] = 0.0
            continue
        x, y = mass * p[n] + factor * product[n], mass * p[n + 1] + factor * product[n + 1]
        z = mass * p[n + 2] + factor * product[n + 2]
        contact = slot[n >> 2]
        if contact >= 0:
            dx, dy, dz = _symmetric_product(drag, 6 * contact, p[n], p[n + 1], p[n + 2])
            x, y, z = _symmetric_product(free, 6 * contact, x + dx, y + dy, z + dz)
        q[n], q[n + 1], q[n + 2], q[n + 3] = x, y, z, 0.0
        total += x * p[n] + y * p[n + 1] + z * p[n + 2]
    sums[g] = total


@compiled(fastmath=False)
def finish_product(start, held, product, factor, p, q, sums):
    """Write q = P (m p + factor product + drag p) and the parts of p.q.

    Args:
        start: `Start`.
        held: `Held`.
        product: dt^2 Phi'' p of the energy terms, in the solve's float type.
        factor: Of `product`.
        p: Direction, free of constrained components.
        q: Written.
        sums: Written, shape (count,), float64.
    """
    parallel_for(_finish_product_at, start.count, (start, held, product, factor, p, q, sums), FEW)


@part
def _precondition_at(g, momentum, inverse, free, slot, r, z, sums):
    total, by_mass = 0.0, 0.0
    for n in range(256 * g, 256 * g + 256, 4):
        if inverse[6 * (n >> 2)] > 0.0:
            by_mass += (r[n] * r[n] + r[n + 1] * r[n + 1] + r[n + 2] * r[n + 2]) / np.float64(momentum[n + 3])
        x, y, w = _symmetric_product(inverse, 6 * (n >> 2), r[n], r[n + 1], r[n + 2])
        contact = slot[n >> 2]
        if contact >= 0:
            x, y, w = _symmetric_product(free, 6 * contact, x, y, w)
        z[n], z[n + 1], z[n + 2], z[n + 3] = x, y, w, 0.0
        total += x * r[n] + y * r[n + 1] + w * r[n + 2]
    sums[2 * g], sums[2 * g + 1] = total, by_mass


@compiled(fastmath=False)
def precondition(momentum, inverse, free, slot, r, z, count, sums):
    """Write z = P inverse r, and the parts of r.z and of |r|^2 / m in turns, shape (2 count,)."""
    parallel_for(_precondition_at, count, (momentum, inverse, free, slot, r, z, sums), FEW)


@part
def _project_at(g, free, slot, r):
    for n in range(256 * g, 256 * g + 256, 4):
        contact = slot[n >> 2]
        if contact >= 0:
            # twice: once leaves the rounding of what was removed, which no solve can reduce and which would grow in it
            x, y, z = _symmetric_product(free, 6 * contact, r[n], r[n + 1], r[n + 2])
            r[n], r[n + 1], r[n + 2] = _symmetric_product(free, 6 * contact, x, y, z)


@compiled(fastmath=False)
def remove_constrained(free, slot, r, count):
    """Remove the constrained components of a vector."""
    parallel_for(_project_at, count, (free, slot, r), FEW)


@part
def _largest_at(g, x, momentum, by_mass, least_mass, whole_mass, sums):
    most = 0.0
    for n in range(256 * g, 256 * g + 256, 4):
        mass = np.float64(momentum[n + 3])
        if mass > least_mass:
            size = x[n] * x[n] + x[n + 1] * x[n + 1] + x[n + 2] * x[n + 2]
            size = size / (mass * mass) if by_mass else size
            if mass < whole_mass:
                size *= (mass / whole_mass) ** 2
            if not size <= most:  # a NaN stays and is seen
                most = size
    sums[g] = np.sqrt(most)


@compiled(fastmath=False)
def largest(x, momentum, by_mass, least_mass, whole_mass, count, sums):
    """Write the largest |x|, or |x| / m, of the nodes of every grid block that have mass.

    A node lighter than `whole_mass`, the mass of a particle, counts by its share of that: so much of it can reach a particle.
    """
    parallel_for(_largest_at, count, (x, momentum, by_mass, least_mass, whole_mass, sums), FEW)
