"""Where matter leaves room for more, and what presses it aside: shares of the volume around places, on the nodes of the grid.

Symbols
    r     volume of matter at rest around a place, over the room there   -
    V_p   volume of a particle at rest                                   m^3
    w_ip  linear weight of node i at particle p                          -

r = sum_i w_ip sum_q w_iq V_q / h^3 is 1 inside any lattice of two particles a cell and axis, wherever the nodes lie.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mpm_nodes.solver.forces import block_centres
from mpm_nodes.solver.state import ParticleStore

__all__ = ["RoomAround", "filled_share"]

WIDE = 2.0
"""Cells between nodes: on fewer, how particles lie to each other shows more than how many they are."""
REACH = 4.0
"""Such cells between the middle of a block and a node that its particles may fill, at most: half a block, its drift, and one."""
FULL = 1.05
"""Share of the room around a place that is filled, from which on nothing is born there: matter at rest lies within this."""


class RoomAround:
    """The matter around places.

    Args:
        places: [m], shape (n, 3), n > 0.
        particles: The matter; on several ranks that of this rank.
        total: Sums numbers over the ranks.
        passive: Matter that fills room and is not pressed.
    """

    def __init__(
        self,
        places: np.ndarray,
        particles: ParticleStore,
        total: Callable[[np.ndarray], np.ndarray] = np.asarray,
        passive: Sequence[ParticleStore] = (),
    ) -> None:
        self._particles, self._apart = particles, WIDE * particles.h
        cells = (places - particles.origin) / self._apart
        low = np.floor(cells.min(axis=0)).astype(np.int64) - 2
        self._shape = np.floor(cells.max(axis=0)).astype(np.int64) + 4 - low
        self._nodes, self._weights = _nodes(cells - low, self._shape)
        self._who, self._own = self._close(particles, low)
        self._own_nodes, self._own_weights = _nodes(self._own, self._shape)
        filled = self._spread(particles, self._who, self._own_nodes, self._own_weights)
        for each in passive:
            who, own = self._close(each, low)
            filled = filled + self._spread(each, who, *_nodes(own, self._shape))
        self._held = total(filled)

    def _close(self, particles: ParticleStore, low: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return which particles lie between the nodes, and where, in cells from the first one, shape (n, 3)."""
        centres = (block_centres(particles) - particles.origin) / self._apart - low
        near = ((centres > -REACH) & (centres < self._shape - 1 + REACH)).all(axis=1)
        ranges = particles.ranges[near]
        who = np.concatenate([np.zeros(0, np.int64), *(np.arange(begin, end) for begin, end, _ in ranges)])
        offsets = particles.rows("position")[:, who].T / (WIDE * particles.unit)
        own = np.repeat(centres[near], ranges[:, 1] - ranges[:, 0], axis=0) + offsets
        close = ((own > 0.0) & (own < self._shape - 1)).all(axis=1)
        return who[close], own[close]

    def _spread(self, particles: ParticleStore, who: np.ndarray, nodes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the volume of particles at the nodes, of those cubes that they stand for, float64."""
        volume = particles.rows("volume")[0][who].astype(float) / self._apart**3
        spread = (weights * volume[:, None]).ravel()
        return np.bincount(nodes.ravel(), spread, int(np.prod(self._shape))).astype(float)  # of nothing it counts whole numbers

    @property
    def filled(self) -> np.ndarray:
        """r at the places, shape (n,)."""
        return np.asarray((self._weights * self._held[self._nodes]).sum(axis=1))

    def free(self, each: float) -> np.ndarray:
        """Return which of the places take a particle, shape (n,): one after the other, each beside those before it.

        Args:
            each: Volume of a particle [m^3].
        """
        free, more, held = np.zeros(len(self._nodes), bool), each / self._apart**3, self._held.copy()
        for n, (node, weight) in enumerate(zip(self._nodes, self._weights, strict=True)):
            added = more * weight
            if weight @ (held[node] + added) <= FULL:
                held[node] += added
                free[n] = True
        return free

    def press(self, columns: Mapping[str, np.ndarray], born: np.ndarray, each: float) -> dict[str, np.ndarray]:
        """Press liquids together where newborn particles fill the room to more than 1: J <- J r / r', at rest 1 / r'.

        Their pressure then makes the room at once that `follow_density` would make over time.

        Args:
            columns: Of the places.
            born: Which of them are born.
            each: Volume of a particle [m^3].

        Returns:
            dict[str, np.ndarray]: The columns of those that are born.
        """
        columns = {name: column[born] for name, column in columns.items()}
        liquids = [law.index for law in self._particles.laws if law.names == ("volume_change",)]
        if not liquids or not born.any():
            return columns
        nodes, weights = self._nodes[born], self._weights[born]
        after = self._held + np.bincount(nodes.ravel(), each / self._apart**3 * weights.ravel(), len(self._held))
        before, now = ((self._own_weights * held[self._own_nodes]).sum(axis=1) for held in (self._held, after))
        change, material = self._particles.rows("volume_change")[0], self._particles.rows("material")[0]
        inner = ((self._own > 1.0) & (self._own < self._shape - 2)).all(axis=1)  # beyond, r is not whole
        mine = inner & (now > 1.0) & np.isin(material[self._who], liquids)
        who = self._who[mine]
        change[who] = (1.0 + change[who].astype(float)) * np.maximum(before[mine], 1.0) / now[mine] - 1.0
        filled = (weights * after[nodes]).sum(axis=1)
        given = np.asarray(columns.get("volume_change", np.zeros(len(nodes))), float)
        pressed = (1.0 + given) / np.maximum(filled, 1.0) - 1.0
        columns["volume_change"] = np.where(np.isin(columns["material"], liquids), pressed, given)
        return columns


def filled_share(places: np.ndarray, particles: ParticleStore) -> np.ndarray:
    """Return the volume of matter around places over the room there, shape (n,).

    Args:
        places: [m], shape (n, 3).
        particles: The matter.
    """
    return RoomAround(places, particles).filled


def _nodes(cells: np.ndarray, shape: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the eight nodes around places and their linear weights, each of shape (n, 8).

    Args:
        cells: Places in cells from the first node, shape (n, 3).
        shape: Nodes along the axes.
    """
    base = np.floor(cells).astype(np.int64)
    share = cells - base
    corners = np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)])
    weights = np.prod(np.where(corners, share[:, None], 1.0 - share[:, None]), axis=2)
    at = base[:, None] + corners
    return (at[..., 0] * shape[1] + at[..., 1]) * shape[2] + at[..., 2], weights
