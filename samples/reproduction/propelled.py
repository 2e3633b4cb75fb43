"""What the samples of tension that grows within one liquid show: a drop that propels itself, and tears of wine."""

from __future__ import annotations

import numpy as np

from mpm_nodes.data import Particles
from mpm_nodes_samples.reproduction.measures import pieces
from mpm_nodes_samples.reproduction.melting import books
from mpm_nodes_samples.reproduction.shot import Bar, Figure, Shot

RADIUS = 0.1507
"""Of the drops of metal_drop [m]."""


# ---------------------------------------------------------------- metal drop
def metal_drop(shot: Shot) -> list[Figure]:
    """Return the books, how far each drop goes, and whether it stays one; the first lies on the floor with friction."""
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
        *books(shot),
        Figure("way of the drop with friction, over its radius", abs(float(ways[-1, 0])), Bar(0.5), "propels itself"),
        Figure("the same towards the lamp", float(-ways[-1, 0]), None, "the source's goes to the cold side"),
        Figure("largest way without friction, over the radius", float(np.abs(ways[:, 1]).max()), Bar(most=0.01), "nothing pushes"),
        Figure("momentum sideways without friction, over sum m v", sideways, Bar(most=1e-3), "nothing pushes"),
        Figure("least share of a drop in its largest piece", min(whole), Bar(0.99), "one body"),
        Figure("warmer on the side of the lamp, at most [K]", max(apart), Bar(10.0), "heated on one side"),
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
