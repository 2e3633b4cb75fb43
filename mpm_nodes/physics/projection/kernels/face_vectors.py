"""Velocities of all faces as one vector, for semi-implicit steps: x faces, y faces, z faces, 64 of each a block.

| symbol | meaning | unit |
|---|---|---|
| m, f | mass of a face, force on it | kg, N |
| v*, d | velocity after the forces, a direction in velocities | m/s |
| K d | sum V0 dT(grad d) grad w | N |

    m v* = m v + dt f + dt m g,    (A d)_f = m d_f + dt (K d)_f

Faces without mass and those that a body holds are not unknowns: their rows of A and of right sides are zero.
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.lend import plain
from mpm_nodes.kernels.compile.parallel import FEW, parallel_for
from mpm_nodes.kernels.lanes.arithmetic import const, fma, hsum, select
from mpm_nodes.kernels.lanes.memory import load, store
from mpm_nodes.kernels.lanes.types import WIDTH
from mpm_nodes.physics.projection.kernels.solid_faces import HELD

__all__ = ["advance_faces", "begin_faces", "divide_by_mass", "finish_product", "round_faces", "write_faces"]


@part
def _advance_at(g, momentum, force, velocity, dt, gravity, least):
    for c in range(64 * g, 64 * g + 64):
        mass = np.float64(momentum[4 * c + 3])
        velocity[4 * c] = (np.float64(momentum[4 * c]) + dt * force[4 * c]) / mass + dt * gravity if mass > least else 0.0


@compiled(fastmath=False)
def advance_faces(count, momentum, force, velocity, dt, gravity, least):
    """Write v* = (m v + dt f) / m + dt g of the faces of one axis, 0 where they are empty."""
    parallel_for(_advance_at, count, (momentum, force, velocity, dt, gravity, least), FEW)


@part
def _begin_at(g, shift, momentum, velocity, held, least, vectors):
    (state, speed), (mass, x, b) = held, vectors
    for c in range(64 * g, 64 * g + 64):
        m, v = np.float64(momentum[4 * c + 3]), np.float64(velocity[4 * c])
        free = m > least and state[c] != HELD
        mass[shift + c] = m if free else 0.0
        x[shift + c] = np.float64(speed[c]) if state[c] == HELD else v
        b[shift + c] = m * v if free else 0.0


@compiled(fastmath=False)
def begin_faces(count, shift, momentum, velocity, held, least, vectors):
    """Write masses (0 where nothing is to be solved), first guess and right side m v* of the faces of one axis to vectors.

    Args:
        count: Number of grid blocks.
        shift: Where the faces of this axis begin in the vectors.
        momentum: (m v, 0, 0, m) of the faces.
        velocity: v* in the first place [m/s].
        held: State of each face (`solid_faces`), and the velocity of held ones [m/s].
        least: Mass above which a face has one [kg].
        vectors: Masses, first guess and right side, written.
    """
    parallel_for(_begin_at, count, (np.int64(shift), momentum, velocity, held, least, vectors), FEW)


@part
def _write_at(g, shift, x, velocity):
    for c in range(64 * g, 64 * g + 64):
        velocity[4 * c] = x[shift + c]


@compiled(fastmath=False)
def write_faces(count, shift, x, velocity):
    """Write the part of a vector that belongs to one axis to its faces."""
    parallel_for(_write_at, count, (np.int64(shift), plain(x), plain(velocity)), FEW)


@part
def _round_at(g, x, faces):
    for n in range(192 * g, 192 * g + 192):
        faces[n] = x[n]


@compiled(fastmath=False)
def round_faces(count, x, faces):
    """Write a vector in the grid's float type."""
    parallel_for(_round_at, count, (plain(x), plain(faces)), FEW)


@part
def _product_at(g, change, mass, dt, d, q):
    for n in range(192 * g, 192 * g + 192):
        q[n] = mass[n] * d[n] + dt * np.float64(change[n]) if mass[n] > 0.0 else 0.0


@compiled(fastmath=False)
def finish_product(count, change, mass, dt, d, q):
    """Write A d, with K d of all faces in `change`."""
    parallel_for(_product_at, count, (plain(change), plain(mass), dt, plain(d), plain(q)), FEW)


@part
def _divide_at(g, mass, r, z, sums):
    total = none = const(load(r, 0), 0.0)
    for n in range(192 * g, 192 * g + 192, WIDTH):
        m, value = load(mass, n), load(r, n)
        found = select(m > none, value / m, none)
        store(z, n, found)
        total = fma(value, found, total)
    sums[g] = hsum(total)


@compiled(fastmath=False)
def divide_by_mass(count, mass, r, z, sums):
    """Write r / m, 0 where nothing is to be solved, and the part of r.z of every grid block."""
    parallel_for(_divide_at, count, (plain(mass), plain(r), plain(z), plain(sums)), FEW)
