"""How full cells are, where the matter is deep enough that they ought to be.

| symbol | meaning | unit |
|---|---|---|
| f | share of a cell that undeformed matter fills, the mean over its faces of sum w V0 / V_f | - |
| r | share of a cell that lies below the free surface and outside of bodies | - |
| V_f | integral over r of the spline of a face | m^3 |

Velocities without divergence keep f where it is: a gap between two bodies of liquid does not close, and what advection leaves too
close or too far apart stays so. f is known by the grid alone. Splines of faces end in the air at any free surface; so r is 1 deep
in the matter, 0 in the air, and within two cells of empty ones what the smeared matter tells of the surface: a plane on a face of
the grid leaves the cell below it with f = 0.85 and the cell above it with 0.15.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mpm_nodes.kernels.projection import pressure
from mpm_nodes.kernels.transfers.binning import pack_coord
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.face_contacts import beside
from mpm_nodes.solver.projection import ProjectionSettings, fields_of, filling_of, solid_faces_of
from mpm_nodes.solver.staggered import AXES, StaggeredStore

__all__ = ["DEPTH", "Fillings", "cells_of", "fillings"]

DEPTH = 2
"""Cells between the empty ones and those whose filling is used: the free surface lies among them."""
SLOPE = 0.7
"""f below a plane on a face of the grid, less that above it."""
LEAST = 0.25
"""Share of a face's spline that must lie in the matter for its filling to count."""
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
    smeared = filling_of(staggered, fields)
    cells = np.arange(64 * staggered.count)
    around = [beside(fields.around, cells, axis, side) for axis in range(3) for side in (0, 1)]
    near_air = _grown(fields.kind == pressure.EMPTY, around, DEPTH, True)
    room = np.where(near_air, np.clip(0.5 + (smeared - 0.5) / SLOPE, 0.0, 1.0), 1.0)
    share = _share_of(staggered, np.where(fields.kind == pressure.INTERIOR, room, 0.0), around)
    leaving = np.zeros(len(cells), bool)
    for axis, contact in enumerate(solid.contacts):
        held = contact[:, 0] != 0.0
        high = around[2 * axis + 1]
        leaving |= held | np.where(high >= 0, held[high], False)
    leaving = _grown(leaving, around, REACH, False)
    deep = ~near_air & (fields.kind == pressure.INTERIOR) & (share > 0.0)
    share = np.where(leaving, np.maximum(share, 1.0), share)
    return Fillings(np.where(deep, share, 1.0), deep)


def _share_of(staggered: StaggeredStore, room: np.ndarray, around: list[np.ndarray]) -> np.ndarray:
    """Return the mean over the faces of cells of sum w V0 / V_f, 0 where no face has enough room, shape (64 count,).

    Args:
        staggered: Grid with rest volumes of the faces.
        room: r of the cells.
        around: Cells before and behind each along x, y and z.
    """

    def moved(values: np.ndarray, side: int) -> np.ndarray:
        return np.where(around[side] >= 0, values[around[side]], 0.0)

    total, count = np.zeros(len(room)), np.zeros(len(room))
    for axis in range(3):
        volume = room
        for across in ((axis + 1) % 3, (axis + 2) % 3):
            volume = 2.0 / 3.0 * volume + (moved(volume, 2 * across) + moved(volume, 2 * across + 1)) / 6.0
        low, high = moved(volume, 2 * axis), moved(volume, 2 * axis + 1)
        volume = (23.0 * (volume + low) + high + moved(low, 2 * axis)) / 48.0
        rest = staggered.array(f"force_{AXES[axis]}")[3 : 4 * len(room) : 4].astype(float)
        known = volume > LEAST
        share = np.where(known, rest / np.where(known, volume, 1.0) / staggered.h**3, 0.0)
        total += share + moved(share, 2 * axis + 1)
        count += known + moved(known.astype(float), 2 * axis + 1)
    return total / np.maximum(count, 1.0)


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
