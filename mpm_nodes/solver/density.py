"""How full cells are, where the matter is deep enough that they ought to be.

| symbol | meaning | unit |
|---|---|---|
| f | share of a cell that undeformed matter fills, the mean over its faces of sum w V0 / V_f | - |
| V_f | control volume of a face: its spline's integral outside of bodies | m^3 |

Velocities without divergence keep f where it is: a gap between two bodies of liquid does not close, and what advection leaves too
close or too far apart stays so. f is known by the grid alone, and below 1 at any free surface, whose splines end in the air; so it
says something where no empty cell is near.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mpm_nodes.kernels.projection import pressure
from mpm_nodes.kernels.transfers.binning import pack_coord
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.face_contacts import beside
from mpm_nodes.solver.projection import ProjectionSettings, fields_of, filling_of, solid_faces_of
from mpm_nodes.solver.staggered import StaggeredStore

__all__ = ["DEPTH", "Fillings", "cells_of", "fillings"]

DEPTH = 3
"""Cells between the empty ones and those whose filling is used: splines of their faces reach two cells."""
REACH = 2
"""Cells beside a separating body where too little matter does not draw it in: it may be about to leave."""


@dataclass(frozen=True)
class Fillings:
    """How full the cells of a grid are.

    Attributes:
        share: f, shape (64 count,); 1 where it is not known, and at least 1 beside bodies that separate.
        deep: Whether it is, shape (64 count,).
    """

    share: np.ndarray
    deep: np.ndarray


def fillings(staggered: StaggeredStore, colliders: ColliderSet, dt: float) -> Fillings:
    """Return how full the cells are.

    Args:
        staggered: Grid with masses and rest volumes of the faces.
        colliders: Bodies posed at the end of the substep.
        dt: Substep [s].
    """
    solid = solid_faces_of(staggered, colliders, dt)
    fields = fields_of(staggered, solid, dt, ProjectionSettings())
    # held faces would be given their velocity
    fields = fields._replace(vx=fields.vx.copy(), vy=fields.vy.copy(), vz=fields.vz.copy())
    pressure.classify(staggered.count, fields)
    share = filling_of(staggered, fields)
    cells = np.arange(64 * staggered.count)
    around = [beside(fields.around, cells, axis, side) for axis in range(3) for side in (0, 1)]
    open_air = _grown(fields.kind == pressure.EMPTY, around, DEPTH, True)
    leaving = solid.open.separating.copy()
    for axis, contact in enumerate(solid.contacts):
        held = contact[:, 0] != 0.0
        high = around[2 * axis + 1]
        leaving |= held | np.where(high >= 0, held[high], False)
    leaving = _grown(leaving, around, REACH, False)
    deep = ~open_air & (fields.kind == pressure.INTERIOR) & (share > 0.0)
    share = np.where(leaving, np.maximum(share, 1.0), share)
    return Fillings(np.where(deep, share, 1.0), deep)


def _grown(marked: np.ndarray, around: list[np.ndarray], cells: int, beyond: bool) -> np.ndarray:
    """Return marked cells and all within some cells of them, counted through faces; `beyond`: whether what lies outside is."""
    for _ in range(cells):
        near = marked.copy()
        for other in around:
            near |= np.where(other >= 0, marked[other], beyond)
        marked = near
    return marked


def cells_of(staggered: StaggeredStore, position: np.ndarray) -> np.ndarray:
    """Return the cells that hold positions [m], shape (n, 3): int64, shape (n,), -1 outside of the grid."""
    index = np.floor((position - staggered.origin) / staggered.h).astype(np.int64)
    block = index >> 2
    packed, key = staggered.grid.packed, pack_coord(block[:, 0], block[:, 1], block[:, 2])
    place = np.minimum(np.searchsorted(packed, key), len(packed) - 1)
    inner = index & 3
    return np.where(packed[place] == key, 64 * place + 16 * inner[:, 0] + 4 * inner[:, 1] + inner[:, 2], -1)
