"""Energy of points that move with the matter, written in NumPy: for terms of one's own.

    def energy(x):  return 0.5 * k * ((x - rest) ** 2).sum(axis=1)
    def force(x):   return k * (rest - x)
    def stiffness(x): return np.broadcast_to(k * np.eye(3), (len(x), 3, 3))

    store.add("springs", PointTerm(particles.unpack("position"), grid, kernel, energy, force, stiffness))

Positions at the end of the substep are x_p + dt sum_i w_ip v_i, with the weights of the substep's start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mpm_nodes.data import Kernel, MpmNodesError
from mpm_nodes.solver.grid import GridStore

__all__ = ["PointTerm", "weights_of"]


class PointTerm:
    """sum_p psi_p(x_p) over points x, an `EnergyTerm`.

    Args:
        position: Points at the start of the substep [m], shape (n, 3); each within the matter's own cells.
        grid: Grid of the trial velocities, laid out under the particles.
        kernel: B-spline of the weights; the one of rasterize.
        energy: From positions [m], shape (n, 3), to energies [J], shape (n,); infinity or NaN where a step must not go.
        force: From positions to - d psi / dx [N], shape (n, 3).
        stiffness: From positions to d^2 psi / dx^2 [N/m], symmetric, shape (n, 3, 3).

    Raises:
        MpmNodesError: A point lies where there is no grid.
    """

    def __init__(
        self,
        position: np.ndarray,
        grid: GridStore,
        kernel: Kernel,
        energy: Callable[[np.ndarray], np.ndarray],
        force: Callable[[np.ndarray], np.ndarray],
        stiffness: Callable[[np.ndarray], np.ndarray],
    ) -> None:
        self.position, self.energy, self.force, self.stiffness = np.asarray(position, float), energy, force, stiffness
        self.node, self.weight = weights_of(self.position, grid, kernel)
        self._moved = self.position
        self._second = np.zeros((len(self.position), 3, 3))

    def evaluate(self, dt: float, velocity: np.ndarray, force: np.ndarray) -> tuple[float, int]:
        """See `EnergyTerm`."""
        self._moved = self.position + dt * self._gathered(velocity)
        psi = np.asarray(self.energy(self._moved), float)
        inside = np.isfinite(psi)
        self._scatter(np.where(inside[:, None], self.force(self._moved), 0.0), force)
        return float(psi[inside].sum()), int((~inside).sum())

    def linearise(self, dt: float) -> None:
        """See `EnergyTerm`."""
        self._second = np.asarray(self.stiffness(self._moved), float)

    def apply(self, dt: float, direction: np.ndarray, result: np.ndarray) -> None:
        """See `EnergyTerm`."""
        self._scatter(dt * dt * np.einsum("nij,nj->ni", self._second, self._gathered(direction)), result)

    def add_blocks(self, dt: float, blocks: np.ndarray) -> None:
        """See `EnergyTerm`."""
        upper = self._second.reshape(-1, 9)[:, [0, 1, 2, 4, 5, 8]]
        values = (dt * self.weight)[:, :, None] ** 2 * upper[:, None, :]
        np.add.at(blocks[: blocks.size // 6 * 6].reshape(-1, 6), self.node.ravel(), values.reshape(-1, 6))

    def _gathered(self, vector: np.ndarray) -> np.ndarray:
        nodes = vector[: vector.size // 4 * 4].reshape(-1, 4)
        return (self.weight[:, :, None] * nodes[self.node, :3]).sum(axis=1)

    def _scatter(self, values: np.ndarray, vector: np.ndarray) -> None:
        nodes = vector[: vector.size // 4 * 4].reshape(-1, 4)
        np.add.at(nodes[:, :3], self.node.ravel(), (self.weight[:, :, None] * values[:, None, :]).reshape(-1, 3))


def weights_of(position: np.ndarray, grid: GridStore, kernel: Kernel) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes that points see and the weights of each: indices and values of shape (n, 27) or (n, 64).

    Raises:
        MpmNodesError: A point lies where there is no grid.
    """
    cells = (position - grid.origin) / grid.h
    quadratic = kernel is Kernel.QUADRATIC
    first = np.floor(cells - (0.5 if quadratic else 1.0)).astype(np.int64)
    distance = np.abs(cells[:, None, :] - (first[:, None, :] + np.arange(3 if quadratic else 4)[None, :, None]))
    line = _quadratic(distance) if quadratic else _cubic(distance)
    span = np.arange(line.shape[1])
    i, j, k = (axis.ravel() for axis in np.meshgrid(span, span, span, indexing="ij"))
    weight = line[:, i, 0] * line[:, j, 1] * line[:, k, 2]
    node = first[:, None, :] + np.stack([i, j, k], axis=1)[None]
    return _indices(node, grid), weight


def _indices(node: np.ndarray, grid: GridStore) -> np.ndarray:
    """Return the indices of grid nodes given by their whole coordinates, shape (..., 3)."""
    block, inside = node >> 2, node & 3
    known, order = _packed(grid.coord.astype(np.int64)), np.argsort(_packed(grid.coord.astype(np.int64)))
    wanted = _packed(block)
    place = np.minimum(np.searchsorted(known[order], wanted), max(len(known) - 1, 0))
    if not len(known) or (known[order][place] != wanted).any():
        raise MpmNodesError("energy term: a point lies where there is no grid; take points of the particles that are rasterized")
    return 64 * order[place] + 16 * inside[..., 0] + 4 * inside[..., 1] + inside[..., 2]


def _packed(block: np.ndarray) -> np.ndarray:
    moved = block + (1 << 20)
    return (moved[..., 0] << 42) | (moved[..., 1] << 21) | moved[..., 2]


def _quadratic(d: np.ndarray) -> Any:
    return np.where(d < 0.5, 0.75 - d * d, 0.5 * np.maximum(1.5 - d, 0.0) ** 2)


def _cubic(d: np.ndarray) -> Any:
    return np.where(d < 1.0, 0.5 * d**3 - d * d + 2.0 / 3.0, np.maximum(2.0 - d, 0.0) ** 3 / 6.0)
