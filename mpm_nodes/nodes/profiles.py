"""Speeds across a nozzle: fastest in the middle and none at the wall, as a liquid flows in a tube."""

from __future__ import annotations

import numpy as np

from mpm_nodes.data import Particles
from mpm_nodes.nodes.nozzles import columns_across

__all__ = ["of_mean", "parabolic"]

CLOSE = 1e-10
"""Residual of the flow, of its drive."""
LEAST = 0.02
"""Least speed of the mean: what stands still would never come."""


def parabolic(template: Particles, axis: np.ndarray) -> np.ndarray:
    """Return the speed of each particle of the mean, shape (n,): laminar flow through the outline of the template.

    Across the nozzle div grad u = const and u = 0 at the wall, in cells a spacing wide by finite differences, the wall at their
    faces. In a round one that is the parabola 2 (1 - r^2 / R^2).

    Args:
        template: Particles, n > 0.
        axis: Direction of the stream, shape (3,), of length 1.

    Source: textbook (Poiseuille flow).
    """
    places, column = columns_across(template, axis)
    width = int(places[:, 1].max()) + 2
    key = places[:, 0] * width + places[:, 1]
    order = np.argsort(key)
    beside = []
    for i, j in ((-1, 0), (1, 0), (0, -1), (0, 1)):
        at = np.minimum(np.searchsorted(key[order], key + i * width + j), len(key) - 1)
        beside.append(np.where(key[order][at] == key + i * width + j, order[at], -1))
    near = np.stack(beside)

    def drag(speed: np.ndarray) -> np.ndarray:
        """Return the sum over four faces of the fall of speed: to the next cell, or to the wall half as far."""
        return np.asarray(np.where(near >= 0, speed - speed[near], 2.0 * speed).sum(axis=0))

    speed, left = np.zeros(len(key)), np.ones(len(key))
    toward, size = left.copy(), float(left @ left)
    for _ in range(4 * len(key)):  # conjugate gradients
        pull = drag(toward)
        step = size / float(toward @ pull)
        speed, left = speed + step * toward, left - step * pull
        before, size = size, float(left @ left)
        if size <= CLOSE**2 * len(key):
            break
        toward = left + size / before * toward
    return of_mean(speed[column])


def of_mean(speeds: np.ndarray) -> np.ndarray:
    """Return speeds, shape (n,), >= 0, of their mean, at least `LEAST` of it."""
    found = speeds
    for _ in range(8):  # raising the slowest lowers the rest
        found = np.maximum(found / found.mean(), LEAST)
    return np.asarray(found / found.mean())
