"""Transfers over fields: particles to grid and back, for any list of fields on nodes, faces and cells.

| symbol | meaning | unit | source |
|---|---|---|---|
| w, D | B-spline weight, its second moment: h^2/4 quadratic, h^2/3 cubic | -, m^2 | Jiang 2015 |
| m_p, q_p | weight of a particle (mass, m c, volume, ...), a value that it carries | | |
| C_p | affine part of the value: what q varies by around the particle | of q, per m | |

    scatter   m_i = sum w m_p,   m_i q_i = sum w m_p (q_p + C_p . (x_i - x_p)),   f_i = factor sum V_p sigma_p grad w
    gather    q_p = sum w q_i,   C_p = D^-1 sum w q_i (x_i - x_p),   grad q_p = sum q_i grad w
    with FLIP q_p <- a q_p + sum w (q_i - a q_i^n)

All arrays of one call are filled in one pass over the particles, block by block. `docs/transfers.md` has an example: momentum on
the faces of a staggered grid, temperatures on its cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mpm_nodes.data import Kernel, MpmNodesError
from mpm_nodes.kernels.transfers import fields
from mpm_nodes.kernels.transfers import gather as gathers
from mpm_nodes.kernels.transfers import scatter as scatters
from mpm_nodes.kernels.transfers.weights import STENCIL, reach
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.ranks.halo import adding_up
from mpm_nodes.solver.staggered import StaggeredStore
from mpm_nodes.solver.state import ParticleStore

__all__ = ["Deposit", "Force", "Row", "Take", "gather", "lines_of", "reached", "rows_of", "scatter"]

Row = str | tuple[str, int] | None
"""A row of an attribute: its name (then it is row 0), its name and number, or None."""


def rows_of(name: str) -> tuple[Row, ...]:
    """Return the three rows of a vector attribute."""
    return (name, 0), (name, 1), (name, 2)


def lines_of(name: str) -> tuple[Row, ...]:
    """Return the first rows of the three lines of a matrix attribute, the gradients of a vector's components."""
    return (name, 0), (name, 3), (name, 6)


@dataclass(frozen=True)
class Force:
    """What points give with the gradients of their weights: factor V sigma grad w.

    Attributes:
        name: Attribute that holds sigma.
        rows: For each of three values the rows of sigma along x, y and z, or None: ((0, 1, 2), None, None) for the flux of one
            scalar. None for all: a symmetric matrix of six values, xx xy xz yy yz zz.
        volume: Attribute of V.
        factor: -1 for the force of a stress.
    """

    name: str
    rows: tuple[tuple[int, int, int] | None, ...] | None = None
    volume: str = "volume"
    factor: float = -1.0


@dataclass(frozen=True)
class Deposit:
    """What a scatter adds to one grid array.

    Attributes:
        array: The grid array: three values and, last, the weight.
        weight: Attribute that values are multiplied by and that is added as the fourth value; None where only a force is given.
        values: Three rows; None in the place of what is not given.
        slopes: First rows of the gradients of the three values (affine part), or None.
        force: What is added with the gradients of the weights, or None.
    """

    array: str
    weight: str | None = None
    values: tuple[Row, ...] = (None, None, None)
    slopes: tuple[Row, ...] | None = None
    force: Force | None = None


@dataclass(frozen=True)
class Take:
    """What a gather takes from one grid array. Rows are three, or four where the weight is taken as well.

    Attributes:
        array: The grid array of values q_i.
        values: Rows that take sum w q_i, or None.
        affine: First rows that take the affine parts, or None.
        gradient: First rows that take the gradients, or None.
        before: Grid array of weighted values before the update: `values` get the change since then (FLIP). None: they are replaced.
        flip: Share of FLIP in the blend with PIC, with `before`.
    """

    array: str
    values: tuple[Row, ...] | None = None
    affine: tuple[Row, ...] | None = None
    gradient: tuple[Row, ...] | None = None
    before: str | None = None
    flip: float = 1.0


def scatter(
    points: ParticleStore, grid: GridStore | StaggeredStore, kernel: Kernel, *deposits: Deposit, material: int | None = None
) -> None:
    """Add what points give to grid arrays, all of them in one pass.

    Args:
        points: Particles, or other points that the grid follows.
        grid: The grid; its arrays are added to, so clear them first.
        kernel: B-spline of the weights.
        deposits: What is given to which array.
        material: Only points of this one, None for all.

    Raises:
        MpmNodesError: A point has drifted out of reach of its block's tile, or an array or attribute is unknown.
    """
    found = tuple(_given(points, grid, kernel, deposit) for deposit in deposits)
    if not found:
        return
    arrays = {deposit.array: grid.array(deposit.array) for deposit in deposits}
    with adding_up(grid.halo, *arrays.values()):
        scatters.scatter_arrays(STENCIL[kernel.value], points.geometry(), found, grid.scatter_tables(material, points))


def gather(
    points: ParticleStore, grid: GridStore | StaggeredStore, kernel: Kernel, *takes: Take, material: int | None = None
) -> None:
    """Take values, affine parts and gradients from grid arrays, all of them in one pass.

    Args:
        points: Particles, or other points that the grid follows.
        grid: The grid.
        kernel: B-spline of the weights.
        takes: What is taken from which array.
        material: Only points of this one, None for all.

    Raises:
        MpmNodesError: A point has drifted out of reach of its block's tile, or an array or attribute is unknown.
    """
    found = tuple(_taken(points, grid, kernel, take) for take in takes)
    if found:
        gathers.gather_arrays(STENCIL[kernel.value], points.geometry(), found, grid.gather_tables(material, points))


def _given(points: ParticleStore, grid: GridStore | StaggeredStore, kernel: Kernel, deposit: Deposit) -> fields.Given:
    half = reached(points, grid, kernel, deposit.array)
    flux, force = None, deposit.force
    if force is not None:
        scale = force.factor / grid.h
        flux = fields.Flux(points.array(force.name), points.stride, 0, force.rows, points.array(force.volume), scale)
    if deposit.weight is None:
        return fields.Given(half, None, None, None, flux, grid.array(deposit.array))
    return fields.Given(
        half,
        points.array(deposit.weight),
        _rows(points, deposit.values, 3),
        _rows(points, deposit.slopes, 3),
        flux,
        grid.array(deposit.array),
    )


def _taken(points: ParticleStore, grid: GridStore | StaggeredStore, kernel: Kernel, take: Take) -> fields.Taken:
    half = reached(points, grid, kernel, take.array)
    if take.before is not None and grid.shift(take.before) != half:
        raise MpmNodesError(f"gather: '{take.before}' {grid.shift(take.before)} does not lie where '{take.array}' {half} does")
    values, affine, gradient = (_rows(points, rows, 4) for rows in (take.values, take.affine, take.gradient))
    if take.before is None:
        return fields.Taken(half, values, affine, gradient, None, None, None, grid.array(take.array))
    alone = (
        (values is not None and affine is None and gradient is not None)
        and values[0] is not None
        and all(row is None for row in (*values[1:], *gradient[1:]))
    )
    before = grid.array(take.before)
    return fields.Taken(half, values, affine, gradient, before, float(take.flip), True if alone else None, grid.array(take.array))


def _rows(points: ParticleStore, rows: Sequence[Row] | None, count: int) -> tuple[Any, ...] | None:
    """Return rows as kernels take them, filled up with None to `count`; None where all of them are None."""
    if rows is None or all(row is None for row in rows):
        return None if count == 4 or rows is None else (None,) * count
    named = [(row, 0) if isinstance(row, str) else row for row in rows]
    found = [None if row is None else (points.array(row[0]), row[1]) for row in named]
    return (*found, *(None,) * (count - len(found)))


def reached(points: ParticleStore, grid: GridStore | StaggeredStore, kernel: Kernel, array: str) -> tuple[int, int, int]:
    """Return the shift of a grid array, if its stencils stay inside the tiles."""
    half = grid.shift(array)
    most = reach(kernel.value, half)
    if points.drift > most:
        raise MpmNodesError(
            f"transfer with '{array}': a particle lies {points.drift:.3g} cells from the centre of its block, and {kernel.value} "
            f"stencils on points shifted by {half} half cells reach {most:g}; sort the particles first"
        )
    return half
