"""The particles that reach some grid blocks of a rank, those of its neighbour among them, for stages that measure at nodes.

A particle block in column c gives to the grid blocks of columns c and c + 1. So all that reaches the blocks of a rank are its own
particles and those in the last column of its lower neighbour. Both sides of a border hold the same blocks around it, and the lower
one finds by itself which of its particles the upper one lacks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mpm_nodes.kernels.transfers import binning
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.ranks.halo import Halo
from mpm_nodes.solver.ranks.slabs import column_of
from mpm_nodes.solver.state import ParticleStore

__all__ = ["Reached", "Reaching"]


@dataclass(frozen=True)
class Reached:
    """Particles by block, as they are now.

    Attributes:
        coord: Their blocks, shape (blocks, 3), int32.
        start: Particles of block q are start[q] : start[q + 1], int64.
        offset: Fixed-point offsets, three rows of `count`, flat.
        values: Another attribute of one row, shape (count,).
    """

    coord: np.ndarray
    start: np.ndarray
    offset: np.ndarray
    values: np.ndarray

    @property
    def count(self) -> int:
        """Number of particles."""
        return len(self.values)


class Reaching:
    """Which particle blocks reach some grid blocks; found by all ranks together whenever the grid is laid out again.

    Args:
        grid: The grid of this rank.
        halo: What it shares with others.
        blocks: Which of its blocks are asked for, bool, shape (count,). Both sides of a border ask for the same of those that both
            hold; each is told of those that belong to it.

    Attributes:
        tiles: Grid blocks of the tile of each particle block found, -1 where this rank has none, shape (blocks, 8), int32: of the
            lower neighbour's first, then this rank's.
        packed: Coordinates and body of each of these particle blocks, packed (`binning.pack_coord`), int64.
    """

    def __init__(self, grid: GridStore, halo: Halo, blocks: np.ndarray) -> None:
        particles = grid.particles
        self._team, tiles = halo.team, grid.particle_tiles()
        columns = column_of(grid.packed, halo.slabs.axis)
        nothing = np.zeros(0, np.int64)
        self._given, offers = nothing, []
        for other, border in halo.neighbours:
            mine = nothing
            if other > halo.team.rank:  # its first column is reached from here
                mine = self._given = np.flatnonzero((blocks & (columns == border))[tiles].any(axis=1))
            offers.append((other, _packed(particles, mine)))
        packed = np.concatenate([nothing, *halo.team.swap_lists(offers)])  # a lower neighbour is offered nothing
        coord, body = np.empty((len(packed), 3), np.int32), np.empty(len(packed), np.int32)
        binning.unpack_coord(packed, coord, body)
        around = np.empty(8 * len(packed), np.int64)
        binning.list_tiles(coord, body, len(packed), around)
        place = np.minimum(np.searchsorted(grid.packed, around), max(grid.count - 1, 0))
        known = grid.packed[place] == around if grid.count else np.zeros(0, bool)
        self._own = np.flatnonzero((blocks & halo.own)[tiles].any(axis=1))
        self.tiles = np.concatenate([np.where(known, place, -1).reshape(-1, 8), tiles[self._own]]).astype(np.int32)
        self._coord = np.concatenate([coord, particles.block_coord[self._own]])
        self.packed, self._foreign = np.concatenate([packed, _packed(particles, self._own)]), len(packed)

    def now(self, particles: ParticleStore, name: str) -> Reached:
        """Return the particles and one of their attributes; neighbours exchange them, so all ranks ask together.

        Args:
            particles: The particles of this rank.
            name: An attribute of one row.
        """
        counts, which = _listed(particles, self._own)
        position, values = particles.rows("position"), particles.rows(name)[0]
        foreign, place, held = self._swapped(particles, position, values)
        start = np.concatenate([[0], np.cumsum(np.concatenate([foreign, counts]))]).astype(np.int64)
        offset = np.concatenate([place, position[:, which]], axis=1)
        return Reached(self._coord, start, np.ascontiguousarray(offset).ravel(), np.concatenate([held, values[which]]))

    def _swapped(
        self, particles: ParticleStore, position: np.ndarray, values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Give the upper neighbour what it lacks; return counts by block, offsets and values of what the lower one gave."""
        sent, which = _listed(particles, self._given)
        came = np.zeros(self._foreign, np.int64)  # stages may have deleted some since the grid was laid out
        self._pass_up([sent], [came])
        total = int(came.sum())
        place, held = np.empty((3, total), position.dtype), np.empty(total, values.dtype)
        self._pass_up([np.ascontiguousarray(position[:, which]), values[which]], [place, held])
        return came, place, held

    def _pass_up(self, gives: list[np.ndarray], takes: list[np.ndarray]) -> None:
        """Send arrays to the upper neighbour, and fill those that the lower one sends; empty ones stay at home."""
        rank = self._team.rank
        self._team.exchange([(rank + 1, each) for each in gives if each.size], [(rank - 1, each) for each in takes if each.size])


def _packed(particles: ParticleStore, blocks: np.ndarray) -> np.ndarray:
    """Return packed coordinates and bodies of particle blocks."""
    coord = particles.block_coord[blocks].astype(np.int64)
    return np.asarray(binning.pack_coord(coord[:, 0], coord[:, 1], coord[:, 2], particles.block_body[blocks]), np.int64)


def _listed(particles: ParticleStore, blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how many particles blocks hold, and which, block by block."""
    counts = np.diff(particles.block_start)[blocks].astype(np.int64)
    first = particles.block_start[:-1][blocks] - np.cumsum(counts) + counts
    return counts, np.repeat(first, counts) + np.arange(int(counts.sum()))
