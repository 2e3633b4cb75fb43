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


@dataclass(frozen=True)
class Fillings:
    """How full the cells of a grid are.

    Attributes:
        share: f, shape (64 count,); 1 where it is not known.
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
    fields = fields_of(staggered, solid_faces_of(staggered, colliders, dt), dt, ProjectionSettings())
    pressure.classify(staggered.count, fields)
    share = filling_of(staggered, fields)
    cells = np.arange(64 * staggered.count)
    around = [beside(fields.around, cells, axis, side) for axis in range(3) for side in (0, 1)]
    open_air = fields.kind == pressure.EMPTY
    for _ in range(DEPTH):
        near = open_air.copy()
        for other in around:
            near |= np.where(other >= 0, open_air[other], True)
        open_air = near
    deep = ~open_air & (fields.kind == pressure.INTERIOR) & (share > 0.0)
    return Fillings(np.where(deep, share, 1.0), deep)


def cells_of(staggered: StaggeredStore, position: np.ndarray) -> np.ndarray:
    """Return the cells that hold positions [m], shape (n, 3): int64, shape (n,), -1 outside of the grid."""
    index = np.floor((position - staggered.origin) / staggered.h).astype(np.int64)
    block = index >> 2
    packed, key = staggered.grid.packed, pack_coord(block[:, 0], block[:, 1], block[:, 2])
    place = np.minimum(np.searchsorted(packed, key), len(packed) - 1)
    inner = index & 3
    return np.where(packed[place] == key, 64 * place + 16 * inner[:, 0] + 4 * inner[:, 1] + inner[:, 2], -1)
