"""Figures of samples of one's own shots, which follow no source: what directs the matter must show."""

from __future__ import annotations

import math

import numpy as np

from mpm_nodes_samples.shots.resolutions import GRAVITY, RADIUS, looks
from mpm_nodes_samples.shots.shot import Figure, Shot, Target
from tests.reproduction.measures import pieces

DROP, ASIDE = 0.18, 0.02
"""Of dough_on_step: height of the middle of the ball over the edge, and how far it lies beside it [m]."""
MUD = 0.063
"""Height of the mud before the step [m]."""
LIFTED = 0.12
"""What is higher than this in the end hangs on the sole, whose toes are 0.15 m up then [m]."""
LEAVES = 31
"""Frame in which the ball of the foot is above the mud."""
HEEL = ((-0.19, -0.13), (-0.02, 0.02))
"""Under the heel, along and across [m]."""


def footprints(shot: Shot) -> list[Figure]:
    """Return how deep the print is, how long mud hangs between ground and sole, and how much goes with the sole."""
    heights = {frame: _hanging(shot, frame) for frame in shot.frames if frame >= LEAVES}
    hangs = [frame for frame, high in heights.items() if high > 0.0]
    last = shot.at(shot.last)
    y, mass = shot.positions(shot.last)[:, 1], last["mass"]
    return [
        Figure("depth of the print of the heel at the end [mm]", 1e3 * (MUD - _under_heel(shot)), Target(10.0), "keeps its print"),
        Figure("last frame in which mud hangs between ground and sole", max(hangs, default=0), Target(LEAVES + 3), "pulls strings"),
        Figure("highest place that a string reaches over the ground [mm]", 1e3 * max(heights.values()), Target(120.0), "long ones"),
        Figure("mud on the sole at the end [g]", 1e3 * float(mass[y > LIFTED].sum(dtype=float)), Target(5.0), "sticks"),
    ]


def _under_heel(shot: Shot) -> float:
    """Return how high the mud lies under the heel at the end: the mean of its columns [m]."""
    points, cell = shot.positions(shot.last), shot.cell_size
    (low, high), (left, right) = HEEL
    under = points[(points[:, 0] > low) & (points[:, 0] < high) & (points[:, 2] > left) & (points[:, 2] < right)]
    under = under[under[:, 1] < MUD]
    column = np.floor((under[:, 0] - low) / cell).astype(int) * 1000 + np.floor((under[:, 2] - left) / cell).astype(int)
    return float(np.mean([under[column == each, 1].max() for each in np.unique(column)]))


def _hanging(shot: Shot, frame: int) -> float:
    """Return how high what hangs together with the ground reaches, where that is on the sole [m]; else 0."""
    points = shot.positions(frame)
    piece = pieces(points, shot.cell_size)
    high = float(points[piece == 0, 1].max())
    return high if high > LIFTED else 0.0


def dough_on_step(shot: Shot) -> list[Figure]:
    """Return when the ball lands beside when a ball of its size would touch the edge, and how it lies in the end."""
    fall = DROP - math.sqrt(RADIUS**2 - ASIDE**2)
    found = looks(shot)
    own = Figure("time to land, over sqrt(2 d / g)", found.pop("time to land") / math.sqrt(2.0 * fall / GRAVITY),
                 Target(0.95, 1.1), "d from the ball to the edge")  # fmt: skip
    units = {name: "" if name.startswith("share") else ", over the ball's diameter" for name in found}
    return [own, *(Figure(f"{name}{units[name]}, at the end", value) for name, value in found.items())]
