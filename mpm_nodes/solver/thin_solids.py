"""Where matter of the projection is thin: its steps must be short there, or shape and pressure solved together.

After the semi-implicit step the projection lets matter give way as if its shear modulus were 1 + (dt c / h)^2 / 2 times smaller, c
the speed of shear waves (`solver.coupling`). Thick bodies bear it; what is two cells thin squashes itself.
"""

from __future__ import annotations

import math

import numpy as np

from mpm_nodes.solver.state import ParticleStore

__all__ = ["LONGEST", "longest_thin_step", "thickness"]

LONGEST = 2.5
"""Longest step of thin matter, over the time that a shear wave takes through a cell."""
THIN = 2.5
"""Thickness below which matter is thin: between two cells and three [cells]."""
SHARE = 0.25
"""Share of a material's particles in thin parts from which on it counts: round bodies have a few at their poles."""
LOOSE = 0.05
"""Share of a cell below which it counts as empty."""
_BIAS = 1 << 20


def longest_thin_step(particles: ParticleStore, dt: float) -> float:
    """Return the largest dt c / h of the materials that are thin and exceed LONGEST, 0 where there is none.

    Args:
        particles: The particles.
        dt: Substep [s].
    """
    rates = {law.index: dt * math.sqrt(law.moduli.shear / law.density) / particles.h for law, _ in particles.runs()}
    stiff = {index: rate for index, rate in rates.items() if rate > LONGEST}
    if not stiff:
        return 0.0
    material = particles.rows("material")[0][: particles.count]
    firm = np.isin(material, [law.index for law, _ in particles.runs() if law.moduli.shear > 0.0])
    filled = particles.unpack("volume")[firm] / particles.h**3
    thin = thickness((particles.unpack("position")[firm] - particles.origin) / particles.h, filled) < THIN
    return max((rate for index, rate in stiff.items() if thin[material[firm] == index].mean() > SHARE), default=0.0)


def thickness(place: np.ndarray, filled: np.ndarray) -> np.ndarray:
    """Return how thick the matter is at each particle along the axis of the grid where it is thinnest, up to 7 [cells], shape (n,).

    Along an axis the filling of cells is summed up, three to either side as far as they hold matter, so that it makes no difference
    how a body lies between the cells.

    Args:
        place: Positions [cells], shape (n, 3).
        filled: Share of a cell that each particle fills, shape (n,).
    """
    index = np.floor(place).astype(np.int64) + _BIAS
    keys, mine = np.unique((index[:, 0] << 42) | (index[:, 1] << 21) | index[:, 2], return_inverse=True)
    share = np.bincount(mine.reshape(-1), filled, len(keys))
    least = np.full(len(keys), np.inf)
    for one in (1 << 42, 1 << 21, 1):
        total = share.copy()
        for side in (one, -one):
            there = np.ones(len(keys), bool)
            for way in (1, 2, 3):
                found = np.minimum(np.searchsorted(keys, keys + way * side), len(keys) - 1)
                more = np.where(keys[found] == keys + way * side, share[found], 0.0)
                there &= more > LOOSE
                total += np.where(there, more, 0.0)
        least = np.minimum(least, total)
    thick: np.ndarray = least[mine.reshape(-1)]
    return thick
