"""Implicit conduction of heat on the staggered grid: bodies, air and sources in, the cells' temperatures out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mpm_nodes.data import Ambient, Collider, MpmNodesError, SpaceField
from mpm_nodes.data.ambient import air_of
from mpm_nodes.kernels.algebra.krylov import Equations, Method, Solution, Until, krylov
from mpm_nodes.kernels.cells.cell_matrix import CellMatrix, divide, multiply
from mpm_nodes.physics.heat.kernels import conduction, near_bodies
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.grid import LEAST_MASS
from mpm_nodes.solver.ranks.together import Alone, CellVectors, together_on
from mpm_nodes.solver.staggered import StaggeredStore, neighbour_blocks
from mpm_nodes.solver.surroundings import ambient_at, collider_at

__all__ = ["Conducted", "Surroundings", "conduct", "exchange_of"]


@dataclass(frozen=True)
class Surroundings:
    """What exchanges heat with the matter.

    Attributes:
        air: Temperature of the air [K].
        to_air: Convection coefficient at free surfaces [W/(m^2 K)]; 0 insulates.
        walls: Temperature of the domain's walls [K].
        to_walls: Conductance of the contact with them [W/(m^2 K)]; 0 insulates.
        flux: Heat that comes in through free surfaces, whatever their temperature [W/m^2].
        source: Heat made inside all matter [W/m^3], besides what its particles make.
        insulated: No body takes part, whatever temperature it has.
        sampled: The free surface, and the heat that flows in there, are those of samples: surface_area and surface_flux of cells.
        ambient: Air that takes the place of `air` and `to_air`, and heat that is made in places.
        frame: The (fractional) frame at which bodies and `ambient` are taken.
    """

    air: float = 293.15
    to_air: float = 0.0
    walls: float = 293.15
    to_walls: float = 0.0
    flux: float = 0.0
    source: float = 0.0
    insulated: bool = False
    sampled: bool = False
    ambient: tuple[Ambient, ...] = ()
    frame: float = -math.inf


@dataclass(frozen=True)
class Conducted:
    """What a step of conduction did.

    Attributes:
        solution: How the linear solve went.
        content: Heat of all cells after the step, over 0 K [J].
        bodies, air, sources: Heat that came from each during the step [J].
        area: Free surface that the air sees [m^2].
    """

    solution: Solution
    content: float
    bodies: float
    air: float
    sources: float
    area: float


class _Room:
    """Arrays of a step of conduction, kept for as long as the grid's blocks stay: new ones would be cleared page by page each time.

    Args:
        vectors: The arithmetic of vectors of cells.
        count: Number of grid blocks.
    """

    def __init__(self, vectors: CellVectors, count: int) -> None:
        self.system = conduction.HeatSystem(*(vectors.new() for _ in conduction.HeatSystem._fields))
        self.system.diagonal[:] = 1.0  # behind the last cell, too, where nothing else is written
        self.temperature, self.right = vectors.new(), vectors.new()
        self.work = [vectors.new() for _ in range(Method.GRADIENTS.work)]
        cells = 64 * count
        self.near = np.empty(cells), np.empty(3 * cells), np.empty(cells, np.int32), np.empty(cells)


def conduct(
    staggered: StaggeredStore,
    colliders: ColliderSet,
    dt: float,
    surroundings: Surroundings,
    tolerance: float,
    most: int,
    check: Callable[[], None] = lambda: None,
) -> Conducted:
    """Advance the cells' temperatures by backward Euler and write them to "temperature".

    Args:
        staggered: Grid with heat and conduction rasterized.
        colliders: Bodies posed at the end of the substep.
        dt: Substep [s].
        surroundings: Air, walls and sources.
        tolerance: Residual at which the solve stops, over that of the right side.
        most: Most iterations.
        check: Called now and then; raises to end the solve.
    """
    count, together = staggered.count, together_on(staggered.grid)
    vectors = together.cells()
    surroundings = replace(surroundings, ambient=ambient_at(surroundings.ambient, surroundings.frame))
    air = air_of(surroundings.ambient)
    if air is not None:
        surroundings = replace(surroundings, to_air=air.convection)
    room: _Room = staggered.grid.derived("conduction", lambda: _Room(vectors, count))
    given, system = _system(staggered, colliders, dt, surroundings, together, room)
    conduction.assemble_heat(count, given, system)
    if surroundings.sampled:
        _add_surface(staggered, dt, surroundings, system)
    area = system.air.copy()
    warmth = np.zeros(0) if air is None else _take_air(staggered, air, surroundings.air, system)
    for each in surroundings.ambient:
        if each.source is not None:
            _make_heat(staggered, dt, each.source, float(given.numbers[conduction.LEAST]), system)
    temperature, right = room.temperature, room.right
    temperature[: 64 * count] = system.start[: 64 * count]
    matrix = CellMatrix(given.around, system.diagonal, system.x, system.y, system.z)

    def apply(p: np.ndarray, q: np.ndarray) -> None:
        vectors.agree(p)
        multiply(count, matrix, p, q)
        vectors.leave(q)

    def precondition(r: np.ndarray, z: np.ndarray) -> tuple[float, float]:
        divide(count, matrix, r, z)
        both = vectors.dots((r, z), (r, r))
        return both[0], both[1]

    np.copyto(right, system.right)
    vectors.leave(right)
    equations = Equations(apply, precondition, vectors.dot, vectors)
    solution = krylov(equations, right, temperature, Until(tolerance, most), guess=True, work=room.work, check=check)
    vectors.agree(temperature)
    conduction.write_temperatures(count, temperature, staggered.array("temperature"))
    sums = np.empty((count, 3))
    conduction.balance(count, system, surroundings.air, temperature, sums)
    exchanged = [math.fsum(sums[together.own, n]) for n in range(3)]
    capacity = _capacity(staggered).astype(float)
    if surroundings.sampled:
        area = staggered.array("surface_heat")[3 : 256 * count : 4].astype(float)
    for column in (capacity, area):
        vectors.leave(column)
    if air is not None:
        given_off = warmth - system.air[: 64 * count] * temperature[: 64 * count]
        vectors.leave(given_off)
        exchanged[1] = float(given_off.sum())
    content = float(capacity @ temperature[: 64 * count])
    bodies, from_air, sources, content, seen = together.numbers([*exchanged, content, float(area.sum())])
    if not surroundings.sampled:
        seen = seen / (dt * surroundings.to_air) if surroundings.to_air > 0.0 else 0.0
    return Conducted(solution, content, bodies, from_air, sources, seen)


def _capacity(staggered: StaggeredStore) -> np.ndarray:
    """Return the heat capacity of every cell [J/K], a view."""
    return staggered.array("heat")[3 : 256 * staggered.count : 4]


def _system(
    staggered: StaggeredStore,
    colliders: ColliderSet,
    dt: float,
    surroundings: Surroundings,
    together: Alone,
    room: _Room,
) -> tuple[conduction.HeatFields, conduction.HeatSystem]:
    """Return what the system is made of, and room for it."""
    count = staggered.count
    near = _near_bodies(staggered, colliders, room)
    bodies = [collider_at(each, surroundings.frame) for each in colliders.colliders]
    exchange = _at_places(staggered, bodies, near, exchange_of(bodies, surroundings))
    least = LEAST_MASS[staggered.dtype] * together.largest(_capacity(staggered).reshape(count, 64))
    to_air, flux = (0.0, 0.0) if surroundings.sampled else (surroundings.to_air, surroundings.flux)
    numbers = (dt, staggered.h, surroundings.air, to_air, surroundings.source, least, flux)
    x, y, z = (staggered.array(f"conduction_{axis}") for axis in "xyz")
    given = conduction.HeatFields(
        staggered.array("heat"),
        x,
        y,
        z,
        neighbour_blocks(staggered.grid),
        *near,
        exchange,
        np.array(numbers),
    )
    return given, room.system


def _add_surface(staggered: StaggeredStore, dt: float, surroundings: Surroundings, system: conduction.HeatSystem) -> None:
    """Add sum_r N_c (h_c (T_a - T_c) + b) dA to the rows (C21 section 4.3.2, each cell's share at its own temperature)."""
    count = staggered.count
    surface = staggered.array("surface_heat")[: 256 * count].astype(float)
    air, flux = dt * surroundings.to_air * surface[3::4], dt * surface[0::4]
    cells = slice(0, 64 * count)
    system.air[cells] = air
    system.source[cells] += flux
    system.diagonal[cells] += air
    system.right[cells] += air * surroundings.air + flux


def _take_air(staggered: StaggeredStore, air: Ambient, base: float, system: conduction.HeatSystem) -> np.ndarray:
    """Let the rows see the air where each cell is instead of air of one temperature; return dt h_a A T_a of the cells [J]."""
    warmth = np.zeros(64 * staggered.count)
    cells = np.flatnonzero(system.air[: len(warmth)])
    place, before = _centres(staggered, cells), system.air[cells]
    now = before if air.exposure is None else before * air.exposure.at(place)
    warmth[cells] = now * air.air.at(place) if air.air is not None else 0.0
    system.air[cells] = now
    system.diagonal[cells] += now - before
    system.right[cells] += warmth[cells] - before * base
    return warmth


def _make_heat(staggered: StaggeredStore, dt: float, source: SpaceField, least: float, system: conduction.HeatSystem) -> None:
    """Add dt q V of the matter in each cell, q at its centre [W/m^3]."""
    heat = staggered.array("heat")[: 256 * staggered.count]
    cells = np.flatnonzero(heat[3::4] > least)
    made = dt * source.at(_centres(staggered, cells)) * heat[1::4][cells].astype(float)
    system.source[cells] += made
    system.right[cells] += made


def _centres(staggered: StaggeredStore, cells: np.ndarray) -> np.ndarray:
    """Return the centres of cells [m], shape (n, 3)."""
    block, n = np.divmod(cells, 64)
    index = 4 * staggered.blocks[block] + np.stack([n >> 4, (n >> 2) & 3, n & 3], axis=1)
    centres: np.ndarray = staggered.origin + staggered.h * (index + 0.5)
    return centres


def _near_bodies(
    staggered: StaggeredStore, colliders: ColliderSet, room: _Room
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return distance [cells], normal and number of the body or wall nearest to each cell, and what bodies leave open of it."""
    found = room.near
    if colliders.idle:
        phi, normal, which, opened = found
        phi[:], normal[:], which[:], opened[:] = near_bodies.FAR, 0.0, -1, 1.0
    else:
        near_bodies.find_near_bodies(staggered.blocks, staggered.h, staggered.origin - colliders.origin, *colliders.shapes(), found)
    return found


def exchange_of(bodies: Sequence[Collider], surroundings: Surroundings) -> np.ndarray:
    """Return temperature, conductance and flux of the colliders and, behind them, of the six walls."""
    rows = []
    for collider in bodies:
        flux = 0.0 if surroundings.insulated else collider.heat_flux
        if not math.isfinite(flux):
            raise MpmNodesError(f"collider '{collider.name}': heat flux = {flux:g} W/m^2; give a finite one")
        if collider.temperature is None or surroundings.insulated:
            rows.append((0.0, 0.0, flux))
            continue
        if not (math.isfinite(collider.temperature) and collider.temperature >= 0.0):
            raise MpmNodesError(f"collider '{collider.name}': temperature = {collider.temperature:g} K; give a finite one >= 0 K")
        if not collider.conductance >= 0.0:
            raise MpmNodesError(f"collider '{collider.name}': conductance = {collider.conductance:g} W/(m^2 K); give one >= 0")
        rows.append((collider.temperature, collider.conductance, flux))
    return np.array([*rows, *[(surroundings.walls, surroundings.to_walls, 0.0)] * 6], float)


def _at_places(
    staggered: StaggeredStore, bodies: Sequence[Collider], near: tuple[np.ndarray, ...], exchange: np.ndarray
) -> np.ndarray:
    """Return temperatures, conductances and fluxes with a row for each cell near a body whose temperature varies over it.

    The cells' numbers of bodies in `near` are changed to those of their rows. A cell takes the temperature of the place on the
    surface that is nearest to its centre.
    """
    phi, normal, which, _ = near
    rows = [exchange]
    for body, collider in enumerate(bodies):
        if collider.temperatures is None or collider.temperature is None:
            continue
        cells = np.flatnonzero((which == body) & (np.abs(phi) <= conduction.NEAR))
        place = _centres(staggered, cells)
        place -= (phi[cells] * staggered.h)[:, None] * normal.reshape(-1, 3)[cells]
        which[cells] = sum(map(len, rows)) + np.arange(len(cells))
        found = collider.temperatures.at(place)
        same = (np.full(len(cells), value) for value in exchange[body, 1:])
        rows.append(np.stack([found, *same], axis=1))
    return np.concatenate(rows)
