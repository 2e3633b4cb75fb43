"""What particles lose that meet bodies and walls on their paths."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mpm_nodes.solver.device.residency import ArrayParts
from mpm_nodes.solver.state import ParticleStore

__all__ = ["LostOnPaths", "lost_on_paths", "momentum_lost"]


class LostOnPaths(NamedTuple):
    """What particles lost that met bodies and walls on their paths.

    Attributes:
        met: The particles, shape (m,).
        nearest: The collider or wall that is nearest to each, shape (m,).
        place: Where it then is, shape (m, 3) [m].
        momentum: What it lost, shape (m, 3) [N s].
    """

    met: np.ndarray
    nearest: np.ndarray
    place: np.ndarray
    momentum: np.ndarray


def lost_on_paths(
    particles: ParticleStore,
    parts: ArrayParts | None,
    before: np.ndarray,
    dt: float,
    distances_at: Callable[[np.ndarray], np.ndarray],
) -> LostOnPaths:
    """Return what particles lost that met bodies and walls on their paths.

    Args:
        particles: The particles, with the velocities that they have now.
        parts: Those that may have; None: all.
        before: Velocities that they had, shape (3, n) [m/s].
        dt: The substep [s].
        distances_at: Returns the distances of places, shape (m, 3) [m], from all colliders and walls, shape
            (m, colliders + walls) [m].
    """
    velocity = particles.rows("velocity", parts)
    met = np.flatnonzero((velocity != before).any(axis=0))
    if not len(met):
        return LostOnPaths(met, np.zeros(0, np.int64), np.zeros((0, 3)), np.zeros((0, 3)))
    place = particles.places_of(met, parts) + dt * velocity[:, met].astype(np.float64).T
    return LostOnPaths(met, distances_at(place).argmin(axis=1), place, momentum_lost(particles, velocity, before, met))


def momentum_lost(particles: ParticleStore, velocity: np.ndarray, before: np.ndarray, met: np.ndarray) -> np.ndarray:
    """Return the momentum that particles have lost, shape (m, 3) [N s]."""
    mass, now = (rows[:, met].astype(np.float64) for rows in (particles.rows("mass"), velocity))
    return np.asarray((mass * (before[:, met] - now)).T)
