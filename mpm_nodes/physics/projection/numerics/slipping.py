"""Liquids that slip on solids under the projection: the faces of both, one for the pressure, and two again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mpm_nodes.kernels.algebra.krylov import Equations
from mpm_nodes.kernels.algebra.vectors import BlockVectors
from mpm_nodes.kernels.cells.cell_matrix import CellMatrix, multiply
from mpm_nodes.kernels.cells.multigrid import Multigrid
from mpm_nodes.kernels.transfers.room import AIR
from mpm_nodes.physics.projection.kernels import joined_faces, pressure, slipping
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.staggered import AXES, StaggeredStore, neighbour_blocks

__all__ = ["JoinedBlocks", "JoinedFaces", "equations_of_both"]

PHASES = 2
"""Liquids, and what keeps its shape: numbers of the blocks' bodies."""
SWEEPS, SPREAD = 4, 10.0
"""Steps of Chebyshev's iteration on the equations of q in the preconditioner, and the span of what they damp. One step takes 2.7
times as many iterations of the whole; a wider span was no better."""


class JoinedBlocks:
    """The places of a grid whose blocks belong to liquids or solids, one block each: what `JoinedFaces` has as its grid.

    Attributes:
        coord, body, packed: As those of `GridStore`; body is 0.
        blocks: Blocks of liquids and of solids at each place, -1 for none, shape (places, 2), int32.
        places: Places that have both, shape (pairs,), int32.
        pairs: Pair at each place, or -1, shape (places,), int32.
        around: Pairs before and behind each pair along x, y and z, shape (pairs, 6), int32; -1 for none.
    """

    def __init__(self, grid: GridStore) -> None:
        self.particle_mass, self.least_mass = grid.particle_mass, grid.least_mass
        packed = grid.packed - grid.body
        self.packed, first, place = np.unique(packed, return_index=True, return_inverse=True)
        self.coord, self.body = grid.coord[first], np.zeros(len(first), np.int32)
        self.blocks = np.full((len(first), PHASES), -1, np.int32)
        self.blocks[place, grid.body] = np.arange(grid.count)
        self._derived: dict[str, Any] = {}
        both = (self.blocks >= 0).all(axis=1)
        self.places = np.flatnonzero(both).astype(np.int32)
        self.pairs = np.where(both, np.cumsum(both) - 1, -1).astype(np.int32)
        beyond = neighbour_blocks(self)[self.places]
        self.around = np.where(beyond >= 0, self.pairs[beyond], -1).astype(np.int32)

    @property
    def count(self) -> int:
        """Number of places."""
        return len(self.packed)

    def derived(self, name: str, make: Callable[[], Any]) -> Any:
        """See `GridStore`."""
        if name not in self._derived:
            self._derived[name] = make()
        return self._derived[name]


class JoinedFaces:
    """The faces that the pressure sees where liquids slip on solids: read as a `StaggeredStore`, one block at each place.

    Args:
        staggered: Faces and cells of both; velocities are v*.
    """

    def __init__(self, staggered: StaggeredStore) -> None:
        self.source = staggered
        self.grid: JoinedBlocks = staggered.grid.derived("joined blocks", lambda: JoinedBlocks(staggered.grid))
        self.h, self.origin, self.dtype = staggered.h, staggered.origin, staggered.dtype
        self._arrays = {"cell": self._cells(), "pressure": self._fillings()}
        self.shares = tuple(np.zeros(64 * self.count) for _ in AXES)
        for axis, shares in zip(AXES, self.shares, strict=True):
            names = [f"{name}_{axis}" for name in ("face", "force", "velocity")]
            self._arrays |= {name: np.zeros(256 * self.count, self.dtype) for name in names}
            joined = joined_faces.Phases(*map(self.array, names))
            joined_faces.join_faces(self.grid.blocks, self.grid.least_mass, self._phases(axis), joined, shares)
        self.old = [self.array(f"velocity_{axis}")[::4].astype(float) for axis in AXES]

    @property
    def count(self) -> int:
        """Number of places."""
        return self.grid.count

    @property
    def size(self) -> int:
        """Number of equations of q."""
        return 64 * len(self.grid.places)

    @property
    def blocks(self) -> np.ndarray:
        """Coordinates of the places."""
        return self.grid.coord

    def array(self, name: str) -> np.ndarray:
        """Return a flat array, four values a point."""
        return self._arrays[name]

    def _phases(self, axis: str) -> joined_faces.Phases:
        return joined_faces.Phases(*(self.source.array(f"{name}_{axis}") for name in ("face", "force", "velocity")))

    def _values(self, name: str) -> list[np.ndarray]:
        """Return the values of liquids and of solids at the places, 0 where there is none, shape (count, 64, 4)."""
        values = self.source.array(name)[: 256 * self.source.count].reshape(-1, 64, 4)
        return [np.where((of >= 0)[:, None, None], values[of], 0.0) for of in self.grid.blocks.T]

    def _cells(self) -> np.ndarray:
        """Return what cells hold of both; where they meet J of incompressible solids says nothing: they slip, in parts of cells."""
        liquid, solid = self._values("cell")
        meet = (liquid[..., 3] > self.grid.least_mass) & (liquid[..., 2] + solid[..., 2] == 0.0)
        solid[meet, :2] = 0.0
        return (liquid + solid).astype(self.dtype).reshape(-1)

    def _fillings(self) -> np.ndarray:
        """Return what is known of the room in the cells: both were told of all matter there.

        Cells that hold both and are not mostly air count as full: to let go of some of them in turn does not end.
        """
        found = np.maximum(*self._values("pressure"))
        both = np.minimum(*(values[..., 3] for values in self._values("cell"))) > self.grid.least_mass
        found[both & (found[..., 1] >= AIR), 1] = 0.0
        return found.astype(self.dtype).reshape(-1)

    def weigh_followers(self, fields: pressure.Fields, rank: np.ndarray) -> None:
        """Write the masses of faces that follow others: liquid and solid there move as one.

        Args:
            fields: What the projection works on; masses are written.
            rank: 0 at faces that the solve does not reach, shape (192 count,).
        """
        for axis, mass in enumerate((fields.nx, fields.ny, fields.nz)):
            liquid, solid = (values[..., 3].reshape(-1) for values in self._values(f"face_{AXES[axis]}"))
            follows = (rank[axis::3] == 0) & (liquid > self.grid.least_mass) & (solid > self.grid.least_mass)
            mass[follows] = (liquid + solid)[follows]

    def meet(self, fields: pressure.Fields) -> slipping.Slipping:
        """Return what cells and faces say where liquids and solids meet.

        Args:
            fields: What the projection works on, with masses and volumes.
        """
        grid = self.grid
        values = (np.zeros(self.size) for _ in range(16))
        slip = slipping.Slipping._make((grid.places, grid.pairs, grid.around, *values, np.array(fields.numbers[:2])))
        for axis, name in enumerate(AXES):
            slipping.weigh_faces(axis, grid.blocks, grid.least_mass, self._phases(name), fields, slip)
        slipping.find_rows(self.shares, fields, slip)
        return slip

    def right_side(self, slip: slipping.Slipping, right: np.ndarray) -> None:
        """Write the right side of the equations of q [1/s], shape (64 pairs,)."""
        velocities = tuple(self.source.array(f"velocity_{axis}") for axis in AXES)
        slipping.right_side(self.grid.blocks, velocities, slip, right)

    def part(self, fields: pressure.Fields, slip: slipping.Slipping, p: np.ndarray, start: list[np.ndarray]) -> None:
        """Give liquids and solids their velocities.

        Args:
            fields: What the projection worked on.
            slip: Where both meet, as the last solve left it.
            p: Pressure of the cells [Pa].
            start: Velocities of the joined faces that the last solve began with, shape (64 count,) [m/s].
        """
        for axis, name in enumerate(AXES):
            turns = self.old[axis], start[axis]
            joined_faces.part_faces(axis, self.grid.blocks, self.grid.least_mass, self._phases(name), turns, fields, slip, p)

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Return values of the places' cells on the blocks of both, shape (64 blocks,)."""
        found = np.zeros((self.source.count, 64))
        for of in self.grid.blocks.T:
            found[of[of >= 0]] = values.reshape(-1, 64)[of >= 0]
        return found.reshape(-1)


def equations_of_both(
    vectors: BlockVectors, matrix: CellMatrix, cycle: Multigrid, fields: pressure.Fields, slip: slipping.Slipping
) -> Equations:
    """Return the equations of p and q together.

    Args:
        vectors: Arithmetic of vectors of p and, behind it, q.
        matrix: Matrix of p.
        cycle: Its multigrid, which preconditions p alone.
        fields: What the projection works on.
        slip: Where liquids and solids meet.
    """
    count = len(matrix.around)
    tail = slice(64 * count, 64 * count + len(slip.own))
    pushed = np.empty(len(slip.own))

    def apply(d: np.ndarray, result: np.ndarray) -> float:
        multiply(count, matrix, d, result)
        slipping.add_pushes(count, fields, slip, d, result)
        return vectors.dot(d, result)

    def precondition(r: np.ndarray, z: np.ndarray) -> None:
        cycle.precondition(r, z)
        most = 1.0 + slipping.LOOSE
        middle, half = 0.5 * most * (1.0 + 1.0 / SPREAD), 0.5 * most * (1.0 - 1.0 / SPREAD)
        left, q, rate = r[tail].copy(), np.zeros(len(pushed)), half / middle
        step = left / (middle * slip.own)
        for sweep in range(SWEEPS):
            q += step
            if sweep < SWEEPS - 1:
                slipping.press(slip, step, pushed)
                left -= pushed
                following = 1.0 / (2.0 * middle / half - rate)
                step, rate = following * (rate * step + 2.0 / (half * slip.own) * left), following
        z[tail] = q

    return Equations(apply, precondition, vectors.dot, vectors)
