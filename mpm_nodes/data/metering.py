"""How much a stream brings, how long, and where its source travels."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass

import numpy as np

from mpm_nodes.data.spatial import SpatialField

__all__ = ["CurvePath", "Metering"]


@dataclass(frozen=True, eq=False)
class Metering:
    """What a stream that is counted to a particle brings.

    Attributes:
        rate: Volume per simulated second [m^3/s]; may carry keys. None: as much as the velocity carries through the nozzle.
        volume: Volume after which it stops [m^3]; infinite where it does not.
        region: Where `volume` is measured, of all matter, above 1/2; None: what the stream has brought.
        factors: Speed of each particle of the template, of the mean of the stream, shape (n,), > 0, of mean 1; None: all alike.
        room: Whether particles are born only where others leave room.
        velocity: What is added to the velocities of particles where they are born [m/s]; None: nothing.
        closed: Whether nothing comes in this frame, since its nozzle is open nowhere.
    """

    rate: float | None = None
    volume: float = float("inf")
    region: SpatialField | None = None
    factors: np.ndarray | None = None
    room: bool = False
    velocity: SpatialField | None = None
    closed: bool = False


CORNER = 0.98
"""Cosine of the angle between pieces of a line from which on they meet in a corner: there its direction jumps."""


@dataclass(frozen=True, eq=False)
class CurvePath:
    """A curve that the source of a stream travels.

    Attributes:
        points: Of its line [m], shape (n, 3), n >= 2.
        lengths: Arc length up to each of them [m], shape (n,), ascending from 0.
        travel: Share of the whole length; may carry keys.
        follows: Whether the source turns with the curve.
    """

    points: np.ndarray
    lengths: np.ndarray
    travel: float = 0.0
    follows: bool = False

    def at(self, share: float) -> np.ndarray:
        """Return the place at a share of the arc length [m], shape (3,); beyond the ends those."""
        along = share * self.lengths[-1]
        return np.array([np.interp(along, self.lengths, self.points[:, axis]) for axis in range(3)])

    def turn(self, share: float) -> np.ndarray:
        """Return how the curve has turned from its beginning to a share of its arc length, without a twist, shape (3, 3).

        Between the middles of pieces of a line it goes straight; in corners it jumps.

        Source: Bishop 1975 (parallel transport).
        """
        middles, turns, corners = self._turns
        along = min(max(share, 0.0), 1.0) * self.lengths[-1]
        after = int(np.searchsorted(middles, along))
        if after in (0, len(middles)):
            return np.asarray(turns[min(after, len(turns) - 1)])
        begin, end = middles[after - 1 : after + 1]
        part = (along - begin) / (end - begin)
        if np.isfinite(corners[after - 1]):
            part = float(along >= corners[after - 1])
        left, _, right = np.linalg.svd((1.0 - part) * turns[after - 1] + part * turns[after])
        return np.asarray(left @ right)

    @functools.cached_property
    def _turns(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Middles of the pieces along the line [m], their turns from the first, and where neighbours meet in a corner, else NaN."""
        steps = np.diff(self.points, axis=0)
        sizes = np.diff(self.lengths)
        whole = sizes > 0.0
        directions = steps[whole] / sizes[whole, None]
        ends = self.lengths[1:][whole]
        turns = [np.eye(3)]
        for before, now in itertools.pairwise(directions):
            turns.append(_least_turn(before, now) @ turns[-1])
        straight = (directions[:-1] * directions[1:]).sum(axis=1)
        return ends - 0.5 * sizes[whole], np.array(turns), np.where(straight < CORNER, ends[:-1], np.nan)


def _least_turn(before: np.ndarray, now: np.ndarray) -> np.ndarray:
    """Return the least rotation that takes one direction to another, shape (3, 3)."""
    cosine, axis = float(before @ now), np.cross(before, now)
    if cosine < -1.0 + 1e-12:  # straight back: about any axis across it
        across = np.cross(before, np.eye(3)[np.argmin(np.abs(before))])
        across /= np.linalg.norm(across)
        return np.asarray(2.0 * np.outer(across, across) - np.eye(3))
    cross = np.array([[0.0, -axis[2], axis[1]], [axis[2], 0.0, -axis[0]], [-axis[1], axis[0], 0.0]])
    return np.asarray(np.eye(3) + cross + cross @ cross / (1.0 + cosine))
