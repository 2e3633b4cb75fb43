"""Measures on particle positions that figures of samples share; NumPy alone."""

from __future__ import annotations

import numpy as np

from mpm_nodes.verification.cells import cells_of, grown


def flooded(start: np.ndarray, within: np.ndarray) -> np.ndarray:
    """Return the cells of `within` that can be reached from `start` through faces."""
    found = start & within
    while True:
        more = grown(found, within)
        if (more == found).all():
            return found
        found = more


def pieces(positions: np.ndarray, cell: float) -> np.ndarray:
    """Return a number for each particle: equal where particles hang together through cells that touch; 0 is the largest."""
    index, filled = cells_of(positions, cell)
    labels = np.zeros(filled.shape, np.int64)
    count = 0
    left = filled.copy()
    while left.any():
        count += 1
        seed = np.zeros_like(left)
        seed[np.unravel_index(np.argmax(left), left.shape)] = True
        piece = _flooded_corners(seed, filled)
        labels[piece] = count
        left &= ~piece
    mine = labels[tuple(index.T)] - 1
    order = np.argsort(-np.bincount(mine, minlength=count), kind="stable")
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count)
    return rank[mine]


def _flooded_corners(start: np.ndarray, within: np.ndarray) -> np.ndarray:
    found = start
    while True:
        more = grown(found, within, diagonal=True)
        if (more == found).all():
            return found
        found = more


def interior_densities(positions: np.ndarray, masses: np.ndarray, cell: float) -> np.ndarray:
    """Return the mass density at the interior nodes of the grid [kg/m^3]: cubic B-splines, as the paper's own grid has them.

    A node is interior when every cell that its spline reaches, and one more around, lies on the inside of the matter's outer
    surface; voids within the matter count as inside, so that they show.

    Args:
        positions: [m], shape (n, 3).
        masses: [kg], shape (n,).
        cell: Grid spacing h [m].
    """
    index, filled = cells_of(positions, cell, margin=5)
    shape = np.array(filled.shape)
    # the outside: empty cells that the corner of the box reaches
    corner = np.zeros_like(filled)
    corner[0, 0, 0] = True
    outside = flooded(corner, ~filled)
    for _ in range(3):
        outside = grown(outside, diagonal=True)
    # node k is the low corner of cell k: its spline reaches the cells k - 2 .. k + 1
    interior = ~outside
    local = positions / cell - (np.floor(positions / cell).astype(np.int64) - index)[0]
    density = np.zeros(shape)
    base = index - 1
    share = [_cubic(local[:, axis][:, None] - (base[:, axis][:, None] + np.arange(4))) for axis in range(3)]
    flat = density.reshape(-1)
    for i in range(4):
        for j in range(4):
            for k in range(4):
                weight = share[0][:, i] * share[1][:, j] * share[2][:, k] * masses
                place = np.ravel_multi_index(((base[:, 0] + i), (base[:, 1] + j), (base[:, 2] + k)), tuple(shape))
                flat += np.bincount(place, weight, len(flat))
    return density[interior] / cell**3


def _cubic(x: np.ndarray) -> np.ndarray:
    a = np.abs(x)
    return np.where(a < 1.0, 0.5 * a**3 - a**2 + 2.0 / 3.0, np.where(a < 2.0, (2.0 - a) ** 3 / 6.0, 0.0))


def pushed_out(inner: np.ndarray, outer: np.ndarray, slab: float, sectors: int = 32) -> float:
    """Return the share of inner points that lie farther from the vertical axis than every outer point of their direction.

    Directions are `sectors` around the axis in slabs of that height [m]; in one without outer points every inner point that
    is farther out than the nearest outer point of all counts.

    Args:
        inner: Positions about the axis [m], shape (n, 3).
        outer: Positions about the axis [m], shape (m, 3).
        slab: Height of a slab [m].
        sectors: Number of sectors.
    """
    mine, reach = _directions(inner, outer, slab, sectors)
    theirs, shell = _directions(outer, inner, slab, sectors)
    farthest = np.full(max(mine.max(), theirs.max()) + 1, -1.0)
    np.maximum.at(farthest, theirs, shell)
    bare = farthest < 0.0
    farthest[bare] = shell[shell > 0.5 * shell.max()].min()
    return float((reach > farthest[mine]).mean())


def seen_from_the_side(inner: np.ndarray, outer: np.ndarray, slab: float, sectors: int = 32) -> float:
    """Return the share of directions, as in `pushed_out`, whose outermost point is an inner one.

    A direction whose outermost point lies nearer to the axis than half the greatest distance of all is none: it looks onto a
    face.
    """
    mine, reach = _directions(inner, outer, slab, sectors)
    theirs, shell = _directions(outer, inner, slab, sectors)
    farthest = np.full((2, max(mine.max(), theirs.max()) + 1), 0.0)
    np.maximum.at(farthest[0], mine, reach)
    np.maximum.at(farthest[1], theirs, shell)
    side = farthest.max(axis=0) > 0.5 * farthest.max()
    return float((farthest[0] > farthest[1])[side].mean())


def _directions(points: np.ndarray, others: np.ndarray, slab: float, sectors: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a number for the direction of each point, counted from the lowest of all points, and its distance from the axis."""
    low = min(points[:, 1].min(), others[:, 1].min())
    turn = np.arctan2(points[:, 2], points[:, 0]) / (2.0 * np.pi) + 0.5
    place = np.minimum((turn * sectors).astype(int), sectors - 1)
    return place + sectors * ((points[:, 1] - low) / slab).astype(int), np.hypot(points[:, 0], points[:, 2])


def thread_length(points: np.ndarray, cell: float, width: float) -> float:
    """Return over how many cells of height upright matter is thinner than a width.

    Args:
        points: Particles [m], shape (n, 3).
        cell: Cell size [m]: the height of the slices.
        width: Width in cells; of a slice it is that of a band with the same spread, sqrt(12) times its least deviation.
    """
    slices = np.floor((points[:, 1] - points[:, 1].min()) / cell).astype(np.int64)
    thin = 0
    for number in np.unique(slices):
        across = points[slices == number][:, [0, 2]]
        spread = np.linalg.eigvalsh(np.cov(across.T))[0] if len(across) > 1 else 0.0
        thin += bool(np.sqrt(12.0 * max(spread, 0.0)) < width * cell)
    return float(thin)
