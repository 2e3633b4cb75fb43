"""Clouds of particles in units of r = half a cell, and brute force to compare the resampling kernels with."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpm_nodes.kernels.cells.bins import Bins, Places, bins_of, places_of
from mpm_nodes.solver.state import ParticleStore

COVERAGE = np.sqrt(3.0) / 2.0 + 0.01


def store(position: np.ndarray, dtype: Any = np.float32, material: np.ndarray | None = None) -> ParticleStore:
    """Return a sorted store of particles at positions in r."""
    particles = ParticleStore(("position",), cell_size=2.0, dtype=dtype, origin=(0.3, -0.2, 0.1), materials=2)
    particles.append({"position": position, "material": np.zeros(len(position), int) if material is None else material})
    particles.sort()
    return particles


def tables(particles: ParticleStore) -> tuple[Bins, Places]:
    """Return the bins of a store and its places."""
    places = places_of(particles.block_coord, particles.block_body)
    given = (particles.offset, particles.stride, particles.shift, particles.block_start)
    return bins_of(*given, particles.array("material"), places), places


def lattice(radius: float, shift: Any = 0.5) -> np.ndarray:
    """Return the lattice of eight particles a cell in a ball around the origin, in r."""
    steps = np.arange(-int(radius) - 2, int(radius) + 3)
    position = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), -1).reshape(-1, 3) + np.asarray(shift, float)
    return position[(position**2).sum(axis=1) < radius * radius]


def world(particles: ParticleStore, slot: np.ndarray, local: np.ndarray) -> np.ndarray:
    """Return world positions of points given in r from the low corner of their blocks."""
    return particles.origin + 3.0 + 8.0 * particles.block_coord[slot] + np.asarray(local, float)


def nearest(points: np.ndarray, others: np.ndarray, chunk: int = 500) -> np.ndarray:
    """Return the distance of each point to the nearest of the others."""
    squares = [((points[i : i + chunk, None] - others[None]) ** 2).sum(axis=2).min(axis=1) for i in range(0, len(points), chunk)]
    return np.sqrt(np.concatenate(squares)) if squares else np.zeros(0)
