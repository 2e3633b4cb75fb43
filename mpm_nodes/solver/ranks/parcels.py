"""Particles on their way between ranks: whole blocks, with fixed-point positions, so that nothing is rounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mpm_nodes.solver.state import ParticleStore

__all__ = ["Parcel", "parcel_of", "refill"]


@dataclass(frozen=True)
class Parcel:
    """Particles of some blocks.

    Attributes:
        coord: Blocks, shape (blocks, 3), int32.
        body: Body of each block, int32.
        counts: Particles of each, int64.
        rows: Their attributes, and the fixed-point offsets as "position", shape (rows, count).
    """

    coord: np.ndarray
    body: np.ndarray
    counts: np.ndarray
    rows: dict[str, np.ndarray]

    @property
    def count(self) -> int:
        """Number of particles."""
        return int(self.counts.sum())

    @property
    def nbytes(self) -> int:
        """Bytes of the particles."""
        return sum(array.nbytes for array in self.rows.values())


def parcel_of(particles: ParticleStore, blocks: np.ndarray) -> Parcel:
    """Return copies of the particles of some blocks, in their order; attributes that hold nothing are left out.

    Args:
        particles: The particles.
        blocks: Places of the blocks, ascending.
    """
    counts = np.diff(particles.block_start)[blocks]
    begins = particles.block_start[:-1][blocks]
    which = np.repeat(begins - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts) + np.arange(counts.sum())
    names = [name for name in ("position", *particles.names) if name not in particles.stale]
    rows = {name: particles.rows(name)[:, which] for name in names}
    return Parcel(particles.block_coord[blocks], particles.block_body[blocks], counts.astype(np.int64), rows)


def refill(particles: ParticleStore, parcels: Sequence[Parcel]) -> None:
    """Let a store hold the particles of some parcels, in their order, and nothing else. They are to be sorted.

    Attributes that a parcel has none of hold nothing afterwards. The measured limits of dt are gone.
    """
    parcels = [parcel for parcel in parcels if parcel.count]
    counts = np.concatenate([np.zeros(0, np.int64), *(parcel.counts for parcel in parcels)])
    held = [set(parcel.rows) for parcel in parcels]
    particles.count = 0
    particles.reserve(int(counts.sum()))
    particles.count = int(counts.sum())
    particles.stale = set()
    if parcels:
        known = set.intersection(*held)
        particles.stale = {name for name in particles.names if name not in known}
        for name in known:
            np.concatenate([parcel.rows[name] for parcel in parcels], axis=1, out=particles.rows(name))
    particles.block_coord = np.concatenate([np.zeros((0, 3), np.int32), *(parcel.coord for parcel in parcels)])
    particles.block_body = np.concatenate([np.zeros(0, np.int32), *(parcel.body for parcel in parcels)])
    particles.block_start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    particles.retable()
