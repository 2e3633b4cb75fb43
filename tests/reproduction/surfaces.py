"""What the samples of surface tension show: their balances of mass and momentum, and what must be seen."""

from __future__ import annotations

import math

import numpy as np

from mpm_nodes.data import Particles
from mpm_nodes.physics.surface_tension.problems.surface_tension import samples_of
from mpm_nodes_samples.shots.shot import Figure, Shot, Target
from tests.reproduction.melting import balances
from tests.reproduction.sessile import sessile_drop

PLATES = (("glass", 45.0), ("plastic", 90.0), ("wax", 135.0), ("soot", 180.0))
"""Plates of drops_on_plates from left to right, and their angles [degrees]."""
GRAVITY = 9.81
"""Of drops_on_plates [m/s^2]."""


def drops_of(particles: Particles, count: int, pitch: float) -> list[np.ndarray]:
    """Return masks of drops that lie side by side along x, `pitch` [m] apart around zero."""
    column = np.floor(particles["position"][:, 0] / pitch + 0.5 * count).astype(int)
    return [column == n for n in range(count)]


def sphere_through(x: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, float]:
    """Return centre and radius of the sphere that fits points best, by weighted least squares."""
    root = np.sqrt(weight)
    rows = np.concatenate([2.0 * x, np.ones((len(x), 1))], axis=1) * root[:, None]
    found = np.linalg.lstsq(rows, (x**2).sum(axis=1) * root, rcond=None)[0]
    return found[:3], math.sqrt(found[3] + float(found[:3] @ found[:3]))


def angle_on_floor(position: np.ndarray, cell_size: float) -> float:
    """Return the angle [degrees] at which the sphere through a drop's surface beyond two cells from the floor y = 0 meets it."""
    x, vectors = samples_of(position, cell_size)[:2]
    return _sphere_on_floor(x, np.linalg.norm(vectors, axis=1), cell_size)


def _sphere_on_floor(x: np.ndarray, area: np.ndarray, cell_size: float) -> float:
    """Return the angle [degrees] at which the sphere through points of a surface beyond two cells from the floor meets it."""
    mine = x[:, 1] > 2.0 * cell_size
    centre, radius = sphere_through(x[mine], area[mine])
    return math.degrees(math.acos(float(np.clip(-centre[1] / radius, -1.0, 1.0))))


def exact_angle_on_floor(volume: float, angle: float, weight: float, tension: float, cell_size: float) -> float:
    """Return what `angle_on_floor` says of the exact drop with its weight [degrees]; see `sessile_drop`."""
    profile = sessile_drop(volume, angle, weight, tension)
    r, y = 0.5 * (profile[1:] + profile[:-1]).T
    area = r * np.hypot(*np.diff(profile, axis=0).T)
    four = [np.stack([r * x, y, r * z], axis=1) for x, z in ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))]
    return _sphere_on_floor(np.concatenate(four), np.tile(area, 4), cell_size)


def drops_on_plates(shot: Shot) -> list[Figure]:
    """Return the balances, the angle of each drop beside the exact one, how far it wandered, and the volume in its surface."""
    first, last, h, found = shot.at(shot.first), shot.at(shot.last), shot.cell_size, balances(shot)
    nodes = shot.graph.nodes
    tension, density = nodes["water"].knobs["tension"], nodes["liquid"].knobs["density"]
    for (name, angle), before, after in zip(PLATES, drops_of(first, 4, 0.0028), drops_of(last, 4, 0.0028), strict=True):
        x, volume = last["position"][after], float(np.asarray(last["volume"], float)[after].sum())
        where, vectors = samples_of(x, h)[:2]
        enclosed = float((where * vectors).sum()) / 3.0
        moved = x.mean(axis=0) - first["position"][before].mean(axis=0)
        exact = exact_angle_on_floor(volume, angle, density * GRAVITY, tension, h)
        found += [
            Figure(f"angle on {name} [degrees]", angle_on_floor(x, h), Target(angle - 5.0, angle + 5.0), f"Young: {angle:g}"),
            Figure(f"the same of the exact drop on {name}, with its weight [degrees]", exact, says="Young, Laplace"),
            Figure(f"volume inside the surface on {name}, over the matter's", enclosed / volume, Target(0.9, 1.1)),
            Figure(f"way of the drop along {name} [cells]", float(np.hypot(moved[0], moved[2])) / h, Target(most=0.5)),
        ]
    return found


def soap_on_water(shot: Shot) -> list[Figure]:
    """Return the balances, and where the water of the surface went that lay around the soap."""
    first, last, h = shot.at(shot.first), shot.at(shot.last), shot.cell_size
    order = np.argsort(first["id"]), np.argsort(last["id"])
    start, end = first["position"][order[0]], last["position"][order[1]]
    soap = first["concentration"][order[0]] > 0.5
    before, after = (np.hypot(x[:, 0], x[:, 2]) for x in (start, end))
    ring = ~soap & (start[:, 1] > 0.04 - 0.5 * h) & (before > 4.0 * h) & (before < 8.0 * h)
    mass, velocity = np.asarray(last["mass"], float), np.asarray(last["velocity"], float)
    size = float(mass @ np.linalg.norm(velocity, axis=1))
    sideways = np.abs(mass @ velocity)[[0, 2]].max()
    return [
        *balances(shot),
        Figure("way of the surface's water away from the soap [cells]", float((after - before)[ring].mean()) / h, Target(1.0)),
        Figure("share of it that moves away [%]", 100.0 * float((after > before)[ring].mean()), Target(90.0)),
        Figure("width of the soap, over that at the start", float(after[soap].mean() / before[soap].mean()), Target(1.2)),
        Figure("sideways momentum, over sum m v", float(sideways) / size, Target(most=0.02), "symmetric"),
    ]
