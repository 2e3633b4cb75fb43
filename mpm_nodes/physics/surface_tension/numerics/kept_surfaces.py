"""What is kept of a sampled surface from one substep to the next, so that only what moved is sampled again.

Particles of a block that have hardly moved since it was last sampled stand, for the surface, where they stood then. The surface is
thus that of spheres as well, closed as ever, around particles that are off by at most as much; where the spheres of 27 blocks
stand still the level set does, and where that of 27 places does the samples do, bit for bit.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from mpm_nodes.kernels.cells.bins import Places, neighbours
from mpm_nodes.physics.surface_tension.kernels.sampling import SurfacePoints
from mpm_nodes.physics.surface_tension.kernels.unchanged_blocks import Layout, hold_still, unknown_places
from mpm_nodes.physics.surface_tension.kernels.union import NODES
from mpm_nodes.solver.state import ParticleStore

__all__ = ["Begun", "KeptSurfaces", "Surface"]


class Surface(NamedTuple):
    """The surface of one body of matter, by place.

    Attributes:
        inside, phi: Level set, from `union.union_of_spheres`.
        cuts: Vertices, from `edge_cuts.cut_edges`.
        points: Samples, from `sampling.sample_union`.
    """

    inside: np.ndarray
    phi: np.ndarray
    cuts: np.ndarray
    points: SurfacePoints


class Begun(NamedTuple):
    """A surface of which some places are known: of each part what is known, and the places that are not, int64.

    Attributes:
        level_set: Signs and phi, as `Surface` has them.
        cuts: Vertices.
        points: Samples.
    """

    level_set: tuple[tuple[np.ndarray, np.ndarray], np.ndarray]
    cuts: tuple[np.ndarray, np.ndarray]
    points: tuple[SurfacePoints, np.ndarray]


class _Sampled(NamedTuple):
    """Particles and blocks as they were when the surface was sampled last."""

    asked: Hashable
    layout: Layout
    places: Places


class KeptSurfaces:
    """Surfaces of the last substep, by the group of liquids.

    Attributes:
        wanted: Blocks near which something has to be found, a mask; None where all have to be.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Let the next surface be sampled as a whole."""
        self._moment: _Sampled | None = None
        self._surfaces: dict[int, Surface] = {}
        self._before: dict[int, Surface] = {}
        self.wanted: np.ndarray | None = None

    @property
    def nbytes(self) -> int:
        """Bytes that are kept."""
        held: list[Any] = [array for each in self._surfaces.values() for array in (*each[:3], *each.points)]
        if self._moment is not None:
            held += [*self._moment.layout, *self._moment.places]
        return sum(array.nbytes for array in held if isinstance(array, np.ndarray))

    def begin(self, particles: ParticleStore, places: Places, still: float, asked: Hashable) -> np.ndarray:
        """Compare particles with those of the last substep; return the offsets that the surface is to be sampled for, in
        three rows, flat [fixed-point units].

        Args:
            particles: The particles, sorted by block.
            places: Their blocks, and neighbours.
            still: How far a particle that counts as still may have moved along an axis [cells].
            asked: What else the surface hangs on; if that has changed, all is found again.
        """
        columns = (particles.array(name)[: particles.count].copy() for name in ("material", "volume"))
        offset = particles.rows("position").copy()
        now = Layout(particles.block_start.copy(), offset.reshape(-1), offset.shape[1], *columns)
        was, self.wanted, self._before = self._moment, None, {}
        if was is not None and was.asked == asked:
            block = _where(was.places, places)
            unit, most = still * particles.unit, max(particles.drift, 2.0) * particles.unit
            held = hold_still(now, was.layout, block, unit, most)
            self._place = neighbours(was.places.key, places.key)
            field, mesh = unknown_places(places, was.places, self._place, held)
            self._field, self._mesh = np.flatnonzero(field), np.flatnonzero(mesh)
            self._shift = np.zeros(len(was.layout.start) - 1, np.int64)
            known = block >= 0
            self._shift[block[known]] = now.start[:-1][known] - was.layout.start[:-1][block[known]]
            self.wanted = _any_near(places, mesh)
            self._before = self._surfaces
        self._was, self._moment, self._surfaces = was, _Sampled(asked, now, places), {}
        return now.offset

    def begun(self, group: int) -> Begun | None:
        """Return what is known of the surface of a group; None if that is nothing."""
        before = self._before.get(group)
        if before is None or self._was is None:
            return None
        place, count = self._place, len(self._place)
        same = place >= 0
        inside, phi = np.empty((count, NODES), np.uint8), np.zeros((count, NODES), before.phi.dtype)
        cuts = np.empty((count, *before.cuts.shape[1:]))
        for new, old in ((inside, before.inside), (phi, before.phi), (cuts, before.cuts)):
            new[same] = old[place[same]]
        points = self._points_before(before.points, self._was.layout.start)
        return Begun(((inside, phi), self._field), (cuts, self._mesh), (points, self._mesh))

    def _points_before(self, points: SurfacePoints, block_start: np.ndarray) -> SurfacePoints:
        """Return the samples of the places that are not sampled again, with the rows that their owners have now."""
        first, size = np.zeros(len(self._place), np.int64), np.zeros(len(self._place), np.int64)
        known = np.ones(len(self._place), bool)
        known[self._mesh] = False
        first[known] = points.start[self._place[known]]
        size[known] = np.diff(points.start)[self._place[known]]
        start = np.concatenate([[0], np.cumsum(size)])
        rows = np.repeat(first - start[:-1], size) + np.arange(start[-1])
        owner = points.owner[rows]
        if self._shift.any():
            owner += self._shift[np.searchsorted(block_start, owner, side="right") - 1].astype(np.int32)
        return SurfacePoints(start, points.position[rows], points.normal[rows], points.area[rows], owner)

    def keep(self, group: int, surface: Surface) -> None:
        """Keep the surface of a group for the next substep."""
        self._surfaces[group] = surface


def _where(was: Places, places: Places) -> np.ndarray:
    """Return for each block which it was among those before, -1 where it had no particles."""
    at = neighbours(was.key, places.key[places.of_slot])
    return np.where(at >= 0, was.slot[at], -1).astype(np.int64)


def _any_near(places: Places, marked: np.ndarray) -> np.ndarray:
    """Return which blocks with particles have a marked place among their 27."""
    near = places.near[places.of_slot]
    return (marked[near] & (near >= 0)).any(axis=1)
