"""Values that vary over a surface or through space, known at scattered places: temperatures, wetting."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mpm_nodes.data.errors import MpmNodesError

__all__ = ["SurfaceField"]

_BIAS = 1 << 20
_AROUND = np.stack(np.meshgrid(*(np.arange(-1, 2),) * 3, indexing="ij"), -1).reshape(-1, 3)


@dataclass(frozen=True, eq=False)
class SurfaceField:
    """Values on a lattice of cubes, of which those are kept that samples lie in.

    Attributes:
        edge: Edge of a cube [m].
        keys: Packed index of each cube, ascending, shape (n,), int64.
        values: Mean of its samples, shape (n,).
        rest: Value where no cube is near.
    """

    edge: float
    keys: np.ndarray
    values: np.ndarray
    rest: float

    @classmethod
    def of_samples(cls, places: npt.ArrayLike, values: npt.ArrayLike, edge: float, rest: float) -> SurfaceField:
        """Return the field of samples.

        Args:
            places: Shape (n, 3) [m].
            values: Shape (n,).
            edge: Edge of a cube [m].
            rest: Value where no sample is near.

        Raises:
            MpmNodesError: A value is not finite, or a place is out of reach.
        """
        places, values = np.asarray(places, float).reshape(-1, 3), np.asarray(values, float).reshape(-1)
        if not np.isfinite(values).all():
            raise MpmNodesError("a value is not finite; write finite numbers")
        index = np.floor(places / edge)
        if not (np.abs(index) < _BIAS - 2).all():
            raise MpmNodesError(f"a place is more than a million cubes of {edge:g} m away from the origin; move the scene there")
        keys, inverse, count = np.unique(_packed(index.astype(np.int64)), return_inverse=True, return_counts=True)
        return cls(edge, keys, np.bincount(inverse.reshape(-1), values, len(keys)) / count, rest)

    def at(self, places: np.ndarray) -> np.ndarray:
        """Return the values at places, shape (n,): the mean over the cubes at and around each, by their nearness.

        Args:
            places: Shape (n, 3) [m].
        """
        if not len(self.keys):
            return np.full(len(places), self.rest)
        at = np.asarray(places, float) / self.edge
        index = np.floor(at).astype(np.int64)
        total, weight = np.zeros(len(at)), np.zeros(len(at))
        for offset in _AROUND:
            cube = index + offset
            key = _packed(cube)
            place = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
            # the quadratic spline around the middle of the cube: continuous, and straight fields stay straight
            away = np.abs(at - (cube + 0.5))
            each = np.where(away < 0.5, 0.75 - away**2, 0.5 * np.maximum(1.5 - away, 0.0) ** 2).prod(axis=1)
            share = np.where(self.keys[place] == key, each, 0.0)
            total += share * self.values[place]
            weight += share
        return np.where(weight > 1e-6, total / np.maximum(weight, 1e-6), self.rest)


def _packed(index: np.ndarray) -> np.ndarray:
    return ((index[:, 0] + _BIAS) << 42) | ((index[:, 1] + _BIAS) << 21) | (index[:, 2] + _BIAS)
