"""What the samples of tension that grows within one liquid show: a drop that propels itself, and tears of wine."""

from __future__ import annotations

import numpy as np

from mpm_nodes.data import Particles
from mpm_nodes_samples.shots.shot import Figure, Shot, Target
from tests.reproduction.measures import pieces
from tests.reproduction.melting import balances
from tests.reproduction.phases import by_id

RADIUS = 0.1507
"""Of the drops of metal_drop [m]."""


# ---------------------------------------------------------------- metal drop
def metal_drop(shot: Shot) -> list[Figure]:
    """Return the balances, how far each drop goes, and whether it stays one; the first lies on the floor with friction."""
    start, ways, whole, apart = shot.at(shot.first), np.zeros((len(shot.frames), 2)), [], []
    begin = [_middle(start, of) for of in _drops(start)]
    for n, frame in enumerate(shot.frames):
        particles = shot.at(frame)
        for k, of in enumerate(_drops(particles)):
            ways[n, k] = (_middle(particles, of) - begin[k])[0] / RADIUS
            x = np.asarray(particles["position"], float)[of]
            whole.append(float((pieces(x, shot.cell_size) == 0).mean()))
            left = x[:, 0] < np.median(x[:, 0])
            warm = np.asarray(particles["temperature"], float)[of]
            apart.append(float(warm[left].mean() - warm[~left].mean()))
    last = shot.at(shot.last)
    smooth = _drops(last)[1]
    mass, velocity = (np.asarray(last[name], float)[smooth] for name in ("mass", "velocity"))
    sideways = abs(float(mass @ velocity[:, 0])) / float(mass @ np.linalg.norm(velocity, axis=1))
    return [
        *balances(shot),
        Figure("way of the drop with friction, over its radius", abs(float(ways[-1, 0])), Target(0.5), "propels itself"),
        Figure("the same towards the lamp", float(-ways[-1, 0]), None, "the source's goes to the cold side"),
        Figure("largest way without friction, over the radius", float(np.abs(ways[:, 1]).max()), Target(most=0.01),
               "nothing pushes"),
        Figure("momentum sideways without friction, over sum m v", sideways, Target(most=1e-3), "nothing pushes"),
        Figure("least share of a drop in its largest piece", min(whole), Target(0.99), "one body"),
        Figure("warmer on the side of the lamp, at most [K]", max(apart), Target(10.0), "heated on one side"),
    ]  # fmt: skip


def _drops(particles: Particles) -> tuple[np.ndarray, np.ndarray]:
    """Return masks of the drop on the floor with friction and of that on the one without."""
    front = particles["position"][:, 2] > 0.0
    return front, ~front


def _middle(particles: Particles, of: np.ndarray) -> np.ndarray:
    """Return the centre of mass of some particles [m]."""
    mass = np.asarray(particles["mass"], float)[of]
    middle: np.ndarray = mass @ np.asarray(particles["position"], float)[of] / mass.sum()
    return middle


# ---------------------------------------------------------------- tears of wine
LEVEL, BAND = 0.3, 0.5
"""Height of the wine in the glass of tears_of_wine, and of the lower edge of the band on its wall [m]."""
CENTRE, HALF_AXES = (0.5, 0.7, 0.5), (0.4, 0.6)
"""Of the glass: middle and half axes, across and up [m]."""
SECTORS = 24
"""Parts of half a turn around the glass in which the lower edge of the film is looked at: one and a half cells wide."""


def tears_of_wine(shot: Shot) -> list[Figure]:
    """Return the balances, also of the alcohol, how the film on the glass thickens and parts into tears, and where it comes to."""
    h, on_glass = shot.cell_size, by_id(shot, shot.first, "position")[:, 1] > 0.5 * (LEVEL + BAND)
    ridges, tears, climbs = [], [], []
    for frame in shot.frames:
        x = by_id(shot, frame, "position").astype(float)
        film = x[on_glass]
        film = film[film[:, 1] > LEVEL + 2.0 * h]
        if len(film) > 0.25 * on_glass.sum():
            ridges.append(ridge(film, h))
            tears.append(fingers(lower_edge(film), h))
        climbs.append((float(np.quantile(x[~on_glass, 1], 0.999)) - LEVEL) / h)
    end = by_id(shot, shot.last, "position").astype(float)
    strength = [float(by_id(shot, shot.last, "concentration")[of].mean()) for of in (on_glass, ~on_glass)]
    down = 100.0 * float((end[on_glass, 1] < LEVEL + h).mean())
    return [
        *balances(shot),
        *_book_of_solute(shot),
        Figure("alcohol in the wine of the film, over that in the pool's", strength[0] / strength[1], Target(most=0.9),
               "evaporates"),
        Figure("thickest ring of the film, over the mean behind it, at most", max(ridges), Target(1.3), "ridges"),
        Figure("tears at the lower edge, at most", max(tears), Target(2.0), "tears"),
        Figure("share of the film's wine that has come to the pool [%]", down, Target(5.0), "connect with the bulk"),
        Figure("highest wine of the pool over its level, at most [cells]", max(climbs), Target(2.0), "climbs"),
    ]  # fmt: skip


def ridge(film: np.ndarray, cell_size: float) -> float:
    """Return how thick the thickest ring of a film is, over the mean of those above it; 1 where there is none above.

    Args:
        film: Positions of its particles, eight a cell, shape (n, 3) [m].
        cell_size: Height of the rings [m].
    """
    row = np.floor(film[:, 1] / cell_size).astype(int)
    count = np.bincount(row).astype(float)
    height = ((np.arange(len(count)) + 0.5) * cell_size - CENTRE[1]) / HALF_AXES[1]
    inside = np.sqrt(np.maximum(1.0 - height**2, 1e-3))
    across = HALF_AXES[0] * inside
    slope = HALF_AXES[0] * height / (HALF_AXES[1] * inside)
    thick = count / (across * np.hypot(1.0, slope))
    top = int(np.argmax(thick))
    behind = thick[top + 1 :][count[top + 1 :] > 0.1 * count.max()]
    return float(thick[top] / behind.mean()) if len(behind) else 1.0


def lower_edge(film: np.ndarray) -> np.ndarray:
    """Return the height of a film's lower edge in each sector, shape (SECTORS,) [m]; that of its top where it has none there."""
    turn = np.arctan2(CENTRE[2] - film[:, 2], film[:, 0] - CENTRE[0]) / np.pi
    sector = np.clip((turn * SECTORS).astype(int), 0, SECTORS - 1)
    return np.array([float(film[sector == k, 1].min(initial=film[:, 1].max())) for k in range(SECTORS)])


def fingers(edge: np.ndarray, depth: float) -> int:
    """Return how many fingers hang from an edge: lows from which it rises by `depth` on either side, or up to its ends."""
    count, falling, turn = 0, True, float(edge[0])  # the last height at which it turned
    for height in edge[1:]:
        turn = min(turn, height) if falling else max(turn, height)
        if falling and height - turn >= depth:
            count, falling, turn = count + 1, False, height
        elif not falling and turn - height >= depth:
            falling, turn = True, height
    return count + int(falling and count > 0)


def _book_of_solute(shot: Shot) -> list[Figure]:
    """Return the solute at the start and at the end, and what evaporated [m^3]."""
    begin, end = (
        float(np.asarray(each["volume"], float) @ np.asarray(each["concentration"], float))
        for each in (shot.at(shot.first), shot.at(shot.last))
    )
    gone = shot.progress.evaporated
    missing = abs(begin - end - gone) / (gone or 1.0)
    return [
        Figure("alcohol at the start [m^3]", begin),
        Figure("alcohol at the end [m^3]", end),
        Figure("alcohol that evaporated [m^3]", gone),
        Figure("alcohol that is missing, over that", missing, Target(most=1e-4), "conserved"),
    ]
