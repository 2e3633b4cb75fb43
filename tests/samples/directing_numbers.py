"""How the numbers of the directing samples in samples/README.md are measured."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sample_numbers import SAMPLES, Cooked

PULLED, OUTLET, DEPTH = 25, 0.045, 0.075
"""Frame at which the plug of the sink is pulled, radius of its outlet, and depth of its water over the floor there [m]."""


# ---------------------------------------------------------------- pinned_jelly
def corner(cooked: Cooked, x: float, z: float) -> np.ndarray:
    """Return the particles that a pin holds at first, as their places in the order of ids."""
    first = cooked.at(1)
    order = np.argsort(first["id"])
    away = first["position"][order] - np.float32((x, 0.6, z))
    return np.flatnonzero(np.linalg.norm(away, axis=1) < 0.05)


def slip(cooked: Cooked, x: float, z: float, until: int) -> float:
    """Return how far at most what a pin holds has moved [m]."""
    return float(np.linalg.norm(cooked.moved(corner(cooked, x, z), 1, until), axis=1).max())


# ---------------------------------------------------------------- filled_bar
def slip_in_hands(cooked: Cooked, frame: int) -> float:
    """Return how far at most what the hands hold lies from where they carried it [m]."""
    first, last = (cooked.at(each) for each in (1, frame))
    begun, ended = (each["position"][np.argsort(each["id"])].astype(float) for each in (first, last))
    farthest, angle = 0.0, np.radians(50.0)
    for side in (-1.0, 1.0):
        arm = begun - (side * 0.048, 0.08, 0.0)
        held = (np.abs(arm) < (0.022, 0.05, 0.05)).all(axis=1)
        c, s = np.cos(side * angle), np.sin(side * angle)
        turned = np.stack([c * arm[:, 0] + s * arm[:, 2], arm[:, 1], c * arm[:, 2] - s * arm[:, 0]], axis=1)
        carried = turned + (side * 0.09, 0.1, 0.0)
        farthest = max(farthest, float(np.linalg.norm(ended - carried, axis=1)[held].max()))
    return farthest


def mass_of(cooked: Cooked, frame: int, material: int) -> float:
    """Return the mass of one material [kg]."""
    particles = cooked.at(frame)
    return float(particles["mass"][particles["material"] == material].sum(dtype=float))


def of_the_bridge(cooked: Cooked, frame: int, material: int) -> float:
    """Return how much of a material is left between the hands above the table, at its thinnest, over what was there.

    It is counted in slices of a cell between them, in what the bar's own height was at most below its middle.
    """
    counts = []
    for each in (1, frame):
        particles = cooked.at(each)
        x, y = particles["position"][:, 0], particles["position"][:, 1]
        chosen = (particles["material"] == material) & (y > 0.03)
        counts.append(np.histogram(x[chosen], np.arange(-0.025, 0.0251, 0.005))[0])
    return float(counts[1].min() / counts[0].mean())


# ---------------------------------------------------------------- sink
def water_of(cooked: Cooked, frame: int) -> float:
    """Return the mass of the water that is there [kg]."""
    return float(cooked.at(frame)["mass"].sum(dtype=float))


def drained(cooked: Cooked, first: int, last: int) -> float:
    """Return the mass that the event `drained` tells of some frames [kg]."""
    told = [event for event in cooked.told if event["event"] == "drained" and first <= event["frame"] <= last]
    return float(sum(sum(event["mass"]) for event in told))


def mass_of_the_mesh() -> float:
    """Return the mass of the water that the mesh in basin.usda holds, by its signed volume [kg]."""
    from mpm_nodes.kernels.level_sets.mesh_repair import triangulate
    from usd_io.collider_meshes import StageMeshes

    meshes = StageMeshes(SAMPLES / "basin.usda", "water")
    topology, points = meshes.topology(1), meshes.points(1)
    corners = points[triangulate(topology.counts, topology.indices)[0]]
    return 998.0 * abs(float(np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])).sum())) / 6.0


def outflow(cooked: Cooked, first: int, last: int) -> float:
    """Return the rate at which water runs out, over that of a jet without friction as wide as the outlet (Torricelli)."""
    seconds = (last - first + 1) / 24.0
    jet = 998.0 * np.pi * OUTLET**2 * np.sqrt(2.0 * 9.81 * DEPTH)
    return drained(cooked, first, last) / seconds / float(jet)


MEASURES: dict[str, dict[str, Callable[[Cooked], float]]] = {
    "pinned_jelly": {
        "most that the first pin lets move until frame 30 [m]": lambda c: slip(c, -0.21, 0.21, 30),
        "most that the last pin lets move until frame 54 [m]": lambda c: slip(c, -0.21, -0.21, 54),
        "way of the first corner until frame 36, five after its pin let go [m]": lambda c: slip(c, -0.21, 0.21, 36),
        "lowest particle at frame 30: sags from 0.5625 [m]": lambda c: c.x(30).min(),
        "lowest particle at frame 96, on the plate [m]": lambda c: c.x(96).min(),
        "mean height at frame 96 [m]": lambda c: c.x(96).mean(dtype=float),
    },
    "filled_bar": {
        "mass of the chocolate [kg]": lambda c: mass_of(c, 43, 0),
        "mass of the caramel [kg]": lambda c: mass_of(c, 43, 1),
        "most that slips in the hands until frame 43 [m]": lambda c: slip_in_hands(c, 43),
        "chocolate between the hands at frame 43, thinnest slice over the first": lambda c: of_the_bridge(c, 43, 0),
        "caramel between the hands at frame 43, thinnest slice over the first": lambda c: of_the_bridge(c, 43, 1),
        "share of all that lies on the table at frame 43": lambda c: (c.x(43) < 0.03).mean(),
    },
    "sink": {
        "mass at the start, over 998 kg/m^3 times the mesh's volume": lambda c: water_of(c, 1) / mass_of_the_mesh(),
        "mass that the event drained tells before frame 25 [kg]": lambda c: drained(c, 1, PULLED - 1),
        "drained and left at frame 96, over the start": lambda c: (drained(c, 1, 96) + water_of(c, 96)) / water_of(c, 1),
        "share that has run out at frame 96": lambda c: 1.0 - water_of(c, 96) / water_of(c, 1),
        "outflow of frames 31 to 36, over a jet as wide as the outlet": lambda c: outflow(c, 31, 36),
        "lowest particle at frame 96: none leaks through the basin [m]": lambda c: c.x(96).min(),
    },
}
"""By sample and number as samples/README.md calls it: how to measure it."""
