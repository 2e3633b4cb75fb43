"""Whether the velocities in a cache are those of its positions: motion blur and retiming believe them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from pxr import Usd

from mpm_nodes.data import InputError
from usd_io.packing import holds_points, unpacked
from usd_io.typed import numbers

__all__ = ["check_velocities", "speed_ratio"]

TOLERANCE = 0.05
"""Largest part by which velocities may be off."""
SMOOTH = 0.95
"""Share of a frame's motion that its velocities must explain; a rougher one (contacts, vibrations) tells nothing."""


def check_velocities(prim: Usd.Prim, first: int, last: int, codes_per_second: float) -> Iterator[str]:
    """Yield the problem of points whose velocities, followed by id, are not what carries them from frame to frame.

    Args:
        prim: Any prim; only Points with velocities are looked at.
        first: First frame.
        last: Last frame.
        codes_per_second: Time codes per second of the stage; frames are whole codes.
    """
    if not holds_points(prim):
        return
    ratios = []
    before = _moving(prim, first)
    for frame in range(first + 1, last + 1):
        now = _moving(prim, frame)
        if before is not None and now is not None:
            ratio = speed_ratio(before, now, codes_per_second)
            ratios += [] if ratio is None else [ratio]
        before = now
    if ratios and abs(np.median(ratios) - 1.0) > TOLERANCE:
        yield (
            f"{prim.GetPath()}: velocities are {np.median(ratios):.3g} times what carries the points from frame to frame; "
            "motion blur will be as much too long or short"
        )


def _moving(prim: Usd.Prim, frame: int) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return ids, positions and velocities in the order of the ids, shapes (n,), (n, 3), (n, 3)."""
    try:
        found = [
            numbers(prim.GetAttribute("ids"), frame, whole=True),
            unpacked(prim, "points", frame),
            unpacked(prim, "velocities", frame),
        ]
    except InputError:  # told for its frame
        return None
    if any(value is None for value in found):
        return None
    ids, points, velocities = np.array(found[0]), np.array(found[1], np.float64), np.array(found[2], np.float64)
    if not len(ids) or len(points) != len(ids) or len(velocities) != len(ids):
        return None
    order = np.argsort(ids, kind="stable")
    return ids[order], points[order], velocities[order]


def speed_ratio(
    before: tuple[np.ndarray, np.ndarray, np.ndarray], now: tuple[np.ndarray, np.ndarray, np.ndarray], rate: float
) -> float | None:
    """Return written over actual speed between two frames, None where nothing moves or the motion is too rough to tell.

    Args:
        before: Ids (n,), positions (n, 3) and velocities (n, 3) in the order of the ids.
        now: The same a frame later.
        rate: Frames per second.
    """
    _, a, b = np.intersect1d(before[0], now[0], assume_unique=True, return_indices=True)
    moved = now[1][b] - before[1][a]
    told = 0.5 / rate * (before[2][a] + now[2][b])
    size, meant, both = (moved**2).sum(), (told**2).sum(), (moved * told).sum()
    rounding = (np.finfo(np.float32).eps * (1.0 + np.abs(now[1]).max(initial=0.0))) ** 2 * moved.size
    if not np.isfinite(size + meant) or max(size, meant) < 1e4 * rounding or both <= 0.0 or both**2 < SMOOTH * size * meant:
        return None
    return float(meant / both)
