"""The staggered grid: cells between the nodes and the faces between them, on the blocks of the collocated grid.

Cell (i, j, k) is centred in the middle of nodes i .. i + 1, j .. j + 1, k .. k + 1; its face along an axis with the cell before it
carries its own index, and lies on a node plane. Walls on node planes are faces.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from mpm_nodes.data import STAGGERED, Domain, Field, register_domain
from mpm_nodes.kernels.cells import cell_matrix
from mpm_nodes.kernels.transfers.places import GatherTables, ScatterTables
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.grid_arrays import GridArrays, grid_fields
from mpm_nodes.solver.state import ParticleStore

__all__ = ["AXES", "StaggeredStore", "neighbour_blocks"]

AXES = "xyz"


class StaggeredStore(GridArrays):
    """Faces and cells on the blocks of the collocated grid, whose tables they share.

    Args:
        domain: The domain.
        fields: Fields to allocate, by name.
        stores: Stores of the domains before it: "grid" and "particles".
    """

    domain = STAGGERED

    def __init__(self, domain: Domain, fields: Mapping[str, Field], stores: Mapping[str, Any]) -> None:
        self.grid: GridStore = stores["grid"]
        super().__init__(self.grid.h, self.grid.origin, self.grid.dtype)
        self.declare(*grid_fields(fields.values()))

    @property
    def blocks(self) -> np.ndarray:
        """See `GridArrays`."""
        return self.grid.coord

    @property
    def count(self) -> int:
        """Number of grid blocks."""
        return self.grid.count

    @property
    def halo(self) -> Any:
        """See `GridStore`."""
        return self.grid.halo

    def kept(self, name: str) -> np.ndarray:
        """See `GridArrays`; there is room for the blocks of now."""
        self.make_room()
        return super().kept(name)

    def scatter_tables(self, material: int | None = None, points: ParticleStore | None = None) -> ScatterTables:
        """See `GridStore`."""
        return self.grid.scatter_tables(material, points)

    def gather_tables(self, material: int | None = None, points: ParticleStore | None = None) -> GatherTables:
        """See `GridStore`."""
        return self.grid.gather_tables(material, points)

    @property
    def nbytes(self) -> int:
        """See `Store`."""
        return sum(array.nbytes for array in self._arrays.values())


register_domain(dataclasses.replace(STAGGERED, store=StaggeredStore))


def neighbour_blocks(grid: Any) -> np.ndarray:
    """Return the blocks before and behind each block along x, y and z, shape (count, 6), int32; -1 where there is none."""
    found: np.ndarray = grid.derived("neighbour blocks", lambda: cell_matrix.neighbour_blocks(grid.coord, grid.body, grid.packed))
    return found
