"""Particles in their blocks, as collisions take them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["ParticleBlocks"]


class ParticleBlocks(NamedTuple):
    """Particles in their blocks.

    Attributes:
        offset: Fixed-point position in the block, 3 rows.
        stride: Length of a row.
        block_coord: Particle blocks, shape (n, 3), int32.
        block_start: First particle of each block, shape (n + 1,), int32.
        unit: Fixed-point units per cell.
        h: Grid spacing [m].
        shift: Particle origin in the frame of the bodies, shape (3,) [m].
    """

    offset: np.ndarray
    stride: int
    block_coord: np.ndarray
    block_start: np.ndarray
    unit: float
    h: float
    shift: np.ndarray
