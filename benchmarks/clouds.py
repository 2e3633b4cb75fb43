"""Two clouds of particles to wrap in a surface: a compact ball, and a splash of everything that surfacing finds hard."""

from __future__ import annotations

import numpy as np

SPACING = 0.01
"""Distance of neighbouring particles [m]."""
JITTER = 0.25
"""Shift of lattice points, in spacings."""


def ball(count: int) -> np.ndarray:
    """Return positions [m] of `count` particles, shape (count, 3): those of a jittered lattice nearest to the middle."""
    side = int(np.ceil(1.3 * count ** (1.0 / 3.0))) + 2
    axis = np.arange(side) - 0.5 * (side - 1)
    lattice = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    nearest = np.argsort((lattice**2).sum(axis=1), kind="stable")[:count]
    return _placed(lattice[np.sort(nearest)])


def splash(count: int) -> np.ndarray:
    """Return positions [m] of `count` particles, shape (count, 3).

    A tenth is a crown of sheets two spacings thick, a quarter is drops of 1.5 to 5 spacings radius, a fiftieth is single
    particles, and the rest is a shallow pool with waves.
    """
    rng = np.random.default_rng(2)
    wide = 200.0 * np.sqrt(count / 1e6)  # side of the pool, in spacings
    parts = [_crown(count // 10, wide), _drops(count // 4, wide, rng), _above(count // 50, wide, rng)]
    parts.append(_pool(count - sum(map(len, parts)), wide))
    return _placed(np.concatenate(parts))


def _placed(points: np.ndarray) -> np.ndarray:
    """Return points in spacings as jittered positions in metres."""
    return SPACING * (points + np.random.default_rng(3).uniform(-JITTER, JITTER, points.shape))


def _above(count: int, wide: float, rng: np.random.Generator) -> np.ndarray:
    """Return random points in the air over the pool."""
    return rng.uniform(0.0, 1.0, (count, 3)) * [wide, 0.6 * wide, wide] + [0.0, 20.0, 0.0]


def _drops(count: int, wide: float, rng: np.random.Generator) -> np.ndarray:
    """Return lattice balls in the air."""
    axis = np.arange(-5.0, 6.0)
    lattice = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    distance = np.sqrt((lattice**2).sum(axis=1))
    found, total = [], 0
    while total < count:
        found.append(lattice[distance < rng.uniform(1.5, 5.0)] + _above(1, wide, rng))
        total += len(found[-1])
    return np.concatenate(found)[:count]


def _crown(count: int, wide: float) -> np.ndarray:
    """Return a wall two particles thick on a circle that widens upwards."""
    rows, height = [], 0
    while sum(map(len, rows)) < count:
        for layer in (0.0, 1.0):
            radius = 0.2 * wide + 0.15 * height + layer
            angle = np.arange(0.0, 2.0 * np.pi, 1.0 / radius)
            ring = np.stack([radius * np.cos(angle), np.full(len(angle), 20.0 + height), radius * np.sin(angle)], -1)
            rows.append(ring + [0.5 * wide, 0.0, 0.5 * wide])
        height += 1
    return np.concatenate(rows)[:count]


def _pool(count: int, wide: float) -> np.ndarray:
    """Return the `count` lattice points that lie deepest below a wavy surface over a square."""
    across = np.arange(0.0, wide)
    deep = int(np.ceil(count / len(across) ** 2)) + 8
    points = np.stack(np.meshgrid(across, -np.arange(float(deep)), across, indexing="ij"), -1).reshape(-1, 3)
    waves = 3.0 * np.sin(0.11 * points[:, 0]) * np.cos(0.07 * points[:, 2])
    deepest = np.argsort(points[:, 1] - waves, kind="stable")[:count]
    return points[np.sort(deepest)] + [0.0, 10.0, 0.0]
