"""The projection of face velocities: bodies in, a pressure solve, velocities without (or with the allowed) divergence out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mpm_nodes.kernels.algebra.krylov import Solution, krylov
from mpm_nodes.kernels.algebra.vectors import BlockVectors
from mpm_nodes.kernels.cells.cell_matrix import CellMatrix, multiply
from mpm_nodes.kernels.cells.multigrid import Multigrid
from mpm_nodes.kernels.projection import pressure, solid_faces
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.grid import LEAST_MASS
from mpm_nodes.solver.staggered import AXES, StaggeredStore, neighbour_blocks

__all__ = ["EXTENSIONS", "Projected", "ProjectionSettings", "project", "solid_faces_of"]

EXTENSIONS = 2
"""Faces beyond the interior that take a velocity from it: as far as quadratic stencils of its particles reach."""


@dataclass(frozen=True)
class ProjectionSettings:
    """How a projection is done.

    Attributes:
        correction: Share of the volume error that incompressible matter takes back in a substep.
        control_volumes: Whether faces have the volume of matter around them; off only to show what that does.
        tolerance: Residual at which the solve stops, over that of the right side.
        most: Most iterations.
    """

    correction: float = 1.0
    control_volumes: bool = True
    tolerance: float = 1e-8
    most: int = 2000


@dataclass(frozen=True)
class Projected:
    """What a projection did.

    Attributes:
        solution: How the linear solve went.
        pressure: Pressure of the cells [Pa], shape (64 count,).
        kind: Kinds of the cells (`kernels.projection.pressure`), shape (64 count,).
        divergence: Largest |div v| of interior cells afterwards [1/s].
        pockets: Parts of the interior without a free surface.
    """

    solution: Solution
    pressure: np.ndarray
    kind: np.ndarray
    divergence: float
    pockets: int


def project(
    staggered: StaggeredStore,
    colliders: ColliderSet,
    dt: float,
    settings: ProjectionSettings,
    check: Callable[[], None] = lambda: None,
) -> Projected:
    """Hold faces at bodies and project the velocities of the others.

    Args:
        staggered: Grid with masses, momenta, velocities, and the dilations and compressibility of the cells.
        colliders: Bodies posed at the end of the substep.
        dt: Substep [s].
        settings: How.
        check: Called now and then; raises to end the solve.
    """
    count = staggered.count
    fields = _fields(staggered, colliders, dt, settings)
    pressure.classify(count, fields)
    pressure.spread_volumes(count, fields)
    vectors = BlockVectors.of_size(64 * count)
    system = pressure.System(*(vectors.new() for _ in pressure.System._fields))
    pressure.assemble(count, fields, system)
    pockets = _pockets(count, fields)
    _take_means(system.right, pockets)
    matrix = CellMatrix(fields.around, system.diagonal, system.x, system.y, system.z)
    own = system.own if system.own.any() else None
    p = vectors.new()
    solution = krylov(
        lambda d, q: multiply(count, matrix, d, q),
        Multigrid(staggered.blocks, staggered.grid.body, matrix, own).precondition,
        vectors.dot,
        system.right,
        p,
        vectors,
        tolerance=settings.tolerance,
        most=settings.most,
        check=check,
    )
    _take_means(p, pockets)
    done = np.zeros(192 * count, np.uint8)
    pressure.correct(count, fields, p, done)
    found = np.empty(64 * count)
    pressure.divergences(count, fields, found)
    old, following = np.empty(192 * count), np.empty_like(done)
    for _ in range(EXTENSIONS):
        pressure.extend(count, fields, done, following, old)
        done, following = following, done
    return Projected(solution, p[: 64 * count], fields.kind, float(np.abs(found).max(initial=0.0)), len(pockets))


def _fields(staggered: StaggeredStore, colliders: ColliderSet, dt: float, settings: ProjectionSettings) -> pressure.Fields:
    """Return what the projection works on, with the faces that bodies hold."""
    count = staggered.count
    states, speeds = solid_faces_of(staggered, colliders, dt)
    least = LEAST_MASS[staggered.dtype] * staggered.grid.particle_mass
    volumes, correction = float(settings.control_volumes), settings.correction
    return pressure.Fields._make(
        (
            staggered.array("cell"),
            *(staggered.array(f"face_{axis}") for axis in AXES),
            *(staggered.array(f"velocity_{axis}") for axis in AXES),
            neighbour_blocks(staggered.grid),
            *states,
            *speeds,
            *(np.zeros(64 * count) for _ in AXES),
            *(staggered.array(f"force_{axis}") for axis in AXES),
            np.zeros(64 * count, np.int32),
            np.array([dt, staggered.h, least, volumes, correction]),
        )
    )


def solid_faces_of(staggered: StaggeredStore, colliders: ColliderSet, dt: float) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the state of the faces of each axis, and the velocity that bodies and walls give to held ones [m/s].

    Args:
        staggered: The grid.
        colliders: Bodies posed at the end of the substep.
        dt: Substep [s].
    """
    states = [np.zeros(64 * staggered.count, np.int32) for _ in AXES]
    speeds = [np.zeros(64 * staggered.count) for _ in AXES]
    if not colliders.idle:
        place = (staggered.blocks, staggered.h, staggered.origin - colliders.origin)
        for axis, (state, speed) in enumerate(zip(states, speeds, strict=True)):
            solid_faces.find_solid_faces(axis, place, dt, *colliders.shapes(), (state, speed))
    return states, speeds


def _pockets(count: int, fields: pressure.Fields) -> list[np.ndarray]:
    """Return the cells of every incompressible part of the interior without a free surface."""
    label, stack = np.empty(64 * count, np.int32), np.zeros(64 * count, np.int64)
    parts = pressure.label_pockets(count, fields, label, stack)
    return [np.flatnonzero(label == part) for part in range(parts) if not stack[part]]


def _take_means(values: np.ndarray, pockets: list[np.ndarray]) -> None:
    """Take the mean out of each pocket: its pressure is known but for a constant, and its right side must add up to nothing."""
    for cells in pockets:
        values[cells] -= values[cells].mean()
