"""Shapes as arrays of 16 bits, in an order of which every beginning is an even sample of the whole."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

__all__ = ["STEPS", "ShapeBox", "Span", "even_order", "quantised_volume", "srgb"]

STEPS = 65535
BLOCK = 64
"""Neighbouring points of which each part of what is sent has one."""
LARGEST_VOLUME = 128
"""Voxels of a fog along an axis; of more, the mean of a power of two along each is taken."""


class Span(NamedTuple):
    """Least and greatest finite value of an attribute, in its unit."""

    least: float = 0.0
    most: float = 0.0

    @classmethod
    def of(cls, values: np.ndarray | None) -> Span | None:
        """Return the span of values (n,), None where none is finite."""
        if values is None or not len(values):
            return None
        least, most = float(values.min()), float(values.max())
        if not (np.isfinite(least) and np.isfinite(most)):
            values = values[np.isfinite(values)]
            if not len(values):
                return None
            least, most = float(values.min()), float(values.max())
        return cls(least, most)


class ShapeBox(NamedTuple):
    """The box that the 16 bits of positions stand for [m]."""

    low: np.ndarray
    size: np.ndarray

    @classmethod
    def around(cls, points: np.ndarray) -> ShapeBox:
        """Return the box around points (n, 3); one of no size around none."""
        if not len(points):
            return cls(np.zeros(3), np.full(3, 1e-12))
        low = np.array([points[:, axis].min() for axis in range(3)], np.float64)  # thrice as fast as over the short axis
        high = np.array([points[:, axis].max() for axis in range(3)], np.float64)
        return cls(low, np.maximum(high - low, 1e-12))

    def rows(self, points: np.ndarray, values: np.ndarray | None, span: Span) -> np.ndarray:
        """Return positions [m] (n, 3) and their values (n,) or (1,) as (n, 4), uint16."""
        rows = np.zeros((len(points), 4), np.uint16)
        for axis in range(3):
            steps = (points[:, axis] - self.low[axis]) * (STEPS / self.size[axis])
            rows[:, axis] = np.rint(np.clip(steps, 0.0, STEPS))
        if values is not None and len(values) in (1, len(points)) and span.most > span.least:
            shares = np.clip((values - span.least) / (span.most - span.least), 0.0, 1.0)
            rows[:, 3] = np.rint(np.nan_to_num(shares) * STEPS)
        return rows


@functools.lru_cache(maxsize=4)
def even_order(count: int, most: int) -> tuple[np.ndarray, int]:
    """Return which of `count` points are sent, at most `most`, in which order, and how many make a block.

    Each part of the order has one point of every block. Parts come in the order of reversed bits, so that every beginning is spread
    evenly, and blocks begin at places that are hashed, so that the points of a lattice do not line up. The page finds the index of
    a point by the same rule (`fullIndex`).
    """
    size = BLOCK
    while count > most and size < 8 * count / max(most, 1) and size < count:
        size *= 2
    bits = size.bit_length() - 1
    blocks = np.arange(-(-count // size), dtype=np.int64)
    turns = (blocks * 2654435761 & 0xFFFFFFFF) >> (32 - bits)
    parts, held = [np.zeros(0, np.int64)], 0
    for n in range(size):
        part = blocks * size + (int(f"{n:0{bits}b}"[::-1], 2) ^ turns)
        part = part[:-1] if len(part) and part[-1] >= count else part
        held += len(part)
        if held > most:
            break
        parts.append(part)
    return np.concatenate(parts), size


def quantised_volume(origins: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, int, float]:
    """Return leaves of a fog as one block of 8 bits.

    Args:
        origins: First voxels of the leaves, shape (n, 3).
        values: Their voxels, shape (n, 8, 8, 8); outside of them the fog is 0.

    Returns:
        The block, uint8, shape (z, y, x), at most `LARGEST_VOLUME` along each; the first voxel that it stands for, shape (3,); how
        many voxels one of its own stands for along an axis; the value that 255 stands for.
    """
    leaf = values.shape[1] if len(values) else 8
    low = origins.min(axis=0) if len(origins) else np.zeros(3, int)
    reach = int((origins.max(axis=0) - low).max()) + leaf if len(origins) else leaf
    factor = 1
    while reach > factor * LARGEST_VOLUME:
        factor *= 2
    low = low // factor * factor
    inside = min(factor, leaf)
    cut = leaf // inside
    blocks = values.reshape(-1, cut, inside, cut, inside, cut, inside).sum(axis=(2, 4, 6))
    cells = np.arange(cut) * inside
    places = [((origins[:, axis, None] + cells) - low[axis]) // factor for axis in range(3)]
    shape = [int(place.max(initial=0)) + 1 for place in places]
    x, y, z = places
    flat = (z[:, None, None, :] * shape[1] + y[:, None, :, None]) * shape[0] + x[:, :, None, None]
    sums = np.bincount(flat.ravel(), np.maximum(blocks, 0.0).ravel(), int(np.prod(shape)))
    means = sums / factor**3
    most = float(means.max(initial=0.0))
    block = np.rint(means / max(most, 1e-30) * 255.0).astype(np.uint8)
    return block.reshape(shape[::-1]), low, factor, most


def srgb(linear: np.ndarray) -> np.ndarray:
    """Return linear colours as sRGB bytes."""
    light = np.clip(linear, 0.0, 1.0)
    curve = np.where(light <= 0.0031308, 12.92 * light, 1.055 * np.maximum(light, 1e-9) ** (1.0 / 2.4) - 0.055)
    return np.rint(255.0 * curve).astype(np.uint8)
