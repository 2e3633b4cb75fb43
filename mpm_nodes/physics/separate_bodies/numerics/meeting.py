"""Where bodies meet on the grid, and which particles are around there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mpm_nodes.physics.separate_bodies.kernels import contacts as kernels
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.ranks.halo import Halo
from mpm_nodes.solver.ranks.reaching import Reaching
from mpm_nodes.solver.state import ParticleStore

__all__ = ["Meeting", "cloud_of", "meeting_of"]


class Meeting(NamedTuple):
    """Where bodies meet on a grid.

    Attributes:
        blocks: Grid blocks at whose place another body has a block too, place by place, shape (n,), int64.
        groups: First and last + 1 of those that are at one place, shape (places, 2), int64.
        bodies: Body of each, shape (n,), int64.
        first, near: Particle blocks that reach each of them: `near[first[k] : first[k + 1]]`, int64.
        moments: Room for `kernels.contacts.measure_bodies`.
        reaching: On several ranks, where `near` finds its particle blocks; else None: they are those of the particles.
        anywhere: Whether bodies meet on this rank or on another.
    """

    blocks: np.ndarray
    groups: np.ndarray
    bodies: np.ndarray
    first: np.ndarray
    near: np.ndarray
    moments: np.ndarray
    reaching: Reaching | None
    anywhere: bool


def meeting_of(grid: GridStore) -> Meeting:
    """Return where bodies meet, from the grid's blocks, which are in the order of their places.

    On several ranks, which do so together, each has the places in its own slab.
    """
    changes = np.flatnonzero((np.diff(grid.coord, axis=0) != 0).any(axis=1)) + 1
    starts, ends = np.concatenate([[0], changes]), np.concatenate([changes, [grid.count]])
    several, tiles, reaching = ends - starts > 1, grid.particle_tiles(), None
    order = np.argsort(tiles.ravel(), kind="stable")
    if isinstance(grid.halo, Halo):
        reaching = Reaching(grid, grid.halo, np.repeat(several, ends - starts))
        tiles, several = reaching.tiles, several & np.append(grid.halo.own, False)[starts]
        order = np.lexsort((np.repeat(reaching.packed, 8), tiles.ravel()))  # particles in the order that they have on one rank
    sizes = (ends - starts)[several]
    blocks = np.concatenate([np.arange(a, b) for a, b in zip(starts[several], ends[several], strict=True)] or [np.zeros(0, int)])
    last = np.cumsum(sizes)
    reached = tiles.ravel()[order]
    begin, end = np.searchsorted(reached, blocks), np.searchsorted(reached, blocks, side="right")
    near = np.concatenate([order[a:b] // 8 for a, b in zip(begin, end, strict=True)] or [np.zeros(0, int)])
    return Meeting(
        blocks.astype(np.int64),
        np.stack([last - sizes, last], axis=1).astype(np.int64),
        grid.body[blocks].astype(np.int64),
        np.concatenate([[0], np.cumsum(end - begin)]).astype(np.int64),
        near.astype(np.int64),
        np.empty((len(blocks), 64, kernels.MOMENTS)),
        reaching,
        grid.halo.any(bool(len(blocks))),
    )


def cloud_of(meeting: Meeting, particles: ParticleStore, grid: GridStore) -> kernels.NearbyParticles:
    """Return the particles around the blocks where bodies meet; ranks, which ask together, add those of their neighbours."""
    place = particles.geometry()
    own = (place.offset, place.stride, place.inverse_unit, particles.block_coord, particles.block_start, particles.array("volume"))
    if meeting.reaching is not None:
        now = meeting.reaching.now(particles, "volume")
        own = (now.offset, now.count, place.inverse_unit, now.coord, now.start, now.values)
    return kernels.NearbyParticles(meeting.blocks, meeting.first, meeting.near, *own, grid.coord, grid.h)
