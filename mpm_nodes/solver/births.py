"""Where the particles of a stream are born across it: each repetition of a template elsewhere, whatever the substeps.

A template repeats, so that without this all that is born in one place of the nozzle goes one way: where matter spreads, its
particles lie in files with gaps between them that the grid does not see.
"""

from __future__ import annotations

import numpy as np

__all__ = ["shifts", "uniform"]

ODD = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64)
"""Steele, Lea and Flood 2014: the step of splitmix64, and the two factors that mix its bits."""


def uniform(first: np.ndarray, second: np.ndarray, third: int) -> np.ndarray:
    """Return numbers in [0, 1) that look random, one for each three whole numbers, by splitmix64; shape of `first`."""
    z = np.zeros(len(first), np.uint64)
    for each in (first, second, np.full(len(first), third)):
        z = z + ODD[0] * (each.astype(np.uint64) + np.uint64(1))
        z = (z ^ (z >> np.uint64(30))) * ODD[1]
        z = (z ^ (z >> np.uint64(27))) * ODD[2]
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)) * 2.0**-53


def shifts(width: float, who: np.ndarray, repetition: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Return how far particles are born beside their place in the template [m], shape (n, 3): evenly in a cube, seen along it.

    Args:
        width: Edge of the cube [m].
        who: Which particles of the template they are.
        repetition: Which repetition of each.
        directions: Of the stream there, of length 1, shape (n, 3) or (1, 3).
    """
    cube = width * (np.stack([uniform(who, repetition, axis) for axis in range(3)], axis=1) - 0.5)
    return cube - (cube * directions).sum(axis=1, keepdims=True) * directions
