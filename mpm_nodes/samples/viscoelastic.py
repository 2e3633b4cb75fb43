"""The figures of the viscoelastic samples (R15): measured on a cache, beside what the source shows or what must hold."""

from __future__ import annotations

import numpy as np

from mpm_nodes.samples.measures import pieces
from mpm_nodes.samples.shot import Figure, Shot


# ---------------------------------------------------------------- measures
def parted(points: np.ndarray, cell: float, low: np.ndarray, high: np.ndarray) -> bool:
    """Return whether no piece of matter reaches from the particles `low` to the particles `high` (masks of shape (n,))."""
    piece = pieces(points, cell)
    return not set(piece[low]) & set(piece[high])


def nearest_strangers(now: np.ndarray, before: np.ndarray, apart: float, cell: float) -> float:
    """Return the least distance [m] between particles that began farther than `apart` from each other; inf where none meet.

    Only particles that share a cell of that size are looked at.

    Args:
        now: Positions [m], shape (n, 3).
        before: Positions of the same particles at the start [m], shape (n, 3).
        apart: [m].
        cell: Edge of those cells [m]; the grid lets matter meet at one to one and a half of its own.
    """
    index = np.floor(now / cell).astype(np.int64)
    index -= index.min(axis=0)
    _, mine = np.unique(np.ravel_multi_index(tuple(index.T), tuple(index.max(axis=0) + 1)), return_inverse=True)
    low, high = np.full((mine.max() + 1, 3), np.inf), np.full((mine.max() + 1, 3), -np.inf)
    np.minimum.at(low, mine, before)
    np.maximum.at(high, mine, before)
    least = np.inf
    for number in np.flatnonzero(np.linalg.norm(high - low, axis=1) > apart):
        here = np.flatnonzero(mine == number)
        far = np.linalg.norm(before[here, None] - before[None, here], axis=2) > apart
        gaps = np.linalg.norm(now[here, None] - now[None, here], axis=2)
        least = min(least, float(gaps[far].min(initial=np.inf)))
    return least


def same_order(shot: Shot, frame: int) -> np.ndarray:
    """Return a frame's positions in the order of ids, so that rows of two frames are the same particle."""
    particles = shot.at(frame)
    return np.asarray(particles["position"], float)[np.argsort(particles["id"], kind="stable")]


# ---------------------------------------------------------------- sponges
def twisted_sponge(shot: Shot) -> list[Figure]:
    """Return when the bar tears, what is left, and that matter which was far apart touches."""
    start, cell = same_order(shot, shot.first), shot.cell_size
    low, high = start[:, 1] < start[:, 1].min() + 0.03, start[:, 1] > start[:, 1].max() - 0.03
    torn = next((frame for frame in shot.frames if parted(same_order(shot, frame), cell, low, high)), 0)
    counts = np.bincount(pieces(same_order(shot, shot.last), cell))
    large = int((counts > 0.01 * len(start)).sum())
    strip = float((counts[counts <= 0.01 * len(start)]).sum()) / len(start)
    nearest = [nearest_strangers(same_order(shot, frame), start, 0.05, 2.0 * cell) for frame in shot.frames]
    touched = next((frame for frame, gap in zip(shot.frames, nearest, strict=True) if gap < 1.5 * cell), 0)
    return [
        Figure("first frame in two", torn, "tears, after it was wound up", torn > shot.first + 10),
        Figure("pieces of more than 1 % at the end", large, "at least 2", large >= 2),
        Figure("in pieces smaller than that [%]", 100.0 * strip, "below 5 %: it tears, it does not crumble", strip < 0.05),
        Figure("first frame in which it touches itself (0.05 m apart at first)", touched, "collides with itself", touched > 0),
        Figure("least distance then and later, over the cell", min(nearest) / cell, "below 1.5", min(nearest) < 1.5 * cell),
    ]
