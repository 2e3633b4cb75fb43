"""Implicit conduction of heat on the nodes of the grid, in the variational form: bodies, air and sources in, temperatures out.

| symbol | meaning | unit | source |
|---|---|---|---|
| M_i | heat capacity of a node, sum w m c | J/K | C21 section 4.2, with m c in place of the momentum's mass |
| K, V | conductivity and undeformed volume of a particle | W/(m K), m^3 | |
| A_i | free surface around a node, abs(sum V grad N_i) less what faces bodies, by s (`free_surface`) | m^2 | divergence theorem |
| phi, n | distance of a particle from a body, unit normal out of it | m, - | |
| a | area of the body that a particle stands for, V / h up to a cell from the surface | m^2 | coarea formula |
| s | the place on the surface under a particle, x_p - phi n; N_i(s) = N_i(x_p) - phi n . grad N_i(x_p) | m | |
| g, b_b | conductance of the contact, flux that comes through the surface whatever the temperatures | W/(m^2 K), W/m^2 | |

    M_i (T_i - T_i^n) / dt + sum_p V K grad N_i . grad T + sum_p a N_i(s) (g (T(s) - T_b) - b_b)
        = A_i (h_a (T_a - T_i) + b_a) + sum_p N_i V q                                                     (C21 eq. 6, 10)

grad T and T(s) are those of the splines, so that the matrix is symmetric and positive definite, and no face has to be found between
matter and body. It is applied without being stored: a gather and a scatter an iteration.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mpm_nodes.data import Collider, Kernel
from mpm_nodes.data.ambient import air_of
from mpm_nodes.kernels.algebra.krylov import Equations, Until, krylov
from mpm_nodes.kernels.collisions.near_points import find_distances
from mpm_nodes.kernels.collisions.rules import OPEN
from mpm_nodes.kernels.transfers.weights import STENCIL
from mpm_nodes.physics.heat.kernels import conduction, near_bodies
from mpm_nodes.physics.heat.kernels.free_surface import write_edges
from mpm_nodes.physics.heat.numerics.conduction import Conducted, Surroundings, exchange_of
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.grid import LEAST_MASS, GridStore
from mpm_nodes.solver.ranks.together import together_on
from mpm_nodes.solver.staggered import neighbour_blocks
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.surroundings import ambient_at, collider_at
from mpm_nodes.solver.transfers import Deposit, Force, Take, gather, scatter

__all__ = ["conduct_on_nodes"]

HELD = 30.0
"""Conductance of a contact that holds the surface at the body's temperature, in K / h: it is h / 30 thick."""
SUNK = 0.5
"""How deep in a body matter still counts as that at its surface [cells]."""
STIFFNESS = {Kernel.QUADRATIC: 0.9075, Kernel.CUBIC: 0.4596}
"""h^2 times the integral of |grad N|^2 over that of N: the diagonal of the conduction, over sum w V K / h^2."""
WIDTH = {Kernel.QUADRATIC: 1.0, Kernel.CUBIC: math.sqrt(4.0 / 3.0)}
"""Standard deviation of the splines, over that of the quadratic one: cubic ones round edges as much more."""


@dataclass(frozen=True)
class _Contact:
    """Particles at the surface of one body or wall.

    Attributes:
        rows: The particles, shape (n,), each once.
        area: a [m^2].
        arm: -phi n [m], shape (n, 3).
        conductance: g [W/(m^2 K)].
        temperature: T_b [K].
        flux: b_b [W/m^2].
    """

    rows: np.ndarray
    area: np.ndarray
    arm: np.ndarray
    conductance: np.ndarray
    temperature: np.ndarray
    flux: np.ndarray


class _NodalHeat(NamedTuple):
    """The heat of the nodes, one float64 each: volume V, sources Q, heat capacity M; `filled` where M is more than next to none."""

    volume: np.ndarray
    source: np.ndarray
    capacity: np.ndarray
    filled: np.ndarray


class _Operator:
    """What flows from the nodes for given temperatures, and the diagonal of it.

    Args:
        particles: Particles with conductivity and volume.
        grid: Their grid.
        kernel: B-spline of the weights.
        contacts: Particles at the surface of each body.
    """

    def __init__(self, particles: ParticleStore, grid: GridStore, kernel: Kernel, contacts: Sequence[_Contact]) -> None:
        self.particles, self.grid, self.kernel, self.contacts = particles, grid, kernel, contacts
        self.together = together_on(grid)
        self.touches = self.together.any(bool(contacts))
        self._flux, self._heat = particles.rows("heat_flux"), particles.rows("contact_heat")[0]
        self._conductivity, self._volume = particles.rows("conductivity")[0], particles.rows("volume")[0]
        values = ("contact_heat", None, None) if self.touches else None
        self._take = Take("temperature", values=values, gradient=(("heat_flux", 0), None, None))
        force = Force("heat_flux", ((0, 1, 2), None, None), factor=1.0)
        self._give = Deposit("heat_flow", weight="contact_heat" if self.touches else None, force=force)

    def flow(self, temperature: np.ndarray, bodies: bool) -> np.ndarray:
        """Return what each node gives to others and to bodies [W], shape (64 count,), a float64 array of its own.

        Args:
            temperature: Of the nodes [K], float64.
            bodies: With T_b and b_b of the bodies; without them what a difference in temperature makes.
        """
        grid, count = self.grid, self.grid.count
        conduction.write_temperatures(count, temperature, grid.array("temperature"))
        gather(self.particles, grid, self.kernel, self._take)
        leaves = [self._leaving(met, bodies) for met in self.contacts]
        self._flux *= self._conductivity
        if self.touches:
            self._heat[:] = 0.0
        for met, out in zip(self.contacts, leaves, strict=True):
            self._heat[met.rows] += out
            for axis in range(3):  # (-phi n) . grad N of what leaves there
                self._flux[axis, met.rows] += out * met.arm[:, axis] / self._volume[met.rows]
        grid.clear("heat_flow")
        scatter(self.particles, grid, self.kernel, self._give)
        flows = grid.array("heat_flow")[: 256 * count].reshape(-1, 4)
        return flows[:, 0].astype(float) + flows[:, 3]

    def _leaving(self, met: _Contact, bodies: bool) -> np.ndarray:
        """Return what goes through a body's surface at each particle [W], by the temperatures gathered."""
        surface = self._heat[met.rows] + (self._flux[:, met.rows].astype(float) * met.arm.T).sum(axis=0)
        if not bodies:
            return np.asarray(met.area * met.conductance * surface)
        return np.asarray(met.area * (met.conductance * (surface - met.temperature) - met.flux))

    def lost(self) -> float:
        """Return what bodies take after `flow` with the bodies [W], of the particles here."""
        return float(self._heat.sum(dtype=float)) if self.contacts else 0.0

    def diagonal(self) -> np.ndarray:
        """Return the diagonal of `flow` for even matter [W/K], float64."""
        grid = self.grid
        self._heat[:] = self._volume * self._conductivity * (STIFFNESS[self.kernel] / grid.h**2)
        for met in self.contacts:
            self._heat[met.rows] += met.area * met.conductance
        grid.clear("heat_flow")
        scatter(self.particles, grid, self.kernel, Deposit("heat_flow", weight="contact_heat"))
        return grid.array("heat_flow")[3 : 256 * grid.count : 4].astype(float)


def conduct_on_nodes(
    particles: ParticleStore,
    grid: GridStore,
    colliders: ColliderSet,
    dt: float,
    surroundings: Surroundings,
    kernel: Kernel,
    until: Until,
    check: Callable[[], None] = lambda: None,
) -> Conducted:
    """Advance the nodes' temperatures by backward Euler and write them to "temperature".

    Args:
        particles: Particles with conductivity and volume.
        grid: Grid with their heat rasterized.
        colliders: Bodies posed at the end of the substep.
        dt: Substep [s].
        surroundings: Air, walls and sources; `sampled` is not looked at.
        kernel: B-spline of the weights.
        until: When the linear solve stops.
        check: Called now and then; raises to end the solve.
    """
    count, together = grid.count, together_on(grid)
    vectors, size = together.cells(), 64 * grid.count
    surroundings = replace(surroundings, ambient=ambient_at(surroundings.ambient, surroundings.frame))
    nodes = _heat_of(grid, together.largest)
    start = vectors.new()
    start[:size][nodes.filled] = grid.array("heat")[0 : 4 * size : 4][nodes.filled] / nodes.capacity[nodes.filled]
    with np.errstate(over="ignore"):  # what is not finite is told of the whole
        area, to_air, warmth = _air(particles, grid, kernel, colliders, nodes, surroundings)
    made = surroundings.source * nodes.volume + nodes.source + surroundings.flux * area
    for each in surroundings.ambient:
        if each.source is not None:
            made[nodes.filled] += each.source.at(grid.positions()[nodes.filled]) * nodes.volume[nodes.filled]
    operator = _Operator(particles, grid, kernel, _contacts(particles, colliders, surroundings))

    diagonal = np.ones(len(start))
    diagonal[:size] = np.where(nodes.filled, nodes.capacity + dt * (to_air + operator.diagonal()), 1.0)
    right, change = vectors.new(), vectors.new()
    vectors.agree(start)
    gained = made + warmth - to_air * start[:size] - operator.flow(start, bodies=True)
    right[:size] = np.where(nodes.filled, dt * gained, 0.0)
    vectors.leave(right)

    def apply(p: np.ndarray, q: np.ndarray) -> None:
        vectors.agree(p)
        flow = operator.flow(p, bodies=False)
        q[:size] = np.where(nodes.filled, (nodes.capacity + dt * to_air) * p[:size] + dt * flow, p[:size])
        vectors.leave(q)

    def precondition(r: np.ndarray, z: np.ndarray) -> tuple[float, float]:
        np.divide(r, diagonal, out=z)
        both = vectors.dots((r, z), (r, r))
        return both[0], both[1]

    solution = krylov(Equations(apply, precondition, vectors.dot, vectors), right, change, until, check=check)
    vectors.agree(change)
    temperature = start + change
    operator.flow(temperature, bodies=True)
    conduction.write_temperatures(count, temperature, grid.array("temperature"))
    ended = temperature[:size] if math.isfinite(right.sum()) else np.full(size, math.nan)
    columns = np.stack([nodes.capacity * ended, warmth - to_air * ended, made, area])
    for column in columns:
        vectors.leave(column)
    content, air, sources, seen = (float(column.sum()) for column in columns)
    bodies, from_air, sources, content, seen = together.numbers([-operator.lost(), air, sources, content, seen])
    return Conducted(solution, content, dt * bodies, dt * from_air, dt * sources, seen)


def _heat_of(grid: GridStore, largest: Callable[[np.ndarray], float]) -> _NodalHeat:
    """Return the heat of the nodes; those with next to none count as empty."""
    heat = grid.array("heat")[: 256 * grid.count].reshape(-1, 4).astype(float)
    capacity = heat[:, 3]
    least = LEAST_MASS[grid.dtype] * largest(capacity.reshape(-1, 64))
    return _NodalHeat(heat[:, 1], heat[:, 2], capacity, capacity > least)


def _air(
    particles: ParticleStore, grid: GridStore, kernel: Kernel, colliders: ColliderSet, nodes: _NodalHeat, surroundings: Surroundings
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the free surface of the nodes [m^2], h_a A [W/K] and h_a A T_a [W]."""
    air, size = air_of(surroundings.ambient), 64 * grid.count
    convection = surroundings.to_air if air is None else air.convection
    if convection == 0.0 and surroundings.flux == 0.0:
        nothing = np.zeros(size)
        return nothing, nothing, nothing
    area = _free_surface(particles, grid, kernel, colliders, nodes)
    to_air = convection * area
    if air is None:
        return area, to_air, to_air * surroundings.air
    met = np.flatnonzero(to_air)
    place = grid.positions()[met]
    if air.exposure is not None:
        to_air[met] *= air.exposure.at(place)
    warmth = np.zeros(size)
    if air.air is not None:
        warmth[met] = to_air[met] * air.air.at(place)
    return area, to_air, warmth


def _free_surface(
    particles: ParticleStore, grid: GridStore, kernel: Kernel, colliders: ColliderSet, nodes: _NodalHeat
) -> np.ndarray:
    """Return the free surface of the nodes [m^2], shape (64 count,).

    sum V grad N_i is the integral of N_i n over the surface. In the middle of matter it is noise and left out; what faces a body or
    a wall within the reach of the spline touches it.
    """
    size, h = 64 * grid.count, grid.h
    ones = particles.rows("heat_flux")
    ones[0], ones[1] = 1.0, 0.0
    grid.clear("heat_flow")
    scatter(particles, grid, kernel, Deposit("heat_flow", force=Force("heat_flux", ((0, 1, 1), (1, 0, 1), (1, 1, 0)), factor=1.0)))
    found = grid.array("heat_flow")[: 4 * size].reshape(-1, 4)[:, :3].astype(float)
    phi, normal, _, opened = near = np.empty(size), np.empty(3 * size), np.empty(size, np.int32), np.empty(size)
    if colliders.idle:
        opened[:] = 1.0
    else:  # the middles of the cells of a grid that lies half a cell lower are the nodes of this one
        walls, bodies = colliders.shapes()
        near_bodies.find_near_bodies(grid.coord, h, grid.origin - 0.5 * h - colliders.origin, walls, bodies, near)
        reach, place = 0.5 * len(STENCIL[kernel.value]), grid.positions()
        _leave_out(found, normal.reshape(-1, 3), phi <= reach)
        for side in range(6):
            of_wall = _distances(colliders, len(colliders.colliders) + side, place)
            _leave_out(found, of_wall[:, :3], of_wall[:, 3] <= reach * h)
    edges = np.empty(size)
    write_edges(grid.count, grid.array("heat"), neighbour_blocks(grid), opened, (h, WIDTH[kernel]), edges)
    return np.where(nodes.filled, np.linalg.norm(found, axis=1) * edges, 0.0)


def _leave_out(area: np.ndarray, normal: np.ndarray, near: np.ndarray) -> None:
    """Take what faces a body from the areas of nodes near it: their part along its normal, where that leads into it."""
    facing = (area * normal).sum(axis=1)
    met = near & (facing < 0.0)
    area[met] -= facing[met, None] * normal[met]


def _contacts(particles: ParticleStore, colliders: ColliderSet, surroundings: Surroundings) -> list[_Contact]:
    """Return the particles at the surface of every body and wall that exchanges heat, where there are any."""
    bodies = [collider_at(each, surroundings.frame) for each in colliders.colliders]
    exchange = exchange_of(bodies, surroundings)
    trading = np.flatnonzero((exchange[:, 1] > 0.0) | (exchange[:, 2] != 0.0))
    if not particles.count or colliders.idle:
        return []
    found = [_at_surface(particles, colliders, bodies, int(body), exchange[body]) for body in trading]
    return [contact for contact in found if len(contact.rows)]


def _distances(colliders: ColliderSet, body: int, place: np.ndarray) -> np.ndarray:
    """Return the normal out of a body or wall and the distance from it [m] at places, shape (n, 4), float64."""
    found = np.zeros((len(place), 4))
    walls, bodies = colliders.shapes()
    side = body - len(colliders.colliders)
    if side < 0:
        find_distances(place - colliders.origin, body, bodies, found)
        return found
    axis, sign, solid = side >> 1, 1.0 - 2.0 * (side & 1), walls.rules[side] < OPEN
    found[:, axis] = sign
    found[:, 3] = sign * (place[:, axis] - colliders.origin[axis] - walls.box[side & 1, axis]) if solid else np.inf
    return found


def _at_surface(
    particles: ParticleStore, colliders: ColliderSet, bodies: Sequence[Collider], body: int, exchange: np.ndarray
) -> _Contact:
    """Return the particles at one body or wall, which may be none."""
    h, start = particles.h, particles.block_start
    centre = particles.origin + h * (4.0 * particles.block_coord + 3.5)
    reach = h * (1.0 + math.sqrt(3.0) * particles.drift)  # a particle lies up to `drift` cells along each axis from the centre
    close = np.flatnonzero(np.abs(_distances(colliders, body, centre)[:, 3]) <= reach)
    near = np.concatenate([np.zeros(0, int), *(np.arange(start[block], start[block + 1]) for block in close)])
    place = np.repeat(centre[close], np.diff(start)[close], axis=0)
    place += h * (particles.rows("position")[:, near].T / particles.unit)
    found = _distances(colliders, body, place)
    met = np.flatnonzero((found[:, 3] > -SUNK * h) & (found[:, 3] <= h))
    rows, arm = near[met], -found[met, 3:] * found[met, :3]
    area = particles.rows("volume")[0][rows].astype(float) / h
    conductivity = particles.rows("conductivity")[0][rows].astype(float)
    temperature, contact, flux = exchange
    conductance = 1.0 / (1.0 / contact + h / (HELD * conductivity)) if contact > 0.0 else np.zeros(len(rows))
    warm = np.full(len(rows), temperature)
    varying = bodies[body].temperatures if body < len(bodies) and contact > 0.0 else None
    if varying is not None and len(rows):
        warm = np.asarray(varying.at(place[met] + arm), float)
    return _Contact(rows, area, arm, conductance, warm, np.full(len(rows), flux))
