"""The particles of a rank with those of its neighbours around them, for what looks at particles nearby."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mpm_nodes.kernels.transfers.binning import pack_coord
from mpm_nodes.solver.ranks.share import Share
from mpm_nodes.solver.state import ParticleStore

__all__ = ["ParticlesAround", "particles_around"]


@dataclass(frozen=True)
class ParticlesAround:
    """Particles by block as a sorted `ParticleStore` keeps them, in three rows of offsets.

    Attributes:
        count: Number of particles.
        block_coord: Shape (blocks, 3), int32, in the order of packed coordinates.
        block_body: Shape (blocks,), int32.
        block_start: Shape (blocks + 1,), int64.
        offset: Fixed-point offsets, three rows, flat.
        rows: Their attributes of one row, by name.
        drift: Largest |offset| of all ranks in cells.
        unit: Fixed-point units per cell.
    """

    count: int
    block_coord: np.ndarray
    block_body: np.ndarray
    block_start: np.ndarray
    offset: np.ndarray
    rows: dict[str, np.ndarray]
    drift: float
    unit: float

    @property
    def stride(self) -> int:
        """Distance of rows."""
        return self.count

    @property
    def block_count(self) -> int:
        """Number of blocks."""
        return len(self.block_coord)

    def array(self, name: str) -> np.ndarray:
        """Return the flat rows of an attribute."""
        return self.rows[name]


def particles_around(
    particles: ParticleStore, names: tuple[str, ...], wanted: bool = True, reach: int | None = None
) -> tuple[ParticlesAround, np.ndarray]:
    """Return the particles of this rank among those of its neighbours, and where among them each of this rank's stands.

    All ranks ask for it together. Particles have the order that they have on one rank.

    Args:
        particles: The particles of this rank.
        names: Attributes to be had, of one row each.
        wanted: Whether this rank needs its neighbours' particles; else it may get none.
        reach: Columns of blocks beyond the border, as `Share.near` takes it.
    """
    assert isinstance(particles.share, Share)
    lower, upper, drift = particles.share.near(wanted, ("position", *names), reach)
    coord = np.concatenate([lower.coord, particles.block_coord, upper.coord])
    body = np.concatenate([lower.body, particles.block_body, upper.body])
    counts = np.concatenate([lower.counts, np.diff(particles.block_start), upper.counts])
    x, y, z = coord.astype(np.int64).T
    order = np.argsort(pack_coord(x, y, z, body), kind="stable")
    first, sizes = (np.cumsum(counts) - counts)[order], counts[order]
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    which = np.repeat(first - start[:-1], sizes) + np.arange(start[-1])
    place = np.empty(len(which), np.int64)
    place[which] = np.arange(len(which))

    def merged(name: str) -> np.ndarray:
        parts = [lower.rows[name], particles.rows(name), upper.rows[name]]
        return np.ascontiguousarray(np.concatenate(parts, axis=1)[:, which]).ravel()

    around = ParticlesAround(
        len(which),
        coord[order],
        body[order],
        start,
        merged("position"),
        {name: merged(name) for name in names},
        drift,
        particles.unit,
    )
    return around, place[lower.count : lower.count + particles.count]
