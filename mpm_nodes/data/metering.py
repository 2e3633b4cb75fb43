"""How much a stream brings, how long, and where its source travels."""

from __future__ import annotations

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
    """

    rate: float | None = None
    volume: float = float("inf")
    region: SpatialField | None = None
    factors: np.ndarray | None = None
    room: bool = False
    velocity: SpatialField | None = None


@dataclass(frozen=True, eq=False)
class CurvePath:
    """A curve that the source of a stream travels.

    Attributes:
        points: Of its line [m], shape (n, 3), n >= 2.
        lengths: Arc length up to each of them [m], shape (n,), ascending from 0.
        travel: Share of the whole length; may carry keys.
    """

    points: np.ndarray
    lengths: np.ndarray
    travel: float = 0.0

    def at(self, share: float) -> np.ndarray:
        """Return the place at a share of the arc length [m], shape (3,); beyond the ends those."""
        along = share * self.lengths[-1]
        return np.array([np.interp(along, self.lengths, self.points[:, axis]) for axis in range(3)])
