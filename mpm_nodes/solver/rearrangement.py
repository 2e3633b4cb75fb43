"""Which of many particles goes where, so that their ways are short and do not cross.

| symbol | meaning | unit |
|---|---|---|
| x, g | place of a particle, and its goal | m |
| L | edge of the cubes in which particles exchange their goals | m |

It begins with the Knothe-Rosenblatt rearrangement: both sides are cut into slabs of equally many points along the first axis, each
slab into columns along the second, and the points of a column are taken in their order along the third; the k-th here goes to the
k-th there. Then pairs exchange their goals wherever that makes the sum of |g - x|^2 smaller, which is where

    (x_1 - x_2) . (g_1 - g_2) < 0                                                        Puccetti 2017

until no pair that is looked at gains any more: ways of such pairs never cross. Pairs are looked for in cubes from the whole scene
down to two cells, in every cube one point of the lower half along some direction with one of the upper half.

Source: Knothe 1957; Puccetti 2017.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

__all__ = ["exchange", "rearranged"]

PLASTIC = (0.8191725133961645, 0.6710436067037893, 0.5497004779019703)
"""Steps of a sequence that fills a cube evenly (Roberts 2018)."""
SWEEPS = 40
"""Rounds of exchanges, over all sizes of cubes, after the rearrangement."""


def rearranged(points: np.ndarray, spacing: float, targets: np.ndarray, its_spacing: float) -> np.ndarray:
    """Return where each point goes.

    Args:
        points: [m], shape (n, 3).
        spacing: How far they are apart [m].
        targets: [m], shape (m, 3), one at least. Of more than n, n that lie evenly among them are taken; fewer are taken several
            times, and spread over the room of each.
        its_spacing: How far they are apart [m].

    Returns:
        [m], shape (n, 3).
    """
    n, m = len(points), len(targets)
    if not n:
        return np.zeros((0, 3))
    axes = np.argsort(-np.ptp(targets, axis=0), kind="stable")
    slabs, columns, _ = (max(1, round(float(each))) for each in _layers(points, spacing, targets, its_spacing, axes))
    if m != n:
        among = _order(targets, its_spacing, axes, *_own_layers(targets, its_spacing, axes))
        taken = among[((np.arange(n) + 0.5) * m / n).astype(np.int64)]
        targets = targets[taken]
        if m < n:
            targets = targets + its_spacing * ((np.arange(1, n + 1)[:, None] * PLASTIC) % 1.0 - 0.5)
    found = np.empty((n, 3))
    found[_order(points, spacing, axes, slabs, columns)] = targets[_order(targets, its_spacing, axes, slabs, columns)]
    exchange(points, found, np.ones(n, np.int64), 4.0 * spacing, range(SWEEPS))
    return found


def exchange(points: np.ndarray, goals: np.ndarray, groups: np.ndarray, least: float, rounds: Iterable[int]) -> None:
    """Let points exchange their goals where that shortens their ways.

    Args:
        points: [m], shape (n, 3).
        goals: [m], shape (n, 3); written.
        groups: Among which goals are exchanged, shape (n,); those of 0 keep theirs.
        least: Edge of the least cubes [m].
        rounds: Numbers of the rounds: another number looks at other pairs.
    """
    free = np.flatnonzero(groups)
    if len(free) < 2:
        return
    x, g, group = points[free], goals[free], groups[free]
    sizes = max(1, math.ceil(math.log2(max(float(np.ptp(x, axis=0).max()) / least, 1.0))) + 1)
    for number in rounds:
        for size in reversed(range(sizes)):
            turn = (1 + sizes * number + size) * np.array(PLASTIC)
            _exchange_once(x, g, group, least * 2.0**size, turn % 1.0)
    goals[free] = g


def _exchange_once(x: np.ndarray, g: np.ndarray, group: np.ndarray, edge: float, turn: np.ndarray) -> None:
    """Look at each point with one other in its cube; `turn` moves the cubes and turns the direction, three numbers from 0 to 1."""
    height, angle = 2.0 * turn[0] - 1.0, 2.0 * math.pi * turn[1]
    flat = math.sqrt(1.0 - height * height)
    along = x @ np.array([flat * math.cos(angle), flat * math.sin(angle), height])
    i, j, k = np.floor(x / edge + turn).astype(np.int64).T
    order = np.lexsort((along, k, j, i, group))
    begins = np.flatnonzero(np.any(np.diff(np.stack([group, i, j, k])[:, order], axis=1, prepend=-(2**62)), axis=0))
    sizes = np.diff(begins, append=len(x))
    rank, half = np.arange(len(x)) - np.repeat(begins, sizes), np.repeat(sizes // 2, sizes)
    lower = np.flatnonzero(rank < half)
    one, other = order[lower], order[lower + half[lower]]
    gains = np.einsum("na,na->n", x[one] - x[other], g[one] - g[other]) < 0.0
    one, other = one[gains], other[gains]
    g[one], g[other] = g[other], g[one]


def _own_layers(points: np.ndarray, spacing: float, axes: np.ndarray) -> tuple[int, int]:
    slabs, columns = np.ptp(points, axis=0)[axes[:2]] / spacing
    return max(1, round(float(slabs))), max(1, round(float(columns)))


def _layers(points: np.ndarray, spacing: float, targets: np.ndarray, its_spacing: float, axes: np.ndarray) -> np.ndarray:
    """Return how many layers both have along each axis."""
    return np.minimum(np.ptp(points, axis=0) / spacing, np.ptp(targets, axis=0) / its_spacing)[axes]


def _order(points: np.ndarray, spacing: float, axes: np.ndarray, slabs: int, columns: int) -> np.ndarray:
    """Return the points slab by slab, column by column and along the column, shape (n,)."""
    count = len(points)
    along = (points - points.min(axis=0))[:, axes]
    # a slab may end within a layer of a lattice: a dither ends it evenly all over, and not along a line
    dither = spacing * (((along / spacing) @ np.array(PLASTIC) + 0.1) % 1.0 - 0.5)
    first, second, third = along.T
    slab = np.empty(count, np.int64)
    slab[np.argsort(first + dither, kind="stable")] = np.arange(count) * slabs // count
    order = np.lexsort((second + dither, slab))
    begins = np.searchsorted(slab[order], np.arange(slabs + 1))
    sizes = np.diff(begins)
    column = np.empty(count, np.int64)
    inside = np.arange(count) - begins[slab[order]]
    column[order] = inside * columns // np.maximum(sizes[slab[order]], 1)
    return np.lexsort((third + 0.01 * dither, column, slab))  # what lies side by side in a column has one order, too
