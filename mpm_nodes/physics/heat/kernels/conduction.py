"""Implicit conduction on the cells of the staggered grid: its coefficients, and what comes of the solve.

| symbol | meaning | unit | source |
|---|---|---|---|
| M_c | heat capacity of a cell, sum w m_p c_p | J/K | S14 section 5.8, times h^3 |
| V_f, K_f | volume of the matter and V-weighted conductivity at a face | m^3, W/(m K) | |
| G_f | conductance of a face, V_f K_f / h^2: K h where matter is whole | W/K | |
| V_c, f | volume of the matter in a cell, V_c / h^3 | m^3, - | |
| q, Q_c | heat made in all matter; power of the particles' own sources, sum w V_p q_p | W/m^3, W | |
| o | share of a cell that bodies leave open | - | `near_bodies` |
| A_c | area of free surface in a cell | m^2 | `free_surface` |
| phi, n | distance of a cell's centre from a body [cells], unit normal out of it | -, - | `near_bodies` |
| B_c | conductance between a cell and a body | W/K | |
| b_b, b_a | flux that comes through a body's surface, and through free surfaces, whatever the temperatures | W/m^2 | |

    (M_c + dt B_c + dt h_a A_c) T_c - dt sum_f G_f (T_n - T_c)
        = M_c T_c^n + dt (B_c T_b + F_c + h_a A_c T_a + b_a A_c + q V_c + Q_c)

Matter fills the cells at its surface partly: M_c and G_f are small there alike, so that no heat crosses the surface by itself and
the heat that particles give is the heat of the cells, also of those behind a wall. What crosses it is said:

- through the surface to the air, h_a A_c (T_a - T_c).
- to a body with a temperature, over the faces between a cell outside and one inside: area h^2 |n_a|, so that stairs have the area
  of the slope, distance phi to the surface itself: B = min(1, f / (o WHOLE)) h^2 |n_a| / (phi h / K_c + 1 / h_b), n that of the
  cell inside: beside the cell outside a wall may be nearer. These faces do not conduct besides. Matter that lies in a cell inside
  the body takes its temperature through phi h as well.
- a body's flux comes in over the same faces, F_c = b_b min(1, f / (o WHOLE)) h^2 |n_a|. Of that b_b |n_a| V_f / h comes in through
  the cell inside, which so stays warmer by b_b h |n_a| / K than the one outside, as the gradient at the surface has it: a body
  without a temperature insulates else, and its faces conduct.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.kernels.cells.cell_matrix import before, behind, face_of
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.lend import lend_plain, plain
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.physics.heat.kernels.free_surface import CLOSED, write_free_areas

__all__ = ["NEAR", "HeatFields", "HeatSystem", "assemble_heat", "balance", "write_temperatures"]

DT, H, AIR_TEMPERATURE, TO_AIR, SOURCE, LEAST, FLUX = range(7)
"""Places of `numbers` of what is given."""
WHOLE = 0.96
"""Share of what bodies leave open of a cell from which on it counts as whole; lattices and flows fluctuate by less."""
NEAREST, NEAR = 0.1, 2.0
"""Least distance from a surface, and that from which on no face leads into the body [cells]."""


class HeatFields(NamedTuple):
    """What the coefficients are made of; arrays of the staggered grid have four values a point.

    Attributes:
        heat: (M T, V, Q, M) of the cells.
        x, y, z: (V K, 0, 0, V) of the faces.
        around: Blocks before and behind along x, y and z, shape (n, 6), int32; -1 for none.
        phi, normal, which, opened: Nearest bodies, see `near_bodies`.
        bodies: (temperature, conductance, flux) of bodies and walls, shape (bodies, 3), then of cells beside
            bodies whose temperature varies; conductance 0: no heat but the flux.
        numbers: dt [s], h [m], temperature of the air [K], h_a [W/(m^2 K)], q [W/m^3], least M, b_a [W/m^2].
    """

    heat: np.ndarray
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    around: np.ndarray
    phi: np.ndarray
    normal: np.ndarray
    which: np.ndarray
    opened: np.ndarray
    bodies: np.ndarray
    numbers: np.ndarray


class HeatSystem(NamedTuple):
    """The linear system, one float64 a cell; faces carry the index of the cell behind them.

    Attributes:
        diagonal: M + dt (sum G + B + h_a A); 1 where a cell is empty.
        x, y, z: dt G of the faces.
        right: Right side [J].
        start: T^n [K].
        body, air: dt B and dt h_a A.
        body_heat: dt (B T_b + F).
        source: dt (q V + Q + b_a A).
    """

    diagonal: np.ndarray
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    right: np.ndarray
    start: np.ndarray
    body: np.ndarray
    air: np.ndarray
    body_heat: np.ndarray
    source: np.ndarray


# ---------------------------------------------------------------- coefficients
@inline
def _thermal(given, c):
    """Return whether cell c lies inside a body that has a temperature."""
    return given.phi[c] <= 0.0 and given.bodies[given.which[c], 1] > 0.0


@inline
def _conductance(given, axis, low, high):
    """Return dt G of the face between two cells, 0 where it does not conduct."""
    if low < 0 or high < 0:
        return 0.0
    least = given.numbers[LEAST]
    if given.heat[4 * low + 3] <= least or given.heat[4 * high + 3] <= least:
        return 0.0
    if _thermal(given, low) != _thermal(given, high):
        return 0.0
    h = given.numbers[H]
    return given.numbers[DT] * np.float64(face_of(given, axis)[4 * high]) / (h * h)


@inline
def _filled(given, c):
    """Return f of a cell."""
    return np.float64(given.heat[4 * c + 1]) / given.numbers[H] ** 3


@part
def _conductivity(given, g, n):
    """Return the conductivity around a cell, weighted by volume."""
    volume, conduction = 0.0, 0.0
    for axis in range(3):
        face, c, high = face_of(given, axis), 64 * g + n, behind(given.around, g, n, axis)
        volume += np.float64(face[4 * c + 3])
        conduction += np.float64(face[4 * c])
        if high >= 0:
            volume += np.float64(face[4 * high + 3])
            conduction += np.float64(face[4 * high])
    return conduction / max(volume, 1e-300)


@inline
def _to_body(given, body, area, phi, conductivity):
    """Return dt times the conductance over an area to a body's surface, phi cells away."""
    contact = given.bodies[body, 1]
    h = given.numbers[H]
    return given.numbers[DT] * area / (max(phi, NEAREST) * h / conductivity + 1.0 / contact)


@inline
def _face_volume(given, axis, side, c, other):
    """Return V_f of the face between a cell and the one before (side 0) or behind it, 0 where it does not conduct."""
    if given.heat[4 * c + 3] <= given.numbers[LEAST] or given.heat[4 * other + 3] <= given.numbers[LEAST]:
        return 0.0
    return np.float64(face_of(given, axis)[4 * (other if side else c) + 3])


@part
def _through(given, g, n):
    """Return what comes in through a cell inside a body without a temperature, to go on to those outside."""
    c, h, heat = 64 * g + n, given.numbers[H], 0.0
    flux = given.bodies[given.which[c], 2]
    if flux == 0.0:
        return heat
    for axis in range(3):
        for side in range(2):
            other = behind(given.around, g, n, axis) if side else before(given.around, g, n, axis)
            if other >= 0 and given.phi[other] > 0.0:
                across = abs(given.normal[3 * c + axis])
                heat += given.numbers[DT] * flux * across * _face_volume(given, axis, side, c, other) / h
    return heat


@part
def _contact(given, g, n):
    """Return (dt B, dt (B T_b + F)) of a cell."""
    c, h = 64 * g + n, given.numbers[H]
    total, heat = 0.0, 0.0
    if abs(given.phi[c]) > NEAR:
        return total, heat
    filled, conductivity = _filled(given, c), _conductivity(given, g, n)
    if _thermal(given, c):
        body = given.which[c]
        total = _to_body(given, body, filled * h * h, -given.phi[c], conductivity)
        return total, total * given.bodies[body, 0]
    if given.phi[c] <= 0.0:
        heat = _through(given, g, n)
    share = min(1.0, filled / (WHOLE * max(given.opened[c], CLOSED)))
    for axis in range(3):
        for side in range(2):
            other = behind(given.around, g, n, axis) if side else before(given.around, g, n, axis)
            if other < 0 or given.phi[other] > 0.0:
                continue
            body = given.which[other]
            across = abs(given.normal[3 * other + axis])
            area = share * h * h * across
            if given.phi[c] > 0.0 and given.bodies[body, 2] != 0.0:
                through = 0.0 if _thermal(given, other) else _face_volume(given, axis, side, c, other) / h
                heat += given.numbers[DT] * given.bodies[body, 2] * (area - through * across)
            if _thermal(given, other):
                gain = _to_body(given, body, area, max(given.phi[c], across + given.phi[other]), conductivity)
                total += gain
                heat += gain * given.bodies[body, 0]
    return total, heat


@part
def _assemble_at(g, given, areas, system):
    dt, air, to_air, source, least, flux = (
        given.numbers[DT],
        given.numbers[AIR_TEMPERATURE],
        given.numbers[TO_AIR],
        given.numbers[SOURCE],
        given.numbers[LEAST],
        given.numbers[FLUX],
    )
    for n in range(64):
        c = 64 * g + n
        mass = np.float64(given.heat[4 * c + 3])
        system.start[c] = np.float64(given.heat[4 * c]) / mass if mass > 0.0 else 0.0
        system.x[c] = _conductance(given, 0, before(given.around, g, n, 0), c)
        system.y[c] = _conductance(given, 1, before(given.around, g, n, 1), c)
        system.z[c] = _conductance(given, 2, before(given.around, g, n, 2), c)
        system.body[c] = system.air[c] = system.body_heat[c] = system.source[c] = 0.0
        if mass <= least:  # keeps its temperature; weighs no more than its heat in the residual that ends the solve
            system.diagonal[c], system.right[c] = (mass, np.float64(given.heat[4 * c])) if mass > 0.0 else (1.0, 0.0)
            continue
        system.source[c] = dt * (source * np.float64(given.heat[4 * c + 1]) + np.float64(given.heat[4 * c + 2]))
        system.body[c], system.body_heat[c] = _contact(given, g, n)
        if to_air > 0.0 or flux != 0.0:
            system.air[c] = dt * to_air * areas[c]
            system.source[c] += dt * flux * areas[c]
        total = mass + system.body[c] + system.air[c] + system.x[c] + system.y[c] + system.z[c]
        for axis in range(3):
            other = behind(given.around, g, n, axis)
            total += _conductance(given, axis, np.int64(c), other)
        system.diagonal[c] = total
        system.right[c] = np.float64(given.heat[4 * c]) + system.body_heat[c] + system.air[c] * air + system.source[c]


@compiled(fastmath=False)
def assemble_heat(count, given, system):
    """Write the system of a backward Euler step.

    Args:
        count: Number of grid blocks.
        given: What it is made of.
        system: The system, written.
    """
    areas = np.empty(64 * count if given.numbers[TO_AIR] > 0.0 or given.numbers[FLUX] != 0.0 else 0)
    if areas.size:
        write_free_areas(count, given.heat, given.around, given.opened, (given.numbers[H], 1.0), areas)
    parallel_for(_assemble_at, count, (lend_plain(given), plain(areas), lend_plain(system)))


# ---------------------------------------------------------------- what comes of it
@part
def _write_at(g, temperature, grid):
    for c in range(64 * g, 64 * g + 64):
        grid[4 * c] = temperature[c]


@compiled(fastmath=False)
def write_temperatures(count, temperature, grid):
    """Write the cells' temperatures to a grid array."""
    parallel_for(_write_at, count, (plain(temperature), plain(grid)))


@part
def _balance_at(g, system, air, temperature, sums):
    bodies = through_air = source = 0.0
    for c in range(64 * g, 64 * g + 64):
        bodies += system.body_heat[c] - system.body[c] * temperature[c]
        through_air += system.air[c] * (air - temperature[c])
        source += system.source[c]
    sums[g, 0], sums[g, 1], sums[g, 2] = bodies, through_air, source


@compiled(fastmath=False)
def balance(count, system, air, temperature, sums):
    """Write the heat that each block got from bodies, from the air and from sources [J] to `sums`, shape (count, 3)."""
    parallel_for(_balance_at, count, (lend_plain(system), air, plain(temperature), plain(sums)))
