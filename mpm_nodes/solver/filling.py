"""How full the cells between the nodes are: what share of the room that bodies leave open undeformed matter takes.

| symbol | meaning | unit |
|---|---|---|
| f | sum w V0 / h^3 over all matter: what a cell would hold of it undeformed | - |
| o | share of the cell's surroundings that bodies leave open, by the same splines | - |

f = o where matter at rest fills all that is open, f < o where there is air as well, and f > o where matter is crowded. The splines
are centred between the nodes: those of the nodes cannot tell matter in every other layer of cells from matter in all of them.
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.data import Kernel
from mpm_nodes.kernels.collisions.open_share import find_open_shares
from mpm_nodes.kernels.transfers.room import write_room
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.grid_arrays import CORNERS
from mpm_nodes.solver.staggered import neighbour_blocks
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.transfers import Deposit, Row, scatter

__all__ = ["fill_cells", "open_shares"]


def fill_cells(particles: ParticleStore, grid: GridStore, colliders: ColliderSet, share: Row = None) -> tuple[float, float]:
    """Write what cells say of the room in them, "room", see `kernels.transfers.room`.

    Returns the largest f / o, and the share of the matter that lies in cells where it is above 1.2; 0 and 0 without matter.

    Cells that a thin plate divides count as air: what is open on one of its sides is not known.

    Args:
        particles: Particles with volume, no farther from their blocks than splines between nodes reach.
        grid: The grid.
        colliders: Bodies posed at the end of the substep.
        share: A row of the particles whose mean over volume is written to the third of the four values, times the volume.
    """
    grid.clear("room")
    scatter(particles, grid, Kernel.QUADRATIC, Deposit("room", "volume", (None, None, share)))
    size = 64 * grid.count
    if grid.body.any():
        _fill_all_bodies(grid)
    opened, divided = open_shares(grid, colliders), np.zeros(size, bool)
    if grid.copies is not None:
        divided = grid.copies.node_sides[:, 0] != 0
    told = np.zeros((grid.count, 3))
    write_room(grid.array("room"), grid.h**3, opened, divided, neighbour_blocks(grid), np.empty(size, bool), told)
    matter, crowded = told[:, 1:].sum(axis=0)
    return float(told[:, 0].max(initial=0.0)), float(crowded / matter) if matter else 0.0


def open_shares(grid: GridStore, colliders: ColliderSet) -> np.ndarray:
    """Return o of cells, shape (64 count,)."""
    first, place = grid.places()
    opened = np.ones((len(first), 64))
    if not colliders.idle:
        shift = grid.origin + 0.5 * grid.h * np.array(CORNERS) - colliders.origin
        find_open_shares(grid.coord[first], grid.h, shift, *colliders.shapes(), opened.reshape(-1))
    return opened[place].reshape(-1)


def _fill_all_bodies(grid: GridStore) -> None:
    """Give cells what all bodies and sides together hold of them.

    The mean of what is asked for stays that of the body.
    """
    first, place = grid.places()
    shared, volume = (grid.array("room")[n : 256 * grid.count : 4].reshape(-1, 64) for n in (2, 3))
    at = (64 * place[:, None] + np.arange(64)).reshape(-1)
    whole = np.bincount(at, volume.reshape(-1), 64 * len(first)).reshape(-1, 64)
    shared *= np.divide(whole[place], volume, out=np.zeros_like(whole[place]), where=volume > 0.0)
    volume[:] = whole[place]
